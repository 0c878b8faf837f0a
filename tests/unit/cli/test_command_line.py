"""The command line: a light start, helpful texts, and one line for each error."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from zeroclaw.cli import COMMANDS, CommandFailed, load_command, main, root
from zeroclaw.cli.invocation import command, copyable, program, say, shell_word
from zeroclaw.cli.options import print_result, with_places
from zeroclaw.errors import Refused, refused_as
from zeroclaw.host.plugins import packages_needed

HEAVY = {"pydantic", "httpx", "starlette", "xllamacpp", "sqlite3"}


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command run in this process."""
    done = CliRunner().invoke(root, [*arguments])
    return done.exit_code, done.stdout, done.stderr


def modules_of(*arguments: str, environment: dict[str, str]) -> set[str]:
    """The modules that are loaded after a command ran in another process.

    Without coverage, which loads a database itself.
    """
    script = (
        "import os, sys\n"
        "os._exit = lambda _: print(*sys.modules, file=sys.stderr)\n"
        "from zeroclaw.cli import main\n"
        f"sys.argv = ['zeroclaw', *{list(arguments)!r}]\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={key: os.environ[key] for key in os.environ if not key.startswith("COVERAGE_")}
        | environment,
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(("argument", "expected"), [("--version", 0), ("nonsense", 2)])
def test_the_process_ends_itself_with_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, argument: str, expected: int
) -> None:
    """The interpreter would wait for a thread that looks up a name while no name server answers."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(sys, "argv", ["zeroclaw", argument])
    main()
    assert ended == [expected]


def test_a_shell_that_completes_after_an_unknown_command_gets_no_error() -> None:
    completion = {
        "_ROOT_COMPLETE": "bash_complete",
        "COMP_WORDS": "root nothing ",
        "COMP_CWORD": "2",
    }
    done = CliRunner().invoke(root, env=completion, prog_name="root")
    assert (done.exit_code, done.exception, "plain,models" in done.output) == (0, None, True)


def test_the_list_of_commands_teaches() -> None:
    """Every command is listed with its purpose, and the list says where to begin."""
    code, out, _ = run("--help")
    words = " ".join(out.split())
    assert code == 0
    assert [does for does in COMMANDS.values() if does not in words] == []
    assert "Begin with `zeroclaw demo`" in words


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_equals_its_line_in_the_list(name: str) -> None:
    """The list is separate so that it loads no modules; this test keeps the two equal."""
    command = load_command(name)
    first = (command.help or "").splitlines()[0]
    assert (command.name, first) == (name, COMMANDS[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [("--help",), ("status",), ("run", "--help"), ("status", "--help")]
)
def test_commands_that_only_look_load_nothing_heavy(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    """A status answers at once: no models, no client, no web stack, no database."""
    environment = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    loaded = modules_of(*arguments, environment=environment)
    assert "zeroclaw.cli" in loaded
    assert loaded & HEAVY == set()


def test_without_a_daemon_the_exit_code_says_so(tmp_path: Path) -> None:
    """P10: one line, what to do, no traceback."""
    code, out, err = run("status", "--data-dir", str(tmp_path))
    assert (code, out) == (3, "")
    start = f"`zeroclaw run --data-dir {tmp_path}`"
    assert err == f"zeroclaw: no zeroclaw runs in `{tmp_path}`; start one with {start}\n"


def test_a_missing_configuration_is_misuse(tmp_path: Path) -> None:
    """P10."""
    code, _, err = run("policy", "show", "--config", str(tmp_path / "c.toml"))
    assert code == 2
    assert err.startswith("zeroclaw: --config: ")


def test_an_unknown_command_is_misuse() -> None:
    code, _, err = run("dance")
    assert (code, "no such command" in err) == (2, True)


def test_an_unexpected_failure_of_ours_is_one_line_and_exit_code_one(tmp_path: Path) -> None:
    """Such as a data directory that can't be used."""
    (tmp_path / "file").write_text("")
    code, _, err = run("halt", "--data-dir", str(tmp_path / "file" / "data"))
    assert (code, len(err.splitlines())) == (1, 1)


