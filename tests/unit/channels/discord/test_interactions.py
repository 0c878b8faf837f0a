"""Presses, forms and slash commands: who gets which answer, and when."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import pytest

from channels.discord import cards, interactions
from channels.discord.emulator.server import Fault, Person, UserAction
from tests.contract.channel_words import CARD, FIRST
from tests.unit.channels.discord.rig import Rig, bot_for_ann, rig_for_ann, rigged
from zeroclaw import (
    Accepted,
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
    replace,
)
from zeroclaw.errors import Refused

pytestmark = pytest.mark.slow

ONCE = cards.data(FIRST, "once")


class RecordingIngress:
    """An ingress that records events, and gives each the same answer."""

    def __init__(self, answer: Admission) -> None:
        self.answer = answer
        self.envelopes: list[Envelope] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.fault: Exception | None = None
        self._more = asyncio.Condition()

    async def admit(self, envelope: Envelope) -> Admission:
        async with self._more:
            self.envelopes.append(envelope)
            self._more.notify_all()
        await self.is_open.wait()
        if self.fault is not None:
            raise self.fault
        return self.answer

    async def received(self, count: int) -> None:
        async with self._more:
            await self._more.wait_for(lambda: len(self.envelopes) >= count)


def address_of(rig: Rig, channel: int) -> Address:
    return Address(channel="discord", account=str(rig.discord.bot), chat=str(channel))


@asynccontextmanager
async def bot_of_card(ingress: RecordingIngress) -> AsyncGenerator[tuple[Rig, Person, int, int]]:
    """A bot that was restarted since it posted a card, Ann, the card's channel and message."""
    async with rig_for_ann() as (rig, ann, general):
        async with rig.bot(admit=ingress.admit) as channel:
            ref = await channel.ask(address_of(rig, general), CARD)
        async with rig.bot(admit=ingress.admit):
            yield rig, ann, general, int(ref.message)


async def test_a_press_works_after_a_restart() -> None:
    """A card needs no memory: its buttons carry everything (P5)."""
    ingress = RecordingIngress(Answered(text="approved: `shell`"))
    async with bot_of_card(ingress) as (_, ann, general, card):
        action = ann.presses(general, card, ONCE)
        answer = await action.answered()
    assert answer["type"] == 4
    assert answer["data"] == {
        "content": "approved: `shell`",
        "flags": 64,
        "allowed_mentions": {"parse": []},
    }
    [pressed] = ingress.envelopes
    assert isinstance(pressed.body, Pressed)
    assert (pressed.body.approval, pressed.sender.id) == (FIRST, str(ann.id))


async def test_a_strangers_press_and_command_get_no_answer() -> None:
    """The stranger learns nothing; Discord itself says that the application did not respond
    (P4)."""
    ingress = RecordingIngress(Ignored())
    async with bot_of_card(ingress) as (rig, eve, general, card):
        used = eve.uses(general, "stop")
        pressed = eve.presses(general, card, ONCE)
        assert await pressed.answered() == {"type": 6}
        await rig.clock.settle()
        assert used.answers == []
        assert len(rig.discord.from_bot(general)) == 1


async def test_a_forged_button_is_no_answer() -> None:
    """Of another form, too long, or on another bot's message."""
    ingress = RecordingIngress(Ignored())
    async with bot_of_card(ingress) as (_, eve, general, card):
        for forged in ("zc:a:z:approval-1", "zc:a:o:", "zc:w:approval-1", "zc:v:<@1>", "x" * 5000):
            eve.presses(general, card, forged)
        pressed = eve.presses(general, card, ONCE)
        await pressed.answered()
    assert len(ingress.envelopes) == 1


