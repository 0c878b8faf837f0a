"""The frame of every page: the way to the sections, what waits, what was said, and the forms."""

from tests.unit.console.parsed import faults, parsed
from tests.unit.console.rows import HOSTILE, PATHS
from zeroclaw.console.frame import SECTIONS, PageState, button, form, page
from zeroclaw.console.markup import tag

CALM = PageState(waiting={})


def test_a_page_leads_to_every_section_and_back_to_the_chat() -> None:
    whole = parsed(page(PATHS, "audit", CALM, tag("p", "x")).decode())
    assert faults(whole) == []
    assert whole.links() == {
        "to the content": "#main",
        "Chat": "/web/",
        **{name.capitalize(): f"/console/{name}" for name in SECTIONS},
    }
    current = [one.words for one in whole.every("a") if "aria-current" in one.attributes]
    assert current == ["Audit"]
    assert whole.every("title")[0].text == "Audit · zeroclaw"


def test_a_page_loads_nothing_but_its_own_files() -> None:
    """The listener's policy would refuse anything else."""
    whole = parsed(page(PATHS, "audit", CALM, title=HOSTILE).decode())
    loaded = [one.attributes["src"] for one in (*whole.every("script"), *whole.every("img"))]
    loaded += [one.attributes["href"] for one in whole.every("link")]
    assert {one.rpartition("/")[0] for one in loaded} == {"/console"}
    assert [one.text for one in whole.every("script")] == [""]
    assert whole.every("style") == []
    assert whole.every("h1")[0].text == HOSTILE


def test_what_waits_stands_at_its_section() -> None:
    whole = parsed(page(PATHS, "audit", PageState(waiting={"approvals": 2, "people": 0})).decode())
    words = [one.words for one in whole.by_id("sections").every("li")]
    assert words[:3] == ["Approvals 2 waiting", "Grants", "People"]


def test_a_halt_and_what_a_form_came_to_are_said() -> None:
    calm = parsed(page(PATHS, "audit", CALM).decode())
    assert "hidden" in calm.by_id("told").attributes
    said = PageState(waiting={}, halted=HOSTILE, told="approved: `shell`")
    whole = parsed(page(PATHS, "audit", said).decode())
    assert f"Halted by {HOSTILE}" in whole.by_id("main").text
    assert "hidden" not in whole.by_id("told").attributes
    assert whole.by_id("told").words == "approved: shell"
    assert faults(whole) == []


def test_a_form_carries_the_token() -> None:
    """Without it nothing is done."""
    made = parsed(form(PATHS, "grants", button("Go", look="yes"), label="do", revoke="1").text)
    (one,) = made.every("form")
    assert (one.attributes["method"], one.attributes["action"]) == ("post", "/console/grants")
    assert made.fields() == {"token": "the-token", "revoke": "1"}
    assert made.every("button")[0].attributes == {"type": "submit", "class": "yes"}
