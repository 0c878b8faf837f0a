"""Post messages, and take note of their numbers."""

from channels.telegram.calls import Calls
from channels.telegram.cards import View
from channels.telegram.numbers import Numbers
from channels.telegram.showing import Showing
from channels.telegram.styled import Styled
from zeroclaw import Address, MessageRef, OutgoingFile


class Sending:
    """All that one account posts; who posts what into a chat when, is decided elsewhere."""

    def __init__(self, *, calls: Calls, showing: Showing, numbers: Numbers) -> None:
        """Hold what is needed; all are the account's."""
        self._calls = calls
        self._showing = showing
        self._numbers = numbers

    async def post(self, to: Address, text: Styled, *, reply_to: str = "") -> MessageRef:
        """Post a text."""
        return self._noted(await self._showing.send(to, text, reply_to=reply_to))

    async def post_card(self, to: Address, card: View) -> MessageRef:
        """Post a card."""
        return self._noted(await self._calls.send_card(to, card))

    async def post_file(self, to: Address, file: OutgoingFile, *, reply_to: str) -> MessageRef:
        """Post a file."""
        return self._noted(await self._calls.send_file(to, file, reply_to=reply_to))

    async def ask_why(self, card: MessageRef, question: Styled) -> None:
        """Ask for a reason; a question whose answer is lost is asked again by another press."""
        self._noted(await self._calls.ask_why(card, question))

    def _noted(self, ref: MessageRef) -> MessageRef:
        self._numbers.saw(ref.address.chat, int(ref.message))
        return ref
