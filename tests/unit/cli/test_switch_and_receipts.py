"""`halt`, `resume`, `receipts verify` and `status`, with a daemon and without one."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests.contract.terminal_harness import control_socket
from tests.fakes.manual_clock import ManualClock
from zeroclaw.cli import root
from zeroclaw.cli.client import DaemonRefused, ask
from zeroclaw.cli.operator import status_lines as lines
from zeroclaw.cli.receipts import line, receipts_in
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate import audit
from zeroclaw.host.answers import Status
from zeroclaw.host.local_listener import SESSIONS
from zeroclaw.host.login import Logins, read_sessions, write_sessions
from zeroclaw.inbound.anchors import STREAM, verify_stream
from zeroclaw.inbound.live_config import last_halt
from zeroclaw.store import LogKind
from zeroclaw.stores.sqlite import open_store
from zeroclaw.stores.sqlite.files import open_for_writing

Line = Mapping[str, object]
TOKEN = f"zc-receipt-1700000000-{'A' * 43}"
VALID: Line = {
    "token": TOKEN,
    "verdict": "valid",
    "tool": "shell",
    "outcome": "ok",
    "at": "2026-01-01T12:00:00+00:00",
}


def run(*arguments: str, typed: str = "") -> tuple[int, str, str]:
    done = CliRunner().invoke(root, [*arguments], input=typed)
    return done.exit_code, done.stdout, done.stderr


@asynccontextmanager
async def daemon(place: Path, name: str, reply: Line) -> AsyncGenerator[list[Line]]:
    """A control socket that answers one call."""
    calls: list[Line] = []

    async def reply_to(line: Line) -> Line:
        calls.append(line)
        return reply

    async with control_socket(place) as control:
        control.call(name, reply_to)
        yield calls


async def audit_kinds(place: Path) -> list[str]:
    """The kinds of entries in the daemon's audit, which is intact."""
    store = await open_store(place, clock=ManualClock())
    try:
        assert isinstance(await verify_stream(store, STREAM), audit.Intact)
        bodies = [entry.body for entry in await store.read(LogKind.AUDIT, STREAM)]
    finally:
        await store.aclose()
    return [entry.kind for entry in map(audit.read, bodies) if isinstance(entry, audit.Entry)]


async def halted_by(place: Path) -> str:
    """The person who halted, as stored for the next daemon."""
    store = await open_store(place, clock=ManualClock())
    try:
        halt = await last_halt(store)
    finally:
        await store.aclose()
    return "" if halt.over else halt.by


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (0, "no browser was logged in\n"),
        (1, "1 browser is logged out\n"),
        (2, "2 browsers are logged out\n"),
    ],
)
async def test_every_browser_is_logged_out_by_the_daemon(
    count: int, message: str, tmp_path: Path
) -> None:
    async with daemon(tmp_path, "logout", {"sessions": count}) as calls:
        result = await asyncio.to_thread(run, "logout", "--data-dir", str(tmp_path))
    assert (result, calls) == ((0, message, ""), [{"call": "logout"}])


def test_without_a_daemon_sessions_end_in_their_file(tmp_path: Path) -> None:
    """The path and bookmarks stay; an unwritable file is reported (P10)."""
    ends_at = datetime(2999, 1, 1, tzinfo=UTC)
    file = tmp_path / SESSIONS
    file.write_bytes(write_sessions(Logins(path="secret", sessions={"a": ends_at})))
    blocked = tmp_path / f"{SESSIONS}.new"
    blocked.mkdir()
    code, _, message = run("logout", "--data-dir", str(tmp_path))
    assert (code, f"`{file}` can't be changed: is a directory" in message) == (1, True)
    blocked.rmdir()
    assert run("logout", "--data-dir", str(tmp_path)) == (0, "1 browser is logged out\n", "")
    assert read_sessions(file.read_bytes()) == Logins(path="secret")
    assert run("logout", "--data-dir", str(tmp_path)) == (0, "no browser was logged in\n", "")


def unreadable(path: str, mode: int) -> bool:
    """No access to any path."""
    return False


