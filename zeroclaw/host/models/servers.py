"""Asks model servers for their models, with short time-outs and without following redirects."""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing, suppress
from urllib.parse import urlsplit

from zeroclaw.config.model import endpoint_url
from zeroclaw.errors import ZeroclawError
from zeroclaw.host.http import HttpFailed, HttpLimits, HttpRequest, http_client, read_answer
from zeroclaw.host.models.listing import USUAL, Server, models_in
from zeroclaw.redact import without_credentials

LOOPBACK_S = 1.0
"""For servers on this machine: they answer even while they load a model."""
LIMITS = HttpLimits(connect_s=5.0, read_s=10.0)
LARGEST_BYTES = 1_000_000
_OK = 200


class NoOffer(ZeroclawError):
    """Raised when a server did not list its models; the text says why.

    Attributes:
        status: HTTP status of its answer; None if it did not answer.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def address_of(base_url: str) -> str:
    """Return the address of a server, without a slash at its end.

    Raises:
        NoOffer: It is not the address of an endpoint.
    """
    try:
        return endpoint_url(base_url.rstrip("/"))
    except ValueError as error:
        message = f"`{without_credentials(base_url)}`: {error}"
        raise NoOffer(message) from error


async def offers_of(base_url: str, *, api_key: str = "", within_s: float = 10.0) -> Server:
    """Ask one server for its models.

    Args:
        base_url: Up to and including `/v1`.
        api_key: Empty for none.
        within_s: Seconds for the whole answer.

    Raises:
        NoOffer: It did not answer, or its answer is no list of models.
    """
    base_url = address_of(base_url)
    safe_url = without_credentials(base_url)
    name = urlsplit(safe_url).netloc.removeprefix("…@")
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    request = HttpRequest(method="GET", url=f"{base_url}/models", headers=headers)
    try:
        async with asyncio.timeout(within_s), aclosing(http_client(LIMITS)) as http:
            status, body = await read_answer(http, request, max_bytes=LARGEST_BYTES)
    except TimeoutError as error:
        message = f"`{name}` did not list its models within {within_s:g} s"
        raise NoOffer(message) from error
    except HttpFailed as error:
        message = f"`{name}` can't be reached: {error}"
        raise NoOffer(message) from error
    models = models_in(body) if status == _OK else None
    if models is None:
        answer = f"answered {status}" if status != _OK else "answered with no list of models"
        message = f"`{name}` {answer}; is `{safe_url}` the address including `/v1`?"
        raise NoOffer(message, status=status)
    return Server(name=USUAL.get(base_url, name), base_url=base_url, models=models)


async def on_loopback(addresses: Iterable[str]) -> tuple[Server, ...]:
    """Ask all these servers at once; return those that offer a model, in the given order."""
    servers: dict[str, Server] = {}
    base_urls = tuple(addresses)

    async def ask(base_url: str) -> None:
        with suppress(NoOffer):
            servers[base_url] = await offers_of(base_url, within_s=LOOPBACK_S)

    async with asyncio.TaskGroup() as group:
        for base_url in base_urls:
            group.create_task(ask(base_url), name=f"ask {base_url}")
    return tuple(servers[url] for url in base_urls if url in servers and servers[url].models)
