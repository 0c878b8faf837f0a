"""How to reach servers: through which proxy, and which certificate authorities to trust.

The environment decides, as for most programs: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`,
`SSL_CERT_FILE` and `SSL_CERT_DIR`.
"""

import errno
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from ipaddress import ip_address
from pathlib import Path
from ssl import SSLContext, create_default_context
from urllib.parse import urlsplit

from zeroclaw.errors import NoWayOut

InThread = Callable[[Callable[[], SSLContext]], Awaitable[SSLContext]]
"""Runs a blocking function off the event loop: `asyncio.to_thread`."""
_SECURE = re.compile("https:|wss:", re.IGNORECASE)
_SCHEMES = {"ws": "http", "wss": "https"}


class Network:
    """The proxy and trust settings, as they were when this was created."""

    def __init__(
        self, environment: Mapping[str, str], in_thread: InThread, trusted: SSLContext | None = None
    ) -> None:
        """Read the proxy settings; `trusted` replaces the authorities named by the environment."""
        from urllib.request import getproxies

        self._environment = environment
        self._in_thread = in_thread
        self._trusted = trusted
        self._proxies = getproxies()

    def proxy_for(self, url: str) -> str | None:
        """Return the proxy for a URL, None for a direct connection; this machine never needs one.

        Raises:
            NoWayOut: The proxy does not speak HTTP.
        """
        if not self._proxies:
            return None
        from urllib.request import proxy_bypass

        parts = urlsplit(url)
        host, with_port = parts.hostname or "", parts.netloc.rpartition("@")[2]
        scheme = _SCHEMES.get(parts.scheme, parts.scheme)
        proxy = self._proxies.get(scheme)
        # `NO_PROXY` may name a server with or without its port.
        if not proxy or is_this_machine(host) or any(map(proxy_bypass, (host, with_port))):
            return None
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        try:
            uri = urlsplit(proxy)
            is_usable = uri.scheme in _SCHEMES.values() and bool(uri.hostname) and uri.port != 0
        except ValueError:
            is_usable = False
        if not is_usable:  # the message leaves the value out: it may contain a password
            example = "such as `http://proxy.example:3128`"
            message = f"`{scheme.upper()}_PROXY` names no proxy that speaks HTTP, {example}"
            raise NoWayOut(message)
        return proxy

    async def trusted_for(self, url: str, proxy: str | None = None) -> SSLContext | bool:
        """Return the trusted authorities for a server and its proxy, loaded on first use.

        Raises:
            NoWayOut: The certificates can't be read.
        """
        if not any(map(_SECURE.match, (url, proxy or ""))):
            return True  # no TLS, so don't load the certificates
        if self._trusted is None:
            file, folders = map(self._environment.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))
            try:
                self._trusted = await self._in_thread(partial(trust, file or "", folders or ""))
            except OSError as error:  # includes `SSLError`: the file contains no certificates
                name = "SSL_CERT_FILE" if file else "SSL_CERT_DIR" if folders else "certifi"
                message = f"`{name}` names certificates that can't be read ({error.strerror})"
                raise NoWayOut(message) from error
        return self._trusted


def is_this_machine(host: str) -> bool:
    """Whether a URL's host is this machine.

    The unspecified address counts too: servers are told to listen on it, and people copy it.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return f".{host.rstrip('.')}".endswith(".localhost")  # a whole domain, by RFC 6761
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


@cache
def trust(file: str = "", folders: str = "") -> SSLContext:
    """Return the authorities of a file, of directories, or else of Mozilla's list.

    Cached for the whole process. Libraries load all certificates for each connection pool, which
    takes two thirds of a MiB and up to a twentieth of a second, and a channel or provider that
    fails is recreated with a new pool.

    Raises:
        OSError: The file has no certificates or can't be read, or no directory exists.
    """
    if folders and not file:
        # OpenSSL looks into them only when it checks a certificate, and passes over missing ones.
        if not any(Path(folder).is_dir() for folder in folders.split(":")):
            raise NotADirectoryError(errno.ENOTDIR, "no such directory")
        return create_default_context(capath=folders)
    import certifi

    return create_default_context(cafile=file or certifi.where())
