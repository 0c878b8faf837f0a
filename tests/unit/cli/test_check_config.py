"""`check-config` reports every fault together, each with its place."""

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


def test_all_faults_are_reported_together() -> None:
    """P10: our keys, a channel's, the policy's, and an unknown kind."""
    faults = faults_in(MANY, environment={})
    paths = [fault.partition(": ")[0] for fault in faults]
    assert paths == [
        "autonomy",
        "provider.base_url",
        "provider.model",
        "channels.web.stream",
        "channels.terminal.colour",
        "channels.pigeon.kind",
        "policy.statement[0].effect",
    ]


@pytest.mark.parametrize(
    ("provider", "places"),
    [
        pytest.param('kind = "fax"\nstall_s = 0', ("stall_s", "kind", "api_key"), id="keys"),
        pytest.param('kind = "openai"\nbase_url = "/"', ("base_url", "model"), id="needed"),
        pytest.param(
            'kind = "openai"\nstall_s = 0', ("stall_s", "base_url", "model"), id="incomplete"
        ),
    ],
)
def test_a_faulty_key_hides_no_fault_of_another(provider: str, places: tuple[str, ...]) -> None:
    """P10: nor does it make one, of a key that needs it."""
    text = f'[provider]\napi_key = {{ env = "NOT_SET" }}\n{provider}'
    faults = [fault.partition(": ")[0] for fault in faults_in(text, environment={})]
    assert faults == [f"provider.{place}" for place in places]


def test_a_faulty_key_hides_no_fault_of_its_channel() -> None:
    """P10: nor does a key that names the channel's kind make one, as long as it is faulty itself."""
    text = """[channels.bot]\nkind = 3\n[channels.telegram]\npairing = "open"\nrate = { bursts = 1 }
token = { env = "NOT_SET" }\ngroups = "some"\n[channels.discord]\npairing = 1
token = { env = "NOT_SET" }"""
    assert [fault.partition(": ")[0] for fault in faults_in(text, environment={})] == [
        "channels.bot.kind",
        "channels.telegram.pairing",
        "channels.telegram.rate.bursts",
        "channels.discord.pairing",
        "channels.telegram.groups",
        "channels.discord.token",
    ]


def test_several_faults_of_a_key_hide_none_of_another_channel() -> None:
    """P10: ids written as numbers are the most likely ones."""
    text = """[channels.discord]\nallowed_users = [1, 2, 3]\n[channels.telegram]\ngroups = "some"
[channels.slack]\nreceive = "x"\n"""
    paths = {fault.partition(": ")[0] for fault in faults_in(text, environment={})}
    assert {"channels.telegram.groups", "channels.slack.receive"} < paths


def test_a_key_that_was_left_out_is_not_missed() -> None:
    """P10: its table has no other fault."""
    text = '[public]\ncert_file = 3\nkey_file = "/k"\n[provider]\napi_key = { env = 1 }'
    paths = [fault.partition(": ")[0] for fault in faults_in(text, environment={})]
    assert paths == ["provider.api_key.env", "public.cert_file"]


def test_a_text_that_is_no_toml_is_one_fault() -> None:
    (fault,) = faults_in("a = = 1", environment={})
    assert fault.startswith("not valid TOML: ")


def test_a_nul_is_a_fault_in_any_value() -> None:
    """P10: the system takes none in a path, and raises ValueError there."""
    text = """data_dir = "a\\u0000b"\nskills_dir = "c\\u0000d"\n[provider]\nmodel_file = "e\\u0000f"
[provider.options]\n"g\\u0000h" = 1\n[[people]]\nname = "Ann"\nids = ["web:i\\u0000j"]"""
    faults = faults_in(text, environment={})
    assert [fault.partition(": ")[0] for fault in faults] == [
        *("data_dir", "skills_dir", "provider.model_file"),
        *("provider.options.g\0h", "people[0].ids[0]"),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(f"runtime.max_iterations = {'9' * 5000}", "a number is too long", id="number"),
        pytest.param(f"{'.'.join('a' * 5000)} = 1", "it is nested too deeply", id="tables"),
        pytest.param(f"a = {'[' * 5000}", "it is nested too deeply", id="lists"),
    ],
)
def test_a_value_that_python_can_not_hold_is_one_fault(text: str, reason: str) -> None:
    """P10: TOML has no limit of digits, nor of nested tables."""
    assert faults_in(text, environment={}) == (f"not valid TOML: {reason}",)


@pytest.mark.parametrize("key", ["data_dir", "workspace_dir", "skills_dir"])
def test_a_loop_of_links_is_a_fault(tmp_path: Path, key: str) -> None:
    """P10; older releases of Python raise RuntimeError."""
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
def test_true_is_not_a_number(table: str, key: str, kind: str) -> None:
    """Otherwise `true` would mean 1, and delete all chats older than a day (P10)."""
    (fault,) = faults_in(f"[{table}]\n{key} = true", environment={})
    assert fault == f"{table}.{key}: should be a {kind}number"


