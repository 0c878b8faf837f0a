"""Markdown becomes text and entities that Telegram always accepts, and a rich form with a table."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels._remote.limits import cut, units
from channels.telegram import render, rich
from channels.telegram.contents import ALBUM_S, FULL, FULL_S, HALF, HALF_S, NEARLY_FULL
from channels.telegram.emulator.rich_html import Tag, parse
from channels.telegram.render import MAX_BLOCKS, markdown, measure
from channels.telegram.rich import MAX_CELLS, without_huge
from channels.telegram.styled import Entity, Styled, from_body
from tests.unit.channels.telegram.updates import BOT, decoded, message, new
from zeroclaw import Command, Continues

MARKUP = st.lists(
    st.sampled_from(
        (
            *("a", "b c", "\n", "\n\n", "*", "**", "_", "`", "```", "||", "<", ">", "> ", "> > "),
            *("[x]", "(https://e.x)", "(javascript:x)", "- ", "1. ", "# ", "| a |\n|--|\n", "$"),
            *("\\", "&lt;", "👩🏽‍🚀", "\u202e", "&#x202e;", "\ud83d", "\x00", "\ue000", "    "),
            *("~~", "![i]", "\r\n"),
        )
    ),
    max_size=30,
).map("".join)


def styled(text: str) -> Styled:
    return from_body(markdown(text).body)


@pytest.mark.slow
@given(MARKUP)
def test_offsets_lie_within_the_text_and_never_in_the_middle_of_a_character(text: str) -> None:
    """Telegram refuses a message with any other entity; S2-06."""
    message = styled(text)
    edges = {units(message.text[:at]) for at in range(len(message.text) + 1)}
    assert [
        entity
        for entity in message.entities
        if {entity["offset"], entity["offset"] + entity["length"]} - edges
    ] == []
    assert [entity for entity in message.entities if entity["length"] <= 0] == []
    message.text.encode()
    assert measure(markdown(text)) == units(message.text)


@pytest.mark.slow
@given(MARKUP)
def test_quotes_are_never_nested(text: str) -> None:
    quotes = [entity for entity in styled(text).entities if entity["type"] == "blockquote"]
    for first, second in pairwise(quotes):
        assert first["offset"] + first["length"] <= second["offset"]


@pytest.mark.parametrize(
    ("text", "shown", "entities"),
    [
        ("*hello*", "hello", [Entity(type="italic", offset=0, length=5)]),
        ("👩🏽‍🚀 **b**", "👩🏽‍🚀 b", [Entity(type="bold", offset=8, length=1)]),
        (
            "```python\nx < 1\n```",
            "x < 1",
            [Entity(type="pre", offset=0, length=5, language="python")],
        ),
        (
            "[l](https://e.x/?a=<b)",
            "l",
            [Entity(type="text_link", offset=0, length=1, url="https://e.x/?a=<b")],
        ),
        ("> a\n> > b", "a\nb", [Entity(type="blockquote", offset=0, length=3)]),
        ("- a\n- b", "• a\n• b", []),
        ("- [ ] a\n- [x] ☑", "☐ a\n✅ ☑", []),
        ("a < b <i>c</i> <script>x</script>", "a < b <i>c</i> <script>x</script>", []),
        ("<!-- all of it -->", "<!-- all of it -->", []),
        (r"[p](tg://user?id=7) ![](a.png) \[a](b)", "[p](tg://user?id=7) ![](a.png) [a](b)", []),
        (
            "[**a**](mailto:b@c.example)",
            "[a](mailto:b@c.example)",
            [Entity(type="bold", offset=1, length=1)],
        ),
        (
            "_see https://e.x/p/__init__.py_",
            "see https://e.x/p/__init__.py",
            [Entity(type="italic", offset=0, length=29)],
        ),
        (r"https://e.x/a\_b (https://e.x/_a_)", "https://e.x/a_b (https://e.x/_a_)", []),
        (
            "_https://e.x/_。 __https://e.x/__—a\uff0c_b_\uff0c",
            "https://e.x/。 https://e.x/—a\uff0cb\uff0c",
            [
                Entity(type="italic", offset=0, length=12),
                Entity(type="bold", offset=14, length=12),
                Entity(type="italic", offset=29, length=1),
            ],
        ),
        (
            r"_[a](https://e.x/a\_b)_'s",
            "a's",
            [
                Entity(type="text_link", offset=0, length=1, url="https://e.x/a_b"),
                Entity(type="italic", offset=0, length=1),
            ],
        ),
        ("a\u202eb &#x202e;c\x00\r\nd", "ab \ufffdc\nd", []),
        ("[]()", "[]()", []),
        ("", "", []),
    ],
)
def test_markdown_looks_as_telegram_can_show_it(
    text: str, shown: str, entities: list[Entity]
) -> None:
    assert styled(text) == Styled(text=shown, entities=tuple(entities))
    assert markdown(text).plain == shown


def test_an_underlined_heading_is_bold_too() -> None:
    kinds = {entity["type"] for entity in styled("# Title\n\ntext").entities}
    assert kinds == {"bold", "underline"}


@given(st.text(), st.integers(min_value=1, max_value=20))
def test_a_cut_text_fits(text: str, limit: int) -> None:
    assert units(cut(text, limit)) <= limit
    assert cut(text, units(text)) == text


NESTED = r"\sqrt{" * 60 + "x" + "}" * 60


@pytest.mark.parametrize(("links", "fits"), [(100, True), (101, False)])
def test_a_text_with_more_styles_than_telegram_keeps_is_too_long(links: int, *, fits: bool) -> None:
    """Telegram drops further ones, and with a link where it leads."""
    text = "".join(f"[{number}](https://a.example/{number})\n" for number in range(links))
    assert (measure(markdown(text)) <= FULL) is fits


@pytest.mark.parametrize(
    "formula",
    [f"${NESTED}$", rf"\({NESTED}\)", rf"\[{NESTED}\]", "$$" + r"\frac{" * 60 + "$$", "$$" * 2_000],
)
def test_a_formula_is_shown_literally(formula: str) -> None:
    """The library's own parsing doubles its time with each nested root (P9)."""
    shown = markdown(formula).plain
    assert shown == re.sub(r"\\([()\[\]])", r"\1", formula)


