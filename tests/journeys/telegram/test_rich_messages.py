"""An answer with a table is a rich message, seen while it is written, and stands once."""

from pathlib import Path

import pytest

from channels.telegram.emulator import BadGateway, Chat, Hang, Lose, Refuse
from channels.telegram.render import markdown
from tests.faults.promises import REPEAT
from tests.journeys.telegram.bot import bot

pytestmark = pytest.mark.slow

SEND, DRAFT, EDIT = "sendRichMessage", "sendRichMessageDraft", "editMessageText"
HEAD, ROW, LAST = "Prices:\n\n| what | much |\n|---|--:|\n", "| milk | 1 |\n", "| bread | 2 |\n"
TABLE = f"{HEAD}{ROW}{LAST}"
SHOWN = "Prices:\n\nwhat | much\nmilk | 1\nbread | 2"
SIGNS = markdown(TABLE).plain
NOT_THIS = Refuse(code=400, description="Bad Request: RICH_MESSAGE_CONTENT_REQUIRED")


def is_rich(chat: Chat) -> list[bool]:
    return [message.versions[-1].rich is not None for message in chat.from_bot]


async def test_a_table_is_shown_as_one_while_it_is_written_and_afterwards(tmp_path: Path) -> None:
    """Before its head is whole it is a text; in the end one message, never edited. S2-06, P6."""
    async with bot(tmp_path) as world:
        first, second = world.model.gate(), world.model.gate()
        world.model.say("Prices:\n\n", first, HEAD.removeprefix("Prices:\n\n"), ROW, second, LAST)
        world.ann.says("prices")
        await world.until(lambda: world.telegram.draft(world.ann.chat) == "Prices:")
        first.open()
        await world.until(
            lambda: world.telegram.draft(world.ann.chat) == "Prices:\n\nwhat | much\nmilk | 1"
        )
        second.open()
        await world.expect(world.ann.chat, SHOWN)
        assert [message.texts for message in world.ann.chat.from_bot] == [[SHOWN]]
        assert is_rich(world.ann.chat) == [True]
        assert world.telegram.draft(world.ann.chat) is None


async def test_in_a_group_a_message_grows_into_one_with_a_table(tmp_path: Path) -> None:
    """S2-06."""
    async with bot(tmp_path) as world:
        team = world.telegram.supergroup("Team", world.ann)
        gate = world.model.gate()
        world.model.say("Prices:\n\n", gate, TABLE.removeprefix("Prices:\n\n"))
        world.ann.says("@zero_bot prices", chat=team)
        await world.until(lambda: team.texts == ["Prices:"])
        gate.open()
        await world.expect(team, SHOWN)
        assert is_rich(team) == [True]
        assert world.telegram.called(SEND, DRAFT) == []


async def test_who_answers_a_table_is_understood(tmp_path: Path) -> None:
    """What is quoted has no text; its words travel all the same (S2-03)."""
    async with bot(tmp_path) as world:
        world.model.say(TABLE)
        world.ann.says("prices")
        await world.expect(world.ann.chat, SHOWN)
        world.model.say("It is.", key="in reply to what you wrote")
        world.ann.says("is that dear?", reply_to=world.ann.chat.from_bot[0])
        await world.expect(world.ann.chat, SHOWN, "It is.")
        assert "> milk | 1" in str(world.model.requests[-1])


async def test_a_server_that_knows_no_rich_messages_is_asked_once(tmp_path: Path) -> None:
    """For as long as the daemon runs; every answer comes, with its table in signs. S2-06."""
    async with bot(tmp_path) as world:
        world.telegram.without(SEND, DRAFT)
        for number in (1, 2):
            gate = world.model.gate()
            world.model.say(HEAD, ROW, gate, LAST, key=f"prices {number}")
            world.ann.says(f"prices {number}")
            await world.until(lambda: "milk" in (world.telegram.draft(world.ann.chat) or ""))
            gate.open()
            await world.expect(world.ann.chat, *[SIGNS] * number)
        assert len(world.telegram.called(SEND, DRAFT)) == 1


async def test_a_table_that_is_refused_comes_in_signs_and_the_next_one_as_one(
    tmp_path: Path,
) -> None:
    """S2-06."""
    async with bot(tmp_path, channel={"stream": False}) as world:
        world.telegram.will(SEND, NOT_THIS)
        world.model.say(TABLE, key="one")
        world.ann.says("one")
        await world.expect(world.ann.chat, SIGNS)
        world.model.say(TABLE, key="two")
        world.ann.says("two")
        await world.expect(world.ann.chat, SIGNS, SHOWN)


async def test_refused_in_every_form_it_comes_as_plain_text(tmp_path: Path) -> None:
    async with bot(tmp_path) as world:
        markup = Refuse(code=400, description="Bad Request: can't parse entities: no")
        world.telegram.will(DRAFT, NOT_THIS, times=None)
        world.telegram.will(SEND, NOT_THIS, times=None)
        world.telegram.will(
            "sendMessage",
            markup,
            times=None,
            when=lambda call: "bold" in call.parameters.text("entities"),
        )
        world.model.say(f"**Now**\n\n{TABLE}")
        world.ann.says("prices")
        await world.expect(world.ann.chat, f"Now\n\n{SIGNS}")


@pytest.mark.parametrize("fault", [Lose(carried_out=True), BadGateway(carried_out=True)], ids=repr)
async def test_a_table_whose_answer_was_lost_stands_once(
    tmp_path: Path, fault: Lose | BadGateway
) -> None:
    """It is found by its number, as it stands. P1."""
    async with bot(tmp_path) as world:
        world.telegram.will(SEND, fault)
        world.model.say(TABLE)
        world.ann.says("prices")
        await world.expect(world.ann.chat, SHOWN)
        world.model.say("bye", key="bye")
        world.ann.says("bye")
        await world.expect(world.ann.chat, SHOWN, "bye")
        assert len(world.telegram.called(SEND)) == 1
        assert REPEAT not in world.ann.chat.ever


async def test_killed_between_the_send_and_its_record_it_stands_once(tmp_path: Path) -> None:
    """The next life finds it by its number. P1."""
    async with bot(tmp_path) as world:
        hang = Hang(carried_out=True)
        world.telegram.will(SEND, hang)
        world.model.say(TABLE)
        world.ann.says("prices")
        await hang.reached()
        await world.daemon.kill()
        await world.daemon.start()
        await world.expect(world.ann.chat, SHOWN)
        world.model.say("bye", key="bye")
        world.ann.says("bye")
        await world.expect(world.ann.chat, SHOWN, "bye")
        assert is_rich(world.ann.chat) == [True, False]
        assert REPEAT not in world.ann.chat.ever


async def test_where_it_is_wished_a_table_is_drawn_in_signs(tmp_path: Path) -> None:
    """`rich = false`, for who has an app that shows no rich messages."""
    async with bot(tmp_path, channel={"rich": False}) as world:
        world.model.say(TABLE)
        world.ann.says("prices")
        await world.expect(world.ann.chat, SIGNS)
        assert world.telegram.called(SEND, DRAFT) == []
