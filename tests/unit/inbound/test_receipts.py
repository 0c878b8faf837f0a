"""Receipts looked up over all conversations, and what is noted of each chain."""

import asyncio
import json
from collections.abc import Awaitable
from datetime import timedelta

import pytest

from tests.fakes.chains import verify
from tests.fakes.house import World
from tests.fakes.house_parts import SECRET
from tests.fakes.manual_clock import EPOCH, ManualClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_model import LOOK, asks_for, says
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate import audit, receipt
from zeroclaw.gate.receipt_keys import Keys
from zeroclaw.inbound.anchors import EVERY_S, STREAM, Anchors
from zeroclaw.inbound.receipts import ReceiptVerifier
from zeroclaw.retention import sweep
from zeroclaw.store import PAGE, Append, Delete, LogEntry, LogKind, Query, RowKind, Trim
from zeroclaw.tool import Arguments

FORGED = "zc-receipt-1767268800-" + "A" * 43


async def look_once(world: World) -> str:
    """Have the model look once, in a process that ends; return the receipt."""
    world.model.will(LOOK)
    async with world.running() as house:
        await house.say("look")
    [token] = receipt.find_tokens(world.model.requests[1].messages[-1].content)
    return token


async def test_a_receipt_is_true_earlier_or_false(world: World) -> None:
    """Valid in the process that issued it, earlier after a restart, else false (P7)."""
    async with world.told("look", LOOK) as house:
        await house.say("hello", "ben")
        [token] = receipt.find_tokens(world.model.requests[1].messages[-1].content)
        assert await house.ask("receipts", text=f"{token} and {FORGED}") == {
            "receipts": [
                {
                    "token": token,
                    "verdict": "valid",
                    "tool": "look",
                    "outcome": "ok",
                    "at": "2026-01-01T12:00:00+00:00",
                },
                {"token": FORGED, "verdict": "false", "tool": "", "outcome": "", "at": ""},
            ]
        }
        [found] = await house.services.receipts.verify(token)
        assert found["verdict"] == "valid"
    async with world.running() as house:
        [found] = await house.services.receipts.verify(token)
        assert found["verdict"] == "earlier"
        assert await house.ask("receipts") == {"receipts": []}


