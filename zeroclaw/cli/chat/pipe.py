"""A chat without a screen: each line of its input is sent once the one before was answered.

A separate thread reads, because a file can't be waited for and a read can't be cancelled; the
thread ends with the process. A line that ends with a backslash continues in the next one.

A mark of the program is a sign at the beginning of a line. Everything else loses these signs, and
its further lines are indented.
"""

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import suppress
from typing import TextIO

from zeroclaw.cli.chat.screen import ARGUMENTS, MARK, Shown
from zeroclaw.cli.chat.session import Session
from zeroclaw.text.escape import without_mark_signs
from zeroclaw.value import Struct

_MOST_WAITING = 100
_INSTEAD = {"┌┍┎┏╒╓╔": "╭", "└┕┖┗╘╙╚": "╰", "❌❎": "✗", "⏹": "■"}
_OWN_SIGNS = {ord(sign): instead for signs, instead in _INSTEAD.items() for sign in signs}
"""Signs that begin the program's own lines, and lookalikes, with their replacements in texts."""


class Pipe(Struct):
    """A script's input and output.

    Attributes:
        source: The file descriptor to read.
        output: Where to write.
    """

    source: int
    output: TextIO

    def show(self, shown: Shown) -> None:
        """Write a text and flush it."""
        if shown:
            self.output.write("".join(_plain(style, text) for style, text in shown))
            self.output.flush()

    async def run(self, session: Session) -> None:
        """Read to the end, and wait for the last answer."""
        if not session.approves:
            async for line in lines_from(self.source):
                session.entered(line)
                await session.quiet(or_card=True)
        await session.quiet(or_card=False)


def _plain(style: str, text: str) -> str:
    if style == MARK:
        return text
    if style == ARGUMENTS:  # escaped, so that the JSON stays the same
        kept = ((sign, _without_signs(sign) == sign) for sign in text)
        return "".join(sign if is_kept else json.dumps(sign)[1:-1] for sign, is_kept in kept)
    lines = enumerate(_without_signs(text).splitlines())
    shown = "\n".join(f"  {line}" if line and at else line for at, line in lines)
    return shown + "\n" * text.endswith("\n")


def _without_signs(text: str) -> str:
    return without_mark_signs(text).translate(_OWN_SIGNS)


async def lines_from(source: int) -> AsyncGenerator[str, None]:
    """Yield each line of a file descriptor, without its line end."""
    queue: asyncio.Queue[str | None] = asyncio.Queue(_MOST_WAITING)
    loop = asyncio.get_running_loop()

    def hand_over(line: str | None) -> None:
        asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()

    threading.Thread(target=_read, args=(source, hand_over), name="reading", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line


def _read(source: int, hand_over: Callable[[str | None], None]) -> None:
    with suppress(OSError):  # a terminal that was closed
        for line in joined(
            os.fdopen(source, encoding="utf-8", errors="replace", newline="\n", closefd=False)
        ):
            hand_over(line)
    with suppress(RuntimeError, asyncio.CancelledError):  # the loop has already ended
        hand_over(None)


def joined(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines without their ends, joined where one ends with a backslash."""
    begun = ""
    for line in lines:
        begun += line.removesuffix("\n").removesuffix("\r")
        if begun.endswith("\\"):
            begun = f"{begun[:-1]}\n"
        else:
            yield begun
            begun = ""
    if begun:
        yield begun
