"""Export: everything stored of a conversation or a person, written out."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.house import World
from tests.fakes.house_parts import SECRET
from tests.fakes.manual_clock import EPOCH
from tests.fakes.scripted_model import LOOK, POKE, says
from zeroclaw.context.notes import Notes
from zeroclaw.conversation.inbox import (
    Again,
    Amend,
    Content,
    Item,
    Obeyed,
    PersonMessage,
    Summarise,
    item_put,
)
from zeroclaw.delivery.rows import TextPost, outbox_row
from zeroclaw.envelope import ActionId, Address, ConversationId, ItemId, Principal, TurnId
from zeroclaw.host.ids import SystemIds
from zeroclaw.message import NO_USAGE, ToolCall, ToolMessage, UserMessage
from zeroclaw.redact import MARKER, Redactor
from zeroclaw.retention.collect import collect
from zeroclaw.retention.export import Record, Source, lines, page
from zeroclaw.store import Append, LogKind, Put, Row, RowKind, Trim
from zeroclaw.tools.notes.note import Note
from zeroclaw.turn import entries
from zeroclaw.turn.states import TurnLimits
from zeroclaw.value import replace

REDACT = Redactor((SECRET,)).redact


async def exported(world: World, subject: str) -> list[tuple[str, str, str]]:
    """The kind, author and first text line of each exported record."""
    records = lines(await collect(world.store, subject, world.config.people), REDACT)
    assert list(records) == sorted(records, key=lambda record: record.at)
    return [(line.kind, line.by, line.text.partition("\n")[0]) for line in records]


async def test_a_conversation_is_exported_whole(world: World) -> None:
    """Messages, calls, approvals and answers with their authors, in order; secrets are redacted."""
    world.model.will(POKE, says("poked"))
    async with world.running() as house:
        await house.say(f"poke with {SECRET}")
        await house.advance(1)
        assert "approval" not in [kind for kind, _, _ in await exported(world, "ada")]
        await house.press()
        await house.advance(1)
        await house.say("/tool look {}")
        [conversation] = await house.rows(RowKind.CONVERSATION)
    records = await exported(world, conversation.key)
    assert records[0] == ("said", "Ada", f"poke with {MARKER}")
    assert ("call", "poke", '{"a": 1}') in records
    assert [record[1] for record in records if record[0] == "approval"] == ["Ada"]
    assert [record[1] for record in records if record[0] == "result"] == ["poke", "look"]
    assert ("answer", "", "poked") in records
    assert ("said", "Ada", "/tool look {}") in records
    assert ("call", "look", "{}") in records


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (RowKind.INBOX, 0),
        (RowKind.TURN, 0),
        (RowKind.TURN, 1),
        (RowKind.OUTBOX, 0),
        (RowKind.APPROVAL, 0),
        (RowKind.ACTION, 0),
        (RowKind.CONVERSATION, 0),
    ],
)
async def test_a_damaged_record_is_reported_and_hides_nothing_else(
    world: World, kind: RowKind, number: int
) -> None:
    """In a shared chat it may be anyone's; the export of a person goes on (P10)."""
    world.model.will(POKE, says("poked"))
    async with world.running() as house:
        await house.say("poke", "ben", room="lobby")
        await house.press()
        await house.say("mine", room="lobby")
        await house.say("of mine alone")
        row = (await house.rows(kind))[number]
    before = await exported(world, "ada")
    world.store.damage(row)
    records = await exported(world, "ada")
    assert [record for record in records if record[0] != "damaged"] == before
    assert [record[0] for record in records].count("damaged") == (kind is not RowKind.CONVERSATION)


async def test_a_damaged_journal_and_a_damaged_note_are_reported(world: World) -> None:
    """The owner of a damaged note is unknown; everything around it is exported."""
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
        [conversation] = await house.rows(RowKind.CONVERSATION)
    entry = Append(log=LogKind.JOURNAL, stream=conversation.key, body=b"{")
    note = Put(kind=RowKind.NOTE, key="n", body=b"{")
    await world.store.write(entry, note)
    kinds = [kind for kind, _, _ in await exported(world, "ada")]
    assert sorted(kinds) == ["answer", "call", "damaged", "damaged", "result", "said"]


