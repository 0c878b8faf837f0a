"""Reads a URL into the one form in which it is judged, shown to people, and asked for.

Programs disagree about odd URLs, and attacks live on that: what one takes for the host another
takes for a password. So whatever is odd is refused, and everybody gets the canonical text.
"""

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Literal
from urllib.parse import quote, urljoin, urlsplit

from zeroclaw.resource import LAST_PORT, host_form
from zeroclaw.value import Value

MAX_URL_CHARS = 4_000

_PORTS = {"http": 80, "https": 443}
_ODD = re.compile(r"[\x00-\x20\x7f-\x9f\\]")
_PORT = re.compile(r"[0-9]{1,5}")
# RFC 3986: what may stand in a path or a query, with % of what is quoted already.
_KEPT = "/?:@!$&'()*+,;=-._~%"


class TargetRefused(Exception):
    """Raised for a URL that is not fetched.

    Attributes:
        why: Follows the word "URL"; repeats nothing of it.
    """

    def __init__(self, *, why: str) -> None:
        super().__init__(why)
        self.why = why


class Target(Value):
    """A URL, taken apart.

    Attributes:
        scheme: `http` or `https`.
        host: A name in lower case and ASCII, or an address; IPv6 without brackets.
        port: Always given.
        path: With the query, quoted; begins with a slash.
        is_address: The host is an address and needs no resolver.
    """

    scheme: Literal["http", "https"]
    host: str
    port: int
    path: str
    is_address: bool

    @property
    def authority(self) -> str:
        """Host and port as the URL and the Host header hold them; the usual port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The canonical URL, in visible ASCII."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def is_plain(self) -> bool:
        """It is plain HTTP on its usual port, from where a host may send on to its TLS."""
        return self.scheme == "http" and self.port == _PORTS["http"]

    @property
    def resource(self) -> str:
        """What policy calls it: `host:<name>:<port>`."""
        return f"host:{self.host}:{self.port}"


def read_target(url: str, ports: Collection[int]) -> Target:
    """Take a URL apart; the fragment is dropped.

    Raises:
        TargetRefused: It is none, is odd, is not http or https, holds a user name or a password,
            or asks for a port that is not among `ports`.
    """
    if len(url) > MAX_URL_CHARS:
        raise TargetRefused(why=f"must be at most {MAX_URL_CHARS} characters")
    if _ODD.search(url):
        raise TargetRefused(why="must not hold spaces, control characters or backslashes")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise TargetRefused(why="is not a URL") from None
    scheme = parts.scheme
    if scheme not in ("http", "https"):
        raise TargetRefused(why="must begin with http:// or https://")
    if "@" in parts.netloc:
        raise TargetRefused(why="must not hold a user name or a password")
    host, port = _host_and_port(parts.netloc)
    name, is_address = _host(host)
    number = _PORTS[scheme] if port is None else port
    if number not in ports:
        allowed = ", ".join(str(one) for one in sorted(ports))
        raise TargetRefused(why=f"must not name port {number}: allowed are {allowed}")
    target = Target(
        scheme="https" if scheme == "https" else "http",
        host=name,
        port=number,
        path=_path(parts.path, parts.query),
        is_address=is_address,
    )
    if len(target.url) > MAX_URL_CHARS:
        raise TargetRefused(why=f"must be at most {MAX_URL_CHARS} characters with all signs quoted")
    return target


def redirected(source: Target, location: str, ports: Collection[int]) -> Target:
    """Return where a redirect leads; a relative one is taken from its source.

    Raises:
        TargetRefused: As `read_target` does.
    """
    # Sent as UTF-8 by some servers, and read as Latin-1 as HTTP says.
    with suppress(ValueError):
        location = location.encode("latin-1").decode("utf-8")
    try:
        return read_target(urljoin(source.url, location.strip(" \t")), ports)
    except ValueError:
        raise TargetRefused(why="is not a URL") from None


def _host_and_port(netloc: str) -> tuple[str, int | None]:
    """Split at the last colon that no bracket holds."""
    host, colon, port = netloc.rpartition(":")
    if not colon or netloc.endswith("]"):
        return netloc, None
    if port == "":
        return host, None
    if not _PORT.fullmatch(port) or int(port) > LAST_PORT:
        raise TargetRefused(why="must have a port from 1 to 65535, or none")
    return host, int(port)


def _host(host: str) -> tuple[str, bool]:
    """Return a host in its one form, and whether it is an address."""
    try:
        name = host_form(host)
    except ValueError as error:
        raise TargetRefused(why=str(error)) from None
    return name, ":" in name or name.rpartition(".")[2].isdigit()


def _path(path: str, query: str) -> str:
    try:
        whole = f"{path or '/'}?{query}" if query else path or "/"
        return quote(whole, safe=_KEPT)
    except UnicodeEncodeError:
        raise TargetRefused(why="holds half a character") from None
