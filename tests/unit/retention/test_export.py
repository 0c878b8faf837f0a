"""What is kept of a conversation or a person, written out."""

import json
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


async def told(world: World, whose: str) -> list[tuple[str, str, str]]:
    """Kind, who and the first line of each line that is written out."""
    found = lines(await collect(world.store, whose, world.config.people), REDACT)
    assert list(found) == sorted(found, key=lambda line: line.at)
    return [(line.kind, line.by, line.text.partition("\n")[0]) for line in found]


async def test_a_conversation_is_written_out_whole(world: World) -> None:
    """What was said, called, approved and answered, by whom, in order; secrets are redacted."""
    world.model.will(POKE, says("poked"))
    async with world.running() as house:
        await house.say(f"poke with {SECRET}")
        await house.advance(1)
        assert "approval" not in [kind for kind, _, _ in await told(world, "ada")]
        await house.press()
        await house.advance(1)
        await house.say("/tool look {}")
        [here] = await house.rows(RowKind.CONVERSATION)
    found = await told(world, here.key)
    assert found[0] == ("said", "Ada", f"poke with {MARKER}")
    assert ("call", "poke", '{"a": 1}') in found
    assert [one[1] for one in found if one[0] == "approval"] == ["Ada"]
    assert [one[1] for one in found if one[0] == "result"] == ["poke", "look"]
    assert ("answer", "", "poked") in found
    assert ("said", "Ada", "/tool look {}") in found
    assert ("call", "look", "{}") in found


@pytest.mark.parametrize(
    "kind",
    [
        RowKind.INBOX,
        RowKind.TURN,
        RowKind.OUTBOX,
        RowKind.APPROVAL,
        RowKind.ACTION,
        RowKind.CONVERSATION,
    ],
)
async def test_a_damaged_record_is_told_and_hides_nothing_else(world: World, kind: RowKind) -> None:
    """Of a shared chat it may be anybody's; the export of a person goes on (P10)."""
    world.model.will(POKE, says("poked"))
    async with world.running() as house:
        await house.say("poke", "ben", room="lobby")
        await house.press()
        await house.say("mine", room="lobby")
        await house.say("of mine alone")
        [row, *_] = await house.rows(kind)
    before = await told(world, "ada")
    world.store.damage(row)
    found = await told(world, "ada")
    assert [one for one in found if one[0] != "damaged"] == before
    assert [one[0] for one in found].count("damaged") == (kind is not RowKind.CONVERSATION)


async def test_a_damaged_journal_and_a_damaged_note_are_told(world: World) -> None:
    """Of a note nobody knows whose it is; whatever else stands around it is written out."""
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
        [here] = await house.rows(RowKind.CONVERSATION)
    entry = Append(log=LogKind.JOURNAL, stream=here.key, body=b"{")
    note = Put(kind=RowKind.NOTE, key="n", body=b"{")
    await world.store.write(entry, note)
    found = [kind for kind, _, _ in await told(world, "ada")]
    assert sorted(found) == ["answer", "call", "damaged", "damaged", "result", "said"]


async def test_whoever_answers_a_question_gets_nobody_elses_chat(world: World) -> None:
    """An operator's press and `/approve` are theirs; what they were about is not (P8)."""
    world.model.will(POKE, POKE, says("poked"))
    async with world.running() as house:
        await house.say("tulip", "ben")
        await house.press()
        await house.say("/approve 2")
        assert house.texts("ben")[-1] == "poked"
        await house.say("mine")
    assert await told(world, "ada") == [
        ("said", "Ada", "/approve 2"),
        ("note", "", "`2`: approved: `poke`."),
        ("said", "Ada", "mine"),
        ("answer", "", "ok"),
    ]
    assert ("said", "Ben", "tulip") in await told(world, "ben")
    assert ("said", "Ada", "/approve 2") not in await told(world, "ben")


