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


async def test_it_is_answered_in_order_in_every_chat_with_a_word_about_the_wait(
    tmp_path: Path,
) -> None:
    """The oldest first, and the model knows when it was written. S2-02, P1, P2."""
    async with bot(tmp_path, start=False) as here:
        here.telegram.ago = timedelta(hours=2)
        for word in ("one", "two", "three"):
            for who in (here.ann, here.bob):
                here.model.say(f"to {word} of {who}", key=f"{word} of {who.person.first_name}")
                who.says(f"{word} of {who.person.first_name}")
        here.mallory.says("hello?")
        await here.daemon.start()
        for who in (here.ann, here.bob):
            await here.until(lambda who=who: len(who.chat.texts) == 3)
            texts = [text.partition("\n\n") for text in who.chat.texts]
            assert [said for said, _, _ in texts] == [
                f"to {word} of {who}" for word in ("one", "two", "three")
            ]
            assert all(note.startswith("Answered 2 h") for _, _, note in texts)
        questions = [request.last_user for request in here.model.requests]
        assert len(questions) == 6
        assert all("before you read it]\n" in question for question in questions)
        assert here.mallory.chat.texts == []


async def test_a_group_that_becomes_a_supergroup_meanwhile_keeps_its_conversation(
    tmp_path: Path,
) -> None:
    """The two groups' updates come in one poll and are taken side by side. P2."""
    async with bot(tmp_path) as here:
        old = here.telegram.group("Team", here.ann)
        here.model.say("noted", key="remember")
        here.ann.says("@zero_bot remember: blue", chat=old)
        await here.expect(old, "noted")
        await here.daemon.terminate()
        for word in ("one", "two"):
            here.model.say(f"I see {word}", key=f"see {word}")
            here.ann.says(f"@zero_bot see {word}", chat=old)
        here.model.say("it is blue", key="colour")
        here.ann.upgrades(old)
        new = here.telegram.account.chats[old.upgraded_to]
        here.ann.says("@zero_bot which colour?", chat=new)
        await here.daemon.start()
        await here.until(lambda: any("it is blue" in text for text in new.texts))
        asked = [request for request in here.model.requests if "colour" in request.last_user]
        assert [len(one.messages) for one in asked] >= [4]


async def test_what_is_too_old_is_told_once_and_not_answered(tmp_path: Path) -> None:
    """Its writer hears of it in one sentence; a stranger hears nothing. S2-02, P4."""
    async with bot(tmp_path, start=False) as here:
        here.model.say("hello Ann", key="fresh")
        # Telegram itself would have forgotten them; a server of one's own need not.
        here.telegram.ago = timedelta(hours=30)
        old = [here.ann.says("old"), here.ann.says("older"), here.mallory.says("old")]
        here.telegram.ago = timedelta()
        fresh = here.ann.says("fresh")
        await here.daemon.start()
        await here.expect(here.ann.chat, TOO_OLD, "hello Ann")
        for said in (*old, fresh):
            await here.telegram.confirmed(said)
        assert [request.last_user for request in here.model.requests] == ["fresh"]
        assert here.mallory.chat.texts == []
