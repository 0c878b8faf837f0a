"""Turns Markdown with tables into Telegram's rich HTML, because entities can't show tables.

Everything else has an ordinary form, which all apps can show, quote and copy. Formulas stay ordinary
too: a `$` mostly means a price, and it is unknown what apps do with hostile formulas.

telegramify-markdown (of the extra `telegram`, loaded when first used) makes the HTML. The model's text
is untrusted, so only the tags listed here get through: no pictures, which an app would fetch; no
emojis, maps or formulas; and links only to web pages, as in the ordinary form. The limits of a rich
message, such as 20 columns, are left to the server: what it refuses is sent in the ordinary form.

Sources: Bot API 10.1 of 2026-06-11, which brought them, "Rich HTML style" and "Rich Message
Limits", read 2026-11 from the types in public libraries. Not tried on the live service.

In the ordinary form the library pads every row of a table to the widest cell of each column, and adds
missing cells. So a few thousand characters (one long cell above many short rows, or many columns above
empty rows) become millions, and block the event loop. `without_huge` hides
such a table from the library, so that people see its Markdown.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from html.parser import HTMLParser

from channels._remote.tables import AROUND, is_rule

LINKS = ("http://", "https://")
TAGS = frozenset(
    {"a", "b", "blockquote", "br", "code", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li"}
    | {"ol", "p", "pre", "s", "table", "td", "tg-spoiler", "th", "tr", "ul"}
)
"""All tags that may be sent."""
MAX_CELLS = 4_000
"""Cells of all tables of a text, more than fit a message; each costs some 40 microseconds."""
MAX_DRAWN = 400_000
"""Characters of all drawn tables of a text, a hundred times more than fit a message."""

_VOID = frozenset({"br", "hr"})
# The language shown above a code block; too restricted to pass for other text.
LANGUAGE = r"[A-Za-z+#-]{1,12}[0-9]{0,2}"
_LANGUAGE_CLASS = re.compile(f"language-{LANGUAGE}")
_START = re.compile(r"\d{1,9}")
_ALIGNED = frozenset({"left", "center", "right"})
Attributes = Mapping[str, str]


def may_need(source: str) -> bool:
    """Whether a text may have a table, that is, a line like the rule below a table's head.

    Such a line in a code block is a false positive, which is sorted out later.
    """
    return any(map(is_rule, source.split("\n")))


def without_huge(source: str, stand_in: str) -> str:
    """Return a text in which tables that are too large are no longer parsed as tables.

    Args:
        source: Markdown with line feeds as the only line ends.
        stand_in: The character that replaces each `|` in the rule of such a table.
    """
    lines = source.split("\n")
    cells = drawn = 0
    for rows in _blocks(lines):
        rules = [at for at in rows if is_rule(lines[at])]
        if not rules:
            continue
        columns = max(lines[at].count("|") + 1 for at in rules)
        lengths = [len(lines[at]) for at in rows]
        more_cells = len(rows) * columns
        more_drawn = len(rows) * min(columns * max(lengths), sum(lengths))
        if cells + more_cells <= MAX_CELLS and drawn + more_drawn <= MAX_DRAWN:
            cells, drawn = cells + more_cells, drawn + more_drawn
            continue
        for at in rules:
            lines[at] = lines[at].replace("|", stand_in)
    return "\n".join(lines)


def _blocks(lines: Sequence[str]) -> Iterator[range]:
    """Yield the ranges of lines between blank lines; a table never spans several."""
    start = 0
    for at, line in enumerate(lines):
        if not line.strip(AROUND):
            yield range(start, at)
            start = at + 1
    yield range(start, len(lines))


def html(source: str, restore: Callable[[str], str]) -> str:
    """Return a text's rich form; empty if it needs none.

    Args:
        source: Markdown with tags and formulas hidden.
        restore: Restores the characters hidden from the library.
    """
    from telegramify_markdown import richify  # so that only Telegram loads it

    filtered = TagFilter(restore)
    filtered.feed(richify(source, latex_escape=False).html or "")
    filtered.close()
    return filtered.written()


class TagFilter(HTMLParser):
    """Filters HTML: keeps the listed tags, and only the text of all others."""

    def __init__(self, restore: Callable[[str], str]) -> None:
        super().__init__(convert_charrefs=True)
        self._restore = restore
        self._out: list[str] = []
        # The library's open tags, each with the tag written for it, empty for none.
        self._open: list[tuple[str, str]] = []

    def written(self) -> str:
        """Return the filtered HTML; empty if it has no table."""
        while self._open:
            self._close()
        html = "".join(self._out)
        return html if "<table" in html else ""  # each `<` in text and URLs is escaped

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a tag."""
        attributes = {name: value or "" for name, value in attrs}
        if tag == "img":
            # Show a link instead of a picture that an app would fetch.
            self.handle_starttag("a", [("href", attributes.get("src", ""))])
            self.handle_data(f"🖼 {attributes.get('alt', '')}".rstrip())
            self.handle_endtag("a")
        elif tag in _VOID:
            self._out.append(f"<{tag}/>")
        else:
            name = "pre" if tag == "tg-math-block" else tag
            opening = self._opening(name, attributes)
            if opening:
                self._out.append(f"<{opening}>")
            self._open.append((tag, name if opening else ""))

    def handle_endtag(self, tag: str) -> None:
        """Close a tag, and those that the library left open inside it."""
        if any(name == tag for name, _ in reversed(self._open)):
            while self._close() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Write text."""
        self._out.append(escape(self._restore(data), quote=False))

    def _close(self) -> str:
        name, written = self._open.pop()
        if written:
            self._out.append(f"</{written}>")
        return name

    def _opening(self, tag: str, attributes: Attributes) -> str:
        """Return a tag with its allowed attributes; empty to drop the tag."""
        match tag:
            case "a" if any(name == "a" for _, name in self._open):
                return ""  # a picture inside a link: the outer link is the intended one
            case "a":
                url = self._restore(attributes.get("href", ""))
                return f'a href="{escape(url)}"' if url.startswith(LINKS) else ""
            case "table":
                return "table bordered"
            case "ol" if _START.fullmatch(attributes.get("start", "")):
                return f'ol start="{attributes["start"]}"'
            case "td" | "th" if attributes.get("align", "") in _ALIGNED:
                return f'{tag} align="{attributes["align"]}"'
            case "code" if self._open and self._open[-1][1] == "pre":
                language = self._restore(attributes.get("class", ""))
                is_known = _LANGUAGE_CLASS.fullmatch(language) is not None
                return f'code class="{language}"' if is_known else ""
            case _:
                return tag if tag in TAGS else ""
