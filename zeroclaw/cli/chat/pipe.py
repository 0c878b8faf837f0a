"""A chat without a screen: each line of its input is sent once the previous one was answered.

A separate thread reads, because the loop can't wait for a file and a read can't be cancelled; the
thread ends with the process. A line that ends with a backslash continues in the next one.

A mark of the program is a sign at the beginning of a line. In all other text these signs are
replaced, and further lines are indented.
"""

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import suppress
from typing import TextIO

from zeroclaw.cli.chat.screen import ARGUMENTS, MARK, StyledText
from zeroclaw.cli.chat.session import Session
from zeroclaw.text.escape import without_mark_signs
from zeroclaw.value import Struct

_MAX_WAITING = 100
_REPLACEMENTS = {"┌┍┎┏╒╓╔": "╭", "└┕┖┗╘╙╚": "╰", "❌❎": "✗", "⏹": "■"}
_SIGNS = {ord(sign): other for signs, other in _REPLACEMENTS.items() for sign in signs}
"""Signs that begin the program's lines, and lookalikes, with their replacements in other texts."""


class Pipe(Struct):
    """A script's input and output.

    Attributes:
        source: The file descriptor to read.
        output: Where to write.
    """

    source: int
    output: TextIO

    def show(self, text: StyledText) -> None:
        """Write a text and flush it."""
        if text:
            self.output.write("".join(_plain(style, part) for style, part in text))
            self.output.flush()

    async def run(self, session: Session) -> None:
        """Read to the end, and wait for the last answer."""
        if not session.approves:
            async for line in lines_from(self.source):
                session.enter(line)
                await session.quiet(or_card=True)
        await session.quiet(or_card=False)


def _plain(style: str, text: str) -> str:
    if style == MARK:
        return text
    if style == ARGUMENTS:  # escaped, so that the JSON stays the same
        signs = ((sign, _without_signs(sign) == sign) for sign in text)
        return "".join(sign if is_plain else json.dumps(sign)[1:-1] for sign, is_plain in signs)
    lines = enumerate(_without_signs(text).splitlines())
    plain = "\n".join(f"  {line}" if line and at else line for at, line in lines)
    return plain + "\n" * text.endswith("\n")


def _without_signs(text: str) -> str:
    return without_mark_signs(text).translate(_SIGNS)


async def lines_from(source: int) -> AsyncGenerator[str, None]:
    """Yield each line of a file descriptor, without its line end."""
    queue: asyncio.Queue[str | None] = asyncio.Queue(_MAX_WAITING)
    loop = asyncio.get_running_loop()

    def hand_over(line: str | None) -> None:
        asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()

    threading.Thread(target=_read, args=(source, hand_over), name="reading", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line


def _read(source: int, hand_over: Callable[[str | None], None]) -> None:
    with suppress(OSError):  # the terminal was closed
        for line in joined(
            os.fdopen(source, encoding="utf-8", errors="replace", newline="\n", closefd=False)
        ):
            hand_over(line)
    with suppress(RuntimeError, asyncio.CancelledError):  # the loop has already ended
        hand_over(None)


def joined(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines without their ends, joined where one ends with a backslash."""
    message = ""
    for line in lines:
        message += line.removesuffix("\n").removesuffix("\r")
        if message.endswith("\\"):
            message = f"{message[:-1]}\n"
        else:
            yield message
            message = ""
    if message:
        yield message
