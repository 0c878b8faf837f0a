"""Downloads a model file over HTTP, and resumes a download that was cut."""

import asyncio
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urljoin, urlsplit

from zeroclaw.errors import Refused, refused_as
from zeroclaw.host.http import REDIRECTS, HttpClient, HttpFailed, HttpRequest
from zeroclaw.host.models.gguf import is_gguf
from zeroclaw.redact import without_credentials

MAX_REDIRECTS = 5
_OK, _PARTIAL, _RANGE_NOT_SATISFIABLE = 200, 206, 416
Show = Callable[[int, int], None]
"""Called with the bytes so far, and the total."""


def check_model(path: Path, sha256: str, name: Path) -> None:
    """Check that a file, called `name` in errors, is a GGUF and has this hash, unless it is empty.

    Raises:
        Refused: It is no GGUF, has another hash, or can't be read.
    """
    with refused_as(Refused, f"`{name}` can't be used"):
        if not is_gguf(path):
            message = f"`{name}` is not a GGUF model; is it a web page?"
            raise Refused(message)
        with path.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest() if sha256 else ""
    if actual != sha256:
        message = f"`{name}` has another SHA-256 than you gave ({actual}); check both"
        raise Refused(message)


async def fetch(http: HttpClient, url: str, target: Path, *, sha256: str, show: Show) -> None:
    """Download a model into place; resumes an earlier download that was cut.

    Args:
        http: Follows no redirects. They are followed here, never from https to http.
        url: Where to download it from.
        target: The file to write; replaced if it exists.
        sha256: Hash of the whole file, in lower case.
        show: Receives the progress, if the total is known.

    Raises:
        Refused: The download failed. The part that arrived is kept for the next try, unless
            it was wrong.
    """
    part = target.with_name(f".{target.name}.{sha256[:16]}.part")
    with (
        refused_as(Refused, f"`{target.parent}` can't be used"),
        await asyncio.to_thread(_open_part, part) as file,
    ):
        for _ in range(MAX_REDIRECTS + 1):
            location = await _request(http, url, file, show)
            if not location:
                break
            url = _redirected(url, location)
        else:
            message = f"`{_host(url)}` redirects more than {MAX_REDIRECTS} times; give the last URL"
            raise Refused(message)
        await asyncio.to_thread(_finish, file, part, target, sha256)


def _open_part(part: Path) -> BinaryIO:
    part.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the data directory
    part.parent.mkdir(exist_ok=True)
    file = part.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.stat()  # it may have been moved into place before it was locked
    except (BlockingIOError, FileNotFoundError) as error:
        file.close()
        message = f"another process is downloading `{part}`; wait for it"
        raise Refused(message) from error
    return file


def _finish(file: BinaryIO, part: Path, target: Path, sha256: str) -> None:
    """Check the complete file and move it into place, while no other process can write to it."""
    file.flush()
    try:
        check_model(part, sha256, target)
    except Refused:
        part.unlink()
        raise
    os.fsync(file.fileno())
    part.replace(target)


async def _request(http: HttpClient, url: str, file: BinaryIO, show: Show) -> str:
    """Send one request; return the redirect's target, or an empty string when the file is complete."""
    done = file.tell()
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    try:
        async with http.open(HttpRequest(method="GET", url=url, headers=headers)) as answer:
            if answer.status in REDIRECTS and "location" in answer.headers:
                return answer.headers["location"]
            if done and answer.status == _RANGE_NOT_SATISFIABLE:
                return ""  # complete, or another file: its hash tells
            content_range = answer.headers.get("content-range", "")
            is_rest = answer.status == _PARTIAL and content_range.startswith(f"bytes {done}-")
            if answer.status != _OK and not is_rest:
                path = urlsplit(without_credentials(url)).path
                message = f"`{_host(url)}` answered {answer.status} to `{path}`"
                raise Refused(message)
            if not is_rest:
                done = await asyncio.to_thread(file.truncate, 0)
            length = answer.headers.get("content-length", "")
            total = done + int(length) if length.isdecimal() else None
            disk = await asyncio.to_thread(shutil.disk_usage, file.name)
            if (total or 0) - done > disk.free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            async for chunk in answer.chunks:
                done += await asyncio.to_thread(file.write, chunk)
                if total:
                    show(done, total)
    except HttpFailed as error:
        message = f"`{_host(url)}` was cut off: {error}; run this again to resume the download"
        raise Refused(message) from error
    return ""


def _redirected(url: str, location: str) -> str:
    """Return the target of a redirect."""
    target = urljoin(url, location)
    schemes = {"https"} if urlsplit(url).scheme == "https" else {"http", "https"}
    if urlsplit(target).scheme not in schemes:
        message = f"`{_host(url)}` sends to `{_host(target)}`, which is not {' or '.join(schemes)}"
        raise Refused(message)
    return target


def _host(url: str) -> str:
    return urlsplit(without_credentials(url)).netloc.removeprefix("…@")
