"""Keeps an event connection to a platform open: reconnects with growing waits."""

from collections.abc import Awaitable, Callable, Sequence

from channels._remote.http import Http
from channels._remote.limits import LONGEST_QUIET_S
from zeroclaw import ChannelUnavailable, Clock, Log, RateLimited, Value

WAITS_S: Sequence[float] = (0.0, 1.0, 2.0, 4.0, 8.0)
"""Wait after each failed connection in a row; after the last the channel is reported as down."""
STEADY_S = 5.0
"""Seconds that a connection has to last, or it counts as failed: a fault that ends each one at once, such
as an unreadable frame that the platform replays, would otherwise recur without end."""


class ConnectionEnd(Value):
    """How one connection ended.

    Attributes:
        reason: The reason, for the log.
        was_up: It got far enough to receive events.
        is_planned: The platform had announced the end.
        wait_s: Shortest wait that the platform asks for before the next connection.
    """

    reason: str
    was_up: bool = False
    is_planned: bool = False
    wait_s: float = 0.0


Hear = Callable[[], Awaitable[ConnectionEnd]]
"""Opens one connection and receives its events until it ends."""


async def keep_connected(hear: Hear, http: Http, clock: Clock, log: Log) -> None:
    """Receive events until cancelled, reconnecting as needed.

    Raises:
        ChannelUnavailable: Every attempt to connect failed, or `http` was closed.
        RateLimited: The platform asks for a long wait.
        ChannelUnauthorized: The platform refuses this account.
    """
    tries = 0
    while True:
        began = clock.monotonic()
        try:
            end = await hear()
        except ChannelUnavailable as error:
            demanded_s = error.retry_after_s if isinstance(error, RateLimited) else 0.0
            if http.closed.is_set() or demanded_s > LONGEST_QUIET_S:
                raise  # a long wait must be visible: the channel is not up meanwhile
            end = ConnectionEnd(reason=str(error), wait_s=demanded_s)
        is_steady = clock.monotonic() - began >= STEADY_S
        tries = 0 if end.was_up and is_steady else tries + 1
        if http.closed.is_set() or tries >= len(WAITS_S):
            reason = end.reason.removeprefix(f"`{http.name}`: ")
            message = f"`{http.name}`: the gateway can't be heard: {reason}"
            raise ChannelUnavailable(message)
        if not end.is_planned:
            log("gateway_lost", reason=end.reason)
        # Reconnect at once after a connection that worked.
        await clock.sleep(max(end.wait_s, WAITS_S[max(tries - 1, 0)]))
