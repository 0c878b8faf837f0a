"""A bounded dictionary for chats, people, messages and answers."""

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """Keeps the newest entries; setting a key again makes it the newest."""

    def __init__(self, limit: int) -> None:
        """Start empty; keep at most `limit` entries."""
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        """Set an entry, and drop the oldest if there are too many."""
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._limit:
            self.popitem(last=False)
