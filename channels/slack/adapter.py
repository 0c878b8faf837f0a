"""The Slack adapter: connects incoming events to ingress, and sends messages, cards and files."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from channels._remote.cards import FILE_NAME
from channels._remote.fields import Json, inner, integer, objects, text
from channels._remote.http import repeatable
from channels._remote.intake import ShortAnswers, try_admit, until
from channels._remote.lanes import Lanes, call_when_allowed
from channels._remote.limits import MARK_SLACK_S, check_size, cut, short_hash, unknown
from channels._remote.settings import check_lookup
from channels.slack import CAPABILITIES, SlackSettings, cards, decode, render
from channels.slack.calls import BlocksRefused, Calls, MessageStreams
from channels.slack.decode import (
    DIRECT,
    MAX_THREADS,
    Above,
    Bot,
    Decoded,
    Reading,
    Skipped,
    is_id,
    is_meant,
    is_ts,
    order,
)
from channels.slack.events_api import EventsApi
from channels.slack.socket_mode import SlackEnvelope, SocketMode
from channels.slack.streams import Streams
from zeroclaw import (
    Accepted,
    Address,
    Admission,
    Admit,
    Answered,
    Attachment,
    Card,
    ChannelContext,
    ChannelRejected,
    ChannelUnavailable,
    DeliveryUnknown,
    Duplicate,
    Envelope,
    Ignored,
    LookupResult,
    Membership,
    MessageRef,
    NotSupported,
    Outcome,
    Outgoing,
    OutgoingFile,
    Postable,
    Pressed,
    Recent,
    Rendered,
    Said,
    ToolProgress,
    Value,
    ZeroclawError,
    field,
    replace,
)

MAX_KNOWN = 10_000
"""Entries of each cache of chats or people; the oldest are dropped."""
MAX_MISSED = 1_000
"""Limit on messages read back from a chat or thread after an absence, the newest."""
PAGE = 200
"""Messages in one answer, as Slack recommends."""
THREAD_PAGE, THREAD_READ_S = "999", 2.0
"""The most messages in one answer, since a thread's begins with the oldest; and the seconds that a
mention may wait for its thread, since Slack waits 3 s for the confirmation."""
MAX_PAGES = 10
"""Pages that one lookup reads before it gives up."""
MENTION_WAIT_S = 1.0
"""Seconds that a mention waits for its message event, which alone has all files."""
MAX_PROMPT, MAX_TITLE, MAX_STATUS = 75, 100, 100
"""Characters of a prompt's button, a thread's title and its status; Slack documents no limits."""
KEY_BYTES = 16
"""Size of the hash that a message carries in place of its key."""
_KEY_EVENT = "zeroclaw_message"
_OTHER_KIND = "another kind of event"
_OPENED = ("assistant_thread_started", "app_home_opened")
_SET_STATUS = "assistant.threads.setStatus"
_LITERAL: Mapping[str, object] = {"parse": "none", "link_names": False}
"""Keeps Slack from turning plain text into mentions and links."""


class Event(Value):
    """An event in a lane.

    Attributes:
        envelope: The envelope to confirm once the event is stored; None if it came from a history.
        data: The message event, to be decoded when its turn comes.
        event_id: Its id, empty for none.
        decoded: What it was decoded to, if that was done on arrival.
    """

    envelope: SlackEnvelope | None = None
    data: Json = field(default_factory=dict[str, object])
    event_id: str = ""
    decoded: Decoded | Skipped | None = None


class SlackChannel:
    """One app in one workspace."""

    def __init__(self, context: ChannelContext) -> None:
        """Open nothing yet.

        Raises:
            ChannelUnauthorized: A token is not of the expected kind.
        """
        settings = context.settings_as(SlackSettings)
        self.name = context.name
        self.capabilities = settings.capabilities()
        self._context = context
        self._settings = settings
        self._calls = Calls(context.name, settings, context.secrets)
        self._bot = Bot(channel=context.name, account=context.account, channels=settings.channels)
        self._answers = ShortAnswers(context.log, "press_not_answered")
        self._reading: Recent[str, Reading] = Recent(MAX_KNOWN)
        self._direct: Recent[str, str] = Recent(MAX_KNOWN)
        self._newest: Recent[str, str] = Recent(MAX_KNOWN)
        self._writers: Recent[str, str] = Recent(MAX_KNOWN)
        self._joined: Recent[str, bool] = Recent(MAX_KNOWN)
        self._untitled: Recent[str, bool] = Recent(MAX_KNOWN)
        self._streams = Streams(self._calls, context, has_limits=settings.limits == "published")
        self._moved: Recent[str, str] = Recent(MAX_KNOWN)
        read = {scope: decode.read_cursor(cursor) for scope, cursor in context.positions.items()}
        for scope in sorted(read, key=lambda scope: order(read[scope].newest)):
            self._set_reading(scope, context.positions[scope])

    # --- receiving -------------------------------------------------------------------------------

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Receive events until cancelled or closed; see `Channel.receive`."""
        me = await self._calls.identity()
        self._bot = replace(self._bot, account=me.account, user=me.user)
        is_ready = False
        log, clock = self._context.log, self._context.clock
        with until(self._calls.http.closed):
            async with asyncio.TaskGroup() as group:

                def on_up(may_have_missed: bool) -> None:  # noqa: FBT001  a callback's one fact
                    nonlocal is_ready
                    if may_have_missed:
                        # Slack allows few such calls a minute, so recently active chats go first.
                        for chat in reversed(self._reading):
                            if chat not in self._moved:
                                lanes.catch_up(group, chat)
                    if not is_ready:
                        is_ready = True
                        ready()

                def on_envelope(envelope: SlackEnvelope) -> None:
                    lanes.put(group, *self._route(envelope))

                kind = SocketMode if self._settings.receive == "socket_mode" else EventsApi
                source = kind(self._calls, self._context, on_up=on_up, on_envelope=on_envelope)

                async def take(event: Event) -> bool:
                    if text(event.data, "type") != "app_mention":
                        return await self._take(event, admit, source, group)
                    await clock.sleep(MENTION_WAIT_S)
                    message = replace(event, data={**event.data, "type": "message"})
                    lanes.put(group, decode.chat_of(message.data), message)
                    return True

                lanes = Lanes(take=take, read=self._read_missed, clock=clock, log=log)
                group.create_task(self._streams.keep())
                await source.run()

    def _route(self, envelope: SlackEnvelope) -> tuple[str, Event]:
        """Return the lane of an envelope, and the event to queue there."""
        payload = envelope.payload
        if decode.is_elsewhere(payload, self._bot):
            return "", Event(envelope=envelope)
        decoded: Decoded | Skipped = Skipped(reason=_OTHER_KIND)
        if envelope.kind == "events_api":
            data = inner(payload, "event")
            kind, event_id = text(data, "type"), text(payload, "event_id")[:100]
            if kind == "agent_session_stopped":
                decoded = decode.stopped(data, self._bot, event_id)
            elif kind in (_OPENED if self._settings.prompts else _OPENED[:1]):
                decoded = decode.opened(data, self._bot, event_id)
            else:
                lane = f"mention/{event_id}" if kind == "app_mention" else decode.chat_of(data)
                return lane, Event(envelope=envelope, data=data, event_id=event_id)
        elif envelope.kind == "interactive":
            decoded = decode.pressed(payload, self._bot, self._reading)
        elif envelope.kind == "slash_commands":
            decoded = decode.slash(payload, self._bot)
        # Presses and the like do not wait for the messages of their chat.
        lane = "" if isinstance(decoded, Skipped) else f"press/{decoded.envelope.sender.id}"
        return lane, Event(envelope=envelope, decoded=decoded)

    async def _take(
        self, event: Event, admit: Admit, source: SocketMode | EventsApi, group: asyncio.TaskGroup
    ) -> bool:
        """Pass an event to ingress; return False if it was not stored and has to be repeated."""
        decoded = event.decoded
        if decoded is None:
            decoded, chat = Skipped(reason=_OTHER_KIND), decode.chat_of(event.data)
            kind, bot, id_ = text(event.data, "type"), self._bot, event.event_id
            reading = self._reading.get(chat, Reading())
            if kind == "message":
                try:
                    is_joined = await self._is_joined(chat, text(event.data, "thread_ts"))
                except ZeroclawError as error:  # it may not be for the bot
                    self._context.log("transcript_not_read", reason=str(error), level="warning")
                    return False
                above = await self._above(chat, event.data) if is_joined is False else ()
                decoded = decode.message(
                    event.data, bot, reading, event_id=id_, is_joined=bool(is_joined), above=above
                )
            elif kind == "channel_id_changed":
                decoded = decode.moved(event.data, bot, reading, id_)
        if isinstance(decoded, Skipped):
            self._context.log("event_skipped", reason=decoded.reason, level="debug")
        else:
            admission = await try_admit(admit, decoded.envelope, self._context.log)
            if admission is None:
                return False
            self._remember(decoded, admission, text(event.data, "channel"))
            if not isinstance(admission, Duplicate | Ignored):
                self._answers.begin(group, partial(self._answer, decoded, admission))
        if event.envelope is not None:
            await source.confirm(event.envelope)
        return True

    async def _is_joined(self, chat: str, thread: str) -> bool | None:
        """Whether a channel's thread is a conversation with the bot; None if it does not matter.

        The reading position has only the most recently active threads.
        """
        if self._bot.channels != "mentioned" or chat.startswith(DIRECT) or not is_ts(thread):
            return None
        address = decode.address_of(self._bot, chat, thread)
        known = self._joined.get(address.key())
        if known is None:
            is_recent = thread in self._reading.get(chat, Reading()).threads
            known = is_recent or bool(await self._context.transcript(address, ""))
            self._joined[address.key()] = known
        return known

    async def _above(self, chat: str, event: Json) -> Above:
        """Read the messages of a thread above the one that calls the bot into it."""
        thread, ts, by = (text(event, key) for key in ("thread_ts", "ts", "user"))
        # A stranger must not use up the few calls that Slack allows.
        if thread == ts or not (is_meant(event, self._bot) and self._context.admits(by)):
            return ()
        address = decode.address_of(self._bot, chat, thread)
        try:
            async with asyncio.timeout(THREAD_READ_S):
                page = await self._page(address, {"latest": ts, "limit": THREAD_PAGE})
                return objects(page, "messages")
        except (ZeroclawError, TimeoutError) as error:  # answer the message without them
            self._context.log("thread_not_read", reason=str(error) or "slow", level="warning")
            return None

    def _remember(self, decoded: Decoded, admission: Admission, channel: str) -> None:
        """Cache a chat's reading position and ids; the position only if ingress took the event."""
        envelope, address = decoded.envelope, decoded.envelope.address
        if (read := envelope.position) is not None and not isinstance(admission, Ignored):
            self._set_reading(read.scope, read.cursor)
            if envelope.message and address.thread:
                self._joined[address.key()] = True
                self._writers[address.key()] = envelope.sender.id
        if envelope.message and address.direct and channel:
            self._direct[address.chat] = channel

    def _set_reading(self, scope: str, cursor: str) -> None:
        """Cache the reading position of a chat, and the id that it had before."""
        reading = self._reading[scope] = decode.read_cursor(cursor)
        if reading.old_id:
            self._moved[reading.old_id] = scope

    async def _answer(self, decoded: Decoded, admission: Accepted | Answered) -> None:
        """Show a person the result of their press or command, or ask for their reason."""
        if isinstance(admission, Accepted):
            await self._assist(decoded.envelope)
            return
        envelope, body, answer = decoded.envelope, decoded.envelope.body, admission.text
        channel = await self._channel_of(envelope.address)
        opens_form = admission.reply_wanted and decoded.trigger
        if opens_form and isinstance(body, Pressed) and body.card:
            form = cards.form(answer, body.approval, body.card, channel)
            await self._calls.call("views.open", {"trigger_id": decoded.trigger, "view": form})
            return
        place = {"channel": channel, "thread_ts": envelope.address.thread}
        shown = {"user": envelope.sender.id, "text": render.escaped(answer.replace("`", ""))}
        await self._calls.call("chat.postEphemeral", {**place, **shown})

    async def _assist(self, envelope: Envelope) -> None:
        """Suggest prompts in a new chat, and title an assistant's thread after its first message.

        For an app with `agent_view`, which has no such threads, a thread would make the call fail silently
        ("assistant.threads.setSuggestedPrompts", docs.slack.dev, read 2026-11).
        """
        address, body = envelope.address, envelope.body
        if isinstance(body, Membership):
            self._untitled[address.key()] = address.thread is not None
            prompts = [{"title": p[:MAX_PROMPT], "message": p} for p in self._settings.prompts]
            method, shown = "setSuggestedPrompts", {"prompts": prompts}
        elif isinstance(body, Said) and self._untitled.pop(address.key(), False):
            method, shown = "setTitle", {"title": " ".join(body.wrote.split())[:MAX_TITLE]}
        else:
            return
        if any(shown.values()):
            place = {"channel_id": await self._channel_of(address), "thread_ts": address.thread}
            await self._calls.call(f"assistant.threads.{method}", {**place, **shown})

    async def _read_missed(self, chat: str) -> Sequence[Event]:
        """Read the messages of a chat and its threads after the reading position."""
        reading = self._reading.get(chat, Reading())
        address = Address(channel=self.name, account=self._bot.account, chat=chat)
        # With the assistant all messages are in threads; the chat's history has only their roots.
        top = reading.top or max(reading.threads, key=order, default="")
        missed: list[Json] = []
        channel, threads = "", {"": top, **reading.threads}
        while threads:
            thread = next(iter(threads))
            last = threads.pop(thread)
            try:
                channel = channel or await self._channel_of(address)
                newer = await self._read_after(last, channel, thread) if last else []
                if not thread:
                    threads |= {ts: ts for ts in self._roots(chat, newer) if ts not in threads}
                missed += newer
            except ChannelRejected as error:  # a deleted thread must not hide the others
                self._context.log("history_refused", reason=str(error), level="warning")
        if missed:
            self._context.log("history_read", messages=len(missed))
        kind = {"channel": channel, "channel_type": "im" if chat.startswith(DIRECT) else "channel"}
        events = (Event(data={"type": "message", **message, **kind}) for message in missed)
        return tuple(sorted(events, key=lambda event: order(text(event.data, "ts"))))

    def _roots(self, chat: str, missed: Sequence[Json]) -> Sequence[str]:
        """Return the missed messages that began a thread with the bot, at most the newest ones."""
        threads = [message for message in missed if integer(message, "reply_count")]
        ours = [root for root in threads if chat.startswith(DIRECT) or is_meant(root, self._bot)]
        return sorted((text(root, "ts") for root in ours), key=order)[-MAX_THREADS:]

    async def _read_after(self, after: str, channel: str, thread: str) -> list[Json]:
        """Read the messages of a chat or thread after one, at most the newest `MAX_MISSED`.

        Slack returns a chat's newest page first, a thread's oldest; so a thread is read to its end.
        """
        missed: list[Json] = []
        count = 0
        arguments = {"channel": channel, "oldest": after, "limit": PAGE, "ts": thread or None}
        method = "conversations.replies" if thread else "conversations.history"
        cursor: str | None = ""
        while cursor is not None and (thread or count < MAX_MISSED):
            read = partial(self._calls.read, method, {**arguments, "cursor": cursor or None})
            page = await call_when_allowed(read, self._context.clock, self._context.log)
            newer = [item for item in objects(page, "messages") if _order(item) > order(after)]
            count += len(newer)
            missed = sorted([*missed, *newer], key=_order)[-MAX_MISSED:]
            cursor = text(inner(page, "response_metadata"), "next_cursor") or None
        if cursor is not None or count > MAX_MISSED:
            self._context.log("history_cut", read=count, level="warning")
        return missed

    # --- sending ---------------------------------------------------------------------------------

    def render(self, markdown: str) -> Rendered:
        """Turn Markdown into text for Slack."""
        return render.markdown(markdown)

    def measure(self, rendered: Rendered) -> int:
        """Return the length in UTF-16 units."""
        return render.measure(rendered)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Post a message, or begin a stream."""
        if ts := await self._begin_stream(to, outgoing):
            self._newest[to.chat] = ts
            return MessageRef(address=to, message=ts)
        return await self._post(to, self._text_body(outgoing), key=outgoing.key)

    async def _begin_stream(self, to: Address, outgoing: Outgoing) -> str:
        """Begin a stream for a draft in a thread and return its id; empty if it can't be streamed."""
        person = to.chat.removeprefix(DIRECT) if to.direct else self._writers.get(to.key(), "")
        is_posted = outgoing.plain or not outgoing.draft or self._settings.drafts == "edited"
        if is_posted or self._valid(to).thread is None or not person:
            return ""
        place = {
            "channel": await self._channel_of(to),
            "thread_ts": to.thread,
            "recipient_user_id": person,
            "recipient_team_id": self._bot.account.partition("-")[0],
        }
        return await self._streams.begin(place, outgoing.rendered.body)

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Upload a file and post a message with its link, which shows the file.

        It is an ordinary message, which carries its key.
        """
        check_size(self.name, len(file.content), CAPABILITIES.max_file_bytes)
        link = await self._calls.upload(file.name, file.content, self._context.clock)
        label, blocks = file.caption or file.name, render.file_blocks(file.caption, link)
        body = {"text": render.escaped(label), "blocks": blocks, "unfurl_media": True}
        return await self._post(to, body, key=file.key)

    def mark(self, to: Address) -> str:
        """Return the newest known message of a chat, or a timestamp before any message sent now."""
        check_lookup(self.name, self.capabilities)
        chat = self._valid(to).chat
        known = (self._newest.get(chat, ""), self._reading.get(chat, Reading()).newest)
        began = int(self._context.clock.now().timestamp() - MARK_SLACK_S)
        return max(known, key=order) or f"{began}.000000"

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        """Read one page of the chat and look for our message by the key that it carries.

        The message found may be an earlier draft of the content with the same key; then it is edited.
        """
        check_lookup(self.name, self.capabilities)
        # The mark, the pages read, and a cursor.
        mark, _, progress = since.partition("/")
        pages, _, cursor = progress.partition("/")
        pages_read = int(pages) if pages.isascii() and pages.isdecimal() else 0
        if not is_ts(mark) or pages_read >= MAX_PAGES:
            error = f"`{self.name}`: there is no position to look from"
            raise DeliveryUnknown(error)
        # A file or a card is posted whole or not at all; a text may have been a draft.
        body = self._text_body(content) if isinstance(content, Outgoing) else None
        page = await self._page(to, {"oldest": mark, "cursor": cursor})
        for message in objects(page, "messages"):
            ts = text(message, "ts")
            # Each page of a thread has the message that began it, which may be the bot's too.
            if ts in {*apart, to.thread} or (before and order(ts) >= order(before)):
                continue
            key = text(inner(message, "metadata", "event_payload"), "key")
            # A stream has no key before its end; all our other messages in a thread have one.
            is_stream = body is not None and bool(to.thread) and not key
            is_ours = text(message, "user") == self._bot.user
            if key == short_hash(content.key, KEY_BYTES) or (is_stream and is_ours):
                self._context.log("lost_message_found", pages=pages_read + 1)
                ref = MessageRef(address=to, message=ts)
                if body is not None and text(message, "text") != body["text"]:
                    with repeatable():
                        await self._change(ref, body)
                return LookupResult(ref=ref)
        if following := text(inner(page, "response_metadata"), "next_cursor"):
            return LookupResult(since=f"{mark}/{pages_read + 1}/{following}", is_over=False)
        return LookupResult(since=mark)

    async def _page(self, to: Address, arguments: Mapping[str, str]) -> Json:
        """Read a page of a chat's or thread's history, including metadata."""
        query: dict[str, object] = {"limit": PAGE, "include_all_metadata": True, "inclusive": True}
        query |= {key: value or None for key, value in arguments.items()}
        query |= {"channel": await self._channel_of(self._valid(to)), "ts": to.thread}
        method = "conversations.replies" if to.thread else "conversations.history"
        return await self._calls.read(method, query)

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Replace a message's text or a file's caption."""
        body = self._text_body(outgoing)
        if not outgoing.plain:
            receipts = render.blocks("", outgoing.receipts, plain=False)
            end = {"metadata": _metadata(outgoing.key), "blocks": receipts or None}
            markdown = outgoing.rendered.body
            if await self._streams.grow(ref.message, markdown, None if outgoing.draft else end):
                return
        # A caption is always plain, and few other messages are, so only these cost a lookup.
        if outgoing.plain and (link := await self._link_of(ref)):
            body["blocks"] = render.file_blocks(outgoing.rendered.plain, link)
        await self._change(ref, body)

    async def delete(self, ref: MessageRef) -> None:
        """Delete a message; one that no longer exists is no error."""
        try:
            await self._call_on("chat.delete", ref, {})
        except ChannelRejected as error:
            if not error.gone:
                raise

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Post a card with its buttons."""
        link = await self._upload_calls(card) if cards.is_file(card) else ""
        body = {**_card_body(Outcome(card=card, endings=()), link), "unfurl_media": bool(link)}
        return await self._post(to, body, key=card.key)

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show on the card how its approval requests ended."""
        card, link = outcome.card, ""
        if cards.is_file(card):
            link = await self._link_of(ref)
            # Never show buttons without the complete calls that they approve.
            if not link and len(outcome.endings) < len(card.calls):
                link = await self._upload_calls(card)
        await self._change(ref, _card_body(outcome, link))

    async def _upload_calls(self, card: Card) -> str:
        """Upload a file with a card's complete calls; return its link."""
        calls = cards.card_text(card).encode()
        return await self._calls.upload(FILE_NAME, calls, self._context.clock)

    async def _link_of(self, ref: MessageRef) -> str:
        """Return the link of a message's file, since an edit has to repeat it; empty for none."""
        try:
            page = await self._page(ref.address, {"oldest": ref.message, "latest": ref.message})
        except ChannelRejected:  # the bot may not read the history; show the text without the file
            return ""
        found = [entry for entry in objects(page, "messages") if text(entry, "ts") == ref.message]
        return render.link_in([block for entry in found for block in objects(entry, "blocks")])

    async def preview(self, to: Address, outgoing: Outgoing) -> None:  # noqa: ARG002  the contract's
        """Refuse: Slack can't show unsent text."""
        message = f"`{self.name}` shows nothing that is not sent"
        raise NotSupported(message)

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:
        """Show in a thread that the bot is working, until its next message there or for two minutes.

        Tool progress is shown in the answer's stream if there is one, else in the thread's status.
        """
        thread = self._valid(to).thread
        if thread is None:
            message = f"`{self.name}` can show only in a thread that the bot is working"
            raise NotSupported(message)
        channel = await self._channel_of(to)
        if doing and await self._streams.work(channel, thread, doing):
            return
        tools = ", ".join(dict.fromkeys(call.tool for call in doing if call.state == "running"))
        status = "" if doing and not tools else f"{cut(tools, MAX_STATUS)}…"
        before = self._newest.get(to.chat)
        shown = {"channel_id": channel, "thread_ts": thread}
        await self._calls.read(_SET_STATUS, {**shown, "status": status})
        # A message of ours that was posted before the status would not clear it.
        if status and self._newest.get(to.chat) != before:
            await self._calls.read(_SET_STATUS, {**shown, "status": ""})

    def direct_address(self, sender: str) -> Address | None:
        """Return a person's direct chat, which the bot can open by itself."""
        if not is_id(sender) or not self._bot.account:
            return None
        return decode.address_of(self._bot, f"{DIRECT}{sender}", "")

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Download an attachment; asks Slack for its current URL each time."""
        if not is_id(attachment.reference):
            raise unknown(self.name, "file", attachment.reference)
        found = await self._calls.file(attachment.reference)
        url = text(found, "url_private_download") or text(found, "url_private")
        return await self._calls.download(url, max_bytes=max_bytes)

    async def aclose(self) -> None:
        """Close every connection; this ends `receive`."""
        await self._streams.aclose()
        await self._calls.http.aclose()

    # --- API calls -------------------------------------------------------------------------------

    def _text_body(self, outgoing: Outgoing) -> dict[str, object]:
        rendered = outgoing.rendered
        body = rendered.plain if outgoing.plain else rendered.body
        return {
            "text": render.escaped(rendered.plain),
            "blocks": render.blocks(body, outgoing.receipts, plain=outgoing.plain),
        }

    async def _post(self, to: Address, body: Mapping[str, object], *, key: str) -> MessageRef:
        """Post a message with its key, so that `lookup` can find it if the answer is lost."""
        channel = await self._channel_of(self._valid(to))
        message = {
            "channel": channel,
            "thread_ts": to.thread,
            "metadata": _metadata(key),
            "unfurl_links": self._settings.link_previews,
            "unfurl_media": self._settings.link_previews,
            **_LITERAL,
            **body,
        }
        posted = await self._write("chat.postMessage", message)
        ts = text(posted, "ts")
        if not is_ts(ts):
            raise DeliveryUnknown(self._calls.http.unreadable)
        self._newest[to.chat] = ts
        return MessageRef(address=to, message=ts)

    async def _change(self, ref: MessageRef, body: Mapping[str, object]) -> None:
        changed = {**body, "text": render.short(str(body.get("text", "")))}
        await self._call_on("chat.update", ref, {**changed, **_LITERAL})

    async def _call_on(self, method: str, ref: MessageRef, body: Mapping[str, object]) -> None:
        """Change or delete a message, and end its stream first if Slack refuses because of it."""
        if not is_ts(ref.message):
            raise unknown(self.name, "message", ref.message)
        channel = await self._channel_of(self._valid(ref.address))
        arguments = {**body, "channel": channel, "ts": ref.message}
        try:
            await self._write(method, arguments)
        except MessageStreams:
            await self._streams.stop(channel, ref.message)
            await self._write(method, arguments)

    async def _write(self, method: str, arguments: Json) -> Json:
        """Write a message, as literal text if Slack refuses its Markdown."""
        try:
            return await self._calls.call(method, arguments)
        except BlocksRefused:
            blocks = objects(arguments, "blocks")
            literal = render.literal(blocks)
            if literal == blocks:
                raise
            return await self._calls.call(method, {**arguments, "blocks": literal})

    # --- addresses -------------------------------------------------------------------------------

    def _valid(self, place: Address) -> Address:
        thread = place.thread
        if not is_id(place.chat.removeprefix(DIRECT)) or not (thread is None or is_ts(thread)):
            raise unknown(self.name, "chat", place.chat)
        return place

    async def _channel_of(self, place: Address) -> str:
        """Return the id of a chat's channel; opens a direct chat if necessary."""
        if not place.chat.startswith(DIRECT):
            channel = place.chat
            for _ in self._moved:  # its id may have changed more than once
                channel = self._moved.get(channel, channel)
            return channel
        if known := self._direct.get(place.chat):
            return known
        person = place.chat.removeprefix(DIRECT)
        # Opening an open chat returns it (conversations.open, read 2026-11).
        opened = await self._calls.read("conversations.open", {"users": person})
        channel = text(inner(opened, "channel"), "id")
        if not is_id(channel):
            raise ChannelUnavailable(self._calls.http.unreadable)
        self._direct[place.chat] = channel
        return channel


def _card_body(outcome: Outcome, link: str) -> dict[str, object]:
    return {"text": cards.summary(outcome), "blocks": cards.view(outcome, link)}


def _metadata(key: str) -> Mapping[str, object]:
    return {"event_type": _KEY_EVENT, "event_payload": {"key": short_hash(key, KEY_BYTES)}}


def _order(message: Json) -> tuple[int, str]:
    return order(text(message, "ts"))
