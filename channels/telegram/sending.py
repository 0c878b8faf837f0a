"""Post messages, and find out whether one stands whose answer was lost.

Telegram takes no key by which a repeated send is known. But its ids grow: those of private chats
and basic groups by one counter of the account, those of a supergroup by its own. So a message whose
answer was lost stands above the newest id known when it was sent, and editing the same content onto
the ids up there finds it: "not modified", or a success, is ours; "can't be edited" is somebody
else's; "not found" to the end is that it does not stand. Nothing that a person sees is changed,
because only the one send under way in a chat can be ours up there.

What is rested on are documented answers of the Bot API, and ids that grow within a counter (read
2026-11); the look has a switch, `uncertain`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from telegram.error import TimedOut

from channels.telegram.calls import Calls
from channels.telegram.cards import View
from channels.telegram.styled import Styled
from zeroclaw import (
    Address,
    ChannelLog,
    ChannelRejected,
    ChannelUnavailable,
    DeliveryUnknown,
    MessageRef,
    OutgoingFile,
    ZeroclawError,
)

LOOK_AHEAD = 5
"""Ids beyond the newest known one that are looked at: others may have written meanwhile."""
MOST_LOOKS = 40
"""Each look is a call; where more ids lie between, it stays unknown."""
_SUPERGROUP = "-100"  # what the ids of supergroups begin with


class Sending:
    """All that one account posts; one message at a time in each chat."""

    def __init__(self, *, calls: Calls, looks: bool, log: ChannelLog) -> None:
        """Hold what is needed.

        Args:
            calls: The account's.
            looks: Look for a message whose answer was lost.
            log: For facts.
        """
        self._calls = calls
        self._looks = looks
        self._log = log
        self._newest: dict[str, int] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def saw(self, chat: str, message: int) -> None:
        """Remember the newest id of a counter."""
        counter = _counter(chat)
        self._newest[counter] = max(message, self._newest.get(counter, 0))

    async def post(self, to: Address, text: Styled, *, reply_to: str = "") -> MessageRef:
        """Post a text."""
        return await self._posted(
            to,
            lambda: self._calls.send(to, text, reply_to=reply_to),
            lambda ref: self._calls.edit(ref, text),
        )

    async def post_card(self, to: Address, card: View) -> MessageRef:
        """Post a card."""
        return await self._posted(
            to,
            lambda: self._calls.send_card(to, card),
            lambda ref: self._calls.edit_card(ref, card),
        )

    async def post_file(self, to: Address, file: OutgoingFile, *, reply_to: str) -> MessageRef:
        """Post a file; one whose answer was lost is found by its caption."""
        return await self._posted(
            to,
            lambda: self._calls.send_file(to, file, reply_to=reply_to),
            lambda ref: self._calls.edit_caption(ref, file.caption),
        )

    async def ask_why(self, card: MessageRef, question: Styled) -> None:
        """Ask for a reason; a question whose answer is lost is asked again by another press."""
        async with self._lock(card.address.chat):
            self._note(await self._calls.ask_why(card, question))

    async def _posted(
        self,
        to: Address,
        post: Callable[[], Awaitable[MessageRef]],
        edit: Callable[[MessageRef], Awaitable[None]],
    ) -> MessageRef:
        async with self._lock(to.chat):
            known = self._newest.get(_counter(to.chat))
            try:
                ref = await post()
            except DeliveryUnknown as lost:
                if not self._looks or known is None:
                    raise
                ref = await self._found(to, edit, known, lost)
            self._note(ref)
            return ref

    async def _found(
        self,
        to: Address,
        edit: Callable[[MessageRef], Awaitable[None]],
        known: int,
        lost: DeliveryUnknown,
    ) -> MessageRef:
        """Return the message that stands after all.

        Raises:
            ChannelUnavailable: It does not stand.
            DeliveryUnknown: That could not be found out.
        """
        last = self._newest.get(_counter(to.chat), known) + LOOK_AHEAD
        if last - known > MOST_LOOKS:
            raise lost
        for number in range(known + 1, last + 1):
            ref = MessageRef(address=to, message=str(number))
            try:
                await edit(ref)
            except ChannelRejected as refused:
                if not refused.gone:
                    raise lost from refused
            except ZeroclawError as error:
                raise lost from error
            else:
                self._log("lost_message_found", looks=number - known)
                return ref
        if isinstance(lost.__cause__, TimedOut):
            # The server may only be slow, and carry it out after we have looked.
            raise lost
        self._log("lost_message_not_sent", looks=last - known)
        message = f"{lost}; it was looked for, and did not arrive"
        raise ChannelUnavailable(message) from lost

    def _note(self, ref: MessageRef) -> None:
        self.saw(ref.address.chat, int(ref.message))

    def _lock(self, chat: str) -> asyncio.Lock:
        lock = self._locks.get(chat)
        if lock is None:
            lock = self._locks[chat] = asyncio.Lock()
        return lock


def _counter(chat: str) -> str:
    """Return the name of the counter that numbers a chat's messages."""
    return chat if chat.startswith(_SUPERGROUP) else ""
