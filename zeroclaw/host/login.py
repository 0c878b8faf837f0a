"""Who may use the local listener: one-time links, and the sessions that they open.

Pure values and functions; nothing here waits, reads time or makes a token. Only the SHA-256 of a
token is stored. A token is 32 random bytes, so its hash can be neither guessed nor reversed, and a
reader of the stored hashes can't log in with them.

The secret path above all applications is stored with them. It grants nothing by itself. Browsers
send a session cookie to every port of this machine, but only for the cookie's path, and no other
program knows this one.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from zeroclaw.clock import still_holds
from zeroclaw.codec import decode, encode
from zeroclaw.value import Value, field, replace

LINK_LIFETIME = timedelta(days=1)
"""An unused link stays in a terminal or a journal, so it must expire."""
SESSION_LIFETIME = timedelta(days=30)
MAX_LINKS = 32
MAX_SESSIONS = 64


class Logins(Value):
    """The links and sessions that are valid now.

    Attributes:
        path: The secret path, without slashes; empty until it is created.
        links: Expiry of each unused link by its hash, oldest first.
        sessions: Expiry of each session by its hash, oldest first.
    """

    path: str = ""
    links: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    sessions: Mapping[str, datetime] = field(default_factory=dict[str, datetime])


class Session(Value):
    """One session as it is stored."""

    hash: str
    ends_at: datetime


class Sessions(Value):
    """The stored part of `Logins`, oldest first; early releases had no path."""

    sessions: tuple[Session, ...]
    path: str = ""


def hash_of(token: str) -> str:
    """Return the hash of a token, which is stored in its place."""
    return hashlib.sha256(token.encode()).hexdigest()


def with_link(logins: Logins, link: str, now: datetime) -> Logins:
    """Add a link that works once; beyond `MAX_LINKS` the oldest are dropped."""
    links = {**_valid(logins.links, LINK_LIFETIME, now), hash_of(link): now + LINK_LIFETIME}
    return replace(logins, links=_newest(links, MAX_LINKS))


def redeem(logins: Logins, link: str, session: str, now: datetime) -> Logins | None:
    """Use up a link and open `session` with it; None if the link is not valid."""
    links = _valid(logins.links, LINK_LIFETIME, now)
    if links.pop(hash_of(link), None) is None:
        return None
    valid = _valid(logins.sessions, SESSION_LIFETIME, now)
    sessions = {**valid, hash_of(session): now + SESSION_LIFETIME}
    return replace(logins, links=links, sessions=_newest(sessions, MAX_SESSIONS))


def without(logins: Logins, sessions: Iterable[str]) -> Logins:
    """End these sessions."""
    ended = {hash_of(session) for session in sessions}
    remaining = {hash_: at for hash_, at in logins.sessions.items() if hash_ not in ended}
    return replace(logins, sessions=remaining)


def is_open(logins: Logins, sessions: Iterable[str], now: datetime) -> bool:
    """Whether any of these sessions is valid.

    A program on another port can set a cookie of the same name, which must not log the browser out.
    """
    ends = (logins.sessions.get(hash_of(session)) for session in sessions)
    return any(end is not None and still_holds(end, SESSION_LIFETIME, now) for end in ends)


def write_sessions(logins: Logins) -> bytes:
    """Return the sessions as bytes to store; links are not stored, as each start prints a new one."""
    sessions = (Session(hash=hash_, ends_at=at) for hash_, at in logins.sessions.items())
    return encode(Sessions(sessions=tuple(sessions), path=logins.path))


def read_sessions(body: bytes) -> Logins:
    """Parse stored sessions.

    Sessions stored without a path are dropped: browsers sent their cookies to every port.

    Raises:
        StoreUnusable: The bytes are not stored sessions.
    """
    stored = decode(Sessions, body)
    if not stored.path:
        return Logins()
    sessions = {session.hash: session.ends_at for session in stored.sessions}
    return Logins(path=stored.path, sessions=sessions)


def _valid(ends: Mapping[str, datetime], lifetime: timedelta, now: datetime) -> dict[str, datetime]:
    return {hash_: at for hash_, at in ends.items() if still_holds(at, lifetime, now)}


def _newest(ends: Mapping[str, datetime], count: int) -> dict[str, datetime]:
    return dict(list(ends.items())[-count:])
