"""Whatever Telegram delivers again, and however, is answered once; what waited there is answered.

An update can come again because its confirmation was lost, twice in one batch, or under another
number, and after a week of silence numbers begin anywhere.
"""

from pathlib import Path

import pytest

from channels.telegram.emulator.people import Deed
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow


def comes_twice(here: Bot, *deeds: Deed) -> None:
    """Let updates stand twice in the next batch, each pair side by side."""
    waiting = here.telegram.account.updates.waiting
    for deed in deeds:
        waiting.insert(waiting.index(deed.update), deed.update)


async def comes_again(here: Bot, *deeds: Deed) -> None:
    """Deliver updates again, as themselves and under new numbers, and wait for their confirmation."""
    for deed in deeds:
        here.telegram.redeliver(deed)
    new = [here.telegram.redeliver(deed, as_new=True) for deed in deeds]
    again = [*(deed.update for deed in deeds), *new]
    await here.until(lambda: all(one.confirmed for one in again))


async def test_whatever_comes_again_acts_once(tmp_path: Path) -> None:
    """Messages, commands, edits, files and presses: in one batch, later, after a kill. P1, S2-02."""
    async with bot(tmp_path) as here:
        here.model.say("Answered.", key="hello", times=None)
        here.model.call("knock", {"what": "on wood"}, key="knock", round=0, times=None)
        here.model.say("Knocked.", key="knock", round=1, times=None)
        here.model.say("Read.", key="milk", times=None)
        here.telegram.hold()
        deeds = [
            here.ann.says("hello"),
            here.bob.says("please knock"),
            here.olga.says("/whoami"),
            here.ann.sends("document", b"milk", name="a.txt", caption="what is milk"),
        ]
        comes_twice(here, *deeds)
        here.telegram.release()
        card = await here.card()
        here.telegram.hold()
        deeds.append(here.olga.presses(card, "Approve once"))
        comes_twice(here, deeds[-1])
        here.telegram.release()
        await here.expect(here.ann.chat, "Answered.", "Read.")
        await here.until(lambda: "Knocked." in here.bob.chat.texts)
        deeds.append(here.ann.edits(here.ann.chat.messages[0], "good day again"))
        await here.telegram.confirmed(*deeds)
        asked, told = len(here.model.requests), len(here.olga.chat.texts)
        await comes_again(here, *deeds)
        assert await here.daemon.terminate() == 0
        await here.daemon.start()
        await comes_again(here, *deeds)
        here.model.say("And once more.", key="that was all")
        here.ann.says("that was all")
        await here.expect(here.ann.chat, "Answered.", "Read.", "And once more.")
        assert here.bench.ran("knock") == ["on wood"]
        assert len(here.olga.chat.texts) == told
        assert len(here.model.requests) == asked + 1
        assert str(here.model.requests[-1].messages).count("good day again") == 1


async def test_equal_numbers_of_different_messages_are_no_repeats(tmp_path: Path) -> None:
    """Supergroups number their messages alike, and an update's number may come back after a week.

    "If there are no new updates for at least a week, then identifier of the next update will be
    chosen randomly instead of sequentially" (Bot API, Update, read 2026-11).
    """
    async with bot(tmp_path) as here:
        teams = [here.telegram.supergroup(f"Team {name}", here.ann) for name in ("A", "B")]
        here.model.say("hello", key="hello", times=None)
        deeds = [here.ann.says("@zero_bot hello", chat=team) for team in teams]
        assert teams[0].messages[0].id == teams[1].messages[0].id
        for team in teams:
            await here.expect(team, "hello")
        await here.telegram.confirmed(*deeds)
        here.telegram.account.updates.last_id = deeds[0].update.id - 1
        late = here.ann.says("a week later")
        assert late.update.id == deeds[0].update.id
        await here.expect(here.ann.chat, "a week later")
        await here.telegram.confirmed(late)


async def test_what_waited_while_it_was_down_is_answered_oldest_first(tmp_path: Path) -> None:
    """More than one batch holds, from several chats, with an edit and a command among it. S2-02."""
    async with bot(tmp_path, channel={"stream": False}) as here:
        here.model.say("Up.", key="first")
        here.ann.says("first")
        await here.expect(here.ann.chat, "Up.")
        await here.daemon.kill()
        people = (here.ann, here.bob, here.olga)
        for number in range(50):
            for one in people:
                one.says(f"message {number} of {one!r}")
        worse = here.ann.says("worse")
        here.bob.says("/whoami")
        here.ann.edits(here.ann.chat.messages[-1], "better")
        assert worse.update.id > here.telegram.account.updates.waiting[0].id + 100
        await here.daemon.start()
        await here.until(lambda: "better" in here.ann.chat.texts)
        for one in people:
            wanted = [f"message {number} of {one!r}" for number in range(50)]
            await here.until(
                lambda one=one, wanted=wanted: (
                    [text for text in one.chat.texts if "message" in text] == wanted
                )
            )
        assert not any("worse" in text for text in here.ann.chat.texts)
        assert not here.telegram.account.updates.waiting
