"""`/otr` on a whole house: what its "disk" holds at every point, who reads what, what goes on (K23)."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import get_args

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_channel import Lost
from tests.fakes.scripted_model import Answer, asks_for, says
from zeroclaw.config.model import PolicySettings, WhileBusy
from zeroclaw.envelope import Attachment, Choice, is_off_the_record, off_the_record
from zeroclaw.errors import ChannelUnavailable, ProviderOverloaded, ProviderRejected
from zeroclaw.inbound.commands.registry import COMMANDS
from zeroclaw.inbound.conversations import CONVERSATIONS
from zeroclaw.message import SystemMessage, ToolMessage, UserMessage
from zeroclaw.retention.tables import OF_CONVERSATIONS
from zeroclaw.store import Append, DurablePoint, LogKind, Put, Query, RowKind, Write
from zeroclaw.stores.off_the_record import IN_MEMORY
from zeroclaw.value import replace

PHRASE = "marmalade"
LOOK = asks_for(("look", f'{{"at": "{PHRASE}"}}'), saying="looking ")
ASK_FIRST = PolicySettings(
    statement=({"id": "ask", "effect": "ask", "actions": ["tool:look"], "principals": ["anyone"]},)
)
GONE = "I was restarted, and what you said off the record is gone"


async def disk(world: World) -> str:
    """Everything that the store holds, keys and columns too."""
    store = world.store
    rows = [str(row) for kind in RowKind for row in await store.select(Query(kind=kind))]
    for log in LogKind:
        for stream in await store.streams(log):
            rows += [str(entry) for entry in await store.read(log, stream)]
    blobs = await store.blobs(put_before=world.clock.now().replace(year=9999))
    return "\n".join((*rows, *blobs, *sorted(store.known)))


async def off(house: House, who: str = "ada", *, room: str = "") -> None:
    await house.say("/otr", who, room=room)
    assert house.texts(who, room=room)[-1].startswith("Off the record from now on")


async def settled(house: House) -> None:
    """Let pass what a start and the removal wait for."""
    for _ in range(5):
        await house.advance(1)


def texts_sent(world: World) -> list[str]:
    """The texts of people in the newest request."""
    messages = world.model.requests[-1].messages
    return [message.content for message in messages if isinstance(message, UserMessage)]


# --- what is kept, and where ----------------------------------------------------------------------


def test_every_row_of_a_conversation_is_held_in_memory_or_holds_no_words() -> None:
    """A new kind of row has to say which; a note is kept because a person said so before."""
    of_ids = {RowKind.CONVERSATION, RowKind.ADDRESS, RowKind.BUDGET}
    declared = {table.kind for table in OF_CONVERSATIONS}
    assert declared - of_ids - {RowKind.NOTE} == set(IN_MEMORY)


def test_an_id_says_whether_its_conversation_is_off_the_record() -> None:
    """It sorts by its time as all others do."""
    assert is_off_the_record(off_the_record("01A"))
    assert not is_off_the_record("01A")
    assert "01A" < off_the_record("01A") < "01B"


async def test_a_message_is_known_in_its_conversation_and_nowhere_else(world: World) -> None:
    """The history of before is neither sent nor lost; `/otr off` goes on with it."""
    world.model.will(says("hello"), LOOK, says(f"the {PHRASE}"), says("yes"), says("welcome back"))
    async with world.told("good morning") as house:
        await off(house)
        await house.say(f"where is the {PHRASE}?")
        assert house.texts()[-1] == f"looking \n\nthe {PHRASE}"
        await house.say("and now?")
        assert texts_sent(world) == [f"where is the {PHRASE}?", "and now?"]
        assert PHRASE not in await disk(world)
        await house.say("/otr off")
        assert house.texts()[-1].startswith("On the record again")
        await house.say("back")
        assert texts_sent(world) == ["good morning", "back"]
        await settled(house)
        assert [item.text for item in await house.transcript() if PHRASE in item.text] == []
        rows = await world.store.select(CONVERSATIONS.where())
        assert [row.key for row in rows if is_off_the_record(row.key)] == []
        assert PHRASE not in str(vars(house.parts.store))


async def test_an_answer_that_can_not_be_delivered_yet_is_forgotten_behind_its_delivery(
    world: World,
) -> None:
    """However long the platform is away when `/otr off` comes (P1)."""
    world.model.will(says(f"the {PHRASE}"))
    async with world.running() as house:
        await off(house)
        world.platforms["chat"].will("send", *(ChannelUnavailable("no route"),) * 8)
        await house.say("where is it?")
        await house.say("/otr off")
        for _ in range(30):
            await house.advance(10)
        assert house.texts()[1] == f"the {PHRASE}"
        assert PHRASE not in str(vars(house.parts.store))


async def test_the_model_reads_it_and_has_no_tool_that_leaves_a_trace(world: World) -> None:
    """One that it calls nevertheless is refused, by no policy; so is one that a person calls."""
    world.configure(autonomy="full")
    world.model.will(asks_for(("poke", "{}")), says("I may not"))
    async with world.running() as house:
        await off(house)
        await house.say("poke it")
        (system,) = [
            message
            for message in world.model.requests[-1].messages
            if isinstance(message, SystemMessage)
        ]
        assert "This conversation is off the record" in system.content
        assert [tool.name for tool in world.model.requests[-1].tools] == ["look"]
        (result,) = [
            message
            for message in world.model.requests[-1].messages
            if isinstance(message, ToolMessage)
        ]
        assert "`poke` may not run: it would leave something behind" in result.content
        assert world.poke.runs == []
        await house.say("/language de")
        await house.say("/tool poke {}")
        assert "es würde etwas hinterlassen" in house.texts()[-1]
        assert (await house.audited()).count("denied") == 2


async def test_a_tool_that_a_model_made_up_is_not_named_in_the_audit(world: World) -> None:
    """Its name is the model's word; on record it is kept."""
    world.model.will(asks_for((PHRASE, "{}")), says("no"), asks_for((PHRASE, "{}")), says("no"))
    async with world.running() as house:
        await off(house)
        await house.say("try")
        assert PHRASE not in await disk(world)
        await house.say("/otr off")
        await house.say("try")
        assert PHRASE in await disk(world)


