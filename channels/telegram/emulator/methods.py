"""The methods that are carried out at once, by name in lower case.

The server handles `getUpdates`, which waits, and the webhook's methods, which change the delivery.
"""

from collections.abc import Callable, Mapping
from functools import partial

from channels.telegram.emulator import (
    bot_methods,
    chat_methods,
    draft_methods,
    edit_methods,
    send_methods,
)
from channels.telegram.emulator.account import Account
from channels.telegram.emulator.chats import Instant
from channels.telegram.emulator.files import FOLDERS
from channels.telegram.emulator.wire import Parameters

Method = Callable[[Account, Parameters, Instant], object]
METHODS: Mapping[str, Method] = {
    "getme": bot_methods.get_me,
    "getfile": bot_methods.get_file,
    "setmycommands": bot_methods.set_my_commands,
    "getmycommands": bot_methods.get_my_commands,
    "deletemycommands": bot_methods.delete_my_commands,
    "answercallbackquery": bot_methods.answer_callback_query,
    "sendmessage": send_methods.send_message,
    "sendmediagroup": send_methods.send_media_group,
    "forwardmessage": send_methods.forward_message,
    "copymessage": send_methods.copy_message,
    "sendchataction": send_methods.send_chat_action,
    "sendmessagedraft": draft_methods.send_message_draft,
    "sendrichmessage": draft_methods.send_rich_message,
    "sendrichmessagedraft": draft_methods.send_rich_message_draft,
    "editmessagetext": edit_methods.edit_message_text,
    "editmessagecaption": edit_methods.edit_message_caption,
    "editmessagereplymarkup": edit_methods.edit_message_reply_markup,
    "editmessagemedia": edit_methods.edit_message_media,
    "deletemessage": edit_methods.delete_message,
    "deletemessages": edit_methods.delete_messages,
    "getchat": chat_methods.get_chat,
    "getchatmember": chat_methods.get_chat_member,
    "getchatadministrators": chat_methods.get_chat_administrators,
    "getchatmembercount": chat_methods.get_chat_member_count,
    "leavechat": chat_methods.leave_chat,
    "pinchatmessage": chat_methods.pin_chat_message,
    "unpinchatmessage": chat_methods.pin_chat_message,
    "setmessagereaction": chat_methods.set_message_reaction,
    "createforumtopic": chat_methods.create_forum_topic,
    "closeforumtopic": chat_methods.close_forum_topic,
    "reopenforumtopic": chat_methods.reopen_forum_topic,
    "deleteforumtopic": chat_methods.delete_forum_topic,
    **{name: partial(bot_methods.set_profile, name) for name in bot_methods.PROFILE},
    **{f"send{kind.replace('_', '')}": partial(send_methods.send_file, kind) for kind in FOLDERS},
}
