"""What wakes whoever holds a conversation: something new is in its inbox."""

import asyncio


class Bell:
    """Rings when something new is in a conversation's inbox."""

    def __init__(self) -> None:
        """Begin silent."""
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Say that there is something new."""
        self._event.set()

    def silence(self) -> None:
        """Forget what rang; called before looking, so that nothing is missed."""
        self._event.clear()

    @property
    def rings(self) -> bool:
        """Something came since the last look."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until it rings."""
        await self._event.wait()
