"""The path of one call through the product's files: a profiler that records each file it enters.

    with Trace() as trace:
        await house.services.ingress.admit(envelope)
    assert trace.returns <= 4

A call into a file counts once, when it begins; resuming a coroutine is not a new call. Calls
below the rooms (values, codec, errors, clock, the catalogue of sentences, the store) are left out:
every room works with them.
"""

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

ROOT = Path(__file__).parents[2] / "zeroclaw"
ROOMS = ("daemon", "inbound", "turn", "gate", "delivery", "context", "host")
THE_STORE = "daemon/store_watch.py"
"""Wraps the store, which each room reads by itself."""


class Trace:
    """Records the files that calls enter, in order, in the task that entered the block."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._frames: dict[int, FrameType] = {}

    def __enter__(self) -> Self:
        sys.setprofile(self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or id(frame) in self._frames:
            return
        place = Path(frame.f_code.co_filename)
        if not place.is_relative_to(ROOT) or frame.f_code.co_name.startswith("<"):
            return
        self._frames[id(frame)] = frame
        file = place.relative_to(ROOT).as_posix()
        if file.split("/")[0] in ROOMS and file != THE_STORE:
            self.calls.append(file)

    @property
    def entered(self) -> list[str]:
        """The files that were entered from another one, in order."""
        return [file for before, file in pairwise(("", *self.calls)) if file != before]

    @property
    def most(self) -> tuple[str, int]:
        """The file that was entered most often, and how often."""
        [found] = Counter(self.entered).most_common(1)
        return found

    @property
    def returns(self) -> int:
        """The number of times that the path returned to an earlier file."""
        seen: list[str] = []
        count = 0
        for file in self.entered:
            count += file in seen
            seen.append(file)
        return count
