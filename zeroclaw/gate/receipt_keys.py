"""The keys that receipts are signed with: one for each process, kept as long as configured.

The file belongs to the operator alone (0600) and is replaced as a whole. These functions read and
write a few hundred bytes; call them before the event loop runs, or in a thread.
"""

import os
from datetime import datetime, timedelta
from pathlib import Path

from zeroclaw.codec import decode, encode
from zeroclaw.errors import StoreUnusable, refused_as
from zeroclaw.gate.receipt import Key
from zeroclaw.value import Value

FILE = "receipt-keys.json"


class StoredKey(Value):
    """A key on disk; `secret` in hex."""

    id: str
    secret: str
    made_at: datetime


class StoredKeys(Value):
    """The whole file, newest key last."""

    keys: tuple[StoredKey, ...] = ()


class Keys(Value):
    """The keys for signing and verifying.

    Attributes:
        current: Signs.
        every: Verify; includes the current key.
        since_s: When the oldest of them was made, in Unix seconds. One of these keys signed every
            receipt that was issued since.
    """

    current: Key
    every: tuple[Key, ...]
    since_s: float


def open_keys(directory: Path, *, keep_days: int, now: datetime, name: str, secret: bytes) -> Keys:
    """Make this process's key, and read the kept ones.

    Args:
        directory: The data directory.
        keep_days: How long a key is kept; 0 keeps it in memory only, and deletes the file.
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
    kept = tuple(key for key in _read(path) if key.made_at > now - timedelta(days=keep_days))
    keys = _keys(path, kept, current, now)
    mine = StoredKey(id=name, secret=secret.hex(), made_at=now)
    _write(path, StoredKeys(keys=(*kept, mine)))
    return keys


def kept_keys(directory: Path, *, now: datetime, secret: bytes) -> Keys:
    """Read the kept keys for a process that only verifies; `secret` is 32 random bytes.

    Raises:
        StoreUnusable: The file is damaged or can't be read.
    """
    path = directory / FILE
    return _keys(path, _read(path), Key(id="", secret=secret), now)


def _read(path: Path) -> tuple[StoredKey, ...]:
    with refused_as(StoreUnusable, f"`{path}` can't be read", "make zeroclaw's user its owner"):
        try:
            body = path.read_bytes()
        except FileNotFoundError:
            return ()
    try:
        return decode(StoredKeys, body).keys
    except StoreUnusable as error:
        raise _damaged(path) from error


def _keys(path: Path, kept: tuple[StoredKey, ...], current: Key, now: datetime) -> Keys:
    try:
        earlier = tuple(Key(id=one.id, secret=bytes.fromhex(one.secret)) for one in kept)
    except ValueError as error:
        raise _damaged(path) from error
    since_s = min((one.made_at for one in kept), default=now).timestamp()
    return Keys(current=current, every=(*earlier, current), since_s=since_s)


def _damaged(path: Path) -> StoreUnusable:
    message = f"`{path}` is damaged; move it away, and older receipts can't be verified"
    return StoreUnusable(message)


def _write(path: Path, keys: StoredKeys) -> None:
    fresh = path.with_suffix(".new")
    with refused_as(StoreUnusable, f"`{path}` can't be written"):
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(encode(keys))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
