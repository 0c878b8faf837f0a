"""Requests a URL and follows redirects; every connection is checked.

For every hop the name is resolved once, every returned address is judged, and we connect to one of
these very addresses. A name that resolves differently a moment later changes nothing (DNS
rebinding).
"""

from collections.abc import Awaitable, Callable, Collection
from importlib.metadata import version

from zeroclaw.config.model import FetchSettings
from zeroclaw.errors import ToolFailed
from zeroclaw.host.http import (
    REDIRECTS,
    HttpAnswer,
    HttpClient,
    HttpConnectFailed,
    HttpFailed,
    HttpLimits,
    HttpRequest,
)
from zeroclaw.host.resolver import NameUnknown
from zeroclaw.tools import quoted
from zeroclaw.tools.fetch.body import ContentType, Decompressor, content_type
from zeroclaw.tools.fetch.target import AllowedHosts, Target, TargetRefused, redirected, refusal_of
from zeroclaw.value import Struct, Value

Resolve = Callable[[str], Awaitable[tuple[str, ...]]]

ANY_HOST = "host:*"

_USER_AGENT = f"zeroclaw/{version('zeroclaw')}"
_ACCEPT = "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.1"
_CONNECT_S = 5.0
_CONNECTIONS = 20
# Addresses of one name that we try; each may cost the connect time-out.
_TRIED_ADDRESSES = 4
_MAX_SIZE_DIGITS = 15


class Fetched(Value):
    """A response with its body.

    Attributes:
        target: The URL of the response, after all redirects.
        hops: Number of redirects followed.
        data: The decompressed body.
        is_cut: Whether the body was longer.
    """

    target: Target
    hops: int
    status: int
    type: ContentType
    data: bytes
    is_cut: bool


class RedirectElsewhere(Value):
    """A redirect to a host that the decision does not cover; `fetch` returns it."""

    target: Target
    status: int
    elsewhere: Target


def limits(settings: FetchSettings) -> HttpLimits:
    """Return the limits of an HTTP client for fetching.

    It keeps no connection alive: the pool knows a connection by its address, which other hosts may
    share.
    """
    return HttpLimits(
        connect_s=min(_CONNECT_S, settings.timeout_s),
        read_s=settings.timeout_s,
        pool_s=settings.timeout_s,
        connections=_CONNECTIONS,
        keep_alive_s=0,
    )


