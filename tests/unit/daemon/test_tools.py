"""Notes and cut results in a whole house: who reads which, through gate, turn and store."""

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
    """Ada and Ben, who need nobody's approval, with the real tools."""
    world = World(tmp_path)
    world.configure(autonomy="full", runtime=RuntimeSettings(result_chars=1_000))
    offer(world)
    return world


def offer(world: World) -> None:
    """Put the tools there that the configuration offers."""
    found = stored_tools(CurrentConfig(world.config), world.store, Redactor((SECRET,)).redact)
    world.others = tuple(by_name(found).values())


async def result(house: House, play: tuple[str, str], who: str, room: str = "") -> str:
    """Somebody has the model call a tool; return what the model was told."""
    house.world.model.otherwise(asks_for(play), says("done"))
    await house.say("please", who, room=room)
    [*_, last] = [
        message.content
        for message in house.world.model.requests[-1].messages
        if isinstance(message, ToolMessage)
    ]
    return last


SAVE = ("remember", '{"text": "the safe is behind the clock"}')
FIND = ("recall", '{"words": "SAFE clock"}')
HERE = {"ada": ("ada", ""), "ben": ("ben", ""), "room": ("ada", "room"), "other": ("ada", "other")}


@pytest.mark.parametrize("made", HERE)
@pytest.mark.parametrize("asked", HERE)
async def test_a_note_is_recalled_where_it_was_made_and_nowhere_else(
    world: World, made: str, asked: str
) -> None:
    """Not a private one in a group, not one person's by another, not one group's by another.

    After a restart and in a new conversation it is the same.
    """
    async with world.running() as house:
        assert "remembered as note 1" in await result(house, SAVE, *HERE[made])
    async with world.running() as house:
        await house.say("/new", HERE[asked][0], room=HERE[asked][1])
        told = await result(house, FIND, *HERE[asked])
        assert (BEHIND in told, NOTHING in told) == (made == asked, made != asked)


async def test_everybody_in_a_group_reads_its_notes(world: World) -> None:
    """Each with the name of who said it."""
    async with world.running() as house:
        await result(house, SAVE, "ada", "room")
        assert f"Ada on chat, this conversation: {BEHIND}" in await result(
            house, FIND, "ben", "room"
        )


async def test_nobody_forgets_what_they_can_not_see(world: World) -> None:
    """Neither from their own chat nor from a group."""
    async with world.running() as house:
        await result(house, SAVE, "ada")
        forget = ("forget_note", '{"number": 1}')
        assert "there is no note 1 here" in await result(house, forget, "ben")
        assert "there is no note 1 here" in await result(house, forget, "ada", "room")
        assert BEHIND in await result(house, FIND, "ada")
        assert "forgot note 1" in await result(house, forget, "ada")
        assert NOTHING in await result(house, FIND, "ada")


async def test_remembering_asks_and_recalling_does_not(world: World) -> None:
    """What is kept comes back in every later turn, so somebody sees it once before. S2-08."""
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
    """Whose notes there are."""
    return [row.place for row in await house.rows(RowKind.NOTE, "")]


async def test_a_secret_is_not_kept(world: World) -> None:
    """The model is told why (P8)."""
    async with world.running() as house:
        told = await result(house, ("remember", f'{{"text": "it is {SECRET}"}}'), "ada")
        assert "looks like it holds a secret" in told
        assert await house.rows(RowKind.NOTE) == ()


async def much(_context: ToolContext) -> ToolOutput:
    return ToolOutput(text=f"{'a' * 600} needle {SECRET} {'z' * 600}")


async def cut(house: House, who: str = "ada") -> str:
    """Somebody's call has a long result; return the id that the model was told."""
    house.world.look.does = much
    told = await result(house, ("look", "{}"), who)
    assert "; read on with `read_result` and this id …" in told
    return told.partition("the whole is kept as `")[2].partition("`")[0]


async def test_a_cut_result_is_read_on(world: World) -> None:
    """By the id that it names; without its secrets (P8), and short enough not to be cut again."""
    async with world.running() as house:
        name = await cut(house)
        piece = await result(
            house, ("read_result", f'{{"id": "{name}", "offset": 595, "limit": 40}}'), "ada"
        )
        assert "characters 595 to 635 of " in piece
        assert "aaaaa needle [redacted] zzz" in piece
        found = await result(house, ("read_result", f'{{"id": "{name}", "word": "NEEDLE"}}'), "ada")
        assert "[offset 601]" in found
        most = await result(house, ("read_result", f'{{"id": "{name}"}}'), "ada")
        assert "read on with offset 700" in most
        assert "left out" not in most
    async with world.running() as house:
        again = await result(house, ("read_result", f'{{"id": "{name}"}}'), "ada")
        assert "characters 0 to 700" in again


@pytest.mark.parametrize(("who", "room"), [("ben", ""), ("ada", "room"), ("ben", "room")])
async def test_no_other_conversation_reads_it(world: World, who: str, room: str) -> None:
    """Whoever learns the id learns nothing by it, not even that it is one (P8)."""
    async with world.running() as house:
        name = await cut(house)
        told = await result(house, ("read_result", f'{{"id": "{name}"}}'), who, room)
        assert f"no result of this conversation is stored as `{name}`" in told
        assert "aaaa" not in told


async def test_a_new_conversation_does_not_read_it_either(world: World) -> None:
    """`/new` leaves behind what was said, and what was read."""
    async with world.running() as house:
        name = await cut(house)
        await house.say("/new")
        told = await result(house, ("read_result", f'{{"id": "{name}"}}'), "ada")
        assert "no result of this conversation" in told


async def test_what_is_switched_off_is_not_offered(world: World) -> None:
    """And a cut result doesn't send the model to a tool that isn't there."""
    off = ToolsSettings(
        attachments=AttachmentToolSettings(enabled=False),
        notes=NotesSettings(enabled=False),
        results=ResultsSettings(enabled=False),
    )
    world.configure(tools=off)
    offer(world)
    assert world.others == ()
    world.look.does = much
    async with world.running() as house:
        told = await result(house, ("look", "{}"), "ada")
        assert ("the whole is kept as" in told, "read on" in told) == (True, False)
