"""What the files of this room work with: one value that knows, in place of a dozen arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from zeroclaw.channel import ChannelLog
from zeroclaw.clock import Clock, Ids
from zeroclaw.config.model import Config
from zeroclaw.gate.policy import PolicySet
from zeroclaw.inbound.identity import People
from zeroclaw.store import Store


class Settings(Protocol):
    """The configuration in force; a reload replaces it."""

    @property
    def config(self) -> Config:
        """Return it."""
        ...


class Policy(Protocol):
    """The policy in force, a halt and the revoked included."""

    @property
    def halted_by(self) -> str:
        """Return who halted everything, empty for nobody."""
        ...

    def __call__(self) -> PolicySet:
        """Return it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundContext:
    """One for the whole daemon.

    Attributes:
        store: Where everything is kept.
        clock: For deadlines and ages.
        ids: For rows, and for codes.
        settings: The configuration in force.
        policy: The policy in force.
        people: Who is known.
        redact: For what people type.
        log: For facts.
    """

    store: Store
    clock: Clock
    ids: Ids
    settings: Settings
    policy: Policy
    people: People
    redact: Callable[[str], str]
    log: ChannelLog
