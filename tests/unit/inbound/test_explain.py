"""What is explained is what door and gate decide: the same people, tools and statements."""

import asyncio
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import ManualClock
from tests.fakes.people import local
from tests.unit.gate.gate_house import CONTEXT, KEY, SETTING
from zeroclaw.config.model import ApprovalSettings, Config
from zeroclaw.config.validate import parse
from zeroclaw.envelope import Address, ConversationId, Principal, Reader, Sender
from zeroclaw.errors import ConfigError
from zeroclaw.gate.audit import Kind
from zeroclaw.gate.decide import Gate
from zeroclaw.gate.policy import PolicySet, Statement, StatementEffect
from zeroclaw.gate.protection import Protected
from zeroclaw.gate.ruling import Explained
from zeroclaw.gate.shipped import assemble
from zeroclaw.gate.verdict import Refusals
from zeroclaw.inbound.commands.explain import EXAMPLE, Explainer, asker_of
from zeroclaw.inbound.identity import People, Person
from zeroclaw.inbound.live_config import LiveConfig
from zeroclaw.message import ToolCall
from zeroclaw.redact import Redactor
from zeroclaw.tool import Tool
from zeroclaw.tools.files import FilesSettings, tools
from zeroclaw.value import replace

CLOCK = ManualClock()
TOOLS: Mapping[str, Tool] = {tool.spec.name: tool for tool in tools(FilesSettings())}
CONFIG = parse(
    """
[channels.web]
[channels.chat]
kind = "telegram"
allowed_users = ["1", "2", "3"]
[channels.off]
kind = "telegram"
enabled = false
allowed_users = ["*"]
[[people]]
name = "ann"
ids = ["off:1", "chat:1"]
roles = ["editor"]
[[people]]
name = "ben"
ids = ["chat:99"]
[[people]]
name = "nobody"
"""
)
WHO = (
    "operator", "person:ann", "person:ben", "person:nobody", "chat:1", "chat:2", "chat:3", "chat:4",
    "chat:99", "off:1", "pigeon:1", "web:anybody",
)  # fmt: skip
CALLS = (
    ("read_file", '{"path": "a"}'),
    ("read_file", '{"path": "/etc/passwd"}'),
    ("read_file", '{"path": "x/../../y"}'),
    ("read_file", '{"path": ".env"}'),
    ("read_file", '{"path": "private/a"}'),
    ("write_file", '{"path": "private/a", "content": ""}'),
    ("list_files", "{}"),
    ("search_files", '{"path": "private", "pattern": "x"}'),
    ("search_files", '{"path": ".ssh", "pattern": "x"}'),
    ("launch", "{}"),
)
PRINCIPALS = ("anyone", "role:editor", "role:operator", "person:ann", "chat:2", "channel:chat")
ACTIONS = ("tool:*", "tool:read_file", "tool:search_files", "tool:*_file")
CONDITIONS: tuple[Mapping[str, object], ...] = (
    {},
    {"own": True},
    {"own": False},
    {"untrusted": True},
    {"untrusted": False},
    {"channel_is_direct": True},
    {"channel_is_direct": False},
    {"effects_within": ["read"]},
    {"argument_equals": {"path": "a"}},
)
RESOURCES = ("file:*", "file:*/private/*", "file:*/private", "file:*/a", f"file:*/{EXAMPLE}/*")
statements = st.lists(
    st.builds(
        Statement,
        id=st.uuids().map(str),
        effect=st.sampled_from(("allow", "ask", "deny")),
        principals=st.tuples(st.sampled_from(PRINCIPALS)),
        actions=st.tuples(st.sampled_from(ACTIONS)),
        resources=st.one_of(st.just(()), st.tuples(st.sampled_from(RESOURCES))),
        when=st.sampled_from(CONDITIONS),
    ),
    max_size=4,
)


def people() -> People:
    made = People(CONFIG, local("web"))
    made.learn(Person(id="chat:3", display="", state="revoked", by="Ada", at=CLOCK.now()))
    made.learn(Person(id="chat:4", display="", state="admitted", by="Ada", at=CLOCK.now()))
    return made


def explainer(workspaces: Path, policy: PolicySet, config: Config = CONFIG) -> Explainer:
    return Explainer(
        settings=LiveConfig(config, ()),
        people=people(),
        policy=lambda: policy,
        protected=Protected(closed=()),
        tools=TOOLS,
        workspaces=workspaces,
        clock=CLOCK,
    )


def through_the_door(who: str) -> Principal | None:
    """Who a message of theirs would be from; None for a stranger, whose message goes no further."""
    ids = {"operator": ("web:operator",), "person:ann": ("chat:1",), "person:ben": ("chat:99",)}
    for identity in ids.get(who, (who,)):
        channel, _, sender = identity.partition(":")
        if channel in {"web", "chat"}:  # the others have no adapter that could receive anything
            return people().admit(channel, Sender(id=sender, verified=True))
    return None


