"""A bot that Telegram calls answers every message once, through calls of strangers and kills."""

import asyncio
import json
import os
import re
import signal
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from channels._remote.emulator.http import reserve_port
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

PATH = "/hooks/telegram"
SECRET = "x-telegram-bot-api-secret-token"


def by_webhook(port: int) -> Mapping[str, object]:
    return {"receive": "webhook", "webhook_url": f"http://127.0.0.1:{port}{PATH}"}


@asynccontextmanager
async def called(directory: Path, port: int = 0) -> AsyncGenerator[tuple[Bot, int]]:
    """A bot whose daemon runs, and has told Telegram where to call."""
    port = port or reserve_port()
    async with bot(
        directory, start=False, channel=by_webhook(port), public={"port": port}
    ) as world:
        await world.daemon.start()
        await world.until(lambda: world.telegram.account.webhook)
        yield world, port


async def answer_of(port: int, head: str, body: bytes = b"") -> bytes:
    """Send a request, and return all that comes back, in lower case."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.replace("\n", "\r\n").encode() + body)
        await writer.drain()
        writer.write_eof()
        return (await reader.read()).lower()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def post(path: str, size: int, secret: str = "") -> str:
    shown = f"{SECRET}: {secret}\n" if secret else ""
    return f"POST {path} HTTP/1.1\nhost: x\n{shown}content-length: {size}\n\n"


async def closed(world: Bot, port: int) -> None:
    """Ask, as Telegram does, until the door takes nothing any more; it takes nothing of a stranger."""
    webhook = world.telegram.account.webhook
    assert webhook is not None
    stranger = {"id": world.mallory.id, "first_name": "Mallory", "is_bot": False}
    chat = {"id": world.mallory.id, "type": "private"}
    message = {"message_id": 1, "date": 1, "chat": chat, "from": stranger, "text": "hello"}
    body = json.dumps({"update_id": 1, "message": message}).encode()
    answer = b""
    while not answer.startswith(b"http/1.1 503 "):
        answer = await answer_of(port, post(PATH, len(body), webhook.secret), body)


async def test_a_message_is_answered_once_however_often_it_is_posted(tmp_path: Path) -> None:
    """As itself, after a restart, and under a new number. S2-01, S2-02."""
    async with called(tmp_path) as (world, _):
        await world.answers_once_what_comes_again()
        assert world.telegram.called("getUpdates") == []


async def test_an_update_posted_to_a_killed_daemon_comes_again(tmp_path: Path) -> None:
    """It took the connection and not the message: nothing was confirmed, so nothing is lost (P1)."""
    async with called(tmp_path) as (world, _):
        world.model.say("to one", key="one")
        world.model.say("to two", key="two")
        os.kill(world.daemon.pid, signal.SIGSTOP)
        first = world.ann.says("one")
        await world.until(lambda: first.update.deliveries)
        second = world.ann.says("two")
        await world.restart()
        await world.expect(world.ann.chat, "to one", "to two")
        await world.telegram.confirmed(first, second)
        assert first.update.deliveries > 1


async def test_what_comes_while_it_ends_is_sent_back_and_answered_by_the_next(
    tmp_path: Path,
) -> None:
    """A door that takes nothing any more says so with a 503, and Telegram keeps the message (P1)."""
    async with called(tmp_path) as (world, port):
        gate = world.model.gate()
        world.model.say(gate, "at last", key="wait")
        world.model.say("to two", key="two")
        config = tmp_path / "zeroclaw.toml"
        config.write_text(config.read_text().replace("grace_s = 0.2", "grace_s = 60.0"))
        await world.restart()
        world.ann.says("wait")
        await gate.reached()
        world.daemon.send_sigterm()
        await closed(world, port)
        late = world.bob.says("two")
        await world.until(lambda: world.telegram.account.webhook_error)
        error = world.telegram.account.webhook_error
        assert error is not None
        assert error[1] == "Wrong response from the webhook: 503"
        assert not late.update.confirmed
        gate.open()
        assert await world.daemon.wait() == 0
        await world.daemon.start()
        await world.expect(world.ann.chat, "at last")
        await world.expect(world.bob.chat, "to two")


async def test_strangers_get_nowhere_and_delay_no_person(tmp_path: Path) -> None:
    """A wrong secret, other paths, endless and slow bodies; meanwhile Ann is answered (P4, P9)."""
    async with called(tmp_path) as (world, port):
        forged = {"update_id": 1, "message": {"text": "forged words", "chat": {"id": world.ann.id}}}
        body = json.dumps(forged).encode()
        for secret in ("", "guess", world.telegram.token):
            got = await answer_of(port, post(PATH, len(body), secret), body)
            assert re.fullmatch(rb"http/1.1 401 [a-z]+\r\ncontent-length: 0\r\n[^\r]+\r\n\r\n", got)
        for path in ("/", "/hooks", f"{PATH}/", "/health", "/web/", "/console/"):
            for head in (post(path, len(body)), f"GET {path} HTTP/1.1\nhost: x\n\n"):
                got = await answer_of(port, head, body if head.startswith("POST") else b"")
                assert got.startswith(b"http/1.1 404 ")
                assert got.endswith(b"\r\n\r\n")
        assert (await answer_of(port, post(PATH, 10**12), b"x" * 100_000))[:12] in {
            b"http/1.1 401",
            b"",  # it did not read on, and the answer was cut off by what came after it
        }
        slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        for _, writer in slow:
            writer.write(f"POST {PATH} HTTP/1.1\r\nhost: ".encode())
        world.model.say("hello Ann")
        world.ann.says("hi")
        await world.expect(world.ann.chat, "hello Ann")
        for _, writer in slow:
            writer.close()
        assert "forged words" not in world.daemon.stderr
        assert len(world.model.requests) == 1


async def test_from_fetching_to_being_called_and_back_nothing_is_lost(tmp_path: Path) -> None:
    """Updates that wait when the daemon starts anew come the other way, once, in order. S2-02."""
    port = reserve_port()
    fetch, call = 'receive = "polling"', 'receive = "webhook"'
    async with bot(
        tmp_path, channel={**by_webhook(port), "receive": "polling"}, public={"port": port}
    ) as world:
        config = tmp_path / "zeroclaw.toml"
        for number, (before, after) in enumerate(((fetch, call), (call, fetch))):
            world.model.say(f"to now {number}", key=f"now {number}")
            world.model.say(f"to late {number}", key=f"late {number}")
            world.ann.says(f"now {number}")
            await world.until(lambda: f"to now {number}" in world.ann.chat.texts)  # noqa: B023
            await world.daemon.kill()
            world.ann.says(f"late {number}")
            config.write_text(config.read_text().replace(before, after))
            await world.daemon.start()
            await world.until(lambda: f"to late {number}" in world.ann.chat.texts)  # noqa: B023
        await world.expect(world.ann.chat, "to now 0", "to late 0", "to now 1", "to late 1")
        assert world.telegram.account.webhook is None


async def test_a_port_that_is_taken_is_reported_in_one_line(tmp_path: Path) -> None:
    """Before anything is taken or sent: what is wrong, where, and what to do (P10)."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port: int = listener.getsockname()[1]
        async with bot(
            tmp_path, start=False, channel=by_webhook(port), public={"port": port}
        ) as world:
            await world.daemon.start()
            assert await world.daemon.wait() == 1
            line = world.daemon.stderr.strip().splitlines()[-1]
            assert f"port {port} on 127.0.0.1 is in use by another program" in line
            assert "set `public.port` to a free one, or stop that" in line
            assert world.telegram.calls == []


async def test_an_address_without_https_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    """It is reported before the daemon starts, with its key (P10, P8)."""
    own = {"receive": "webhook", "webhook_url": "http://bot.example.org/telegram"}
    async with bot(tmp_path, start=False, channel=own) as world:
        await world.daemon.start()
        assert await world.daemon.wait() == 2
        assert "channels.telegram" in world.daemon.stderr
        assert "needs https" in world.daemon.stderr
