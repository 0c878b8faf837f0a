"""`/pair` and `zeroclaw pair`: lists, answers by code or id, and who is revoked."""

from pathlib import Path

import pytest

from tests.fakes.house import House, World
from tests.fakes.house_parts import CHAT, CONFIG
from zeroclaw.config.model import PersonSettings
from zeroclaw.envelope import Ignored
from zeroclaw.errors import Conflict
from zeroclaw.store import Commit, RowKind
from zeroclaw.text import catalogue


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada is the operator, Ben and Cleo are known; everybody else is asked about."""
    codes = CHAT.model_copy(update={"pairing": "code"})
    return World(tmp_path, CONFIG.model_copy(update={"channels": {"chat": codes}}))


async def console(house: House, words: str) -> tuple[object, object]:
    """What `zeroclaw pair` is told."""
    told = await house.ask("pair", words=words)
    return told["text"], told["changed"]


def code_of(house: House, who: str = "mallory") -> str:
    return house.texts(who)[0].split("`")[1]


async def test_a_code_that_somebody_reads_out_lets_them_in(world: World) -> None:
    """In a chat, whatever its case; the card shows it (P5)."""
    async with world.running() as house:
        await house.say("let me in", "mallory")
        await house.say(f"/pair approve {code_of(house).lower()}")
        assert house.texts()[-1] == "approved: chat:mallory"
        assert house.endings() == [("approved", "Ada")]
        assert house.texts("mallory")[1:] == ["You may talk to me now."]


async def test_people_are_listed_in_private_only(world: World) -> None:
    """In a group everybody would read who waits and who is in (P5)."""
    async with world.running() as house:
        await house.say("let me in", "mallory")
        for words in ("/pair", "/pair list"):
            await house.say(words, room="lobby")
            assert house.texts(room="lobby")[-1] == catalogue.PAIR_LIST_IN_PRIVATE.en
        await house.say("/pair")
        assert "mallory" in house.texts()[-1]


USAGE = catalogue.PAIR_USAGE.en
NONSENSE = {
    "an unknown word": ("please", USAGE),
    "nothing to approve": ("approve", USAGE),
    "nothing to deny": ("deny ", USAGE),
    "nobody to revoke": ("revoke", USAGE),
    "a wrong code": ("approve ABCD2345", "nobody has the code `ABCD2345`"),
    "nobody who waits": (
        "deny chat:eve",
        "nobody called `chat:eve` waits; `pair list` shows who does",
    ),
    "nobody who was revoked": (
        "approve chat:eve",
        "`chat:eve` neither waits nor is revoked; `pair list` shows who is",
    ),
    "nobody at all": ("approve `x`", "`x` neither waits nor is revoked; `pair list` shows who is"),
    "no such person": ("revoke eve", f"nobody is called `eve`. {USAGE}"),
    "no such channel": ("revoke mail:eve", f"nobody is called `mail:eve`. {USAGE}"),
}


@pytest.mark.parametrize(("words", "told"), NONSENSE.values(), ids=NONSENSE)
async def test_what_makes_no_sense_is_one_line(world: World, words: str, told: str) -> None:
    """It says what is wrong and changes nothing (P10)."""
    async with world.running() as house:
        assert await console(house, words) == (told, False)
        assert world.store.commits == []


async def test_only_operators_may_use_it(world: World) -> None:
    """Ben reads neither who waits nor who is in (P4)."""
    async with world.running() as house:
        await house.say("let me in", "mallory")
        await house.say("/pair", "ben")
        assert house.texts("ben")[-1].startswith("`/pair` is not for you")


async def test_the_list_shows_who_waits_and_what_was_decided(world: World) -> None:
    """Without codes, because nobody keeps them (P4)."""
    async with world.running() as house:
        assert (await console(house, ""))[0] == "Nobody waits, and nobody was let in or revoked."
        await house.say("let me in", "mallory")
        await house.say("/pair approve chat:mallory")
        await house.say("me too", "trudy")
        await house.say("/pair revoke ben")
        await house.say("/pair list")
        assert house.texts()[-1].splitlines() == [
            '- `chat:trudy` ("Trudy") wants to talk to this bot, open until 13:00:00 UTC',
            '- `chat:mallory` ("Mallory"): admitted by Ada, 2026-01-01 12:00 UTC',
            "- `person:ben`: revoked by Ada, 2026-01-01 12:00 UTC",
        ]


async def test_the_first_operator_is_listed_as_one(world: World) -> None:
    """So that one sees who claimed the bot."""
    world.configure(people=())
    async with world.running() as house:
        await house.say(world.ready[0].claim, "mallory")
        listed = (await console(house, "list"))[0]
        assert '`chat:mallory` ("Mallory"), operator: admitted by the code' in str(listed)


async def test_a_lost_race_is_planned_anew(world: World) -> None:
    """Somebody answers on the card in the same instant: once, and the other is told so (P5)."""
    async with world.running() as house:
        await house.say("let me in", "mallory")

        def taken(_commit: Commit) -> None:
            world.store.before = None
            message = "somebody was first"
            raise Conflict(message)

        world.store.before = taken
        assert await console(house, "deny chat:mallory") == ("denied: chat:mallory", True)


async def test_a_race_that_never_ends_is_told(world: World) -> None:
    """After a few tries, with what to do (P10)."""
    async with world.running() as house:
        await house.say("let me in", "mallory")

        def taken(_commit: Commit) -> None:
            message = "somebody was first"
            raise Conflict(message)

        world.store.before = taken
        with pytest.raises(
            Conflict, match="others kept changing what this depends on, 8 times: try again"
        ):
            await console(house, "deny chat:mallory")


# --- putting out ---------------------------------------------------------------------------------

WHOM = {
    "a person of the configuration": ("ben", "person:ben", "ben"),
    "the same by their id": ("chat:ben", "person:ben", "ben"),
    "the same in full": ("person:ben", "person:ben", "ben"),
    "somebody without a name": ("chat:cleo", "chat:cleo", "cleo"),
}


@pytest.mark.parametrize(("what", "name", "who"), WHOM.values(), ids=WHOM)
async def test_who_is_revoked_meets_silence_and_may_come_back(
    world: World, what: str, name: str, who: str
) -> None:
    """It beats the configuration, also after a restart, and gets no code; an operator takes it back."""
    async with world.running() as house:
        assert await console(house, f"revoke {what}") == (
            f"revoked: `{name}`; what they had running is stopped",
            True,
        )
        assert await house.say("hello", who) == Ignored()
        assert await console(house, f"revoke {what}") == (
            f"`{name}` is already revoked by the operator on this machine",
            False,
        )
    async with world.running() as house:
        assert await house.say("hello", who) == Ignored()
        told = await console(house, f"approve {what}")
        assert told == (f"approved: `{name}` is let in again", True)
        await house.say("hello", who)
        assert house.texts(who) == ["ok"]
        assert await house.rows(RowKind.PERSON) == ()


async def test_a_new_name_brings_nobody_back(world: World) -> None:
    """The ids stay out that were theirs, until an operator says otherwise (P4)."""
    async with world.running() as house:
        await console(house, "revoke ben")
        ada = world.config.people[0]
        world.configure(people=(ada, PersonSettings(name="benno", ids=("chat:ben",))))
        await house.ask("reload")
        assert await house.say("hello", "ben") == Ignored()
        told = await console(house, "approve chat:ben")
        assert told == ("approved: `person:ben` is let in again", True)
        await house.say("hello", "ben")
        assert house.texts("ben") == ["ok"]


async def test_who_was_paired_and_revoked_may_come_back(world: World) -> None:
    """As who they were, but without a role (P4)."""
    async with world.running() as house:
        await house.say("let me in", "mallory")
        await house.press()
        await console(house, "revoke chat:mallory")
        assert await house.say("hello", "mallory") == Ignored()
        await console(house, "approve chat:mallory")
        await house.say("hello", "mallory")
        assert house.texts("mallory")[-1] == "ok"


async def test_nobody_locks_themselves_out(world: World) -> None:
    """An operator can't revoke themselves from a chat; the console can (P10)."""
    async with world.running() as house:
        await house.say("/pair revoke ada")
        assert house.texts() == ["you can't revoke yourself; another operator can, or the console"]
        assert (await console(house, "revoke ada"))[1] is True
        assert await house.say("hello") == Ignored()
    async with world.running():
        assert len(world.ready[1].claim) == 8


