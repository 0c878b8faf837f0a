"""Builds a whole page around a section: header, navigation, and the result of the last form.

Pure. A page runs and loads only its own files and those of `web_page`, as the listener's policy
requires. Without its script a page is complete, but does not update itself.
"""

from zeroclaw.console.markup import Html, Node, coded, joined, tag
from zeroclaw.envelope import ConversationId
from zeroclaw.value import Value

SECTIONS = ("approvals", "grants", "people", "conversations", "usage", "audit", "tools", "policy")
"""The paths of the sections, in display order; each is also the section's name."""


class ConsolePaths(Value):
    """The paths of the console, and the token of its forms.

    Attributes:
        root: The path that the console is mounted at.
        chat: The path of the web chat.
        log_out: The path of the form that logs this browser out.
        token: Sent back by every form, so that other pages can't send one.
    """

    root: str
    chat: str
    log_out: str
    token: str

    def to(self, *parts: str) -> str:
        """Return a path below the console; parts need no quoting."""
        return "/".join((self.root, *parts))


class PageState(Value):
    """The state that every page shows above its section.

    Attributes:
        waiting: Number of things that wait for the operator, by section.
        halted: Who halted the daemon; empty if it is not halted.
        result: Result of the last form; empty for none.
    """

    waiting: dict[str, int]
    halted: str = ""
    result: str = ""


def page(
    paths: ConsolePaths, section: str, state: PageState, *main: Html, title: str = ""
) -> bytes:
    """Return a page.

    Args:
        paths: The paths of the console.
        section: One of `SECTIONS`.
        state: The state that every page shows.
        main: The content of the section.
        title: The page's title; the section's if empty.
    """
    name = title or section.capitalize()
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{name} · zeroclaw"),
        tag("link", rel="icon", href=paths.to("icon.svg")),
        tag("link", rel="stylesheet", href=paths.to("base.css")),
        tag("link", rel="stylesheet", href=paths.to("markdown.css")),
        tag("link", rel="stylesheet", href=paths.to("style.css")),
        tag("script", type="module", src=paths.to("console.js")),
    )
    body = tag(
        "body",
        tag("a", "to the content", href="#main", class_="skip"),
        _header(paths, section, state),
        tag(
            "main",
            tag("h1", name),
            *_halted(state),
            tag("p", coded(state.result), id="result", role="status", hidden=not state.result),
            *main,
            id="main",
            tabindex=-1,
        ),
    )
    return ("<!doctype html>" + tag("html", head, body, lang="en").text).encode()


def _header(paths: ConsolePaths, section: str, state: PageState) -> Html:
    tabs = (tag("li", _link(paths, name, section, state.waiting.get(name, 0))) for name in SECTIONS)
    return tag(
        "header",
        tag(
            "div",
            tag("img", src=paths.to("icon.svg"), alt="", width=26, height=26),
            tag("p", "zeroclaw", class_="name"),
            tag("p", "", id="connection", role="status", data_state="connecting", hidden=True),
            tag("a", "Chat", href=paths.chat, class_="chat"),
            tag(
                "form",
                tag("button", "Log out", type="submit", class_="quiet"),
                id="logout",
                method="post",
                action=paths.log_out,
            ),
            class_="top",
        ),
        tag("nav", tag("ul", *tabs, id="sections"), aria_label="sections"),
    )


def _link(paths: ConsolePaths, name: str, section: str, waiting: int) -> Html:
    badge: tuple[Node, ...] = ()
    if waiting:
        badge = (" ", tag("span", str(waiting), tag("span", " waiting", class_="sr-only")))
    current = "page" if name == section else None
    return tag("a", name.capitalize(), *badge, href=paths.to(name), aria_current=current)


def _halted(state: PageState) -> tuple[Html, ...]:
    if not state.halted:
        return ()
    notice = f"Halted by {state.halted}: nothing runs until `/resume` or `zeroclaw resume`."
    return (tag("p", coded(notice), class_="halted", role="status"),)


def chat_link(paths: ConsolePaths, conversation: ConversationId, where: str) -> Html:
    """Return a link to a conversation; `where` is its chat, empty if it was deleted."""
    return tag("a", where or conversation, href=paths.to("conversations", conversation))


def form(paths: ConsolePaths, path: str, *children: Node, label: str, **hidden: str) -> Html:
    """Return a form that sends the hidden fields, the token, and the fields among its children."""
    fields = (tag("input", type="hidden", name=name, value=value) for name, value in hidden.items())
    token = tag("input", type="hidden", name="token", value=paths.token)
    trouble = tag("p", "", class_="trouble", role="alert", hidden=True)
    return tag(
        "form",
        joined((token, *fields, *children)),
        trouble,
        method="post",
        action=paths.to(path),
        aria_label=label,
    )


def button(label: str, *, name: str = "", value: str = "", look: str = "") -> Html:
    """Return a button that submits its form; `look` is one of `yes no quiet`."""
    return tag(
        "button", label, type="submit", name=name or None, value=value or None, class_=look or None
    )
