"""The fences of the conversations that this process holds, shared by whoever writes for one."""

import asyncio
from weakref import WeakValueDictionary

from zeroclaw.envelope import ConversationId
from zeroclaw.store import Fence, Store


class Leases:
    """Takes each conversation once, for as long as anybody holds its fence.

    A fence that was lost, or that everybody has let go of, is taken anew.
    """

    def __init__(self, store: Store) -> None:
        """Hold none yet."""
        self._store = store
        self._held: WeakValueDictionary[ConversationId, Fence] = WeakValueDictionary()
        self._taking: WeakValueDictionary[ConversationId, asyncio.Lock] = WeakValueDictionary()

    def __len__(self) -> int:
        """How many conversations somebody holds now."""
        return len(self._held)

    async def fence_of(self, conversation: ConversationId) -> Fence:
        """Return the fence, taking the conversation if this process doesn't hold it.

        Everybody who asks meanwhile waits for the one who takes it: a second lease would make the
        first worthless, and whoever holds the conversation by that one would think it lost.
        """
        held = self._held.get(conversation)
        if held is not None:
            return held
        async with self._taking.setdefault(conversation, asyncio.Lock()):
            held = self._held.get(conversation)
            if held is None:
                held = await self._store.lease(conversation)
                self._held[conversation] = held
        return held

    def lost(self, conversation: ConversationId) -> None:
        """Forget a fence that somebody newer has made worthless."""
        self._held.pop(conversation, None)
