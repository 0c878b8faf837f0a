"""A journal that is read from its end comes to what all of it comes to."""

from collections.abc import Sequence
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.journals import fold
from tests.fakes.memory_store import MemoryStore
from tests.unit.turn.parts import AT, USED, action, allowed, call, opened, result
from zeroclaw.envelope import ConversationId
from zeroclaw.message import AssistantMessage, Message, ToolMessage, UserMessage
from zeroclaw.store import DurablePoint, LogEntry, LogKind
from zeroclaw.turn import entries
from zeroclaw.turn.entries import Entry
from zeroclaw.turn.journal import History, extend, folded_end
from zeroclaw.turn.session import READ_AT_ONCE, Leases, Transition, open_session, read_history
from zeroclaw.value import replace

HERE = ConversationId("here")
TOKEN = "zc-receipt-1767268800-" + "A" * 40


def turn(number: int, *rounds: int, summed: int = 0, ends: str = "model_stop") -> list[Entry]:
    """A turn of so many rounds; after `summed` of them all but the newest messages are summed up."""
    begun = replace(opened(turn=f"turn-{number}"), user=UserMessage(content=f"question {number}"))
    found: list[Entry] = [begun]
    for at in rounds:
        if summed and at == summed:
            kept, pinned = (2, 2 * at + 1) if at > 1 else (1, 0)
            made = f"summary {number}"
            found.append(entries.Compacted(summary=made, kept=kept, pinned=pinned, at=AT))
        one = action(f"{number}-{at}")
        token = f"{TOKEN}{number % 10}{at:02}"
        said = result(f"seen\n[receipt: {token}]", name="look")
        found += [
            entries.AssistantReceived(
                message=AssistantMessage(tool_calls=(call(f"look_{number}"),)), usage=USED, at=AT
            ),
            entries.Gated(verdicts=(allowed(f"{number}-{at}"),), at=AT),
            entries.CallStarted(action=one, at=AT),
            entries.CallFinished(action=one, result=said, outcome="ok", at=AT, receipt=token),
            entries.BatchAppended(at=AT),
        ]
    last = AssistantMessage(content=f"answer {number}")
    reason = "model_stop" if ends == "model_stop" else "error"
    found.append(entries.TurnFinished(reason=reason, usage=USED, at=AT, message=last))
    return found


def fold_end(journal: Sequence[Entry]) -> History | None:
    *_, found = folded_end(journal)
    return found


def written_down(journal: Sequence[Entry]) -> list[Entry]:
    """The same journal as a turn writes it: its summaries say what was loaded by then."""
    history, found = History(), list[Entry]()
    for one in journal:
        loaded = history.loaded
        if isinstance(one, entries.Compacted):
            found.append(replace(one, tools=loaded.tools, skills=loaded.skills))
        else:
            found.append(one)
        history = extend(history, found[-1])
    return found


def _is_result(message: Message) -> bool:
    return isinstance(message, ToolMessage)


@st.composite
def journals(draw: st.DrawFn) -> list[Entry]:
    """Turns of all sorts; some begin with a summary of what came before, some have one within."""
    found: list[Entry] = []
    for number in range(draw(st.integers(1, 9))):
        rounds = draw(st.integers(0, 4))
        summed = draw(st.integers(0, rounds))
        ends = draw(st.sampled_from(["model_stop", "error"]))
        made = turn(number, *range(1, rounds + 1), summed=summed, ends=ends)
        if draw(st.booleans()):
            messages = fold([*found, made[0]]).messages
            # No result is ever cut from its call, see `context.assembly.tails`.
            whole = [n for n in range(1, len(messages) + 1) if not _is_result(messages[-n])]
            kept = draw(st.sampled_from(whole))
            made.insert(1, entries.Compacted(summary=f"older {number}", kept=kept, at=AT))
        if draw(st.booleans()):
            made.insert(-1, entries.Noted(text="edited", why="edit", at=AT))
        found += made
    return written_down(found)


@given(journals(), st.data())
def test_the_end_of_a_journal_comes_to_the_whole_or_says_that_it_is_too_short(
    journal: list[Entry], data: st.DataObject
) -> None:
    """Wherever it is cut; only receipts and turns that a summary stands for are not in it."""
    end = journal[data.draw(st.integers(0, len(journal) - 1)) :]
    assert fold(journal) == reduce(extend, journal, History())
    assert fold_end(end) in (None, fold(journal))


def test_the_end_is_enough_where_a_summary_and_what_it_left_are_in_it() -> None:
    """All before it may be anything."""
    first, second, third = turn(1, 1), turn(2, 1), turn(3)
    third.insert(1, entries.Compacted(summary="they met", kept=2, at=AT))
    whole = written_down([*first, *second, *third])
    third = whole[len(first) + len(second) :]
    assert fold_end([]) is None
    assert fold_end(first) is None, "no summary"
    assert fold_end(third) is None, "one message of the two came before"
    assert fold_end(third[1:]) is None, "no turn begins before the summary"
    found = fold_end([*second, *third])
    assert found == fold(whole)
    assert found is not None
    assert found.receipts == ()
    assert found.loaded.tools == ("look_1", "look_2")


def test_what_a_summary_stands_for_is_not_tried_again() -> None:
    """While its message is there it can be."""
    failed, later = turn(1, ends="error"), turn(2)
    again = replace(failed[0], user=UserMessage(content="question 1"))
    assert fold([*failed, *later]).retry == again
    for kept, retry in ((3, again), (1, None)):
        summed = entries.Compacted(summary="they met", kept=kept, at=AT)
        assert fold([*failed, later[0], summed, *later[1:]]).retry == retry


class CountingStore(MemoryStore):
    """Counts the entries of journals that are read."""

    read_entries = 0

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        found = await super().read(log, stream, after=after, limit=limit)
        self.read_entries += len(found) if log is LogKind.JOURNAL else 0
        return found

    async def last(self, log: LogKind, stream: str) -> LogEntry | None:
        before = self.read_entries
        found = await super().last(log, stream)
        self.read_entries = before  # a real store looks at one
        return found


async def written(journal: Sequence[Entry]) -> CountingStore:
    store = CountingStore()
    session = await open_session(store, Leases(store), HERE)
    housekeeping = DurablePoint.HOUSEKEEPING
    await session.commit(Transition(point=housekeeping, journal=tuple(journal)))
    store.read_entries = 0
    return store


def many(count: int, *, summed: bool) -> list[Entry]:
    """So many short turns; the newest but one begins with a summary of all but its message."""
    found: list[Entry] = []
    for number in range(count):
        made = turn(number)
        if summed and number == count - 2:
            made.insert(1, entries.Compacted(summary="they met", kept=1, at=AT))
        found += made
    return found


async def test_a_long_journal_is_read_from_its_end() -> None:
    """However long it is; a restart waits for no more."""
    journal = many(2_000, summed=True)
    store = await written(journal)
    session = await open_session(store, Leases(store), HERE)
    assert session.history == fold(journal)
    assert [one.content for one in session.history.messages] == [
        "question 1998",
        "answer 1998",
        "question 1999",
        "answer 1999",
    ]
    assert store.read_entries <= READ_AT_ONCE[0] + 1
    assert (await read_history(store, HERE)) == fold(journal)


async def test_a_journal_without_a_summary_is_read_whole() -> None:
    journal = many(200, summed=False)
    store = await written(journal)
    assert (await open_session(store, Leases(store), HERE)).history == fold(journal)
