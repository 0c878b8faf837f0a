"""Where an audit chain may be cut by its age, and what of the daemon's own must be said anew."""

from collections.abc import Container, Iterable, Sequence
from datetime import datetime

from zeroclaw.gate.audit import FINAL, Anchor, Cut, Entry, read
from zeroclaw.store import LogEntry


def cut_point(chain: Sequence[LogEntry], before: datetime) -> LogEntry | None:
    """Return the last entry that may go by its age, None when nothing may.

    All that goes is older than `before`. No action is torn: one that stays stays whole, and one
    that has no end yet stays. At least one entry stays, so that counting and linking go on.

    Args:
        chain: A whole chain as it is now, in order.
        before: The age, as an instant.
    """
    known = [read(one.body) for one in chain]
    last_of: dict[str, int] = {}
    ended: set[str] = set()
    for place, written in enumerate(known):
        if isinstance(written, Entry) and written.action:
            last_of[written.action] = place
            if written.kind in FINAL:
                ended.add(written.action)
    found: LogEntry | None = None
    reach = 0  # how far the actions that have begun reach
    for place, written in enumerate(known[:-1]):
        if written.at >= before:
            break
        action = written.action if isinstance(written, Entry) else ""
        if action:
            reach = max(reach, last_of[action] if action in ended else len(known))
        if reach <= place:
            found = chain[place]
    return found


def carried(
    going: Iterable[bytes], staying: Iterable[bytes], living: Container[str]
) -> tuple[Anchor | Cut, ...]:
    """Return what the daemon's chain must say anew when its oldest entries go.

    That is the newest anchor and the newest cut of each chain that still exists, where only the
    entries that go hold them.

    Raises:
        StoreUnusable: One of the bodies is no entry.
    """
    needed: dict[tuple[type[Anchor | Cut], str], Anchor | Cut] = {}
    for body in going:
        written = read(body)
        if not isinstance(written, Entry) and written.conversation in living:
            needed[type(written), written.conversation] = written
    for body in staying:
        written = read(body)
        if not isinstance(written, Entry):
            needed.pop((type(written), written.conversation), None)
    return tuple(needed.values())
