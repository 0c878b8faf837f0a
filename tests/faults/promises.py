"""Checks the promises on a run that is idle after its kills.

Facts come from the platform as people see it, from the tool bench, and from the store's own file.
"""

from collections import Counter
from collections.abc import Collection
from typing import TypeGuard

from tests.fakes.chains import verify
from tests.fakes.journals import fold
from tests.faults.crash_run import DENIED, CrashRun
from tests.faults.platform_world import answers
from zeroclaw.envelope import ConversationId
from zeroclaw.gate import audit
from zeroclaw.inbound.anchors import STREAM
from zeroclaw.store import LogKind, RowKind
from zeroclaw.turn import entries
from zeroclaw.value import Value

REPEAT = "\n\n(possible repeat)"
ENDED = {"answered", "joined", "superseded", "stopped", "failed"}
ONCE = frozenset({"knock", "dig"})
"""Tools of the bench that are not idempotent."""


MAX_REPEATS = 2
"""Kills in the life of one message: one at work, one in the recovery."""


class Counts(Value):
    """Numbers of a run.

    Attributes:
        answers: Full answers on the platform, repeats included.
        repeats: Answers that carry the note of a possible repeat.
        fragments: Drafts that remained.
        runs: Runs of tools and commands.
        unknown: Calls whose outcome a kill hid.
        cards: Displayed endings of approval requests, by outcome.
    """

    answers: int
    repeats: int
    fragments: int
    runs: int
    unknown: int
    cards: dict[str, int]


def count(run: CrashRun) -> Counts:
    """Return the numbers of a run."""
    chats = run.world.chats()
    full_answers = {part for expectation in run.expectations for part in expectation.parts}
    texts = [text for chat in chats for text in answers(chat)]
    chains = (
        run.ledger.log(LogKind.AUDIT, expectation)
        for expectation in run.ledger.streams(LogKind.AUDIT)
    )
    kinds = [entry.kind for chain in chains for entry in map(audit.read, chain) if _is_entry(entry)]
    return Counts(
        answers=sum(text.removesuffix(REPEAT) in full_answers for text in texts),
        repeats=sum(text.endswith(REPEAT) for text in texts),
        fragments=len(_fragments(run)),
        runs=len(run.world.bench.runs) + len(_commands(run)),
        unknown=kinds.count(audit.Kind.UNKNOWN),
        cards=dict(Counter(how for chat in chats for card in chat.cards for how in card.outcomes)),
    )


def check(run: CrashRun) -> None:
    """Check every promise on a run that is idle.

    On a platform that can't detect a repeated send, a kill between a send and its record leaves the
    window of the design (§7): an answer again, with the note of a possible repeat; a card twice, both
    settled once they are pressed. On a platform where the text of an earlier message can't be read
    back, such a kill may leave the beginning of an answer.
    """
    is_sure = run.world.detects_repeats
    unrecorded = run.kill_points.unrecorded
    windows = 0 if is_sure else unrecorded
    _ended_once(run)
    _ended_as_expected(run)
    _noticed_once(run, windows)
    _answered_once(run, min(windows, MAX_REPEATS), is_sure=is_sure)
    fragments = _fragments(run)
    assert len(fragments) <= (unrecorded if run.world.may_leave_drafts else 0), fragments
    _ran_once(run)
    _cards_settled(run, windows)
    _on_record(run)
    notices, unknown = _unknown_notices(run), count(run).unknown
    assert notices == unknown or (notices > unknown and windows), (
        f"{notices} told of {unknown} unknown"
    )


def _ended_once(run: CrashRun) -> None:
    """Every admitted message has one recorded end (P1)."""
    ledger = run.ledger
    assert ledger.states(RowKind.INBOX) <= ENDED
    assert all(action.confirmed for action in run.actions)
    assert ledger.states(RowKind.OUTBOX) <= {"delivered", "refused"}
    assert ledger.states(RowKind.TURN) <= {"closed"}


def _ended_as_expected(run: CrashRun) -> None:
    """Each message is admitted once, and ended as it should (P1)."""
    for expectation in run.expectations:
        ends = run.ledger.ends(expectation.action.message)
        message = f"{expectation.action.text!r}: {ends}, not {expectation.end!r}"
        assert ends == ([expectation.end] if expectation.end else []), message


