"""Who is shown an open request: everyone who may answer it now, once each (P5)."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import CAPABILITIES, CHAT, PEOPLE
from tests.fakes.manual_clock import ManualClock
from tests.fakes.scripted_channel import Shown
from tests.fakes.scripted_model import POKE, TWO_POKES, asks_for
from tests.unit.inbound.test_kills import deliver, killed_after
from zeroclaw.config.model import ApprovalSettings, ChannelSettings, PersonSettings, PolicySettings
from zeroclaw.errors import ChannelRejected, Conflict
from zeroclaw.store import Commit, DurablePoint, Put, RowKind, Write
from zeroclaw.value import replace

BEN = PEOPLE[1]
CLEO = PersonSettings(name="cleo", ids=("chat:cleo",), roles=("operator",))
NO_OPERATOR = PEOPLE[0].model_copy(update={"roles": ()})
FAR = PersonSettings(name="ada", ids=("chat:ada", "mail:ada@x"), roles=("operator",))


def cards(world: World, who: str, *, channel: str = "chat") -> list[Shown]:
    """All cards in a person's own chat."""
    platform = world.platforms[channel]
    return [
        message for message in platform.standing(platform.address(who, direct=True)) if message.card
    ]


def with_mail(world: World) -> World:
    """Let the operator be reached by mail as well."""
    world.add_channel("mail")
    world.configure(
        channels={"chat": CHAT, "mail": ChannelSettings(allowed_users=("ada@x",))},
        people=(FAR, BEN),
    )
    return world


async def test_an_operator_of_a_reload_is_shown_what_waits(world: World) -> None:
    """Once, and the card shows how it ended; of what had ended before it was sent it shows nothing."""
    async with world.told("poke both", TWO_POKES, by="ben") as house:
        await house.press(call=1)
        world.configure(people=(*PEOPLE, CLEO))
        await house.ask("reload")
        await house.ask("reload")
        (card,) = cards(world, "cleo")
        assert card.card is not None
        assert [(call.tool, call.number) for call in card.card.calls] == [("poke", 1)]
        assert len(cards(world, "ada")) == 1
        await house.say("/approve 1", "cleo")
        assert house.endings() == [("approved", "Cleo"), ("approved", "Ada")]
        assert house.endings("cleo") == [("approved", "Cleo")]
        (settled,) = cards(world, "cleo")
        assert settled.outcome is not None
        assert settled.outcome.card == card.card
        assert len(world.poke.runs) == 2


async def test_an_approver_who_is_let_in_is_shown_what_waits(world: World) -> None:
    """A restored operator gets cards from then on, by the commit that restores them."""
    world.configure(people=(*PEOPLE, CLEO))
    world.model.will(POKE)
    async with world.running() as house:
        await house.ask("pair", words="revoke cleo")
        await house.say("poke it", "ben")
        assert cards(world, "cleo") == []
        await house.ask("pair", words="approve cleo")
        assert await house.press(who="cleo") == "approved: `poke`"


async def test_an_operator_of_a_reload_is_shown_who_wishes_to_be_let_in(world: World) -> None:
    """Without the code, which only its hash is kept of."""
    by_code = ChannelSettings(allowed_users=("ada", "ben", "cleo"), pairing="code")
    world.configure(channels={"chat": by_code})
    async with world.told("let me in", by="mallory") as house:
        world.configure(people=(*PEOPLE, CLEO))
        await house.ask("reload")
        await house.ask("reload")
        assert [len(cards(world, who)) for who in ("ada", "cleo")] == [1, 1]
        await house.press(who="cleo")
        assert house.endings() == house.endings("cleo") == [("approved", "Cleo")]