@pytest.mark.parametrize("command", ["logout", "halt", "status"])
async def test_another_users_daemon_is_not_taken_for_none(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sessions stay in its memory, whatever the file says."""
    file, ends_at = tmp_path / SESSIONS, datetime(2999, 1, 1, tzinfo=UTC)
    stored = write_sessions(Logins(path="secret", sessions={"a": ends_at}))
    await asyncio.to_thread(file.write_bytes, stored)
    async with daemon(tmp_path, command, {"sessions": 1}) as calls:
        me = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: me + 1)
        monkeypatch.setattr(os, "access", unreadable)
        code, out, err = await asyncio.to_thread(run, command, "--data-dir", str(tmp_path))
    assert (code, out, "try again as that user" in err, calls) == (3, "", True, [])
    assert await asyncio.to_thread(file.read_bytes) == stored


def test_no_browser_is_logged_out_under_a_daemon_that_starts(tmp_path: Path) -> None:
    """It has already read the sessions, and does not answer yet."""
    file = tmp_path / SESSIONS
    stored = write_sessions(Logins(path="secret", sessions={"a": datetime(2999, 1, 1, tzinfo=UTC)}))
    file.write_bytes(stored)
    opened = open_for_writing(tmp_path)
    code, out, err = run("logout", "--data-dir", str(tmp_path))
    opened.close()
    assert (code, out, "does not listen" in err, file.read_bytes()) == (3, "", True, stored)


def test_without_a_daemon_the_switch_is_set_in_the_store(tmp_path: Path) -> None:
    """The next daemon starts halted; `resume` takes it back."""
    place = ("--data-dir", str(tmp_path))
    assert run("halt", *place)[:2] == (
        0,
        "no daemon runs; the next one starts halted, until "
        f"`zeroclaw resume --data-dir {tmp_path}`\n",
    )
    assert asyncio.run(halted_by(tmp_path)) == "the operator on this machine"
    assert run("resume", *place)[:2] == (0, "no daemon runs; the next one starts as usual\n")
    assert asyncio.run(halted_by(tmp_path)) == ""
    assert asyncio.run(audit_kinds(tmp_path)) == ["halted", "resumed"]


@pytest.mark.parametrize(
    ("command", "before", "message"),
    [
        ("halt", False, "halted: "),
        ("resume", True, "going on: "),
        ("resume", False, "nothing was halted"),
    ],
)
async def test_a_running_daemon_gets_the_switch(
    tmp_path: Path, command: str, before: bool, message: str
) -> None:
    """The daemon stores the switch itself, and stops running turns."""
    answer = {"halted": command == "halt", "before": before}
    async with daemon(tmp_path, command, answer) as calls:
        code, out, _ = await asyncio.to_thread(run, command, "--data-dir", str(tmp_path))
    assert (code, out.startswith(message)) == (0, True)
    assert calls == [{"call": command, "by": "the operator on this machine"}]


@pytest.mark.parametrize(
    ("shown", "verdict", "code"),
    [
        (VALID, "valid; shell, ok, 2026-01-01T12:00:00+00:00", 0),
        (
            {**VALID, "verdict": "earlier"},
            "valid, from an earlier run; shell, ok, 2026-01-01T12:00:00+00:00",
            0,
        ),
        (
            {**VALID, "verdict": "removed"},
            "valid according to the audit; the result itself can't be read any more; shell, ok, "
            "2026-01-01T12:00:00+00:00",
            0,
        ),
        (
            {"token": TOKEN, "verdict": "false"},
            "FALSE: this daemon did not issue it for a stored result",
            1,
        ),
        (
            {"token": TOKEN, "verdict": "unchecked"},
            "can't be checked: the audit or a conversation is damaged",
            1,
        ),
    ],
)
async def test_true_and_false_receipts_are_distinguished(
    tmp_path: Path, shown: Line, verdict: str, code: int
) -> None:
    """P7; a false one fails the command. A text may be longer than the daemon accepts."""
    text = f"{'see ' * 500_000}{TOKEN}\n"
    async with daemon(tmp_path, "receipts", {"receipts": [shown]}) as calls:
        done = await asyncio.to_thread(
            run, "receipts", "verify", "-", "--data-dir", str(tmp_path), typed=text
        )
    assert done == (code, f"{TOKEN}: {verdict}\n", "")
    assert calls == [{"call": "receipts", "text": TOKEN}]
    assert line(shown) == f"{TOKEN}: {verdict}"


def test_a_tools_name_can_not_pass_for_a_verdict() -> None:
    """A model may invent it; it is shown on one line, in quotes (P7)."""
    made_up = {
        **VALID,
        "tool": f"x\n{TOKEN}: valid; shell, ok, now\x1b[2J · `",
        "outcome": "failed",
    }
    assert line(made_up) == (
        f"{TOKEN}: valid; `x {TOKEN}: valid; shell, ok, now⟨U+001B⟩[2J ⟨U+00B7⟩ '`, failed, "
        f"{VALID['at']}"
    )


async def test_receipts_can_be_printed_as_json(tmp_path: Path) -> None:
    async with daemon(tmp_path, "receipts", {"receipts": [VALID]}):
        done = await asyncio.to_thread(
            run, "receipts", "verify", TOKEN, "--json", "--data-dir", str(tmp_path)
        )
    assert (done[0], json.loads(done[1])) == (0, [VALID])


async def test_a_text_without_a_receipt_is_a_failure(tmp_path: Path) -> None:
    """A checking script must not take silence for success."""
    async with daemon(tmp_path, "receipts", {"receipts": []}):
        done = await asyncio.to_thread(
            run, "receipts", "verify", "hello", "--data-dir", str(tmp_path)
        )
    assert done == (1, "", "zeroclaw: there is no receipt in this text\n")


async def test_without_a_daemon_receipts_are_checked_in_the_store(tmp_path: Path) -> None:
    """This receipt was never issued; a missing store is not made."""
    with pytest.raises(StoreUnusable, match="holds no data yet"):
        await receipts_in(tmp_path / "nowhere", TOKEN)
    assert not (tmp_path / "nowhere").exists()
    store = await open_store(tmp_path, clock=ManualClock())
    await store.aclose()
    (receipt,) = await receipts_in(tmp_path, TOKEN)
    assert (receipt["token"], receipt["verdict"]) == (TOKEN, "false")


async def test_an_error_of_the_daemon_fails_the_command(tmp_path: Path) -> None:
    """P10."""
    async with daemon(tmp_path, "status", {"error": "the disk is full"}):
        with pytest.raises(DaemonRefused, match="the disk is full"):
            await ask(tmp_path, "status", Status)


STATUS: Line = {
    "version": "0.1.0",
    "model": "small",
    "halted": "ann",
    "channels": {
        "web": {"condition": "up", "since": datetime(2026, 1, 1, tzinfo=UTC).isoformat()},
        "mail": {"condition": "down", "why": "wrong password"},
    },
    "busy": 1,
    "waiting": 2,
    "unsent": 5,
    "failures": 6,
    "pending": 3,
    "dropped": {"mail": 4},
    "disk_bytes": 3 * 1024 * 1024 + 1,
    "login_url": "http://127.0.0.1:8420/?login=x",
    "claim": "ABCD2345",
}


def test_a_status_is_readable_text() -> None:
    """Each fault is beside the part that it concerns."""
    printed = [*lines(msgspec.convert(STATUS, Status))]
    assert printed[0:3] == [
        "zeroclaw   0.1.0",
        "HALTED     by ann; `zeroclaw resume` goes on",
        "model      small; failures in a row: 6, see `zeroclaw doctor`",
    ]
    assert printed[3] == "channels   mail down since ?: wrong password"
    assert printed[4].startswith("           web up since ")
    assert printed[5:] == [
        "work       1 at work, 2 waiting, 5 to be sent",
        "approvals  3 to answer; `/pending` in a chat lists them",
        "strangers  messages dropped on mail: 4",
        "disk       3.1 MB",
        "operator   nobody yet: send ABCD2345 to the bot in a private chat",
        "web page   http://127.0.0.1:8420/?login=x (works once)",
    ]


async def test_a_json_status_is_the_daemons_answer(tmp_path: Path) -> None:
    async with daemon(tmp_path, "status", STATUS):
        code, out, _ = await asyncio.to_thread(run, "status", "--json", "--data-dir", str(tmp_path))
    assert code == 0
    assert msgspec.json.decode(out, type=Status) == msgspec.convert(STATUS, Status)
