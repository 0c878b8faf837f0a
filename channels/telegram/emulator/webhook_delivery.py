"""Posts updates to a webhook, repeating each until it is accepted, and only then the next one.

Each chat has a queue of its own, and so has each person who presses buttons. Queues don't wait for each
other while there are free connections (tdlib/telegram-bot-api, WebhookActor.cpp, read 2026-11). After
the webhook is set again, all queues are tried at once.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from channels.telegram.emulator.account import Account, Webhook
from channels.telegram.emulator.polling import Polling
from channels.telegram.emulator.updates import Update
from channels.telegram.emulator.webhooks import LONGEST_RETRY_S
from zeroclaw import Clock, Value

ANSWERED_WITHIN_S = 60
_SUCCESS = range(200, 300)
_RETRY_AFTER = b"retry-after:"


class _Failure(Value):
    """Why an update was not accepted, and the wait that the bot asked for, 0 for none."""

    reason: str
    retry_after_s: int = 0


class WebhookDelivery:
    """Delivers updates while a webhook is set."""

    def __init__(
        self, *, account: Account, polling: Polling, clock: Clock, on_change: Callable[[], None]
    ) -> None:
        """Deliver nothing yet; `note` is called at every change."""
        self._account = account
        self._polling = polling
        self._clock = clock
        self._on_change = on_change
        self._woken = asyncio.Event()
        self._posting: set[str] = set()
        self._resting: dict[str, Webhook] = {}
        self._delays: dict[str, float] = {}
        self._posts: set[asyncio.StreamWriter] = set()

    def wake(self) -> None:
        """Check again, after a new update or another change."""
        self._woken.set()

    def cut(self) -> None:
        """Cut the connections of all running posts."""
        for post in self._posts:
            post.transport.abort()

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                webhook = self._account.webhook
                if webhook is not None and not self._polling.on_hold:
                    for update in self._due(webhook):
                        self._posting.add(_queue(update))
                        group.create_task(self._deliver(webhook, update))
                await self._woken.wait()
                self._woken.clear()

    def _due(self, webhook: Webhook) -> Iterator[Update]:
        """Yield the first update of each queue that is neither posting nor waiting for a retry."""
        seen: set[str] = set()
        for update in list(self._account.updates.waiting):
            queue = _queue(update)
            is_first = queue not in seen
            seen.add(queue)
            is_free = queue not in self._posting and self._resting.get(queue) is not webhook
            if is_first and is_free and len(self._posting) < webhook.connections:
                yield update

    async def _deliver(self, webhook: Webhook, update: Update) -> None:
        queue = _queue(update)
        update.deliveries += 1
        self._on_change()
        failure = await _posted(webhook, update, self._posts)
        self._posting.discard(queue)
        if failure is None:
            self._account.updates.confirm_one(update)
            self._delays.pop(queue, None)
            self._on_change()
            return
        self._account.webhook_error = (int(self._clock.now().timestamp()), failure.reason)
        if self._account.webhook is webhook:
            self._resting[queue] = webhook
        delay_s = self._delays.get(queue, 1.0)
        self._delays[queue] = min(delay_s * 2, LONGEST_RETRY_S)
        self._on_change()
        await self._clock.sleep(failure.retry_after_s or delay_s)
        if self._resting.get(queue) is webhook:
            del self._resting[queue]
        self.wake()


def _queue(update: Update) -> str:
    """Return an update's queue: that of its chat, or that of the person for a press."""
    body = update.body
    if update.kind == "callback_query":
        return f"by {_id(body.get('from'))}"
    chat = _id(body.get("chat"))
    return f"in {chat}" if chat else f"alone {update.id}"


def _id(value: object) -> object:
    return value.get("id") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # of JSON


async def _posted(
    webhook: Webhook, update: Update, posts: set[asyncio.StreamWriter]
) -> _Failure | None:
    """Post one update; return the failure, None if it was accepted."""
    try:
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            body = json.dumps(update.to_json()).encode()
            status, retry_after_s = await _post(webhook, body, posts)
    except TimeoutError:
        return _Failure(reason="Read timeout expired")
    except (OSError, EOFError, ValueError) as error:
        return _Failure(reason=f"Connection failed: {error}")
    if status in _SUCCESS:
        return None
    reason = f"Wrong response from the webhook: {status}"
    return _Failure(reason=reason, retry_after_s=retry_after_s)


async def _post(webhook: Webhook, body: bytes, posts: set[asyncio.StreamWriter]) -> tuple[int, int]:
    """Post a body; return the answer's status and its `Retry-After` in seconds."""
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
    posts.add(writer)
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        wait = next((line for line in head if line.startswith(_RETRY_AFTER)), _RETRY_AFTER + b"0")
        return int(head[0].split(b" ")[1]), int(wait.removeprefix(_RETRY_AFTER))
    except IndexError:
        return 0, 0
    finally:
        posts.remove(writer)
        writer.close()
