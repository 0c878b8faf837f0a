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
        ({"id": ""}, ".id: must be a text that is not empty"),
        ({"id": 7}, ".id: must be a text that is not empty"),
        ({"id": "full.x"}, ".id: must be lower-case letters, digits, `-` and `_`"),
        ({"effect": "maybe"}, ".effect: must be one of allow, ask, deny"),
        ({"effect": ["deny"]}, ".effect: must be one of allow, ask, deny"),
        ({"note": "a\nb"}, ".note: must be one line"),
        ({"note": 1}, ".note: must be a text that is not empty"),
        ({"principals": "anyone"}, ".principals: must be a list of `anyone`, `role:<name>`"),
        ({"principals": []}, ".principals: must be a list of"),
        ({"principals": ["everyone"]}, ".principals: `everyone` is not one of"),
        ({"principals": ["telegram:*"]}, ".principals: `telegram:*` is not one of"),
        ({"principals": [4711]}, ".principals: `4711` is not one of"),
        ({"actions": ["shell"]}, ".actions: `shell` is not one of `tool:<name>`"),
        ({"resources": []}, ".resources: must be a list of `file:/<real path>`"),
        ({"resources": ["file:~/x"]}, ".resources: `file:~/x` is not one of"),
        ({"resources": ["a\nb"]}, ".resources: `a b` is not one of"),
        ({"un\nless": 1}, ".un less: unknown key"),
        ({"resources": ["/etc"]}, ".resources: `/etc` is not one of"),
        ({"resources": ["file:/a/../b"]}, ".resources: `file:/a/../b` goes up with `..`"),
        ({"resources": ["file:/a/"]}, ".resources: `file:/a/` ends with `/`: `file:/a` is the"),
        ({"resources": ["host:example.org"]}, ".resources: `host:example.org` names no port"),
        ({"resources": ["sandbox:Workspace"]}, ".resources: `sandbox:Workspace` is nothing that"),
        ({"resources": ["notes:person:ann"]}, ".resources: `notes:person:ann` is nothing that"),
        ({"resources": ["notes:of:ann"]}, ".resources: `notes:of:ann` is nothing that"),
        ({"resources": ["attachment:01C"]}, ".resources: `attachment:01C` is nothing that"),
        ({"when": "always"}, ".when: must be a table of conditions"),
        ({"when": {"moon": 1}}, ".when.moon: unknown condition, known are effects_within, "),
        ({"when": {"declared": 1}}, ".when.declared: must be true or false"),
        ({"unless": 1}, ".unless: unknown key, allowed are id, effect, principals, actions"),
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
        configured([{}, GOOD, GOOD])
    assert [fault.partition(": ")[0] for fault in refused.value.faults] == [
        "policy.statement[0].id",
        "policy.statement[0].effect",
        "policy.statement[0].principals",
        "policy.statement[0].actions",
        "policy.statement[2].id",
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