def test_true_for_a_number_hides_no_other_fault_of_its_table() -> None:
    """All are reported together (P10)."""
    text = '[retention]\nmessages_days = true\nmax_disk_mb = "x"\nmessage_days = 1'
    places = [fault.partition(":")[0] for fault in faults_in(text, environment={})]
    assert sorted(places) == [
        f"retention.{key}" for key in ("max_disk_mb", "message_days", "messages_days")
    ]


def test_an_invalid_character_is_explained_in_words() -> None:
    """P10: an operator should not have to read a regular expression."""
    text = '[channels.email]\naddress = "b@x.org"\nimap_host = "x.org"\nsmtp_host = "x.org"\n'
    faults = faults_in(f'{text}password = {{env="P"}}\nname = "a\\tb"', environment={"P": "x"})
    assert faults == ("channels.email.name: has a character that is not allowed",)


def test_a_value_of_two_lines_is_shown_in_one(tmp_path: Path) -> None:
    """P10; otherwise the second might look like our own line."""
    path = tmp_path / "c.toml"
    done = checked(path, 'provider.kind = "a\\nzeroclaw: no faults"\n')
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"zeroclaw: {path}: provider.kind: `a zeroclaw: no faults` is not")


def test_a_missing_secret_is_a_fault() -> None:
    """The check finds it before the daemon starts, and prints no value (P8)."""
    text = (
        '[provider]\nkind = "openai"\nbase_url = "http://127.0.0.1/v1"\nmodel = "m"\n'
        'api_key = { env = "NOT_SET" }\n'
    )
    (fault,) = faults_in(text, environment={})
    assert fault == "provider.api_key: environment variable `NOT_SET` is not set; set it"
    assert faults_in(text, environment={"NOT_SET": "now it is"}) == ()


def test_a_model_that_is_not_here_yet_is_reported_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon starts without it, and can't answer (P10)."""
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
    """Restore SIGHUP and the garbage collector, which a failed start leaves off."""
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
    lines = done.stderr.splitlines()
    assert lines == [f"zeroclaw: {config}: {fault}" for fault in faults_in(MANY, environment={})]


def test_a_valid_file_shows_all_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = tmp_path / "c.toml"
    done = checked(config, 'provider.kind = "auto"\n')
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{config}: no faults",
        f"data in {tmp_path}/zeroclaw, workspaces in {tmp_path}/zeroclaw-workspaces",
    ]


def test_a_warning_is_printed_and_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role that no one has may be given tomorrow."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = tmp_path / "c.toml"
    text = '[[policy.statement]]\nid = "x"\neffect = "deny"\n'
    done = checked(config, f'{text}principals = ["role:guests"]\nactions = ["tool:*"]\n')
    assert done.exit_code == 0
    assert "warning: policy.statement[0].principals: no person has the role `guests`" in done.stdout


def test_a_role_that_no_statement_names_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`admin` was taken for `operator`, and allowed nothing. P10."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = tmp_path / "c.toml"
    ann = '[[people]]\nname = "ann"\nids = ["terminal:ann"]\nroles = ["admin", "cook"]\n'
    cook = '[[policy.statement]]\nid = "x"\neffect = "deny"\nprincipals = ["role:cook"]\n'
    done = checked(config, f'{ann}{cook}actions = ["tool:*"]\n')
    warnings = [line for line in done.stdout.splitlines() if "warning: people" in line]
    assert warnings == [
        f"{config}: warning: people: `ann` has the role `admin`, but no statement names it; "
        "there are `cook`, `operator`"
    ]


def test_email_that_verifies_no_sender_is_a_warning(tmp_path: Path) -> None:
    """Otherwise an operator notices only when answers fail; a disabled channel is not checked."""
    config, key = tmp_path / "c.toml", tmp_path / "key"
    key.write_text("secret", encoding="utf-8")
    key.chmod(0o600)
    hosts = 'address = "b@x.org"\nimap_host = "x.org"\nsmtp_host = "x.org"\n'
    password = f'password = {{ file = "{key}" }}\n'

    def has_warning(more: str) -> bool:
        done = checked(config, f"[channels.email]\n{hosts}{password}{more}")
        assert done.exit_code == 0, done.output
        return (
            "warning: channels.email.authserv_id: it is empty; without it, few people"
            in done.stdout
        )

    assert [
        has_warning(""),
        has_warning("enabled = false\n"),
        has_warning('authserv_id = "mx.x.org"\n'),
    ] == [*(True, False, False)]


def test_a_channel_with_a_fault_still_counts_for_the_policy() -> None:
    """One mistake is one line (P10)."""
    text = (
        '[channels.web]\nstream = "often"\n[[policy.statement]]\nid = "x"\neffect = "deny"\n'
        'principals = ["channel:web"]\nactions = ["tool:*"]\n'
    )
    (fault,) = faults_in(text, environment={})
    assert fault.startswith("channels.web.stream")
