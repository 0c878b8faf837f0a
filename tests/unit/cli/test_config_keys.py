"""`zeroclaw config get` and `config set`: one key is read or changed, and nothing else."""

import asyncio
import os
import tomllib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.terminal_harness import control_socket
from zeroclaw.cli import root
from zeroclaw.cli.config import rewrite, when_it_applies
from zeroclaw.config.edit import keys_of, set_key, unset_key, value_of
from zeroclaw.config.model import Config
from zeroclaw.config.validate import parse
from zeroclaw.errors import ConfigError
from zeroclaw.host.answers import Errors

pytestmark = pytest.mark.usefixtures("home")
EXAMPLE = Path(__file__).parents[3] / "config.example.toml"
WITH_COMMENTS = """\
# mine
autonomy = "supervised"   # careful

[provider]                # the model
kind = "local"            # small
attempts = 3

[tools.shell]
enabled = false
"""


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(root, ["config", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_what_another_program_has_changed_meanwhile_is_kept(tmp_path: Path) -> None:
    """Of two commands at once both said that their key is set, and one was lost."""
    path = tmp_path / "mine.toml"
    path.write_text("")

    def change(before: str) -> str:
        path.write_text("[runtime]\ntitles = true\n")
        return set_key(before, "runtime.backlog", "50")

    rewrite(change, "it is set", config=path, data_dir=tmp_path)
    assert tomllib.loads(path.read_text()) == {"runtime": {"titles": True, "backlog": 50}}


def written(home: Path, text: str) -> Path:
    path = home / "c.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("autonomy", "supervised"),
        ("provider.attempts", "3"),
        ("tools.shell.enabled", "false"),
        ("tools.fetch.ports", "[80, 443]"),
        ("provider.api_key", 'env = "MY_KEY"'),
        ("channels.web.title", "zeroclaw"),
        ("approvals.approvers.0", "role:operator"),
        ("receipts", "keep_days = 30"),
        ("people", '[{ name = "ann", ids = ["web:1"], roles = [] }]'),
    ],
)
def test_the_value_in_force_is_printed(home: Path, key: str, shown: str) -> None:
    """The file's or the default; a secret shows its reference, never its value (P8)."""
    extra_text = 'api_key = { env = "MY_KEY" }\n[[people]]\nname = "ann"\nids = ["web:1"]\n'
    text = WITH_COMMENTS.replace("attempts = 3\n", f"attempts = 3\n{extra_text}")
    assert run("get", key, "--config", str(written(home, text))) == (0, f"{shown}\n", "")


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("provider.colour", "there is no `colour`"),
        ("provider.model.name", "there is no `name`"),
        ("approvals.approvers.9", "there is no `9`"),
        ("approvals.approvers.first", "there is no `first`"),
        ("provider.api_key", "is not set"),
        ("a b", "is no key path"),
        ("a = 1\nb", "is no key path"),
        ("", "is no key path"),
    ],
)
def test_a_key_without_a_value_is_reported(key: str, reason: str) -> None:
    """P10."""
    code, out, err = run("get", key)
    assert (code, out, reason in err, len(err.splitlines())) == (2, "", True, 1)


def test_a_change_keeps_comments_order_and_mode(home: Path) -> None:
    """Only one value of the file changes."""
    path = written(home, WITH_COMMENTS)
    path.chmod(0o640)
    for key, value in (("autonomy", "full"), ("provider.attempts", "5")):
        code, out, err = run("set", key, value, "--config", str(path))
        assert (code, f"{key} is set" in out, err) == (0, True, "")
    expected = WITH_COMMENTS.replace('"supervised"', '"full"').replace("= 3", "= 5")
    assert path.read_text(encoding="utf-8") == expected
    assert (path.stat().st_mode & 0o777, [path.name for path in home.iterdir()]) == (
        0o640,
        ["c.toml"],
    )


