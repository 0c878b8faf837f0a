"""No command, page or turn blocks the event loop for longer with a longer history (P9)."""

import pytest

from tests.fakes.house import World
from tests.fakes.loop_steps import loop_steps
from tests.fakes.memory_store import put_a_page_before
from tests.fakes.scripted_model import asks_for, says
from tests.unit.console.visit import visiting
from tests.unit.inbound.test_grants import grant_for_a_time
from zeroclaw.console.frame import SECTIONS
from zeroclaw.conversation.turn_row import TURNS, turn_put
from zeroclaw.envelope import TurnId
from zeroclaw.gate import approval, audit, grant
from zeroclaw.gate.grant import GRANTS
from zeroclaw.inbound.commands.registry import COMMANDS
from zeroclaw.message import AssistantMessage, Usage, UserMessage
from zeroclaw.store import Append, Commit, DurablePoint, LogKind, RowKind, Write
from zeroclaw.turn import entries
from zeroclaw.turn.session import KEPT_S, LOOK_S
from zeroclaw.value import replace

TURNS_BEFORE = 600
WORDS = "as it was said " * 3
LEAVING = ("forget", "halt", "resume", "otr", "new")
"""The commands behind which the conversation is another, or none is answered."""
MAX_STEPS = 6_000
"""Some two or three milliseconds; nothing here is counted that a thread does."""
MAX_OF_A_PAGE = 14_000
"""A page of the console lists fifty entries of an audit, however long it is, in some 12,000."""


async def fill_history(world: World) -> None:
    """Give Ada a long history with tool calls, as it would be on disk."""
    world.model.will(asks_for(("look", "{}")), says("seen"))
    async with world.running() as house:
        await house.say("hello")
        (row,) = await house.rows(RowKind.TURN)
        conversation = row.conversation
        assert conversation is not None
        journal = await house.journal()
        audited = [entry.body for entry in await world.store.read(LogKind.AUDIT, conversation)]
    written: list[Write] = []
    head = audit.head_of(audited[-1])
    for number in range(TURNS_BEFORE):
        turn = TurnId(world.ids.ulid())
        for old_entry in journal:
            match old_entry:
                case entries.TurnOpened():
                    entry = replace(
                        old_entry, turn=turn, user=UserMessage(content=f"{number}: {WORDS}")
                    )
                case entries.TurnFinished():
                    entry = replace(
                        old_entry, message=AssistantMessage(content=f"{WORDS} {number}")
                    )
                case _:
                    entry = old_entry
            body = entries.encode(entry)
            written.append(Append(log=LogKind.JOURNAL, stream=conversation, body=body))
        for old_entry in map(audit.read, audited):
            body, head = audit.link(head, old_entry)
            written.append(Append(log=LogKind.AUDIT, stream=conversation, body=body))
        closed = replace(TURNS.of(row), turn=turn, usage=Usage(input_tokens=5))
        written.append(turn_put(closed))
    commit = Commit(
        point=DurablePoint.HOUSEKEEPING,
        conversation=conversation,
        fence=await world.store.lease(conversation),
        writes=tuple(written),
    )
    await world.store.commit(commit)


@pytest.mark.slow
async def test_no_command_holds_the_loop_longer_for_a_long_history(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor a start or a message: with the history unread, in memory, and dropped from memory."""
    await fill_history(world)
    most_steps: dict[str, tuple[int, str]] = {}
    with loop_steps(monkeypatch) as steps:
        async with world.running() as house:
            most_steps["start"] = steps.taken()
            staying = [f"/{name}{rest}" for rest in ("", " 1") for name in COMMANDS]
            staying = [command for command in staying if command[1:].split()[0] not in LEAVING]
            leaving = map("/{}".format, LEAVING)
            for command in ("hello", "", "hello", "/context", *staying, "", "hello", *leaving):
                if not command:
                    await house.advance(KEPT_S + LOOK_S)
                    continue
                await house.say(command)
                most_steps[command] = max(most_steps.get(command, (0, "")), steps.taken())
    assert {
        command: steps_taken
        for command, steps_taken in most_steps.items()
        if steps_taken[0] > MAX_STEPS
    } == {}


@pytest.mark.slow
async def test_no_page_holds_the_loop_longer_for_a_long_history(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the pages that the console's sections link to."""
    await fill_history(world)
    most_steps: dict[str, tuple[int, str]] = {}
    async with visiting(world) as visitor:
        await visitor.page("usage")  # the first request loads the page modules
        with loop_steps(monkeypatch) as steps:
            for section in SECTIONS:
                links = (await visitor.page(section)).links().values()
                for path in (section, *(link.removeprefix("/console/") for link in links)):
                    if path.startswith(section):
                        await visitor.page(path)
                        most_steps[path] = steps.taken()
    assert {
        path: steps_taken
        for path, steps_taken in most_steps.items()
        if steps_taken[0] > MAX_OF_A_PAGE
    } == {}


@pytest.mark.slow
async def test_no_list_holds_the_loop_longer_for_its_length(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists of grants and approval requests, and commands that look one up."""
    async with world.running() as house:
        await grant_for_a_time(house)
        (row,) = await house.rows(RowKind.GRANT)
        older_grant = replace(GRANTS.of(row), tool="other")
        await put_a_page_before(world.store, grant.to_put(older_grant))
        world.model.will(asks_for(("poke", '{"a": 2}')), says("done"))
        await house.say("poke it", "ben")
        *_, request_row = await house.rows(RowKind.APPROVAL)
        waiting = approval.APPROVALS.of(request_row)
        await put_a_page_before(world.store, approval.to_put(waiting))
        most_steps: dict[str, tuple[int, str]] = {}
        with loop_steps(monkeypatch) as steps:
            for command in ("/grants", "/pending", "/revoke 1", "/approve 1", "/status", "hello"):
                await house.say(command)
                most_steps[command] = steps.taken()
        assert {
            command: steps_taken
            for command, steps_taken in most_steps.items()
            if steps_taken[0] > MAX_STEPS
        } == {}


@pytest.mark.slow
async def test_no_answer_in_one_piece_holds_the_loop_longer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From an endpoint that does not stream, or is hostile."""
    world.model.will(says("the token is 12 and the key is c " * 2_000))
    async with world.running() as house:
        with loop_steps(monkeypatch) as steps:
            await house.say("hello")
            assert steps.taken() <= (MAX_STEPS, "")
