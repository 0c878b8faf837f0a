"""A page of rows that stand before all others, for whoever reads more than one page."""

from zeroclaw.store import PAGE, Commit, DurablePoint, Put, Store
from zeroclaw.value import replace


async def put_a_page_before(store: Store, like: Put) -> None:
    """Store a full page of rows like this one, whose keys sort before those of any house."""
    rows = tuple(replace(like, key=f"!{number:04}", expect=None) for number in range(PAGE))
    await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=rows))
