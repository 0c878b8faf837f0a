"""Take one update: decode it, show it to the door, and begin what its sender is to see.

However updates come, each goes through here, and its sender hears nothing before the door was told.
"""

from collections import Counter
from typing import Protocol

from channels.telegram.decode import Me, Passed, Taken, decoded
from zeroclaw import Admission, Admit, ChannelLog, ZeroclawError


class Then(Protocol):
    """What follows an admission."""

    def __call__(self, event: Taken | Passed, admission: Admission | None) -> None:
        """Begin what the sender is to see; never waits. None for what was passed over."""
        ...


class Taking:
    """Takes the updates of one account.

    Attributes:
        passed: How many were passed over, by what they were.
    """

    def __init__(self, *, admit: Admit, then: Then, me: Me, log: ChannelLog) -> None:
        """Hold what is needed.

        Args:
            admit: The door.
            then: Told of each event after the door was.
            me: Who decodes.
            log: For facts.
        """
        self._admit = admit
        self._then = then
        self._me = me
        self._log = log
        self.passed: Counter[str] = Counter()

    async def take(self, update: object) -> bool:
        """Show an update to the door; False when it could not be stored, and must come again."""
        event = decoded(update, self._me)
        admission: Admission | None = None
        if isinstance(event, Taken):
            try:
                admission = await self._admit(event.envelope)
            except ZeroclawError as error:
                self._log("event_not_admitted", why=str(error), level="warning")
                return False
        else:
            self.passed[event.why] += 1
            self._log("update_passed_over", why=event.why, level="debug")
        self._then(event, admission)
        return True
