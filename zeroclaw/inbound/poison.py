"""Lets one event that breaks our own code hold up its channel for a while, and not for ever.

A platform delivers again what was not stored, and nothing behind it: so an event that a fault in the
code can't take would silence a whole channel until somebody looks. After enough tries it is given
up, and an operator is told. A store that is away is no such fault: it is waited for.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable

from zeroclaw.channel import Admit, ChannelLog
from zeroclaw.envelope import Admission, Envelope, Ignored
from zeroclaw.errors import ChannelUnavailable, ZeroclawError
from zeroclaw.foreign import Raised, call
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized

TRIES = 20
"""How often an event is tried; channels wait about a second in between."""
REMEMBERED = 256
"""Events that are counted at the same time; the oldest one's count begins anew."""


class Poison:
    """Stands before the door of one channel."""

    def __init__(
        self,
        *,
        channel: str,
        admit: Admit,
        tell_operators: Callable[[str, Localized], Awaitable[None]],
        log: ChannelLog,
    ) -> None:
        """Hold the door of `channel`, and whom to tell; see `Supervisor`."""
        self._channel = channel
        self._admit = admit
        self._tell_operators = tell_operators
        self._log = log
        self._tries: OrderedDict[tuple[str, ...], int] = OrderedDict()

    async def admit(self, envelope: Envelope) -> Admission:
        """Show the door an event.

        Raises:
            ChannelUnavailable: A fault in the code; the event may be shown again.
            ZeroclawError: As the door raised it.
        """
        admission = await call(lambda: self._admit(envelope))
        if not isinstance(admission, Raised):
            self._tries.pop(envelope.dedup, None)
            return admission
        if isinstance(admission.error, ZeroclawError):
            raise admission.error
        tries = self._tries.pop(envelope.dedup, 0) + 1
        if tries < TRIES:
            self._tries[envelope.dedup] = tries
            if len(self._tries) > REMEMBERED:
                self._tries.popitem(last=False)
            message = f"a fault in the code: an event {admission.line}"
            raise ChannelUnavailable(message) from admission.error
        why = admission.line
        self._log("event_given_up", channel=self._channel, why=why, tries=tries, level="error")
        says = catalogue.EVENT_GIVEN_UP.about(channel=self._channel, why=why)
        await self._tell_operators("", says)
        return Ignored()
