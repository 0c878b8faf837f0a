"""Operators hear of messages that fail: of the first by a line each, of the rest by a count."""

import asyncio
from collections.abc import Callable

import pytest

from tests.fakes.house import House, World
from tests.fakes.house_parts import CAPABILITIES, Facts
from tests.fakes.scripted_model import LOOK, POKE, asks_for, says
from zeroclaw.config.model import BudgetSettings, PersonSettings, RuntimeSettings
from zeroclaw.delivery.rows import stored
from zeroclaw.envelope import (
    Accepted,
    Address,
    Admission,
    Envelope,
    Ignored,
    Position,
    Said,
    Sender,
)
from zeroclaw.errors import (
    ChannelRejected,
    ChannelUnavailable,
    ProviderRejected,
    RecordUnreadable,
    StoreUnusable,
)
from zeroclaw.inbound.operators import FIRST_PERIOD_S, MAX_CAUSES
from zeroclaw.inbound.supervisor import MAX_TRACKED, TRIES, PoisonMessages
from zeroclaw.store import Commit, DurablePoint, Put, RowKind
from zeroclaw.text.language import Localized
from zeroclaw.value import replace

DAMAGED = (
    *(RowKind.CONVERSATION, RowKind.ADDRESS, RowKind.INBOX, RowKind.TURN, RowKind.OUTBOX),
    *(RowKind.APPROVAL, RowKind.ACTION, RowKind.POSITION),
)
BEN = Address(channel="chat", account="bot", chat="ben", direct=True).key()
DOWN = (ProviderRejected("it is down"),)
LINE = "An answer to Ben in `chat` failed: the model can't answer: it is down."


def adas_texts(house: House) -> list[str]:
    """The texts to Ada, who writes nothing herself."""
    return house.texts()


async def test_a_failed_turn_is_reported_with_person_place_and_reason(world: World) -> None:
    """In the commit of its end, so that a kill loses neither (P1)."""
    async with world.told("tulip", DOWN, by="ben") as house:
        assert adas_texts(house) == [LINE]
        [finished] = [
            commit for commit in world.store.commits if commit.point is DurablePoint.FINISHED
        ]
        kinds = [getattr(write, "kind", "") for write in finished.writes]
        assert (kinds.count(RowKind.OUTBOX), kinds.count(RowKind.NOTICE)) == (1, 1)
        assert house.texts("ben") == ["_The model can't answer: it is down._"]


async def test_a_model_that_is_down_for_an_hour_is_reported_in_a_few_lines(world: World) -> None:
    """The first at once, the others by a count, ever more rarely; then it is news again."""
    world.configure(limits=world.config.limits.model_copy(update={"person_per_minute": 0}))
    world.model.will(*[DOWN] * 62)
    async with world.running() as house:
        for _ in range(60):
            await house.say("hello", "ben")
            await house.advance(60)
        assert adas_texts(house) == [
            LINE,
            "In the last 10 min 9 more messages failed like that.",
            "In the last 20 min 20 more messages failed like that.",
        ]
        await house.advance(2400)
        assert adas_texts(house)[3:] == ["In the last 40 min 30 more messages failed like that."]
        await house.advance(3600)
        await house.say("hello", "ben")
        assert adas_texts(house)[4:] == [LINE]
        await house.say("hello", "ben")
        await house.advance(FIRST_PERIOD_S)
        assert adas_texts(house)[5:] == ["In the last 10 min one more message failed like that."]


async def test_another_cause_is_reported_at_once_up_to_a_few(world: World) -> None:
    """A model may word its trouble differently each time."""
    world.model.will(*[(ProviderRejected(f"trouble {number}"),) for number in range(9)])
    async with world.running() as house:
        for _ in range(9):
            await house.say("hello", "ben")
        assert len(adas_texts(house)) == MAX_CAUSES
        await house.advance(FIRST_PERIOD_S)
        assert adas_texts(house)[MAX_CAUSES:] == [
            "In the last 10 min 6 more messages failed like that."
        ]


