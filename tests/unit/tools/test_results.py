"""Reading on in a result that was cut: by offset, by word, and only in one's own conversation."""

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import SupportsIndex

import pytest

from tests.fakes.loop_steps import loop_steps
from tests.fakes.manual_clock import ManualClock
from tests.fakes.plain_tool import tool_context
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.tool import Tool, ToolOutput, line_of
from zeroclaw.tools.results import BLOCK_CHARS, WholeResult, tools
from zeroclaw.value import replace

CONTEXT = tool_context(Path("/w"))
LINES = "\n".join(f"line {number}" for number in range(1, 101))


@dataclass(kw_only=True)
class Shelf:
    """Texts by conversation and id, and ids whose text is gone."""

    texts: Mapping[tuple[str, str], str]
    gone: frozenset[tuple[str, str]] = field(default_factory=frozenset[tuple[str, str]])

    async def find(self, conversation: ConversationId, name: str) -> WholeResult | None:
        if (conversation, name) not in {*self.texts, *self.gone}:
            return None
        return WholeResult(text=self.texts.get((conversation, name)), trusted=True)


def tool(text: str = LINES, *, answer_chars: int = 1_000) -> Tool:
    """The tool over one kept text, `a`, of our conversation, and one, `b`, of another."""
    shelf = Shelf(
        texts={(CONTEXT.conversation, "a"): text, ("01OTHER", "b"): "theirs"},
        gone=frozenset({(str(CONTEXT.conversation), "g")}),
    )
    return tools(shelf.find, lambda: answer_chars)[0]


async def read(made: Tool, **arguments: object) -> ToolOutput:
    return await made.run(made.check({"id": "a", **arguments}), CONTEXT)


async def test_the_pieces_are_the_whole() -> None:
    """Each says where the next begins, and the last that it is the last."""
    text = "".join(chr(0x1F300 + number % 90) for number in range(1_800))
    made = tool(text)
    first, second, third = [
        (await read(made, offset=at)).text.partition(":\n") for at in (0, 700, 1_400)
    ]
    assert first[0] == "characters 0 to 700 of 1800; read on with offset 700"
    assert second[0] == "characters 700 to 1400 of 1800; read on with offset 1400"
    assert third[0] == "characters 1400 to 1800 of 1800; this is the end"
    assert first[2] + second[2] + third[2] == text


async def test_a_piece_is_as_long_as_it_was_asked_for() -> None:
    assert (await read(tool(), offset=5, limit=4)).text == (
        "characters 5 to 9 of 791; read on with offset 9:\n1\nli"
    )


async def test_an_empty_text_is_read_to_its_end() -> None:
    assert (await read(tool(""))).text == "characters 0 to 0 of 0; this is the end:\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"id": "x"}, "no result of this conversation is stored as `x`; a cut result names its id"),
        ({"id": "b"}, "no result of this conversation is stored as `b`; a cut result names its id"),
        ({"id": "g"}, "the whole text of `g` is no longer stored: make the call again"),
        ({"offset": 791}, "offset: 791 is past the end of 791 characters"),
    ],
)
async def test_a_result_that_can_not_be_read_is_reported_in_a_sentence(
    arguments: dict[str, object], sentence: str
) -> None:
    """Another conversation's id looks as if it didn't exist. S1-21."""
    output = await read(tool(), **arguments)
    assert (output.is_error, output.text) == (True, sentence)


async def test_another_conversation_reads_its_own() -> None:
    """And only that: what is read follows from where the call is made."""
    made = tool()
    theirs = replace(CONTEXT, conversation=ConversationId("01OTHER"))
    assert (await made.run(made.check({"id": "b"}), theirs)).text.endswith("theirs")
    assert (await made.run(made.check({"id": "a"}), theirs)).is_error
    assert await made.resources({"id": "a"}, theirs) == ("results:01OTHER",)


def test_a_piece_that_would_be_cut_again_is_refused() -> None:
    with pytest.raises(ToolArgumentsInvalid, match="limit: must be at most 700"):
        tool().check({"id": "a", "limit": 701})


async def test_a_word_is_shown_with_the_lines_around_it() -> None:
    """Case aside; each place once, with the offset to read on from."""
    assert (await read(tool(), word="LINE 50", lines=1)).text == (
        "[offset 383]\nline 49\nline 50\nline 51"
    )
    assert (await read(tool(), word="e 1\n", lines=0)).text == "[offset 3]\nline 1\nline 2"
    assert (await read(tool(), word="00", lines=2)).text == (
        "[offset 789]\nline 98\nline 99\nline 100"
    )


async def test_places_that_are_near_are_shown_once() -> None:
    shown = (await read(tool(), word="line 7", lines=0)).text
    assert shown.splitlines()[::2] == [f"[offset {at}]" for at in (42, *range(543, 623, 8))]
    assert (await read(tool("aaaa\nb"), word="a", lines=0)).text == "[offset 0]\naaaa"


