"""Show an approval card as one message: its calls whole, buttons, and how each call ended; pure.

Everything that somebody else wrote stands in elements that Slack shows letter by letter. A card that
is longer than a message may be has a line for each call, and all of them whole in a file. Which of the
two a card is follows from the card alone, so that it stays what it was.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from channels.slack import decode, render
from zeroclaw import (
    ApprovalId,
    Card,
    CardCall,
    CardWords,
    Choice,
    Ending,
    MessageRef,
    Outcome,
    escape_invisible,
)

MOST_CHARS = 11_000
"""Of all blocks of a card; a little less than Slack takes of any text."""
MOST_CALLS = 12
"""A message takes 50 blocks, a call up to four of them."""
MOST_ROWS = 40
"""Of buttons, where calls stand in a file; calls beyond that are answered by number."""
FILE_NAME = "calls.txt"
MOST_LABEL, MOST_TITLE, MOST_QUESTION, MOST_REASON = 75, 24, 2_000, 500
"""Of a button, and of a form's title and label, in characters ("Block Kit", read 2026-11)."""
_MOST_NAME = 300
_SIGNS: Mapping[str, str] = {"approved": "✅", "denied": "⛔", "expired": "⌛", "stopped": "⏹"}
_STYLES: Mapping[Choice, str] = {"once": "primary", "deny": "danger", "deny_with_reason": "danger"}


def is_file(card: Card) -> bool:
    """Whether a card needs a file to be shown whole."""
    return len(card.calls) > MOST_CALLS or len(listed(card)) > MOST_CHARS


def view(outcome: Outcome, link: str = "") -> list[dict[str, object]]:
    """Return how a card looks with what has ended of it; `link` leads to its file."""
    card, endings = outcome.card, {one.approval: one for one in outcome.endings}
    words = CardWords(card.language)
    if is_file(card):
        lines = [*_lines(card), *(_ended(words, endings, call) for call in card.calls)]
        open_calls = [call for call in card.calls if call.approval not in endings]
        rows = [_buttons(card, call, words) for call in open_calls[:MOST_ROWS]]
        said = "\n".join(filter(None, lines))
        return [render.text_block(said), *([render.file_link(link)] if link else []), *rows]
    shown = [render.text_block(_head(card))]
    for call in card.calls:
        shown.append(render.text_block(_title(call)))
        shown.append(render.text_block(escape_invisible(call.arguments), code=True))
        below = [f"{_line(call.why)} · {call.hash8}", _line(call.scope)]
        if (ending := endings.get(call.approval)) is not None:
            below.append(_ending(words, ending))
        shown.append(render.text_block("\n".join(filter(None, below))))
        if ending is None:
            shown.append(_buttons(card, call, words))
    return shown


def summary(card: Card) -> str:
    """Return a card as one text, for notifications and for what can show no blocks."""
    return render.escaped("\n".join(_lines(card)) if is_file(card) else listed(card))


def listed(card: Card) -> str:
    """Return all of a card as one text, which its file holds."""
    lines = [_head(card)]
    for call in card.calls:
        lines += [_title(call), escape_invisible(call.arguments)]
        lines += [f"{_line(call.why)} · {call.hash8}", _line(call.scope)]
    return "\n".join(filter(None, lines))


def form(asked: str, approval: ApprovalId, card: MessageRef, channel: str) -> object:
    """Return the form that asks for the reason of a denial.

    Args:
        asked: As the runtime asks it, of one line, in the language of whoever is asked.
        approval: The call that is denied.
        card: Where it was pressed.
        channel: Slack's own id of that chat.
    """
    said = _line(asked)
    title = said if len(said) <= MOST_TITLE else f"{said[: MOST_TITLE - 1]}…"
    field: dict[str, object] = {
        "type": "input",
        "block_id": decode.FIELD,
        "label": render.plain_text(said[:MOST_QUESTION]),
        "element": {
            "type": "plain_text_input",
            "action_id": decode.FIELD,
            "multiline": True,
            "max_length": MOST_REASON,
        },
    }
    return {
        "type": "modal",
        "callback_id": decode.FORM,
        "private_metadata": decode.form_data(approval, card, channel),
        "title": render.plain_text(title),
        "submit": render.plain_text("OK"),
        "blocks": [field],
    }


def _head(card: Card) -> str:
    asked_by = escape_invisible(card.asked_by)[:_MOST_NAME]
    return CardWords(card.language).head(asked_by, _time(card.deadline_at))


def _lines(card: Card) -> list[str]:
    """Return a line a call; each has the same share of what a message may have."""
    words, room = CardWords(card.language), MOST_CHARS // (2 * len(card.calls))
    lines = [_head(card), words.in_file()]
    for place, call in enumerate(card.calls):
        by_number = f" ({_line(words.by_number(call.number))})" if place >= MOST_ROWS else ""
        lines.append(f"{_title(call)} · {call.hash8}"[:room] + by_number)
    return lines


def _ended(words: CardWords, endings: Mapping[ApprovalId, Ending], call: CardCall) -> str:
    ending = endings.get(call.approval)
    return "" if ending is None else f"{call.number}. {_ending(words, ending)}"


def _title(call: CardCall) -> str:
    return f"{call.number}. {_line(call.tool)}: {_line(call.summary)}"


def _line(said: str) -> str:
    """Return a line of the runtime's, without its marks."""
    return escape_invisible(said).replace("`", "")


def _ending(words: CardWords, ending: Ending) -> str:
    by = words.by(escape_invisible(ending.by)[:_MOST_NAME])
    said = f"{_SIGNS[ending.how]} {words.ended(ending)}{by}, {_time(ending.at)}"
    reason = escape_invisible(ending.reason)[:MOST_REASON]
    return f"{said}: {reason}" if reason else said


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _buttons(card: Card, call: CardCall, words: CardWords) -> dict[str, object]:
    is_alone = len(card.calls) == 1
    elements: list[dict[str, object]] = []
    for choice in card.choices:
        label = words.label(choice) if is_alone else words.short_label(choice, call.number)
        button: dict[str, object] = {
            "type": "button",
            "text": render.plain_text(label[:MOST_LABEL]),
            "action_id": f"{decode.ACTIONS[choice]}:{call.number}",
            "value": call.approval,
        }
        if choice in _STYLES:
            button["style"] = _STYLES[choice]
        elements.append(button)
    return {"type": "actions", "block_id": f"zc-{call.number}", "elements": elements}
