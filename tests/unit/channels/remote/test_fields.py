"""Times as platforms tell them: in UTC, or none."""

from datetime import UTC, datetime

import pytest

from channels._remote.fields import moment, utc


@pytest.mark.parametrize(
    ("told", "at"),
    [
        ("2026-01-01T13:00:00+01:00", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        ("2026-01-01T12:00:00", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        ("0001-01-01T00:00:00+01:00", None),
        ("9999-12-31T23:59:59-01:00", None),
    ],
)
def test_a_time_in_any_zone_is_one_in_utc(told: str, at: datetime | None) -> None:
    found = utc(datetime.fromisoformat(told))
    assert (found, found and found.tzinfo) == (at, at and UTC)


@pytest.mark.parametrize(
    ("seconds", "at"),
    [
        (1, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (0, None),
        (999_999_999_999, None),
        (None, None),
    ],
)
def test_seconds_are_a_time_if_any_year_has_it(seconds: int | None, at: datetime | None) -> None:
    assert moment(seconds) == at