async def test_an_operator_who_sees_it_in_their_own_chat_gets_no_notice(world: World) -> None:
    """The operator's own message failed before their eyes; other operators hear of it."""
    world.configure(
        people=(
            *world.config.people[:1],
            PersonSettings(name="cleo", ids=("chat:cleo",), roles=("operator",), language="de"),
        )
    )
    async with world.told("hello", DOWN) as house:
        assert len(house.texts()) == 1
        assert house.texts("cleo") == [
            "Eine Antwort an Ada in `chat` ist gescheitert: the model can't answer: it is down."
        ]


async def test_without_another_operator_nothing_is_counted(world: World) -> None:
    world.model.will(DOWN, DOWN, DOWN)
    async with world.running() as house:
        for _ in range(3):
            await house.say("hello")
        await house.advance(FIRST_PERIOD_S)
        assert len(house.texts()) == 3


async def test_what_a_person_or_the_model_ended_itself_is_no_failure(world: World) -> None:
    """Stopped, interrupted and answered turns send no notice."""
    async with world.told("hello", by="ben") as house:
        await house.say("/retry", "ben")
        assert adas_texts(house) == []


async def test_a_turn_that_went_in_circles_is_reported(world: World) -> None:
    """Its item ends as failed, for any end."""
    world.configure(runtime=RuntimeSettings(max_iterations=1))
    async with world.told("look", asks_for(("look", "{}")), by="ben") as house:
        assert [text.partition(";")[0] for text in adas_texts(house)] == [
            "An answer to Ben in `chat` failed: stopped after 1 rounds of tool calls, the limit of "
            "one turn"
        ]


async def test_finals_that_a_platform_refuses_are_counted_too(world: World) -> None:
    """A channel that takes nothing for an hour is one line and a count."""
    world.add_platform("chat", replace(CAPABILITIES, can_edit=False))
    async with world.running() as house:
        for _ in range(3):
            world.platforms["chat"].will("send", ChannelRejected("blocked"))
            await house.say("hello", "ben")
        line = "An answer to Ben in `chat` was refused by the platform: blocked."
        assert adas_texts(house) == [line]
        await house.advance(FIRST_PERIOD_S)
        assert adas_texts(house)[1:] == ["In the last 10 min 2 more messages failed like that."]
        assert await house.states() == ["failed"] * 3


async def test_a_refusal_that_is_recorded_again_is_reported_once(world: World) -> None:
    """A commit that meets another is planned anew, with the same text."""
    world.add_platform("chat", replace(CAPABILITIES, can_edit=False))
    touched: list[DurablePoint] = []

    def touch(commit: object) -> None:
        point = getattr(commit, "point", None)
        if point is DurablePoint.REFUSED and not touched:
            touched.append(point)
            world.store.touch(RowKind.INBOX)

    world.store.before = touch
    async with world.running() as house:
        world.platforms["chat"].will("send", ChannelRejected("blocked"))
        await house.say("hello", "ben")
        assert touched
        assert len(adas_texts(house)) == 1
        await house.advance(FIRST_PERIOD_S)
        assert len(adas_texts(house)) == 1


async def test_a_restart_tells_the_next_failure_again(world: World) -> None:
    """The count is lost with the process; what failed is on record."""
    world.model.will(DOWN, DOWN, says("fine"))
    async with world.running() as house:
        await house.say("hello", "ben")
    async with world.told("hello", by="ben") as house:
        assert adas_texts(house) == [LINE, LINE]
        await house.say("hello", "ben")
        assert house.texts("ben")[-1] == "fine"


