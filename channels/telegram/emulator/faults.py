"""What a call can be let run into."""

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
    """One call of the bot, as it arrived.

    Attributes:
        method: As the bot wrote it.
        chat: The id of the chat that it names, 0 for none.
        at: Seconds on the emulator's clock.
        is_done: It had its effect.
        made: The number of the message that it posted, 0 for none.
        befell: What it was let run into.
        refusal: Why it had none, empty for none and while it stands.
    """

    method: str
    chat: int
    parameters: Parameters
    at: float
    is_done: bool = False
    made: int = 0
    befell: "Fault | None" = None
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
        which = f"+{self.made}" if self.made else f"{self.message}"
        return f"{self.method} {self.chat} {which} {self.text[:60]!r}{ending}"


class Refuse(Value):
    """Not carried out; the answer says why.

    Attributes:
        description: With Telegram's prefix, such as `Bad Request: `.
    """

    code: int = 400
    description: str = "Bad Request: refused by a test"
    parameters: Mapping[str, int] = _NO_PARAMETERS

    def refusal(self) -> Refused:
        """Return the answer."""
        return Refused(self.code, self.description, self.parameters)


class TooMany(Value):
    """Not carried out: 429."""

    retry_after_s: int

    def refusal(self) -> Refused:
        """Return the answer."""
        return too_many(self.retry_after_s)


class BadMarkup(Value):
    """Not carried out: the entities can't be parsed."""

    def refusal(self) -> Refused:
        """Return the answer."""
        return bad_request("can't parse entities: refused by a test")


class BadGateway(Value):
    """Answered 502 with a page of HTML, as by the proxy before the Bot API.

    Attributes:
        carried_out: The call had its effect nevertheless.
    """

    carried_out: bool = False


class Lose(Value):
    """The connection is cut before the answer, after or before the call was carried out."""

    carried_out: bool


@dataclass(eq=False, kw_only=True)
class Hang:
    """The call stands until it is released, before or after it is carried out.

    Attributes:
        carried_out: It has its effect first, and only the answer waits.
    """

    carried_out: bool = False
    _open: asyncio.Event = field(default_factory=asyncio.Event)
    _at: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let the call, and those to come, go on."""
        self._open.set()

    async def reached(self) -> None:
        """Wait until a call stands here."""
        await self._at.wait()

    async def stand(self) -> None:
        """Hold a call; for the server."""
        self._at.set()
        await self._open.wait()


Fault = Refuse | TooMany | BadMarkup | BadGateway | Lose | Hang


@dataclass(eq=False, kw_only=True)
class Planned:
    """A fault that waits for its calls.

    Attributes:
        method: In lower case, empty for every method.
        fault: None lets a call pass.
        chat: Only calls that name this chat, 0 for any.
        left: For how many calls, None for ever.
    """

    method: str
    fault: Fault | None
    chat: int
    when: Callable[[Call], bool]
    left: int | None


def fault_of(call: Call, planned: list[Planned]) -> Fault | None:
    """Take the first fault that waits for this call."""
    for one in planned:
        if one.method not in ("", call.method.lower()) or one.chat not in (0, call.chat):
            continue
        if not one.when(call):
            continue
        if one.left is not None:
            one.left -= 1
            if one.left < 1:
                planned.remove(one)
        return one.fault
    return None
