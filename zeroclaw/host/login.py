"""Who may use the local listener: one-time links, and the sessions that they open.

Values and steps only; nothing here waits, reads time or makes a token. A token is known by its
SHA-256 alone: it is 32 random bytes, so a hash of it can be neither guessed nor reversed, and who
reads the stored hashes can open nothing with them.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta

from zeroclaw.record import decode, encode
from zeroclaw.value import Value, field

LINK_KEPT = timedelta(days=1)
"""A link that nobody used stands in a terminal or a journal; it should not open doors for good."""
SESSION_KEPT = timedelta(days=30)
MOST_LINKS = 32
MOST_SESSIONS = 64


class Logins(Value):
    """What opens the listener now.

    Attributes:
        links: When each unused link ends, by its hash, the oldest first.
        sessions: When each session ends, by its hash, the oldest first.
    """

    links: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    sessions: Mapping[str, datetime] = field(default_factory=dict[str, datetime])


class Session(Value):
    """One session as it is stored."""

    hash: str
    ends_at: datetime


class Sessions(Value):
    """The stored part of `Logins`, the oldest first."""

    sessions: tuple[Session, ...]


def hash_of(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def with_link(logins: Logins, link: str, now: datetime) -> Logins:
    """Add a link that works once; of more than `MOST_LINKS` the oldest are dropped."""
    links = {**_standing(logins.links, now), hash_of(link): now + LINK_KEPT}
    return Logins(links=_newest(links, MOST_LINKS), sessions=logins.sessions)


def redeem(logins: Logins, link: str, session: str, now: datetime) -> Logins | None:
    """Use a link up and open `session` for it; None when the link opens nothing."""
    links = _standing(logins.links, now)
    if links.pop(hash_of(link), None) is None:
        return None
    sessions = {**_standing(logins.sessions, now), hash_of(session): now + SESSION_KEPT}
    return Logins(links=links, sessions=_newest(sessions, MOST_SESSIONS))


def is_open(logins: Logins, session: str, now: datetime) -> bool:
    """Tell whether a session holds."""
    ends_at = logins.sessions.get(hash_of(session))
    return ends_at is not None and now < ends_at


def write_sessions(logins: Logins) -> bytes:
    """Return the sessions as they are stored; links are not, each start prints a new one."""
    kept = (Session(hash=known, ends_at=at) for known, at in logins.sessions.items())
    return encode(Sessions(sessions=tuple(kept)))


def read_sessions(body: bytes) -> Logins:
    """Return the logins of a stored body.

    Raises:
        StoreUnusable: It is not one.
    """
    stored = decode(Sessions, body).sessions
    return Logins(sessions={session.hash: session.ends_at for session in stored})


def _standing(ends: Mapping[str, datetime], now: datetime) -> dict[str, datetime]:
    return {known: at for known, at in ends.items() if now < at}


def _newest(ends: Mapping[str, datetime], most: int) -> dict[str, datetime]:
    return dict(list(ends.items())[-most:])