async def test_a_crash_loop_names_what_may_have_run(world: World) -> None:
    """A call that had started is reported although its end could not be recorded (P3)."""
    world.model.will(asks_for(("poke", '{"a": 1}')))
    world.poke.hold = asyncio.Event()
    async with world.told("poke it", by="ben") as house:
        await house.press()
        assert len(world.poke.runs) == 1

    def fail(commit: Commit) -> None:
        if commit.point is DurablePoint.CALL_FINISHED:
            raise RuntimeError("no room")

    world.store.before = fail
    async with world.running() as house:
        await house.advance(60)
        assert adas_texts(house)[1:] == [
            "An answer to Ben in `chat` failed: I was cut off again and again while I worked on it.",
            "`poke` had started for Ben in `chat` when I was cut off, and may have run. I did not "
            "repeat it.",
        ]
        assert len(world.poke.runs) == 1


# --- an event that breaks our own code ------------------------------------------------------------


def event(key: str) -> Envelope:
    return Envelope(
        address=Address(channel="chat", account="bot", chat="7", direct=True),
        sender=Sender(id="7", verified=True),
        dedup=(key,),
        body=Said(text="hi"),
    )


class Rig:
    def __init__(self, fault: Callable[[str], Exception | None]) -> None:
        self.fault = fault
        self.notices: list[tuple[str, str]] = []
        self.log = Facts()
        self.poison = PoisonMessages(
            channel="chat", ingress=self.admit, tell_operators=self.tell, log=self.log
        )

    async def admit(self, envelope: Envelope) -> Admission:
        error = self.fault(envelope.dedup[0])
        if error is not None:
            raise error
        return Accepted()

    async def tell(self, name: str, notice: Localized) -> None:
        self.notices.append((name, notice.to("en")))


async def test_an_event_that_breaks_our_code_is_dropped_after_enough_tries_and_reported() -> None:
    """It neither silences its channel for ever nor is lost without a word (P9)."""
    rig = Rig(lambda key: KeyError("hunter2") if key == "bad" else None)
    for _ in range(TRIES - 1):
        with pytest.raises(ChannelUnavailable, match="an event raised KeyError"):
            await rig.poison.admit(event("bad"))
        assert await rig.poison.admit(event("good")) == Accepted()
    assert rig.notices == []
    assert await rig.poison.admit(event("bad")) == Ignored()
    ((name, notice),) = rig.notices
    assert name == ""
    assert "`chat`" in notice
    assert "hunter2" not in notice


async def test_a_dropped_event_is_neither_retried_nor_reported_twice() -> None:
    """It comes again behind what is still tried, and an edit is offered again as a message."""
    faults: list[Exception] = [KeyError()] * (TRIES + 1)
    rig = Rig(lambda _key: faults.pop() if faults else None)
    for _ in range(TRIES - 1):
        with pytest.raises(ChannelUnavailable):
            await rig.poison.admit(event("bad"))
    assert await rig.poison.admit(event("bad")) == Ignored()
    assert await rig.poison.admit(event("bad")) == Ignored()
    assert len(rig.notices) == 1
    assert await rig.poison.admit(event("bad")) == Accepted()


async def test_a_store_that_is_away_is_waited_for_however_long() -> None:
    """Nothing is given up because a disk is full (P1)."""
    rig = Rig(lambda _key: StoreUnusable("the disk is full"))
    for _ in range(TRIES * 2):
        with pytest.raises(StoreUnusable):
            await rig.poison.admit(event("a"))
    assert rig.notices == []


async def test_a_stored_record_that_is_damaged_silences_its_own_chat_alone(world: World) -> None:
    """Waiting does not mend it, and Telegram hands out nothing behind an update that it keeps."""
    async with world.told("hello", by="ben") as house:
        (row,) = await house.rows(RowKind.ADDRESS)
        world.store.damage(row)
    async with world.running() as house:
        rig = Rig(lambda _key: None)
        rig.poison.ingress = house.services.ingress.admit
        envelope = house.envelope(Said(text="anybody?"), "ben")
        for _ in range(TRIES - 1):
            with pytest.raises(RecordUnreadable):
                await rig.poison.admit(envelope)
        assert await rig.poison.admit(envelope) == Ignored()
        ((_, notice),) = rig.notices
        assert "a stored record can't be read" in notice
        assert await rig.poison.admit(house.envelope(Said(text="hello"))) == Accepted()


