"""What must hold once a daemon that was killed has come to rest: the promises, on one scene.

Read from where people see them (the platform), from where tools ran (the bench), and from the
store's own file.
"""

from collections import Counter
from collections.abc import Collection
from typing import TypeGuard

from tests.fakes.chains import verify
from tests.fakes.journals import fold
from tests.faults.scene import DENIED, Scene
from tests.faults.stage import answers
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


MOST_REPEATS = 2
"""Kills in the life of one message: one at work, one in the recovery."""


class Counted(Value):
    """What was counted on a scene.

    Attributes:
        answers: Whole answers that stand, repeats included.
        repeats: Those that say that they may be one.
        fragments: Drafts that nobody could take away any more.
        runs: Runs of tools and commands.
        unknown: Calls whose outcome a kill hid.
        cards: Endings that cards show, by how.
    """

    answers: int
    repeats: int
    fragments: int
    runs: int
    unknown: int
    cards: dict[str, int]


def counted(scene: Scene) -> Counted:
    """Count."""
    chats = scene.stage.chats()
    wholes = {part for one in scene.said for part in one.parts}
    texts = [text for chat in chats for text in answers(chat)]
    chains = (scene.ledger.log(LogKind.AUDIT, one) for one in scene.ledger.streams(LogKind.AUDIT))
    kinds = [entry.kind for chain in chains for entry in map(audit.read, chain) if _is_entry(entry)]
    return Counted(
        answers=sum(text.removesuffix(REPEAT) in wholes for text in texts),
        repeats=sum(text.endswith(REPEAT) for text in texts),
        fragments=len(_fragments(scene)),
        runs=len(scene.stage.bench.runs) + len(_commands(scene)),
        unknown=kinds.count(audit.Kind.UNKNOWN),
        cards=dict(Counter(how for chat in chats for card in chat.cards for how in card.hows)),
    )


def check(scene: Scene) -> None:
    """Hold a scene that is quiet against every promise.

    Where the platform can't tell a repeated send, a kill between a send and its record leaves the
    window of the design (§7): an answer again, which says that it may be; a card twice, both settled
    once they are touched. Where the beginning of an answer is a message of which nobody can tell
    later what it said, such a beginning may be left behind by that kill.
    """
    is_sure = scene.stage.tells_repeats
    unrecorded = scene.instants.unrecorded
    windows = 0 if is_sure else unrecorded
    _ended_once(scene)
    _each_ended_its_way(scene)
    _told_of_each_end(scene, windows)
    _answered_once(scene, min(windows, MOST_REPEATS), is_sure=is_sure)
    fragments = _fragments(scene)
    assert len(fragments) <= (unrecorded if scene.stage.loses_drafts else 0), fragments
    _ran_once(scene)
    _cards_settled(scene, windows)
    _on_record(scene)
    told, unknown = _told_as_unknown(scene), counted(scene).unknown
    assert told == unknown or (told > unknown and windows), f"{told} told of {unknown} unknown"


def _ended_once(scene: Scene) -> None:
    """Every admitted message has one recorded end (P1)."""
    ledger = scene.ledger
    assert ledger.states(RowKind.INBOX) <= ENDED
    assert all(deed.confirmed for deed in scene.deeds)
    assert ledger.states(RowKind.OUTBOX) <= {"delivered", "refused"}
    assert ledger.states(RowKind.TURN) <= {"closed"}


def _each_ended_its_way(scene: Scene) -> None:
    """Each message is admitted once, and ended as it should (P1)."""
    for one in scene.said:
        ends = scene.ledger.ends(one.deed.message)
        told = f"{one.deed.text!r}: {ends}, not {one.end!r}"
        assert ends == ([one.end] if one.end else []), told


def _told_of_each_end(scene: Scene, windows: int) -> None:
    """Every end that is told of by a mark is told of once; a repeat says that it may be one."""
    marks = Counter((one.where, mark) for one in scene.said for mark in one.marks)
    for (where, mark), due in marks.items():
        marked = [text for text in answers(scene.stage.chat(where)) if mark in text]
        plain = sum(not text.endswith(REPEAT) for text in marked)
        assert plain <= due <= len(marked) <= due + windows, f"{due} {mark!r} in {marked}"


def _answered_once(scene: Scene, repeats: int, *, is_sure: bool) -> None:
    """Whole answers are counted; only a possible repeat is one too many, and says so (P1).

    A lone answer may say so as well: that its send was about to begin is on record, that it had
    not begun is not.
    """
    for one in scene.said:
        stand = answers(scene.stage.chat(one.where))
        for part in one.parts:
            plain, marked = stand.count(part), stand.count(part + REPEAT)
            told = f"{part!r}: {plain} plain, {marked} marked"
            assert plain <= 1, told
            assert 1 <= plain + marked <= 1 + repeats, told
            assert not (is_sure and marked), told


def _fragments(scene: Scene) -> list[str]:
    """Return drafts that were left behind, and texts that are an answer's beginning (P6)."""
    wholes = {part for one in scene.said for part in one.parts}
    standing = [one for chat in scene.stage.chats() for one in chat.shown]
    return [
        message.text
        for message in standing
        if message.draft
        or any(message.text != whole and whole.startswith(message.text) for whole in wholes)
    ]


def _ran_once(scene: Scene) -> None:
    """No tool ran twice, and none that was denied (P3)."""
    runs = Counter((run.tool, run.what) for run in scene.stage.bench.runs if run.tool in ONCE)
    assert set(runs.values()) <= {1}, runs
    commands = Counter(_commands(scene))
    assert set(commands.values()) <= {1}, commands
    ran = {*(what for _, what in runs), *commands}
    assert not [what for what in ran if DENIED in what]


def _commands(scene: Scene) -> list[str]:
    """Return the lines that commands wrote, one for each run."""
    paths = (scene.stage.directory / "workspaces").glob("*/runs.txt")
    return [line for path in paths for line in path.read_text().splitlines()]


def _told_as_unknown(scene: Scene) -> int:
    """Count how often the operator was told that a call may have run (P3)."""
    return sum("may have run" in one.text for one in scene.stage.chat("olga").shown)


def _cards_settled(scene: Scene, windows: int) -> None:
    """Every card shows how it ended, and every copy of it the same (P5)."""
    cards = [card for chat in scene.stage.chats() for card in chat.cards]
    shown: dict[str, set[str]] = {}
    for card in cards:
        for call in card.calls:
            shown.setdefault(call.approval, set()).add(call.how)
    assert all(len(hows) == 1 and "" not in hows for hows in shown.values()), shown
    ended = {"approved", "denied", "expired", "stopped"}
    assert scene.ledger.states(RowKind.APPROVAL) <= ended
    assert len(cards) - len({card.question for card in cards}) <= windows, cards


def _on_record(scene: Scene) -> None:
    """The audit chains are whole, each action ended once, and the journals fold."""
    ledger = scene.ledger
    daemon = ledger.log(LogKind.AUDIT, STREAM)
    for stream in ledger.streams(LogKind.AUDIT):
        chain = ledger.log(LogKind.AUDIT, stream)
        here = ConversationId(stream)
        verified = verify(chain, audit.marks_of(daemon, {here}))
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
