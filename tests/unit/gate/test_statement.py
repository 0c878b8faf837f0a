"""Statements as an operator writes them: every fault at once, each with its key path."""

from collections.abc import Mapping

import pytest

from zeroclaw.errors import ConfigError
from zeroclaw.gate.policy import Statement, check_statement, configured

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
    """Who and what must be said; the rest means whatever, always."""
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
        ({"id": 7}, ".id: allowed are lower-case letters, digits, `-` and `_`"),
        ({"id": "full.x"}, ".id: allowed are lower-case letters, digits, `-` and `_`"),
        ({"effect": "maybe"}, ".effect: allowed are `allow`, `ask` and `deny`"),
        ({"effect": ["deny"]}, ".effect: allowed are `allow`, `ask` and `deny`"),
        ({"note": ""}, ".note: allowed are texts of one line"),
        ({"note": "a\nb"}, ".note: allowed are texts of one line"),
        ({"note": "a\u2028b"}, ".note: allowed are texts of one line"),
        ({"note": 1}, ".note: allowed are texts of one line"),
        (
            {"principals": "anyone"},
            ".principals: should be a list; allowed are `anyone`, `role:<name>`",
        ),
        ({"principals": []}, ".principals: should not be empty; allowed are `anyone`, "),
        ({"principals": ["everyone"]}, ".principals[0]: allowed are `anyone`, `role:<name>`"),
        ({"principals": ["anyone", "telegram:*"]}, ".principals[1]: allowed are `anyone`, "),
        ({"principals": [4711]}, ".principals[0]: allowed are `anyone`, "),
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
        ({"un\nless": 1}, ".un less: unknown key; `zeroclaw config schema` lists what is allowed"),
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


def test_all_faults_of_a_configuration_are_told_at_once() -> None:
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
    assert [one.id for one in configured([GOOD, other])] == ["office-hours", "other"]


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
