"""Slack's posts to the public listener: signed ones are stored before they are answered, others are not."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest
from pydantic import ValidationError

from channels.slack import SlackSettings, is_public
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


# --- what a post holds -------------------------------------------------------------------------------


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
def test_a_post_is_read_as_what_it_says_it_is(
    content_type: str, body: bytes, kind: str, payload: Mapping[str, object]
) -> None:
    """What is odd holds nothing."""
    assert parse_post(content_type, body) == (kind, payload)


# --- who posts, and when they are answered -----------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Stage:
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
        """Post, signed unless other headers are given; return the status and what is answered."""
        proof = self.slack.signed_headers(body) if headers is None else headers
        sent = {"Content-Type": content_type, **proof}
        url = self.slack.request_url
        async with self.slack.session.post(url, data=body, headers=sent) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def stage(admit: Admit) -> AsyncGenerator[Stage]:
    clock, facts = ManualClock(), list[str]()
    async with public_listener() as listener, SlackServer() as slack:
        context = replace(called_context(listener, slack, clock), log=noting(facts))
        async with receiving(SlackChannel(context), admit):
            yield Stage(slack=slack, clock=clock, facts=facts, ann=await slack.person())


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_the_request_url_is_proven_with_the_words_that_slack_sent() -> None:
    """Only to Slack: a stranger gets no word back (P4)."""
    asked = json.dumps({"type": "url_verification", "challenge": "3eZbrw1a", "token": "t"}).encode()
    async with stage(Desk().admit) as here:
        assert await here.posts(asked) == (200, "3eZbrw1a")
        assert await here.posts(asked, headers={}) == (401, "")


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_what_slack_did_not_sign_is_not_read() -> None:
    """Each of these holds a message that would be stored; nothing of it reaches a log (P4, P8)."""
    desk = Desk()
    async with stage(desk.admit) as here:
        body = here.event()
        good = here.slack.signed_headers(body)
        now = here.slack.now()
        when, proof = good["X-Slack-Request-Timestamp"], good["X-Slack-Signature"]
        forged: list[Mapping[str, str]] = [
            {},
            {"X-Slack-Signature": proof},
            {"X-Slack-Request-Timestamp": when},
            {**good, "X-Slack-Signature": proof[:-1] + ("0" if proof[-1] != "0" else "1")},
            {**good, "X-Slack-Signature": ""},
            {**good, "X-Slack-Signature": "v0=\u00e9"},
            {**good, "X-Slack-Request-Timestamp": "soon"},
            {**good, "X-Slack-Request-Timestamp": "9" * 5000},
            {**good, "X-Slack-Request-Timestamp": str(int(now) + 1)},
            here.slack.signed_headers(body, at=now - 301),
            here.slack.signed_headers(body, at=now + 302),
            here.slack.signed_headers(here.event("another")),
        ]
        statuses = [(await here.posts(body, headers=headers))[0] for headers in forged]
        assert statuses == [401] * len(forged)
        broken = b"\xff" + body
        assert (await here.posts(broken, headers=here.slack.signed_headers(broken)))[0] == 401
        assert desk.stored == []
        assert await here.posts(body) == (200, "")
        assert [one.body for one in desk.stored] == [Said(text="hello")]
        for secret in (SIGNING_SECRET, BOT, "hello", proof):
            assert secret not in repr(here.facts)


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_what_is_signed_and_odd_is_answered_and_stored_nowhere() -> None:
    """Else Slack would post it again and again; another workspace's ids are other people's (P4)."""
    desk = Desk()
    async with stage(desk.admit) as here:
        slash = {"command": "/zeroclaw", "text": "stop", "user_id": here.ann.id}
        slash |= {"channel_id": here.ann.direct, "trigger_id": "1.2"}
        odd = [
            (here.event(), "text/plain"),
            (here.event(), FORM),
            (here.event(team_id="T999999999"), JSON),
            (here.event(team_id="T000000001", context_team_id="T999999999"), JSON),
            (urlencode({**slash, "team_id": "T999999999"}).encode(), FORM),
            (b"[" * 100_000, JSON),
            (b'{"event": ' * 50_000, JSON),
            (b"", JSON),
            (b"", FORM),
            (b"payload=%5B", FORM),
            (b'{"type": "event_callback", "event": []}', JSON),
            (b"ssl_check=1&token=x", FORM),
        ]
        answers = [await here.posts(body, content_type) for body, content_type in odd]
        assert answers == [(200, "")] * len(odd)
        assert desk.stored == []


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_a_post_that_is_repeated_is_known() -> None:
    """By Slack, or by somebody who overheard it and repeats it while its signature is good (P1)."""
    desk = Desk()
    async with stage(desk.admit) as here:
        for headers in ({}, {"X-Slack-Retry-Num": "1"}, {"X-Slack-Retry-Num": "x"}):
            signed = {**here.slack.signed_headers(here.event()), **headers}
            assert await here.posts(here.event(), headers=signed) == (200, "")
        assert [one.body for one in desk.stored] == [Said(text="hello")]


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_a_late_retry_lets_chats_be_read_back() -> None:
    """So long nothing came through that Slack may have given up others; soon after, not again."""
    desk = Desk()
    async with stage(desk.admit) as here:
        first = await here.ann.says("one")
        await first.confirmed.wait()
        here.slack.request_url, kept = here.slack.request_url + "/gone", here.slack.request_url
        await here.ann.says("two")
        third = await here.ann.says("three")
        await here.slack.until(lambda: here.slack.answers.count(404) == 4)
        here.slack.request_url = kept
        await here.clock.advance(400.0)
        await third.dispatch(retry=3)
        await third.confirmed.wait()
        await third.dispatch(retry=3)
        told = [one.body for one in desk.stored]
        assert told == [Said(text="one"), Said(text="two"), Said(text="three")]
        assert here.slack.calls.count("conversations.history") == 1


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
def test_events_come_one_way(keys: Json, fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        SlackSettings.model_validate({"bot_token": TOKEN, **keys})


def test_only_the_webhook_needs_the_public_listener() -> None:
    assert (is_public(CALLED), is_public(SETTINGS)) == (True, False)


@pytest.mark.slow
@pytest.mark.needs("emulate")
async def test_the_settings_of_a_webhook_can_be_tried() -> None:
    """No app token is asked for, and no connection is opened with one."""
    async with SlackServer() as slack:
        settings = CALLED.model_copy(update={"api_base_url": slack.url})
        told = await check(settings, {"bot_token": BOT, "signing_secret": SIGNING_SECRET})
        assert told.endswith("Slack is to call /slack of the public listener")
        assert slack.calls == ["auth.test"]