async def test_no_card_is_sent_about_a_person_who_was_let_in_meanwhile(world: World) -> None:
    """Neither the first operator, who often writes before sending the printed code."""
    by_code = ChannelSettings(allowed_users=(), pairing="code")
    world.configure(channels={"chat": by_code}, people=())
    async with world.told("let me in", by="mallory") as house:
        await house.say("hello", "ada")
        await house.say(world.ready[0].claim, "ada")
        (card,) = cards(world, "ada")
        assert card.card is not None
        assert card.card.asked_by == "chat:mallory"
        assert "approve it only if you know whose it is" in card.card.calls[0].why


async def test_strangers_who_come_while_others_are_shown_keep_their_numbers(world: World) -> None:
    """A number that was given is never given again, by no later process either."""
    by_code = ChannelSettings(allowed_users=("ada", "ben", "cleo"), pairing="code")
    world.configure(channels={"chat": by_code})
    async with world.told("let me in", by="mallory") as house:
        world.configure(people=(*PEOPLE, CLEO))

        async def meanwhile(writes: tuple[Write, ...]) -> None:
            if any(isinstance(write, Put) and write.kind is RowKind.COUNTER for write in writes):
                world.store.meanwhile = None
                eve = house.envelope(house.said("and me"), "eve")
                await house.services.ingress.admit(eve)

        world.store.meanwhile = meanwhile
        await house.ask("reload")
    async with world.told("me too", by="trudy") as house:
        shown = [card.card for card in cards(world, "cleo") if card.card]
        assert sorted(call.number for card in shown for call in card.calls) == [1, 2, 3]


async def test_a_request_without_an_approver_is_put_to_the_next_one(world: World) -> None:
    """The last approver goes while the other call of the batch is judged."""
    world.configure(people=(*PEOPLE,))
    world.model.will(asks_for(("poke", '{"a": 1}'), ("look", "{}")))
    async with world.running() as house:
        world.look.resolving = asyncio.Event()
        await house.say("poke it", "ben")
        world.configure(people=(NO_OPERATOR, BEN))
        await house.ask("reload")
        world.look.resolving.set()
        await house.settle()
        assert cards(world, "ada") == []
        (text,) = house.texts("ben")
        assert text.startswith("Nobody who may approve `poke` can be reached.")
        world.configure(people=(NO_OPERATOR, BEN, CLEO))
        await house.ask("reload")
        assert house.texts("ben") == [text, "Waiting for an operator to approve `poke`."]
        assert await house.press(who="cleo") == "approved: `poke`"


async def test_what_a_private_chat_refuses_is_put_elsewhere(world: World) -> None:
    """An operator who has blocked the bot on one platform gets the card on the other one."""
    with_mail(world).model.will(POKE)
    world.platforms["chat"].will("ask", ChannelRejected("blocked by the user"))
    async with world.told("poke it", by="ben") as house:
        assert cards(world, "ada") == []
        assert house.texts("ben") == ["Waiting for an operator to approve `poke`."]
        assert await house.press(who="ada@x", channel="mail") == "approved: `poke`"
        assert world.poke.runs == [{"a": 1}]


async def test_where_every_chat_refuses_the_card_the_requester_reads_so_at_once(
    world: World,
) -> None:
    """Once, by later processes too; at the deadline the model reads that no approver was reached."""
    world.model.will(POKE)
    world.platforms["chat"].will("ask", ChannelRejected("blocked by the user"))
    texts = [
        "Waiting for an operator to approve `poke`.",
        "Nobody who may approve `poke` can be reached. The question stays open until 12:15:00 UTC;"
        " `/stop` ends it.",
    ]
    async with world.told("poke it", by="ben") as house:
        assert house.texts("ben") == texts
    async with world.running() as house:
        await house.advance(800)
        assert house.texts("ben") == texts
        await house.advance(100)
        assert "no operator can be reached from here" in world.model.asked()[-1]
        assert "nobody answered" not in world.model.asked()[-1]
        assert world.poke.runs == []