async def test_a_person_is_found_by_name_and_by_id(world: World) -> None:
    """All their private chats, those that `/new` ended too, and nobody else's."""
    async with world.running() as house:
        await house.say("mine")
        await house.say("/new")
        await house.say("mine too")
        await house.say("not mine", "ben")
    by_name = await told(world, "ada")
    assert by_name == await told(world, "person:ada")
    assert [text for kind, _, text in by_name if kind == "said"] == ["mine", "/new", "mine too"]
    assert await told(world, "nobody") == []


async def test_of_a_shared_chat_only_their_own_is_theirs(world: World) -> None:
    """What they said there and what came of it; not what others asked and were told."""
    world.model.will(LOOK, says("for ada"), LOOK, says("for ben"))
    async with world.running() as house:
        await house.say("from ada", room="club")
        await house.say("from ben", "ben", room="club")
        await house.say("/whoami", room="club")
    found = await told(world, "ben")
    assert [one for one in found if one[0] != "result"] == [
        ("said", "Ben", "from ben"),
        ("call", "look", "{}"),
        ("answer", "", "for ben"),
    ]
    assert [one[0] for one in found].count("result") == 1


async def test_after_a_damaged_entry_of_a_shared_chat_nothing_is_theirs_until_their_next_turn(
    world: World,
) -> None:
    """Somebody else's turn may begin there (P8)."""
    world.model.will(LOOK, says("for ada"), LOOK, says("for ben"), LOOK, says("again"))
    async with world.running() as house:
        await house.say("from ada", room="club")
        await house.say("from ben", "ben", room="club")
        await house.say("ada again", room="club")
    [found] = await collect(world.store, "ada", world.config.people)

    def is_bens(entry: entries.Entry | None) -> bool:
        return isinstance(entry, entries.TurnOpened) and entry.principal.id == "person:ben"

    damaged = tuple(None if is_bens(one) else one for one in found.journal)
    kinds = [line.kind for line in lines([replace(found, journal=damaged)], REDACT)]
    assert [kinds.count(kind) for kind in ("call", "result", "damaged")] == [2, 2, 1]


async def test_whoever_is_known_by_the_journal_alone_is_found(world: World) -> None:
    """Their message has gone by its age, the turn that it began has not."""
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
        await house.say("hello", "ben")
    world.store.forget(RowKind.INBOX)
    found = await told(world, "ada")
    assert [one[0] for one in found] == ["call", "result", "answer"]
    for stream in await world.store.streams(LogKind.JOURNAL):
        await world.store.write(Trim(log=LogKind.JOURNAL, stream=stream, before=99))
    assert [one[0] for one in await told(world, "ada")] == ["answer"], "its row knows whose it was"
    for kind in (RowKind.TURN, RowKind.ACTION):
        world.store.forget(kind)
    assert await told(world, "ada") == []


async def test_whoever_is_known_by_the_entries_of_a_journal_alone_is_found(world: World) -> None:
    """Rows go by when their turn began, and the journal keeps a turn that ended later whole."""
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
        await house.say("hello", "ben")
    for kind in (RowKind.INBOX, RowKind.TURN, RowKind.ACTION):
        world.store.forget(kind)
    assert [one[0] for one in await told(world, "ada")] == ["call", "result", "answer"]


def note(text: str, where: ConversationId) -> Note:
    return Note(number=0, text=text, by="Ada", at=EPOCH, conversation=where)


