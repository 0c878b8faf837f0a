"""The methods for native drafts and rich messages.

A draft is not a message: it has no message id, counts as no message, and vanishes after 30 seconds or
when the bot sends a message.
"""

from channels.telegram.emulator import message_fields, shapes
from channels.telegram.emulator.account import Account
from channels.telegram.emulator.chats import DRAFT_LIFETIME_S, Draft, Instant
from channels.telegram.emulator.refusals import bad_request
from channels.telegram.emulator.rich import read_rich
from channels.telegram.emulator.send_methods import post
from channels.telegram.emulator.wire import Json, Parameters


def send_message_draft(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `sendMessageDraft`; an empty text shows that the bot is thinking."""
    formatted = message_fields.text(parameters, may_be_empty=True)
    return _show(account, parameters, now, formatted.text, None)


def send_rich_message_draft(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `sendRichMessageDraft`."""
    rich = read_rich(parameters)
    return _show(account, parameters, now, rich.formatted.text, rich.shape)


def send_rich_message(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `sendRichMessage`."""
    chat = account.open_chat(parameters)
    rich = read_rich(parameters)
    sent = post(account, chat, parameters, now, rich.formatted, rich=rich.shape)
    return shapes.message(sent)


def _show(
    account: Account, parameters: Parameters, now: Instant, text: str, rich: Json | None
) -> object:
    chat = account.open_chat(parameters)
    id_ = parameters.number("draft_id")
    if not id_:
        raise bad_request("draft identifier must be non-zero")
    if chat.is_group:
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    thread = message_fields.thread(chat, parameters)
    account.spend(chat, "draft", now)
    draft = chat.drafts.get(thread)
    if draft is not None and (draft.id != id_ or now.at >= draft.until):
        chat.end_draft(thread)
        draft = None
    texts = (*(draft.texts if draft else ()), text)
    until = now.at + DRAFT_LIFETIME_S
    chat.drafts[thread] = Draft(id=id_, texts=texts, until=until, rich=rich)
    return True
