"""How the daemon is, for `/status` and `zeroclaw status`."""

from collections.abc import Callable, Mapping

from zeroclaw.card_words import by_whom
from zeroclaw.envelope import ConversationId
from zeroclaw.inbound.supervisor import ChannelState, Condition
from zeroclaw.store import Query, RowKind, Store
from zeroclaw.text import catalogue
from zeroclaw.text.language import ENGLISH, Language, Sentence, decimal
from zeroclaw.value import Value, replace

CONDITIONS: Mapping[Condition, Sentence] = {
    "starting": catalogue.CHANNEL_IS_STARTING,
    "up": catalogue.CHANNEL_IS_UP,
    "waiting": catalogue.CHANNEL_IS_WAITING,
    "down": catalogue.CHANNEL_IS_DOWN,
}


class Report(Value):
    """One look at the daemon.

    Attributes:
        model: The model's name, and its note if it has one.
        channels: By name.
        busy: Conversations that have something to do.
        waiting: Messages that wait for their turn.
        pending: Questions that wait for an answer, about calls and about strangers.
        disk_bytes: What the store takes.
        halted: Who halted everything, empty for nobody.
        restart_for: Keys of the configuration that a reload found changed, and that need a restart.
        dropped: Events of strangers, by channel, since the start.
        refused: Messages over a limit, by channel, since the start.
    """

    version: str
    model: str
    channels: Mapping[str, ChannelState]
    busy: int
    halted: str
    restart_for: tuple[str, ...]
    dropped: Mapping[str, int]
    refused: Mapping[str, int]
    waiting: int = 0
    pending: int = 0
    disk_bytes: int = 0

    def as_json(self) -> dict[str, object]:
        """Return the report as plain JSON."""
        return {
            "version": self.version,
            "model": self.model,
            "channels": {
                name: {
                    "condition": state.condition,
                    "since": state.since.isoformat(),
                    "why": state.why,
                }
                for name, state in self.channels.items()
            },
            "busy": self.busy,
            "waiting": self.waiting,
            "pending": self.pending,
            "disk_bytes": self.disk_bytes,
            "halted": self.halted,
            "restart_for": list(self.restart_for),
            "dropped": dict(self.dropped),
            "refused": dict(self.refused),
        }


class StatusOf:
    """Looks at the daemon."""

    def __init__(self, store: Store, live: Callable[[], Report]) -> None:
        """Hold where to look; `live` reports what is in memory."""
        self._store = store
        self._live = live

    async def report(self) -> Report:
        """Return one look."""
        return replace(
            self._live(),
            waiting=await self._count(RowKind.INBOX, "queued"),
            pending=await self._count(RowKind.APPROVAL, "pending")
            + await self._count(RowKind.STRANGER, "waiting"),
            disk_bytes=await self._store.size_bytes(),
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
        return await self._store.count(Query(kind=kind, conversation=conversation, state=state))
