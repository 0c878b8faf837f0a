"""`policy show` and `policy explain`: the policy without a daemon, as text and as JSON."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fakes.house_parts import Facts
from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.cli import root
from zeroclaw.inbound.identity import Person, person_put
from zeroclaw.inbound.live_config import Halt, halt_put
from zeroclaw.store import Commit, DurablePoint
from zeroclaw.stores.sqlite import open_store

CONFIG = """
[channels.telegram]
bot_token = { env = "NOT_SET" }
allowed_users = ["4711"]

[[people]]
name = "ann"
ids = ["telegram:4711"]
roles = ["editor"]

[[policy.statement]]
id = "editors-write"
effect = "allow"
principals = ["role:editor"]
actions = ["tool:write_file"]

[[policy.statement]]
id = "not-the-plan"
effect = "deny"
principals = ["anyone"]
actions = ["tool:write_file"]
resources = ["file:*/plan.txt"]
note = "the plan stands"
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "c.toml"
    path.write_text(CONFIG, encoding="utf-8")
    return str(path)


def policy(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(root, ["policy", *arguments])
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("which", ["data_dir", "workspace_dir"])
def test_a_loop_of_links_does_not_stop_an_explanation(
    config: str, tmp_path: Path, which: str
) -> None:
    """P10: the daemon's start reports it."""
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    Path(config).write_text(f'{which} = "{circle}"\n{CONFIG}', encoding="utf-8")
    code, out, err = policy("explain", "--config", config, "--tool", "fetch")
    assert (code, err, "decided by" in out) == (0, "", True)


def explained(config: str, *arguments: str) -> dict[str, object]:
    code, out, err = policy("explain", "--config", config, "--json", *arguments)
    assert (code, err) == (0, "")
    answer: dict[str, object] = json.loads(out)
    return answer


def test_show_prints_all_three_sets_and_marks_the_active_one(config: str) -> None:
    """No built-in statement is left out (S2-08, K26)."""
    code, out, _ = policy("show", "--config", config)
    assert code == 0
    assert 'autonomy = "supervised"\n' in out
    assert 'autonomy = "full"  (not in force)' in out
    assert "editors-write  allow  role:editor → tool:write_file" in out
    assert out.rstrip().endswith("A call that no statement matches is denied.")


def test_show_says_what_each_statement_matches_today(config: str) -> None:
    """By the tools of this machine, the commands, and the people of the configuration."""
    _, out, _ = policy("show", "--config", config)
    lines = out.splitlines()
    today = {
        line.split()[0]: next(line for line in lines[at:] if "today:" in line).split("today: ")[1]
        for at, line in enumerate(lines)
        if line.startswith("  ") and "→" in line
    }
    assert today["editors-write"].endswith("tools (write_file); for ann")
    assert "read_file" in today["supervised.reads"]
    assert "write_file" not in today["supervised.reads"]
    assert "23 of 23 commands; for operator" in today["base.operator"]


def test_show_prints_everything_as_json(config: str) -> None:
    code, out, _ = policy("show", "--config", config, "--json")
    names = {statement["name"]: statement["in_force"] for statement in json.loads(out)}
    assert code == 0
    assert names == {
        "commands and approvers": True,
        'autonomy = "readonly"': False,
        'autonomy = "supervised"': True,
        'autonomy = "full"': False,
        "[[policy.statement]]": True,
    }


WRITE = ("--tool", "write_file", "--args", '{"path": "notes.txt", "content": "x"}')


def test_show_prints_what_full_asks_about_untrusted_text(config: str, tmp_path: Path) -> None:
    """It is a statement like all others, and its key removes it."""
    _, out, _ = policy("show", "--config", config)
    assert "full.untrusted" in out
    as_in_a_file = 'effects_any_of = ["network", "exec"], untrusted = true, in_message = false'
    assert f"when = {{ {as_in_a_file} }}" in out
    off = tmp_path / "off.toml"
    off.write_text("[policy]\nask_when_untrusted = false\n", encoding="utf-8")
    _, out, _ = policy("show", "--config", str(off))
    assert "full.untrusted" not in out


def test_explain_says_what_untrusted_text_would_change(tmp_path: Path) -> None:
    """Without it the call runs; with it the policy asks."""
    full = tmp_path / "full.toml"
    full.write_text('autonomy = "full"\n', encoding="utf-8")
    answer = explained(
        str(full),
        "--who",
        "operator",
        "--tool",
        "fetch",
        "--args",
        '{"url": "https://example.org/"}',
    )
    assert answer["effect"] == "allow"
    [note] = list_of(answer["notes"])
    assert str(note).startswith("in a turn that holds untrusted text: ask, `full.untrusted` asks")


def test_explain_asks_the_tool_what_it_would_touch(config: str) -> None:
    """Deny beats ask beats allow, with the deciding statements and all the others (S2-08)."""
    answer = explained(config, "--who", "person:ann", *WRITE)
    assert answer["effect"] == "ask"
    assert answer["statements"] == ["supervised.effects", "supervised.risk"]
    (resource,) = [str(item) for item in list_of(answer["resources"])]
    assert resource.endswith("/CONVERSATION/notes.txt")
    considered = {str(row["id"]): row["matched"] for row in tables_of(answer["considered"])}
    assert considered["editors-write"] is True
    assert considered["not-the-plan"] is False


@pytest.mark.parametrize(
    ("tool", "arguments", "effect", "resource"),
    [
        ("remember", {"text": "tea"}, "ask", "notes:of:person:ann"),
        ("recall", {}, "allow", "notes:of:person:ann"),
        ("read_result", {"id": "0"}, "allow", "results:CONVERSATION"),
    ],
)
def test_explain_knows_the_tools_that_work_on_the_store(
    config: str, tool: str, arguments: dict[str, object], effect: str, resource: str
) -> None:
    """Recalling runs; remembering needs approval (S2-08)."""
    options = ("--tool", tool, "--args", json.dumps(arguments))
    answer = explained(config, "--who", "person:ann", *options)
    assert (answer["effect"], answer["resources"]) == (effect, [resource])


def test_explain_knows_what_fetch_would_touch(config: str) -> None:
    """The command knows every tool of the daemon, since both open them by the same code."""
    options = ("--tool", "fetch", "--args", '{"url": "https://example.org/a"}')
    answer = explained(config, "--who", "person:ann", *options)
    assert answer["resources"] == ["host:example.org:443"]
    assert answer["notes"] == [
        "a grant in force in the conversation would let it run without asking"
    ]


def test_explain_takes_a_resource_by_name(config: str) -> None:
    answer = explained(config, "--tool", "fetch", "--resource", "host:Example.ORG.:443")
    assert (answer["effect"], answer["by"]) == ("ask", "policy")
    assert answer["resources"] == ["host:example.org:443"]


@pytest.mark.parametrize(
    ("options", "by", "reason"),
    [
        pytest.param(
            ("--tool", "write_file", "--args", '{"path": "/etc/passwd", "content": "x"}'),
            "protection",
            "`/etc/passwd` is outside the workspace",
            id="a file that the tool can't reach",
        ),
        pytest.param(
            ("--tool", "write_file", "--resource", "file:/etc/passwd"),
            "protection",
            "`file:/etc/passwd` is outside the workspaces",
            id="the same, by its resource",
        ),
        pytest.param(
            ("--tool", "read_file", "--args", '{"path": ".env"}'),
            "protection",
            "is where secrets are kept",
            id="a place of secrets",
        ),
        pytest.param(
            ("--who", "pigeon:7", "--tool", "recall"),
            "people",
            "there is no channel `pigeon`; the configuration has `web`",
            id="a channel that is not there",
        ),
        pytest.param(
            ("--who", "telegram:99", "--tool", "recall"),
            "people",
            "`telegram:99` is a stranger",
            id="a stranger",
        ),
        pytest.param(
            ("--who", "telegram:99", "--tool", "command:help"), "people", "", id="their command"
        ),
        pytest.param(
            ("--who", "person:ann", "--tool", "approve:shell"),
            "approvers",
            "approvals are put to `role:operator`",
            id="an answer of somebody whom approvals do not name",
        ),
        pytest.param(
            ("--tool", "launch"), "schema", "no tool is called `launch` here", id="no such tool"
        ),
    ],
)
def test_explain_denies_what_ingress_and_gate_would(
    config: str, options: tuple[str, ...], by: str, reason: str
) -> None:
    """Admission, protection and the tool itself come before the policy (P3, P4)."""
    answer = explained(config, *options)
    assert (answer["effect"], answer["by"]) == ("deny", by)
    assert reason in str(answer["why"])


def test_explain_names_what_is_unknown(config: str) -> None:
    answer = explained(config, "--tool", "recall")
    assert list_of(answer["notes"]) == [
        "without arguments and resources the call counts as touching nothing"
    ]


def test_explain_prints_readable_text(config: str) -> None:
    code, out, _ = policy("explain", "--config", config, "--who", "telegram:4711", *WRITE)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "person:ann may use `tool:write_file`, if an approver agrees: ask"
    assert any(
        "not-the-plan" in line and "it names none of the resources" in line for line in lines
    )


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--who", "nobody", "--tool", "shell"), "--who: `nobody` is nobody"),
        (("--who", "person:bob", "--tool", "shell"), "it names `ann`"),
        (("--tool", "write_file", "--args", "{"), "--args: arguments: not valid JSON"),
        (("--tool", "fetch", "--resource", "host:example.org"), "names no port"),
        (("--tool", "write_file", "--args", '{"path": 3}'), "--args: path"),
    ],
)
def test_an_invalid_question_is_one_line(
    config: str, arguments: tuple[str, ...], fault: str
) -> None:
    """P10."""
    code, out, err = policy("explain", "--config", config, *arguments)
    assert (code == 2, out, fault in err, len(err.splitlines())) == (True, "", True, 1)


