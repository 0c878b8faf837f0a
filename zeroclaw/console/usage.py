"""Shows model usage: a bar per day, and use per person and per model.

Pure.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from zeroclaw.console.markup import Html, cut, empty, joined, line, panel, tag
from zeroclaw.host.answers import Used
from zeroclaw.limits.prices import amount, grouped, total

MAX_ROWS = 50
HIGH, WIDE = 100, 10
"""Height of the chart, and width of a bar with its gap, in SVG units."""


def usage(used: Sequence[Used], first: date, last: date) -> Html:
    """Return the section for all days from the first to the last."""
    if not used:
        none_used = empty(
            "No model was used in these days.",
            "What models use is told here by day, person and model; `[budget]` bounds it.",
        )
        return panel("Tokens per day", none_used, id_="days")
    days = [str(first + timedelta(days=ahead)) for ahead in range((last - first).days + 1)]
    summary = f"{first} to {last}, in UTC: {_amount(total(used))}"
    return joined(
        (
            panel(
                "Tokens per day",
                _chart(days, grouped(used, "day")),
                tag("p", summary, class_="note"),
                id_="days",
            ),
            panel("People", _sums(grouped(used, "person"), "person"), id_="people"),
            panel("Models", _sums(grouped(used, "model"), "model"), id_="models"),
        )
    )


def _chart(days: Sequence[str], used: Mapping[str, Used]) -> Html:
    busiest = max(used, key=lambda day: _tokens(used[day]))
    bars: list[Html] = []
    for index, day in enumerate(days):
        spent = used.get(day, Used())
        # Little usage still gets a visible bar.
        height = max(_tokens(spent) * HIGH // _tokens(used[busiest]), min(_tokens(spent), 1))
        left = index * WIDE
        bar = tag("rect", x=left, y=HIGH - height, width=WIDE - 2, height=height, class_="bar")
        # The whole column shows the tooltip, however low its bar is.
        ground = tag("rect", x=left, y=0, width=WIDE, height=HIGH, class_="ground")
        bars.append(tag("g", tag("title", f"{day}: {_amount(spent)}"), ground, bar))
    return tag(
        "svg",
        *bars,
        class_="chart",
        role="img",
        aria_label=f"tokens per day; most on {busiest}: {_amount(used[busiest])}",
        viewBox=f"0 0 {WIDE * len(days)} {HIGH}",
        preserveAspectRatio="none",
    )


def _sums(used: Mapping[str, Used], kind: str) -> Html:
    """Return a row per name, largest usage first."""
    ordered = sorted(used.items(), key=lambda item: _tokens(item[1]), reverse=True)
    rest = "more are not shown; `zeroclaw usage` lists them."

    def row(item: tuple[str, Used]) -> Html:
        name, use = item
        turns = "1 turn" if use.turns == 1 else f"{use.turns:,} turns"
        parts = f"{use.input_tokens:,} in ({use.cached_tokens:,} cached), {use.output_tokens:,} out"
        aside = (f"{_amount(use)} · {turns} · {parts}",)
        return line((tag("bdi", name),), aside, id_=f"{kind}-{ordered.index(item)}")

    return cut(row, ordered, MAX_ROWS, rest, id_=f"{kind}-sums")


def _tokens(used: Used) -> int:
    return used.input_tokens + used.output_tokens


def _amount(used: Used) -> str:
    return amount(used).to("en")
