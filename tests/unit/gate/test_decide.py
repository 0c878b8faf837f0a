"""The gate phase in its order, and the last check before a run."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from tests.fakes.counting_ids import CountingIds, numbered_ulid
from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.envelope import ActionId, ConversationId, Principal, TurnId
from zeroclaw.errors import ResourcesUnresolved, ToolArgumentsInvalid
from zeroclaw.gate import audit, receipt
from zeroclaw.gate.action import Frozen, freeze, from_row, to_put
from zeroclaw.gate.approval import Approval, State
from zeroclaw.gate.audit import Kind
from zeroclaw.gate.conditions import facts_of
from zeroclaw.gate.decide import Gate
from zeroclaw.gate.grant import grant_for
from zeroclaw.gate.policy import PolicySet
from zeroclaw.gate.protection import Protected
from zeroclaw.gate.receipt import Fields, Key
from zeroclaw.gate.refusal import REASON_CHARS, Refusals
from zeroclaw.gate.shipped import assemble, halt_statement
from zeroclaw.gate.statement import Statement
from zeroclaw.gate.verdict import (
    Allowed,
    Asked,
    Cleared,
    Denied,
    GatedBatch,
    GateSettings,
    Setting,
    Stopped,
)
from zeroclaw.message import ToolCall
from zeroclaw.redact import MARKER, Redactor
from zeroclaw.tool import Arguments, Effect, Risk, Spawned, Tool, ToolContext, ToolOutput, ToolSpec

SECRET = "swordfish-1234"
KEY = Key(id="one", secret=b"k" * 32)
BOB = Principal(id="web:8", roles=frozenset(), channel="web", sender="8", display="Bob")


def same(arguments: Arguments) -> Arguments:
    return arguments


async def touches_a_file(arguments: Arguments) -> tuple[str, ...]:
    return (f"file:/ws/{arguments.get('path', '')}",)


@dataclass(kw_only=True)
class FakeTool:
    """A tool that says what it is told to say, and notes each run (there must be none)."""

    name: str
    effects: frozenset[Effect] = frozenset({"read"})
    risk: Risk = "low"
    checks: Callable[[Arguments], Arguments] = same
    touches: Callable[[Arguments], Awaitable[tuple[str, ...]]] = touches_a_file
    describes: Callable[[Arguments], str] = lambda arguments: f"do {sorted(arguments)}"
    runs: int = 0

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name, description="", parameters={}, effects=self.effects, risk=self.risk
        )

    def check(self, arguments: Arguments) -> Arguments:
        return self.checks(arguments)

    def describe(self, arguments: Arguments) -> str:
        return self.describes(arguments)

    async def resources(self, arguments: Arguments, context: ToolContext) -> tuple[str, ...]:
        return await self.touches(arguments)

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        self.runs += 1
        return ToolOutput(text="")


READ = FakeTool(name="read_file")
WRITE = FakeTool(name="write_file", effects=frozenset({"read", "write"}), risk="medium")
SHELL = FakeTool(name="shell", effects=frozenset({"exec"}), risk="high")


async def spawned(group: Spawned | None) -> None:
    raise AssertionError(group)


CONTEXT = ToolContext(
    conversation=ConversationId("01CONVERSATION"),
    principal=BOB,
    workspace=Path("/ws"),
    clock=ManualClock(),
    spawned=spawned,
)
SETTING = Setting(context=CONTEXT, turn=TurnId("01TURN"), direct=True)


@dataclass(kw_only=True)
class House:
    """A gate with what it decides by; the policy can change under it."""

    tools: list[FakeTool] = field(default_factory=lambda: [READ, WRITE, SHELL])
    policy: PolicySet = field(default_factory=lambda: assemble("supervised"))
    resolve_timeout_s: float = 10.0
    clock: ManualClock = field(default_factory=ManualClock)

    def gate(self) -> Gate:
        redactor = Redactor([SECRET])
        known: Mapping[str, Tool] = {tool.name: tool for tool in self.tools}
        return Gate(
            tools=known,
            policy=lambda: self.policy,
            protected=Protected(closed=("/data",)),
            redactor=redactor,
            refusals=Refusals(redactor, KEY),
            clock=self.clock,
            ids=CountingIds(),
            settings=GateSettings(
                approval_timeout_s=900,
                approvers=("person:ann",),
                requester_may_answer=False,
                resolve_timeout_s=self.resolve_timeout_s,
            ),
        )

    async def decide(self, *calls: ToolCall, setting: Setting = SETTING) -> GatedBatch:
        return await self.gate().gate_batch(calls, setting)


def call(name: str, arguments: str = '{"path":"a"}', label: str = "call_1") -> ToolCall:
    return ToolCall(id=label, name=name, arguments=arguments)


def denied(batch: GatedBatch) -> tuple[str, str]:
    """The outcome and the text of the only verdict, without its receipt."""
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Denied)
    text, token = receipt.detach(verdict.refusal.message.content)
    assert token == verdict.refusal.receipt
    return verdict.outcome, text


def kinds(batch: GatedBatch) -> list[tuple[str, str, str]]:
    return [(entry.kind.value, entry.by, entry.decision) for entry in batch.audited]


# --- the batch -----------------------------------------------------------------------------------


async def test_a_batch_is_decided_call_by_call_in_request_order() -> None:
    """One verdict a call, in the order asked, before anything runs (S1-19, S2-08, S2-11, K3)."""
    tools = [replace(READ), replace(WRITE), replace(SHELL)]
    policy = assemble(
        "supervised",
        [Statement(id="no-shell", effect="deny", principals=("anyone",), actions=("tool:shell",))],
    )
    batch = await House(tools=tools, policy=policy).decide(
        call("read_file"), call("write_file"), call("shell"), call("read_file")
    )
    assert [type(verdict) for verdict in batch.verdicts] == [Allowed, Asked, Denied, Allowed]
    assert [tool.runs for tool in tools] == [0, 0, 0]
    assert kinds(batch) == [
        ("proposed", "web:8", ""),
        ("evaluated", "policy", "allow"),
        ("proposed", "web:8", ""),
        ("evaluated", "policy", "ask"),
        ("proposed", "web:8", ""),
        ("evaluated", "policy", "deny"),
        ("denied", "policy", ""),
        ("proposed", "web:8", ""),
        ("evaluated", "policy", "allow"),
    ]


async def test_a_call_that_may_run_is_frozen_and_kept() -> None:
    """Its row, its hash and its audit name one call: who, where, what, on which things (S3-22)."""
    batch = await House().decide(call("read_file", '{ "path" : "a" }'))
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Allowed)
    action = verdict.frozen.action
    assert (action.id, action.tool) == (numbered_ulid(2), "read_file")
    assert (action.canonical_arguments, action.resources) == ('{"path":"a"}', ("file:/ws/a",))
    assert (action.principal, action.turn) == (BOB, SETTING.turn)
    assert batch.writes == (to_put(verdict.frozen),)
    assert [entry.hash for entry in batch.audited] == [verdict.frozen.hash] * 2
    assert batch.audited[1].statements == ("supervised.reads",)


async def test_what_is_written_makes_an_unbroken_audit_chain() -> None:
    """Allowed, asked, denied and malformed calls: each ends or stays open, in order (S3-29)."""
    batch = await House().decide(
        call("read_file"), call("shell"), call("read_file", "{"), call("nothing")
    )
    head, bodies = audit.GENESIS, list[bytes]()
    for entry in batch.audited:
        body, head = audit.link(head, entry)
        bodies.append(body)
    checked = audit.verify(bodies)
    assert checked == audit.Intact(head=head, count=10, open=(numbered_ulid(2), numbered_ulid(3)))


async def test_colliding_labels_of_the_model_change_nothing() -> None:
    """Every call has an id of its own; the model's is only echoed (K9)."""
    batch = await House().decide(call("read_file", label="x"), call("read_file", label="x"))
    ids = [verdict.frozen.action.id for verdict in batch.verdicts if isinstance(verdict, Allowed)]
    assert len(set(ids)) == 2


