"""Discord's Markdown becomes blocks that the page draws."""

import pytest

from channels._remote.emulator.markup import blocks


def paragraph(*text: object) -> object:
    return {"type": "paragraph", "text": list(text)}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\ntwo", [paragraph("one", "\n", "two")]),
        (
            "**b** *i* ~~s~~",
            [
                paragraph(
                    {"type": "bold", "text": ["b"]},
                    " ",
                    {"type": "italic", "text": ["i"]},
                    " ",
                    {"type": "strikethrough", "text": ["s"]},
                )
            ],
        ),
        (
            "__u__ `c`",
            [paragraph({"type": "underline", "text": ["u"]}, " ", {"type": "code", "text": "c"})],
        ),
        (
            "[a](https://b.example)",
            [paragraph({"type": "url", "url": "https://b.example", "text": ["a"]})],
        ),
        (
            "<b>no</b> ![x](y)",
            [paragraph("<b>no</b> !", {"type": "url", "url": "y", "text": ["x"]})],
        ),
        ("## two", [{"type": "heading", "size": 2, "text": ["two"]}]),
        ("```py\nx = 1\n```", [{"type": "pre", "text": "x = 1"}]),
        ("---", [{"type": "divider"}]),
        ("> quoted", [{"type": "blockquote", "blocks": [paragraph("quoted")]}]),
        ("- a", [{"type": "list", "items": [{"label": "•", "blocks": [paragraph("a")]}]}]),
        ("3. c", [{"type": "list", "items": [{"label": "3.", "blocks": [paragraph("c")]}]}]),
    ],
)
def test_a_text_becomes_blocks(text: str, shown: list[object]) -> None:
    assert blocks(text) == shown