async def test_new_stays_off_the_record_and_forgets_the_old_one(world: World) -> None:
    """`/otr off` returns to the conversation before `/otr`."""
    world.model.will(says("hello"), says("psst"), says("who?"), says("welcome back"))
    async with world.told("good morning") as house:
        await off(house)
        await house.say(PHRASE)
        await house.say("/new")
        assert house.texts()[-1].startswith("A new conversation, still off the record")
        await house.say("next")
        assert texts_sent(world) == ["next"]
        await settled(house)
        assert PHRASE not in str(vars(house.parts.store))
        await house.say("/otr off")
        await house.say("back")
        assert texts_sent(world) == ["good morning", "back"]
        assert "next" not in await disk(world)


async def test_a_chat_goes_back_to_no_conversation_that_has_just_been_erased(world: World) -> None:
    """Otherwise it would point to one that is on no record, and is erased no more."""
    async with world.told("rose") as house:
        (row,) = await house.rows(RowKind.CONVERSATION)
        await off(house)

        async def erase_first(writes: tuple[Write, ...]) -> None:
            if any(isinstance(write, Put) and write.kind is RowKind.ADDRESS for write in writes):
                world.store.meanwhile = None
                await world.store.write(CONVERSATIONS.delete(row.key))

        world.store.meanwhile = erase_first
        await house.say("/otr off")
        (pointer,) = await house.rows(RowKind.ADDRESS)
        assert pointer.conversation is not None
        assert not is_off_the_record(pointer.conversation)
        assert await CONVERSATIONS.get(world.store, pointer.conversation) is not None


