"""What waits after an outage is said as soon as the platform is there again."""

import pytest

from tests.fakes.scripted_calls import Lost
from tests.unit.delivery.outbox_rows import final, seen
from tests.unit.delivery.rig import PLAIN_SENDS, platform, running
from zeroclaw.delivery.account import Markdown
from zeroclaw.errors import ChannelUnavailable


async def test_a_platform_that_answers_again_is_tried_at_once() -> None:
    """Whoever waits for an answer does not wait for the end of a pause as well (P6)."""
    async with running(platform()) as rig:
        rig.channel.will("send", *[ChannelUnavailable("no route")] * 6)
        first = final(rig, "done")
        await rig.commit(first)
        account, began = rig.accounts["chat"], rig.clock.monotonic()
        await rig.clock.sleep(50)  # in the middle of the pause that ends after 63 s
        assert len(rig.channel.calls) == 6
        account.outage.end()
        await rig.outbox.ended(first.key)
        assert rig.clock.monotonic() - began == pytest.approx(50)
        assert seen(rig.channel) == ["done"]


async def test_an_answer_in_another_chat_ends_the_pause_of_all() -> None:
    """The platform need not be asked whether it is there: something else was carried out."""
    async with running(platform()) as rig:
        rig.channel.will("send", *[ChannelUnavailable("no route")] * 6)
        first, other = final(rig, "done"), final(rig, "other", chat="c2")
        await rig.commit(first)
        await rig.clock.sleep(50)
        await rig.commit(other)
        await rig.outbox.ended(other.key)
        await rig.outbox.ended(first.key)
        assert rig.clock.monotonic() < 55
        assert (seen(rig.channel), seen(rig.channel, "c2")) == (["done"], ["other"])


async def test_what_fails_alone_while_all_others_arrive_is_tried_more_and_more_rarely() -> None:
    """Its failure looks like an outage each time, and each answer elsewhere like its end."""
    async with running(platform()) as rig:
        account = rig.accounts["chat"]
        await account.post(rig.channel.address("c2"), Markdown(text="other", key="other"))
        [other] = rig.channel.standing(rig.channel.address("c2"))
        rig.channel.will("send", *[ChannelUnavailable("no route")] * 200)
        await rig.commit(final(rig, "done"))
        for number in range(300):
            await account.edit(other.ref, Markdown(text=f"other {number}", key="other"))
            await rig.clock.sleep(1)
        assert 30 < len(rig.channel.called("send")) < 70


async def test_what_counts_as_lost_waits_for_its_time() -> None:
    """Else it would be given up while the platform is only slow."""
    async with running(platform(PLAIN_SENDS)) as rig:
        rig.channel.will("send", *[Lost()] * 2)
        first = final(rig, "done")
        await rig.commit(first)
        await rig.clock.sleep(0.1)
        account = rig.accounts["chat"]
        account.outage.begin()
        account.outage.end()
        await rig.clock.sleep(0.1)
        assert len(rig.channel.calls) == 1
        await rig.outbox.ended(first.key)
