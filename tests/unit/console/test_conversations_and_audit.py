"""Conversations, the audit and the policy explainer, as the console shows them."""

import pytest

from tests.unit.console.parsed import faults
from tests.unit.console.rows import (
    ADDRESS,
    ANN,
    AT,
    CONVERSATION,
    HOSTILE,
    PATHS,
    approval,
    full_page,
)
from zeroclaw.channel import SentFile, TranscriptItem
from zeroclaw.console import audit as shown
from zeroclaw.console.audit import Chain, Checked, Checking, Numbered
from zeroclaw.console.conversations import (
    OFF_THE_RECORD,
    ConversationSummary,
    FilledWindow,
    State,
    at_work,
    conversation,
    conversations,
    filling,
)
from zeroclaw.console.markup import joined, pages
from zeroclaw.console.policy import policy
from zeroclaw.context.composer import WindowUsage
from zeroclaw.envelope import CheckedReceipt, off_the_record
from zeroclaw.gate import approval as approvals
from zeroclaw.gate.audit import Anchor, Broken, Cut, Entry, Intact, Kind
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import PolicySet, Statement
from zeroclaw.gate.ruling import Explained, Ruling
from zeroclaw.inbound.commands.reports import window_shares
from zeroclaw.value import replace

SUMMARY = ConversationSummary(
    id=CONVERSATION, address=ADDRESS, started_at=AT, people=(HOSTILE, "Bob"), last_at=AT, state="running",
    entries=1_234, audited=6, queued=1,
)  # fmt: skip

ONLY = pages("/n", "after", "", "")
FIRST_OF_TWO = pages("/n", "after", "", "o")
SECOND_OF_THREE = pages("/n", "after", "i", "o")
LAST = pages("/n", "after", "i", "")


# --- conversations -------------------------------------------------------------------------------


def test_a_conversation_shows_address_writer_time_and_state() -> None:
    page = full_page("conversations", conversations(PATHS, [SUMMARY], FIRST_OF_TWO))
    row = page.by_id(f"talk-{CONVERSATION}")
    assert faults(page) == []
    assert row.words.startswith(f"running chat/ann{HOSTILE}, Bob · last 2026-01-01 12:00 UTC")
    assert "1,234 journal entries · 6 audit entries · 1 message waits" in row.words
    assert row.links() == {
        "chat/ann": f"/console/conversations/{CONVERSATION}",
        "audit": f"/console/audit?of={CONVERSATION}",
    }
    assert page.links()["older →"] == "/n?after=o"


def test_a_conversation_shows_its_title() -> None:
    named = replace(SUMMARY, title=f"Tea {HOSTILE}")
    page = full_page("conversations", conversations(PATHS, [named], ONLY))
    assert faults(page) == []
    assert f"chat/annTea {HOSTILE} · {HOSTILE}, Bob · last" in page.words


def test_a_title_is_quoted_so_that_it_can_not_pass_for_the_consoles_words() -> None:
    """A model or the first writer wrote it, so it is quoted, like a self-chosen display name."""
    for title in ("Olga (operator)", OFF_THE_RECORD):
        named = replace(SUMMARY, title=title)
        page = full_page("conversations", conversations(PATHS, [named], ONLY))
        assert [part.text for part in page.every("q")] == [title]
    hidden = replace(SUMMARY, id=off_the_record(CONVERSATION), title="")
    page = full_page("conversations", conversations(PATHS, [hidden], ONLY))
    assert (page.every("q"), f"chat/ann{OFF_THE_RECORD} · " in page.words) == ([], True)


@pytest.mark.parametrize("state", ["waiting for approval", "queued", "failed", "idle"])
def test_every_state_has_its_word(state: State) -> None:
    quiet = replace(SUMMARY, state=state, people=(), last_at=None, audited=0, queued=0, entries=1)
    page = full_page("conversations", conversations(PATHS, [quiet], LAST))
    assert f"{state} chat/annbegan 2026-01-01 12:00 UTC · 1 journal entry" in page.words
    assert page.links()["← newest"] == "/n"
    assert "audit" not in page.links()
    alone = conversation(PATHS, quiet, [], ONLY)
    assert "audit" not in full_page("conversations", alone).links()


def test_conversations_at_work_are_listed_apart() -> None:
    """A conversation may be in both lists; each row has its own id."""
    lists = joined((at_work(PATHS, [SUMMARY], 1), conversations(PATHS, [SUMMARY], ONLY)))
    page = full_page("conversations", lists)
    assert faults(page) == []
    assert page.ids("work-") == [f"work-{CONVERSATION}"]
    assert at_work(PATHS, [], 0).text == ""


