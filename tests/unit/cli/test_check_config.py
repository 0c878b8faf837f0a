"""`check-config` tells every fault at once, each with its place."""

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from zeroclaw.cli import root
from zeroclaw.cli.configuration import faults_in

MANY = """
autonomy = "loose"

[provider]
kind = "openai"

[[policy.statement]]
id = "x"
effect = "maybe"
principals = ["anyone"]
actions = ["tool:*"]

[channels.web]
stream = "often"

[channels.terminal]
colour = "green"

[channels.pigeon]
"""


def checked(config: Path, text: str, command: str = "check-config") -> Result:
    """Write a configuration, and run a command on it."""
    config.write_text(text, encoding="utf-8")
    return CliRunner().invoke(root, [*command.split(), "--config", str(config)])


def test_all_faults_come_at_once() -> None:
    """P10: keys of ours, of a channel, of the policy, and a kind that nobody has."""
    faults = faults_in(MANY, environment={})
    paths = [fault.partition(": ")[0] for fault in faults]
    assert paths == [
        "autonomy",
        "provider",
        "channels.web.stream",
        "channels.terminal.colour",
        "channels.pigeon.kind",
        "policy.statement[0].effect",
    ]


def test_a_text_that_is_no_toml_is_one_fault() -> None:
    (fault,) = faults_in("a = = 1", environment={})
    assert fault.startswith("not valid TOML: ")


def test_a_nul_is_a_fault_wherever_it_stands() -> None:
    """P10: the system takes none in a path, and raises an error of its own there."""
    text = """data_dir = "a\\u0000b"\nskills_dir = "c\\u0000d"\n[provider]\nmodel_file = "e\\u0000f"
[provider.options]\n"g\\u0000h" = 1\n[[people]]\nname = "Ann"\nids = ["web:i\\u0000j"]"""
    faults = faults_in(text, environment={})
    assert [fault.partition(": ")[0] for fault in faults] == [
        *("data_dir", "skills_dir", "provider.model_file"),
        *("provider.options.g\0h", "people[0].ids[0]"),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(f"runtime.max_iterations = {'9' * 5000}", "a number is too long", id="number"),
        pytest.param(f"{'.'.join('a' * 5000)} = 1", "it is nested too deeply", id="tables"),
        pytest.param(f"a = {'[' * 5000}", "it is nested too deeply", id="lists"),
    ],
)
def test_what_python_can_not_hold_is_one_fault(text: str, why: str) -> None:
    """P10: TOML knows no bound of digits, nor of tables inside of each other."""
    assert faults_in(text, environment={}) == (f"not valid TOML: {why}",)


@pytest.mark.parametrize("key", ["data_dir", "workspace_dir", "skills_dir"])
def test_links_that_lead_in_a_circle_are_told(tmp_path: Path, key: str) -> None:
    """P10; older releases of Python raise an error of their own."""
    (tmp_path / "circle").symlink_to("circle")
    config = tmp_path / "c.toml"
    done = checked(
        config,
        f"""{key} = "{tmp_path}/circle"
[[policy.statement]]
id = "here"
effect = "deny"
principals = ["anyone"]
actions = ["tool:read_file"]
resources = ["file:{tmp_path}/circle/x"]
""",
    )
    lines = done.output.splitlines()
    assert lines
    assert all(line.startswith(("zeroclaw: ", f"{config}: ", "data in ")) for line in lines)


@pytest.mark.parametrize(
    ("table", "key", "kind"),
    [
        ("retention", "messages_days", "whole "),
        ("approvals", "timeout_s", ""),
        ("provider", "context_tokens", "whole "),
        ("channels.web.rate", "person_burst", "whole "),
    ],
)
def test_a_yes_is_no_number(table: str, key: str, kind: str) -> None:
    """Else it would be a 1, and all chats but those of a day be deleted (P10)."""
    (fault,) = faults_in(f"[{table}]\n{key} = true", environment={})
    assert fault == f"{table}.{key}: should be a {kind}number"


def test_a_yes_hides_no_other_fault_of_its_table() -> None:
    """All are told at once (P10)."""
    text = '[retention]\nmessages_days = true\nmax_disk_mb = "x"\nmessage_days = 1'
    places = [fault.partition(":")[0] for fault in faults_in(text, environment={})]
    assert sorted(places) == [
        f"retention.{key}" for key in ("max_disk_mb", "message_days", "messages_days")
    ]