# --- asking --------------------------------------------------------------------------------------


def says_a_secret(_: Arguments) -> str:
    return f"write {SECRET}\nto a"


async def test_an_ask_becomes_a_question_about_exactly_this_call() -> None:
    """With hash, deadline, approvers, and a view without secrets (S2-10, S2-12, P5)."""
    raw = f'{{"path":"a","text":"the password is {SECRET}"}}'
    tool = replace(WRITE, describes=says_a_secret)
    batch = await House(tools=[tool]).decide(call("write_file", raw))
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Asked)
    frozen = verdict.frozen
    assert verdict.approval == Approval(
        id=verdict.approval.id,
        action=frozen.action.id,
        action_hash=frozen.hash,
        tool="write_file",
        conversation=CONTEXT.conversation,
        turn=SETTING.turn,
        requester=BOB,
        approvers=("person:ann",),
        requester_may_answer=False,
        summary=f"write {MARKER} to a",
        arguments='{\n  "path": "a",\n  "text": "the password is ' + MARKER + '"\n}',
        why="`supervised.effects` asks: it does more than read; "
        "`supervised.risk` asks: its risk is not low",
        card=numbered_ulid(1),
        order=0,
        deadline_at=EPOCH + timedelta(seconds=900),
    )
    assert SECRET in frozen.action.canonical_arguments
    assert batch.audited[1].approval == verdict.approval.id


