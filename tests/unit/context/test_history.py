"""What of the stored conversation goes to the model, and how old results are shortened."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.context.history import (
    FILES_STAY,
    SHORT_CHARS,
    in_one_line,
    prepare_request_messages,
    with_file_parts,
    with_stale_results,
)
from zeroclaw.message import (
    AssistantMessage,
    FileKind,
    FilePart,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from zeroclaw.value import replace

SYSTEM = SystemMessage(content="You are a helpful weather assistant.")
USER = UserMessage(content="What's the weather in NYC and London?")
CALLS = (
    ToolCall(id="call_a", name="get_weather", arguments='{"city":"NYC"}'),
    ToolCall(id="call_b", name="get_weather", arguments='{"city":"London"}'),
)
ASKING = AssistantMessage(
    tool_calls=CALLS, reasoning="Two cities.", reasoning_details=('{"b": 1}', '{"a":2}')
)
SUNNY = ToolMessage(content="72°F and sunny", tool_call_id="call_a")
RAINY = ToolMessage(content="55°F and rainy", tool_call_id="call_b")
ANSWER = AssistantMessage(
    content="NYC is 72°F and sunny; London is 55°F and rainy.",
    reasoning="Now I know.",
    reasoning_details=('{"c": 3}',),
)
STORED: tuple[Message, ...] = (SYSTEM, USER, ASKING, SUNNY, RAINY, ANSWER)


def test_the_reference_transcript_is_sent_as_it_is_stored() -> None:
    """The five messages of the second request, in order (S1-04, S1-06)."""
    assert prepare_request_messages(STORED[:5]) == STORED[:5]


def test_reasoning_goes_along_with_tool_calls_on_all_later_requests() -> None:
    """Text and blocks, verbatim and in order (S1-25, S1-28)."""
    later = (*STORED, UserMessage(content="And Paris?"))
    assert prepare_request_messages(later)[2] == ASKING


def test_reasoning_of_a_plain_answer_stays_home() -> None:
    """The model sees the answer without it (S1-06, S1-26)."""
    plain = AssistantMessage(content=ANSWER.content)
    assert prepare_request_messages(STORED)[5] == plain


def test_the_stored_messages_are_left_alone() -> None:
    """A fresh tuple; storage keeps the reasoning (S1-26, S1-29)."""
    stored = list(STORED)
    prepared = prepare_request_messages(stored)
    assert stored == list(STORED)
    assert prepared is not STORED
    assert ANSWER.reasoning == "Now I know."


def test_reasoning_is_one_normalised_text_of_any_field() -> None:
    """The stored message has one reasoning field, without the names of the wire (S1-24)."""
    flat = AssistantMessage(tool_calls=CALLS[:1], reasoning="because")
    assert prepare_request_messages([flat]) == (flat,)


def test_notes_go_along_with_the_newest_words_of_a_person() -> None:
    """Before them, so that what was sent before begins the same; what the runtime wrote has none."""
    edited = UserMessage(content="[edited]", note="edited")
    later = UserMessage(content="And Paris?")
    messages = (*STORED, later, ASKING, SUNNY, RAINY, edited)
    prepared = prepare_request_messages(messages, notes="[Ada lives in Paris]")
    noted = UserMessage(content="[Ada lives in Paris]\n\nAnd Paris?")
    plain = prepare_request_messages(messages)
    assert prepared == tuple(noted if message is later else message for message in plain)


def test_notes_without_words_of_a_person_go_nowhere() -> None:
    """A history that begins with a summary may have none."""
    assert prepare_request_messages((SYSTEM, ANSWER), notes="x") == prepare_request_messages(
        (SYSTEM, ANSWER)
    )


def part(digest: str, media_type: str = "image/png", size_bytes: int = 3) -> FilePart:
    return FilePart(digest=digest, media_type=media_type, name="a", number=1, size_bytes=size_bytes)


def shown(
    messages: Sequence[Message],
    takes: tuple[FileKind, ...] = ("images",),
    max_files: int = 9,
    max_bytes: int = 900,
) -> tuple[Message, ...]:
    return with_file_parts(messages, takes=takes, max_files=max_files, max_bytes=max_bytes)


def test_only_files_that_the_model_takes_stay_with_their_message() -> None:
    """The text names the others."""
    every = (part("a"), part("b", "audio/wav"), part("c", "application/pdf"))
    message = UserMessage(content="look", files=every)
    assert shown([message], ()) == (UserMessage(content="look"),)
    assert shown([message]) == (UserMessage(content="look", files=every[:1]),)
    assert shown([message], ("audio", "files")) == (UserMessage(content="look", files=every[1:]),)


def test_a_line_stands_for_files_that_are_old() -> None:
    """Only the newest messages of people show theirs; what the runtime wrote counts for none."""
    old = UserMessage(content="look", files=(part("a"),))
    later = [UserMessage(content=f"{number}") for number in range(FILES_STAY - 1)]
    edited = UserMessage(content="edited", note="edited")
    assert shown([old, ANSWER, *later, edited]) == (old, ANSWER, *later, edited)
    replaced = UserMessage(content="look\n[file 1 is not shown]")
    assert shown([old, *later, USER]) == (replaced, *later, USER)


def user_message(digests: list[str], note: str) -> UserMessage:
    files = tuple(part(digest, size_bytes=ord(digest)) for digest in digests)
    return UserMessage(content="x", note=note, files=files)


DIGESTS = st.lists(st.sampled_from("abcdef"), max_size=3)
USER_MESSAGES = st.builds(user_message, DIGESTS, st.sampled_from(["", "", "", "edited"]))


@given(
    st.lists(USER_MESSAGES | st.just(ANSWER), max_size=12), st.integers(0, 5), st.integers(0, 400)
)
def test_what_is_shown_is_new_and_within_its_bounds(
    messages: list[Message], max_files: int, max_bytes: int
) -> None:
    """Every file of a person's message is there or has its line; the rest is as it was."""
    after = shown(messages, max_files=max_files, max_bytes=max_bytes)
    people = [
        (stored, sent)
        for stored, sent in zip(messages, after, strict=True)
        if isinstance(stored, UserMessage) and isinstance(sent, UserMessage) and not stored.note
    ]
    files = [file for _, sent in people for file in sent.files]
    assert len(files) <= max_files
    assert sum(file.size_bytes for file in files) <= max_bytes
    assert not any(sent.files for _, sent in people[:-FILES_STAY])
    for stored, sent in people:
        assert len(stored.files) == len(sent.files) + sent.content.count("is not shown")
    others = [
        message for message in messages if not isinstance(message, UserMessage) or message.note
    ]
    assert others == [
        message for message in after if not isinstance(message, UserMessage) or message.note
    ]


