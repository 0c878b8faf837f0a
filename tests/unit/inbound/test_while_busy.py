"""Messages that come while an answer is being written."""

import asyncio
from datetime import timedelta

from tests.fakes.house import House, World
from tests.fakes.scripted_channel import Hang
from tests.fakes.scripted_model import LOOK, POKE, asks_for, says
from zeroclaw.config.model import ChannelSettings, RuntimeSettings, WhileBusy
from zeroclaw.envelope import Attachment, Command, Continues, Said
from zeroclaw.errors import ChannelUnavailable
from zeroclaw.host.ids import SystemIds
from zeroclaw.inbound.reassembly import MAX_WINDOWS
from zeroclaw.message import ToolMessage
from zeroclaw.store import Commit, DurablePoint, Put, Query, RowKind, Write
from zeroclaw.value import replace

WINDOW_S = 2.0


def busy(world: World, mode: WhileBusy) -> None:
    settings = ChannelSettings(
        allowed_users=("*",), while_busy=mode, collect_s=WINDOW_S, scope="chat"
    )
    world.configure(channels={"chat": settings})


async def asked_while_a_tool_runs(world: World, house: House, *texts: str, who: str) -> None:
    """Let Ben start a turn in the room whose tool runs until the texts are written."""
    world.model.will(LOOK)
    world.look.hold = asyncio.Event()
    await house.say("first", "ben", room="room")
    for text in texts:
        await house.say(text, who, room="room")
    world.look.hold.set()
    await house.settle()


# --- collect -------------------------------------------------------------------------------------


async def test_what_comes_during_the_answer_is_collected_for_the_next(world: World) -> None:
    """Three messages, one more answer."""
    busy(world, "collect")
    held = asyncio.Event()
    async with world.told("one", (held, *says("first"))) as house:
        await house.advance(WINDOW_S)
        for text in ("two", "three", "four"):
            await house.say(text)
        await house.advance(WINDOW_S)
        held.set()
        await house.settle()
        assert world.model.asked()[-1] == "user: two\n\nthree\n\nfour"
        assert house.texts() == ["first", "ok"]


async def test_a_command_with_a_turn_of_its_own_is_collected_with_nothing(world: World) -> None:
    """It is carried out in its place, after the messages before it (P2)."""
    busy(world, "collect")
    held = asyncio.Event()
    async with world.told("one", (held, *says("first")), says("second")) as house:
        await house.advance(WINDOW_S)
        for text in ("two", "/tool look", "three"):
            await house.say(text)
        held.set()
        await house.settle()
        await house.advance(WINDOW_S)
        texts = [text.partition(" returned")[0] for text in house.texts()]
        assert texts == ["first", "second", "`look`", "ok"]


async def test_a_person_who_never_stops_writing_is_answered_all_the_same(world: World) -> None:
    """After a few windows the turn begins with what there is (P2)."""
    busy(world, "collect")
    async with world.running() as house:
        for _ in range(2 * MAX_WINDOWS):
            await house.say("more")
            await house.advance(WINDOW_S - 0.5)
        assert len(world.model.requests) == 1


async def test_only_one_persons_messages_are_joined(world: World) -> None:
    """In a shared chat all are answered in turn (P2)."""
    busy(world, "collect")
    async with world.told("one", by="ben", room="room") as house:
        await house.say("two", "ada", room="room")
        await house.say("three", "ben", room="room")
        await house.advance(4 * WINDOW_S)
        assert [request.messages[-1].content for request in world.model.requests] == [
            "Ben: one",
            "Ada: two",
            "Ben: three",
        ]


async def test_a_message_edited_while_it_is_collected_is_read_as_it_stands(world: World) -> None:
    """The newest text of each, and nothing of what was withdrawn."""
    busy(world, "collect")
    async with world.running() as house:
        for text in ("one", "tow", "three"):
            await house.say(text)
        await house.edit("p2", "two")
        await house.withdraw("p3")
        await house.advance(WINDOW_S)
        assert world.model.asked() == ["user: one\n\ntwo"]
        assert sorted(await house.states()) == ["answered", "joined", "superseded"]


async def test_an_edit_keeps_what_a_message_brought_along(world: World) -> None:
    """Slack's edit does not bring along again what stands above the message in its thread."""
    busy(world, "collect")
    async with world.running() as house:
        await house.event(Said(text="> an alert\n\nlook tihs up", own="look tihs up"))
        await house.edit("p1", "look this up")
        await house.advance(WINDOW_S)
        assert world.model.asked() == ["user: > an alert\n\nlook this up"]


