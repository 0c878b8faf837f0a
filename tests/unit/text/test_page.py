"""How a page becomes text, and how its markup is cut."""

import sys
from types import FrameType
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.text.page import End, Page, Start, Text, pieces, readable_page


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("plain", "plain"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("<div>one</div><div>two</div>", "one\ntwo"),
        ("<p>one <b>two</b>, <i>three</i>.", "one two, three."),
        ("a\n  b\t c&nbsp;d", "a b c d"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("a<br><br><br>b", "a\n\nb"),
        ("<h1>Top</h1>text<h3>Low</h3>", "# Top\n\ntext\n\n### Low"),
        ("<ul><li>one<li>two <b>bold</b></ul>after", "- one\n- two bold\n\nafter"),
        ("<ul><li><p>one</p><p>more</p></li><li><p>two</p></li></ul>", "- one\n\nmore\n\n- two"),
        ("<ul><li></li><li><p></p></ul><p>after</p>", "after"),
        ("<table><tr><th>a<th>b<tr><td>1</td><td>2</td></table>", "a | b\n1 | 2"),
        ("<table><tr><th></th><th>b</th></tr><tr><td>1</td><td>2</td></table>", "| b\n1 | 2"),
        ("<table><tr><td></td><td></td><td>3</td></tr><tr><td></td></tr></table>x", "| | 3\n\nx"),
        ("<table><tr><td><p>a</p></td><td><p>b</p></td></tr></table>", "a\n\n| b"),
        ("<pre>\ndef x():\n    pass</pre>end", "def x():\n    pass\n\nend"),
        ("</pre>a  b", "a b"),
        ("<p>x<img alt='a cat'>y<img alt=''><img>z", "x [a cat] yz"),
        ("&lt;b&gt; &amp; &eacute; &#xe9; &#99999999999; &nonsense; &", "<b> & é é \ufffd &nonsense; &"),
        ("a < b > c", "a < b > c"),
        ("a<script>alert('</p>')</script>b<style>x{}</style>c", "abc"),
        ("a<!-- hidden -->b<!-->c<!--->d<!---->e<!doctype html>f<?php x ?>g", "abcdefg"),
        ("a<svg><title>no</title><svg/>x</svg>b", "ab"),
        ("a<svg/>b", "ab"),
        ("<select><option>no</select>yes<textarea>no</textarea>", "yes"),
        ("<noscript>switch scripts on</noscript>", "switch scripts on"),
        ("<div hidden>no<div>no</div>no</div>yes", "yes"),
        ("<p hidden>no<p>yes", "yes"),
        ("<p hidden>no</p>yes", "yes"),
        ("<p hidden>a<p hidden>b<p>yes", "yes"),
        ("<input hidden>yes", "yes"),
        ("<div hidden/>no</div>yes", "yes"),
        ("<div hidden><div/>no</div>no</div>yes", "yes"),
        ("<li hidden>no<ul><li>no</ul>no</li>yes", "yes"),
        ("<ul><li hidden>no<ul></li>no</ul><li>yes</ul>", "- yes"),
        ("<td hidden><table><td>no</table>no</td>yes", "yes"),
        ("<span hidden><div></span>no</div></span>yes", "yes"),
        ("<div hidden><table><td></div>no</table></div>yes", "yes"),
        ("<div hidden><p>no<p>no</div>yes", "yes"),
        ("<table hidden><tr><td>no</table>yes", "yes"),
        ("<i hidden><i>no</i>no</i>yes", "yes"),
        ("<svg><svg/>no</svg>yes", "yes"),
        (f"<div hidden>{'<div>' * 300}</div>no", ""),
        (f"<div hidden>{'<div>' * 290}{'</div>' * 291}yes", "yes"),
        ("<span style='color:red; DISPLAY : none'>no</span>yes", "yes"),
        ("<span style=visibility:hidden>no</span>yes", "yes"),
        ("<span aria-hidden=true>no</span>yes", "yes"),
        ("<a href=/x>link</a>", "link"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_page_reads_as_people_see_it(html: str, text: str) -> None:
    """Lines where blocks are, and nothing invisible."""
    assert readable_page(html).text == text


def test_the_first_title_is_the_pages() -> None:
    """On one line; those inside pictures are skipped."""
    html = "<svg><title>no</title></svg><title>\n A  page </title><title>no</title><p>text"
    assert readable_page(html) == Page(title="A page", text="text")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("see <a href='/x?a&amp;b'>this</a>, please", "see this <to /x?a&b>, please"),
        ("<a href=/1>one<a href=/2>two</a>", "one <to /1>two <to /2>"),
        ("<a>none</a> <a href=''>empty</a>", "none empty"),
        ("<a href=no>nowhere</a>", "nowhere"),
        (f"<a href=/{'x' * 600}>long</a>", "long"),
        ("<pre><a href=/x>code</a></pre>", "code <to /x>"),
    ],
)
def test_links_are_shown_when_they_are_asked_for(html: str, text: str) -> None:
    """Behind their text, in the form that the caller chooses."""
    page = readable_page(html, lambda address: f"to {address}" if address != "no" else "")
    assert page.text == text


@pytest.mark.parametrize(
    ("html", "found"),
    [
        (
            "<A HREF=x Title='a\"b' class=\"c'd\" checked data-x = 1/>",
            [
                Start(
                    tag="a",
                    attributes={
                        "href": "x", "title": 'a"b', "class": "c'd", "checked": "", "data-x": "1/",
                    },
                )
            ],
        ),
        ("<br/>", [Start(tag="br", is_closed=True)]),
        ("<p a=1 A=2>", [Start(tag="p", attributes={"a": "1"})]),
        ("<p =x><p =>", [Start(tag="p", attributes={name: ""}) for name in ("=x", "=")]),
        ("<p a='x>y'>", [Start(tag="p", attributes={"a": "x>y"})]),
        ("</P x>y", [End(tag="p"), Text(text="y")]),
        ("</>y</ p>", [Text(text="y")]),
        ("<title>a</titles></TITLE >b", [
            Start(tag="title"), Text(text="a</titles>"), End(tag="title"), Text(text="b"),
        ]),
        ("<script>never closed", [Start(tag="script"), Text(text="never closed"), End(tag="script")]),
        ("x<p never closed", [Text(text="x")]),
        ("x<!-- never closed", [Text(text="x")]),
        ("x<!never closed", [Text(text="x")]),
        ("1<2", [Text(text="1<2")]),
    ],
)  # fmt: skip
def test_markup_is_cut_as_the_standard_says(html: str, found: list[object]) -> None:
    """Quotes hold what ends a tag, and what isn't closed ends with the page."""
    assert list(pieces(html)) == found


SCRAPS = (
    "< > / p <p> </p> <a href= ' \" = <!-- --> &# 1 <pre> </pre> <svg> </svg> <script> </script>"
    " <li> <td> x <title> hidden <div <p hidden= </a> \x00 \ud800 &amp; <br>"
)
MARKUP = st.lists(st.sampled_from([*SCRAPS.split(" "), " ", "\n"])).map("".join)


@given(MARKUP | st.text())
def test_every_text_is_some_page(html: str) -> None:
    """Nothing that a server sends is a fault of ours."""
    page = readable_page(html, lambda address: address)
    assert "\n" not in page.title
    assert isinstance(page.text, str)


HOSTILE = (
    "<div> <p_a=' <p_a=\" <p_a=b_ <!-- <! &#1 <script> </script < <title> <a_href=x> <p_hidden> <svg>"
    " <b><i><p> <ul><li> = <a_=\"'"
)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("piece", HOSTILE.replace("_", "\t").split(" "))
def test_no_page_takes_the_square_of_its_length(piece: str) -> None:
    """Half a megabyte of the worst is read at all, which the square of it never would be."""
    assert len(readable_page(piece * (500_000 // len(piece))).text) <= 500_000


def test_a_row_of_empty_cells_is_no_longer_than_a_few_words() -> None:
    """The cells before each one were copied: 4 MB of end tags took 20 s."""
    assert len(readable_page("<p>" + "</td>" * 1_000 + "x").text) < 500


class Lines:
    """Counts the lines that run."""

    count = 0

    def __call__(self, _frame: FrameType, event: str, _about: object) -> Self:
        self.count += event == "line"
        return self


@pytest.mark.unmeasured
def test_an_end_tag_costs_the_same_at_every_depth() -> None:
    """Each one walked through up to 300 hidden elements: a megabyte of them took 7 s, as a mail may."""

    def steps(page: str) -> int:
        lines = Lines()
        sys.settrace(lines)
        try:
            readable_page(page)
        finally:
            sys.settrace(None)
        return lines.count

    def steps_of_end_tags(levels: int) -> int:
        opened = f"<div hidden><dd><table>{'<ul>' * levels}"
        return steps(opened + "</dd></x>" * 10) - steps(opened)

    assert steps_of_end_tags(290) == steps_of_end_tags(2)
