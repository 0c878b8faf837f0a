"""A name that nothing has is told, for a deny on it would be an open door."""

import pytest

from tests.unit.gate.policy_questions import statement
from zeroclaw.gate.conditions import EFFECTS, ToolFacts
from zeroclaw.gate.vocabulary import (
    Findings,
    Vocabulary,
    actions_today,
    check_approvers,
    check_names,
    people_today,
)
from zeroclaw.value import replace

KNOWN = Vocabulary(
    tools={"shell": frozenset({"sandbox", "host"}), "read": frozenset({"file"}), "own": None},
    commands=("help", "halt"),
    channels=("web", "telegram"),
    people={"operator": ("operator",), "ann": ("editor",)},
    ids={"telegram:9": "ann"},
)
READS = ToolFacts(effects=frozenset({"read"}), risk="low", declared=True)
RUNS = ToolFacts(effects=EFFECTS, risk="high", declared=True)


def findings(
    *, principals: tuple[str, ...] = ("anyone",), actions: tuple[str, ...] = ("tool:*",),
    resources: tuple[str, ...] = (),
) -> Findings:  # fmt: skip
    one = statement("s", "deny", principals=principals, actions=actions, resources=resources)
    return check_names(one, "here", KNOWN)


@pytest.mark.parametrize(
    ("action", "fault"),
    [
        ("tool:Shell", "here.actions: no tool is called `Shell`; did you mean `shell`?"),
        ("tool:zzz", "here.actions: no tool is called `zzz`; there are `own`, `read`, `shell`"),
        ("approve:shel", "here.actions: no tool is called `shel`; did you mean `shell`?"),
        ("command:Halt", "here.actions: no command is called `Halt`; did you mean `halt`?"),
    ],
)
def test_an_action_that_is_not_there_is_a_fault(action: str, fault: str) -> None:
    assert findings(actions=(action,)) == Findings(faults=(fault,))


@pytest.mark.parametrize(
    ("principal", "fault"),
    [
        ("channel:Web", "here.principals: there is no channel `Web`; did you mean `web`?"),
        ("pigeon:7", "here.principals: `pigeon:7` names no channel of the configuration; there "),
        ("telegrm:7", "here.principals: `telegrm:7` names no channel of the configuration; did "),
        ("Role:editor", "here.principals: `Role:editor` names no channel of the configuration; "),
    ],
)
def test_a_channel_that_is_not_there_is_a_fault(principal: str, fault: str) -> None:
    (line,) = findings(principals=(principal,)).faults
    assert line.startswith(fault)


@pytest.mark.parametrize(
    ("principals", "actions", "resources", "warning"),
    [
        (("role:guests",), ("tool:*",), (), "here.principals: nobody has the role `guests`"),
        (("person:an",), ("tool:*",), (), "here.principals: nobody is called `an`; did you mean"),
        (("telegram:9",), ("tool:*",), (), "here.principals: `telegram:9` is `person:ann`"),
        (("anyone",), ("tool:Sh*",), (), "here.actions: `tool:Sh*` matches no tool that there is"),
        (("anyone",), ("command:x*",), (), "here.actions: `command:x*` matches no command"),
        (("anyone",), ("tool:read",), ("host:*",), "here.resources: the statement never matches"),
        (("anyone",), ("command:*",), ("*",), "here.resources: the statement never matches"),
    ],
)
def test_what_may_still_come_is_a_warning(
    principals: tuple[str, ...], actions: tuple[str, ...], resources: tuple[str, ...], warning: str
) -> None:
    """Somebody may get the role tomorrow; the statement is right then, and open until then."""
    found = findings(principals=principals, actions=actions, resources=resources)
    assert found.faults == ()
    (line,) = found.warnings
    assert line.startswith(warning)


@pytest.mark.parametrize(
    ("principals", "actions", "resources"),
    [
        (("anyone", "role:editor", "role:operator", "person:ann"), ("*",), ()),
        (("channel:web", "telegram:7"), ("tool:shell", "command:help", "approve:*"), ()),
        (("anyone",), ("tool:*",), ("file:*", "host:*:443")),
        (("anyone",), ("tool:own",), ("file:*",)),
        (("anyone",), ("tool:read",), ("*",)),
    ],
)
def test_names_that_are_there_are_neither(
    principals: tuple[str, ...], actions: tuple[str, ...], resources: tuple[str, ...]
) -> None:
    assert findings(principals=principals, actions=actions, resources=resources) == Findings()


@pytest.mark.parametrize(
    ("actions", "argument", "meant"),
    [
        (("tool:shell",), "comand", "; did you mean `command`?"),
        (("tool:read", "tool:shell"), "x", "; there are `command`, `path`"),
        (("tool:shell",), "command", None),
        (("tool:read", "tool:shell"), "path", None),
        (("tool:*",), "x", None),
        (("command:help",), "x", None),
    ],
)
def test_an_argument_that_no_tool_takes_is_a_warning(
    actions: tuple[str, ...], argument: str, meant: str | None
) -> None:
    """The statement never matches; a tool whose arguments nobody knows may take it."""
    one = replace(statement("s", "deny", actions=actions), when={"argument_equals": {argument: 1}})
    known = replace(KNOWN, arguments={"shell": {"command"}, "read": {"path"}})
    assert check_names(one, "here", known).warnings == (
        ()
        if meant is None
        else (
            "here.when.argument_equals: the statement never matches, for no tool that it names has "
            f"an argument `{argument}`{meant}",
        )
    )


def test_an_approver_is_somebody() -> None:
    """An answer is compared by id and role, so nobody answers as `anyone`."""
    found = check_approvers(
        ("operator", "anyone", "channel:web", "pigeon:1", "role:x", "role:operator", "telegram:9"),
        "at",
        KNOWN,
    )
    assert [one.split("`")[1] for one in found.faults] == [
        "operator", "anyone", "channel:web", "pigeon:1",
    ]  # fmt: skip
    assert found.warnings == (
        "at: nobody has the role `x`; there are `editor`, `operator`",
        "at: `telegram:9` is `person:ann`, and is known by that name alone; write it so",
    )


def test_nothing_is_meant_where_there_is_nothing() -> None:
    bare = Vocabulary(tools={}, commands=(), channels=(), people={})
    one = statement("s", "deny", actions=("tool:x",))
    assert check_names(one, "here", bare).faults == ("here.actions: no tool is called `x`",)


def test_what_a_statement_matches_today_is_told_by_what_tools_declare() -> None:
    """Conditions on tools count; what is asked of a call or a chat is left open."""
    facts = {"shell": RUNS, "read": READS}
    reads = statement("s", "allow", when={"effects_within": ["read"], "channel_is_direct": True})
    assert actions_today(reads, KNOWN, facts) == ("tool:read",)
    every = statement("s", "allow", actions=("*",), principals=("role:editor", "web:7"))
    assert actions_today(every, KNOWN, facts) == (
        "tool:shell", "approve:shell", "tool:read", "approve:read", "approve:own",
        "command:help", "command:halt",
    )  # fmt: skip
    assert people_today(every, KNOWN) == ("ann", "web:7")
    gone = statement("s", "allow", principals=("person:eve", "person:ann", "role:editor"))
    assert people_today(gone, KNOWN) == ("ann",)
