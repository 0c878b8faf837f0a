"""What was written while the daemon was down."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.journeys.telegram.bot import bot

pytestmark = pytest.mark.slow

TOO_OLD = (
    "What was written here more than 24 h ago reached me only now, and I leave it unanswered. "
    "Write it again if it still matters."
)


async def test_messages_are_answered_in_order_in_every_chat_with_a_note_about_the_wait(
    tmp_path: Path,
) -> None:
    """The oldest first, and the model knows when it was written. S2-02, P1, P2."""
    async with bot(tmp_path, start=False) as world:
        world.telegram.ago = timedelta(hours=2)
        for word in ("one", "two", "three"):
            for who in (world.ann, world.bob):
                world.model.say(f"to {word} of {who}", key=f"{word} of {who.person.first_name}")
                who.says(f"{word} of {who.person.first_name}")
        world.mallory.says("hello?")
        await world.daemon.start()
        for who in (world.ann, world.bob):
            await world.until(lambda who=who: len(who.chat.texts) == 3)
            texts = [text.partition("\n\n") for text in who.chat.texts]
            assert [text for text, _, _ in texts] == [
                f"to {word} of {who}" for word in ("one", "two", "three")
            ]
            assert all(note.startswith("Answered 2 h") for _, _, note in texts)
        questions = [request.last_user for request in world.model.requests]
        assert len(questions) == 6
        assert all("before you read it]\n" in question for question in questions)
        assert world.mallory.chat.texts == []


async def test_a_group_that_becomes_a_supergroup_meanwhile_keeps_its_conversation(
    tmp_path: Path,
) -> None:
    """The two groups' updates come in one poll and are taken side by side. P2."""
    async with bot(tmp_path) as world:
        old = world.telegram.group("Team", world.ann)
        world.model.say("noted", key="remember")
        world.ann.says("@zero_bot remember: blue", chat=old)
        await world.expect(old, "noted")
        await world.daemon.terminate()
        for word in ("one", "two"):
            world.model.say(f"I see {word}", key=f"see {word}")
            world.ann.says(f"@zero_bot see {word}", chat=old)
        world.model.say("it is blue", key="colour")
        world.ann.upgrades(old)
        new = world.telegram.account.chats[old.upgraded_to]
        world.ann.says("@zero_bot which colour?", chat=new)
        await world.daemon.start()
        await world.until(lambda: any("it is blue" in text for text in new.texts))
        requests = [request for request in world.model.requests if "colour" in request.last_user]
        assert [len(request.messages) for request in requests] >= [4]


async def test_a_message_that_is_too_old_gets_one_notice_and_no_answer(tmp_path: Path) -> None:
    """Its writer hears of it in one sentence; a stranger hears nothing. S2-02, P4."""
    async with bot(tmp_path, start=False) as world:
        world.model.say("hello Ann", key="fresh")
        # Telegram itself would have forgotten them; a server of one's own need not.
        world.telegram.ago = timedelta(hours=30)
        old = [world.ann.says("old"), world.ann.says("older"), world.mallory.says("old")]
        world.telegram.ago = timedelta()
        fresh = world.ann.says("fresh")
        await world.daemon.start()
        await world.expect(world.ann.chat, TOO_OLD, "hello Ann")
        for text in (*old, fresh):
            await world.telegram.confirmed(text)
        assert [request.last_user for request in world.model.requests] == ["fresh"]
        assert world.mallory.chat.texts == []
