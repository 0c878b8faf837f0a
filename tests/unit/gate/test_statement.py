"""Statements as an operator writes them: every fault at once, each with its key path."""

from collections.abc import Mapping

import pytest

from tests.unit.gate.gate_house import statement
from zeroclaw.errors import ConfigError
from zeroclaw.gate.conditions import EFFECTS, ToolFacts
from zeroclaw.gate.policy import Statement, check_statement, configured
from zeroclaw.gate.vocabulary import (
    Findings,
    Vocabulary,
    actions_today,
    check_approvers,
    check_names,
    people_today,
)
from zeroclaw.value import replace

GOOD: dict[str, object] = {
    "id": "office-hours",
    "effect": "deny",
    "principals": ["role:family", "telegram:4711"],
    "actions": ["tool:shell", "tool:fetch_*"],
    "resources": [
        "file:/srv/notes",
        "file:/srv/notes/*",
        "host:*.example.com:443",
        "sandbox:*",
        "notes:of:*",
        "results:*",
    ],
    "when": {"hour_between": [9, 17]},
    "note": "not while we work",
}


def faults_of(**changed: object) -> tuple[str, ...]:
    checked = check_statement({**GOOD, **changed}, "policy.statement[0]")
    assert isinstance(checked, tuple)
    return checked


def test_a_statement_is_read_as_it_stands() -> None:
    """Lists become tuples; nothing is added."""
    assert check_statement(GOOD, "policy.statement[0]") == Statement(
        id="office-hours",
        effect="deny",
        principals=("role:family", "telegram:4711"),
        actions=("tool:shell", "tool:fetch_*"),
        resources=(
            "file:/srv/notes",
            "file:/srv/notes/*",
            "host:*.example.com:443",
            "sandbox:*",
            "notes:of:*",
            "results:*",
        ),
        when={"hour_between": [9, 17]},
        note="not while we work",
    )


def test_resources_when_and_note_may_be_left_out() -> None:
    """Principals and actions are required; the rest defaults to any, always."""
    entry = {key: GOOD[key] for key in ("id", "effect", "principals", "actions")}
    assert check_statement(entry, "x") == Statement(
        id="office-hours",
        effect="deny",
        principals=("role:family", "telegram:4711"),
        actions=("tool:shell", "tool:fetch_*"),
    )


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"id": ""}, ".id: allowed are lower-case letters, digits, `-` and `_`"),
        ({"id": 7}, '.id: should be a text, in quotes: "…"; allowed are lower-case letters, '),
        ({"id": "full.x"}, ".id: allowed are lower-case letters, digits, `-` and `_`"),
        ({"effect": "maybe"}, ".effect: allowed are `allow`, `ask` and `deny`"),
        ({"effect": ["deny"]}, ".effect: allowed are `allow`, `ask` and `deny`"),
        ({"note": ""}, ".note: allowed are texts of one line"),
        ({"note": "a\nb"}, ".note: allowed are texts of one line"),
        ({"note": "a\u2028b"}, ".note: allowed are texts of one line"),
        ({"note": 1}, '.note: should be a text, in quotes: "…"; allowed are texts of one line'),
        (
            {"principals": "anyone"},
            ".principals: should be a list; allowed are `anyone`, `role:<name>`",
        ),
        ({"principals": []}, ".principals: should not be empty; allowed are `anyone`, "),
        ({"principals": ["everyone"]}, ".principals[0]: allowed are `anyone`, `role:<name>`"),
        ({"principals": ["anyone", "telegram:*"]}, ".principals[1]: allowed are `anyone`, "),
        ({"principals": [4711]}, '.principals[0]: should be a text, in quotes: "…"; allowed are '),
        ({"actions": ["shell"]}, ".actions[0]: allowed are `tool:<name>`"),
        ({"resources": []}, ".resources: should not be empty; allowed are `file:/<real path>`"),
        ({"resources": ["file:~/x"]}, ".resources[0]: allowed are `file:/<real path>`, "),
        ({"resources": ["a\nb"]}, ".resources[0]: allowed are `file:/<real path>`, "),
        ({"resources": ["/etc"]}, ".resources[0]: allowed are `file:/<real path>`, "),
        ({"resources": ["file:/a/../b"]}, ".resources[0]: goes up with `..`"),
        ({"resources": ["file:/a/"]}, ".resources[0]: ends with `/`: `file:/a` is the"),
        ({"resources": ["host:example.org"]}, ".resources[0]: names no port"),
        ({"resources": ["sandbox:Workspace"]}, ".resources[0]: allowed are "),
        ({"resources": ["notes:person:ann"]}, ".resources[0]: allowed are "),
        ({"resources": ["notes:of:ann"]}, ".resources[0]: allowed are "),
        ({"resources": ["attachment:01C"]}, ".resources[0]: allowed are "),
        ({"when": "always"}, ".when: should be a table"),
        ({"when": {"moon": 1}}, ".when.moon: unknown condition, known are effects_within, "),
        ({"when": {"mo\non": 1}}, ".when.mo on: unknown condition, known are effects_within, "),
        (
            {"when": {"undeclared": 1}},
            ".when.undeclared: unknown condition; did you mean `declared`?",
        ),
        ({"when": {"declared": 1}}, ".when.declared: must be true or false"),
        ({"un\nless": 1}, ".un less: unknown key; `zeroclaw config schema` lists the keys"),
        ({"resource": ["*"]}, ".resource: unknown key; did you mean `resources`?"),
    ],
)
def test_a_fault_names_its_key_and_what_is_allowed(
    changed: Mapping[str, object], fault: str
) -> None:
    """One line a fault, beginning with the path of the key."""
    (line,) = faults_of(**changed)
    assert line.startswith(f"policy.statement[0]{fault}")
    assert "\n" not in line


