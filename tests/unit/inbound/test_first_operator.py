"""The first operator: the code that the daemon prints, and whoever sends it."""

from pathlib import Path

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import CHAT, CONFIG
from zeroclaw.envelope import Accepted, Duplicate, Ignored, Said
from zeroclaw.store import RowKind

CODES = CHAT.model_copy(update={"pairing": "code"})


@pytest.fixture
def orphan(tmp_path: Path) -> World:
    """Nobody is an operator; everybody is a stranger."""
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


async def test_an_expired_code_does_nothing(orphan: World) -> None:
    """An hour after the start."""
    async with orphan.running() as house:
        await house.advance(3600)
        await house.say(orphan.ready[0].claim, "ada")
        assert await house.rows(RowKind.PERSON) == ()


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
        assert code not in str(orphan.facts.seen)
        kept = [row.body for kind in RowKind for row in await house.rows(kind)]
        assert not any(code.encode() in body for body in kept)


async def test_who_is_let_in_already_may_send_it_too(tmp_path: Path) -> None:
    """The bot's owner stands in `allowed_users`: the code is no question to the model (P8)."""
    channels = {"chat": CODES}
    world = World(tmp_path, CONFIG.model_copy(update={"people": (), "channels": channels}))
    async with world.running() as house:
        assert await house.say("ABCD2345", "ben") == Accepted()
        assert house.texts("ben") == ["ok"]
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