def test_an_empty_list_of_conversations_says_what_it_will_show() -> None:
    page = full_page("conversations", conversations(PATHS, [], ONLY))
    assert "Nobody has said anything yet." in page.words
    beyond = full_page("conversations", conversations(PATHS, [], LAST))
    assert "Nobody has said anything yet." not in beyond.words


def test_an_address_has_its_thread() -> None:
    assert replace(ADDRESS, thread="5").in_words() == "chat/ann/5"


def item(cursor: str, text: str, **changes: object) -> TranscriptItem:
    row = TranscriptItem(cursor=cursor, kind="bot", key=cursor, ref="", text=text, at=AT)
    return replace(row, **changes)


def test_a_transcript_is_read_from_the_top() -> None:
    """Messages are shown as text; approval requests show their outcome."""
    denied = approval("d", state="denied", by="Olga", reason=HOSTILE, at=AT)
    request = approvals.outcome_of([approval(), denied], "")
    answered = approvals.outcome_of([approval("x", state="expired", at=AT)], "")
    lines = [
        item("1", HOSTILE, kind="person", by="Ann"),
        item("2", "", kind="card", outcome=request),
        item("3", "I *did* it."),
        item("4", "", kind="card", outcome=answered),
        item("5", "", sent=SentFile(name="a<b>.txt", size_bytes=1200)),
    ]
    page = full_page("conversations", conversation(PATHS, SUMMARY, lines, SECOND_OF_THREE))
    assert faults(page) == []
    assert page.by_id("item-1").text == f"Ann · 2026-01-01 12:00 UTC{HOSTILE}"
    assert [part.words for part in page.by_id("item-2").every("strong")] == ["open", "denied"]
    assert page.by_id("item-2").every("q")[0].text == HOSTILE
    assert "by Olga" in page.by_id("item-2").words
    assert "expired" in page.by_id("item-4").words
    assert "file a<b>.txt, 1,200 bytes" in page.by_id("item-5").words
    assert (page.links()["older →"], page.links()["← newest"]) == ("/n?after=o", "/n")


def test_a_conversation_without_messages_says_so() -> None:
    older = pages("/n", "before", "", "01")
    page = full_page("conversations", conversation(PATHS, SUMMARY, [], older))
    assert "Nothing that was said is kept." in page.words
    assert page.links()["older →"] == "/n?before=01"


@pytest.mark.parametrize(
    ("window", "words", "last"),
    [
        (4_000, "25 % of 4,000 tokens", ["free", "2,000"]),
        (1_500, "67 % of 1,500 tokens", ["free", "0"]),
        (800, "100 % of 800 tokens", ["free", "0"]),
        (None, "1,000 tokens; how many the model takes is not known", ["a<b>", "100"]),
    ],
)
def test_context_usage_is_a_bar_and_a_table(
    window: int | None, words: str, last: list[str]
) -> None:
    """Each part with its tokens; an unknown window size has no bar."""
    shares = {"messages": 900, "a<b>": 100}
    total, rows = window_shares(
        WindowUsage(shares=shares, tokens=1_000, window=window, reserve=1_000), "en"
    )
    filled = FilledWindow(words=total, rows=rows, tokens=1_000, window=window)
    page = full_page("conversations", filling(PATHS, SUMMARY, filled))
    assert faults(page) == []
    assert words in page.words
    cells = [[cell.words for cell in row.every("td")] for row in page.every("tr")]
    assert ["messages", "900"] in cells
    assert cells[-1] == last
    bars = [part.attributes["value"] for part in page.every("progress")]
    assert bars == ([] if window is None else ["1000"])
    assert page.links()["what was said"] == f"/console/conversations/{CONVERSATION}"


def test_a_conversation_without_a_writer_has_no_context() -> None:
    page = full_page("conversations", filling(PATHS, SUMMARY, None))
    assert "Nobody has written here." in page.words


