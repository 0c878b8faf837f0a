"""The halt switch: one row, so that it survives a restart."""

from datetime import datetime

from zeroclaw.codec import decode, encode
from zeroclaw.store import Put, RowKind, Rows
from zeroclaw.value import Value

KEY = "halt"


class Halt(Value):
    """Who halted everything, and when."""

    by: str
    at: datetime


def halt_put(halt: Halt | None) -> Put:
    """Return the write that turns the switch on, or off with None."""
    body = b"" if halt is None else encode(halt)
    return Put(kind=RowKind.SWITCH, key=KEY, body=body, state="off" if halt is None else "on")


async def read_halt(rows: Rows) -> Halt | None:
    """Return who halted everything and when, None when nothing is halted."""
    row = await rows.get(RowKind.SWITCH, KEY)
    return decode(Halt, row.body) if row is not None and row.state == "on" else None
