"""Who may use the local listener: one-time links, and the sessions that they open.

Values and steps only; nothing here waits, reads time or makes a token. A token is known by its
SHA-256 alone: it is 32 random bytes, so a hash of it can be neither guessed nor reversed, and who
reads the stored hashes can open nothing with them.

Beside them stands the secret path that everything is served below. It opens nothing: a browser
sends the cookie of a session to every port of this machine, but only for the cookie's path, and
this one no other program knows.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from zeroclaw.codec import decode, encode
from zeroclaw.value import Value, field, replace

LINK_KEPT = timedelta(days=1)
"""An unused link stands in a terminal or a journal; it should not open doors for good."""
SESSION_KEPT = timedelta(days=30)
MOST_LINKS = 32
MOST_SESSIONS = 64


class Logins(Value):
    """What opens the listener now.

    Attributes:
        path: What everything is served below, without slashes; empty until it is made.
        links: When each unused link ends, by its hash, the oldest first.
        sessions: When each session ends, by its hash, the oldest first.
    """

    path: str = ""
    links: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    sessions: Mapping[str, datetime] = field(default_factory=dict[str, datetime])


class Session(Value):
    """One session as it is stored."""

    hash: str
    ends_at: datetime


class Sessions(Value):
    """The stored part of `Logins`, the oldest first; a path came with a later release."""

    sessions: tuple[Session, ...]
    path: str = ""


def hash_of(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def with_link(logins: Logins, link: str, now: datetime) -> Logins:
    """Add a link that works once; of more than `MOST_LINKS` the oldest are dropped."""
    links = {**_standing(logins.links, now), hash_of(link): now + LINK_KEPT}
    return replace(logins, links=_newest(links, MOST_LINKS))


def redeem(logins: Logins, link: str, session: str, now: datetime) -> Logins | None:
    """Use a link up and open `session` for it; None when the link opens nothing."""
    links = _standing(logins.links, now)
    if links.pop(hash_of(link), None) is None:
        return None
    sessions = {**_standing(logins.sessions, now), hash_of(session): now + SESSION_KEPT}
    return replace(logins, links=links, sessions=_newest(sessions, MOST_SESSIONS))


def without(logins: Logins, sessions: Iterable[str]) -> Logins:
    """End these sessions."""
    ended = {hash_of(session) for session in sessions}
    left = {known: at for known, at in logins.sessions.items() if known not in ended}
    return replace(logins, sessions=left)


def is_open(logins: Logins, sessions: Iterable[str], now: datetime) -> bool:
    """Tell whether one of these sessions holds.

    A program on another port can put a cookie of our name beside ours, which must not log us out.
    """
    ends = (logins.sessions.get(hash_of(session)) for session in sessions)
    return any(ends_at is not None and now < ends_at for ends_at in ends)


def write_sessions(logins: Logins) -> bytes:
    """Return the sessions as they are stored; links are not, each start prints a new one."""
    kept = (Session(hash=known, ends_at=at) for known, at in logins.sessions.items())
    return encode(Sessions(sessions=tuple(kept), path=logins.path))


def read_sessions(body: bytes) -> Logins:
    """Return the logins of a stored body.

    Sessions from before there was a path have ended: browsers sent their cookies to every port.

    Raises:
        StoreUnusable: It is not one.
    """
    stored = decode(Sessions, body)
    if not stored.path:
        return Logins()
    sessions = {session.hash: session.ends_at for session in stored.sessions}
    return Logins(path=stored.path, sessions=sessions)


def _standing(ends: Mapping[str, datetime], now: datetime) -> dict[str, datetime]:
    return {known: at for known, at in ends.items() if now < at}


def _newest(ends: Mapping[str, datetime], most: int) -> dict[str, datetime]:
    return dict(list(ends.items())[-most:])