async def test_a_second_otr_changes_nothing_and_without_a_past_one_begins(world: World) -> None:
    """Each is answered."""
    async with world.told("/otr off") as house:
        assert house.texts()[-1] == "This is on the record; `/otr` goes off it."
        await off(house)
        await house.say("/otr")
        assert house.texts()[-1] == "This is off the record already; `/otr off` ends it."
        await house.say("/otr off")
        await house.say("hello")
        assert texts_sent(world) == ["hello"]
        assert "hello" in await disk(world)
        await house.say("/language de")
        await house.say("/otr aus")
        assert house.texts()[-1] == "Hier wird aufgezeichnet; `/otr` beendet das."
        await house.say("/otr an")
        await house.say("/otr on")
        assert house.texts()[-1] == "Hier wird schon nichts aufgezeichnet; `/otr off` beendet das."


async def test_the_first_word_of_a_chat_may_be_off_the_record(world: World) -> None:
    """There is no conversation before it to go back to."""
    world.model.will(says("psst"), says("hello"))
    async with world.running() as house:
        await off(house, "ben")
        await house.say(PHRASE, "ben")
        await house.say("/otr off", "ben")
        await house.say("back", "ben")
        assert texts_sent(world) == ["back"]
        assert PHRASE not in await disk(world)


async def test_a_running_answer_ends_with_off(world: World) -> None:
    """It is stopped, its question ends, and nothing of it stays."""
    world.configure(policy=ASK_FIRST)
    world.model.will(LOOK)
    async with world.running() as house:
        await off(house, "ben")
        await house.say(f"look at {PHRASE}", "ben")
        assert PHRASE in str(house.card())
        assert PHRASE not in await disk(world)
        await house.say("/otr off", "ben")
        assert house.endings() == [("stopped", "Ben")]
        await settled(house)
        assert PHRASE not in str(vars(house.parts.store))
        assert PHRASE not in await disk(world)
        assert world.look.runs == []


async def test_what_an_approver_lists_and_answers_leaves_no_word_in_their_own_chat(
    world: World,
) -> None:
    """Their chat is on record: lists name the tool alone, and a reply goes with what it answers."""
    world.configure(policy=ASK_FIRST)
    world.look.touches = (f"file:/{PHRASE}",)
    ask = asks_for(("look", f'{{"{PHRASE}": 1}}'))
    world.model.will(ask, says("seen"), ask, says("seen again"))
    async with world.running() as house:
        await off(house, "ben")
        await house.say("look", "ben")
        await house.say("/pending")
        assert "`look`" in house.texts()[-1]
        assert PHRASE not in house.texts()[-1]
        await house.say("/approve 1")
        await settled(house)
        assert house.texts("ben")[-1] == "seen"
        await house.say("look", "ben")
        assert PHRASE in str(house.card())
        await house.press("for_a_time")
        await house.say("/grants")
        assert "- `1` `look`, for `person:ben`" in house.texts()[-1]
        assert PHRASE not in await disk(world)
    async with world.running() as house:
        assert PHRASE not in await disk(world)
        await house.say("/grants")
        await settled(house)
        assert "Nothing is granted" in house.texts()[-1]


async def test_a_file_that_is_on_record_as_well_stays(world: World) -> None:
    """Only the copy in memory is forgotten."""
    file = Attachment(reference="f", name="note.txt", media_type="text/plain", size_bytes=9)
    world.platforms["chat"].files["f"] = PHRASE.encode()
    async with world.running() as house:
        for text in ("keep this", "/otr", "and this", "/otr off"):
            event = replace(
                house.envelope(house.said(text)), attachments=(file,) * (text[0] != "/")
            )
            await world.platforms["chat"].say(event)
            await house.settle()
        await settled(house)
        (digest,) = await world.store.blobs(put_before=world.clock.now().replace(year=9999))
        assert await house.parts.store.blob(digest) == PHRASE.encode()


