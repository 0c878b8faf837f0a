"""Turns Markdown into text for Slack's `markdown` block; pure.

Slack renders most of Markdown itself. But its own markup must not get through: `<!channel>` pings
all members even in a `markdown` block, and `<https://…|name>` is a disguised link. So every `<` is
escaped. People must also read exactly what was screened, and Slack does not document which Markdown
it supports. So only the simplest form of links stays a link, and entities are escaped. All of this
applies to code as well, because only Slack knows where it sees the end of the code.
"""

import re
from collections.abc import Mapping, Sequence

from channels._remote.cards import receipt_line
from channels._remote.limits import units
from zeroclaw import CheckedReceipt, Rendered, without_markup

MAX_RECEIPTS = 10
"""Limit on elements of a context block ("Context block", docs.slack.dev, read 2026-11)."""
MAX_RECEIPT_CHARS = 200
MAX_EDIT_BYTES = 4_000
"""Limit on the text of an edit besides its blocks, which a new message does not have; undocumented
(measured in github.com/pymc-labs/daimon/pull/106, read 2026-11)."""
FILE_BLOCK = "zc-file"
_FILE_LINK = re.compile(r"<(https?://[^\s<>|]{1,1000})\|")

_DROPPED = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029]")
# Links with a title or an odd target, and link definitions: `without_markup` does not handle them.
_OTHER_LINK = re.compile(r"\](?=\((?:[\s<]|[^\s()<>]*(?:[(\\]|\s+[\"'(])))")
_DEFINED = re.compile(r"^([ \t>*+-]*)\[(?=(?:[^\[\]\\]|\\.){0,999}\]:)", re.MULTILINE | re.DOTALL)
_ENTITY = re.compile(r"&(?=#?\w{1,40};)")
_IMAGE = re.compile(r"!(?=\[[^\]\n]{0,200}\]\(https?://)")


def markdown(source: str) -> Rendered:
    """Return a text as Markdown for Slack, and without markup as its plain form."""
    clean = _DROPPED.sub("", source.replace("\r\n", "\n"))
    text = _OTHER_LINK.sub(r"]\\", _DEFINED.sub(r"\1\\[", _IMAGE.sub("", clean)))
    body = _ENTITY.sub("&amp;", text).replace("<", "&lt;").strip()
    return Rendered(body=body, plain=without_markup(text).strip())


def _unescaped(body: str) -> str:
    return body.replace("&lt;", "<").replace("&amp;", "&")


def measure(rendered: Rendered) -> int:
    """Return the length of the longer form in UTF-16 units."""
    return max(units(rendered.body), units(rendered.plain))


def escaped(text: str) -> str:
    """Escape a text so that Slack finds no markup in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def short(text: str) -> str:
    """Cut the text of an edit to what Slack accepts; it is shown in notifications only."""
    return text.encode("utf-8", "replace")[:MAX_EDIT_BYTES].decode("utf-8", "ignore")


def blocks(
    body: str, receipts: Sequence[CheckedReceipt], *, plain: bool
) -> list[dict[str, object]]:
    """Return the blocks of a message: its text, and its receipts in a form that no text can imitate."""
    found: list[dict[str, object]] = []
    if body:
        found.append(text_block(body) if plain else {"type": "markdown", "text": body})
    if receipts:
        lines = [receipt_line(receipt)[:MAX_RECEIPT_CHARS] for receipt in receipts[:MAX_RECEIPTS]]
        elements = [plain_text(line) for line in lines]
        found.append({"type": "context", "block_id": "zc-receipts", "elements": elements})
    return found


def literal(blocks: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return the blocks of a message with its Markdown as literal text; no character is lost."""
    return [
        text_block(_unescaped(str(block["text"]))) if block["type"] == "markdown" else block
        for block in blocks
    ]


def file_blocks(caption: str, link: str) -> list[dict[str, object]]:
    """Return the blocks of a message with a file: its caption as literal text, and the file's link.

    Links in the caption are not clickable, so that Slack fetches none for a preview.
    """
    return [*([text_block(caption)] if caption else []), file_link(link)]


def file_link(link: str) -> dict[str, object]:
    """Return the block that shows a file by its link."""
    shown = {"type": "mrkdwn", "text": f"<{link}|📎>"}
    return {"type": "context", "block_id": FILE_BLOCK, "elements": [shown]}


def link_in(blocks: Sequence[Mapping[str, object]]) -> str:
    """Return the link of the file that a message shows, empty for none."""
    found = [block.get("elements") for block in blocks if block.get("block_id") == FILE_BLOCK]
    match = _FILE_LINK.search("".join(map(str, found)))
    return "" if match is None else match[1]


def plain_text(text: str) -> dict[str, object]:
    """Return a text object that Slack shows literally."""
    return {"type": "plain_text", "text": text, "emoji": False}


def text_block(text: str, *, code: bool = False) -> dict[str, object]:
    """Return a block with literal text of any length."""
    kind = "rich_text_preformatted" if code else "rich_text_section"
    element = {"type": kind, "elements": [{"type": "text", "text": text or " "}]}
    return {"type": "rich_text", "elements": [element]}
