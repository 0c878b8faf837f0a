"""Turn Markdown, cards and endings into what people of the platform read.

The platform shows Markdown; its plain form lacks the signs of emphasis and code.
"""

from zeroclaw import Card, Ending, Rendered

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
    lines = [f"{asked.asked_by} asks, until {asked.deadline_at:%Y-%m-%d %H:%M:%S} UTC:"]
    for call in asked.calls:
        lines.append(f"{call.number}. {call.tool}: {call.summary}")
        lines += [f"   {call.arguments}", f"   {call.why} [{call.hash8}]"]
        ending = ended.get(call.approval)
        if ending is not None:
            lines.append(f"   {ended_line(ending)}")
        elif numbered:
            lines.append(f"   /approve {call.number} or /deny {call.number}")
    return "\n".join(lines)


def endings(asked: Card, ended: tuple[Ending, ...]) -> str:
    """Return how a card ended, for a message after it."""
    numbers = {call.approval: f"{call.number}. {call.tool}: {call.summary}" for call in asked.calls}
    return "\n".join(f"{numbers[one.approval]}: {ended_line(one)}" for one in ended)


def ended_line(ending: Ending) -> str:
    """Return how one call's question ended."""
    by = f" by {ending.by}" if ending.by else ""
    return f"{ending.how}{by}" + (f": {ending.reason}" if ending.reason else "")