@pytest.mark.parametrize("kind", DAMAGED)
async def test_a_stored_record_that_is_damaged_prevents_no_start(
    world: World, kind: RowKind
) -> None:
    """Whatever it was of, the others are answered."""
    world.model.will(says("hello Ben"), POKE, says("hello Ada"))
    async with world.running() as house:
        envelope = house.envelope(Said(text="hello"), "ben")
        read = replace(envelope, position=Position(scope="ben", cursor="1"))
        await house.services.ingress.admit(read)
        await house.settle()
        await house.say("poke it", "ben")
        row, *_ = await house.rows(kind)
        world.store.damage(row)
    async with world.told("hello") as house:
        assert house.texts()[-1] == "hello Ada"


@pytest.mark.parametrize(
    "kind", [RowKind.CONVERSATION, RowKind.TURN, RowKind.ACTION, RowKind.ALLOWANCE]
)
async def test_a_damaged_record_of_the_past_holds_up_no_chat(world: World, kind: RowKind) -> None:
    """No answer needs what came before `/new`, an earlier turn's price, call or count of messages."""
    world.configure(budget=BudgetSettings(conversation_tokens=1_000_000))
    async with world.told("look", LOOK, says("I looked"), says("hello again"), by="ben") as house:
        row, *_ = await house.rows(kind)
        world.store.damage(row)
    async with world.told("hello", by="ben") as house:
        assert house.texts("ben")[-1] == "hello again"


async def test_a_turn_that_is_damaged_while_it_runs_ends_no_daemon(world: World) -> None:
    """Its draft records each message there; only its own chat needs that."""
    world.model.will(says("hello Ben"), says("hello Ada"))
    async with world.running() as house:

        def damage(commit: Commit) -> None:
            if commit.point is DurablePoint.TURN_STARTED:
                puts = [write for write in commit.writes if isinstance(write, Put)]
                world.store.damage(stored(puts[-1], 1))

        world.store.after = damage
        await house.say("hello", "ben")
        world.store.heal()
        await house.say("hello")
        assert house.texts()[-1] == "hello Ada"


async def test_a_turn_whose_request_is_damaged_can_be_stopped(world: World) -> None:
    """Nobody can answer it any more, and no deadline ends it."""
    async with world.told("poke it", POKE, says("hello again"), by="ben") as house:
        (row,) = await house.rows(RowKind.APPROVAL)
        world.store.damage(row)
        await house.say("/stop", "ben")
        await house.say("hello", "ben")
        assert house.texts("ben")[-1] == "hello again"
    assert world.poke.runs == []


async def test_a_damaged_request_of_the_past_holds_up_no_answer(world: World) -> None:
    """Only a card that both are on would need it."""
    async with world.told("poke it", POKE, says("one"), POKE, says("two"), by="ben") as house:
        await house.press()
        (row,) = await house.rows(RowKind.APPROVAL)
        world.store.damage(row)
        await house.say("again", "ben")
        await house.press()
        assert house.texts("ben")[-1] == "two"
    assert len(world.poke.runs) == 2


async def test_a_damaged_reading_position_is_reported_to_operators_once(world: World) -> None:
    """A channel may then take messages of meanwhile for read, without a sign (P1)."""
    lost = "How far I had read `chat` can't be read any more."
    damaged = (
        Put(kind=RowKind.POSITION, key=f"chat/me/{scope}", body=b"{", place="chat/me")
        for scope in ("ben", "den")
    )
    await world.store.write(*damaged)
    async with world.running():
        pass
    async with world.running() as house:
        (text,) = house.texts()
        assert text.startswith(lost)