def test_all_faults_of_a_configuration_are_reported_at_once() -> None:
    """A person corrects a file once, not once a fault."""
    with pytest.raises(ConfigError) as refused:
        configured([{}, GOOD, {**GOOD, "note": 1, "when": {"moon": 1}}, GOOD])
    assert [fault.partition(": ")[0] for fault in refused.value.faults] == [
        "policy.statement[0].id",
        "policy.statement[0].effect",
        "policy.statement[0].principals",
        "policy.statement[0].actions",
        "policy.statement[2].note",
        "policy.statement[2].when.moon",
        "policy.statement[3].id",
    ]


def test_good_statements_come_back_in_order() -> None:
    """The same number as were written."""
    other = {**GOOD, "id": "other"}
    assert [statement_.id for statement_ in configured([GOOD, other])] == ["office-hours", "other"]


def test_hosts_and_paths_are_read_in_the_form_in_which_tools_name_them() -> None:
    """A deny that never matches is an open door, however it is spelled (P3)."""
    written = ["host:Blocked.Example:443", "host:bücher.example.:*", "file:/srv//a/./b"]
    checked = check_statement({**GOOD, "resources": written}, "x")
    assert isinstance(checked, Statement)
    assert checked.resources == (
        "host:blocked.example:443",
        "host:xn--bcher-kva.example:*",
        "file:/srv/a/b",
    )


def test_the_root_folder_is_in_normal_form() -> None:
    """It is the one path that ends with a slash."""
    checked = check_statement({**GOOD, "resources": ["file:/", "*"]}, "x")
    assert isinstance(checked, Statement)


# --- names that nothing has: a deny on one would be an open door ----------------------------------

KNOWN = Vocabulary(
    tools={"shell": frozenset({"sandbox", "host"}), "read": frozenset({"file"}), "own": None},
    commands=("help", "halt"),
    channels=("web", "telegram"),
    people={"operator": ("operator",), "ann": ("editor",)},
    ids={"telegram:9": "ann"},
    arguments={"shell": {"command"}, "read": {"path"}},
)
READS = ToolFacts(effects=frozenset({"read"}), risk="low", declared=True)
RUNS = ToolFacts(effects=EFFECTS, risk="high", declared=True)


