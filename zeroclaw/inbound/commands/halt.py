"""The halt switch: one row, so that it survives a restart."""

from datetime import datetime

from zeroclaw.codec import decode, encode
from zeroclaw.store import Put, RowKind, Rows
from zeroclaw.table import Codec, Column, Stays, Table, Words
from zeroclaw.value import Value

KEY = "halt"


class Halt(Value):
    """Who halted everything, and when."""

    by: str
    at: datetime


HALTS: Table[Halt | None] = Table(
    kind=RowKind.SWITCH,
    owner="inbound",
    codec=Codec(
        encode=lambda halt: b"" if halt is None else encode(halt),
        decode=lambda body: decode(Halt, body) if body else None,
    ),
    columns=frozenset({Column.STATE}),
    keeps=Stays(until="somebody halts or resumes"),
    words=Words.NOBODY,
)


def halt_put(halt: Halt | None) -> Put:
    """Return the write that turns the switch on, or off with None."""
    return HALTS.put(KEY, halt, state="off" if halt is None else "on")


async def read_halt(rows: Rows) -> Halt | None:
    """Return who halted everything and when, None when nothing is halted."""
    return await HALTS.get(rows, KEY)