@pytest.mark.parametrize("opener", ["> ", ">", "- ", "* ", "1. ", "- > "])
def test_absurd_nesting_is_shown_literally(opener: str) -> None:
    """It takes the library seconds, quadratic in the number of levels (P9)."""
    text = f"**b**\n\n{opener * 4_000}a"
    assert styled(text) == Styled(text=text)
    assert styled(f"{opener * 10}**a**").entities


def test_prices_and_variables_keep_their_signs() -> None:
    assert markdown("$x$ costs $5, `$HOME`").plain == "$x$ costs $5, $HOME"


def test_a_text_with_every_private_use_character_is_shown() -> None:
    """No placeholder is left for text hidden from the library; that does no harm."""
    every = "".join(map(chr, range(0xE000, 0xF900)))
    assert markdown(every).plain.endswith(every[6:])


@pytest.mark.parametrize("block", ["```\n", "~~~\n", "# a\n", "  ## a\n"])
def test_a_text_of_only_empty_blocks_stays_literal(
    monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    """The library takes a second for a few thousand of them, on the event loop, so it is not
    used."""
    monkeypatch.setattr(render, "_parsed", None)
    text = block * (MAX_BLOCKS + 1)
    assert markdown(text).plain == text.strip()


# --- a text with a table has a rich form, without hostile markup ------------------------

TABLE = "| a | b |\n|--|--|\n| 1 | 2 |\n"
RICH = st.lists(
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
    return [nested_tag for inner in tag.tags for nested_tag in (inner, *tags(inner))]


@pytest.mark.slow
@given(RICH)
def test_any_rich_form_is_valid_and_has_only_listed_tags(text: str) -> None:
    """Otherwise there is none; the other forms stay the same. S2-06."""
    text = f"{TABLE}\n{text}"
    rich_form = form(text)
    for tag in tags(parse(rich_form)):
        assert tag.name in rich.TAGS
        assert {*tag.attributes} <= {"href", "bordered", "start", "align", "class"}
        assert tag.attributes.get("href", "https://").startswith(("http://", "https://"))
    assert not {*"\x00\u202e\ud83d"} & {*rich_form}
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
            "<table bordered><tr><th>x</th></tr><tr><td>[p](tg://user?id=7)</td></tr></table>",
        ),
        (
            '|x|\n|-|\n\n![i](https://e.x/i"g) ![j](file:///etc/passwd)',
            "<table bordered><tr><th>x</th></tr></table>"
            '<p><a href="https://e.x/i&quot;g">🖼 i</a> ![j](file:///etc/passwd)</p>',
        ),
        (
            "|x|\n|-|\n\n[![i](https://e.x/i.png)](https://e.x) [![j](j.png)](https://e.x)",
            '<table bordered><tr><th>x</th></tr></table><p><a href="https://e.x">🖼 i</a>'
            ' <a href="https://e.x">j</a></p>',
        ),
        (
            '|x|\n|-|\n\n3. a\n   - b\n\n```py\nx < 1\n```\n\n``` a"b\ny\n```\n\n---\n',
            '<table bordered><tr><th>x</th></tr></table><ol start="3"><li>a<ul><li>b</li></ul></li>'
            '</ol><pre><code class="language-py">x &lt; 1</code></pre><pre>y</pre><hr/>',
        ),
        (
            "|x|\n|-|\n\n```math\n\\sqrt{x}\n```\n\n$x$ costs $5\n\n- [ ] ☑",
            "<table bordered><tr><th>x</th></tr></table><pre>\\sqrt{x}</pre><p>$x$ costs $5</p>"
            "<ul><li>☐ ☑</li></ul>",
        ),
    ],
)
def test_a_text_with_a_table_has_a_rich_form(text: str, html: str) -> None:
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
def test_text_that_entities_can_show_has_no_rich_form(text: str) -> None:
    """Every app shows it, and people can copy it."""
    assert form(text) == ""


