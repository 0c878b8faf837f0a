"""Each record is one bounded, redacted line, and a blocked stderr delays no one (P8, P9)."""

import errno
import io
import json
import logging
from collections.abc import Callable, Iterator
from threading import Event

import pytest

from zeroclaw.host import logs
from zeroclaw.host.logs import EventLog, LineForm, set_up, troubles

pytestmark = pytest.mark.usefixtures("own_logging")
SECRET = 'sec"ret\nvalue'


def redact(text: str) -> str:
    return text.replace(SECRET, "[redacted]")


def written(form: LineForm, tell: Callable[[], None], level: logs.Level = "info") -> list[str]:
    """The lines written for the records of `tell`."""
    stream = io.StringIO()
    close = logs.set_up(redact=redact, form=form, level=level, stream=stream)
    tell()
    close()
    close()
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("form", ["json", "lines"])
def test_no_log_line_controls_the_terminal(form: LineForm) -> None:
    """A server's or a stranger's text may be in a field; C1 controls work like an escape."""

    def tell() -> None:
        EventLog("turn")("refused", why="\x9b2J\u202e \x1b[7m\u200b straße")

    [line] = written(form, tell)
    assert not {"\x9b", "\u202e", "\x1b", "\u200b"} & set(line)
    assert json.dumps("\x9b2J\u202e")[1:-1] in line
    assert "straße" in line


def test_a_record_is_one_json_object() -> None:
    """JSON has the fields with their types, after keys that no field can replace."""

    def tell() -> None:
        EventLog("turn")(
            "turn_finished", room="none", turn="01A", seconds=1.5, again=False, reason=None
        )

    [line] = written("json", tell)
    fields: dict[str, object] = json.loads(line)

    assert list(fields)[:4] == ["at", "level", "room", "event"]
    assert str(fields.pop("at")).endswith("Z")
    assert fields == {
        "level": "info",
        "room": "zeroclaw.turn",
        "event": "turn_finished",
        "turn": "01A",
        "seconds": 1.5,
        "again": False,
        "reason": None,
    }


def test_a_record_is_one_readable_line() -> None:
    """Values with blanks or line ends are quoted, so none starts a new line."""

    def tell() -> None:
        EventLog("turn")("edit_refused", level="warning", text='a "b"\nc', count=3, empty="")

    [line] = written("lines", tell)

    assert line.split(" ", 1)[1] == (
        'warning zeroclaw.turn edit_refused text="a \\"b\\"\\nc" count=3 empty=""'
    )


@pytest.mark.parametrize("form", ["json", "lines"])
def test_no_secret_reaches_a_line(form: LineForm) -> None:
    """Fields, foreign messages and tracebacks are redacted before they are quoted (P8)."""

    def tell() -> None:
        EventLog("turn")("turn_failed", why=f"password is {SECRET}", also=SECRET)
        logging.getLogger("telegram").warning("calling %s", SECRET)
        try:
            raise ValueError(SECRET)
        except ValueError:
            logging.getLogger("zeroclaw.daemon").exception("task_died")

    lines = written(form, tell)

    assert len(lines) == 3
    assert all("[redacted]" in line for line in lines)
    assert not any("nvalue" in line for line in lines)


@pytest.mark.parametrize("form", ["json", "lines"])
def test_a_line_is_bounded(form: LineForm) -> None:
    """A long value is cut and its length noted; beyond a total, values are left out."""

    def tell() -> None:
        EventLog("turn")("one", text="x" * 5000)
        EventLog("turn")("many", **{f"field{number}": "x" * 5000 for number in range(50)})

    single, many = written(form, tell)

    assert "… (5000 characters)" in single
    assert len(single) < 2500
    assert len(many) <= 16_000


def test_libraries_log_from_warning_on_and_we_from_the_configured_level() -> None:
    """Otherwise every poll of a platform would be a line."""

    def tell() -> None:
        logging.getLogger("httpx").info("request")
        logging.getLogger("telegram.ext").info("request")
        logging.getLogger("some.library").info("hello")
        EventLog("turn")("body_seen", level="debug", text="x")
        EventLog("turn")("turn_started")
        logging.getLogger("httpx").warning("slow")

    quiet = written("lines", tell)
    chatty = written("lines", tell, level="debug")

    assert [line.split(" ")[3] for line in quiet] == ["turn_started", "slow"]
    assert [line.split(" ")[3] for line in chatty] == ["body_seen", "turn_started", "slow"]


