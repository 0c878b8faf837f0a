"""Writes events to stderr, one redacted line each, without ever blocking the daemon.

The caller's thread formats a line, and another thread writes it, from a bounded queue. If stderr is
not read, lines are dropped and counted, and the count is logged; the daemon never waits (P9). A
line that a library repeats within a second is dropped and counted, too: without a free descriptor,
asyncio logs a traceback for each connection that it might accept.
"""

import logging
import sys
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from queue import SimpleQueue
from threading import Thread
from typing import Literal, TextIO

from zeroclaw.host.answers import Trouble
from zeroclaw.text.escape import as_json

Redact = Callable[[str], str]
Fields = dict[str, object]
LineForm = Literal["json", "lines"]
Level = Literal["debug", "info", "warning", "error"]

_LEVELS = {name.lower(): level for name, level in logging.getLevelNamesMapping().items()}
_FIELDS = "zeroclaw_fields"
_MAX_SCANNED_CHARS = 65_536  # text beyond this is dropped unread
_MAX_VALUE_CHARS = 2_000
_MAX_LINE_CHARS = 16_000
_MAX_QUEUED_LINES = 10_000
_MAX_TROUBLES = 50
_MAX_TROUBLE_CHARS = 500
_TRACES = logging.Formatter()
_REPEATED_S = 1.0
_CLOSING_S = 1.0  # a stalled reader must not hang the exit


class EventLog:
    """Logs the events of one room; a `Log`.

    `log("turn_finished", turn=id)`: the event is snake_case, in the past tense, followed by its
    fields; no message bodies above debug. The field `level` (debug, info, warning, error) sets the
    level; info by default.
    """

    def __init__(self, room: str) -> None:
        self._logger = logging.getLogger(f"zeroclaw.{room}")

    def __call__(self, event: str, /, **fields: object) -> None:
        """Log one event; never waits, never raises."""
        level = _LEVELS.get(str(fields.pop("level", "info")), logging.INFO)
        logger, extra = self._logger, {_FIELDS: fields}
        if logger.isEnabledFor(level):
            # Not `Logger.log`: it looks up its caller's file and line.
            record = logger.makeRecord(logger.name, level, "", 0, event, (), None, extra=extra)
            logger.handle(record)


def set_up(
    *, redact: Redact, form: LineForm = "lines", level: Level = "info", stream: TextIO | None = None
) -> Callable[[], None]:
    """Send all log records to `stream`, replacing any earlier set-up.

    Args:
        redact: Removes known secrets and secret patterns; applied to every text of a line,
            tracebacks included, before the text is cut.
        form: `json` for machines, `lines` for people.
        level: Lowest level of zeroclaw's records; libraries are logged from warning on.
        stream: `sys.stderr` if None.

    Returns:
        A function that writes the queued lines and stops; safe twice, as `logging` calls it at exit
        too.
    """
    handler = _Handler(stream or sys.stderr, redact, form)
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("zeroclaw").setLevel(_LEVELS[level])
    return handler.close


def troubles() -> tuple[Trouble, ...]:
    """Return the newest warnings and errors since `set_up`, at most 50, newest last."""
    handlers = logging.getLogger().handlers
    return next((it.troubles() for it in handlers if isinstance(it, _Handler)), ())


class _Handler(logging.Handler):
    """Formats on the calling thread, writes on another; keeps the newest warnings in memory."""

    def __init__(self, stream: TextIO, redact: Redact, form: LineForm) -> None:
        super().__init__()
        self._redact = redact
        self._form = form
        self._troubles: deque[Trouble] = deque(maxlen=_MAX_TROUBLES)
        self._stream = stream
        self._lines: SimpleQueue[str | None] = SimpleQueue()  # bounded in `emit`
        self._dropped = 0
        self._foreign, self._foreign_at = ("", ""), 0.0
        self._thread = Thread(target=self._write_all, name="zeroclaw-log", daemon=True)
        self._thread.start()

    def troubles(self) -> tuple[Trouble, ...]:
        """Return the newest warnings; `copy` is atomic with respect to other threads."""
        return tuple(self._troubles.copy())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if not record.name.startswith("zeroclaw"):
                before, self._foreign = self._foreign, (record.name, record.getMessage())
                if before == self._foreign and 0 <= record.created - self._foreign_at < _REPEATED_S:
                    self._dropped += 1
                    return
                self._foreign_at = record.created
            head, fields = self._parts(record)
            line = _json(head, fields) if self._form == "json" else _as_line(head, fields)
            if record.levelno >= logging.WARNING:
                self._troubles.append(_trouble(_as_line(head, fields), record))
        except (TypeError, ValueError, KeyError, AttributeError):
            # The arguments don't fit the format. Omit the text, because it was not redacted.
            line = f"log_record_broken logger={record.name}"
        if self._lines.qsize() < _MAX_QUEUED_LINES:
            self._lines.put(line)
        else:
            self._dropped += 1

    def close(self) -> None:
        self._lines.put(None)
        self._thread.join(timeout=_CLOSING_S)
        super().close()

    def _parts(self, record: logging.LogRecord) -> tuple[Fields, Fields]:
        """Return the head that every line has, and the other fields; each text is redacted, then cut."""
        at = datetime.fromtimestamp(record.created, UTC)
        head: Fields = {
            "at": f"{at:%Y-%m-%dT%H:%M:%S}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "room": record.name,
            "event": self._clean(record.getMessage()),
        }
        raw_fields: Fields = getattr(record, _FIELDS, {})
        fields = {name: self._value(value) for name, value in raw_fields.items()}
        if record.exc_info:
            fields["trace"] = self._clean(_TRACES.formatException(record.exc_info))
        return head, fields

    def _value(self, value: object) -> object:
        return value if isinstance(value, int | float | None) else self._clean(str(value))

    def _clean(self, text: str) -> str:
        redacted = self._redact(text[:_MAX_SCANNED_CHARS])
        if len(redacted) <= _MAX_VALUE_CHARS:
            return redacted
        return f"{redacted[:_MAX_VALUE_CHARS]}… ({len(text)} characters)"

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            dropped, self._dropped = self._dropped, 0
            notice = f"log_lines_dropped count={dropped}\n" if dropped else ""
            try:
                self._stream.write(f"{notice}{line}\n")
                self._stream.flush()
            except (OSError, ValueError):  # a full disk may have room later
                self._dropped += dropped + 1


def _json(head: Fields, fields: Fields) -> str:
    """Return one JSON object: `at`, `level`, `room`, `event`, then the fields."""
    text = as_json({**head, **fields, **head})
    if len(text) <= _MAX_LINE_CHARS:
        return text
    return as_json({**head, "fields_too_long": len(text)})


def _as_line(head: Fields, fields: Fields) -> str:
    """Return `2026-01-01T12:00:00.000Z warning zeroclaw.stores event field=value …`."""
    parts = [*map(str, head.values())]
    for name, value in fields.items():
        text = str(value)
        plain = text and text.isprintable() and " " not in text and '"' not in text
        parts.append(f"{name}={text if plain else as_json(text)}")
    return " ".join(" ".join(parts).splitlines())[:_MAX_LINE_CHARS]


def _trouble(line: str, record: logging.LogRecord) -> Trouble:
    _at, level, text = line.split(" ", 2)
    if len(text) > _MAX_TROUBLE_CHARS:
        text = f"{text[:_MAX_TROUBLE_CHARS]}…"
    return Trouble(at=datetime.fromtimestamp(record.created, UTC), level=level, text=text)