def test_a_text_that_is_too_long_for_a_message_needs_no_rich_form() -> None:
    text = "| a |\n|---|\n| " + "<" * 9000 + " |"
    assert rich.may_need(text)
    assert form(text) == ""


@pytest.mark.parametrize("formula", [f"${NESTED}$", f"$$\n{NESTED}\n$$", f"```math\n{NESTED}\n```"])
def test_a_formula_beside_a_table_is_shown_as_it_was_written(formula: str) -> None:
    """No library or app has to compute it (P9)."""
    rich_form = form(f"{TABLE}\n{formula}\n")
    assert NESTED in rich_form
    assert "math" not in rich_form


def test_unclosed_tags_are_closed() -> None:
    """In case the library ever forgets one."""
    filtered = rich.TagFilter(str)
    filtered.feed("<table><tr><td><b>a</i></table><p>x")
    filtered.close()
    assert filtered.written() == "<table bordered><tr><td><b>a</b></td></tr></table><p>x</p>"


# --- no table takes seconds to draw ---------------------------------------------------------------

RULE = "|-|-|"
MANY_COLUMNS = "\n".join(("|a" * 600, "|-" * 600, *["||"] * 400))
LONG_CELL = "\n".join(("|a|b|", RULE, f"|{'ä' * 3000}|b|", *["|c|d|"] * 800))
MANY_TABLES = "\n\n".join(["\n".join(("|a" * 30, "|-" * 30, *["|b|"] * 30))] * 20)


@pytest.mark.parametrize("text", [MANY_COLUMNS, LONG_CELL], ids=["columns", "long cell"])
@pytest.mark.parametrize("before", ["", "> "])
def test_a_table_of_millions_of_characters_is_shown_literally(text: str, before: str) -> None:
    """The library pads each row to the widest one; 4,000 characters took ten seconds (P9)."""
    written = "\n".join(f"{before}{line}" for line in text.split("\n"))
    message = from_body(markdown(written, richly=True).body)
    assert message.text.replace("\n\n", "\n") == text
    assert message.rich == ""


def test_many_tables_are_drawn_up_to_a_total() -> None:
    shown = markdown(MANY_TABLES).plain
    assert 0 < shown.count("-+-") // 29 <= MAX_CELLS // (31 * 32)
    assert shown.count("|-|-") > 0
    assert len(shown) <= 4 * len(MANY_TABLES)


@pytest.mark.parametrize(
    "text",
    [
        f"|a|b|\n{RULE}\n" + "| some words | more of them |\n" * 150,
        f"|a|b|\n{RULE}\n|{'c' * 1000}|d|",
        "\n".join(["|" + "cell|" * 20, "|" + "-|" * 20, *["|" + "cell|" * 20] * 60]),
    ],
    ids=["long", "wide", "columns"],
)
def test_ordinary_tables_are_drawn(text: str) -> None:
    assert without_huge(text, "!") == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("|run|does|\n|-|-|\n|`a | b`|pipes|", {"`a | b`", "pipes"}),
        ("|run|\n|-|\n|b|c|", {"|run|", "|b|c|"}),
        ("> |run|\n> |-|\n> |b|\n> |c|d|", {"|run|", "|c|d|"}),
        ("[docs][1]\n\n[1]: https://a.example", {"[docs][1]", "[1]: https://a.example"}),
        ("```\n[1]: x\n`a | b`\n```", {"[1]: x", "`a | b`"}),
    ],
)
def test_extra_cells_and_unused_links_are_shown_too(text: str, words: set[str]) -> None:
    """The library drops cells beyond a table's head, and unused link definitions."""
    message = from_body(markdown(text, richly=True).body)
    assert {word for word in words if word.strip("`") not in message.text} == set()
    assert {word for word in words if message.rich and word.strip("`") not in message.rich} == set()


