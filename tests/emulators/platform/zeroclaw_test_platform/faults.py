"""The faults that a test can plan for the next calls."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from zeroclaw.value import Value


class TooMany(Value):
    """Not carried out: too many requests."""

    retry_after_s: float


class Refuse(Value):
    """Not carried out, for good; `gone`: no such message, `markup`: unreadable, plain text may pass."""

    why: Literal["rejected", "gone", "markup", "unauthorized"] = "rejected"


class Unavailable(Value):
    """Not carried out; the platform says to come back later."""


class Lose(Value):
    """The connection is cut before the answer, after or before the call was carried out."""

    carried_out: bool


@dataclass(eq=False, kw_only=True)
class Hang:
    """The call waits until the test releases it, before or after it is carried out.

    Attributes:
        carried_out: It has its effect first, and only the answer waits.
    """

    carried_out: bool = False
    _open: asyncio.Event = field(default_factory=asyncio.Event)
    _reached: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let this call and all later ones go on."""
        self._open.set()

    async def reached(self) -> None:
        """Wait until a call waits here."""
        await self._reached.wait()

    async def wait(self) -> None:
        """Hold a call; for the platform."""
        self._reached.set()
        await self._open.wait()


Fault = TooMany | Refuse | Unavailable | Lose | Hang
