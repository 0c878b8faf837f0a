"""The platform's server, on which a test speaks as any person and reads every chat.

    async with Platform(can_edit=False) as platform:
        event = await platform.say("ann", "hello")
        await platform.until(lambda: platform.chat("ann").answers)

It lives in the test, so it outlives a daemon that is killed. An event is delivered until the
channel confirms it. Nothing here waits for time to pass: `until` checks again at each change.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

from tests.fakes.tcp_server import CuttingServer
from zeroclaw import Choice
from zeroclaw_test_platform import LoopbackSettings
from zeroclaw_test_platform.backend import Answer, Backend, Call
from zeroclaw_test_platform.chats import Chat, Message, Version
from zeroclaw_test_platform.event import Event
from zeroclaw_test_platform.faults import Fault, Hang, Lose
from zeroclaw_test_platform.plans import Planned, fault_of
from zeroclaw_test_platform.wire import LONGEST_LINE, Json, Op, line, read, text_of

PATIENCE_S = 40.0
"""Seconds that `until` waits; less than a test's time limit, so that its message is shown."""
T = TypeVar("T")


@dataclass(eq=False, kw_only=True)
class _Line:
    """The connection for events."""

    writer: asyncio.StreamWriter


class Platform(CuttingServer):
    """The platform on a loopback port; leaving it cuts every connection.

    Attributes:
        calls: Every call of the bot, in the order they arrived.
    """

    line_bytes = LONGEST_LINE

    def __init__(self, **settings: object) -> None:
        """Take the fields of `LoopbackSettings`, except `port`."""
        self._settings = settings
        self.patience_s = PATIENCE_S
        self._line: _Line | None = None
        self._events: list[Event] = []
        self._planned: list[Planned] = []
        self._changed = asyncio.Event()
        self._backend: Backend | None = None
        self._made = 0
        self._held = False
        self.calls: list[Call] = []

    # --- opening and closing -------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._backend = Backend(settings=self.settings)
        return self

    @property
    def settings(self) -> LoopbackSettings:
        """The settings for the channel."""
        return LoopbackSettings.model_validate({"port": self.port, **self._settings})

    @property
    def connected(self) -> bool:
        """Whether a bot is connected."""
        return self._line is not None

    def cut(self) -> None:
        """Cut the connection for events; the channel will reconnect."""
        if self._line is not None:
            self._line.writer.transport.abort()
            self._line = None
            self._note()

    # --- actions of people ---------------------------------------------------------------------

    async def say(
        self,
        who: str,
        text: str,
        *,
        chat: str = "",
        thread: str = "",
        verified: bool = True,
        display: str = "",
        files: Mapping[str, bytes] | None = None,
        claimed_bytes: int | None = None,
    ) -> Event:
        """Write as a person, in their direct chat unless another is named.

        `claimed_bytes` is the size that the platform states for every file, None for the real one.
        """
        where = self.chat(chat or who)
        message = self.backend.add_from_person(where, thread, who, text, self._now())
        stored = [
            self.backend.store_file(name, content, claimed_bytes)
            for name, content in (files or {}).items()
        ]
        fields = {"text": text, "files": stored, "verified": verified, "display": display}
        return self._add_event("said", who, where, message, **fields)

    async def edit(self, event: Event, text: str, *, who: str = "") -> Event:
        """Edit a message as its writer, or forge that as another person."""
        message = event.message
        message.versions.append(Version(text=text, draft=False, plain=False, at=self._now()))
        return self._add_event(
            "edited",
            who or message.author,
            self.chat(message.chat),
            message,
            text=text,
            version=len(message.versions),
        )

    async def delete(self, event: Event, *, who: str = "") -> Event:
        """Delete a message as its writer."""
        message = event.message
        message.deleted = True
        return self._add_event("deleted", who or message.author, self.chat(message.chat), message)

    async def press(
        self, who: str, card: Message, choice: Choice = "once", *, call: int = 0, reason: str = ""
    ) -> Event:
        """Press a card's button for one of its calls, even one that is no longer shown."""
        approval = card.request.calls[call].approval
        fields = {"approval": approval, "choice": choice, "reason": reason}
        return self._add_event("pressed", who, self.chat(card.chat), card, **fields)

    async def happen(self, kind: str, who: str, *, chat: str = "", **fields: object) -> Event:
        """Add another event: `membership` with `present`, `moved` with `to`."""
        where = self.chat(chat or who)
        return self._add_event(kind, who, where, Message(id="", chat=where.id), **fields)

    async def redeliver(self, event: Event, *, as_new: bool = False) -> Event:
        """Deliver an event again, with the same id or as a new event about the same message."""
        if as_new:
            self._made += 1
            body = {**event.body, "id": f"e{self._made}"}
            event = Event(id=f"e{self._made}", body=body, message=event.message)
            self._events.append(event)
        event.confirmed = False
        self._deliver(event)
        return event

    async def confirmed(self, *events: Event) -> None:
        """Wait until the channel has confirmed the newest delivery of each event."""
        await self.until(lambda: all(event.confirmed for event in events))

    def hold(self) -> None:
        """Deliver no new events until `release`."""
        self._held = True

    def release(self) -> None:
        """Deliver the held events, at once and in order."""
        self._held = False
        self._deliver_all()

    # --- for assertions ------------------------------------------------------------------------

    @property
    def backend(self) -> Backend:
        """The chats, and what carries out calls."""
        assert self._backend is not None, "the platform is not open"
        return self._backend

    def chat(self, name: str, *, direct: bool | None = None) -> Chat:
        """Return a chat; one with a person's name is their direct chat, unless `direct` is false.

        A group's name begins with `#`.
        """
        return self.backend.chat(name, direct=direct)

    def called(self, *ops: Op, chat: str = "") -> list[Call]:
        """Return the calls of these kinds, of one chat if one is named."""
        return [call for call in self.calls if call.op in ops and chat in ("", call.chat)]

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until a condition is true, and return its result; checks it at each change."""
        try:
            async with asyncio.timeout(self.patience_s):
                while not (result := condition()):
                    await self._changed.wait()
        except TimeoutError:
            message = (
                f"waited {self.patience_s:g} s in vain; the platform shows\n{self.transcript()}"
            )
            raise AssertionError(message) from None
        return result

    def transcript(self) -> str:
        """Return all chats and the last calls, for the message of a failure."""
        lines = [f"connected: {self.connected}"]
        for chat in self.backend.chats.values():
            lines.append(f"--- {chat.id}")
            lines += [repr(message) for message in chat.messages]
        waiting = [event.id for event in self._events if not event.confirmed]
        lines.append(f"unconfirmed events: {waiting}")
        lines.append(f"last calls: {[str(call) for call in self.calls[-12:]]}")
        return "\n".join(lines)

    # --- faults --------------------------------------------------------------------------------

    def will(
        self,
        op: Op,
        *faults: Fault | None,
        chat: str = "",
        times: int | None = 1,
        when: Callable[[Call], bool] = lambda _: True,
    ) -> None:
        """Plan faults for the next calls, one after another; None lets a call pass.

        Args:
            op: The kind of call.
            faults: The faults in order.
            chat: Limit this to calls of this chat.
            times: The number of calls for each fault, None for no limit.
            when: Limit this to calls for which this returns True.
        """
        self._planned += [
            Planned(op=op, fault=fault, chat=chat, when=when, remaining=times) for fault in faults
        ]

    # --- events --------------------------------------------------------------------------------

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def wake(self) -> None:
        """Make `until` check again, after a change elsewhere."""
        self._note()

    def _note(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _add_event(
        self, kind: str, who: str, chat: Chat, message: Message, **fields: object
    ) -> Event:
        self._made += 1
        body = {
            "id": f"e{self._made}",
            "kind": kind,
            "who": who,
            "verified": True,
            "chat": chat.id,
            "direct": chat.direct,
            "thread": message.thread,
            "message": message.id,
            **fields,
        }
        event = Event(id=f"e{self._made}", body=body, message=message)
        self._events.append(event)
        if not self._held:
            self._deliver(event)
        self._note()
        return event

    def _deliver(self, event: Event) -> None:
        if self._line is not None:
            event.deliveries += 1
            self._line.writer.write(line(event.body))

    def _deliver_all(self) -> None:
        for event in self._events:
            if not event.confirmed:
                self._deliver(event)

    async def _serve_events(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Deliver all unconfirmed events, then new ones; a newer connection replaces this one."""
        self.cut()
        connection = self._line = _Line(writer=writer)
        writer.write(line({"ready": True}))
        if not self._held:
            self._deliver_all()
        self._note()
        events = {event.id: event for event in self._events}
        try:
            while (answer := await read(reader)) is not None:
                id_ = text_of(answer, "confirm") or text_of(answer, "again")
                event = events.get(id_) or next(event for event in self._events if event.id == id_)
                if "confirm" in answer:
                    event.confirmed = True
                    event.toast = text_of(answer, "toast")
                else:
                    event.refused += 1
                self._note()
        finally:
            if self._line is connection:
                self._line = None

    # --- calls ---------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read(reader)
            if request is not None and "open" in request:
                await self._serve_events(reader, writer)
            elif request is not None:
                await self._serve_call(request, writer)
        finally:
            self._note()

    async def _serve_call(self, request: Json, writer: asyncio.StreamWriter) -> None:
        call = self.backend.call(request, self._now())
        self.calls.append(call)
        self._note()
        answer = await self._answer(call, request)
        self._note()
        if answer is not None:
            writer.write(line(answer))
            await writer.drain()

    async def _answer(self, call: Call, request: Json) -> Answer | None:
        """Carry out a call, with its planned fault if it has one; None cuts its connection."""
        fault = fault_of(call, self._planned)
        match fault:
            case None:
                return self.backend.carry_out(call, request)
            case Hang(carried_out=True):
                answer = self.backend.carry_out(call, request)
                self._note()
                await fault.wait()
                return answer
            case Hang():
                await fault.wait()
                return self.backend.carry_out(call, request)
            case Lose():
                if fault.carried_out:
                    self.backend.carry_out(call, request)
                return None
            case _:
                return self.backend.refused(fault)
