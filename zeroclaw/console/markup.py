"""Builds HTML so that outside text can never become markup.

Only `tag` and the functions it uses create `Html`. Every plain `str` is escaped on its way in, so
escaping can't be forgotten. Invisible characters are made visible too.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TypeVar

from zeroclaw.text.escape import escape_invisible
from zeroclaw.value import Struct

T = TypeVar("T")

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
_CODE = re.compile("`([^`]+)`")


class Html(Struct, frozen=True):
    """Markup as it is sent."""

    text: str


Node = Html | str
Attribute = str | int | bool | None


def tag(name: str, /, *children: Node, **attributes: Attribute) -> Html:
    """Return an element.

    Args:
        name: The element's name.
        children: Strings are escaped.
        attributes: `data_state` is written as `data-state`, and a trailing underscore is dropped
            (`class_`, `for_`). True is an attribute without a value; None and False omit it.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(children).text}</{name}>")


def joined(nodes: Iterable[Node]) -> Html:
    """Return nodes one after another."""
    return Html("".join(map(_markup, nodes)))


def _markup(node: Node) -> str:
    return node.text if isinstance(node, Html) else escape(escape_invisible(node))


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(escape_invisible(str(value)))}"'


# --- elements that several sections use ----------------------------------------------------------

ENDINGS = {"approved": "good", "denied": "bad", "expired": "quiet", "stopped": "quiet"}
"""Colours of the ways in which an approval request ends; see `pill`."""


def coded(text: str) -> Html:
    """Return a text whose parts in backticks are shown as code."""
    parts = _CODE.split(text)
    return joined(tag("code", part) if index % 2 else part for index, part in enumerate(parts))


def codes(words: Iterable[str]) -> list[Node]:
    """Return words as code, each followed by a space."""
    return [node for word in words for node in (tag("code", word), " ")]


def instant(at: datetime) -> Html:
    """Return a time; the page's script shows it in the reader's time zone."""
    utc = at.astimezone(UTC)
    return tag("time", f"{utc:%Y-%m-%d %H:%M} UTC", datetime=utc.isoformat())


def deadline(at: datetime) -> Html:
    """Return the time when something ends; the page's script counts down to it."""
    utc = at.astimezone(UTC)
    text = f"until {utc:%Y-%m-%d %H:%M} UTC"
    return tag("time", text, datetime=utc.isoformat(), data_deadline=utc.isoformat())


def pill(word: str, kind: str) -> Html:
    """Return a word on a coloured background; `kind` is one of `good bad ask quiet`."""
    return tag("strong", word, class_="pill", data_kind=kind)


def empty(title: str, *sentences: str) -> Html:
    """Return the placeholder of an empty list, with sentences on what creates its entries."""
    paragraphs = (tag("p", coded(sentence)) for sentence in sentences)
    return tag("div", tag("p", title, class_="nothing"), *paragraphs, class_="empty")


def panel(title: Node, *children: Node, id_: str) -> Html:
    """Return one part of a section with its heading; the script refreshes it by its id."""
    head = tag("h2", title, id=f"{id_}-title")
    return tag("section", head, *children, id=id_, class_="panel", aria_labelledby=f"{id_}-title")


def listing(*rows: Html, id_: str) -> Html:
    """Return a list of rows; the script refreshes each by its own id."""
    return tag("ul", *rows, id=id_, class_="rows")


def line(head: Sequence[Node], aside: Sequence[Node], *actions: Html, id_: str) -> Html:
    """Return a row: a heading, small print below it, and actions next to both."""
    text = tag("div", tag("h3", *head), tag("p", *aside, class_="aside"))
    return tag("li", text, *actions, id=id_, class_="line")


def cut(
    render: Callable[[T], Html], items: Sequence[T], limit: int, rest: str, *, id_: str
) -> Html:
    """Return the first rows, and a note with the number of the others, completed by `rest`."""
    rows = listing(*map(render, items[:limit]), id_=id_)
    if (remaining := len(items) - limit) <= 0:
        return rows
    return joined((rows, tag("p", coded(f"{remaining} {rest}"), class_="note")))


def field(id_: str, **attributes: Attribute) -> Html:
    """Return a one-line text field without autocompletion."""
    return tag("input", type="text", id=id_, autocomplete="off", **attributes)


def table(heads: Iterable[str], rows: Iterable[Html], *, caption: str) -> Html:
    """Return a table that scrolls sideways if too wide; the caption is for screen readers."""
    head = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in heads)))
    grid = tag("table", tag("caption", caption, class_="sr-only"), head, tag("tbody", *rows))
    return tag("div", grid, class_="wide", tabindex=0, role="region", aria_label=caption)


def pages(path: str, name: str, current: str, older: str) -> Html:
    """Return the links of a paged list; empty if there is only one page.

    Args:
        path: The path of the first page.
        name: The field of the query that says where a page begins.
        current: Its value for this page; empty for the first.
        older: Its value for the next page; empty for none.
    """
    links = [tag("a", "← newest", href=path, rel="prev")] if current else []
    if older:
        href = f"{path}{'&' if '?' in path else '?'}{name}={older}"
        links.append(tag("a", "older →", href=href, rel="next"))
    return tag("nav", *links, class_="pages", aria_label="pages") if links else Html("")
