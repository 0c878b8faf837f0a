"""Turn Markdown, cards and endings into what people of the platform read.

The platform shows Markdown; its plain form lacks the signs of emphasis and code.
"""

from zeroclaw import Card, CardWords, Ending, Rendered

_SIGNS = str.maketrans("", "", "*_`~")


def markdown(text: str) -> Rendered:
    """Return both forms of a text."""
    return Rendered(body=text, plain=text.translate(_SIGNS))


def measure(rendered: Rendered) -> int:
    """Return the length in code points."""
    return len(rendered.body)


def card(asked: Card, endings: tuple[Ending, ...] = (), *, numbered: bool) -> str:
    """Return a card as text: every call whole, how to answer, and how each ended."""
    ended = {ending.approval: ending for ending in endings}
    words = CardWords(asked.language)
    lines = [words.head(asked.asked_by, f"{asked.deadline_at:%Y-%m-%d %H:%M:%S} UTC")]
    for call in asked.calls:
        lines.append(f"{call.number}. {call.tool}: {call.summary}")
        lines += [f"   {call.arguments}", f"   {call.why} [{call.hash8}]"]
        ending = ended.get(call.approval)
        if ending is not None:
            lines.append(f"   {ended_line(words, ending)}")
        elif numbered:
            lines.append(f"   {words.by_number(call.number)}")
    return "\n".join(lines)


def endings(asked: Card, ended: tuple[Ending, ...]) -> str:
    """Return how a card ended, for a message after it."""
    words = CardWords(asked.language)
    numbers = {call.approval: f"{call.number}. {call.tool}: {call.summary}" for call in asked.calls}
    return "\n".join(f"{numbers[one.approval]}: {ended_line(words, one)}" for one in ended)


def ended_line(words: CardWords, ending: Ending) -> str:
    """Return how one call's question ended."""
    reason = f": {ending.reason}" if ending.reason else ""
    return f"{words.ended(ending, ending.by)}{reason}"