def test_the_schema_is_json_and_holds_the_channels() -> None:
    """Editors can use the schema directly."""
    code, out, _ = run("config", "schema")
    schema = json.loads(out)
    assert code == 0
    assert set(schema["properties"]) >= {"provider", "channels", "policy"}
    assert set(schema["x-channel-kinds"]) >= {"web", "terminal"}
    statement = schema["$defs"]["PolicySettings"]["properties"]["statement"]["items"]
    assert statement["required"] == ["id", "effect", "principals", "actions"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("export",), "missing argument 'WHOSE'; `zeroclaw export --help` shows how"),
        (("nothing",), "no such command 'nothing'; `zeroclaw --help` shows how"),
        (("statsu",), "no such command 'statsu'; did you mean `status`?"),
        (("pair", "lst"), "no such command 'lst'; did you mean 'list'?"),
        (("usage", "--da", "3"), "no such option '--da'; did you mean '--days'?"),
        (
            ("usage", "--confg", "x"),
            "no such option '--confg'; did you mean one of: '--config', '--json'?",
        ),
        (
            ("--config", "x", "status"),
            "no such option '--config'; options stand behind the command; `zeroclaw --help` shows how",
        ),
        (
            ("usage", "--days", "x"),
            "invalid value for '--days': 'x' is not a valid integer; `zeroclaw usage --help` shows how",
        ),
        (("config", "nothing"), "no such command 'nothing'; `zeroclaw config --help` shows how"),
        (("models", "get", "http://h/x"), "give --sha256"),
        (("init",), "there is no terminal to ask questions on"),
        (("try", "telegram", "--port", "x"), "invalid value for '--port'"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: tuple[str, ...], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line names the fault, and the help to read (P10)."""
    monkeypatch.setenv(
        "XDG_CONFIG_HOME", str(tmp_path)
    )  # the user's own may exist, or be unreadable
    code, out, err = run(*arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1), err
    assert err.lower().startswith(f"zeroclaw: {line}".lower())


@pytest.mark.parametrize("arguments", [("policy", "show"), ("--help",)])
def test_a_full_disk_behind_the_output_is_one_line(arguments: tuple[str, ...]) -> None:
    """P10. The command runs in another process, which has its own standard output."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "zeroclaw", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "zeroclaw: it can't go on: no space left on device\n",
    )


@pytest.mark.parametrize("option", ["--data-dir", "--config"])
def test_an_empty_path_is_not_the_current_directory(option: str) -> None:
    """As from an unset variable: a store would be made here, and closed to other users."""
    code, _, err = run("status", option, "")
    assert (code, err.count("\n"), f"{option}: it is empty" in err) == (2, 1, True)


def test_an_error_of_the_system_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file where the data should be, a removed current directory (P10)."""
    (tmp_path / "file").touch()
    code, _, err = run("chat", "--data-dir", str(tmp_path / "file"))
    assert (code, err) == (
        1,
        f"zeroclaw: `{tmp_path / 'file'}` can't be used: file exists; name another data directory\n",
    )
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    code, _, err = run("status", "--data-dir", "here")
    monkeypatch.chdir(tmp_path)
    assert (code, err) == (1, "zeroclaw: the current directory was removed; change to another\n")


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "make room there"), (errno.EDQUOT, "make room there"), (errno.EACCES, "do so")],
)
def test_the_remedy_for_a_full_disk_is_to_free_space(number: int, remedy: str) -> None:
    """The remedy is not to make a file writable (P10)."""
    line = f"`a` can't be written: {os.strerror(number).lower()}; {remedy}"
    with pytest.raises(Refused) as refused, refused_as(Refused, "`a` can't be written", "do so"):
        raise OSError(number, os.strerror(number))
    assert str(refused.value) == line


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and every group of them, with the words that invoke it."""
    context = click.Context(group, info_name="zeroclaw")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)


