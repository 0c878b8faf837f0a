"""A message over a limit, or too old, is refused, ends in one state, and its writer reads why once."""

import asyncio
from datetime import timedelta

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.config.model import ApprovalSettings, ChannelSettings, LimitsSettings, RateSettings
from zeroclaw.conversation.inbox import INBOX, TooOld, Unread
from zeroclaw.envelope import Accepted, Body, Command, Duplicate, Edited, Said
from zeroclaw.inbound import limiter
from zeroclaw.inbound.limiter import MAX_BUCKETS, MAX_KEYS_PER_ROW, MAX_STORED_CHARS
from zeroclaw.store import Commit, DurablePoint, Query, Row, RowKind
from zeroclaw.value import replace

FAST = (
    "That was a lot at once: I take 6 a minute from one person. I did not take this message, "
    "and I take no others for 20 s. After that, write again."
)
CROWDED = (
    "This chat writes faster than I can answer: I take 6 a minute here. I did not take "
    "this message, and I take no others for 20 s."
)
FULL = (
    "For today that is all that I can take from one person, 2 a day. I did not take this message. "
    "The day ends at 00:00 UTC, in 12 h; after that, write again."
)
TWO = LimitsSettings(person_per_minute=6, person_burst=2)


def limited(world: World, **limits: int) -> None:
    """Two at once from each, six a minute; or other limits."""
    world.configure(limits=TWO.model_copy(update=limits))


def ever_was(world: World) -> list[str]:
    """All texts of people to the model."""
    last = [request.messages[-1] for request in world.model.requests]
    return [str(message.content) for message in last]


async def test_a_flood_gets_one_notice_and_is_taken_again_later(world: World) -> None:
    """Every message ends in one state; what was not taken never reaches the model (P1, P10)."""
    limited(world)
    async with world.running() as house:
        for text in ("one", "two", "three", "four", "five"):
            assert await house.say(text, "ben") == Accepted()
        assert house.texts("ben") == ["ok", "ok", FAST]
        assert await house.states() == ["answered", "answered", "failed"]
        await house.advance(19)
        await house.say("six", "ben")
        assert house.texts("ben")[3:] == []
        await house.advance(1)
        await house.say("seven", "ben")
        assert house.texts("ben")[3:] == ["ok"]
        assert ever_was(world) == ["one", "two", "seven"]
        assert house.services.rate_limiter.refused == {"chat": 4}
        assert (await house.ask("status"))["refused"] == {"chat": 4}
        await house.say("/status")
        assert "- 4 messages over a limit were not taken" in house.texts()[-1]


async def test_the_words_of_a_flood_are_not_kept(world: World) -> None:
    """The row holds that a message was refused, whose, and why."""
    limited(world)
    async with world.running() as house:
        for text in ("one", "two", "tulip", "/tool tulip {}"):
            await house.say(text, "ben")
        rows = await house.rows(RowKind.INBOX, "failed")
        assert [INBOX.of(row).content for row in rows] == [Unread(over="person", count=2)]
        bodies = [row.body for kind in RowKind for row in await house.rows(kind)]
        assert not any(b"tulip" in body for body in bodies)


async def test_a_flood_leaves_one_row_a_stretch(world: World) -> None:
    """However long it goes on, and a row for each chat that it is written in (P1, P9)."""
    limited(world)
    async with world.running() as house:
        for _ in range(3):
            await house.say("hello", "ben")
        before = await counted_rows(house)
        for _ in range(60):
            await house.say("hello", "ben")
        assert await counted_rows(house) == before
        await house.say("hello", "ben", room="lobby")
        await house.advance(20)
        for _ in range(4):
            await house.say("hello", "ben")
        contents = [INBOX.of(row).content for row in await house.rows(RowKind.INBOX, "failed")]
        assert contents == [
            Unread(over="person", count=61),
            Unread(over="person"),
            Unread(over="person", count=2),
        ]


async def counted_rows(house: House) -> tuple[int, int]:
    """How many rows there are of all kinds, and how many events are known again."""
    rows = [len(await house.rows(kind)) for kind in RowKind]
    return sum(rows), len(house.world.store.known)


