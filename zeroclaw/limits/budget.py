"""Usage budgets: for a conversation, for a person per day, and for everyone per day.

The budget of a single turn is checked in `turn/machine.py`. The budgets here are checked before
each model request, so that turns running at the same time count together. A request in progress
is not cut off.

    row of a turn (`TurnRow`)       the usage of the turn, written by the commit that ends it
    journal of an open turn         its usage so far; counted again when a restart resumes it
    this module                     today's sums, read from the rows once, at start

A turn counts for the UTC date on which it began. People get one notice when a budget reaches 80 %
and one when it is used up. A row records the notice, so that a restart does not repeat it.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Literal
from urllib.parse import urlsplit

from zeroclaw.clock import SET_BACK, Clock, made_at, ulid_time
from zeroclaw.config.model import BudgetSettings, CurrentConfig, ProviderSettings
from zeroclaw.conversation.message_text import span
from zeroclaw.conversation.turn_row import TURNS, TurnRow
from zeroclaw.envelope import ConversationId, Principal, TurnId
from zeroclaw.limits.prices import (
    ALL_PERCENT,
    FREE,
    MILLIONTHS,
    PRICES,
    WARN_PERCENT,
    Dollars,
    Price,
    tokens,
)
from zeroclaw.message import Usage
from zeroclaw.network import is_this_machine
from zeroclaw.recent import Recent
from zeroclaw.store import Put, Reads, RowKind, Store
from zeroclaw.table import Column, Table, UntilDue, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized, LocalizedMessage
from zeroclaw.value import Struct, Value, field

Scope = Literal["day", "person", "conversation"]
MAX_CONVERSATIONS = 1024
"""Conversations with sums in memory; the sums of others are read from their rows again."""
NOTICE_AGE = timedelta(days=30)
"""How long the notices about a conversation's budget are recorded."""

MARKS = Table(
    kind=RowKind.BUDGET,
    codec=json_codec(int),
    columns=frozenset({Column.CONVERSATION, Column.DUE_AT}),
    keeps=UntilDue(),
)


class Spent(Value):
    """Tokens and money; only tokens with a known price add to the money."""

    tokens: int = 0
    micros: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(tokens=self.tokens + other.tokens, micros=self.micros + other.micros)


NOTHING = Spent()


class Level(Value):
    """The used share of a budget.

    Attributes:
        limit: The limit in words, in tokens or money, whichever is closer to being used up.
        percent: The used share of that limit.
        key: The key of the row that records the notices about it.
        until: When the budget starts over, or the record expires.
    """

    scope: Scope
    limit: Localized
    percent: int
    key: str
    until: datetime

    @property
    def is_over(self) -> bool:
        """Whether the budget is used up."""
        return self.percent >= ALL_PERCENT

    def for_its_person(self, now: datetime) -> LocalizedMessage | None:
        """Return the notice to the person: the level, and when it resets; None for none."""
        limit, wait = self.limit, span((self.until - now).total_seconds())
        match self.scope, self.is_over:
            case "day", True:
                return catalogue.DAY_IS_SPENT.about(limit=limit, wait=wait)
            case "person", True:
                return catalogue.SHARE_IS_SPENT.about(limit=limit, wait=wait)
            case "conversation", True:
                return catalogue.CONVERSATION_IS_SPENT.about(limit=limit)
            case "person", False:
                return catalogue.SHARE_IS_NEAR.about(percent=self.percent, limit=limit)
            case "conversation", False:
                return catalogue.CONVERSATION_IS_NEAR.about(percent=self.percent, limit=limit)
            case _:
                return None

    def for_operators(self, person: str) -> LocalizedMessage | None:
        """Return the notice to operators, who pay; None if they need none yet."""
        match self.scope, self.is_over:
            case "day", _:
                return catalogue.DAY_IS_AT.about(percent=self.percent, limit=self.limit)
            case "person", True:
                return catalogue.SHARE_OF_IS_SPENT.about(who=person, limit=self.limit)
            case "conversation", True:
                return catalogue.CONVERSATION_OF_IS_SPENT.about(who=person, limit=self.limit)
            case _:
                return None


