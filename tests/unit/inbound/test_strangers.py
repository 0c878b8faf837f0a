"""Strangers at the door: silence or a code, the operators' card and commands, and who comes in."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.fakes.house import House, World
from tests.fakes.house_parts import CHAT, CONFIG
from tests.fakes.scripted_channel import Call
from tests.fakes.scripted_model import POKE
from zeroclaw.channel import CardCall
from zeroclaw.config.model import PersonSettings
from zeroclaw.envelope import (
    Accepted,
    Body,
    Deleted,
    Edited,
    Envelope,
    Ignored,
    Membership,
    Said,
    Sender,
)
from zeroclaw.errors import ChannelRejected, Conflict
from zeroclaw.inbound.pairing import ALPHABET, PAIRINGS, to_put
from zeroclaw.store import Commit, Delete, DurablePoint, Put, Row, RowKind, Write
from zeroclaw.text import catalogue
from zeroclaw.value import replace

CODES = CHAT.model_copy(update={"pairing": "code"})


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada is the operator, Ben and Cleo are known; all others need pairing."""
    return World(tmp_path, CONFIG.model_copy(update={"channels": {"chat": CODES}}))


def call(house: House) -> CardCall:
    """The request on Ada's newest card."""
    return house.card().calls[0]


def code_of(house: House, who: str = "mallory") -> str:
    """The code in a stranger's first answer."""
    return house.texts(who)[0].split("`")[1]


# --- silence -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [Edited(message="p1", said=Said(text="x")), Deleted(message="p1"), Membership(present=True)],
)
async def test_only_a_message_gets_a_code(world: World, body: Body) -> None:
    """Whatever else a stranger does is dropped (P4)."""
    async with world.running() as house:
        assert await house.event(body, "mallory") == Ignored()
        assert house.texts("mallory") == []


async def test_a_channel_can_ask_who_is_let_in(world: World) -> None:
    """Before it makes calls for them (P4)."""
    async with world.running():
        admits = world.contexts["chat"].admits
        assert [admits(sender) for sender in ("ada", "mallory")] == [True, False]


async def test_an_unverified_id_gets_none(world: World) -> None:
    """Nobody could say who would be let in (P4)."""
    async with world.running() as house:
        envelope = Envelope(
            address=house.place("mallory"),
            sender=Sender(id="mallory", verified=False),
            dedup=("k",),
            body=Said(text="let me in"),
        )
        assert await world.platforms["chat"].say(envelope) == Ignored()


# --- a code --------------------------------------------------------------------------------------


async def test_a_stranger_gets_a_code_and_nothing_else(world: World) -> None:
    """One sentence; of what they wrote nothing is kept, of the code only its hash (P4, S2-03)."""
    async with world.running() as house:
        assert await house.say("let me in, I know a secret", "mallory") == Accepted()
        code = code_of(house)
        assert house.texts("mallory") == [
            f"Your code is `{code}`. Tell it to whoever runs this bot; it is valid for 1 hour."
        ]
        assert (len(code), set(code) <= set(ALPHABET)) == (8, True)
        assert world.model.requests == []
        (row,) = await house.rows(RowKind.STRANGER)
        assert (code.encode() in row.body, b"secret" in row.body) == (False, False)
        assert await house.rows(RowKind.INBOX) == ()


async def test_the_same_stranger_gets_one_code(world: World) -> None:
    """What they go on to write meets silence while it lives; so does a redelivery (P4, S2-02)."""
    async with world.running() as house:
        first = await house.event(Said(text="let me in"), "mallory", key="k")
        assert first == Accepted()
        assert await house.event(Said(text="let me in"), "mallory", key="k") == Ignored()
        assert await house.say("hello?", "mallory") == Ignored()
        assert len(house.texts("mallory")) == 1
        assert len(house.texts()) == 1
    async with world.running() as house:
        assert await house.say("hello?", "mallory") == Ignored()


async def test_a_crowd_at_the_same_instant_is_counted(world: World) -> None:
    """Nobody slips in between the look and the commit (P4)."""
    async with world.running() as house:
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                envelope = house.envelope(Said(text="let me in"), f"s{number}")
                group.create_task(house.services.ingress.admit(envelope))
        await house.settle()
        assert len(await house.rows(RowKind.STRANGER)) == 3