async def test_an_approvers_export_omits_the_chat_whose_call_they_approved(world: World) -> None:
    """An operator's press and `/approve` are theirs; the call they answered is not (P8)."""
    world.model.will(POKE, POKE, says("poked"))
    async with world.running() as house:
        await house.say("tulip", "ben")
        await house.press()
        await house.say("/approve 2")
        assert house.texts("ben")[-1] == "poked"
        await house.say("mine")
    assert await exported(world, "ada") == [
        ("said", "Ada", "/approve 2"),
        ("note", "", "`2`: approved: `poke`."),
        ("said", "Ada", "mine"),
        ("answer", "", "ok"),
    ]
    assert ("said", "Ben", "tulip") in await exported(world, "ben")
    assert ("said", "Ada", "/approve 2") not in await exported(world, "ben")


async def test_a_denial_is_exported_with_its_reason(world: World) -> None:
    world.model.will(POKE, says("well"))
    async with world.running() as house:
        await house.say("poke")
        await house.press("deny_with_reason", reason="not today")
    assert [text for kind, _, text in await exported(world, "ada") if kind == "approval"] == [
        "poke: poke ['a']: denied (not today)"
    ]


async def test_a_person_is_found_by_name_and_by_id(world: World) -> None:
    """All their private chats, those that `/new` ended too, and no one else's."""
    async with world.running() as house:
        await house.say("mine")
        await house.say("/new")
        await house.say("mine too")
        await house.say("not mine", "ben")
    by_name = await exported(world, "ada")
    assert by_name == await exported(world, "person:ada")
    assert [text for kind, _, text in by_name if kind == "said"] == ["mine", "/new", "mine too"]
    assert await exported(world, "nobody") == []


async def test_of_a_shared_chat_only_the_persons_own_turns_are_exported(world: World) -> None:
    """Their messages there with their results; not other people's messages and answers."""
    world.model.will(LOOK, says("for ada"), LOOK, says("for ben"))
    async with world.running() as house:
        await house.say("from ada", room="club")
        await house.say("from ben", "ben", room="club")
        await house.say("/whoami", room="club")
    records = await exported(world, "ben")
    assert [record for record in records if record[0] != "result"] == [
        ("said", "Ben", "from ben"),
        ("call", "look", "{}"),
        ("answer", "", "for ben"),
    ]
    assert [record[0] for record in records].count("result") == 1


async def test_after_a_damaged_entry_of_a_shared_chat_the_export_skips_to_their_next_turn(
    world: World,
) -> None:
    """Another person's turn may begin there (P8)."""
    world.model.will(LOOK, says("for ada"), LOOK, says("for ben"), LOOK, says("again"))
    async with world.running() as house:
        await house.say("from ada", room="club")
        await house.say("from ben", "ben", room="club")
        await house.say("ada again", room="club")
    [source] = await collect(world.store, "ada", world.config.people)

    def is_bens(entry: entries.Entry | None) -> bool:
        return isinstance(entry, entries.TurnOpened) and entry.principal.id == "person:ben"

    damaged = tuple(None if is_bens(entry) else entry for entry in source.journal)
    kinds = [line.kind for line in lines([replace(source, journal=damaged)], REDACT)]
    assert [kinds.count(kind) for kind in ("call", "result", "damaged")] == [2, 2, 1]


