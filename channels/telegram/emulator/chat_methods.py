"""The methods about a chat: its members, its topics, pinned messages."""

from channels.telegram.emulator import shapes
from channels.telegram.emulator.account import Account
from channels.telegram.emulator.chats import Chat, Instant, Topic, Version
from channels.telegram.emulator.entities import Formatted
from channels.telegram.emulator.refusals import bad_request
from channels.telegram.emulator.wire import Parameters

LONGEST_TOPIC_NAME = 128
_TOPIC_COLOR = 7322096
_GIFTS = (
    "unlimited_gifts",
    "limited_gifts",
    "unique_gifts",
    "premium_subscription",
    "gifts_from_channels",
)


def get_chat(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `getChat`."""
    chat = account.find_chat(parameters)
    return {
        **shapes.chat(chat),
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(_GIFTS, False),
    }


def get_chat_member(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `getChatMember`."""
    chat = account.find_chat(parameters)
    id_ = parameters.number("user_id")
    if id_ == account.bot.id:
        return shapes.member(account.bot, chat.bot)
    person = account.people.get(id_)
    if person is None:
        raise bad_request("user not found")
    default = "member" if chat.person is person else "left"
    return shapes.member(person, chat.members.get(id_, default))


def get_chat_administrators(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `getChatAdministrators`."""
    chat = account.find_chat(parameters)
    if not chat.is_group:
        raise bad_request("there are no administrators in the private chat")
    ids = [id_ for id_, status in chat.members.items() if status == "administrator"]
    return [shapes.member(account.people[id_], "administrator") for id_ in ids]


def get_chat_member_count(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `getChatMemberCount`."""
    chat = account.find_chat(parameters)
    present = [status for status in chat.members.values() if status not in ("left", "kicked")]
    return len(present) + 1 if chat.is_group else 2


def leave_chat(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `leaveChat`."""
    chat = account.open_chat(parameters)
    if not chat.is_group:
        raise bad_request("chat member status can't be changed in private chats")
    chat.bot = "left"
    return True


def pin_chat_message(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `pinChatMessage` and `unpinChatMessage`, which have no visible effect here."""
    chat = account.open_chat(parameters)
    if parameters.number("message_id") not in chat.by_id:
        raise bad_request("message to pin not found")
    return True


def set_message_reaction(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `setMessageReaction`, which has no visible effect here."""
    chat = account.open_chat(parameters)
    if parameters.number("message_id") not in chat.by_id:
        raise bad_request("message to react not found")
    return True


# --- topics ---------------------------------------------------------------------------------------


def create_forum_topic(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `createForumTopic`; the topic's id is that of the service message about it."""
    chat = _forum(account, parameters)
    name = parameters.text("name")
    if not 1 <= len(name) <= LONGEST_TOPIC_NAME:
        raise bad_request("TOPIC_TITLE_EMPTY")
    topic = open_topic(account, chat, name, now)
    return {"message_thread_id": topic.id, "name": name, "icon_color": _TOPIC_COLOR}


def open_topic(account: Account, chat: Chat, name: str, now: Instant) -> Topic:
    """Open a topic in a forum."""
    created = {"forum_topic_created": {"name": name, "icon_color": _TOPIC_COLOR}}
    empty = Version(formatted=Formatted(), at=now.at)
    message = account.add(chat, account.bot, empty, now, extra=created)
    message.thread = message.id
    topic = chat.topics[message.id] = Topic(id=message.id, name=name)
    return topic


def close_forum_topic(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `closeForumTopic`."""
    _topic(account, parameters).closed = True
    return True


def reopen_forum_topic(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `reopenForumTopic`."""
    _topic(account, parameters).closed = False
    return True


def delete_forum_topic(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `deleteForumTopic`, including all messages in the topic."""
    topic = _topic(account, parameters)
    chat = _forum(account, parameters)
    del chat.topics[topic.id]
    for message in chat.messages:
        message.deleted = message.deleted or message.thread == topic.id
    return True


def _forum(account: Account, parameters: Parameters) -> Chat:
    chat = account.open_chat(parameters)
    if not chat.is_forum:
        raise bad_request("the chat is not a forum")
    return chat


def _topic(account: Account, parameters: Parameters) -> Topic:
    topic = _forum(account, parameters).topics.get(parameters.number("message_thread_id"))
    if topic is None:
        raise bad_request("message thread not found")
    return topic
