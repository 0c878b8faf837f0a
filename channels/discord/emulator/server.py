"""Discord on a loopback port: simcord's backend behind our own HTTP and websocket front end.

simcord keeps the state and answers like Discord's API. This front end speaks the protocols, and adds
what simcord lacks: the nonce that identifies a repeated send, a history read from a position, intents
that hide content, sessions that resume, faults, and people's actions in their app. It does not import the
adapter.

    async with DiscordServer(clock=clock) as discord:
        ann = discord.person("ann")
        ann.says(ann.direct, "hello")
"""

import asyncio
import base64
import io
import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Self, TypeVar, cast

from aiohttp import BodyPartReader, WSMsgType, web
from simcord import interactions
from simcord._clock import Clock as BackendClock
from simcord.backend import Backend, serializers
from simcord.backend.errors import BackendError
from simcord.backend.models import Message
from simcord.http import router, routes

from channels._remote.emulator.buckets import Buckets, Rate
from zeroclaw import Clock

_ROUTES = routes  # the import registers them with the router

T = TypeVar("T")
Json = dict[str, object]
CONTENT = 1 << 15
HEARTBEAT_MS = 41_250
_DIRECT, _TEXT, _THREAD = 1, 0, 11
MAX_NONCE, MAX_THREAD_NAME, MAX_FORM_TITLE = 25, 100, 45
"""Characters ("Create Message", "Start Thread from Message", "Modal", read 2026-11); simcord checks
the other limits."""
IN_ALL = Rate(per_s=50, burst=50)
""""Rate Limits", "Global Rate Limit", read 2026-11."""
_IN_A_CHANNEL = Rate(per_s=1, burst=5)
"""Seen in response headers; Discord publishes no number."""
_COUNTED = re.compile(r"/channels/(?P<channel>\d+)/(?:messages(?P<message>/\d+)?|typing)")


