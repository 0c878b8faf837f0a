"""Downloads a model file over HTTP, and resumes an interrupted download."""

import asyncio
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from zeroclaw.errors import Refused
from zeroclaw.host.http import HttpAnswer, HttpClient, HttpFailed, HttpRequest
from zeroclaw.host.models.files import CHUNK_BYTES, PartialFile, Show
from zeroclaw.redact import without_credentials

MOST_REDIRECTS = 5
_OK, _PARTIAL, _NOT_THERE = 200, 206, 416
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


async def fetch(http: HttpClient, url: str, target: Path, *, sha256: str, show: Show) -> None:
    """Download a file into place; what an earlier try fetched is not fetched again.

    Args:
        http: Follows no redirects. They are followed here, never from https to http.
        url: Where to download it from.
        target: Where it goes; must not exist.
        sha256: Hash of the whole file, in lower case.
        show: Receives the progress.

    Raises:
        Refused: The download failed. The part that arrived is kept for the next try, unless
            it was wrong.
    """
    with await asyncio.to_thread(PartialFile, target, sha256) as part:
        await _fill(http, url, part, sha256, show)
        await asyncio.to_thread(part.finish, sha256)


async def _fill(http: HttpClient, url: str, part: PartialFile, sha256: str, show: Show) -> None:
    """Download, following redirects, until the file is complete."""
    for _ in range(MOST_REDIRECTS + 1):
        if part.size_bytes and part.sha256 == sha256:  # only the last step is missing
            return
        moved = await _once(http, url, part, show)
        if not moved:
            return
        url = _followed(url, moved)
    message = f"`{_host(url)}` sends from one address to the next; give the last one"
    raise Refused(message)


async def _once(http: HttpClient, url: str, part: PartialFile, show: Show) -> str:
    """Send one request; return the redirect's target, or an empty string when the file is complete."""
    headers = {"Accept-Encoding": "identity"}
    if part.size_bytes:
        headers["Range"] = f"bytes={part.size_bytes}-"
    try:
        async with http.open(HttpRequest(method="GET", url=url, headers=headers)) as answer:
            if answer.status in _REDIRECTS and "location" in answer.headers:
                return answer.headers["location"]
            if answer.status == _NOT_THERE and part.size_bytes:
                # Our part is longer than the file, so it belongs to another one.
                await asyncio.to_thread(part.restart)
                return url
            await _receive(answer, url, part, show)
    except HttpFailed as error:
        again = "run this again, it goes on from there" if part.size_bytes else "run this again"
        message = f"`{_host(url)}` was cut off: {error}; {again}"
        raise Refused(message) from error
    return ""


async def _receive(answer: HttpAnswer, url: str, part: PartialFile, show: Show) -> None:
    """Append an answer's body to the part."""
    begins = f"bytes {part.size_bytes}-"
    is_rest = answer.status == _PARTIAL and answer.headers.get("content-range", "").startswith(
        begins
    )
    if answer.status != _OK and not is_rest:
        message = f"`{_host(url)}` answered {answer.status} to `{urlsplit(without_credentials(url)).path}`"
        raise Refused(message)
    if not is_rest:
        await asyncio.to_thread(part.restart)
    length = answer.headers.get("content-length", "")
    total = part.size_bytes + int(length) if length.isdecimal() else None
    if total is not None:
        await asyncio.to_thread(part.needs, total)
    waiting = bytearray()
    try:
        async for chunk in answer.chunks:
            waiting += chunk
            if len(waiting) >= CHUNK_BYTES or not part.size_bytes:
                data, waiting = bytes(waiting), bytearray()
                await asyncio.to_thread(part.write, data)
                show(part.size_bytes, total)
    except HttpFailed:
        await asyncio.to_thread(part.write, bytes(waiting))
        raise
    await asyncio.to_thread(part.write, bytes(waiting))
    show(part.size_bytes, total)


def _followed(url: str, location: str) -> str:
    """Return the target of a redirect."""
    found = urljoin(url, location)
    schemes = {"https"} if urlsplit(url).scheme == "https" else {"http", "https"}
    if urlsplit(found).scheme not in schemes:
        message = f"`{_host(url)}` sends from https to `{_host(found)}`, which is not"
        raise Refused(message)
    return found


def _host(url: str) -> str:
    return urlsplit(without_credentials(url)).netloc.removeprefix("…@")