async def test_a_person_named_only_by_the_journal_is_found(world: World) -> None:
    """Their message was swept for its age, the turn that it began was not."""
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
        await house.say("hello", "ben")
    world.store.forget(RowKind.INBOX)
    records = await exported(world, "ada")
    assert [record[0] for record in records] == ["call", "result", "answer"]
    for stream in await world.store.streams(LogKind.JOURNAL):
        await world.store.write(Trim(log=LogKind.JOURNAL, stream=stream, before=99))
    assert [record[0] for record in await exported(world, "ada")] == ["answer"], (
        "its row names the person"
    )
    for kind in (RowKind.TURN, RowKind.ACTION):
        world.store.forget(kind)
    assert await exported(world, "ada") == []


async def test_a_person_named_only_by_journal_entries_is_found(world: World) -> None:
    """Rows are swept by when their turn began; the journal keeps a turn that ended later whole."""
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
        await house.say("hello", "ben")
    for kind in (RowKind.INBOX, RowKind.TURN, RowKind.ACTION):
        world.store.forget(kind)
    assert [record[0] for record in await exported(world, "ada")] == ["call", "result", "answer"]


def note(text: str, where: ConversationId) -> Note:
    return Note(number=0, text=text, by="Ada", at=EPOCH, conversation=where)


async def test_notes_of_a_person_or_a_group_are_exported(world: World) -> None:
    """All notes that `/forget` would erase; a person's are those from private chats."""
    async with world.running() as house:
        await house.say("mine")
        await house.say("from ada", room="club")
        mine, club = [ConversationId(row.key) for row in await house.rows(RowKind.CONVERSATION)]
        notes = Notes(world.store)
        await notes.add("of:person:ada", note(f"tea, {SECRET}", mine), max_notes=9)
        await notes.add("of:person:ada", note("milk", ConversationId("01ENDED")), max_notes=9)
        await notes.add("of:person:ben", note("coffee", club), max_notes=9)
        await notes.add("in:chat/bot/club", note("cake on Fridays", club), max_notes=9)
    assert [record for record in await exported(world, "ada") if record[0] == "remembered"] == [
        ("remembered", "Ada", f"tea, {MARKER}"),
        ("remembered", "Ada", "milk"),
    ]
    of_club = [text for kind, _, text in await exported(world, club) if kind == "remembered"]
    assert sorted(of_club) == ["cake on Fridays", "coffee"]


async def test_messages_from_before_a_person_had_a_name_are_exported_under_it(world: World) -> None:
    """As `/forget` erases them."""
    ada, ben = world.config.people
    world.configure(people=(ada,))
    async with world.running() as house:
        await house.say("tulip of ben", "ben", room="lobby")
        world.configure(people=(ada, ben))
        await house.ask("reload")
        await house.say("rose of ben", "ben", room="lobby")
    texts = [text for kind, _, text in await exported(world, "ben") if kind == "said"]
    assert texts == ["tulip of ben", "rose of ben"]


async def test_messages_under_a_persons_earlier_name_are_exported(world: World) -> None:
    """As `/forget` erases them."""
    ada, ben = world.config.people
    async with world.running() as house:
        await house.say("tulip of ben", "ben", room="lobby")
        world.configure(people=(ada, ben.model_copy(update={"name": "benedict"})))
        await house.ask("reload")
        await house.say("rose of ben", "ben", room="lobby")
    texts = [text for kind, _, text in await exported(world, "benedict") if kind == "said"]
    assert texts == ["tulip of ben", "rose of ben"]


async def test_an_export_by_sender_id_has_all_notes_of_their_own_chat(world: World) -> None:
    """Those under their later configured name too, as `/forget` erases them by sender."""
    ada, ben = world.config.people
    world.configure(people=(ada,))
    async with world.running() as house:
        await house.say("tulip", "ben")
        world.configure(people=(ada, ben))
        await house.ask("reload")
        await house.say("rose", "ben")
        [conversation] = [ConversationId(row.key) for row in await house.rows(RowKind.CONVERSATION)]
        await Notes(world.store).add("of:person:ben", note("tea", conversation), max_notes=9)
    for subject in (ben.ids[0], "ben", conversation):
        records = await exported(world, subject)
        assert [text for kind, _, text in records if kind == "said"] == ["tulip", "rose"]
        assert [text for kind, _, text in records if kind == "remembered"] == ["tea"]