async def test_the_line_of_a_receipt_shows_no_part_of_a_secret(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tool cuts it, and no search finds a part; the answer to a guess would tell the rest (P8)."""
    line = f"look for `{SECRET[:-1]}…`"

    def cut(_: Arguments) -> str:
        return line

    monkeypatch.setattr(world.look, "describe", cut)
    async with world.running() as house:
        for wanted, summary in (("it", line), (SECRET, "")):
            world.model.will(asks_for(("look", json.dumps({"for": wanted}))), says("seen"))
            await house.say(f"look for {wanted}")
            token = receipt.find_tokens(world.model.requests[-1].messages[-1].content)[-1]
            world.model.will(says(f"Now: {token}"))
            await house.say("show it")
            assert [shown.summary for shown in house.receipts()] == [summary]


@pytest.mark.parametrize("restarts", [0, 1, 2])
async def test_a_receipt_proves_no_other_result(world: World, restarts: int) -> None:
    """Whoever changes a stored result has no receipt for it, as long as its key is kept (P7, S2-18)."""
    token = await look_once(world)
    for _ in range(restarts):
        async with world.running() as house:
            [found] = await house.services.receipts.verify(token)
            assert found["verdict"] == "earlier"
    await rewrite_journal(world, b"`look` returned", b"`look` found")
    async with world.running() as house:
        [found] = await house.services.receipts.verify(token)
        assert found["verdict"] == "false"


@pytest.mark.parametrize("lost_part", ["key", "call"])
async def test_a_receipt_whose_key_or_call_is_gone_is_of_an_earlier_run(
    world: World, lost_part: str
) -> None:
    """Nothing can verify it, and the conversation's record shows that it was issued (P7)."""
    token = await look_once(world)
    since_s = 0.0
    if lost_part == "key":
        since_s = world.clock.now().timestamp() + 1
    else:
        calls = await world.store.select(Query(kind=RowKind.ACTION))
        await world.store.write(*(Delete(kind=row.kind, key=row.key) for row in calls))
    other = receipt.Key(id="other", secret=b"o" * 32)
    keys = Keys(current=other, every=(other,), since_s=since_s)
    [found] = await ReceiptVerifier(world.store, keys).verify(token)
    assert found["verdict"] == "earlier"


@pytest.mark.parametrize("changed", [b"`look` returned", b"[receipt: "])
async def test_a_summary_makes_no_changed_result_true(world: World, changed: bytes) -> None:
    """The audit knows the receipt, and what stands under it is looked at all the same (P7, S2-18)."""
    async with world.told("look", LOOK, says("seen")) as house:
        [token] = receipt.find_tokens(world.model.requests[1].messages[-1].content)
        world.model.will(says("State: looked."))
        await house.say("/compact")
    await rewrite_journal(world, changed, b"`look` found")
    async with world.running() as house:
        world.model.will(says(f"I looked: {token}"))
        await house.say("did you?")
        assert house.receipts() == ()
        assert "⚠️ false receipt" in house.texts()[-1]


async def rewrite_journal(world: World, text: bytes, by: bytes) -> None:
    """Write the one journal anew with another text in it, as a person with access to the disk could."""
    [stream] = await world.store.streams(LogKind.JOURNAL)
    stored = await world.store.read(LogKind.JOURNAL, stream)
    bodies = [entry.body.replace(text, by) for entry in stored]
    assert bodies != [entry.body for entry in stored]
    appended = [Append(log=LogKind.JOURNAL, stream=stream, body=body) for body in bodies]
    trimmed = Trim(log=LogKind.JOURNAL, stream=stream, before=stored[-1].sequence + 1)
    await world.store.write(*appended, trimmed)


async def test_heads_are_anchored_now_and_then(world: World) -> None:
    """Once for each time that a chain moved; a chain that was cut is then reported (P3)."""
    async with world.told("look", LOOK) as house:
        [stream] = await world.store.streams(LogKind.AUDIT)
        await house.advance(EVERY_S)
        await house.advance(EVERY_S)
        daemon = [entry.body for entry in await world.store.read(LogKind.AUDIT, "daemon")]
        anchors = audit.marks_of(daemon, {stream})
        assert [anchor.sequence for anchor in anchors] == [3]
        whole = [entry.body for entry in await world.store.read(LogKind.AUDIT, stream)]
        assert isinstance(verify(whole, anchors), audit.Intact)
        assert isinstance(verify(whole[:-1], anchors), audit.Broken)


async def test_two_that_anchor_at_once_make_one_chain(world: World) -> None:
    """One waits for the other, and finds nothing new."""
    async with world.told("look", LOOK) as house:
        async with asyncio.TaskGroup() as group:
            group.create_task(house.services.anchors.anchor())
            group.create_task(house.services.anchors.anchor())
        daemon = [entry.body for entry in await world.store.read(LogKind.AUDIT, "daemon")]
        assert len(daemon) == 1
        assert isinstance(verify(daemon), audit.Intact)


async def test_an_anchor_goes_on_from_the_last_one(world: World) -> None:
    """The daemon's chain is one across restarts."""
    async with world.told("look", LOOK, asks_for(), LOOK) as house:
        await house.services.anchors.anchor()
    async with world.told("look again") as house:
        await house.services.anchors.anchor()
        daemon = [entry.body for entry in await world.store.read(LogKind.AUDIT, "daemon")]
        assert isinstance(verify(daemon), audit.Intact)
        assert len(daemon) == 2


@pytest.mark.parametrize(
    ("is_whole", "verdict"),
    [(True, ("removed", "look", "ok")), (False, ("unchecked", "", ""))],
    ids=["audit whole", "audit damaged"],
)
async def test_a_receipt_outlives_the_result_that_it_stood_under(
    world: World, is_whole: bool, verdict: tuple[str, str, str]
) -> None:
    """When its age has taken the result, a whole audit still tells it from a false one (P7, K27).

    A damaged one proves nothing, neither that it is true nor that it is false.
    """
    token = await look_once(world)
    [stream] = await world.store.streams(LogKind.AUDIT)
    if not is_whole:
        body, _ = audit.link("", audit.Entry(kind=audit.Kind.REVOKED, at=world.clock.now()))
        await world.store.write(Append(log=LogKind.AUDIT, stream=stream, body=body))
    world.clock.leap(timedelta(days=100))
    async with world.running() as house:
        await house.advance(sweep.EVERY_S + 2)
        assert await world.store.streams(LogKind.JOURNAL) == ()
        [found] = await house.services.receipts.verify(token)
        assert (found["verdict"], found["tool"], found["outcome"]) == verdict


@pytest.mark.parametrize(
    ("damaged", "of_a_forged_one"),
    [(STREAM, "false"), ("another", "unchecked")],
    ids=["the daemon's own chain", "another conversation's"],
)
async def test_an_audit_that_can_not_be_read_makes_no_receipt_a_false_one(
    world: World, damaged: str, of_a_forged_one: str
) -> None:
    """The one whose result is kept is checked all the same (P7, P10)."""
    async with world.told("look", LOOK, says("seen"), LOOK) as house:
        [old] = receipt.find_tokens(world.model.requests[1].messages[-1].content)
    await world.store.write(Append(log=LogKind.AUDIT, stream=damaged, body=b"damaged"))
    world.clock.leap(timedelta(days=100))
    async with world.running() as house:
        await house.advance(sweep.EVERY_S + 2)
        await house.say("look again")
        [new] = receipt.find_tokens(world.model.requests[-1].messages[-1].content)
        found = await house.services.receipts.verify(f"{old} {new} {FORGED}")
    assert [result["verdict"] for result in found] == [
        "unchecked" if damaged == STREAM else "removed",
        "valid",
        of_a_forged_one,
    ]


async def test_the_daemons_chain_is_read_once_for_the_receipts_of_all_chats(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a year of anchors: for each chat of an old log, the command would wait a second."""
    async with world.told("look", LOOK, says("seen"), LOOK) as house:
        await house.say("look", "ben")
    requests = (world.model.requests[1], world.model.requests[-1])
    log = " ".join(request.messages[-1].content for request in requests)
    world.clock.leap(timedelta(days=100))
    async with world.running() as house:
        await house.advance(sweep.EVERY_S + 2)
        reads, read = list[str](), world.store.read

        def noted(log: LogKind, stream: str, **options: int) -> Awaitable[tuple[LogEntry, ...]]:
            reads.append(stream)
            return read(log, stream, **options)

        monkeypatch.setattr(world.store, "read", noted)
        found = await ReceiptVerifier(world.store, house.services.receipts.keys).verify(log)
    assert [result["verdict"] for result in found] == ["removed", "removed"]
    assert reads.count(STREAM) == 2  # the second finds its end


async def test_a_journal_that_can_not_be_read_ends_no_check(world: World) -> None:
    """The audit knows what is in it; an unknown receipt might be in it (P7, P10)."""
    async with world.told("look", LOOK, says("seen"), LOOK) as house:
        [first] = receipt.find_tokens(world.model.requests[1].messages[-1].content)
        [stream] = await world.store.streams(LogKind.JOURNAL)
        await house.say("look again", "ben")
        [second] = receipt.find_tokens(world.model.requests[-1].messages[-1].content)
        await world.store.write(Append(log=LogKind.JOURNAL, stream=stream, body=b"damaged"))
        found = await house.services.receipts.verify(f"{first} {second} {FORGED}")
    assert [result["verdict"] for result in found] == ["removed", "valid", "unchecked"]


async def test_a_receipt_whose_result_is_gone_is_no_false_one_in_an_answer(world: World) -> None:
    """The audit of the conversation knows it; read once, and a made-up one stays false (P7, K27)."""
    token = await look_once(world)
    world.clock.leap(timedelta(days=100))
    world.model.will(says(f"It ran: {token}"), says(f"It ran: {FORGED}"))
    async with world.running() as house:
        await house.advance(sweep.EVERY_S + 2)
        await house.say("did it?")
        await house.say("really?")
        true, false = house.receipts(back=2), house.receipts()
        assert [receipt_.line()[:36] for receipt_ in true] == [
            "receipt of an earlier run: look · ok"
        ]
        assert false == ()
        assert "⚠️ false receipt" in house.texts()[-1]


async def test_a_disk_that_fails_to_read_makes_no_receipt_false(world: World) -> None:
    """The turn is tried again, as after any failed read (P7)."""
    token = await look_once(world)
    world.clock.leap(timedelta(days=100))
    world.model.will(says(f"It ran: {token}"), says(f"It ran: {token}"))
    read, failures = world.store.read, ["the disk failed to read"]

    async def failing(
        log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        if log is LogKind.AUDIT and stream != STREAM and limit == PAGE and failures:
            raise StoreUnusable(failures.pop())
        return await read(log, stream, after=after, limit=limit)

    async with world.running() as house:
        await house.advance(sweep.EVERY_S + 2)
        world.store.read = failing
        await house.say("did it?")
        await house.advance(sweep.EVERY_S + 2)
        assert failures == []
        assert [receipt_.line()[:36] for receipt_ in house.receipts()] == [
            "receipt of an earlier run: look · ok"
        ]


async def test_a_damaged_audit_holds_up_no_chat(world: World) -> None:
    """It proves nothing, so a receipt that only it knew counts as false; the answer comes (P9)."""
    token = await look_once(world)
    [stream] = await world.store.streams(LogKind.AUDIT)
    whole = await world.store.read(LogKind.AUDIT, stream)
    damaged = (b"{}", *(entry.body for entry in whole))
    await world.store.write(
        *(Append(log=LogKind.AUDIT, stream=stream, body=body) for body in damaged),
        Trim(log=LogKind.AUDIT, stream=stream, before=len(whole) + 1),
    )
    async with world.told("did it?", says(f"It ran: {token}"), says(f"It ran: {FORGED}")) as house:
        await house.say("really?")
        assert [(receipt_.tool, receipt_.outcome) for receipt_ in house.receipts(back=2)] == [
            ("look", "ok")
        ]
        assert FORGED not in house.texts()[-1]


# --- what is noted of chains, and what is remembered of them --------------------------------------

HERE, THERE = "01HERE", "01THERE"
BODY, _ = audit.link(audit.GENESIS, audit.Entry(kind=audit.Kind.REVOKED, at=EPOCH))


class Counted(MemoryStore):
    """Counts the entries that are read of the daemon's own chain."""

    def __init__(self) -> None:
        super().__init__()
        self.entries_read = 0

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 1000
    ) -> tuple[LogEntry, ...]:
        found = await super().read(log, stream, after=after, limit=limit)
        self.entries_read += len(found) if stream == STREAM else 0
        return found


async def noted(store: MemoryStore) -> int:
    """Return how many anchors there are."""
    return len(await store.read(LogKind.AUDIT, STREAM))


async def with_two_chains() -> Counted:
    store = Counted()
    writes = [Append(log=LogKind.AUDIT, stream=stream, body=BODY) for stream in (HERE, THERE)]
    await store.write(*writes)
    return store


async def test_a_chain_that_is_gone_is_forgotten() -> None:
    """Retention takes away chains by their age; what is remembered goes with them."""
    store = await with_two_chains()
    anchors = Anchors(store, ManualClock())
    await anchors.anchor()
    await store.write(Trim(log=LogKind.AUDIT, stream=HERE, before=2))
    await anchors.anchor()
    known = anchors._anchored  # pyright: ignore[reportPrivateUsage]  # nothing else shows it
    assert known is not None
    assert known.keys() == {THERE}


async def test_a_restart_notes_only_what_has_moved() -> None:
    """Else each start would make the daemon's chain longer by all conversations there are."""
    store = await with_two_chains()
    await Anchors(store, ManualClock()).anchor()
    assert await noted(store) == 2
    damaged = (b"damaged", BODY)  # neither is an anchor
    await store.write(*(Append(log=LogKind.AUDIT, stream=STREAM, body=body) for body in damaged))
    await store.write(Append(log=LogKind.AUDIT, stream=HERE, body=BODY))
    anchors = Anchors(store, ManualClock())
    await anchors.anchor()
    assert await noted(store) == 2 + len(damaged) + 1


async def test_a_chain_of_which_nothing_is_old_is_not_read() -> None:
    """It has an entry for each time that something ran, of a whole year."""
    store = await with_two_chains()
    clock = ManualClock()
    anchors = Anchors(store, clock)
    await anchors.anchor()
    store.entries_read = 0
    assert not await anchors.cut_own(clock.now() - timedelta(days=1))
    assert store.entries_read == 1
