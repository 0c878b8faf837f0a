"""Instants as the integers they are stored as: microseconds since 1970, UTC, exactly."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(at: datetime) -> int:
    """Encode an aware instant; a naive one is a fault of the caller (`TypeError`)."""
    return (at - _EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """Decode to UTC."""
    return _EPOCH + microseconds * _MICROSECOND