async def test_the_asks_of_a_batch_share_one_card() -> None:
    """In request order, each with an approval of its own (K3)."""
    batch = await House().decide(call("shell"), call("read_file"), call("write_file"))
    asks = [verdict.approval for verdict in batch.verdicts if isinstance(verdict, Asked)]
    assert [(ask.tool, ask.order) for ask in asks] == [("shell", 0), ("write_file", 2)]
    assert len({ask.card for ask in asks}) == 1
    assert len({ask.id for ask in asks}) == 2


async def test_a_tool_that_cannot_describe_a_call_is_described_by_its_name() -> None:
    """A card is shown all the same; the whole call stands on it."""

    def raises(_: Arguments) -> str:
        raise RuntimeError

    batch = await House(tools=[replace(WRITE, describes=raises)]).decide(call("write_file"))
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Asked)
    assert verdict.approval.summary == "run write_file"


async def unresolvable(_: Arguments) -> tuple[str, ...]:
    raise ResourcesUnresolved("`x.example` has no address")


async def test_what_cannot_be_named_can_be_approved_only_once() -> None:
    """Unresolved resources count as matched on ask; a grant for them would be for anything."""
    fetch = FakeTool(name="fetch", effects=frozenset({"network"}), touches=unresolvable)
    batch = await House(tools=[fetch]).decide(call("fetch"))
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Asked)
    assert verdict.frozen.action.resources is None
    assert verdict.approval.choices == ("once", "deny", "deny_with_reason")


async def test_a_grant_turns_an_ask_into_an_allow() -> None:
    """For this conversation, this tool and these resources, until it ends; never a deny."""
    house = House()
    (first,) = (await house.decide(call("write_file"))).verdicts
    assert isinstance(first, Asked)
    grant = grant_for(
        first.frozen.action,
        facts_of(WRITE.spec),
        id="01GRANT",
        granted_by="Ann",
        until=EPOCH + timedelta(hours=1),
    )
    assert grant is not None
    setting = replace(SETTING, grants=(replace(grant, tool="shell"), grant))
    batch = await house.decide(
        call("write_file"), call("write_file", '{"path":"b"}'), call("read_file"), setting=setting
    )
    assert [type(verdict) for verdict in batch.verdicts] == [Allowed, Asked, Allowed]
    evaluated = batch.audited[1]
    assert (evaluated.by, evaluated.decision, evaluated.detail) == ("grant", "allow", "01GRANT")
    await house.clock.advance(3600)
    late = await house.decide(call("write_file"), setting=setting)
    house.policy = assemble("full", halt=halt_statement("person:ann", EPOCH))
    halted = await house.decide(call("write_file"), setting=setting)
    assert [type(one.verdicts[0]) for one in (late, halted)] == [Asked, Denied]


