"""Approvers are reminded once that a question is about to end without an answer."""

import asyncio
from datetime import timedelta

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.config.model import ApprovalSettings, PersonSettings
from zeroclaw.errors import ChannelUnavailable
from zeroclaw.store import DurablePoint, RowKind

POKE = asks_for(("poke", '{"a": 1}'))
REMINDED = (
    "Still waiting for an answer: `poke` (`/approve 1`, `/deny 1`). 3 min left; after that it "
    "counts as denied."
)
DUE_S = 720
"""After so many seconds of 900 a fifth is left."""


def reminders(house: House, who: str = "ada", channel: str = "chat") -> list[str]:
    """What they were told about time that runs out."""
    told = house.texts(who, channel=channel)
    return [text for text in told if text.startswith(("Still waiting", "Das wartet noch"))]


def asked(world: World, **approvals: float) -> None:
    world.model.will(POKE)
    world.configure(approvals=ApprovalSettings.model_validate(approvals))


async def test_an_approver_is_reminded_once_before_the_deadline(world: World) -> None:
    """With tool, number and time left; the one who asked hears nothing of it (P5)."""
    asked(world)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.advance(DUE_S - 1)
        assert reminders(house) == []
        await house.advance(1)
        assert reminders(house) == [REMINDED]
        await house.advance(179)
        assert reminders(house) == [REMINDED]
        assert reminders(house, "ben") == []
        await house.say("/approve 1")
        assert house.endings() == [("approved", "Ada")]


async def test_an_answer_in_time_needs_no_reminder(world: World) -> None:
    asked(world)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.press("deny")
        await house.advance(900)
        assert reminders(house) == []


async def test_calls_of_one_card_are_one_reminder(world: World) -> None:
    """Those that were answered are left out."""
    world.model.will(asks_for(*[("poke", f'{{"a": {n}}}') for n in range(3)]))
    async with world.running() as house:
        await house.say("poke all", "ben")
        await house.press("deny", call=1)
        await house.advance(DUE_S)
        assert [text.partition(".")[0] for text in reminders(house)] == [
            "Still waiting for an answer: `poke` (`/approve 1`, `/deny 1`), "
            "`poke` (`/approve 3`, `/deny 3`)"
        ]


async def test_a_restart_reminds_neither_twice_nor_never(world: World) -> None:
    """Whoever was reminded by an earlier process is not by the next; what it missed is told."""
    asked(world)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.advance(10)
    async with world.running() as house:
        await house.advance(DUE_S)
        assert reminders(house) == [REMINDED]
    async with world.running() as house:
        await house.advance(60)
        assert len(reminders(house)) == 1


async def test_a_restart_past_the_moment_reminds_at_once(world: World) -> None:
    asked(world)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.advance(10)
    await world.clock.advance(DUE_S + 80)
    async with world.running() as house:
        await house.advance(1)  # its channel is not there yet
        assert len(reminders(house)) == 1
        assert "90 s left" in reminders(house)[0]


@pytest.mark.parametrize("written", [True, False], ids=["after", "before"])
async def test_a_kill_at_the_reminder_tells_it_once(world: World, *, written: bool) -> None:
    """The claim that it was told and the note are one commit."""
    asked(world)
    async with world.running() as house:
        await house.say("poke it", "ben")
        if written:
            world.store.cut_after(DurablePoint.HOUSEKEEPING)
            await house.advance(DUE_S)
        else:
            await house.advance(DUE_S - 1)
    world.store.heal()
    async with world.running() as house:
        await house.advance(2)
        assert len(reminders(house)) == 1


