"""The keys of receipts: one a process, kept for as long as configured."""

import stat
from datetime import timedelta
from pathlib import Path

import pytest

from tests.fakes.manual_clock import EPOCH
from zeroclaw.codec import encode
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate.receipt_keys import FILE, Keys, StoredKey, StoredKeys, open_keys

DAY = timedelta(days=1)


def opened(directory: Path, name: str, *, day: int = 0, keep_days: int = 30) -> Keys:
    return open_keys(
        directory, keep_days=keep_days, now=EPOCH + day * DAY, name=name, secret=name.encode() * 8
    )


def test_each_process_signs_with_a_key_of_its_own(tmp_path: Path) -> None:
    """And verifies with those before it (S2-16, P7)."""
    first = opened(tmp_path, "one1")
    second = opened(tmp_path, "two2", day=1)
    assert first.every == (first.current,)
    assert second.every == (first.current, second.current)
    assert first.since_s == second.since_s == EPOCH.timestamp()
    assert second.current.secret == b"two2" * 8
    assert repr(b"two2" * 8) not in repr(second)


def test_a_key_is_kept_for_so_many_days(tmp_path: Path) -> None:
    """Then its receipts can no longer be verified, and it is gone from disk."""
    first = opened(tmp_path, "one1")
    assert first.current in opened(tmp_path, "two2", day=29).every
    later = opened(tmp_path, "thr3", day=30)
    assert first.current not in later.every
    assert later.since_s == (EPOCH + 29 * DAY).timestamp()
    assert b"one1" not in (tmp_path / FILE).read_bytes()


def test_without_keeping_nothing_reaches_the_disk(tmp_path: Path) -> None:
    """`keep_days = 0` is memory only, and what was kept before goes (S2-17)."""
    opened(tmp_path, "zero")
    keys = opened(tmp_path, "one1", keep_days=0)
    assert (keys.every, keys.since_s) == ((keys.current,), EPOCH.timestamp())
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_the_operators_alone(tmp_path: Path) -> None:
    """Whatever a crash left beside it (P8)."""
    (tmp_path / "receipt-keys.new").write_bytes(b"half")
    opened(tmp_path, "one1")
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize(
    "body",
    [
        b"\xff",
        b"{",
        b'{"keys": 1}',
        encode(StoredKeys(keys=(StoredKey(id="a", secret="not hex", made_at=EPOCH),))),
    ],
)
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path: Path, body: bytes) -> None:
    """One line that says what to do (P10)."""
    path = tmp_path / FILE
    path.write_bytes(body)
    with pytest.raises(StoreUnusable, match="is damaged; move it away"):
        opened(tmp_path, "one1")
    assert path.read_bytes() == body


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    """With what stands in the way (P10)."""
    (tmp_path / FILE).mkdir()
    with pytest.raises(StoreUnusable, match="can't be read: is a directory"):
        opened(tmp_path, "one1")
    with pytest.raises(StoreUnusable, match="can't be written: no such file or directory"):
        opened(tmp_path / "missing", "one1")
