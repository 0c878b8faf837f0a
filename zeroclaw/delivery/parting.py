"""Cut a text into messages while others go on."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from zeroclaw.delivery.split import Fits, Piece, cutting

T = TypeVar("T")

AT_ONCE_CHARS = 4096
"""Of a text that is worked on in the event loop; that many take it some 10 ms."""


async def off_loop(work: Callable[[], T], *, chars: int) -> T:
    """Do work on a text of so many characters; in a thread when it is long, for others must not wait."""
    return work() if chars <= AT_ONCE_CHARS else await asyncio.to_thread(work)


async def parted(markdown: str, fits: Fits) -> tuple[str, ...]:
    """Return what `split` does; between two texts that are measured others have their turn.

    A channel renders what it measures, which for a long answer full of markup takes longer than a
    press of a button should wait. The lines of a long text are read in a thread.
    """
    work = cutting(markdown)
    try:
        if len(markdown) > AT_ONCE_CHARS:
            asked = await asyncio.to_thread(next, work)  # it asks: only an empty text is done yet
        else:
            asked = next(work)
        while True:
            is_room = fits(asked)
            await asyncio.sleep(0)
            asked = work.send(is_room)
    except StopIteration as done:
        found: tuple[Piece, ...] = done.value
        return tuple(piece.text for piece in found if piece.text)
