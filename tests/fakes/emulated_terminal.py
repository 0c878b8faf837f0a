"""A terminal with a screen and a keyboard, for prompt_toolkit; `pyte` draws it."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unicodedata import combining

import pyte
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from wcwidth import wcwidth


class EmulatedTerminal:
    """A screen with the rows that have scrolled away, and a keyboard.

    Attributes:
        keyboard: The input that programs read.
    """

    def __init__(self, keyboard: PipeInput, *, columns: int, rows: int) -> None:
        self.keyboard = keyboard
        self._screen: Any = pyte.HistoryScreen(columns, rows, history=10_000)
        self._stream: Any = pyte.Stream(self._screen)
        self._drawn = asyncio.Event()

    def output(self) -> Output:
        """Return the output that programs draw on; it has no mouse and no cursor reports."""
        return Vt100_Output(
            self,  # pyright: ignore[reportArgumentType] - of a text file it only writes and flushes
            lambda: Size(rows=self._screen.lines, columns=self._screen.columns),
            term="xterm",
            default_color_depth=ColorDepth.from_env() or ColorDepth.DEPTH_4_BIT,
            enable_cpr=False,
        )

    def write(self, data: str) -> None:
        # pyte drops the text after a sign without width; many terminals draw such a sign as nothing.
        visible = (sign for sign in data if wcwidth(sign) or combining(sign))
        self._stream.feed("".join(visible))
        self._drawn.set()

    def flush(self) -> None:
        pass

    def press(self, keys: str) -> None:
        """Press keys, all at once."""
        self.keyboard.send_text(keys)

    def resize(self, *, columns: int, rows: int) -> None:
        """Cut the rows that are too long, as xterm does, without notifying the program."""
        self._screen.resize(rows, columns)

    @property
    def rows(self) -> list[str]:
        """All rows: those that have scrolled away, and the screen's."""
        above = [
            "".join(row[column].data for column in range(self._screen.columns))
            for row in self._screen.history.top
        ]
        return [row.rstrip() for row in (*above, *self._screen.display)]

    @property
    def text(self) -> str:
        """The rows down to the last one that is not blank."""
        return "\n".join(self.rows).rstrip()

    @property
    def inverse(self) -> list[str]:
        """The inverse text of each row of the screen that has some."""
        rows = [self._screen.buffer[number] for number in range(self._screen.lines)]
        texts = [
            "".join(
                row[column].data for column in range(self._screen.columns) if row[column].reverse
            )
            for row in rows
        ]
        return [text for text in texts if text]

    @property
    def colours(self) -> set[str]:
        """The colours on the screen."""
        rows = [self._screen.buffer[number] for number in range(self._screen.lines)]
        return {row[column].fg for row in rows for column in range(self._screen.columns)}

    async def sees(self, text: str) -> None:
        """Wait until the screen shows a text."""
        while text not in self.text:
            self._drawn.clear()
            await self._drawn.wait()

    async def sees_no(self, text: str) -> None:
        """Wait until the screen does not show a text."""
        while text in self.text:
            self._drawn.clear()
            await self._drawn.wait()


@contextmanager
def emulated_terminal(*, columns: int = 80, rows: int = 24) -> Generator[EmulatedTerminal]:
    with create_pipe_input() as keyboard:
        yield EmulatedTerminal(keyboard, columns=columns, rows=rows)
