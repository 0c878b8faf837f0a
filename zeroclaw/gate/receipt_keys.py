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
    """

    current: Key
    every: tuple[Key, ...]


def open_keys(directory: Path, *, keep_days: int, now: datetime, name: str, secret: bytes) -> Keys:
    """Make this process's key, and read the kept ones.

    Args:
        directory: The data directory.
        keep_days: How long a key is kept; 0 keeps it in memory only.
        now: When the process starts.
        name: A name for the new key.
        secret: 32 random bytes.

    Raises:
        StoreUnusable: The file is damaged, or can't be read or written.
    """
    current = Key(id=name, secret=secret)
    if keep_days == 0:
        return Keys(current=current, every=(current,))
    path = directory / FILE
    kept = tuple(key for key in read_keys(path) if key.made_at > now - timedelta(days=keep_days))
    earlier = tuple(_key(path, key) for key in kept)
    mine = StoredKey(id=name, secret=secret.hex(), made_at=now)
    _write(path, StoredKeys(keys=(*kept, mine)))
    return Keys(current=current, every=(*earlier, current))


def read_keys(path: Path) -> tuple[StoredKey, ...]:
    """Return the keys in a file, none when there is no file.

    Raises:
        StoreUnusable: It is damaged or can't be read.
    """
    with refused_as(StoreUnusable, f"`{path}` can't be read", "make zeroclaw's user its owner"):
        try:
            body = path.read_bytes()
        except FileNotFoundError:
            return ()
    try:
        return decode(StoredKeys, body).keys
    except StoreUnusable as error:
        raise _damaged(path) from error


def _key(path: Path, stored: StoredKey) -> Key:
    try:
        return Key(id=stored.id, secret=bytes.fromhex(stored.secret))
    except ValueError as error:
        raise _damaged(path) from error


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
