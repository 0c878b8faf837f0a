"""Reads typed or piped input line by line, concurrently with the event loop.

A separate thread reads, because a file can't be waited for and a terminal read can't be cancelled;
the thread ends with the process. A line that ends with a backslash continues in the next one. On a
terminal, lines that come faster than anybody types were pasted.
"""

import asyncio
import codecs
import os
import select
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from zeroclaw.value import Value

_CHUNK_BYTES = 65_536
_MOST_WAITING = 100
_PASTE_S = 0.05
"""Longest time between two lines of a pasted text."""


class Typed(Value):
    """A line, without its line end; a pasted one was not typed for what is on the screen."""

    text: str
    is_pasted: bool = False


class Interrupted(Value):
    """Ctrl-C."""


class Resized(Value):
    """The window has a new size, or the program was stopped: what is above the cursor is unknown."""

    columns: int
    rows: int


class Ended(Value):
    """Ctrl-D, or the end of the pipe; no event follows."""


Event = Typed | Interrupted | Resized | Ended


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
    with _signals(descriptor, queue, loop):
        thread.start()
        while True:
            event = await queue.get()
            yield event
            if isinstance(event, Ended):
                return


def _read(descriptor: int, hand_over: Callable[[Event], None]) -> None:
    is_terminal = os.isatty(descriptor)
    is_pasted = False  # the lines of the newest chunk

    def chunks() -> Iterator[bytes]:
        nonlocal is_pasted
        is_next = False
        # A terminal gives one line at a time, however many have been pasted.
        for chunk in iter(partial(os.read, descriptor, _CHUNK_BYTES), b""):
            was_next = is_next
            is_next = is_terminal and bool(select.select((descriptor,), (), (), _PASTE_S)[0])
            is_pasted = was_next or is_next
            yield chunk

    with suppress(OSError):  # a terminal that was closed
        for line in lines_in(chunks()):
            hand_over(Typed(text=line, is_pasted=is_pasted))
    with suppress(RuntimeError, asyncio.CancelledError):  # the loop has already ended
        hand_over(Ended())


@contextmanager
def _signals(
    descriptor: int, queue: asyncio.Queue[Event], loop: asyncio.AbstractEventLoop
) -> Generator[None]:
    """Turn Ctrl-C and a new size into events while the block runs, if the input is a terminal."""
    if not os.isatty(descriptor):
        yield
        return

    def put(event: Callable[[], Event]) -> None:
        if not queue.full():
            queue.put_nowait(event())

    def resized() -> Event:
        size = os.get_terminal_size(descriptor)
        return Resized(columns=size.columns, rows=size.lines)

    # After a stop, others have written to the screen, and no signal told of a new size.
    events = {signal.SIGINT: Interrupted, signal.SIGWINCH: resized, signal.SIGCONT: resized}
    for number, event in events.items():
        loop.add_signal_handler(number, put, event)
    try:
        yield
    finally:
        for number in events:
            loop.remove_signal_handler(number)
