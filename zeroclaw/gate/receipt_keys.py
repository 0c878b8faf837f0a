"""The keys that receipts are signed with: one for each process, kept as long as configured.

The file belongs to the operator alone (0600) and is replaced as a whole. These functions read and
write a few hundred bytes; call them before the event loop runs, or in a thread.
"""

from datetime import datetime, timedelta
from pathlib import Path

from zeroclaw.clock import LEAP, UNSET
from zeroclaw.codec import decode, encode
from zeroclaw.errors import StoreUnusable, refused_as
from zeroclaw.gate.receipt import Key
from zeroclaw.host.atomic_file import replace_private
from zeroclaw.value import Value, replace

FILE = "receipt-keys.json"
DAY = timedelta(days=1)


class StoredKey(Value):
    """A key on disk; `secret` in hex."""

    id: str
    secret: str
    made_at: datetime


class StoredKeys(Value):
    """The whole file.

    Attributes:
        keys: Newest last.
        since: The time since which every process has added its key; None in a file of an earlier
            release, which did not remove it under `keep_days = 0` and so lacks later keys.
    """

    keys: tuple[StoredKey, ...] = ()
    since: datetime | None = None


class Keys(Value):
    """The keys for signing and verifying.

    Attributes:
        current: The key that signs.
        every: The keys that verify, including the current one.
        since_s: In Unix seconds. One of these keys signed every receipt that was issued since.
        earlier: The newest known start at least a day before this one, None for none. Later ones
            may have been under the same wrong clock.
    """

    current: Key
    every: tuple[Key, ...]
    since_s: float
    earlier: datetime | None = None


def open_keys(directory: Path, *, keep_days: int, now: datetime, name: str, secret: bytes) -> Keys:
    """Make this process's key, and read the stored ones.

    Args:
        directory: The data directory.
        keep_days: How long a key is kept after the start that ended its use, longer after a long
            time without a start; 0 keeps it in memory only, and deletes the file.
        now: When the process starts.
        name: A name for the new key.
        secret: 32 random bytes.

    Raises:
        StoreUnusable: The file is damaged, or can't be read, written or removed.
    """
    current, path = Key(id=name, secret=secret), directory / FILE
    if keep_days == 0:
        with refused_as(StoreUnusable, f"`{path}` can't be removed"):
            path.unlink(missing_ok=True)
        return Keys(current=current, every=(current,), since_s=now.timestamp())
    stored = _read(path)
    starts = (key.made_at for key in stored.keys if key.made_at <= now - DAY)
    earlier = max(starts, default=None)
    believed = min(now, (earlier or now) + LEAP)  # a wrong clock would end every key
    horizon = believed - timedelta(days=keep_days)
    # A key signs until the next start, so the newest of the old ones may have signed until lately.
    oldest = max((key.made_at for key in stored.keys if key.made_at <= horizon), default=horizon)
    remaining = tuple(key for key in stored.keys if key.made_at >= oldest)
    since = max(stored.since or now, oldest)
    keys = _keys(path, StoredKeys(keys=remaining, since=since), current, now)
    # In order, or the newest of the keys that a clock in 1970 dated would not be the last to go.
    made_at = max((now, *(key.made_at for key in remaining))) if now < UNSET else now
    added = StoredKey(id=name, secret=secret.hex(), made_at=made_at)
    with refused_as(StoreUnusable, f"`{path}` can't be written"):
        replace_private(path, encode(StoredKeys(keys=(*remaining, added), since=since)))
    return replace(keys, earlier=earlier)


def stored_keys(directory: Path, *, now: datetime, secret: bytes) -> Keys:
    """Read the stored keys for a process that only verifies; `secret` is 32 random bytes.

    Raises:
        StoreUnusable: The file is damaged or can't be read.
    """
    path = directory / FILE
    return _keys(path, _read(path), Key(id="", secret=secret), now)


def _read(path: Path) -> StoredKeys:
    with refused_as(StoreUnusable, f"`{path}` can't be read", "make zeroclaw's user its owner"):
        try:
            body = path.read_bytes()
        except FileNotFoundError:
            return StoredKeys()
    try:
        return decode(StoredKeys, body)
    except StoreUnusable as error:
        raise _damaged(path) from error


def _keys(path: Path, stored: StoredKeys, current: Key, now: datetime) -> Keys:
    try:
        earlier = tuple(Key(id=key.id, secret=bytes.fromhex(key.secret)) for key in stored.keys)
    except ValueError as error:
        raise _damaged(path) from error
    since_s = (stored.since or now).timestamp()
    return Keys(current=current, every=(*earlier, current), since_s=since_s)


def _damaged(path: Path) -> StoreUnusable:
    message = f"`{path}` is damaged; move it away, and older receipts can't be verified"
    return StoreUnusable(message)
