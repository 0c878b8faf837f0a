"""What an emulated platform is: a place to try a bot on without the platform itself.

An entry point of the group `zeroclaw.emulators` names a function that takes an `EmulatorContext` and
returns an asynchronous context manager; inside it the platform answers on a loopback port.
`zeroclaw try NAME` opens it.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from zeroclaw.clock import Clock, Ids
from zeroclaw.value import Value


class EmulatorContext(Value):
    """What an emulator is handed.

    Attributes:
        port: Where it answers, on 127.0.0.1; 0 for any free port.
        has_limits: It holds the bot to the limits that the platform publishes.
    """

    clock: Clock
    ids: Ids
    port: int
    has_limits: bool


class Emulated(Value):
    """An emulator that is open.

    Attributes:
        page: The address where a person acts, with a key that can't be guessed.
        tables: What to add to a configuration, as TOML holds it: the channel, and who is who.
        environment: The variables that these tables name as secrets.
    """

    page: str
    tables: Mapping[str, object]
    environment: Mapping[str, str]


Emulate = Callable[[EmulatorContext], AbstractAsyncContextManager[Emulated]]