async def test_who_was_revoked_before_they_had_a_name_may_come_back(world: World) -> None:
    """The configuration names them since; the row is still found by the id that it was made for."""
    async with world.running() as house:
        await console(house, "revoke chat:cleo")
    cleo = PersonSettings(name="cleo", ids=("chat:cleo",))
    world.configure(people=(*CONFIG.people, cleo))
    async with world.running() as house:
        assert await house.say("hello", "cleo") == Ignored()
        told = await console(house, "approve chat:cleo")
        assert told == ("approved: `chat:cleo` is let in again", True)
        await house.say("hello", "cleo")
        assert house.texts("cleo")[-1] == "ok"


async def test_an_operator_whose_question_is_answered_late_stays_one(world: World) -> None:
    """They wrote first, then sent the printed code, then answered the question about themselves."""
    world.configure(people=())
    async with world.running() as house:
        await house.say("let me in", "mallory")
        await house.say(world.ready[0].claim, "mallory")
        await console(house, "approve chat:mallory")
        await house.say("/whoami", "mallory")
        assert house.texts("mallory")[-1].endswith("Roles: operator.")


async def test_an_id_is_shown_as_it_is(world: World) -> None:
    """Whole and with every sign: it alone decides who is let in, and it can be typed again (P5)."""
    who = f"mal_lory*@example.org.{'a' * 60}.invalid"
    async with world.running() as house:
        await house.say("let me in", who)
        assert f"sender id: {who}" in house.card().calls[0].arguments.splitlines()
        assert f"`chat:{who}` (" in str((await console(house, "list"))[0])
        assert (await console(house, f"approve chat:{who}"))[1] is True


async def test_an_id_that_no_platform_gives_out_meets_silence(world: World) -> None:
    """A stranger chooses no size for the row that they leave (P4)."""
    async with world.running() as house:
        assert await house.say("let me in", "m" * 321) == Ignored()
        assert await house.rows(RowKind.STRANGER) == ()


async def test_an_older_card_does_not_let_in_who_was_revoked(world: World) -> None:
    """Revoking answers what is still asked about them; whoever presses is told so (P5)."""
    async with world.running() as house:
        await house.say("let me in", "mallory")
        await console(house, "revoke chat:mallory")
        assert house.endings() == [("denied", "the operator on this machine")]
        assert await house.press() == "already denied by the operator on this machine"
        assert await house.say("hello", "mallory") == Ignored()
        assert len(house.texts("mallory")) == 1
