"""An HTTP client that plays answers, in virtual time."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from zeroclaw.host.http import HttpAnswer, HttpFailed, HttpRequest

# Bytes arrive, seconds pass, an error is raised.
Part = bytes | float | HttpFailed


@dataclass(frozen=True, kw_only=True)
class Played:
    """One answer."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    parts: tuple[Part, ...] = ()


class FakeHttp:
    """`HttpClient` over a list of answers; an error in it is raised when the request is sent."""

    def __init__(self, *answers: Played | HttpFailed) -> None:
        self.answers = list(answers)
        self.requests: list[HttpRequest] = []
        self.sent_at: list[float] = []
        self.open_answers = 0
        self.read_to_the_end = 0
        self.unread = 0
        self.closed = 0

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncGenerator[HttpAnswer, None]:
        self.requests.append(request)
        self.sent_at.append(asyncio.get_running_loop().time())
        answer = self.answers.pop(0)
        if isinstance(answer, HttpFailed):
            raise answer
        self.open_answers += 1
        try:
            yield HttpAnswer(
                status=answer.status,
                headers=answer.headers,
                chunks=self._chunks(answer),
                unread=self._unread,
            )
        finally:
            self.open_answers -= 1

    async def aclose(self) -> None:
        self.closed += 1

    @contextmanager
    def _unread(self) -> Generator[None]:
        self.unread += 1
        yield

    async def _chunks(self, answer: Played) -> AsyncGenerator[bytes, None]:
        for part in answer.parts:
            if isinstance(part, HttpFailed):
                raise part
            if isinstance(part, bytes):
                yield part
            else:
                await asyncio.sleep(part)
        self.read_to_the_end += 1
