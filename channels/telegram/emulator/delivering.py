"""Sends updates to a webhook, one after another, again and again until it takes them."""

import asyncio
import json
from collections.abc import Callable
from urllib.parse import urlsplit

from channels.telegram.emulator.account import Account, Webhook
from channels.telegram.emulator.polling import Polling
from channels.telegram.emulator.updates import Update
from channels.telegram.emulator.webhooks import LONGEST_RETRY_S
from zeroclaw import Clock

ANSWERED_WITHIN_S = 60
_SUCCESS = range(200, 300)


class Delivering:
    """Delivers while a webhook is set."""

    def __init__(
        self, *, account: Account, polling: Polling, clock: Clock, note: Callable[[], None]
    ) -> None:
        """Hold what is needed; `note` is called at every change."""
        self._account = account
        self._polling = polling
        self._clock = clock
        self._note = note
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Look again: an update came, or what holds has changed."""
        self._woken.set()

    async def run(self) -> None:
        """Deliver until cancelled."""
        delay_s = 1.0
        while True:
            webhook, waiting = self._account.webhook, self._account.updates.waiting
            if webhook is None or not waiting or self._polling.held:
                await self._woken.wait()
                self._woken.clear()
                continue
            update = waiting[0]
            update.deliveries += 1
            error = await _posted(webhook, update)
            if not error:
                self._account.updates.confirm_one(update)
                delay_s = 1.0
            else:
                self._account.webhook_error = (int(self._clock.now().timestamp()), error)
            self._note()
            if error:
                await self._clock.sleep(delay_s)
                delay_s = min(delay_s * 2, LONGEST_RETRY_S)


async def _posted(webhook: Webhook, update: Update) -> str:
    """Post one update; return why it was not taken, empty when it was."""
    try:
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            status = await _post(webhook, json.dumps(update.to_json()).encode())
    except TimeoutError:
        return "Read timeout expired"
    except (OSError, EOFError, ValueError) as error:
        return f"Connection failed: {error}"
    return "" if status in _SUCCESS else f"Wrong response from the webhook: {status}"


async def _post(webhook: Webhook, body: bytes) -> int:
    """Post a body; return the status of the answer."""
    parts = urlsplit(webhook.url)
    is_safe = parts.scheme == "https"
    port = parts.port or (443 if is_safe else 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [
        f"POST {target} HTTP/1.1",
        f"host: {parts.netloc}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
    ]
    if webhook.secret:
        lines.append(f"x-telegram-bot-api-secret-token: {webhook.secret}")
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=is_safe or None)
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await writer.drain()
        first = (await reader.readuntil(b"\r\n")).split(b" ")
        return int(first[1])
    except IndexError:
        return 0
    finally:
        writer.close()