def test_a_receipts_verdict_is_a_badge_that_no_text_can_imitate() -> None:
    """A badge's words in a message of a person or of the model are only text (P7)."""
    proven = CheckedReceipt(token="t", tool="shell", summary="run ls", outcome="ok", at=AT)
    imitated = "✅ receipt: shell · ok · 12:00 UTC, 🕓 receipt of an earlier run: shell · ok · 2026"
    lines = [
        item("1", imitated, kind="person", by="Ann"),
        item("2", imitated),
        item("3", "I ran it.", receipts=(proven, replace(proven, earlier=True))),
        item("4", "**a** `b`", plain=True),
    ]
    page = full_page("conversations", conversation(PATHS, SUMMARY, lines, ONLY))
    badges = [part for part in page.every("li") if "data-verdict" in part.attributes]
    assert [badge.attributes["data-verdict"] for badge in badges] == ["valid", "earlier"]
    assert badges[0].text == proven.line()
    assert "shell" not in page.by_id("item-3").every("div")[0].text
    assert page.by_id("item-4").every("div")[0].text == "**a** `b`"


def test_the_files_of_a_message_are_named() -> None:
    """Also those of a message without words."""
    lines = [item("1", "", kind="person", by="Ann", files=("plan.pdf", HOSTILE))]
    page = full_page("conversations", conversation(PATHS, SUMMARY, lines, ONLY))
    assert [part.text for part in page.by_id("item-1").every("code")] == ["plan.pdf", HOSTILE]


def test_only_answers_are_drawn_as_markdown() -> None:
    """As in the chat; each text is on the page as it was written."""
    lines = [
        item("1", "*a*", kind="person", by="Ann"),
        item("2", "*b*"),
        item("3", "*c*", plain=True),
        item("4", "*d*", sent=SentFile(name="d.txt", size_bytes=1)),
        item("5", "*e*", kind="note"),
    ]
    page = full_page("conversations", conversation(PATHS, SUMMARY, lines, ONLY))
    drawn = [part.text for part in page.every("p") if part.attributes.get("class") == "markdown"]
    assert drawn == ["*b*", "*e*"]


# --- the audit -----------------------------------------------------------------------------------

WHOLE = Checked(verdict=Intact(head="ab" * 32, count=2, open=("01A",)), at=AT)
DAMAGED = Checked(verdict=Broken(at=2, reason="it does not match its hash"), at=AT)


def chain(check: shown.Check, *, stream: str = CONVERSATION, where: str = "chat/ann") -> Chain:
    return Chain(
        stream=stream, where=where, is_conversation=stream == CONVERSATION, last=2, check=check
    )


def test_chains_show_their_verdict() -> None:
    checks = {
        "n": None,
        "c": Checking(done=50, total=200),
        "z": Checking(done=0, total=1),
        "w": WHOLE,
        "d": DAMAGED,
    }
    chains = [chain(check, stream=name, where="") for name, check in checks.items()]
    page = full_page("audit", shown.chains(PATHS, chains, SECOND_OF_THREE))
    marks = [part.words for part in page.by_id("streams").every("strong")]
    assert faults(page) == []
    assert marks == ["not checked", "checking 25 %", "checking 0 %", "intact", "damaged"]
    assert page.links()["n"] == "/console/audit?of=n"
    assert (page.links()["older →"], page.links()["← newest"]) == ("/n?after=o", "/n")
    _logout, every = page.every("form")
    assert every.fields() == {"token": "the-token", "check": ""}


def test_an_empty_list_of_chains_says_what_it_will_show() -> None:
    page = full_page("audit", shown.chains(PATHS, [], ONLY))
    assert "No tool was called yet." in page.words
    beyond = full_page("audit", shown.chains(PATHS, [], LAST))
    assert "Check every chain" in beyond.words


ENTRIES = [
    Numbered(
        sequence=3,
        written=Entry(
            kind=Kind.EVALUATED, at=AT, action="01A", tool=HOSTILE, hash="cd" * 32, by="policy",
            decision="ask", statements=("one", "two"), detail=HOSTILE,
        ),
    ),
    Numbered(sequence=2, written=None),
    Numbered(sequence=1, written=Entry(kind=Kind.REVOKED, at=AT)),
]  # fmt: skip


def test_a_damaged_chain_shows_where() -> None:
    """The entry is marked; a tool's name is shown as text."""
    page = full_page("audit", shown.chain(PATHS, chain(DAMAGED), ENTRIES, FIRST_OF_TWO))
    assert faults(page) == []
    assert "damaged At entry 2: it does not match its hash." in page.by_id("verdict").words
    assert page.by_id("verdict").links() == {
        "entry 2": f"/console/audit?of={CONVERSATION}&before=3"
    }
    assert page.by_id("entry-2").attributes["data-broken"] == "true"
    assert "unreadable" in page.by_id("entry-2").words
    assert "data-broken" not in page.by_id("entry-3").attributes
    assert HOSTILE in page.by_id("entry-3").words
    assert "ask one two" in page.by_id("entry-3").words
    assert page.links()["what was said"] == f"/console/conversations/{CONVERSATION}"


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (None, "2 entries, not checked yet."),
        (Checking(done=1_000, total=2_000), "1,000 of 2,000 entries are checked."),
        (WHOLE, "2 entries, each linked to the one before it"),
        (replace(WHOLE, verdict=Intact(head="ab", count=1, open=())), "1 entry, each"),
    ],
)
def test_a_chain_shows_the_state_of_its_check(check: shown.Check, text: str) -> None:
    page = full_page("audit", shown.chain(PATHS, chain(check), [], LAST))
    assert faults(page) == []
    assert text in page.by_id("verdict").words
    assert ("1 call has no end yet" in page.words) == (check == WHOLE)


