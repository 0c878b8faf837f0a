"""Turn Markdown into Telegram's rich HTML, where it has what entities can't show: a table.

All else has a form that every app shows, quotes and lets copy, and goes the ordinary way. So does a
formula: its signs mostly are prices, and what an app does with a hostile one is not known.

telegramify-markdown (of the extra `telegram`, loaded when first used) makes the HTML, and only what
is listed here is let through, for the model's text is hostile: no pictures, which an app fetches; no
emojis, maps or formulas; no link but to pages, as in the ordinary form.

Facts, all of the Bot API's pages as of 10.2 (rich messages came with 10.1, 2026-06-11), "Rich HTML
style" and "Rich Message Limits", read 2026-11 in the types that public libraries make of them.
Nothing of it was tried on the live service.

In the ordinary form the library draws each row as wide as the widest cell of every column, and fills
up rows that have fewer cells. So a few thousand signs, of one long cell above many short rows or of
many columns above empty ones, become millions, while all others wait. Such a table is kept from the
library (`without_huge`), and shown as it was written.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from html.parser import HTMLParser

LINKS = ("http://", "https://")
INLINE = frozenset({"a", "b", "br", "code", "i", "s", "tg-spoiler"})
BLOCKS = frozenset(
    {"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "table"}
    | {"td", "th", "tr", "ul"}
)
TAGS = INLINE | BLOCKS
"""All that is ever sent."""
MOST_BLOCKS, MOST_LEVELS, MOST_COLUMNS = 500, 16, 20
MOST_BYTES = 32_768
"""Of the HTML; of the text alone as many characters would be allowed."""
MOST_CELLS = 4_000
"""Of all tables of a text. No message holds as many; one costs some 40 microseconds."""
MOST_DRAWN = 400_000
"""Characters of all tables of a text; no message holds a hundredth of that."""
_AROUND = " \t>"

_VOID = frozenset({"br", "hr"})
_CELLS = frozenset({"td", "th"})
# What a block may be headed; the name of a language, and nothing that could be read on below it.
LANGUAGE = r"[A-Za-z+#-]{1,12}[0-9]{0,2}"
_LANGUAGE_CLASS = re.compile(f"language-{LANGUAGE}")
_TAG, _CELL = re.compile("<([a-z0-9-]+)"), re.compile("<t[dh][ >]")
_START = re.compile(r"\d{1,9}")
_ALIGNED = frozenset({"left", "center", "right"})
Attributes = Mapping[str, str]


def may_need(source: str) -> bool:
    """Whether a text may have a table: a line as between its head and its rows.

    One that looks so in a piece of code is told apart later.
    """
    return any(map(is_rule, source.split("\n")))


def is_rule(line: str) -> bool:
    """Whether a line looks like the one between a table's head and its rows."""
    bare = line.strip(_AROUND)
    return "|" in bare and "-" in bare and not bare.strip("|:- \t")


def without_huge(source: str, stand_in: str) -> str:
    """Return a text in which no table that is too large can be read.

    Args:
        source: Markdown, each of its lines ended by a line feed alone.
        stand_in: One sign, put in the place of each `|` between such a table's head and its rows.
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
        if cells + more_cells <= MOST_CELLS and drawn + more_drawn <= MOST_DRAWN:
            cells, drawn = cells + more_cells, drawn + more_drawn
            continue
        for at in rules:
            lines[at] = lines[at].replace("|", stand_in)
    return "\n".join(lines)


def _blocks(lines: Sequence[str]) -> Iterator[range]:
    """Return where lines stand with no blank one between them; no table reaches further."""
    start = 0
    for at, line in enumerate(lines):
        if not line.strip(_AROUND):
            yield range(start, at)
            start = at + 1
    yield range(start, len(lines))


def html(source: str, shown: Callable[[str], str]) -> str:
    """Return a text's rich form, empty where it needs none, or Telegram would not take it.

    Args:
        source: Markdown in which no tag and no formula can be read.
        shown: Puts back what was hidden from the library.
    """
    from telegramify_markdown import richify  # so that only Telegram loads it

    letting = Letting(shown)
    letting.feed(richify(source, latex_escape=False).html or "")
    letting.close()
    return letting.written()


class Letting(HTMLParser):
    """Lets what is listed through; of all else only the words."""

    def __init__(self, shown: Callable[[str], str]) -> None:
        super().__init__(convert_charrefs=True)
        self._shown = shown
        self._out: list[str] = []
        # What the library opened, and what was written for it, empty for nothing.
        self._open: list[tuple[str, str]] = []
        self._levels = self._deepest = 0

    def written(self) -> str:
        """Return what was let through, empty without a table, or where it is too much of anything."""
        while self._open:
            self._close()
        found = "".join(self._out)
        tags = Counter(_TAG.findall(found))  # in words and addresses each `<` is escaped
        # The words of an item are a block of their own.
        blocks = sum(tags[one] for one in BLOCKS - _CELLS) + tags["li"]
        columns = max(len(_CELL.findall(row)) for row in found.split("<tr>"))
        fits = (
            tags["table"] > 0
            and blocks <= MOST_BLOCKS
            and self._deepest <= MOST_LEVELS
            and columns <= MOST_COLUMNS
            and len(found.encode()) <= MOST_BYTES
        )
        return found if fits else ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a tag."""
        given = {name: value or "" for name, value in attrs}
        if tag == "img":
            # What it shows instead of an address that an app would fetch.
            self.handle_starttag("a", [("href", given.get("src", ""))])
            self.handle_data(f"🖼 {given.get('alt', '')}".rstrip())
            self.handle_endtag("a")
        elif tag in _VOID:
            self._write(f"{tag}/")
        else:
            written = "pre" if tag == "tg-math-block" else tag
            kept = self._kept(written, given)
            if kept:
                self._write(kept)
                self._levels += 1
            self._open.append((tag, written if kept else ""))

    def handle_endtag(self, tag: str) -> None:
        """Close a tag, and what the library left open in it."""
        if any(name == tag for name, _ in reversed(self._open)):
            while self._close() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Write words."""
        self._out.append(escape(self._shown(data), quote=False))

    def _close(self) -> str:
        name, written = self._open.pop()
        if written:
            self._out.append(f"</{written}>")
            self._levels -= 1
        return name

    def _write(self, inside: str) -> None:
        self._deepest = max(self._deepest, self._levels + 1)
        self._out.append(f"<{inside}>")

    def _kept(self, tag: str, given: Attributes) -> str:
        """Return a tag with those attributes that it may have, empty for no tag."""
        match tag:
            case "a" if any(written == "a" for _, written in self._open):
                return ""  # a picture in a link: the outer one is what was meant
            case "a":
                url = self._shown(given.get("href", ""))
                return f'a href="{escape(url)}"' if url.startswith(LINKS) else ""
            case "table":
                return "table bordered"
            case "ol" if _START.fullmatch(given.get("start", "")):
                return f'ol start="{given["start"]}"'
            case "td" | "th" if given.get("align", "") in _ALIGNED:
                return f'{tag} align="{given["align"]}"'
            case "code" if self._open and self._open[-1][1] == "pre":
                language = self._shown(given.get("class", ""))
                is_known = _LANGUAGE_CLASS.fullmatch(language) is not None
                return f'code class="{language}"' if is_known else ""
            case _:
                return tag if tag in TAGS else ""