def test_a_summary_is_part_of_a_conversation_and_of_no_person() -> None:
    """It summarises everyone's words."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    journal = (entries.Compacted(summary="they met", kept=0, at=at, usage=NO_USAGE),)
    conversation = ConversationId("01HERE")
    assert [
        line.text for line in lines([Source(conversation=conversation, journal=journal)], str)
    ] == ["they met"]
    assert (
        lines(
            [Source(conversation=conversation, journal=journal, only=frozenset({"person:ada"}))],
            str,
        )
        == ()
    )


# --- formats ----------------------------------------------------------------------------------

LINE = Record(
    kind="said",
    at=datetime(2026, 1, 1, 12, tzinfo=UTC),
    conversation=ConversationId("01HERE"),
    by="<b>Ada</b>",
    text="<script>alert(1)</script> & more",
)


def test_a_line_is_plain_json() -> None:
    """Every value is text, the time in UTC."""
    assert json.loads(json.dumps(LINE.as_json())) == {
        "kind": "said",
        "at": "2026-01-01T12:00:00+00:00",
        "conversation": "01HERE",
        "by": "<b>Ada</b>",
        "text": "<script>alert(1)</script> & more",
    }


def test_a_page_runs_nothing_and_loads_nothing() -> None:
    """Markup in a text is shown as text."""
    html = page("what <was> said", [LINE])
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in html
    assert "&lt;b&gt;Ada&lt;/b&gt;" in html
    assert "default-src 'none'" in html
    assert "http" not in html.replace("http-equiv", "")


def test_a_page_is_for_phones_and_screen_readers_too() -> None:
    html = page("x", [LINE])
    assert '<meta name="viewport" content="width=device-width">' in html
    assert html.count("<main>") == html.count("</main>") == 1


@pytest.mark.parametrize("by", ["", "Ada"])
def test_a_page_names_the_author(by: str) -> None:
    """The bot's records have no author."""
    html = page(
        "x", [Record(kind="answer", at=LINE.at, conversation=LINE.conversation, text="y", by=by)]
    )
    assert f"<header>answer{' Ada' if by else ''} <time" in html


# --- order -----------------------------------------------------------------------------------

CONVERSATION = ConversationId("01HERE")
ADDRESS = Address(channel="chat", account="bot", chat="1", direct=True)
ADA = Principal(id="person:ada", roles=frozenset(), channel="chat", sender="ada", display="Ada")


class Story:
    """Makes the rows that a daemon stores, in order, on a clock that may jump."""

    def __init__(self) -> None:
        self.at = EPOCH
        self.texts: list[str] = []
        self.inbox: list[Row] = []
        self.outbox: list[Row] = []
        self.journal: list[entries.Entry] = []
        self._ids = SystemIds(self)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError(seconds)

    def command(self) -> None:
        self.admit(Obeyed(text=self._next()))
        put = outbox_row(
            self._ids.ulid(), TextPost(address=ADDRESS, text=self._next()), CONVERSATION
        )
        self.outbox.append(_row(put))

    def turn(self, *passes_us: int, amid: Callable[[], None] = lambda: None) -> None:
        turn = TurnId(self._ids.ulid())
        item = self.admit(PersonMessage(text=self._next()))
        call = ToolCall(id="c", name="look", arguments=self._next())
        opened = entries.TurnOpened(
            turn=turn,
            item=item,
            principal=ADA,
            correlation="c",
            user=UserMessage(content="x"),
            limits=TurnLimits(),
            at=self.at,
            kind="tool",
            call=call,
        )
        self.journal.append(opened)
        for passed_us in passes_us:
            self.at += timedelta(microseconds=passed_us)
            result = ToolMessage(content=self._next(), tool_call_id="c", tool_name="look")
            action = ActionId(self._ids.ulid())
            self.journal.append(
                entries.CallFinished(action=action, result=result, outcome="ok", at=self.at)
            )
            amid()
        put = outbox_row(
            self._ids.ulid(), TextPost(turn=turn, address=ADDRESS, text=self._next()), CONVERSATION
        )
        self.outbox.append(_row(put))

    def source(self) -> Source:
        return Source(
            conversation=CONVERSATION, rows=(*self.inbox, *self.outbox), journal=tuple(self.journal)
        )

    def admit(self, content: Content, principal: Principal = ADA) -> ItemId:
        item = Item(
            id=ItemId(self._ids.ulid()),
            conversation=CONVERSATION,
            address=ADDRESS,
            principal=principal,
            content=content,
            admitted_at=self.at,
        )
        self.inbox.append(_row(item_put(item, "answered")))
        return item.id

    def _next(self) -> str:
        self.texts.append(f"{len(self.texts)}")
        return self.texts[-1]


