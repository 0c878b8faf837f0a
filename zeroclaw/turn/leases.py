"""The fences of the conversations that this process holds, shared by whoever writes for one."""

from zeroclaw.envelope import ConversationId
from zeroclaw.store import Fence, Store


class Leases:
    """Takes each conversation once and keeps its fence; a fence that was lost is taken anew."""

    def __init__(self, store: Store) -> None:
        """Hold none yet."""
        self._store = store
        self._held: dict[ConversationId, Fence] = {}

    async def fence_of(self, conversation: ConversationId) -> Fence:
        """Return the fence, taking the conversation if this process doesn't hold it."""
        held = self._held.get(conversation)
        if held is None:
            held = self._held[conversation] = await self._store.lease(conversation)
        return held

    def lost(self, conversation: ConversationId) -> None:
        """Forget a fence that somebody newer has made worthless."""
        self._held.pop(conversation, None)