class _Time(BackendClock):
    """Adapts our clock to the backend's."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now()


@dataclass(kw_only=True)
class Fault:
    """A fault of the next calls of a kind.

    Attributes:
        method: The HTTP method.
        path: A regular expression to find in the path.
        status: The status to answer; 0 cuts the connection.
        body: The body to answer: JSON, or bytes for the page of a proxy.
        headers: The headers to answer.
        carried_out: The call is carried out nevertheless.
        hangs: There is never an answer.
        times: The number of calls that it affects.
    """

    method: str
    path: str
    status: int = 0
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    carried_out: bool = False
    hangs: bool = False
    times: int = 1


@dataclass(kw_only=True)
class Session:
    """A gateway session, which outlives its connections."""

    id: str
    intents: int
    socket: web.WebSocketResponse | None = None
    sequence: int = 0
    dispatched: list[tuple[int, str, object]] = field(default_factory=list[tuple[int, str, object]])
    waiting: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])

    def dispatch(self, event: str, data: object) -> None:
        """Number an event and queue it if the session is connected."""
        self.sequence += 1
        self.dispatched.append((self.sequence, event, data))
        if self.socket is not None:
            self.waiting.put_nowait(_frame(0, data, self.sequence, event))


def _frame(
    op: int, data: object = None, number: int | None = None, event: str | None = None
) -> str:
    return json.dumps({"op": op, "d": data, "s": number, "t": event}, default=str)


def plain(value: object) -> Json:
    """Return a payload as plain JSON."""
    return cast(
        "Json", json.loads(json.dumps(dict(cast("Mapping[str, object]", value)), default=str))
    )


@dataclass(kw_only=True)
class Person:
    """A person of the server; each method is an action of theirs."""

    server: "DiscordServer"
    id: int
    direct: int

    def says(self, channel: int, text: str, *, reply_to: int | None = None) -> Message:
        """Send a message to a channel."""
        reference = None if reply_to is None else {"message_id": str(reply_to)}
        return self.server.backend.create_message(channel, self.id, text, reference=reference)

    def sends(
        self, channel: int, name: str, content: bytes, *, claimed_bytes: int, text: str = ""
    ) -> Message:
        """Send a file with a claimed size of `claimed_bytes`."""
        backend = self.server.backend
        stored = backend.cdn.store_attachment(backend.snowflake(), channel, name, content, None)
        stored["url"] = self.server.store_file(content)
        stored["size"] = claimed_bytes
        return backend.create_message(channel, self.id, text, attachments=[stored])

    def edits(self, message: Message, text: str) -> None:
        """Edit a message."""
        self.server.backend.edit_message(message.channel_id, message.id, {"content": text})

    def deletes(self, message: Message) -> None:
        """Delete a message."""
        self.server.backend.delete_message(message.channel_id, message.id)

    def presses(
        self, channel: int, message: int, custom_id: str, *, message_channel: int = 0
    ) -> "UserAction":
        """Press a button; `message_channel` forges a press on a message of another channel."""
        data: Json = {"custom_id": custom_id, "component_type": 2}
        return self._interact(3, channel, data, message, message_channel=message_channel)

    def submits(self, form: "UserAction", reason: str) -> "UserAction":
        """Fill in and submit the form that a press was answered with."""
        shown = form.form
        typed = {"type": 4, "custom_id": "reason", "value": reason}
        rows = [{"type": 1, "components": [typed]}]
        data: Json = {"custom_id": str(shown["custom_id"]), "components": rows}
        return self._interact(5, form.channel, data, form.message)

    def uses(self, channel: int, name: str, **options: str) -> "UserAction":
        """Use a slash command."""
        values = [{"type": 3, "name": key, "value": value} for key, value in options.items()]
        data: Json = {"id": "1", "name": name, "type": 1, "options": values}
        return self._interact(2, channel, data, 0)

    def _interact(
        self, kind: int, channel: int, data: Json, message: int, *, message_channel: int = 0
    ) -> "UserAction":
        backend = self.server.backend
        guild = backend.get_channel(channel).guild_id
        record, payload = interactions.base_payload(
            backend, type=kind, channel_id=channel, guild_id=guild, user_id=self.id, data=data
        )
        if message:
            record.source_message_id = message
            source = backend.get_message(message_channel or channel, message)
            shown = serializers.message_payload(backend, source)
            payload["message"] = dict(shown)
        action = UserAction(server=self.server, id=record.id, channel=channel, message=message)
        self.server.actions[str(record.id)] = action
        action.event = plain(payload)
        self.server.dispatch("INTERACTION_CREATE", action.event)
        return action


@dataclass(kw_only=True)
class UserAction:
    """A press, a form or a slash command, and the bot's answers.

    Attributes:
        answers: The bodies of the answers, in order.
    """

    server: "DiscordServer"
    id: int
    channel: int
    message: int
    event: Json = field(default_factory=dict[str, object])
    answers: list[Json] = field(default_factory=list[Json])
    was_answered: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def form(self) -> Json:
        """The form in the bot's last answer."""
        return cast("Json", self.answers[-1]["data"])

    async def answered(self) -> Json:
        """Wait for the first answer."""
        await self.was_answered.wait()
        return self.answers[0]

    def again(self) -> None:
        """Send the event once more, as after a lost connection."""
        self.server.dispatch("INTERACTION_CREATE", self.event)


