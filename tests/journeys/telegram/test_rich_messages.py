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


async def test_a_table_is_one_while_it_is_written_and_when_it_stands(tmp_path: Path) -> None:
    """Before its head is whole it is a text; in the end one message, never edited. S2-06, P6."""
    async with bot(tmp_path) as here:
        first, second = here.model.gate(), here.model.gate()
        here.model.say("Prices:\n\n", first, HEAD.removeprefix("Prices:\n\n"), ROW, second, LAST)
        here.ann.says("prices")
        await here.until(lambda: here.telegram.draft(here.ann.chat) == "Prices:")
        first.open()
        await here.until(
            lambda: here.telegram.draft(here.ann.chat) == "Prices:\n\nwhat | much\nmilk | 1"
        )
        second.open()
        await here.expect(here.ann.chat, SHOWN)
        assert [message.texts for message in here.ann.chat.from_bot] == [[SHOWN]]
        assert is_rich(here.ann.chat) == [True]
        assert here.telegram.draft(here.ann.chat) is None


async def test_in_a_group_a_message_grows_into_one_with_a_table(tmp_path: Path) -> None:
    """S2-06."""
    async with bot(tmp_path) as here:
        team = here.telegram.supergroup("Team", here.ann)
        gate = here.model.gate()
        here.model.say("Prices:\n\n", gate, TABLE.removeprefix("Prices:\n\n"))
        here.ann.says("@zero_bot prices", chat=team)
        await here.until(lambda: team.texts == ["Prices:"])
        gate.open()
        await here.expect(team, SHOWN)
        assert is_rich(team) == [True]
        assert here.telegram.called(SEND, DRAFT) == []


async def test_who_answers_a_table_is_understood(tmp_path: Path) -> None:
    """What is quoted has no text; its words travel all the same (S2-03)."""
    async with bot(tmp_path) as here:
        here.model.say(TABLE)
        here.ann.says("prices")
        await here.expect(here.ann.chat, SHOWN)
        here.model.say("It is.", key="in reply to what you wrote")
        here.ann.says("is that dear?", reply_to=here.ann.chat.from_bot[0])
        await here.expect(here.ann.chat, SHOWN, "It is.")
        assert "> milk | 1" in str(here.model.requests[-1])


async def test_a_server_that_knows_no_rich_messages_is_asked_once(tmp_path: Path) -> None:
    """For as long as the daemon runs; every answer comes, with its table in signs. S2-06."""
    async with bot(tmp_path) as here:
        here.telegram.without(SEND, DRAFT)
        for number in (1, 2):
            gate = here.model.gate()
            here.model.say(HEAD, ROW, gate, LAST, key=f"prices {number}")
            here.ann.says(f"prices {number}")
            await here.until(lambda: "milk" in (here.telegram.draft(here.ann.chat) or ""))
            gate.open()
            await here.expect(here.ann.chat, *[SIGNS] * number)
        assert len(here.telegram.called(SEND, DRAFT)) == 1


async def test_a_table_that_is_refused_comes_in_signs_and_the_next_one_as_one(
    tmp_path: Path,
) -> None:
    """S2-06."""
    async with bot(tmp_path, channel={"stream": False}) as here:
        here.telegram.will(SEND, NOT_THIS)
        here.model.say(TABLE, key="one")
        here.ann.says("one")
        await here.expect(here.ann.chat, SIGNS)
        here.model.say(TABLE, key="two")
        here.ann.says("two")
        await here.expect(here.ann.chat, SIGNS, SHOWN)


async def test_refused_in_every_form_it_comes_as_plain_text(tmp_path: Path) -> None:
    async with bot(tmp_path) as here:
        markup = Refuse(code=400, description="Bad Request: can't parse entities: no")
        here.telegram.will(DRAFT, NOT_THIS, times=None)
        here.telegram.will(SEND, NOT_THIS, times=None)
        here.telegram.will(
            "sendMessage",
            markup,
            times=None,
            when=lambda call: "bold" in call.parameters.text("entities"),
        )
        here.model.say(f"**Now**\n\n{TABLE}")
        here.ann.says("prices")
        await here.expect(here.ann.chat, f"Now\n\n{SIGNS}")


@pytest.mark.parametrize("fault", [Lose(carried_out=True), BadGateway(carried_out=True)], ids=repr)
async def test_one_whose_answer_was_lost_stands_once(
    tmp_path: Path, fault: Lose | BadGateway
) -> None:
    """It is found by its number, as it stands. P1."""
    async with bot(tmp_path) as here:
        here.telegram.will(SEND, fault)
        here.model.say(TABLE)
        here.ann.says("prices")
        await here.expect(here.ann.chat, SHOWN)
        here.model.say("bye", key="bye")
        here.ann.says("bye")
        await here.expect(here.ann.chat, SHOWN, "bye")
        assert len(here.telegram.called(SEND)) == 1
        assert REPEAT not in here.ann.chat.ever


async def test_killed_between_the_send_and_its_record_it_stands_once(tmp_path: Path) -> None:
    """The next life finds it by its number. P1."""
    async with bot(tmp_path) as here:
        hang = Hang(carried_out=True)
        here.telegram.will(SEND, hang)
        here.model.say(TABLE)
        here.ann.says("prices")
        await hang.reached()
        await here.daemon.kill()
        await here.daemon.start()
        await here.expect(here.ann.chat, SHOWN)
        here.model.say("bye", key="bye")
        here.ann.says("bye")
        await here.expect(here.ann.chat, SHOWN, "bye")
        assert is_rich(here.ann.chat) == [True, False]
        assert REPEAT not in here.ann.chat.ever


async def test_where_it_is_wished_a_table_is_drawn_in_signs(tmp_path: Path) -> None:
    """`rich = false`, for who has an app that shows no rich messages."""
    async with bot(tmp_path, channel={"rich": False}) as here:
        here.model.say(TABLE)
        here.ann.says("prices")
        await here.expect(here.ann.chat, SIGNS)
        assert here.telegram.called(SEND, DRAFT) == []
