"""From an inbox item to a delivered answer, across restarts."""

import asyncio
from pathlib import Path

import pytest

from tests.fakes.house import House, World
from tests.fakes.house_parts import CAPABILITIES
from tests.fakes.manual_clock import VirtualTimeLoop
from tests.fakes.scripted_channel import Call
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.config.model import PolicySettings
from zeroclaw.conversation.inbox import INBOX
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.envelope import ConversationId, ItemId
from zeroclaw.errors import ChannelUnavailable, Conflict, StoreRefused, StreamBroken
from zeroclaw.events import StageEntered, TextStreamed, ToolDecided, ToolEnded, ToolStarted
from zeroclaw.inbound.live_config import Halt
from zeroclaw.message import NO_USAGE, AssistantMessage, ToolCall, ToolMessage
from zeroclaw.provider import TextDelta
from zeroclaw.store import Append, Commit, DurablePoint, LogKind, Put, RowKind
from zeroclaw.text import catalogue
from zeroclaw.turn.entries import AssistantReceived, TurnResumed, decode
from zeroclaw.turn.runner import CLOSE_S
from zeroclaw.turn.session import Leases, Transition, open_session
from zeroclaw.value import replace

LOOK = asks_for(("look", "{}"), saying="looking ")
POKE = asks_for(("poke", '{"a": 1}'), saying="let me ")


async def grown(house: House) -> None:
    """Say hello, and let the answer stand in part before the rest comes: else it is no draft."""
    rest = asyncio.Event()
    house.world.model.will((TextDelta(text="it is "), rest, *says("ok")))
    await house.say("hello")
    rest.set()
    await house.settle()


async def test_a_simple_turn_takes_few_commits(world: World) -> None:
    """Two stand before its first text, four before its final (S2-14)."""
    async with world.running() as house:
        await grown(house)
        assert world.store.points() == [
            DurablePoint.ADMITTED,
            DurablePoint.TURN_STARTED,
            DurablePoint.REF_KNOWN,
            DurablePoint.FINISHED,
            DurablePoint.DELIVERED,
        ]
        [answer] = world.platforms["chat"].standing(house.place())
        assert (answer.text, answer.draft) == ("it is ok", False)


@pytest.mark.parametrize(("can_lookup", "state"), [(True, "sending"), (False, "pending")])
async def test_a_final_that_is_sent_at_once_is_known_to_have_begun(
    world: World, *, can_lookup: bool, state: str
) -> None:
    """Where it could be found after a kill; elsewhere the outbox records its start (P1)."""
    world.add_platform("chat", replace(CAPABILITIES, can_lookup=can_lookup))
    finals: list[str] = []

    def note(commit: Commit) -> None:
        if commit.point is DurablePoint.FINISHED:
            puts = (write for write in commit.writes if isinstance(write, Put))
            finals.extend(write.state for write in puts if write.kind is RowKind.OUTBOX)

    async with world.running() as house:
        world.store.before = note
        await house.say("hello")
        assert (finals, house.texts()) == ([state], ["ok"])


async def test_a_tool_turn_is_written_down_step_by_step(world: World) -> None:
    """Nothing runs before it is on record (P3, S0-38, S2-13, S3-21 without shield and snapshot)."""
    async with world.told("look", LOOK, says("done")) as house:
        points = [point for point in world.store.points() if point is not DurablePoint.REF_KNOWN]
        assert points == [
            DurablePoint.ADMITTED,
            DurablePoint.TURN_STARTED,
            DurablePoint.CALL_STARTED,
            DurablePoint.CALL_FINISHED,
            DurablePoint.FINISHED,
            DurablePoint.DELIVERED,
        ]
        assert house.texts() == ["looking \n\ndone"]


async def test_the_answer_after_a_card_replaces_nothing_above_it(world: World) -> None:
    """A cut answer stood there, and the model asked again only called a tool (K4, K5)."""
    cut = asyncio.Event()
    poke = asks_for(("poke", '{"a": 1}'))
    world.model.will((TextDelta(text="I will"), cut, StreamBroken("cut")), poke, says("done"))
    async with world.told("poke it") as house:
        assert len(house.texts()) == 1
        cut.set()
        await house.settle()
        await house.press()
        card, answer = world.platforms["chat"].standing(house.place())
        assert (card.card is not None, answer.text) == (True, "done")