async def test_what_is_remembered_of_a_person_or_a_group_is_written_out(world: World) -> None:
    """All of it that `/forget` would take away: of a person what was said to the bot alone."""
    async with world.running() as house:
        await house.say("mine")
        await house.say("from ada", room="club")
        mine, club = [ConversationId(row.key) for row in await house.rows(RowKind.CONVERSATION)]
        notes = Notes(world.store)
        await notes.add("of:person:ada", note(f"tea, {SECRET}", mine), most=9)
        await notes.add("of:person:ada", note("milk", ConversationId("01ENDED")), most=9)
        await notes.add("of:person:ben", note("coffee", club), most=9)
        await notes.add("in:chat/bot/club", note("cake on Fridays", club), most=9)
    assert [one for one in await told(world, "ada") if one[0] == "remembered"] == [
        ("remembered", "Ada", f"tea, {MARKER}"),
        ("remembered", "Ada", "milk"),
    ]
    of_club = [text for kind, _, text in await told(world, club) if kind == "remembered"]
    assert sorted(of_club) == ["cake on Fridays", "coffee"]


async def test_what_somebody_said_before_they_had_a_name_is_written_out_under_it(
    world: World,
) -> None:
    """As `/forget` takes it away."""
    ada, ben = world.config.people
    world.configure(people=(ada,))
    async with world.running() as house:
        await house.say("tulip of ben", "ben", room="lobby")
        world.configure(people=(ada, ben))
        await house.ask("reload")
        await house.say("rose of ben", "ben", room="lobby")
    said = [text for kind, _, text in await told(world, "ben") if kind == "said"]
    assert said == ["tulip of ben", "rose of ben"]


async def test_what_somebody_said_under_an_earlier_name_is_written_out(world: World) -> None:
    """As `/forget` takes it away."""
    ada, ben = world.config.people
    async with world.running() as house:
        await house.say("tulip of ben", "ben", room="lobby")
        world.configure(people=(ada, ben.model_copy(update={"name": "benedict"})))
        await house.ask("reload")
        await house.say("rose of ben", "ben", room="lobby")
    said = [text for kind, _, text in await told(world, "benedict") if kind == "said"]
    assert said == ["tulip of ben", "rose of ben"]


async def test_by_a_sender_all_is_written_out_that_is_remembered_in_their_own_chat(
    world: World,
) -> None:
    """Under the name that the configuration gave them since, too: `/forget` takes it by the sender."""
    ada, ben = world.config.people
    world.configure(people=(ada,))
    async with world.running() as house:
        await house.say("tulip", "ben")
        world.configure(people=(ada, ben))
        await house.ask("reload")
        await house.say("rose", "ben")
        [here] = [ConversationId(row.key) for row in await house.rows(RowKind.CONVERSATION)]
        await Notes(world.store).add("of:person:ben", note("tea", here), most=9)
    for whose in (ben.ids[0], "ben", here):
        told_of = await told(world, whose)
        assert [text for kind, _, text in told_of if kind == "said"] == ["tulip", "rose"]
        assert [text for kind, _, text in told_of if kind == "remembered"] == ["tea"]


