"""A login by OAuth 2, against dovecot's oauth2 passdb, postfix, and a token server of our own."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import pytest

from channels.email import EmailSettings, smtp
from channels.email.adapter import EmailChannel, check
from channels.email.logins import Logins
from tests.contract.channel_suite import Desk, noting, receiving
from tests.contract.email_harness import (
    EmailPlace,
    body,
    email_context,
    email_placed,
    email_settings,
)
from tests.emulators.mail.tokens import (
    CLIENT_ID,
    CLIENT_SECRET,
    REFRESH_TOKEN,
    TokenServer,
    token_server,
)
from tests.fakes.manual_clock import ManualClock
from zeroclaw import (
    Address,
    Channel,
    ChannelUnauthorized,
    ChannelUnavailable,
    Outgoing,
    SecretReference,
    ZeroclawError,
    replace,
)

pytestmark = [pytest.mark.slow, pytest.mark.needs("dovecot", "postfix")]
OF_APPLICATION = {"client_secret": CLIENT_SECRET}
SECRETS = {"refresh_token": REFRESH_TOKEN, **OF_APPLICATION}


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[EmailPlace]:
    async with email_placed(tmp_path) as opened:
        yield opened


@pytest.fixture
async def tokens(place: EmailPlace) -> AsyncGenerator[TokenServer]:
    async with token_server(place.bot, place.mail.tokens) as opened:
        yield opened


def settings(place: EmailPlace, *secrets: str, **extra: object) -> EmailSettings:
    references = {name: SecretReference(env=name.upper()) for name in secrets or ("refresh_token",)}
    return email_settings(
        place.mail,
        place.bot,
        password=None,
        token_url=f"http://127.0.0.1:{place.mail.tokens}/token",
        client_id=CLIENT_ID,
        **references,
        **extra,
    )


def channel_of(
    place: EmailPlace, clock: ManualClock, secrets: Mapping[str, str] = SECRETS
) -> Channel:
    context = email_context(
        settings(place), clock, positions={}, log=noting(place.facts), directory=place.directory
    )
    return EmailChannel(replace(context, secrets=secrets))


async def sent(place: EmailPlace, channel: Channel, text: str) -> None:
    to = Address(channel="email", account=place.bot, chat=place.ann, direct=True)
    await channel.send(to, Outgoing(rendered=channel.render(text), key=text))


async def test_both_servers_take_an_access_token(place: EmailPlace, tokens: TokenServer) -> None:
    """One token for both, by the configured refresh token; the application's secret is sent with
    it."""
    desk = Desk()
    channel = channel_of(place, ManualClock())
    async with receiving(channel, desk.admit):
        await place.write("hello")
        await desk.holds(1)
        await sent(place, channel, "hi")
    assert [body(mail) for mail in await place.mail.mails(place.ann)] == ["hi"]
    assert tokens.requests == [
        {
            "grant_type": "refresh_token",
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "refresh_token": REFRESH_TOKEN,
        }
    ]


async def test_an_application_may_have_its_own_account(
    place: EmailPlace, tokens: TokenServer
) -> None:
    """As in Exchange Online: without a refresh token, for a scope."""
    configured = settings(place, "client_secret", token_scope="https://outlook.example/.default")
    assert "reads `INBOX`" in await check(configured, OF_APPLICATION)
    assert {(request["grant_type"], request["scope"]) for request in tokens.requests} == {
        ("client_credentials", "https://outlook.example/.default")
    }


async def test_a_token_is_renewed_before_it_expires(place: EmailPlace, tokens: TokenServer) -> None:
    clock = ManualClock()
    channel = channel_of(place, clock)
    await sent(place, channel, "one")
    await clock.advance(3_400.0)
    await sent(place, channel, "two")
    tokens.active.discard(tokens.issued[0])
    await clock.advance(100.0)
    await sent(place, channel, "three")
    await channel.aclose()
    assert len(tokens.issued) == 2
    assert [body(mail) for mail in await place.mail.mails(place.ann)] == ["one", "two", "three"]


async def test_a_revoked_token_is_renewed(
    place: EmailPlace, tokens: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed attempt is retried with a new one."""
    monkeypatch.setattr(smtp, "IDLE_S", 0)  # an open connection sends no token
    channel = channel_of(place, ManualClock())
    await sent(place, channel, "one")
    assert await place.mail.mails(place.ann)
    tokens.active.clear()
    await sent(
        place, channel, "two"
    )  # the lookup of its thread met the revoked token, and was left out
    tokens.active.clear()
    with pytest.raises(ExceptionGroup) as caught:
        await channel.receive(Desk().admit, asyncio.Event().set)
    assert caught.group_contains(ChannelUnavailable, match="it did before")
    async with receiving(channel, Desk().admit):
        pass
    await channel.aclose()


async def test_a_changed_refresh_token_is_stored(place: EmailPlace, tokens: TokenServer) -> None:
    """Privately; it is ignored once another one is configured."""
    tokens.rotates = True
    for text in ("one", "two"):
        channel = channel_of(place, ManualClock())
        await sent(place, channel, text)
        await channel.aclose()
    assert [request["refresh_token"] for request in tokens.requests] == [REFRESH_TOKEN, "refresh-1"]
    assert (place.directory / "refresh-token").stat().st_mode & 0o777 == 0o600
    tokens.refresh_token = "another"
    channel = channel_of(place, ManualClock(), {**SECRETS, "refresh_token": "another"})
    await sent(place, channel, "three")
    await channel.aclose()
    assert tokens.requests[-1]["refresh_token"] == "another"


