"""Turn the bytes of a server-sent event stream into events.

    bytes ── lines (ended by LF, CRLF or CR, nothing else) ── fields ── a blank line ── event

The framing follows the WHATWG HTML standard, section 9.2.6 (read 2026-11). Left out on purpose:
`id` and `retry`, which only matter to a client that reconnects, and a model's stream is never
resumed. Added on purpose: `finish` delivers a last event whose blank line is missing, because
several model servers omit it.
"""

import re

from zeroclaw.errors import StreamBroken
from zeroclaw.value import Value

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""Limit on an event's data bytes, and on a single line. The largest events seen are whole tool calls
with a file in their arguments; this leaves room for those and keeps a hostile endpoint from filling
memory."""
_LINE_BYTES = 40
"""Added to the size of a data line: about what Python needs for it besides its bytes."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Complete events of one data line each, which model streams nearly always are. Possessive
# quantifiers: no backtracking.
_PLAIN = re.compile(rb"(?:data: ?+[^\r\n]*+\n\n)+")
_PLAIN_DATA = re.compile(rb"data: ?([^\r\n]*)\n\n")


class SseEvent(Value):
    """One dispatched event.

    Attributes:
        data: The `data` lines joined by LF; undecodable bytes become U+FFFD.
        name: The `event` field, empty if there was none.
    """

    data: str
    name: str = ""


class SseState(Value):
    """The parser's state between two chunks; starts as `SseState()`.

    Attributes:
        rest: The bytes of an incomplete line.
        data: The data lines of the current event.
        data_bytes: Their total size.
        name: The current event's name so far.
        at_start: No line has ended yet, so a byte order mark may come.
        after_cr: The last chunk ended in CR; a LF that follows belongs to it.
    """

    rest: bytes = b""
    data: tuple[bytes, ...] = ()
    data_bytes: int = 0
    name: str = ""
    at_start: bool = True
    after_cr: bool = False

    @property
    def unread_bytes(self) -> int:
        """The size of the event that is incomplete."""
        return self.data_bytes + len(self.rest)


def feed(state: SseState, chunk: bytes) -> tuple[SseState, tuple[SseEvent, ...]]:
    """Parse the next bytes; return the new state and the events that they complete, in order.

    The events do not depend on how the stream was split into chunks.

    Raises:
        StreamBroken: An event or a line is larger than `MAX_EVENT_BYTES`.
    """
    if not chunk:
        return state, ()
    if state.after_cr:
        chunk = chunk.removeprefix(b"\n")
    at = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1  # so that a long line is searched once
    whole, rest = (state.rest + chunk[:at], chunk[at:]) if at else (b"", state.rest + chunk)
    is_between_events = not (state.data or state.name or rest)
    if is_between_events and len(whole) <= MAX_EVENT_BYTES and _PLAIN.fullmatch(whole):
        found = [SseEvent(data=raw.decode(errors="replace")) for raw in _PLAIN_DATA.findall(whole)]
        return SseState(at_start=False), tuple(found)
    if len(rest) > MAX_EVENT_BYTES:
        raise _too_large()
    # `bytes.splitlines` knows exactly the three line ends of the standard, unlike `str.splitlines`.
    return _parse_lines(state, whole.splitlines(), rest, after_cr=chunk.endswith(b"\r"))


def finish(state: SseState) -> tuple[SseEvent, ...]:
    """Return the events that the end of the stream completes: none, or the last one."""
    _, events = _parse_lines(state, [state.rest, b""] if state.rest else [b""], b"")
    return events


def _parse_lines(
    state: SseState, lines: list[bytes], rest: bytes, *, after_cr: bool = False
) -> tuple[SseState, tuple[SseEvent, ...]]:
    """Parse whole lines, given without their ends; `rest` is the incomplete last line."""
    size, name = state.data_bytes, state.name
    data, events = [*state.data], list[SseEvent]()
    if max(map(len, lines), default=0) > MAX_EVENT_BYTES:
        raise _too_large()
    if state.at_start and lines:
        lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
    for line in lines:
        if not line:
            if data:
                text = b"\n".join(data).decode(errors="replace")
                events.append(SseEvent(data=text, name=name))
            data, size, name = [], 0, ""
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            size += len(value) + _LINE_BYTES  # each chunk copies the list of them
            if size > MAX_EVENT_BYTES:
                raise _too_large()
            data.append(value)
        elif field == b"event":
            name = value.decode(errors="replace")
        # Comments have an empty field name; the standard ignores unknown fields too.
    after = SseState(
        rest=rest,
        data=tuple(data),
        data_bytes=size,
        name=name,
        at_start=state.at_start and not lines,
        after_cr=after_cr,
    )
    return after, tuple(events)


def _too_large() -> StreamBroken:
    message = f"the stream holds an event of more than {MAX_EVENT_BYTES} bytes"
    return StreamBroken(message)