def test_a_summary_is_part_of_a_conversation_and_of_no_person() -> None:
    """It is of everybody's words."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    journal = (entries.Compacted(summary="they met", kept=0, at=at, usage=NO_USAGE),)
    here = ConversationId("01HERE")
    assert [line.text for line in lines([Source(conversation=here, journal=journal)], str)] == [
        "they met"
    ]
    assert (
        lines([Source(conversation=here, journal=journal, only=frozenset({"person:ada"}))], str)
        == ()
    )


# --- their forms ----------------------------------------------------------------------------------

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
    """Whatever stands in a text is shown as text."""
    made = page("what <was> said", [LINE])
    assert "<script" not in made
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in made
    assert "&lt;b&gt;Ada&lt;/b&gt;" in made
    assert "default-src 'none'" in made
    assert "http" not in made.replace("http-equiv", "")


def test_a_page_is_for_phones_and_screen_readers_too() -> None:
    made = page("x", [LINE])
    assert '<meta name="viewport" content="width=device-width">' in made
    assert made.count("<main>") == made.count("</main>") == 1


@pytest.mark.parametrize("by", ["", "Ada"])
def test_a_page_names_who_spoke(by: str) -> None:
    """The bot needs no name."""
    made = page(
        "x", [Record(kind="answer", at=LINE.at, conversation=LINE.conversation, text="y", by=by)]
    )
    assert f"<header>answer{' Ada' if by else ''} <time" in made


# --- their order -----------------------------------------------------------------------------------

HERE = ConversationId("01HERE")
PLACE = Address(channel="chat", account="bot", chat="1", direct=True)
ADA = Principal(id="person:ada", roles=frozenset(), channel="chat", sender="ada", display="Ada")


class Story:
    """Makes what a daemon stores, in order, on a clock that anything may happen to."""

    def __init__(self) -> None:
        self.at = EPOCH
        self.told: list[str] = []
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
        self.says(Obeyed(text=self._next()))
        put = outbox_row(self._ids.ulid(), TextPost(address=PLACE, text=self._next()), HERE)
        self.outbox.append(_row(put))

    def turn(self, *passes_us: int) -> None:
        turn = TurnId(self._ids.ulid())
        item = self.says(PersonMessage(text=self._next()))
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
        for passed in passes_us:
            self.at += timedelta(microseconds=passed)
            result = ToolMessage(content=self._next(), tool_call_id="c", tool_name="look")
            action = ActionId(self._ids.ulid())
            self.journal.append(
                entries.CallFinished(action=action, result=result, outcome="ok", at=self.at)
            )
        put = outbox_row(
            self._ids.ulid(), TextPost(turn=turn, address=PLACE, text=self._next()), HERE
        )
        self.outbox.append(_row(put))

    def found(self) -> Source:
        return Source(
            conversation=HERE, rows=(*self.inbox, *self.outbox), journal=tuple(self.journal)
        )

    def says(self, content: Content, principal: Principal = ADA) -> ItemId:
        item = Item(
            id=ItemId(self._ids.ulid()),
            conversation=HERE,
            address=PLACE,
            principal=principal,
            content=content,
            admitted_at=self.at,
        )
        self.inbox.append(_row(item_put(item, "answered")))
        return item.id

    def _next(self) -> str:
        self.told.append(f"{len(self.told)}")
        return self.told[-1]


@pytest.mark.parametrize(
    ("id_", "display", "by"),
    [
        ("person:mallory", "Ada (operator)\u202e", 'mallory ("Ada (operator)")'),
        ("chat:17", "Ada", 'chat:17 ("Ada")'),
        ("chat:17", "", "chat:17"),
        ("person:ada", "Ada", "Ada"),
    ],
)
def test_a_name_that_a_person_chose_follows_theirs_in_quotes(
    id_: str, display: str, by: str
) -> None:
    """Who may call themselves anything is told by what the operator calls them, or their id. P5."""
    story = Story()
    story.says(PersonMessage(text="x"), replace(ADA, id=id_, display=display))
    assert [line.by for line in lines([story.found()], REDACT)] == [by]


@pytest.mark.parametrize(
    ("content", "typed"),
    [
        (Again(), "/retry"),
        (Summarise(), "/compact"),
        (Amend(message="p1", text="a rose", own="a rose"), "a rose"),
    ],
)
def test_a_command_or_a_late_edit_is_written_as_it_was_typed(content: Content, typed: str) -> None:
    """A command has no text of its own (P1)."""
    story = Story()
    story.says(content)
    assert [line.text for line in lines([story.found()], REDACT)] == [typed]


def _row(put: Put) -> Row:
    return Row(kind=put.kind, key=put.key, version=1, body=put.body, conversation=HERE)


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
def test_the_order_is_that_of_making(steps: list[tuple[int, list[int] | None]]) -> None:
    """Whatever the wall clock did between two messages, and where it stood still (P10)."""
    story = Story()
    for jump, passes in steps:
        story.at += timedelta(microseconds=jump)
        if passes is None:
            story.command()
        else:
            story.turn(*passes)
    assert [line.text for line in lines([story.found()], str)] == story.told
