"""Records each message of a turn's draft, so that a restart goes on with it.

Where a platform can't tell a message by its key, that it is about to be sent is recorded as well:
killed in between, the final looks for it and is shown in its place, and no beginning stays behind.

While the turn is open the message joins the turn's row, which the final begins with. One that is
learned after the end joins the row of the final itself. Whoever writes first, the other sees it:
both expect the turn's row as they read it.
"""

from collections.abc import Callable

from zeroclaw.delivery import rows
from zeroclaw.delivery.rows import OPEN_STATES, Left, State, Text
from zeroclaw.envelope import MessageRef, TurnId
from zeroclaw.errors import Conflict
from zeroclaw.store import Commit, DurablePoint, RowKind, Store, Write
from zeroclaw.turn.desk import Desk
from zeroclaw.turn.open_turns import TurnRow, turn_of, turn_put
from zeroclaw.value import replace

TRIES = 8
"""Times that a turn's row is written anew because somebody else wrote in between."""


async def read_turn(store: Store, turn: TurnId) -> tuple[TurnRow, int, str]:
    """Return a turn's row, its version and its state.

    Raises:
        LookupError: There is none; a fault of ours.
    """
    stored = await store.get(RowKind.TURN, turn)
    if stored is None:
        message = f"the turn `{turn}` has no row"
        raise LookupError(message)
    return turn_of(stored), stored.version, stored.state


async def learn(store: Store, desk: Desk, turn: TurnId, ref: MessageRef) -> None:
    """Record a message that the draft has posted.

    Raises:
        Conflict: Somebody else kept writing the row.
        Fenced: Somebody newer has the conversation.
    """
    await _change(store, desk, turn, DurablePoint.REF_KNOWN, lambda row: row.with_ref(ref))


async def sending(store: Store, desk: Desk, turn: TurnId, mark: str) -> None:
    """Record that the draft begins to post a message, or that it did not arrive.

    Args:
        store: Where the turn's row is.
        desk: Of the turn's conversation.
        turn: Whose draft it is.
        mark: From where to look for the message; empty when it did not arrive.

    Raises:
        Conflict: Somebody else kept writing the row.
        Fenced: Somebody newer has the conversation.
    """
    await _change(
        store, desk, turn, DurablePoint.HOUSEKEEPING, lambda row: replace(row, sending=mark)
    )


async def _change(
    store: Store,
    desk: Desk,
    turn: TurnId,
    point: DurablePoint,
    change: Callable[[TurnRow], TurnRow],
) -> None:
    for tries_left in reversed(range(TRIES)):
        row, version, state = await read_turn(store, turn)
        changed = change(row)
        writes: tuple[Write, ...] = (
            turn_put(changed, desk.conversation, closed=state == "closed", expect=version),
            *await _final(store, changed),
        )
        try:
            await store.commit(
                Commit(
                    point=point,
                    conversation=desk.conversation,
                    fence=desk.fence,
                    writes=writes,
                )
            )
        except Conflict:
            if not tries_left:
                raise
            continue
        return


async def _final(store: Store, turn: TurnRow) -> tuple[Write, ...]:
    """Return the write that tells the final of its draft, none before there is one."""
    row = await store.get(RowKind.OUTBOX, turn.final) if turn.final else None
    state: State | None = None if row is None else _open_state(row.state)
    if row is None or state is None:
        return ()
    item = rows.read(row)
    if not isinstance(item, Text):
        return ()
    # Nobody delivers it before the draft is closed, so this alone is known of what was lost.
    known = rows.with_draft(item, Left(refs=turn.refs))
    lost = replace(known, uncertain=bool(turn.sending), mark=turn.sending)
    return (rows.changed(row, lost, state),)


def _open_state(state: str) -> State | None:
    return next((one for one in OPEN_STATES if one == state), None)