async def test_an_edit_takes_the_place_of_words_that_were_spelled_out(world: World) -> None:
    """Nothing of what the message said before is read."""
    busy(world, "collect")
    async with world.running() as house:
        await house.event(Said(text="> an alert\n\nlook\u200b tihs up", own="look\u200b tihs up"))
        await house.edit("p1", "look this up")
        await house.advance(WINDOW_S)
        assert world.model.asked() == ["user: look this up"]


async def test_a_stop_while_messages_are_collected_ends_their_turn(world: World) -> None:
    """The turn learns of what came before it began (P1)."""
    busy(world, "collect")
    held = asyncio.Event()
    async with world.told("one", (held, *says("to one"))) as house:
        await house.say("/stop")
        await house.advance(WINDOW_S)
        assert house.texts() == ["_Stopped by Ada._"]
        assert await house.states() == ["stopped", "answered"]


async def test_a_message_written_after_a_stop_is_answered(world: World) -> None:
    """A stop is about what was written before it, even within one window (P1)."""
    busy(world, "collect")
    async with world.told("milk", (asyncio.Event(), *says("to milk")), says("to rice")) as house:
        await house.say("/stop")
        await house.say("rice")
        await house.advance(WINDOW_S)
        assert house.texts() == ["_Stopped by Ada._", "to rice"]
        assert sorted(await house.states()) == ["answered", "answered", "stopped"]


async def test_a_stop_ends_no_turn_of_a_message_written_after_it(world: World) -> None:
    """Even if both come while the mailbox is between two turns (P1)."""
    held = asyncio.Event()
    world.platforms["chat"].files["list"] = b"milk"
    file = Attachment(reference="list", name="list", media_type="x/y", size_bytes=4)
    async with world.told("one", says("to one"), (held, *says("to two"))) as house:

        async def write_more(writes: tuple[Write, ...]) -> None:
            world.store.meanwhile = None
            await house.services.ingress.admit(house.envelope(Command(name="stop", rest="")))
            said = replace(house.envelope(Said(text="two")), attachments=(file,))
            await house.services.ingress.admit(said)

        async def once_noted(writes: tuple[Write, ...]) -> None:
            world.store.meanwhile = write_more

        world.store.meanwhile = once_noted
        world.platforms["chat"].will("fetch", ChannelUnavailable("away"))
        await house.edit("p1", "one!")
        await house.advance(1)
        held.set()
        await house.settle()
        assert house.texts() == ["to one", "Nothing is running.", "to two"]
        assert "did not come" not in world.model.requests[-1].messages[-1].content


async def test_a_stop_after_the_clock_was_set_back_ends_its_turn(world: World) -> None:
    """Ids made before do not sort before those made since, if it was wrong by days."""
    world.ids = SystemIds(world.clock)
    world.clock.leap(timedelta(days=2))
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        world.clock.leap(-timedelta(days=2))
        await house.say("/stop")
        assert house.texts()[-1] == "_Stopped by Ada._"


async def test_a_stop_within_an_album_ends_the_wait_for_its_files(world: World) -> None:
    world.platforms["chat"].files["a"] = b"milk"
    world.platforms["chat"].will("fetch", None, Hang())
    world.model.will((asyncio.Event(), *says("never")))
    file = Attachment(reference="a", name="a", media_type="x/y", size_bytes=4)
    async with world.running() as house:

        async def picture(text: str) -> None:
            part = replace(house.envelope(Said(text=text), room="room"), attachments=(file,))
            part = replace(part, continues=Continues(within_s=WINDOW_S, group="album"))
            await world.platforms["chat"].say(part)
            await house.settle()

        await picture("first")
        await house.say("/stop", room="room")
        await picture("second")
        await house.advance(WINDOW_S)
        assert house.texts(room="room") == ["_Stopped by Ada._"]


async def test_a_halt_holds_collected_messages(world: World) -> None:
    """It waits for `/resume` like everything else, and is answered then (P1)."""
    busy(world, "collect")
    async with world.told("one") as house:
        await house.say("/halt")
        await house.advance(2 * WINDOW_S)
        assert world.model.requests == []
        assert await house.states() == ["queued"]
        await house.say("/resume")
        await house.advance(WINDOW_S)
        assert house.texts()[-1] == "ok"
        assert await house.states() == ["answered"]


