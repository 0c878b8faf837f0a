"""Presses, forms and slash commands: who is told what, and when."""

import asyncio
from collections.abc import Mapping

import pytest

from channels.discord import cards, interactions
from channels.discord.emulator.server import Fault, UserAction
from tests.contract.channel_words import CARD, FIRST
from tests.unit.channels.discord.rig import Rig, rigged
from zeroclaw import (
    Address,
    Admission,
    Answered,
    ChannelUnavailable,
    Command,
    Envelope,
    Ignored,
    Language,
    Menu,
    MenuEntry,
    Pressed,
    Said,
)
from zeroclaw.errors import Refused

pytestmark = pytest.mark.slow

ONCE = cards.data(FIRST, "once")


class Door:
    """Says to each event what it is told to say."""

    def __init__(self, answer: Admission) -> None:
        self.answer = answer
        self.came: list[Envelope] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.fault: Exception | None = None
        self._more = asyncio.Condition()

    async def admit(self, envelope: Envelope) -> Admission:
        async with self._more:
            self.came.append(envelope)
            self._more.notify_all()
        await self.is_open.wait()
        if self.fault is not None:
            raise self.fault
        return self.answer

    async def heard(self, count: int) -> None:
        async with self._more:
            await self._more.wait_for(lambda: len(self.came) >= count)


def place(rig: Rig, channel: int) -> Address:
    return Address(channel="discord", account=str(rig.discord.bot), chat=str(channel))


async def asked(rig: Rig, door: Door) -> tuple[int, int]:
    """The channel and the message of a card that stands."""
    general = rig.discord.channel("general")
    async with rig.bot(admit=door.admit) as channel:
        ref = await channel.ask(place(rig, general), CARD)
    return general, int(ref.message)


async def test_a_press_works_after_a_restart() -> None:
    """Nothing of a card is remembered: its buttons say all (P5)."""
    door = Door(Answered(text="approved: `shell`"))
    async with rigged() as rig:
        general, card = await asked(rig, door)
        ann = rig.discord.person("ann")
        async with rig.bot(admit=door.admit):
            action = ann.presses(general, card, ONCE)
            answer = await action.answered()
    assert answer["type"] == 4
    assert answer["data"] == {
        "content": "approved: `shell`",
        "flags": 64,
        "allowed_mentions": {"parse": []},
    }
    [pressed] = door.came
    assert isinstance(pressed.body, Pressed)
    assert (pressed.body.approval, pressed.sender.id) == (FIRST, str(ann.id))


async def test_a_strangers_press_shows_nothing_and_a_strangers_command_is_not_answered() -> None:
    """They learn nothing; Discord itself says that the application did not respond (P4)."""
    door = Door(Ignored())
    async with rigged() as rig:
        general, card = await asked(rig, door)
        eve = rig.discord.person("eve")
        async with rig.bot(admit=door.admit):
            used = eve.uses(general, "stop")
            pressed = eve.presses(general, card, ONCE)
            assert await pressed.answered() == {"type": 6}
            await rig.clock.settle()
        assert used.answers == []
        assert len(rig.discord.from_bot(general)) == 1


async def test_a_forged_button_is_no_answer() -> None:
    """Of another shape, of a longer one, or on another bot's message."""
    door = Door(Ignored())
    async with rigged() as rig:
        general, card = await asked(rig, door)
        eve = rig.discord.person("eve")
        async with rig.bot(admit=door.admit):
            for odd in ("zc:a:z:approval-1", "zc:a:o:", "zc:w:approval-1", "zc:v:<@1>", "x" * 5000):
                eve.presses(general, card, odd)
            pressed = eve.presses(general, card, ONCE)
            await pressed.answered()
    assert len(door.came) == 1


async def test_a_denial_asks_for_its_reason_in_a_form_in_the_persons_language() -> None:
    door = Door(Answered(text="why is `shell` denied?", reply_wanted=True))
    async with rigged() as rig:
        general, card = await asked(rig, door)
        ann = rig.discord.person("ann")
        async with rig.bot(admit=door.admit):
            action = ann.presses(general, card, cards.data(FIRST, "deny_with_reason"))
            assert (await action.answered())["type"] == 9
            assert action.form["title"] == "why is shell denied?"
            door.answer = Answered(text="denied")
            denied = ann.submits(action, "too early")
            assert (await denied.answered())["type"] == 4
    body = door.came[-1].body
    assert isinstance(body, Pressed)
    assert (body.choice, body.reason) == ("deny", "too early")
    assert body.card is not None
    assert body.card.message == str(card)


@pytest.mark.parametrize("answer", [Answered(text="done"), Ignored()])
async def test_what_takes_long_is_confirmed_in_time_and_answered_later(answer: Admission) -> None:
    """Discord waits 3 s for the first word."""
    door = Door(answer)
    async with rigged() as rig:
        general, card = await asked(rig, door)
        ann = rig.discord.person("ann")
        async with rig.bot(admit=door.admit):
            door.is_open.clear()
            pressed = ann.presses(general, card, ONCE)
            await door.heard(1)
            await rig.clock.advance(interactions.DEFER_S)
            assert await pressed.answered() == {"type": 6}
            used = ann.uses(general, "stop")
            door.is_open.set()
            if isinstance(answer, Answered):
                await rig.discord.until_called("POST", r"/webhooks/")
                await used.answered()
    assert len(pressed.answers) == 1


async def test_a_slow_command_leaves_no_sign_that_something_is_to_follow() -> None:
    door = Door(Ignored())
    async with rigged() as rig:
        ann, general = rig.discord.person("ann"), rig.discord.channel("general")
        async with rig.bot(admit=door.admit):
            door.is_open.clear()
            used = ann.uses(general, "stop")
            await door.heard(1)
            await rig.clock.advance(interactions.DEFER_S)
            assert await used.answered() == {"type": 5, "data": {"flags": 64}}
            door.is_open.set()
            await rig.discord.until_called("DELETE", r"/messages/@original$")


