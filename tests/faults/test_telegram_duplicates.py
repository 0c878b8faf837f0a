"""Whatever Telegram delivers again, and however, is answered once; what waited there is answered.

An update can come again because its confirmation was lost, twice in one batch, or under another
number, and after a week of silence numbers begin anywhere.
"""

from pathlib import Path

import pytest

from channels.telegram.emulator.people import UserAction
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow


def comes_twice(world: Bot, *actions: UserAction) -> None:
    """Let updates stand twice in the next batch, each pair side by side."""
    waiting = world.telegram.account.updates.waiting
    for action in actions:
        waiting.insert(waiting.index(action.update), action.update)


async def comes_again(world: Bot, *actions: UserAction) -> None:
    """Deliver updates again, as themselves and under new numbers, and wait for their confirmation."""
    for action in actions:
        world.telegram.redeliver(action)
    new = [world.telegram.redeliver(action, as_new=True) for action in actions]
    again = [*(action.update for action in actions), *new]
    await world.until(lambda: all(update.confirmed for update in again))


async def test_any_repeated_event_acts_once(tmp_path: Path) -> None:
    """Messages, commands, edits, files and presses: in one batch, later, after a kill. P1, S2-02."""
    async with bot(tmp_path) as world:
        world.model.say("Answered.", key="hello", times=None)
        world.model.call("knock", {"what": "on wood"}, key="knock", round=0, times=None)
        world.model.say("Knocked.", key="knock", round=1, times=None)
        world.model.say("Read.", key="milk", times=None)
        world.telegram.hold()
        actions = [
            world.ann.says("hello"),
            world.bob.says("please knock"),
            world.olga.says("/whoami"),
            world.ann.sends("document", b"milk", name="a.txt", caption="what is milk"),
        ]
        comes_twice(world, *actions)
        world.telegram.release()
        card = await world.card()
        world.telegram.hold()
        actions.append(world.olga.presses(card, "Approve once"))
        comes_twice(world, actions[-1])
        world.telegram.release()
        await world.expect(world.ann.chat, "Answered.", "Read.")
        await world.until(lambda: "Knocked." in world.bob.chat.texts)
        actions.append(world.ann.edits(world.ann.chat.messages[0], "good day again"))
        await world.telegram.confirmed(*actions)
        requests_before, texts_before = len(world.model.requests), len(world.olga.chat.texts)
        await comes_again(world, *actions)
        assert await world.daemon.terminate() == 0
        await world.daemon.start()
        await comes_again(world, *actions)
        world.model.say("And once more.", key="that was all")
        world.ann.says("that was all")
        await world.expect(world.ann.chat, "Answered.", "Read.", "And once more.")
        assert world.bench.ran("knock") == ["on wood"]
        assert len(world.olga.chat.texts) == texts_before
        assert len(world.model.requests) == requests_before + 1
        assert str(world.model.requests[-1].messages).count("good day again") == 1


async def test_equal_numbers_of_different_messages_are_no_repeats(tmp_path: Path) -> None:
    """Supergroups number their messages alike, and an update's number may come back after a week.

    "If there are no new updates for at least a week, then identifier of the next update will be
    chosen randomly instead of sequentially" (Bot API, Update, read 2026-11).
    """
    async with bot(tmp_path) as world:
        teams = [world.telegram.supergroup(f"Team {name}", world.ann) for name in ("A", "B")]
        world.model.say("hello", key="hello", times=None)
        actions = [world.ann.says("@zero_bot hello", chat=team) for team in teams]
        assert teams[0].messages[0].id == teams[1].messages[0].id
        for team in teams:
            await world.expect(team, "hello")
        await world.telegram.confirmed(*actions)
        world.telegram.account.updates.last_id = actions[0].update.id - 1
        late = world.ann.says("a week later")
        assert late.update.id == actions[0].update.id
        await world.expect(world.ann.chat, "a week later")
        await world.telegram.confirmed(late)


async def test_messages_while_it_was_down_are_answered_oldest_first(tmp_path: Path) -> None:
    """More than one batch holds, from several chats, with an edit and a command among it. S2-02."""
    async with bot(tmp_path, channel={"stream": False}) as world:
        world.model.say("Up.", key="first")
        world.ann.says("first")
        await world.expect(world.ann.chat, "Up.")
        await world.daemon.kill()
        people = (world.ann, world.bob, world.olga)
        for number in range(50):
            for person in people:
                person.says(f"message {number} of {person!r}")
        worse = world.ann.says("worse")
        world.bob.says("/whoami")
        world.ann.edits(world.ann.chat.messages[-1], "better")
        assert worse.update.id > world.telegram.account.updates.waiting[0].id + 100
        await world.daemon.start()
        await world.until(lambda: "better" in world.ann.chat.texts)
        for person in people:
            expected = [f"message {number} of {person!r}" for number in range(50)]
            await world.until(
                lambda person=person, expected=expected: (
                    [text for text in person.chat.texts if "message" in text] == expected
                )
            )
        assert not any("worse" in text for text in world.ann.chat.texts)
        assert not world.telegram.account.updates.waiting
