"""Post each message once, or look up whether a message exists whose send was not recorded.

If the lookup finds none, the message is sent again. Only the id of the second message shows how far
the lookup had to go, because the platform may have numbered the first one higher. So the second
says that it may be a repeat, until the ids up to its own were looked up. Whenever a process dies or
a call is lost in between, at most one message exists that does not say so.
"""

from collections.abc import Awaitable, Callable
from typing import assert_never

from zeroclaw.channel import Card, LookupResult
from zeroclaw.delivery import rows
from zeroclaw.delivery.account import Account, Content
from zeroclaw.delivery.outcomes import CallOutcome, Delivered, Rejected, Unknown, Unreachable
from zeroclaw.envelope import Address, MessageRef
from zeroclaw.store import DurablePoint, Row
from zeroclaw.value import Struct, Value, replace

# Lost answers until the row is given up, if people may see each repeat, or if the adapter breaks down.
# Otherwise a platform that is only silent is tried without end.
MAX_LOST = 5
# Barred calls, while others get through, until the row is given up: the cause must be its content, and
# the rows behind it wait.
MAX_BARRED = 20

Failed = Unreachable | Rejected | Unknown


class LaterError(Exception):
    """Raised when the row must be tried again later.

    Attributes:
        paced: The platform named a wait, which the pacing obeys; no other wait is needed.
        soon: Retry as soon as the platform answers any call; otherwise only after the pause.
    """

    def __init__(self, *, paced: bool = False, soon: bool = True) -> None:
        super().__init__("later")
        self.paced = paced
        self.soon = soon


class RefusedError(Exception):
    """Raised when the platform refused for good; the text is the reason."""


class Post(Value):
    """One message to post; it may have to be looked up and sent again.

    Attributes:
        to: The chat.
        content: The content.
        repeat: The content with a note that it may be a repeat. A card has no note; if a person
            presses either of two cards, both are settled.
    """

    to: Address
    content: Content
    repeat: Content


Save = Callable[[Row, rows.Item, rows.State, DurablePoint, str], Awaitable[Row]]
"""Commits a changed row, with the reason if refused, and returns it as it is stored; raises if another
writer has changed it."""