async def test_a_stranger_who_cannot_be_answered_troubles_no_other_person(world: World) -> None:
    """The platform refuses the code: operators see their card, and no alarm."""
    world.platforms["chat"].will("send", ChannelRejected("blocked"))
    async with world.told("let me in", by="mallory") as house:
        assert house.texts("mallory") == []
        assert len(house.texts()) == 1


# --- the card ------------------------------------------------------------------------------------


async def test_the_operator_sees_who_it_is(world: World) -> None:
    """Name, channel, sender id and the code, to approve or to deny (P5)."""
    async with world.told("let me in", by="mallory") as house:
        assert call(house).arguments.splitlines() == [
            "channel: chat",
            "sender id: mallory",
            "chosen name: Mallory",
            f"code: {code_of(house)}",
        ]
        assert house.card().choices == ("once", "deny")


async def test_a_press_at_the_deadline_has_lost(world: World) -> None:
    """Whether or not the timer has fired (P5)."""
    async with world.told("let me in", by="mallory") as house:
        world.clock.leap(timedelta(seconds=3600))
        assert await house.press() == "too late: it expired at 13:00:00 UTC"
        assert await house.rows(RowKind.PERSON) == ()
        assert house.endings() == [("expired", "")]


async def test_a_deadline_that_passed_while_the_daemon_was_down_counts(world: World) -> None:
    """A restart ends what is over, and goes on waiting for the rest (P5)."""
    async with world.told("let me in", by="mallory") as house:
        await house.advance(600)
        await house.say("me too", "trudy")
    world.clock.leap(timedelta(seconds=3000))
    async with world.running() as house:
        states = [PAIRINGS.of(row).state for row in await house.rows(RowKind.STRANGER)]
        assert sorted(states) == ["expired", "waiting"]
        await house.advance(600)
        assert house.endings() == [("expired", "")]


async def test_the_second_answer_says_who_was_first(world: World) -> None:
    """It changes nothing (P5)."""
    async with world.told("let me in", by="mallory") as house:
        await house.press("deny")
        assert await house.press("once") == "already denied by Ada"
        assert await house.rows(RowKind.PERSON) == ()


async def test_only_an_operator_may_answer(world: World) -> None:
    """Ben is let in and may not let in (P5)."""
    async with world.told("let me in", by="mallory") as house:
        assert await house.press(who="ben", at="ada") == "only an operator may answer this"
        assert house.endings() == []
        assert await house.rows(RowKind.PERSON) == ()


async def test_a_card_that_was_never_recorded_is_settled_when_it_is_touched(world: World) -> None:
    """The answer to the send was lost with the process; a press brings the card back (P5)."""
    async with world.told("let me in", by="mallory") as house:
        await house.press("deny")
        (row,) = await house.rows(RowKind.STRANGER)
        await world.store.write(to_put(replace(PAIRINGS.of(row), refs=())))
        world.platforms["chat"].standing(house.place())[-1].outcome = None
        assert await house.press() == "already denied by Ada"
        assert house.endings() == [("denied", "Ada")]


async def test_a_card_that_is_sent_late_shows_the_end(world: World) -> None:
    """Answered by code before its card could be shown (P5)."""
    platform = world.platforms["chat"]
    async with world.running() as house:
        may_go = asyncio.Event()

        async def hold(call: Call) -> None:
            if call.name == "ask":
                await may_go.wait()

        platform.before = hold
        await house.say("let me in", "mallory")
        reply = await house.ask("pair", words=f"approve {code_of(house)}")
        assert reply == {"text": "approved: chat:mallory", "changed": True}
        may_go.set()
        await house.settle()
        assert house.endings() == [("approved", "the operator on this machine")]


async def test_a_card_that_is_refused_leaves_the_question_open(world: World) -> None:
    """It is in the list, and can be answered there (P5)."""
    world.platforms["chat"].will("ask", ChannelRejected("no cards"))
    async with world.told("let me in", by="mallory") as house:
        await house.say("/pending")
        assert "wants to talk to this bot" in house.texts()[-1]
        await house.say(f"/pair approve {code_of(house)}")
        assert house.texts()[-1] == "approved: chat:mallory"