async def test_a_turn_that_starts_as_the_house_is_halted_ends_with_it(world: World) -> None:
    """It was not running yet when everything that ran was ended (P3)."""
    async with world.told("warm up") as house:
        halted: list[str] = []

        def halt(commit: Commit) -> None:
            if commit.point is DurablePoint.TURN_STARTED:
                halted.append("now")
                house.services.policy.halt(Halt(by="Ada", at=world.clock.now()))

        world.store.after = halt
        await house.say("hello")
        assert halted == ["now"]
        assert house.texts()[-1] == "_Stopped: everything was halted by Ada._"
        assert len(world.model.requests) == 1


async def test_an_end_that_meets_an_answer_is_written_anew(world: World) -> None:
    """The answer stands, its call does not run, and the turn ends as stopped (P5)."""
    async with world.told("poke it", POKE) as house:
        raced: list[Commit] = []

        def touch(commit: Commit) -> None:
            if commit.point is DurablePoint.FINISHED and not raced:
                raced.append(commit)
                world.store.touch(RowKind.APPROVAL)

        world.store.before = touch
        await house.say("/stop")
        assert house.endings() == [("stopped", "Ada")]
        assert await house.states() == ["stopped", "answered"]


async def test_an_end_that_always_loses_is_tried_again_later(world: World) -> None:
    """The turn stays open, and no other begins upon it (P1, P2)."""

    def race(commit: Commit) -> None:
        if commit.point is DurablePoint.FINISHED:
            raise Conflict("raced")

    async with world.running() as house:
        world.store.before = race
        await house.say("one")
        await house.say("two")
        assert await house.states() == ["taken", "queued"]
        world.store.before = None
        await house.advance(60)
        assert await house.states() == ["answered", "answered"]


@pytest.mark.parametrize("blank", [" \n", "\u200b \u2060\n\u2800"])
async def test_an_answer_in_which_nothing_is_seen_says_so(world: World, blank: str) -> None:
    """Platforms refuse a blank message, so the person would get none (P1)."""
    async with world.told("hello", says(blank)) as house:
        assert house.texts() == ["_Nothing to say._"]


@pytest.mark.parametrize("blank", [" \n", "\u200b \u2060\n\u2800"])
async def test_below_a_card_an_answer_in_which_nothing_is_seen_says_so(
    world: World, blank: str
) -> None:
    """The text above the card was there before the person approved (P1)."""
    world.model.will(asks_for(("poke", "{}"), saying="let me poke"), says(blank))
    async with world.told("poke it") as house:
        await house.press()
        assert house.texts()[-1] == "_Nothing to say._"
        assert house.texts().count("let me poke") == 1


async def test_a_text_of_which_nothing_is_seen_is_no_message_above_a_card(world: World) -> None:
    """A platform refuses it, and so the answer that it begins would be lost (P1)."""
    world.model.will(asks_for(("poke", "{}"), saying="\u200b"), says("done"))
    async with world.told("poke it") as house:
        await house.press()
        assert [text for text in house.texts() if "poke" not in text] == ["done"]


async def test_a_text_of_which_nothing_is_seen_is_no_message_between_two_cards(
    world: World,
) -> None:
    """The next answer stands alone, as below the first card (P1)."""
    blank = asks_for(("poke", '{"a": 1}'), saying="\u200b")
    world.model.will(asks_for(("poke", "{}"), saying="let me try"), blank, says("done"))
    async with world.told("poke it") as house:
        await house.press()
        await house.press()
        shown = [text for text in house.texts() if "poke" not in text]
        assert shown == ["let me try", "done"]


async def test_below_a_second_card_no_note_of_a_restart_stands_alone(world: World) -> None:
    """It belongs to a text that grows; the card says itself what it waits for (P5)."""
    again = asks_for(("poke", '{"a": 1}'))
    async with world.told("poke it", asks_for(("poke", "{}")), again, says("done")) as house:
        await house.press()
        house.services.runner.pause(catalogue.RESTARTED)
        await house.settle()
        assert [text for text in house.texts() if "poke" not in text] == []