@pytest.mark.parametrize(
    ("id_", "display", "by"),
    [
        ("person:mallory", "Ada (operator)\u202e", 'mallory ("Ada (operator)")'),
        ("chat:17", "Ada", 'chat:17 ("Ada")'),
        ("chat:17", "", "chat:17"),
        ("person:ada", "Ada", "Ada"),
    ],
)
def test_a_display_name_follows_the_verified_name_in_quotes(
    id_: str, display: str, by: str
) -> None:
    """A display name can be anything, so the configured name or the id comes first. P5."""
    story = Story()
    story.admit(PersonMessage(text="x"), replace(ADA, id=id_, display=display))
    assert [line.by for line in lines([story.source()], REDACT)] == [by]


@pytest.mark.parametrize(
    ("content", "typed"),
    [
        (Again(), "/retry"),
        (Summarise(), "/compact"),
        (Amend(message="p1", text="a rose", own="a rose"), "a rose"),
    ],
)
def test_a_command_or_a_late_edit_is_exported_as_typed(content: Content, typed: str) -> None:
    """A command has no text of its own (P1)."""
    story = Story()
    story.admit(content)
    assert [line.text for line in lines([story.source()], REDACT)] == [typed]


def test_a_damaged_record_has_the_time_of_its_row() -> None:
    """It stands where its message stood."""
    story = Story()
    story.admit(PersonMessage(text="x"))
    rows = tuple(replace(row, body=b"{") for row in story.inbox)
    damaged = lines([Source(conversation=CONVERSATION, rows=rows)], REDACT)
    assert [(line.kind, line.at) for line in damaged] == [("damaged", EPOCH)]


def _row(put: Put) -> Row:
    return Row(kind=put.kind, key=put.key, version=1, body=put.body, conversation=CONVERSATION)


AN_HOUR_US = 3_600_000_000
PASSES = st.integers(0, 2_000)


@given(
    st.lists(
        st.tuples(
            st.integers(-AN_HOUR_US, AN_HOUR_US) | PASSES | st.just(0),
            st.none() | st.lists(PASSES | st.just(0), min_size=1, max_size=3),
        ),
        max_size=6,
    )
)
def test_records_are_in_the_order_in_which_they_were_made(
    steps: list[tuple[int, list[int] | None]],
) -> None:
    """Even if the wall clock jumps or stands still between two messages (P10)."""
    story = Story()
    for jump, passes in steps:
        story.at += timedelta(microseconds=jump)
        if passes is None:
            story.command()
        else:
            story.turn(*passes)
    assert [line.text for line in lines([story.source()], str)] == story.texts


def test_a_command_amid_a_turn_stands_between_its_results() -> None:
    """A result alone has no row; its time says which messages it follows."""
    story = Story()

    def command() -> None:
        story.at += timedelta(milliseconds=1)
        story.command()

    story.turn(1_000, 1_000, amid=command)
    assert [line.text for line in lines([story.source()], str)] == story.texts
