"""The library's connection, with two of its habits mended: it logs bodies, and reads without end.

What it can't read it writes into the log, whole, where other people's messages may stand in it; and
it takes any JSON for an answer of the Bot API, so that an odd one breaks whoever called.
"""

import json
import os
import ssl
from collections.abc import Mapping
from functools import cache
from typing import cast

import certifi
from telegram.error import TelegramError
from telegram.request import BaseRequest, HTTPXRequest

from channels.telegram.fields import Json, as_object, inner, number, text

LONGEST_WAIT_S = 24 * 3600.0
"""What a server asks for beyond a day is no wait, but a fault of it."""
UNSTATED_WAIT_S = 1.0
"""What is waited where a server refuses a call as one too many, and does not say for how long."""
_TOO_MANY = 429


@cache
def trust() -> ssl.SSLContext:
    """Return what is trusted, as the library would make it, but once for the whole process.

    The library reads all certificates for each pool, which takes two thirds of a MiB and a
    twentieth of a second of everybody's time; and a channel that fails is made anew, with a pool.
    """
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and folder:
        return ssl.create_default_context(capath=folder)
    return ssl.create_default_context(cafile=file or certifi.where())


class Connection(HTTPXRequest):
    """One pool of connections to a Bot API server."""

    def __init__(
        self,
        *,
        connection_pool_size: int,
        connect_timeout: float,
        read_timeout: float,
        write_timeout: float,
        pool_timeout: float,
    ) -> None:
        """Open nothing yet; see `HTTPXRequest` for the arguments, all times in seconds."""
        super().__init__(
            connection_pool_size=connection_pool_size,
            connect_timeout=connect_timeout,
            read_timeout=read_timeout,
            write_timeout=write_timeout,
            pool_timeout=pool_timeout,
            httpx_kwargs={"verify": trust()},
        )

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, object]:
        """Read an answer; what is said of an odd one holds nothing of it.

        Raises:
            TelegramError: It is none of a Bot API server.
        """
        try:
            found = as_object(cast("object", json.loads(payload)))
        except (ValueError, RecursionError):
            found = as_object(None)
        if "result" not in found and found.get("ok") is not False:
            message = "invalid server response"
            raise TelegramError(message)
        return {
            **found,
            "parameters": _parameters(found),
            "description": text(found, "description"),
        }

    async def start_of_file(self, url: str, most: int) -> tuple[int, bytes]:
        """Get a status, and a body up to its bound and perhaps a little further."""
        read = bytearray()
        # Packed, a small body could unpack to any size at once.
        headers = {"User-Agent": self.USER_AGENT, "Accept-Encoding": "identity"}
        async with self._client.stream("GET", url, headers=headers) as answer:
            async for piece in answer.aiter_raw():
                read += piece
                if len(read) > most:
                    break
            return answer.status_code, bytes(read)


class Download(BaseRequest):
    """Gets files as the library gets them, its errors included, but no more than a bound of each."""

    def __init__(self, connection: Connection, *, most: int) -> None:
        """Hold the connection, which stays its owner's; `most` counts bytes."""
        self._connection = connection
        self._most = most

    @property
    def read_timeout(self) -> float | None:
        """The connection's, in seconds."""
        return self._connection.read_timeout

    async def initialize(self) -> None:
        """Do nothing; the connection is open."""

    async def shutdown(self) -> None:
        """Do nothing; the connection is not ours."""

    async def do_request(self, url: str, *_: object, **__: object) -> tuple[int, bytes]:
        """Get a file; see `BaseRequest.do_request`, of which nothing else is asked for here."""
        return await self._connection.start_of_file(url, self._most)


def _parameters(found: Json) -> Mapping[str, object]:
    """Return what the library may read of the parameters of a refusal."""
    given = inner(found, "parameters")
    moved, wait_s = given.get("migrate_to_chat_id"), number(given, "retry_after")
    if isinstance(moved, int):
        return {"migrate_to_chat_id": moved}
    if wait_s is None and found.get("error_code") != _TOO_MANY:
        return {}
    if wait_s is None or not wait_s > 0:
        return {"retry_after": UNSTATED_WAIT_S}
    return {"retry_after": min(wait_s, LONGEST_WAIT_S)}
