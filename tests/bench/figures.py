"""The figures of one run of the bench: what was measured, in which unit, and how a reader sees it."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import asdict

from zeroclaw.value import Value


class Figure(Value):
    """One row of the table.

    Attributes:
        samples: How many measurements are behind the median.
        p95: The 95th percentile by nearest rank; None for a figure with a single value.
        aim: What is aimed at, in words; empty for a figure without an aim.
        skipped: Why there is nothing measured, empty when there is.
    """

    name: str
    unit: str = ""
    median: float | None = None
    samples: int = 1
    least: float | None = None
    p95: float | None = None
    most: float | None = None
    aim: str = ""
    skipped: str = ""


@dataclass(eq=False, kw_only=True)
class Report:
    """All figures, in the order they were measured."""

    figures: list[Figure] = field(default_factory=list[Figure])

    def one(self, name: str, value: float, unit: str, *, aim: str = "") -> None:
        """Add a figure with a single value."""
        self.figures.append(Figure(name=name, unit=unit, median=value, aim=aim))

    def many(self, name: str, values: Sequence[float], unit: str, *, aim: str = "") -> None:
        """Add a figure measured several times."""
        ordered = sorted(values)
        self.figures.append(
            Figure(
                name=name,
                unit=unit,
                median=statistics.median(ordered),
                samples=len(ordered),
                least=ordered[0],
                p95=ordered[math.ceil(0.95 * len(ordered)) - 1],
                most=ordered[-1],
                aim=aim,
            )
        )

    def skipped(self, name: str, reason: str) -> None:
        """Add what could not be measured here."""
        self.figures.append(Figure(name=name, samples=0, skipped=reason))

    def as_json(self) -> list[dict[str, object]]:
        """Return the figures for a file."""
        return [asdict(figure) for figure in self.figures]

    def table(self) -> Iterator[str]:
        """Return the lines for people."""
        wide = max((len(figure.name) for figure in self.figures), default=0)
        yield f"{'':{wide}}  {'median':>9} {'min':>9} {'p95':>9} {'max':>9}  unit, samples, aim"
        for figure in self.figures:
            if figure.skipped:
                yield f"{figure.name:{wide}}  skipped: {figure.skipped}"
                continue
            columns = (figure.median, figure.least, figure.p95, figure.most)
            numbers = " ".join(f"{_short(value):>9}" for value in columns)
            count = f", {figure.samples}" if figure.samples > 1 else ""
            aim = f"  (aim {figure.aim})" if figure.aim else ""
            yield f"{figure.name:{wide}}  {numbers}  {figure.unit}{count}{aim}"


def _short(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
