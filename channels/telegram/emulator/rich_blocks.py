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


def blocks(inside: Iterable[Tag | str]) -> list[Json]:
    """Return the content of a tag as blocks; loose text becomes a paragraph."""
    found: list[Json] = []
    loose: list[Tag | str] = []

    def flush() -> None:
        if "".join(one if isinstance(one, str) else one.words for one in loose).strip():
            found.append({"type": "paragraph", "text": _rich(loose)})
        loose.clear()

    for one in inside:
        if isinstance(one, str) or one.name in _INLINE:
            loose.append(one)
        elif one.name not in ("input", "summary", "cite"):
            flush()
            found.append(_block(one))
    flush()
    return found


def _block(tag: Tag) -> Json:
    if tag.name in HEADINGS:
        return {"type": "heading", "text": _rich(tag.inside), "size": int(tag.name[1])}
    if tag.name in ("blockquote", "details", "aside"):
        return _around(tag)
    match tag.name:
        case "pre":
            return _pre(tag)
        case "tg-math-block":
            return {"type": "mathematical_expression", "expression": tag.words}
        case "hr":
            return {"type": "divider"}
        case "ul" | "ol":
            items = [_item(tag, at, one) for at, one in enumerate(tag.tags)]
            return {"type": "list", "items": items}
        case "table":
            return _table(tag)
        case name:
            return {
                "type": "footer" if name == "footer" else "paragraph",
                "text": _rich(tag.inside),
            }


def _around(tag: Tag) -> Json:
    """Return a block that has other parts besides its content, such as a summary."""
    credit = _part(tag, "cite", "credit")
    match tag.name:
        case "blockquote":
            return {"type": "blockquote", "blocks": blocks(tag.inside), **credit}
        case "details":
            opened = {"is_open": True} if "open" in tag.attributes else {}
            summary = {"summary": "", **_part(tag, "summary", "summary")}
            return {"type": "details", **summary, "blocks": blocks(tag.inside), **opened}
        case _:
            said = [one for one in tag.inside if isinstance(one, str) or one.name != "cite"]
            return {"type": "pullquote", "text": _rich(said), **credit}


def _part(tag: Tag, name: str, key: str) -> Json:
    found = next((one for one in tag.tags if one.name == name), None)
    return {} if found is None else {key: _rich(found.inside)}


def _pre(tag: Tag) -> Json:
    inner = next(tag.tags, None)
    language = inner.attributes.get("class", "") if inner is not None else ""
    shape: Json = {"type": "pre", "text": tag.words}
    if language.startswith("language-"):
        return {**shape, "language": language.removeprefix("language-")}
    return shape


def _item(around: Tag, at: int, tag: Tag) -> Json:
    shape: dict[str, object] = {"label": "•", "blocks": blocks(tag.inside)}
    box = next((one for one in tag.tags if one.name == "input"), None)
    if around.name == "ol":
        shape["value"] = (whole(around.attributes.get("start", "")) or 1) + at
        shape["label"] = f"{shape['value']}."
    if box is not None:
        shape["has_checkbox"] = True
        shape |= {"is_checked": True} if "checked" in box.attributes else {}
    return shape


def _table(tag: Tag) -> Json:
    rows = [row for row in tag.tags if row.name == "tr"]
    shape: dict[str, object] = {
        "type": "table",
        "cells": [[_cell(one) for one in row.tags] for row in rows],
        **_part(tag, "caption", "caption"),
    }
    shape |= {f"is_{name}": True for name in ("bordered", "striped") if name in tag.attributes}
    return shape


def _cell(tag: Tag) -> Json:
    given = tag.attributes
    shape: dict[str, object] = {
        "text": _rich(tag.inside),
        "align": given.get("align") or ("center" if tag.name == "th" else "left"),
        "valign": given.get("valign") or "middle",
    }
    if tag.name == "th":
        shape["is_header"] = True
    return shape | {name: whole(given[name]) for name in ("colspan", "rowspan") if name in given}


def _rich(inside: Iterable[Tag | str]) -> object:
    """Return a RichText: a string, an object with a text, or a list of these."""
    pieces = [one if isinstance(one, str) else _styled(one) for one in inside]
    if not pieces:
        return ""
    return pieces[0] if len(pieces) == 1 else pieces


def _styled(tag: Tag) -> object:
    text = _rich(tag.inside)
    match tag.name:
        case "br":
            return "\n"
        case "tg-math":
            return {"type": "mathematical_expression", "expression": tag.words}
        case "tg-emoji":
            id_ = tag.attributes.get("emoji-id", "")
            return {"type": "custom_emoji", "custom_emoji_id": id_, "alternative_text": tag.words}
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
    shown = ("\n".join(_lines(one)).strip() for one in found if is_object(one))
    return "\n\n".join(one for one in shown if one)


def _lines(block: Json) -> Iterator[str]:
    for key in ("summary", "text", "expression", "caption", "credit"):
        if key in block:
            yield words(block[key])
    for row in _array(block, "cells"):
        cells = [one for one in row if is_object(one)] if is_array(row) else []
        yield " | ".join(words(one.get("text")) for one in cells)
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


def words(text: object) -> str:
    """Return the text of a RichText."""
    if isinstance(text, str):
        return text
    if is_array(text):
        return "".join(map(words, text))
    if is_object(text):
        shown = ("text", "expression", "alternative_text")
        return words(next((text[key] for key in shown if key in text), ""))
    return ""


def _array(body: Json, key: str) -> list[object]:
    found = body.get(key)
    return found if is_array(found) else []
