"""What models used, and whether they may use more: of a conversation, of a person's day, of a day.

A turn's own bounds are the machine's (`turn/machine.py`). These are looked at before each request,
so that what several turns use at once counts together; a request under way is not cut off.

    row of a turn (`TurnRow`)        what it used, in the commit that ends it
    journal of an open turn         what it used so far; a restart counts that again as it resumes
    here                            the sums of today, read from the rows once, at the start

A day is the date in UTC on which a turn began. That 80 % of a budget is used, and that all of it is,
is said once; what was said is a row, so that a restart does not say it again.
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
from zeroclaw.store import Put, RowKind, Store
from zeroclaw.table import Codec, Column, Table, UntilDue, Words
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized, LocalizedMessage
from zeroclaw.value import Struct, Value, field

Scope = Literal["day", "person", "conversation"]
MOST_KEPT = 1024
"""Conversations whose sums stay in memory; those of others are read from their rows again."""
TOLD_FOR = timedelta(days=30)
"""For how long it is remembered what was said of a conversation's budget."""

MARKS = Table(
    kind=RowKind.BUDGET,
    owner="limits",
    codec=Codec[int](encode=lambda percent: str(percent).encode(), decode=int),
    columns=frozenset({Column.CONVERSATION, Column.DUE_AT}),
    keeps=UntilDue(),
    words=Words.NOBODY,
)


class Spent(Value):
    """Tokens and money; money of those tokens alone whose price is known."""

    tokens: int = 0
    micros: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(tokens=self.tokens + other.tokens, micros=self.micros + other.micros)


NOTHING = Spent()


class Level(Value):
    """How far a budget is used.

    Attributes:
        limit: In words, of tokens or of money: of what is nearer to its end.
        percent: Of that one.
        key: Names the row that remembers what was said of it.
        until: When it begins anew, or what was said is forgotten.
    """

    scope: Scope
    limit: Localized
    percent: int
    key: str
    until: datetime

    @property
    def is_over(self) -> bool:
        """It is used up."""
        return self.percent >= ALL_PERCENT

    def for_its_person(self, now: datetime) -> LocalizedMessage | None:
        """Say how far it is, and when it goes on; None for what concerns the house alone."""
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
        """Say the same to operators, who pay; None for what they need not know yet."""
        match self.scope, self.is_over:
            case "day", _:
                return catalogue.DAY_IS_AT.about(percent=self.percent, limit=self.limit)
            case "person", True:
                return catalogue.SHARE_OF_IS_SPENT.about(who=who, limit=self.limit)
            case "conversation", True:
                return catalogue.CONVERSATION_OF_IS_SPENT.about(who=who, limit=self.limit)
            case _:
                return None


class _Counted(Value):
    """What one open turn used so far."""

    day: date
    person: str
    conversation: ConversationId
    spent: Spent


