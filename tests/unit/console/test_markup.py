"""Markup: any text is shown as text."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.console.parsed import parsed
from zeroclaw.console.markup import (
    Html,
    coded,
    deadline,
    empty,
    instant,
    joined,
    listing,
    pages,
    panel,
    pill,
    table,
    tag,
)
from zeroclaw.text.escape import escape_invisible

HOSTILE = "<script>alert(1)</script>\"'&amp;</td><img src=x onerror=alert(1)>"


@given(st.text())
def test_a_text_is_only_ever_text(text: str) -> None:
    """Nothing in it ends or begins an element, an attribute, or a comment."""
    html = tag("p", text, title=text).text
    page = parsed(html)
    assert [part.name for part in page.every()] == ["p"]
    assert page.text == escape_invisible(text)
    assert page.every("p")[0].attributes == {"title": escape_invisible(text)}
    html.encode()  # lone surrogates are written out


def test_hostile_markup_is_shown_as_text() -> None:
    assert parsed(tag("td", HOSTILE).text).text == HOSTILE


def test_invisible_characters_are_escaped() -> None:
    """A command reads in the order in which it would run."""
    assert tag("p", "rm \u202egpj\x1b", title="\u2066").text == (
        '<p title="⟨U+2066⟩">rm ⟨U+202E⟩gpj⟨U+001B⟩</p>'
    )


def test_attributes_are_written_as_html() -> None:
    element = tag(
        "input", type="text", data_of="x", for_="y", required=True, hidden=False, list=None
    )
    assert element == Html('<input type="text" data-of="x" for="y" required>')


def test_nodes_are_joined_in_order() -> None:
    assert joined(("a<", tag("b", "c"), "")) == Html("a&lt;<b>c</b>")


def test_text_between_two_backticks_is_code() -> None:
    assert coded("run `a<b` or ` not").text == "run <code>a&lt;b</code> or ` not"


def test_times_are_utc_until_the_browser_converts_them() -> None:
    at = datetime(2026, 1, 2, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    html = instant(at).text
    assert html == '<time datetime="2026-01-01T23:30:00+00:00">2026-01-01 23:30 UTC</time>'
    assert ">until 2026-01-01 23:30 UTC<" in deadline(at.astimezone(UTC)).text
    assert 'data-deadline="2026-01-01T23:30:00+00:00"' in deadline(at).text


def test_parts_of_a_page_are_labelled() -> None:
    page = parsed(panel("What <b>", listing(tag("li", pill("ok", "good")), id_="l"), id_="x").text)
    assert page.by_id("x").attributes["aria-labelledby"] == "x-title"
    assert page.by_id("x-title").text == "What <b>"
    assert [part.words for part in page.by_id("l").every("li")] == ["ok"]
    assert parsed(empty("None.", "How, `so`.").text).words == "None.How, so."


def test_a_table_scrolls_and_says_what_it_is() -> None:
    page = parsed(table(("a", "b"), [tag("tr", tag("td", "1"))], caption="numbers").text)
    (region,) = [part for part in page.every("div") if part.attributes.get("role") == "region"]
    assert (region.attributes["aria-label"], region.attributes["tabindex"]) == ("numbers", "0")
    assert page.every("caption")[0].words == "numbers"


@pytest.mark.parametrize(
    ("path", "newer", "older", "links"),
    [
        ("/n", "", "", {}),
        ("/n", "i", "", {"← newest": "/n"}),
        ("/n", "", "o", {"older →": "/n?after=o"}),
        ("/n?of=a", "i", "o", {"← newest": "/n?of=a", "older →": "/n?of=a&after=o"}),
    ],
)
def test_pages_are_linked_where_there_are_more(
    path: str, newer: str, older: str, links: dict[str, str]
) -> None:
    assert parsed(pages(path, "after", newer, older).text).links() == links
