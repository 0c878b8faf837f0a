"""How the daemon is, for `/status` and `zeroclaw status`."""

from collections.abc import Callable, Mapping

from zeroclaw.card_words import by_whom
from zeroclaw.envelope import ConversationId
from zeroclaw.inbound.supervisor import ChannelState, Condition
from zeroclaw.store import Query, RowKind, Store
from zeroclaw.text import catalogue
from zeroclaw.text.language import ENGLISH, Language, Sentence, decimal
from zeroclaw.value import Value

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
    waiting: int
    pending: int
    disk_bytes: int
    halted: str
    restart_for: tuple[str, ...]
    dropped: Mapping[str, int]
    refused: Mapping[str, int]

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

    def __init__(
        self,
        *,
        version: str,
        store: Store,
        model: Callable[[], str],
        channels: Callable[[], Mapping[str, ChannelState]],
        busy: Callable[[], int],
        halted: Callable[[], str],
        waiting_keys: Callable[[], tuple[str, ...]],
        dropped: Callable[[], Mapping[str, int]],
        refused: Callable[[], Mapping[str, int]],
    ) -> None:
        """Hold where to look."""
        self._version = version
        self._store = store
        self._model = model
        self._channels = channels
        self._busy = busy
        self._halted = halted
        self._waiting_keys = waiting_keys
        self._dropped = dropped
        self._refused = refused

    async def report(self) -> Report:
        """Return one look."""
        return Report(
            version=self._version,
            model=self._model(),
            channels=dict(self._channels()),
            busy=self._busy(),
            waiting=await self._count(RowKind.INBOX, "queued"),
            pending=await self._count(RowKind.APPROVAL, "pending")
            + await self._count(RowKind.STRANGER, "waiting"),
            disk_bytes=await self._store.size_bytes(),
            halted=self._halted(),
            restart_for=self._waiting_keys(),
            dropped=dict(self._dropped()),
            refused=dict(self._refused()),
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
