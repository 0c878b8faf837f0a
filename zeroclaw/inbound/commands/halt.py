"""The halt switch: one row, so that it survives a restart."""

from datetime import UTC, datetime

from zeroclaw.codec import decode, encode
from zeroclaw.store import Put, RowKind, Rows
from zeroclaw.table import Codec, Column, Stays, Table, Words
from zeroclaw.value import Value

KEY = "halt"


class Halt(Value):
    """Who halted everything, and when.

    Attributes:
        over: The halt has ended. It still ends turns that began before it, if a kill came first.
    """

    by: str
    at: datetime
    over: bool = False


NEVER = Halt(by="", at=datetime.min.replace(tzinfo=UTC), over=True)
HALTS = Table(
    kind=RowKind.SWITCH,
    codec=Codec(
        encode=encode,
        # Earlier releases stored nothing about a halt that was over.
        decode=lambda body: decode(Halt, body) if body else NEVER,
    ),
    columns=frozenset({Column.STATE}),
    keeps=Stays(until="somebody halts or resumes"),
    words=Words.NOBODY,
)


def halt_put(halt: Halt) -> Put:
    """Return the write that turns the switch on, or off if the halt is over."""
    return HALTS.put(KEY, halt, state="off" if halt.over else "on")


async def last_halt(rows: Rows) -> Halt:
    """Return the newest halt, even if it is over."""
    return await HALTS.get(rows, KEY) or NEVER


async def read_halt(rows: Rows) -> Halt | None:
    """Return who halted everything and when, None when nothing is halted."""
    last = await last_halt(rows)
    return None if last.over else last
