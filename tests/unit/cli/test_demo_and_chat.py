"""`demo` and `chat` as people start them: real processes, with their own daemon."""

import asyncio
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.contract.test_local_child import death_of
from zeroclaw.host.control import FILE

pytestmark = pytest.mark.slow

SCRIPT = 'otherwise = "you said {{user}}"\n'
CONFIG = '[provider]\nkind = "scripted"\nscript = "{script}"\n\n[channels.web]\nenabled = false\n'


def environment(home: Path) -> dict[str, str]:
    """An environment without this user's settings; temporary files are below `home` too."""
    empty = dict.fromkeys(("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZEROCLAW_CONFIG"), "")
    return {**os.environ, **empty, "HOME": str(home), "TMPDIR": str(home)}


def zeroclaw(home: Path, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "zeroclaw", *arguments],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        env=environment(home),
    )


@pytest.fixture
def short() -> Generator[Path]:
    """An empty directory with a short path: sockets are made below it, whose paths are limited
    in length."""
    with tempfile.TemporaryDirectory(prefix="zeroclaw-") as directory:
        yield Path(directory)


def test_the_demo_shows_a_draft_a_card_and_a_receipt(short: Path) -> None:
    """In a temporary directory, without network and key."""
    done = zeroclaw(short, "demo", "--auto")
    assert (done.returncode, done.stderr) == (0, "")
    order = [
        "┌ operator asks; answer until ",
        "✅ 1  write_file approved by operator",
        "> claw in the cold tide",
        "⚠️ false receipt",
        "✅ receipt: read_file · ok",
        "that was the demo",
    ]
    places = [done.stdout.find(words) for words in order]
    assert (min(places) >= 0, places == sorted(places)) == (True, True), done.stdout
    assert [*short.iterdir()] == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_character_unknown_to_the_terminal_is_shown_by_its_number(
    short: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    """With an older locale such as `de_DE@euro`; nothing is left out, and the program goes on
    (P10)."""
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    (short / "script.toml").write_text(SCRIPT)
    (short / "c.toml").write_text(CONFIG.format(script=short / "script.toml"))
    done = zeroclaw(short, "chat", "--config", str(short / "c.toml"), typed="hello\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "\\u25cf you said hello\n", "")
    shown = zeroclaw(short, "policy", "show")
    assert (shown.returncode, shown.stderr) == (0, "")


def test_a_text_in_another_encoding_can_be_read(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10: the text around a receipt may be from an older file."""
    (short / "script.toml").write_text(SCRIPT)
    (short / "c.toml").write_text(CONFIG.format(script=short / "script.toml"))
    at = ("--config", str(short / "c.toml"))
    zeroclaw(short, "chat", *at, typed="hello\n")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = zeroclaw(short, "receipts", "verify", "-", *at, typed="ä")
    expected = (1, "", "zeroclaw: there is no receipt in this text\n")
    assert (done.returncode, done.stdout, done.stderr) == expected


def test_a_demo_without_a_terminal_ends_and_says_how_to_see_it(short: Path) -> None:
    """P10: it does not wait for the card's deadline."""
    demo = f'"{sys.executable}" -m zeroclaw demo'
    processes = subprocess.run(  # at once, for each takes its time
        ["sh", "-c", f'{demo} <&- & {demo} </dev/null; other=$?; wait $!; echo " $?" $other'],
        capture_output=True,
        text=True,
        check=False,
        env=environment(short),
    )
    assert processes.stdout.endswith(" 1 1\n")
    (line,) = {*processes.stderr.splitlines()}
    assert line.startswith("zeroclaw: the demo waits for your approval")
    assert line.endswith("demo --auto`")
    assert processes.stderr == f"{line}\n" * 2


@pytest.fixture
def configured(short: Path) -> Path:
    script = short / "script.toml"
    script.write_text(SCRIPT, encoding="utf-8")
    config = short / "config.toml"
    config.write_text(CONFIG.format(script=script), encoding="utf-8")
    return config


def test_a_pipe_into_chat_starts_a_daemon_and_ends_it(short: Path, configured: Path) -> None:
    """Twice, so the first must have released everything; the conversation is still there."""
    for text in ("one", "two"):
        done = zeroclaw(short, "chat", "--config", str(configured), typed=f"{text}\n")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"● you said {text}\n", "")
    assert zeroclaw(short, "status", "--config", str(configured)).returncode == 3


@pytest.mark.parametrize(
    ("sink", "error"),
    [(">/dev/full", "zeroclaw: it can't go on: no space left on device\n"), ("| true", "")],
)
def test_a_broken_output_ends_a_chat(short: Path, configured: Path, sink: str, error: str) -> None:
    """One line where the disk is full, none where the reader is gone (P10)."""
    chat = f'"{sys.executable}" -m zeroclaw chat --config "{configured}"'
    done = subprocess.run(
        ["sh", "-c", f"(echo one; echo two) | {chat} {sink}"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(short),
    )
    assert (done.stdout, done.stderr) == ("", error)


def test_a_line_longer_than_the_daemon_reads_ends_a_script(short: Path, configured: Path) -> None:
    """P10: it is not resent again and again to a daemon that closes the connection."""
    done = zeroclaw(short, "chat", "--config", str(configured), typed="x" * 1_100_000)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("zeroclaw: 1,100,0")
    assert line.endswith("more than the daemon reads at once: 1,048,576; send less")


def test_an_unwritable_log_is_reported_before_the_daemon_starts(
    short: Path, configured: Path
) -> None:
    """On a full disk the daemon's own error would be lost with the log (P10)."""
    (short / "data").mkdir()
    (short / "data" / "chat.log").symlink_to("/dev/full")
    place = ("--config", str(configured), "--data-dir", str(short / "data"))
    done = zeroclaw(short, "chat", *place, typed="hi\n")
    line = f"zeroclaw: `{short / 'data'}` can't be used: no space left on device; make room there\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


def test_a_daemon_that_cannot_start_says_why(short: Path, configured: Path) -> None:
    """P10: its own last error, not that a socket is missing."""
    configured.write_text("autonomy = 3\nlanguage = 4\n", encoding="utf-8")
    done = zeroclaw(short, "chat", "--config", str(configured), typed="hi\n")
    assert (done.returncode, done.stdout) == (2, "")
    faults = [line.removeprefix(f"zeroclaw: {configured}: ") for line in done.stderr.splitlines()]
    assert [fault.partition(":")[0] for fault in faults] == ["autonomy", "language"]


def test_a_plain_terminal_shows_that_a_daemon_starts(
    short: Path, configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal without cursor control, such as an editor's, shows no prompt meanwhile."""
    monkeypatch.setenv("TERM", "dumb")
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "zeroclaw", "chat", "--config", str(configured)]
    process = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, env=environment(short)
    )
    os.close(inner)
    try:
        # Byte by byte: a terminal may hand over a line in two pieces.
        line = b"".join(iter(lambda: os.read(outer, 1), b"\n"))
        assert line == b"no daemon is running, so I start one; it ends when you leave\r"
        os.write(outer, b"\x04")
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()
        os.close(outer)


def test_a_pipe_loads_no_terminal_modules(
    short: Path, configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it load those modules."""
    Path(short, "prompt_toolkit.py").write_text("raise ImportError", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(short))
    done = zeroclaw(short, "chat", "--config", str(configured), typed=f"{'hi ' * 500}\n")
    assert (done.returncode, done.stdout[:17], done.stderr) == (0, "● you said hi hi ", "")


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_gets_its_echo_back_when_the_program_is_killed(
    ending: signal.Signals, short: Path, configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program reads keys one by one; a signal would leave the terminal in that mode."""
    monkeypatch.setenv("TERM", "xterm")
    outer, inner = pty.openpty()
    before = termios.tcgetattr(inner)
    command = [sys.executable, "-m", "zeroclaw", "chat", "--config", str(configured)]
    process = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, env=environment(short)
    )
    shown = b""
    try:
        for awaited, then in (("»", b"hi\r"), ("● you said hi", b"")):
            while awaited.encode() not in shown:
                shown += os.read(outer, 65_536)
            os.write(outer, then)
        assert termios.tcgetattr(inner) != before
        process.send_signal(ending)
        assert process.wait() == 0
        assert termios.tcgetattr(inner) == before
    finally:
        process.kill()
        process.wait()
        os.close(inner)
        os.close(outer)


async def begun(
    home: Path, *arguments: str, typed: str, shows: str, errors: int | None = None
) -> asyncio.subprocess.Process:
    """Start a process, and wait until it has printed some words."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zeroclaw", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
        env=environment(home),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(typed.encode())
    async for line in process.stdout:
        if shows in line.decode():
            break
    return process


def daemon_of(data: Path) -> int:
    """The process id, from the kernel, of the daemon that listens in a data directory."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(data / FILE))
        credentials = asking.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII")
        )
    return int(struct.unpack("iII", credentials)[0])


def only_one_in(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


async def test_a_chat_that_is_killed_takes_its_daemon_with_it(
    short: Path, configured: Path
) -> None:
    """The daemon shuts down in order: its work is stored."""
    data = short / "data"
    options = ("--config", str(configured), "--data-dir", str(data))
    chat = await begun(short, "chat", *options, typed="hi\n", shows="you said hi")
    daemon = daemon_of(data)
    chat.kill()
    await death_of(daemon)
    assert " stopping " in (data / "chat.log").read_text(encoding="utf-8")
    await chat.wait()


async def test_a_demo_that_is_killed_takes_its_daemon_with_it(short: Path) -> None:
    """It ends while a call waits for an approval that can no longer come."""
    demo = await begun(short, "demo", typed="", shows="a = Approve once")
    daemon = daemon_of(await asyncio.to_thread(only_one_in, short) / "data")
    demo.kill()
    await death_of(daemon)
    await demo.wait()


async def test_a_demo_whose_daemon_is_killed_says_so(short: Path) -> None:
    """It names no file, since its directory is deleted (P10)."""
    shows, errors = "a = Approve once", asyncio.subprocess.PIPE
    demo = await begun(short, "demo", typed="", shows=shows, errors=errors)
    os.kill(daemon_of(await asyncio.to_thread(only_one_in, short) / "data"), signal.SIGKILL)
    _, output = await demo.communicate()
    assert b"the daemon was killed by signal 9 and said nothing" in output
    assert b"chat.log" not in output


def test_a_daemon_whose_parent_is_gone_does_not_start(short: Path, configured: Path) -> None:
    """If its parent was killed meanwhile it shuts down in order at once."""
    done = zeroclaw(short, "run", "--until-stdin-ends", "--config", str(configured))
    assert (done.returncode, " stopping " in done.stderr) == (0, True)


def test_an_unwritable_greeting_does_not_end_the_daemon(short: Path, configured: Path) -> None:
    """Its output may go to a log on another, full disk: the daemon goes on all the same."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "zeroclaw", "run"),
                *("--until-stdin-ends", "--config", str(configured)),
            ],
            input="",
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=environment(short),
        )
    assert (done.returncode, " stopping " in done.stderr) == (0, True)


def test_a_lifeline_has_to_be_a_pipe(short: Path, configured: Path) -> None:
    """A file or a terminal does not show the end of a parent (P10)."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "zeroclaw", "run"),
            *("--until-stdin-ends", "--config", str(configured)),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment(short),
    )
    assert (done.returncode, "needs a pipe" in done.stderr) == (2, True)
