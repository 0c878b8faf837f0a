"""How the daemon is, for `/status` and `zeroclaw status`."""

from collections.abc import Callable, Mapping

from zeroclaw.card_words import by_whom
from zeroclaw.envelope import ConversationId
from zeroclaw.host.answers import Status
from zeroclaw.store import Query, RowKind, Store
from zeroclaw.text import catalogue
from zeroclaw.text.language import ENGLISH, Language, Sentence, decimal
from zeroclaw.value import Struct, replace

CONDITIONS: Mapping[str, Sentence] = {
    "starting": catalogue.CHANNEL_IS_STARTING,
    "up": catalogue.CHANNEL_IS_UP,
    "waiting": catalogue.CHANNEL_IS_WAITING,
    "down": catalogue.CHANNEL_IS_DOWN,
}


class StatusOf(Struct, eq=False):
    """Looks at the daemon.

    Attributes:
        live: Reports what is in memory.
    """

    store: Store
    live: Callable[[], Status]

    async def report(self) -> Status:
        """Return one look."""
        return replace(
            self.live(),
            waiting=await self._count(RowKind.INBOX, "queued"),
            pending=await self._count(RowKind.APPROVAL, "pending")
            + await self._count(RowKind.STRANGER, "waiting"),
            disk_bytes=await self.store.size_bytes(),
        )

    async def __call__(self, conversation: ConversationId, language: Language = ENGLISH) -> str:
        """Return one look in Markdown, with what waits in this conversation."""
        report = await self.report()
        waiting = await self._count(RowKind.INBOX, "queued", conversation)
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
            here=waiting,
            waiting=report.waiting,
            busy=report.busy,
            pending=report.pending,
            mebibytes=decimal(report.disk_bytes / 1_048_576, language),
            halted=halted,
        )
        return told + limits

    async def _count(
        self, kind: RowKind, state: str, conversation: ConversationId | None = None
    ) -> int:
        return await self.store.count(Query(kind=kind, conversation=conversation, state=state))