class DiscordServer:
    """The platform.

    Attributes:
        backend: The state of Discord.
        identifies: Number of sessions begun.
        resumes: Number of sessions resumed.
        granted: Intents that the bot may request.
        intents: Intents that it requested, of all sessions.
        calls: Method and path of each call, in order.
        typing: Channels of the bot's typing calls, in order.
        refuses_connections: Refuse gateway connections.
        ignores_heartbeats: Answer no heartbeats.
        are_servers_late: Sessions learn of no server before `dispatch_servers`.
        limits: Rate limit headers to add to answers: method, pattern of the path, headers.
        is_paced: Refuse calls beyond the rate limits.
        buckets: By method, channel and kind, and one for all calls.
    """

    def __init__(self, *, clock: Clock) -> None:
        self.backend = Backend(clock=_Time(clock))
        self._clock = clock
        self.is_paced = False
        self.buckets = Buckets()
        self.granted = ~0
        self.intents: set[int] = set()
        self.identifies = 0
        self.resumes = 0
        self.calls: list[tuple[str, str]] = []
        self.typing: list[str] = []
        self.faults: list[Fault] = []
        self.actions: dict[str, UserAction] = {}
        self.refuses_connections = False
        self.ignores_heartbeats = False
        self.are_servers_late = False
        self.limits: list[tuple[str, str, Mapping[str, str]]] = []
        self.remaining, self.reset_after_ms = 1000, 60_000
        self._sessions: dict[str, Session] = {}
        self._nonces: dict[str, Json] = {}
        self._files: list[bytes] = []
        self._waiting: list[asyncio.Event] = []
        self._closing = asyncio.Event()
        self.patience_s = 50.0
        self.backend.subscribers.append(self._on_event)
        self.guild = self.backend.create_guild("zero")
        if self.bot not in self.guild.members:
            self.backend.add_member(self.guild.id, self.bot)
        first = base64.urlsafe_b64encode(str(self.bot).encode()).decode().rstrip("=")
        self.token = f"{first}.token.zeroclaw"
        application = web.Application(client_max_size=64 << 20)
        application.router.add_get("/gateway", self._gateway)
        application.router.add_get(r"/files/{number:\d+}", self._file)
        application.router.add_route("*", "/api/v10/{path:.*}", self._rest)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        self._port = 0

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = cast("int", self._runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        await self.drop()
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """The base URL of the API."""
        return f"http://127.0.0.1:{self._port}/api/v10"

    @property
    def bot(self) -> int:
        """The bot's id."""
        return self.backend.bot_user.id

    @property
    def is_connected(self) -> bool:
        """Whether the bot is connected to the gateway now."""
        return any(session.socket is not None for session in self._sessions.values())

    # --- for tests -------------------------------------------------------------------------------

    def person(self, name: str) -> Person:
        """Add a person to the server, with a direct chat with the bot."""
        user = self.backend.make_user(name)
        self.backend.add_member(self.guild.id, user.id)
        return Person(server=self, id=user.id, direct=self.backend.get_dm_channel(user.id).id)

    def channel(self, name: str) -> int:
        """Make a channel in the server."""
        return self.backend.create_channel(self.guild.id, name, type=_TEXT).id

    def thread(self, channel: int, name: str) -> int:
        """Open a thread in a channel."""
        return self.backend.create_thread(channel, name, owner_id=self.bot).id

    def archive(self, thread: int, *, is_archived: bool = True) -> None:
        """Archive a thread, as Discord does after a while of silence, or open it again."""
        metadata = self.backend.channels[thread].thread_metadata
        assert metadata is not None  # noqa: S101  it is a thread
        metadata.archived = is_archived
        self.backend.announce_channel_update(thread)

    def from_bot(self, channel: int) -> Sequence[Message]:
        """Return the bot's current messages in a channel that everybody sees."""
        messages = self.backend.messages.get(channel, {}).values()
        return [
            message
            for message in messages
            if message.author_id == self.bot and not message.is_ephemeral
        ]

    def store_file(self, content: bytes) -> str:
        """Store a file and return its URL."""
        self._files.append(content)
        return f"http://127.0.0.1:{self._port}/files/{len(self._files) - 1}"

    def content(self, url: str) -> bytes | None:
        """Return the bytes of a sent file, None if there is none."""
        number = url.removeprefix(f"http://127.0.0.1:{self._port}/files/")
        return self._files[int(number)] if number.isdecimal() else self.backend.cdn.get(url)

    def will(self, fault: Fault) -> None:
        """Make the next calls of a kind fail."""
        self.faults.append(fault)

    def dispatch(self, event: str, data: object) -> None:
        """Send any event to every session."""
        for session in self._sessions.values():
            session.dispatch(event, data)

    def dispatch_servers(self) -> None:
        """Send what there is in each server to every session."""
        for session in self._sessions.values():
            self._dispatch_servers(session)

    def dispatch_message(self, message: Message) -> None:
        """Send the event of a message once more."""
        shown = serializers.message_payload(self.backend, message)
        self._on_event("MESSAGE_CREATE", cast("Mapping[str, object]", shown))

    async def drop(self, code: int = 4000, *, forget: bool = False) -> None:
        """Close every connection; sessions can be resumed unless `forget` is set."""
        sessions = list(self._sessions.values())
        if forget:
            self._sessions.clear()
        for session in sessions:
            socket, session.socket = session.socket, None
            if socket is not None:
                await socket.close(code=code)

    async def send_raw(self, frame: str) -> None:
        """Send any frame on every connection."""
        for session in self._sessions.values():
            if session.socket is not None:
                await session.socket.send_str(frame)

    async def until_resumed(self) -> None:
        """Wait until a session was resumed."""
        await self.until(lambda: self.resumes > 0)

    async def until_called(self, method: str, path: str, times: int = 1) -> None:
        """Wait for `times` calls of a kind."""

        def count() -> int:
            return sum(
                verb == method and bool(re.search(path, url_path)) for verb, url_path in self.calls
            )

        await self.until(lambda: count() >= times)

    def next_change(self) -> asyncio.Event:
        """Return an event that is set after the next call or action."""
        changed = asyncio.Event()
        self._waiting.append(changed)
        return changed

    def release(self) -> None:
        """Signal a change."""
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            change.set()

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until a condition is true, and return its result; checks it after each change."""
        try:
            async with asyncio.timeout(self.patience_s):
                while not (result := condition()):
                    await self.next_change().wait()
        except TimeoutError:
            message = f"it did not come about:\n{self.transcript()}"
            raise AssertionError(message) from None
        return result

    def transcript(self) -> str:
        """Return all messages and the latest calls, for the report of a failed test."""
        lines = [
            f"{message.channel_id} {message.author_id}: {message.content}"
            for channel in self.backend.messages.values()
            for message in channel.values()
        ]
        return "\n".join([*lines, *(f"{method} {path}" for method, path in self.calls[-40:])])

    # --- the gateway -----------------------------------------------------------------------------

    def _on_event(self, event: str, payload: Mapping[str, object]) -> None:
        data = plain(payload)
        for session in self._sessions.values():
            session.dispatch(event, self._visible(event, data, session.intents))

    def _visible(self, event: str, data: Json, intents: int) -> Json:
        """Return an event without the content that the intents hide; see "Message Content Intent"."""
        is_message = event in {"MESSAGE_CREATE", "MESSAGE_UPDATE"} and "content" in data
        if not is_message or intents & CONTENT or "guild_id" not in data:
            return data
        author = cast("Json", data["author"])
        mentions = cast("list[Json]", data["mentions"])
        is_mentioned = any(mention["id"] == str(self.bot) for mention in mentions)
        if is_mentioned or author["id"] == str(self.bot):
            return data
        return {**data, "content": "", "attachments": [], "embeds": [], "components": []}

    async def _gateway(self, request: web.Request) -> web.StreamResponse:
        if self.refuses_connections:
            return web.Response(status=503)
        socket = web.WebSocketResponse(compress=False, max_msg_size=0)
        await socket.prepare(request)
        await socket.send_str(_frame(10, {"heartbeat_interval": HEARTBEAT_MS}))
        session: Session | None = None
        async with asyncio.TaskGroup() as group:
            sender: asyncio.Task[None] | None = None
            async for message in socket:
                if message.type is not WSMsgType.TEXT:
                    continue
                frame = cast("Json", json.loads(cast("str", message.data)))
                data = cast("Json", frame["d"]) if isinstance(frame["d"], dict) else {}
                match frame["op"]:
                    case 1 if not self.ignores_heartbeats:
                        await socket.send_str(_frame(11))
                    case 2:
                        session = await self._identify(socket, data)
                    case 6:
                        session = await self._resume(socket, data)
                    case _:
                        pass
                if session is not None and sender is None:
                    sender = group.create_task(_send_frames(session, socket))
            if sender is not None:
                sender.cancel()
        if session is not None and session.socket is socket:
            session.socket = None
        return socket

    async def _identify(self, socket: web.WebSocketResponse, data: Json) -> Session | None:
        if data["token"] != self.token:
            await socket.close(code=4004)
            return None
        intents = cast("int", data["intents"])
        if intents & CONTENT & ~self.granted:
            await socket.close(code=4014)
            return None
        self.intents.add(intents)
        self.identifies += 1
        self.release()
        session = Session(id=f"session-{self.identifies}", intents=intents, socket=socket)
        self._sessions[session.id] = session
        guilds = list(self.backend.guilds.values())
        session.dispatch(
            "READY",
            {
                "v": 10,
                "user": plain(serializers.user_payload(self.backend.bot_user)),
                "session_id": session.id,
                "guilds": [{"id": str(guild.id), "unavailable": True} for guild in guilds],
                "resume_gateway_url": self._gateway_url,
                "application": {"id": str(self.backend.application_id), "flags": 0},
            },
        )
        if not self.are_servers_late:
            self._dispatch_servers(session)
        return session

    def _dispatch_servers(self, session: Session) -> None:
        for guild in self.backend.guilds.values():
            shown = plain(serializers.guild_create_payload(self.backend, guild))
            threads = cast("list[dict[str, Json]]", shown["threads"])
            # Archived threads are left out ("Guild Create", read 2026-11).
            active = [thread for thread in threads if not thread["thread_metadata"]["archived"]]
            session.dispatch("GUILD_CREATE", {**shown, "threads": active})

    async def _resume(self, socket: web.WebSocketResponse, data: Json) -> Session | None:
        session = self._sessions.get(str(data["session_id"]))
        if session is None:
            await socket.send_str(_frame(9, data=False))
            return None
        self.resumes += 1
        self.release()
        session.waiting = asyncio.Queue()
        for number, event, payload in session.dispatched:
            if number > cast("int", data["seq"]):
                session.waiting.put_nowait(_frame(0, payload, number, event))
        session.socket = socket
        session.dispatch("RESUMED", {})
        return session

    @property
    def _gateway_url(self) -> str:
        return f"ws://127.0.0.1:{self._port}/gateway"

    # --- the API ---------------------------------------------------------------------------------

    async def _rest(self, request: web.Request) -> web.Response:
        path, method = f"/{request.match_info['path']}", request.method
        try:
            rates, at = _rates_of(method, path), self._clock.monotonic()
            if self.is_paced and (wait_s := self.buckets.take(rates, at)):
                body = {"message": "You are being rate limited.", "retry_after": float(wait_s)}
                body["global"] = False
                return _answer(body, status=429, headers={"Retry-After": str(wait_s)})
            answer = await self._call_with_faults(request, method, path)
            for of_method, of_path, headers in self.limits:
                if of_method == method and re.search(of_path, path):
                    answer.headers.update(headers)
            return answer
        finally:
            self.calls.append((method, path))
            self.release()

    async def _call_with_faults(self, request: web.Request, method: str, path: str) -> web.Response:
        for fault in self.faults:
            if fault.times and fault.method == method and re.search(fault.path, path):
                fault.times -= 1
                if fault.carried_out:
                    await self._carry_out(request, method, path)
                if fault.hangs:
                    self.calls.append((method, path))
                    self.release()
                    await self._closing.wait()
                if fault.status:
                    return _answer(fault.body, status=fault.status, headers=fault.headers)
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
        return await self._carry_out(request, method, path)

    async def _carry_out(self, request: web.Request, method: str, path: str) -> web.Response:
        is_free = path.startswith(("/interactions/", "/webhooks/"))
        if not is_free and request.headers.get("Authorization") != f"Bot {self.token}":
            return _answer({"message": "401: Unauthorized", "code": 0}, status=401)
        if path == "/gateway/bot":
            remaining, after_ms = self.remaining, self.reset_after_ms
            limit = {"total": 1000, "remaining": remaining, "reset_after": after_ms}
            return _answer({"url": self._gateway_url, "shards": 1, "session_start_limit": limit})
        if match := re.fullmatch(r"/channels/(\d+)/typing", path):
            self.typing.append(match[1])
            return web.Response(status=204)
        body, files = await _read(request)
        if isinstance(body, dict) and (too_long := _too_long(body)):
            refusal = {"message": f"Invalid Form Body: {too_long}", "code": 50035}
            return _answer(refusal, status=400)
        if match := re.fullmatch(r"/interactions/(\d+)/[^/]+/callback", path):
            self._take_answer(match[1], cast("Json", body))
        nonce = str(body.get("nonce") or "") if isinstance(body, dict) else ""
        earlier = self._nonces.get(nonce)
        if nonce and earlier is not None:
            return _answer(earlier)
        if refusal := self._refusal(method, path):
            return _answer(refusal, status=400)
        try:
            result = self._route(request, method, path, body, files)
        except BackendError as error:
            return _answer(error.to_json(), status=error.status)
        if method == "POST" and nonce:
            self._nonces[nonce] = cast("Json", result)
        return web.Response(status=204) if result in (None, "") else _answer(result)

    def _refusal(self, method: str, path: str) -> Json:
        """Return why a thread refuses a call, else an empty object; a new message opens its thread."""
        opens = re.fullmatch(r"/channels/(\d+)/messages/(\d+)/threads", path)
        if opens and self._has_thread(int(opens[1]), int(opens[2])):
            return {"message": "A thread has already been created", "code": 160004}
        match = re.fullmatch(r"/channels/(\d+)/messages(?:/\d+)?", path)
        channel = self.backend.channels.get(int(match[1])) if match and method != "GET" else None
        if channel is None or channel.thread_metadata is None:
            return {}
        if method == "POST":
            channel.thread_metadata.archived = False
        is_archived = channel.thread_metadata.archived
        return {"message": "Thread is archived", "code": 50083} if is_archived else {}

    def _has_thread(self, channel: int, message: int) -> bool:
        """Whether a message of a channel has a thread; threads of no message have other ids."""
        exists = message in self.backend.messages.get(channel, {})
        return exists and message in self.backend.channels

    def _route(
        self, request: web.Request, method: str, path: str, body: object, files: list[object]
    ) -> object:
        params = dict(request.query)
        if method == "GET" and (match := re.fullmatch(r"/channels/(\d+)/messages", path)):
            params = self._page(int(match[1]), params)
        result: object = router.dispatch(
            self.backend, method, path, json=body, params=params, files=files, reason=None
        )
        return _as_rest(result) if path.startswith("/channels/") else result

    def _page(self, channel: int, params: dict[str, str]) -> dict[str, str]:
        """Correct a query with `after`: Discord returns the next messages, simcord the newest."""
        if "after" not in params:
            return params
        ids = sorted(
            id_ for id_ in self.backend.messages.get(channel, {}) if id_ > int(params["after"])
        )
        next_ids = ids[: int(params["limit"])]
        last = next_ids[-1] if next_ids else int(params["after"])
        return {**params, "before": str(last + 1)}

    def _take_answer(self, interaction: str, body: Json) -> None:
        if (action := self.actions.get(interaction)) is not None:
            action.answers.append(body)
            action.was_answered.set()

    async def _file(self, request: web.Request) -> web.Response:
        if "Authorization" in request.headers:  # the bot must not send its token to a file's host
            return web.Response(status=400)
        return web.Response(body=self._files[int(request.match_info["number"])])


def _rates_of(method: str, path: str) -> Mapping[Hashable, Rate]:
    """Return the buckets that a call counts against; answers to interactions count nowhere."""
    if path.startswith(("/interactions/", "/webhooks/")):
        return {}
    match = _COUNTED.fullmatch(path) if method in {"POST", "PATCH"} else None
    if match is None:
        return {"all": IN_ALL}
    kind = method, match["channel"], path.endswith("/typing")
    return {"all": IN_ALL, kind: _IN_A_CHANNEL}


def _too_long(body: Json) -> str:
    """Return the fields that exceed Discord's limits, empty for none."""
    data = body.get("data")
    form = cast("Json", data) if isinstance(data, dict) else {}
    lengths = (
        ("nonce", body.get("nonce"), MAX_NONCE),
        ("name", body.get("name"), MAX_THREAD_NAME),
        ("data.title", form.get("title"), MAX_FORM_TITLE),
    )
    return ", ".join(
        name for name, value, limit in lengths if value is not None and len(str(value)) > limit
    )


async def _send_frames(session: Session, socket: web.WebSocketResponse) -> None:
    while not socket.closed:
        frame = await session.waiting.get()
        try:
            await socket.send_str(frame)
        except ConnectionError:
            return


async def _read(request: web.Request) -> tuple[Json | list[object] | None, list[object]]:
    """Return the body and files of a call."""
    if not request.content_type.startswith("multipart/"):
        if not request.can_read_body:
            return None, []
        return cast("Json", await request.json()), []
    form: list[dict[str, str]] = []
    files: list[object] = []
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            continue
        if part.filename is None:
            form.append({"name": str(part.name), "value": await part.text()})
        else:
            content = io.BytesIO(bytes(await part.read()))
            file = SimpleNamespace(
                filename=part.filename, fp=content, description=None, spoiler=False
            )
            files.append(file)
    body, parsed = router.parse_form(form, files)
    return cast("Json", body), list(parsed)


def _as_rest(result: object) -> object:
    """Remove the server's id from messages, which the API leaves out of its answers."""
    if isinstance(result, list):
        return [_as_rest(item) for item in cast("list[object]", result)]
    if isinstance(result, dict) and "content" in result:
        return {key: value for key, value in cast("Json", result).items() if key != "guild_id"}
    return cast("object", result)


def _answer(
    body: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    # The library parses JSON only if the header is exactly this.
    content = body if isinstance(body, bytes) else json.dumps(body, default=str).encode()
    kind = "text/html" if content is body else "application/json"
    all_headers = {**(headers or {}), "Content-Type": kind}
    return web.Response(body=content, status=status, headers=all_headers)
