"""What a channel remembers of chats, people and messages, within a bound."""

from collections import OrderedDict
from typing import TypeVar

V = TypeVar("V")


class Known(OrderedDict[str, V]):
    """The newest of what was noted; what is noted once more is new again."""

    def __init__(self, most: int) -> None:
        """Know nothing yet, and at any time no more than `most`."""
        super().__init__()
        self._most = most

    def __setitem__(self, key: str, value: V) -> None:
        """Note something, and forget what was noted longest ago."""
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
