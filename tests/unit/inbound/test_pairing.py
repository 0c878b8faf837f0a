"""How a stranger becomes known: codes, limits, endings, and what people read."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.house import World
from zeroclaw.channel import Ending
from zeroclaw.envelope import (
    Address,
    Answered,
    ApprovalId,
    ConversationId,
    MessageRef,
    Pressed,
    chosen_name,
)
from zeroclaw.gate.approval import APPROVALS, AnswerResult, Numbered, decide, expire, with_ref
from zeroclaw.gate.wording import ended
from zeroclaw.inbound import pairing
from zeroclaw.inbound.pairing import PAIRINGS, PairingRequest
from zeroclaw.store import Commit, DurablePoint, Put, Row, RowKind
from zeroclaw.value import replace

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
HOME = Address(channel="chat", account="bot", chat="mallory", direct=True)
PLACE = "chat/bot/ada/"
CODE = "ABCD2345"
MALLORY = PairingRequest(
    id=ApprovalId("token"),
    channel="chat",
    sender="mallory",
    display="Mallory",
    address=HOME,
    salt="5a17",
    code_hash=pairing.hash_of(CODE, "5a17"),
    asked_at=NOW,
    deadline_at=NOW + HOUR,
    numbers=(Numbered(place=PLACE, number=4),),
)
APPROVED = replace(MALLORY, state="approved", by="Ada", at=NOW + MINUTE)
DENIED = replace(MALLORY, state="denied", by="Ada", at=NOW + MINUTE)
EXPIRED = replace(MALLORY, state="expired", at=NOW + HOUR)


# --- codes ---------------------------------------------------------------------------------------


@given(st.binary(min_size=16, max_size=32))
def test_a_code_can_be_read_out(random: bytes) -> None:
    """Eight characters without 0 O 1 I and L, and it is read back in any case (P4)."""
    code = pairing.code_of(random)
    assert len(code) == 8
    assert not set(code) & set("0O1IL")
    assert pairing.read_code(f" {code.lower()}\n") == code


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_only_the_code_fits_its_hash(code_bytes: bytes, other_bytes: bytes) -> None:
    """The stored hash distinguishes codes, and is not the code."""
    code, wrong = pairing.code_of(code_bytes), pairing.code_of(other_bytes)
    code_hash = pairing.hash_of(code, "salt")
    assert code not in code_hash
    assert pairing.is_code(code, salt="salt", code_hash=code_hash)
    assert pairing.is_code(wrong, salt="salt", code_hash=code_hash) == (wrong == code)
    assert not pairing.is_code(code, salt="other", code_hash=code_hash)


def test_every_character_comes_up() -> None:
    """No random bytes are wasted on a part of the alphabet."""
    codes = [pairing.code_of(number.to_bytes(16)) for number in range(31)]
    assert {code[0] for code in codes} == set(pairing.ALPHABET)


@pytest.mark.parametrize("text", ["", "hello", "ABCD234", "ABCD23456", "ABCD2340", "ABCD 345"])
def test_other_texts_are_no_codes(text: str) -> None:
    """Whatever has another length or another character."""
    assert pairing.read_code(text) == ""


# --- who gets one --------------------------------------------------------------------------------


def stranger(
    number: int, *, after: timedelta = timedelta(0), channel: str = "chat"
) -> PairingRequest:
    asked_at = NOW + after
    return replace(
        MALLORY,
        id=ApprovalId(f"t{number}"),
        channel=channel,
        sender=f"s{number}",
        asked_at=asked_at,
        deadline_at=asked_at + HOUR,
    )


def over(request: PairingRequest) -> PairingRequest:
    return replace(request, state="expired", at=request.asked_at, deadline_at=request.asked_at)


ASKING = {
    "nobody asked before": ((), True),
    "they wait already": ((MALLORY,), False),
    "they have waited long already": (
        (replace(MALLORY, asked_at=NOW - HOUR, deadline_at=NOW + MINUTE),),
        False,
    ),
    "their code has ended, though nobody noticed": (
        (replace(MALLORY, asked_at=NOW - HOUR, deadline_at=NOW),),
        True,
    ),
    "they asked just now": ((over(MALLORY),), False),
    "a while ago": ((over(replace(MALLORY, asked_at=NOW - 10 * MINUTE)),), True),
    "three times today": (
        tuple(over(replace(MALLORY, asked_at=NOW - n * HOUR)) for n in (1, 2, 23)),
        False,
    ),
    "three times, once yesterday": (
        tuple(over(replace(MALLORY, asked_at=NOW - n * HOUR)) for n in (1, 2, 24)),
        True,
    ),
    "they were denied": ((replace(DENIED, asked_at=NOW - 20 * HOUR, at=NOW - 20 * HOUR),), False),
    "they were denied yesterday": (
        (replace(DENIED, asked_at=NOW - 24 * HOUR, at=NOW - 24 * HOUR),),
        True,
    ),
    "they were let in, and revoked": (
        (replace(APPROVED, asked_at=NOW - HOUR, at=NOW - HOUR),),
        True,
    ),
    "two others wait": ((stranger(1), stranger(2)), True),
    "three others wait": ((stranger(1), stranger(2), stranger(3)), False),
    "three others wait elsewhere": (
        tuple(stranger(number, channel="mail") for number in range(3)),
        True,
    ),
    "ten others asked within the hour": (
        tuple(over(stranger(n, after=-5 * n * MINUTE)) for n in range(10)),
        False,
    ),
    "nine others asked within the hour": (
        tuple(over(stranger(n, after=-5 * n * MINUTE)) for n in range(1, 10)),
        True,
    ),
}


@pytest.mark.parametrize(("known", "may"), ASKING.values(), ids=ASKING)
def test_who_gets_a_code(known: tuple[PairingRequest, ...], may: bool) -> None:
    """At most three wait for a channel, and both a sender and a channel are limited (P4)."""
    assert pairing.may_ask(known, channel="chat", sender="mallory", now=NOW) == may


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 1800), st.sampled_from(("", "no", "yes"))),
        max_size=60,
    )
)
def test_no_crowd_gets_past_the_limits(events: list[tuple[int, int, str]]) -> None:
    """In any order of strangers, answers and times: three wait, ten an hour, three a day each."""
    now, known = NOW, list[PairingRequest]()
    for who, wait_s, answer in events:
        now += timedelta(seconds=wait_s)
        if pairing.may_ask(known, channel="chat", sender=f"s{who}", now=now):
            made = replace(stranger(who), asked_at=now, deadline_at=now + HOUR)
            known.append(made)
            if answer:
                answered = decide(made, yes=answer == "yes", by="Ada", at=now)
                assert answered.how == "counted"
                known[-1] = answered.request
        assert sum(pairing.is_open(request, now) for request in known) <= pairing.MAX_WAITING
        assert sum(request.asked_at > now - HOUR for request in known) <= pairing.MAX_PER_HOUR
        own = [request for request in known if request.sender == f"s{who}"]
        assert sum(request.asked_at > now - 24 * HOUR for request in own) <= pairing.MAX_PER_DAY


# --- how it ends ---------------------------------------------------------------------------------

ANSWERS = {
    "yes": (
        MALLORY,
        True,
        MINUTE,
        AnswerResult(request=APPROVED, how="counted"),
        "approved: chat:mallory",
    ),
    "no": (
        MALLORY,
        False,
        MINUTE,
        AnswerResult(request=DENIED, how="counted"),
        "denied: chat:mallory",
    ),
    "at the deadline": (
        MALLORY,
        True,
        HOUR,
        AnswerResult(request=EXPIRED, how="late"),
        "too late: it expired at 13:00:00 UTC",
    ),
    "after somebody else": (
        DENIED,
        True,
        2 * MINUTE,
        AnswerResult(request=DENIED, how="second"),
        "already denied by Ada",
    ),
    "after the deadline": (
        EXPIRED,
        True,
        2 * HOUR,
        AnswerResult(request=EXPIRED, how="second"),
        "too late: it expired at 13:00:00 UTC",
    ),
}


@pytest.mark.parametrize(
    ("question", "yes", "after", "result", "toast"), ANSWERS.values(), ids=ANSWERS
)
def test_an_answer_has_its_result(
    question: PairingRequest,
    yes: bool,
    after: timedelta,
    result: AnswerResult[PairingRequest],
    toast: str,
) -> None:
    """It counts once and in time; a late one says so and does nothing."""
    assert decide(question, yes=yes, by="Ada", at=NOW + after) == result
    assert pairing.toast(result, "en") == toast


def test_who_may_not_answer_reads_why() -> None:
    """As of every request; it is checked first, so that the toast reveals nothing of a stranger."""
    refused = decide(MALLORY, yes=True, by="Ada", at=NOW, refusal="only an operator")
    assert pairing.toast(refused, "en") == "only an operator"


def test_a_row_of_an_earlier_release_still_loads() -> None:
    """What is stored outlives a name: a request that waits, as it was written before (P4)."""
    body = (
        b'{"is":"Stranger","id":"token","channel":"chat","sender":"mallory","display":"Mallory",'
        b'"address":{"is":"Address","channel":"chat","account":"bot","chat":"mallory",'
        b'"thread":null,"direct":true},"salt":"5a17","code_hash":"'
        + MALLORY.code_hash.encode()
        + b'","asked_at":"2026-11-21T12:00:00Z","deadline_at":"2026-11-21T13:00:00Z",'
        b'"numbers":[{"is":"Numbered","place":"chat/bot/ada/","number":4,"language":"en"}],'
        b'"refs":[],"messages":[],"state":"waiting","by":"","at":null}'
    )
    put = pairing.to_put(MALLORY)
    assert pairing.PAIRINGS.of(replace(put, body=body)) == MALLORY


def test_the_deadline_ends_only_what_waits() -> None:
    """Not before its time, and never what has ended."""
    assert expire(MALLORY, NOW) == MALLORY
    assert expire(DENIED, NOW + HOUR) == DENIED
    assert expire(MALLORY, NOW + 2 * HOUR) == EXPIRED


# --- rows and cards ------------------------------------------------------------------------------


def row(put: Put) -> Row:
    return Row(kind=put.kind, key=put.key, version=1, body=put.body)


def test_a_row_keeps_all_but_the_code() -> None:
    """It is due at the deadline, and a day after its end it is to be forgotten (P4)."""
    put = pairing.to_put(MALLORY)
    assert pairing.PAIRINGS.of(row(put)) == MALLORY
    assert CODE.encode() not in put.body
    assert (put.kind, put.state, put.place) == (RowKind.STRANGER, "waiting", "chat")
    assert put.due_at == NOW + HOUR
    assert pairing.to_put(DENIED).due_at == NOW + MINUTE + timedelta(days=1)


def test_the_card_shows_who_and_the_code() -> None:
    """Name, channel, sender id and code, to approve or to deny; it says why."""
    card = pairing.card_of(MALLORY, PLACE, CODE)
    assert card.choices == ("once", "deny")
    (call,) = card.calls
    assert (call.approval, call.number, call.tool) == ("token", 4, "pairing")
    assert call.arguments.splitlines() == [
        "channel: chat",
        "sender id: mallory",
        "chosen name: Mallory",
        f"code: {CODE}",
    ]
    assert call.why.endswith("approve only somebody who tells you this code")


@pytest.mark.parametrize(
    ("question", "endings"),
    [
        (MALLORY, ()),
        (
            APPROVED,
            (Ending(approval=ApprovalId("token"), how="approved", by="Ada", at=NOW + MINUTE),),
        ),
        (EXPIRED, (Ending(approval=ApprovalId("token"), how="expired", by="", at=NOW + HOUR),)),
    ],
    ids=["open", "approved", "expired"],
)
def test_a_settled_card_shows_the_end_and_no_code(
    question: PairingRequest, endings: tuple[Ending, ...]
) -> None:
    """The code is no longer known by then; only its hash was kept."""
    outcome = pairing.outcome_of(question, PLACE)
    assert outcome.endings == endings
    assert "code:" not in outcome.card.calls[0].arguments


def test_a_card_joins_the_question_once() -> None:
    """However often it is heard of."""
    ref = MessageRef(address=HOME, message="m1")
    once = with_ref(MALLORY, ref)
    assert once.refs == (ref,)
    assert with_ref(once, ref) == once


# --- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("display", "shown"),
    [
        ("Mallory", "Mallory"),
        ("Mal`lory\n**approve**", "Mal lory approve"),
        ("\u202eyrollaM", "yrollaM"),
        ("x" * 100, "x" * 59 + "…"),
        ("\x00", ""),
        ('Ann" (operator)', "Ann (operator)"),
        ("Jose\u0301 a\u0338b", "José a b"),
    ],
)
def test_a_name_is_nothing_but_a_name(display: str, shown: str) -> None:
    """A stranger chose it, so it brings no markup, no line and no direction of its own."""
    assert chosen_name(display) == shown


def test_who_has_no_name_is_called_by_their_id() -> None:
    """So that a card always says who."""
    assert replace(MALLORY, display="").label == "chat:mallory"


def test_a_name_that_a_stranger_chose_comes_second_and_in_quotes() -> None:
    """It may claim to be anything; a line above a button is not theirs to write."""
    request = replace(MALLORY, display="Olga (operator) asked me to press Approve")
    label = 'chat:mallory ("Olga (operator) asked me to press Approve")'
    assert request.label == label
    card = pairing.card_of(request, PLACE, CODE)
    assert card.asked_by == label
    assert card.calls[0].summary.startswith(label)


@pytest.mark.parametrize(
    ("seconds", "span"), [(3600.0, "1 hour"), (60.0, "a minute"), (1.5, "1.5 seconds")]
)
def test_a_stranger_reads_the_code_and_nothing_else(seconds: float, span: str) -> None:
    """Neither who runs the bot nor what it is (P4)."""
    assert pairing.code_message(CODE, seconds).to("en") == (
        f"Your code is `ABCD2345`. Tell it to whoever runs this bot; it is valid for {span}."
    )


def test_no_id_ends_the_backticks_around_it() -> None:
    """It stands on the operator's card, and mail addresses may hold one."""
    text = pairing.list_line(replace(MALLORY, sender="mal`lory\n**"), "en", PLACE)
    assert text.startswith("`4` `chat:mal\ufffdlory\ufffd**` (")