# --- old results as one line each (K14, S3-08, S4-04) ---------------------------------------------

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
    question = UserMessage(content=f"turn {number}")
    return (
        question,
        AssistantMessage(tool_calls=calls),
        *given_back,
        AssistantMessage(content="ok"),
    )


def turns(count: int, *, results: int = 1) -> tuple[Message, ...]:
    return tuple(message for number in range(count) for message in turn(number, results=results))


def short(messages: tuple[Message, ...], shown: tuple[Message, ...]) -> list[int]:
    """Return which results are shown as one line."""
    pairs = zip(messages, shown, strict=True)
    results = [(result, as_shown) for result, as_shown in pairs if isinstance(result, ToolMessage)]
    return [at for at, (result, as_shown) in enumerate(results) if result != as_shown]


def test_a_stale_result_is_one_line_above_its_receipt() -> None:
    """It says what was there, and the id by which it is read again; its place and call stay."""
    (result,) = (message for message in turn(0) if isinstance(message, ToolMessage))
    shown = in_one_line(result, reader="read_result")
    assert isinstance(shown, ToolMessage)
    assert shown.content == (
        "[an earlier result of `peek`; its 558 characters in 103 lines are left out here; "
        f"`read_result` with id `{token(0)}` reads it again]\n[receipt: {token(0)}]"
    )
    assert (shown.tool_call_id, shown.tool_name) == (result.tool_call_id, result.tool_name)
    assert in_one_line(shown, reader="read_result") == shown
    brief = replace(result, content="x" * SHORT_CHARS)
    assert in_one_line(brief, reader="read_result") == brief


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
    """Failures stay longer than successes."""
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
        shown = [message for message in view if isinstance(message, ToolMessage)]
        assert len([message for message in shown if len(message.content) > 300]) <= 15
        people = [at for at, message in enumerate(view) if isinstance(message, UserMessage)]
        old = view[: people[-WHOLE]] if len(people) >= WHOLE else ()
        assert all(
            len(message.content) < 300 for message in old if isinstance(message, ToolMessage)
        )
