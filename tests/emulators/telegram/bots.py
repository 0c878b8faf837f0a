"""Clients of the emulator over real sockets: python-telegram-bot, and calls made by hand."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import httpx
from telegram import Bot
from telegram.request import HTTPXRequest

from channels.telegram.emulator import Emulator, Limits
from tests.fakes.manual_clock import ManualClock
from zeroclaw.value import Value

# Without this each client reads the machine's certificates, a tenth of a second.
PLAIN: Mapping[str, object] = {"verify": False, "trust_env": False}
# By default clients wait a few seconds for a call, too short on a loaded machine.
PATIENCE_S = 50.0


def _request() -> HTTPXRequest:
    return HTTPXRequest(
        connect_timeout=PATIENCE_S,
        read_timeout=PATIENCE_S,
        write_timeout=PATIENCE_S,
        pool_timeout=PATIENCE_S,
        httpx_kwargs=dict(PLAIN),
    )


@asynccontextmanager
async def bot_at(url: str, token: str) -> AsyncGenerator[Bot]:
    """Open a bot at an address."""
    bot = Bot(
        token,
        base_url=f"{url}/bot",
        base_file_url=f"{url}/file/bot",
        request=_request(),
        get_updates_request=_request(),
    )
    async with bot:
        yield bot


@asynccontextmanager
async def bot_of(telegram: Emulator) -> AsyncGenerator[Bot]:
    """Open a bot that has the emulator's token and addresses."""
    async with bot_at(telegram.url, telegram.token) as bot:
        assert (telegram.base_url, telegram.base_file_url) == (
            f"{telegram.url}/bot",
            f"{telegram.url}/file/bot",
        )
        yield bot


@asynccontextmanager
async def telegram_and_bot(
    *, limits: Limits | None = None, clock: ManualClock | None = None, privacy: bool = False
) -> AsyncGenerator[tuple[Emulator, Bot]]:
    """Open both; the clock stands still unless the test moves it."""
    emulator = Emulator(clock=clock or ManualClock(), limits=limits, privacy=privacy)
    async with emulator as telegram, bot_of(telegram) as bot:
        yield telegram, bot


class Answer(Value):
    """The server's answer to a call made by hand."""

    status: int
    body: dict[str, object]

    @property
    def result(self) -> object:
        """The result; the call must have been carried out."""
        assert self.body["ok"] is True, self.body
        return self.body["result"]

    @property
    def code(self) -> int:
        """The error's code, which is the status as well; the call must have been refused."""
        assert (self.body["ok"], self.body["error_code"]) == (False, self.status), self.body
        return self.status

    @property
    def description(self) -> str:
        """The reason of the refusal."""
        return str(self.body["description"])


async def call(telegram: Emulator, method: str, **values: object) -> Answer:
    """Call a method with parameters that no library has checked."""
    async with httpx.AsyncClient(timeout=None, verify=False, trust_env=False) as client:
        answer = await client.post(f"{telegram.base_url}{telegram.token}/{method}", json=values)
    return Answer(status=answer.status_code, body=answer.json())
