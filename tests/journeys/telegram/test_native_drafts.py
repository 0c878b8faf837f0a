"""In a private chat an answer is seen while it is written, and is no message before it is whole."""

from pathlib import Path

import pytest

from channels.telegram.emulator import Chat, Hang, Lose, Refuse, TooMany
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

DRAFT = "sendMessageDraft"
NO_METHOD = Refuse(code=404, description="Not Found: method not found")


async def draft_shows(world: Bot, chat: Chat, text: str) -> None:
    """Wait until a draft shows this; it is seen before anything of it stands."""
    await world.until(lambda: world.telegram.draft(chat) == text)


async def test_an_answer_is_seen_while_it_is_written_and_stands_once(tmp_path: Path) -> None:
    """It ends as one message that was never edited, and the draft is gone. S2-06, S2-14, P6."""
    async with bot(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One, **two**, ", gate, "three.")
        world.ann.says("count")
        await draft_shows(world, world.ann.chat, "One, two,")
        assert world.ann.chat.from_bot == []
        gate.open()
        await world.expect(world.ann.chat, "One, two, three.")
        (message,) = world.ann.chat.from_bot
        assert [entity.type for entity in message.versions[-1].formatted.entities] == ["bold"]
        assert message.texts == ["One, two, three."]
        assert world.telegram.draft(world.ann.chat) is None
        assert len({draft.id for draft in world.ann.chat.drafted}) == 1


async def test_a_tool_call_makes_it_a_message_before_an_approval_is_requested(
    tmp_path: Path,
) -> None:
    """The text after it goes on below the card, in a new message that people get notice of (K4)."""
    async with bot(tmp_path) as world:
        world.model.call("knock", {"what": "on wood"}, text="Let me knock.", round=0)
        world.model.say("So be it.", round=1)
        world.ann.says("please knock")
        card = await world.card()
        message = world.ann.chat.from_bot[0]
        assert message.id < card.id
        assert message.texts == ["Let me knock."]
        assert world.telegram.draft(world.ann.chat) is None
        world.olga.presses(card, "Approve once")
        await world.until(lambda: world.ann.chat.from_bot[-1].texts == ["So be it."])
        assert message.texts == ["Let me knock."]


async def test_after_a_tool_without_words_the_answer_is_a_draft_again(tmp_path: Path) -> None:
    async with bot(tmp_path) as world:
        gate = world.model.gate()
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So ", gate, "be it.", round=1)
        world.ann.says("please knock")
        world.olga.presses(await world.card(), "Approve once")
        await draft_shows(world, world.ann.chat, "So")
        gate.open()
        await world.until(lambda: world.ann.chat.from_bot[-1].texts == ["So be it."])


async def test_a_server_without_drafts_is_asked_once_and_edits_in_place(tmp_path: Path) -> None:
    """For as long as the daemon runs; nothing of the answer is lost by it. S2-06, S2-19."""
    async with bot(tmp_path) as world:
        world.telegram.will(DRAFT, NO_METHOD, times=None)
        for word in ("one", "two"):
            gate = world.model.gate()
            world.model.say("This is ", gate, f"{word}.", key=word)
            world.ann.says(word)
            await world.until(lambda: world.ann.chat.texts[-1:] == ["This is"])
            gate.open()
            await world.until(lambda text=f"This is {word}.": world.ann.chat.texts[-1:] == [text])
        assert world.ann.chat.texts == ["This is one.", "This is two."]
        assert len(world.telegram.called(DRAFT)) == 1


async def test_in_a_group_a_message_grows(tmp_path: Path) -> None:
    """Drafts are for private chats only. S2-06."""
    async with bot(tmp_path) as world:
        team = world.telegram.supergroup("Team", world.ann)
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.")
        world.ann.says("@zero_bot count", chat=team)
        await world.until(lambda: team.texts == ["One,"])
        gate.open()
        await world.expect(team, "One, two.")
        assert world.telegram.called(DRAFT) == []


async def test_a_draft_that_is_too_long_goes_on_in_the_next_message(tmp_path: Path) -> None:
    """Full parts are sent; only the last part is not sent before it is whole. S2-20."""
    words = [f"word{number} " for number in range(900)]
    async with bot(tmp_path) as world:
        gate = world.model.gate()
        world.model.say(*words, gate, "end.")
        world.ann.says("go on")
        await world.until(lambda: (world.telegram.draft(world.ann.chat) or "").endswith("word899"))
        (full,) = world.ann.chat.from_bot
        gate.open()
        await world.until(lambda: world.ann.chat.texts[-1].endswith("end."))
        assert " ".join(world.ann.chat.texts).split() == "".join((*words, "end.")).split()
        assert [message.texts for message in world.ann.chat.from_bot] == [
            [text] for text in world.ann.chat.texts
        ]
        assert world.ann.chat.from_bot[0] is full


async def test_killed_while_it_is_shown_it_leaves_nothing_behind(tmp_path: Path) -> None:
    """The answer comes once, whole, and nothing but the answer. P1."""
    async with bot(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("hello ", gate, "nobody")
        world.ann.says("hi")
        await draft_shows(world, world.ann.chat, "hello")
        await world.daemon.kill()
        world.model.say("hello Ann")
        await world.daemon.start()
        await world.expect(world.ann.chat, "hello Ann")
        assert world.ann.chat.from_bot[0].texts == ["hello Ann"]


async def test_a_stopped_daemon_leaves_a_message_that_says_so(tmp_path: Path) -> None:
    """A draft would vanish without the daemon; the answer goes on in that message (K4)."""
    async with bot(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("hello ", gate, "nobody")
        world.ann.says("hi")
        await draft_shows(world, world.ann.chat, "hello")
        assert await world.daemon.terminate() == 0
        (message,) = world.ann.chat.from_bot
        assert message.text.startswith("hello\n\n")
        world.model.say("hello Ann")
        await world.daemon.start()
        await world.expect(world.ann.chat, "hello Ann")
        assert world.ann.chat.from_bot == [message]


@pytest.mark.parametrize(
    "fault",
    [
        TooMany(retry_after_s=1),
        Lose(carried_out=True),
        Lose(carried_out=False),
        Refuse(code=400, description="Bad Request: TEXTDRAFT_PEER_INVALID"),
    ],
    ids=repr,
)
async def test_a_draft_that_fails_costs_nothing(
    tmp_path: Path, fault: TooMany | Lose | Refuse
) -> None:
    """It may be shown or not; the answer stands once, and no repeat is possible (P1, P6)."""
    async with bot(tmp_path) as world:
        world.telegram.will(DRAFT, fault)
        gate = world.model.gate()
        world.model.say("hello ", gate, "Ann")
        world.ann.says("hi")
        await world.until(lambda: world.telegram.called(DRAFT))
        gate.open()
        await world.expect_once("hello Ann")


async def test_a_draft_that_hangs_holds_up_no_other_chat(tmp_path: Path) -> None:
    """P9."""
    async with bot(tmp_path) as world:
        hang = Hang()
        world.telegram.will(DRAFT, hang, chat=world.ann.chat)
        gate = world.model.gate()
        world.model.say("hello ", gate, "Ann", key="ann")
        world.model.say("hello Bob", key="bob")
        world.ann.says("I am ann")
        await hang.reached()
        gate.open()
        world.bob.says("I am bob")
        await world.expect(world.bob.chat, "hello Bob")
        hang.release()
        await world.expect(world.ann.chat, "hello Ann")


async def test_where_it_is_wished_a_private_answer_is_edited_in_place(tmp_path: Path) -> None:
    """`drafts = "edited"`. S2-06, S2-19."""
    async with bot(tmp_path, channel={"drafts": "edited"}) as world:
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.")
        world.ann.says("count")
        await world.until(lambda: world.ann.chat.texts == ["One,"])
        gate.open()
        await world.expect(world.ann.chat, "One, two.")
        assert len(world.telegram.called("sendMessage")) == 1
        assert world.telegram.called(DRAFT) == []
