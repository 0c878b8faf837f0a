"""Read what people write, and name whose it is, as every platform does; pure."""

from channels._remote.fields import Json, text, whole
from zeroclaw import Attachment, Value

MOST_QUOTED_CHARS = 1_000
MOST_NAME_CHARS = 64


class Passed(Value):
    """What a bot has no use for, and why in a word or two."""

    why: str


def plain_name(name: str) -> str:
    """Return a name as one short line without brackets, so that it passes for nothing else."""
    shown = " ".join(name.split()).translate(str.maketrans("[]", "()"))
    return shown if len(shown) <= MOST_NAME_CHARS else f"{shown[: MOST_NAME_CHARS - 1]}…"


def quoted(words: str, whose: str) -> str:
    """Return what a message answers, to stand before its own words; empty for nothing."""
    if not words.strip():
        return ""
    cut = f"{words[:MOST_QUOTED_CHARS]}…" if len(words) > MOST_QUOTED_CHARS else words
    lines = "\n".join(f"> {line}" for line in cut.splitlines())
    return f"[in reply to what {whose} wrote:]\n{lines}\n\n"


def attached(file: Json, reference: str, *, name: str, kind: str) -> Attachment:
    """Return a file that came with a message; `name` and `kind` are the keys that tell them."""
    return Attachment(
        reference=reference,
        name=text(file, name) or "file",
        media_type=text(file, kind) or "application/octet-stream",
        size_bytes=whole(file, "size"),
    )
