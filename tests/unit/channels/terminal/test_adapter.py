"""The terminal's clients: each item once, "received" only when stored, and no waiting for them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from channels._local import LocalSettings
from channels._local.decode import Message, RefusedPost
from channels._local.feed import MAX_READERS, MAX_WAITING
from channels.terminal.adapter import TerminalChannel
from tests.fakes.bare_context import NoMount, bare_context
from tests.fakes.manual_clock import ManualClock
from zeroclaw import (
    Accepted,
    Address,
    Admission,
    Admit,
    Answered,
    Attachment,
    ChannelRejected,
    ChannelUnavailable,
    Duplicate,
    Envelope,
    Ignored,
    LineStream,
    MessageRef,
    NotSupported,
    Outgoing,
    TranscriptItem,
)
from zeroclaw.cli.chat.screen import View

Line = Mapping[str, object]
Serve = Callable[[LineStream], Awaitable[None]]
DEFAULTS = LocalSettings()
ADDRESS = Address(channel="terminal", account="local", chat="operator", direct=True)
KEY = "0123456789abcdef"
SAY: Line = {"type": "say", "id": KEY, "text": "hi"}
HELLO: Line = {"type": "hello", "after": ""}


class Socket:
    """A client's connection; `full` holds every line back."""

    def __init__(self, *, full: bool = False) -> None:
        self._written: asyncio.Queue[Line | None] = asyncio.Queue(1_000)
        self.shown: asyncio.Queue[Line] = asyncio.Queue(1_000)
        self._room = asyncio.Event()
        self.gone = False
        self.ended = asyncio.Event()
        if not full:
            self._room.set()

    async def receive(self) -> Line | None:
        return await self._written.get()

    async def send(self, line: Line) -> None:
        await self._room.wait()
        if self.gone:
            raise ConnectionResetError
        await self.shown.put(line)

    def write(self, *lines: Line | None) -> None:
        for line in lines:
            self._written.put_nowait(line)

    def fill(self) -> None:
        self._room.clear()

    def drain(self) -> None:
        self._room.set()

    async def next(self, kind: str) -> Line:
        """The next line of a type; others before it are dropped."""
        while (line := await self.shown.get())["type"] != kind:
            pass
        return line


class RecordingAdmit:
    """An `admit` that records its envelopes."""

    def __init__(self, answer: Admission | Exception | None = None) -> None:
        self.answer: Admission | Exception = answer or Accepted()
        self.admitted: list[Envelope] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, envelope: Envelope) -> Admission:
        self.admitted.append(envelope)
        await self.open.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Place(NoMount):
    """Everything that the channel needs: a mount, a transcript, a log."""

    def __init__(self) -> None:
        self.serves: dict[str, Serve] = {}
        self.transcript: tuple[TranscriptItem, ...] = ()
        self.asked: list[str] = []
        self.reading = asyncio.Event()
        self.reading.set()
        self.fault: Exception | None = None
        self.clock = ManualClock()

    def stream(self, name: str, serve: Serve) -> None:
        self.serves[name] = serve

    def channel(self, settings: object = DEFAULTS) -> TerminalChannel:
        async def transcript(address: Address, after: str) -> tuple[TranscriptItem, ...]:
            assert address == ADDRESS
            self.asked.append(after)
            await self.reading.wait()
            if self.fault is not None:
                raise self.fault
            return self.transcript

        return TerminalChannel(
            bare_context("terminal", settings, clock=self.clock, mount=self, transcript=transcript)
        )


@asynccontextmanager
async def receiving(
    channel: TerminalChannel, place: Place, admit: Admit, *sockets: Socket
) -> AsyncGenerator[asyncio.Task[None]]:
    """A channel that receives, with these clients attached."""
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(channel.receive(admit, ready.set))
        await ready.wait()
        serving = [
            group.create_task(as_coroutine(place.serves["chat"], socket)) for socket in sockets
        ]
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task])
            await asyncio.wait(serving) if serving else None


async def as_coroutine(serve: Serve, socket: Socket) -> None:
    await serve(socket)
    socket.ended.set()


def outgoing(
    channel: TerminalChannel, text: str, key: str = "k1", *, draft: bool = False
) -> Outgoing:
    return Outgoing(rendered=channel.render(text), key=key, draft=draft)


def item(text: str, *, draft: bool = False, key: str = "k1", cursor: str = "c1") -> TranscriptItem:
    return TranscriptItem(
        cursor=cursor, kind="bot", key=key, ref=key, text=text, at=ManualClock().now(), draft=draft
    )


async def test_a_client_starts_with_a_snapshot_and_continues_live() -> None:
    """P1: a client that attaches late misses nothing."""
    place, socket = Place(), Socket()
    place.transcript = (item("earlier"),)
    channel = place.channel()
    async with receiving(channel, place, RecordingAdmit(), socket):
        socket.write({"type": "hello", "after": "c0"})
        begin = [await socket.shown.get() for _ in range(3)]
        await channel.send(ADDRESS, outgoing(channel, "now", "k2"))
        live = await socket.shown.get()
    assert place.asked == ["c0"]
    assert [line["type"] for line in begin] == ["snapshot", "item", "live"]
    assert (begin[1]["text"], begin[1]["cursor"], begin[1]["id"]) == ("earlier", "c1", "k1")
    assert (live["text"], live["cursor"], live["id"]) == ("now", "", "k2")


