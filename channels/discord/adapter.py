"""The Discord adapter: connects incoming events to ingress, and sends messages, cards and files."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from channels._remote.cards import FILE_NAME
from channels._remote.fields import Json, array, as_object, inner, objects, text
from channels._remote.http import repeatable
from channels._remote.intake import try_admit, until
from channels._remote.lanes import Lanes, call_when_allowed
from channels._remote.limits import MARK_SLACK_S, check_size, short_hash, unknown
from channels._remote.reconnection import keep_connected
from channels._remote.settings import check_lookup
from channels.discord import CAPABILITIES, DiscordSettings, cards, decode, menus, render
from channels.discord.decode import DIRECT, Bot, Interaction, author_of, chat_of
from channels.discord.errors import Archived, NoReply, NotFound, ThreadExists
from channels.discord.gateway import Gateway, intents
from channels.discord.interactions import NO_PINGS, Responder
from channels.discord.lookup import Sent, buttons_of, look, snowflake_at
from channels.discord.rest import Rest
from channels.discord.snowflakes import is_snowflake, number_of, snowflake
from zeroclaw import (
    Address,
    Admission,
    Admit,
    Attachment,
    Card,
    ChannelContext,
    ChannelRejected,
    ChannelUnavailable,
    DeliveryUnknown,
    Envelope,
    Ignored,
    LookupResult,
    MessageRef,
    NotSupported,
    Outcome,
    Outgoing,
    OutgoingFile,
    Position,
    Postable,
    Recent,
    Rendered,
    Said,
    ToolProgress,
    ZeroclawError,
    replace,
)

MAX_KNOWN = 10_000
"""Entries of each cache of chats, threads or messages; the oldest are dropped."""
MAX_MISSED = 1_000
"""Limit on messages read back from a chat after an absence, the newest; up to one page more."""
PAGE = 100
"""Get Channel Messages, `limit`, read 2026-11."""
SERVERS_S = 10.0
"""Seconds to wait for the servers at the start of a session; Discord may not send one in an outage."""
MAX_NAME, DAY_MIN = 100, 1440
"""Characters of a thread's name; minutes of silence before it is archived; read 2026-11."""
_NO_EMBEDS = 1 << 2
"""Message Flags, SUPPRESS_EMBEDS, read 2026-11."""


class Event(NamedTuple):
    """An event in a lane: its gateway name and data."""

    name: str
    data: Json


