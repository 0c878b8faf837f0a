"""Shows the audit: the chains, whether each is intact, and the entries of one.

Pure. An entry holds ids, kinds, decisions and times, so there is nothing to redact.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from zeroclaw.console.conversations import counted
from zeroclaw.console.frame import ConsolePaths, button, form
from zeroclaw.console.markup import (
    Html,
    Node,
    coded,
    empty,
    instant,
    joined,
    line,
    listing,
    panel,
    pill,
    table,
    tag,
)
from zeroclaw.gate.audit import Anchor, Broken, Cut, Entry, Intact, Kind, Written
from zeroclaw.value import Value

_LOOKS = {
    Kind.EXECUTED: "good",
    Kind.DENIED: "bad",
    Kind.FAILED: "bad",
    Kind.UNKNOWN: "bad",
    Kind.ANSWERED: "ask",
}


class Checked(Value):
    """The result of the last check of a chain.

    Attributes:
        at: Time of the check.
        through: Number of the newest entry at that time.
    """

    verdict: Intact | Broken
    at: datetime
    through: int = 0


class Checking(Value):
    """A check that is running or queued: `done` of `total` entries are checked."""

    done: int
    total: int


Check = Checked | Checking | None


class Chain(Value):
    """One chain.

    Attributes:
        stream: Its name: a conversation's id, or the daemon's own.
        where: The chat, for people; empty if that is no longer known.
        is_conversation: Whether there is a conversation with this id.
        last: Number of its newest entry.
        check: The state of its check.
    """

    stream: str
    where: str
    is_conversation: bool
    last: int
    check: Check


class Numbered(Value):
    """A stored entry of a chain; `written` is None if its bytes are not a valid entry."""

    sequence: int
    written: Written | None


def chains(place: ConsolePaths, shown: Sequence[Chain], links: Html) -> Html:
    """Return the section: one page of all chains, and the links to the others."""
    if not shown and not links.text:
        nothing = empty(
            "No tool was called yet.",
            "Each tool call leaves entries here: proposed, decided, answered, done. The entries of"
            " a conversation form a chain of hashes, so that none can be changed or removed"
            " without showing.",
        )
        return panel("Chains", nothing, id_="chains")
    rows = (_row(place, one) for one in shown)
    every = form(place, "audit", button("Check every chain"), label="check every chain", check="")
    said = tag("p", "One for each conversation, and one of the daemon itself.", class_="aside")
    return panel(
        "Chains",
        tag("div", said, every, class_="line"),
        listing(*rows, id_="streams"),
        links,
        id_="chains",
    )


def _row(place: ConsolePaths, one: Chain) -> Html:
    link = tag("a", tag("bdi", one.where or one.stream), href=path_of(place, one.stream))
    return line(
        (_mark(one.check), " ", link),
        (counted(one.last, "entry", "entries"), *_when(one.check)),
        id_=f"chain-{one.stream}",
    )


def path_of(place: ConsolePaths, stream: str) -> str:
    """Return the path of a chain's page."""
    return f"{place.to('audit')}?of={stream}"


def _mark(check: Check) -> Html:
    match check:
        case None:
            return pill("not checked", "quiet")
        case Checking(done=done, total=total):
            return pill(f"checking {_percent(done, total)} %", "ask")
        case Checked(verdict=Intact()):
            return pill("intact", "good")
        case Checked():
            return pill("damaged", "bad")
        case _:
            assert_never(check)