# --- calls that can't be decided about -----------------------------------------------------------


def refuses(_: Arguments) -> Arguments:
    raise ToolArgumentsInvalid(("path: is missing", "n: must be a number"))


def crashes(_: Arguments) -> Arguments:
    raise RuntimeError(SECRET)


def makes_a_list(_: Arguments) -> Arguments:
    return cast("Arguments", ["a"])


@pytest.mark.parametrize(
    ("name", "arguments", "checks", "text"),
    [
        ("read_file", '{"a"', same, "arguments: not valid JSON at line 1 column 5"),
        ("read_file", '{"a":1,"a":2}', same, "arguments: the key 'a' is given twice"),
        ("read_file", '{"a":NaN}', same, "arguments: NaN is not JSON"),
        ("read_file", "[]", same, "arguments: must be a JSON object"),
        ("read_file", "{}", refuses, "path: is missing; n: must be a number"),
        ("read_file", "{}", crashes, "raised RuntimeError"),
        ("read_file", "{}", makes_a_list, "raised ValueError"),
    ],
)
async def test_arguments_that_cannot_be_used_fail_with_a_clear_text(
    name: str, arguments: str, checks: Callable[[Arguments], Arguments], text: str
) -> None:
    """The model reads what is wrong; nothing ran; audit and receipt have it, too (S2-09)."""
    house = House(tools=[replace(READ, checks=checks)])
    batch = await house.decide(call(name, arguments))
    told = f"the arguments of `read_file` can't be used, nothing ran: {text}"
    assert denied(batch) == ("failed", told)
    assert kinds(batch) == [
        ("proposed", "web:8", ""),
        ("evaluated", "schema", "deny"),
        ("failed", "schema", ""),
    ]
    assert batch.writes == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "read_fiel",
            "there is no tool `read_fiel`, nothing ran; did you mean `read_file`, `write_file`",
        ),
        (
            "zzz",
            "there is no tool `zzz`, nothing ran; the tools are `read_file`, `shell`, `write_file`",
        ),
        (
            "a\nb" * 40,
            f"there is no tool `{'a b' + 'a b' * 39:.64}`, nothing ran; the tools are "
            "`read_file`, `shell`, `write_file`",
        ),
        (
            "\ud800",
            "there is no tool `\\ud800`, nothing ran; the tools are `read_file`, `shell`, `write_file`",
        ),
    ],
)
async def test_an_unknown_tool_is_answered_with_near_names(name: str, text: str) -> None:
    """Whatever the model calls it, the turn goes on."""
    assert denied(await House().decide(call(name))) == ("failed", text)


async def test_without_tools_the_model_is_told_so() -> None:
    """An empty shelf is a sentence, too."""
    batch = await House(tools=[]).decide(call("x"))
    assert denied(batch)[1] == "there is no tool `x`, nothing ran; there are no tools at all"


