"""Keeps a second daemon off the data directory.

The lock is `flock` on a file of its own: the kernel drops it when its holder dies, however it
dies, and it works between two openings within one process as well.
"""

import fcntl
import os
from pathlib import Path

from zeroclaw.errors import StoreUnusable
from zeroclaw.stores.sqlite.troubles import unusable

LOCK_NAME = "lock"
_PID_BYTES = 20


def lock_directory(directory: Path) -> int:
    """Lock the directory until the returned file descriptor is closed.

    Raises:
        StoreUnusable: Somebody else holds it, or it can't be locked.
    """
    path = directory / LOCK_NAME
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise unusable(error, path) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as error:
        holder = os.pread(descriptor, _PID_BYTES, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        known = f" (pid {holder})" if holder.isdigit() else ""
        message = f"another zeroclaw{known} runs on `{directory}`; stop it, or name another data directory"
        raise StoreUnusable(message) from error
    except OSError as error:
        os.close(descriptor)
        raise unusable(error, path) from error
    return descriptor
