"""Shows growing answers as Slack streams.

A stream is a message in a thread to which chunks of text and tool progress are appended
("chat.startStream" and the pages after it, docs.slack.dev, read 2026-11). A stream that began with
chunks accepts nothing else. Some workspaces and kinds of chat don't allow streams. Slack ends a stream
that is silent for half a minute, or five minutes old, and marks its message as failed
(slackapi/python-slack-sdk#1859, slackapi/node-slack-sdk#2702, 2026), so each stream is ended before
that. After its end the message is an ordinary one and is edited.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress

from channels._remote.fields import text
from channels.slack.calls import Calls
from channels.slack.decode import is_ts
from zeroclaw import (
    ChannelContext,
    ChannelRejected,
    DeliveryUnknown,
    RateLimited,
    Recent,
    Struct,
    ToolProgress,
    ZeroclawError,
    field,
)

IDLE_S, LIFE_S = 20.0, 240.0
"""Seconds of silence, and maximum age in seconds, after which a stream is ended."""
CHECK_S = 5.0
"""Seconds between two checks for such streams."""
REPEAT_S = 10.0
"""Seconds of silence after which running tools are reported again, to keep their stream open."""
MAX_STARTS, STARTS_S = 20, 60.0
"""Streams that may begin per period, in seconds; "chat.startStream" is tier 2."""
CLOSE_S = 2.0
"""Time limit in seconds for the end of a stream that nothing else needs: what follows counts."""
_MAX_REFUSED = 1_000
_STATES: Mapping[str, str] = {"running": "in_progress", "ok": "complete", "failed": "error"}
Chunk = Mapping[str, object]


class _Stream(Struct, kw_only=True):
    """An open stream.

    Attributes:
        text: Its text so far.
        sent_at: When the last call that appended to it was made.
        is_busy: A call is appending text; until it succeeds, the stream may have ended.
        tasks: The tool calls that it shows, by key: the tool and its status.
    """

    channel: str
    thread: object
    text: str
    began_at: float
    sent_at: float
    is_busy: bool = False
    tasks: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])


class Streams:
    """The open streams of one app."""

    def __init__(self, calls: Calls, context: ChannelContext, *, has_limits: bool) -> None:
        """Begin without open streams; `has_limits` says whether to respect the rate limit."""
        self._calls, self._context, self._has_limits = calls, context, has_limits
        self._open: dict[str, _Stream] = {}
        self._has_open = asyncio.Event()
        self._starts: deque[float] = deque(maxlen=MAX_STARTS)
        self._refused: Recent[tuple[str, object], bool] = Recent(_MAX_REFUSED)

    async def begin(self, place: Mapping[str, object], body: str) -> str:
        """Begin a stream and return its message's id; empty if it is not allowed and nothing was sent.

        Args:
            place: The chat, thread and recipient, as arguments of the call.
            body: The first text.

        Raises:
            DeliveryUnknown: The message may have been posted.
            ChannelUnavailable: It was not posted.
        """
        at = self._context.clock.monotonic()
        channel, thread = str(place["channel"]), place["thread_ts"]
        is_full = len(self._starts) == MAX_STARTS and at - self._starts[0] < STARTS_S
        if (channel, thread) in self._refused or (is_full and self._has_limits):
            return ""
        self._starts.append(at)
        try:
            started = await self._calls.call("chat.startStream", {**place, "chunks": _chunks(body)})
        except RateLimited:  # of this method only; an ordinary message may still be posted
            return ""
        except ChannelRejected as error:
            self._context.log("stream_refused", reason=str(error), level="debug")
            self._refused[channel, thread] = True
            return ""
        ts = text(started, "ts")
        if not is_ts(ts):
            raise DeliveryUnknown(self._calls.http.unreadable)
        self._open[ts] = _Stream(channel=channel, thread=thread, text=body, began_at=at, sent_at=at)
        self._has_open.set()
        return ts

    async def grow(self, ts: str, body: str, end: Mapping[str, object] | None = None) -> bool:
        """Extend a stream to a text; return False if its message has to be edited instead.

        Args:
            ts: The id of its message.
            body: The whole text.
            end: Arguments that end the stream; None while more text is to come.
        """
        stream = self._open.get(ts)
        if stream is None or stream.is_busy:
            return False
        if not body.startswith(stream.text):
            await self._leave(ts, stream)
            return False
        chunks = _chunks(body[len(stream.text) :])
        if end is None and not chunks:
            return True
        method = "chat.appendStream" if end is None else "chat.stopStream"
        if end is not None:
            chunks += _failed_tasks(stream)
        arguments = {"channel": stream.channel, "ts": ts, "chunks": chunks or None, **(end or {})}
        # If the call fails, the message's text is unknown, so the caller edits it as a whole.
        stream.is_busy, is_open = True, False
        try:
            await self._calls.call(method, arguments)
            is_open = end is None
        except ChannelRejected:
            # Slack may have stopped it for a person, and shows that the bot works until it is ended.
            await self._leave(ts, stream)
            return False
        finally:
            if not is_open:
                self._open.pop(ts, None)
        stream.text, stream.sent_at, stream.is_busy = body, self._context.clock.monotonic(), False
        return True

    async def work(self, channel: str, thread: str, doing: Sequence[ToolProgress]) -> bool:
        """Show tool progress in a thread's stream; return False if no stream is open there.

        A failure does not affect the streamed text.
        """
        place, newest_first = (channel, thread), reversed(self._open.items())
        found = [item for item in newest_first if (item[1].channel, item[1].thread) == place]
        if not found:
            return False
        at = self._context.clock.monotonic()
        tasks = {call.key: (call.tool, _STATES[call.state]) for call in doing}
        # A task ends where it began, even if the answer goes on in another stream meanwhile.
        ts, stream = max(found, key=lambda item: len(item[1].tasks.keys() & tasks.keys()))
        changed = {key: task for key, task in tasks.items() if stream.tasks.get(key) != task}
        if not changed and stream.sent_at + REPEAT_S <= at:
            changed = {key: task for key, task in tasks.items() if task[1] == _STATES["running"]}
        if changed:
            chunks = [_task(key, *task) for key, task in changed.items()]
            arguments = {"channel": channel, "ts": ts, "chunks": chunks}
            await self._calls.call("chat.appendStream", arguments)
            stream.tasks |= changed
            stream.sent_at = at
        return True

    async def stop(self, channel: str, ts: str) -> None:
        """End a stream with its current text; one that has ended already is no error."""
        self._open.pop(ts, None)
        with suppress(ChannelRejected):
            await self._calls.call("chat.stopStream", {"channel": channel, "ts": ts})

    async def keep(self) -> None:
        """Until cancelled, end each stream before Slack does."""
        while True:
            await self._has_open.wait()
            await self._context.clock.sleep(CHECK_S)
            at = self._context.clock.monotonic()
            for ts, stream in tuple(self._open.items()):
                is_old = stream.sent_at + IDLE_S <= at or stream.began_at + LIFE_S <= at
                if is_old and not stream.is_busy:
                    await self._leave(ts, stream)
            if not self._open:
                self._has_open.clear()

    async def aclose(self) -> None:
        """End the open streams; after `CLOSE_S` leave the rest to Slack."""
        async with asyncio.TaskGroup() as group:
            for ts, stream in tuple(self._open.items()):
                group.create_task(self._leave(ts, stream))

    async def _leave(self, ts: str, stream: _Stream) -> None:
        """End a stream that gets no more text; if that fails or takes too long, Slack ends it."""
        with suppress(ZeroclawError, TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self.stop(stream.channel, ts)


def _chunks(body: str) -> list[Chunk]:
    return [{"type": "markdown_text", "text": body}] if body else []


def _task(key: str, tool: str, status: str) -> Chunk:
    return {"type": "task_update", "id": key, "title": tool, "status": status}


def _failed_tasks(stream: _Stream) -> list[Chunk]:
    """Return chunks that mark a stream's unfinished tasks as failed; their results are unknown."""
    running = [key for key, (_, status) in stream.tasks.items() if status == _STATES["running"]]
    return [_task(key, stream.tasks[key][0], _STATES["failed"]) for key in running]