async def test_a_refusal_carries_a_receipt_that_verifies() -> None:
    """Denied and failed calls carry one too: for this call, this outcome, this text (P7)."""
    batch = await House(policy=assemble("readonly")).decide(call("shell", '{ "path": "a" }'))
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Denied)
    assert denied(batch) == (
        "denied",
        "`shell` may not run: no statement allows `tool:shell` for `web:8`",
    )
    fields = Fields(
        conversation=CONTEXT.conversation,
        action=verdict.id,
        tool="shell",
        arguments='{"path":"a"}',
        outcome="denied",
        result=denied(batch)[1],
    )
    assert receipt.verify([KEY], fields, verdict.refusal.receipt)
    assert not receipt.verify([KEY], replace(fields, outcome="ok"), verdict.refusal.receipt)
    message = verdict.refusal.message
    assert (message.tool_call_id, message.tool_name, message.is_error) == ("call_1", "shell", True)


async def test_a_refusal_repeats_no_secret_and_no_forged_receipt() -> None:
    """A name made of a secret, or of a receipt, is not given back (P7, P8)."""
    forged = "zc-receipt-1-" + "A" * 43
    batch = await House().decide(call(SECRET), call(forged))
    first, second = (
        verdict.refusal.message.content for verdict in batch.verdicts if isinstance(verdict, Denied)
    )
    assert f"there is no tool `{MARKER}`" in first
    assert second.count("zc-receipt-") == 1


async def test_a_long_list_of_faults_is_cut() -> None:
    """A refusal is a text for the model, not the whole schema."""

    def refuses_at_length(_: Arguments) -> Arguments:
        raise ToolArgumentsInvalid(("path: is missing",) * 1000)

    batch = await House(tools=[replace(READ, checks=refuses_at_length)]).decide(call("read_file"))
    assert len(denied(batch)[1]) == REASON_CHARS + 2


# --- protection and unknown resources ------------------------------------------------------------


async def hangs(_: Arguments) -> tuple[str, ...]:
    await asyncio.Event().wait()
    return ()


async def names_a_secret_file(_: Arguments) -> tuple[str, ...]:
    return ("file:/ws/a", "file:/ws/.ssh/id_rsa")


async def names_no_utf8(_: Arguments) -> tuple[str, ...]:
    return ("file:/ws/\udcff",)


async def names_numbers(_: Arguments) -> tuple[str, ...]:
    return cast("tuple[str, ...]", (1, 2))


UNKNOWN = "what it would touch could not be determined"


@pytest.mark.parametrize(
    ("touches", "why"),
    [
        (names_a_secret_file, "`file:/ws/.ssh/id_rsa` is where secrets are kept"),
        (unresolvable, f"{UNKNOWN}; `x.example` has no address"),
        (hangs, f"{UNKNOWN}; the tool took too long to say"),
        (names_no_utf8, f"{UNKNOWN}; what it said has no UTF-8"),
        (names_numbers, f"{UNKNOWN}; what it said has no UTF-8"),
    ],
)
async def test_protection_stands_above_every_policy(
    touches: Callable[[Arguments], Awaitable[tuple[str, ...]]], why: str
) -> None:
    """Even full autonomy does not open it, and no person is asked (S3-23)."""
    house = House(
        tools=[replace(READ, touches=touches)], policy=assemble("full"), resolve_timeout_s=0
    )
    if touches is not hangs:
        house.resolve_timeout_s = 10
    batch = await house.decide(call("read_file"))
    assert denied(batch) == (
        "denied",
        f"`read_file` may not run: {why}; no approval can change that",
    )
    assert kinds(batch)[1:] == [("evaluated", "protection", "deny"), ("denied", "protection", "")]


async def test_a_tool_that_changes_its_copy_changes_nothing() -> None:
    """Arguments are frozen before the tool is asked what they touch (K7)."""

    async def meddles(arguments: Arguments) -> tuple[str, ...]:
        cast("dict[str, object]", arguments)["path"] = "/etc/passwd"
        return ()

    batch = await House(tools=[replace(READ, touches=meddles)]).decide(call("read_file"))
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Allowed)
    assert verdict.frozen.action.arguments == {"path": "a"}