class DiscordChannel:
    """One bot account."""

    def __init__(self, context: ChannelContext) -> None:
        """Open nothing yet.

        Raises:
            ChannelUnauthorized: The token is not in Discord's format.
        """
        settings = context.settings_as(DiscordSettings)
        self.name = context.name
        self.capabilities = settings.capabilities()
        self._context = context
        self._settings = settings
        self._rest = Rest(context.name, settings, context.secrets, context.clock)
        self._bot = Bot(
            channel=context.name,
            id=self._rest.account,
            servers=settings.servers,
            channels=frozenset(settings.channels),
            threads=settings.threads,
        )
        self._flags = 0 if settings.link_previews else _NO_EMBEDS
        # Caches only: the channel can learn all of it again.
        self._read: Recent[str, int] = Recent(MAX_KNOWN)
        self._newest: Recent[str, int] = Recent(MAX_KNOWN)
        self._latest: Recent[str, int] = Recent(MAX_KNOWN)
        self._direct: Recent[str, str] = Recent(MAX_KNOWN)
        self._parents: Recent[str, str] = Recent(MAX_KNOWN)
        self._writers: Recent[str, str] = Recent(MAX_KNOWN)
        self._unseen_servers: set[str] = set()
        self._servers_known = asyncio.Event()
        for scope, cursor in context.positions.items():
            if position := decode.read_cursor(cursor):
                self._remember(scope, *position)
                self._read[scope] = position[1]

    # --- receiving -------------------------------------------------------------------------------

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Receive events until cancelled or closed; see `Channel.receive`."""
        await self._rest.bot_user()
        is_ready = False

        log, clock = self._context.log, self._context.clock
        take, take_interaction = partial(self._take, admit), partial(self._admit_interaction, admit)
        lanes = Lanes(take=take, read=self._read_missed, clock=clock, log=log)
        responder = Responder(self._rest, take_interaction, clock, log)
        with until(self._rest.http.closed):
            async with asyncio.TaskGroup() as group:

                def on_event(name: str, data: Json) -> None:
                    nonlocal is_ready
                    if name == "READY":
                        self._await_servers(data)
                        # The most recently active chats come first; there may be thousands of threads.
                        for chat in sorted(self._read, key=self._read.__getitem__, reverse=True):
                            lanes.catch_up(group, chat)
                        if not is_ready:
                            is_ready = True
                            application = text(inner(data, "application"), "id")
                            # In the background: everything else works without the menu.
                            group.create_task(menus.offer(self._rest, application, self._context))
                            ready()
                    elif name != "INTERACTION_CREATE":
                        self._queue(lanes, group, name, data)
                    elif (found := self._decode_interaction(data)) is not None:
                        responder.begin(group, found)

                gateway = Gateway(self._rest, intents(self._settings), on_event)
                await keep_connected(gateway.hear, self._rest.http, clock, log)

    def _await_servers(self, session: Json) -> None:
        """Drop stale state at the start of a session, and wait for its servers.

        Discord sends them one by one, with the channels' newest messages, the threads and the roles.
        """
        self._latest.clear()
        servers = objects(session, "guilds") if self._bot.servers != "off" else ()
        self._unseen_servers = {snowflake(server, "id") for server in servers}
        self._servers_known.clear()
        if not self._unseen_servers:
            self._servers_known.set()

    def _queue(self, lanes: Lanes[Event], group: asyncio.TaskGroup, name: str, data: Json) -> None:
        """Queue an event in its chat's lane, and cache what it tells; never waits, never raises."""
        match name:
            case "GUILD_CREATE" | "THREAD_LIST_SYNC":
                self._learn_server(lanes, group, data)
            case "THREAD_CREATE" | "THREAD_UPDATE":
                self._learn_channel(data)
            case "MESSAGE_CREATE" | "MESSAGE_UPDATE":
                author = author_of(data)
                chat, number = chat_of(data, author), snowflake(data, "id")
                # An update may have only part of a message, such as its previews.
                if chat and number and author not in {"", self._bot.id}:
                    self._remember(chat, snowflake(data, "channel_id"), int(number))
                    # Stored now, because a deletion may arrive before the message leaves its lane.
                    self._writers[number] = author
                    lanes.put(group, chat, Event(name=name, data=data))
            case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK":
                for id_ in (data.get("id"), *array(data, "ids")):
                    self._queue_deletion(lanes, group, {**data, "id": str(id_)})
            case _:
                pass

    def _queue_deletion(self, lanes: Lanes[Event], group: asyncio.TaskGroup, data: Json) -> None:
        # Discord does not say who the author was, so recent authors are remembered.
        author = self._writers.get(snowflake(data, "id"))
        if author and (chat := chat_of(data, author)):
            lanes.put(group, chat, Event(name="MESSAGE_DELETE", data=data))

    def _learn_channel(self, channel: Json) -> None:
        id_, last = snowflake(channel, "id"), snowflake(channel, "last_message_id")
        if not id_:
            return
        if last:
            self._latest[id_] = max(int(last), self._latest.get(id_, 0))
        if (parent := snowflake(channel, "parent_id")) and "thread_metadata" in channel:
            self._parents[id_] = parent
            if self._bot.threads and snowflake(channel, "owner_id") == self._bot.id:
                self._read.setdefault(id_, int(id_))  # an archived one may be opened again

    def _learn_server(self, lanes: Lanes[Event], group: asyncio.TaskGroup, server: Json) -> None:
        """Cache a server's channels, roles and threads; read the bot's unknown threads in full."""
        self._unseen_servers.discard(snowflake(server, "id"))
        if not self._unseen_servers:
            self._servers_known.set()
        # `THREAD_LIST_SYNC` has threads only.
        self._bot = replace(self._bot, roles=self._bot.roles | decode.own_role(server, self._bot))
        threads = objects(server, "threads")
        ids = [snowflake(thread, "id") for thread in threads]
        unread = [id_ for id_ in ids if id_ not in self._read]
        for channel in (*objects(server, "channels"), *threads):
            self._learn_channel(channel)
        for id_ in unread:
            if id_ in self._read:  # it is the bot's
                lanes.catch_up(group, id_)

    def _remember(self, chat: str, channel: str, number: int) -> None:
        """Cache the newest message of a chat, and the channel of a direct chat."""
        if channel in self._latest:
            self._latest[channel] = max(number, self._latest[channel])
        self._newest[chat] = max(number, self._newest.get(chat, 0))
        if chat.startswith(DIRECT):
            self._direct[chat] = channel

    async def _take(self, admit: Admit, event: Event) -> bool:
        """Pass an event to ingress; return False if it was not stored and must be delivered again."""
        data, bot, as_new = event.data, self._bot, None
        chat, number = chat_of(data, author_of(data)), number_of(data)
        match event.name:
            case "MESSAGE_CREATE":
                decoded = decode.message(data, bot, self._parents, self._read)
            case "MESSAGE_UPDATE":
                decoded = decode.edited(data, bot, self._parents)
                as_new = decode.as_new(data, bot, self._parents, self._read)
            case _:
                author = self._writers.get(snowflake(data, "id"), "")
                decoded = decode.deleted(data, bot, author, self._parents)
        if isinstance(decoded, Envelope):
            admission = await try_admit(admit, decoded, self._context.log, as_new)
            if admission is None:
                return False
            message = decoded if event.name == "MESSAGE_CREATE" else as_new
            if message is not None and not isinstance(admission, Ignored):
                # Only chats in which the bot knows a person are read back.
                self._read.setdefault(chat, number)
                await self._open_thread(message)
        else:
            self._context.log("event_skipped", reason=decoded.reason, level="debug")
        if event.name == "MESSAGE_CREATE" and chat in self._read:
            self._read[chat] = max(number, self._read[chat])
        return True

    async def _open_thread(self, envelope: Envelope) -> None:
        """Open the thread of a message that starts one; if this fails, the first send opens it."""
        address, body = envelope.address, envelope.body
        if address.thread and address.thread == envelope.message:
            name = " ".join(body.wrote.split()) if isinstance(body, Said) else ""
            with suppress(ZeroclawError):
                await self._thread_of(address, name)

    async def _read_missed(self, chat: str) -> Sequence[Event]:
        """Read the messages of a chat after the reading position."""
        last = self._read.get(chat, 0)
        channel = self._direct.get(chat, "") if chat.startswith(DIRECT) else chat
        if not channel or not last:
            return ()
        missed: list[Event] = []
        query = f"limit={PAGE}"
        try:
            if channel == chat:
                await self._look_up_channel(channel)
            if self._latest.get(channel, last + 1) <= last:
                return ()
            while len(missed) < MAX_MISSED:
                read = partial(self._rest.messages, channel, query)
                page = await call_when_allowed(read, self._context.clock, self._context.log)
                newer = [message for message in page if number_of(message) > last]
                # Messages of a history lack the server's id, and decoding only checks that there is one.
                server = {} if chat.startswith(DIRECT) else {"guild_id": channel}
                missed += [Event(name="MESSAGE_CREATE", data={**data, **server}) for data in newer]
                if len(page) < PAGE or len(newer) < len(page):
                    break
                query = f"limit={PAGE}&before={snowflake(page[-1], 'id')}"
            else:
                self._context.log("history_cut", read=len(missed), level="warning")
        except ChannelRejected as error:
            self._context.log("history_refused", reason=str(error), level="warning")
            return ()  # the newest page comes first: it would move the position past the others
        if missed:
            self._context.log("history_read", messages=len(missed))
        # The history includes our own messages.
        from_people = [event for event in missed if author_of(event.data) != self._bot.id]
        for event in from_people:
            self._writers[snowflake(event.data, "id")] = author_of(event.data)
        return sorted(from_people, key=lambda event: number_of(event.data))

    async def _look_up_channel(self, channel: str) -> None:
        """Look up a server's channel or thread; Discord does not announce archived threads."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SERVERS_S):
                await self._servers_known.wait()
        self._servers_known.set()  # after an outage no other chat waits for it
        if channel not in self._latest:
            self._learn_channel(as_object(await self._rest.read(f"/channels/{channel}")))

    def _decode_interaction(self, data: Json) -> Interaction | None:
        """Decode a press, form or slash command; None if it is not for the bot."""
        # It may be an unannounced thread. Only the servers say which message is the newest.
        self._learn_channel({**inner(data, "channel"), "last_message_id": None})
        found = decode.interaction(data, self._bot, self._parents)
        if found is None:
            self._context.log("event_skipped", reason="not our interaction", level="debug")
        elif (envelope := found.envelope) is not None:
            channel, scope = snowflake(data, "channel_id"), chat_of(data, envelope.sender.id)
            self._remember(scope, channel, int(found.id))
            is_heard = envelope.address.direct or self._bot.servers != "off"
            if is_heard and scope not in self._read:
                # The bot has admitted no message there, so reading starts here.
                position = Position(scope=scope, cursor=decode.cursor(channel, found.id))
                return replace(found, envelope=replace(envelope, position=position))
        return found

    async def _admit_interaction(self, admit: Admit, envelope: Envelope) -> Admission:
        """Pass an interaction to ingress, and cache the reading position that it started."""
        admission, position = await admit(envelope), envelope.position
        if position is not None and not isinstance(admission, Ignored):
            self._read.setdefault(position.scope, int(position.cursor.partition("/")[2]))
        return admission

    # --- sending ---------------------------------------------------------------------------------

    def render(self, markdown: str) -> Rendered:
        """Turn Markdown into text for Discord."""
        return render.markdown(markdown)

    def measure(self, rendered: Rendered) -> int:
        """Return the length in UTF-16 units."""
        return render.measure(rendered)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Post a message; in a server it is a reply to the message that it answers."""
        body = self._text_body(outgoing)
        return await self._post(to, body, key=outgoing.key, reply_to=outgoing.reply_to or "")

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Post a file; in a server it is a reply to the message that it answers."""
        check_size(self.name, len(file.content), CAPABILITIES.max_file_bytes)
        body = {"content": render.plainly(file.caption)}
        sent = (file.name, file.content)
        return await self._post(to, body, key=file.key, reply_to=file.reply_to or "", file=sent)

    def mark(self, to: Address) -> str:
        """Return the newest known message of a chat, or an id before any message sent now."""
        check_lookup(self.name, self.capabilities)
        newest = self._newest.get(_chat_key(self._valid(to)))
        return str(newest or snowflake_at(self._context.clock.now(), MARK_SLACK_S))

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        """Read one page of the chat's history; see `lookup.py`."""
        check_lookup(self.name, self.capabilities)
        channel = await self._channel_of(self._valid(to))
        rest, log, sent = self._rest, self._context.log, self._sent(content)
        result, is_as_sent = await look(
            rest, log, to, channel, sent, since=since, apart=apart, before=before
        )
        if result.ref is not None and not is_as_sent and isinstance(content, Outgoing):
            with repeatable():
                await self.edit(result.ref, content)
        return result

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Replace a message's text or a file's caption."""
        await self._change(ref, self._text_body(outgoing))

    async def delete(self, ref: MessageRef) -> None:
        """Delete a message; one that no longer exists is no error."""
        with suppress(NotFound):
            await self._write("DELETE", ref)

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Post a card with its buttons."""
        view = cards.view(Outcome(card=card, endings=()))
        file = (FILE_NAME, view.file.encode()) if view.file else None
        body = {"content": view.content, "components": view.components}
        return await self._post(to, body, key=card.key, file=file)

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show on the card how its approval requests ended."""
        view = cards.view(outcome)
        await self._change(ref, {"content": view.content, "components": view.components})

    async def preview(self, to: Address, outgoing: Outgoing) -> None:  # noqa: ARG002
        """Refuse: Discord can't show unsent text."""
        message = f"`{self.name}` shows nothing that is not sent"
        raise NotSupported(message)

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:  # noqa: ARG002
        """Show that the bot is working, for ten seconds; Discord can't show tool progress."""
        await self._rest.call("POST", f"/channels/{await self._channel_of(self._valid(to))}/typing")

    def direct_address(self, sender: str) -> Address | None:
        """Return a person's direct chat, which the bot can open by itself."""
        if not is_snowflake(sender):
            return None
        chat = f"{DIRECT}{sender}"
        return Address(channel=self.name, account=self._bot.id, chat=chat, direct=True)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Download an attachment by its current URL; URLs expire after a day."""
        channel, _, path = attachment.reference.partition("/")
        message, _, file = path.partition("/")
        if not all(map(is_snowflake, (channel, message, file))):
            raise unknown(self.name, "file", attachment.reference)
        found = as_object(await self._rest.read(f"/channels/{channel}/messages/{message}"))
        if snowflake(found, "id") != message:
            raise ChannelUnavailable(self._rest.http.unreadable)
        for entry in decode.files_of(found):
            if snowflake(entry, "id") == file:
                return await self._rest.http.download(text(entry, "url"), max_bytes=max_bytes)
        error = f"`{self.name}`: the file is no longer there"
        raise ChannelRejected(error)

    async def aclose(self) -> None:
        """Close every connection; this ends `receive`."""
        await self._rest.http.aclose()

    # --- API calls -------------------------------------------------------------------------------

    def _text_body(self, outgoing: Outgoing) -> dict[str, object]:
        rendered = outgoing.rendered
        content = render.plainly(rendered.plain) if outgoing.plain else rendered.body
        return {"content": content, "components": cards.receipts(outgoing.receipts)}

    def _sent(self, content: Postable) -> Sent:
        """Return what identifies a message in a history."""
        match content:
            case Outgoing():
                return Sent(content=str(self._text_body(content)["content"]), is_whole=False)
            case OutgoingFile():
                return Sent(content=render.plainly(content.caption), file=len(content.content))
            case Card():
                view = cards.view(Outcome(card=content, endings=()))
                buttons = buttons_of({"components": view.components})
                return Sent(content=view.content, buttons=buttons)

    async def _post(
        self,
        to: Address,
        body: Mapping[str, object],
        *,
        key: str,
        reply_to: str = "",
        file: tuple[str, bytes] | None = None,
    ) -> MessageRef:
        """Post a message; repeats within minutes have the same nonce and post nothing new."""
        channel = await self._channel_of(self._valid(to))
        # Discord compares the nonces of all of the bot's messages (Create Message, read 2026-11), and a
        # card has one key in all chats. A different text with the same key is a different message.
        nonce = short_hash(f"{channel}\x00{key}\x00{body['content']}", 12)
        message = {
            **body,
            "allowed_mentions": NO_PINGS,
            "flags": self._flags,
            "nonce": nonce,  # at most 25 characters; Create Message, read 2026-11
            "enforce_nonce": True,
        }
        if is_snowflake(reply_to) and not to.direct and channel != reply_to:
            message["message_reference"] = {"message_id": reply_to, "fail_if_not_exists": False}
        if file is not None:
            message["attachments"] = [{"id": 0, "filename": file[0]}]
        path = f"/channels/{channel}/messages"
        try:
            posted = await self._rest.call("POST", path, message, file=file)
        except NoReply:
            message.pop("message_reference", None)
            posted = await self._rest.call("POST", path, message, file=file)
        number = snowflake(as_object(posted), "id")
        if not number:
            raise DeliveryUnknown(self._rest.http.unreadable)
        self._remember(_chat_key(to), channel, int(number))
        return MessageRef(address=to, message=number)

    async def _change(self, ref: MessageRef, body: Mapping[str, object]) -> None:
        changed = {**body, "allowed_mentions": NO_PINGS, "flags": self._flags}
        await self._write("PATCH", ref, changed)

    async def _write(self, method: str, ref: MessageRef, body: object = None) -> None:
        """Change or delete a message; if its thread is archived, open the thread again."""
        path = await self._path_of(ref)
        try:
            await self._rest.call(method, path, body)
        except Archived:
            # Sending a message would open it too; both need the same permission ("Modify Channel",
            # read 2026-11).
            await self._rest.call("PATCH", path.partition("/messages/")[0], {"archived": False})
            await self._rest.call(method, path, body)

    # --- addresses -------------------------------------------------------------------------------

    def _valid(self, place: Address) -> Address:
        if place.thread is not None and not self.capabilities.has_threads:
            message = f"`{self.name}` has no threads within a chat: to Discord each is a channel"
            raise NotSupported(message)
        if not all(map(is_snowflake, (place.chat.removeprefix(DIRECT), place.thread or "0"))):
            raise unknown(self.name, "chat", place.chat)
        return place

    async def _channel_of(self, place: Address) -> str:
        """Return the id of a chat's channel; opens a direct chat or a thread if necessary."""
        if place.thread is not None:
            return await self._thread_of(place)
        if not place.chat.startswith(DIRECT):
            return place.chat
        if channel := self._direct.get(place.chat):
            return channel
        person = place.chat.removeprefix(DIRECT)
        # Opening an open chat returns it (Create DM, read 2026-11), so this is safe to repeat.
        opened = await self._rest.read("/users/@me/channels", {"recipient_id": person})
        channel = snowflake(as_object(opened), "id")
        if not channel:
            raise ChannelUnavailable(self._rest.http.unreadable)
        self._remember(place.chat, channel, 0)
        return channel

    async def _thread_of(self, place: Address, name: str = "") -> str:
        """Return a thread's channel id, which is its first message's id; the parent's if it can't be opened."""
        chat, thread = place.chat, place.thread or ""
        if thread not in self._parents:
            body = {"name": name[:MAX_NAME] or "zeroclaw", "auto_archive_duration": DAY_MIN}
            path = f"/channels/{chat}/messages/{thread}/threads"
            try:
                with suppress(ThreadExists):
                    await self._rest.read(path, body)
                self._parents[thread] = chat
                self._read.setdefault(thread, int(thread))
            except ChannelRejected as error:
                await self._look_up_thread(thread, error)
        return thread if self._parents[thread] else chat

    async def _look_up_thread(self, thread: str, error: ChannelRejected) -> None:
        """Look up a thread that no message of its parent started, such as a forum post."""
        with suppress(NotFound):  # not if it is closed to the bot: more people read its parent
            self._learn_channel(as_object(await self._rest.read(f"/channels/{thread}")))
        if thread not in self._parents:
            if isinstance(error, NotFound):
                raise error  # it was deleted: its parent may be open to more people
            self._context.log("thread_not_opened", reason=str(error), level="warning")
            self._parents[thread] = ""

    async def _path_of(self, ref: MessageRef) -> str:
        if not is_snowflake(ref.message):
            raise unknown(self.name, "message", ref.message)
        channel = await self._channel_of(self._valid(ref.address))
        return f"/channels/{channel}/messages/{ref.message}"


def _chat_key(place: Address) -> str:
    return place.thread or place.chat
