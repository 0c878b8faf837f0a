"""Carry out one row of the outbox, call by call, each result committed before the next call."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, assert_never

from zeroclaw.channel import LookupResult
from zeroclaw.delivery.account import Account
from zeroclaw.delivery.doubt import (
    after_loss,
    certain,
    is_late,
    looked,
    mark_of,
    second_of,
    with_second,
)
from zeroclaw.delivery.keys import posted
from zeroclaw.delivery.outcomes import CallOutcome, Delivered, Rejected, Unknown, Unreachable
from zeroclaw.delivery.parcels import Parcel, of_card, of_file, of_text
from zeroclaw.delivery.parting import off_loop, parted
from zeroclaw.delivery.rows import Ask, File, Item, Second, Settle, State, Text
from zeroclaw.delivery.seeking import seek, the_one
from zeroclaw.envelope import Address, MessageRef
from zeroclaw.store import DurablePoint
from zeroclaw.text import catalogue
from zeroclaw.value import replace

# So often an answer may be lost before the row is given up, where each repeat may be seen, and
# where the adapter breaks down. A platform that is only silent is tried without end otherwise.
MOST_LOST = 5


class Save(Protocol):
    """Commit the item as it is now; raises when somebody else changed the row."""

    async def __call__(self, item: Item, state: State, point: DurablePoint, why: str = "") -> None:
        """Return when it is durable."""
        ...


class LaterError(Exception):
    """Raised when nothing more can be done now.

    Attributes:
        paced: The platform named a wait, which the pacing obeys; no other wait is needed.
        soon: It may be tried as soon as the platform answers anything; else the time counts.
    """

    def __init__(self, *, paced: bool = False, soon: bool = True) -> None:
        super().__init__("later")
        self.paced = paced
        self.soon = soon


class _RefusedError(Exception):
    """Raised inside when the platform refused for good; the text says why."""


class Posting:
    """One row on its way; `run` is called again after each `LaterError`."""

    def __init__(
        self,
        *,
        key: str,
        item: Item,
        was_sending: bool,
        was_found: bool,
        account: Account,
        save: Save,
        blob: Callable[[str], Awaitable[bytes | None]],
        others: Callable[[Address], Awaitable[frozenset[str]]],
    ) -> None:
        """Begin where the row stands.

        Args:
            key: The row's.
            item: As it was read.
            was_sending: A send was begun and its result is not known; it may have arrived.
            was_found: The process that wrote the row, or began its draft, is gone, and what it
                knew.
            account: Where it goes out.
            save: Commits.
            blob: Reads the bytes of a digest, None where they are gone.
            others: The platform's ids of the messages of a chat that are known to be ours.
        """
        if was_sending and not isinstance(item, Settle):
            item = replace(item, uncertain=True)
        self._key = key
        self._item = item
        self._is_sending = was_sending
        self._was_found = was_found
        self._account = account
        self._save = save
        self._blob = blob
        self._others = others
        self._lost = 0
        # Of two that are lost either may be found, and the one without the note may come last.
        self._is_repeat_lost = False

    def go_by(self, account: Account) -> None:
        """Go on over this account; what was learned about the row stays."""
        self._account = account

    async def run(self) -> None:
        """Deliver it, or record that it was refused.

        Raises:
            LaterError: Nothing arrived, or nobody knows; to be tried again.
            Conflict: Somebody else changed the row; to be read again.
        """
        try:
            match self._item:
                case Text():
                    await self._deliver_text(self._item)
                case File():
                    await self._deliver_file(self._item)
                case Ask():
                    await self._deliver_card(self._item)
                case Settle():
                    await self._deliver_outcome(self._item)
                case _:
                    assert_never(self._item)
        except _RefusedError as error:
            await self._put("refused", DurablePoint.REFUSED, why=str(error))

    # --- texts -----------------------------------------------------------------------------------

    async def _deliver_text(self, item: Text) -> None:
        parts = await parted(item.text, self._account.fits)
        parts = await off_loop(partial(self._account.apart, parts), chars=len(item.text))
        if item.uncertain and 0 < len(parts) <= len(item.refs):
            # Where it is found, one more message is there to be taken away.
            self._item = item = await self._take_in(item, parts[-1])
        while item.done < len(parts):
            item = await self._show_part(item, parts[item.done])
            self._item = item
            # The last result goes into the commit that ends the row, unless more is to do first.
            if item.done > 0 and (item.done < len(parts) or len(item.refs) > len(parts)):
                await self._put("pending", DurablePoint.REF_KNOWN)
        for ref in item.refs[len(parts) :]:
            await self._take_away(item, ref)
        self._item = replace(item, refs=item.refs[: len(parts)])
        await self._put("delivered", DurablePoint.DELIVERED)

    async def _show_part(self, item: Text, text: str) -> Text:
        """Return the item as one call has changed it."""
        if item.done < len(item.refs) and self._account.capabilities.can_edit:
            return await self._edit_part(item, item.refs[item.done], text)
        return await self._send_part(item, text)

    async def _edit_part(self, item: Text, ref: MessageRef, text: str) -> Text:
        await self._account.permit(ref.address, message=ref.message)
        receipts = item.receipts if item.done == 0 else ()
        outcome = await self._account.edit(
            ref, text, key=self._key, plain=item.plain, receipts=receipts
        )
        match outcome:
            case Delivered():
                return replace(item, done=item.done + 1)
            case Rejected(gone=True):
                # The next message that is still there takes its place, else a new one, whose key
                # no process has used before.
                self._was_found = False
                return replace(item, refs=tuple(one for one in item.refs if one != ref))
            case _:
                return self._plain_or_stop(item, outcome)

    async def _send_part(self, item: Text, text: str) -> Text:
        outcome = await self._sent(of_text(self._account, item, text, key=self._key))
        if isinstance(outcome, Delivered):
            # One that its draft had begun shows the draft's text, so it is edited next.
            is_old = self._is_lost(item) or self._may_be_old(item)
            at = len(item.refs) if self._is_lost(item) else item.done
            return replace(
                certain(item),
                refs=(*item.refs[:at], outcome.value, *item.refs[at:]),
                done=item.done if is_old else item.done + 1,
                posted=None if item.turn is None else posted(item) + 1,
            )
        await self._after_send(outcome)
        return self._plain_or_stop(item, outcome)

    async def _take_in(self, item: Text, text: str) -> Text:
        """Return the item with the message of its draft that nobody recorded, if it is found."""
        if self._may_have_draft(item):
            return await self._send_part(item, text)
        seen = await self._seek(of_text(self._account, item, text, key=self._key))
        found = seen.value.ref if isinstance(seen, Delivered) else None
        refs = item.refs if found is None else (*item.refs, found)
        return replace(certain(item), refs=refs)

    def _is_lost(self, item: Text) -> bool:
        """Whether a message of the draft may stand that can be found by its key."""
        return item.uncertain and self._may_have_draft(item)

    def _may_be_old(self, item: Text) -> bool:
        """Whether a process before this one may have sent the message with another text."""
        return self._was_found and self._may_have_draft(item)

    def _may_have_draft(self, item: Text) -> bool:
        capabilities = self._account.capabilities
        return item.turn is not None and capabilities.idempotent_send and capabilities.can_edit

    def _plain_or_stop(self, item: Text, outcome: Unreachable | Rejected | Unknown) -> Text:
        if isinstance(outcome, Rejected) and outcome.markup and not item.plain:
            return replace(item, plain=True)
        raise self._stop(outcome)

    async def _take_away(self, item: Text, ref: MessageRef) -> None:
        """Delete a message that the final does not need, or have it say so."""
        capabilities = self._account.capabilities
        if capabilities.can_delete:
            await self._account.permit(ref.address, message=ref.message)
            outcome = await self._account.delete(ref)
            if isinstance(outcome, Delivered) or (isinstance(outcome, Rejected) and outcome.gone):
                return
            if not isinstance(outcome, Rejected):
                raise self._stop(outcome)
        if capabilities.can_edit:
            await self._account.permit(ref.address, message=ref.message)
            text = catalogue.CONTINUED_ABOVE.to(item.language)
            outcome = await self._account.edit(ref, text, key=self._key)
            if isinstance(outcome, Unreachable | Unknown):
                raise self._stop(outcome)

    # --- files -----------------------------------------------------------------------------------

    async def _deliver_file(self, item: File) -> None:
        content = await self._blob(item.digest)
        if content is None:
            message = "its bytes are no longer kept"
            raise _RefusedError(message)
        outcome = await self._sent(of_file(self._account, item, content, key=self._key))
        if not isinstance(outcome, Delivered):
            await self._after_send(outcome)
            raise self._stop(outcome)
        self._item = replace(certain(item), ref=outcome.value)
        await self._put("delivered", DurablePoint.DELIVERED)

    # --- cards -----------------------------------------------------------------------------------

    async def _deliver_card(self, item: Ask) -> None:
        outcome = await self._sent(of_card(self._account, item))
        if not isinstance(outcome, Delivered):
            await self._after_send(outcome)
            raise self._stop(outcome)
        self._item = replace(certain(item), ref=outcome.value)
        await self._put("delivered", DurablePoint.ASKED)

    async def _deliver_outcome(self, item: Settle) -> None:
        await self._account.permit(item.ref.address, message=item.ref.message)
        outcome = await self._account.settle(item.ref, item.outcome)
        # A card that somebody deleted has nothing left to show.
        gone = isinstance(outcome, Rejected) and outcome.gone
        if not isinstance(outcome, Delivered) and not gone:
            raise self._stop(outcome)
        await self._put("delivered", DurablePoint.SETTLED)

    # --- one message -----------------------------------------------------------------------------

    async def _sent(self, one: Parcel) -> CallOutcome[MessageRef]:
        """Post a message, unless it is found to stand since an earlier try.

        Raises:
            LaterError: Whether it stands could not be looked for.
        """
        second = second_of(self._item)
        if second is None:
            missed: LookupResult | None = None
            is_doubtful = self._is_doubtful()
            if is_doubtful:
                seen = await self._seek(one)
                if isinstance(seen, Delivered) and seen.value.ref is not None:
                    return Delivered(value=seen.value.ref)
                missed = self._missed(seen)
            await self._account.permit(one.to)
            async with self._account.alone(one.to):
                await self._begin_send(one.to)
                outcome = await one.send(is_doubtful)
            if is_doubtful and is_late(self._item) and isinstance(outcome, Unknown):
                self._is_repeat_lost = True
            if missed is None or not isinstance(outcome, Delivered):
                return outcome
            second = Second(ref=outcome.value, since=missed.since)
            # Another process would find the first, and leave the second behind.
            self._item = with_second(self._item, second)
            await self._put("sending", DurablePoint.HOUSEKEEPING)
        apart = await self._others(one.to)
        stands = await the_one(
            self._account, one, second.ref, since=second.since, apart=apart, keep=self._looked
        )
        if isinstance(stands, Unreachable):
            raise self._stop(stands)
        return Delivered(value=stands)

    def _missed(self, seen: Delivered[LookupResult] | Unknown | None) -> LookupResult | None:
        """Return where the looking has ended without finding it, None where that says nothing."""
        if isinstance(seen, Delivered) and not is_late(self._item):
            return seen.value
        # What is only late may come yet, however far was looked.
        if self._is_sending and not self._account.capabilities.may_repeat:
            message = "the answer was lost, and it is not sent again"
            raise _RefusedError(message)
        return None

    async def _seek(self, one: Parcel) -> Delivered[LookupResult] | Unknown | None:
        """Look for a message that may stand; None where that can't be done.

        Raises:
            LaterError: The looking itself has failed.
        """
        mark = mark_of(self._item)
        if not self._account.capabilities.can_lookup or not mark:
            return None
        apart = await self._others(one.to)
        seen = await seek(
            self._account,
            one,
            since=mark,
            apart=apart,
            keep=self._looked,
            as_repeat=self._is_repeat_lost,
        )
        if isinstance(seen, Unreachable):
            raise self._stop(seen)
        return seen

    async def _looked(self, since: str) -> None:
        """Record from where to look on."""
        self._item = looked(self._item, since)
        await self._put("sending" if self._is_sending else "pending", DurablePoint.HOUSEKEEPING)

    def _is_doubtful(self) -> bool:
        """Whether the next message may stand already, and its key would not be known."""
        keyed = self._account.capabilities.idempotent_send
        return not isinstance(self._item, Settle) and self._item.uncertain and not keyed

    # --- what is kept between calls --------------------------------------------------------------

    async def _begin_send(self, to: Address) -> None:
        """Record that a send begins that can't be repeated unseen, and where it would stand."""
        if self._account.capabilities.idempotent_send or self._is_sending:
            return
        item = self._item
        if not isinstance(item, Settle) and not item.uncertain:
            # What may stand since an earlier try stands below a mark of now, or is looked for from
            # its own.
            self._item = replace(item, mark=self._account.mark(to))
            self._is_repeat_lost = False
        await self._put("sending", DurablePoint.HOUSEKEEPING)

    async def _after_send(self, outcome: Unreachable | Rejected | Unknown) -> None:
        """Record that a send did not arrive, or remember that it may have."""
        if self._account.capabilities.idempotent_send:
            return
        if not isinstance(outcome, Unknown):
            await self._put("pending", DurablePoint.HOUSEKEEPING)
        elif not isinstance(self._item, Settle):
            was_late = self._item.late
            self._item = after_loss(self._item, late=outcome.late)
            if self._item.late and not was_late:
                await self._put("sending", DurablePoint.HOUSEKEEPING)

    def _stop(self, outcome: Unreachable | Rejected | Unknown) -> Exception:
        """Return what to raise."""
        match outcome:
            case Unreachable():
                return LaterError(paced=outcome.retry_after_s is not None)
            case Rejected():
                return _RefusedError(outcome.why)
            case Unknown():
                is_seen = self._is_sending and (outcome.late or not mark_of(self._item))
                is_counted = outcome.broken or is_seen
                self._lost += is_counted
                return (
                    LaterError(soon=not is_counted)
                    if self._lost < MOST_LOST
                    else _RefusedError(outcome.why)
                )
            case _:
                assert_never(outcome)

    async def _put(self, state: State, point: DurablePoint, *, why: str = "") -> None:
        await self._save(self._item, state, point, why)
        self._is_sending = state == "sending"