def test_a_windows_editors_byte_order_mark_and_line_ends_stay(home: Path) -> None:
    """Only one line of the file differs."""
    path = home / "c.toml"
    path.write_text(WITH_COMMENTS, encoding="utf-8-sig", newline="\r\n")
    before = path.read_bytes()
    for key, value in (("autonomy", "full"), ("provider.model", "m")):
        assert run("set", key, value, "--config", str(path))[0] == 0
    after = before.replace(b'"supervised"', b'"full"')
    assert path.read_bytes() == after.replace(
        b"attempts = 3\r\n", b'attempts = 3\r\nmodel = "m"\r\n'
    )


@pytest.mark.needs("root")
def test_a_file_changed_by_root_keeps_its_owner(home: Path) -> None:
    """Otherwise the daemon could no longer read its configuration."""
    path = written(home, WITH_COMMENTS)
    os.chown(path, 4242, 4243)
    assert run("set", "autonomy", "full", "--config", str(path))[0] == 0
    assert (path.stat().st_uid, path.stat().st_gid) == (4242, 4243)


def test_a_link_stays_a_link(home: Path) -> None:
    """For people who keep their configuration somewhere else."""
    path, link = written(home, ""), home / "link.toml"
    link.symlink_to(path)
    assert run("set", "autonomy", "full", "--config", str(link))[0] == 0
    assert link.is_symlink()
    assert path.read_text(encoding="utf-8") == 'autonomy = "full"\n'


def test_a_missing_file_is_made(home: Path) -> None:
    """Where the daemon looks for it, for its owner alone."""
    assert run("set", "runtime.prompt", "You are a lobster.")[0] == 0
    path = home / "config" / "zeroclaw" / "config.toml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert run("get", "runtime.prompt") == (0, "You are a lobster.\n", "")


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("autonomy", "reckless", "autonomy: "),
        ("provider.attempts", "-1", "provider.attempts: "),
        ("provider.attempts", "many", "provider.attempts: "),
        ("provider.colour", "red", "unknown key"),
        ("provider.kind", "magic", "is not installed"),
        ("provider.api_key", "sk-secret", "say where it stands"),
        ("provider.api_key", '{ env = "MY_KEY" }', "`MY_KEY` is not set"),
        ("autonomy.more", "1", "there is no `more`"),
        ("channels.web.title", '""', "channels.web.title: "),
        ("tools.fetch.ports.7", "80", "there is no `ports`"),
        ("policy.statement", '[{ id = "x" }]', "policy.statement"),
    ],
)
def test_a_change_that_makes_a_fault_is_refused(
    home: Path, key: str, value: str, reason: str
) -> None:
    """P10; a typed secret is not repeated (P8)."""
    path = written(home, WITH_COMMENTS)
    code, out, err = run("set", key, value, "--config", str(path))
    assert (code, out, "sk-secret" in err) == (2, "", False)
    assert reason in err or key == "tools.fetch.ports.7"
    assert path.read_text(encoding="utf-8") == WITH_COMMENTS


@pytest.mark.parametrize("key", ["runtime.prompt", 'provider.options."\udcff"'])
def test_a_value_that_is_not_utf_8_is_refused(home: Path, key: str) -> None:
    """A shell passes on any pasted bytes; the file stays as it is."""
    path = written(home, WITH_COMMENTS)
    code, out, err = run("set", key, "gr\udcfc\udcdfe", "--config", str(path))
    assert (code, out, "is not UTF-8" in err) == (2, "", True)
    assert path.read_text(encoding="utf-8") == WITH_COMMENTS


def test_an_old_fault_does_not_forbid_another_change(home: Path) -> None:
    """Such as a variable that only the daemon has; the fault is reported."""
    path = written(home, '[provider]\napi_key = { env = "MY_KEY" }\n')
    code, _, err = run("set", "autonomy", "full", "--config", str(path))
    assert (code, "`MY_KEY` is not set; set it (as before)" in err) == (0, True)


