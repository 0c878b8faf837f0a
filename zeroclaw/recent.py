"""What is remembered within a bound: of chats, people, messages, answers."""

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """The newest of what was noted; what is noted once more is new again."""

    def __init__(self, most: int) -> None:
        """Know nothing yet, and at any time no more than `most`."""
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        """Note something, and forget what was noted longest ago."""
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
