"""Reads typed or piped input line by line, concurrently with the event loop.

A separate thread reads, because a file can't be waited for and a terminal read can't be cancelled;
the thread ends with the process. A line that ends with a backslash continues in the next one.
"""

import asyncio
import codecs
import os
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from zeroclaw.value import Value

_CHUNK_BYTES = 65_536
_MOST_WAITING = 100


class Typed(Value):
    """A line, without its line end."""

    text: str


class Interrupted(Value):
    """Ctrl-C."""


class Ended(Value):
    """Ctrl-D, or the end of the pipe; no event follows."""


Event = Typed | Interrupted | Ended


def lines_in(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield each complete line, and at the end a last line without a line end."""
    rest = begun = ""
    for text in codecs.iterdecode(chunks, "utf-8", errors="replace"):
        *whole, rest = (rest + text).split("\n")
        for line in (one.removesuffix("\r") for one in whole):
            if line.endswith("\\"):
                begun += line[:-1] + "\n"
            else:
                yield begun + line
                begun = ""
    if begun or rest:
        yield begun + rest


async def typed(descriptor: int) -> AsyncGenerator[Event, None]:
    """Yield events from a file descriptor, `Ended` last."""
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
    with suppress(OSError):  # a terminal that was closed
        for line in lines_in(iter(partial(os.read, descriptor, _CHUNK_BYTES), b"")):
            hand_over(Typed(text=line))
    with suppress(RuntimeError, asyncio.CancelledError):  # the loop has already ended
        hand_over(Ended())


@contextmanager
def _interrupts(
    descriptor: int, queue: asyncio.Queue[Event], loop: asyncio.AbstractEventLoop
) -> Generator[None]:
    """Turn Ctrl-C into an event while the block runs, if the input is a terminal."""
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
