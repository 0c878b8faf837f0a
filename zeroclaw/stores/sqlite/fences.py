"""Who holds which conversation: fences of this process, above an epoch that each opening raises.

One process has the file, so the leases need no disk: an epoch that grows with each opening makes
every fence of an earlier process older than any of this one. Lives on the writer's thread.
"""

from weakref import WeakValueDictionary

from zeroclaw.envelope import ConversationId
from zeroclaw.errors import Fenced
from zeroclaw.store import UNFENCED, Commit, Fence

_LEASES_PER_EPOCH = 2**32  # epochs above, leases below; together they stay under 2**63


class Fences:
    """The newest fence of each conversation, as long as somebody holds it.

    Without that one no older fence is worth anything, so it need not be remembered.
    """

    def __init__(self, epoch: int) -> None:
        self._last = epoch * _LEASES_PER_EPOCH
        self._newest: WeakValueDictionary[ConversationId, Fence] = WeakValueDictionary()

    def __len__(self) -> int:
        """How many conversations somebody holds."""
        return len(self._newest)

    def lease(self, conversation: ConversationId) -> Fence:
        """Return a fence newer than every other one of the conversation."""
        self._last += 1
        fence = Fence(conversation=conversation, token=self._last)
        self._newest[conversation] = fence
        return fence

    def check(self, commit: Commit) -> None:
        """Raise `Fenced` unless the commit may be written in its scope."""
        fence = commit.fence
        if fence is None:
            if commit.conversation is not None and commit.point not in UNFENCED:
                message = f"`{commit.point}` needs a fence of conversation `{commit.conversation}`"
                raise Fenced(message)
            return
        if fence.conversation != commit.conversation:
            message = f"a fence of `{fence.conversation}` was shown for `{commit.conversation}`"
            raise Fenced(message)
        if self._newest.get(fence.conversation) != fence:
            message = f"somebody newer holds conversation `{fence.conversation}`"
            raise Fenced(message)