async def test_a_denial_asks_for_its_reason_in_a_form_in_the_persons_language() -> None:
    ingress = RecordingIngress(Answered(text="why is `shell` denied?", reply_wanted=True))
    async with bot_of_card(ingress) as (_, ann, general, card):
        action = ann.presses(general, card, cards.data(FIRST, "deny_with_reason"))
        assert (await action.answered())["type"] == 9
        assert action.form["title"] == "why is shell denied?"
        ingress.answer = Answered(text="denied")
        denied = ann.submits(action, "too early")
        assert (await denied.answered())["type"] == 4
    body = ingress.envelopes[-1].body
    assert isinstance(body, Pressed)
    assert (body.choice, body.reason) == ("deny", "too early")
    assert body.card is not None
    assert body.card.message == str(card)


@pytest.mark.parametrize("answer", [Answered(text="done"), Ignored()])
async def test_a_slow_answer_is_deferred_in_time_and_sent_later(answer: Admission) -> None:
    """Discord waits 3 s for the first response."""
    ingress = RecordingIngress(answer)
    async with bot_of_card(ingress) as (rig, ann, general, card):
        ingress.is_open.clear()
        pressed = ann.presses(general, card, ONCE)
        await ingress.received(1)
        await rig.clock.advance(interactions.DEFER_S)
        assert await pressed.answered() == {"type": 6}
        used = ann.uses(general, "stop")
        ingress.is_open.set()
        if isinstance(answer, Answered):
            await rig.discord.until_called("POST", r"/webhooks/")
            await used.answered()
    assert len(pressed.answers) == 1


async def test_a_slow_command_leaves_no_pending_response() -> None:
    ingress = RecordingIngress(Ignored())
    async with bot_for_ann(admit=ingress.admit) as (rig, ann, general, _):
        ingress.is_open.clear()
        used = ann.uses(general, "stop")
        await ingress.received(1)
        await rig.clock.advance(interactions.DEFER_S)
        assert await used.answered() == {"type": 5, "data": {"flags": 64}}
        ingress.is_open.set()
        await rig.discord.until_called("DELETE", r"/messages/@original$")


async def test_a_question_that_is_admitted_slowly_is_shown_to_all() -> None:
    """Discord shows others only that the command was used, so the answer would have no question."""
    ingress = RecordingIngress(Accepted())
    async with bot_for_ann(admit=ingress.admit) as (rig, ann, general, _):
        ingress.is_open.clear()
        ann.uses(general, "ask", question="what?")
        await ingress.received(1)
        await rig.clock.advance(interactions.DEFER_S)
        await rig.discord.until_called("POST", r"/callback$")
        ingress.is_open.set()
        await rig.discord.until_called("POST", r"/webhooks/")
        await rig.discord.until(lambda: len(rig.discord.from_bot(general)) == 1)
    assert [message.content for message in rig.discord.from_bot(general)] == ["> what?"]


async def test_a_denial_that_is_admitted_slowly_shows_no_question_without_its_form() -> None:
    """Nothing could be typed below it; the buttons are still there to press again."""
    ingress = RecordingIngress(Answered(text="why is `shell` denied?", reply_wanted=True))
    async with bot_of_card(ingress) as (rig, ann, general, card):
        ingress.is_open.clear()
        slow = ann.presses(general, card, cards.data(FIRST, "deny_with_reason"))
        await ingress.received(1)
        await rig.clock.advance(interactions.DEFER_S)
        assert await slow.answered() == {"type": 6}
        ingress.is_open.set()
        again = ann.presses(general, card, cards.data(FIRST, "deny_with_reason"))
        assert (await again.answered())["type"] == 9
    assert not any(path.startswith("/webhooks/") for _, path in rig.discord.calls)


async def test_slash_commands_and_questions_are_admitted_and_questions_shown() -> None:
    async with bot_for_ann() as (rig, ann, general, _):
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


