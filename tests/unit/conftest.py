"""The fixtures of the tests of a room."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.house import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada, who is the operator, and Ben, on one platform; nothing has been said yet."""
    return World(tmp_path)


@pytest.fixture
def own_logging() -> Iterator[None]:
    """For a test that sets up logging: this changes the process, and pytest's own comes back."""
    loggers = [logging.getLogger(name) for name in ("", "zeroclaw")]
    root, levels = loggers[0], [logger.level for logger in loggers]
    handlers, root.handlers[:] = root.handlers[:], []  # so that `set_up` closes none of them
    yield
    root.handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
