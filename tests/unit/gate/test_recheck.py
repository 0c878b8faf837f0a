"""The last check before a run, and what a walk may touch: what the gate ruled, and nothing else."""

import dataclasses
import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest

from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import EPOCH, ManualClock
from tests.unit.gate.gate_house import (
    ANN,
    BOB,
    CONTEXT,
    KEY,
    READ,
    SETTING,
    SHELL,
    WRITE,
    FakeTool,
    House,
    call,
    frozen_in,
    names_a_secret_file,
    query,
    statement,
    touches_a_file,
    unresolvable,
)
from zeroclaw.config.model import ApprovalSettings, Config
from zeroclaw.envelope import ActionId, ConversationId, Principal, Reader
from zeroclaw.gate.action import Frozen, freeze
from zeroclaw.gate.approval import Approval, State
from zeroclaw.gate.audit import Kind
from zeroclaw.gate.decide import APPROVED_FOR, Gate
from zeroclaw.gate.policy import PolicySet, Statement, configured
from zeroclaw.gate.protection import Protected
from zeroclaw.gate.ruling import rule, rule_answer
from zeroclaw.gate.shipped import assemble, halt_statement
from zeroclaw.gate.verdict import Allowed, Asked, Cleared, Denied, Refusals, Stopped
from zeroclaw.inbound.live_config import LiveConfig
from zeroclaw.redact import Redactor
from zeroclaw.tool import Arguments
from zeroclaw.tools.files import FilesSettings, tools
from zeroclaw.value import replace


async def gated(house: House, name: str) -> tuple[Frozen, Approval | None]:
    """Gate one call, keep it in its row, and read it back; an approval of it says yes."""
    batch = await house.decide(call(name))
    (verdict,) = batch.verdicts
    assert not isinstance(verdict, Denied)
    frozen = frozen_in(batch)
    if isinstance(verdict, Allowed):
        return frozen, None
    approval = batch.approvals[0]
    return frozen, replace(approval, state="approved", by="Ann", answerer=ANN.identity, at=EPOCH)


def refusal(reason: str, *, by: str) -> Stopped:
    """A refusal that reads the same for the model and for a person who reads English."""
    return Stopped(reason=reason, for_people=reason, by=by)


