"""MarkdownV2 is parsed as Telegram parses it, and refused where and how Telegram refuses it."""

import pytest

from channels.telegram.emulator.markdown_v2 import parse
from channels.telegram.emulator.refusals import Refused

Marks = list[tuple[str, int, int]]


def marks(source: str) -> tuple[str, Marks]:
    text, entities = parse(source)
    return text, [(entity.type, entity.offset, entity.length) for entity in entities]


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("plain", "plain", []),
        ("*b*", "b", [("bold", 0, 1)]),
        ("_i_", "i", [("italic", 0, 1)]),
        ("__u__", "u", [("underline", 0, 1)]),
        ("~s~", "s", [("strikethrough", 0, 1)]),
        ("||p||", "p", [("spoiler", 0, 1)]),
        ("`c*d`", "c*d", [("code", 0, 3)]),
        ("`a\\`b`", "a`b", [("code", 0, 3)]),
        ("```\na*b\n```", "a*b\n", [("pre", 0, 4)]),
        ("```py\na\n```", "a\n", [("pre", 0, 2)]),
        ("```py```", "py", [("pre", 0, 2)]),
        ("```\r\na```", "a", [("pre", 0, 1)]),
        ("```a `b` c```", " `b` c", [("pre", 0, 6)]),
        ("*a _b_ c*", "a b c", [("italic", 2, 1), ("bold", 0, 5)]),
        ("_a__b__c_", "abc", [("underline", 1, 1), ("italic", 0, 3)]),
        ("😀*😀*", "😀😀", [("bold", 2, 2)]),
        (r"\*a\. \_ \\", "*a. _ \\", []),
        ("\\é", "\\é", []),
        (">a\n>b\nc", "a\nb\nc", [("blockquote", 0, 3)]),
        (">a", "a", [("blockquote", 0, 1)]),
        (">a\n>b||", "a\nb", [("expandable_blockquote", 0, 3)]),
        (">a||\nb", "a\nb", [("expandable_blockquote", 0, 1)]),
        (">||a||b", "ab", [("spoiler", 0, 1), ("blockquote", 0, 2)]),
        ("a\nb", "a\nb", []),
    ],
)
def test_marks_are_read(source: str, text: str, expected: Marks) -> None:
    assert marks(source) == (text, expected)


def test_the_language_of_code_is_kept() -> None:
    _, entities = parse("```py\na```")
    assert entities[0].extra == (("language", "py"),)


@pytest.mark.parametrize(
    ("source", "text", "kind", "extra"),
    [
        ("[a](https://x.org)", "a", "text_link", (("url", "https://x.org/"),)),
        ("[a](x.org/b\\)c)", "a", "text_link", (("url", "http://x.org/b)c"),)),
        ("[x\\.org]", "x.org", "text_link", (("url", "http://x.org/"),)),
        ("![👍](tg://emoji?id=5)", "👍", "custom_emoji", (("custom_emoji_id", "5"),)),
        (
            "![noon](tg://time?unix=7&format=t)",
            "noon",
            "date_time",
            (("date_time_format", "t"), ("unix_time", 7)),
        ),
        (
            "[Ann](tg://user?id=5)",
            "Ann",
            "text_mention",
            (("user", {"id": 5, "is_bot": False, "first_name": "5"}),),
        ),
    ],
)
def test_links_are_read(source: str, text: str, kind: str, extra: object) -> None:
    shown, (entity,) = parse(source)
    assert (shown, entity.type, entity.extra) == (text, kind, extra)


@pytest.mark.parametrize(
    "source", ["[a](nowhere)", "[](x)", "[a](mailto:x@y\\.z)", "[a](http://[)", "[a](irc://x.org)"]
)
def test_a_link_to_nowhere_is_plain_text(source: str) -> None:
    _, entities = parse(source)
    assert entities == ()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("*a", "Can't find end of Bold entity at byte offset 0"),
        ("é _a", "Can't find end of Italic entity at byte offset 3"),
        ("__a", "Can't find end of Underline entity at byte offset 0"),
        ("~a", "Can't find end of Strikethrough entity at byte offset 0"),
        ("||a", "Can't find end of Spoiler entity at byte offset 0"),
        ("`a", "Can't find end of Code entity at byte offset 0"),
        ("```a", "Can't find end of Pre entity at byte offset 0"),
        ("```py\na", "Can't find end of PreCode entity at byte offset 0"),
        ("[a", "Can't find end of TextUrl entity at byte offset 0"),
        ("![a", "Can't find end of CustomEmoji entity at byte offset 0"),
        (">*a\nb", "Can't find end of Bold entity at byte offset 1"),
        (">*a", "Can't find end of Bold entity at byte offset 1"),
        ("[a](x.org", "Can't find end of a URL at byte offset 4"),
        ("![a](x.org)", "Custom emoji entity must contain a tg://emoji URL"),
        ("![a](tg://else)", "Custom emoji entity must contain a tg://emoji URL"),
        ("![a](http://[)", "Custom emoji entity must contain a tg://emoji URL"),
        ("![a] b", "Custom emoji entity must contain a tg://emoji URL"),
        *(
            (
                f"a {character} b",
                f"Character '{character}' is reserved and must be escaped with the preceding '\\'",
            )
            for character in "])(>#+-=|{}.!"
        ),
    ],
)
def test_an_error_names_its_place(source: str, reason: str) -> None:
    with pytest.raises(Refused) as raised:
        parse(source)
    assert raised.value.description == f"Bad Request: can't parse entities: {reason}"
