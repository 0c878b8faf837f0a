"""What a channel is opened with where a test needs nothing of the house behind it."""

from contextlib import AbstractContextManager

from zeroclaw import Address, Hook, TranscriptItem
from zeroclaw.host.control import Serve


def no_log(event: str, /, **fields: object) -> None:
    pass


async def no_transcript(address: Address, after: str) -> tuple[TranscriptItem, ...]:
    return ()


class NoMount:
    """Fails the test of a channel that mounts something; a harness overrides what its channel mounts."""

    def web(self, prefix: str, application: object) -> str:
        raise NotImplementedError

    def stream(self, name: str, serve: Serve) -> None:
        raise NotImplementedError

    def public(self, path: str, hook: Hook) -> AbstractContextManager[None]:
        raise NotImplementedError
