"""Shows growing answers as Slack streams.

A stream is a message in a thread to which chunks of text and tool progress are appended
("chat.startStream" and its sequels, docs.slack.dev, read 2026-11). A stream begun with chunks accepts
nothing else. Some workspaces and kinds of chat don't allow streams. Slack ends a stream that is silent
for half a minute or five minutes old, and marks its message as failed (slackapi/python-slack-sdk#1859,
slackapi/node-slack-sdk#2702, 2026), so each stream is ended before that. After its end the message is
an ordinary one and is edited.
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
LOOK_S = 5.0
STILL_S = 10.0
"""Seconds of silence after which running tools are reported again, to keep their stream open."""
MAX_STARTS, STARTS_S = 20, 60.0
"""Streams that may begin per period, in seconds; "chat.startStream" is tier 2."""
CLOSE_S = 2.0
_MAX_REFUSED = 1_000
_STATES: Mapping[str, str] = {"running": "in_progress", "ok": "complete", "failed": "error"}
Chunk = Mapping[str, object]


class _Stream(Struct, kw_only=True):
    """An open stream.

    Attributes:
        is_busy: A call is appending text; until it succeeds, the stream may have ended.
        tasks: The tool calls that it shows, by key: the tool and its status.
    """

    channel: str
    thread: object
    said: str
    begun_at: float
    told_at: float
    is_busy: bool = False
    tasks: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])


class Streams:
    """The open streams of one app."""

    def __init__(self, calls: Calls, context: ChannelContext, *, has_limits: bool) -> None:
        """Begin without open streams; `has_limits` says whether to respect the rate limit."""
        self._calls, self._context, self._has_limits = calls, context, has_limits
        self._open: dict[str, _Stream] = {}
        self._begun = asyncio.Event()
        self._starts: deque[float] = deque(maxlen=MAX_STARTS)
        self._refused: Recent[tuple[str, object], bool] = Recent(_MAX_REFUSED)

    async def begin(self, place: Mapping[str, object], said: str) -> str:
        """Begin a stream and return its message's id; empty if it is not allowed and nothing was sent.

        Args:
            place: The chat, thread and recipient, as arguments of the call.
            said: The first text.

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
            started = await self._calls.call("chat.startStream", {**place, "chunks": _words(said)})
        except RateLimited:  # of this method only; an ordinary message may still be posted
            return ""
        except ChannelRejected as error:
            self._context.log("stream_refused", reason=str(error), level="debug")
            self._refused[channel, thread] = True
            return ""
        ts = text(started, "ts")
        if not is_ts(ts):
            raise DeliveryUnknown(self._calls.http.unreadable)
        self._open[ts] = _Stream(channel=channel, thread=thread, said=said, begun_at=at, told_at=at)
        self._begun.set()
        return ts

    async def grow(self, ts: str, said: str, last: Mapping[str, object] | None = None) -> bool:
        """Extend a stream to a text; return False if its message has to be edited instead.

        Args:
            ts: The id of its message.
            said: The whole text.
            last: Arguments that end the stream; None while more text is to come.
        """
        stream = self._open.get(ts)
        if stream is None or stream.is_busy:
            return False
        if not said.startswith(stream.said):
            await self.stop(stream.channel, ts)
            return False
        chunks = _words(said[len(stream.said) :])
        if last is None and not chunks:
            return True
        method = "chat.appendStream" if last is None else "chat.stopStream"
        if last is not None:
            chunks += _cut_short(stream)
        more = {"chunks": chunks or None, **(last or {})}
        # If the call fails, the message's text is unknown, so the caller edits it as a whole.
        stream.is_busy, stays = True, False
        try:
            await self._calls.call(method, {"channel": stream.channel, "ts": ts, **more})
            stays = last is None
        except ChannelRejected:
            return False
        finally:
            if not stays:
                self._open.pop(ts, None)
        stream.said, stream.told_at, stream.is_busy = said, self._context.clock.monotonic(), False
        return True

    async def work(self, channel: str, thread: str, doing: Sequence[ToolProgress]) -> bool:
        """Show tool progress in a thread's stream; return False if no stream is open there.

        A failure does not affect the streamed text.
        """
        place = channel, thread
        streams = [
            (ts, one) for ts, one in self._open.items() if (one.channel, one.thread) == place
        ]
        if not streams:
            return False
        ts, stream = streams[-1]
        at = self._context.clock.monotonic()
        tasks = {one.key: (one.tool, _STATES[one.state]) for one in doing}
        changed = {key: one for key, one in tasks.items() if stream.tasks.get(key) != one}
        if not changed and stream.told_at + STILL_S <= at:
            changed = {key: one for key, one in tasks.items() if one[1] == _STATES["running"]}
        if changed:
            chunks = [_task(key, *one) for key, one in changed.items()]
            said = {"channel": channel, "ts": ts, "chunks": chunks}
            await self._calls.call("chat.appendStream", said)
            stream.tasks |= changed
            stream.told_at = at
        return True

    async def stop(self, channel: str, ts: str) -> None:
        """End a stream with its current text; one that has ended already is no error."""
        self._open.pop(ts, None)
        with suppress(ChannelRejected):
            await self._calls.call("chat.stopStream", {"channel": channel, "ts": ts})

    async def keep(self) -> None:
        """Until cancelled, end each stream before Slack does."""
        while True:
            await self._begun.wait()
            await self._context.clock.sleep(LOOK_S)
            at = self._context.clock.monotonic()
            for ts, stream in tuple(self._open.items()):
                is_old = stream.told_at + IDLE_S <= at or stream.begun_at + LIFE_S <= at
                if is_old and not stream.is_busy:
                    with suppress(ZeroclawError):  # Slack ends it then
                        await self.stop(stream.channel, ts)
            if not self._open:
                self._begun.clear()

    async def aclose(self) -> None:
        """End the open streams; after `CLOSE_S` leave the rest to Slack."""
        with suppress(TimeoutError, ZeroclawError):
            async with asyncio.timeout(CLOSE_S):
                for ts, stream in tuple(self._open.items()):
                    await self.stop(stream.channel, ts)


def _words(said: str) -> list[Chunk]:
    return [{"type": "markdown_text", "text": said}] if said else []


def _task(key: str, tool: str, status: str) -> Chunk:
    return {"type": "task_update", "id": key, "title": tool, "status": status}


def _cut_short(stream: _Stream) -> list[Chunk]:
    """Return chunks that mark a stream's unfinished tasks as failed; their results are unknown."""
    open_ones = [(key, tool) for key, (tool, at) in stream.tasks.items() if at == "in_progress"]
    return [_task(key, tool, _STATES["failed"]) for key, tool in open_ones]
