"""Find out whether a message stands whose answer was lost, or whose record was.

Where none is seen it is sent again, and nobody knows before that how far there was to look: the
platform may have put the first one further on. So the second says that it may be a repeat, until its
id has told how far, and the first was looked for up to there. Whenever a process dies, or a call is
lost, in between, at most one message stands that does not say so.
"""

from collections.abc import Awaitable, Callable
from typing import assert_never

from zeroclaw.channel import LookupResult
from zeroclaw.delivery.account import Account
from zeroclaw.delivery.outcomes import CallOutcome, Delivered, Rejected, Unknown, Unreachable
from zeroclaw.delivery.parcels import Parcel
from zeroclaw.envelope import MessageRef

Keep = Callable[[str], Awaitable[None]]


async def seek(
    account: Account,
    one: Parcel,
    *,
    since: str,
    apart: frozenset[str],
    keep: Keep,
    before: str = "",
    as_repeat: bool = False,
) -> Delivered[LookupResult] | Unreachable | Unknown:
    """Look until it is seen, or there is nothing more to look at.

    Each look is paced as any call. A wait that the platform names is waited for here, because what
    was looked at need not be looked at again.

    Args:
        account: Where it was sent from.
        one: What was sent.
        since: The mark of before it was sent, or a former sighting's.
        apart: The platform's ids of messages that are known to be others.
        keep: Awaited with the mark from which to look on, after each look that saw nothing, so that
            nothing is looked at again after a failure or a kill.
        before: The platform's id of a message that was sent after it, empty for none.
        as_repeat: It may be one that says that it may be a repeat, and is to say so on.

    Returns:
        What was seen; `Unreachable` where the looking itself failed, `Unknown` where it can't be told.
    """
    while True:
        await account.permit(one.to)
        # One that is on its way there has an id that nobody knows yet, and would be taken for it.
        async with account.alone(one.to):
            outcome = await account.lookup(
                one.to,
                lambda: one.content(as_repeat),
                since=since,
                apart=apart,
                before=before,
            )
        match outcome:
            case Delivered():
                if outcome.value.ref is None:
                    since = outcome.value.since
                    await keep(since)
                if outcome.value.is_over:
                    return outcome
            case Unreachable():
                if outcome.retry_after_s is None:
                    return outcome
            case Rejected():
                return Unknown(why=outcome.why)
            case Unknown():
                # A look that is lost has changed nothing, so it may be made again.
                return Unreachable(why=outcome.why) if outcome.late else outcome
            case _:
                assert_never(outcome)


async def the_one(
    account: Account,
    one: Parcel,
    new: MessageRef,
    *,
    since: str,
    apart: frozenset[str],
    keep: Keep,
) -> MessageRef | Unreachable:
    """Return the one message that stands, after it was not seen and so was sent again.

    The new one's id tells how far the ids had run, so now it is certain whether there is an
    earlier one too. Of two the new one is taken away; a lone one no longer says that it may be a
    repeat. Where it can't be told after all, or can't be changed, the new one says so for good.

    Args:
        account: Where both were sent from.
        one: What was sent.
        new: The second.
        since: Where the looking for the first has ended.
        apart: As in `seek`.
        keep: As in `seek`.
    """
    if new.address.chat != one.to.chat:
        return new
    seen = await seek(account, one, since=since, apart=apart, keep=keep, before=new.message)
    if not isinstance(seen, Delivered):
        return seen if isinstance(seen, Unreachable) else new
    old = seen.value.ref
    if old is None and one.clear is not None and account.capabilities.can_edit:
        await account.permit(new.address, message=new.message)
        return _failed(await one.clear(new)) or new
    if old is not None and account.capabilities.can_delete:
        await account.permit(new.address, message=new.message)
        outcome = await account.delete(new)
        return old if isinstance(outcome, Delivered) else _failed(outcome) or new
    return new


def _failed(outcome: CallOutcome[None]) -> Unreachable | None:
    """Return what to raise of a change that may be made again, None for one that may not."""
    if isinstance(outcome, Unknown) and not outcome.broken:
        return Unreachable(why=outcome.why)
    return outcome if isinstance(outcome, Unreachable) else None
