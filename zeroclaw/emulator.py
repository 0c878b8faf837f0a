"""The contract of an emulator: a local stand-in for a platform, to try a bot on.

An entry point of the group `zeroclaw.emulators` names a function that takes an `EmulatorContext`
and returns an asynchronous context manager. While that context is open, the emulated platform
answers on a loopback port. `zeroclaw try NAME` opens it.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from zeroclaw.clock import Clock, Ids
from zeroclaw.value import Value


class EmulatorContext(Value):
    """The argument of an emulator.

    Attributes:
        port: The port on 127.0.0.1 to listen on; 0 for any free port.
        has_limits: Enforce the rate limits that the platform publishes.
    """

    clock: Clock
    ids: Ids
    port: int
    has_limits: bool


class Emulated(Value):
    """A running emulator.

    Attributes:
        page: The URL of the page where a person acts as a user; it carries an unguessable key.
        tables: Tables to add to a configuration, as parsed TOML: the channel and its people.
        environment: The environment variables that these tables reference as secrets.
    """

    page: str
    tables: Mapping[str, object]
    environment: Mapping[str, str]


Emulate = Callable[[EmulatorContext], AbstractAsyncContextManager[Emulated]]