ALL_COMMANDS = dict(commands(root))


@pytest.mark.parametrize("words", ALL_COMMANDS)
def test_every_command_teaches_what_it_does_and_what_each_option_is_for(
    words: tuple[str, ...],
) -> None:
    """A full sentence, and a text on every option; P10 begins at the help."""
    command = ALL_COMMANDS[words]
    code, out, _ = run(*words, "--help")
    first, *_ = (command.help or "").splitlines() or [""]
    assert (code, first[-1:]) == (0, ".")
    assert first in " ".join(out.split())
    assert "\\b" not in out  # click's mark of separate lines
    silent = [
        param.name
        for param in command.params
        if isinstance(param, click.Option) and not param.hidden and not param.help
    ]
    assert silent == []


def test_every_subcommand_is_listed_in_its_group() -> None:
    """A group names its commands, one a line."""
    for words, group in ALL_COMMANDS.items():
        if isinstance(group, click.Group):
            _, out, _ = run(*words, "--help")
            assert [
                name for name in group.list_commands(click.Context(group)) if name not in out
            ] == []


@pytest.mark.parametrize("words", ALL_COMMANDS, ids=" ".join)
def test_a_help_fits_a_terminal(words: tuple[str, ...]) -> None:
    """The terminal wraps no line, and no sentence is cut."""
    help_text = CliRunner().invoke(root, [*words, "--help"], terminal_width=80).stdout
    _, *lines = help_text.splitlines()
    assert [line for line in lines if len(line) > 80 or line.endswith("...")] == []


# --- suggested commands can be typed as shown ------------------------------------------------


