"""The stored conversation, made ready for the model: one rule in one place (S1-29)."""

from collections.abc import Iterable

from zeroclaw.message import AssistantMessage, Message, SystemMessage, UserMessage
from zeroclaw.value import replace

SUMMARY_OPENING = "[Previous conversation summary: "


def prepare_request_messages(
    messages: Iterable[Message], *, summary: str = "", notes: str = ""
) -> tuple[Message, ...]:
    """Return the messages of a request; the stored ones stay as they are.

    Reasoning goes along with answers that made tool calls, on every later request and block for
    block (thinking models refuse the request without it), and stays home with all others (S1-25,
    S1-26, S1-28). Everything else passes as it is; which fields are local is known to whoever
    writes the wire.

    Args:
        messages: Usually a system message first, then the stored ones.
        summary: Of what came before them, empty for nothing. It joins the system message, for
            some models refuse a second one (K10).
        notes: That go along with the newest words of a person, empty for none. They stand there
            and nowhere before, so that what is sent again begins as it did (S2-05, K25).
    """
    prepared = _with_notes(tuple(_trimmed(message) for message in messages), notes)
    if not summary:
        return prepared
    folded = f"{SUMMARY_OPENING}{summary}]"
    match prepared:
        case (SystemMessage() as system, *rest):
            return (SystemMessage(content=f"{system.content}\n\n{folded}"), *rest)
        case _:
            return (SystemMessage(content=folded), *prepared)


def _with_notes(messages: tuple[Message, ...], notes: str) -> tuple[Message, ...]:
    for place in range(len(messages) - 1, -1, -1):
        match messages[place]:
            case UserMessage(content=said, note="") as message if notes:
                noted = replace(message, content=f"{notes}\n\n{said}")
                return (*messages[:place], noted, *messages[place + 1 :])
            case _:
                continue
    return messages


def _trimmed(message: Message) -> Message:
    if not isinstance(message, AssistantMessage) or message.tool_calls:
        return message
    if message.reasoning or message.reasoning_details:
        return replace(message, reasoning="", reasoning_details=())
    return message
