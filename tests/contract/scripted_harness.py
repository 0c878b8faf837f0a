"""The scripted channel under the contract suite: fakes keep the contract that they imitate."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.contract.channel_suite import Adapter, Harness, Losable, Standing, nothing_to_open
from tests.fakes.manual_clock import ManualClock
from tests.fakes.scripted_channel import Lost, ScriptedChannel, Shown
from zeroclaw import (
    Address,
    Admit,
    ApprovalId,
    Attachment,
    Body,
    Capabilities,
    Channel,
    ChannelContext,
    Choice,
    Command,
    Envelope,
    MessageRef,
    Pressed,
    Said,
    Sender,
    ZeroclawError,
)

FULL = Capabilities(
    max_length=500,
    can_edit=True,
    can_delete=True,
    has_buttons=True,
    has_threads=True,
    native_draft=True,
    idempotent_send=True,
    has_typing=True,
    names_tools=True,
    max_file_bytes=1_000_000,
)
LOOKING = Capabilities(max_length=500, can_edit=True, can_delete=True, can_lookup=True)
BARE = Capabilities(max_length=500, can_edit=False, can_delete=False)


@dataclass(kw_only=True)
class ScriptedHarness:
    """One person's chat."""

    channel: ScriptedChannel
    clock: ManualClock
    context: ChannelContext = field(init=False)
    person: str = "u1"
    sent: int = 0
    newest: Envelope | None = None

    def make(self) -> Channel:
        return self.channel

    def door(self, admit: Admit) -> Admit:
        return admit

    def present(self) -> AbstractAsyncContextManager[None]:
        return nothing_to_open()

    def keep_limits(self) -> Callable[[], int]:
        raise NotImplementedError

    async def turn_to(self, name: str) -> None:
        raise NotImplementedError

    async def gather(self) -> str:
        raise NotImplementedError

    async def cut(self) -> None:
        raise NotImplementedError

    @property
    def address(self) -> Address:
        return self.channel.address(self.person, direct=True)

    async def say(self, text: str) -> bool:
        command, _, argument = text[1:].partition(" ")
        body = Command(name=command, rest=argument) if text.startswith("/") else Said(text=text)
        return await self._deliver(body)

    async def redeliver(self) -> bool:
        assert self.newest is not None
        try:
            await self.channel.say(self.newest)
        except ZeroclawError:
            return False
        return True

    async def send_file(self, name: str, content: bytes, *, claimed_bytes: int) -> bool:
        self.channel.files[name] = content
        claimed = Attachment(
            reference=name, name=name, media_type="text/plain", size_bytes=claimed_bytes
        )
        return await self._deliver(Said(text=""), claimed)

    async def press(
        self, ref: MessageRef, approval: ApprovalId, choice: Choice, reason: str = ""
    ) -> bool:
        return await self._deliver(
            Pressed(approval=approval, choice=choice, reason=reason, card=ref)
        )

    def toasts(self) -> Sequence[str]:
        raise NotImplementedError

    async def messages(self) -> tuple[Standing, ...]:
        return tuple(self._seen(shown) for shown in self.channel.standing(self.address))

    async def sees_typing(self) -> bool:
        return bool(self.channel.called("typing"))

    async def tools_seen(self) -> tuple[str, ...]:
        *_, last = self.channel.called("typing")
        return tuple(filter(None, last.text.split(", ")))

    async def sees_preview(self) -> str:
        return self.channel.previews.get(self.address.key(), "")

    async def _deliver(self, body: Body, *files: Attachment) -> bool:
        self.sent += 1
        self.newest = Envelope(
            address=self.address,
            sender=Sender(id=self.person, verified=True),
            dedup=(f"event/{self.sent}",),
            body=body,
            message=f"p{self.sent}",
            attachments=files,
        )
        return await self.redeliver()

    def _seen(self, shown: Shown) -> Standing:
        if shown.card is None:
            file = shown.file
            return Standing(
                text=shown.text,
                file=None if file is None else (file.name, len(file.content)),
                receipts=tuple(receipt.line() for receipt in shown.receipts),
            )
        ended = shown.outcome.endings if shown.outcome else ()
        calls = [
            f"{call.number} {call.tool} {call.summary} {call.arguments} {call.why} {call.hash8}"
            for call in shown.card.calls
        ]
        endings = [f"{ending.how} {ending.by} {ending.reason}" for ending in ended]
        still_open = {call.approval for call in shown.card.calls} - {
            ending.approval for ending in ended
        }
        has_buttons = self.channel.capabilities.has_buttons
        return Standing(
            text=" ".join((*calls, *endings)),
            buttons=frozenset(still_open) if has_buttons else frozenset(),
        )


def lose(harness: Harness, kind: Losable) -> None:
    assert isinstance(harness, ScriptedHarness)
    harness.channel.will("ask" if kind == "card" else "send", Lost())


def scripted(name: str, capabilities: Capabilities) -> Adapter:
    @asynccontextmanager
    async def platform(directory: Path) -> AsyncGenerator[ScriptedHarness]:
        clock = ManualClock()
        channel = ScriptedChannel(clock=clock, capabilities=capabilities)
        yield ScriptedHarness(channel=channel, clock=clock)

    return Adapter(name=name, capabilities=capabilities, platform=platform, thread="t1", loses=lose)
