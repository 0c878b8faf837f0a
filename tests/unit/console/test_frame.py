"""The frame of every page: navigation, counts, notices and forms."""

from tests.unit.console.parsed import faults, parsed
from tests.unit.console.rows import HOSTILE, PATHS
from zeroclaw.console.frame import SECTIONS, PageState, button, form, page
from zeroclaw.console.markup import tag

CALM = PageState(waiting={})


def test_a_page_leads_to_every_section_and_back_to_the_chat() -> None:
    shown = parsed(page(PATHS, "audit", CALM, tag("p", "x")).decode())
    assert faults(shown) == []
    assert shown.links() == {
        "to the content": "#main",
        "Chat": "/web/",
        **{name.capitalize(): f"/console/{name}" for name in SECTIONS},
    }
    current = [part.words for part in shown.every("a") if "aria-current" in part.attributes]
    assert current == ["Audit"]
    assert shown.every("title")[0].text == "Audit · zeroclaw"


def test_a_page_loads_nothing_but_its_own_files() -> None:
    """The listener's policy would refuse anything else."""
    shown = parsed(page(PATHS, "audit", CALM, title=HOSTILE).decode())
    loaded = [part.attributes["src"] for part in (*shown.every("script"), *shown.every("img"))]
    loaded += [part.attributes["href"] for part in shown.every("link")]
    assert {url.rpartition("/")[0] for url in loaded} == {"/console"}
    assert [part.text for part in shown.every("script")] == [""]
    assert shown.every("style") == []
    assert shown.every("h1")[0].text == HOSTILE


def test_a_section_shows_how_many_items_wait() -> None:
    shown = parsed(page(PATHS, "audit", PageState(waiting={"approvals": 2, "people": 0})).decode())
    words = [part.words for part in shown.by_id("sections").every("li")]
    assert words[:3] == ["Approvals 2 waiting", "Grants", "People"]


def test_a_page_shows_the_halt_and_the_result_of_a_form() -> None:
    calm = parsed(page(PATHS, "audit", CALM).decode())
    assert "hidden" in calm.by_id("result").attributes
    state = PageState(waiting={}, halted=HOSTILE, result="approved: `shell`")
    shown = parsed(page(PATHS, "audit", state).decode())
    assert f"Halted by {HOSTILE}" in shown.by_id("main").text
    assert "hidden" not in shown.by_id("result").attributes
    assert shown.by_id("result").words == "approved: shell"
    assert faults(shown) == []


def test_a_form_carries_the_token() -> None:
    """A form without it is refused."""
    parsed_form = parsed(
        form(PATHS, "grants", button("Go", look="yes"), label="do", revoke="1").text
    )
    (element,) = parsed_form.every("form")
    assert (element.attributes["method"], element.attributes["action"]) == (
        "post",
        "/console/grants",
    )
    assert parsed_form.fields() == {"token": "the-token", "revoke": "1"}
    assert parsed_form.every("button")[0].attributes == {"type": "submit", "class": "yes"}
