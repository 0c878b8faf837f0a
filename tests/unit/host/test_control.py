"""The control socket: access for one user, which no client can break."""

import asyncio
import gc
import os
import pwd
import socket
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
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
    """A log that records its events."""

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


@asynccontextmanager
async def answering(
    directory: Path, call: str, answer: Callable[[Line], Awaitable[Line]]
) -> AsyncGenerator[Control]:
    control = control_in(directory)
    control.call(call, answer)
    async with serving(control):
        yield control


async def echo(line: Line) -> Line:
    return {"said": line.get("text")}


async def greet_and_wait(stream: LineStream) -> None:
    await stream.send({"here": True})
    await stream.receive()


async def test_a_call_gets_one_answer(tmp_path: Path) -> None:
    """The request is passed on whole, lone surrogates included."""
    async with answering(tmp_path, "echo", echo):
        assert await request(tmp_path, {"call": "echo", "text": "grüße \ud83d"}) == {
            "said": "grüße \ud83d"
        }


async def test_a_request_too_long_for_the_daemon_is_not_sent(tmp_path: Path) -> None:
    """The daemon would close the connection, and the caller would retry or suspect a crash
    (P10)."""
    async with answering(tmp_path, "echo", echo):
        with pytest.raises(Refused, match="more than the daemon reads at once: 1,048,576"):
            await request(tmp_path, {"call": "echo", "text": "x" * LONGEST_LINE})
        longest = "x" * (LONGEST_LINE - len('{"call": "echo", "text": ""}\n'))
        assert await request(tmp_path, {"call": "echo", "text": longest}) == {"said": longest}


async def test_a_long_answer_arrives(tmp_path: Path) -> None:
    """Such as of a reload with thousands of faults (P10)."""

    async def say_much(_line: Line) -> Line:
        return {"said": "x" * 2 * LONGEST_LINE}

    async with answering(tmp_path, "much", say_much):
        assert await request(tmp_path, {"call": "much"}) == await say_much({})


async def test_a_zeroclaw_error_is_answered_in_one_line(tmp_path: Path) -> None:
    async def refuse(line: Line) -> Line:
        raise ToolFailed("not today")

    async with answering(tmp_path, "echo", refuse):
        assert await request(tmp_path, {"call": "echo"}) == {"error": "not today"}


async def test_an_unknown_call_is_an_error(tmp_path: Path) -> None:
    """A newer command gets an error from an older daemon, not silence (P10)."""
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
        received = [await lines.receive(), await lines.receive()]
        await lines.aclose()
        await lines.aclose()
    assert received == [{"loud": "ONE"}, {"loud": "TWO"}]


async def test_a_fault_in_one_connection_ends_only_that_one(tmp_path: Path) -> None:
    """It is logged, and the daemon goes on (P9)."""

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
async def test_a_line_that_is_no_object_ends_the_connection(tmp_path: Path, garbage: bytes) -> None:
    """It is not our error."""
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
    """It comes from a foreign client."""
    async with answering(tmp_path, "echo", echo) as control:
        lines = Lines(*await asyncio.open_unix_connection(control.path))
        lines.write({"call": "echo", "text": "x" * LONGEST_LINE})
        assert await lines.receive() is None
        await lines.aclose()


async def test_one_connection_too_many_is_closed(tmp_path: Path) -> None:
    """Endless connections can't use up the daemon's descriptors."""
    control = control_in(tmp_path)
    control.stream("chat", greet_and_wait)
    async with serving(control):
        connections = [await connect(tmp_path) for _ in range(MAX_CONNECTIONS)]
        for lines in connections:
            await lines.send({"open": "chat"})
            assert await lines.receive() == {"here": True}
        one_more = await connect(tmp_path)
        assert await one_more.receive() is None
        for lines in (*connections, one_more):
            await lines.aclose()


async def test_a_stop_does_not_wait_for_connected_clients(tmp_path: Path) -> None:
    """An open terminal does not keep the daemon running; it sees the end of the stream."""
    control = control_in(tmp_path)
    control.stream("chat", greet_and_wait)
    async with serving(control):
        lines = await connect(tmp_path)
        await lines.send({"open": "chat"})
        assert await lines.receive() == {"here": True}
    assert await lines.receive() is None
    await lines.aclose()