async def test_a_turn_is_published_stage_by_stage(world: World) -> None:
    """In order, and only for subscribers (S0-01, S0-08, S0-11, S0-22, S0-40, S4-02, S4-12)."""
    world.model.will(LOOK, says("done"))
    async with world.running() as house:
        seen = house.watch()
        await house.say("look")
        published = [event.what for event in seen]
        kinds = [type(event).__name__ for event in published]
        assert kinds[0] == "TurnStarted"
        assert kinds.count("TurnStarted") == 1
        assert kinds[-1] == "TurnEnded"
        assert [event.stage for event in published if isinstance(event, StageEntered)] == [
            "compose_request",
            "send_request",
            "stream_response",
            "tool_call",
            "compose_request",
            "send_request",
            "stream_response",
            "render",
        ]
        middle = [e for e in published if isinstance(e, ToolDecided | ToolStarted | ToolEnded)]
        assert [type(event).__name__ for event in middle] == [
            "ToolDecided",
            "ToolStarted",
            "ToolEnded",
        ]
        assert [e.text for e in published if isinstance(e, TextStreamed)] == ["looking ", "done"]
        assert len({event.correlation for event in seen}) == 1


async def test_a_draft_that_learns_of_its_message_as_the_turn_changes(world: World) -> None:
    """It is written anew over the first write, and given up when it always conflicts (P6)."""
    clashes: list[Commit] = []

    def clash(commit: Commit) -> None:
        if commit.point is DurablePoint.REF_KNOWN and not clashes:
            clashes.append(commit)
            world.store.touch(RowKind.TURN)

    async with world.running() as house:
        world.store.before = clash
        await grown(house)
        assert house.texts() == ["it is ok"]
        assert len(clashes) == 1
        [row] = await house.rows(RowKind.TURN)
        assert len(TURNS.of(row).refs) == 1


async def test_a_draft_that_never_fits_is_given_up(world: World) -> None:
    """The final is sent all the same (P6)."""

    clashes: list[Commit] = []

    def clash(commit: Commit) -> None:
        if commit.point is DurablePoint.REF_KNOWN:
            clashes.append(commit)
            world.store.touch(RowKind.TURN)

    async with world.running() as house:
        world.store.before = clash
        await grown(house)
        assert clashes
        assert await house.states() == ["answered"]
        assert house.texts()[-1] == "it is ok"


async def test_a_message_that_changed_since_it_was_looked_at_is_looked_at_again(
    world: World,
) -> None:
    """The turn reads what is on disk, or nothing at all."""
    async with world.told("/halt") as house:
        await house.say("tow")
        [row] = await house.rows(RowKind.INBOX, "queued")
        stale = INBOX.of(row)
        await house.edit("p2", "two")
        session = await open_session(world.store, Leases(world.store), stale.conversation)
        await house.services.runner.run(session, (stale,), asyncio.Event())
        await house.services.runner.run(
            session, (replace(stale, id=ItemId("gone")),), asyncio.Event()
        )
        await house.services.runner.resume(session, asyncio.Event())
        assert await house.states() == ["queued"]
        assert session.history.turn is None


def test_a_call_that_hangs_does_not_hold_up_a_turn_that_is_cancelled(tmp_path: Path) -> None:
    """A shutdown gives the draft its seconds, and no more."""

    async def check() -> None:
        world, loop = World(tmp_path), asyncio.get_running_loop()
        world.model.will((*says("hello ")[:1], asyncio.Event(), *says("now")))
        calling = asyncio.Event()

        async def hang(_: Call) -> None:
            calling.set()
            await asyncio.Event().wait()

        world.platforms["chat"].before = hang
        async with world.told("hello"):
            await calling.wait()
            [turn] = [
                task for task in asyncio.all_tasks() if task.get_name().startswith("mailbox ")
            ]
            cancelled_at = loop.time()
            turn.cancel()
            await asyncio.wait((turn,))
            assert loop.time() - cancelled_at == CLOSE_S

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(check())


# --- turns that a restart cut off, taken up from their journals -----------------------------------


async def test_the_operators_read_once_that_a_call_may_have_run(world: World) -> None:
    """Their notice is in one commit with the record, however often that is tried."""
    async with world.told("poke it", POKE, by="ben") as house:
        world.poke.hold = asyncio.Event()
        await house.press()
    refusals = [StoreRefused("not now")]

    def refuse_once(commit: Commit) -> None:
        if commit.point is DurablePoint.CALL_FINISHED and refusals:
            raise refusals.pop()

    world.store.before = refuse_once
    async with world.running() as house:
        await house.advance(2)
        assert refusals == []
        assert "\n".join(house.texts()).count("may have run") == 1