async def test_in_a_group_it_holds_for_all_members_and_for_edits(world: World) -> None:
    """A late edit is a note off the record; one of what is forgotten changes nothing."""
    async with world.running() as house:
        await off(house, "ben", room="lobby")
        await house.say(f"{PHRASE} of ada", "ada", room="lobby")
        number = next(world.numbers) - 1
        await house.edit(f"p{number}", f"{PHRASE} anew", "ada", room="lobby")
        await house.say("so?", "ben", room="lobby")
        assert f"{PHRASE} anew" in str(world.model.requests[-1].messages)
        assert PHRASE not in await disk(world)
        await house.say("/otr off", "ada", room="lobby")
        await settled(house)
        await house.edit(f"p{number}", f"{PHRASE} once more", "ada", room="lobby")
        assert PHRASE not in await disk(world)


async def test_a_summary_of_it_keeps_no_facts(world: World) -> None:
    """Nor is a model asked for any; notes of before may be read."""
    world.configure(autonomy="full")
    async with world.running() as house:
        await off(house)
        for number in range(4):
            await house.say(f"{PHRASE} {number}")
        world.model.will(says(f"They spoke of {PHRASE}."))
        before = len(world.model.requests)
        await house.say("/compact")
        assert len(world.model.requests) == before + 1
        assert await house.rows(RowKind.NOTE) == ()
        assert PHRASE not in await disk(world)


async def test_who_wishes_to_be_forgotten_stays_off_the_record(world: World) -> None:
    """What they say next is not on record because they had the rest removed."""
    async with world.running() as house:
        await off(house)
        await house.say(PHRASE)
        await house.say("/forget")
        code = house.texts()[-1].split("`/forget ")[1].split("`")[0]
        await house.say(f"/forget {code}")
        await settled(house)
        assert house.texts()[-1] == "Done: what you said to me is removed."
        assert PHRASE not in str(vars(house.parts.store))
        await house.say(f"{PHRASE} again")
        assert texts_sent(world) == [f"{PHRASE} again"]
        assert PHRASE not in await disk(world)


@pytest.mark.parametrize(
    "written",
    [
        f"{command} {PHRASE}"
        # A pending erasure names the person until it is carried out.
        for command in (
            *sorted(COMMANDS.keys() - {"forget"}),
            PHRASE,
            "deny 1 because",
            "tool look",
        )
    ]
    + [f'tool look {{"at": "{PHRASE}"}}', f"tool {PHRASE} {{}}"],
)
async def test_no_command_leaves_what_is_written_behind_it(world: World, written: str) -> None:
    """Nor what it answers; before and after a kill."""
    world.configure(policy=ASK_FIRST)
    world.model.will(LOOK)
    async with world.running() as house:
        await off(house)
        await house.say("look")
        await house.say(f"/{written}")
        await settled(house)
        assert PHRASE not in await disk(world)
    async with world.running() as house:
        await settled(house)
        assert PHRASE not in await disk(world)
        await house.say(f"/{written}")
    assert PHRASE not in await disk(world)


SAYS: tuple[Answer, ...] = (
    LOOK,
    says(PHRASE),
    (ProviderRejected(f"no {PHRASE}"),),
    (ProviderOverloaded(f"busy with {PHRASE}", retry_after_s=1.0),),
    asks_for(("look", f'{{"x": "{PHRASE}"}}'), saying=PHRASE),
    asks_for((PHRASE, "{}")),
    asks_for(("look", PHRASE)),
    asks_for(("poke", f'{{"x": "{PHRASE}"}}')),
)
"""What a model may answer, or an endpoint."""


async def press(house: House, choice: Choice) -> None:
    """Answer the newest card there is, if any, with words of one's own."""
    with suppress(IndexError):
        await house.press(choice, reason=PHRASE)


async def send_file(house: House) -> None:
    envelope = house.envelope(house.said(f"see {PHRASE}"), "ben")
    file = Attachment(reference="f", name=f"{PHRASE}.txt", media_type="text/plain", size_bytes=9)
    await house.world.platforms["chat"].say(replace(envelope, attachments=(file,)))
    await house.settle()


