"""The last check before a run: whatever changed since the decision stops the call."""

import dataclasses

import pytest

from tests.fakes.manual_clock import EPOCH, ManualClock
from tests.unit.gate.gate_house import (
    BOB,
    CONTEXT,
    READ,
    SETTING,
    SHELL,
    WRITE,
    FakeTool,
    House,
    call,
    frozen_in,
    names_a_secret_file,
    touches_a_file,
    unresolvable,
)
from zeroclaw.envelope import ActionId, ConversationId
from zeroclaw.gate.action import Frozen, freeze
from zeroclaw.gate.approval import Approval, State
from zeroclaw.gate.audit import Kind
from zeroclaw.gate.policy import PolicySet, Statement
from zeroclaw.gate.shipped import assemble, halt_statement
from zeroclaw.gate.verdict import Allowed, Cleared, Denied, Stopped
from zeroclaw.tool import Arguments
from zeroclaw.value import replace


async def gated(house: House, name: str) -> tuple[Frozen, Approval | None]:
    """Gate one call, keep it in its row, and read it back; an approval of it says yes."""
    batch = await house.decide(call(name))
    (verdict,) = batch.verdicts
    assert not isinstance(verdict, Denied)
    frozen = frozen_in(batch)
    if isinstance(verdict, Allowed):
        return frozen, None
    return frozen, replace(batch.approvals[0], state="approved", by="Ann", at=EPOCH)


def refusal(why: str, *, by: str) -> Stopped:
    """A refusal that reads the same for the model and for somebody who reads English."""
    return Stopped(reason=why, for_people=why, by=by)


async def test_people_read_in_their_language_why_a_call_is_stopped() -> None:
    """The model reads English."""
    house = House()
    german = replace(SETTING, context=replace(CONTEXT, principal=replace(BOB, language="de")))
    frozen, _ = await gated(house, "shell")
    waits = await house.gate().recheck(frozen, german)
    house.tools = [dataclasses.replace(SHELL, touches=names_a_secret_file)]
    moved = await house.gate().recheck(frozen, german)
    house.tools = []
    gone = await house.gate().recheck(frozen, german)
    assert [(one.reason, one.for_people) for one in (moved, gone) if isinstance(one, Stopped)] == [
        (
            "what it would touch has changed since",
            "was er berühren würde, hat sich seitdem geändert",
        ),
        ("its tool is no longer there", "sein Werkzeug ist nicht mehr da"),
    ]
    assert isinstance(waits, Stopped)
    assert waits.reason.startswith("it needs approval now: ")
    assert waits.for_people.startswith("er braucht inzwischen eine Freigabe: ")
    assert "asks" not in waits.for_people


@pytest.mark.parametrize("tool", [READ, WRITE, SHELL], ids=lambda tool: tool.name)
async def test_a_call_that_nothing_changed_about_may_run(tool: FakeTool) -> None:
    """Allowed by policy, or approved: the last check hands out its tool."""
    house = House()
    frozen, approval = await gated(house, tool.name)
    cleared = await house.gate().recheck(frozen, SETTING, approval)
    assert isinstance(cleared, Cleared)
    assert cleared.tool == tool


async def test_a_call_that_was_changed_after_its_decision_does_not_run() -> None:
    """The hash is recomputed immediately before the run (S3-25)."""
    house = House()
    frozen, _ = await gated(house, "read_file")
    changed = replace(frozen, action=replace(frozen.action, canonical_arguments='{"path":"b"}'))
    stopped = refusal("it is not the call that was decided about", by="integrity")
    assert await house.gate().recheck(changed, SETTING) == stopped


async def test_an_approval_lets_only_its_own_call_run() -> None:
    """Bound to one exact call by id and hash, to one conversation and one person (P5, K9)."""
    house = House()
    frozen, approval = await gated(house, "shell")
    assert approval is not None
    gate = house.gate()
    elsewhere = replace(SETTING, context=replace(CONTEXT, conversation=ConversationId("01X")))
    somebody = replace(SETTING, context=replace(CONTEXT, principal=replace(BOB, id="web:9")))
    found = [
        await gate.recheck(frozen, SETTING, replace(approval, action=ActionId("01OTHER"))),
        await gate.recheck(frozen, SETTING, replace(approval, action_hash="0" * 64)),
        await gate.recheck(frozen, elsewhere, approval),
        await gate.recheck(frozen, somebody, approval),
    ]
    assert found == [refusal("it is not the call that was decided about", by="integrity")] * 4


@pytest.mark.parametrize("state", ["pending", "denied", "expired", "stopped"])
async def test_an_approval_that_is_no_yes_lets_nothing_run(state: State) -> None:
    """Only `approved` is a yes."""
    house = House()
    frozen, approval = await gated(house, "shell")
    assert approval is not None
    not_yes = replace(approval, state=state)
    stopped = await house.gate().recheck(frozen, SETTING, not_yes)
    assert isinstance(stopped, Stopped)
    assert stopped.reason.startswith("it needs approval now: ")