async def test_a_check_takes_no_refresh_token_from_the_daemon(
    place: EmailPlace, tokens: TokenServer
) -> None:
    """The daemon holds a newer one, and `doctor` does not affect it."""
    tokens.rotates = True
    clock = ManualClock()
    channel = channel_of(place, clock)
    await sent(place, channel, "one")
    assert "which the daemon alone tries" in await check(settings(place), SECRETS)
    await clock.advance(3600)
    await sent(place, channel, "two")
    await channel.aclose()
    assert [request["refresh_token"] for request in tokens.requests] == [REFRESH_TOKEN, "refresh-1"]


async def test_a_cancelled_login_loses_no_refresh_token(
    place: EmailPlace, tokens: TokenServer
) -> None:
    """The server took the token, and its answer is the only one that holds the next. P1."""
    tokens.rotates = True
    tokens.may_answer.clear()
    channel = channel_of(place, ManualClock())
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(sent(place, channel, "one"))
        await tokens.asked.wait()
        sending.cancel()
    async with asyncio.TaskGroup() as group:
        closing = group.create_task(channel.aclose())
        assert await place.mail.mails(place.ann) == []
        assert not closing.done()
        tokens.may_answer.set()
    channel = channel_of(place, ManualClock())
    await sent(place, channel, "two")
    await channel.aclose()
    assert [request["refresh_token"] for request in tokens.requests] == [REFRESH_TOKEN, "refresh-1"]


async def test_cancelled_logins_leave_one_request(place: EmailPlace, tokens: TokenServer) -> None:
    """Else each would ask a server that is down, one after the other, before the next login."""
    tokens.answer = (503, b"")
    tokens.may_answer.clear()
    logins = Logins("email", settings(place), SECRETS, place.directory)

    async def log_in() -> None:
        async with logins.lend():
            pass

    async with asyncio.TaskGroup() as group:
        both = [group.create_task(log_in()), group.create_task(log_in())]
        await tokens.asked.wait()
        for task in both:
            task.cancel()
    tokens.may_answer.set()
    await logins.aclose()
    assert len(tokens.requests) == 1


async def test_a_refresh_token_received_while_the_disk_is_full_is_not_lost(
    place: EmailPlace, tokens: TokenServer
) -> None:
    """It is used, and stored as soon as there is room; the earlier one is no longer valid."""
    tokens.rotates = True
    full = place.directory / "refresh-token.new"
    full.symlink_to("/dev/full")
    clock = ManualClock()
    channel = channel_of(place, clock)
    await sent(place, channel, "one")
    await clock.advance(3600)
    await sent(place, channel, "two")
    full.unlink()
    await sent(place, channel, "three")
    await channel.aclose()
    channel = channel_of(place, ManualClock())
    await sent(place, channel, "four")
    await channel.aclose()
    refresh_tokens = [request["refresh_token"] for request in tokens.requests]
    assert refresh_tokens == [REFRESH_TOKEN, "refresh-1", "refresh-2"]


async def test_a_login_with_another_accounts_token_is_refused(
    place: EmailPlace, tokens: TokenServer
) -> None:
    """At once, although the server first sends a challenge; the error has no secret."""
    tokens.user = place.ann
    configured = settings(place, "client_secret")
    with pytest.raises(ChannelUnauthorized, match="does not accept the access token") as caught:
        async with asyncio.timeout(50):  # less than a call's timeout of a minute
            await check(configured, OF_APPLICATION)
    assert tokens.issued[0] not in str(caught.value)


REFUSALS: Mapping[str, tuple[tuple[int, bytes] | None, type[ZeroclawError], str]] = {
    "the login has ended": (
        (400, b'{"error": "invalid_grant"}'),
        ChannelUnauthorized,
        "invalid_grant",
    ),
    "nobody knows the application": (
        (401, b'{"error": "invalid_client"}'),
        ChannelUnauthorized,
        "401 invalid_client",
    ),
    "a page of what stands before it": ((403, b"<html>no</html>"), ChannelUnavailable, "403"),
    "an error in many words": (
        (400, b'{"error": "%b"}' % (b"a b " * 100)),
        ChannelUnauthorized,
        "gives no access token \\(400\\)$",
    ),
    "too many": ((429, b"{}"), ChannelUnavailable, "429"),
    "they did not wait for the form": ((408, b"slow"), ChannelUnavailable, "408"),
    "it fails": ((503, b"later"), ChannelUnavailable, "503"),
    "it says nothing": (None, ChannelUnavailable, "gave no answer"),
    "no token": ((200, b"{}"), ChannelUnavailable, "200"),
    "what can not be one": ((200, b'{"access_token": "a\\nb"}'), ChannelUnavailable, "200"),
    "a refusal that passes for an answer": (
        (200, b'{"error": "invalid_grant"}'),
        ChannelUnauthorized,
        "200 invalid_grant",
    ),
    "another way round": ((302, b"there"), ChannelUnavailable, "302"),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_token_refusal_says_who_must_act(
    place: EmailPlace, tokens: TokenServer, case: str
) -> None:
    """The error is one line, without a secret. P8, P10."""
    tokens.answer, error, pattern = REFUSALS[case]
    with pytest.raises(error, match=pattern) as caught:
        await check(settings(place, "client_secret"), OF_APPLICATION)
    assert type(caught.value) is error
    assert CLIENT_SECRET not in str(caught.value)


async def test_a_token_without_an_expiry_is_used_for_a_while(
    place: EmailPlace, tokens: TokenServer
) -> None:
    tokens.expires_in = "soon"
    channel = channel_of(place, ManualClock())
    for text in ("one", "two"):
        await sent(place, channel, text)
    await channel.aclose()
    assert len(tokens.issued) == 1
