"""The control socket: one user's door to the daemon, which no client can break."""

import asyncio
import gc
import os
import pwd
import socket
import stat
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from zeroclaw.errors import ConfigError, Refused, ToolFailed
from zeroclaw.host.atomic_file import closing_descriptor
from zeroclaw.host.control import (
    LONGEST_LINE,
    MAX_CONNECTIONS,
    Control,
    DaemonUnreachable,
    Lines,
    NotRunning,
    connect,
    request,
)
from zeroclaw.mount import LineStream
from zeroclaw.stores.sqlite.files import lock_directory

Line = Mapping[str, object]


class Facts:
    """What was logged."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __call__(self, event: str, /, **fields: object) -> None:
        self.events.append(event)


@asynccontextmanager
async def serving(control: Control) -> AsyncGenerator[Control]:
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(control.serve(ready.set))
        await ready.wait()
        try:
            yield control
        finally:
            task.cancel()


def control_in(directory: Path) -> Control:
    return Control(directory, log=Facts())


async def echo(line: Line) -> Line:
    return {"said": line.get("text")}


async def test_a_call_gets_one_answer(tmp_path: Path) -> None:
    """What was asked is handed over whole, half characters included."""
    control = control_in(tmp_path)
    control.call("echo", echo)
    async with serving(control):
        assert await request(tmp_path, {"call": "echo", "text": "grüße \ud83d"}) == {
            "said": "grüße \ud83d"
        }


async def test_a_request_too_long_to_be_read_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    """The daemon would hang up, and whoever waits would try for ever, or look for a crash (P10)."""
    control = control_in(tmp_path)
    control.call("echo", echo)
    async with serving(control):
        with pytest.raises(Refused, match="more than the daemon reads at once: 1,048,576"):
            await request(tmp_path, {"call": "echo", "text": "x" * LONGEST_LINE})
        longest = "x" * (LONGEST_LINE - len('{"call": "echo", "text": ""}\n'))
        assert await request(tmp_path, {"call": "echo", "text": longest}) == {"said": longest}


async def test_a_long_answer_arrives(tmp_path: Path) -> None:
    """As of a reload of a file with thousands of faults (P10)."""

    async def say_much(_line: Line) -> Line:
        return {"said": "x" * 2 * LONGEST_LINE}

    control = control_in(tmp_path)
    control.call("much", say_much)
    async with serving(control):
        assert await request(tmp_path, {"call": "much"}) == await say_much({})


async def test_an_error_of_ours_is_answered_in_one_line(tmp_path: Path) -> None:
    async def refuse(line: Line) -> Line:
        raise ToolFailed("not today")

    control = control_in(tmp_path)
    control.call("echo", refuse)
    async with serving(control):
        assert await request(tmp_path, {"call": "echo"}) == {"error": "not today"}


async def test_an_unknown_call_is_told_so(tmp_path: Path) -> None:
    """A newer command that meets an older daemon gets a sentence, not silence (P10)."""
    async with serving(control_in(tmp_path)):
        reply = await request(tmp_path, {"call": "later"})
    assert reply == {"error": "the running daemon does not know this; is it older?"}


async def test_a_stream_is_handed_over(tmp_path: Path) -> None:
    async def shout(stream: LineStream) -> None:
        while (line := await stream.receive()) is not None:
            await stream.send({"loud": str(line.get("text")).upper()})

    control = control_in(tmp_path)
    control.stream("chat", shout)
    async with serving(control):
        lines = await connect(tmp_path)
        await lines.send({"open": "chat"})
        await lines.send({"text": "one"})
        await lines.send({"text": "two"})
        heard = [await lines.receive(), await lines.receive()]
        await lines.aclose()
        await lines.aclose()
    assert heard == [{"loud": "ONE"}, {"loud": "TWO"}]


async def test_a_fault_in_one_connection_ends_only_that_one(tmp_path: Path) -> None:
    """A bug that one client meets is logged and leaves the daemon running (P9)."""

    async def break_down(stream: LineStream) -> None:
        raise LookupError("inside")

    facts = Facts()
    control = Control(tmp_path, log=facts)
    control.stream("chat", break_down)
    control.call("echo", echo)
    async with serving(control):
        lines = await connect(tmp_path)
        await lines.send({"open": "chat"})
        assert await lines.receive() is None
        await lines.aclose()
        assert await request(tmp_path, {"call": "echo", "text": "up"}) == {"said": "up"}
    assert facts.events == ["connection_failed"]


@pytest.mark.parametrize(
    "garbage", [b"no json\n", b"[1]\n", b"{}", b"{}\n", b"\xff\n", b"[" * 100_000 + b"\n"]
)
async def test_what_is_no_object_ends_the_connection(tmp_path: Path, garbage: bytes) -> None:
    """And is no failure of ours."""
    log = Facts()
    async with serving(Control(tmp_path, log=log)) as control:
        reader, writer = await asyncio.open_unix_connection(control.path)
        writer.write(garbage)
        writer.write_eof()
        answered = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answered in (b"", b'{"error":"the running daemon does not know this; is it older?"}\n')
    assert log.events == []


async def test_a_line_that_is_too_long_ends_the_connection(tmp_path: Path) -> None:
    """Of a client that is not ours."""
    control = control_in(tmp_path)
    control.call("echo", echo)
    async with serving(control):
        reader, writer = await asyncio.open_unix_connection(control.path)
        lines = Lines(reader, writer)
        lines.write({"call": "echo", "text": "x" * LONGEST_LINE})
        assert await lines.receive() is None
        await lines.aclose()


async def test_one_connection_too_many_is_closed(tmp_path: Path) -> None:
    """Whoever opens connections without end can't use up the daemon's descriptors."""

    async def wait(stream: LineStream) -> None:
        await stream.send({"here": True})
        await stream.receive()

    control = control_in(tmp_path)
    control.stream("chat", wait)
    async with serving(control):
        kept = [await connect(tmp_path) for _ in range(MAX_CONNECTIONS)]
        for lines in kept:
            await lines.send({"open": "chat"})
            assert await lines.receive() == {"here": True}
        one_more = await connect(tmp_path)
        assert await one_more.receive() is None
        for lines in (*kept, one_more):
            await lines.aclose()


async def test_a_stop_waits_for_nobody_who_stays_connected(tmp_path: Path) -> None:
    """A terminal that stands open keeps no daemon from ending; it is told by the end of the line."""

    async def wait(stream: LineStream) -> None:
        await stream.send({"here": True})
        await stream.receive()

    control = control_in(tmp_path)
    control.stream("chat", wait)
    async with serving(control):
        lines = await connect(tmp_path)
        await lines.send({"open": "chat"})
        assert await lines.receive() == {"here": True}
    assert await lines.receive() is None
    await lines.aclose()


@pytest.mark.parametrize("passes", range(8))
async def test_a_stop_closes_a_connection_that_has_only_just_come(
    tmp_path: Path, passes: int
) -> None:
    """A task that is cancelled before it began runs no `finally`."""
    with socket.socket(socket.AF_UNIX) as client:
        async with serving(control_in(tmp_path)) as control:
            client.connect(os.fspath(control.path))
            for _ in range(passes):
                await asyncio.sleep(0)
        gc.collect()  # what was left open warns, which is an error here


async def test_the_socket_is_the_users_alone(tmp_path: Path) -> None:
    """Nobody else may connect, from the first instant on."""
    async with serving(control_in(tmp_path)) as control:
        assert stat.S_IMODE(control.path.stat().st_mode) == 0o600


async def test_what_others_make_meanwhile_keeps_its_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mask for the socket would hold for the whole process: threads make directories just then."""
    masks: list[int] = []

    def umask(mask: int) -> int:
        masks.append(mask)
        return 0o022

    monkeypatch.setattr(os, "umask", umask)
    async with serving(control_in(tmp_path)) as control:
        assert stat.S_IMODE(control.path.stat().st_mode) == 0o600
    assert masks == []


