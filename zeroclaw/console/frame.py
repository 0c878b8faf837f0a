"""Makes a whole page around a section: the head, the way to the other sections, what was said.

Pure. Nothing on a page runs or is loaded but the files that lie beside this room, as the listener's
policy asks; without its script a page is whole, and only stands still.
"""

from zeroclaw.console.markup import Html, Node, coded, joined, tag
from zeroclaw.envelope import ConversationId
from zeroclaw.value import Value

SECTIONS = {
    "approvals": "Approvals",
    "grants": "Grants",
    "people": "People",
    "conversations": "Conversations",
    "usage": "Usage",
    "audit": "Audit",
    "tools": "Tools",
    "policy": "Policy",
}
"""The sections by their path, in the order in which they are shown."""


class Place(Value):
    """Where a page stands.

    Attributes:
        root: The path that the console is mounted at, `/console`.
        chat: The path of the web chat.
        log_out: The path that a form logs this browser out by.
        token: What every form sends back, so that no other page can send one.
    """

    root: str
    chat: str
    log_out: str
    token: str

    def to(self, *parts: str) -> str:
        """Return the path of a part of the console; parts hold nothing that a path does not."""
        return "/".join((self.root, *parts))


class PageState(Value):
    """What every page shows of how things are.

    Attributes:
        waiting: How many things wait for the operator, by section.
        halted: Who halted everything, empty when nothing is halted.
        told: What the last form came to, empty for nothing.
    """

    waiting: dict[str, int]
    halted: str = ""
    told: str = ""


def page(place: Place, section: str, standing: PageState, *main: Html, title: str = "") -> bytes:
    """Return a page.

    Args:
        place: Where it stands.
        section: One of `SECTIONS`.
        standing: What every page shows.
        main: What the section shows.
        title: Of the page, where it is another than the section's.
    """
    name = title or SECTIONS[section]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{name} · zeroclaw"),
        tag("link", rel="icon", href=place.to("icon.svg")),
        tag("link", rel="stylesheet", href=place.to("style.css")),
        tag("script", type="module", src=place.to("console.js")),
    )
    body = tag(
        "body",
        tag("a", "to the content", href="#main", class_="skip"),
        _header(place, section, standing),
        tag(
            "main",
            tag("h1", name),
            *_halted(standing),
            tag("p", coded(standing.told), id="told", role="status", hidden=not standing.told),
            *main,
            id="main",
            tabindex=-1,
        ),
    )
    return ("<!doctype html>" + tag("html", head, body, lang="en").text).encode()


def _header(place: Place, section: str, standing: PageState) -> Html:
    links = (
        tag("li", _link(place, name, words, section, standing.waiting.get(name, 0)))
        for name, words in SECTIONS.items()
    )
    return tag(
        "header",
        tag(
            "div",
            tag("img", src=place.to("icon.svg"), alt="", width=26, height=26),
            tag("p", "zeroclaw", class_="name"),
            tag("p", "", id="connection", role="status", data_state="connecting", hidden=True),
            tag("a", "Chat", href=place.chat, class_="chat"),
            tag(
                "form",
                tag("button", "Log out", type="submit", class_="quiet"),
                id="logout",
                method="post",
                action=place.log_out,
            ),
            class_="top",
        ),
        tag("nav", tag("ul", *links, id="sections"), aria_label="sections"),
    )


def _link(place: Place, name: str, words: str, section: str, waiting: int) -> Html:
    badge: tuple[Node, ...] = ()
    if waiting:
        badge = (" ", tag("span", str(waiting), tag("span", " waiting", class_="unseen")))
    current = "page" if name == section else None
    return tag("a", words, *badge, href=place.to(name), aria_current=current)


def _halted(standing: PageState) -> tuple[Html, ...]:
    if not standing.halted:
        return ()
    said = f"Halted by {standing.halted}: nothing runs until `/resume` or `zeroclaw resume`."
    return (tag("p", coded(said), class_="halted", role="status"),)


def chat_link(place: Place, conversation: ConversationId, where: str) -> Html:
    """Return the way to a conversation; `where` is its chat, empty where that is known no more."""
    return tag("a", where or conversation, href=place.to("conversations", conversation))


def form(place: Place, path: str, *children: Node, label: str = "", **hidden: str) -> Html:
    """Return a form that sends what is hidden in it, the token, and what its children add."""
    kept = (tag("input", type="hidden", name=name, value=value) for name, value in hidden.items())
    token = tag("input", type="hidden", name="token", value=place.token)
    trouble = tag("p", "", class_="trouble", role="alert", hidden=True)
    return tag(
        "form",
        joined((token, *kept, *children)),
        trouble,
        method="post",
        action=place.to(path),
        aria_label=label or None,
    )


def button(words: str, *, name: str = "", value: str = "", look: str = "") -> Html:
    """Return a button that sends its form; `look` is one of `yes no quiet`."""
    return tag(
        "button", words, type="submit", name=name or None, value=value or None, class_=look or None
    )
