"""The context of a channel, for tests that need nothing else of the daemon."""

from contextlib import AbstractContextManager

from zeroclaw import Address, Hook, TranscriptItem
from zeroclaw.host.control import Serve


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
