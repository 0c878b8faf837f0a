"""What the shipped statements allow, ask and deny, and who may command and approve."""

import pytest

from tests.unit.gate.gate_house import ANN, BOB, NOW, query, statement
from zeroclaw.config.model import Autonomy
from zeroclaw.envelope import Principal
from zeroclaw.gate.conditions import ToolFacts
from zeroclaw.gate.policy import Decision, Statement
from zeroclaw.gate.shipped import BASE, assemble, autonomy_statements, halt_statement
from zeroclaw.tool import Effect, Risk
from zeroclaw.value import replace


def facts(effects: set[Effect], risk: Risk = "low") -> ToolFacts:
    return ToolFacts(effects=frozenset(effects), risk=risk, declared=True)


READS = facts({"read"})
READS_AT_MEDIUM_RISK = facts({"read"}, "medium")
WRITES = facts({"read", "write"})
ASKS_A_HOST = facts({"network"})
RUNS = facts({"exec"}, "high")
UNDECLARED = ToolFacts(
    effects=frozenset({"read", "write", "network", "exec"}), risk="high", declared=False
)


@pytest.mark.parametrize(
    ("autonomy", "tool", "expected"),
    [
        ("readonly", READS, "allow"),
        ("readonly", READS_AT_MEDIUM_RISK, "deny"),
        ("readonly", WRITES, "deny"),
        ("readonly", RUNS, "deny"),
        ("readonly", UNDECLARED, "deny"),
        ("supervised", READS, "allow"),
        ("supervised", READS_AT_MEDIUM_RISK, "ask"),
        ("supervised", WRITES, "ask"),
        ("supervised", ASKS_A_HOST, "ask"),
        ("supervised", RUNS, "ask"),
        ("supervised", facts({"exec"}), "ask"),
        ("supervised", UNDECLARED, "ask"),
        ("full", READS, "allow"),
        ("full", WRITES, "allow"),
        ("full", RUNS, "allow"),
        ("full", UNDECLARED, "ask"),
    ],
)
def test_what_each_autonomy_does_with_a_tool(
    autonomy: Autonomy, tool: ToolFacts, expected: str
) -> None:
    """Autonomy is nothing but statements (S2-08, S2-11, S2-12, K26)."""
    ask = replace(query("tool:any", principal=BOB, facts=tool), untrusted=False, in_message=False)
    assert assemble(autonomy).decide(ask).effect == expected


@pytest.mark.parametrize(
    ("autonomy", "direct", "expected"),
    [
        ("readonly", True, "allow"),
        ("readonly", False, "ask"),
        ("readonly", None, "ask"),
        ("supervised", True, "allow"),
        ("supervised", False, "ask"),
        ("full", False, "allow"),
    ],
)
def test_a_file_goes_to_a_group_only_after_an_approval(
    autonomy: Autonomy, direct: bool | None, expected: str
) -> None:
    """In a group all members get it, in private the person; an unknown chat counts as a group."""
    ask = replace(query("tool:send_file", principal=BOB, facts=READS), direct=direct)
    assert assemble(autonomy).decide(ask).effect == expected


@pytest.mark.parametrize(
    ("tool", "untrusted", "in_message", "expected"),
    [
        (RUNS, True, False, "ask"),
        (RUNS, True, True, "allow"),
        (RUNS, False, False, "allow"),
        (RUNS, None, None, "ask"),
        (ASKS_A_HOST, True, False, "ask"),
        (ASKS_A_HOST, True, True, "allow"),
        (WRITES, True, False, "allow"),
        (READS, True, False, "allow"),
    ],
)
def test_full_asks_where_a_page_may_be_speaking(
    tool: ToolFacts, untrusted: bool | None, in_message: bool | None, expected: str
) -> None:
    """Before what acts or sends data out, unless its person dictated it; not known counts as yes."""
    ask = replace(
        query("tool:any", principal=BOB, facts=tool), untrusted=untrusted, in_message=in_message
    )
    assert assemble("full").decide(ask).effect == expected
    assert assemble("full", ask_when_untrusted=False).decide(ask).effect == "allow"


def test_an_allow_of_an_operator_does_not_outweigh_it() -> None:
    """Ask beats allow; who wants it otherwise turns the key off."""
    mine = Statement(id="mine", effect="allow", principals=("anyone",), actions=("tool:*",))
    ask = replace(query("tool:any", principal=BOB, facts=RUNS), untrusted=True, in_message=False)
    assert assemble("full", (mine,)).decide(ask).statements == ("full.untrusted",)


@pytest.mark.parametrize("autonomy", ["readonly", "supervised", "full"])
@pytest.mark.parametrize(
    ("action", "principal", "own", "expected"),
    [
        ("command:help", BOB, None, "allow"),
        ("command:pending", BOB, None, "allow"),
        ("command:stop", BOB, True, "allow"),
        ("command:stop", BOB, False, "deny"),
        ("command:stop", BOB, None, "deny"),
        ("command:stop", ANN, False, "allow"),
        ("command:grants", BOB, True, "allow"),
        ("command:revoke", BOB, True, "allow"),
        ("command:revoke", BOB, False, "deny"),
        ("command:revoke", ANN, False, "allow"),
        ("command:halt", BOB, None, "deny"),
        ("command:halt", ANN, None, "allow"),
        ("command:resume", BOB, None, "deny"),
        ("command:tool", BOB, None, "deny"),
        ("command:tool", ANN, None, "allow"),
        ("approve:shell", BOB, None, "deny"),
        ("approve:shell", ANN, None, "allow"),
    ],
)
def test_who_may_command_and_approve(
    autonomy: Autonomy, action: str, principal: Principal, own: bool | None, expected: str
) -> None:
    """Autonomy is about tools alone: commands and approvals are the same in each (S2-10)."""
    ask = query(action, principal=principal, own=own)
    assert assemble(autonomy).decide(ask).effect == expected


def test_halt_denies_every_tool_to_everybody() -> None:
    """While it holds nothing beats it, and its reason says who and when; commands go on."""
    halted = assemble("full", halt=halt_statement("person:ann", NOW))
    assert halted.decide(query("tool:any", facts=READS)) == Decision(
        effect="deny",
        statements=("halt.active",),
        reason="`halt.active` denies it: `person:ann` halted everything at 2026-11-21 12:00 UTC, "
        "until `/resume`",
    )
    assert halted.decide(query("command:resume")).effect == "allow"


def test_the_statements_of_an_operator_join_the_shipped_ones() -> None:
    """One set, one engine: a deny of the configuration beats an allow that was shipped."""
    mine = statement("mine", "deny", actions=("tool:notes_*",))
    policy = assemble("full", [mine])
    assert policy.decide(query("tool:notes_add", facts=WRITES)).statements == ("mine",)
    assert {statement_.id for statement_ in policy.statements} == {
        "mine",
        "base.approvers",
        *(statement_.id for statement_ in (*BASE, *autonomy_statements("full"))),
    }


def test_approvers_are_those_of_the_configuration() -> None:
    """Whoever `approvals.approvers` names may answer, operators only if it names them (S2-10)."""
    policy = assemble("full", approvers=("web:8",))
    assert policy.decide(query("approve:shell", principal=BOB)).effect == "allow"
    assert policy.decide(query("approve:shell", principal=ANN)).effect == "deny"
