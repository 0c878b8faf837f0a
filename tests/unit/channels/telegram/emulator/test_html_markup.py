"""HTML is parsed as Telegram parses it, and refused where and how Telegram refuses it."""

import pytest

from channels.telegram.emulator.html_markup import parse
from channels.telegram.emulator.refusals import Refused

Marks = list[tuple[str, int, int]]


def marks(source: str) -> tuple[str, Marks]:
    text, entities = parse(source)
    return text, [(entity.type, entity.offset, entity.length) for entity in entities]


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("plain", "plain", []),
        ("<b>a</b><strong>b</strong>", "ab", [("bold", 0, 1), ("bold", 1, 1)]),
        ("<i>a</i><em>b</em>", "ab", [("italic", 0, 1), ("italic", 1, 1)]),
        ("<u>a</u><ins>b</ins>", "ab", [("underline", 0, 1), ("underline", 1, 1)]),
        ("<s>a</s>", "a", [("strikethrough", 0, 1)]),
        (
            "<strike>a</strike><del>b</del>",
            "ab",
            [("strikethrough", 0, 1), ("strikethrough", 1, 1)],
        ),
        ('<span class="tg-spoiler">a</span>', "a", [("spoiler", 0, 1)]),
        ("<tg-spoiler>a</tg-spoiler>", "a", [("spoiler", 0, 1)]),
        ("<code>a</code>", "a", [("code", 0, 1)]),
        ("<pre>a</pre>", "a", [("pre", 0, 1)]),
        ("<pre>a<code>b</code></pre>", "ab", [("code", 1, 1), ("pre", 0, 2)]),
        ("<blockquote>a</blockquote>", "a", [("blockquote", 0, 1)]),
        ("<blockquote expandable>a</blockquote>", "a", [("expandable_blockquote", 0, 1)]),
        ("<B>a</b>", "a", [("bold", 0, 1)]),
        ("<b>a</>", "a", [("bold", 0, 1)]),
        ("<b>a</b >", "a", [("bold", 0, 1)]),
        ("<b>😀<i>x</i></b>", "😀x", [("italic", 2, 1), ("bold", 0, 3)]),
        ("<a>x.org</a>", "x.org", [("text_link", 0, 5)]),
        ("<a></a>", "", []),
        ("<a href='nowhere'>a</a>", "a", []),
        ('<tg-emoji emoji-id="5">👍</tg-emoji>', "👍", [("custom_emoji", 0, 2)]),
        ('<tg-time unix="7">noon</tg-time>', "noon", [("date_time", 0, 4)]),
    ],
)
def test_marks_are_read(source: str, text: str, expected: Marks) -> None:
    assert marks(source) == (text, expected)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("&lt;b&gt; &amp;&quot;", '<b> &"'),
        ("&#65;&#x42;&#66", "ABB"),
        ("&nbsp; & &", "&nbsp; & &"),
        ("&#0; &#xD800; &#x110000;", "&#0; &#xD800; &#x110000;"),
        ("&lt", "<"),
    ],
)
def test_references_become_characters(source: str, text: str) -> None:
    assert marks(source) == (text, [])


@pytest.mark.parametrize(
    ("source", "extra"),
    [
        ("<a href='https://x.org/?a=1&amp;b=2'>a</a>", (("url", "https://x.org/?a=1&b=2"),)),
        ('<a href = "x.org" title="t">a</a>', (("url", "http://x.org/"),)),
        ('<pre><code class="language-py">a</code></pre>', (("language", "py"),)),
        ("<code class='language-py'>a</code>", (("language", "py"),)),
        ("<code class=else>a</code>", ()),
    ],
)
def test_attributes_are_read(source: str, extra: object) -> None:
    _, (entity,) = parse(source)
    assert entity.extra == extra


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("<h1>a</h1>", 'Unsupported start tag "h1" at byte offset 0'),
        ("é<b", "Unclosed start tag at byte offset 2"),
        ("<a href", 'Unclosed start tag "a" at byte offset 0'),
        ("<a href=", 'Unclosed start tag "a" at byte offset 0'),
        ("<a href='x", 'Unclosed start tag "a" at byte offset 0'),
        ("<a href=x/y>a</a>", "Unexpected end of name token at byte offset 8"),
        ("<a /href>a</a>", 'Empty attribute name in the tag "a" at byte offset 0'),
        ("<span>a</span>", 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        ("a</b>", "Unexpected end tag at byte offset 1"),
        ("<b>a</b", "Unclosed end tag at byte offset 4"),
        ("<b>a</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("<b><i>a</i>", 'Can\'t find end tag corresponding to start tag "b"'),
    ],
)
def test_an_error_names_its_place(source: str, reason: str) -> None:
    with pytest.raises(Refused) as raised:
        parse(source)
    assert raised.value.description == f"Bad Request: can't parse entities: {reason}"
