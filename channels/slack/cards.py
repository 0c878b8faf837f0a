"""Shows an approval card as one message: complete calls, buttons, and endings; pure.

All untrusted text goes into elements that Slack shows literally. A card that is too long for a
message has one line per call, and a file with the complete calls. Which form a card has depends on
the card only, so it never changes.
"""

from collections.abc import Mapping

from channels._remote.cards import call_lines, calls_text, ending_text, head, label, title, unmarked
from channels.slack import decode, render
from zeroclaw import ApprovalId, Card, CardCall, CardWords, Choice, MessageRef, Outcome

MAX_CHARS = 9_000
"""Limit on the text of a card without its endings. Slack refused 45 blocks with 11,341 characters and
accepted 50 with 9,597 (github.com/slackapi/bolt-js/issues/2867, read 2026-11)."""
MAX_CALLS = 12
"""A message may have 50 blocks, and a call takes up to four."""
MAX_ROWS = 40
"""Rows of buttons on a card with a file; further calls are answered by number."""
MAX_LABEL, MAX_TITLE, MAX_QUESTION, MAX_REASON = 75, 24, 2_000, 500
"""Characters of a button, and of a form's title, label and input ("Block Kit", read 2026-11)."""
_STYLES: Mapping[Choice, str] = {"once": "primary", "deny": "danger", "deny_with_reason": "danger"}


def is_file(card: Card) -> bool:
    """Whether a card is too long for a message and needs a file."""
    return len(card.calls) > MAX_CALLS or len(card_text(card)) > MAX_CHARS


def view(outcome: Outcome, link: str = "") -> list[dict[str, object]]:
    """Return a card's blocks with the endings so far; `link` leads to its file."""
    card, endings = outcome.card, _endings(outcome)
    if is_file(card):
        text = render.text_block("\n".join((*_lines(card), *_numbered(endings))))
        rows = [_buttons(card, call) for call in card.calls if call.number not in endings]
        return [text, *([render.file_link(link)] if link else []), *rows[:MAX_ROWS]]
    blocks = [render.text_block(head(card))]
    for call in card.calls:
        first, arguments, *more = call_lines(call)
        blocks += [render.text_block(first), render.text_block(arguments, code=True)]
        end = endings.get(call.number, "")
        blocks.append(render.text_block("\n".join(filter(None, (*more, end)))))
        if not end:
            blocks.append(_buttons(card, call))
    return blocks


def summary(outcome: Outcome) -> str:
    """Return a card as one text, for notifications and clients without blocks; endings come first."""
    lines = _lines(outcome.card) if is_file(outcome.card) else (card_text(outcome.card),)
    return render.escaped("\n".join((*_numbered(_endings(outcome)), *lines)))


def card_text(card: Card) -> str:
    """Return the whole card as one text, for its file."""
    return f"{head(card)}\n{calls_text(card)}"


def form(prompt: str, approval: ApprovalId, card: MessageRef, channel: str) -> object:
    """Return the form that asks for the reason of a denial.

    Args:
        prompt: The runtime's question, one line in the approver's language.
        approval: The approval of the denied call.
        card: The card that was pressed.
        channel: Slack's id of that chat.
    """
    question = unmarked(prompt)
    title = question if len(question) <= MAX_TITLE else f"{question[: MAX_TITLE - 1]}…"
    field: dict[str, object] = {
        "type": "input",
        "block_id": decode.FIELD,
        "label": render.plain_text(question[:MAX_QUESTION]),
        "element": {
            "type": "plain_text_input",
            "action_id": decode.FIELD,
            "multiline": True,
            "max_length": MAX_REASON,
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


def _lines(card: Card) -> list[str]:
    """Return one line per call, each cut to an equal share of the message's limit."""
    words, share = CardWords(card.language), MAX_CHARS // (2 * len(card.calls))
    lines = [head(card), words.in_file()]
    for index, call in enumerate(card.calls):
        by_number = f" ({unmarked(words.by_number(call.number))})" if index >= MAX_ROWS else ""
        lines.append(f"{title(call)} · {call.hash8}"[:share] + by_number)
    return lines


def _endings(outcome: Outcome) -> Mapping[int, str]:
    """Return how calls ended, by their numbers; the calls of a card share the limit on reasons."""
    calls, words = outcome.card.calls, CardWords(outcome.card.language)
    texts = {e.approval: ending_text(words, e, MAX_REASON // len(calls)) for e in outcome.endings}
    return {call.number: texts[call.approval] for call in calls if call.approval in texts}


def _numbered(endings: Mapping[int, str]) -> list[str]:
    return [f"{number}. {end}" for number, end in endings.items()]


def _buttons(card: Card, call: CardCall) -> dict[str, object]:
    elements: list[dict[str, object]] = [
        {
            "type": "button",
            "text": render.plain_text(label(card, call, choice)[:MAX_LABEL]),
            "action_id": f"{decode.ACTIONS[choice]}:{call.number}",
            "value": call.approval,
            **({"style": _STYLES[choice]} if choice in _STYLES else {}),
        }
        for choice in card.choices
    ]
    return {"type": "actions", "block_id": f"zc-{call.number}", "elements": elements}