def test_a_file_that_is_no_toml_is_reported(home: Path) -> None:
    """P10."""
    code, _, err = run("set", "autonomy", "full", "--config", str(written(home, "[[")))
    assert (code, "not valid TOML" in err) == (2, True)


def test_an_unwritable_directory_is_reported(home: Path) -> None:
    """P10: one line, and the old text stays."""
    (home / "config").write_text("")
    code, _, err = run("set", "autonomy", "full")
    assert (code, "can't be written" in err, len(err.splitlines())) == (1, True, 1)


def test_a_key_beside_a_list_of_tables_gets_a_header_of_its_own() -> None:
    """As `policy` in a file that only has statements: the list alone does not open the table."""
    text = '[[policy.statement]]  # mine\nid = "a"\n\n[runtime]\nbacklog = 3\n'
    after = set_key(text, "policy.ask_when_untrusted", "false")
    assert after == f"{text}\n[policy]\nask_when_untrusted = false\n"
    again = set_key(after, "policy.ask_when_untrusted", "true")
    assert again == after.replace("false", "true")
    assert unset_key(again, "policy.ask_when_untrusted").rstrip() == text.rstrip()


def test_naming_one_channel_keeps_the_others() -> None:
    """Naming a key of one must not switch off the other, nor write more keys than requested."""
    only = set_key("", "channels.web.title", "Bob")
    assert tomllib.loads(only) == {"channels": {"web": {"title": "Bob"}}}
    assert set(parse(only).channels) == {"web", "terminal"}
    assert parse(unset_key(only, "channels.web")) == Config()


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("true", True),
        ("8", 8),
        ('"8"', "8"),
        ("qwen3:8b", "qwen3:8b"),
        ("", ""),
        ("[1, 2]", [1, 2]),
        ("{ a = 1 }", {"a": 1}),
        ("1\nb = 2", "1\nb = 2"),
        ("9" * 5000, "9" * 5000),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_a_value_is_toml_or_else_a_text(typed: str, value: object) -> None:
    """So that no one has to quote twice."""
    assert value_of(typed) == value
    assert tomllib.loads(set_key("", "k", typed)) == {"k": value}


def test_entries_of_lists_can_be_changed() -> None:
    """By their index."""
    text = '[[people]]\nname = "ann"   # she\n\n[[people]]\nname = "bob"\n'
    after = set_key(text, "people.0.name", "anna")
    assert after == text.replace('"ann" ', '"anna" ')
    assert set_key(text, "people[0].name", "anna") == after  # as fault messages write it
    assert set_key('a = ["x", "y"]\n', "a.1", "z") == 'a = ["x", "z"]\n'
    assert set_key("", 'a."b[0]"', "z") == '[a]\n"b[0]" = "z"\n'
    with pytest.raises(ConfigError, match="is no key path"):  # deeper than Python recurses
        set_key("", "a." * 3000 + "a", "z")
    with pytest.raises(ConfigError, match="there is no `2`"):
        set_key(text, "people.2.name", "eve")


