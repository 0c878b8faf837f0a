"""Turn what stands in the chat into what the page is sent: the frames of its stream.

The page shows Markdown itself, so `markdown` leaves a text as it is, but for one that goes out
plain, which the page shows letter by letter.
"""

import json
from collections.abc import Iterable, Mapping

from channels._local.render import Event, told
from zeroclaw import Rendered, TranscriptItem, without_markup

PING = b": ping\n\n"
"""Shows both sides that the connection stands."""


def markdown(text: str) -> Rendered:
    """Return a text as the page takes it; the plain form has its words alone."""
    return Rendered(body=text, plain=without_markup(text))


def frame(event: Event, number: int) -> bytes:
    """Return one event of the stream; `number` counts up while the daemon runs."""
    return _frame(*told(event), number)


def snapshot_frame(title: str, items: Iterable[TranscriptItem], number: int) -> bytes:
    """Return the first event of a stream: all that stands, in order."""
    shown = [told(item)[1] for item in items]
    return _frame("snapshot", {"title": title, "items": shown}, number)


def trouble_frame(why: str) -> bytes:
    """Return the event that says why there is no snapshot; the stream ends after it."""
    return _frame("trouble", {"why": why}, 0)


def _frame(name: str, data: Mapping[str, object], number: int) -> bytes:
    # ASCII only, so that no character can end a line and a lone surrogate can be sent.
    return f"event: {name}\nid: {number}\ndata: {json.dumps(data)}\n\n".encode()
