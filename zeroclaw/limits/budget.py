"""Usage budgets: for a conversation, for a person per day, and for everyone per day.

The budget of a single turn is checked in `turn/machine.py`. The budgets here are checked before
each model request, so that turns running at the same time count together. A request in progress
is not cut off.

    row of a turn (`TurnRow`)        what the turn used, in the commit that ends it
    journal of an open turn         what it used so far; counted again when a restart resumes it
    this module                     today's sums, read from the rows once, at start

A turn counts for the UTC date on which it began. People are told once when a budget reaches 80 %
and once when it is used up. A row records what they were told, so that a restart does not repeat it.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Literal
from urllib.parse import urlsplit

from zeroclaw.clock import Clock, made_at, ulid_time
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
from zeroclaw.store import Put, Reads, RowKind, Store, scan
from zeroclaw.table import Column, Table, UntilDue, Words, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized, LocalizedMessage
from zeroclaw.value import Struct, Value, field

Scope = Literal["day", "person", "conversation"]
MOST_KEPT = 1024
"""Conversations with sums in memory; sums of others are read from their rows again."""
TOLD_FOR = timedelta(days=30)
"""How long to remember what people were told about a conversation's budget."""

MARKS = Table(
    kind=RowKind.BUDGET,
    codec=json_codec(int),
    columns=frozenset({Column.CONVERSATION, Column.DUE_AT}),
    keeps=UntilDue(),
    words=Words.NOBODY,
)


class Spent(Value):
    """Tokens and money; only tokens with a known price add to the money."""

    tokens: int = 0
    micros: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(tokens=self.tokens + other.tokens, micros=self.micros + other.micros)


NOTHING = Spent()


class Level(Value):
    """How much of a budget is used.

    Attributes:
        limit: The limit in words, in tokens or money, whichever is closer to being used up.
        percent: The used share of that limit.
        key: The key of the row that records what people were told about it.
        until: When the budget starts over, or the record expires.
    """

    scope: Scope
    limit: Localized
    percent: int
    key: str
    until: datetime

    @property
    def is_over(self) -> bool:
        """The budget is used up."""
        return self.percent >= ALL_PERCENT

    def for_its_person(self, now: datetime) -> LocalizedMessage | None:
        """Return what to tell the person: the level and when it resets; None for nothing."""
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

    def for_operators(self, who: str) -> LocalizedMessage | None:
        """Return what to tell operators, who pay; None if they need not know yet."""
        match self.scope, self.is_over:
            case "day", _:
                return catalogue.DAY_IS_AT.about(percent=self.percent, limit=self.limit)
            case "person", True:
                return catalogue.SHARE_OF_IS_SPENT.about(who=who, limit=self.limit)
            case "conversation", True:
                return catalogue.CONVERSATION_OF_IS_SPENT.about(who=who, limit=self.limit)
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
        clock: Tells the current day.
        settings: The budgets and prices in force.
        model: The model that is called.
    """

    store: Store
    clock: Clock
    settings: CurrentConfig
    model: str
    _day: date = date.min
    _today: dict[str, Spent] = field(default_factory=dict[str, Spent])
    _conversations: dict[ConversationId, Spent] = field(default_factory=dict[ConversationId, Spent])
    _open: dict[TurnId, _TurnUsage] = field(default_factory=dict[TurnId, _TurnUsage])

    async def remember(self) -> None:
        """Read today's usage from the store; call once, before any turn runs."""
        self._begin_day()
        begins = ulid_time(_midnight(self._day))
        async for turn in TURNS.readable(self.store, state="closed", after=begins):
            self._add(turn.item.principal.id, spent(turn.usage, turn.micros))

    # --- what turns use --------------------------------------------------------------------------

    def record(self, turn: TurnRow, usage: Usage) -> None:
        """Record the usage of an open turn so far; replaces its previous record."""
        self._open[turn.turn] = self._usage_of(turn, usage)

    def close(self, turn: TurnId) -> None:
        """Count the final usage of a turn; its end is committed."""
        if (one := self._open.pop(turn, None)) is not None:  # else it used nothing
            self._count(one)

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

    # --- what is left ----------------------------------------------------------------------------

    async def exceeded(
        self, whose: Principal, conversation: ConversationId | None
    ) -> LocalizedMessage | None:
        """Return why a request may not be sent, because a budget is used up; None if it may."""
        over = [one for one in await self.levels(whose, conversation) if one.is_over]
        return over[0].for_its_person(self.clock.now()) if over else None

    async def due_notices(
        self, reads: Reads, whose: Principal, conversation: ConversationId
    ) -> tuple[tuple[Level, Put], ...]:
        """Return the levels people must still be told about, each with the write that records it."""
        found: list[tuple[Level, Put]] = []
        for level in await self.levels(whose, conversation):
            if level.percent < WARN_PERCENT:
                continue
            step = ALL_PERCENT if level.is_over else WARN_PERCENT
            if step > (await MARKS.get(reads, level.key) or 0):
                here = conversation if level.scope == "conversation" else None
                mark = MARKS.put(level.key, step, conversation=here, due_at=level.until)
                found.append((level, mark))
        return tuple(found)

    async def levels(
        self, whose: Principal, conversation: ConversationId | None = None
    ) -> tuple[Level, ...]:
        """Return how much of each configured budget is used, everyone's first.

        Args:
            whose: The person.
            conversation: The conversation of the calling turn, in which no other turn can end
                meanwhile; None to leave its budget out.
        """
        settings = self.settings.config.budget
        day_bounds = settings.day_tokens, settings.day_usd
        share = settings.person_day_tokens, settings.person_day_usd
        bounds = settings.conversation_tokens, settings.conversation_usd
        if not any((*day_bounds, *share, *bounds)):
            return ()  # no budget is configured; a turn asks about four times
        self._begin_day()
        day, now = str(self._day), self.clock.now()
        ends_at = _midnight(self._day) + timedelta(days=1)
        counted = [one for one in self._open.values() if one.day == self._day]
        theirs = [one for one in counted if one.person == whose.id]
        everybodys, own = self._today.get("", NOTHING), self._today.get(whose.id, NOTHING)
        found = [
            *_level("day", day, ends_at, day_bounds, _sum(everybodys, counted)),
            *_level("person", f"{day}/{whose.id}", ends_at, share, _sum(own, theirs)),
        ]
        if conversation and any(bounds):
            here = [one for one in self._open.values() if one.conversation == conversation]
            used, until = _sum(await self._ended(conversation), here), now + TOLD_FOR
            found += _level("conversation", conversation, until, bounds, used)
        return tuple(found)

    async def _ended(self, conversation: ConversationId) -> Spent:
        """Return the usage of a conversation's ended turns, as far back as they are stored."""
        if conversation not in self._conversations:
            # SQLite would look a state up first, but nearly all turns of the store are closed.
            rows = scan(self.store, TURNS.where(conversation=conversation))
            over = [TURNS.of(row) async for row in rows if row.state == "closed"]
            used = (spent(turn.usage, turn.micros) for turn in over)
            if len(self._conversations) >= MOST_KEPT:
                self._conversations.clear()
            self._conversations[conversation] = sum(used, NOTHING)
        return self._conversations[conversation]

    def _usage_of(self, turn: TurnRow, usage: Usage) -> _TurnUsage:
        return _TurnUsage(
            day=made_at(turn.turn).date(),
            person=turn.item.principal.id,
            conversation=turn.item.conversation,
            spent=spent(usage, self.cost(usage)),
        )

    def _count(self, one: _TurnUsage) -> None:
        self._begin_day()
        if one.day == self._day:
            self._add(one.person, one.spent)
        if one.conversation in self._conversations:
            self._conversations[one.conversation] += one.spent

    def _begin_day(self) -> None:
        """Reset the sums when a new day begins; a clock that was set back does not reset them."""
        today = self.clock.now().astimezone(UTC).date()
        if today > self._day:
            self._day, self._today = today, {}

    def _add(self, person: str, more: Spent) -> None:
        for whose in ("", person):
            self._today[whose] = self._today.get(whose, NOTHING) + more


