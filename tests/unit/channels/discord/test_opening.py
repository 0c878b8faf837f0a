"""Settings, and checks of a bot before anything runs."""

import pytest
from pydantic import ValidationError

from channels.discord import MANIFEST, DiscordSettings, account_of
from channels.discord.adapter import DiscordChannel
from channels.discord.emulator.server import Fault
from channels.discord.rest import check
from tests.contract.discord_harness import SETTINGS
from tests.unit.channels.discord.rig import rigged
from zeroclaw import ChannelUnauthorized, ChannelUnavailable, SecretReference

TOKEN = SecretReference(env="TOKEN")


def test_channels_are_named_by_their_ids() -> None:
    assert DiscordSettings(token=TOKEN, channels=("123",)).reads_everything
    assert not DiscordSettings(token=TOKEN, channels=("123",), servers="off").reads_everything
    with pytest.raises(ValidationError, match="`general` is no channel's id"):
        DiscordSettings(token=TOKEN, channels=("general",))


def test_a_server_without_limits_is_paced_only_for_readers() -> None:
    free = SETTINGS.model_copy(update={"limits": "off"}).capabilities()
    defaults = SETTINGS.capabilities()
    assert (free.chat_budget.per_s, free.min_edit_interval_s) == (0, 0.05)
    assert defaults.chat_budget.per_s < 1 < defaults.min_edit_interval_s
    assert defaults.account_budget.per_s < 50


@pytest.mark.parametrize(
    "token", ["", "x", "x.y.z", "MTIz", "YWJj.a.b", "\u00e4.b.c", "MTIz.a.b\nc"]
)
def test_an_invalid_token_is_one_line_that_does_not_show_it(token: str) -> None:
    """P8, P10."""
    with pytest.raises(ChannelUnauthorized, match="that is no bot's token; get one at") as raised:
        account_of("discord", token)
    assert not token or f"`{token}`" not in str(raised.value)


def test_a_token_holds_the_bots_id() -> None:
    assert account_of("discord", "MTIzNDU2.a.b") == "123456"


@pytest.mark.slow
async def test_a_check_names_the_bot_and_its_obstacles() -> None:
    assert MANIFEST.check == "channels.discord.rest:check"
    async with rigged() as rig:
        settings = SETTINGS.model_copy(update={"api_base_url": rig.discord.url})
        secrets = {"token": rig.discord.token}
        line = await check(settings, secrets)
        assert line == "TestBot answers; in servers it reads messages meant for it"
        application = {"flags": 0, "interactions_endpoint_url": "https://a.example"}
        path = "/oauth2/applications/@me"
        rig.discord.will(Fault(method="GET", path=path, status=200, body=application))
        all_of_it = settings.model_copy(update={"servers": "all"})
        line = await check(all_of_it, secrets)
        assert "turn on Message Content Intent" in line
        assert "Interactions Endpoint URL" in line
        assert "reads nothing" in await check(
            settings.model_copy(update={"servers": "off"}), secrets
        )


@pytest.mark.slow
async def test_a_check_distinguishes_a_bad_token_from_a_failing_server() -> None:
    async with rigged() as rig:
        settings = SETTINGS.model_copy(update={"api_base_url": rig.discord.url})
        secrets = {"token": rig.discord.token}
        with pytest.raises(ChannelUnauthorized, match="does not accept the token"):
            await check(settings, {"token": f"{rig.discord.token}x"})
        for fault in (
            Fault(method="GET", path="/users/@me", status=500, body={}),
            Fault(method="GET", path="/users/@me", status=403, body={"code": 1, "message": "no"}),
            Fault(method="GET", path="/users/@me", status=401),
            Fault(method="GET", path="/users/@me", status=200, body={"id": "5"}),
            Fault(method="GET", path="/users/@me", times=2),  # retried on a new connection
        ):
            rig.discord.will(fault)
            with pytest.raises(ChannelUnavailable):
                await check(settings, secrets)
    with pytest.raises(ChannelUnavailable):
        await check(settings, secrets)


@pytest.mark.slow
@pytest.mark.parametrize("url", ["", "https://x", "ws://gateway.example", "wss", "ws://[", None])
async def test_a_gateway_without_tls_does_not_get_the_token(url: str | None) -> None:
    async with rigged() as rig:
        rig.discord.will(
            Fault(method="GET", path="/gateway/bot", status=200, body={"url": url}, times=9)
        )
        channel = DiscordChannel(rig.context())
        with pytest.raises(ExceptionGroup) as raised:
            async with rig.closing(channel):
                await channel.receive(rig.desk.admit, lambda: None)
        assert "names no gateway" in repr(raised.value)