async def test_people_read_in_their_language_why_a_call_is_stopped() -> None:
    """The model reads English."""
    house = House()
    german = replace(SETTING, context=replace(CONTEXT, principal=replace(BOB, language="de")))
    frozen, _ = await gated(house, "shell")
    waits = await house.gate().recheck(frozen, german)
    house.tools = [dataclasses.replace(SHELL, touches=names_a_secret_file)]
    moved = await house.gate().recheck(frozen, german)
    house.tools = []
    removed = await house.gate().recheck(frozen, german)
    assert [
        (verdict.reason, verdict.for_people)
        for verdict in (moved, removed)
        if isinstance(verdict, Stopped)
    ] == [
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
    other_person = replace(SETTING, context=replace(CONTEXT, principal=replace(BOB, id="web:9")))
    found = [
        await gate.recheck(frozen, SETTING, replace(approval, action=ActionId("01OTHER"))),
        await gate.recheck(frozen, SETTING, replace(approval, action_hash="0" * 64)),
        await gate.recheck(frozen, elsewhere, approval),
        await gate.recheck(frozen, other_person, approval),
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


@pytest.mark.parametrize(
    ("answerer", "now"),
    [
        (ANN.identity, {}),
        (ANN.identity, {ANN.identity: BOB}),  # who asks, which this configuration forbids
        ("", {ANN.identity: ANN}),  # a row of an earlier release may be theirs
    ],
)
async def test_a_yes_counts_only_while_its_giver_may_give_it(
    answerer: str, now: Mapping[str, Principal]
) -> None:
    """Revoked, an operator no longer, or found out to be the one who asks (P5)."""
    house = House()
    frozen, approval = await gated(house, "shell")
    assert approval is not None
    house.approvers_now = now
    approved = replace(approval, answerer=answerer)
    stopped = refusal("Ann approved it and may no longer do so", by="approvers")
    assert await house.gate().recheck(frozen, SETTING, approved) == stopped


async def test_an_approval_of_yesterday_starts_nothing() -> None:
    """The daemon was down since; its approver does not expect it any more (P5)."""
    house = House()
    frozen, approval = await gated(house, "shell")
    assert approval is not None
    await house.clock.advance(900 + APPROVED_FOR.total_seconds() - 1)
    assert isinstance(await house.gate().recheck(frozen, SETTING, approval), Cleared)
    await house.clock.advance(1)
    stopped = await house.gate().recheck(frozen, SETTING, approval)
    assert isinstance(stopped, Stopped)
    assert stopped.reason.startswith("it needs approval now: ")


async def test_an_approved_call_waits_for_its_neighbours_however_long_they_may_be_answered() -> (
    None
):
    """With `approvals.timeout_s` of days, the next card of the batch is answered days later (K5)."""
    house = House()
    frozen, approval = await gated(house, "shell")
    assert approval is not None
    patient = replace(approval, deadline_at=EPOCH + 3 * APPROVED_FOR)
    await house.clock.advance(3 * APPROVED_FOR.total_seconds())
    assert isinstance(await house.gate().recheck(frozen, SETTING, patient), Cleared)


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


async def test_a_fresh_decision_stands_while_nothing_has_changed() -> None:
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


async def test_a_halt_in_the_instant_of_the_decision_wins() -> None:
    """Long calls are decided in a thread: what they were decided by is what counts, not what came after."""
    house = House()
    policies = [house.policy, assemble("full", halt=halt_statement("person:ann", EPOCH))]
    gate = replace(house.gate(), policy=lambda: policies.pop(0) if policies[1:] else policies[0])
    batch = await gate.gate_batch([call("read_file")], SETTING)
    halted = await gate.recheck(frozen_in(batch), SETTING, cleared=batch.cleared[0])
    assert isinstance(halted, Stopped)
    assert halted.by == "policy"


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


async def test_a_decision_by_the_clock_is_made_again() -> None:
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


async def test_protection_is_checked_again() -> None:
    """A path that became protected since is protected."""
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
    """The policy of now counts: an approval is needed, and there is none."""
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


# --- walks, with the real file tools on real files ------------------------------------------------

TOOLS = {tool.spec.name: tool for tool in tools(FilesSettings())}
DENY = statement("not-private", "deny", resources=("file:*/private/*",))
ASK = statement("ask-plans", "ask", resources=("file:*/plans/*",))
PLACES = (
    "a.txt", "private/b", "deep/private/c", ".env", ".ssh/config", "deep/.ENV.prod", "plans/d",
    "zc/store",
)  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for place in PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(f"hunter2 of {place}\n", encoding="utf-8")
    return tmp_path.resolve()


def gate(workspace: Path, *statements: Statement) -> Gate:
    redactor = Redactor([])
    policy = assemble("supervised", statements)
    return Gate(
        tools=TOOLS,
        policy=lambda: policy,
        protected=Protected(closed=(f"{workspace}/zc",)),
        redactor=redactor,
        refusals=Refusals(redactor, KEY),
        clock=ManualClock(),
        ids=CountingIds(),
        settings=LiveConfig(Config(approvals=ApprovalSettings(timeout_s=900)), ()),
        approvers=lambda _principal, address, _tools: (Reader(address=address),),
        approver_now=lambda _identity, _tool: None,
    )


async def outcome_of(
    workspace: Path, name: str, arguments: str, *statements: Statement, yes: bool = False
) -> str:
    """Decide, answer a question with yes, check again, and run, as a turn does."""
    setting = replace(SETTING, context=replace(CONTEXT, workspace=workspace))
    house = gate(workspace, *statements)
    batch = await house.gate_batch([call(name, arguments)], setting)
    (verdict,) = batch.verdicts
    if isinstance(verdict, Denied):
        return "denied"
    approval: Approval | None = None
    if isinstance(verdict, Asked):
        if not yes:
            return "asked"
        approval = replace(batch.approvals[0], state="approved")
    cleared = await house.recheck(frozen_in(batch), setting, approval)
    assert isinstance(cleared, Cleared)
    context = replace(setting.context, permits=cleared.permits)
    ran = await cleared.tool.run(frozen_in(batch).action.arguments, context)
    return ran.text


async def test_a_search_of_everything_finds_nothing_of_what_is_denied_or_protected(
    workspace: Path,
) -> None:
    """A deny, `.env`, `.ssh` and the daemon's own files are skipped, and counted (P3, S3-23)."""
    found = await outcome_of(workspace, "search_files", '{"pattern": "hunter"}', DENY, ASK)
    assert found == (
        "a.txt:1: hunter2 of a.txt\n[skipped 7 paths: protected, not allowed by the policy, or unreadable]"
    )


async def test_a_list_names_nothing_of_what_is_denied_or_protected(workspace: Path) -> None:
    """A name can be the secret; the folder that a deny speaks about the inside of has one."""
    listed = await outcome_of(workspace, "list_files", '{"depth": 9}', DENY)
    assert [line.partition(" ")[0] for line in listed.splitlines()] == [
        "a.txt", "deep/", "plans/", "private/", "deep/private/", "plans/d", "[skipped",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "statements", "verdict"),
    [
        pytest.param("private", [DENY], "denied", id="a deny of all in it"),
        pytest.param("plans", [ASK], "asked", id="an ask about all in it"),
        pytest.param(".", [statement("x", "deny", resources=("file:*",))], "denied", id="of all"),
        pytest.param(".ssh", [], "denied", id="a place of secrets"),
        pytest.param("zc", [], "denied", id="a place of the daemon"),
    ],
)
async def test_a_walk_that_is_covered_whole_is_decided_as_a_whole(
    workspace: Path, path: str, statements: list[Statement], verdict: str
) -> None:
    """Only what lies within a larger walk is skipped."""
    arguments = f'{{"pattern": "hunter", "path": "{path}"}}'
    assert await outcome_of(workspace, "search_files", arguments, *statements) == verdict


async def test_an_approval_opens_what_was_asked_about_and_nothing_else(workspace: Path) -> None:
    """The approver saw `ask-plans`; what another statement asks about stays shut."""
    (workspace / "plans" / "later").mkdir()
    (workspace / "plans" / "later" / "e").write_text("hunter2", encoding="utf-8")
    other = statement("ask-later", "ask", resources=("file:*/later/*",))
    arguments = '{"pattern": "hunter", "path": "plans"}'
    found = await outcome_of(workspace, "search_files", arguments, ASK, other, yes=True)
    assert found == (
        "plans/d:1: hunter2 of plans/d\n[skipped 1 path: protected, not allowed by the policy, or unreadable]"
    )


async def test_an_allow_has_to_cover_all_below(workspace: Path) -> None:
    """One that covers a part allows a walk of that part, and no larger one."""
    part = f"file:{workspace}/plans"
    policy = PolicySet([statement("part", "allow", resources=(part, f"{part}/*"))])
    house = replace(gate(workspace), policy=lambda: policy)  # without the shipped ones
    setting = replace(SETTING, context=replace(CONTEXT, workspace=workspace))
    calls = [call("list_files", '{"path": "plans"}'), call("list_files", '{"path": "."}')]
    within, beyond = (await house.gate_batch(calls, setting)).verdicts
    assert (isinstance(within, Allowed), isinstance(beyond, Denied)) == (True, True)


def test_a_revoked_person_may_do_nothing() -> None:
    """A command and an answer too, and a command has no resources to protect (P4)."""
    policy, nothing = assemble("full"), Protected(closed=())
    command = query("command:help")
    assert rule(command, policy=policy, protected=nothing).decision.effect == "allow"
    assert rule(command, policy=policy, protected=nothing, exclusion="gone").by == "people"
    answer = query("approve:shell")
    named = ("role:operator",)
    assert rule_answer(answer, policy=policy, approvers=named).decision.effect == "allow"
    assert rule_answer(answer, policy=policy, approvers=named, exclusion="gone").by == "people"
    assert rule_answer(answer, policy=policy, approvers=("person:eve",)).by == "approvers"


@pytest.mark.parametrize(("written", "on_disk"), [("NFC", "NFD"), ("NFD", "NFC")])
async def test_a_name_that_is_composed_otherwise_is_the_same_name(
    workspace: Path, written: Literal["NFC", "NFD"], on_disk: Literal["NFC", "NFD"]
) -> None:
    """The two forms look the same, whichever was typed for an \xfc, or a disk keeps it."""
    folder = unicodedata.normalize(on_disk, "M\xfcller")
    (workspace / folder).mkdir()
    (workspace / folder / "a").write_text("swordfish", encoding="utf-8")
    pattern = unicodedata.normalize(written, "file:*/M\xfcller*")
    entry = {"id": "x", "effect": "deny", "principals": ["anyone"], "actions": ["*"]}
    (deny,) = configured([{**entry, "resources": [pattern]}])
    searched = await outcome_of(workspace, "search_files", '{"pattern": "."}', deny)
    assert "swordfish" not in searched
    assert "ller" not in await outcome_of(workspace, "list_files", "{}", deny)
    assert (
        await outcome_of(workspace, "read_file", json.dumps({"path": f"{folder}/a"}), deny)
        == "denied"
    )
