"""What every turn works with: the daemon's services, and what one turn is."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from zeroclaw.channel import ChannelLog
from zeroclaw.clock import Clock, Ids
from zeroclaw.context.composer import Composer, RequestSources
from zeroclaw.context.recollection import Recollection
from zeroclaw.conversation.downloads import Downloads
from zeroclaw.conversation.inbox import Item
from zeroclaw.conversation.numbers import Numbers
from zeroclaw.conversation.turn_row import TurnRow
from zeroclaw.delivery.live import Live
from zeroclaw.delivery.outbox import Outbox
from zeroclaw.delivery.rows import Text, notice_row, outbox_row
from zeroclaw.envelope import ActionId, Address, ConversationId, Principal
from zeroclaw.events import Event, Happening
from zeroclaw.gate.action import Frozen
from zeroclaw.gate.decide import Gate
from zeroclaw.limits.budget import UsageBudget
from zeroclaw.limits.prices import MILLIONTHS
from zeroclaw.store import Put, Store
from zeroclaw.text.language import Language, Localized
from zeroclaw.turn.entries import TurnOpened
from zeroclaw.turn.results import Results, frozen_call
from zeroclaw.turn.session import ConversationSession
from zeroclaw.turn.states import Limits
from zeroclaw.value import Value, field


class Failure(Value):
    """One failure; no words of a person.

    Attributes:
        id: The same each time that this one is told, which may be asked for twice.
        why: What is equal where the cause is.
        says: The line about it: who, where and why.
        place: The chat whose person was told already.
    """

    id: str
    why: str
    says: Localized
    place: str


class TurnServices(Value):
    """Handed to every turn; nothing in it belongs to one conversation.

    What several of these stand on is not named again: tools, policy and redactor are the gate's, the
    model and who hears of events those of requests, and the keys are with the results.

    Attributes:
        failed: Returns what to write with a message that fails, so that operators are told.
        sources: What requests to the model are made of.
        halted: Who ended by a halt a turn that a restart cut off, and that began then, or one that
            begins now (None); empty when no halt did.
        known: Who this principal is by now.
        revoked: Who revoked this principal, empty when no operator did.
        budget: Counts what all turns use.
        workspaces: Holds a directory for each conversation.
        left_s: For how many seconds more pieces of a message may come, see `Debounce`.
    """

    store: Store
    gate: Gate
    arrivals: Downloads
    recollection: Recollection
    sources: RequestSources
    live: Live
    outbox: Outbox
    results: Results
    numbers: Numbers
    clock: Clock
    ids: Ids
    log: ChannelLog
    budget: UsageBudget
    failed: Callable[[Failure], tuple[Put, ...]]
    halted: Callable[[datetime | None], str]
    known: Callable[[Principal], Principal]
    revoked: Callable[[Principal], str]
    workspaces: Path
    left_s: Callable[[str], float]

    def reply(self, item: Item, text: str) -> Put:
        """Return the row that says something to the writer of an item, where they wrote it."""
        note = Text(address=item.address, text=text, language=item.principal.language)
        return outbox_row(self.ids.ulid(), note, item.conversation)

    def limits(self) -> Limits:
        """Return what a turn that begins now may use."""
        config = self.sources.settings.config
        runtime, budget = config.runtime, config.budget
        return Limits(
            max_rounds=runtime.max_iterations,
            max_tokens=budget.turn_tokens or None,
            max_micros=round(budget.turn_usd * MILLIONTHS) or None,
            price=self.budget.price(),
            max_repeats=runtime.max_repeats,
            warn_repeats=runtime.warn_repeats,
        )


class TurnContext(Value):
    """One turn and all that it works with.

    Attributes:
        opened: How it began.
        row: As it stood then; its refs have grown since.
        version: Of the row, then.
        composer: Composes its requests.
        news: Set when the control lane has something new.
        why: Why it fails, for operators, where that is not what its person reads.
        gated: Its calls, as far as this process has gated them; see `frozen`.
    """

    services: TurnServices
    session: ConversationSession
    opened: TurnOpened
    row: TurnRow
    version: int
    composer: Composer
    news: asyncio.Event
    why: Localized | None = None
    gated: dict[ActionId, Frozen] = field(default_factory=dict[ActionId, Frozen])

    @property
    def conversation(self) -> ConversationId:
        """Whose turn it is."""
        return self.session.conversation

    @property
    def address(self) -> Address:
        """Where it is answered."""
        return self.row.address

    async def frozen(self, action: ActionId) -> Frozen:
        """Return a gated call, which need not be on record yet."""
        return self.gated.get(action) or await frozen_call(self.services.store, action)

    def publish(self, what: Happening) -> None:
        """Tell subscribers what happened to the turn."""
        here, opened = self.conversation, self.opened
        turn, correlation = opened.turn, opened.correlation
        self.services.sources.publish(
            Event(conversation=here, turn=turn, correlation=correlation, what=what)
        )

    def says(self, text: str) -> Put:
        """Return the row that says something in the chat, beside the answer."""
        return self.services.reply(self.row.item, text)

    async def of_budgets(
        self, *, but_over: bool = False
    ) -> tuple[tuple[str, ...], tuple[Put, ...]]:
        """Return what is said once of budgets: notes for its person, the writes that tell operators.

        Args:
            but_over: Leave out what is used up: that is told as the turn ends.
        """
        services, whose = self.services, self.opened.principal
        notes: list[str] = []
        writes: list[Put] = []
        for level, mark in await services.budget.due_notices(whose, self.conversation):
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
        """What its person reads."""
        return self.opened.principal.language


def as_note(text: str) -> str:
    """Return a sentence of the catalogue as it stands below an answer, or by itself."""
    return f"_{text[:1].upper()}{text[1:]}._"