def test_a_sign_that_has_no_place_in_a_line_is_told_in_words() -> None:
    """P10: nobody reads a regular expression."""
    text = '[channels.email]\naddress = "b@x.org"\nimap_host = "x.org"\nsmtp_host = "x.org"\n'
    faults = faults_in(f'{text}password = {{env="P"}}\nname = "a\\tb"', environment={"P": "x"})
    assert faults == ("channels.email.name: has a character that is not allowed",)


def test_a_value_of_two_lines_is_told_in_one(tmp_path: Path) -> None:
    """P10; the second might else look like a line of ours."""
    path = tmp_path / "c.toml"
    done = checked(path, 'provider.kind = "a\\nzeroclaw: no faults"\n')
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"zeroclaw: {path}: provider.kind: `a zeroclaw: no faults` is not")


def test_a_secret_that_is_not_there_is_a_fault() -> None:
    """Found before the daemon is started, and its value is told nowhere (P8)."""
    text = (
        '[provider]\nkind = "openai"\nbase_url = "http://127.0.0.1/v1"\nmodel = "m"\n'
        'api_key = { env = "NOT_SET" }\n'
    )
    (fault,) = faults_in(text, environment={})
    assert fault == "provider.api_key: environment variable `NOT_SET` is not set; set it"
    assert faults_in(text, environment={"NOT_SET": "now it is"}) == ()


def test_a_model_that_is_not_here_yet_is_told_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon starts without it, and answers nobody (P10)."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = tmp_path / "c.toml"
    done = checked(config, 'provider.kind = "local"\n')
    missing = f"{config}: warning: provider: no model at `{tmp_path}/zeroclaw/models/"
    first, second, _ = done.output.splitlines()
    assert (first.startswith(missing), second) == (True, f"{config}: no faults")


def test_the_defaults_have_no_fault() -> None:
    assert faults_in("", environment={}) == ()


def test_the_command_names_the_file_and_exits_with_two(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    done = checked(config, "[listener]\nport = 99999\n")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"zeroclaw: {config}: listener.port: ")


@pytest.fixture
def ended_start() -> Iterator[None]:
    """A start that fails leaves SIGHUP blocked and garbage uncollected, as its process ends."""
    yield
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    gc.enable()


@pytest.mark.usefixtures("ended_start")
@pytest.mark.parametrize("command", ["check-config", "run", "policy show"])
def test_every_command_that_reads_a_file_names_all_its_faults(tmp_path: Path, command: str) -> None:
    """A key that can't be read hides no fault of another table (P10)."""
    config = tmp_path / "c.toml"
    done = checked(config, MANY, command)
    assert done.exit_code == 2
    told = done.stderr.splitlines()
    assert told == [f"zeroclaw: {config}: {fault}" for fault in faults_in(MANY, environment={})]


def test_a_good_file_says_where_everything_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = tmp_path / "c.toml"
    done = checked(config, 'provider.kind = "auto"\n')
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{config}: no faults",
        f"data in {tmp_path}/zeroclaw, workspaces in {tmp_path}/zeroclaw-workspaces",
    ]


def test_a_warning_is_told_and_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role that nobody has may be given tomorrow."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = tmp_path / "c.toml"
    text = '[[policy.statement]]\nid = "x"\neffect = "deny"\n'
    done = checked(config, f'{text}principals = ["role:guests"]\nactions = ["tool:*"]\n')
    assert done.exit_code == 0
    assert "warning: policy.statement[0].principals: no person has the role `guests`" in done.stdout


def test_e_mail_that_believes_no_sender_is_warned_of(tmp_path: Path) -> None:
    """Else it is found when nobody is answered; a channel that is off answers nobody anyway."""
    config, key = tmp_path / "c.toml", tmp_path / "key"
    key.write_text("secret", encoding="utf-8")
    key.chmod(0o600)
    hosts = 'address = "b@x.org"\nimap_host = "x.org"\nsmtp_host = "x.org"\n'
    password = f'password = {{ file = "{key}" }}\n'

    def told(more: str) -> bool:
        done = checked(config, f"[channels.email]\n{hosts}{password}{more}")
        assert done.exit_code == 0, done.output
        return (
            "warning: channels.email.authserv_id: it is empty; without it, few people"
            in done.stdout
        )

    assert [told(""), told("enabled = false\n"), told('authserv_id = "mx.x.org"\n')] == [
        *(True, False, False)
    ]


def test_a_channel_that_has_a_fault_is_still_there_for_the_policy() -> None:
    """One mistake is one line (P10)."""
    text = (
        '[channels.web]\nstream = "often"\n[[policy.statement]]\nid = "x"\neffect = "deny"\n'
        'principals = ["channel:web"]\nactions = ["tool:*"]\n'
    )
    (fault,) = faults_in(text, environment={})
    assert fault.startswith("channels.web.stream")
