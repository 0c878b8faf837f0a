"""A platform in memory: it keeps the channel contract, and fails exactly as scripted."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from zeroclaw.channel import (
    Admit,
    Capabilities,
    Card,
    LookupResult,
    Outcome,
    Postable,
    ToolProgress,
)
from zeroclaw.clock import Clock
from zeroclaw.envelope import (
    Address,
    Admission,
    Attachment,
    CheckedReceipt,
    Envelope,
    MessageRef,
    Outgoing,
    OutgoingFile,
    Rendered,
)
from zeroclaw.errors import ChannelRejected, DeliveryUnknown, NotSupported, ZeroclawError
from zeroclaw.value import Value

CallName = Literal[
    "lookup", "send", "send_file", "edit", "delete", "ask", "settle", "typing", "preview", "fetch"
]


class Lost(Value):
    """A scripted fault: the call is carried out, but its answer never comes back."""


class Hang(Value):
    """A scripted fault: the call never returns; nothing is carried out."""


Fault = Exception | Lost | Hang


class Call(Value):
    """One call that reached the platform; `text` is empty where there is none.

    Attributes:
        at: Monotonic seconds when it began.
        message: The platform's id that it was about, empty for a new one.
    """

    name: CallName
    at: float
    address: Address
    message: str = ""
    text: str = ""
    key: str = ""
    draft: bool = False
    plain: bool = False
    reply_to: str = ""


@dataclass(kw_only=True)
class Shown:
    """A message as the chat shows it."""

    ref: MessageRef
    text: str
    key: str
    draft: bool = False
    card: Card | None = None
    outcome: Outcome | None = None
    file: OutgoingFile | None = None
    history: list[str] = field(default_factory=list[str])
    receipts: tuple[CheckedReceipt, ...] = ()


T = TypeVar("T")


class ScriptedChannel:
    """One account of an imaginary platform.

    Markup is `*…*`: `render` keeps it in `body` and drops it in `plain`; `measure` counts code
    points of the body. Faults wait in `faults` by call name, one for each call, in order.

    Attributes:
        calls: Every call, in the order they began, refused ones included.
        faults: The faults of the next calls of a name; None lets one pass.
        previews: Previews that are shown, by the key of their address; a message ends one.
        in_flight: Calls that have begun and not returned.
        before: Awaited inside every call, before it is carried out; a test can hold calls here.
        files: The files that can be fetched, by reference.
        heeds_max_bytes: `fetch` refuses files above `max_bytes`.
        reach: The number of messages after a mark that one lookup covers.
        knows_marks: `mark` returns a mark.
    """

    def __init__(
        self, *, clock: Clock, capabilities: Capabilities, name: str = "chat", account: str = "bot"
    ) -> None:
        self._name = name
        self._account = account
        self._clock = clock
        self._capabilities = capabilities
        self._messages: dict[str, Shown] = {}
        self._by_key: dict[tuple[str, str], MessageRef] = {}
        self.previews: dict[str, str] = {}
        self._made = 0
        self._events: asyncio.Queue[tuple[Envelope, asyncio.Future[Admission]]] = asyncio.Queue(100)
        self.calls: list[Call] = []
        self.faults: dict[CallName, deque[Fault | None]] = {}
        self.in_flight: list[Call] = []
        self.before: Callable[[Call], Awaitable[None]] | None = None
        self.files: dict[str, bytes] = {}
        self.heeds_max_bytes = True
        self.reach = 5
        self.knows_marks = True

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    # --- for tests -----------------------------------------------------------------------------

    def address(self, chat: str = "c1", *, direct: bool = False) -> Address:
        """Return an address of this account."""
        return Address(channel=self._name, account=self._account, chat=chat, direct=direct)

    def will(self, call: CallName, *faults: Fault | None) -> None:
        """Script the faults of the next calls of this name."""
        self.faults.setdefault(call, deque()).extend(faults)

    def chat(self, address: Address) -> list[str]:
        """Return the texts of the messages in a chat, in order of sending."""
        return [shown.text for shown in self.standing(address)]

    def standing(self, address: Address) -> list[Shown]:
        """Return the messages in a chat, in order of sending."""
        place = address.key()
        return [shown for shown in self._messages.values() if shown.ref.address.key() == place]

    def skip(self, count: int) -> None:
        """Use up ids, as messages of others do."""
        self._made += count

    def lose(self, ref: MessageRef) -> None:
        """Delete a message as a person does."""
        del self._messages[ref.message]

    def called(self, *names: CallName) -> list[Call]:
        """Return the calls of these names; all calls without a name."""
        return [call for call in self.calls if not names or call.name in names]

    async def say(self, envelope: Envelope) -> Admission:
        """Give an event to `receive`, and wait for its admission."""
        answer: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        await self._events.put((envelope, answer))
        return await answer

    # --- the contract --------------------------------------------------------------------------

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        ready()
        while True:
            envelope, answer = await self._events.get()
            try:
                answer.set_result(await admit(envelope))
            except ZeroclawError as error:
                answer.set_exception(error)  # not confirmed, so the sender may send it again

    def render(self, markdown: str) -> Rendered:
        return Rendered(body=markdown, plain=markdown.replace("*", ""))

    def measure(self, rendered: Rendered) -> int:
        return len(rendered.body)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        self._check_thread(to)
        text = self._text(outgoing)
        call = self._call(
            "send",
            to,
            text=text,
            key=outgoing.key,
            draft=outgoing.draft,
            plain=outgoing.plain,
            reply_to=outgoing.reply_to or "",
        )

        def carry_out() -> MessageRef:
            shown = self._post(to, text, outgoing.key, draft=outgoing.draft)
            shown.receipts = outgoing.receipts
            return shown.ref

        return await self._perform(call, carry_out)

    def mark(self, to: Address) -> str:
        if not self._capabilities.can_lookup:
            raise NotSupported("this platform looks for nothing")
        return str(self._made) if self.knows_marks else ""

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        if not self._capabilities.can_lookup:
            raise NotSupported("this platform looks for nothing")
        first = int(since) + 1
        end = first + self.reach
        last = min(end, _number(before)) if before else end
        call = self._call("lookup", to, message=f"m{first}", key=content.key)

        def carry_out() -> LookupResult:
            is_over = not before or last == _number(before)
            for number in range(first, last):
                shown = self._messages.get(f"m{number}")
                if shown is None or shown.ref.message in apart:
                    continue
                if shown.ref.address.key() == to.key() and shown.key == content.key:
                    if isinstance(content, Outgoing):
                        shown.text = self._text(content)
                    return LookupResult(ref=shown.ref)
            # Later messages have higher numbers than all so far.
            return LookupResult(
                since=str(last - 1 if before else min(last - 1, self._made)), is_over=is_over
            )

        return await self._perform(call, carry_out)

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        max_bytes = self._capabilities.max_file_bytes
        if not max_bytes:
            raise NotSupported("this platform takes no files")
        self._check_thread(to)
        if len(file.content) > max_bytes:
            raise ChannelRejected(f"a file of {len(file.content)} bytes is refused")
        call = self._call(
            "send_file", to, text=file.caption, key=file.key, reply_to=file.reply_to or ""
        )

        def carry_out() -> MessageRef:
            shown = self._post(to, file.caption, file.key)
            shown.file = file
            return shown.ref

        return await self._perform(call, carry_out)

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        if not self._capabilities.can_edit:
            raise NotSupported("this platform edits nothing")
        text = self._text(outgoing)
        call = self._call(
            "edit",
            ref.address,
            message=ref.message,
            text=text,
            key=outgoing.key,
            draft=outgoing.draft,
            plain=outgoing.plain,
        )

        def carry_out() -> None:
            shown = self._find(ref)
            shown.history.append(shown.text)
            shown.text, shown.draft = text, outgoing.draft
            shown.receipts = outgoing.receipts

        await self._perform(call, carry_out)

    async def delete(self, ref: MessageRef) -> None:
        if not self._capabilities.can_delete:
            raise NotSupported("this platform deletes nothing")
        call = self._call("delete", ref.address, message=ref.message)

        def carry_out() -> None:
            self._messages.pop(ref.message, None)

        await self._perform(call, carry_out)

    async def ask(self, to: Address, card: Card) -> MessageRef:
        self._check_thread(to)
        text = "; ".join(f"{call.number}. {call.summary}" for call in card.calls)
        call = self._call("ask", to, text=text, key=card.key)

        def carry_out() -> MessageRef:
            shown = self._post(to, text, card.key)
            shown.card = card
            return shown.ref

        return await self._perform(call, carry_out)

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        call = self._call("settle", ref.address, message=ref.message, key=outcome.card.key)

        def carry_out() -> None:
            self._find(ref).outcome = outcome

        await self._perform(call, carry_out)

    async def preview(self, to: Address, outgoing: Outgoing) -> None:
        self._check_thread(to)
        if not self._capabilities.native_draft or not to.direct:
            raise NotSupported("this platform shows nothing that is not sent")
        text = self._text(outgoing)
        call = self._call("preview", to, text=text, key=outgoing.key, plain=outgoing.plain)

        def carry_out() -> None:
            self.previews[to.key()] = text

        await self._perform(call, carry_out)

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:
        if not self._capabilities.has_typing:
            raise NotSupported("this platform shows no typing")
        text = ", ".join(f"{progress.tool} {progress.state}" for progress in doing)
        await self._perform(self._call("typing", to, text=text), lambda: None)

    def direct_address(self, sender: str) -> Address | None:
        return Address(channel=self._name, account=self._account, chat=sender, direct=True)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        call = self._call("fetch", self.address(""), key=attachment.reference)

        def carry_out() -> bytes:
            body = self.files.get(attachment.reference)
            if body is None or (self.heeds_max_bytes and len(body) > max_bytes):
                message = "no such file" if body is None else "the file is too large"
                raise ChannelRejected(message)
            return body

        return await self._perform(call, carry_out)

    async def aclose(self) -> None:
        await asyncio.sleep(0)

    # --- the platform --------------------------------------------------------------------------

    def _text(self, outgoing: Outgoing) -> str:
        return outgoing.rendered.plain if outgoing.plain else outgoing.rendered.body

    def _call(
        self,
        name: CallName,
        address: Address,
        *,
        message: str = "",
        text: str = "",
        key: str = "",
        draft: bool = False,
        plain: bool = False,
        reply_to: str = "",
    ) -> Call:
        call = Call(
            name=name,
            at=self._clock.monotonic(),
            address=address,
            message=message,
            text=text,
            key=key,
            draft=draft,
            plain=plain,
            reply_to=reply_to,
        )
        self.calls.append(call)
        return call

    async def _perform(self, call: Call, carry_out: Callable[[], T]) -> T:
        self.in_flight.append(call)
        try:
            await asyncio.sleep(0)
            if self.before is not None:
                await self.before(call)
            faults = self.faults.get(call.name)
            match faults.popleft() if faults else None:
                case ChannelRejected(markup=True) if call.plain:
                    # Plain text has no markup to refuse.
                    self._check_length(call)
                case Exception() as error:
                    raise error
                case Hang():
                    await asyncio.get_running_loop().create_future()
                case Lost():
                    self._check_length(call)
                    carry_out()
                    raise DeliveryUnknown("the answer was lost")
                case None:
                    self._check_length(call)
            return carry_out()
        finally:
            self.in_flight.remove(call)

    def _check_thread(self, to: Address) -> None:
        if to.thread is not None and not self._capabilities.has_threads:
            raise NotSupported("this platform has no threads")

    def _check_length(self, call: Call) -> None:
        if (
            call.name in {"send", "edit", "preview"}
            and not 0 < len(call.text) <= self._capabilities.max_length
        ):
            raise ChannelRejected(f"a message of {len(call.text)} characters is refused")

    def _find(self, ref: MessageRef) -> Shown:
        shown = self._messages.get(ref.message)
        if shown is None:
            raise ChannelRejected(f"message `{ref.message}` no longer exists", gone=True)
        return shown

    def _post(self, to: Address, text: str, key: str, *, draft: bool = False) -> Shown:
        earlier_ref = self._by_key.get((to.key(), key))
        if self._capabilities.idempotent_send and earlier_ref is not None:
            earlier = self._messages.get(earlier_ref.message)
            if earlier is not None:
                return earlier
        self._made += 1
        self.previews.pop(to.key(), None)
        ref = MessageRef(address=to, message=f"m{self._made}")
        shown = Shown(ref=ref, text=text, key=key, draft=draft)
        self._messages[ref.message] = shown
        self._by_key[to.key(), key] = ref
        return shown


def _number(message: str) -> int:
    return int(message.removeprefix("m"))
