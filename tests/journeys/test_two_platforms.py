"""One daemon, two platforms: a person asks on one, the operator answers on the other."""

from pathlib import Path

import pytest
from zeroclaw_test_platform.faults import Refuse
from zeroclaw_test_platform.platform import Platform

from tests.journeys.world import open_world

pytestmark = pytest.mark.slow

PEOPLE = [
    {"name": "olga", "ids": ["second:olga"], "roles": ["operator"]},
    {"name": "ann", "ids": ["loopback:ann"]},
]


def second_channel(platform: Platform) -> dict[str, object]:
    """The channel of a second platform, as it is configured."""
    settings = platform.settings.model_dump(exclude_defaults=True)
    return {"second": {"kind": "loopback", "allowed_users": ["olga"], **settings}}


async def test_the_operator_gets_the_card_on_their_platform(tmp_path: Path) -> None:
    """The card appears on their platform; the answer goes back to the requesting chat. S2-19."""
    async with (
        Platform(account="other") as second,
        open_world(tmp_path, people=PEOPLE, channels=second_channel(second)) as world,
    ):
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So be it.", round=1)
        await world.say("ann", "please knock")
        (card,) = await second.until(lambda: second.chat("olga").open_cards)
        await second.press("olga", card)
        await world.expect("ann", "So be it.")
        assert world.bench.ran("knock") == ["on wood"]
        await second.until(lambda: card.outcomes == ["approved"])
        assert world.chat("olga").from_bot == []


async def test_a_final_that_one_platform_refuses_is_reported_on_the_other(tmp_path: Path) -> None:
    """The operator reads on their own platform that an answer did not arrive (P6)."""
    async with (
        Platform(account="other") as second,
        open_world(tmp_path, people=PEOPLE, channels=second_channel(second)) as world,
    ):
        world.platform.will("send", Refuse(), times=None)
        world.model.say("Hello.")
        await world.say("ann", "hi")
        (notice,) = await second.until(lambda: second.chat("olga").answers)
        assert "refused by the platform" in notice
        assert "`loopback`" in notice
