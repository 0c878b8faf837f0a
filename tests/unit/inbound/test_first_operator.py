"""The first operator: the printed code counts once, in time, and for few guesses."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.house import World
from tests.fakes.house_parts import CHAT, CONFIG
from zeroclaw.envelope import Accepted, Duplicate, Ignored, Said
from zeroclaw.inbound.pairing import Claim, Guess, guess, open_claim
from zeroclaw.store import RowKind

CODES = CHAT.model_copy(update={"pairing": "code"})


@pytest.fixture
def orphan(tmp_path: Path) -> World:
    """There is no operator; every sender is a stranger."""
    channels = {"chat": CODES.model_copy(update={"allowed_users": ()})}
    return World(tmp_path, CONFIG.model_copy(update={"people": (), "channels": channels}))


async def test_a_used_code_does_nothing(orphan: World) -> None:
    """The second one who sends it is a stranger like any other."""
    async with orphan.running() as house:
        code = orphan.ready[0].claim
        await house.say(code, "ada")
        await house.say(code, "mallory")
        assert house.texts("mallory")[0].startswith("Your code is")
        assert len(await house.rows(RowKind.PERSON)) == 1


@pytest.mark.parametrize("allowed", [(), ("*",)])
async def test_of_two_who_send_the_code_at_once_one_is_the_operator(
    tmp_path: Path, allowed: tuple[str, ...]
) -> None:
    """Strangers, and people who are let in already (P4)."""
    channels = {"chat": CODES.model_copy(update={"allowed_users": allowed})}
    world = World(tmp_path, CONFIG.model_copy(update={"people": (), "channels": channels}))
    async with world.running() as house, asyncio.TaskGroup() as group:
        for who in ("ada", "mallory"):
            envelope = house.envelope(Said(text=world.ready[0].claim), who)
            group.create_task(house.services.ingress.admit(envelope))
        await house.settle()
        assert len(await house.rows(RowKind.PERSON)) == 1


async def test_status_tells_the_code_until_there_is_an_operator(orphan: World) -> None:
    """A service's greeting is not read; the reader of the status is the operator here."""
    async with orphan.running() as house:
        assert (await house.ask("status"))["claim"] == orphan.ready[0].claim
        await house.advance(3600)
        code = str((await house.ask("status"))["claim"])
        assert code != orphan.ready[0].claim
        await house.say(code, "ada")
        assert len(await house.rows(RowKind.PERSON)) == 1
        assert (await house.ask("status"))["claim"] == ""


async def test_wrong_guesses_are_silent_and_few(orphan: World) -> None:
    """After five even the right code is not heard from that sender."""
    async with orphan.running() as house:
        for _ in range(5):
            assert await house.say("ABCD2345", "mallory") == Ignored()
        assert await house.say(orphan.ready[0].claim, "mallory") == Ignored()
        assert house.texts("mallory") == []
        await house.say(orphan.ready[0].claim, "ada")
        assert len(await house.rows(RowKind.PERSON)) == 1


async def test_in_a_group_the_code_does_nothing(orphan: World) -> None:
    """There it would be read by others."""
    async with orphan.running() as house:
        assert await house.say(orphan.ready[0].claim, "ada", room="lobby") == Ignored()
        assert await house.rows(RowKind.PERSON) == ()


@pytest.mark.parametrize(
    ("pairing", "allowed", "printed"),
    [("code", ("ada",), False), ("code", (), True), ("closed", (), False)],
    ids=["an operator who is let in", "an operator who is not let in", "closed"],
)
async def test_a_code_is_printed_only_where_it_is_needed(
    tmp_path: Path, pairing: str, allowed: tuple[str, ...], printed: bool
) -> None:
    """Not where an operator can be reached, and not where no channel gives codes out."""
    chat = CHAT.model_copy(update={"pairing": pairing, "allowed_users": allowed})
    world = World(tmp_path, CONFIG.model_copy(update={"channels": {"chat": chat}}))
    async with world.running():
        assert bool(world.ready[0].claim) == printed


async def test_the_code_is_nowhere_but_in_the_greeting(orphan: World) -> None:
    """Neither in what is stored nor in what is logged (P8)."""
    async with orphan.running() as house:
        code = orphan.ready[0].claim
        await house.say("ABCD2345", "mallory")
        await house.say(code, "ada")
        assert code not in str(orphan.facts.seen)
        bodies = [row.body for kind in RowKind for row in await house.rows(kind)]
        assert bodies
        assert not any(code.encode() in body for body in bodies)


