"""Rich HTML is parsed as the Bot API documents it; undocumented markup is refused."""

import pytest

from channels.telegram.emulator.refusals import Refused
from channels.telegram.emulator.rich_blocks import blocks, plain
from channels.telegram.emulator.rich_html import parse

Shape = dict[str, object]


def paragraph(text: object) -> Shape:
    return {"type": "paragraph", "text": text}


def cell(text: object, align: str = "left", **extra: object) -> Shape:
    return {"text": text, "align": align, "valign": "middle", **extra}


@pytest.mark.parametrize(
    ("html", "expected", "shown"),
    [
        ("a &lt; b &#x41;&#65;&hellip; &", [paragraph(["a ", "<", " b ", "A", "A", "…", " ", "&"])], ""),
        ("<p>a\n <b>b</b><br/>c</p>", [paragraph(["a ", {"type": "bold", "text": "b"}, "\n", "c"])], ""),
        ("<h3>T</h3> <footer>f</footer>", [{"type": "heading", "text": "T", "size": 3}, {"type": "footer", "text": "f"}], "T\n\nf"),
        (
            '<pre><code class="language-py">a\n  b</code></pre><pre>c</pre><hr/>',
            [{"type": "pre", "text": "a\n  b", "language": "py"}, {"type": "pre", "text": "c"}, {"type": "divider"}],
            "a\n  b\n\nc",
        ),
        (
            "<ul><li>a<ol start=\"3\"><li>b</li><li><p>c</p></li></ol></li></ul>",
            [
                {
                    "type": "list",
                    "items": [
                        {
                            "label": "•",
                            "blocks": [
                                paragraph("a"),
                                {
                                    "type": "list",
                                    "items": [
                                        {"label": "3.", "blocks": [paragraph("b")], "value": 3},
                                        {"label": "4.", "blocks": [paragraph("c")], "value": 4},
                                    ],
                                },
                            ],
                        }
                    ],
                }
            ],
            "• a\n3. b\n4. c",
        ),
        (
            '<ul><li><input type="checkbox" checked>a</li><li><input type="checkbox">b</li></ul>',
            [
                {
                    "type": "list",
                    "items": [
                        {"label": "•", "blocks": [paragraph("a")], "has_checkbox": True, "is_checked": True},
                        {"label": "•", "blocks": [paragraph("b")], "has_checkbox": True},
                    ],
                }
            ],
            "☑ a\n☐ b",
        ),
        (
            '<table bordered><caption>C</caption><tr><th>a</th><th align="right">b</th></tr>'
            '<tr><td colspan="2">1</td></tr></table>',
            [
                {
                    "type": "table",
                    "cells": [
                        [cell("a", "center", is_header=True), cell("b", "right", is_header=True)],
                        [cell("1", colspan=2)],
                    ],
                    "caption": "C",
                    "is_bordered": True,
                }
            ],
            "C\na | b\n1",
        ),
        (
            "<blockquote>q<p>r</p><cite>w</cite></blockquote><aside>s<cite>x</cite></aside>",
            [
                {"type": "blockquote", "blocks": [paragraph("q"), paragraph("r")], "credit": "w"},
                {"type": "pullquote", "text": "s", "credit": "x"},
            ],
            "w\nq\nr\n\ns\nx",
        ),
        (
            "<details open><summary>S</summary>a</details><details>b</details>",
            [
                {"type": "details", "summary": "S", "blocks": [paragraph("a")], "is_open": True},
                {"type": "details", "summary": "", "blocks": [paragraph("b")]},
            ],
            "S\na\n\nb",
        ),
        (
            "<tg-math-block>x^2</tg-math-block><tg-math>y</tg-math>",
            [
                {"type": "mathematical_expression", "expression": "x^2"},
                paragraph({"type": "mathematical_expression", "expression": "y"}),
            ],
            "x^2\n\ny",
        ),
        (
            '<a href="https://e.x">l</a><a href="#n">n</a><a name="n"></a>'
            '<a href="mailto:a@e.x">m</a><tg-reference name="r">r</tg-reference>'
            '<tg-emoji emoji-id="5">👍</tg-emoji><tg-spoiler>s</tg-spoiler>',
            [
                paragraph(
                    [
                        {"type": "url", "text": "l", "url": "https://e.x"},
                        {"type": "anchor_link", "text": "n", "anchor_name": "n"},
                        {"type": "anchor", "name": "n"},
                        {"type": "email_address", "text": "m", "email_address": "a@e.x"},
                        {"type": "reference", "text": "r", "name": "r"},
                        {"type": "custom_emoji", "custom_emoji_id": "5", "alternative_text": "👍"},
                        {"type": "spoiler", "text": "s"},
                    ]
                )
            ],
            "lnmr👍s",
        ),
    ],
)  # fmt: skip
def test_each_tag_is_a_block_or_a_style(html: str, expected: list[Shape], shown: str) -> None:
    parsed_blocks = blocks(parse(html).children)
    assert parsed_blocks == expected
    if shown:
        assert plain(parsed_blocks) == shown


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("<b>a", "end tag corresponding to start tag"),
        ("a</b>", "Unexpected end tag"),
        ("<b><i>a</b></i>", "Unmatched end tag"),
        ("<script>a</script>", "Unsupported start tag"),
        ("<img src='https://e.x/i.png'/>", "not modelled"),
        ("<!-- a -->", "Unsupported start tag"),
        ("<!doctype html>", "Unsupported start tag"),
        ("<![CDATA[a]]>", "Unsupported start tag"),
        ("<?php ?>", "Unsupported start tag"),
        ("a < b", "Unclosed start tag"),
        ("&eacute;", "Unsupported entity"),
        ("&#x110000;", "Unsupported entity"),
        ("&#xd800;", "Unsupported entity"),
        (f"&#{'9' * 5000};", "Unsupported entity"),
        ("<ul>a</ul>", "Unexpected text"),
        ("<table><tr>a</tr></table>", "Unexpected text"),
        ("<li>a</li>", "can't stand"),
        ("<tr><td>a</td></tr>", "can't stand"),
        ("<p><p>a</p></p>", "can't stand"),
        ("<b><table></table></b>", "can't stand"),
        ("<table><tr><td><ul></ul></td></tr></table>", "can't stand"),
        ("<pre><b>a</b></pre>", "can't stand"),
        ("<b>" * 17 + "a" + "</b>" * 17, "nested too deeply"),
        ("<p>a</p>" * 501, "too many blocks"),
        ("<table><tr>" + "<td>a</td>" * 21 + "</tr></table>", "too many columns"),
        ('<table><tr><td colspan="21">a</td></tr></table>', "too many columns"),
        ("a" * 32_769, "too long"),
    ],
)
def test_unsupported_html_is_refused(html: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as caught:
        parse(html)
    assert caught.value.code == 400


@pytest.mark.parametrize(
    "html",
    [
        "<b>" * 16 + "a" + "</b>" * 16,
        "<p>a</p>" * 500,
        "<table><tr>" + "<td>a</td>" * 20 + "</tr></table>",
        "😀" * 32_768,
        f'<table><tr><td colspan="{"9" * 5000}">a</td></tr></table>',
        f'<ol start="{"9" * 5000}"><li>a</li></ol>',
        "<p></p><br/> </br>",
    ],
    ids=["levels", "blocks", "columns", "characters", "no span", "no number", "nothing"],
)
def test_html_up_to_the_limits_is_parsed(html: str) -> None:
    blocks(parse(html).children)


def test_malformed_rich_text_has_no_words() -> None:
    """Blocks written by hand in a test may be malformed."""
    malformed: list[object] = [
        7,
        {"type": "paragraph", "text": 7},
        {"cells": [7, [{"text": ["a", {}]}]]},
    ]
    assert plain([*malformed, {"items": [7], "blocks": 7}]) == "a"