@pytest.mark.parametrize(
    ("kind", "state", "place"),
    [(RowKind.OUTBOX, "pending", BEN), (RowKind.NOTICE, "", ""), (RowKind.LANGUAGE, "", "")],
)
async def test_a_damaged_record_of_what_waits_keeps_no_daemon_from_starting(
    world: World, kind: RowKind, state: str, place: str
) -> None:
    """Such as an answer that no channel has taken yet; what waits behind it goes on."""
    await world.store.write(Put(kind=kind, key="0" * 26, body=b"{", state=state, place=place))
    async with world.told("hello", says("hello Ben"), by="ben") as house:
        assert house.texts("ben") == ["hello Ben"]


async def test_a_damaged_message_that_waits_is_reported_to_operators_once(world: World) -> None:
    """Only the operators can learn that it is never sent."""
    waits = Put(kind=RowKind.OUTBOX, key="0" * 26, body=b"{", state="pending", place=BEN)
    await world.store.write(waits)
    for _ in range(2):
        async with world.running() as house:
            (text,) = adas_texts(house)
            assert text.startswith("A message in `chat` may or may not have arrived: a stored rec")
            assert [row.key for row in await house.rows(RowKind.OUTBOX, "refused")] == ["0" * 26]


async def test_a_card_of_a_damaged_request_ends_no_daemon(world: World) -> None:
    """Nor is it sent again and again, because its message can't be recorded."""
    world.model.will(POKE)
    chat = world.platforms["chat"]
    chat.will("ask", ChannelUnavailable("away"))
    async with world.told("poke it", by="ben") as house:
        (row,) = await house.rows(RowKind.APPROVAL)
        world.store.damage(row)
    async with world.running() as house:
        await house.advance(10)
        assert len(chat.called("ask")) == 2
        assert adas_texts(house)[-1].startswith("A message in `chat` may or may not have arrived")
        await house.say("hello")
        assert adas_texts(house)[-1] == "ok"


@pytest.mark.parametrize("command", ["/pending", "/grants", "/usage", "/pair", "/approve 1"])
@pytest.mark.parametrize(
    "kind", [RowKind.APPROVAL, RowKind.STRANGER, RowKind.GRANT, RowKind.TURN, RowKind.CONVERSATION]
)
async def test_a_damaged_record_silences_no_command(
    world: World, kind: RowKind, command: str
) -> None:
    """It is missing from what is listed, and everybody else's is there."""
    by_code = world.config.channels["chat"].model_copy(update={"pairing": "code"})
    world.configure(channels={"chat": by_code})
    world.model.will(asks_for(("poke", "{}")), says("done"), asks_for(("burn", "{}")))
    async with world.told("let me in", by="mallory") as house:
        await house.say("poke it", "ben")
        await house.press("for_a_time")
        await house.say("burn it", "ben")
        rows = await house.rows(kind)
        world.store.damage(rows[-1])
        count = len(adas_texts(house))
        await house.say(command)
        assert len(adas_texts(house)) == count + 1
        await house.say("me too", "trudy")
        assert len(house.texts("trudy")) == 1


async def test_a_damaged_counter_prevents_no_approval_request(world: World) -> None:
    """No number is given out twice, for an old one must not approve something else (P5)."""
    world.model.will(POKE, says("done"), asks_for(("burn", "{}")))
    async with world.told("poke it", by="ben") as house:
        await house.press()
        (row,) = await house.rows(RowKind.COUNTER)
        world.store.damage(row)
    async with world.told("burn it", by="ben") as house:
        assert await house.numbers() == (2,)
        assert [call.tool for call in house.card().calls] == ["burn"]


async def test_few_events_are_counted() -> None:
    """Memory stays bounded however many break (P9)."""
    rig = Rig(lambda _key: KeyError())
    for number in range(MAX_TRACKED + 1):
        for _ in range(TRIES - 1):
            with pytest.raises(ChannelUnavailable):
                await rig.poison.admit(event(str(number)))
    with pytest.raises(ChannelUnavailable):
        await rig.poison.admit(event("0"))
    assert await rig.poison.admit(event(str(MAX_TRACKED))) == Ignored()
