"""A user who can't enter every directory, also where root runs the tests."""

import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def unprivileged() -> Generator[None]:
    """Run as another user than root, who could enter every directory."""
    user = os.geteuid()
    other = user or 65_533
    os.setresuid(other, other, user)
    try:
        yield
    finally:
        os.setresuid(user, user, user)