async def test_cancelling_the_gate_passes_through() -> None:
    """A turn that is stopped while a tool is asked leaves nothing behind."""
    house = House(tools=[replace(READ, touches=hangs)])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(house.decide(call("read_file")))
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()


# --- the last check ------------------------------------------------------------------------------


async def gated(house: House, name: str) -> tuple[Frozen, Approval | None]:
    """Gate one call, keep it in its row, and read it back; an approval of it says yes."""
    batch = await house.decide(call(name))
    (verdict,) = batch.verdicts
    assert not isinstance(verdict, Denied)
    frozen = from_row(to_put(verdict.frozen).body)
    if isinstance(verdict, Allowed):
        return frozen, None
    return frozen, replace(verdict.approval, state="approved", by="Ann", at=EPOCH)


@pytest.mark.parametrize("tool", [READ, WRITE, SHELL], ids=lambda tool: tool.name)
async def test_a_call_that_nothing_changed_about_may_run(tool: FakeTool) -> None:
    """Allowed by policy, or approved: the last check hands out its tool."""
    house = House()
    frozen, approval = await gated(house, tool.name)
    assert await house.gate().recheck(frozen, SETTING, approval) == Cleared(tool=tool)


async def test_a_call_that_was_changed_after_its_decision_does_not_run() -> None:
    """The hash is recomputed immediately before the run (S3-25)."""
    house = House()
    frozen, _ = await gated(house, "read_file")
    changed = replace(frozen, action=replace(frozen.action, canonical_arguments='{"path":"b"}'))
    stopped = Stopped(reason="it is not the call that was decided about", by="integrity")
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
    assert (
        found == [Stopped(reason="it is not the call that was decided about", by="integrity")] * 4
    )


@pytest.mark.parametrize("state", ["pending", "denied", "expired", "stopped"])
async def test_an_approval_that_is_no_yes_lets_nothing_run(state: State) -> None:
    """Only `approved` is a yes."""
    house = House()
    frozen, approval = await gated(house, "shell")
    assert approval is not None
    not_yes = replace(approval, state=state)
    stopped = await house.gate().recheck(frozen, SETTING, not_yes)
    assert isinstance(stopped, Stopped)
    assert stopped.reason.startswith("it needs approval by now: ")


async def test_a_tool_that_is_gone_does_not_run() -> None:
    """After a restart with another configuration, for example."""
    house = House()
    frozen, _ = await gated(house, "read_file")
    house.tools = []
    assert await house.gate().recheck(frozen, SETTING) == Stopped(
        reason="its tool is no longer there", by="integrity"
    )


async def test_a_call_whose_resources_have_changed_does_not_run() -> None:
    """A link that was moved since: what is touched is not what was decided about."""
    house = House()
    frozen, approval = await gated(house, "write_file")
    house.tools = [replace(WRITE, touches=names_a_secret_file)]
    changed = Stopped(reason="what it would touch has changed since", by="resources")
    assert await house.gate().recheck(frozen, SETTING, approval) == changed
    house.tools = [replace(WRITE, touches=unresolvable)]
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


async def test_protection_is_asked_again() -> None:
    """What became protected since is protected."""
    house = House()
    frozen, approval = await gated(house, "write_file")
    action = replace(frozen.action, resources=("file:/data/x",))

    async def touches_data(_: Arguments) -> tuple[str, ...]:
        return ("file:/data/x",)

    house.tools = [replace(WRITE, touches=touches_data)]
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
    assert stopped.reason.startswith("it needs approval by now: `supervised.effects` asks")


async def test_every_audit_kind_of_the_gate_is_one_that_the_chain_knows() -> None:
    """The gate writes the first two steps, and the end of what it refuses."""
    batch = await House(policy=assemble("readonly")).decide(call("shell"), call("x"))
    assert {entry.kind for entry in batch.audited} == {
        Kind.PROPOSED,
        Kind.EVALUATED,
        Kind.DENIED,
        Kind.FAILED,
    }
