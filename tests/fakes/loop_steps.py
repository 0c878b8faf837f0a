"""Counts the steps of the product, in all or per turn of the loop; the same on every machine.

A step is a call on the loop's thread that product code makes, or the start or resumption of one of its
own functions. Work of pool threads, tests and fakes is not counted.
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
    """The counts."""

    def __init__(self) -> None:
        self._longest = (0, "")
        self._turn: dict[str, int] = {}

    def taken(self) -> tuple[int, str]:
        """Return the steps of the longest turn since the last call, and its busiest function."""
        longest, self._longest = self._longest, (0, "")
        return longest

    def note(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event in {"call", "c_call"} and code.co_filename.startswith(PRODUCT):
            self._turn[code.co_qualname] = self._turn.get(code.co_qualname, 0) + 1

    def turned(self) -> None:
        """Record that a turn of the loop is over."""
        steps = sum(self._turn.values())
        if steps > self._longest[0]:
            self._longest = steps, max(self._turn, key=lambda name: self._turn[name])
        self._turn.clear()


@contextmanager
def loop_steps(monkeypatch: pytest.MonkeyPatch) -> Generator[LoopSteps]:
    """Count during this block, which is entered on the loop."""
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
    """Return the number of calls that some work makes on this thread, directly and indirectly."""
    calls = 0

    def count(_frame: FrameType, event: str, _about: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls
