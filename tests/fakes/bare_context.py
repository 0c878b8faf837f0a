"""The context of a channel, for tests that need nothing else of the daemon."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from tests.fakes.manual_clock import ManualClock
from zeroclaw import (
    Address,
    ChannelContext,
    Clock,
    Hook,
    Log,
    Menu,
    Mount,
    OutgoingFile,
    TranscriptItem,
)
from zeroclaw.host.control import Serve
from zeroclaw.text.language import Localized

NOWHERE = Path("/dev/null/nowhere")
"""A directory that can't even be made, for channels that keep no files."""


def no_log(event: str, /, **fields: object) -> None:
    pass


async def no_transcript(address: Address, after: str) -> tuple[TranscriptItem, ...]:
    return ()


class NoMount:
    """Fails if a channel mounts something; a harness overrides the methods that its channel calls."""

    def web(self, prefix: str, application: object) -> str:
        raise NotImplementedError

    def stream(self, name: str, serve: Serve) -> None:
        raise NotImplementedError

    def public(self, path: str, hook: Hook) -> AbstractContextManager[None]:
        raise NotImplementedError


async def no_file(address: Address, key: str) -> OutgoingFile | None:
    return None


async def never_off_the_record(address: Address) -> bool:
    return False


async def tell_nobody(sentence: Localized) -> None:
    pass


def admits_everybody(sender: str) -> bool:
    return True


def bare_context(
    name: str,
    settings: object,
    *,
    secrets: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    mount: Mount | None = None,
    log: Log = no_log,
    positions: Mapping[str, str] | None = None,
    account: str = "",
    transcript: Callable[[Address, str], Awaitable[tuple[TranscriptItem, ...]]] = no_transcript,
    directory: Path = NOWHERE,
) -> ChannelContext:
    """Return a context in which nothing is stored, nobody is told, and everybody is admitted."""
    return ChannelContext(
        name=name,
        settings=settings,
        secrets=secrets or {},
        clock=clock or ManualClock(),
        mount=mount or NoMount(),
        log=log,
        positions={} if positions is None else positions,
        account=account,
        transcript=transcript,
        directory=directory,
        sent_file=no_file,
        is_off_the_record=never_off_the_record,
        menu=Menu(),
        tell=tell_nobody,
        admits=admits_everybody,
    )