def test_every_key_of_the_example_can_be_set_to_its_value() -> None:
    """The text does not change, comments included."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for key, value in (("retention.audit_days", "365"), ("tools.fetch.ports", "[80, 443]")):
        assert set_key(text, key, value) == text


KEYS = st.lists(st.from_regex(r"[a-z]{1,3}", fullmatch=True), min_size=1, max_size=3).map(".".join)


@pytest.mark.slow
@given(st.lists(st.tuples(KEYS, st.text() | st.integers().map(str)), max_size=5))
def test_a_key_is_set_or_the_change_is_refused(changes: list[tuple[str, str]]) -> None:
    """For any keys in any order: the text stays TOML, and nothing else changes."""
    text = WITH_COMMENTS
    for key, typed in changes:
        try:
            text = set_key(text, key, typed)
        except ConfigError:
            continue
        value: object = tomllib.loads(text)
        for part in keys_of(key):
            assert isinstance(value, dict)
            value = cast("dict[str, object]", value)[part]
        assert value == value_of(typed)
        assert "# small" in text or "provider.kind" in {changed_key for changed_key, _ in changes}


# --- unset ----------------------------------------------------------------------------------------


def test_unset_removes_a_key_and_nothing_else(home: Path) -> None:
    """With the comment on its own line; all other comments stay."""
    path = written(home, WITH_COMMENTS)
    code, out, err = run("unset", "provider.attempts", "--config", str(path))
    assert (code, "provider.attempts has its default again" in out, err) == (0, True, "")
    assert path.read_text(encoding="utf-8") == WITH_COMMENTS.replace("attempts = 3\n", "")
    assert run("get", "provider.attempts", "--config", str(path)) == (0, "4\n", "")


@pytest.mark.parametrize(
    ("text", "key", "remaining"),
    [
        ("a = 1\n[tools.shell]\nnetwork = true\n", "tools.shell", {"a": 1}),
        ("p = { a = 1, b = 2 }\n", "p.a", {"p": {"b": 2}}),
        ("[p]\na = 1\n", "p.a", {"p": {}}),
        (
            '[[people]]\nname = "a"\n[[people]]\nname = "b"\n',
            "people.0",
            {"people": [{"name": "b"}]},
        ),
        ('[[people]]\nname = "a"\n', "people.0", {}),
        ('x = ["a"]\n', "x.0", {"x": []}),
        ('[[people]]\nname = "a"\nroles = ["r"]\n', "people.0.roles", {"people": [{"name": "a"}]}),
        ("[channels.a]\n[channels.b]\n", "channels.a", {"channels": {"b": {}}}),
    ],
)
def test_any_key_can_be_unset(text: str, key: str, remaining: dict[str, object]) -> None:
    """Tables, their keys, and entries of lists."""
    assert tomllib.loads(unset_key(text, key)) in (
        remaining,
        {name: v for name, v in remaining.items() if v != {}},
    )


@pytest.mark.parametrize(
    ("text", "key", "after"),
    [
        (
            "[runtime]\nbacklog = 5\n\n[budget]\nday_usd = 1\n",
            "runtime.backlog",
            "[budget]\nday_usd = 1\n",
        ),
        ("[tools.notes]\nmax_notes = 5\n", "tools.notes.max_notes", ""),
        ("[runtime]\n# why\nbacklog = 5\n", "runtime.backlog", "[runtime]\n# why\n"),
        ("[runtime] # mine\nbacklog = 5\n", "runtime.backlog", "[runtime] # mine\n"),
        ("[channels.slack]\nstream = true\n", "channels.slack.stream", "[channels.slack]\n"),
        (
            "[compaction.provider]\nattempts = 2\n",
            "compaction.provider.attempts",
            "[compaction.provider]\n",
        ),
        ("autonomy = 1\n[runtime]\nbacklog = 5\n", "runtime.backlog", "autonomy = 1\n[runtime]\n"),
    ],
    ids=["first", "nested", "comment", "comment beside it", "a channel", "a model", "a fault"],
)
def test_an_empty_header_is_removed_with_its_last_key(text: str, key: str, after: str) -> None:
    """It stays if it has a comment, and if it enables something."""
    assert unset_key(text, key) == after


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("a = 1\n", "b", "does not set it"),
        ("a = 1\n", "a.b", "does not set it"),
        ("a = [1]\n", "a.1", "does not set it"),
        ("a = [1]\n", "a.1.c", "does not set it"),
        ('[[people]]\nname = "a"\n', "people.1", "does not set it"),
        ("a = ", "a", "not valid TOML"),
        pytest.param("a = " + "[" * 5000, "a", "not valid TOML", id="nests too deep"),
        ("a = 1\n", "", "is no key path"),
    ],
)
def test_a_key_that_can_not_be_unset_is_reported(text: str, key: str, reason: str) -> None:
    """P10."""
    with pytest.raises(ConfigError, match=reason):
        unset_key(text, key)


def test_unsetting_a_required_key_changes_nothing(home: Path) -> None:
    """The change is checked before it is written, as with `set`."""
    text = '[provider]\nkind = "scripted"\nscript = "s.toml"\n'
    path = written(home, text)
    code, out, err = run("unset", "provider.script", "--config", str(path))
    assert (code, out, 'provider.script: kind = "scripted" needs it' in err) == (2, "", True)
    assert path.read_text(encoding="utf-8") == text


# --- when a change takes effect ---------------------------------------------------

ROUNDS = 20
"""Of the loop; more than one connection takes from its accepting to its end."""


@asynccontextmanager
async def listening(directory: Path, *secrets: str) -> AsyncGenerator[None]:
    """A daemon's control socket that knows only the names of its secrets."""

    async def errors(_request: Mapping[str, object]) -> Errors:
        await asyncio.sleep(0)
        return Errors(secrets=frozenset(secrets))

    async with control_socket(directory) as control:
        control.call("errors", errors)
        yield
        for _ in range(ROUNDS):  # lets pending connections be accepted, served and closed
            await asyncio.sleep(0)


