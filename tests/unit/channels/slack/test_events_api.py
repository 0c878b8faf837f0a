"""Slack's posts to the public listener: signed ones are stored before they are answered, others are not."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest
from pydantic import ValidationError

from channels._remote.settings import is_public
from channels.slack import SlackSettings
from channels.slack.adapter import SlackChannel
from channels.slack.calls import check
from channels.slack.emulator.server import BOT, SIGNING_SECRET, Json, Person, SlackServer
from channels.slack.events_api import parse_post
from tests.contract.channel_suite import Desk, noting, receiving
from tests.contract.slack_events_harness import CALLED, called_context
from tests.contract.slack_harness import SETTINGS
from tests.contract.telegram_webhook_harness import public_listener
from tests.fakes.manual_clock import ManualClock
from zeroclaw import Admit, Said, SecretReference, replace

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
TOKEN = SecretReference(env="X")


# --- parsing a post ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "body", "kind", "payload"),
    [
        (JSON, b'{"type": "x"}', "events_api", {"type": "x"}),
        ("Application/JSON; charset=utf-8", b'{"a": 1}', "events_api", {"a": 1}),
        (JSON, b"[1]", "events_api", {}),
        (JSON, b"[" * 100_000, "events_api", {}),
        (JSON, b"\xff", "events_api", {}),
        (FORM, b"payload=%7B%22a%22%3A1%7D", "interactive", {"a": 1}),
        (FORM, b"payload=no", "interactive", {}),
        (FORM, b"payload=%FF", "interactive", {}),
        (FORM, b"text=a+b&user_id=U1", "slash_commands", {"text": "a b", "user_id": "U1"}),
        (FORM, b"", "slash_commands", {}),
        (FORM, b"\xff=1", "slash_commands", {}),
        (FORM, b"a=1&" * 200, "slash_commands", {}),
        ("text/plain", b'{"a": 1}', "", {}),
        ("", b"payload={}", "", {}),
    ],
)
def test_a_post_is_parsed_by_its_content_type(
    content_type: str, body: bytes, kind: str, payload: Mapping[str, object]
) -> None:
    """A malformed post has an empty payload."""
    assert parse_post(content_type, body) == (kind, payload)


# --- signatures and answers --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class World:
    slack: SlackServer
    clock: ManualClock
    facts: list[str]
    ann: Person

    def event(self, text: str = "hello", **fields: object) -> bytes:
        event = {"type": "message", "channel": self.ann.direct, "channel_type": "im"}
        event |= {"user": self.ann.id, "ts": "1700000000.000100", "text": text}
        payload = {"type": "event_callback", "event_id": "Ev1", "event": event, **fields}
        return json.dumps(payload).encode()

    async def posts(
        self, body: bytes, content_type: str = JSON, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Post, signed unless other headers are given; return the status and body of the answer."""
        signature = self.slack.signed_headers(body) if headers is None else headers
        sent_headers = {"Content-Type": content_type, **signature}
        url = self.slack.request_url
        async with self.slack.session.post(url, data=body, headers=sent_headers) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def running(admit: Admit) -> AsyncGenerator[World]:
    clock, facts = ManualClock(), list[str]()
    async with public_listener() as listener, SlackServer() as slack:
        context = replace(called_context(listener, slack, clock), log=noting(facts))
        async with receiving(SlackChannel(context), admit):
            yield World(slack=slack, clock=clock, facts=facts, ann=await slack.person())


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_the_request_url_is_verified_with_slacks_challenge() -> None:
    """Only for Slack: a post without its signature gets an empty answer (P4)."""
    challenge = json.dumps(
        {"type": "url_verification", "challenge": "3eZbrw1a", "token": "t"}
    ).encode()
    async with running(Desk().admit) as world:
        assert await world.posts(challenge) == (200, "3eZbrw1a")
        assert await world.posts(challenge, headers={}) == (401, "")


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_posts_without_slacks_signature_are_not_read() -> None:
    """Each of these contains a message that would be stored; no part of it is logged (P4, P8)."""
    desk = Desk()
    async with running(desk.admit) as world:
        body = world.event()
        good = world.slack.signed_headers(body)
        now = world.slack.now()
        timestamp, signature = good["X-Slack-Request-Timestamp"], good["X-Slack-Signature"]
        forged: list[Mapping[str, str]] = [
            {},
            {"X-Slack-Signature": signature},
            {"X-Slack-Request-Timestamp": timestamp},
            {**good, "X-Slack-Signature": signature[:-1] + ("0" if signature[-1] != "0" else "1")},
            {**good, "X-Slack-Signature": ""},
            {**good, "X-Slack-Signature": "v0=\u00e9"},
            {**good, "X-Slack-Request-Timestamp": "soon"},
            {**good, "X-Slack-Request-Timestamp": "9" * 400},
            {**good, "X-Slack-Request-Timestamp": "9" * 5000},
            {**good, "X-Slack-Request-Timestamp": str(int(now) + 1)},
            world.slack.signed_headers(body, at=now - 301),
            world.slack.signed_headers(body, at=now + 302),
            world.slack.signed_headers(world.event("another")),
        ]
        statuses = [(await world.posts(body, headers=headers))[0] for headers in forged]
        assert statuses == [401] * len(forged)
        binary = b"\xff" + body
        assert (await world.posts(binary, headers=world.slack.signed_headers(binary)))[0] == 401
        assert desk.stored == []
        assert await world.posts(body) == (200, "")
        assert [envelope.body for envelope in desk.stored] == [Said(text="hello")]
        for secret in (SIGNING_SECRET, BOT, "hello", signature):
            assert secret not in repr(world.facts)


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_signed_but_malformed_posts_are_answered_and_not_stored() -> None:
    """Otherwise Slack would repeat them; another workspace's ids are other people (P4)."""
    desk = Desk()
    async with running(desk.admit) as world:
        slash = {"command": "/zeroclaw", "text": "stop", "user_id": world.ann.id}
        slash |= {"channel_id": world.ann.direct, "trigger_id": "1.2"}
        posts = [
            (world.event(), "text/plain"),
            (world.event(), FORM),
            (world.event(team_id="T999999999"), JSON),
            (world.event(team_id="T000000001", context_team_id="T999999999"), JSON),
            (urlencode({**slash, "team_id": "T999999999"}).encode(), FORM),
            (b"[" * 100_000, JSON),
            (b'{"event": ' * 50_000, JSON),
            (b"", JSON),
            (b"", FORM),
            (b"payload=%5B", FORM),
            (b'{"type": "event_callback", "event": []}', JSON),
            (b"ssl_check=1&token=x", FORM),
        ]
        answers = [await world.posts(body, content_type) for body, content_type in posts]
        assert answers == [(200, "")] * len(posts)
        assert desk.stored == []


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_a_repeated_post_is_stored_once() -> None:
    """Whether Slack repeats it, or an attacker replays it while its signature is valid (P1)."""
    desk = Desk()
    async with running(desk.admit) as world:
        for headers in ({}, {"X-Slack-Retry-Num": "1"}, {"X-Slack-Retry-Num": "x"}):
            signed = {**world.slack.signed_headers(world.event()), **headers}
            assert await world.posts(world.event(), headers=signed) == (200, "")
        assert [envelope.body for envelope in desk.stored] == [Said(text="hello")]


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_a_late_retry_reads_chats_back() -> None:
    """After such a gap Slack may have given up others; a further late retry reads none."""
    desk = Desk()
    async with running(desk.admit) as world:
        first = await world.ann.says("one")
        await first.confirmed.wait()
        world.slack.request_url, url = world.slack.request_url + "/gone", world.slack.request_url
        await world.ann.says("two")
        third = await world.ann.says("three")
        await world.slack.until(lambda: world.slack.answers.count(404) == 4)
        world.slack.request_url = url
        await world.clock.advance(400.0)
        await third.dispatch(retry=3)
        await third.confirmed.wait()
        await third.dispatch(retry=3)
        await (await world.ann.says("four")).confirmed.wait()  # after its chat was read, if at all
        received = [envelope.body for envelope in desk.stored]
        assert received == [Said(text=word) for word in ("one", "two", "three", "four")]
        assert world.slack.calls.count("conversations.history") == 1