class _TurnUsage(Value):
    """The usage of one turn."""

    day: date
    person: str
    conversation: ConversationId
    spent: Spent


class UsageBudget(Struct, eq=False):
    """Usage counters for everyone; the daemon has one. Call `remember` before counting.

    Attributes:
        store: Has the rows of past turns.
        clock: For the current day.
        settings: The budgets and prices in force.
        model: The name of the model.
    """

    store: Store
    clock: Clock
    settings: CurrentConfig
    model: str
    _day: date = date.min
    _today: dict[str, Spent] = field(default_factory=dict[str, Spent])
    _conversations: Recent[ConversationId, Spent] = field(
        default_factory=lambda: Recent(MAX_CONVERSATIONS)
    )
    _open: dict[TurnId, _TurnUsage] = field(default_factory=dict[TurnId, _TurnUsage])

    async def remember(self) -> None:
        """Read today's usage from the store; call once, before any turn runs."""
        self._begin_day()
        begins = ulid_time(_midnight(self._day))
        async for turn in TURNS.readable(self.store, state="closed", after=begins):
            if made_at(turn.turn).date() == self._day:  # not of a clock that was ahead
                self._add(turn.item.principal.id, spent(turn.usage, turn.micros))

    # --- usage -----------------------------------------------------------------------------------

    def record(self, turn: TurnRow, usage: Usage) -> None:
        """Record the usage of an open turn so far; replaces its previous record."""
        self._open[turn.turn] = self._usage_of(turn, usage)

    def close(self, turn: TurnId) -> None:
        """Count the final usage of a turn; its end is committed."""
        if (usage := self._open.pop(turn, None)) is not None:  # None if it used nothing
            self._count(usage)

    def add(self, turn: TurnRow, usage: Usage) -> None:
        """Count usage on behalf of a turn that has ended."""
        self._count(self._usage_of(turn, usage))

    def price(self) -> Price | None:
        """Return the model's current price; None if unknown."""
        config = self.settings.config
        return price_of(self.model, config.budget, config.provider)

    def cost(self, usage: Usage) -> int | None:
        """Return the cost of tokens in millionths of a dollar; None if the price is unknown."""
        price = self.price()
        return None if price is None else price.micros(usage)

    # --- levels ----------------------------------------------------------------------------------

    async def exceeded(
        self, principal: Principal, conversation: ConversationId | None
    ) -> LocalizedMessage | None:
        """Return the notice of a used-up budget, which bars a request; None if there is none."""
        exceeded = [level for level in await self.levels(principal, conversation) if level.is_over]
        return exceeded[0].for_its_person(self.clock.now()) if exceeded else None

    async def due_notices(
        self, reads: Reads, principal: Principal, conversation: ConversationId
    ) -> tuple[tuple[Level, Put], ...]:
        """Return the levels that need a notice, each with the write that records it."""
        found: list[tuple[Level, Put]] = []
        for level in await self.levels(principal, conversation):
            if level.percent < WARN_PERCENT:
                continue
            step = ALL_PERCENT if level.is_over else WARN_PERCENT
            if step > (await MARKS.find(reads, level.key) or 0):
                scope = conversation if level.scope == "conversation" else None
                mark = MARKS.put(level.key, step, conversation=scope, due_at=level.until)
                found.append((level, mark))
        return tuple(found)

    async def levels(
        self, principal: Principal, conversation: ConversationId | None = None
    ) -> tuple[Level, ...]:
        """Return the level of each configured budget, everyone's first.

        Args:
            principal: The person.
            conversation: The conversation of the calling turn, in which no other turn can end
                meanwhile; None to leave its budget out.
        """
        settings = self.settings.config.budget
        day_bounds = settings.day_tokens, settings.day_usd
        share = settings.person_day_tokens, settings.person_day_usd
        bounds = settings.conversation_tokens, settings.conversation_usd
        if not any((*day_bounds, *share, *bounds)):
            return ()  # no budget is configured; each turn calls this some four times
        self._begin_day()
        day, now = str(self._day), self.clock.now()
        ends_at = _midnight(self._day) + timedelta(days=1)
        counted = [turn for turn in self._open.values() if turn.day == self._day]
        of_person = [turn for turn in counted if turn.person == principal.id]
        everyone, person = self._today.get("", NOTHING), self._today.get(principal.id, NOTHING)
        found = [
            *_level("day", day, ends_at, day_bounds, _sum(everyone, counted)),
            *_level("person", f"{day}/{principal.id}", ends_at, share, _sum(person, of_person)),
        ]
        if conversation and any(bounds):
            running = [turn for turn in self._open.values() if turn.conversation == conversation]
            used, until = _sum(await self._ended(conversation), running), now + NOTICE_AGE
            found += _level("conversation", conversation, until, bounds, used)
        return tuple(found)

    async def _ended(self, conversation: ConversationId) -> Spent:
        """Return the usage of a conversation's ended turns, as far back as they are stored."""
        if conversation not in self._conversations:
            # Not `state="closed"`: SQLite would use that index, and nearly all turns are closed.
            # The row of an open turn has no usage.
            turns = TURNS.readable(self.store, conversation=conversation)
            used = [spent(turn.usage, turn.micros) async for turn in turns]
            self._conversations[conversation] = sum(used, NOTHING)
        return self._conversations[conversation]

    def _usage_of(self, turn: TurnRow, usage: Usage) -> _TurnUsage:
        return _TurnUsage(
            day=made_at(turn.turn).date(),
            person=turn.item.principal.id,
            conversation=turn.item.conversation,
            spent=spent(usage, self.cost(usage)),
        )

    def _count(self, usage: _TurnUsage) -> None:
        self._begin_day()
        if usage.day == self._day:
            self._add(usage.person, usage.spent)
        if usage.conversation in self._conversations:
            self._conversations[usage.conversation] += usage.spent

    def _begin_day(self) -> None:
        """Reset the sums when a new day begins, but not when the clock is set back by a day."""
        today = self.clock.now().astimezone(UTC).date()
        if today > self._day or today < self._day - SET_BACK:
            self._day, self._today = today, {}

    def _add(self, person: str, amount: Spent) -> None:
        for key in ("", person):
            self._today[key] = self._today.get(key, NOTHING) + amount


