"""A page as a browser takes it apart: its text, its parts by id, and what is wrong with it."""

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
        return "".join(one if isinstance(one, str) else one.text for one in self.children)

    @property
    def words(self) -> str:
        """All text within, white space run together."""
        return " ".join(self.text.split())

    def by_id(self, id_: str) -> "Part":
        """The one element of an id."""
        (found,) = [one for one in self.every() if one.attributes.get("id") == id_]
        return found

    def ids(self, beginning: str) -> list[str]:
        """The ids that begin so, in order."""
        ids = (one.attributes.get("id", "") for one in self.every())
        return [one for one in ids if one.startswith(beginning)]

    def links(self) -> dict[str, str]:
        """Where each link leads, by what it says."""
        return {one.words: one.attributes["href"] for one in self.every("a")}

    def fields(self) -> dict[str, str]:
        """What a form would send without a press."""
        inputs = self.every("input")
        return {one.attributes["name"]: one.attributes.get("value", "") for one in inputs}


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Part(name="", attributes={})
        self.here = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Part(
            name=tag, attributes={name: value or "" for name, value in attrs}, parent=self.here
        )
        self.here.children.append(made)
        if tag not in VOID:
            self.here = made

    def handle_endtag(self, tag: str) -> None:
        assert self.here.name == tag, f"</{tag}> ends <{self.here.name}>"
        assert self.here.parent is not None
        self.here = self.here.parent

    def handle_data(self, data: str) -> None:
        self.here.children.append(data)


def parsed(html: str) -> Part:
    """Take markup apart; every element must end where it should."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert parser.here is parser.root, f"<{parser.here.name}> never ends"
    return parser.root


def faults(page: Part) -> list[str]:
    """What would stand in the way of somebody who listens to a page or has only keys."""
    ids = [one.attributes["id"] for one in page.every() if "id" in one.attributes]
    found = [f"id {one} stands twice" for one in ids if ids.count(one) > 1]
    labelled = {one.attributes.get("for", "") for one in page.every("label")}
    for one in (*page.every("input"), *page.every("textarea")):
        is_hidden = one.attributes.get("type") == "hidden"
        if not is_hidden and one.attributes.get("id", "?") not in labelled:
            found.append(f"field {one.attributes.get('name')} has no label")
    found += [f"{one.name} says nothing" for one in page.every("button") if not one.words]
    found += [f"a link says nothing: {one}" for one in page.links() if not one]
    found += ["img has no alt" for one in page.every("img") if "alt" not in one.attributes]
    found += ["table has no caption" for one in page.every("table") if not one.every("caption")]
    found += ["th has no scope" for one in page.every("th") if "scope" not in one.attributes]
    named = (one.attributes.get("aria-labelledby", "") for one in page.every())
    found += [f"nothing is called {one}" for one in named if one and one not in ids]
    levels = [int(one.name[1]) for one in page.every() if one.name in ("h1", "h2", "h3", "h4")]
    if levels.count(1) != 1 or levels[0] != 1:
        found.append("there is not one h1 before all headings")
    found += [
        f"h{after} after h{before}" for before, after in pairwise(levels) if after > before + 1
    ]
    return found