async def test_a_deadline_that_loses_a_race_is_looked_at_again(world: World) -> None:
    """Another write came between its read and its commit (P5)."""
    async with world.told("let me in", by="mallory") as house:

        def lose_race(_commit: Commit) -> None:
            world.store.before = None
            raise Conflict("another writer was first")

        world.store.before = lose_race
        await house.advance(3600)
        assert house.endings() == [("expired", "")]


async def test_status_counts_who_waits(world: World) -> None:
    """Among what is to be approved, until the code ends."""
    async with world.told("let me in", by="mallory") as house:
        assert (await house.ask("status"))["pending"] == 1
        await house.advance(3600)
        assert (await house.ask("status"))["pending"] == 0


# --- numbers and lists ---------------------------------------------------------------------------


async def test_another_person_cannot_use_the_number(world: World) -> None:
    """To Ben the number names nothing (P4)."""
    async with world.told("let me in", by="mallory") as house:
        await house.say("/approve 1", "ben")
        assert house.texts("ben") == ["There is no call `1` in this chat."]
        await house.say("/pending", "ben")
        assert house.texts("ben")[-1] == "Nothing waits for an answer."


async def test_pending_lists_who_waits(world: World) -> None:
    """With the number that answers it, as long as an answer counts."""
    async with world.told("let me in", by="mallory") as house:
        await house.say("/pending")
        assert house.texts()[-1] == (
            '- `1` `chat:mallory` ("Mallory") wants to talk to this bot, open until 13:00:00 UTC'
        )
        await house.say("/pending", room="lobby")
        assert house.texts(room="lobby")[-1] == "Nothing waits for an answer."
        await house.advance(3600)
        await house.say("/pending")
        assert house.texts()[-1] == "Nothing waits for an answer."


async def test_the_page_reads_the_end_back(world: World) -> None:
    """A chat that is opened anew shows the card as it ended (P5)."""
    async with world.told("let me in", by="mallory") as house:
        (before,) = [item.outcome for item in await house.transcript() if item.outcome]
        assert before.endings == ()
        await house.press("deny")
        (after,) = [item.outcome for item in await house.transcript() if item.outcome]
        assert [end.how for end in after.endings] == ["denied"]


# --- what is left --------------------------------------------------------------------------------


async def test_a_day_later_nothing_is_left(world: World) -> None:
    """The row goes, and the messages that showed the code (P4)."""
    async with world.told("let me in", by="mallory") as house:
        await house.advance(3600 * 26)
        assert await house.rows(RowKind.STRANGER) == ()
        bodies = [row.body for row in await house.rows(RowKind.OUTBOX)]
        assert not any(code_of(house).encode() in body for body in bodies)


# --- `/pair` and `zeroclaw pair`: lists, answers by code or id, and who is revoked ----------------


async def console(house: House, words: str) -> tuple[object, object]:
    """The answer to `zeroclaw pair`."""
    reply = await house.ask("pair", words=words)
    return reply["text"], reply["changed"]


async def test_a_code_that_a_stranger_reads_out_lets_them_in(world: World) -> None:
    """In a chat, in any case; the card shows it (P5)."""
    async with world.told("let me in", by="mallory") as house:
        await house.say(f"/pair approve {code_of(house).lower()}")
        assert house.texts()[-1] == "approved: chat:mallory"
        assert house.endings() == [("approved", "Ada")]
        assert house.texts("mallory")[1:] == ["You may talk to me now."]


async def test_people_are_listed_in_private_only(world: World) -> None:
    """In a group all members would read who waits and who is in (P5)."""
    async with world.told("let me in", by="mallory") as house:
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
        "nobody called `chat:eve` is waiting; `/pair list` shows who is",
    ),
    "nobody who was revoked": (
        "approve chat:eve",
        "`chat:eve` is neither waiting nor revoked; `/pair list` shows who is",
    ),
    "nobody at all": (
        "approve `x`",
        "`x` is neither waiting nor revoked; `/pair list` shows who is",
    ),
    "no such person": ("revoke eve", f"nobody is called `eve`. {USAGE}"),
    "no such channel": ("revoke mail:eve", f"nobody is called `mail:eve`. {USAGE}"),
}