async def test_an_operator_is_never_limited(world: World) -> None:
    limited(world, daily_messages=1)
    async with world.running() as house:
        for _ in range(5):
            await house.say("hello")
        assert house.texts() == ["ok"] * 5
        assert await house.rows(RowKind.ALLOWANCE) == ()


async def test_a_person_is_one_on_all_channels(world: World) -> None:
    """Two chats are two places for the notice, and one allowance."""
    limited(world)
    async with world.told("one", by="ben") as house:
        await house.say("two", "ben", room="lobby")
        await house.say("three", "ben")
        await house.say("four", "ben", room="lobby")
        await house.say("five", "ben", room="lobby")
        assert house.texts("ben") == ["ok", FAST]
        assert house.texts(room="lobby") == ["ok", FAST]


async def test_a_crowded_conversation_gets_one_notice_for_all(world: World) -> None:
    """Its operator still gets through."""
    limited(world, person_per_minute=0, conversation_per_minute=6, conversation_burst=2)
    async with world.running() as house:
        for who in ("ben", "cleo", "ben", "cleo", "ada"):
            await house.say("hello", who, room="lobby")
        await house.say("hello", "ben")
        assert house.texts(room="lobby") == ["ok", "ok", CROWDED, "ok"]
        assert house.texts("ben") == ["ok"]


async def test_a_new_conversation_is_no_way_around(world: World) -> None:
    limited(world, person_per_minute=0, conversation_per_minute=6, conversation_burst=2)
    async with world.told("one", by="ben") as house:
        await house.say("two", "ben")
        await house.say("/new", "ben")
        await house.say("three", "ben")
        assert house.texts("ben")[-1] == CROWDED


async def test_a_channels_rate_stands_in_place_of_the_limits(world: World) -> None:
    """What it names is counted there alone."""
    world.add_channel("mail")
    rate = RateSettings(person_per_minute=60, person_burst=3, daily_messages=3)
    settings = ChannelSettings(allowed_users=("ben",), rate=rate)
    world.configure(channels={**world.config.channels, "mail": settings})
    limited(world, daily_messages=2)
    async with world.running() as house:
        for _ in range(4):
            await house.say("hello", "ben", channel="mail")
        assert house.texts("ben", channel="mail")[:3] == ["ok"] * 3
        assert "60 a minute" in house.texts("ben", channel="mail")[3]
        await house.say("hello", "ben")
        assert house.texts("ben") == ["ok"]


async def test_limits_that_are_read_again_hold_at_once(world: World) -> None:
    """For all people; and for a channel, where its own limits are counted anew."""
    async with world.running() as house:
        limited(world)
        text = await house.ask("reload")
        assert text["live"] == ["limits.person_per_minute", "limits.person_burst"]
        for _ in range(3):
            await house.say("hello", "ben")
        assert house.texts("ben") == ["ok", "ok", FAST]
        rate = RateSettings(person_burst=3)
        chat = world.config.channels["chat"].model_copy(update={"rate": rate})
        world.configure(channels={"chat": chat})
        assert (await house.ask("reload"))["live"] == ["channels.chat.rate.person_burst"]
        await house.say("hello", "ben")
        assert house.texts("ben")[3:] == ["ok"]


async def test_the_notice_is_in_the_writers_language(world: World) -> None:
    limited(world)
    async with world.told("/language de", by="ben") as house:
        for _ in range(3):
            await house.say("hallo", "ben")
        assert house.texts("ben")[-1].startswith(
            "Das war viel auf einmal; ich nehme höchstens 6 pro"
        )


# --- what is never closed ------------------------------------------------------------------------


async def test_a_writer_over_a_limit_can_still_stop_and_answer(world: World) -> None:
    """A message that ends a turn, or that a turn waits for, always passes (P5)."""
    limited(world, daily_messages=2)
    held = asyncio.Event()
    world.model.will((held, *says("never")))
    async with world.running() as house:
        for text in ("one", "two", "three"):
            await house.say(text, "ben")
        for _ in range(9):
            await house.say("/deny 7", "ben")
        assert house.texts("ben")[-3:] == ["There is no call `7` in this chat."] * 2 + [FAST]
        await house.say("/stop", "ben")
        assert "_Stopped by Ben._" in house.texts("ben")
        assert "stopped" in await house.states()


