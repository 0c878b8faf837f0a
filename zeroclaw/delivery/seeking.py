"""Find out whether a message stands whose answer was lost, or whose record was."""

from collections.abc import Awaitable, Callable
from typing import assert_never

from zeroclaw.channel import Sighting, Sought
from zeroclaw.delivery.account import Account
from zeroclaw.delivery.endings import Arrived, Ending, Lost, NotArrived, TurnedDown
from zeroclaw.envelope import Address, MessageRef
from zeroclaw.value import Value


class Parcel(Value):
    """One message that is to be posted.

    Attributes:
        to: The chat.
        sought: Makes what is looked for where it may stand already.
        send: Posts it; told whether it must say that it may be a repeat.
        admit: Has one that stands say so; None where that can't be said.
    """

    to: Address
    sought: Callable[[], Sought]
    send: Callable[[bool], Awaitable[Ending[MessageRef]]]
    admit: Callable[[MessageRef], Awaitable[Ending[None]]] | None = None


async def seek(
    account: Account,
    one: Parcel,
    *,
    since: str,
    apart: frozenset[str],
    before: str = "",
) -> Arrived[Sighting] | NotArrived | Lost:
    """Look until it is seen, or there is nothing more to look at.

    Each look is paced as any call. A wait that the platform names is waited for here, because what
    was looked at need not be looked at again.

    Args:
        account: Where it was sent from.
        one: What was sent.
        since: The mark of before it was sent, or a former sighting's.
        apart: The platform's ids of messages that are known to be others.
        before: The platform's id of a message that was sent after it, empty for none.

    Returns:
        What was seen; `NotArrived` where the looking itself failed, `Lost` where it can't be told.
    """
    while True:
        await account.permit(one.to)
        # One that is on its way there has an id that nobody knows yet, and would be taken for it.
        async with account.alone(one.to):
            ending = await account.look(one.to, one.sought, since=since, apart=apart, before=before)
        match ending:
            case Arrived():
                if ending.value.is_over:
                    return ending
                since = ending.value.since
            case NotArrived():
                if ending.retry_after_s is None:
                    return ending
            case TurnedDown():
                return Lost(why=ending.why)
            case Lost():
                # A look that is lost has changed nothing, so it may be made again.
                return NotArrived(why=ending.why) if ending.late else ending
            case _:
                assert_never(ending)


async def the_one(
    account: Account, one: Parcel, new: MessageRef, *, since: str, apart: frozenset[str]
) -> MessageRef | NotArrived:
    """Return the one message that stands, after it was not seen and so was sent again.

    The new one's id tells how far the ids had run, so now it is certain whether there is an
    earlier one too; of two the new one is taken away. Where it can't be told after all, or it
    can't be taken away, it says that it may be a repeat.

    Args:
        account: Where both were sent from.
        one: What was sent.
        new: The second.
        since: Where the looking for the first has ended.
        apart: As in `seek`.
    """
    if new.address.chat == one.to.chat:
        seen = await seek(account, one, since=since, apart=apart, before=new.message)
        if isinstance(seen, NotArrived):
            return seen
        old = seen.value.ref if isinstance(seen, Arrived) else None
        if isinstance(seen, Arrived) and old is None:
            return new
        if old is not None and account.capabilities.can_delete:
            await account.permit(new.address, message=new.message)
            ending = await account.delete(new)
            if isinstance(ending, Arrived):
                return old
            if (failed := _failed(ending)) is not None:
                return failed
    if one.admit is not None:
        await account.permit(new.address, message=new.message)
        if (failed := _failed(await one.admit(new))) is not None:
            return failed
    return new


def _failed(ending: Ending[None]) -> NotArrived | None:
    """Return what to raise of a change that may be made again, None for one that may not."""
    if isinstance(ending, Lost) and not ending.broken:
        return NotArrived(why=ending.why)
    return ending if isinstance(ending, NotArrived) else None