async def test_received_is_sent_only_when_the_event_is_stored() -> None:
    """P1: no client gets it before `admit` has returned."""
    place, socket, other, door = Place(), Socket(), Socket(), RecordingAdmit()
    door.open.clear()
    async with receiving(place.channel(), place, door, socket, other):
        socket.write(HELLO, SAY)
        other.write(HELLO)
        await socket.next("live")
        await other.next("live")
        await place.clock.settle()
        assert (len(door.admitted), socket.shown.empty()) == (1, True)
        door.open.set()
        assert await socket.next("received") == {"type": "received", "id": KEY, "toast": ""}
        shown = await other.next("item")
    assert (shown["id"], shown["kind"], shown["text"]) == (f"person/{KEY}", "person", "hi")


async def test_a_reply_follows_its_command_for_every_client() -> None:
    """The outbox sends it as soon as both are stored, before `admit` has returned."""
    place, socket, other, door = Place(), Socket(), Socket(), RecordingAdmit()
    channel = place.channel()
    door.open.clear()
    async with receiving(channel, place, door, socket, other), asyncio.TaskGroup() as outbox:
        socket.write(HELLO, {**SAY, "text": "/help"})
        other.write(HELLO)
        await other.next("live")
        await place.clock.settle()
        outbox.create_task(channel.send(ADDRESS, outgoing(channel, "the list")))
        await place.clock.settle()
        door.open.set()
        shown = [(await other.next("item"))["text"] for _ in range(2)]
    assert shown == ["/help", "the list"]


async def test_an_event_pending_at_the_close_must_be_sent_again() -> None:
    place, door = Place(), RecordingAdmit()
    channel = place.channel()
    door.open.clear()
    async with asyncio.TaskGroup() as group:
        async with receiving(channel, place, door):
            group.create_task(channel.take("say", Message(id="a" * 16, text="hi")))
            await place.clock.settle()
            waits = group.create_task(channel.take("say", Message(id="b" * 16, text="ho")))
            await place.clock.settle()
        door.open.set()
    answer = waits.result()
    assert isinstance(answer, RefusedPost)
    assert answer.again


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Duplicate(), {"type": "received", "id": KEY, "toast": ""}),
        (Answered(text="done"), {"type": "received", "id": KEY, "toast": "done"}),
        (Ignored(), {"type": "refused", "id": KEY, "why": "it was ignored", "again": False}),
        (
            ChannelUnavailable("disk full"),
            {"type": "refused", "id": KEY, "why": "it could not be stored yet", "again": True},
        ),
    ],
)
async def test_every_event_gets_one_answer(answer: Admission | Exception, expected: Line) -> None:
    """A repeated event gets the same answer."""
    place, socket = Place(), Socket()
    async with receiving(place.channel(), place, RecordingAdmit(answer), socket):
        socket.write(SAY, HELLO)
        while (line := await socket.shown.get())["type"] not in {"received", "refused"}:
            pass
    assert line == expected


async def test_an_unreadable_line_gets_a_reason_and_the_client_stays() -> None:
    """P10."""
    place, socket = Place(), Socket()
    async with receiving(place.channel(), place, RecordingAdmit(), socket):
        socket.write(HELLO, {"type": "say", "id": KEY[::-1], "text": ""}, SAY)
        refused = await socket.next("refused")
        await socket.next("received")
    assert refused["why"] == "the message is empty"


async def test_sending_without_clients_succeeds_and_the_id_is_the_key() -> None:
    """A repeated send shows one message, because it has one id."""
    channel = Place().channel()
    first = await channel.send(ADDRESS, outgoing(channel, "a"))
    again = await channel.send(ADDRESS, outgoing(channel, "a"))
    assert first == again == MessageRef(address=ADDRESS, message="k1")
    await channel.edit(first, outgoing(channel, "b"))
    await channel.delete(first)
    await channel.typing(ADDRESS)


async def test_a_slow_client_skips_frames_and_gets_the_last_one() -> None:
    """P9: the adapter does not wait for it."""
    place, socket = Place(), Socket()
    channel = place.channel()
    async with receiving(channel, place, RecordingAdmit(), socket):
        socket.write(HELLO)
        await socket.next("live")
        socket.fill()
        ref = await channel.send(ADDRESS, outgoing(channel, "0", draft=True))
        await place.clock.settle()
        for number in range(1_000):
            await channel.edit(ref, outgoing(channel, str(number), draft=True))
        socket.drain()
        shown_texts = [(await socket.next("item"))["text"], (await socket.next("item"))["text"]]
    assert shown_texts == ["0", "999"]


