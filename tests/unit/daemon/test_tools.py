"""Notes and cut results in a whole house: who can read which."""

from pathlib import Path

import pytest

from tests.fakes.house import House, World
from tests.fakes.house_parts import SECRET
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.config.model import (
    AttachmentToolSettings,
    CurrentConfig,
    NotesSettings,
    ResultsSettings,
    RuntimeSettings,
    ToolsSettings,
)
from zeroclaw.daemon.extensions import by_name, stored_tools
from zeroclaw.message import ToolMessage
from zeroclaw.redact import Redactor
from zeroclaw.store import RowKind
from zeroclaw.tool import ToolContext, ToolOutput

REMEMBER = asks_for(("remember", '{"text": "the safe is behind the clock"}'))
RECALL = asks_for(("recall", '{"words": "SAFE clock"}'))
NOTHING = "no note is stored here yet"
BEHIND = "the safe is behind the clock"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada and Ben, who need no approvals, with the real tools."""
    world = World(tmp_path)
    world.configure(autonomy="full", runtime=RuntimeSettings(result_chars=1_000))
    offer(world)
    return world


def offer(world: World) -> None:
    """Give the world the tools that the configuration enables."""
    tools = stored_tools(CurrentConfig(world.config), world.store, Redactor((SECRET,)).redact)
    world.others = tuple(by_name(tools).values())


async def result(house: House, play: tuple[str, str], person: str, room: str = "") -> str:
    """Have the model call a tool for this person; return the tool's result."""
    house.world.model.otherwise(asks_for(play), says("done"))
    await house.say("please", person, room=room)
    [*_, last] = [
        message.content
        for message in house.world.model.requests[-1].messages
        if isinstance(message, ToolMessage)
    ]
    return last


SAVE = ("remember", '{"text": "the safe is behind the clock"}')
FIND = ("recall", '{"words": "SAFE clock"}')
CHATS = {"ada": ("ada", ""), "ben": ("ben", ""), "room": ("ada", "room"), "other": ("ada", "other")}


@pytest.mark.parametrize("made", CHATS)
@pytest.mark.parametrize("reader", CHATS)
async def test_a_note_is_recalled_where_it_was_made_and_nowhere_else(
    world: World, made: str, reader: str
) -> None:
    """A private one not in a group, one person's not by another, one group's not by another.

    The same holds after a restart and in a new conversation.
    """
    async with world.running() as house:
        assert "remembered as note 1" in await result(house, SAVE, *CHATS[made])
    async with world.running() as house:
        await house.say("/new", CHATS[reader][0], room=CHATS[reader][1])
        answer = await result(house, FIND, *CHATS[reader])
        assert (BEHIND in answer, NOTHING in answer) == (made == reader, made != reader)


async def test_everyone_in_a_group_can_recall_its_notes(world: World) -> None:
    """Each note has its writer's name."""
    async with world.running() as house:
        await result(house, SAVE, "ada", "room")
        assert f"Ada on chat, this conversation: {BEHIND}" in await result(
            house, FIND, "ben", "room"
        )


async def test_a_note_can_not_be_removed_from_another_chat(world: World) -> None:
    """Neither from their own chat nor from a group."""
    async with world.running() as house:
        await result(house, SAVE, "ada")
        forget = ("forget_note", '{"number": 1}')
        assert "there is no note 1 here" in await result(house, forget, "ben")
        assert "there is no note 1 here" in await result(house, forget, "ada", "room")
        assert BEHIND in await result(house, FIND, "ada")
        assert "forgot note 1" in await result(house, forget, "ada")
        assert NOTHING in await result(house, FIND, "ada")


async def test_remembering_needs_approval_and_recalling_does_not(world: World) -> None:
    """A note comes back in every later turn, so a person sees it once before. S2-08."""
    world.configure(autonomy="supervised")
    world.model.will(REMEMBER, says("noted"), RECALL, says("found"))
    async with world.running() as house:
        await house.say("remember where the safe is")
        assert house.card().calls[0].summary == "remember `the safe is behind the clock`"
        assert await noted(house) == []
        await house.press("once")
        await house.say("where is the safe?")
        assert await noted(house) == ["of:person:ada"]
        assert house.texts()[-1] == "found"


async def noted(house: House) -> list[str]:
    """The owners of the stored notes."""
    return [row.place for row in await house.rows(RowKind.NOTE, "")]


async def test_a_secret_is_not_remembered(world: World) -> None:
    """The tool's result gives the reason (P8)."""
    async with world.running() as house:
        answer = await result(house, ("remember", f'{{"text": "it is {SECRET}"}}'), "ada")
        assert "looks like it holds a secret" in answer
        assert await house.rows(RowKind.NOTE) == ()


async def long_output(_context: ToolContext) -> ToolOutput:
    return ToolOutput(text=f"{'a' * 600} needle {SECRET} {'z' * 600}")


async def cut(house: House, person: str = "ada") -> str:
    """Have a call return a long result; return the id that the model got."""
    house.world.look.does = long_output
    answer = await result(house, ("look", "{}"), person)
    assert "; read on with `read_result` and this id …" in answer
    return answer.partition("the whole is kept as `")[2].partition("`")[0]


async def test_a_cut_result_can_be_read_further(world: World) -> None:
    """By the id in it; without secrets (P8), and short enough not to be cut again."""
    async with world.running() as house:
        name = await cut(house)
        piece = await result(
            house, ("read_result", f'{{"id": "{name}", "offset": 595, "limit": 40}}'), "ada"
        )
        assert "characters 595 to 635 of " in piece
        assert "aaaaa needle [redacted] zzz" in piece
        match = await result(house, ("read_result", f'{{"id": "{name}", "word": "NEEDLE"}}'), "ada")
        assert "[offset 601]" in match
        first_part = await result(house, ("read_result", f'{{"id": "{name}"}}'), "ada")
        assert "read on with offset 700" in first_part
        assert "left out" not in first_part
    async with world.running() as house:
        again = await result(house, ("read_result", f'{{"id": "{name}"}}'), "ada")
        assert "characters 0 to 700" in again


@pytest.mark.parametrize(("reader", "room"), [("ben", ""), ("ada", "room"), ("ben", "room")])
async def test_no_other_conversation_reads_it(world: World, reader: str, room: str) -> None:
    """A reader who learns the id learns nothing by it, not even that it exists (P8)."""
    async with world.running() as house:
        name = await cut(house)
        answer = await result(house, ("read_result", f'{{"id": "{name}"}}'), reader, room)
        assert f"no result of this conversation is stored as `{name}`" in answer
        assert "aaaa" not in answer


async def test_a_new_conversation_does_not_read_it_either(world: World) -> None:
    """`/new` leaves messages and results behind."""
    async with world.running() as house:
        name = await cut(house)
        await house.say("/new")
        answer = await result(house, ("read_result", f'{{"id": "{name}"}}'), "ada")
        assert "no result of this conversation" in answer


async def test_disabled_tools_are_not_offered(world: World) -> None:
    """Nor does a cut result refer the model to a disabled tool."""
    off = ToolsSettings(
        attachments=AttachmentToolSettings(enabled=False),
        notes=NotesSettings(enabled=False),
        results=ResultsSettings(enabled=False),
    )
    world.configure(tools=off)
    offer(world)
    assert world.others == ()
    world.look.does = long_output
    async with world.running() as house:
        answer = await result(house, ("look", "{}"), "ada")
        assert ("the whole is kept as" in answer, "read on" in answer) == (True, False)
