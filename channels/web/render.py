"""Turns the chat's items and events into the frames of the page's event stream.

The page renders Markdown itself, so `markdown` leaves the text as it is. Only the plain form, which
the page shows literally, has its markup removed.
"""

import json
from collections.abc import Iterable, Mapping

from channels._local.render import Event, event_data
from zeroclaw import Rendered, TranscriptItem, without_markup


def markdown(text: str) -> Rendered:
    """Return a text as it is for the page, and without markup as its plain form."""
    return Rendered(body=text, plain=without_markup(text))


def frame(event: Event) -> bytes:
    """Return the frame of an event."""
    return _frame(*event_data(event))


def snapshot_frame(title: str, items: Iterable[TranscriptItem]) -> bytes:
    """Return the first frame of a stream: all items, in order."""
    data = [event_data(item)[1] for item in items]
    return _frame("snapshot", {"title": title, "items": data})


def trouble_frame(reason: str) -> bytes:
    """Return the frame with the reason for a missing snapshot; the stream ends after it."""
    return _frame("trouble", {"why": reason})


def _frame(name: str, data: Mapping[str, object]) -> bytes:
    # JSON escapes both characters that end a line of a stream (HTML standard, 9.2.6).
    text = json.dumps(data, ensure_ascii=False)
    # Only a lone surrogate has no UTF-8; Python's escape for it is that of JSON.
    return f"event: {name}\ndata: {text}\n\n".encode(errors="backslashreplace")