async def test_commands_that_are_answered_at_once_have_a_lane_of_their_own(world: World) -> None:
    """Messages do not close it, nor it them; a flood of it is turned away like any."""
    limited(world)
    async with world.running() as house:
        for text in ("one", "two", "three", "/whoami", "/whoami", "/whoami", "/help"):
            await house.say(text, "ben")
        texts = house.texts("ben")
        assert texts[2] == FAST
        assert [text.startswith("You are `person:ben`") for text in texts[3:5]] == [True, True]
        assert texts[5:] == [FAST]
        assert len(await house.states("failed")) == 2


@pytest.mark.parametrize(
    "command", ["/stop", "/approve 1 2 3", "/deny 7", "/revoke 9", "/halt", "/resume"]
)
async def test_a_command_that_changed_nothing_counts(world: World, command: str) -> None:
    """Each is answered until the burst is used up, and then all of them leave one row."""
    limited(world)
    async with world.running() as house:
        for _ in range(3):
            await house.say(command, "ben")
        before = await counted_rows(house)
        for _ in range(30):
            await house.say(command, "ben")
        assert await counted_rows(house) == before
        assert house.services.rate_limiter.refused == {"chat": 31}


async def test_a_press_that_changes_nothing_counts_and_one_that_does_passes(world: World) -> None:
    """A toast says so, and no row is added (P5, P9)."""
    limited(world)
    world.configure(approvals=ApprovalSettings(approvers=("person:ben",)))
    async with world.told("poke it", asks_for(("poke", '{"a": 1}'))) as house:
        for _ in range(2):
            assert "only ben" in await house.press(who="cleo", at="ben")
        assert await house.press(who="cleo", at="ben") == FAST
        before = await counted_rows(house)
        for _ in range(9):
            assert await house.press(who="cleo", at="ben") == FAST
        assert await counted_rows(house) == before
        for _ in range(5):
            await house.say("/deny 7", "ben")
        assert await house.press(who="ben") == "approved: `poke`"
        assert world.poke.runs == [{"a": 1}]


@pytest.mark.parametrize("command", ["/retry", "/tool look {}", "/compact"])
async def test_a_command_that_starts_a_turn_counts_like_a_message(
    world: World, command: str
) -> None:
    limited(world)
    async with world.told("one", by="ben") as house:
        await house.say(command, "ben")
        await house.say(command, "ben")
        assert house.texts("ben")[2:] == [FAST]


async def test_strangers_are_met_as_ever(world: World) -> None:
    """Nothing is counted of them but that they were dropped (P4)."""
    limited(world)
    async with world.running() as house:
        for _ in range(5):
            await house.say("let me in", "mallory")
        assert house.services.ingress.dropped == {"chat": 5}
        assert house.services.rate_limiter.refused == {}
        assert world.store.commits == []


# --- what is counted -----------------------------------------------------------------------------


async def test_the_same_event_twice_counts_once(world: World) -> None:
    """A platform that delivers again uses up no allowance (P1)."""
    limited(world, daily_messages=2)
    async with world.running() as house:
        for _ in range(5):
            await house.event(Said(text="one"), "ben", key="k")
        await house.say("two", "ben")
        assert house.texts("ben") == ["ok", "ok"]
        assert await house.event(Said(text="three"), "ben", key="l") == Accepted()
        assert await house.event(Said(text="three"), "ben", key="l") == Accepted()
        # What was turned away is not remembered one by one: it is turned away again, without a word.
        assert house.texts("ben")[2:] == [FAST]
        assert len(await house.states("failed")) == 1


async def test_a_refused_message_is_not_taken_when_it_comes_again_after_a_restart(
    world: World,
) -> None:
    """Its writer has read so, and it has ended in that state (P1)."""
    limited(world)
    keys = ("a", "b", "c", "d", "e")
    async with world.running() as house:
        for key in keys:
            assert await house.event(Said(text=key), "ben", key=key) == Accepted()
        await house.say("/new", "ada")
    async with world.running() as house:
        again = [await house.event(Said(text=key), "ben", key=key) for key in keys]
        assert again == [Duplicate()] * 5
        assert ever_was(world) == ["a", "b"]
        assert await house.event(Said(text="f"), "ben", key="f") == Accepted()
        assert ever_was(world)[2:] == ["f"]