async def test_a_tool_that_is_gone_does_not_run() -> None:
    """After a restart with another configuration, for example."""
    house = House()
    frozen, _ = await gated(house, "read_file")
    house.tools = []
    assert await house.gate().recheck(frozen, SETTING) == refusal(
        "its tool is no longer there", by="integrity"
    )


async def test_a_call_whose_resources_have_changed_does_not_run() -> None:
    """A link that was moved since: what is touched is not what was decided about."""
    house = House()
    frozen, approval = await gated(house, "write_file")
    house.tools = [dataclasses.replace(WRITE, touches=names_a_secret_file)]
    changed = refusal("what it would touch has changed since", by="resources")
    assert await house.gate().recheck(frozen, SETTING, approval) == changed
    house.tools = [dataclasses.replace(WRITE, touches=unresolvable)]
    assert await house.gate().recheck(frozen, SETTING, approval) == changed


async def test_a_deny_since_then_wins() -> None:
    """A halt, or a new statement, stops what was approved before."""
    house = House()
    frozen, approval = await gated(house, "write_file")
    house.policy = assemble("full", halt=halt_statement("person:ann", EPOCH))
    stopped = await house.gate().recheck(frozen, SETTING, approval)
    assert isinstance(stopped, Stopped)
    assert stopped.by == "policy"
    assert stopped.reason.startswith("`halt.active` denies it")


async def test_what_was_decided_just_now_stands_while_nothing_has_changed() -> None:
    """Neither the policy, nor what the call touches: it is not decided twice for nothing."""
    house = House()
    batch = await house.decide(call("read_file"))
    frozen, (cleared,) = frozen_in(batch), batch.cleared
    assert await house.gate().recheck(frozen, SETTING, cleared=cleared) is cleared
    house.policy = assemble("full", halt=halt_statement("person:ann", EPOCH))
    halted = await house.gate().recheck(frozen, SETTING, cleared=cleared)
    assert isinstance(halted, Stopped)
    assert halted.by == "policy"
    house.tools = [dataclasses.replace(READ, touches=names_a_secret_file)]
    changed = refusal("what it would touch has changed since", by="resources")
    assert await house.gate().recheck(frozen, SETTING, cleared=cleared) == changed


async def test_a_halt_while_a_call_says_what_it_touches_wins() -> None:
    """The policy counts that is in force once that is said."""
    house = House()
    batch = await house.decide(call("read_file"))

    async def is_halted_meanwhile(arguments: Arguments) -> tuple[str, ...]:
        house.policy = assemble("full", halt=halt_statement("person:ann", EPOCH))
        return await touches_a_file(arguments)

    house.tools = [dataclasses.replace(READ, touches=is_halted_meanwhile)]
    halted = await house.gate().recheck(frozen_in(batch), SETTING, cleared=batch.cleared[0])
    assert isinstance(halted, Stopped)
    assert halted.by == "policy"


async def test_what_was_decided_by_the_clock_is_decided_again() -> None:
    """To say what it touches may take a tool seconds; when those are over the hour may be another."""
    house = House(clock=ManualClock(EPOCH.replace(hour=17, minute=59, second=59)))
    by_day = Statement(
        id="by_day",
        effect="allow",
        principals=("anyone",),
        actions=("tool:read_file",),
        when={"hour_between": [9, 18]},
    )
    house.policy = PolicySet((by_day,))
    batch = await house.decide(call("read_file"))
    frozen, (cleared,) = frozen_in(batch), batch.cleared
    await house.clock.advance(1)
    stopped = await house.gate().recheck(frozen, SETTING, cleared=cleared)
    assert isinstance(stopped, Stopped)
    assert stopped.by == "policy"


async def test_protection_is_asked_again() -> None:
    """What became protected since is protected."""
    house = House()
    frozen, approval = await gated(house, "write_file")
    action = replace(frozen.action, resources=("file:/data/x",))

    async def touches_data(_: Arguments) -> tuple[str, ...]:
        return ("file:/data/x",)

    house.tools = [dataclasses.replace(WRITE, touches=touches_data)]
    sealed = freeze(action)
    assert approval is not None
    approved = replace(approval, action_hash=sealed.hash)
    stopped = await house.gate().recheck(sealed, SETTING, approved)
    assert isinstance(stopped, Stopped)
    assert stopped.by == "protection"


async def test_an_allow_that_became_an_ask_does_not_run_unasked() -> None:
    """The policy of now counts: a yes is needed that nobody gave."""
    house = House(policy=assemble("full"))
    frozen, approval = await gated(house, "write_file")
    assert approval is None
    house.policy = assemble("supervised")
    stopped = await house.gate().recheck(frozen, SETTING)
    assert isinstance(stopped, Stopped)
    assert stopped.reason.startswith("it needs approval now: `supervised.effects` asks")


async def test_every_audit_kind_of_the_gate_is_one_that_the_chain_knows() -> None:
    """The gate writes the first two steps, and the end of what it refuses."""
    batch = await House(policy=assemble("readonly")).decide(call("shell"), call("x"))
    assert {entry.kind for entry in batch.audited} == {
        Kind.PROPOSED,
        Kind.EVALUATED,
        Kind.DENIED,
        Kind.FAILED,
    }
