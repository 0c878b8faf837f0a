"""The bot sends files of its workspace: byte for byte, once, in order, whatever happens on the way."""

from pathlib import Path
from typing import cast

import pytest

from channels.telegram.emulator import Chat, Hang, Lose, Message, TooMany
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

SUMS = "name;sum\nÄnne;3,50 €\n"


def plan(here: Bot, *names: str, caption: str = "here") -> None:
    """Have the model write files, send them in one go, and say so."""
    here.model.calls(*[("write_file", {"path": name, "content": SUMS}) for name in names], round=0)
    here.model.calls(
        *[("send_file", {"path": name, "caption": f"{caption} {name}"}) for name in names], round=1
    )
    here.model.say("There they are.", round=2)


def documents(chat: Chat) -> list[Message]:
    return [message for message in chat.from_bot if "document" in message.media]


def content(here: Bot, message: Message) -> bytes:
    document = cast("dict[str, str]", message.media["document"])
    return here.telegram.account.files.by_id[document["file_id"]].content


def captions(chat: Chat) -> list[str]:
    return [document.text for document in documents(chat)]


async def test_files_arrive_byte_for_byte_in_order_and_once(tmp_path: Path) -> None:
    """Each with its caption; the answer's last word comes after them (P1)."""
    async with bot(tmp_path, autonomy="full") as here:
        plan(here, "a.csv", "b.csv")
        here.telegram.will("sendDocument", TooMany(retry_after_s=1))
        here.ann.says("make them")
        await here.until(lambda: "There they are." in here.ann.chat.texts)
        await here.until(lambda: len(documents(here.ann.chat)) == 2)
        assert captions(here.ann.chat) == ["here a.csv", "here b.csv"]
        for document in documents(here.ann.chat):
            assert content(here, document) == SUMS.encode()
        await here.restart()
        here.model.say("Nothing more.", key="more")
        here.ann.says("more?")
        await here.until(lambda: "Nothing more." in here.ann.chat.texts)
        assert len(documents(here.ann.chat)) == 2


@pytest.mark.parametrize("carried_out", [True, False])
async def test_a_file_whose_answer_is_lost_stands_once(tmp_path: Path, carried_out: bool) -> None:
    """It is looked for by its caption (P1)."""
    async with bot(tmp_path, autonomy="full") as here:
        plan(here, "a.csv")
        here.telegram.will("sendDocument", Lose(carried_out=carried_out))
        here.ann.says("make it")
        await here.until(lambda: "There they are." in here.ann.chat.texts)
        assert captions(here.ann.chat) == ["here a.csv"]


async def test_killed_between_the_sending_and_its_record_a_file_stands_once(tmp_path: Path) -> None:
    """The next process looks for it before it sends anything (P1)."""
    async with bot(tmp_path, autonomy="full") as here:
        plan(here, "a.csv")
        hang = Hang(carried_out=True)
        here.telegram.will("sendDocument", hang)
        here.ann.says("make it")
        await hang.reached()
        await here.daemon.kill()
        hang.release()
        here.model.say("There they are.", round=2)
        await here.daemon.start()
        await here.until(lambda: "There they are." in here.ann.chat.texts)
        assert captions(here.ann.chat) == ["here a.csv"]


async def test_in_a_topic_of_a_group_a_file_is_asked_for_and_answers_who_wished_it(
    tmp_path: Path,
) -> None:
    """Everybody there gets it, so an operator is asked first, and it stands in the topic."""
    async with bot(tmp_path, autonomy="readonly") as here:
        forum = here.telegram.supergroup("Forum", here.ann, is_forum=True)
        topic = here.telegram.topic(forum, "One")
        here.model.call("write_file", {"path": "a.csv", "content": SUMS}, round=0, key="make")
        here.model.say("I may not.", round=1, key="make")
        here.ann.says("@zero_bot make", chat=forum, thread=topic.id)
        await here.until(lambda: "I may not." in forum.texts)
        [workspace] = (tmp_path / "workspaces").iterdir()
        (workspace / "a.csv").write_bytes(SUMS.encode())
        here.model.call("send_file", {"path": "a.csv"}, round=0, key="send")
        here.model.say("There it is.", round=1, key="send")
        here.ann.says("@zero_bot send", chat=forum, thread=topic.id)
        wish = forum.messages[-1]
        card = await here.card()
        assert "send a.csv to this chat" in card.text
        here.olga.presses(card, "Approve once")
        [sent] = await here.until(lambda: documents(forum))
        assert (sent.thread, sent.reply_to) == (topic.id, wish)
        assert content(here, sent) == SUMS.encode()
