"""Brings a URL into its canonical form, which is judged, shown to people and requested.

Programs disagree about odd URLs, and attacks exploit that: one parser's host is another one's
password. So odd URLs are refused, and all code works with the canonical text.

We connect to addresses of the public internet, and to those that the operator allows. Python's own
`is_global` changed between versions that we support, so the ranges are listed here, from IANA's
special-purpose address registries (RFC 6890; read 2026-11). IPv6 works the other way round: only
2000::/3 is allocated (RFC 4291), and all else is refused.

An address that embeds an IPv4 address (mapped, NAT64) is judged by that one.
"""

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal
from urllib.parse import quote, urljoin, urlsplit

from zeroclaw.resource import LAST_PORT, host_form
from zeroclaw.value import Value

MAX_URL_CHARS = 4_000

_PORTS = {"http": 80, "https": 443}
_ODD = re.compile(r"[\x00-\x20\x7f-\x9f\\]")
_PORT = re.compile(r"[0-9]{1,5}")
# RFC 3986: allowed in a path or a query, and % for what is quoted already.
_UNQUOTED = "/?:@!$&'()*+,;=-._~%"


class TargetRefused(Exception):
    """Raised for a URL that is not fetched.

    Attributes:
        reason: Continues a sentence that begins with "URL"; never repeats text of the URL.
    """

    def __init__(self, *, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Target(Value):
    """A parsed URL.

    Attributes:
        scheme: `http` or `https`.
        host: A name in lower-case ASCII, or an address; IPv6 without brackets.
        port: Always set.
        path: Path and query, quoted; begins with a slash.
        is_address: Whether the host is an address and needs no resolver.
    """

    scheme: Literal["http", "https"]
    host: str
    port: int
    path: str
    is_address: bool

    @property
    def authority(self) -> str:
        """Host and port as in the URL and the Host header; the default port is omitted."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The canonical URL, in visible ASCII."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def is_plain(self) -> bool:
        """Whether it is HTTP on the default port, from where many hosts redirect to HTTPS."""
        return self.scheme == "http" and self.port == _PORTS["http"]

    @property
    def resource(self) -> str:
        """The resource's name in policy: `host:<name>:<port>`."""
        return f"host:{self.host}:{self.port}"


def read_target(url: str, ports: Collection[int]) -> Target:
    """Parse a URL and drop its fragment.

    Raises:
        TargetRefused: It is not a valid URL, is odd, is not http or https, contains a user name or
            a password, or its port is not in `ports`.
    """
    if len(url) > MAX_URL_CHARS:
        raise TargetRefused(reason=f"must be at most {MAX_URL_CHARS} characters")
    if _ODD.search(url):
        raise TargetRefused(reason="must not hold spaces, control characters or backslashes")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise TargetRefused(reason="is not a URL") from None
    scheme = parts.scheme
    if scheme not in ("http", "https"):
        raise TargetRefused(reason="must begin with http:// or https://")
    if "@" in parts.netloc:
        raise TargetRefused(reason="must not hold a user name or a password")
    host, port = _host_and_port(parts.netloc)
    name, is_address = _host(host)
    number = _PORTS[scheme] if port is None else port
    if number not in ports:
        allowed = ", ".join(map(str, sorted(ports)))
        raise TargetRefused(reason=f"must not name port {number}: allowed are {allowed}")
    target = Target(
        scheme="https" if scheme == "https" else "http",
        host=name,
        port=number,
        path=_path(parts.path, parts.query),
        is_address=is_address,
    )
    if len(target.url) > MAX_URL_CHARS:
        raise TargetRefused(reason=f"must be at most {MAX_URL_CHARS} characters once quoted")
    return target


def redirected(source: Target, location: str, ports: Collection[int]) -> Target:
    """Return the target of a redirect; a relative one is resolved against its source.

    Raises:
        TargetRefused: As for `read_target`.
    """
    # Some servers send UTF-8, which HTTP makes us read as Latin-1.
    with suppress(ValueError):
        location = location.encode("latin-1").decode("utf-8")
    try:
        return read_target(urljoin(source.url, location.strip(" \t")), ports)
    except ValueError:
        raise TargetRefused(reason="is not a URL") from None


def _host_and_port(netloc: str) -> tuple[str, int | None]:
    """Split at the last colon outside brackets."""
    host, colon, port = netloc.rpartition(":")
    if not colon or netloc.endswith("]"):
        return netloc, None
    if port == "":
        return host, None
    if not _PORT.fullmatch(port) or int(port) > LAST_PORT:
        raise TargetRefused(reason="must have a port from 1 to 65535, or none")
    return host, int(port)


def _host(host: str) -> tuple[str, bool]:
    """Return a host in canonical form, and whether it is an address."""
    try:
        name = host_form(host)
    except ValueError as error:
        raise TargetRefused(reason=str(error)) from None
    return name, ":" in name or name.rpartition(".")[2].isdigit()


def _path(path: str, query: str) -> str:
    try:
        joined = f"{path or '/'}?{query}" if query else path or "/"
        return quote(joined, safe=_UNQUOTED)
    except UnicodeEncodeError:
        raise TargetRefused(reason="holds half a character") from None


# --- addresses ----------------------------------------------------------------------------------

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# 64:ff9b:1::/48 is NAT64 for local use (RFC 8215), 2001::/32 Teredo (RFC 4380), 2002::/16 6to4 (RFC
# 3056). The first range counts that holds an address.
_RANGES: tuple[tuple[str, str], ...] = (
    ("an unspecified address", "0.0.0.0/8 ::/128"),
    ("a private address", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 64:ff9b:1::/48"),
    ("an address behind a carrier's NAT", "100.64.0.0/10"),
    ("a loopback address", "127.0.0.0/8 ::1/128"),
    ("a link-local address", "169.254.0.0/16 fe80::/10"),
    ("an address for documentation", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24"),
    ("an address for documentation", "2001:db8::/32 3fff::/20"),
    ("an address for benchmarks", "198.18.0.0/15"),
    ("a multicast address", "224.0.0.0/4 ff00::/8"),
    ("a tunnel's address", "2001::/32 2002::/16"),
    ("a reserved address", "192.0.0.0/24 192.88.99.0/24 240.0.0.0/4 2001::/23"),
)
_REFUSED = tuple((ip_network(text), name) for name, texts in _RANGES for text in texts.split())
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052

# Where clouds give credentials to any caller inside. Most lie in a range above; Azure's is a public
# address.
_METADATA = frozenset(
    {
        ip_address("169.254.169.254"),  # AWS, Google, Azure, most others
        ip_address("169.254.170.2"),  # AWS, in containers
        ip_address("169.254.170.23"),
        ip_address("100.100.100.200"),  # Alibaba
        ip_address("168.63.129.16"),  # Azure's host
        ip_address("192.0.0.192"),  # Oracle
        ip_address("fd00:ec2::254"),  # AWS
        ip_address("fd00:ec2::23"),
        ip_address("fd20:ce::254"),  # Google
    }
)


class AllowedHosts(Value):
    """The hosts that the operator allows in addition to public addresses.

    Attributes:
        networks: Networks that may be connected to, under any name.
        names: Host names, in lower case, that may have any address.
    """

    networks: tuple[Network, ...] = ()
    names: frozenset[str] = frozenset()


def read_allowed(entries: Iterable[str]) -> AllowedHosts:
    """Parse `allow` of the configuration: each entry is an address, a network or a host name."""
    networks: list[Network] = []
    names: set[str] = set()
    for entry in entries:
        try:
            networks.append(ip_network(entry, strict=False))
        except ValueError:
            names.add(entry.lower().rstrip("."))
    return AllowedHosts(networks=tuple(networks), names=frozenset(names))


def refusal_of(text: str, host: str, allowed: AllowedHosts) -> str:
    """Return the reason not to connect to an address; empty for none.

    Args:
        text: The address as the resolver returned it; refused if it can't be parsed.
        host: The name that resolved to it, in lower case.
        allowed: The allowed hosts. Metadata services need an entry for that one address.
    """
    try:
        address = embedded_address(ip_address(text))
    except ValueError:
        return "not an address"
    if address in _METADATA:
        alone = any(net.num_addresses == 1 and address in net for net in allowed.networks)
        return "" if alone else "where a cloud hands out credentials"
    if host in allowed.names or any(address in network for network in allowed.networks):
        return ""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "an address of one network interface"
    kind = next((name for network, name in _REFUSED if address in network), "")
    is_public = isinstance(address, IPv4Address) or address in _GLOBAL_UNICAST
    return kind or ("" if is_public else "a reserved address")


def embedded_address(address: Address) -> Address:
    """Return the IPv4 address that a mapped or NAT64 address embeds, else the address itself."""
    if isinstance(address, IPv6Address) and (address in _MAPPED or address in _NAT64):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address
