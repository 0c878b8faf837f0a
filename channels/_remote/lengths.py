"""How long a text is as platforms count, which is in UTF-16 units, in which an emoji is two; pure."""


def units(text: str) -> int:
    """Return a length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, most: int) -> str:
    """Return as much of a text as fits so many units, with a sign that some is missing."""
    if units(text) <= most:
        return text
    short = text[: max(most - 1, 0)]
    while short and units(short) > most - 1:
        short = short[:-1]
    return f"{short}…"