async def test_a_turn_cut_off_three_times_is_given_up(world: World) -> None:
    """The fourth start notifies person and operator; `/retry` begins anew (P1, S4-19)."""
    world.model.will(*[(asyncio.Event(),)] * 4)
    async with world.running() as house:
        await house.say("hello", "ben")
    for _ in range(3):
        async with world.running() as house:
            assert await house.states() == ["taken"]
    async with world.running() as house:
        assert await house.states() == ["failed"]
        assert house.texts("ben") == [
            "_I was cut off again and again while I worked on this; send `/retry` to try again._"
        ]
        assert len(house.texts()) == 1
        assert (
            len([entry for entry in await house.journal() if isinstance(entry, TurnResumed)]) == 3
        )
        await house.say("/retry", "ben")
        assert house.texts("ben")[-1] == "ok"


async def test_a_call_that_started_before_a_restart_and_may_not_run_again_may_have_run(
    world: World,
) -> None:
    """The operator denied it meanwhile; that says nothing of what it did before (P3)."""
    world.look.hold = asyncio.Event()
    async with world.told("look", LOOK, by="ben") as house:
        assert len(world.look.runs) == 1
    denied: dict[str, object] = {
        "id": "mine",
        "effect": "deny",
        "principals": ["anyone"],
        "actions": ["tool:look"],
    }
    world.configure(policy=PolicySettings(statement=(denied,)))
    async with world.running() as house:
        assert len(world.look.runs) == 1
        assert "may have run" in world.model.asked()[-1]
        assert (await house.audited())[-1] == "unknown"
        assert "may have run" in house.texts()[-1]


async def test_the_operators_read_once_that_a_turn_was_given_up(world: World) -> None:
    """Their notice is in the commit of its end, however often that is tried (S4-19)."""
    world.model.will(*[(asyncio.Event(),)] * 4)
    async with world.running() as house:
        await house.say("hello", "ben")
    for _ in range(3):
        async with world.running() as house:
            assert house.texts() == []
    refusals = [StoreRefused("not now")]

    def refuse_once(commit: Commit) -> None:
        if commit.point is DurablePoint.FINISHED and refusals:
            raise refusals.pop()

    world.store.before = refuse_once
    async with world.running() as house:
        assert house.texts() == []
        await house.advance(2)
        assert house.texts() == [
            "An answer to Ben in `chat` failed: I was cut off again and again while I worked on it."
        ]


async def test_a_turn_that_is_given_up_ends_its_calls_too(world: World) -> None:
    """Unfilled slots get their results, signed and audited (P1, K24)."""
    world.model.will(asks_for(("look", "{}"), ("poke", "{}")))
    world.look.hold = asyncio.Event()
    async with world.told("both") as house:
        await house.press()
    for _ in range(4):
        async with world.running() as house:
            await house.settle()
    async with world.running() as house:
        assert await house.states() == ["failed", "answered"]
        kinds = await house.audited()
        assert kinds.count("proposed") == 2
        assert len([kind for kind in kinds if kind in {"executed", "unknown"}]) == 2
        await house.say("and now?")
        results = [m for m in world.model.requests[-1].messages if isinstance(m, ToolMessage)]
        assert len(results) == 2
        assert all("[receipt: zc-receipt-" in result.content for result in results)