@pytest.mark.parametrize(
    ("started", "path", "expected"),
    [
        (".venv/bin/zeroclaw", "/nowhere", ".venv/bin/zeroclaw"),
        ("{0}/.venv/bin/zeroclaw", "/nowhere", ".venv/bin/zeroclaw"),
        ("{0}/.venv/bin/zeroclaw", "{0}/.venv/bin", "zeroclaw"),
        ("{0}/.venv/bin/zeroclaw", "{0}/another", ".venv/bin/zeroclaw"),
        ("/opt/z/bin/zeroclaw", "/nowhere", "/opt/z/bin/zeroclaw"),
        ("/opt/removed/bin/zeroclaw", "{0}/another", "/opt/removed/bin/zeroclaw"),
        ("/usr/bin/pytest", "/nowhere", "zeroclaw"),
    ],
)
def test_a_program_is_typed_by_its_name_where_the_shell_finds_it(
    started: str, path: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise by its path relative to the current directory; another program of that name does
    not count."""
    for place in (".venv/bin", "another"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "zeroclaw").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    assert (
        shell_word(started.format(tmp_path), path=path.format(tmp_path), cwd=tmp_path) == expected
    )


def test_a_module_that_was_run_is_typed_as_the_program_beside_its_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So `python -m zeroclaw` suggests what can be typed, and so does a daemon that `chat`
    started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["/checkout/zeroclaw/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv/bin/python"))
    monkeypatch.setitem(os.environ, "PATH", "/nowhere")
    assert program() == ".venv/bin/zeroclaw"


def test_a_path_with_a_blank_can_be_typed(tmp_path: Path) -> None:
    """As shown, in a shell."""
    started = str(tmp_path / "my bots/.venv/bin/zeroclaw")
    assert shell_word(started, path="/nowhere", cwd=tmp_path) == "'my bots/.venv/bin/zeroclaw'"


def test_in_a_removed_directory_the_plain_name_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell's directory may be removed."""
    removed = tmp_path / "gone"
    removed.mkdir()
    monkeypatch.chdir(removed)
    monkeypatch.setattr(sys, "argv", [".venv/bin/zeroclaw"])
    monkeypatch.setitem(os.environ, "PATH", "/nowhere")
    assert program() == ".venv/bin/zeroclaw"
    shutil.rmtree(removed)
    assert program() == "zeroclaw"


@pytest.mark.parametrize(
    ("options", "suggested", "shown"),
    [
        ((), "run", "zeroclaw run"),
        (("--config", "a b.toml"), "run", "zeroclaw run --config 'a b.toml'"),
        (("--config", "c"), "config set KEY VALUE", "zeroclaw config set KEY VALUE --config c"),
        (("--config", "c", "--data-dir", "d"), "chat", "zeroclaw chat --config c --data-dir d"),
        (("--config", "c", "--data-dir", "d"), "models list", "zeroclaw models list --config c"),
        (("--config", "c"), "demo --auto", "zeroclaw demo --auto"),
    ],
)
def test_a_suggested_command_has_the_given_options(
    options: tuple[str, ...], suggested: str, shown: str
) -> None:
    """A command copied from our output is about the same daemon."""

    @click.command()
    @with_places
    def suggest(**_options: object) -> None:
        click.echo(command(suggested))
        click.echo(copyable(f"; `zeroclaw {suggested}` does, {suggested} and `/new` stay"))
        click.echo(copyable(copyable(f"`zeroclaw {suggested}`")))

    done = CliRunner().invoke(suggest, options, catch_exceptions=False)
    assert done.output.splitlines() == [
        shown,
        f"; `{shown}` does, {suggested} and `/new` stay",
        f"`{shown}`",
    ]


@pytest.mark.parametrize(
    ("executable", "shown"),
    [
        ("/checkout/.venv/bin/python", ".venv/bin/python"),
        ("/opt/bot/bin/python3", "/opt/bot/bin/python3"),
        ("/my bots/bin/python", "'/my bots/bin/python'"),
    ],
)
def test_a_suggested_script_runs_in_the_environment_of_this_program(
    monkeypatch: pytest.MonkeyPatch, executable: str, shown: str
) -> None:
    """After `pip install .` there may be no `.venv`, or another one."""
    monkeypatch.setattr(sys, "executable", executable)
    assert f": {shown} -m pip install -e '.[telegram]'" in packages_needed("telegram")


def test_every_suggested_command_has_the_options_that_it_takes() -> None:
    """A suggested command can be run, and is about the same daemon: its options are exact."""
    leaves = {
        " ".join(words): found_command
        for words, found_command in ALL_COMMANDS.items()
        if not isinstance(found_command, click.Group)
    }
    shown: dict[str, set[str]] = {}

    @click.command()
    @with_places
    def suggest_all(**_options: object) -> None:
        for name in leaves:
            shown[name] = {word for word in command(name).split() if word.startswith("--")}

    CliRunner().invoke(suggest_all, ["--config", "c", "--data-dir", "d"], catch_exceptions=False)
    known = {
        name: {opt for parameter in leaf.params for opt in parameter.opts}
        & {"--config", "--data-dir"}
        for name, leaf in leaves.items()
    }
    assert shown == known


EVIL = "\x1b[2J\x9b7m\u202e\u200b\x08\r"
"""What a terminal obeys, or does not show."""


@pytest.mark.parametrize(
    "shown",
    [
        lambda: say(EVIL),
        lambda: print_result([EVIL], [EVIL], as_json=False),
        lambda: print_result([EVIL], [EVIL], as_json=True),
        lambda: CommandFailed(f"the server said {EVIL}").show(),
    ],
    ids=["words", "lines", "json", "an error"],
)
def test_no_output_of_a_command_controls_the_terminal(
    shown: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """A model invents a receipt's tool, a server an error text, a stranger their name (P5)."""
    shown()
    output = "".join(capsys.readouterr())
    assert [sign for sign in EVIL if not sign.isprintable() and sign in output] == []
    assert "[2J" in output


def test_json_has_the_same_text_with_invisible_characters_escaped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_result({EVIL: ["straße 日本 👩\u200d👩"]}, (), as_json=True)
    output = capsys.readouterr().out
    assert json.loads(output) == {EVIL: ["straße 日本 👩\u200d👩"]}
    assert "straße 日本 👩\u200d👩" in output
