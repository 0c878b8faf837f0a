"""Turns parsed rich HTML into blocks for the bot and the page, and into plain text.

The fields are those of RichBlock and RichText (Bot API 10.2, read 2026-11). URLs, mentions and the
like, which Telegram detects by itself, are not detected here.
"""

from collections.abc import Iterable, Iterator, Mapping

from channels.telegram.emulator.rich_html import HEADINGS, INLINE, Tag
from channels.telegram.emulator.wire import Json, is_array, is_object, text_of, whole

_STYLES = {
    name: kind
    for kind, names in (
        ("bold", "b strong"),
        ("italic", "i em"),
        ("underline", "u ins"),
        ("strikethrough", "s strike del"),
        ("code", "code"),
        ("marked", "mark"),
        ("subscript", "sub"),
        ("superscript", "sup"),
        ("spoiler", "tg-spoiler"),
        ("date_time", "tg-time"),
    )
    for name in names.split()
}
_LINKS: Mapping[str, tuple[str, str]] = {
    "mailto": ("email_address", "email_address"),
    "tel": ("phone_number", "phone_number"),
}
_INLINE = INLINE | {"br"}

# --- in the Bot API's form -------------------------------------------------------------------------


def blocks(children: Iterable[Tag | str]) -> list[Json]:
    """Return the content of a tag as blocks; loose text becomes a paragraph."""
    result: list[Json] = []
    inline: list[Tag | str] = []

    def flush() -> None:
        if "".join(node if isinstance(node, str) else node.text for node in inline).strip():
            result.append({"type": "paragraph", "text": _rich(inline)})
        inline.clear()

    for node in children:
        if isinstance(node, str) or node.name in _INLINE:
            inline.append(node)
        elif node.name not in ("input", "summary", "cite"):
            flush()
            result.append(_block(node))
    flush()
    return result


def _block(tag: Tag) -> Json:
    if tag.name in HEADINGS:
        return {"type": "heading", "text": _rich(tag.children), "size": int(tag.name[1])}
    if tag.name in ("blockquote", "details", "aside"):
        return _around(tag)
    match tag.name:
        case "pre":
            return _pre(tag)
        case "tg-math-block":
            return {"type": "mathematical_expression", "expression": tag.text}
        case "hr":
            return {"type": "divider"}
        case "ul" | "ol":
            items = [_item(tag, at, item) for at, item in enumerate(tag.tags)]
            return {"type": "list", "items": items}
        case "table":
            return _table(tag)
        case name:
            return {
                "type": "footer" if name == "footer" else "paragraph",
                "text": _rich(tag.children),
            }


def _around(tag: Tag) -> Json:
    """Return a block that has other parts besides its content, such as a summary."""
    credit = _part(tag, "cite", "credit")
    match tag.name:
        case "blockquote":
            return {"type": "blockquote", "blocks": blocks(tag.children), **credit}
        case "details":
            opened = {"is_open": True} if "open" in tag.attributes else {}
            summary = {"summary": "", **_part(tag, "summary", "summary")}
            return {"type": "details", **summary, "blocks": blocks(tag.children), **opened}
        case _:
            text = [node for node in tag.children if isinstance(node, str) or node.name != "cite"]
            return {"type": "pullquote", "text": _rich(text), **credit}


def _part(tag: Tag, name: str, key: str) -> Json:
    part = next((node for node in tag.tags if node.name == name), None)
    return {} if part is None else {key: _rich(part.children)}


def _pre(tag: Tag) -> Json:
    inner = next(tag.tags, None)
    language = inner.attributes.get("class", "") if inner is not None else ""
    shape: Json = {"type": "pre", "text": tag.text}
    if language.startswith("language-"):
        return {**shape, "language": language.removeprefix("language-")}
    return shape


def _item(list_tag: Tag, at: int, tag: Tag) -> Json:
    shape: dict[str, object] = {"label": "•", "blocks": blocks(tag.children)}
    box = next((node for node in tag.tags if node.name == "input"), None)
    if list_tag.name == "ol":
        shape["value"] = (whole(list_tag.attributes.get("start", "")) or 1) + at
        shape["label"] = f"{shape['value']}."
    if box is not None:
        shape["has_checkbox"] = True
        shape |= {"is_checked": True} if "checked" in box.attributes else {}
    return shape