async def test_only_the_daemons_own_user_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's word decides, not the rights of the file: root is somebody else, too."""
    async with serving(control_in(tmp_path)) as control:
        me = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: me + 1)
        reader, writer = await asyncio.open_unix_connection(control.path)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_a_socket_that_a_killed_daemon_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "control.sock").write_text("left over")
    control = control_in(tmp_path)
    control.call("echo", echo)
    async with serving(control):
        assert await request(tmp_path, {"call": "echo", "text": "x"}) == {"said": "x"}


async def test_without_a_daemon_a_command_says_how_to_start_one(tmp_path: Path) -> None:
    """P10."""
    with pytest.raises(DaemonUnreachable, match="start one with `zeroclaw run`"):
        await request(tmp_path, {"call": "status"})


async def test_a_daemon_that_does_not_listen_is_told_as_one(tmp_path: Path) -> None:
    """It starts or stops, or lost its socket: who is told to start one would fail (P10)."""
    lock = await asyncio.to_thread(lock_directory, tmp_path)
    told = rf"zeroclaw \(pid {os.getpid()}\) .* does not listen"
    with closing_descriptor(lock), pytest.raises(DaemonUnreachable, match=told) as caught:
        await request(tmp_path, {"call": "status"})
    assert not isinstance(caught.value, NotRunning)
    with pytest.raises(NotRunning):
        await request(tmp_path, {"call": "status"})


async def test_a_daemon_that_hangs_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a script that asks for its status hangs with it (P10)."""

    async def hang(line: Line) -> Line:
        return await asyncio.Future[Line]()

    control = control_in(tmp_path)
    control.call("status", hang)
    monkeypatch.setattr("zeroclaw.host.control.ANSWER_S", 0.0)
    async with serving(control):
        with pytest.raises(DaemonUnreachable, match="does not answer within") as caught:
            await request(tmp_path, {"call": "status"})
    assert not isinstance(caught.value, NotRunning)


async def test_a_daemon_of_another_user_is_told_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told that none runs, and what to do is said (P10)."""
    async with serving(control_in(tmp_path)):
        me = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: me + 1)
        with pytest.raises(
            DaemonUnreachable, match=f"runs as `{pwd.getpwuid(me).pw_name}`"
        ) as caught:
            await request(tmp_path, {"call": "status"})
    assert not isinstance(caught.value, NotRunning)


async def test_a_path_that_no_socket_can_have_is_a_fault_of_the_configuration(
    tmp_path: Path,
) -> None:
    """P10."""
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with pytest.raises(ConfigError, match="too long for a socket"):
        await control_in(deep).serve(lambda: None)


@pytest.mark.slow
async def test_what_nobody_reads_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """A client that stopped reading is cut, with what it did not read."""
    ended = asyncio.Event()

    async def pour(stream: LineStream) -> None:
        async with asyncio.timeout(0.05):
            while True:
                await stream.send({"text": "x" * 500_000})

    class Cut(Facts):
        def __call__(self, event: str, /, **fields: object) -> None:
            super().__call__(event, **fields)
            ended.set()

    control = Control(tmp_path, log=Cut())
    control.stream("chat", pour)
    async with serving(control):
        lines = await connect(tmp_path)
        await lines.send({"open": "chat"})
        await ended.wait()
        await lines.aclose()