async def test_who_is_let_in_already_may_send_it_too(tmp_path: Path) -> None:
    """The bot's owner stands in `allowed_users`: the code is no question to the model (P8)."""
    channels = {"chat": CODES}
    world = World(tmp_path, CONFIG.model_copy(update={"people": (), "channels": channels}))
    async with world.running() as house:
        assert await house.say("ABCD2345", "ben") == Accepted()
        assert await house.say("hello", "ben") == Accepted()
        assert house.texts("ben") == ["ok", "ok"]
        code = world.ready[0].claim
        await house.say(code, "ben", room="lobby")
        assert await house.event(Said(text=code), "ben", key="k") == Accepted()
        assert house.texts("ben")[-1].startswith("You are an operator of this bot now")
        assert await house.event(Said(text=code), "ben", key="k") == Duplicate()
        await house.say("/whoami", "ben")
        assert house.texts("ben")[-1].endswith("Roles: operator.")
        assert len(await house.rows(RowKind.PERSON)) == 1


async def test_who_is_let_in_guesses_no_more_often(tmp_path: Path) -> None:
    """After five wrong ones the right one is a message like any other."""
    world = World(tmp_path, CONFIG.model_copy(update={"people": (), "channels": {"chat": CODES}}))
    async with world.running() as house:
        for _ in range(5):
            await house.say("ABCD2345", "ben")
        await house.say(world.ready[0].claim, "ben")
        assert house.texts("ben") == ["ok"] * 6
        assert await house.rows(RowKind.PERSON) == ()


# --- guesses --------------------------------------------------------------------------------------

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CODE, WRONG = "ABCD2345", "WXYZ9876"
OPEN = open_claim(CODE, now=NOW)


def after(*texts: str, sender: str = "s", channel: str = "chat") -> tuple[Claim, list[Guess]]:
    """The results of a stranger's texts, one after another."""
    claim, found = OPEN, list[Guess]()
    for text in texts:
        claim, guess_ = guess(claim, text, channel=channel, sender=sender, now=NOW)
        found.append(guess_)
    return claim, found


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([CODE], ["right"]),
        ([" abcd2345 "], ["right"]),
        (["hello", f"the code is {CODE}"], ["none", "none"]),
        ([WRONG, CODE], ["wrong", "right"]),
        ([WRONG] * 5 + [CODE], ["wrong"] * 6),
    ],
)
def test_texts_count_as_guesses(texts: list[str], found: list[Guess]) -> None:
    """Exactly the code; past five wrong ones no right one counts."""
    assert after(*texts)[1] == found


@pytest.mark.parametrize(
    ("minutes", "found"),
    [
        (-60 * 24 - 1, "none"),
        (-60 * 24, "right"),
        (0, "right"),
        (59, "right"),
        (60, "none"),
        (61, "none"),
    ],
)
def test_the_code_holds_for_an_hour(minutes: int, found: Guess) -> None:
    """An expired code does nothing, nor an unused one after a clock was set right by days.

    A clock that only stepped, or took local time for UTC, leaves the printed code as it was.
    """
    at = NOW + timedelta(minutes=minutes)
    assert guess(OPEN, CODE, channel="chat", sender="s", now=at)[1] == found


def test_a_channel_has_a_limit_of_its_own() -> None:
    """A crowd of senders gets twenty guesses; other channels are not shut out by them."""
    claim = OPEN
    for number in range(20):
        claim, _ = guess(claim, WRONG, channel="chat", sender=f"s{number}", now=NOW)
    assert guess(claim, CODE, channel="chat", sender="owner", now=NOW) == (claim, "wrong")
    assert guess(claim, CODE, channel="mail", sender="owner", now=NOW)[1] == "right"


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from((CODE, WRONG, "hello"))), max_size=80))
def test_the_state_of_a_code_is_bounded(events: list[tuple[int, str]]) -> None:
    """In any order of senders and texts."""
    claim = OPEN
    for who, text in events:
        claim, _ = guess(claim, text, channel="chat", sender=f"s{who}", now=NOW)
        assert len(claim.guesses) <= 20
