"""No command, page or turn holds the event loop for longer where more was said before (P9)."""

import pytest

from tests.fakes.house import World
from tests.fakes.loop_steps import loop_steps
from tests.fakes.memory_store import put_a_page_before
from tests.fakes.scripted_model import asks_for, says
from tests.unit.console.visit import visiting
from tests.unit.inbound.test_grants import granted
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


async def said_much(world: World) -> None:
    """Let Ada have said much, and tools have been called for it, as it would be on disk."""
    world.model.will(asks_for(("look", "{}")), says("seen"))
    async with world.running() as house:
        await house.say("hello")
        (row,) = await house.rows(RowKind.TURN)
        here = row.conversation
        assert here is not None
        journal = await house.journal()
        audited = [entry.body for entry in await world.store.read(LogKind.AUDIT, here)]
    written: list[Write] = []
    head = audit.head_of(audited[-1])
    for number in range(TURNS_BEFORE):
        turn = TurnId(world.ids.ulid())
        for one in journal:
            match one:
                case entries.TurnOpened():
                    entry = replace(one, turn=turn, user=UserMessage(content=f"{number}: {WORDS}"))
                case entries.TurnFinished():
                    entry = replace(one, message=AssistantMessage(content=f"{WORDS} {number}"))
                case _:
                    entry = one
            body = entries.encode(entry)
            written.append(Append(log=LogKind.JOURNAL, stream=here, body=body))
        for one in map(audit.read, audited):
            body, head = audit.link(head, one)
            written.append(Append(log=LogKind.AUDIT, stream=here, body=body))
        closed = replace(TURNS.of(row), turn=turn, usage=Usage(input_tokens=5))
        written.append(turn_put(closed))
    commit = Commit(
        point=DurablePoint.HOUSEKEEPING,
        conversation=here,
        fence=await world.store.lease(here),
        writes=tuple(written),
    )
    await world.store.commit(commit)


@pytest.mark.slow
async def test_no_command_holds_the_loop_longer_for_a_long_history(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor a start or a message: when all is read anew, while it is at hand, and when it was let go."""
    await said_much(world)
    took: dict[str, tuple[int, str]] = {}
    with loop_steps(monkeypatch) as steps:
        async with world.running() as house:
            took["start"] = steps.taken()
            staying = [f"/{name}{rest}" for rest in ("", " 1") for name in COMMANDS]
            staying = [one for one in staying if one[1:].split()[0] not in LEAVING]
            leaving = map("/{}".format, LEAVING)
            for said in ("hello", "", "hello", "/context", *staying, "", "hello", *leaving):
                if not said:
                    await house.advance(KEPT_S + LOOK_S)
                    continue
                await house.say(said)
                took[said] = max(took.get(said, (0, "")), steps.taken())
    assert {said: found for said, found in took.items() if found[0] > MAX_STEPS} == {}


@pytest.mark.slow
async def test_no_page_holds_the_loop_longer_for_a_long_history(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor those that the sections of the console lead to."""
    await said_much(world)
    took: dict[str, tuple[int, str]] = {}
    async with visiting(world) as visitor:
        await visitor.page("usage")  # the first request loads what makes pages
        with loop_steps(monkeypatch) as steps:
            for section in SECTIONS:
                links = (await visitor.page(section)).links().values()
                for path in (section, *(link.removeprefix("/console/") for link in links)):
                    if path.startswith(section):
                        await visitor.page(path)
                        took[path] = steps.taken()
    assert {path: found for path, found in took.items() if found[0] > MAX_OF_A_PAGE} == {}


@pytest.mark.slow
async def test_no_list_holds_the_loop_longer_for_what_is_in_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of grants, of what waits, and where one of them is looked for."""
    async with world.running() as house:
        await granted(house)
        (row,) = await house.rows(RowKind.GRANT)
        held = replace(GRANTS.of(row), tool="other")
        await put_a_page_before(world.store, grant.to_put(held))
        world.model.will(asks_for(("poke", '{"a": 2}')), says("done"))
        await house.say("poke it", "ben")
        *_, asked = await house.rows(RowKind.APPROVAL)
        waiting = approval.APPROVALS.of(asked)
        await put_a_page_before(world.store, approval.to_put(waiting))
        took: dict[str, tuple[int, str]] = {}
        with loop_steps(monkeypatch) as steps:
            for said in ("/grants", "/pending", "/revoke 1", "/approve 1", "/status", "hello"):
                await house.say(said)
                took[said] = steps.taken()
        assert {said: found for said, found in took.items() if found[0] > MAX_STEPS} == {}


@pytest.mark.slow
async def test_no_answer_that_comes_in_one_piece_holds_the_loop_longer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an endpoint that streams nothing, or means harm."""
    world.model.will(says("the token is 12 and the key is c " * 2_000))
    async with world.running() as house:
        with loop_steps(monkeypatch) as steps:
            await house.say("hello")
            assert steps.taken() <= (MAX_STEPS, "")
