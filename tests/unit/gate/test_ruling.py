"""What a walk may touch is what the gate ruled: with the real file tools, on real files."""

import json
import unicodedata
from pathlib import Path
from typing import Literal

import pytest

from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import ManualClock
from tests.unit.gate.gate_house import CONTEXT, KEY, SETTING, call, frozen_in
from tests.unit.gate.policy_questions import query, statement
from zeroclaw.config.model import ApprovalSettings, Config
from zeroclaw.envelope import Reader
from zeroclaw.gate.approval import Approval
from zeroclaw.gate.decide import Gate
from zeroclaw.gate.policy import PolicySet, Statement, configured
from zeroclaw.gate.protection import Protected
from zeroclaw.gate.ruling import rule, rule_answer
from zeroclaw.gate.shipped import assemble
from zeroclaw.gate.verdict import Allowed, Asked, Cleared, Denied, Refusals
from zeroclaw.inbound.live_config import LiveConfig
from zeroclaw.redact import Redactor
from zeroclaw.tools.files import FilesSettings, tools
from zeroclaw.value import replace

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
        approvers=lambda _principal, here: (Reader(address=here),),
    )


async def told(
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
    found = await told(workspace, "search_files", '{"pattern": "hunter"}', DENY, ASK)
    assert found == (
        "a.txt:1: hunter2 of a.txt\n[skipped 7 places: protected, or not allowed by the policy]"
    )


async def test_a_list_names_nothing_of_what_is_denied_or_protected(workspace: Path) -> None:
    """A name can be the secret; the folder that a deny speaks about the inside of has one."""
    listed = await told(workspace, "list_files", '{"depth": 9}', DENY)
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
    assert await told(workspace, "search_files", arguments, *statements) == verdict


async def test_a_yes_opens_what_was_asked_about_and_nothing_else(workspace: Path) -> None:
    """The approver saw `ask-plans`; what another statement asks about stays shut."""
    (workspace / "plans" / "later").mkdir()
    (workspace / "plans" / "later" / "e").write_text("hunter2", encoding="utf-8")
    other = statement("ask-later", "ask", resources=("file:*/later/*",))
    asked = '{"pattern": "hunter", "path": "plans"}'
    found = await told(workspace, "search_files", asked, ASK, other, yes=True)
    assert found == (
        "plans/d:1: hunter2 of plans/d\n[skipped 1 place: protected, or not allowed by the policy]"
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


def test_who_is_out_does_nothing_whatever_is_asked() -> None:
    """A command and an answer too, and a command has no resources to protect (P4)."""
    policy, nothing = assemble("full"), Protected(closed=())
    command = query("command:help")
    assert rule(command, policy=policy, protected=nothing).decision.effect == "allow"
    assert rule(command, policy=policy, protected=nothing, out="gone").by == "people"
    answer = query("approve:shell")
    named = ("role:operator",)
    assert rule_answer(answer, policy=policy, approvers=named).decision.effect == "allow"
    assert rule_answer(answer, policy=policy, approvers=named, out="gone").by == "people"
    assert rule_answer(answer, policy=policy, approvers=("person:eve",)).by == "approvers"


@pytest.mark.parametrize(("written", "on_disk"), [("NFC", "NFD"), ("NFD", "NFC")])
async def test_a_name_that_is_composed_otherwise_is_the_same_name(
    workspace: Path, written: Literal["NFC", "NFD"], on_disk: Literal["NFC", "NFD"]
) -> None:
    """Nobody sees in which of its two forms they typed an \xfc, or a disk keeps it."""
    folder = unicodedata.normalize(on_disk, "M\xfcller")
    (workspace / folder).mkdir()
    (workspace / folder / "a").write_text("swordfish", encoding="utf-8")
    pattern = unicodedata.normalize(written, "file:*/M\xfcller*")
    entry = {"id": "x", "effect": "deny", "principals": ["anyone"], "actions": ["*"]}
    (deny,) = configured([{**entry, "resources": [pattern]}])
    searched = await told(workspace, "search_files", '{"pattern": "."}', deny)
    assert "swordfish" not in searched
    assert "ller" not in await told(workspace, "list_files", "{}", deny)
    assert await told(workspace, "read_file", json.dumps({"path": f"{folder}/a"}), deny) == "denied"
