"""Turn what stands in the chat into what the page is sent: the frames of its stream.

The page shows Markdown itself, so `markdown` leaves a text as it is, but for one that goes out
plain, which the page shows letter by letter.
"""

import json
from collections.abc import Iterable, Mapping

from channels._local.render import Event, Gone, Item, Typing, fields
from zeroclaw import CheckedReceipt, Rendered, escape_invisible, without_markup


def markdown(text: str) -> Rendered:
    """Return a text as the page takes it; the plain form has its words alone."""
    return Rendered(body=text, plain=without_markup(text))


def frame(event: Event, number: int) -> bytes:
    """Return one event of the stream; `number` counts up while the daemon runs."""
    match event:
        case Item():
            return _frame("item", _item(event), number)
        case Gone():
            return _frame("gone", {"id": event.id}, number)
        case Typing():
            return _frame("typing", {}, number)
        case _:
            message = f"the page is answered by HTTP, not by `{type(event).__name__}`"
            raise TypeError(message)


def snapshot_frame(title: str, items: Iterable[Item], number: int) -> bytes:
    """Return the first event of a stream: all that stands, in order."""
    return _frame("snapshot", {"title": title, "items": [_item(item) for item in items]}, number)


def trouble_frame(why: str) -> bytes:
    """Return the event that says why there is no snapshot; the stream ends after it."""
    return _frame("trouble", {"why": why}, 0)


PING = b": ping\n\n"
"""Shows both sides that the connection stands."""


def _frame(name: str, data: Mapping[str, object], number: int) -> bytes:
    # ASCII only, so that no character can end a line and a lone surrogate can be sent.
    return f"event: {name}\nid: {number}\ndata: {json.dumps(data)}\n\n".encode()


def _item(item: Item) -> dict[str, object]:
    shown = fields(item)
    if item.plain:
        shown["plain"] = True
    if item.files:
        shown["files"] = list(item.files)
    if item.sent is not None:
        shown["sent"] = {"name": item.sent.name, "size": item.sent.size_bytes}
    if item.receipts:
        shown["receipts"] = [_receipt(one) for one in item.receipts]
    return shown


def _receipt(one: CheckedReceipt) -> dict[str, object]:
    verdict = "earlier" if one.earlier else "valid"
    return {"verdict": verdict, "line": escape_invisible(one.line()), "token": one.token}
