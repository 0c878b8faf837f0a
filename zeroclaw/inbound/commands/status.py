"""The daemon's status, for `/status` and `zeroclaw status`."""

from collections.abc import Callable, Mapping

from zeroclaw.card_words import by_whom
from zeroclaw.conversation.inbox import INBOX
from zeroclaw.gate.approval import APPROVALS
from zeroclaw.host.answers import Status
from zeroclaw.inbound.commands.invocation import Invocation, Reply
from zeroclaw.inbound.pairing import STRANGERS
from zeroclaw.store import Store
from zeroclaw.text import catalogue
from zeroclaw.text.language import Sentence, decimal
from zeroclaw.value import Struct, replace

CONDITIONS: Mapping[str, Sentence] = {
    "starting": catalogue.CHANNEL_IS_STARTING,
    "up": catalogue.CHANNEL_IS_UP,
    "waiting": catalogue.CHANNEL_IS_WAITING,
    "down": catalogue.CHANNEL_IS_DOWN,
}


class StatusCommand(Struct, eq=False):
    """Collects the status.

    Attributes:
        live: Returns the part that is in memory.
    """

    store: Store
    live: Callable[[], Status]

    async def report(self) -> Status:
        """Return the current status."""
        return replace(
            self.live(),
            waiting=await self.store.count(INBOX.where(state="queued")),
            pending=await self.store.count(APPROVALS.where(state="pending"))
            + await self.store.count(STRANGERS.where(state="waiting")),
            disk_bytes=await self.store.size_bytes(),
        )

    async def told(self, given: Invocation) -> Reply:
        """Reply with the current status, with the queue of this conversation."""
        report, language = await self.report(), given.language
        here = INBOX.where(conversation=given.here, state="queued")
        channels = ", ".join(
            f"`{name}` {CONDITIONS[state.condition].to(language)}"
            f"{f' ({state.why})' if state.why else ''}"
            for name, state in sorted(report.channels.items())
        )
        halted = catalogue.STATUS_HALTED.about(who=by_whom(report.halted)) if report.halted else ""
        refused = sum(report.refused.values())
        limits = catalogue.STATUS_LIMITS.to(language, count=refused) if refused else ""
        told = catalogue.STATUS.to(
            language,
            version=report.version,
            model=report.model,
            channels=channels,
            here=await self.store.count(here),
            waiting=report.waiting,
            busy=report.busy,
            pending=report.pending,
            mebibytes=decimal(report.disk_bytes / 1_048_576, language),
            halted=halted,
        )
        return Reply(text=told + limits)