@pytest.mark.parametrize("passes", range(8))
async def test_a_stop_closes_a_connection_that_has_just_arrived(
    tmp_path: Path, passes: int
) -> None:
    """A task that is cancelled before it starts runs no `finally`."""
    with socket.socket(socket.AF_UNIX) as client:
        async with serving(control_in(tmp_path)) as control:
            client.connect(os.fspath(control.path))
            for _ in range(passes):
                await asyncio.sleep(0)
        gc.collect()  # an unclosed socket warns, which is an error here


async def test_the_socket_is_private_to_its_user(tmp_path: Path) -> None:
    """Other users can't connect, from the first instant on."""
    async with serving(control_in(tmp_path)) as control:
        assert stat.S_IMODE(control.path.stat().st_mode) == 0o600


async def test_files_made_meanwhile_by_threads_keep_their_modes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A umask for the socket would affect the whole process, whose threads make directories
    meanwhile."""
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
    """The kernel's credentials decide, not the file's mode: root is another user, too."""
    async with serving(control_in(tmp_path)) as control:
        me = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: me + 1)
        reader, writer = await asyncio.open_unix_connection(control.path)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_a_socket_that_a_killed_daemon_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "control.sock").write_text("left over")
    async with answering(tmp_path, "echo", echo):
        assert await request(tmp_path, {"call": "echo", "text": "x"}) == {"said": "x"}


async def test_without_a_daemon_a_command_says_how_to_start_one(tmp_path: Path) -> None:
    """P10."""
    with pytest.raises(DaemonUnreachable, match="start one with `zeroclaw run`"):
        await request(tmp_path, {"call": "status"})


async def test_a_daemon_that_does_not_listen_is_named(tmp_path: Path) -> None:
    """It starts or stops, or lost its socket: the advice to start one would fail (P10)."""
    lock = await asyncio.to_thread(lock_directory, tmp_path)
    message = rf"zeroclaw \(pid {os.getpid()}\) .* does not listen"
    with closing_descriptor(lock), pytest.raises(DaemonUnreachable, match=message) as caught:
        await request(tmp_path, {"call": "status"})
    assert not isinstance(caught.value, NotRunning)
    with pytest.raises(NotRunning):
        await request(tmp_path, {"call": "status"})


async def test_a_command_waits_only_so_long_for_a_hanging_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a script that asks for the status hangs too (P10)."""

    async def hang(line: Line) -> Line:
        return await asyncio.Future[Line]()

    monkeypatch.setattr("zeroclaw.host.control.ANSWER_S", 0.0)
    async with answering(tmp_path, "status", hang):
        with pytest.raises(DaemonUnreachable, match="does not answer within") as caught:
            await request(tmp_path, {"call": "status"})
    assert not isinstance(caught.value, NotRunning)


async def test_a_daemon_that_goes_away_before_it_answers_is_named(tmp_path: Path) -> None:
    """It may have been killed in the middle of the request (P10)."""

    async def end(_line: Line) -> Line:
        raise ConnectionResetError

    async with answering(tmp_path, "status", end):
        with pytest.raises(DaemonUnreachable, match="went away before it answered"):
            await request(tmp_path, {"call": "status"})


async def test_a_daemon_of_another_user_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error does not say that none runs, but what to do (P10)."""
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
async def test_unread_data_does_not_delay_the_end(tmp_path: Path) -> None:
    """A client that stopped reading is cut, and its unread data dropped."""
    is_ended = asyncio.Event()

    async def pour(stream: LineStream) -> None:
        async with asyncio.timeout(0.05):
            while True:
                await stream.send({"text": "x" * 500_000})

    class Cut(Facts):
        def __call__(self, event: str, /, **fields: object) -> None:
            super().__call__(event, **fields)
            is_ended.set()

    control = Control(tmp_path, log=Cut())
    control.stream("chat", pour)
    async with serving(control):
        lines = await connect(tmp_path)
        await lines.send({"open": "chat"})
        await is_ended.wait()
        await lines.aclose()
