"""Keep a connection by which a platform tells its events: lost, it is made anew, with growing waits."""

from collections.abc import Awaitable, Callable, Sequence

from channels._remote.http import Http
from zeroclaw import ChannelLog, ChannelUnavailable, Clock, RateLimited, Value

WAITS_S: Sequence[float] = (0.0, 1.0, 2.0, 4.0, 8.0)
"""After each connection that did not stand; after the last one the channel is down, and seen to be."""


class Ended(Value):
    """How one connection ended.

    Attributes:
        why: For the log.
        was_up: Events could come by it.
        is_planned: The platform had said that it would end it.
        wait_s: How long it wants to be left alone at least.
    """

    why: str
    was_up: bool = False
    is_planned: bool = False
    wait_s: float = 0.0


Hear = Callable[[], Awaitable[Ended]]
"""Makes one connection and hears by it until it ends."""


async def keep_connected(hear: Hear, http: Http, clock: Clock, log: ChannelLog) -> None:
    """Hear until cancelled.

    Raises:
        ChannelUnavailable: No connection stands, however often it was tried; or all are closed.
        ChannelUnauthorized: The platform lets nobody hear.
    """
    tries = 0
    while True:
        try:
            end = await hear()
        except ChannelUnavailable as error:
            if http.closed.is_set() or isinstance(error, RateLimited):
                raise  # a long wait is to be seen: the channel is not up while it lasts
            end = Ended(why=str(error))
        tries = 0 if end.was_up else tries + 1
        if http.closed.is_set() or tries >= len(WAITS_S):
            why = end.why.removeprefix(f"`{http.name}`: ")
            message = f"`{http.name}`: the gateway can't be heard: {why}"
            raise ChannelUnavailable(message)
        if not end.is_planned:
            log("gateway_lost", why=end.why)
        # The first one after a loss is made at once.
        await clock.sleep(max(end.wait_s, WAITS_S[max(tries - 1, 0)]))