async def test_an_end_of_the_daemon_waits_for_nothing_that_may_come(world: World) -> None:
    """Collected messages are answered after the next start (P1)."""
    busy(world, "collect")
    async with world.told("one") as house:
        await house.stop()
        assert world.facts.events()[-1] == "stopped"
        assert await house.states() == ["queued"]


async def test_a_clock_that_is_set_back_delays_no_answer(world: World) -> None:
    """A message that seems to come from the future waits for no other (P2)."""
    busy(world, "collect")
    async with world.told("one") as house:
        world.clock.leap(timedelta(hours=-3))
        await house.advance(2 * WINDOW_S)
        assert house.texts() == ["ok"]


async def test_a_message_that_an_earlier_release_spelled_otherwise_is_answered(
    world: World,
) -> None:
    """What waits across an update is taken as it is read now (P1)."""
    async with world.told("/halt") as house:
        await house.say("one")
    [row] = await world.store.select(Query(kind=RowKind.INBOX, state="queued"))
    older = row.body.replace(b'"while_busy":"queue"', b'"unknown":1').replace(b',"unknown":1', b"")
    assert older != row.body
    await world.store.write(
        Put(
            kind=row.kind,
            key=row.key,
            body=older,
            conversation=row.conversation,
            state=row.state,
            place=row.place,
        )
    )
    async with world.told("/resume") as house:
        assert house.texts()[-1] == "ok"


async def test_a_new_conversation_stops_nothing_that_is_being_collected(world: World) -> None:
    """Messages before `/new` are answered in the old conversation first (P1)."""
    busy(world, "collect")
    held = asyncio.Event()
    async with world.told("one", (held, *says("to one"))) as house:
        await house.say("/new")
        await house.advance(WINDOW_S)
        held.set()
        await house.settle()
        assert house.texts()[-1] == "to one"
        assert await house.states() == ["answered", "answered"]


# --- steer ---------------------------------------------------------------------------------------


async def test_another_persons_message_steers_nothing(world: World) -> None:
    """A turn has one person for life; the other is answered after it (P2)."""
    busy(world, "steer")
    async with world.running() as house:
        await asked_while_a_tool_runs(world, house, "second", who="ada")
        assert len(world.model.requests) == 3
        assert isinstance(world.model.requests[1].messages[-1], ToolMessage)
        assert world.model.asked()[-1] == "user: Ada: second"
        assert await house.states() == ["answered", "answered"]


async def test_a_message_about_a_file_steers_without_it(world: World) -> None:
    """A running turn waits for no download; the model reads so. An own file has its own turn."""
    busy(world, "steer")
    file = Attachment(reference="a", name="a", media_type="x/y")
    world.platforms["chat"].files["a"] = b"x"
    world.look.hold = asyncio.Event()
    async with world.told("look", LOOK, says("done")) as house:
        await house.event(Said(text="like this one", quoted=(file,)))
        own = replace(house.envelope(Said(text="and here")), attachments=(file,))
        await world.platforms["chat"].say(own)
        world.look.hold.set()
        await house.settle()
        assert await house.states() == ["answered", "joined", "answered"]
        beginning = "user: like this one\n\n[1 file of the message it replies to not fetched"
        assert [text for text in world.model.asked() if text.startswith(beginning)]
        assert "1. `a`: text, 1 byte" in world.model.asked()[-1]


async def test_what_no_batch_took_is_the_next_turn(world: World) -> None:
    """An answer without calls can't be steered."""
    busy(world, "steer")
    held = asyncio.Event()
    async with world.told("one", (held, *says("first"))) as house:
        await house.say("two")
        held.set()
        await house.settle()
        assert house.texts() == ["first", "ok"]
        assert await house.states() == ["answered", "answered"]


async def test_a_message_that_changes_as_it_is_taken_is_read_anew(world: World) -> None:
    """It steers the running turn as it stands now, and starts none of its own (P1)."""
    busy(world, "steer")
    clashes: list[Commit] = []

    def clash(commit: Commit) -> None:
        if commit.point is DurablePoint.STEERED and not clashes:
            clashes.append(commit)
            world.store.touch(RowKind.INBOX)

    async with world.running() as house:
        world.store.before = clash
        await asked_while_a_tool_runs(world, house, "second", who="ben")
        assert len(clashes) == 1
        assert world.model.asked()[-1] == "user: Ben: second"
        assert await house.states() == ["answered", "joined"]


