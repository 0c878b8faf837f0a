"""The bot sends files of its workspace: byte for byte, once, in order, through every fault."""

from pathlib import Path
from typing import cast

import pytest

from channels.telegram.emulator import Chat, Hang, Lose, Message, TooMany
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

SUMS = "name;sum\nÄnne;3,50 €\n"


def plan(world: Bot, *names: str, caption: str = "here") -> None:
    """Have the model write files, send them in one go, and say so."""
    world.model.calls(*[("write_file", {"path": name, "content": SUMS}) for name in names], round=0)
    world.model.calls(
        *[("send_file", {"path": name, "caption": f"{caption} {name}"}) for name in names], round=1
    )
    world.model.say("There they are.", round=2)


def documents(chat: Chat) -> list[Message]:
    return [message for message in chat.from_bot if "document" in message.media]


def content(world: Bot, message: Message) -> bytes:
    document = cast("dict[str, str]", message.media["document"])
    return world.telegram.account.files.by_id[document["file_id"]].content


def captions(chat: Chat) -> list[str]:
    return [document.text for document in documents(chat)]


async def test_files_arrive_byte_for_byte_in_order_and_once(tmp_path: Path) -> None:
    """Each with its caption; the answer's last word comes after them (P1)."""
    async with bot(tmp_path, autonomy="full") as world:
        plan(world, "a.csv", "b.csv")
        world.telegram.will("sendDocument", TooMany(retry_after_s=1))
        world.ann.says("make them")
        await world.until(lambda: "There they are." in world.ann.chat.texts)
        await world.until(lambda: len(documents(world.ann.chat)) == 2)
        assert captions(world.ann.chat) == ["here a.csv", "here b.csv"]
        for document in documents(world.ann.chat):
            assert content(world, document) == SUMS.encode()
        await world.restart()
        world.model.say("Nothing more.", key="more")
        world.ann.says("more?")
        await world.until(lambda: "Nothing more." in world.ann.chat.texts)
        assert len(documents(world.ann.chat)) == 2


@pytest.mark.parametrize("carried_out", [True, False])
async def test_a_file_whose_answer_is_lost_stands_once(tmp_path: Path, carried_out: bool) -> None:
    """It is looked up by its caption (P1)."""
    async with bot(tmp_path, autonomy="full") as world:
        plan(world, "a.csv")
        world.telegram.will("sendDocument", Lose(carried_out=carried_out))
        world.ann.says("make it")
        await world.until(lambda: "There they are." in world.ann.chat.texts)
        assert captions(world.ann.chat) == ["here a.csv"]


async def test_killed_between_the_sending_and_its_record_a_file_stands_once(tmp_path: Path) -> None:
    """The next process looks for it before it sends anything (P1)."""
    async with bot(tmp_path, autonomy="full") as world:
        plan(world, "a.csv")
        hang = Hang(carried_out=True)
        world.telegram.will("sendDocument", hang)
        world.ann.says("make it")
        await hang.reached()
        await world.daemon.kill()
        hang.release()
        world.model.say("There they are.", round=2)
        await world.daemon.start()
        await world.until(lambda: "There they are." in world.ann.chat.texts)
        assert captions(world.ann.chat) == ["here a.csv"]


async def test_in_a_topic_of_a_group_a_file_is_asked_for_and_answers_who_wished_it(
    tmp_path: Path,
) -> None:
    """All members get it, so an operator approves it first, and it stands in the topic."""
    async with bot(tmp_path, autonomy="readonly") as world:
        forum = world.telegram.supergroup("Forum", world.ann, is_forum=True)
        topic = world.telegram.topic(forum, "One")
        world.model.call("write_file", {"path": "a.csv", "content": SUMS}, round=0, key="make")
        world.model.say("I may not.", round=1, key="make")
        world.ann.says("@zero_bot make", chat=forum, thread=topic.id)
        await world.until(lambda: "I may not." in forum.texts)
        [workspace] = (tmp_path / "workspaces").iterdir()
        (workspace / "a.csv").write_bytes(SUMS.encode())
        world.model.call("send_file", {"path": "a.csv"}, round=0, key="send")
        world.model.say("There it is.", round=1, key="send")
        world.ann.says("@zero_bot send", chat=forum, thread=topic.id)
        wish = forum.messages[-1]
        card = await world.card()
        assert "send a.csv to this chat" in card.text
        world.olga.presses(card, "Approve once")
        [sent] = await world.until(lambda: documents(forum))
        assert (sent.thread, sent.reply_to) == (topic.id, wish)
        assert content(world, sent) == SUMS.encode()
