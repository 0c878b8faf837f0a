"""The methods that are carried out at once, by name in lower case.

The server handles `getUpdates`, which waits, and the webhook's methods, which change the delivery.
"""

from collections.abc import Callable, Mapping
from functools import partial

from channels.telegram.emulator import about_bot, about_chats, drafting, editing, sending
from channels.telegram.emulator.account import Account
from channels.telegram.emulator.chats import Instant
from channels.telegram.emulator.files import FOLDERS
from channels.telegram.emulator.wire import Parameters

Method = Callable[[Account, Parameters, Instant], object]
METHODS: Mapping[str, Method] = {
    "getme": about_bot.get_me,
    "getfile": about_bot.get_file,
    "setmycommands": about_bot.set_my_commands,
    "getmycommands": about_bot.get_my_commands,
    "deletemycommands": about_bot.delete_my_commands,
    "answercallbackquery": about_bot.answer_callback_query,
    "sendmessage": sending.send_message,
    "sendmediagroup": sending.send_media_group,
    "forwardmessage": sending.forward_message,
    "copymessage": sending.copy_message,
    "sendchataction": sending.send_chat_action,
    "sendmessagedraft": drafting.send_message_draft,
    "sendrichmessage": drafting.send_rich_message,
    "sendrichmessagedraft": drafting.send_rich_message_draft,
    "editmessagetext": editing.edit_message_text,
    "editmessagecaption": editing.edit_message_caption,
    "editmessagereplymarkup": editing.edit_message_reply_markup,
    "editmessagemedia": editing.edit_message_media,
    "deletemessage": editing.delete_message,
    "deletemessages": editing.delete_messages,
    "getchat": about_chats.get_chat,
    "getchatmember": about_chats.get_chat_member,
    "getchatadministrators": about_chats.get_chat_administrators,
    "getchatmembercount": about_chats.get_chat_member_count,
    "leavechat": about_chats.leave_chat,
    "pinchatmessage": about_chats.pin_chat_message,
    "unpinchatmessage": about_chats.pin_chat_message,
    "setmessagereaction": about_chats.set_message_reaction,
    "createforumtopic": about_chats.create_forum_topic,
    "closeforumtopic": about_chats.close_forum_topic,
    "reopenforumtopic": about_chats.reopen_forum_topic,
    "deleteforumtopic": about_chats.delete_forum_topic,
    **{name: partial(about_bot.set_profile, name) for name in about_bot.PROFILE},
    **{f"send{kind.replace('_', '')}": partial(sending.send_file, kind) for kind in FOLDERS},
}
