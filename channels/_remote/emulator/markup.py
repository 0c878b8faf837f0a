"""Parses Markdown into blocks that the page draws (`_remote/emulator/page/rich.js`).

Discord publishes no grammar. CommonMark looks near enough, with these differences: `__` underlines,
and there are no tables, pictures or HTML.
"""

from collections.abc import Mapping, Sequence

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

Json = Mapping[str, object]
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").disable("image")
_STYLES = {"strong": "bold", "em": "italic", "s": "strikethrough"}


def blocks(text: str) -> Sequence[Json]:
    """Return a message's text as blocks."""
    return [_block(node) for node in SyntaxTreeNode(_PARSER.parse(text)).children]


def _block(node: SyntaxTreeNode) -> Json:
    match node.type:
        case "heading":
            return {"type": "heading", "size": int(node.tag[1:]), "text": _inside(node)}
        case "fence" | "code_block":
            return {"type": "pre", "text": node.content.removesuffix("\n")}
        case "hr":
            return {"type": "divider"}
        case "blockquote":
            return {"type": "blockquote", "blocks": [_block(child) for child in node.children]}
        case "bullet_list" | "ordered_list":
            return {"type": "list", "items": [_item(child) for child in node.children]}
        case _:
            return {"type": "paragraph", "text": _inside(node)}


def _item(node: SyntaxTreeNode) -> Json:
    label = f"{node.info}{node.markup}" if node.info else "•"
    return {"label": label, "blocks": [_block(child) for child in node.children]}


def _inside(node: SyntaxTreeNode) -> list[object]:
    """Return the texts of a block, which are in one `inline` node below it."""
    return [text for child in node.children for text in _texts(child)]


def _texts(node: SyntaxTreeNode) -> list[object]:
    """Return the texts inside a node, without the empty ones that the parser puts before some marks."""
    return [text for child in node.children if (text := _text(child))]


def _text(node: SyntaxTreeNode) -> object:
    match node.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "code_inline":
            return {"type": "code", "text": node.content}
        case "link":
            return {"type": "url", "url": str(node.attrGet("href")), "text": _texts(node)}
        case "strong" | "em" | "s" as name:
            style = "underline" if name == "strong" and node.markup == "__" else _STYLES[name]
            return {"type": style, "text": _texts(node)}
        case _:
            return node.content