async def test_of_a_long_flood_the_newest_are_known_again(world: World) -> None:
    """More are not on their way; the row of a flood must not grow with it (P9)."""
    limited(world)
    async with world.running() as house:
        for number in range(MAX_KEYS_PER_ROW + 9):
            await house.event(Said(text="x"), "ben", key=f"k{number}")
        [row] = await house.rows(RowKind.INBOX, "failed")
        assert len(INBOX.of(row).refused) == MAX_KEYS_PER_ROW


async def test_places_are_looked_at_once_a_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A place that was forgotten again is looked at once more."""
    monkeypatch.setattr(limiter, "MAX_PLACES_READ", 1)
    limited(world, person_burst=9)
    read: list[Query] = []
    select = world.store.select

    async def noted(query: Query) -> tuple[Row, ...]:
        read.append(query)
        return await select(query)

    async with world.running() as house:
        monkeypatch.setattr(house.services.foundation.store, "select", noted)
        for room in ("hall", "hall", "lobby", "hall"):
            await house.services.ingress.admit(house.envelope(Said(text="x"), "ben", room=room))
    places = [row.place for row in read if row.kind is RowKind.INBOX and row.place]
    assert [place.rsplit("/", 2)[-2] for place in places] == ["hall", "lobby", "hall"]


async def test_many_at_once_are_counted_one_after_another(world: World) -> None:
    """Nobody gets more through by writing in many chats at the same instant."""
    limited(world, daily_messages=9)
    async with world.running() as house:
        admit = house.services.ingress.admit
        async with asyncio.TaskGroup() as group:
            for number in range(12):
                envelope = house.envelope(Said(text="hello"), "ben", room=f"room {number}")
                group.create_task(admit(envelope))
        await house.settle()
        assert sorted(await house.states()) == [*["answered"] * 2, *["failed"] * 10]  # in ten chats


async def test_several_people_in_one_chat_are_counted_one_after_another(world: World) -> None:
    """Also where no position makes one wait for the other."""
    limited(world, person_per_minute=0, conversation_burst=2)
    async with world.running() as house:
        async with asyncio.TaskGroup() as group:
            for who in ("ben", "cleo") * 3:
                envelope = house.envelope(Said(text="hello"), who, room="hall")
                group.create_task(house.services.ingress.admit(replace(envelope, position=None)))
        assert house.services.rate_limiter.refused == {"chat": 4}


async def test_messages_while_the_daemon_was_down_are_taken(world: World) -> None:
    """It counts for the time when it was written, where the platform tells it."""
    limited(world)
    async with world.running() as house:
        for minutes in (40, 30, 20, 10):
            sent_at = world.clock.now() - timedelta(minutes=minutes)
            late = replace(house.envelope(Said(text="hello"), "ben"), sent_at=sent_at)
            await world.platforms["chat"].say(late)
        await house.settle()
        assert await house.states() == ["answered"] * 4


async def test_a_start_begins_with_empty_buckets_but_not_with_a_new_day(world: World) -> None:
    """Nobody is refused for what an earlier process counted by the second."""
    limited(world, daily_messages=3)
    async with world.running() as house:
        for _ in range(3):
            await house.say("hello", "ben")
        assert await house.states() == ["answered", "answered", "failed"]
    async with world.told("hello", by="ben") as house:
        await house.say("hello", "ben")
        assert house.texts("ben")[3] == "ok"
        assert "For today that is all" in house.texts("ben")[4]


async def test_only_so_many_buckets_are_remembered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was filled least recently goes."""
    monkeypatch.setattr("zeroclaw.inbound.limiter.MAX_BUCKETS", 2)
    assert MAX_BUCKETS > 2
    limited(world)
    async with world.running() as house:
        for _ in range(2):
            await house.say("hello", "ben")
        for _ in range(2):
            await house.say("hello", "cleo")
        await house.say("hello", "ben")
        assert house.texts("ben") == ["ok"] * 3


# --- the day -------------------------------------------------------------------------------------