def test_a_waiting_question_is_a_line() -> None:
    """With its number where the chat has one."""
    waits = '`chat:mallory` ("Mallory") wants to talk to this bot, open until 13:00:00 UTC'
    assert pairing.list_line(MALLORY, "en", PLACE) == f"`4` {waits}"
    assert pairing.list_line(MALLORY, "en") == waits


def test_every_operator_reads_the_question_and_its_end_in_their_own_language() -> None:
    """The second to answer reads who was first (P5)."""
    [number] = MALLORY.numbers
    german = replace(MALLORY, numbers=(replace(number, language="de"),))
    card = pairing.card_of(german, number.place)
    assert (card.language, card.calls[0].why[:7]) == ("de", "niemand")
    assert pairing.card_of(german, "elsewhere").language == "en"
    approved = replace(MALLORY, state="approved", by="Ada", at=NOW)
    assert ended(approved, "de") == "schon freigegeben von Ada"
    assert ended(approved, "en") == "already approved by Ada"


# --- requests that commit ff26965 wrote, byte for byte --------------------------------------------

A_CALL = Put(
    kind=RowKind.APPROVAL,
    key="asked-by-a-release",
    body=(
        b'{"is":"Approval","id":"asked-by-a-release","action":"01KDX0000000000000000000A1",'
        b'"action_hash":"5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",'
        b'"tool":"poke","conversation":"01KDX0000000000000000000C1",'
        b'"turn":"01KDX0000000000000000000T1","requester":{"is":"Principal","id":"person:ben",'
        b'"roles":[],"channel":"chat","sender":"ben","display":"Ben","language":"en"},'
        b'"approvers":["role:operator"],"summary":"poke it","arguments":"{\\"at\\": \\"noon\\"}",'
        b'"why":"a statement asks","card":"01KDX0000000000000000000K1",'
        b'"deadline_at":"2026-01-01T13:00:00Z","requester_may_answer":true,"order":0,'
        b'"choices":["once","for_a_time","deny","deny_with_reason"],"reasons":[{"is":"Reason",'
        b'"statement":"ask-first","note":"nobody pokes unasked"}],"numbers":[{"is":"Numbered",'
        b'"place":"chat/bot/ada/","number":7,"language":"de"}],"refs":[{"is":"MessageRef",'
        b'"address":{"is":"Address","channel":"chat","account":"bot","chat":"ada","thread":null,'
        b'"direct":true},"message":"m1"}],"state":"pending","by":"","reason":"","choice":null,'
        b'"at":null}'
    ),
    conversation=ConversationId("01KDX0000000000000000000C1"),
    state="pending",
    place="chat/bot/ada/",
)
A_STRANGER = Put(
    kind=RowKind.STRANGER,
    key="wanted-in-by-a-release",
    body=(
        b'{"is":"Stranger","id":"wanted-in-by-a-release","channel":"chat","sender":"mallory",'
        b'"display":"Mallory","address":{"is":"Address","channel":"chat","account":"bot",'
        b'"chat":"mallory","thread":null,"direct":true},"salt":"5a17","code_hash":'
        b'"80aa42f612db0b87583e9253c25400a151aa354761038012d5edbf0cf774759b",'
        b'"asked_at":"2026-01-01T12:00:00Z","deadline_at":"2026-01-01T13:00:00Z","numbers":'
        b'[{"is":"Numbered","place":"chat/bot/ada/","number":8,"language":"en"}],"refs":'
        b'[{"is":"MessageRef","address":{"is":"Address","channel":"chat","account":"bot",'
        b'"chat":"ada","thread":null,"direct":true},"message":"m2"}],'
        b'"messages":["01KDX0000000000000000000M1"],"state":"waiting","by":"","at":null}'
    ),
    state="waiting",
    place="chat",
)


