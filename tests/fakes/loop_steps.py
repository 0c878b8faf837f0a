"""Counts the steps of the product, at all or between two turns of the loop; no machine changes them.

A step is a call on the loop's thread that product code makes, or one of its own functions that
begins or goes on. What a thread of the pool does is not counted, nor what tests and fakes do.
"""

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import zeroclaw

PRODUCT = str(Path(zeroclaw.__file__).parent)


class LoopSteps:
    """What was counted."""

    def __init__(self) -> None:
        self._longest = (0, "")
        self._turn: dict[str, int] = {}

    def taken(self) -> tuple[int, str]:
        """The steps of the loop's longest turn since it was asked last, and what took most of them."""
        longest, self._longest = self._longest, (0, "")
        return longest

    def note(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event in {"call", "c_call"} and code.co_filename.startswith(PRODUCT):
            self._turn[code.co_qualname] = self._turn.get(code.co_qualname, 0) + 1

    def turned(self) -> None:
        """The loop's turn is over."""
        steps = sum(self._turn.values())
        if steps > self._longest[0]:
            self._longest = steps, max(self._turn, key=lambda one: self._turn[one])
        self._turn.clear()


@contextmanager
def loop_steps(monkeypatch: pytest.MonkeyPatch) -> Generator[LoopSteps]:
    """Count within this block, which is entered on the loop."""
    steps, run = LoopSteps(), asyncio.Handle._run

    def counted(handle: asyncio.Handle) -> None:
        sys.setprofile(steps.note)
        try:
            run(handle)
        finally:
            sys.setprofile(None)
            steps.turned()

    with monkeypatch.context() as patched:
        patched.setattr(asyncio.Handle, "_run", counted)
        yield steps


def calls_made(work: Callable[[], object]) -> int:
    """How many calls a piece of work makes on this thread, in all that it comes to."""
    made = 0

    def count(_frame: FrameType, event: str, _about: object) -> None:
        nonlocal made
        made += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made
