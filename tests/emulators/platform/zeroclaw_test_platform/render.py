"""Turns Markdown, cards and endings into the texts that people read.

The platform shows Markdown; its plain form lacks the marks of emphasis and code.
"""

from zeroclaw import Card, CardWords, Ending, Rendered

_MARKS = str.maketrans("", "", "*_`~")


def markdown(text: str) -> Rendered:
    """Return both forms of a text."""
    return Rendered(body=text, plain=text.translate(_MARKS))


def measure(rendered: Rendered) -> int:
    """Return the length in code points."""
    return len(rendered.body)


def card(request: Card, endings: tuple[Ending, ...] = (), *, numbered: bool) -> str:
    """Return a card as text: every call in full, how to answer it, and how it ended."""
    ended = {ending.approval: ending for ending in endings}
    words = CardWords(request.language)
    lines = [words.head(request.asked_by, f"{request.deadline_at:%Y-%m-%d %H:%M:%S} UTC")]
    for call in request.calls:
        lines.append(f"{call.number}. {call.tool}: {call.summary}")
        lines += [f"   {call.arguments}", f"   {call.why} [{call.hash8}]"]
        ending = ended.get(call.approval)
        if ending is not None:
            lines.append(f"   {ended_line(words, ending)}")
        elif numbered:
            lines.append(f"   {words.by_number(call.number)}")
    return "\n".join(lines)


def endings(request: Card, ended: tuple[Ending, ...]) -> str:
    """Return how a card ended, for a message after it."""
    words = CardWords(request.language)
    numbers = {
        call.approval: f"{call.number}. {call.tool}: {call.summary}" for call in request.calls
    }
    return "\n".join(f"{numbers[ending.approval]}: {ended_line(words, ending)}" for ending in ended)


def ended_line(words: CardWords, ending: Ending) -> str:
    """Return how one call ended."""
    reason = f": {ending.reason}" if ending.reason else ""
    return f"{words.ended(ending, ending.by)}{reason}"