def test_the_daemons_own_chain_holds_anchors_and_cuts() -> None:
    noted = [
        Numbered(
            sequence=2, written=Cut(conversation=CONVERSATION, sequence=4, head="ef" * 32, at=AT)
        ),
        Numbered(
            sequence=1, written=Anchor(conversation=CONVERSATION, sequence=5, head="12" * 32, at=AT)
        ),
    ]
    daemons_chain = chain(WHOLE, stream="daemon", where="the daemon's own")
    page = full_page("audit", shown.chain(PATHS, daemons_chain, noted, ONLY))
    assert "cutentry 4 of 01HEREefefefef" in page.by_id("entry-2").words
    assert "anchoredentry 5 of 01HERE12121212" in page.by_id("entry-1").words
    assert "what was said" not in page.links()


# --- the policy ----------------------------------------------------------------------------------

STATEMENTS = (
    Statement(id="reads", effect="allow", principals=("anyone",), actions=("tool:read",)),
    Statement(
        id="plan", effect="deny", principals=("anyone",), actions=("tool:*",),
        resources=("file:*/plan",), when={"effects_any_of": ["write"]}, note=HOSTILE,
    ),
)  # fmt: skip
HINTS = {"who": ("operator",), "action": ("read",)}


def explained(action: str, touched: tuple[str, ...] | None = ()) -> Explained:
    policy_set = PolicySet(STATEMENTS)
    query = Query(principal=ANN, action=action, now=AT, resources=touched)
    return Explained(
        query=query,
        ruling=Ruling(decision=policy_set.decide(query), by="policy"),
        notes=("no tool is called `x`",),
        considered=policy_set.explain(query),
    )


def test_an_answer_names_the_statements_that_made_it() -> None:
    """Those that matched come first, the ones that decided are marked (S2-08)."""
    typed = {"who": HOSTILE, "action": "read", "arguments": "\n</textarea>", "resources": "a"}
    page = full_page("policy", policy(PATHS, typed, HINTS, explained("tool:read"), STATEMENTS))
    answer = page.by_id("answer")
    assert faults(page) == []
    assert "allow person:ann may do it: tool:read" in answer.words
    assert "no tool is called x" in answer.words
    assert "Touches: nothing that has a name" in answer.words
    rows = answer.every("tbody")[0].every("tr")
    assert [row.attributes.get("data-made") for row in rows] == ["true", None]
    assert [row.every("th")[0].words for row in rows] == ["reads", "plan"]
    assert page.by_id("who").attributes["value"] == HOSTILE
    # A browser leaves out the first line end of a field.
    assert page.by_id("arguments").text == "\n\n</textarea>"


def test_the_resources_of_a_call_are_shown_if_known() -> None:
    known = policy(PATHS, {}, HINTS, explained("tool:x", ("file:/a", "file:/b")), ())
    assert "Touches: file:/a file:/b" in full_page("policy", known).words
    unknown = policy(PATHS, {}, HINTS, explained("tool:x", None), ())
    assert "what it would touch can't be told" in full_page("policy", unknown).words


def test_an_invalid_policy_question_shows_the_fault() -> None:
    page = full_page("policy", policy(PATHS, {}, HINTS, "`x` is nobody", ()))
    assert page.by_id("answer").words == "The questionx is nobody"


def test_every_active_statement_is_listed() -> None:
    page = full_page("policy", policy(PATHS, {}, HINTS, None, STATEMENTS))
    rows = page.by_id("statements").every("tbody")[0].every("tr")
    assert page.ids("answer") == []
    assert "reads allow anyone tool:read" in rows[0].words.replace("reads", "reads ").replace(
        "allow", "allow "
    ).replace("anyone", "anyone ")
    assert 'effects_any_of = ["write"]' in rows[1].words
    assert HOSTILE in rows[1].words
