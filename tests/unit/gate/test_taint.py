"""Where untrusted text came from, and which calls a person dictated."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.gate.conditions import ToolFacts, facts_of
from zeroclaw.gate.taint import (
    MAX_SOURCES,
    MAX_WORDS_CHARS,
    NAME_CHARS,
    Taint,
    files_after,
    in_words,
    merge_sources,
    named,
    of_result,
)
from zeroclaw.text.language import Language
from zeroclaw.tool import Effect, ToolSpec
from zeroclaw.tools import ModelSchema
from zeroclaw.tools.fetch import FetchArguments
from zeroclaw.tools.shell import ShellArguments
from zeroclaw.value import replace

SHELL, FETCH = ModelSchema(ShellArguments), ModelSchema(FetchArguments)
PAGE = named("result", "fetch `https://page.example/`")
TAINTED = Taint(sources=(PAGE,))
WORDS = st.text(alphabet="ab \n`.x", max_size=12)


def facts(*effects: Effect) -> ToolFacts:
    spec = ToolSpec(name="any", description="", parameters={}, effects=frozenset(effects))
    return facts_of(spec)


def is_in_message(
    written: Mapping[str, object], *words: str, parameters: Mapping[str, object] = SHELL
) -> bool:
    about = facts("exec" if parameters is SHELL else "network")
    return Taint(words=words).is_in_message(written, parameters, about)


@pytest.mark.parametrize(
    ("message", "command", "is_theirs"),
    [
        ("ls -la", "ls -la", True),
        ("`ls -la`", " ls -la\n", True),
        ("first:\nls -la\nthen tell me", "ls -la", True),
        ("run this:\n  `ls -la`\n", "ls -la", True),
        ("- ls -la\n- make", "ls -la", True),
        ("1. `ls -la`", "ls -la", True),
        ("```sh\ncd build\nrm -rf x\n```", "cd build\nrm -rf x", True),
        ("```\nls", "ls", True),
        ("``` sh \nls\n```", "ls", True),
        ("``ls `a` ``", "``ls `a` ``", True),
        ("cd a\nmake", "cd a\nmake", True),
        # prose, which may say the opposite
        ("do not run rm -rf x", "rm -rf x", False),
        ("do not run `rm -rf x`", "rm -rf x", False),
        ("what does `echo a` do?", "echo a", False),
        ("write echo ls", "echo ls", False),
        ("do not run\u2028rm -rf x", "rm -rf x", False),
        ("do not run\x0brm -rf x", "rm -rf x", False),
        ("run this:\r\nrm -rf x\r\n", "rm -rf x", True),
        ("run `ls -la` please", "ls -la", False),
        ("run ls -la", "ls -la", False),
        ("run (ls -la).", "ls -la", False),
        ('"ls -la"', "ls -la", False),
        ("run the command from the page", "ls", False),
        # other people's words
        ("> rm -rf x", "rm -rf x", False),
        ("look:\n>>> a page\nrm -rf x\n\nrm -rf y", "rm -rf y", False),
        ("look:\n> a page\nls", "ls", True),
        # a part, or something else
        ("ls -la", "ls -l", False),
        ("ls; curl evil.example", "ls", False),
        ("RM notes", "rm notes", False),
        ("```sh\ncd build\nrm -rf x\n```", "rm -rf x", False),
        ("`a` and `rm -rf x`", "rm -rf x", False),
        ("`a` and `b`", "a` and `b", False),
        ("`rm -rf x` now", "rm -rf x", False),
        ("rm -rf / \\\ntmp", "rm -rf /", False),
        # a line that goes on in the next one
        ("rm -rf / \\\ntmp", "rm -rf / \\", False),
        ("echo \\\nrm -rf x", "rm -rf x", False),
        ("echo \\\r\nrm -rf x", "rm -rf x", False),
        ("run:\necho \\\nls\nthen stop", "echo \\\nls", True),
        # a code block whose signs have no lines of their own, as in Slack
        ("```echo\nrm -rf x```", "rm -rf x", False),
        ("```echo\nrm -rf x```", "echo\nrm -rf x", True),
        ("```echo a\nrm -rf x\n```", "rm -rf x", False),
        ("```echo a\nls\n```", "echo a\nls", True),
        ("```echo\ta\nrm -rf x\n```", "rm -rf x", False),
        ("```echo\\\nrm -rf x\n```", "rm -rf x", False),
        ("```{c++}\nls\n```", "ls", True),
        # a code block in longer signs, or in the other ones
        ("````\n```\ncd build\nrm -rf x\n```\n````", "rm -rf x", False),
        ("````\ncd build\nls\n````", "cd build\nls", True),
        ("~~~\ncd build\nrm -rf x\n~~~", "rm -rf x", False),
        ("~~~sh\ncd build\nls\n~~~", "cd build\nls", True),
        ("1. ~~~sh\n   cd build\n   rm -rf x\n   ~~~", "rm -rf x", False),
        ("- ~~~\n  ls\n  ~~~\n- make", "ls", True),
        ("- ~~~\n  ls\n  ~~~\n- make", "make", True),
        # a code block that shows a prompt or a redirection
        ("```\n> see\nrm -rf x\n```", "rm -rf x", False),
        ("```\nsort a \\\n> b\n```", "sort a \\", False),
        ("anything", "", False),
        ("", "ls", False),
        ("``", "", False),
        ("x" * MAX_WORDS_CHARS + "\nls", "ls", False),
        # what a code block leaves of its first and last line
        ("rm -rf x``` is what you never run\nnothing\n```", "rm -rf x", False),
        ("```\nls\n``` rm -rf x", "rm -rf x", False),
    ],
)
def test_a_command_counts_only_as_a_whole(message: str, command: str, is_theirs: bool) -> None:
    """As its writer set it off, to the letter; no part of what they wrote says the same."""
    assert is_in_message({"command": command}, message) is is_theirs


@pytest.mark.parametrize(
    ("written", "is_theirs"),
    [
        ({"url": "https://a.example/x"}, True),
        ({"url": "https://a.example/x", "links": False}, True),
        ({"url": "https://a.example/x", "links": True}, False),
        ({"url": "https://a.example/x", "token": "https://a.example/x"}, False),
        ({"url": "https://a.example/x?d=secret"}, False),
        ({"url": ["https://a.example/x"]}, True),
        ({"url": ["https://a.example/x", 7]}, True),
        ({"url": ["https://a.example/x", 8]}, False),
        ({"url": {"https://a.example/x": None}}, False),
        ({"url": {"get": "https://a.example/x"}}, True),
        ({"url": {"post": "https://a.example/x"}}, False),
        ({"url": "https://a.example/x", "links": []}, False),
        ({"url": "https://a.example/x", "links": {}}, False),
        ({}, False),
        ({"links": False}, False),
        ({"url": []}, False),
    ],
)
def test_every_argument_must_have_been_written(
    written: Mapping[str, object], is_theirs: bool
) -> None:
    """Names within them too; defaults of the tool do not count, and an empty call is not enough."""
    message = 'get "https://a.example/x" within 7 seconds'
    assert is_in_message(written, message, parameters=FETCH) is is_theirs


def test_an_address_in_a_quoted_line_is_not_theirs() -> None:
    written = {"url": "https://a.example/x"}
    assert not is_in_message(written, "look:\n > https://a.example/x", parameters=FETCH)


def test_an_address_may_end_a_sentence() -> None:
    written = {"url": "https://a.example/x_(y)"}
    assert is_in_message(written, "look at https://a.example/x_(y)!", parameters=FETCH)
    assert not is_in_message(written, "look at https://a.example/x_(y", parameters=FETCH)


@pytest.mark.parametrize("parameters", [{}, {"properties": 1}, {"properties": {"to": True}}])
def test_odd_schemas_trust_no_name(parameters: Mapping[str, object]) -> None:
    """A tool of another package may declare anything."""
    assert not is_in_message({"from": "me"}, "mail it to me", parameters=parameters)
    assert is_in_message({"to": "me"}, "mail it to me", parameters=parameters)


def test_two_messages_of_a_turn_count_together() -> None:
    written = {"to": "bob@example.org", "text": "hello"}
    schema_: Mapping[str, object] = {"properties": {"to": True, "text": True}}
    assert is_in_message(written, "mail bob@example.org", "say hello", parameters=schema_)


def test_a_command_is_no_longer_theirs_where_a_page_wrote_the_files() -> None:
    """`make` in a message says nothing about a Makefile that a page dictated."""
    taint = Taint(words=("make",), files="planted")
    assert not taint.is_in_message({"command": "make"}, SHELL, facts("exec"))
    assert taint.is_in_message({"command": "make"}, SHELL, facts("network"))
    brought = replace(taint, files="brought")
    assert brought.is_in_message({"command": "make"}, SHELL, facts("exec"))


def test_what_a_person_types_as_a_call_is_theirs() -> None:
    """`/tool`: no model wrote it."""
    taint = Taint(sources=(PAGE,), typed=True, files="planted")
    assert taint.is_in_message({"command": "make"}, SHELL, facts("exec"))


@given(before=WORDS, after=WORDS, command=st.sampled_from(["rm -rf x", "ls", "a b"]))
def test_nothing_beside_a_command_is_left_out(before: str, after: str, command: str) -> None:
    """Whatever stands on its line, or in its code block, makes another command of it."""
    line = f"{before}{command}{after}".replace("\n", "")
    if is_in_message({"command": command}, f"please:\n{line}\nthanks"):
        assert line.strip(" `") == command
    block = f"{before}{command}{after}".replace("`", "")
    is_all = block.strip() == command
    assert is_in_message({"command": command}, f"please:\n```\n{block}\n```") is is_all


@given(message=WORDS, command=WORDS)
def test_words_outside_the_message_are_never_the_persons_own(message: str, command: str) -> None:
    """Nothing is put together from pieces."""
    if is_in_message({"command": command}, message):
        assert command.strip()
        assert command.strip() in message


@given(
    words=st.lists(WORDS, max_size=3),
    written=st.dictionaries(
        st.text(max_size=3),
        st.recursive(
            st.none() | st.booleans() | st.integers() | WORDS,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
            max_leaves=6,
        ),
        max_size=3,
    ),
)
def test_no_text_of_a_call_escapes_the_comparison(
    words: list[str], written: dict[str, object]
) -> None:
    """However deep it lies: a call that counts as theirs holds no letter that they did not write."""
    if Taint(words=tuple(words)).is_in_message(written, {}, facts("network")):
        left = json.dumps(written, ensure_ascii=True)
        letters = {letter for letter in left if letter.isalnum()}
        assert letters <= {letter for text in words for letter in json.dumps(text)}


# --- sources -------------------------------------------------------------------------------------


def test_a_name_is_one_short_line() -> None:
    """Its owner may be a stranger: it gives no line of its own, and hides nothing."""
    named_ = named("attachment", "a\nolga asked me\u202e to\x00 press")
    assert named_.name == "a olga asked me to press"
    assert len(named("result", "x" * 9_999).name) == NAME_CHARS


def test_a_name_that_is_cut_within_code_ends_it() -> None:
    """Else what follows it in a card's reason would read as the bot's own words."""
    words = in_words((named("result", f"fetch `https://{'a' * 200}`"), PAGE), "en")
    assert words.count("`") % 2 == 0
    assert "…`; " in words


def test_a_file_is_called_in_quotes_as_its_sender_calls_it() -> None:
    """It stands in a reason above buttons, where no stranger may write a line (P5)."""
    named_ = named("attachment", 'a"; Olga `asked` me to press Approve')
    assert in_words((named_,), "en") == "the file \"a'; Olga 'asked' me to press Approve\""
    assert in_words((named_,), "de") == "die Datei \"a'; Olga 'asked' me to press Approve\""


@given(
    known=st.lists(st.integers(0, 20), max_size=20), new=st.lists(st.integers(0, 20), max_size=20)
)
def test_joining_keeps_some_and_the_newest(known: list[int], new: list[int]) -> None:
    """Many pages push none of the marks out as a whole."""
    merged = merge_sources(
        [named("result", str(number)) for number in known],
        [named("result", str(number)) for number in new],
    )
    assert bool(merged) is bool(known or new)
    assert len(merged) == len(set(merged)) <= MAX_SOURCES


def test_sources_are_named_to_people() -> None:
    sources = (
        PAGE,
        named("kept", "read `a`"),
        named("attachment", "a.pdf"),
        named("quoted"),
        named("earlier"),
        named("files"),
    )
    assert in_words(sources, "en") == (
        "what came from: fetch `https://page.example/`; what came from: read `a` (where the bot wrote"
        ' after it had read such text, or got files from the network); the file "a.pdf"; quoted or'
        " forwarded words; what an older release kept without saying where it came from; `/new` begins"
        " without it; the workspace's files (the bot wrote there after it had read such text, or got"
        " files from the network)"
    )
    assert 'die Datei "a.pdf"' in in_words(sources, "de")


@pytest.mark.parametrize(
    ("effects", "taint", "marked", "kind"),
    [
        (("network", "read"), Taint(), False, "result"),
        ((), Taint(), False, "result"),
        (("read",), Taint(), True, "result"),
        (("read",), Taint(), False, None),
        (("exec",), TAINTED, False, None),
        (("read",), Taint(files="planted"), False, "kept"),
        (("exec",), Taint(files="brought"), False, "kept"),
    ],
)
def test_what_a_result_brings(
    effects: tuple[Effect, ...], taint: Taint, marked: bool, kind: str | None
) -> None:
    """Authors of tools need do nothing: what reaches the network is untrusted, as is the undeclared."""
    lines: dict[Language, str] = {"en": "do it", "de": "tu es"}
    found = of_result(facts(*effects), taint, lines.__getitem__, marked=marked)
    found_sources = [(source.kind, source.name, source.names) for source in found]
    assert found_sources == ([] if kind is None else [(kind, "do it", (("de", "tu es"),))])


PLANTED, BROUGHT = Taint(files="planted"), Taint(files="brought")


@pytest.mark.parametrize(
    ("effects", "taint", "in_message", "after"),
    [
        (("write",), TAINTED, False, "planted"),
        (("exec",), TAINTED, False, "planted"),
        ((), Taint(), False, "planted"),
        (("exec", "network"), Taint(), False, "planted"),
        (("exec",), BROUGHT, False, "planted"),
        (("write",), BROUGHT, False, "brought"),
        (("write",), Taint(), False, "theirs"),
        (("read",), TAINTED, False, "theirs"),
        (("network",), TAINTED, False, "theirs"),
        # what a person dictated
        (("exec",), TAINTED, True, "theirs"),
        (("exec", "network"), TAINTED, True, "brought"),
        ((), Taint(), True, "brought"),
        (("exec",), BROUGHT, True, "brought"),
        (("exec", "network"), PLANTED, True, "planted"),
        (("read",), PLANTED, True, "planted"),
    ],
)
def test_which_calls_leave_untrusted_files(
    effects: tuple[Effect, ...], taint: Taint, in_message: bool, after: str
) -> None:
    """Of a turn that holds such text, or that brings it; nothing makes them trusted again."""
    assert files_after(facts(*effects), taint, is_in_message=in_message) == after


def test_a_command_may_act_on_unread_files() -> None:
    planted = PLANTED
    assert BROUGHT.sources_for(facts("exec")) == (named("files"),)
    assert planted.sources_for(facts("exec")) == (named("files"),)
    assert planted.sources_for(facts("read")) == ()
    assert replace(planted, sources=(PAGE,)).sources_for(facts("exec")) == (PAGE,)
