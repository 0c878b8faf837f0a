"""Which addresses a fetch may connect to: those of the public internet, and what was opened.

Python's own `is_global` changed between versions that this house runs on, so the ranges are
listed here, from IANA's special-purpose address registries (RFC 6890; read 2026-11). IPv6 is the
other way round: only 2000::/3 is handed out at all (RFC 4291), so all else is refused by that.

An address that carries another one inside (mapped, NAT64) is judged by the one that it carries.
"""

from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from zeroclaw.value import Value

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_IPV4: tuple[tuple[IPv4Network, str], ...] = (
    (IPv4Network("0.0.0.0/8"), "an unspecified address"),
    (IPv4Network("10.0.0.0/8"), "a private address"),
    (IPv4Network("100.64.0.0/10"), "an address behind a carrier's NAT"),
    (IPv4Network("127.0.0.0/8"), "a loopback address"),
    (IPv4Network("169.254.0.0/16"), "a link-local address"),
    (IPv4Network("172.16.0.0/12"), "a private address"),
    (IPv4Network("192.0.0.0/24"), "a reserved address"),
    (IPv4Network("192.0.2.0/24"), "an address for documentation"),
    (IPv4Network("192.88.99.0/24"), "a reserved address"),
    (IPv4Network("192.168.0.0/16"), "a private address"),
    (IPv4Network("198.18.0.0/15"), "an address for benchmarks"),
    (IPv4Network("198.51.100.0/24"), "an address for documentation"),
    (IPv4Network("203.0.113.0/24"), "an address for documentation"),
    (IPv4Network("224.0.0.0/4"), "a multicast address"),
    (IPv4Network("240.0.0.0/4"), "a reserved address"),
)
_IPV6: tuple[tuple[IPv6Network, str], ...] = (
    (IPv6Network("::/128"), "an unspecified address"),
    (IPv6Network("::1/128"), "a loopback address"),
    (IPv6Network("64:ff9b:1::/48"), "a private address"),  # NAT64 of one's own, RFC 8215
    (IPv6Network("2001::/32"), "a tunnel's address"),  # Teredo, RFC 4380
    (IPv6Network("2001::/23"), "a reserved address"),
    (IPv6Network("2001:db8::/32"), "an address for documentation"),
    (IPv6Network("2002::/16"), "a tunnel's address"),  # 6to4, RFC 3056
    (IPv6Network("3fff::/20"), "an address for documentation"),
    (IPv6Network("fc00::/7"), "a private address"),
    (IPv6Network("fe80::/10"), "a link-local address"),
    (IPv6Network("ff00::/8"), "a multicast address"),
)
_HANDED_OUT = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052

# Where clouds hand out credentials to whoever asks from inside. Most lie in a range above; Azure's
# is a public one.
_METADATA = frozenset(
    {
        ip_address("169.254.169.254"),  # AWS, Google, Azure, most others
        ip_address("169.254.170.2"),  # AWS, of a container
        ip_address("169.254.170.23"),
        ip_address("100.100.100.200"),  # Alibaba
        ip_address("168.63.129.16"),  # Azure's host
        ip_address("192.0.0.192"),  # Oracle
        ip_address("fd00:ec2::254"),  # AWS
        ip_address("fd00:ec2::23"),
        ip_address("fd20:ce::254"),  # Google
    }
)


class Opened(Value):
    """What the operator opened although it is not public.

    Attributes:
        networks: Addresses in them may be connected to, whatever name led there.
        names: Hosts, in lower case, that may have any address.
    """

    networks: tuple[Network, ...] = ()
    names: frozenset[str] = frozenset()


def opened(entries: Iterable[str]) -> Opened:
    """Read `allow` of the configuration: each entry an address, a network or a host's name."""
    networks: list[Network] = []
    names: set[str] = set()
    for entry in entries:
        try:
            networks.append(ip_network(entry, strict=False))
        except ValueError:
            names.add(entry.lower().rstrip("."))
    return Opened(networks=tuple(networks), names=frozenset(names))


def judge(text: str, host: str, doors: Opened) -> str:
    """Say what is against connecting to an address; empty for nothing.

    Args:
        text: The address, as a resolver gives it; what can't be read is refused.
        host: The name that led to it, in lower case.
        doors: What the operator opened. Only a door for the address alone opens one where a
            cloud hands out credentials.
    """
    try:
        address = carried(ip_address(text))
    except ValueError:
        return "not an address"
    if address in _METADATA:
        alone = any(one.num_addresses == 1 and address in one for one in doors.networks)
        return "" if alone else "where a cloud hands out credentials"
    if host in doors.names or any(address in network for network in doors.networks):
        return ""
    if isinstance(address, IPv4Address):
        return next((what for network, what in _IPV4 if address in network), "")
    if address.scope_id is not None:
        return "an address of one network interface"
    found = next((what for network, what in _IPV6 if address in network), "")
    return found or ("" if address in _HANDED_OUT else "a reserved address")


def carried(address: Address) -> Address:
    """Return the IPv4 address that a mapped or a NAT64 one stands for, else the address itself."""
    if isinstance(address, IPv6Address) and (address in _MAPPED or address in _NAT64):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address
