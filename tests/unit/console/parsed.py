"""A page as a browser takes it apart: its text, its parts by id, and its faults."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"br", "hr", "img", "input", "link", "meta"}


@dataclass(eq=False, kw_only=True)
class Part:
    """One element."""

    name: str
    attributes: dict[str, str]
    parent: "Part | None" = None
    children: list["Part | str"] = field(default_factory=list["Part | str"])

    def every(self, name: str = "") -> list["Part"]:
        """All elements within, of one name if it is given, in order."""
        found: list[Part] = []
        for child in self.children:
            if isinstance(child, Part):
                found += [child] if name in ("", child.name) else []
                found += child.every(name)
        return found

    @property
    def text(self) -> str:
        """All text within, as it was sent."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def words(self) -> str:
        """All text within, white space run together."""
        return " ".join(self.text.split())

    def by_id(self, id_: str) -> "Part":
        """The one element with this id."""
        (found,) = [part for part in self.every() if part.attributes.get("id") == id_]
        return found

    def ids(self, prefix: str) -> list[str]:
        """The ids that begin with `prefix`, in order."""
        ids = (part.attributes.get("id", "") for part in self.every())
        return [id_ for id_ in ids if id_.startswith(prefix)]

    def links(self) -> dict[str, str]:
        """The target of each link, by its text."""
        return {part.words: part.attributes["href"] for part in self.every("a")}

    def fields(self) -> dict[str, str]:
        """What a form would send without pressing a button."""
        inputs = self.every("input")
        return {part.attributes["name"]: part.attributes.get("value", "") for part in inputs}


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Part(name="", attributes={})
        self.current = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        part = Part(
            name=tag, attributes={name: value or "" for name, value in attrs}, parent=self.current
        )
        self.current.children.append(part)
        if tag not in VOID:
            self.current = part

    def handle_endtag(self, tag: str) -> None:
        assert self.current.name == tag, f"</{tag}> ends <{self.current.name}>"
        assert self.current.parent is not None
        self.current = self.current.parent

    def handle_data(self, data: str) -> None:
        self.current.children.append(data)


def parsed(html: str) -> Part:
    """Take markup apart; every element must end where it should."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert parser.current is parser.root, f"<{parser.current.name}> never ends"
    return parser.root


def faults(page: Part) -> list[str]:
    """What would hinder a person with a screen reader or with only a keyboard."""
    ids = [part.attributes["id"] for part in page.every() if "id" in part.attributes]
    found = [f"id {id_} occurs twice" for id_ in ids if ids.count(id_) > 1]
    labelled = {part.attributes.get("for", "") for part in page.every("label")}
    for part in (*page.every("input"), *page.every("textarea")):
        is_hidden = part.attributes.get("type") == "hidden"
        if not is_hidden and part.attributes.get("id", "?") not in labelled:
            found.append(f"field {part.attributes.get('name')} has no label")
    found += [f"{part.name} has no text" for part in page.every("button") if not part.words]
    found += [f"a link has no text: {text}" for text in page.links() if not text]
    found += ["img has no alt" for part in page.every("img") if "alt" not in part.attributes]
    found += ["table has no caption" for part in page.every("table") if not part.every("caption")]
    found += ["th has no scope" for part in page.every("th") if "scope" not in part.attributes]
    named = (part.attributes.get("aria-labelledby", "") for part in page.every())
    found += [f"no element has the id {id_}" for id_ in named if id_ and id_ not in ids]
    levels = [int(part.name[1]) for part in page.every() if part.name in ("h1", "h2", "h3", "h4")]
    if levels.count(1) != 1 or levels[0] != 1:
        found.append("there is not one h1 before all headings")
    found += [
        f"h{after} after h{before}" for before, after in pairwise(levels) if after > before + 1
    ]
    return found
