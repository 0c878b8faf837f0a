"""What every turn works with: the daemon's services, and the context of one turn."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from zeroclaw.channel import Log
from zeroclaw.clock import Clock, Ids
from zeroclaw.context.composer import Composer, RequestSources
from zeroclaw.context.recollection import Recollection
from zeroclaw.conversation.downloads import Downloads
from zeroclaw.conversation.inbox import Item
from zeroclaw.conversation.turn_row import TurnRow
from zeroclaw.delivery.live import Live
from zeroclaw.delivery.outbox import Outbox
from zeroclaw.delivery.rows import TextPost, notice_row, outbox_row
from zeroclaw.envelope import ActionId, Address, ConversationId, Principal
from zeroclaw.events import Event, Happening
from zeroclaw.gate.action import ACTIONS, Frozen
from zeroclaw.gate.decide import Gate
from zeroclaw.gate.taint import Source, named
from zeroclaw.limits.budget import UsageBudget
from zeroclaw.limits.prices import MILLIONTHS
from zeroclaw.store import Put, Reads, Store
from zeroclaw.text.language import Language, Localized
from zeroclaw.turn.entries import TurnOpened
from zeroclaw.turn.results import Results
from zeroclaw.turn.session import ConversationSession
from zeroclaw.turn.states import TurnLimits
from zeroclaw.value import Value, field


class Failure(Value):
    """One failure; contains nothing that a person wrote.

    Attributes:
        id: The same for each report of this failure, which may be made twice.
        why: Equal for failures with the same cause.
        says: The line about it: who, where and why.
        place: The chat whose person was already told.
    """

    id: str
    why: str
    says: Localized
    place: str


class TurnServices(Value):
    """Services for every turn; nothing in it belongs to one conversation.

    Services that several of these contain are not repeated: tools, policy and redactor are the
    gate's, the model and the event subscribers are in `sources`, the keys in `results`.

    Attributes:
        failed: Returns the writes that tell operators about a failed message.
        sources: What requests to the model are made of.
        halted: Returns who halted a turn: one that began at the given time and was interrupted by
            a restart, or one that begins now (None). Empty without a halt.
        known: Returns the current state of a principal.
        revoked: Returns who revoked a principal, empty if no operator did.
        budget: Counts the usage of all turns.
        workspaces: Contains a directory for each conversation.
        left_s: Returns for how many more seconds pieces of a message may come, see `Reassembly`.
    """

    store: Store
    gate: Gate
    arrivals: Downloads
    recollection: Recollection
    sources: RequestSources
    live: Live
    outbox: Outbox
    results: Results
    clock: Clock
    ids: Ids
    log: Log
    budget: UsageBudget
    failed: Callable[[Failure], tuple[Put, ...]]
    halted: Callable[[datetime | None], str]
    known: Callable[[Principal], Principal]
    revoked: Callable[[Principal], str]
    workspaces: Path
    left_s: Callable[[str], float]

    def reply(self, item: Item, text: str) -> Put:
        """Return the row that replies to the writer of an item, in the same chat."""
        note = TextPost(address=item.address, text=text, language=item.principal.language)
        return outbox_row(self.ids.ulid(), note, item.conversation)

    def limits(self) -> TurnLimits:
        """Return what a turn that begins now may use."""
        config = self.sources.settings.config
        runtime, budget = config.runtime, config.budget
        return TurnLimits(
            max_rounds=runtime.max_iterations,
            max_tokens=budget.turn_tokens or None,
            max_micros=round(budget.turn_usd * MILLIONTHS) or None,
            price=self.budget.price(),
            max_repeats=runtime.max_repeats,
            warn_repeats=runtime.warn_repeats,
        )


class TurnContext(Value):
    """One turn and everything that it works with.

    Attributes:
        opened: How it began.
        row: The turn's row at the start; its refs have grown since.
        composer: Composes its requests.
        news: Set when the control lane has something new.
        why: Why it fails, for operators, if that differs from what its person reads.
        gated: Its calls, as far as this process has gated them; see `frozen`.
    """

    services: TurnServices
    session: ConversationSession
    opened: TurnOpened
    row: TurnRow
    composer: Composer
    news: asyncio.Event
    why: Localized | None = None
    gated: dict[ActionId, Frozen] = field(default_factory=dict[ActionId, Frozen])

    @property
    def untrusted(self) -> tuple[Source, ...]:
        """The sources of untrusted text that Context Providers added to its requests."""
        names = self.composer.untrusted
        return (named("context", ", ".join(names)),) if names else ()

    @property
    def conversation(self) -> ConversationId:
        """The conversation of this turn."""
        return self.session.conversation

    @property
    def address(self) -> Address:
        """The address of its answer."""
        return self.row.address

    async def frozen(self, action: ActionId) -> Frozen:
        """Return a gated call, which may not be stored yet."""
        return self.gated.get(action) or await ACTIONS.need(self.services.store, action)

    def log(self, event: str, /, **fields: object) -> None:
        """Log an event of this turn; a `Log`."""
        here, turn = self.conversation, self.opened.turn
        self.services.log(event, turn=turn, conversation=here, **fields)

    def publish(self, what: Happening) -> None:
        """Tell subscribers what happened to the turn."""
        here, opened = self.conversation, self.opened
        turn, correlation = opened.turn, opened.correlation
        self.services.sources.publish(
            Event(conversation=here, turn=turn, correlation=correlation, what=what)
        )

    def says(self, text: str) -> Put:
        """Return the row of a message to the chat, separate from the answer."""
        return self.services.reply(self.row.item, text)

    async def of_budgets(
        self, reads: Reads, *, but_over: bool = False
    ) -> tuple[tuple[str, ...], tuple[Put, ...]]:
        """Return budget notices that are due: notes for the person, writes that tell operators.

        Args:
            reads: What the plan of their commit reads through.
            but_over: Leave out budgets that are used up: the end of the turn says so.
        """
        services, whose = self.services, self.opened.principal
        notes: list[str] = []
        writes: list[Put] = []
        for level, mark in await services.budget.due_notices(reads, whose, self.conversation):
            if but_over and level.is_over:
                continue
            writes.append(mark)
            if (line := level.for_its_person(services.clock.now())) is not None:
                notes.append(as_note(line.to(self.language)))
            if (told := level.for_operators(whose.label)) is not None:
                here = "" if level.scope == "day" else self.address.key()
                writes.append(notice_row(services.ids.ulid(), told, but=here))
        return tuple(notes), tuple(writes)

    @property
    def language(self) -> Language:
        """The language of its person."""
        return self.opened.principal.language


def as_note(text: str) -> str:
    """Return a sentence of the catalogue formatted as a note."""
    return f"_{text[:1].upper()}{text[1:]}._"