def _percent(done: int, total: int) -> int:
    return min(99, done * 100 // total) if total else 0


def _when(check: Check) -> tuple[Node, ...]:
    return (" · checked ", instant(check.at)) if isinstance(check, Checked) else ()


# --- one chain -----------------------------------------------------------------------------------


def chain(place: ConsolePaths, one: Chain, entries: Sequence[Numbered], links: Html) -> Html:
    """Return one chain: its verdict, and a page of its entries, newest first."""
    broken = None
    if isinstance(one.check, Checked) and isinstance(one.check.verdict, Broken):
        broken = one.check.verdict.at
    rows = (_entry(each, is_broken=each.sequence == broken) for each in entries)
    heads = ("no.", "when", "what", "tool", "by", "decided", "call")
    ways: list[Node] = [tag("a", "all chains", href=place.to("audit"))]
    if one.is_conversation:
        path = place.to("conversations", one.stream)
        ways += [" · ", tag("a", "what was said", href=path)]
    return joined(
        (
            tag("p", *ways, class_="aside"),
            panel("The chain", _verdict(place, one), id_="verdict"),
            panel(
                "Entries",
                table(heads, rows, caption="entries of the audit, the newest first"),
                links,
                id_="entries",
            ),
        )
    )


def _verdict(place: ConsolePaths, one: Chain) -> Html:
    again = form(
        place, "audit", button("Check again"), label="check the chain again", check=one.stream
    )
    said: Node
    match one.check:
        case None:
            said = f"{counted(one.last, 'entry', 'entries')}, not checked yet."
        case Checking(done=done, total=total):
            bar = tag("progress", value=done, max=max(total, 1), aria_label="entries checked")
            words = f"{done:,} of {total:,} entries are checked."
            return tag("div", tag("p", _mark(one.check), " ", words), bar, class_="verdict")
        case Checked(verdict=verdict):
            said = _found(place, one.stream, verdict)
        case _:
            assert_never(one.check)
    when: Html | str = ""
    if isinstance(one.check, Checked):
        when = tag("p", "checked ", instant(one.check.at), class_="aside")
    return tag("div", tag("p", _mark(one.check), " ", said), when, again, class_="verdict")


def _found(place: ConsolePaths, stream: str, verdict: Intact | Broken) -> Html:
    if isinstance(verdict, Broken):
        path = f"{path_of(place, stream)}&before={verdict.at + 1}"
        link = tag("a", f"entry {verdict.at}", href=path)
        return joined(("At ", link, ": ", coded(verdict.why), ". Nothing after it can be trusted."))
    going_on = counted(len(verdict.open), "call has no end yet", "calls have no end yet")
    return joined(
        (
            f"{counted(verdict.count, 'entry', 'entries')}, each linked to the one before it, and in"
            " agreement with the daemon's own chain. ",
            *([f"{going_on}. "] if verdict.open else []),
            "The head is ",
            tag("code", verdict.head, class_="long"),
            ".",
        )
    )


def _entry(one: Numbered, *, is_broken: bool) -> Html:
    number = tag("th", str(one.sequence), scope="row")
    marked = "true" if is_broken else None
    written = one.written
    if written is None:
        said = tag("td", pill("unreadable", "bad"), colspan=6)
        return tag("tr", number, said, id=f"entry-{one.sequence}", data_broken=marked)
    cells = _cells(written) if isinstance(written, Entry) else _note(written)
    when = tag("td", instant(written.at))
    return tag("tr", number, when, *cells, id=f"entry-{one.sequence}", data_broken=marked)


def _cells(one: Entry) -> tuple[Html, ...]:
    tool = tag("code", one.tool) if one.tool else ""
    statements = [node for each in one.statements for node in (" ", tag("code", each))]
    call = [tag("code", one.action[-_SHORT:], title=f"action {one.action}, hash {one.hash}")]
    return (
        tag("td", pill(one.kind, _LOOKS.get(one.kind, "quiet"))),
        tag("td", tool),
        tag("td", tag("bdi", one.by)),
        tag("td", one.decision, *statements),
        tag("td", *(call if one.action else []), " ", one.detail, class_="aside"),
    )


_SHORT = 8


def _note(one: Anchor | Cut) -> tuple[Html, ...]:
    what = "cut" if isinstance(one, Cut) else "anchored"
    said = f"entry {one.sequence} of {one.conversation}"
    return (
        tag("td", pill(what, "quiet")),
        tag("td", said, colspan=3),
        tag("td", one.head[:_SHORT], class_="aside"),
    )