async def store_both(world: World) -> None:
    """Put both into the store, as the release left them."""
    due_at = world.clock.now() + timedelta(hours=1)
    for row in (A_CALL, A_STRANGER):
        put = replace(row, due_at=due_at)
        commit = Commit(point=DurablePoint.ANSWERED, conversation=row.conversation, writes=(put,))
        await world.store.commit(commit)


async def states(world: World) -> list[str]:
    """The states of both."""
    found = [await world.store.get(row.kind, row.key) for row in (A_CALL, A_STRANGER)]
    return ["gone" if row is None else row.state for row in found]


def test_every_field_is_read() -> None:
    """The ids of the buttons, the person, and the number in the operator's chat."""
    call, stranger = APPROVALS.of(A_CALL), PAIRINGS.of(A_STRANGER)
    assert (call.is_open, call.tool, call.requester.label) == (True, "poke", "Ben")
    assert (call.reasons[0].note, call.numbers[0].number) == ("nobody pokes unasked", 7)
    assert (stranger.is_open, stranger.identity) == (True, "chat:mallory")
    assert (stranger.numbers[0].number, stranger.refs[0].message) == (8, "m2")


@pytest.mark.parametrize(
    ("word", "text", "ended"),
    [("approve", "approved", ["stopped", "approved"]), ("deny", "denied", ["denied", "denied"])],
)
async def test_both_are_answered_by_number(
    world: World, word: str, text: str, ended: list[str]
) -> None:
    """Both kinds, in one message (S2-13); without its turn, a yes to the call runs nothing."""
    await store_both(world)
    async with world.told(f"/{word} 7 8") as house:
        assert [text in line for line in house.texts()[-1].splitlines()] == [True, True]
        assert await states(world) == ended


async def test_both_are_answered_by_a_press(world: World) -> None:
    """Their buttons stand in the chat still (P5)."""
    await store_both(world)
    async with world.running() as house:
        for key in (A_CALL.key, A_STRANGER.key):
            text = await house.event(Pressed(approval=ApprovalId(key), choice="deny"))
            assert isinstance(text, Answered)
        assert await states(world) == ["denied", "denied"]


async def test_a_deadline_that_passed_between_the_two_ends_both(world: World) -> None:
    """At the start; a day later the stranger is forgotten (P4)."""
    await store_both(world)
    await world.clock.advance(3601)
    async with world.running() as house:
        assert await states(world) == ["expired", "expired"]
        await house.advance(24 * 3600)
        assert await states(world) == ["expired", "gone"]
