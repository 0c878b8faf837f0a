"""Verifies a whole audit chain at once; the daemon does the same slice by slice."""

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from zeroclaw.gate import audit
from zeroclaw.gate.audit import Anchor, Broken, Cut, Intact

Verify = Callable[..., Intact | Broken]


def checker(room: Mapping[str, object]) -> Verify:
    """Return a check by the functions of `gate.audit`, or of a mutant of it."""
    begin = cast("Callable[[Iterable[Anchor | Cut]], audit.Walk]", room["begin"])
    take = cast("Callable[[audit.Walk, Iterable[bytes]], None]", room["take"])
    end = cast("Callable[[audit.Walk], Intact | Broken]", room["end"])

    def check(bodies: Iterable[bytes], marks: Iterable[Anchor | Cut] = ()) -> Intact | Broken:
        walk = begin(marks)
        take(walk, bodies)
        return end(walk)

    return check


verify = checker(vars(audit))
"""Checks bodies in order of sequence against the chain's marks, its first entry included."""