async def test_an_answer_that_comes_just_then_wins(world: World) -> None:
    """Whoever has answered is not reminded, however close it was."""
    asked(world)
    async with world.running() as house:
        await house.say("poke it", "ben")
        answers: list[str] = []

        async def answer(writes: object) -> None:
            if not answers and world.clock.monotonic() >= DUE_S:
                answers.append("deny")
                async with asyncio.TaskGroup() as group:
                    group.create_task(
                        house.services.ingress.admit(house.envelope(house.pressed("deny")))
                    )

        world.store.meanwhile = answer
        await house.advance(DUE_S)
        assert answers == ["deny"]
        assert reminders(house) == []
        assert house.endings() == [("denied", "Ada")]


@pytest.mark.parametrize(
    "approvals",
    [{"remind_share": 0.0}, {"timeout_s": 49.0}, {"timeout_s": 900.0, "remind_share": 0.01}],
    ids=["never", "a short time", "a small share"],
)
async def test_nobody_is_reminded_who_could_not_act(
    world: World, approvals: dict[str, float]
) -> None:
    """Switched off, or with less than ten seconds left."""
    asked(world, **approvals)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.advance(900)
        assert reminders(house) == []
        assert house.endings() == [("expired", "")]


async def test_a_share_that_is_read_again_holds_for_questions_from_then_on(world: World) -> None:
    asked(world)
    async with world.running() as house:
        world.configure(approvals=ApprovalSettings(remind_share=0.5))
        assert (await house.ask("reload"))["live"] == ["approvals.remind_share"]
        await house.say("poke it", "ben")
        await house.advance(450)
        assert [text.partition(". ")[2] for text in reminders(house)] == [
            "8 min left; after that it counts as denied."
        ]


async def test_a_card_that_comes_late_says_itself_how_little_is_left(world: World) -> None:
    """A channel that was down for ten minutes of fifteen shows the card, and that is enough."""
    asked(world)
    world.platforms["chat"].will("ask", *[ChannelUnavailable("down")] * 17)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.advance(890)
        assert len([one for one in house.texts() if "poke" in one]) <= 1
        assert reminders(house) == []


async def test_each_approver_reads_their_own_number_and_language(world: World) -> None:
    world.configure(
        people=(
            PersonSettings(name="ada", ids=("chat:ada",), roles=("operator",)),
            PersonSettings(name="cleo", ids=("chat:cleo",), roles=("operator",), language="de"),
        )
    )
    world.model.will(POKE, says("no"), POKE)
    async with world.running() as house:
        await house.say("poke it")
        await house.press("deny")
        await house.say("poke it", "ben")
        await house.advance(DUE_S)
        assert "`/approve 2`" in reminders(house)[0]
        assert reminders(house, "cleo") == [
            "Das wartet noch auf eine Antwort: `poke` (`/approve 1`, `/deny 1`). Es bleiben 3 min; "
            "danach gilt es als abgelehnt."
        ]


async def test_a_question_that_nobody_was_shown_reminds_nobody(world: World) -> None:
    """There is no chat to say it in."""
    asked(world)
    world.platforms["chat"].will("ask", *[ChannelUnavailable("down")] * 99)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.advance(10)
    async with world.running() as house:
        await house.advance(DUE_S)
        assert reminders(house) == []


async def test_what_is_gone_is_passed_over(world: World) -> None:
    asked(world)
    async with world.running() as house:
        await house.say("poke it", "ben")
        world.store.forget(RowKind.APPROVAL)
        await house.advance(DUE_S)
        assert reminders(house) == []


async def test_what_ended_while_a_start_ends_what_was_due_is_left_alone(world: World) -> None:
    """What was read before is read again in the plan, so a press that came first fails no start."""
    asked(world)
    async with world.running() as house:
        await house.say("poke it", "ben")
        answers: list[str] = []

        async def answer(writes: object) -> None:
            if not answers:
                answers.append("deny")
                await house.services.ingress.admit(house.envelope(house.pressed("deny")))

        world.clock.leap(timedelta(seconds=901))
        world.store.meanwhile = answer
        await house.services.deadlines.resume()
        assert answers == ["deny"]
        [row] = await house.rows(RowKind.APPROVAL)
        assert row.state == "expired"
