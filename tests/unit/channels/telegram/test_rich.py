"""A text with a table has a rich form too, of which nothing hostile is left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.telegram import rich
from channels.telegram.emulator.rich_html import Tag, parse
from channels.telegram.render import markdown
from channels.telegram.styled import from_body
from tests.unit.channels.telegram.test_render import NESTED

TABLE = "| a | b |\n|--|--|\n| 1 | 2 |\n"
MARKUP = st.lists(
    st.sampled_from(
        (
            *("a", "b c", "\n", "\n\n", "*", "**", "_", "`", "```", "```math\n", "||", "<", ">"),
            *("> ", "> > ", "[x]", "(https://e.x)", "(javascript:x)", "(tg://user?id=7)", "- "),
            *("1. ", "# ", TABLE, "\n\n" + TABLE, "|", "$", "\\", "&lt;", "&#x202e;", "\ud83d"),
            *("</table>", "<script>", "![i](https://e.x/i.png)", "![](tg://emoji?id=5)", "~~"),
            *("[^1]", "[^1]: ", "\x00", "\u202e", "\ue000", "    ", "- [ ] ", '"', "'", "\r\n"),
        )
    ),
    max_size=40,
).map("".join)


def form(text: str) -> str:
    return from_body(markdown(text, richly=True).body).rich


def tags(tag: Tag) -> list[Tag]:
    return [one for inner in tag.tags for one in (inner, *tags(inner))]


@pytest.mark.slow
@given(MARKUP)
def test_of_any_text_the_rich_form_can_be_read_and_holds_only_what_is_listed(text: str) -> None:
    """Or there is none; the other forms stay what they are. S2-06."""
    text = f"{TABLE}\n{text}"
    found = form(text)
    for tag in tags(parse(found)):
        assert tag.name in rich.TAGS
        assert {*tag.attributes} <= {"href", "bordered", "start", "align", "class"}
        assert tag.attributes.get("href", "https://").startswith(("http://", "https://"))
    assert not {*"\x00\u202e\ud83d"} & {*found}
    assert markdown(text).plain == markdown(text, richly=True).plain
    assert from_body(markdown(text).body).rich == ""


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (
            "a\n\n| x | **y** |\n|:-|-:|\n| 1 | `<b>` |",
            '<p>a</p><table bordered><tr><th align="left">x</th><th align="right"><b>y</b></th></tr>'
            '<tr><td align="left">1</td><td align="right"><code>&lt;b&gt;</code></td></tr></table>',
        ),
        (
            "|x|\n|-|\n[p](tg://user?id=7)",
            "<table bordered><tr><th>x</th></tr><tr><td>p</td></tr></table>",
        ),
        (
            '|x|\n|-|\n\n![i](https://e.x/i"g) ![j](file:///etc/passwd)',
            "<table bordered><tr><th>x</th></tr></table>"
            '<p><a href="https://e.x/i&quot;g">🖼 i</a> j</p>',
        ),
        (
            "|x|\n|-|\n\n[![i](https://e.x/i.png)](https://e.x)",
            '<table bordered><tr><th>x</th></tr></table><p><a href="https://e.x">🖼 i</a></p>',
        ),
        (
            '|x|\n|-|\n\n3. a\n   - b\n\n```py\nx < 1\n```\n\n``` a"b\ny\n```\n\n---\n',
            '<table bordered><tr><th>x</th></tr></table><ol start="3"><li>a<ul><li>b</li></ul></li>'
            '</ol><pre><code class="language-py">x &lt; 1</code></pre><pre>y</pre><hr/>',
        ),
        (
            "|x|\n|-|\n\n```math\n\\sqrt{x}\n```\n\n$x$ costs $5",
            "<table bordered><tr><th>x</th></tr></table><pre>\\sqrt{x}</pre><p>$x$ costs $5</p>",
        ),
    ],
)
def test_a_table_is_one_and_the_rest_goes_with_it(text: str, html: str) -> None:
    assert form(text) == html


@pytest.mark.parametrize(
    "text",
    [
        "",
        "**bold**, [l](https://e.x)\n\n- a\n  - b\n\n# Head",
        "a | b\n--\nc",
        "```\n| a |\n|---|\n```",
        "1. ---|---",
        "a\n|-|",
        "- [ ] to do\n\n$$x^2$$",
    ],
)
def test_what_entities_can_show_has_no_other_form(text: str) -> None:
    """Every app shows it, and lets people copy it."""
    assert form(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "|a" * 21 + "|\n" + "|-" * 21 + "|",
        "| a |\n|---|\n" + "| b |\n" * 500,
        "> " * 20 + "a\n\n" + TABLE,
        "| a |\n|---|\n| " + "<" * 9000 + " |",
    ],
    ids=["columns", "blocks", "levels", "bytes"],
)
def test_what_telegram_would_refuse_is_not_tried(text: str) -> None:
    assert rich.may_need(text)
    assert form(text) == ""


@pytest.mark.parametrize("most", ["|a" * 20 + "|\n" + "|-" * 20 + "|", TABLE + "| b |\n" * 490])
def test_as_much_as_telegram_takes_is_tried(most: str) -> None:
    parse(form(most))


@pytest.mark.parametrize("formula", [f"${NESTED}$", f"$$\n{NESTED}\n$$", f"```math\n{NESTED}\n```"])
def test_a_formula_beside_a_table_is_shown_as_it_was_written(formula: str) -> None:
    """No library and no app is made to work it out (P9)."""
    found = form(f"{TABLE}\n{formula}\n")
    assert NESTED in found
    assert "math" not in found


def test_tags_that_are_not_closed_are() -> None:
    """Were the library ever to forget one."""
    letting = rich.Letting(str)
    letting.feed("<table><tr><td><b>a</i></table><p>x")
    letting.close()
    assert letting.written() == "<table bordered><tr><td><b>a</b></td></tr></table><p>x</p>"
