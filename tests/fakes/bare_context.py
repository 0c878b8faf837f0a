"""What a channel is opened with where a test needs nothing of the house behind it."""

from contextlib import AbstractContextManager

from zeroclaw import Address, Hook, TranscriptItem
from zeroclaw.host.control import Serve


def no_log(event: str, /, **fields: object) -> None:
    pass


async def no_transcript(address: Address, after: str) -> tuple[TranscriptItem, ...]:
    return ()


class NoMount:
    """Of a channel that goes out to its platform, and is visited by nobody."""

    def web(self, prefix: str, application: object) -> str:
        raise NotImplementedError

    def stream(self, name: str, serve: Serve) -> None:
        raise NotImplementedError

    def public(self, path: str, hook: Hook) -> AbstractContextManager[None]:
        raise NotImplementedError