def _noticed_once(run: CrashRun, windows: int) -> None:
    """Every expected mark appears once; a repeat carries its note."""
    marks = Counter(
        (expectation.where, mark) for expectation in run.expectations for mark in expectation.marks
    )
    for (where, mark), due in marks.items():
        marked = [text for text in answers(run.world.chat(where)) if mark in text]
        plain = sum(not text.endswith(REPEAT) for text in marked)
        assert plain <= due <= len(marked) <= due + windows, f"{due} {mark!r} in {marked}"


def _answered_once(run: CrashRun, repeats: int, *, is_sure: bool) -> None:
    """Each full answer appears once; an extra one carries the note of a possible repeat (P1).

    A single answer may carry it as well: the store records that a send is about to begin, but not
    that it did not begin.
    """
    for expectation in run.expectations:
        stand = answers(run.world.chat(expectation.where))
        for part in expectation.parts:
            plain, marked = stand.count(part), stand.count(part + REPEAT)
            message = f"{part!r}: {plain} plain, {marked} marked"
            assert plain <= 1, message
            assert 1 <= plain + marked <= 1 + repeats, message
            assert not (is_sure and marked), message


def _fragments(run: CrashRun) -> list[str]:
    """Return drafts that remained, and texts that are the beginning of an answer (P6)."""
    full_answers = {part for message in run.expectations for part in message.parts}
    standing = [message for chat in run.world.chats() for message in chat.messages]
    return [
        text.text
        for text in standing
        if text.draft
        or any(text.text != whole and whole.startswith(text.text) for whole in full_answers)
    ]


def _ran_once(run: CrashRun) -> None:
    """No tool ran twice, and no denied call ran (P3)."""
    runs = Counter(
        (tool_run.tool, tool_run.what) for tool_run in run.world.bench.runs if tool_run.tool in ONCE
    )
    assert set(runs.values()) <= {1}, runs
    commands = Counter(_commands(run))
    assert set(commands.values()) <= {1}, commands
    ran = {*(what for _, what in runs), *commands}
    assert not [what for what in ran if DENIED in what]


def _commands(run: CrashRun) -> list[str]:
    """Return the lines that shell commands wrote, one per run."""
    paths = (run.world.directory / "workspaces").glob("*/runs.txt")
    return [line for path in paths for line in path.read_text().splitlines()]


def _unknown_notices(run: CrashRun) -> int:
    """Count the operator's notices that a call may have run (P3)."""
    return sum("may have run" in message.text for message in run.world.chat("olga").messages)


def _cards_settled(run: CrashRun, windows: int) -> None:
    """Every card shows its outcome, and every copy of it shows the same one (P5)."""
    cards = [card for chat in run.world.chats() for card in chat.cards]
    outcomes: dict[str, set[str]] = {}
    for card in cards:
        for call in card.calls:
            outcomes.setdefault(call.approval, set()).add(call.outcome)
    assert all(len(displayed) == 1 and "" not in displayed for displayed in outcomes.values()), (
        outcomes
    )
    ended = {"approved", "denied", "expired", "stopped"}
    assert run.ledger.states(RowKind.APPROVAL) <= ended
    assert len(cards) - len({card.question for card in cards}) <= windows, cards


def _on_record(run: CrashRun) -> None:
    """The audit chains are intact, each action ended once, and the journals fold."""
    ledger = run.ledger
    daemon = ledger.log(LogKind.AUDIT, STREAM)
    for stream in ledger.streams(LogKind.AUDIT):
        chain = ledger.log(LogKind.AUDIT, stream)
        conversation = ConversationId(stream)
        verified = verify(chain, audit.marks_of(daemon, {conversation}))
        assert isinstance(verified, audit.Intact), verified
        assert verified.open == ()
        assert _actions_ended_once([audit.read(body) for body in chain])
    for stream in ledger.streams(LogKind.JOURNAL):
        journal = ledger.log(LogKind.JOURNAL, stream)
        assert fold(entries.decode(body) for body in journal).turn is None
    assert ledger.damage() == "ok"


def _actions_ended_once(chain: Collection[audit.Written]) -> bool:
    kinds: Counter[str] = Counter()
    for entry in chain:
        if _is_entry(entry) and entry.action and entry.kind in audit.FINAL:
            kinds[entry.action] += 1
    return set(kinds.values()) <= {1}


def _is_entry(entry: audit.Written) -> TypeGuard[audit.Entry]:
    return isinstance(entry, audit.Entry)