async def test_a_client_with_too_many_waiting_items_is_cut() -> None:
    """P9: its memory is bounded; it reconnects and gets a snapshot."""
    place, socket = Place(), Socket(full=True)
    channel = place.channel()
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(channel.receive(RecordingAdmit(), ready.set))
        await ready.wait()
        client = group.create_task(as_coroutine(place.serves["chat"], socket))
        socket.write(HELLO)
        await place.clock.settle()
        for number in range(MAX_WAITING + 1):
            await channel.send(ADDRESS, outgoing(channel, "x", f"k{number}"))
        await client
        task.cancel()


async def test_items_during_the_snapshot_are_not_lost() -> None:
    """There is no gap between transcript and live events, and no item goes backwards."""
    place, socket = Place(), Socket()
    channel = place.channel()
    place.reading.clear()
    place.transcript = (item("ab", draft=True),)
    async with receiving(channel, place, RecordingAdmit(), socket):
        socket.write(HELLO)
        await place.clock.settle()
        await channel.send(ADDRESS, outgoing(channel, "a", draft=True))
        await channel.send(ADDRESS, outgoing(channel, "new", "k2"))
        place.reading.set()
        await socket.next("live")
        only = await socket.next("item")
        assert only["id"] == "k2"
        await channel.send(ADDRESS, outgoing(channel, "abc"))
        assert (await socket.next("item"))["text"] == "abc"


async def test_an_answer_that_ends_during_the_snapshot_ends_on_the_screen() -> None:
    """P6: its final text is newer than the draft in the snapshot."""
    place, socket = Place(), Socket()
    view, channel = View(is_terminal=False, history=0), place.channel()
    place.reading.clear()
    place.transcript = (item("a", draft=True),)
    async with receiving(channel, place, RecordingAdmit(), socket):
        socket.write(HELLO)
        await place.clock.settle()
        await channel.send(ADDRESS, outgoing(channel, "ab"))
        await channel.send(ADDRESS, outgoing(channel, "more", "k2"))
        place.reading.set()
        shown = [text for _ in range(5) for _, text in view.take(await socket.shown.get())]
    assert shown == ["● ab\n", "● more\n"]
    assert not view.is_drafting


async def test_an_unreadable_transcript_is_reported() -> None:
    place, socket = Place(), Socket()
    place.fault = ChannelUnavailable("no")
    async with receiving(place.channel(), place, RecordingAdmit(), socket):
        socket.write(HELLO)
        trouble = await socket.next("trouble")
    assert trouble["why"] == "the conversation can't be read right now"


async def test_a_disconnected_client_is_removed() -> None:
    """By its end of file, and by a write that fails."""
    place, gone, broken = Place(), Socket(), Socket()
    channel = place.channel()
    async with receiving(channel, place, RecordingAdmit(), gone, broken):
        gone.write(HELLO, None)
        broken.write(HELLO)
        await broken.next("live")
        broken.gone = True
        await channel.send(ADDRESS, outgoing(channel, "a"))
        await gone.ended.wait()
        await broken.ended.wait()


async def test_one_client_too_many_gets_an_error() -> None:
    place = Place()
    channel, sockets = place.channel(), [Socket() for _ in range(MAX_READERS + 1)]
    async with receiving(channel, place, RecordingAdmit(), *sockets):
        assert "too many clients" in str((await sockets[-1].next("trouble"))["why"])


async def test_a_channel_that_stops_cuts_its_clients_and_can_receive_again() -> None:
    """The supervisor starts it again, and clients reconnect."""
    place, channel = Place(), None
    channel = place.channel()
    for _ in range(2):
        socket = Socket()
        async with receiving(channel, place, RecordingAdmit(), socket):
            socket.write(HELLO)
            await socket.next("live")
    await channel.aclose()
    await channel.aclose()
    late = Socket()
    await place.serves["chat"](late)
    assert "it is closing" in str((await late.next("trouble"))["why"])


async def test_unsupported_calls_are_refused() -> None:
    """No call is silently ignored."""
    channel = Place().channel()
    ref = MessageRef(address=ADDRESS, message="k1")
    elsewhere = Address(channel="terminal", account="local", chat="other")
    in_thread = Address(channel="terminal", account="local", chat="operator", thread="t")
    with pytest.raises(ChannelRejected):
        await channel.send(elsewhere, outgoing(channel, "a"))
    with pytest.raises(NotSupported):
        await channel.send(in_thread, outgoing(channel, "a"))
    with pytest.raises(ChannelRejected):
        await channel.edit(ref, outgoing(channel, "x" * 60_001))
    with pytest.raises(NotSupported):
        await channel.fetch(Attachment(reference="r", name="n", media_type="t"), max_bytes=9)
    assert channel.direct_address("operator") == ADDRESS
    assert channel.direct_address("ann") is None


def test_settings_of_another_kind_are_refused() -> None:
    with pytest.raises(TypeError):
        Place().channel(settings=3)