@pytest.mark.parametrize(("words", "reply"), NONSENSE.values(), ids=NONSENSE)
async def test_a_wrong_command_is_answered_in_one_line(
    world: World, words: str, reply: str
) -> None:
    """It says what is wrong and changes nothing (P10)."""
    async with world.running() as house:
        assert await console(house, words) == (reply, False)
        assert world.store.commits == []


async def test_only_operators_may_use_it(world: World) -> None:
    """Ben reads neither who waits nor who is in (P4)."""
    async with world.told("let me in", by="mallory") as house:
        await house.say("/pair", "ben")
        assert house.texts("ben")[-1].startswith("`/pair` is not for you")


async def test_the_list_shows_waiting_requests_and_decisions(world: World) -> None:
    """Without codes, because they are not stored (P4)."""
    async with world.running() as house:
        assert (await console(house, ""))[
            0
        ] == "Nobody is waiting, and nobody was let in or revoked."
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
    """A person answers on the card in the same instant: one answer counts, the other reads so (P5)."""
    async with world.told("let me in", by="mallory") as house:

        def lose_race(_commit: Commit) -> None:
            world.store.before = None
            raise Conflict("another writer was first")

        world.store.before = lose_race
        assert await console(house, "deny chat:mallory") == ("denied: chat:mallory", True)


async def test_a_race_that_never_ends_is_reported(world: World) -> None:
    """After a few tries, with what to do (P10)."""
    async with world.told("let me in", by="mallory") as house:

        def lose_race(_commit: Commit) -> None:
            raise Conflict("another writer was first")

        world.store.before = lose_race
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
        reply = await console(house, f"approve {what}")
        assert reply == (f"approved: `{name}` is let in again", True)
        await house.say("hello", who)
        assert house.texts(who) == ["ok"]
        assert await house.rows(RowKind.PERSON) == ()


def is_stop(write: Write | Row) -> bool:
    return isinstance(write, Put | Row) and b'"cause":"revoked"' in write.body


def holding_stops(world: World) -> asyncio.Event:
    """Hold up the commits of stops until the event is set."""
    is_free = asyncio.Event()

    async def wait(writes: tuple[Write, ...]) -> None:
        if any(map(is_stop, writes)):
            await is_free.wait()

    world.store.meanwhile = wait
    return is_free


async def test_one_sweep_serves_all_revocations_that_wait(world: World) -> None:
    """While one is held up; what came meanwhile is ended all the same."""
    async with world.told("poke", POKE, POKE, by="ben") as house:
        await house.say("poke", "cleo")
        is_free = holding_stops(world)
        await console(house, "revoke ben")
        for who in ("chat:x", "chat:y", "chat:cleo"):
            await console(house, f"revoke {who}")
        assert [task.get_name() for task in asyncio.all_tasks()].count("revoked") == 2
        is_free.set()
        await house.settle()
        assert [row.state for row in await house.rows(RowKind.TURN)] == ["closed", "closed"]


async def test_a_late_stop_of_a_revoked_person_leaves_nothing_of_an_erased_chat(
    world: World,
) -> None:
    """It was planned while the turn ran, and is committed after that is gone."""
    async with world.told("poke", POKE, by="ben") as house:
        await house.say("/forget ben")
        code = house.texts()[-1].split("/forget ")[-1][:4]
        is_erased = holding_stops(world)
        await console(house, "revoke ben")
        await house.say(f"/forget {code}")
        await house.advance(10)
        is_erased.set()
        await house.settle()
        assert house.texts()[-1] == "Done: what `person:ben` said to me is removed."
        assert not any(map(is_stop, await house.rows(RowKind.INBOX)))


async def test_a_message_erased_as_its_writer_is_revoked_delays_nothing(world: World) -> None:
    """It was found while it waited; their other messages are stopped all the same."""
    world.model.will(POKE)
    async with world.running() as house:
        for text in ("poke", "two", "three"):
            await house.say(text, "ben")
        _, two, three = await house.rows(RowKind.INBOX)

        async def erase(writes: tuple[Write, ...]) -> None:
            if any(isinstance(write, Put) and write.key == two.key for write in writes):
                world.store.meanwhile = None
                deletion = Delete(kind=three.kind, key=three.key)
                await world.store.commit(
                    Commit(point=DurablePoint.HOUSEKEEPING, writes=(deletion,))
                )

        world.store.meanwhile = erase
        await console(house, "revoke ben")
        await house.settle()
        states = {row.key: row.state for row in await house.rows(RowKind.INBOX)}
        assert (states[two.key], three.key in states) == ("stopped", False)
        assert [row.state for row in await house.rows(RowKind.TURN)] == ["closed"]