async def test_waiting_for_a_person_is_no_crash(world: World) -> None:
    """However often the daemon is restarted meanwhile, the question stays (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
    for _ in range(5):
        async with world.running() as house:
            assert await house.states() == ["taken"]
    async with world.running() as house:
        await house.press()
        assert world.poke.runs == [{"a": 1}]


async def test_a_turn_without_its_row_is_not_made_up(world: World) -> None:
    """A damaged store is logged and tried again, and nothing is answered wrongly."""
    world.model.will((asyncio.Event(),))
    async with world.running() as house:
        await house.say("hello")
    world.store.forget(RowKind.TURN)
    await house_wakes(world)


async def house_wakes(world: World) -> None:
    async with world.told("again") as house:
        assert world.clock.sleeping() != ()
        assert house.texts() == []


async def test_a_call_that_brings_the_process_down_each_time_is_given_up(world: World) -> None:
    """Starting once more is no progress, even for a tool that may run twice (S4-19)."""
    world.model.will(LOOK)
    world.look.hold = asyncio.Event()
    async with world.running() as house:
        await house.say("look")
    for _ in range(4):
        async with world.running() as house:
            await house.settle()
    async with world.running() as house:
        assert await house.states() == ["failed"]
        assert len(world.look.runs) == 4


async def test_an_ungated_batch_is_gated_after_the_restart(world: World) -> None:
    """Its approver is found, because the channels are there before any turn goes on (P5)."""
    async with world.running() as house:
        world.store.cut_after(DurablePoint.TURN_STARTED)
        await house.say_and_die("poke it")
        [turn] = await house.rows(RowKind.TURN)
    world.store.heal()
    # As an earlier release wrote it down, and a control item that comes before the gate has spoken.
    poke = ToolCall(id="call_0", name="poke", arguments='{"a": 1}')
    received = AssistantReceived(
        message=AssistantMessage(tool_calls=(poke,)), usage=NO_USAGE, at=world.clock.now()
    )
    session = await open_session(
        world.store, Leases(world.store), ConversationId(str(turn.conversation))
    )
    await session.commit(Transition(point=DurablePoint.HOUSEKEEPING, journal=(received,)))
    async with world.running() as house:
        assert house.card().calls[0].tool == "poke"
        await house.press()
        assert world.poke.runs == [{"a": 1}]


@pytest.mark.parametrize("between", ["", "/new"])
async def test_an_answer_that_a_restart_held_up_comes_before_the_next(
    world: World, between: str
) -> None:
    """No model call begins before the earlier answer stands, `/new` or not (P2)."""
    platform = world.platforms["chat"]
    world.model.will(says("one"))
    async with world.running() as house:
        platform.will("send", *[ChannelUnavailable("down")] * 9)
        await house.say("first")
        assert await house.states() == ["answered"]
        if between:
            await house.say(between)
        await house.say("second")
        assert house.texts() == []
    world.model.otherwise(says("two"))
    async with world.running() as house:
        assert len(world.model.requests) == 1
        platform.will("send")
        await house.advance(600)
        words = [text.split()[0] for text in house.texts()]
        assert [word for word in words if word in {"one", "two"}] == ["one", "two"]


async def test_a_halt_ends_messages_without_a_turn(world: World) -> None:
    """Even one that is over by then: what ran when everything was halted does not go on (P3)."""
    world.model.will((asyncio.Event(),))
    async with world.running() as house:
        await house.say("one")
    await world.clock.advance(1)
    await world.halt("Ada")
    refusals = [StoreRefused("not now")]

    def refuse_once(commit: Commit) -> None:
        if refusals and takes_up(commit):
            raise refusals.pop()

    world.store.before = refuse_once
    async with world.running() as house:
        assert not refusals
        assert await house.ask("resume") == {"halted": False, "before": True}
        await house.advance(1)
        assert house.texts() == ["_Stopped: everything was halted by Ada._"]
        await house.say("two")
        assert house.texts()[-1] == "ok"


@pytest.mark.parametrize("resumed", ["/resume", "resume"])
async def test_a_halt_is_known_after_a_kill_that_follows_its_end(
    world: World, resumed: str
) -> None:
    """The turn may still be ending when everything goes on, and the process dies (P3)."""
    world.model.will((asyncio.Event(),))
    async with world.running() as house:
        await house.say("one")
    await world.clock.advance(1)
    await world.halt("Ada")
    world.store.before = refuse_turns
    async with world.running() as house:
        if resumed == "resume":
            assert await house.ask("resume") == {"halted": False, "before": True}
        else:
            await house.say("/resume")
    world.store.before = None
    async with world.running() as house:
        await house.advance(1)
        assert "_Stopped: everything was halted by Ada._" in house.texts()
    assert len(world.model.requests) == 1


def takes_up(commit: Commit) -> bool:
    """Whether a commit takes up a turn that a restart left open."""
    appended = (write for write in commit.writes if isinstance(write, Append))
    journal = (append.body for append in appended if append.log is LogKind.JOURNAL)
    return any(isinstance(decode(body), TurnResumed) for body in journal)


def refuse_turns(commit: Commit) -> None:
    """Refuse to take up a turn."""
    if takes_up(commit):
        raise StoreRefused("not now")