class FetchClient(Struct, eq=False):
    """Fetches URLs; stateless.

    Attributes:
        resolve: Raises `NameUnknown`.
        allowed: The hosts of `settings.allow`.
    """

    settings: FetchSettings
    http: HttpClient
    resolve: Resolve
    allowed: AllowedHosts

    def refusal(self, target: Target) -> str:
        """Return the reason to refuse a literal address, without asking a name server; empty for none."""
        if not target.is_address:
            return ""
        return self._objection(target, (target.host,))

    async def fetch(self, target: Target, reach: Collection[str]) -> Fetched | RedirectElsewhere:
        """Request a URL, and follow redirects that stay within `reach`.

        Raises:
            ToolFailed: With the reason, for the model.
        """
        for hops in range(self.settings.max_redirects + 1):
            answer = await self._get(target, hops)
            if isinstance(answer, Fetched):
                return answer
            if answer.elsewhere.resource not in reach and ANY_HOST not in reach:
                return answer
            target = answer.elsewhere
        limit = self.settings.max_redirects
        message = f"it was redirected more than {limit} times, at last to {quoted(target.url)}"
        raise ToolFailed(message)

    def _onward(self, target: Target, location: str) -> Target:
        try:
            return redirected(target, location, self.settings.ports)
        except TargetRefused as error:
            message = f"{quoted(target.url)} redirects to a URL that can't be fetched: a URL {error.reason}"
            raise ToolFailed(message) from error

    async def _get(self, target: Target, hops: int) -> Fetched | RedirectElsewhere:
        """Send one request, to the first address of the host that accepts the connection."""
        failure: HttpConnectFailed | None = None
        for address in (await self._addresses(target))[:_TRIED_ADDRESSES]:
            try:
                async with self.http.open(self._request(target, address)) as answer:
                    return await self._read(target, hops, answer)
            except HttpConnectFailed as error:
                failure = error
            except HttpFailed as error:
                message = f"{quoted(target.url)} could not be fetched: {error}"
                raise ToolFailed(message) from error
        message = f"{quoted(target.authority)} can't be connected to: {failure}"
        raise ToolFailed(message) from failure

    async def _addresses(self, target: Target) -> tuple[str, ...]:
        """Return the addresses of a host after judging all of them."""
        addresses = (target.host,) if target.is_address else await self._resolved(target.host)
        if reason := self._objection(target, addresses):
            raise ToolFailed(reason)
        return addresses

    async def _resolved(self, host: str) -> tuple[str, ...]:
        try:
            addresses = await self.resolve(host)
        except NameUnknown as error:
            message = f"the host {quoted(host)} can't be found: {error}"
            raise ToolFailed(message) from error
        if not addresses:
            message = f"the host {quoted(host)} has no address"
            raise ToolFailed(message)
        return addresses

    def _objection(self, target: Target, addresses: tuple[str, ...]) -> str:
        """Return the reason not to connect to a host; a single non-public address is enough.

        The address itself is not mentioned: internal names and addresses must not leak.
        """
        reasons = (refusal_of(address, target.host, self.allowed) for address in addresses)
        reason = next(filter(None, reasons), "")
        if not reason:
            return ""
        verb = "is" if target.is_address else "leads to"
        return (
            f"{quoted(target.host)} {verb} {reason}, and only public ones are fetched from"
            " unless `tools.fetch.allow` in the configuration opens them"
        )

    def _request(self, target: Target, address: str) -> HttpRequest:
        return HttpRequest(
            method="GET",
            url=target.url,
            headers={
                "User-Agent": _USER_AGENT,
                "Accept": _ACCEPT,
                "Accept-Encoding": "gzip",
                "Connection": "close",
            },
            address=address,
            is_raw=True,
        )

    async def _read(
        self, target: Target, hops: int, answer: HttpAnswer
    ) -> Fetched | RedirectElsewhere:
        """Read a response to its end, or to the cap."""
        location = answer.headers.get("location", "")
        if answer.status in REDIRECTS and location:
            onward = self._onward(target, location)
            return RedirectElsewhere(target=target, status=answer.status, elsewhere=onward)
        declared = content_type(answer.headers.get("content-type", ""))
        if declared.kind is None:
            message = (
                f"{quoted(target.url)} answered with status {answer.status} and"
                f" {quoted(declared.name, limit_chars=100)}, {_size(answer)}: only text, HTML, JSON"
                " and XML can be read"
            )
            raise ToolFailed(message)
        try:
            body = Decompressor(answer.headers.get("content-encoding", ""), self.settings.max_bytes)
        except ValueError as error:
            encoding = quoted(str(error), limit_chars=100)
            message = f"{quoted(target.url)} is packed as {encoding}, which was not requested"
            raise ToolFailed(message) from error
        async for chunk in answer.chunks:
            body.feed(chunk)
            if body.done:
                break
        body.end()
        if body.is_broken:
            message = f"{quoted(target.url)} claims to be packed with gzip, and can't be unpacked"
            raise ToolFailed(message)
        return Fetched(
            target=target,
            hops=hops,
            status=answer.status,
            type=declared,
            data=bytes(body.data),
            is_cut=body.is_full,
        )


def _size(answer: HttpAnswer) -> str:
    length = answer.headers.get("content-length", "")
    if length.isascii() and length.isdecimal() and len(length) <= _MAX_SIZE_DIGITS:
        return f"{int(length):,} bytes"
    return "of unknown size"