def test_a_table_whose_rows_have_places_is_one() -> None:
    escaped = r"|a|b|\n|-|-|\n|`c \| d`|e|".replace(r"\n", "\n")
    assert "<code>c | d</code>" in form(f"{escaped}\n```sh\nx | y | z\n```")


def test_only_the_rule_of_a_huge_table_is_changed() -> None:
    small = f"|a|b|\n{RULE}\n|c|d|"
    shortened = without_huge(f"{small}\n\n{LONG_CELL}\n\n{small}", "!")
    assert shortened.startswith(f"{small}\n\n|a|b|\n!-!-!\n|ä")
    assert shortened.endswith(small)
    assert shortened.count("!") == RULE.count("|")


# --- messages that probably continue in the next one ---------------------------------------------

PHOTO = {"photo": [{"file_id": "f", "width": 9, "height": 9}]}


@pytest.mark.parametrize(
    ("text", "continues"),
    [
        ("hello", None),
        ("x" * HALF, None),
        ("x" * (HALF + 1), Continues(within_s=HALF_S, room=HALF - 1)),
        ("x" * NEARLY_FULL, Continues(within_s=HALF_S, room=300)),
        ("x" * (NEARLY_FULL + 1), Continues(within_s=FULL_S, room=299)),
        ("x" * FULL, Continues(within_s=FULL_S)),
        # Telegram counts UTF-16 units, of which an emoji has two.
        ("\N{GRINNING FACE}" * (HALF // 2), None),
        ("\N{GRINNING FACE}" * (FULL // 2), Continues(within_s=FULL_S)),
        # More than Telegram takes, as another server may.
        ("x" * (FULL + 5), Continues(within_s=FULL_S)),
    ],
)
def test_only_a_long_text_continues(text: str, continues: Continues | None) -> None:
    """The wait grows with the length; short texts do not wait."""
    assert decoded(new(text=text)).continues == continues


def test_a_picture_of_an_album_continues() -> None:
    """With a caption, and forwarded too."""
    album = decoded(new(media_group_id="7", caption="two", **PHOTO))
    assert album.continues == Continues(within_s=ALBUM_S, group="7")
    origin = {"sender_user_name": "Eve"}
    passed_on = decoded(new(media_group_id="7", forward_origin=origin, **PHOTO))
    assert passed_on.continues == Continues(
        within_s=ALBUM_S, group="7", lead="[forwarded from Eve]\n"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"forward_origin": {"sender_user_name": "Eve"}, "text": "x" * FULL},
        {"via_bot": BOT, "text": "x" * FULL},
    ],
)
def test_text_that_its_sender_did_not_write_is_separate(fields: dict[str, object]) -> None:
    """It neither continues nor is it the rest of another."""
    envelope = decoded(new(**fields))
    assert envelope.continues is None
    assert envelope.alone
    assert not decoded(new(text="hello")).alone


def test_a_caption_does_not_continue() -> None:
    assert decoded(new(caption="x" * FULL, **PHOTO)).continues is None


def test_a_long_text_that_begins_like_a_command_continues() -> None:
    """The envelope has it as written, and how it continues."""
    text = "/Users are\nmany " + "x" * 4000
    command = decoded(new(text=text))
    assert command.body == Command(name="users", rest=text[len("/Users ") :])
    assert command.verbatim == text
    assert command.continues is not None
    assert decoded(new(text="hello")).verbatim == ""


def test_each_piece_carries_the_replied_message() -> None:
    """Each piece of a reply carries it, and it is read once."""
    answered = message(message_id=2, text="why?", **{"from": BOT})
    envelope = decoded(new(text="x" * FULL, reply_to_message=answered))
    assert envelope.continues is not None
    assert envelope.continues.lead == "[in reply to what you wrote:]\n> why?\n\n"