async def test_a_long_line_is_cut_around_the_word() -> None:
    shown = (
        await read(tool("x" * 5_000 + "WORD" + "y" * 5_000, answer_chars=5_000), word="word")
    ).text
    assert shown == "[offset 5000]\n" + "x" * 400 + "WORD" + "y" * 400


async def test_a_search_goes_on_where_the_answer_was_full() -> None:
    """Every answer fits, and the offset that it names is the next place."""
    made = tool("\n".join(["needle " + "z" * 300] * 5))
    first = (await read(made, word="needle", lines=0)).text
    assert len(first) <= 1_000
    assert first.endswith("[there is more; go on with offset 616]")
    then = (await read(made, word="needle", lines=0, offset=616)).text
    assert then.startswith("[offset 616]\nneedle")


async def test_a_place_that_alone_is_too_long_shows_its_beginning() -> None:
    shown = (await read(tool("a" * 2_000), word="a" * 20, limit=30)).text
    assert shown.partition("[there")[0] == "[offset 0]\n" + "a" * 19 + "\n"


@pytest.mark.parametrize(
    ("text", "word", "at"), [("ΟΔΟΣ", "οδος", 0), ("οδός", "ΔΌΣ", 1), ("İZMİR", "izmir", 0)]
)
@pytest.mark.parametrize("before", [0, BLOCK_CHARS - 2, 3 * BLOCK_CHARS])
async def test_case_is_ignored_in_any_alphabet(text: str, word: str, at: int, before: int) -> None:
    """A letter that is longer in the other case moves no offset; a word may lie across blocks."""
    shown = (await read(tool("." * before + text), word=word, lines=0)).text
    assert shown.startswith(f"[offset {before + at}]\n")
    assert shown.endswith(text)


async def test_no_search_holds_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a word that is everywhere, nor of one that nearly is (P9)."""
    made = tool("needle\n" * 100_000, answer_chars=20_000)
    with loop_steps(monkeypatch) as steps:
        await asyncio.sleep(0)  # whole turns of the loop are counted
        await read(made, word="needle", lines=0)
        await read(made, word="needle\n" * 28 + "-", lines=0)
        await asyncio.sleep(0)
    assert steps.taken() <= (100, "")


async def test_a_conversation_reads_one_result_at_a_time() -> None:
    """Each is read whole, and a batch has many calls (P9)."""
    reading: list[str] = []

    async def find(conversation: ConversationId, name: str) -> WholeResult:
        reading.append(name)
        await asyncio.sleep(0)
        assert reading == [name]
        reading.clear()
        return WholeResult(text="text", trusted=True)

    (made,) = tools(find)
    async with asyncio.TaskGroup() as group:
        for name in "abcd":
            group.create_task(made.run(made.check({"id": name, "word": "t"}), CONTEXT))


async def test_a_search_that_was_given_up_keeps_its_thread_until_it_ends() -> None:
    """Otherwise a conversation that is stopped again and again would fill every thread (P9)."""
    go_on, started = threading.Event(), threading.Semaphore(0)
    searching: list[object] = []

    class SlowText(str):
        __slots__ = ()

        def __getitem__(self, place: SupportsIndex | slice, /) -> str:
            searching.append(place)
            started.release()
            go_on.wait()
            return super().__getitem__(place)

    made = tool(SlowText("text"))
    async with asyncio.TaskGroup() as group:
        given_up = group.create_task(read(made, word="t", lines=0))
        await asyncio.to_thread(started.acquire)
        given_up.cancel()
        later = group.create_task(read(made, word="t", lines=0))
        await ManualClock().settle()
        at_once = (given_up.cancelled(), later.done(), len(searching))
        go_on.set()
    assert at_once == (True, False, 1)
    assert later.result().text.startswith("[offset 0]")


async def test_a_word_that_is_not_there_is_reported() -> None:
    assert (await read(tool(), word="x")).text == "`x` is not in the 791 characters"
    assert (await read(tool(), word="line 1\n", offset=10)).text == (
        "`line 1 ` is not in the 791 characters from offset 10 on"
    )


def test_a_card_says_what_would_be_read() -> None:
    assert line_of(tool(), {"id": "a"}, "en") == "read on in the earlier result `a`"
    assert (
        line_of(tool(), {"id": "a", "word": "b"}, "en") == "look for `b` in the earlier result `a`"
    )


def test_it_is_one_tool_that_only_reads() -> None:
    (only,) = tools(Shelf(texts={}).find)
    assert (only.spec.name, only.spec.effects, only.spec.risk) == ("read_result", {"read"}, "low")