async def test_stored_decisions_are_part_of_the_answer(config: str, tmp_path: Path) -> None:
    """A paired person is known, a revoked one is not, and a halt is active, without a daemon
    (P4)."""
    data = tmp_path / "data"
    known = Person(id="telegram:99", display="Ben", state="admitted", by="Ada", at=EPOCH)
    out = Person(id="person:ann", display="Ann", state="revoked", by="Ada", at=EPOCH)
    writes = (person_put(known), person_put(out), halt_put(Halt(by="Ada", at=EPOCH)))
    store = await open_store(data, clock=ManualClock(), log=Facts())
    await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))
    await store.aclose()

    async def of(principal: str) -> tuple[object, object]:
        answer = await asyncio.to_thread(
            explained, config, "--data-dir", str(data), "--who", principal, "--tool", "recall"
        )
        return answer["by"], answer["why"]

    assert await of("telegram:99") == (
        "policy",
        "`halt.active` denies it: `Ada` halted everything at 2026-01-01 12:00 UTC, until `/resume`",
    )
    assert await of("person:ann") == ("people", "they were revoked by Ada")


def list_of(value: object) -> list[object]:
    assert isinstance(value, list)
    return value  # pyright: ignore[reportUnknownVariableType]  # what JSON holds


def tables_of(value: object) -> list[dict[str, object]]:
    return [item for item in list_of(value) if isinstance(item, dict)]
