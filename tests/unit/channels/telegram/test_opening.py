"""Settings, and checks of a bot before anything runs."""

import pytest

from channels.telegram.adapter import TelegramChannel
from channels.telegram.emulator import Emulator
from channels.telegram.webhook import check
from tests.contract.telegram_harness import SETTINGS, telegram_context
from tests.fakes.manual_clock import ManualClock
from zeroclaw import ChannelUnauthorized, ChannelUnavailable, SecretReference

TOKEN = SecretReference(env="TOKEN")


def test_a_server_without_limits_is_paced_only_for_readers() -> None:
    """Otherwise Telegram's published limits hold: per chat, group and account."""
    free = SETTINGS.model_copy(update={"limits": "off"}).capabilities()
    defaults = SETTINGS.capabilities()
    assert (free.chat_budget.per_s, free.group_budget, free.account_budget.per_s) == (0, None, 0)
    assert free.min_edit_interval_s == 0.05
    assert defaults.group_budget is not None
    assert (defaults.chat_budget.per_s, defaults.account_budget.per_s) == (1, 29)
    assert defaults.group_budget.per_s * 60 < 20
    assert defaults.min_edit_interval_s == 1


@pytest.mark.slow
async def test_a_check_names_the_bot_and_what_it_receives() -> None:
    async with Emulator(clock=ManualClock(), privacy=True) as telegram:
        telegram.hold()
        telegram.person("Ann").says("hello")
        settings = SETTINGS.model_copy(update={"api_base_url": telegram.url, "groups": "all"})
        line = await check(settings, {"token": telegram.token})
    assert line == (
        "@zero_bot answers; in groups it hears what is meant for it; "
        '`groups = "all"` needs privacy mode off (@BotFather, /setprivacy, then re-add it); updates waiting: 1'
    )


@pytest.mark.slow
async def test_a_check_of_a_bad_token_or_of_nowhere_says_so() -> None:
    async with Emulator(clock=ManualClock()) as telegram:
        settings = SETTINGS.model_copy(update={"api_base_url": telegram.url})
        with pytest.raises(ChannelUnauthorized):
            await check(settings, {"token": "12:wrong"})
        with pytest.raises(ChannelUnauthorized, match="BotFather"):
            await check(settings, {"token": "wrong"})
        await telegram.down()
        with pytest.raises(ChannelUnavailable):
            await check(settings, {"token": telegram.token})


def test_settings_of_another_channel_are_a_fault_in_the_code() -> None:
    from dataclasses import replace

    context = telegram_context(Emulator(clock=ManualClock()), ManualClock())
    with pytest.raises(TypeError):
        TelegramChannel(replace(context, settings=object()))