async def test_a_new_name_brings_no_revoked_person_back(world: World) -> None:
    """The ids stay out that were theirs, until an operator says otherwise (P4)."""
    async with world.running() as house:
        await console(house, "revoke ben")
        ada = world.config.people[0]
        world.configure(people=(ada, PersonSettings(name="benno", ids=("chat:ben",))))
        await house.ask("reload")
        assert await house.say("hello", "ben") == Ignored()
        reply = await console(house, "approve chat:ben")
        assert reply == ("approved: `person:ben` is let in again", True)
        await house.say("hello", "ben")
        assert house.texts("ben") == ["ok"]


async def test_who_was_paired_and_revoked_may_come_back(world: World) -> None:
    """As who they were, but without a role (P4)."""
    async with world.told("let me in", by="mallory") as house:
        await house.press()
        await console(house, "revoke chat:mallory")
        assert await house.say("hello", "mallory") == Ignored()
        await console(house, "approve chat:mallory")
        await house.say("hello", "mallory")
        assert house.texts("mallory")[-1] == "ok"


async def test_an_operator_who_was_revoked_comes_back_as_none(world: World) -> None:
    """Neither a question that is answered nor an operator's word gives the role back (P4)."""
    world.configure(people=())
    async with world.running() as house:
        await house.say(world.ready[0].claim, "mallory")
        await console(house, "revoke chat:mallory")
        await console(house, "approve chat:mallory")
        await house.say("/whoami", "mallory")
        assert house.texts("mallory")[-1].endswith("Roles: none.")


async def test_an_operator_can_not_lock_themselves_out(world: World) -> None:
    """An operator can't revoke themselves from a chat; the console can (P10)."""
    async with world.told("/pair revoke ada") as house:
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
        reply = await console(house, "approve chat:cleo")
        assert reply == ("approved: `chat:cleo` is let in again", True)
        await house.say("hello", "cleo")
        assert house.texts("cleo")[-1] == "ok"


async def test_an_operator_whose_question_is_answered_late_stays_one(world: World) -> None:
    """They wrote first, then sent the printed code, then answered the question about themselves."""
    world.configure(people=())
    async with world.told("let me in", by="mallory") as house:
        await house.say(world.ready[0].claim, "mallory")
        await console(house, "approve chat:mallory")
        await house.say("/whoami", "mallory")
        assert house.texts("mallory")[-1].endswith("Roles: operator.")


async def test_an_id_is_shown_as_it_is(world: World) -> None:
    """Whole and with every sign: it alone decides who is let in, and it can be typed again (P5)."""
    who = f"mal_lory*@example.org.{'a' * 60}.invalid"
    async with world.told("let me in", by=who) as house:
        assert f"sender id: {who}" in house.card().calls[0].arguments.splitlines()
        assert f"`chat:{who}` (" in str((await console(house, "list"))[0])
        assert (await console(house, f"approve chat:{who}"))[1] is True


async def test_an_id_that_no_platform_gives_out_meets_silence(world: World) -> None:
    """A stranger chooses no size for the row that they leave (P4)."""
    async with world.running() as house:
        assert await house.say("let me in", "m" * 321) == Ignored()
        place = replace(house.place("mallory"), chat="c" * 1_400)
        envelope = replace(house.envelope(Said(text="let me in"), "mallory"), address=place)
        assert await world.platforms["chat"].say(envelope) == Ignored()
        assert await house.rows(RowKind.STRANGER) == ()


async def test_an_older_card_does_not_let_in_who_was_revoked(world: World) -> None:
    """Revoking answers the open question about them; a later press reads so (P5)."""
    async with world.told("let me in", by="mallory") as house:
        await console(house, "revoke chat:mallory")
        assert house.endings() == [("denied", "the operator on this machine")]
        assert await house.press() == "already denied by the operator on this machine"
        assert await house.say("hello", "mallory") == Ignored()
        assert len(house.texts("mallory")) == 1