BEFORE = 'autonomy = "supervised"\n'


@pytest.mark.parametrize(
    ("after", "runs", "stopped"),
    [
        ('autonomy = "full"\n', "`zeroclaw reload` puts it in force", "when zeroclaw is started"),
        ("[provider]\nattempts = 2\n", "when the daemon is restarted", "when zeroclaw is started"),
        ("", "the same as before", "the same as before"),
        ("autonomy = 3\n", "has no fault", "has no fault"),
    ],
)
async def test_the_output_says_whether_a_reload_is_enough(
    tmp_path: Path, after: str, runs: str, stopped: str
) -> None:
    """It depends on the changed keys, and on whether a daemon runs."""
    assert stopped in await asyncio.to_thread(when_it_applies, BEFORE, after, tmp_path)
    async with listening(tmp_path):
        assert runs in await asyncio.to_thread(when_it_applies, BEFORE, after, tmp_path)


@pytest.mark.parametrize("change", [("set", "autonomy", "full"), ("unset", "autonomy")])
async def test_a_daemon_on_another_data_directory_can_be_named(
    home: Path, change: tuple[str, ...]
) -> None:
    """It was started with `--data-dir`, which is not in the file."""
    path, other = written(home, 'autonomy = "readonly"\n'), home / "other"
    other.mkdir()
    async with listening(other):
        named = (*change, "--config", str(path), "--data-dir", str(other))
        _, output, _ = await asyncio.to_thread(run, *named)
    assert f"reload --config {path} --data-dir {other}` puts it in force" in output


async def test_a_secret_that_only_the_daemon_has_is_no_fault(home: Path) -> None:
    """As under systemd, where the shell lacks the service's environment."""
    path = written(home, f'data_dir = "{home}"\n[provider]\napi_key = {{ env = "MY_KEY" }}\n')
    async with listening(home, "provider.api_key"):
        named = ("set", "autonomy", "full", "--config", str(path))
        code, _, err = await asyncio.to_thread(run, *named)
    assert (code, err) == (0, "")


def test_a_key_of_a_channel_with_a_fault_is_not_only_said_to_be_missing(home: Path) -> None:
    """Its settings can't be read; without the fault, a person would believe the first line (P10)."""
    path = written(home, "[channels.telegram]\ntoken = 3\n")
    code, out, err = run("get", "channels.telegram.limits", "--config", str(path))
    missing, fault = err.splitlines()
    assert (code, out) == (2, "")
    assert "there is no `limits`" in missing
    assert f"{path}: channels.telegram.token: " in fault
    value = run("get", "channels.telegram.pairing", "--config", str(path))
    assert value == (0, "closed\n", "")
