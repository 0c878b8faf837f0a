"""Every async test of this folder runs in virtual time."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.fakes.manual_clock import VirtualTimeLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": VirtualTimeLoop}
