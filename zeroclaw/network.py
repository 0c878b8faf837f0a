"""How servers are reached from here: by which proxy, and whose certificates are trusted.

The environment says so, as it does to most programs: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`,
`SSL_CERT_FILE` and `SSL_CERT_DIR`.
"""

from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address
from ssl import SSLContext, create_default_context
from urllib.parse import urlsplit

from zeroclaw.errors import NoWayOut

_SCHEMES = {"ws": "http", "wss": "https"}


class Network:
    """The ways out, as they were when this was made."""

    def __init__(self, environment: Mapping[str, str], trusted: SSLContext | None = None) -> None:
        """Read which proxies there are; `trusted` are authorities in place of the environment's."""
        from urllib.request import getproxies

        self._environment = environment
        self._trusted = trusted
        self._proxies = getproxies()

    def proxy_for(self, url: str) -> str | None:
        """Return the proxy by which a server is reached; this machine is reached without one.

        Raises:
            NoWayOut: It can't be spoken to by HTTP.
        """
        if not self._proxies:
            return None
        from urllib.request import proxy_bypass

        parts = urlsplit(url)
        host, with_port = parts.hostname or "", parts.netloc.rpartition("@")[2]
        named = _SCHEMES.get(parts.scheme, parts.scheme)
        proxy = self._proxies.get(named)
        # `NO_PROXY` may name a server either way.
        if not proxy or is_this_machine(host) or any(map(proxy_bypass, (host, with_port))):
            return None
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        try:
            way = urlsplit(proxy)
            is_usable = way.scheme in _SCHEMES.values() and bool(way.hostname) and way.port != 0
        except ValueError:
            is_usable = False
        if not is_usable:  # nor repeated, it may hold a password
            example = "such as `http://proxy.example:3128`"
            message = f"`{named.upper()}_PROXY` names no proxy that speaks HTTP, {example}"
            raise NoWayOut(message)
        return proxy

    def trusted_for(self, url: str, proxy: str | None = None) -> SSLContext | bool:
        """Return who vouches for a server and for the proxy on the way, read when first needed.

        Raises:
            NoWayOut: The environment names certificates that can't be read.
        """
        if not any(one.lower().startswith(("https:", "wss:")) for one in (url, proxy or "")):
            return True  # nobody is asked; a server of one's own on this machine never needs them
        said = (self._environment.get(name, "") for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
        try:
            return self._trusted or trust(*said)
        except OSError as error:  # of which `SSLError` is one: a file that holds none
            message = f"`SSL_CERT_FILE` names certificates that can't be read ({error.strerror})"
            raise NoWayOut(message) from error


def is_this_machine(host: str) -> bool:
    """Whether a host, as it stands in an address, is this machine's own.

    So is the address of no machine, which servers are told to listen on and people then write.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return f".{host.rstrip('.')}".endswith(".localhost")  # a whole domain, by RFC 6761
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


@cache
def trust(file: str = "", folder: str = "") -> SSLContext:
    """Return the authorities of a file, of a folder, or else of Mozilla's list.

    Once for the whole process: libraries read all certificates for each pool of connections, which
    takes two thirds of a MiB and up to a twentieth of a second; and a channel or a provider that
    fails is made anew, with a pool.
    """
    if folder and not file:
        return create_default_context(capath=folder)
    import certifi

    return create_default_context(cafile=file or certifi.where())
