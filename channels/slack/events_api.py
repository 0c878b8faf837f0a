"""Receives Slack's events by the Events API: Slack posts signed events to the public listener.

It has the same interface as Socket Mode (`socket_mode.py`) and the same envelopes. A post is answered
when its event is stored. Slack repeats a post that is not answered within 3 s, with the same event id:
at once, after a minute and after five ("Events API", read 2026-11). It posts presses and slash commands
only once, and tells the person that they failed.

A post is parsed only after its signature was verified ("Verifying requests from Slack", read 2026-11).
A signature is valid for five minutes; replaying a post meanwhile only repeats a known event.
"""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from urllib.parse import parse_qs

from channels._remote.fields import Json, as_object, parse_json, text
from channels.slack import SlackSettings
from channels.slack.calls import Calls
from channels.slack.socket_mode import OnEnvelope, OnUp, SlackEnvelope
from zeroclaw import ChannelContext, ChannelUnavailable, Clock, HookAnswer, HookRequest, Refusals

AGAIN_S = 1
MAX_FIELDS = 100
MAX_CHALLENGE = 200
LATE_RETRIES = frozenset({"2", "3"})
"""Numbers of the retries after a minute or more, a sign that other events may have been lost."""
CATCH_UP_S = 300.0
"""Shortest time between two catch-ups, since every event may come as a late retry."""
_SIGNATURE = "x-slack-signature"
_RETRY = "x-slack-retry-num"


class EventsApi:
    """Receives the events of one app.

    Attributes:
        refused: Counts posts that were not from Slack, by reason.
    """

    def __init__(
        self, calls: Calls, context: ChannelContext, *, on_up: OnUp, on_envelope: OnEnvelope
    ) -> None:
        """Mount nothing yet.

        Args:
            calls: The app's calls; receiving ends when they are closed.
            context: The channel's context, with the signing secret and the public listener.
            on_up: See `SocketMode`.
            on_envelope: See `SocketMode`.
        """
        self._calls, self._context = calls, context
        self._path = context.settings_as(SlackSettings).webhook_path
        self._is_valid = _signatures(context.secrets["signing_secret"].strip(), context.clock)
        self._on_up, self._on_envelope = on_up, on_envelope
        self._numbers = count()
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._caught_up_at = -CATCH_UP_S
        self.refused = Refusals(context.log, "webhook_refused", level="warning")

    async def run(self) -> None:
        """Receive events until cancelled.

        Raises:
            ConfigError: Another channel uses the same path.
            ChannelUnavailable: The channel was closed.
        """
        with self._context.mount.public(self._path, self.answer):
            self._catch_up()
            try:
                await self._calls.http.closed.wait()
            finally:
                for stored in self._waiting.values():
                    stored.cancel()
        message = f"`{self._context.name}` is closed"
        raise ChannelUnavailable(message)

    async def confirm(self, envelope: SlackEnvelope) -> None:
        """Tell Slack that an event is stored; if the confirmation is lost, Slack resends the event."""
        stored = self._waiting.get(envelope.id)
        if stored is None or stored.done():
            self._context.log("confirmation_lost", level="debug")
        else:
            stored.set_result(True)

    async def answer(self, request: HookRequest) -> HookAnswer:
        """Handle one post; status 200 means that its event was stored or ignored."""
        headers = request.headers
        has_signature = _SIGNATURE in headers  # without a signature the body is not read
        body = await request.body() if has_signature else b""
        if not has_signature or not self._is_signed(body, headers):
            self.refused.note("a wrong or old signature" if has_signature else "no signature")
            return HookAnswer(status=401)
        kind, payload = parse_post(headers.get("content-type", ""), body)
        if text(payload, "type") == "url_verification":
            return HookAnswer(body=text(payload, "challenge")[:MAX_CHALLENGE])
        retry = headers.get(_RETRY, "")
        if retry in LATE_RETRIES or text(payload, "type") == "app_rate_limited":
            self._catch_up()
        id_ = str(next(self._numbers))
        return await self._deliver(SlackEnvelope(id=id_, kind=kind, payload=payload))

    def _is_signed(self, body: bytes, headers: Mapping[str, str]) -> bool:
        try:
            return self._is_valid(body, dict(headers))
        except (OverflowError, TypeError, ValueError):
            return False  # the timestamp is no time, or the body is no text

    def _catch_up(self) -> None:
        now = self._context.clock.monotonic()
        if now - self._caught_up_at >= CATCH_UP_S:
            self._caught_up_at = now
            self._on_up(True)  # noqa: FBT003  a callback's one fact

    async def _deliver(self, envelope: SlackEnvelope) -> HookAnswer:
        """Pass an event on, and answer its post when the event is stored or receiving ends."""
        stored = self._waiting[envelope.id] = asyncio.get_running_loop().create_future()
        try:
            self._on_envelope(envelope)
            await asyncio.wait((stored,))
        finally:
            del self._waiting[envelope.id]
        if stored.cancelled():
            return HookAnswer(status=503, retry_after_s=AGAIN_S)
        return HookAnswer()


def parse_post(content_type: str, body: bytes) -> tuple[str, Json]:
    """Return the kind and payload of a post, the same as in a Socket Mode envelope.

    Events come as JSON, presses and slash commands as forms. The kind is empty for anything else.
    """
    match content_type.partition(";")[0].strip().lower():
        case "application/json":
            return "events_api", as_object(parse_json(body))
        case "application/x-www-form-urlencoded":
            if "payload" in (fields := _form(body)):
                return "interactive", as_object(parse_json(fields["payload"].encode()))
            return "slash_commands", fields
        case _:
            return "", {}


def _form(body: bytes) -> Mapping[str, str]:
    try:
        fields = parse_qs(body.decode(), max_num_fields=MAX_FIELDS, errors="replace")
    except ValueError:  # too many fields, or not text
        return {}
    return {name: values[0] for name, values in fields.items()}


def _signatures(secret: str, clock: Clock) -> Callable[[bytes, dict[str, str]], bool]:
    """Return a function that checks signatures; imports here, since Socket Mode needs none of it."""
    from slack_sdk.signature import Clock as SignatureClock
    from slack_sdk.signature import SignatureVerifier

    class WallClock(SignatureClock):
        """Adapts our clock to the library's."""

        def now(self) -> float:
            return clock.now().timestamp()

    return SignatureVerifier(secret, WallClock()).is_valid_request
