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
    """A running or queued check: `done` of `total` entries, at least one, are checked."""

    done: int
    total: int


Check = Checked | Checking | None


class Chain(Value):
    """One chain.

    Attributes:
        stream: Its name: a conversation's id, or the daemon's own.
        where: The chat, for people; empty if its conversation was deleted.
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


def chains(paths: ConsolePaths, chains: Sequence[Chain], links: Html) -> Html:
    """Return the section: one page of all chains, and the links to the others."""
    if not chains and not links.text:
        none = empty(
            "No tool was called yet.",
            "Each tool call leaves entries here: proposed, decided, answered, done. The entries of"
            " a conversation form a chain of hashes, so that none can be changed or removed"
            " without showing.",
        )
        return panel("Chains", none, id_="chains")
    rows = (_row(paths, chain) for chain in chains)
    check = form(paths, "audit", button("Check every chain"), label="check every chain", check="")
    note = tag("p", "One for each conversation, and one of the daemon itself.", class_="aside")
    return panel(
        "Chains",
        tag("div", note, check, class_="line"),
        listing(*rows, id_="streams"),
        links,
        id_="chains",
    )


def _row(paths: ConsolePaths, chain: Chain) -> Html:
    link = tag("a", tag("bdi", chain.where or chain.stream), href=path_of(paths, chain.stream))
    return line(
        (_mark(chain.check), " ", link),
        (counted(chain.last, "entry", "entries"), *_checked_at(chain.check)),
        id_=f"chain-{chain.stream}",
    )


def path_of(paths: ConsolePaths, stream: str) -> str:
    """Return the path of a chain's page."""
    return f"{paths.to('audit')}?of={stream}"


def _mark(check: Check) -> Html:
    match check:
        case None:
            return pill("not checked", "quiet")
        case Checking(done=done, total=total):
            return pill(f"checking {min(99, done * 100 // total)} %", "ask")
        case Checked(verdict=Intact()):
            return pill("intact", "good")
        case Checked():
            return pill("damaged", "bad")
        case _:
            assert_never(check)


def _checked_at(check: Check) -> tuple[Node, ...]:
    return (" · checked ", instant(check.at)) if isinstance(check, Checked) else ()


# --- one chain -----------------------------------------------------------------------------------


def chain(paths: ConsolePaths, chain: Chain, entries: Sequence[Numbered], links: Html) -> Html:
    """Return one chain: its verdict, and a page of its entries, newest first."""
    broken = None
    if isinstance(chain.check, Checked) and isinstance(chain.check.verdict, Broken):
        broken = chain.check.verdict.at
    rows = (_entry(entry, is_broken=entry.sequence == broken) for entry in entries)
    heads = ("no.", "when", "what", "tool", "by", "decided", "call")
    links_home: list[Node] = [tag("a", "all chains", href=paths.to("audit"))]
    if chain.is_conversation:
        path = paths.to("conversations", chain.stream)
        links_home += [" · ", tag("a", "what was said", href=path)]
    return joined(
        (
            tag("p", *links_home, class_="aside"),
            panel("The chain", _verdict(paths, chain), id_="verdict"),
            panel(
                "Entries",
                table(heads, rows, caption="entries of the audit, the newest first"),
                links,
                id_="entries",
            ),
        )
    )


def _verdict(paths: ConsolePaths, chain: Chain) -> Html:
    again = form(
        paths, "audit", button("Check again"), label="check the chain again", check=chain.stream
    )
    text: Node
    checked_at: Node = ""
    match chain.check:
        case None:
            text = f"{counted(chain.last, 'entry', 'entries')}, not checked yet."
        case Checking(done=done, total=total):
            bar = tag("progress", value=done, max=total, aria_label="entries checked")
            progress = f"{done:,} of {total:,} entries are checked."
            return tag("div", tag("p", _mark(chain.check), " ", progress), bar, class_="verdict")
        case Checked(verdict=verdict, at=at):
            text = _verdict_text(paths, chain.stream, verdict)
            checked_at = tag("p", "checked ", instant(at), class_="aside")
        case _:
            assert_never(chain.check)
    return tag("div", tag("p", _mark(chain.check), " ", text), checked_at, again, class_="verdict")


def _verdict_text(paths: ConsolePaths, stream: str, verdict: Intact | Broken) -> Html:
    if isinstance(verdict, Broken):
        path = f"{path_of(paths, stream)}&before={verdict.at + 1}"
        link = tag("a", f"entry {verdict.at}", href=path)
        return joined(
            ("At ", link, ": ", coded(verdict.reason), ". Nothing after it can be trusted.")
        )
    unfinished = counted(len(verdict.open), "call has no end yet", "calls have no end yet")
    return joined(
        (
            f"{counted(verdict.count, 'entry', 'entries')}, each linked to the one before it, and in"
            " agreement with the daemon's own chain. ",
            *([f"{unfinished}. "] if verdict.open else []),
            "The head is ",
            tag("code", verdict.head, class_="long"),
            ".",
        )
    )


def _entry(numbered: Numbered, *, is_broken: bool) -> Html:
    number = tag("th", str(numbered.sequence), scope="row")
    broken = "true" if is_broken else None
    written = numbered.written
    if written is None:
        cell = tag("td", pill("unreadable", "bad"), colspan=6)
        return tag("tr", number, cell, id=f"entry-{numbered.sequence}", data_broken=broken)
    cells = _cells(written) if isinstance(written, Entry) else _note(written)
    at = tag("td", instant(written.at))
    return tag("tr", number, at, *cells, id=f"entry-{numbered.sequence}", data_broken=broken)


def _cells(entry: Entry) -> tuple[Html, ...]:
    tool = tag("code", entry.tool) if entry.tool else ""
    statements = [node for statement in entry.statements for node in (" ", tag("code", statement))]
    call = [tag("code", entry.action[-_SHORT:], title=f"action {entry.action}, hash {entry.hash}")]
    return (
        tag("td", pill(entry.kind, _LOOKS.get(entry.kind, "quiet"))),
        tag("td", tool),
        tag("td", tag("bdi", entry.by)),
        tag("td", entry.decision, *statements),
        tag("td", *(call if entry.action else []), " ", entry.detail, class_="aside"),
    )


_SHORT = 8


def _note(entry: Anchor | Cut) -> tuple[Html, ...]:
    kind = "cut" if isinstance(entry, Cut) else "anchored"
    text = f"entry {entry.sequence} of {entry.conversation}"
    return (
        tag("td", pill(kind, "quiet")),
        tag("td", text, colspan=3),
        tag("td", entry.head[:_SHORT], class_="aside"),
    )