async def test_a_full_day_gets_one_notice_and_is_over_at_midnight(world: World) -> None:
    """After a restart too; in each chat once."""
    limited(world, daily_messages=2, person_per_minute=0)
    async with world.running() as house:
        for _ in range(4):
            await house.say("hello", "ben")
        assert house.texts("ben") == ["ok", "ok", FULL]
    async with world.told("hello", by="ben") as house:
        assert house.texts("ben") == ["ok", "ok", FULL]
        await house.say("hello", "ben", room="lobby")
        assert house.texts(room="lobby") == [FULL]
        await house.advance(12 * 3600)
        await house.say("hello", "ben")
        assert house.texts("ben")[3:] == ["ok"]


@pytest.mark.parametrize("written", [True, False], ids=["after", "before"])
async def test_a_kill_at_the_last_message_of_a_day_lets_none_through(
    world: World, *, written: bool
) -> None:
    """The count is in the commit of the message: neither is there without the other (P1)."""
    limited(world, daily_messages=2, person_per_minute=0)
    async with world.told("one", by="ben") as house:
        last = house.envelope(Said(text="two"), "ben")
        if written:
            world.store.cut_after(DurablePoint.ADMITTED)
        else:
            world.store.before = _cut
        async with asyncio.TaskGroup() as group:
            admission = group.create_task(_admitted(house.services.ingress.admit(last)))
            await house.settle()
            admission.cancel()
    world.store.heal()
    async with world.running() as house:
        again = await world.platforms["chat"].say(last)
        await house.settle()
        assert again == (Duplicate() if written else Accepted())
        await house.say("three", "ben")
        assert await house.states() == ["answered", "answered", "failed"]
        assert house.texts("ben") == ["ok", "ok", FULL]


async def _admitted(admitting: object) -> None:
    """Wait for an admission that may never return, or be refused."""
    assert asyncio.iscoroutine(admitting)
    try:
        await admitting
    except RuntimeError:
        return


def _cut(commit: Commit) -> None:
    if commit.point is DurablePoint.ADMITTED:
        raise RuntimeError("killed")


async def test_yesterdays_counts_are_swept(world: World) -> None:
    """Nothing is kept of a day that is over."""
    limited(world, daily_messages=2)
    async with world.told("hello", by="ben") as house:
        assert len(await house.rows(RowKind.ALLOWANCE)) == 1
        await house.advance(86_400 * 2)
        assert await house.rows(RowKind.ALLOWANCE) == ()


async def test_an_edit_of_a_refused_message_changes_nothing(world: World) -> None:
    """Or a flood could be edited into the history."""
    limited(world)
    async with world.running() as house:
        for text in ("one", "two", "three"):
            await house.say(text, "ben")
        await house.edit("p3", "tulip", "ben")
        await house.withdraw("p3", "ben")
        await house.advance(20)
        await house.say("four", "ben")
        assert world.model.asked()[-1] == "user: four"
        assert not any("tulip" in text for text in world.model.asked())


async def test_edits_count_like_messages(world: World) -> None:
    """The model reads each of them; later the message that they are about is found again."""
    world.configure(limits=LimitsSettings(person_per_minute=6, person_burst=3))
    async with world.told("one", by="ben") as house:
        for number in range(9):
            await house.edit("p1", f"edit {number}", "ben")
        assert await house.states() == ["answered", "joined", "joined", "failed"]
        assert [text.partition(" ")[0] for text in house.texts("ben")] == ["ok", "That"]
        await house.advance(60)
        await house.edit("p1", "tulip", "ben")
        await house.say("two", "ben")
        assert "tulip" in str(world.model.asked())


async def test_an_edit_over_a_limit_does_not_hide_the_message_that_it_is_about(
    world: World,
) -> None:
    """Platforms give an edit its message's own id; a refused message has no original to change."""
    world.configure(limits=LimitsSettings(person_per_minute=6, person_burst=3))
    async with world.told("one", by="ben") as house:
        for number in range(9):
            edit = house.envelope(Edited(message="p1", said=Said(text=f"edit {number}")), "ben")
            await house.services.ingress.admit(replace(edit, message="p1"))
        await house.advance(60)
        await house.edit("p1", "tulip", "ben")
        await house.say("two", "ben")
        assert "tulip" in str(world.model.asked())


