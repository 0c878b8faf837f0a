"""What a person reads of their own `/tool` call that did not run, in their own language."""

import asyncio

import pytest

from tests.fakes.house import World
from zeroclaw.config.model import ApprovalSettings, PersonSettings, PolicySettings
from zeroclaw.text.catalogue import CALL_NOT_ANSWERED, CALL_TOOK_TOO_LONG, CALL_UNREACHABLE, SECONDS
from zeroclaw.value import replace

DENY: dict[str, object] = {
    "id": "no",
    "effect": "deny",
    "principals": ["anyone"],
    "actions": ["tool:look"],
}


@pytest.fixture
def german(world: World) -> World:
    ada = PersonSettings(name="ada", ids=("chat:ada",), roles=("operator",), language="de")
    world.configure(people=(ada,))
    return world


async def test_a_call_that_policy_denies(german: World) -> None:
    german.configure(policy=PolicySettings(statement=(DENY,)))
    async with german.running() as house:
        await house.say("/tool look {}")
        assert "`look` wurde nicht ausgeführt: " in house.texts()[-1]
        assert "verbietet" in house.texts()[-1]


async def test_a_question_that_nobody_answers_in_time(german: World) -> None:
    async with german.running() as house:
        await house.say("/tool poke {}")
        await house.advance(german.config.approvals.timeout_s)
        assert CALL_NOT_ANSWERED.to("de", tool="poke") in house.texts()[-1]


async def test_a_question_that_is_answered_with_no(german: World) -> None:
    async with german.running() as house:
        await house.say("/tool poke {}")
        await house.press("deny")
        assert "`poke` wurde nicht ausgeführt: abgelehnt von " in house.texts()[-1]


async def test_a_question_that_nobody_may_answer(german: World) -> None:
    german.configure(approvals=ApprovalSettings(requester_may_answer=False))
    async with german.running() as house:
        await house.say("/tool poke {}")
        assert CALL_UNREACHABLE.to("de", tool="poke") in house.texts()[-1]


async def test_a_run_that_takes_too_long(german: World) -> None:
    german.look.spec = replace(german.look.spec, timeout_s=0.0)
    german.look.hold = asyncio.Event()
    took = CALL_TOOK_TOO_LONG.to("de", tool="look", time=SECONDS.about(number="0"))
    async with german.running() as house:
        await house.say("/tool look {}")
        assert took in house.texts()[-1]