async def test_a_tool_call_of_a_person_swallows_no_message(world: World) -> None:
    """`/tool` asks no model, so what was written meanwhile has a turn of its own (P1)."""
    busy(world, "steer")
    world.look.hold = asyncio.Event()
    async with world.told("/tool look {}") as house:
        await house.say("second")
        world.look.hold.set()
        await house.settle()
        assert world.model.asked()[-1] == "user: second"
        assert house.texts()[-1] == "ok"
        assert await house.states() == ["answered", "answered"]


async def test_the_last_round_of_a_turn_swallows_no_message(world: World) -> None:
    """The model gets no further request, so the message is the next turn's (P1)."""
    busy(world, "steer")
    world.configure(runtime=RuntimeSettings(max_iterations=1))
    async with world.running() as house:
        await asked_while_a_tool_runs(world, house, "second", who="ben")
        assert world.model.asked()[-1] == "user: Ben: second"
        assert await house.states() == ["failed", "answered"]


# --- interrupt -----------------------------------------------------------------------------------


async def test_a_message_does_not_interrupt_its_own_turn(world: World) -> None:
    """Nor does it, after a restart, a turn that began with it (P1)."""
    busy(world, "interrupt")
    async with world.running() as house:
        world.store.cut_after(DurablePoint.ADMITTED)
        await house.say_and_die("one")
    world.store.heal()
    async with world.running() as house:
        assert house.texts() == ["ok"]
        await house.say("two")
        assert house.texts() == ["ok", "ok"]


async def test_a_person_interrupts_no_other_persons_turn(world: World) -> None:
    """Their message waits, as with `/stop` (P2)."""
    busy(world, "interrupt")
    held = asyncio.Event()
    async with world.told("one", (held, *says("first")), by="ben", room="room") as house:
        await house.say("two", "ada", room="room")
        held.set()
        await house.settle()
        assert house.texts(room="room") == ["first", "ok"]


async def test_an_interrupt_ends_open_questions(world: World) -> None:
    """The call does not run, and its card says so (P5)."""
    busy(world, "interrupt")
    async with world.told("poke it", asks_for(("poke", '{"a": 1}')), by="ben") as house:
        await house.say("never mind", "ben")
        assert house.texts("ben")[-1] == "ok"
        assert [how for how, _ in house.endings()] == ["stopped"]
        assert world.poke.runs == []


async def test_a_person_who_interrupts_nothing_reads_what_they_wait_for(world: World) -> None:
    """Somebody else's question, or the end of a halt, as in every other mode (P10)."""
    busy(world, "interrupt")
    world.model.will(asks_for(("poke", '{"a": 1}')))
    async with world.told("poke it", by="ben", room="room") as house:
        await house.say("and I?", "ada", room="room")
        assert house.texts(room="room")[-1].endswith("to approve `poke`; your message is next.")
        await house.say("/halt")
        await house.say("hello")
        assert house.texts()[-1] == "Halted by Ada; your message waits for `/resume`."


# --- /queue --------------------------------------------------------------------------------------


async def test_a_chat_chooses_for_itself(world: World) -> None:
    """It lists the choices, keeps its own over `/new` and restarts, and others keep theirs."""
    async with world.told("/queue") as house:
        assert (
            "`/queue queue`: each message waits, and gets an answer of its own. (now)"
            in (house.texts()[-1])
        )
        await house.say("/queue collect")
        assert house.texts()[-1].startswith("From now on: what is written in a row")
        await house.say("/new")
    async with world.told("one") as house:
        await house.say("two")
        await house.advance(ChannelSettings().collect_s)
        assert world.model.asked() == ["user: one\n\ntwo"]
        await house.say("three", "ben")
        assert world.model.asked() == ["user: three"]


async def test_an_unknown_choice_changes_nothing(world: World) -> None:
    """The answer lists the choices instead (P10)."""
    async with world.told("/queue never") as house:
        assert house.texts()[-1].startswith("What can happen to messages")
        assert "(now)" in house.texts()[-1]


async def test_in_a_group_only_operators_choose(world: World) -> None:
    """One person can't change it for all; before the first message too."""
    async with world.told("/queue steer", by="ben", room="room") as house:
        assert "is not for you" in house.texts(room="room")[-1]
        await house.say("/queue steer", "ada", room="room")
        assert house.texts(room="room")[-1].startswith("From now on")
