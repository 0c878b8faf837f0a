"""Know the drafts that are open, for turns that show them and for whoever reads along."""

import asyncio
from collections.abc import Callable

from zeroclaw.delivery.account import Account
from zeroclaw.delivery.handle import DraftHandle, OnRef, OnSending, OpenDraft
from zeroclaw.envelope import Address, MessageRef, TurnId
from zeroclaw.text.language import Language


async def nothing_kept(_mark: str) -> None:
    """Keep nothing of a send that begins, where nobody will look for it."""


class Live:
    """All open drafts. One that hangs or fails delays no other."""

    def __init__(
        self, *, account_of: Callable[[str], Account | None], group: asyncio.TaskGroup
    ) -> None:
        """Begin without drafts.

        Args:
            account_of: By the channel's name; None for one that is not there, whose drafts
                show nothing.
            group: Owns the calls, and outlives every draft.
        """
        self._account_of = account_of
        self._group = group
        self._open: dict[str, dict[str, DraftHandle]] = {}

    def open(
        self,
        *,
        turn: TurnId,
        fence: int,
        address: Address,
        on_ref: OnRef,
        refs: tuple[MessageRef, ...] = (),
        resumed: bool = False,
        language: Language = "en",
        reply_to: str = "",
        lost: str = "",
        on_sending: OnSending = nothing_kept,
    ) -> DraftHandle:
        """Return a draft that shows nothing yet.

        Args:
            turn: Whose text it shows; one open draft a turn.
            fence: The token of the conversation's fence.
            address: Where.
            on_ref: Awaited with each new message before anything else is sent. When it raises
                `StoreRefused` the draft shows nothing more.
            refs: Messages that the turn left behind before a restart; the first text replaces
                theirs.
            resumed: The turn was begun before a restart.
            language: What its reader reads.
            reply_to: The platform's id of the message that it answers, empty for none.
            lost: From where to look for a message that the turn began to send before a restart, and
                that may stand; empty for none.
            on_sending: Awaited before each new message that can be looked for, with from where to;
                and with nothing, when it did not arrive. When it raises `StoreRefused` nothing is
                sent, and the draft shows nothing more.
        """
        here = self._open.setdefault(address.key(), {})

        def forget() -> None:
            here.pop(turn, None)
            if not here:
                self._open.pop(address.key(), None)

        handle = DraftHandle(
            turn=turn,
            fence=fence,
            address=address,
            refs=refs,
            resumed=resumed,
            language=language,
            reply_to=reply_to,
            lost=lost,
            on_sending=on_sending,
            account=self._account_of(address.channel),
            group=self._group,
            on_ref=on_ref,
            on_end=forget,
        )
        here[turn] = handle
        handle.begin()
        return handle

    def open_drafts(self, address: Address) -> tuple[OpenDraft, ...]:
        """Return the drafts of an address that have a text, oldest first."""
        handles = self._open.get(address.key(), {}).values()
        return tuple(handle.seen() for handle in handles if handle.seen().text)