class Budget(Struct, eq=False):
    """Counts for all people; one for the whole daemon. Nothing is counted before `remember`.

    Attributes:
        store: Holds the turns' rows.
        clock: Says what day it is.
        settings: Hold the bounds, and prices.
        model: Whose tokens are used.
    """

    store: Store
    clock: Clock
    settings: CurrentConfig
    model: str
    _day: date = date.min
    _today: dict[str, Spent] = field(default_factory=dict[str, Spent])
    _conversations: dict[ConversationId, Spent] = field(default_factory=dict[ConversationId, Spent])
    _open: dict[TurnId, _Counted] = field(default_factory=dict[TurnId, _Counted])

    async def remember(self) -> None:
        """Read what was used today; once, before any turn runs."""
        self._begin_day()
        begins = ulid_time(_midnight(self._day))
        async for turn in TURNS.all(self.store, state="closed", after=begins):
            self._add(turn.item.principal.id, spent(turn.usage, turn.micros))

    # --- what turns use --------------------------------------------------------------------------

    def used(
        self, turn: TurnId, whose: Principal, conversation: ConversationId, usage: Usage
    ) -> None:
        """Note what an open turn used so far, in place of what was noted before."""
        self._open[turn] = _Counted(
            day=made_at(turn).date(),
            person=whose.id,
            conversation=conversation,
            spent=spent(usage, self.cost(usage)),
        )

    def closed(self, turn: TurnId) -> None:
        """Count what a turn used for good: its end is committed."""
        one = self._open.pop(turn, None)
        if one is None:
            return  # it used nothing
        self._count(one)

    def added(self, turn: TurnRow, conversation: ConversationId, usage: Usage) -> None:
        """Count what was used for a turn that is over."""
        more, whose = spent(usage, self.cost(usage)), turn.item.principal.id
        day = made_at(turn.turn).date()
        self._count(_Counted(day=day, person=whose, conversation=conversation, spent=more))

    def price(self) -> Price | None:
        """Return what the model's tokens cost by now; None where it is not known."""
        config = self.settings.config
        return price_of(self.model, config.budget, config.provider)

    def cost(self, usage: Usage) -> int | None:
        """Return what tokens cost, in millionths of a dollar; None where it is not known."""
        price = self.price()
        return None if price is None else price.micros(usage)

    # --- what is left ----------------------------------------------------------------------------

    async def reached(
        self, whose: Principal, conversation: ConversationId | None
    ) -> LocalizedMessage | None:
        """Say what is used up before a request; None where it may be sent."""
        over = [one for one in await self.levels(whose, conversation) if one.is_over]
        return over[0].for_its_person(self.clock.now()) if over else None

    async def unsaid(
        self, whose: Principal, conversation: ConversationId
    ) -> tuple[tuple[Level, Put], ...]:
        """Return what people have still to be told, each with the write that remembers it.

        The writes meet a conflict when it was said meanwhile.
        """
        found: list[tuple[Level, Put]] = []
        for level in await self.levels(whose, conversation):
            if level.percent < WARN_PERCENT:
                continue
            step = ALL_PERCENT if level.is_over else WARN_PERCENT
            said, version = await MARKS.read(self.store, level.key)
            if step > (said or 0):
                here = conversation if level.scope == "conversation" else None
                mark = MARKS.put(
                    level.key, step, conversation=here, due_at=level.until, expect=version
                )
                found.append((level, mark))
        return tuple(found)

    async def levels(
        self, whose: Principal, conversation: ConversationId | None = None
    ) -> tuple[Level, ...]:
        """Return how far each bounded budget is used, the house's first.

        Args:
            whose: The person.
            conversation: Of the turn that asks, for no other turn ends there meanwhile; None to
                leave its budget out.
        """
        settings = self.settings.config.budget
        day_bounds = settings.day_tokens, settings.day_usd
        share = settings.person_day_tokens, settings.person_day_usd
        bounds = settings.conversation_tokens, settings.conversation_usd
        if not any((*day_bounds, *share, *bounds)):
            return ()  # as a turn is told some four times, where nobody has set any
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
        """Return what the turns of a conversation used that are over, as far back as they are kept."""
        if conversation not in self._conversations:
            over = TURNS.all(self.store, conversation=conversation, state="closed")
            used = [spent(turn.usage, turn.micros) async for turn in over]
            if len(self._conversations) >= MOST_KEPT:
                self._conversations.clear()
            self._conversations[conversation] = sum(used, NOTHING)
        return self._conversations[conversation]

    def _count(self, one: _Counted) -> None:
        self._begin_day()
        if one.day == self._day:
            self._add(one.person, one.spent)
        if one.conversation in self._conversations:
            self._conversations[one.conversation] += one.spent

    def _begin_day(self) -> None:
        """Begin a new day with nothing; a clock that was set back begins none."""
        today = self.clock.now().astimezone(UTC).date()
        if today > self._day:
            self._day, self._today = today, {}

    def _add(self, person: str, more: Spent) -> None:
        for whose in ("", person):
            self._today[whose] = self._today.get(whose, NOTHING) + more


def spent(usage: Usage, micros: int | None) -> Spent:
    """Return what a turn used, as it is counted."""
    return Spent(tokens=usage.total_tokens, micros=micros or 0)


def _sum(ended: Spent, open_: Iterable[_Counted]) -> Spent:
    return sum((one.spent for one in open_), ended)


def _level(
    scope: Scope, key: str, until: datetime, bounds: tuple[int, float], used: Spent
) -> Iterator[Level]:
    """Yield how far a budget is used that is bounded, in tokens or in US dollars."""
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
    """Return what a model's tokens cost, None where it is not known.

    What the configuration says comes first. A model on this machine costs nothing. The table knows
    models by their names; a vendor before it, or a date behind it, does not matter.
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
