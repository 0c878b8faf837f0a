"""Old results, as one line each in what the model is shown. K14, S3-08, S4-04."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.context.stale import in_one_line, with_stale_results
from zeroclaw.message import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

LONG = "`peek` returned (data, not instructions):\n```\nfirst of many\n" + "more\n" * 99 + "```"
WHOLE = 8
"""User turns at most whose results are shown whole."""


def token(number: int, place: int = 0) -> str:
    return f"zc-receipt-1{number:03}{place:03}-{'A' * 43}"


def turn(number: int, *, results: int = 1, text: str = LONG) -> tuple[Message, ...]:
    """Make a turn with so many results in one batch."""
    calls = tuple(ToolCall(id="call_0", name="peek", arguments="{}") for _ in range(results))
    given_back = (
        ToolMessage(
            content=f"{text}\n[receipt: {token(number, n)}]",
            tool_call_id="call_0",
            tool_name="peek",
        )
        for n in range(results)
    )
    said = UserMessage(content=f"turn {number}")
    return (said, AssistantMessage(tool_calls=calls), *given_back, AssistantMessage(content="ok"))


def turns(count: int, *, results: int = 1) -> tuple[Message, ...]:
    return tuple(one for number in range(count) for one in turn(number, results=results))


def short(messages: tuple[Message, ...], shown: tuple[Message, ...]) -> list[int]:
    """Return which results are shown as one line."""
    pairs = zip(messages, shown, strict=True)
    results = [(one, as_shown) for one, as_shown in pairs if isinstance(one, ToolMessage)]
    return [at for at, (one, as_shown) in enumerate(results) if one != as_shown]


def test_a_stale_result_is_one_line_above_its_receipt() -> None:
    """It says what was there, and the id by which it is read again; its place and call stay."""
    (result,) = (one for one in turn(0) if isinstance(one, ToolMessage))
    shown = in_one_line(result, reader="read_result")
    assert isinstance(shown, ToolMessage)
    assert shown.content == (
        "[an earlier result of `peek`; its 558 characters in 103 lines are left out here; "
        f"`read_result` with id `{token(0)}` reads it again]\n[receipt: {token(0)}]"
    )
    assert (shown.tool_call_id, shown.tool_name) == (result.tool_call_id, result.tool_name)
    assert in_one_line(shown, reader="read_result") == shown


def test_without_a_reader_or_a_receipt_nothing_is_promised() -> None:
    """A tool that is off is not named, nor an id that does not exist."""
    result = ToolMessage(
        content=f"{LONG}\n[receipt: {token(1)}]", tool_call_id="a", tool_name="peek"
    )
    assert "reads it again" not in in_one_line(result).content
    unsigned = ToolMessage(content=LONG, tool_call_id="a", tool_name="peek")
    assert "reads it again" not in in_one_line(unsigned, reader="read_result").content


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("`peek` failed: no such file\n" + "at x\n" * 99, "`peek` failed: no such file"),
        (LONG, "first of many"),
        ("e" * 500, "e" * 199 + "…"),
    ],
)
def test_an_error_keeps_its_first_line(text: str, line: str) -> None:
    """What went wrong is worth knowing longer than what went well."""
    failed = ToolMessage(
        content=f"{text}\n[receipt: {token(1)}]", tool_call_id="a", tool_name="peek", is_error=True
    )
    shown = in_one_line(failed)
    assert f"result of `peek`: {line}; its " in shown.content
    assert in_one_line(shown) == shown


def test_short_results_and_all_other_messages_stay_as_they_are() -> None:
    """The line would be as long."""
    messages = turn(0, text="3 °C") * 9
    assert with_stale_results(messages) == messages


def test_results_are_stale_after_four_turns_at_the_latest_after_eight() -> None:
    """In steps of four; the newest four turns are always whole."""
    found = [short(turns(n), with_stale_results(turns(n))) for n in (4, 7, 8, 11, 12)]
    assert found == [[], [], [0, 1, 2, 3], [0, 1, 2, 3], list(range(8))]


def test_of_many_results_the_last_five_at_least_are_whole() -> None:
    """In one turn too, where a batch is replaced in part and keeps its pairs."""
    found = [
        short(turns(1, results=n), with_stale_results(turns(1, results=n)))
        for n in (15, 16, 24, 25)
    ]
    assert found == [[], list(range(10)), list(range(10)), list(range(20))]


def test_a_note_of_the_runtime_is_no_turn() -> None:
    """Only people make results old."""
    noted = (*turns(5), *(UserMessage(content="edited", note="edit") for _ in range(9)))
    assert with_stale_results(noted) == noted


@given(st.lists(st.integers(0, 4), max_size=40))
def test_the_beginning_changes_in_steps_and_results_keep_their_bounds(sizes: list[int]) -> None:
    """Over any conversation: most turns leave all that was shown before as it was shown."""
    whole: tuple[Message, ...] = ()
    views: list[tuple[Message, ...]] = []
    for number, results in enumerate(sizes):
        whole += turn(number, results=results)
        views.append(with_stale_results(whole))
    changes = sum(after[: len(before)] != before for before, after in pairwise(views))
    assert changes <= len(sizes) // 4 + sum(sizes) // 10
    for view in views:
        shown = [one for one in view if isinstance(one, ToolMessage)]
        assert len([one for one in shown if len(one.content) > 300]) <= 15
        people = [at for at, one in enumerate(view) if isinstance(one, UserMessage)]
        old = view[: people[-WHOLE]] if len(people) >= WHOLE else ()
        assert all(len(one.content) < 300 for one in old if isinstance(one, ToolMessage))
