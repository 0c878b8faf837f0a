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
    told: list[tuple[int, str, object]] = field(default_factory=list[tuple[int, str, object]])
    waiting: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])

    def tell(self, event: str, data: object) -> None:
        """Number an event and queue it if the session is connected."""
        self.sequence += 1
        self.told.append((self.sequence, event, data))
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
        self, channel: int, name: str, content: bytes, *, said_bytes: int, text: str = ""
    ) -> Message:
        """Send a file with a claimed size of `said_bytes`."""
        backend = self.server.backend
        stored = backend.cdn.store_attachment(backend.snowflake(), channel, name, content, None)
        stored["url"] = self.server.keep(content)
        stored["size"] = said_bytes
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
        given = [{"type": 3, "name": key, "value": value} for key, value in options.items()]
        data: Json = {"id": "1", "name": name, "type": 1, "options": given}
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
            standing = backend.get_message(message_channel or channel, message)
            shown = serializers.message_payload(backend, standing)
            payload["message"] = dict(shown)
        action = UserAction(server=self.server, id=record.id, channel=channel, message=message)
        self.server.actions[str(record.id)] = action
        action.event = plain(payload)
        self.server.tell("INTERACTION_CREATE", action.event)
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
        self.server.tell("INTERACTION_CREATE", self.event)


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
        is_held: Refuse gateway connections.
        is_deaf: Answer no heartbeats.
        are_servers_late: Sessions learn of no server before `tell_servers`.
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
        self.is_held = False
        self.is_deaf = False
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
    def is_heard(self) -> bool:
        """Whether the bot is connected to the gateway now."""
        return any(one.socket is not None for one in self._sessions.values())

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

    def archive(self, thread: int) -> None:
        """Archive a thread, as Discord does after a while of silence."""
        about = self.backend.channels[thread].thread_metadata
        assert about is not None  # noqa: S101  it is a thread
        about.archived = True

    def from_bot(self, channel: int) -> Sequence[Message]:
        """Return the bot's current messages in a channel that everybody sees."""
        found = self.backend.messages.get(channel, {}).values()
        return [one for one in found if one.author_id == self.bot and not one.is_ephemeral]

    def keep(self, content: bytes) -> str:
        """Store a file and return its URL."""
        self._files.append(content)
        return f"http://127.0.0.1:{self._port}/files/{len(self._files) - 1}"

    def content(self, url: str) -> bytes | None:
        """Return the bytes of a sent file, None if there is none."""
        kept = url.removeprefix(f"http://127.0.0.1:{self._port}/files/")
        return self._files[int(kept)] if kept.isdecimal() else self.backend.cdn.get(url)

    def will(self, fault: Fault) -> None:
        """Make the next calls of a kind fail."""
        self.faults.append(fault)

    def tell(self, event: str, data: object) -> None:
        """Send any event to every session."""
        for session in self._sessions.values():
            session.tell(event, data)

    def tell_servers(self) -> None:
        """Send what there is in each server to every session."""
        for session in self._sessions.values():
            self._tell_servers(session)

    def tell_message(self, message: Message) -> None:
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
            return sum(one == method and bool(re.search(path, at)) for one, at in self.calls)

        await self.until(lambda: count() >= times)

    def next_change(self) -> asyncio.Event:
        """Return an event that is set after the next call or action."""
        moved = asyncio.Event()
        self._waiting.append(moved)
        return moved

    def release(self) -> None:
        """Signal a change."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.set()

    async def until(self, holds: Callable[[], T]) -> T:
        """Wait until a condition is true, and return its result; checks it after each change."""
        try:
            async with asyncio.timeout(self.patience_s):
                while not (found := holds()):
                    await self.next_change().wait()
        except TimeoutError:
            message = f"it did not come about:\n{self.transcript()}"
            raise AssertionError(message) from None
        return found

    def transcript(self) -> str:
        """Return all messages and the latest calls, for the report of a failed test."""
        said = [
            f"{one.channel_id} {one.author_id}: {one.content}"
            for channel in self.backend.messages.values()
            for one in channel.values()
        ]
        return "\n".join([*said, *(f"{method} {path}" for method, path in self.calls[-40:])])

    # --- the gateway -----------------------------------------------------------------------------

    def _on_event(self, event: str, payload: Mapping[str, object]) -> None:
        data = plain(payload)
        for session in self._sessions.values():
            session.tell(event, self._seen(event, data, session.intents))

    def _seen(self, event: str, data: Json, intents: int) -> Json:
        """Return an event without the content that the intents hide; see "Message Content Intent"."""
        is_message = event in {"MESSAGE_CREATE", "MESSAGE_UPDATE"} and "content" in data
        if not is_message or intents & CONTENT or "guild_id" not in data:
            return data
        author = cast("Json", data["author"])
        mentions = cast("list[Json]", data["mentions"])
        is_meant = any(one["id"] == str(self.bot) for one in mentions)
        if is_meant or author["id"] == str(self.bot):
            return data
        return {**data, "content": "", "attachments": [], "embeds": [], "components": []}

    async def _gateway(self, request: web.Request) -> web.StreamResponse:
        if self.is_held:
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
                said = cast("Json", json.loads(cast("str", message.data)))
                data = cast("Json", said["d"]) if isinstance(said["d"], dict) else {}
                match said["op"]:
                    case 1 if not self.is_deaf:
                        await socket.send_str(_frame(11))
                    case 2:
                        session = await self._begun(socket, data)
                    case 6:
                        session = await self._resumed(socket, data)
                    case _:
                        pass
                if session is not None and sender is None:
                    sender = group.create_task(_sending(session, socket))
            if sender is not None:
                sender.cancel()
        if session is not None and session.socket is socket:
            session.socket = None
        return socket

    async def _begun(self, socket: web.WebSocketResponse, data: Json) -> Session | None:
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
        session.tell(
            "READY",
            {
                "v": 10,
                "user": plain(serializers.user_payload(self.backend.bot_user)),
                "session_id": session.id,
                "guilds": [{"id": str(one.id), "unavailable": True} for one in guilds],
                "resume_gateway_url": self._gateway_url,
                "application": {"id": str(self.backend.application_id), "flags": 0},
            },
        )
        if not self.are_servers_late:
            self._tell_servers(session)
        return session

    def _tell_servers(self, session: Session) -> None:
        for one in self.backend.guilds.values():
            shown = plain(serializers.guild_create_payload(self.backend, one))
            threads = cast("list[dict[str, Json]]", shown["threads"])
            # Archived threads are left out ("Guild Create", read 2026-11).
            active = [each for each in threads if not each["thread_metadata"]["archived"]]
            session.tell("GUILD_CREATE", {**shown, "threads": active})

    async def _resumed(self, socket: web.WebSocketResponse, data: Json) -> Session | None:
        session = self._sessions.get(str(data["session_id"]))
        if session is None:
            await socket.send_str(_frame(9, data=False))
            return None
        self.resumes += 1
        self.release()
        session.waiting = asyncio.Queue()
        for number, event, told in session.told:
            if number > cast("int", data["seq"]):
                session.waiting.put_nowait(_frame(0, told, number, event))
        session.socket = socket
        session.tell("RESUMED", {})
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
                told = {"message": "You are being rate limited.", "retry_after": float(wait_s)}
                told["global"] = False
                return _answer(told, status=429, headers={"Retry-After": str(wait_s)})
            answer = await self._faulty(request, method, path)
            for of_method, of_path, headers in self.limits:
                if of_method == method and re.search(of_path, path):
                    answer.headers.update(headers)
            return answer
        finally:
            self.calls.append((method, path))
            self.release()

    async def _faulty(self, request: web.Request, method: str, path: str) -> web.Response:
        for fault in self.faults:
            if fault.times and fault.method == method and re.search(fault.path, path):
                fault.times -= 1
                if fault.carried_out:
                    await self._carried_out(request, method, path)
                if fault.hangs:
                    self.calls.append((method, path))
                    self.release()
                    await self._closing.wait()
                if fault.status:
                    return _answer(fault.body, status=fault.status, headers=fault.headers)
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
        return await self._carried_out(request, method, path)

    async def _carried_out(self, request: web.Request, method: str, path: str) -> web.Response:
        is_free = path.startswith(("/interactions/", "/webhooks/"))
        if not is_free and request.headers.get("Authorization") != f"Bot {self.token}":
            return _answer({"message": "401: Unauthorized", "code": 0}, status=401)
        if path == "/gateway/bot":
            left, after_ms = self.remaining, self.reset_after_ms
            limit = {"total": 1000, "remaining": left, "reset_after": after_ms}
            return _answer({"url": self._gateway_url, "shards": 1, "session_start_limit": limit})
        if found := re.fullmatch(r"/channels/(\d+)/typing", path):
            self.typing.append(found[1])
            return web.Response(status=204)
        body, files = await _read(request)
        if isinstance(body, dict) and (too_long := _too_long(body)):
            told = {"message": f"Invalid Form Body: {too_long}", "code": 50035}
            return _answer(told, status=400)
        if found := re.fullmatch(r"/interactions/(\d+)/[^/]+/callback", path):
            self._take_answer(found[1], cast("Json", body))
        nonce = str(body.get("nonce") or "") if isinstance(body, dict) else ""
        known = self._nonces.get(nonce)
        if nonce and known is not None:
            return _answer(known)
        opens = re.fullmatch(r"/channels/(\d+)/messages/(\d+)/threads", path)
        if opens and self._is_opened(int(opens[1]), int(opens[2])):
            return _answer(
                {"message": "A thread has already been created", "code": 160004}, status=400
            )
        try:
            answered = self._dispatched(request, method, path, body, files)
        except BackendError as error:
            return _answer(error.to_json(), status=error.status)
        if method == "POST" and nonce:
            self._nonces[nonce] = cast("Json", answered)
        return web.Response(status=204) if answered in (None, "") else _answer(answered)

    def _is_opened(self, channel: int, message: int) -> bool:
        """Whether a message of a channel has a thread; threads of no message have other ids."""
        is_there = message in self.backend.messages.get(channel, {})
        return is_there and message in self.backend.channels

    def _dispatched(
        self, request: web.Request, method: str, path: str, body: object, files: list[object]
    ) -> object:
        params = dict(request.query)
        if method == "GET" and (found := re.fullmatch(r"/channels/(\d+)/messages", path)):
            params = self._page(int(found[1]), params)
        answered: object = router.dispatch(
            self.backend, method, path, json=body, params=params, files=files, reason=None
        )
        return _as_rest(answered) if path.startswith("/channels/") else answered

    def _page(self, channel: int, params: dict[str, str]) -> dict[str, str]:
        """Correct a query with `after`: Discord returns the next messages, simcord the newest."""
        if "after" not in params:
            return params
        ids = sorted(
            one for one in self.backend.messages.get(channel, {}) if one > int(params["after"])
        )
        following = ids[: int(params["limit"])]
        last = following[-1] if following else int(params["after"])
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
    found = _COUNTED.fullmatch(path) if method in {"POST", "PATCH"} else None
    if found is None:
        return {"all": IN_ALL}
    kind = method, found["channel"], path.endswith("/typing")
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
        field for field, value, most in lengths if value is not None and len(str(value)) > most
    )


async def _sending(session: Session, socket: web.WebSocketResponse) -> None:
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
            one = SimpleNamespace(
                filename=part.filename, fp=content, description=None, spoiler=False
            )
            files.append(one)
    body, found = router.parse_form(form, files)
    return cast("Json", body), list(found)


def _as_rest(answered: object) -> object:
    """Remove the server's id from messages, which the API leaves out of its answers."""
    if isinstance(answered, list):
        return [_as_rest(one) for one in cast("list[object]", answered)]
    if isinstance(answered, dict) and "content" in answered:
        return {key: value for key, value in cast("Json", answered).items() if key != "guild_id"}
    return cast("object", answered)


def _answer(
    body: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    # The library parses JSON only if the header is exactly this.
    content = body if isinstance(body, bytes) else json.dumps(body, default=str).encode()
    kind = "text/html" if content is body else "application/json"
    shown = {**(headers or {}), "Content-Type": kind}
    return web.Response(body=content, status=status, headers=shown)
