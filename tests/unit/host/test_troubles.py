"""The newest warnings and errors are kept in memory, redacted and bounded, for `doctor`."""

import io
import logging
from collections.abc import Iterator

import pytest

from zeroclaw.host.logs import EventLog, LineForm, set_up, troubles


@pytest.fixture(params=["json", "lines"], autouse=True)
def logging_set_up(request: pytest.FixtureRequest) -> Iterator[None]:
    """Setting up changes the process; what was there comes back."""
    names = ["", "zeroclaw"]
    root = logging.getLogger()
    handlers, kept = root.handlers[:], {name: logging.getLogger(name).level for name in names}
    root.handlers[:] = []
    assert troubles() == ()
    form: LineForm = "json" if request.param == "json" else "lines"
    close = set_up(
        redact=lambda text: text.replace("hunter2", "***"), form=form, stream=io.StringIO()
    )
    yield
    close()
    root.handlers[:] = handlers
    for name, level in kept.items():
        logging.getLogger(name).setLevel(level)


def test_warnings_and_errors_are_kept_and_nothing_below() -> None:
    """In order, the newest last, and without secrets (P8)."""
    log = EventLog("turn")
    log("started")
    log("slow", level="warning", why="it said hunter2")
    log("broke", level="error", code=7)
    assert [(one.level, one.text) for one in troubles()] == [
        ("warning", 'zeroclaw.turn slow why="it said ***"'),
        ("error", "zeroclaw.turn broke code=7"),
    ]
    assert all(one.at.tzinfo is not None for one in troubles())


def test_only_the_newest_are_kept_and_each_is_short() -> None:
    """A fault that comes every second costs a bounded piece of memory (P9)."""
    log = EventLog("turn")
    for number in range(60):
        log("broke", level="error", number=number, text="x" * 5_000)
    kept = troubles()
    assert [one.text.split(" ")[2] for one in kept[:1]] == ["number=10"]
    assert (len(kept), {len(one.text) for one in kept}) == (50, {501})