async def through_the_gate(
    workspaces: Path, policy: PolicySet, principal: Principal, call: tuple[str, str]
) -> tuple[str, str, tuple[str, ...]]:
    """The gate's record: the effect, who decided, and the statements."""
    workspace = workspaces / EXAMPLE
    workspace.mkdir(exist_ok=True)
    context = replace(
        CONTEXT,
        conversation=ConversationId(EXAMPLE),
        principal=principal,
        address=Address(channel=principal.channel, account="", chat="1", direct=True),
        workspace=workspace,
    )
    redactor = Redactor([])
    gate = Gate(
        tools=TOOLS,
        policy=lambda: policy,
        protected=Protected(closed=()),
        redactor=redactor,
        refusals=Refusals(redactor, KEY),
        clock=CLOCK,
        ids=CountingIds(),
        settings=LiveConfig(Config(approvals=ApprovalSettings(timeout_s=900)), ()),
        approvers=lambda _principal, address, _tools: (Reader(address=address),),
        approver_now=lambda _identity, _tool: None,
    )
    call_ = ToolCall(id="1", name=call[0], arguments=call[1])
    out = people().excluded_by(principal)
    batch = await gate.gate_batch([call_], replace(SETTING, context=context, revoked_by=out))
    (entry,) = [entry_ for entry_ in batch.audited if entry_.kind is Kind.EVALUATED]
    return entry.decision, entry.by, entry.statements


def summary(explained: Explained) -> tuple[str, str, tuple[str, ...]]:
    decision = explained.ruling.decision
    return decision.effect, explained.ruling.by, decision.statements


async def agree(workspaces: Path, policy: PolicySet, who: str, call: tuple[str, str]) -> None:
    explained = await explainer(workspaces, policy).explain(
        subject=who, action=call[0], arguments=call[1], resources=()
    )
    principal = through_the_door(who)
    if principal is None:
        assert explained.ruling.decision.effect == "deny"
        assert explained.ruling.by in {"people", "schema"}
        return
    assert explained.query.principal == principal
    assert summary(explained) == await through_the_gate(workspaces, policy, principal, call)


@pytest.mark.parametrize(("who", "call"), list(itertools.product(WHO, CALLS)))
async def test_an_explanation_is_what_ingress_and_gate_decide(
    tmp_path: Path, who: str, call: tuple[str, str]
) -> None:
    """For every person and every kind of call, effect, reason and statements are the same."""
    await agree(tmp_path, assemble("supervised"), who, call)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=statements, who=st.sampled_from(WHO), call=st.sampled_from(CALLS))
def test_an_explanation_is_what_ingress_and_gate_decide_by_any_statements(
    tmp_path: Path, found: list[Statement], who: str, call: tuple[str, str]
) -> None:
    asyncio.run(agree(tmp_path, assemble("readonly", found), who, call))


@pytest.mark.parametrize(
    ("effect", "when"), list(itertools.product(get_args(StatementEffect), CONDITIONS))
)
async def test_an_explanation_knows_no_more_of_a_call_than_the_gate(
    tmp_path: Path, effect: StatementEffect, when: Mapping[str, object]
) -> None:
    """What a condition asks and a call does not say is open to both of them."""
    found = Statement(id="s", effect=effect, principals=("anyone",), actions=("tool:*",), when=when)
    await agree(tmp_path, assemble("readonly", [found]), "chat:1", CALLS[0])
    await agree(tmp_path, PolicySet([found]), "chat:1", CALLS[0])


@pytest.mark.parametrize(
    ("who", "out"),
    [
        ("pigeon:1", "there is no channel `pigeon`; the configuration has"),
        ("off:1", "the channel `off` is switched off"),
        ("chat:3", "they were revoked by Ada"),
        ("chat:77", "`chat:77` is a stranger: not in `channels.chat.allowed_users`"),
        ("person:ben", "`chat:99` is a stranger"),
        ("person:nobody", "the configuration gives them no id on any channel"),
        ("role:editor", ""),
        ("person:ann", ""),
        ("chat:4", ""),
    ],
)
def test_a_person_who_is_not_let_in_reads_why(who: str, out: str) -> None:
    """Each by what an operator would change (P4, P10)."""
    asker = asker_of(CONFIG, people(), who)
    assert asker.refusal.startswith(out)
    assert bool(asker.refusal) == bool(out)


@pytest.mark.parametrize("who", ["", "chat:", ":1", "person:eve", "anyone"])
def test_an_unknown_subject_is_refused(who: str) -> None:
    with pytest.raises(ConfigError):
        asker_of(CONFIG, people(), who)


def test_the_operator_needs_a_channel_of_their_own() -> None:
    """Where none is local, no person can be the operator by name alone."""
    empty = People(Config(), {})
    assert asker_of(CONFIG, empty, "operator").refusal.startswith("no channel of the configuration")