async def test_a_repeated_refusal_reads_few_rows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood is what is cheap to send, so it is cheap to refuse (P9)."""
    limited(world)
    read: list[int] = []
    select = world.store.select

    async def counted(query: Query) -> tuple[Row, ...]:
        found = await select(query)
        read.append(len(found))
        return found

    async with world.running() as house:
        for _ in range(6):
            await house.say("hello", "ben")
            await house.say("hello", "ben")
            await house.advance(20)
        for _ in range(3):
            await house.say("hello", "ben")
        monkeypatch.setattr(house.services.foundation.store, "select", counted)
        await house.services.ingress.admit(house.envelope(Said(text="hello"), "ben"))
        assert 0 < sum(read) <= 4
        [row] = await house.rows(RowKind.INBOX, "failed")
        assert INBOX.of(row).content == Unread(over="person", count=2)


# --- what is remembered ---------------------------------------------------------------------------


async def test_who_is_over_a_limit_stays_so_while_others_write(world: World) -> None:
    """Until their own time is over, and not a moment less."""
    world.configure(limits=LimitsSettings(person_per_minute=6, person_burst=1))
    async with world.running() as house:
        for name in ("ben", "cleo", "cleo"):
            await house.say("hello", name)
        await house.advance(9)
        await house.say("too early", "cleo")
        assert house.texts("cleo")[0] == "ok"
        assert "ok" not in house.texts("cleo")[1:]


async def test_a_flood_that_was_written_a_while_ago_is_counted_all_the_same(world: World) -> None:
    """Its buckets have drained by their messages' own time, and were not written slowly."""
    world.configure(limits=LimitsSettings(person_per_minute=6, person_burst=2))
    async with world.running() as house:
        sent_at = world.clock.now() - timedelta(minutes=10)
        for text in ("one", "two", "three", "four"):
            late = replace(house.envelope(Said(text=text), "ben"), sent_at=sent_at)
            await world.platforms["chat"].say(late)
        await house.settle()
        assert house.services.rate_limiter.refused == {"chat": 2}


# --- what was written while the daemon was down ---------------------------------------------------

HOUR_S = 3600.0
TOLD = (
    "What was written here more than 60 min ago reached me only now, and I leave it unanswered. "
    "Write it again if it still matters."
)


def bounded(world: World, max_age_s: float = HOUR_S) -> None:
    settings = ChannelSettings(allowed_users=("ada", "ben"), max_age_s=max_age_s)
    world.configure(channels={"chat": settings})


async def written(
    house: House, body: Body, hours: float, who: str = "ada", *, room: str = ""
) -> None:
    """A message of long ago comes now."""
    sent_at = house.world.clock.now() - timedelta(hours=hours)
    late = replace(house.envelope(body, who, room=room), sent_at=sent_at)
    await house.world.platforms["chat"].say(late)
    await house.settle()