DOES: tuple[Callable[[House], Awaitable[object]], ...] = (
    lambda house: house.say(f"hello {PHRASE}", "ben"),
    send_file,
    lambda house: house.edit(f"p{next(house.world.numbers) - 2}", f"{PHRASE} anew", "ben"),
    lambda house: house.withdraw(f"p{next(house.world.numbers) - 2}", "ben"),
    lambda house: press(house, "once"),
    lambda house: press(house, "for_a_time"),
    lambda house: press(house, "deny_with_reason"),
    lambda house: house.say("/approve 1"),
    lambda house: house.say("/pending"),
    lambda house: house.say(f'/tool look {{"at": "{PHRASE}"}}', "ben"),
    lambda house: house.say("/retry", "ben"),
    lambda house: house.say("/compact", "ben"),
    lambda house: house.say("/new", "ben"),
    lambda house: house.say("/stop", "ben"),
    lambda house: house.advance(4_000),
)
"""What people do, and the clock."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
async def test_no_order_of_events_and_kills_leaves_a_word(world: World, seed: int) -> None:
    """Three lives of a daemon, some doings in each, in any order."""
    chance = random.Random(seed)
    mode = chance.choice(get_args(WhileBusy))
    settings = world.config.channels["chat"].model_copy(update={"while_busy": mode})
    world.configure(policy=ASK_FIRST, channels={"chat": settings})
    world.platforms["chat"].files["f"] = PHRASE.encode()
    async with world.running() as house:
        await off(house, "ben")
    for _ in range(3):
        async with world.running() as house:
            for does in chance.choices(DOES, k=8):
                world.model.will(chance.choice(SAYS))
                await does(house)
                assert PHRASE not in await disk(world)


async def test_tools_lists_what_may_run_here(world: World) -> None:
    """What would leave a trace is not among it, as it is not in requests."""
    async with world.told("/tools") as house:
        assert "`poke`" in house.texts()[-1]
        await off(house)
        await house.say("/tools")
        assert "`look`" in house.texts()[-1]
        assert "`poke`" not in house.texts()[-1]


async def test_policy_may_forbid_it(world: World) -> None:
    """`command:otr` is a command like every other."""
    no: dict[str, object] = {
        "id": "no",
        "effect": "deny",
        "actions": ["command:otr"],
        "principals": ["anyone"],
    }
    world.configure(policy=PolicySettings(statement=(no,)))
    async with world.told("/otr", by="ben") as house:
        assert "`/otr` is not for you" in house.texts("ben")[-1]
        await house.say("/help", "ben")
        assert "/otr" not in house.texts("ben")[-1]


# --- kills ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point",
    [
        DurablePoint.ADMITTED,
        DurablePoint.TURN_STARTED,
        DurablePoint.REF_KNOWN,
        DurablePoint.CALL_STARTED,
        DurablePoint.CALL_FINISHED,
        DurablePoint.FINISHED,
        DurablePoint.DELIVERED,
    ],
)
async def test_a_kill_at_any_point_leaves_no_word_and_asks_to_repeat(
    world: World, point: DurablePoint
) -> None:
    """Once, however often it is started again; the audit has an end of each call, and verifies."""
    world.model.will(LOOK, says(f"the {PHRASE}"))
    async with world.running() as house:
        await off(house)
        world.store.cut_after(point)
        await house.say_and_die(f"look at {PHRASE}")
        assert PHRASE not in await disk(world)
    world.store.heal()
    world.model.otherwise(says("again"))
    async with world.running() as house:
        await settled(house)
        assert len([text for text in house.texts() if text.startswith(GONE)]) == 1
        assert PHRASE not in await disk(world)
        audited = await house.audited()
        ended = {"executed", "unknown"}
        assert audited.count("proposed") == sum(kind in ended for kind in audited)
        assert not [row for kind in IN_MEMORY for row in await house.rows(kind) if row.conversation]
        await house.say("once more")
        assert house.texts()[-1] == "again"
        assert texts_sent(world) == ["once more"]
    async with world.running() as house:
        await settled(house)
        assert len([text for text in house.texts() if text.startswith(GONE)]) == 2
    async with world.running() as house:
        await settled(house)
        assert len([text for text in house.texts() if text.startswith(GONE)]) == 2


async def test_a_call_that_a_kill_cut_off_is_reported_to_operators_without_its_words(
    world: World,
) -> None:
    """It may have run; an unanswered one did not (P3)."""
    world.model.will(LOOK)
    async with world.running() as house:
        await off(house, "ben")
        world.look.hold = asyncio.Event()
        await house.say(f"look at {PHRASE}", "ben")
        assert len(world.look.runs) == 1
    async with world.running() as house:
        await settled(house)
        assert house.texts()[-1].startswith("`look` was called off the record in `chat`")
        assert "unknown" in await house.audited()
        assert PHRASE not in await disk(world)


@pytest.mark.parametrize("kind", [RowKind.CONVERSATION, LogKind.AUDIT])
async def test_a_damaged_record_of_it_prevents_no_start(
    world: World, kind: RowKind | LogKind
) -> None:
    """A call that may have run is reported all the same, if the rest can be read (P3)."""
    world.model.will(LOOK)
    async with world.running() as house:
        await off(house, "ben")
        world.look.hold = asyncio.Event()
        await house.say(f"look at {PHRASE}", "ben")
        (row,) = await house.rows(RowKind.CONVERSATION)
    await world.store.write(
        Append(log=kind, stream=row.key, body=b"{")
        if isinstance(kind, LogKind)
        else Put(kind=kind, key=row.key, body=b"{", conversation=row.conversation, state=row.state)
    )
    async with world.told("hello") as house:
        assert house.texts()[-1] == "ok"
        notices = [
            text for text in house.texts() if text.startswith("`look` was called off the record")
        ]
        assert len(notices) == (kind is LogKind.AUDIT)


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_failure_is_reported_to_operators_and_never_stored(
    world: World, *, is_there: bool
) -> None:
    """A provider's own words may repeat the message: its writer reads them, and operators don't."""
    world.model.will((ProviderRejected(f"no {PHRASE} here"),))
    people = world.config.people
    world.configure(people=people if is_there else ())
    async with world.running() as house:
        await off(house, "ben")
        await house.say("hello", "ben")
        assert PHRASE in "".join(house.texts("ben"))
        assert ("failed: the model can't answer" in "".join(house.texts())) is is_there
        assert PHRASE not in "".join(house.texts())
        assert PHRASE not in await disk(world)
    world.configure(people=people)
    async with world.running() as house:
        await settled(house)
        assert await house.rows(RowKind.NOTICE) == ()
        assert PHRASE not in await disk(world)


async def test_what_a_start_finds_waits_for_an_operator(world: World) -> None:
    """In the commit that clears the rest away, so that the next kill does not hide it (P3)."""
    world.model.will(LOOK)
    async with world.running() as house:
        await off(house, "ben")
        world.look.hold = asyncio.Event()
        await house.say(f"look at {PHRASE}", "ben")
    people = world.config.people
    world.configure(people=())
    async with world.running() as house:
        await settled(house)
        assert house.texts() == []
    world.configure(people=people)
    for _ in range(2):
        async with world.running() as house:
            await settled(house)
            (notice,) = house.texts()
            assert notice.startswith("`look` was called off the record in `chat`")


async def test_a_question_that_a_kill_took_runs_nothing(world: World) -> None:
    """Its card says that it was stopped, in place of what it asked, and a press is worth nothing (P5)."""
    world.configure(policy=ASK_FIRST)
    world.model.will(LOOK)
    async with world.running() as house:
        await off(house, "ben")
        await house.say(f"look at {PHRASE}", "ben")
        assert PHRASE in str(house.card())
        assert PHRASE not in await disk(world)
    async with world.running() as house:
        await settled(house)
        assert house.endings() == [("stopped", "")]
        assert PHRASE not in str(house.outcome())
        assert "was asked off the record" in str(house.outcome())
        assert PHRASE not in await disk(world)
        await house.press()
        assert world.look.runs == []
        assert (await house.audited())[-1] == "cancelled"
        assert house.texts("ben")[-1].startswith(GONE)


async def test_a_card_whose_send_was_not_recorded_says_so_when_it_is_pressed(world: World) -> None:
    """Where it stands is known only then; a number from it is answered as well."""
    world.configure(policy=ASK_FIRST)
    world.model.will(LOOK)
    world.platforms["chat"].will("ask", Lost())
    async with world.running() as house:
        await off(house, "ben")
        await house.say(f"look at {PHRASE}", "ben")
        assert PHRASE in str(house.card())
    async with world.running() as house:
        await settled(house)
        assert house.endings() == []
        await house.say("/approve 1")
        assert house.texts()[-1].startswith("`1`: ")
        assert "stopped" in house.texts()[-1]
        assert "stopped" in await house.press()
        assert house.endings() == [("stopped", "")]
        assert PHRASE not in str(house.outcome())
        assert PHRASE not in await disk(world)
        assert world.look.runs == []
    async with world.running() as house:
        await settled(house)
        assert house.endings() == [("stopped", "")]
        assert await house.rows(RowKind.APPROVAL) == ()


async def test_an_answered_card_that_a_kill_kept_from_showing_it_shows_it(world: World) -> None:
    """Which of its calls may run was decided by a person, who is named."""
    world.configure(policy=ASK_FIRST)
    world.model.will(LOOK)
    async with world.running() as house:
        await off(house, "ben")
        await house.say("look", "ben")
        world.store.cut_after(DurablePoint.ADMITTED)
        await house.press_and_die()
        assert house.endings() == []
    world.store.heal()
    async with world.running() as house:
        await settled(house)
        assert house.endings() == [("approved", "Ada")]
        assert PHRASE not in await disk(world)
        assert world.look.runs == []


async def test_a_card_that_shows_its_end_already_is_left_as_it_is(world: World) -> None:
    """A kill later on changes nothing that an approver has in their chat."""
    world.configure(policy=ASK_FIRST)
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await off(house, "ben")
        await house.say(f"look at {PHRASE}", "ben")
        await house.press()
        shown = house.outcome()
        assert PHRASE in str(shown)
    async with world.running() as house:
        await settled(house)
        assert house.outcome() == shown


async def test_a_start_sends_nothing_where_nothing_was_written(world: World) -> None:
    """Nor for a conversation that was over; and the mode stays."""
    async with world.running() as house:
        await off(house)
    async with world.running() as house:
        await settled(house)
        assert len(house.texts()) == 1
        await house.say(PHRASE)
        assert PHRASE not in await disk(world)
        world.store.cut_after(DurablePoint.ADMITTED)
        await house.say_and_die("/otr off")
    world.store.heal()
    async with world.running() as house:
        await settled(house)
        assert not [text for text in house.texts() if text.startswith(GONE)]
        rows = await world.store.select(CONVERSATIONS.where(state="unrecorded"))
        assert rows == ()


async def test_a_message_that_is_delivered_again_is_asked_for_and_not_taken_twice(
    world: World,
) -> None:
    """It was admitted, so the repeat does nothing; the person reads that in their language."""
    async with world.told("/language de") as house:
        await house.say("/otr")
        world.store.cut_after(DurablePoint.ADMITTED)
        again = house.envelope(house.said(PHRASE), key="k")
        async with asyncio.TaskGroup() as group:
            admission = group.create_task(house.services.ingress.admit(again))
            await house.settle()
            admission.cancel()
    world.store.heal()
    async with world.running() as house:
        await settled(house)
        assert house.texts()[-1].startswith("Ich wurde neu gestartet")
        await house.event(house.said(PHRASE), key="k")
        assert world.model.requests == []
        assert PHRASE not in await disk(world)