async def test_slash_commands_and_questions_are_taken_and_a_question_is_shown() -> None:
    async with rigged() as rig:
        ann, general = rig.discord.person("ann"), rig.discord.channel("general")
        async with rig.bot():
            tool = ann.uses(general, "tool", arguments="shell {}")
            assert (await tool.answered())["data"] == {
                "content": "✅",
                "flags": 64,
                "allowed_mentions": {"parse": []},
            }
            question = ann.uses(ann.direct, "ask", question="what\n*is* @everyone?")
            shown = await question.answered()
    assert shown["type"] == 4
    assert shown["data"] == {
        "content": "> what\n> \\*is\\* \\@everyone?",
        "allowed_mentions": {"parse": []},
    }
    assert rig.bodies() == [
        Command(name="tool", rest="shell {}"),
        Said(text="what\n*is* @everyone?"),
    ]
    assert [envelope.address.direct for envelope in rig.desk.stored] == [False, True]


async def test_a_press_that_could_not_be_stored_is_tried_while_its_sender_may_wait() -> None:
    door = Door(Answered(text="done"))
    door.fault = ChannelUnavailable("the store is away")
    async with rigged() as rig:
        general, card = await asked(rig, door)
        ann = rig.discord.person("ann")
        async with rig.bot(admit=door.admit):
            ann.presses(general, card, ONCE)
            await rig.log.until("event_not_admitted")
            door.fault = None
            await rig.clock.advance(1)
            await door.heard(2)
            door.fault = Refused("never")
            lost = ann.presses(general, card, ONCE)
            await rig.log.until("event_not_admitted", 2)
            await rig.clock.advance(interactions.GIVE_UP_S + 2)
            await lost.answered()
    assert len(door.came) < 2 + 2 + interactions.GIVE_UP_S


async def test_a_receipt_is_shown_to_whoever_presses_it() -> None:
    door = Door(Ignored())
    async with rigged() as rig:
        general, card = await asked(rig, door)
        ann = rig.discord.person("ann")
        async with rig.bot(admit=door.admit):
            action = ann.presses(general, card, "zc:v:zc-receipt-1-abc")
            answer = await action.answered()
    data = answer["data"]
    assert isinstance(data, dict)
    assert (data["content"], data["flags"]) == ("`zc-receipt-1-abc`", 64)
    assert door.came == []


async def test_an_answer_that_fails_is_a_fact_and_no_more() -> None:
    """The token that answers an interaction is in no line of the log (P8)."""
    async with rigged() as rig:
        ann, general = rig.discord.person("ann"), rig.discord.channel("general")
        async with rig.bot():
            rig.discord.will(
                Fault(method="POST", path="/callback$", status=404, body={"code": 10062})
            )
            action = ann.uses(general, "stop")
            await rig.log.until("interaction_not_answered")
            again = ann.uses(general, "stop")
            await again.answered()
    assert not any(str(action.event["token"]) in fact for fact in rig.log.lines)


async def test_more_interactions_than_can_be_answered_are_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Memory is bounded; Discord tells the person that it failed (P9)."""
    monkeypatch.setattr(interactions, "MAX_CONCURRENT", 2)
    door = Door(Ignored())
    async with rigged() as rig:
        ann, general = rig.discord.person("ann"), rig.discord.channel("general")
        async with rig.bot(admit=door.admit):
            door.is_open.clear()
            actions: list[UserAction] = [ann.uses(general, "stop") for _ in range(3)]
            await rig.log.until("lane_overflowed")
            door.is_open.set()
    assert len(actions) == 3
    assert len(door.came) == 1


async def test_one_persons_flood_costs_nobody_else_their_press() -> None:
    """A stranger can press and type faster than anybody is answered (P9)."""
    door = Door(Ignored())
    async with rigged() as rig:
        ann, olga = rig.discord.person("ann"), rig.discord.person("olga")
        general = rig.discord.channel("general")
        async with rig.bot(admit=door.admit):
            door.is_open.clear()
            for _ in range(interactions.MAX_CONCURRENT):
                ann.uses(general, "stop")
            await rig.log.until("lane_overflowed")
            olga.uses(general, "status")
            await door.heard(2)
            door.is_open.set()
    assert {one.sender.id for one in door.came[:2]} == {str(ann.id), str(olga.id)}


EN_DE: Mapping[Language, str] = {"en": "this list", "de": "diese Liste"}


async def test_the_menu_is_set_in_both_languages_once_and_a_refusal_is_left() -> None:
    menu = Menu(
        everyone=(MenuEntry(name="help", does=EN_DE),),
        ask={"en": "ask me", "de": "mich fragen"},
        typed={"en": "more", "de": "mehr"},
    )
    async with rigged() as rig:
        path = r"/applications/\d+/commands"
        rig.menu = menu
        rig.discord.will(Fault(method="GET", path=path, status=500, body={}))
        async with rig.bot():
            await rig.log.until("menu_not_set")
        async with rig.bot():
            await rig.log.until("menu_set")
        async with rig.bot():
            await rig.discord.until_called("GET", path, 3)
            await rig.clock.settle()
    commands = [one for scope in rig.discord.backend.commands.values() for one in scope.values()]
    assert [command["name"] for command in commands] == ["ask", "help"]
    assert commands[0]["options"][0]["name"] == "question"
    assert commands[1]["description_localizations"] == {"de": "diese Liste"}
    puts = [method for method, _ in rig.discord.calls if method == "PUT"]
    assert len(puts) == 1