async def test_the_requester_reads_when_no_person_may_approve_any_more(world: World) -> None:
    """The only operator has the card when a reload leaves no approver."""
    async with world.told("poke it", POKE, by="ben") as house:
        world.configure(people=(NO_OPERATOR, BEN))
        await house.ask("reload")
        await house.ask("reload")
        (_, text) = house.texts("ben")
        assert text.startswith("Nobody who may approve `poke` can be reached.")


async def test_a_requester_who_may_not_answer_gets_no_card_by_a_reload(world: World) -> None:
    """A request that was made while they might not stays one that they may not answer."""
    world.configure(people=(*PEOPLE, CLEO), approvals=ApprovalSettings(requester_may_answer=False))
    async with world.told("poke it", POKE) as house:
        world.configure(approvals=ApprovalSettings())
        await house.ask("reload")
        assert cards(world, "ada") == []
        assert len(cards(world, "cleo")) == 1


async def test_who_may_approve_from_an_hour_on_is_shown_what_waits_then(tmp_path: Path) -> None:
    """No event tells that the hour has come."""
    hours: dict[str, object] = {
        "id": "night",
        "effect": "deny",
        "principals": ["person:cleo"],
        "actions": ["approve:*"],
        "when": {"hour_between": [0, 12]},
    }
    clock = ManualClock(datetime(2026, 1, 5, 11, 55, tzinfo=UTC))
    world = World(tmp_path, clock=clock)
    world.configure(people=(*PEOPLE, CLEO), policy=PolicySettings(statement=(hours,)))
    async with world.told("poke it", POKE, by="ben") as house:
        assert cards(world, "cleo") == []
        await house.advance(400)
        assert len(cards(world, "cleo")) == 1
        assert len(cards(world, "ada")) == 1


async def test_a_card_that_others_keep_changing_is_shown_in_the_end(world: World) -> None:
    world.model.will(POKE)
    tries = 0

    def first(commit: Commit) -> None:
        nonlocal tries
        if commit.point is DurablePoint.ASKED and tries < 7:
            tries += 1
            raise Conflict("somebody was first")

    world.store.before = first
    async with world.told("poke it", by="ben"):
        assert tries == 7
        assert len(cards(world, "ada")) == 1


@pytest.mark.parametrize("number", range(1, 9))
async def test_a_kill_after_any_commit_shows_it_once_to_each(world: World, number: int) -> None:
    """Before its cards, between them, and after: the next process knows who got a card."""
    world.add_platform("chat", replace(CAPABILITIES, idempotent_send=True))
    world.configure(people=(*PEOPLE, CLEO))
    world.model.will(*[POKE] * 4)
    killed_after(world, number)
    async with world.running() as house:
        envelopes = [house.envelope(house.said("poke it"), "ben")]
        await deliver(house, envelopes)
    world.store.heal()
    async with world.running() as house:
        await deliver(house, envelopes)
        await house.advance(5)
        assert [len(cards(world, who)) for who in ("ada", "cleo")] == [1, 1]
        assert house.texts("ben") == ["Waiting for an operator to approve `poke`."]
        await house.press()
        await house.advance(5)
        shown = [cards(world, who)[0].outcome for who in ("ada", "cleo")]
        assert [outcome and [end.how for end in outcome.endings] for outcome in shown] == [
            ["approved"]
        ] * 2
        assert world.poke.runs == [{"a": 1}]


@pytest.mark.parametrize("kind", [RowKind.APPROVAL, RowKind.TURN])
async def test_a_damaged_row_keeps_no_other_request_from_being_shown(
    world: World, kind: RowKind
) -> None:
    """It is its own conversation's trouble; the daemon and the others are not held up."""
    async with world.told("poke it", POKE, POKE, by="ben", room="shed") as house:
        (row,) = await house.rows(kind)
        await world.store.write(
            Put(kind=kind, key=row.key, body=b"", conversation=row.conversation, state=row.state)
        )
        await house.say("poke it", "ben")
        assert len(cards(world, "ada")) == 2
    async with world.running() as house:
        await house.press()
        assert world.poke.runs == [{"a": 1}]
