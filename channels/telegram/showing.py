"""Show a text in its rich form where it has one, and in the ordinary one where that is refused.

A server may be older than rich messages: the first one then is the last for this process. Or it may
not take just this one; of a message that still grows it is not asked again. Either way the ordinary
form follows at once, so that who posts never hears of it. What may have arrived is never repeated.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from channels.telegram.calls import Calls
from channels.telegram.rich_calls import RichCalls
from channels.telegram.styled import Styled
from channels.telegram.troubles import MethodUnknown
from zeroclaw import Address, ChannelLog, ChannelRejected, MessageRef

T = TypeVar("T")

MOST_REFUSED = 128
"""Messages that are remembered because their rich form was refused."""


class Showing:
    """All texts of one account.

    Attributes:
        is_rich: Texts are shown in their rich form where they have one.
    """

    def __init__(self, *, calls: Calls, log: ChannelLog, rich: bool) -> None:
        """Hold what is needed.

        Args:
            calls: The account's.
            log: For facts.
            rich: Whether rich messages are wished.
        """
        self.is_rich = rich
        self._calls = calls
        self._rich = RichCalls(calls)
        self._log = log
        self._refused: deque[str] = deque(maxlen=MOST_REFUSED)

    async def send(self, to: Address, text: Styled, *, reply_to: str = "") -> MessageRef:
        """Post a text."""
        return await self._either(
            text,
            lambda: self._rich.send(to, text, reply_to=reply_to),
            lambda: self._calls.send(to, text, reply_to=reply_to),
        )

    async def edit(self, ref: MessageRef, text: Styled) -> None:
        """Replace a text; the same again is no error."""
        await self._either(
            text,
            lambda: self._rich.edit(ref, text),
            lambda: self._calls.edit(ref, text),
            grows=f"{ref.address.chat}/{ref.message}",
        )

    async def preview(self, to: Address, text: Styled, *, draft: int) -> None:
        """Show a text in a private chat that is not sent."""
        await self._either(
            text,
            lambda: self._rich.preview(to, text.rich, draft=draft),
            lambda: self._calls.preview(to, text, draft=draft),
            grows=f"{to.chat} {draft}",
        )

    async def _either(
        self,
        text: Styled,
        richly: Callable[[], Awaitable[T]],
        usually: Callable[[], Awaitable[T]],
        *,
        grows: str = "",
    ) -> T:
        """Show a text in one of its forms; `grows` names what will show more of it soon."""
        if not self.is_rich or not text.rich or grows in self._refused:
            return await usually()
        try:
            return await richly()
        except MethodUnknown as error:
            self.is_rich = False
            self._log("rich_messages_not_known", level="warning", why=str(error))
        except ChannelRejected as refused:
            # What is not about the form: there is no such message, or it is none of ours.
            if type(refused) is not ChannelRejected or refused.gone:
                raise
            if grows:
                self._refused.append(grows)
            self._log("rich_message_refused", why=str(refused))
        return await usually()