async def test_a_message_that_is_too_old_is_stored_and_announced_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of it is answered; what is younger is, with a word about the wait (P10)."""
    bounded(world)
    async with world.running() as house:
        await written(house, Said(text="one"), 3)
        await written(house, Said(text="two"), 2)
        assert house.texts() == [TOLD]
        await written(house, Said(text="three"), 0.5)
        assert house.texts() == [TOLD, "ok\n\n_Answered 30 min after it was written._"]
        assert world.model.asked() == [
            "user: [written 2026-01-01 11:30 UTC, 30 min before you read it]\nthree"
        ]
        assert await house.states() == ["failed", "answered"]
        [late] = await house.rows(RowKind.INBOX, "failed")
        assert INBOX.of(late).content == TooOld(text="one\n\ntwo", count=2)
        logged = [vars(record) for record in caplog.records if record.msg == "message_too_old"]
        assert [record["zeroclaw_fields"] for record in logged] == [
            {"channel": "chat", "conversation": late.conversation, "age_s": hours * 3_600}
            for hours in (3, 2)
        ]
        assert [item.text for item in await house.transcript() if item.kind == "person"] == [
            "one\n\ntwo",
            "three",
        ]


async def test_messages_refused_for_two_reasons_by_turns_leave_two_rows(world: World) -> None:
    """Each counts on beyond the other (P1)."""
    bounded(world)
    limited(world, person_burst=1)
    async with world.told("taken", by="ben") as house:
        for _ in range(2):
            await house.say("too fast", "ben")
            await written(house, Said(text="too old"), 2, "ben")
        contents = [INBOX.of(row).content for row in await house.rows(RowKind.INBOX, "failed")]
        assert contents == [
            Unread(over="person", count=2),
            TooOld(text="too old\n\ntoo old", count=2),
        ]


async def test_a_message_that_is_too_old_and_comes_again_is_stored_once(world: World) -> None:
    """Of operators as well, whom no limit counts; after a restart too (P1)."""
    bounded(world)
    async with world.running() as house:
        sent_at = world.clock.now() - timedelta(hours=3)
        late = [
            replace(house.envelope(Said(text=text)), sent_at=sent_at) for text in ("one", "two")
        ]
        admit = house.services.ingress.admit
        assert [await admit(envelope) for envelope in (*late, late[1])][2:] == [Duplicate()]
    async with world.running() as house:
        admit = house.services.ingress.admit
        assert [await admit(envelope) for envelope in late] == [Duplicate()] * 2
        contents = [INBOX.of(row).content for row in await house.rows(RowKind.INBOX, "failed")]
        assert contents == [TooOld(text="one\n\ntwo", count=2)]


async def test_a_flood_that_is_too_old_leaves_one_row_of_bounded_length(world: World) -> None:
    """However much was written while the daemon was down (P9)."""
    bounded(world)
    async with world.running() as house:
        for number in range(60):
            await written(house, Said(text=f"{number} " + "x" * 1000), 3)
        (content,) = [INBOX.of(row).content for row in await house.rows(RowKind.INBOX, "failed")]
        assert isinstance(content, TooOld)
        assert (len(content.text), content.count) == (MAX_STORED_CHARS, 60)
        assert house.texts() == [TOLD]
        await written(house, Said(text="late"), 2, "ben")
        assert len(await house.rows(RowKind.INBOX, "failed")) == 2


async def test_the_notice_comes_again_the_next_time(world: World) -> None:
    """Not for each message, but for each time that the daemon was down."""
    bounded(world)
    async with world.running() as house:
        await written(house, Said(text="one"), 3)
        await house.say("hello")
    async with world.running() as house:
        await written(house, Said(text="two"), 2)
        assert house.texts() == [TOLD, "ok", TOLD]


async def test_each_person_gets_a_notice_and_a_stranger_none(world: World) -> None:
    """In a group too (P4)."""
    bounded(world)
    async with world.running() as house:
        for who in ("ada", "ben", "ada", "mallory"):
            await written(house, Said(text="hello"), 2, who, room="room")
        assert house.texts(room="room") == [TOLD, TOLD]
        await written(house, Said(text="hello"), 2, "mallory")
        assert house.texts("mallory") == []


async def test_a_call_that_is_too_old_does_not_run(world: World) -> None:
    """Its writer did not mean it for now; other commands are obeyed (P3)."""
    bounded(world)
    async with world.running() as house:
        await written(house, Command(name="tool", rest="poke {}"), 2)
        assert house.texts() == [TOLD]
        assert world.poke.runs == []
        await written(house, Command(name="whoami"), 2)
        assert house.texts()[-1].startswith("You are")


async def test_a_message_that_is_too_old_counts_for_nothing(world: World) -> None:
    """A message without an answer uses up no day; and its edit finds nothing."""
    bounded(world)
    world.configure(limits=LimitsSettings(daily_messages=1))
    async with world.running() as house:
        await written(house, Said(text="one"), 2, "ben")
        await house.edit("p1", "two", "ben")
        await house.say("hello", "ben")
        assert house.texts("ben") == [TOLD, "ok"]


async def test_without_a_bound_all_is_answered_in_its_order(world: World) -> None:
    """However old it is, and a file alone has nothing but its name to keep."""
    bounded(world, 0)
    async with world.running() as house:
        for number in (3, 2, 1):
            await written(house, Said(text=f"{number} days"), 24 * number)
        texts = [
            request.messages[-1].content.partition("\n")[2] for request in world.model.requests
        ]
        assert texts == ["3 days", "2 days", "1 days"]
        assert house.texts()[0] == "ok\n\n_Answered 3 d after it was written._"