def test_a_repeating_library_is_logged_once_a_second() -> None:
    """Asyncio wrote 4,000 tracebacks a minute while no descriptor was left."""

    def tell() -> None:
        library = logging.getLogger("some.library")
        for number in range(300):
            message = "no room" if number < 250 else "no air"
            record = library.makeRecord(library.name, logging.ERROR, "", 0, message, (), None)
            record.created = 1_000.0 + number / 100
            library.handle(record)
        EventLog("turn")("turn_finished")
        EventLog("turn")("turn_finished")

    lines = written("lines", tell)
    dropped = [
        int(line.partition("=")[2]) for line in lines if line.startswith("log_lines_dropped")
    ]
    assert [line.split()[-2:] for line in lines if line.startswith("1970")] == [
        *[["no", "room"]] * 3,
        ["no", "air"],
    ]
    assert (sum(dropped), "\n".join(lines).count("turn_finished")) == (296, 2)


def test_a_librarys_messages_on_two_subjects_are_both_logged() -> None:
    def tell() -> None:
        for host in ("one.example", "one.example", "two.example"):
            logging.getLogger("some.library").error("no way to %s", host)

    assert [line.split()[-1] for line in written("lines", tell) if "no way" in line] == [
        "one.example",
        "two.example",
    ]


def test_an_unformattable_record_is_named_by_its_logger_alone() -> None:
    """Its text was not redacted, so it is left out."""

    def tell() -> None:
        logging.getLogger("some.library").warning("%d", SECRET)

    [line] = written("lines", tell)

    assert line == "log_record_broken logger=some.library"


class StuckStream(io.StringIO):
    """A stderr whose reader blocks until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = Event(), Event()

    def write(self, text: str, /) -> int:
        self.entered.set()
        self.go.wait()
        return super().write(text)


def test_a_blocked_reader_loses_lines_and_delays_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording never waits; what was dropped is counted (P9)."""
    monkeypatch.setattr(logs, "_MAX_QUEUED_LINES", 3)
    stream = StuckStream()
    close = logs.set_up(redact=redact, stream=stream)
    log = EventLog("turn")
    log("first")
    stream.entered.wait()
    for number in range(10):
        log("more", number=number)
    stream.go.set()
    close()

    lines = stream.getvalue().splitlines()
    assert len(lines) == 5
    assert "log_lines_dropped count=7" in lines


class BrokenStream(io.StringIO):
    """A stderr that was closed by the other side."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError


def test_a_closed_stderr_does_not_matter() -> None:
    """The daemon goes on without lines."""
    close = logs.set_up(redact=redact, stream=BrokenStream())
    EventLog("turn")("turn_started")
    EventLog("turn")("turn_finished")
    close()


class FullStream(io.StringIO):
    """A stderr on a disk that is full for the first line."""

    is_full = True

    def write(self, text: str, /) -> int:
        if self.is_full:
            self.is_full = False
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def test_logging_resumes_after_a_full_disk() -> None:
    """Lines lost meanwhile are counted."""
    stream = FullStream()
    close = logs.set_up(redact=redact, stream=stream)
    EventLog("turn")("turn_started")
    EventLog("turn")("turn_finished")
    close()
    dropped, line = stream.getvalue().splitlines()
    assert (dropped, "turn_finished" in line) == ("log_lines_dropped count=1", True)


# --- recent warnings and errors, for `doctor` -----------------------------------------


@pytest.fixture(params=["json", "lines"])
def _logged(request: pytest.FixtureRequest, own_logging: None) -> Iterator[None]:
    """Logging that redacts, in each form of its lines."""
    assert troubles() == ()
    form: LineForm = "json" if request.param == "json" else "lines"
    close = set_up(
        redact=lambda text: text.replace("hunter2", "***"), form=form, stream=io.StringIO()
    )
    yield
    close()


@pytest.mark.usefixtures("_logged")
def test_warnings_and_errors_are_kept_and_lower_levels_not() -> None:
    """In order, the newest last, and without secrets (P8)."""
    log = EventLog("turn")
    log("started")
    log("slow", level="warning", reason="it said hunter2")
    log("broke", level="error", code=7)
    assert [(trouble.level, trouble.text) for trouble in troubles()] == [
        ("warning", 'zeroclaw.turn slow reason="it said ***"'),
        ("error", "zeroclaw.turn broke code=7"),
    ]
    assert all(trouble.at.tzinfo is not None for trouble in troubles())


@pytest.mark.usefixtures("_logged")
def test_only_the_newest_records_are_kept_and_each_is_cut() -> None:
    """A fault that repeats every second takes bounded memory (P9)."""
    log = EventLog("turn")
    for number in range(60):
        log("broke", level="error", number=number, text="x" * 5_000)
    recent = troubles()
    assert [record.text.split(" ")[2] for record in recent[:1]] == ["number=10"]
    assert (len(recent), {len(record.text) for record in recent}) == (50, {501})