async def test_a_press_that_could_not_be_stored_is_retried_while_discord_waits() -> None:
    ingress = RecordingIngress(Answered(text="done"))
    ingress.fault = ChannelUnavailable("the store is away")
    async with bot_of_card(ingress) as (rig, ann, general, card):
        ann.presses(general, card, ONCE)
        await rig.log.until("event_not_admitted")
        ingress.fault = None
        await rig.clock.advance(1)
        await ingress.received(2)
        ingress.fault = Refused("never")
        lost = ann.presses(general, card, ONCE)
        await rig.log.until("event_not_admitted", 2)
        await rig.clock.advance(interactions.GIVE_UP_S + 2)
        await lost.answered()
    assert len(ingress.envelopes) < 2 + 2 + interactions.GIVE_UP_S


async def test_a_receipt_is_shown_to_the_person_who_presses_it() -> None:
    ingress = RecordingIngress(Ignored())
    async with bot_of_card(ingress) as (_, ann, general, card):
        action = ann.presses(general, card, "zc:v:zc-receipt-1-abc")
        answer = await action.answered()
    data = answer["data"]
    assert isinstance(data, dict)
    assert (data["content"], data["flags"]) == ("`zc-receipt-1-abc`", 64)
    assert ingress.envelopes == []


async def test_a_failed_response_is_only_logged() -> None:
    """The token that answers an interaction is never logged (P8)."""
    async with bot_for_ann() as (rig, ann, general, _):
        rig.discord.will(Fault(method="POST", path="/callback$", status=404, body={"code": 10062}))
        action = ann.uses(general, "stop")
        await rig.log.until("interaction_not_answered")
        again = ann.uses(general, "stop")
        await again.answered()
    assert not any(str(action.event["token"]) in fact for fact in rig.log.lines)


async def test_interactions_beyond_a_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded; Discord shows the person that it failed (P9)."""
    monkeypatch.setattr(interactions, "MAX_CONCURRENT", 2)
    ingress = RecordingIngress(Ignored())
    async with bot_for_ann(admit=ingress.admit) as (rig, ann, general, _):
        ingress.is_open.clear()
        actions: list[UserAction] = [ann.uses(general, "stop") for _ in range(3)]
        await rig.log.until("lane_overflowed")
        ingress.is_open.set()
    assert len(actions) == 3
    assert len(ingress.envelopes) == 1


async def test_one_persons_flood_does_not_block_others_presses() -> None:
    """A stranger can press and type faster than the bot answers (P9)."""
    ingress = RecordingIngress(Ignored())
    async with rigged() as rig:
        ann, olga = rig.discord.person("ann"), rig.discord.person("olga")
        general = rig.discord.channel("general")
        async with rig.bot(admit=ingress.admit):
            ingress.is_open.clear()
            for _ in range(interactions.MAX_CONCURRENT):
                ann.uses(general, "stop")
            await rig.log.until("lane_overflowed")
            olga.uses(general, "status")
            await ingress.received(2)
            ingress.is_open.set()
    assert {envelope.sender.id for envelope in ingress.envelopes[:2]} == {str(ann.id), str(olga.id)}


EN_DE: Mapping[Language, str] = {"en": "this list", "de": "diese Liste"}


async def test_the_menu_is_set_in_both_languages_once_and_a_refusal_accepted() -> None:
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
        renamed = MenuEntry(name="hilfe", does=EN_DE)
        rig.menu = replace(menu, everyone=(renamed,))
        async with rig.bot():
            await rig.log.until("menu_set", 2)
        rig.menu = replace(menu, everyone=(replace(renamed, does={**EN_DE, "de": "dies"}),))
        async with rig.bot():
            await rig.log.until("menu_set", 3)
    commands = [
        command for scope in rig.discord.backend.commands.values() for command in scope.values()
    ]
    assert [command["name"] for command in commands] == ["ask", "hilfe"]
    assert commands[0]["options"][0]["name"] == "question"
    assert commands[1]["description_localizations"] == {"de": "dies"}
    puts = [method for method, _ in rig.discord.calls if method == "PUT"]
    assert len(puts) == 3