def findings(
    *, principals: tuple[str, ...] = ("anyone",), actions: tuple[str, ...] = ("tool:*",),
    resources: tuple[str, ...] = (),
) -> Findings:  # fmt: skip
    deny = statement("s", "deny", principals=principals, actions=actions, resources=resources)
    return check_names(deny, "here", KNOWN)


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
        ("pigeon:7", "here.principals: `pigeon:7` begins with no channel or kind; there "),
        ("telegrm:7", "here.principals: `telegrm:7` begins with no channel or kind; did "),
        ("Role:editor", "here.principals: `Role:editor` begins with no channel or kind; "),
    ],
)
def test_a_channel_that_is_not_there_is_a_fault(principal: str, fault: str) -> None:
    (line,) = findings(principals=(principal,)).faults
    assert line.startswith(fault)


@pytest.mark.parametrize(
    ("principals", "actions", "resources", "warning"),
    [
        (("role:guests",), ("tool:*",), (), "here.principals: no person has the role `guests`"),
        (
            ("person:an",),
            ("tool:*",),
            (),
            "here.principals: no person is called `an`; did you mean",
        ),
        (("telegram:9",), ("tool:*",), (), "here.principals: `telegram:9` is `person:ann`"),
        (("anyone",), ("tool:Sh*",), (), "here.actions: `tool:Sh*` matches no tool"),
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
    ("actions", "argument", "suggestion"),
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
    actions: tuple[str, ...], argument: str, suggestion: str | None
) -> None:
    """The statement never matches; a tool with unknown arguments may take it."""
    deny = replace(statement("s", "deny", actions=actions), when={"argument_equals": {argument: 1}})
    assert check_names(deny, "here", KNOWN).warnings == (
        ()
        if suggestion is None
        else (
            "here.when.argument_equals: the statement never matches, for no tool that it names has "
            f"an argument `{argument}`{suggestion}",
        )
    )


def test_an_approver_is_a_person_or_a_role() -> None:
    """An answer is compared by id and role, so `anyone` names no approver."""
    found = check_approvers(
        ("operator", "anyone", "channel:web", "pigeon:1", "role:x", "role:operator", "telegram:9"),
        "at",
        KNOWN,
    )
    assert [fault.split("`")[1] for fault in found.faults] == [
        "operator", "anyone", "channel:web", "pigeon:1",
    ]  # fmt: skip
    assert found.warnings == (
        "at: no person has the role `x`; there are `editor`, `operator`",
        "at: `telegram:9` is `person:ann`, and is known by that name alone; write it so",
    )


def test_nothing_is_meant_where_there_is_nothing() -> None:
    bare = Vocabulary(tools={}, commands=(), channels=(), people={})
    deny = statement("s", "deny", actions=("tool:x",))
    assert check_names(deny, "here", bare).faults == ("here.actions: no tool is called `x`",)


def test_the_declarations_of_tools_tell_what_a_statement_matches_today() -> None:
    """Conditions on tools count; those on a call or a chat are left open."""
    facts = {"shell": RUNS, "read": READS}
    reads = statement("s", "allow", when={"effects_within": ["read"], "channel_is_direct": True})
    assert actions_today(reads, KNOWN, facts) == ("tool:read",)
    every = statement("s", "allow", actions=("*",), principals=("role:editor", "web:7"))
    assert actions_today(every, KNOWN, facts) == (
        "tool:shell", "approve:shell", "tool:read", "approve:read", "approve:own",
        "command:help", "command:halt",
    )  # fmt: skip
    assert people_today(every, KNOWN) == ("ann", "web:7")
    unknown = statement("s", "allow", principals=("person:eve", "person:ann", "role:editor"))
    assert people_today(unknown, KNOWN) == ("ann",)
