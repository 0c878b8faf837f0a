"""What holds for every platform that calls the public listener."""

from collections import Counter

from zeroclaw import ChannelLog, HookAnswer


class Refusals(Counter[str]):
    """How many posts were not the platform's, by the reason."""

    def __init__(self, log: ChannelLog) -> None:
        """Count nothing yet."""
        super().__init__()
        self._log = log

    def refuse(self, why: str) -> HookAnswer:
        """Count one, and return its answer; of a flood the first, second, fourth and so on are logged."""
        self[why] += 1
        count = self[why]
        if count & (count - 1) == 0:  # a power of two
            self._log("webhook_refused", why=why, count=count, level="warning")
        return HookAnswer(status=401)