class Reconciler(Struct, eq=False, kw_only=True):
    """Posts the messages of one row, and records their state.

    Attributes:
        row: The row as it is stored.
        item: Its item, as the calls have changed it.
        uncertainty: The uncertainty about the next message; stored with the item.
        account: Sends them.
        save: Stores the row.
        known_ids: Returns the platform's ids of the bot's recorded messages in a chat.
        was_found: The process that wrote the row, or began its draft, is gone; a message may exist
            with another text.
        ended: As in `rows.DraftRemainder`.
    """

    row: Row
    item: rows.Item
    uncertainty: rows.Uncertainty
    account: Account
    save: Save
    known_ids: Callable[[Address], Awaitable[frozenset[str]]]
    was_found: bool
    ended: tuple[str, ...] = ()
    _lost: int = 0
    _barred: int = 0
    _answered: int = 0
    # If two sends are lost, the lookup may find either; the one without the note may come last.
    _is_repeat_lost: bool = False

    @property
    def is_sending(self) -> bool:
        """Whether the row records that a send has begun."""
        return self.row.state == "sending"

    async def put(
        self,
        state: rows.State,
        point: DurablePoint = DurablePoint.HOUSEKEEPING,
        *,
        reason: str = "",
    ) -> None:
        """Store the row in a state, with the current uncertainty."""
        if not isinstance(self.item, rows.Settle):
            self.item = replace(self.item, uncertainty=self.uncertainty)
        self.row = await self.save(self.row, self.item, state, point, reason)

    async def post(self, post: Post) -> CallOutcome[MessageRef]:
        """Post a message, unless a lookup finds it from an earlier try.

        Raises:
            LaterError: The lookup failed.
            RefusedError: The outcome stays unknown, and the channel sends nothing twice.
        """
        second = self.uncertainty.second
        if second is None:
            missed: LookupResult | None = None
            is_repeat = self.uncertainty.may_stand and not self.account.capabilities.idempotent_send
            if is_repeat:
                lookup = await self.find(post)
                if isinstance(lookup, Delivered) and lookup.value.ref is not None:
                    return self._known(lookup.value.ref)
                missed = self._missed(lookup)
            async with self.account.permitted(post.to):
                await self._begin(post.to)
                content = post.repeat if is_repeat else post.content
                outcome = await self.account.post(post.to, content)
            if not isinstance(outcome, Delivered):
                await self._failed(outcome)
                return outcome
            if missed is None:
                return self._known(outcome.value)
            # Record the second: another process would find the first, and never delete the second.
            second = rows.Second(ref=outcome.value, since=missed.since)
            self.uncertainty = replace(self.uncertainty, second=second)
            await self.put("sending")
        return self._known(await self._keep_one(post, second))

    async def find(self, post: Post) -> Delivered[LookupResult] | Unknown | None:
        """Look up a message that may exist; None where that can't be done.

        Raises:
            LaterError: The lookup itself failed.
        """
        mark = self.uncertainty.mark
        if not self.account.capabilities.can_lookup or not mark:
            return None
        content = post.repeat if self._is_repeat_lost else post.content
        return await self._lookup(post.to, content, since=mark)

    def error(self, failed: Failed) -> Exception:
        """Return the exception to raise for a failed call."""
        match failed:
            case Unreachable():
                answered = self.account.outage.ended
                self._barred += failed.barred and answered > self._answered
                self._answered = answered
                later = LaterError(paced=failed.retry_after_s is not None)
            case Rejected():
                return RefusedError(failed.reason)
            case Unknown():
                is_seen = self.is_sending and (failed.late or not self.uncertainty.mark)
                is_counted = failed.broken or is_seen
                self._lost += is_counted
                later = LaterError(soon=not is_counted)
            case _:
                assert_never(failed)
        is_hopeless = self._lost >= MAX_LOST or self._barred >= MAX_BARRED
        return RefusedError(failed.reason) if is_hopeless else later

    # --- one send --------------------------------------------------------------------------------

    async def _begin(self, to: Address) -> None:
        """Record the start of a send that has no idempotency key, and the mark to look it up from."""
        if self.account.capabilities.idempotent_send or self.is_sending:
            return
        if not self.uncertainty.may_stand:
            # A message from an earlier try appears after a current mark, or is looked up from its
            # own mark.
            self.uncertainty = replace(self.uncertainty, mark=self.account.lookup_mark(to))
        await self.put("sending")

    async def _failed(self, failed: Failed) -> None:
        """Record that a send did not arrive, or remember that it may have."""
        if self.account.capabilities.idempotent_send:
            return
        if not isinstance(failed, Unknown):
            await self.put("pending")
            return
        self._is_repeat_lost = was_late = self.uncertainty.late
        # A later try that is cut off tells nothing of it.
        is_late = failed.late or was_late
        self.uncertainty = replace(self.uncertainty, may_stand=True, late=is_late)
        if is_late and not was_late:
            await self.put("sending")

    def _known(self, ref: MessageRef) -> Delivered[MessageRef]:
        self.uncertainty = rows.CERTAIN
        return Delivered(value=ref)

    def _missed(self, lookup: Delivered[LookupResult] | Unknown | None) -> LookupResult | None:
        """Return the result of a lookup that found no message, None if that is no proof."""
        if isinstance(lookup, Delivered) and not self.uncertainty.late:
            return lookup.value
        # A late message may still arrive, however far the lookup went.
        if self.is_sending and not self.account.capabilities.may_repeat:
            message = "the answer was lost, and it is not sent again"
            raise RefusedError(message)
        return None

    # --- lookups ---------------------------------------------------------------------------------

    async def _lookup(
        self, to: Address, content: Content, *, since: str, before: str = ""
    ) -> Delivered[LookupResult] | Unknown:
        """Look until the message is found, or the lookup is over.

        Each lookup is paced like any call. After each one without a find, the mark to continue from
        is committed, so that no message is read twice after a failure or a kill. If the platform
        names a wait, this method waits, for the same reason.
        """
        apart = await self.known_ids(to)
        while True:
            # A send under way in the chat would have an unknown id, and be mistaken for this
            # message.
            async with self.account.permitted(to):
                outcome = await self.account.lookup(
                    to, content, since=since, apart=apart, before=before
                )
            match outcome:
                case Delivered():
                    if outcome.value.ref is None:
                        since = outcome.value.since
                        self.uncertainty = rows.looked_up(self.uncertainty, since)
                        await self.put("sending" if self.is_sending else "pending")
                    if outcome.value.is_over:
                        return outcome
                case Unreachable(retry_after_s=None):
                    raise self.error(outcome)
                case Unreachable():
                    pass
                case Rejected():
                    return Unknown(reason=outcome.reason)
                case Unknown(late=True):
                    # A lost lookup has changed nothing, so it may be made again.
                    raise self.error(Unreachable(reason=outcome.reason))
                case Unknown():
                    return outcome
                case _:
                    assert_never(outcome)

    async def _keep_one(self, post: Post, second: rows.Second) -> MessageRef:
        """Return the one message to keep, after the first was not found and so was sent again.

        The new one's id bounds the ids of the first, so now a lookup can decide whether the first
        exists too. If so, the new one is deleted; if not, its note about a repeat is removed. If
        the lookup or the change is not possible, the new one keeps its note.
        """
        account, new = self.account, second.ref
        if new.address.chat != post.to.chat:
            return new
        lookup = await self._lookup(post.to, post.content, since=second.since, before=new.message)
        if not isinstance(lookup, Delivered):
            return new
        old, content = lookup.value.ref, post.content
        changed: CallOutcome[None] | None = None
        if old is not None and account.capabilities.can_delete:
            async with account.permitted(new.address, message=new.message):
                changed = await account.delete(new)
        elif old is None and not isinstance(content, Card) and account.capabilities.can_edit:
            async with account.permitted(new.address, message=new.message):
                changed = await account.edit(new, content)
        match changed:
            case Unreachable():
                raise self.error(changed)
            case Unknown(broken=False):
                # Either change may be made again.
                raise self.error(Unreachable(reason=changed.reason))
            case Delivered():
                return old or new
            case _:
                return new