# --- settings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({}, 'receive = "socket_mode" needs the key `app_token`'),
        ({"receive": "webhook"}, 'receive = "webhook" needs the key `signing_secret`'),
        ({"app_token": TOKEN, "signing_secret": TOKEN}, "`signing_secret` is not used"),
        (
            {"receive": "webhook", "app_token": TOKEN, "signing_secret": TOKEN},
            "`app_token` is not used",
        ),
        ({"app_token": TOKEN, "webhook_path": "slack"}, "must be a path such as /slack"),
        ({"app_token": TOKEN, "webhook_path": "/a?b"}, "must be a path such as /slack"),
    ],
)
def test_the_settings_need_the_secret_of_one_way_to_receive(keys: Json, fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        SlackSettings.model_validate({"bot_token": TOKEN, **keys})


def test_only_the_webhook_needs_the_public_listener() -> None:
    assert (is_public(CALLED), is_public(SETTINGS)) == (True, False)


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_the_settings_of_a_webhook_can_be_checked() -> None:
    """It needs no app token, and opens no connection with one."""
    async with SlackServer() as slack:
        settings = CALLED.model_copy(update={"api_base_url": slack.url})
        summary = await check(settings, {"bot_token": BOT, "signing_secret": SIGNING_SECRET})
        assert summary.endswith("Slack is to call /slack of the public listener")
        assert slack.calls == ["auth.test"]
