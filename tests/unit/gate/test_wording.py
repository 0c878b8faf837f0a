"""People and the model read one clear sentence about how a question ended."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.envelope import ActionId, ApprovalId, ConversationId, Principal, TurnId
from zeroclaw.gate.approval import AnswerResult, Approval, Numbered
from zeroclaw.gate.scope import Scope
from zeroclaw.gate.wording import (
    MOST_NUMBERS,
    Numbers,
    ended,
    head_of,
    numbered,
    parse_numbers,
    refusal_for_model,
    refusal_for_people,
    result_for_people,
    toast,
    unreachable,
)
from zeroclaw.message import ToolMessage
from zeroclaw.value import replace

AT = datetime(2026, 11, 21, 12, 3, 59, tzinfo=UTC)
OPEN = Approval(
    id=ApprovalId("one"),
    action=ActionId("01ACTION"),
    action_hash="0123",
    tool="shell",
    conversation=ConversationId("01CONVERSATION"),
    turn=TurnId("01TURN"),
    requester=Principal(id="web:1", roles=frozenset(), channel="web", sender="1"),
    approvers=("role:operator",),
    summary="run `ls`",
    arguments="ls",
    why="the policy asks",
    card="01CARD",
    deadline_at=AT,
    numbers=(Numbered(place="p", number=1),),
)
APPROVED = replace(OPEN, state="approved", by="Ann", at=AT)
DENIED = replace(OPEN, state="denied", by="Ann", at=AT)
WHY = replace(DENIED, reason="too risky")
EXPIRED = replace(OPEN, state="expired", at=AT)
STOPPED = replace(OPEN, state="stopped", by="Bob", at=AT)
PAGES = Scope(tool="fetch", resources=("host:a.example:443",), is_exact=False, for_s=3600)
FOR_A_TIME = replace(APPROVED, tool="fetch", choice="for_a_time", scope=PAGES)

TOASTS: dict[str, tuple[AnswerResult[Approval], str]] = {
    "approved": (AnswerResult(request=APPROVED, how="counted"), "approved: `shell`"),
    "approved for a time": (
        AnswerResult(request=FOR_A_TIME, how="counted"),
        "approved: `fetch`, and without asking any URL on `a.example` for 1 hour",
    ),
    "denied": (AnswerResult(request=DENIED, how="counted"), "denied: `shell`"),
    "reason": (
        AnswerResult(request=OPEN, how="reason_wanted"),
        "why is `shell` denied? reply with the reason",
    ),
    "late": (AnswerResult(request=EXPIRED, how="late"), "too late: it expired at 12:03:59 UTC"),
    "expired": (
        AnswerResult(request=EXPIRED, how="second"),
        "too late: it expired at 12:03:59 UTC",
    ),
    "second": (AnswerResult(request=DENIED, how="second"), "already denied by Ann"),
    "second, with a reason": (
        AnswerResult(request=WHY, how="second"),
        "already denied by Ann (too risky)",
    ),
    "stopped": (
        AnswerResult(request=STOPPED, how="second"),
        "too late: the turn was stopped by Bob",
    ),
    "not theirs": (
        AnswerResult(request=OPEN, how="refused", why="only ann may answer this"),
        "only ann may answer this",
    ),
}


@pytest.mark.parametrize("name", TOASTS)
def test_whoever_answers_reads_what_came_of_it(name: str) -> None:
    """Each result has its own line. P5, P10."""
    result, expected = TOASTS[name]
    assert toast(result, "en") == expected


def test_a_question_says_where_it_stands() -> None:
    """An open question names its deadline; a stop by nobody names nobody. P5."""
    assert ended(OPEN, "en") == "open until 12:03:59 UTC"
    assert ended(replace(STOPPED, by=""), "en") == "too late: the turn was stopped"


def test_the_model_is_told_apart_why_a_call_did_not_run() -> None:
    """A refusal, a timeout, nobody reachable and a stop are different sentences. P5, K8."""
    sentences = [refusal_for_model(found) for found in (DENIED, WHY, EXPIRED, STOPPED)]
    sentences.append(unreachable("shell"))
    assert len(set(sentences)) == 5
    assert all("did not run" in sentence.lower() for sentence in sentences)
    assert "refused by Ann, who said: too risky." in sentences[1]
    assert "nobody answered in time" in sentences[2]
    assert "no operator can be reached" in sentences[4]


@pytest.mark.parametrize(
    ("approval", "english", "german"),
    [
        (
            DENIED,
            "`shell` did not run: denied by Ann",
            "`shell` wurde nicht ausgeführt: abgelehnt von Ann",
        ),
        (
            WHY,
            "`shell` did not run: denied by Ann (too risky)",
            "`shell` wurde nicht ausgeführt: abgelehnt von Ann (too risky)",
        ),
        (
            EXPIRED,
            "`shell` did not run: nobody approved it in time",
            "`shell` wurde nicht ausgeführt: niemand hat es rechtzeitig freigegeben",
        ),
    ],
)
def test_a_person_reads_what_is_written_for_people(
    approval: Approval, english: str, german: str
) -> None:
    """Who called the tool themselves is not told what a model should do next. P10."""
    assert [refusal_for_people(approval, one) for one in ("en", "de")] == [english, german]


RECEIPT = "[receipt: zc-receipt-1-" + "a" * 43 + "]"


@pytest.mark.parametrize(
    ("content", "told", "expected"),
    [
        (f"{head_of('shell')}```\nhi\n```", "", "`shell` liefert:\n```\nhi\n```"),
        (head_of("shell", "; invisible: 3") + "x", "", "`shell` liefert:\nx"),
        ("`shell` failed: no\nway", "", "`shell` ist fehlgeschlagen: no\nway"),
        ("Do not try again.", "nein", "nein"),
        ("there is no tool", "", "there is no tool"),
    ],
)
def test_a_result_is_read_by_a_person_in_their_words(
    content: str, told: str, expected: str
) -> None:
    """The wrapping that is for the model goes, what the tool said and its receipt stay."""
    for tail in ("", f"\n{RECEIPT}"):
        result = ToolMessage(
            content=content + tail, tool_call_id="", tool_name="shell", for_people=told
        )
        assert result_for_people(result, "de") == expected + tail


@pytest.mark.parametrize("approval", [OPEN, APPROVED], ids=["open", "approved"])
def test_a_call_that_may_run_has_no_such_sentence(approval: Approval) -> None:
    """Telling the model that an approved call was refused would be a lie."""
    with pytest.raises(ValueError, match=approval.state):
        refusal_for_model(approval)


@pytest.mark.parametrize(
    ("text", "numbers", "rest"),
    [
        ("1 3 too risky", (1, 3), "too risky"),
        (" 1, 3,4 ", (1, 3, 4), ""),
        ("#2 #2 1", (2, 1), ""),
        ("", (), ""),
        ("all of them", (), "all of them"),
        ("1st one", (), "1st one"),
        ("1 2x", (1,), "2x"),
        ("1234567890", (), "1234567890"),
        ("-1", (), "-1"),
        ("٣", (), "٣"),
    ],
)
def test_numbers_are_read_from_a_command(text: str, numbers: tuple[int, ...], rest: str) -> None:
    """Numbers first, then a reason; what is no plain number names nothing. P5."""
    assert parse_numbers(text) == Numbers(numbers=numbers, rest=rest)


@given(
    numbers=st.lists(st.integers(0, 999_999_999), unique=True, max_size=40),
    reason=st.sampled_from(["", "no"]),
)
def test_any_numbers_are_read(numbers: list[int], reason: str) -> None:
    """However many, but for those that are too many: then none is."""
    text = " ".join([*map(str, numbers), reason])
    found = Numbers(numbers=tuple(numbers), rest=reason)
    if len(numbers) > MOST_NUMBERS:
        found = Numbers(numbers=(), rest="", too_many=True)
    assert parse_numbers(text) == found


def test_numbers_name_questions_of_one_chat() -> None:
    """Another chat's number is unknown. P5."""
    second = replace(DENIED, id=ApprovalId("two"), numbers=(Numbered(place="p", number=2),))
    other = replace(OPEN, id=ApprovalId("three"), numbers=(Numbered(place="q", number=3),))
    assert numbered([OPEN, second, other], "p") == {1: OPEN, 2: second}
    assert numbered([OPEN, other], "q") == {3: other}


def test_who_has_no_name_is_called_by_what_they_are() -> None:
    """A person's name is never translated, whatever it is."""
    by_console = replace(OPEN, state="denied", by="the console")
    assert ended(by_console, "en") == "already denied by the console"
    assert ended(by_console, "de") == "schon abgelehnt von der Konsole"
    assert ended(replace(by_console, by="console"), "de") == "schon abgelehnt von console"
    approved = replace(OPEN, state="approved", by="Ann")
    assert ended(approved, "en") == "already approved by Ann"
    assert ended(approved, "de") == "schon freigegeben von Ann"