def spent(usage: Usage, micros: int | None) -> Spent:
    """Return usage and cost as `Spent`."""
    return Spent(tokens=usage.total_tokens, micros=micros or 0)


def _sum(ended: Spent, open_: Iterable[_TurnUsage]) -> Spent:
    return sum((usage.spent for usage in open_), ended)


def _level(
    scope: Scope, key: str, until: datetime, bounds: tuple[int, float], used: Spent
) -> Iterator[Level]:
    """Yield the level of a budget that limits tokens or US dollars; nothing if it is unlimited."""
    max_tokens, max_usd = bounds
    max_micros = round(max_usd * MILLIONTHS)
    shares: list[tuple[int, Localized]] = []
    if max_tokens:
        shares.append((used.tokens * ALL_PERCENT // max_tokens, tokens(max_tokens)))
    if max_micros:
        shares.append((used.micros * ALL_PERCENT // max_micros, Dollars(micros=max_micros)))
    if shares:
        percent, limit = max(shares, key=lambda share: share[0])
        yield Level(scope=scope, limit=limit, percent=percent, key=key, until=until)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


# --- prices --------------------------------------------------------------------------------------


def price_of(model: str, budget: BudgetSettings, provider: ProviderSettings) -> Price | None:
    """Return the price of a model, None if unknown.

    A configured price comes first. A model on this machine is free. The price table is keyed by
    model name, without a vendor prefix or a date suffix.
    """
    if (configured := budget.prices.get(model)) is not None:
        cached = configured.input if configured.cached is None else configured.cached
        return Price(input=configured.input, output=configured.output, cached=cached)
    if provider.kind in {"local", "scripted"} or _is_local(provider.base_url):
        return FREE
    return PRICES.get(_DATED.sub("", model.rpartition("/")[2]))


_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")


@lru_cache(maxsize=8)  # each turn asks three times
def _is_local(base_url: str) -> bool:
    return is_this_machine(urlsplit(base_url).hostname or "")
