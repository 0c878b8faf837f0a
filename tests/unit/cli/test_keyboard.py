"""What is typed comes as lines, whatever the cuts between the bytes."""

import os
import pty
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.cli.chat.keyboard import Ended, Event, Interrupted, Typed, lines_in, typed


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ((b"one\ntwo\n",), ("one", "two")),
        ((b"gr\xc3", b"\xbc\xc3\x9fe\r\n"), ("grüße",)),
        ((b"first \\\nsecond\nlast",), ("first \nsecond", "last")),
        ((b"open \\\n",), ("open \n",)),
        ((b"\xff\n",), ("\ufffd",)),
        ((), ()),
    ],
)
def test_bytes_become_lines(chunks: tuple[bytes, ...], lines: tuple[str, ...]) -> None:
    """A backslash at the end goes on; a line without an end counts at the end of the input."""
    assert tuple(lines_in(chunks)) == lines


@given(st.text(alphabet="aü\n", max_size=30), st.integers(0, 40))
def test_the_cut_does_not_matter(text: str, at: int) -> None:
    data = text.encode()
    assert list(lines_in([data])) == list(lines_in([data[:at], data[at:]]))


def test_a_line_is_there_as_soon_as_it_is_whole() -> None:
    """The next one is not waited for."""
    found = lines_in(iter([b"one\ntw", b"o\n"]))
    assert (next(found), next(found)) == ("one", "two")


async def test_a_pipe_is_read_to_its_end() -> None:
    """More lines than may wait are not lost: the reader waits."""
    out, into = os.pipe()
    os.write(into, b"".join(b"%d\n" % number for number in range(500)))
    os.close(into)
    events = [event async for event in typed(out)]
    os.close(out)
    assert events == [*(Typed(text=str(number)) for number in range(500)), Ended()]


async def test_on_a_terminal_an_interrupt_is_an_event_and_ends_nothing() -> None:
    """Ctrl-C stops an answer; only the second leaves."""
    outer, inner = pty.openpty()
    events: list[Event] = []
    os.write(outer, b"hi\n")
    async for event in typed(inner):
        events.append(event)
        if event == Typed(text="hi"):
            os.kill(os.getpid(), signal.SIGINT)
        if event == Interrupted():
            os.write(outer, b"\x04")
    os.close(outer)
    os.close(inner)
    assert events == [Typed(text="hi"), Interrupted(), Ended()]
