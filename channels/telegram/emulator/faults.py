"""The faults that can be planned for a call."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from channels.telegram.emulator.refusals import Refused, bad_request, too_many
from channels.telegram.emulator.wire import Parameters
from zeroclaw import Value

_NO_PARAMETERS: Mapping[str, int] = MappingProxyType({})


@dataclass(eq=False, kw_only=True)
class Call:
    """One call of the bot.

    Attributes:
        method: The method as the bot wrote it.
        chat: The id of the chat that it names, 0 for none.
        at: The emulator's monotonic time in seconds.
        is_done: It was carried out.
        posted: The id of the message that it posted, 0 for none.
        fault: Its planned fault, None for none.
        refusal: Why it was refused; empty if it was not, or is not answered yet.
    """

    method: str
    chat: int
    parameters: Parameters
    at: float
    is_done: bool = False
    posted: int = 0
    fault: "Fault | None" = None
    refusal: str = ""

    @property
    def text(self) -> str:
        """The text or the caption that it carries."""
        return self.parameters.text("text") or self.parameters.text("caption")

    @property
    def message(self) -> int:
        """The message that it names, 0 for none."""
        return self.parameters.number("message_id")

    def __repr__(self) -> str:
        ending = "" if self.is_done else f" ✗ {self.refusal or 'not carried out'}"
        message = f"+{self.posted}" if self.posted else f"{self.message}"
        return f"{self.method} {self.chat} {message} {self.text[:60]!r}{ending}"


class Refuse(Value):
    """Refuse a call with any answer.

    Attributes:
        description: The description with Telegram's prefix, such as `Bad Request: `.
    """

    code: int = 400
    description: str = "Bad Request: refused by a test"
    parameters: Mapping[str, int] = _NO_PARAMETERS

    def refusal(self) -> Refused:
        """Return the answer."""
        return Refused(self.code, self.description, self.parameters)


class TooMany(Value):
    """Refuse a call with status 429."""

    retry_after_s: int

    def refusal(self) -> Refused:
        """Return the answer."""
        return too_many(self.retry_after_s)


class BadMarkup(Value):
    """Refuse a call because its entities can't be parsed."""

    def refusal(self) -> Refused:
        """Return the answer."""
        return bad_request("can't parse entities: refused by a test")


class BadGateway(Value):
    """Answer 502 with an HTML page, like the proxy in front of the Bot API.

    Attributes:
        carried_out: The call is carried out nevertheless.
    """

    carried_out: bool = False


class Lose(Value):
    """Cut the connection before the answer, with or without carrying out the call."""

    carried_out: bool


@dataclass(eq=False, kw_only=True)
class Hang:
    """Hold a call until it is released, before or after it is carried out.

    Attributes:
        carried_out: The call is carried out first, and only the answer waits.
    """

    carried_out: bool = False
    _open: asyncio.Event = field(default_factory=asyncio.Event)
    _at: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let the held calls go on, and later ones pass."""
        self._open.set()

    async def reached(self) -> None:
        """Wait until a call is held."""
        await self._at.wait()

    async def wait(self) -> None:
        """Hold a call until `release`; for the server."""
        self._at.set()
        await self._open.wait()


Fault = Refuse | TooMany | BadMarkup | BadGateway | Lose | Hang


@dataclass(eq=False, kw_only=True)
class Planned:
    """A planned fault.

    Attributes:
        method: The method in lower case, empty for every method.
        fault: The fault; None lets a call pass.
        chat: The chat that calls must name, 0 for any.
        when: A further condition on calls.
        remaining: The number of calls left, None for no limit.
    """

    method: str
    fault: Fault | None
    chat: int
    when: Callable[[Call], bool]
    remaining: int | None


def fault_of(call: Call, planned: list[Planned]) -> Fault | None:
    """Take the first planned fault that applies to a call, None for none."""
    for plan in planned:
        if plan.method not in ("", call.method.lower()) or plan.chat not in (0, call.chat):
            continue
        if not plan.when(call):
            continue
        if plan.remaining is not None:
            plan.remaining -= 1
            if plan.remaining < 1:
                planned.remove(plan)
        return plan.fault
    return None
