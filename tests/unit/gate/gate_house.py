"""A gate and a policy that tests choose, what tests ask them, and what they read off a batch."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import ManualClock
from zeroclaw.config.model import ApprovalSettings, Config, StatementEffect
from zeroclaw.envelope import Address, ConversationId, Principal, Reader, TurnId
from zeroclaw.errors import ResourcesUnresolved
from zeroclaw.gate import receipt
from zeroclaw.gate.action import ACTIONS, Frozen
from zeroclaw.gate.conditions import Query, ToolFacts
from zeroclaw.gate.decide import Gate
from zeroclaw.gate.policy import PolicySet, Statement
from zeroclaw.gate.protection import Protected
from zeroclaw.gate.receipt import Key
from zeroclaw.gate.shipped import assemble
from zeroclaw.gate.verdict import Denied, GatedBatch, Refusals, Setting
from zeroclaw.inbound.live_config import LiveConfig
from zeroclaw.message import ToolCall
from zeroclaw.redact import Redactor
from zeroclaw.store import Put
from zeroclaw.tool import Arguments, Effect, Risk, Spawned, Tool, ToolContext, ToolOutput, ToolSpec

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANN = Principal(id="person:ann", roles=frozenset({"operator"}), channel="web", sender="7")
BOB = Principal(id="web:8", roles=frozenset(), channel="web", sender="8", display="Bob")


def statement(
    name: str,
    effect: StatementEffect,
    *,
    principals: tuple[str, ...] = ("anyone",),
    actions: tuple[str, ...] = ("tool:*",),
    resources: tuple[str, ...] = (),
    when: dict[str, object] | None = None,
    note: str = "",
) -> Statement:
    return Statement(
        id=name,
        effect=effect,
        principals=principals,
        actions=actions,
        resources=resources,
        when=when or {},
        note=note,
    )


def query(
    action: str = "tool:write_file",
    *,
    principal: Principal = ANN,
    resources: tuple[str, ...] | None = (),
    facts: ToolFacts | None = None,
    own: bool | None = None,
) -> Query:
    return Query(
        principal=principal, action=action, now=NOW, resources=resources, facts=facts, own=own
    )


SECRET = "swordfish-1234"
KEY = Key(id="one", secret=b"k" * 32)
APPROVALS = ApprovalSettings(timeout_s=900, approvers=("person:ann",), requester_may_answer=False)
HERE = Address(channel="web", account="bot", chat="8", direct=True)


def same(arguments: Arguments) -> Arguments:
    return arguments


async def touches_a_file(arguments: Arguments) -> tuple[str, ...]:
    return (f"file:/ws/{arguments.get('path', '')}",)


@dataclass(kw_only=True)
class FakeTool:
    """A tool with a given output, which notes each run (there must be none)."""

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
    address=HERE,
    workspace=Path("/ws"),
    clock=ManualClock(),
    spawned=spawned,
)
SETTING = Setting(context=CONTEXT, turn=TurnId("01TURN"))


@dataclass(kw_only=True)
class House:
    """A gate with what it decides by; the policy can change under it."""

    tools: list[FakeTool] = field(default_factory=lambda: [READ, WRITE, SHELL])
    policy: PolicySet = field(default_factory=lambda: assemble("supervised"))
    clock: ManualClock = field(default_factory=ManualClock)
    approvers_now: Mapping[str, Principal] = field(default_factory=lambda: {ANN.identity: ANN})

    def gate(self) -> Gate:
        redactor = Redactor(references={SECRET: '{env="FISH"}'})
        known: Mapping[str, Tool] = {tool.name: tool for tool in self.tools}
        return Gate(
            tools=known,
            policy=lambda: self.policy,
            protected=Protected(closed=("/data",)),
            redactor=redactor,
            refusals=Refusals(redactor, KEY),
            clock=self.clock,
            ids=CountingIds(),
            settings=LiveConfig(Config(approvals=APPROVALS), ()),
            approvers=lambda _principal, address, _tools: (Reader(address=address),),
            approver_now=lambda identity, _tool: self.approvers_now.get(identity),
        )

    async def decide(self, *calls: ToolCall, setting: Setting = SETTING) -> GatedBatch:
        return await self.gate().gate_batch(calls, setting)


def frozen_in(batch: GatedBatch, place: int = 0) -> Frozen:
    """The call that a row of the batch keeps."""
    row = batch.writes[place]
    assert isinstance(row, Put)
    return ACTIONS.of(row)


def call(name: str, arguments: str = '{"path":"a"}', label: str = "call_1") -> ToolCall:
    return ToolCall(id=label, name=name, arguments=arguments)


def denied(batch: GatedBatch) -> tuple[str, str]:
    """The outcome and the text of the only verdict, without its receipt."""
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Denied)
    text, token = receipt.detach(verdict.result.content)
    assert token == verdict.receipt
    return verdict.outcome, text


def kinds(batch: GatedBatch) -> list[tuple[str, str, str]]:
    return [(entry.kind.value, entry.by, entry.decision) for entry in batch.audited]


async def unresolvable(_: Arguments) -> tuple[str, ...]:
    raise ResourcesUnresolved("`x.example` has no address")


async def names_a_secret_file(_: Arguments) -> tuple[str, ...]:
    return ("file:/ws/a", "file:/ws/.ssh/id_rsa")
