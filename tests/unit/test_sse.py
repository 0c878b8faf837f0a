"""What the byte parser of server-sent events promises."""

import sys
from itertools import pairwise
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.errors import StreamBroken
from zeroclaw.sse import MAX_EVENT_BYTES, SseEvent, SseState, feed, finish

SAMPLE = (
    b"\xef\xbb\xbf: a comment\r\n"
    b"event: message\rdata: one\r\ndata:two\r\n\r\n"
    b'data: {"text":"caf\xc3\xa9 \xf0\x9f\x98\x80 \xe2\x80\xa8 \xc2\x85"}\r\r'
    b"id: 7\nretry: 10\nunknown\n\n"
    b"data\n\n"
    b"event: error\ndata:  two spaces\n\n"
    b"data: last"
)
SAMPLE_EVENTS = (
    SseEvent(data="one\ntwo", name="message"),
    SseEvent(data='{"text":"café 😀 \u2028 \x85"}'),
    SseEvent(data=""),
    SseEvent(data=" two spaces", name="error"),
    SseEvent(data="last"),
)


def parse(*chunks: bytes, max_event_bytes: int = 1024) -> tuple[SseEvent, ...]:
    """All events of a stream that came in these chunks."""
    state = SseState()
    events: list[SseEvent] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zeroclaw.sse.MAX_EVENT_BYTES", max_event_bytes)
        for chunk in chunks:
            state, more = feed(state, chunk)
            events.extend(more)
        return (*events, *finish(state))


def cut_at(body: bytes, points: list[int]) -> list[bytes]:
    edges = [0, *sorted(points), len(body)]
    return [body[a:b] for a, b in pairwise(edges)]


def test_a_stream_becomes_its_events() -> None:
    """Comments, names, several data lines, all three line ends, a mark and a missing end (S2-21)."""
    assert parse(SAMPLE) == SAMPLE_EVENTS


@pytest.mark.parametrize("point", range(len(SAMPLE) + 1))
def test_the_events_are_the_same_for_every_split_point(point: int) -> None:
    """No split point changes an event, not inside a character and not between CR and LF."""
    assert parse(SAMPLE[:point], SAMPLE[point:]) == SAMPLE_EVENTS


def test_the_events_are_the_same_byte_by_byte() -> None:
    assert parse(*cut_at(SAMPLE, list(range(len(SAMPLE))))) == SAMPLE_EVENTS


@given(data=st.data())
def test_no_cutting_changes_the_events_of_any_bytes(data: st.DataObject) -> None:
    """Whatever an endpoint sends, the network's chunking does not show (S1-13)."""
    alphabet = st.sampled_from(
        [
            b"data: y\n\n",
            b"data:",
            b"data",
            b"event: e",
            b":",
            b"\n",
            b"\r",
            b"\r\n",
            b" ",
            b"x",
            "é😀".encode(),
        ]
    )
    body = b"".join(data.draw(st.lists(st.one_of(alphabet, st.binary(max_size=3)), max_size=40)))
    points = data.draw(st.lists(st.integers(0, len(body)), max_size=12))
    assert parse(*cut_at(body, points)) == parse(body)


@pytest.mark.parametrize(
    ("chunks", "events"),
    [
        ((b"data: a\n", b"data: b\n\n"), (SseEvent(data="a\nb"),)),
        ((b"event: e\n", b"data: b\n\n"), (SseEvent(data="b", name="e"),)),
        ((b"data: a\n\ndata: b", b"\n\n"), (SseEvent(data="a"), SseEvent(data="b"))),
    ],
    ids=["its data", "its name", "a part of the next"],
)
def test_an_event_keeps_what_came_in_another_chunk(
    chunks: tuple[bytes, ...], events: tuple[SseEvent, ...]
) -> None:
    """Even if one of the two looks like whole events."""
    assert parse(*chunks) == events


def test_line_separators_inside_json_do_not_end_a_line() -> None:
    """U+2028, U+0085, form feed and the like are text, as in the standard."""
    body = "data: a\u2028b\u0085c\x0bd\x0ce\x1cf\n\n".encode()
    assert parse(body) == (SseEvent(data="a\u2028b\u0085c\x0bd\x0ce\x1cf"),)


def test_an_event_leaves_as_soon_as_its_blank_line_is_there() -> None:
    """A CR ends a line at once; the LF that may follow belongs to it."""
    state, events = feed(SseState(), b"data: now\r\r")
    assert events == (SseEvent(data="now"),)
    state, events = feed(state, b"\ndata: then\r\n\r")
    assert events == (SseEvent(data="then"),)
    _, events = feed(state, b"\n")
    assert events == ()


def test_a_mark_is_dropped_at_the_start_only() -> None:
    mark = b"\xef\xbb\xbf"
    assert parse(mark + b"data: a\n\n" + mark + b"data: b\n\n") == (SseEvent(data="a"),)
    assert parse(b"data: a\n\n", mark + b"data: b\n\n") == (SseEvent(data="a"),)


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert parse(b"data: \xff\nevent: \xff\n\n") == (SseEvent(data="\ufffd", name="\ufffd"),)


def test_pings_and_names_without_data_are_no_events() -> None:
    assert parse(b": ping\n\n: ping\n\nevent: only\n\n\n") == ()


def test_nothing_fed_changes_nothing() -> None:
    state, _ = feed(SseState(), b"data: x\r")
    assert feed(state, b"") == (state, ())


@pytest.mark.parametrize("point", range(40))
@pytest.mark.parametrize(
    "body",
    [
        b"data: " + b"x" * 30 + b"\n\n",
        b"data: 0123456789\ndata: 0123456789\ndata: 0123456789\n\n",
        b": " + b"c" * 40 + b"\n",
        b"x" * 40,
    ],
    ids=["one line", "many lines", "a comment", "no end"],
)
def test_an_event_larger_than_the_bound_is_refused_at_every_split_point(
    body: bytes, point: int
) -> None:
    """An endless event ends with a clear error instead of filling the memory."""
    with pytest.raises(StreamBroken, match="an event of more than 25 bytes"):
        parse(body[:point], body[point:], max_event_bytes=25)


def test_a_line_without_an_end_is_refused_before_the_stream_ends() -> None:
    """Its rest is kept until then."""
    state, _ = feed(SseState(), b"data: " + b"x" * (MAX_EVENT_BYTES - 6))
    with pytest.raises(StreamBroken):
        feed(state, b"x")


def test_lines_that_hold_nothing_count_too() -> None:
    """Each is kept until the event ends."""
    with pytest.raises(StreamBroken, match="an event of more than 25 bytes"):
        parse(b"data:\n" * 26, max_event_bytes=25)


def test_many_events_together_may_be_larger_than_the_bound() -> None:
    assert len(parse(b"data: 0123456789\n\n" * 50, max_event_bytes=60)) == 50


def test_a_long_event_in_small_pieces_is_searched_once() -> None:
    """One of 4 MB, in the packets of a network, took 40 s and held up everyone (P9)."""
    searched: list[int] = []

    def note(_frame: FrameType, event: str, called: object) -> None:
        if event == "c_call" and getattr(called, "__name__", "") == "splitlines":
            searched.append(len(getattr(called, "__self__", b"")))

    state = SseState()
    sys.setprofile(note)
    try:
        for _ in range(100):
            state, _ = feed(state, b"x" * 500)
    finally:
        sys.setprofile(None)
    assert searched
    assert sum(searched) <= state.unread_bytes == 50_000
