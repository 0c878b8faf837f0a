# What is used of slack-sdk 3.47, whose own annotations leave its answers untyped.
import ssl as _ssl
from collections.abc import Mapping, Sequence

import aiohttp

class AsyncSlackResponse:
    data: object
    headers: Mapping[str, str]
    status_code: int

class AsyncWebClient:
    def __init__(
        self,
        *,
        base_url: str,
        timeout: int,
        session: aiohttp.ClientSession,
        ssl: _ssl.SSLContext,
        retry_handlers: Sequence[object],
    ) -> None: ...
    async def api_call(
        self,
        api_method: str,
        *,
        data: Mapping[str, str] | None,
        json: Mapping[str, object] | None,
        headers: Mapping[str, str],
    ) -> AsyncSlackResponse: ...
