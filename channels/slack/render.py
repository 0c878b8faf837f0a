"""Turn Markdown into what Slack's `markdown` block takes; pure.

The block reads most of Markdown itself. What it must not read are Slack's own marks: `<!channel>` in a
text of the model's pings everybody, in a `markdown` block as well, and `<https://…|name>` is a link in
disguise. So no `<` is left. What was screened must be what is read, and how much of Markdown Slack
takes is not written down: of links the plain form alone stays one, and no entity is left to be read.
In code too, for where that ends is Slack's to say.
"""

import re
from collections.abc import Mapping, Sequence

from channels._remote.cards import receipt_line
from channels._remote.limits import units
from zeroclaw import CheckedReceipt, Rendered, without_markup

MOST_RECEIPTS = 10
"""Context blocks take ten elements ("Context block", docs.slack.dev, read 2026-11)."""
MOST_RECEIPT_CHARS = 200
FILE_BLOCK = "zc-file"
_SHOWN = re.compile(r"<(https?://[^\s<>|]{1,1000})\|")

_DROPPED = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029]")
# Links with a title, an odd target, or one that stands elsewhere: `without_markup` does not know them.
_OTHER_LINK = re.compile(r"\](?=\((?:[\s<]|[^\s()<>]*(?:[(\\]|\s+[\"'(])))")
_DEFINED = re.compile(r"^([ \t>*+-]*)\[(?=(?:[^\[\]\\]|\\.){0,999}\]:)", re.MULTILINE | re.DOTALL)
_ENTITY = re.compile(r"&(?=#?\w{1,40};)")
_IMAGE = re.compile(r"!(?=\[[^\]\n]{0,200}\]\(https?://)")


def markdown(said: str) -> Rendered:
    """Return a text as Slack takes it; the plain form has its words alone."""
    clean = _DROPPED.sub("", said.replace("\r\n", "\n"))
    words = _OTHER_LINK.sub(r"]\\", _DEFINED.sub(r"\1\\[", _IMAGE.sub("", clean)))
    body = _ENTITY.sub("&amp;", words).replace("<", "&lt;").strip()
    return Rendered(body=body, plain=without_markup(words).strip())


def measure(rendered: Rendered) -> int:
    """Return the length in UTF-16 units, of the longer form."""
    return max(units(rendered.body), units(rendered.plain))


def escaped(said: str) -> str:
    """Return a text in which Slack finds no mention and no link of its own."""
    return said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def blocks(
    body: str, receipts: Sequence[CheckedReceipt], *, plain: bool
) -> list[dict[str, object]]:
    """Return the blocks of a message: its text, and receipts in a form that no text can have."""
    shown: list[dict[str, object]] = []
    if body:
        shown.append(text_block(body) if plain else {"type": "markdown", "text": body})
    if receipts:
        elements = [
            plain_text(receipt_line(one)[:MOST_RECEIPT_CHARS]) for one in receipts[:MOST_RECEIPTS]
        ]
        shown.append({"type": "context", "block_id": "zc-receipts", "elements": elements})
    return shown


def filed(caption: str, link: str) -> list[dict[str, object]]:
    """Return the blocks of a message that shows a file: its caption letter by letter, and its link.

    No link of the caption's is one, so that Slack fetches none for a preview.
    """
    return [*([text_block(caption)] if caption else []), file_link(link)]


def file_link(link: str) -> dict[str, object]:
    """Return the block that shows a file."""
    shown = {"type": "mrkdwn", "text": f"<{link}|📎>"}
    return {"type": "context", "block_id": FILE_BLOCK, "elements": [shown]}


def linked(blocks: Sequence[Mapping[str, object]]) -> str:
    """Return the link of a message that shows a file, empty where it shows none."""
    shown = "".join(str(one.get("elements")) for one in blocks if one.get("block_id") == FILE_BLOCK)
    found = _SHOWN.search(shown)
    return "" if found is None else found[1]


def plain_text(said: str) -> dict[str, object]:
    """Return a text that Slack shows letter by letter."""
    return {"type": "plain_text", "text": said, "emoji": False}


def text_block(said: str, *, code: bool = False) -> dict[str, object]:
    """Return a block whose text Slack shows letter by letter, however long."""
    kind = "rich_text_preformatted" if code else "rich_text_section"
    element = {"type": kind, "elements": [{"type": "text", "text": said or " "}]}
    return {"type": "rich_text", "elements": [element]}
