"""Reads what is typed, or comes through a pipe, line by line, beside the event loop.

A thread of its own reads, because a file can't be waited for and a terminal read can't be
cancelled; it ends with the process. A line that ends with a backslash goes on in the next one.
"""

import asyncio
import codecs
import os
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager

from zeroclaw.value import Value

_CHUNK_BYTES = 65_536
_MOST_WAITING = 100


class Typed(Value):
    """A line, without its end."""

    text: str


class Interrupted(Value):
    """Ctrl-C."""


class Ended(Value):
    """Ctrl-D, or the end of the pipe; nothing follows."""


Event = Typed | Interrupted | Ended


class Lines:
    """Cuts bytes into lines; a step at a time, so that it can be tested without a terminal."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        self._begun = ""

    def feed(self, chunk: bytes) -> tuple[str, ...]:
        """Return the lines that are whole now."""
        *whole, self._rest = (self._rest + self._decoder.decode(chunk)).split("\n")
        return tuple(text for line in whole if (text := self._joined(line)) is not None)

    def end(self) -> tuple[str, ...]:
        """Return what stands at the end without a line end."""
        last = self._begun + self._rest + self._decoder.decode(b"", final=True)
        return (last,) if last else ()

    def _joined(self, line: str) -> str | None:
        line = line.removesuffix("\r")
        if line.endswith("\\"):
            self._begun += line[:-1] + "\n"
            return None
        text, self._begun = self._begun + line, ""
        return text


async def typed(descriptor: int) -> AsyncGenerator[Event, None]:
    """Yield what comes from a file descriptor, and `Ended` last."""
    queue: asyncio.Queue[Event] = asyncio.Queue(_MOST_WAITING)
    loop = asyncio.get_running_loop()

    def hand_over(event: Event) -> None:
        asyncio.run_coroutine_threadsafe(queue.put(event), loop).result()

    thread = threading.Thread(
        target=_read, args=(descriptor, hand_over), name="keyboard", daemon=True
    )
    with _interrupts(descriptor, queue, loop):
        thread.start()
        while True:
            event = await queue.get()
            yield event
            if isinstance(event, Ended):
                return


def _read(descriptor: int, hand_over: Callable[[Event], None]) -> None:
    lines = Lines()
    try:
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            for line in lines.feed(chunk):
                hand_over(Typed(text=line))
        for line in lines.end():
            hand_over(Typed(text=line))
    except OSError:  # a terminal that was closed
        lines.end()
    try:
        hand_over(Ended())
    except (RuntimeError, asyncio.CancelledError):
        return  # the loop has ended before


@contextmanager
def _interrupts(
    descriptor: int, queue: asyncio.Queue[Event], loop: asyncio.AbstractEventLoop
) -> Generator[None]:
    """Turn Ctrl-C into an event while the block runs, on a terminal."""
    if not os.isatty(descriptor):
        yield
        return

    def interrupted() -> None:
        if not queue.full():
            queue.put_nowait(Interrupted())

    loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
