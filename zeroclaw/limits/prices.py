"""Prices of tokens, and the sums and texts of amounts.

Money is counted in whole millionths of a US dollar, so that sums are exact.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from zeroclaw.host.answers import By, Used
from zeroclaw.message import Usage
from zeroclaw.text import catalogue
from zeroclaw.text.language import Grouped, Language, Localized, LocalizedMessage
from zeroclaw.value import Value

MILLIONTHS = 1_000_000
WARN_PERCENT, ALL_PERCENT = 80, 100
"""Percentages of a budget at which people get a notice: nearly, and entirely used up."""


class Price(Value):
    """US dollars per million tokens, which equals millionths of a dollar per token."""

    input: float
    output: float
    cached: float

    def micros(self, usage: Usage) -> int:
        """Return the cost of tokens in millionths of a dollar, rounded up."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        uncached = usage.input_tokens - cached
        cost = uncached * self.input + cached * self.cached + usage.output_tokens * self.output
        # Drop float noise first, or `ceil` would round it up to a whole unit.
        return math.ceil(round(cost, 6))


FREE = Price(input=0, output=0, cached=0)

AS_OF = "2026-09"
"""The month of the prices below, compiled from public tables of the vendors' list prices.
`[budget.prices]` overrides them: for a contract, a region, a newer model."""
PRICES: Mapping[str, Price] = {
    name: Price(input=uncached, cached=cached, output=output)
    for name, uncached, cached, output in (
        ("gpt-4o", 2.50, 1.25, 10.00),
        ("gpt-4o-mini", 0.15, 0.075, 0.60),
        ("gpt-4.1", 2.00, 0.50, 8.00),
        ("gpt-4.1-mini", 0.40, 0.10, 1.60),
        ("gpt-4.1-nano", 0.10, 0.025, 0.40),
        ("gpt-5", 1.25, 0.125, 10.00),
        ("gpt-5-mini", 0.25, 0.025, 2.00),
        ("gpt-5-nano", 0.05, 0.005, 0.40),
        ("claude-haiku-4-5", 1.00, 0.10, 5.00),
        ("claude-sonnet-4-5", 3.00, 0.30, 15.00),
        ("claude-sonnet-4-6", 3.00, 0.30, 15.00),
        ("claude-opus-4-6", 5.00, 0.50, 25.00),
    )
}


class Dollars(Value):
    """An amount of money: shown to the cent; below one dollar, to a hundredth of a cent."""

    micros: int

    def to(self, language: Language) -> str:
        """Return the amount in a language's notation; see `Localized`."""
        dollars = self.micros / MILLIONTHS
        text = f"{dollars:.4f}" if 0 < self.micros < MILLIONTHS else f"{dollars:,.2f}"
        return f"{text.translate(_GERMAN)} $" if language == "de" else f"${text}"


_GERMAN = str.maketrans(",.", ".,")


def tokens(count: int) -> LocalizedMessage:
    """Return a number of tokens in words."""
    return catalogue.TOKENS.about(count=Grouped(number=count))


def rounds(count: int) -> LocalizedMessage:
    """Return a number of tool-call rounds in words."""
    return catalogue.ROUNDS.about(count=Grouped(number=count))


def dollars(micros: int) -> Dollars:
    """Return an amount of money in words."""
    return Dollars(micros=micros)


# --- sums ----------------------------------------------------------------------------------------


def total(used: Iterable[Used]) -> Used:
    """Return the sum of usage records, without a day, a person or a model."""
    rows = tuple(used)
    return Used(
        turns=sum(row.turns for row in rows),
        input_tokens=sum(row.input_tokens for row in rows),
        output_tokens=sum(row.output_tokens for row in rows),
        cached_tokens=sum(row.cached_tokens for row in rows),
        micros=sum(row.micros for row in rows),
        unpriced_tokens=sum(row.unpriced_tokens for row in rows),
    )


def grouped(used: Iterable[Used], by: By) -> dict[str, Used]:
    """Return the sums of usage records by one of their fields, sorted by it."""
    found: dict[str, list[Used]] = defaultdict(list)
    for row in used:
        found[getattr(row, by)].append(row)
    return {name: total(found[name]) for name in sorted(found)}


def amount(used: Used) -> Localized:
    """Return usage in words: tokens, and money if it cost any."""
    count = tokens(used.input_tokens + used.output_tokens)
    money = Dollars(micros=used.micros)
    if used.unpriced_tokens:
        unpriced = tokens(used.unpriced_tokens)
        return catalogue.TOKENS_PARTLY_PRICED.about(tokens=count, money=money, unpriced=unpriced)
    return catalogue.TOKENS_PRICED.about(tokens=count, money=money) if used.micros else count