def spent(usage: Usage, micros: int | None) -> Spent:
    """Return usage and cost as `Spent`."""
    return Spent(tokens=usage.total_tokens, micros=micros or 0)


def _sum(ended: Spent, open_: Iterable[_TurnUsage]) -> Spent:
    return sum((one.spent for one in open_), ended)


def _level(
    scope: Scope, key: str, until: datetime, bounds: tuple[int, float], used: Spent
) -> Iterator[Level]:
    """Yield the level of a budget that limits tokens or US dollars; nothing if it is unlimited."""
    most, most_usd = bounds
    most_micros = round(most_usd * MILLIONTHS)
    shares: list[tuple[int, Localized]] = []
    if most:
        shares.append((used.tokens * ALL_PERCENT // most, tokens(most)))
    if most_micros:
        shares.append((used.micros * ALL_PERCENT // most_micros, Dollars(micros=most_micros)))
    if shares:
        percent, limit = max(shares, key=lambda one: one[0])
        yield Level(scope=scope, limit=limit, percent=percent, key=key, until=until)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


# --- prices --------------------------------------------------------------------------------------


def price_of(model: str, budget: BudgetSettings, provider: ProviderSettings) -> Price | None:
    """Return the price of a model, None if unknown.

    A configured price comes first. A model on this machine is free. The price table is keyed by
    model name, without a vendor prefix or a date suffix.
    """
    if (own := budget.prices.get(model)) is not None:
        cached = own.input if own.cached is None else own.cached
        return Price(input=own.input, output=own.output, cached=cached)
    if provider.kind in {"local", "scripted"} or _is_here(provider.base_url):
        return FREE
    return PRICES.get(_DATED.sub("", model.rpartition("/")[2]))


_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")


@lru_cache(maxsize=8)  # each turn asks three times
def _is_here(base_url: str) -> bool:
    return is_this_machine(urlsplit(base_url).hostname or "")