def _table(tag: Tag) -> Json:
    rows = [row for row in tag.tags if row.name == "tr"]
    shape: dict[str, object] = {
        "type": "table",
        "cells": [[_cell(cell) for cell in row.tags] for row in rows],
        **_part(tag, "caption", "caption"),
    }
    shape |= {f"is_{name}": True for name in ("bordered", "striped") if name in tag.attributes}
    return shape


def _cell(tag: Tag) -> Json:
    values = tag.attributes
    shape: dict[str, object] = {
        "text": _rich(tag.children),
        "align": values.get("align") or ("center" if tag.name == "th" else "left"),
        "valign": values.get("valign") or "middle",
    }
    if tag.name == "th":
        shape["is_header"] = True
    return shape | {name: whole(values[name]) for name in ("colspan", "rowspan") if name in values}


def _rich(children: Iterable[Tag | str]) -> object:
    """Return a RichText: a string, an object with a text, or a list of these."""
    pieces = [node if isinstance(node, str) else _styled(node) for node in children]
    if not pieces:
        return ""
    return pieces[0] if len(pieces) == 1 else pieces


def _styled(tag: Tag) -> object:
    text = _rich(tag.children)
    match tag.name:
        case "br":
            return "\n"
        case "tg-math":
            return {"type": "mathematical_expression", "expression": tag.text}
        case "tg-emoji":
            id_ = tag.attributes.get("emoji-id", "")
            return {"type": "custom_emoji", "custom_emoji_id": id_, "alternative_text": tag.text}
        case "tg-reference":
            return {"type": "reference", "text": text, "name": tag.attributes.get("name", "")}
        case "a" if "name" in tag.attributes:
            return {"type": "anchor", "name": tag.attributes["name"]}
        case "a":
            return _link(tag.attributes.get("href", ""), text)
        case name:
            return {"type": _STYLES[name], "text": text}


def _link(url: str, text: object) -> Json:
    if url.startswith("#"):
        return {"type": "anchor_link", "text": text, "anchor_name": url[1:]}
    scheme, _, rest = url.partition(":")
    if scheme in _LINKS:
        kind, key = _LINKS[scheme]
        return {"type": kind, "text": text, key: rest}
    return {"type": "url", "text": text, "url": url}


# --- as plain text ---------------------------------------------------------------------------------


def plain(found: Iterable[object]) -> str:
    """Return the text of blocks, separated by empty lines; a row or an item is one line."""
    texts = ("\n".join(_lines(block)).strip() for block in found if is_object(block))
    return "\n\n".join(text for text in texts if text)


def _lines(block: Json) -> Iterator[str]:
    for key in ("summary", "text", "expression", "caption", "credit"):
        if key in block:
            yield text_of_rich(block[key])
    for row in _array(block, "cells"):
        cells = [cell for cell in row if is_object(cell)] if is_array(row) else []
        yield " | ".join(text_of_rich(cell.get("text")) for cell in cells)
    for item in _array(block, "items"):
        if is_object(item):
            yield f"{_sign(item)} {_close(_array(item, 'blocks'))}"
    if inner := _array(block, "blocks"):
        yield _close(inner)


def _close(found: Iterable[object]) -> str:
    """Return the text of blocks inside another block, without empty lines."""
    return plain(found).replace("\n\n", "\n")


def _sign(item: Json) -> str:
    if item.get("has_checkbox") is True:
        return "☑" if item.get("is_checked") is True else "☐"
    return text_of(item, "label")


def text_of_rich(text: object) -> str:
    """Return the text of a RichText."""
    if isinstance(text, str):
        return text
    if is_array(text):
        return "".join(map(text_of_rich, text))
    if is_object(text):
        keys = ("text", "expression", "alternative_text")
        return text_of_rich(next((text[key] for key in keys if key in text), ""))
    return ""


def _array(body: Json, key: str) -> list[object]:
    value = body.get(key)
    return value if is_array(value) else []
