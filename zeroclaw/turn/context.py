"""The daemon's services for turns, and the context of one turn."""

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
    """One failed turn or refused post, for operators; contains nothing that a person wrote.

    Attributes:
        id: The same for each report of this failure, which may be made twice.
        reason: Equal for failures with the same cause.
        line: The line about it: who, where and why.
        place: The chat whose person has already read about it.
    """

    id: str
    reason: str
    line: Localized
    place: str


class TurnServices(Value):
    """Services for every turn; nothing in it belongs to one conversation.

    Services that several of these contain are not repeated: tools, policy and redactor are the
    gate's, the model and the event subscribers are in `sources`, the keys in `results`.

    Attributes:
        report_failure: Returns the writes that tell operators about a failed turn.
        sources: The parts of requests to the model.
        halted_by: Returns who halted a turn: one that began at the given time and was interrupted
            by a restart, or one that begins now (None). Empty without a halt.
        current: Returns a principal with the person's current data.
        revoked_by: Returns who revoked a principal, empty if no operator did.
        budget: Counts the usage of all turns.
        workspaces: Contains a directory for each conversation.
        reassembly_s: Returns for how many more seconds a message may get pieces, see `Reassembly`.
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
    report_failure: Callable[[Failure], tuple[Put, ...]]
    halted_by: Callable[[datetime | None], str]
    current: Callable[[Principal], Principal]
    revoked_by: Callable[[Principal], str]
    workspaces: Path
    reassembly_s: Callable[[str], float]

    def reply(self, item: Item, text: str) -> Put:
        """Return the row that replies to the writer of an item, in the same chat."""
        note = TextPost(address=item.address, text=text, language=item.principal.language)
        return outbox_row(self.ids.ulid(), note, item.conversation)

    def limits(self) -> TurnLimits:
        """Return the limits of a turn that begins now."""
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
        opened: The journal entry of its beginning.
        row: The turn's row at the start; its refs have grown since.
        composer: Composes its requests.
        control_arrived: Set when the control lane has a new item.
        detail: Why it fails, for operators, if its person reads less; else None.
        gated: Its calls, as far as this process has gated them; see `frozen`.
    """

    services: TurnServices
    session: ConversationSession
    opened: TurnOpened
    row: TurnRow
    composer: Composer
    control_arrived: asyncio.Event
    detail: Localized | None = None
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
        conversation, turn = self.conversation, self.opened.turn
        self.services.log(event, turn=turn, conversation=conversation, **fields)

    def publish(self, happening: Happening) -> None:
        """Publish an event of this turn to the subscribers."""
        conversation, opened = self.conversation, self.opened
        turn, correlation = opened.turn, opened.correlation
        self.services.sources.publish(
            Event(conversation=conversation, turn=turn, correlation=correlation, what=happening)
        )

    def notice(self, text: str) -> Put:
        """Return the row of a message to the chat, separate from the answer."""
        return self.services.reply(self.row.item, text)

    async def budget_notices(
        self, reads: Reads, *, skip_used_up: bool = False
    ) -> tuple[tuple[str, ...], tuple[Put, ...]]:
        """Return budget notices that are due: notes for the person, writes that tell operators.

        Args:
            reads: The reads of the plan that commits them.
            skip_used_up: Leave out budgets that are used up: the end of the turn reports them.
        """
        services, principal = self.services, self.opened.principal
        notes: list[str] = []
        writes: list[Put] = []
        for level, mark in await services.budget.due_notices(reads, principal, self.conversation):
            if skip_used_up and level.is_over:
                continue
            writes.append(mark)
            if (sentence := level.for_its_person(services.clock.now())) is not None:
                notes.append(as_note(sentence.to(self.language)))
            if (line := level.for_operators(principal.label)) is not None:
                place = "" if level.scope == "day" else self.address.key()
                writes.append(notice_row(services.ids.ulid(), line, but=place))
        return tuple(notes), tuple(writes)

    @property
    def language(self) -> Language:
        """The language of its person."""
        return self.opened.principal.language


def as_note(text: str) -> str:
    """Return a sentence of the catalogue formatted as a note."""
    return f"_{text[:1].upper()}{text[1:]}._"
