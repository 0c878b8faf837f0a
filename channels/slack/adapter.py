"""The Slack adapter: connects incoming events to ingress, and sends messages, cards and files."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b

from channels._remote.cards import FILE_NAME
from channels._remote.fields import Json, inner, integer, objects, text
from channels._remote.intake import ShortAnswers, try_admit, until
from channels._remote.lanes import Lanes, call_when_allowed
from channels._remote.limits import MARK_SLACK_S, check_size, cut, unknown
from channels._remote.settings import check_lookup
from channels.slack import CAPABILITIES, SlackSettings, cards, decode, render
from channels.slack.calls import BlocksRefused, Calls, Streaming
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
from channels.slack.socket_mode import Envelope as Told
from channels.slack.socket_mode import SocketMode
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
WHOLE, WHOLE_S = "999", 2.0
"""The most messages in one answer, for a thread's begins with its oldest; and the seconds that a call may
wait for its thread, for Slack waits 3 s for the confirmation."""
MAX_PAGES = 10
"""Pages that one lookup reads before it gives up."""
TWIN_S = 1.0
"""Seconds that a mention waits for the message of which Slack tells as well; only that has all files."""
MAX_PROMPT, MAX_TITLE, MAX_STATUS = 75, 100, 100
"""Characters of a prompt's button, a thread's title and its status; Slack documents no limits."""
_KEY_EVENT = "zeroclaw_message"
_OPENED = ("assistant_thread_started", "app_home_opened")
_AT_WORK = "assistant.threads.setStatus"
_AS_IT_IS: Mapping[str, object] = {"parse": "none", "link_names": False}
"""Keeps Slack from turning plain text into mentions and links."""


class Event(Value):
    """An event in a lane.

    Attributes:
        told: The envelope to confirm once the event is stored; None if it came from a history.
        data: The message event, to be decoded when its turn comes.
        event_id: Its id, empty for none.
        taken: The decoded event, if it was decoded on arrival.
    """

    told: Told | None = None
    data: Json = field(default_factory=dict[str, object])
    event_id: str = ""
    taken: Decoded | None = None


class SlackChannel:
    """One app in one workspace."""

    def __init__(self, context: ChannelContext) -> None:
        """Open nothing yet.

        Raises:
            ChannelUnauthorized: A token is not of the expected kind.
        """
        settings = context.settings_as(SlackSettings)
        self.name, self.capabilities = context.name, settings.capabilities()
        self._context, self._settings = context, settings
        self._calls = Calls(context.name, settings, context.secrets)
        self._me = Bot(channel=context.name, account=context.account, channels=settings.channels)
        self._answers = ShortAnswers(context.log, "press_not_answered")
        self._reading: Recent[str, Reading] = Recent(MAX_KNOWN)
        self._direct: Recent[str, str] = Recent(MAX_KNOWN)
        self._newest: Recent[str, str] = Recent(MAX_KNOWN)
        self._writers: Recent[str, str] = Recent(MAX_KNOWN)
        self._begun: Recent[str, bool] = Recent(MAX_KNOWN)
        self._assisted: Recent[str, bool] = Recent(MAX_KNOWN)
        self._streams = Streams(self._calls, context, has_limits=settings.limits == "published")
        self._moved: Recent[str, str] = Recent(MAX_KNOWN)
        read = {scope: decode.read_cursor(one) for scope, one in context.positions.items()}
        for scope in sorted(read, key=lambda one: order(read[one].newest)):
            self._read_to(scope, context.positions[scope])

    # --- receiving -------------------------------------------------------------------------------

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Receive events until cancelled or closed; see `Channel.receive`."""
        me = await self._calls.me()
        self._me = replace(self._me, account=me.account, user=me.user, bot=me.bot)
        is_told = False
        log, clock = self._context.log, self._context.clock
        with until(self._calls.http.closed):
            async with asyncio.TaskGroup() as group:

                def on_up(may_have_missed: bool) -> None:  # noqa: FBT001  a callback's one fact
                    nonlocal is_told
                    if may_have_missed:
                        # Slack allows few such calls a minute, so the chats last written in come first.
                        for chat in reversed(self._reading):
                            if chat not in self._moved:
                                lanes.catch_up(group, chat)
                    if not is_told:
                        is_told = True
                        ready()

                def on_envelope(told: Told) -> None:
                    lanes.put(group, *self._routed(told))

                receiver = SocketMode if self._settings.receive == "socket_mode" else EventsApi
                hearing = receiver(self._calls, self._context, on_up=on_up, on_envelope=on_envelope)

                async def take(event: Event) -> bool:
                    if text(event.data, "type") != "app_mention":
                        return await self._take(event, admit, hearing, group)
                    await clock.sleep(TWIN_S)
                    said = replace(event, data={**event.data, "type": "message"})
                    lanes.put(group, decode.chat_of(said.data), said)
                    return True

                lanes = Lanes(take=take, read=self._missed, clock=clock, log=log)
                group.create_task(self._streams.keep())
                await hearing.run()

    def _routed(self, told: Told) -> tuple[str, Event]:
        """Return the lane of an envelope, and the event to queue there."""
        payload = told.payload
        if decode.is_elsewhere(payload, self._me):
            return "", Event(told=told)
        found: Decoded | Skipped = Skipped(reason="of another kind")
        if told.kind == "events_api":
            data = inner(payload, "event")
            event_id = text(payload, "event_id")[:100]
            if text(data, "type") not in (_OPENED if self._settings.prompts else _OPENED[:1]):
                is_early = text(data, "type") == "app_mention"
                lane = f"mention/{event_id}" if is_early else decode.chat_of(data)
                return lane, Event(told=told, data=data, event_id=event_id)
            found = decode.opened(data, self._me, event_id)
        elif told.kind == "interactive":
            found = decode.pressed(payload, self._me, self._reading)
        elif told.kind == "slash_commands":
            found = decode.slash(payload, self._me)
        if isinstance(found, Skipped):
            return "", Event(told=told)
        # Presses do not wait for the messages of their chat.
        person = found.envelope.sender.id
        return f"press/{person}", Event(told=told, taken=found)

    async def _take(
        self, event: Event, admit: Admit, hearing: SocketMode | EventsApi, group: asyncio.TaskGroup
    ) -> bool:
        """Hand an event to ingress; return False if it was not stored and must be offered again."""
        taken: Decoded | Skipped | None = event.taken
        if taken is None:
            taken, chat = Skipped(reason="an event of another kind"), decode.chat_of(event.data)
            kind, me, number = text(event.data, "type"), self._me, event.event_id
            reading = self._reading.get(chat, Reading())
            if kind == "message":
                is_begun = await self._is_begun(chat, text(event.data, "thread_ts"))
                above = await self._above(chat, event.data) if is_begun is False else ()
                taken = decode.message(
                    event.data, me, reading, event_id=number, is_begun=bool(is_begun), above=above
                )
            elif kind == "channel_id_changed":
                taken = decode.moved(event.data, me, reading, number)
        if isinstance(taken, Skipped):
            self._context.log("event_skipped", reason=taken.reason, level="debug")
        else:
            admission = await try_admit(admit, taken.envelope, self._context.log)
            if admission is None:
                return False
            self._took(taken, admission, text(event.data, "channel"))
            if not isinstance(admission, Duplicate | Ignored):
                self._answers.begin(group, partial(self._answer, taken, admission))
        if event.told is not None:
            await hearing.confirm(event.told)
        return True

    async def _is_begun(self, chat: str, thread: str) -> bool | None:
        """Whether a channel's thread is a conversation; None where no thread has to be begun.

        The position has only the youngest ones.
        """
        if self._me.channels != "mentioned" or chat.startswith(DIRECT) or not is_ts(thread):
            return None
        place = decode.address_of(self._me, chat, thread)
        known = self._begun.get(_thread_of(place))
        if known is None:
            is_young = thread in self._reading.get(chat, Reading()).threads
            try:
                known = is_young or bool(await self._context.transcript(place, ""))
            except ZeroclawError as error:  # there is something that can't be read: ingress decides
                self._context.log("transcript_not_read", reason=str(error), level="warning")
                return True
            self._begun[_thread_of(place)] = known
        return known

    async def _above(self, chat: str, event: Json) -> Above:
        """Return what stands in a thread above the message that calls the bot into it."""
        thread, ts, by = (text(event, key) for key in ("thread_ts", "ts", "user"))
        # A stranger must not use up the few calls that Slack allows.
        if thread == ts or not (is_meant(event, self._me) and self._context.admits(by)):
            return ()
        place = decode.address_of(self._me, chat, thread)
        try:
            async with asyncio.timeout(WHOLE_S):
                page = await self._looked(place, {"latest": ts, "limit": WHOLE})
                return objects(page, "messages")
        except (ZeroclawError, TimeoutError) as error:  # it is answered all the same
            self._context.log("thread_not_read", reason=str(error) or "slow", level="warning")
            return None

    def _took(self, taken: Decoded, admission: Admission, channel: str) -> None:
        """Remember the chat's reading position and ids; the position only if ingress took the event."""
        address, read = taken.envelope.address, taken.envelope.position
        if read is not None and not isinstance(admission, Ignored):
            self._read_to(read.scope, read.cursor)
            if taken.envelope.message and address.thread:
                self._begun[_thread_of(address)] = True
                self._writers[_thread_of(address)] = taken.envelope.sender.id
        if taken.envelope.message and address.direct and channel:
            self._direct[address.chat] = channel

    def _read_to(self, scope: str, cursor: str) -> None:
        """Remember the reading position of a chat, and the id that it had before."""
        reading = self._reading[scope] = decode.read_cursor(cursor)
        if reading.was:
            self._moved[reading.was] = scope

    async def _answer(self, taken: Decoded, admission: Accepted | Answered) -> None:
        """Show a person the result of their press or command, or ask for their reason."""
        if isinstance(admission, Accepted):
            await self._assist(taken.envelope)
            return
        envelope, said = taken.envelope, admission.text
        body = envelope.body
        channel = await self._channel_of(envelope.address)
        is_asked = admission.reply_wanted and taken.trigger
        if is_asked and isinstance(body, Pressed) and body.card:
            form = cards.form(said, body.approval, body.card, channel)
            await self._calls.call("views.open", {"trigger_id": taken.trigger, "view": form})
            return
        place = {"channel": channel, "thread_ts": envelope.address.thread}
        told = {"user": envelope.sender.id, "text": render.escaped(said.replace("`", ""))}
        await self._calls.call("chat.postEphemeral", {**place, **told})

    async def _assist(self, envelope: Envelope) -> None:
        """Suggest prompts where a person begins, and title an assistant's thread by its first message.

        For an app with `agent_view`, which has no such threads, a thread would make the call fail silently
        ("assistant.threads.setSuggestedPrompts", docs.slack.dev, read 2026-11).
        """
        address, body = envelope.address, envelope.body
        if isinstance(body, Membership):
            self._assisted[_thread_of(address)] = address.thread is not None
            asked = [{"title": one[:MAX_PROMPT], "message": one} for one in self._settings.prompts]
            method, shown = "setSuggestedPrompts", {"prompts": asked}
        elif isinstance(body, Said) and self._assisted.pop(_thread_of(address), False):
            method, shown = "setTitle", {"title": " ".join(body.wrote.split())[:MAX_TITLE]}
        else:
            return
        if any(shown.values()):
            place = {"channel_id": await self._channel_of(address), "thread_ts": address.thread}
            await self._calls.call(f"assistant.threads.{method}", {**place, **shown})

    async def _missed(self, chat: str) -> Sequence[Event]:
        """Read the messages of a chat and its threads after the reading position."""
        reading = self._reading.get(chat, Reading())
        place = Address(channel=self.name, account=self._me.account, chat=chat)
        # With the assistant all messages are in threads; the chat's history has only their roots.
        top = reading.top or max(reading.threads, key=order, default="")
        missed: list[Json] = []
        channel, threads = "", {"": top, **reading.threads}
        while threads:
            thread = next(iter(threads))
            last = threads.pop(thread)
            try:
                channel = channel or await self._channel_of(place)
                found = await self._since(last, channel, thread) if last else []
                if not thread:
                    threads |= {one: one for one in self._roots(chat, found) if one not in threads}
                missed += found
            except ChannelRejected as error:  # a deleted thread must not cost the others
                self._context.log("history_refused", reason=str(error), level="warning")
        if missed:
            self._context.log("history_read", messages=len(missed))
        kind = {"channel": channel, "channel_type": "im" if chat.startswith(DIRECT) else "channel"}
        events = (Event(data={"type": "message", **one, **kind}) for one in missed)
        return tuple(sorted(events, key=lambda one: order(text(one.data, "ts"))))

    def _roots(self, chat: str, missed: Sequence[Json]) -> Sequence[str]:
        """Return the missed messages that began a thread for the bot; the youngest ones alone."""
        ours = (one for one in missed if chat.startswith(DIRECT) or is_meant(one, self._me))
        roots = (text(one, "ts") for one in ours if integer(one, "reply_count"))
        return sorted(roots, key=order)[-MAX_THREADS:]

    async def _since(self, after: str, channel: str, thread: str) -> list[Json]:
        """Read the messages of a chat or thread after one, at most the newest `MAX_MISSED`.

        Slack gives a chat's newest page first, and a thread's oldest: a thread is read to its end.
        """
        found: list[Json] = []
        count = 0
        asked = {"channel": channel, "oldest": after, "limit": PAGE, "ts": thread or None}
        method = "conversations.replies" if thread else "conversations.history"
        cursor: str | None = ""
        while cursor is not None and (thread or count < MAX_MISSED):
            read = partial(self._calls.read, method, {**asked, "cursor": cursor or None})
            page = await call_when_allowed(read, self._context.clock, self._context.log)
            told = objects(page, "messages")
            newer = [one for one in told if order(text(one, "ts")) > order(after)]
            count += len(newer)
            found = sorted([*found, *newer], key=lambda one: order(text(one, "ts")))[-MAX_MISSED:]
            cursor = text(inner(page, "response_metadata"), "next_cursor") or None
        if cursor is not None or count > MAX_MISSED:
            self._context.log("history_cut", read=count, level="warning")
        return found

    # --- sending ---------------------------------------------------------------------------------

    def render(self, markdown: str) -> Rendered:
        """Turn Markdown into text for Slack."""
        return render.markdown(markdown)

    def measure(self, rendered: Rendered) -> int:
        """Return the length in UTF-16 units."""
        return render.measure(rendered)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Post a message, or begin a stream."""
        if ts := await self._streamed(to, outgoing):
            self._newest[to.chat] = ts
            return MessageRef(address=to, message=ts)
        return await self._post(to, self._texted(outgoing), key=outgoing.key)

    async def _streamed(self, to: Address, outgoing: Outgoing) -> str:
        """Begin a stream for a draft in a thread and return its id; empty if it can't be streamed."""
        writer = self._writers.get(_thread_of(to), "")
        person = to.chat.removeprefix(DIRECT) if to.direct else writer
        is_whole = outgoing.plain or not outgoing.draft or self._settings.drafts == "edited"
        if is_whole or self._ours(to).thread is None or not person:
            return ""
        place = {
            "channel": await self._channel_of(to),
            "thread_ts": to.thread,
            "recipient_user_id": person,
            "recipient_team_id": self._me.account.partition("-")[0],
        }
        return await self._streams.begin(place, outgoing.rendered.body)

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Upload a file and post a message with its link, which shows the file.

        So it is an ordinary message, which carries its key.
        """
        check_size(self.name, len(file.content), CAPABILITIES.max_file_bytes)
        link = await self._calls.upload(file.name, file.content, self._context.clock)
        said = render.escaped(file.caption or file.name)
        body = {"text": said, "blocks": render.filed(file.caption, link), "unfurl_media": True}
        return await self._post(to, body, key=file.key)

    def mark(self, to: Address) -> str:
        """Return the newest known message of a chat, or a timestamp before any message sent now."""
        check_lookup(self.name, self.capabilities)
        chat = self._ours(to).chat
        known = (self._newest.get(chat, ""), self._reading.get(chat, Reading()).newest)
        began = int(self._context.clock.now().timestamp() - MARK_SLACK_S)
        return max(known, key=order) or f"{began}.000000"

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        """Read one page of the chat and look for our message by the key that it carries.

        The message found may be an earlier draft of the content with the same key; then the next
        call edits it.
        """
        check_lookup(self.name, self.capabilities)
        mark, _, more = since.partition("/")
        pages, _, cursor = more.partition("/")
        looked = int(pages) if pages.isascii() and pages.isdecimal() else 0
        if not is_ts(mark) or looked >= MAX_PAGES:
            message = f"`{self.name}`: it is not known where to look"
            raise DeliveryUnknown(message)
        # A file or a card is posted whole or not at all; a text may have been a draft.
        body = self._texted(content) if isinstance(content, Outgoing) else None
        if is_ts(pages):
            ref = MessageRef(address=to, message=pages)
            await self._change(ref, body or {})
            return LookupResult(ref=ref)
        page = await self._looked(to, {"oldest": mark, "cursor": cursor})
        for one in objects(page, "messages"):
            ts = text(one, "ts")
            # Each page of a thread has the message that began it, which may be the bot's too.
            if ts in {*apart, to.thread} or (before and order(ts) >= order(before)):
                continue
            key = text(inner(one, "metadata", "event_payload"), "key")
            # A stream has no key before its end; all our other messages in a thread have one.
            is_streamed = body is not None and bool(to.thread) and not key
            if key == _digest(content.key) or (is_streamed and text(one, "user") == self._me.user):
                self._context.log("lost_message_found", pages=looked + 1)
                if body is None or text(one, "text") == body["text"]:
                    return LookupResult(ref=MessageRef(address=to, message=ts))
                return LookupResult(since=f"{mark}/{ts}", is_over=False)
        following = text(inner(page, "response_metadata"), "next_cursor")
        if following:
            return LookupResult(since=f"{mark}/{looked + 1}/{following}", is_over=False)
        return LookupResult(since=mark)

    async def _looked(self, to: Address, between: Mapping[str, str]) -> Json:
        """Read a page of a chat's or thread's history, including metadata."""
        asked: dict[str, object] = {"limit": PAGE, "include_all_metadata": True, "inclusive": True}
        asked |= {key: value or None for key, value in between.items()}
        asked |= {"channel": await self._channel_of(self._ours(to)), "ts": to.thread}
        method = "conversations.replies" if to.thread else "conversations.history"
        try:
            return await self._calls.read(method, asked)
        except ChannelRejected as error:
            message = f"`{self.name}`: it can't be looked for: {error}"
            raise DeliveryUnknown(message) from error

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Replace a message's text or a file's caption."""
        body = self._texted(outgoing)
        if not outgoing.plain:
            said, proofs = outgoing.rendered.body, render.blocks("", outgoing.receipts, plain=False)
            last = {"metadata": _metadata(outgoing.key), "blocks": proofs or None}
            if await self._streams.grow(ref.message, said, None if outgoing.draft else last):
                return
        # A caption is always plain, and few other messages are; so only these cost a lookup.
        if outgoing.plain and (link := await self._linked(ref)):
            body["blocks"] = render.filed(outgoing.rendered.plain, link)
        await self._change(ref, body)

    async def delete(self, ref: MessageRef) -> None:
        """Delete a message; one that no longer exists is no error."""
        try:
            await self._of_message("chat.delete", ref, {})
        except ChannelRejected as error:
            if not error.gone:
                raise

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Post a card with its buttons."""
        link = await self._calls_of(card) if cards.is_file(card) else ""
        body = {**_card(Outcome(card=card, endings=()), link), "unfurl_media": bool(link)}
        return await self._post(to, body, key=card.key)

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show on the card how its approval requests ended."""
        card, link = outcome.card, ""
        if cards.is_file(card):
            link = await self._linked(ref)
            # Never show buttons without the whole calls that they approve.
            if not link and len(outcome.endings) < len(card.calls):
                link = await self._calls_of(card)
        await self._change(ref, _card(outcome, link))

    async def _calls_of(self, card: Card) -> str:
        """Upload a file with a card's whole calls; return its link."""
        calls = cards.card_text(card).encode()
        return await self._calls.upload(FILE_NAME, calls, self._context.clock)

    async def _linked(self, ref: MessageRef) -> str:
        """Return the link of a message's file, since an edit has to repeat it; empty for none."""
        try:
            page = await self._looked(ref.address, {"oldest": ref.message, "latest": ref.message})
        except DeliveryUnknown:  # the history may not be read; show the text without the file
            return ""
        ours = [one for one in objects(page, "messages") if text(one, "ts") == ref.message]
        return render.linked([block for one in ours for block in objects(one, "blocks")])

    async def preview(self, to: Address, outgoing: Outgoing) -> None:  # noqa: ARG002  the contract's
        """Refuse: Slack can't show unsent text."""
        message = f"`{self.name}` shows nothing that is not sent"
        raise NotSupported(message)

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:
        """Show in a thread that the bot is working, until its next message there or for two minutes.

        Tool progress is shown in the answer's stream if there is one, else in the thread's status.
        """
        thread = self._ours(to).thread
        if thread is None:
            message = f"`{self.name}` shows in threads alone that it is at work"
            raise NotSupported(message)
        channel = await self._channel_of(to)
        if doing and await self._streams.work(channel, thread, doing):
            return
        tools = ", ".join(dict.fromkeys(one.tool for one in doing if one.state == "running"))
        status = "" if doing and not tools else f"{cut(tools, MAX_STATUS)}…"
        before = self._newest.get(to.chat)
        shown = {"channel_id": channel, "thread_ts": thread}
        await self._calls.read(_AT_WORK, {**shown, "status": status})
        # A message of ours that was posted before the status would not clear it.
        if status and self._newest.get(to.chat) != before:
            await self._calls.read(_AT_WORK, {**shown, "status": ""})

    def direct_address(self, sender: str) -> Address | None:
        """Return a person's direct chat, which the bot can open by itself."""
        if not is_id(sender) or not self._me.account:
            return None
        return decode.address_of(self._me, f"{DIRECT}{sender}", "")

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

    def _texted(self, outgoing: Outgoing) -> dict[str, object]:
        rendered = outgoing.rendered
        body = rendered.plain if outgoing.plain else rendered.body
        return {
            "text": render.escaped(rendered.plain),
            "blocks": render.blocks(body, outgoing.receipts, plain=outgoing.plain),
        }

    async def _post(self, to: Address, body: Mapping[str, object], *, key: str) -> MessageRef:
        """Post a message with its key, so that `lookup` can find it if the answer is lost."""
        channel = await self._channel_of(self._ours(to))
        message = {
            "channel": channel,
            "thread_ts": to.thread,
            "metadata": _metadata(key),
            "unfurl_links": self._settings.link_previews,
            "unfurl_media": self._settings.link_previews,
            **_AS_IT_IS,
            **body,
        }
        posted = await self._write("chat.postMessage", message)
        ts = text(posted, "ts")
        if not is_ts(ts):
            raise DeliveryUnknown(self._calls.http.unreadable)
        self._newest[to.chat] = ts
        return MessageRef(address=to, message=ts)

    async def _change(self, ref: MessageRef, body: Mapping[str, object]) -> None:
        shown = {**body, "text": render.short(str(body.get("text", "")))}
        await self._of_message("chat.update", ref, {**shown, **_AS_IT_IS})

    async def _of_message(self, method: str, ref: MessageRef, body: Mapping[str, object]) -> None:
        if not is_ts(ref.message):
            raise unknown(self.name, "message", ref.message)
        channel = await self._channel_of(self._ours(ref.address))
        said = {**body, "channel": channel, "ts": ref.message}
        try:
            await self._write(method, said)
        except Streaming:
            await self._streams.stop(channel, ref.message)
            await self._write(method, said)

    async def _write(self, method: str, said: Json) -> Json:
        """Write a message, as literal text if Slack refuses its Markdown."""
        try:
            return await self._calls.call(method, said)
        except BlocksRefused:
            blocks = objects(said, "blocks")
            shown = render.literal(blocks)
            if shown == blocks:
                raise
            return await self._calls.call(method, {**said, "blocks": shown})

    # --- addresses -------------------------------------------------------------------------------

    def _ours(self, place: Address) -> Address:
        thread = place.thread
        if not is_id(place.chat.removeprefix(DIRECT)) or not (thread is None or is_ts(thread)):
            raise unknown(self.name, "chat", place.chat)
        return place

    async def _channel_of(self, place: Address) -> str:
        """Return the id of a chat's channel; opens a direct chat if necessary."""
        if not place.chat.startswith(DIRECT):
            channel = place.chat
            for _ in self._moved:  # it may have moved more than once
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


def _card(outcome: Outcome, link: str) -> dict[str, object]:
    return {"text": cards.summary(outcome.card), "blocks": cards.view(outcome, link)}


def _metadata(key: str) -> Mapping[str, object]:
    return {"event_type": _KEY_EVENT, "event_payload": {"key": _digest(key)}}


def _thread_of(place: Address) -> str:
    return f"{place.chat}/{place.thread}"


def _digest(key: str) -> str:
    """Return the digest that a message carries in place of its key."""
    return blake2b(key.encode("utf-8", "replace"), digest_size=16).hexdigest()
