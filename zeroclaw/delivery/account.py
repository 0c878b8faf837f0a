"""One account of one platform: the shared pacing and calls of drafts and the outbox."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Protocol, TypeVar

from zeroclaw import foreign
from zeroclaw.channel import (
    Capabilities,
    Card,
    Channel,
    LookupResult,
    Outcome,
    Postable,
    ToolProgress,
)
from zeroclaw.clock import Clock
from zeroclaw.delivery import pacing
from zeroclaw.delivery.outcomes import CallOutcome, Delivered, Rejected, Unknown, Unreachable
from zeroclaw.delivery.pacing import Rank
from zeroclaw.envelope import (
    Address,
    Attachment,
    CheckedReceipt,
    MessageRef,
    Outgoing,
    OutgoingFile,
    Rendered,
)
from zeroclaw.errors import (
    ChannelRejected,
    ChannelUnavailable,
    DeliveryUnknown,
    NeedsOperator,
    NotSupported,
    RateLimited,
    Refused,
)
from zeroclaw.host.clock import begin_in
from zeroclaw.redact import MARKER
from zeroclaw.text import catalogue
from zeroclaw.text.language import LANGUAGES
from zeroclaw.value import Struct, Value, field, replace

T = TypeVar("T")

# Parts are cut the same way in every language, so the longest translation counts.
_LONGEST_REPEAT = max(map(catalogue.POSSIBLE_REPEAT.to, LANGUAGES), key=len)

MAX_MARKUP = 2
"""A part has at most this many characters, markup included, per character of the platform's limit."""
ALWAYS_RENDERED = 4096
"""Texts of up to this many characters, markup included, are always rendered, however low the limit."""
SLOWEST_BYTES_PER_S = 100_000
"""Bytes per second; a slower upload counts as stuck. A file of n bytes gets n / this on top of the
call's time-out."""
RENDERED = 16
"""Cached rendered texts: the parts of an answer, which are measured again with the next frame."""
AT_ONCE_CHARS = 4096
"""Longest text that is processed on the event loop; it takes some 3 ms, whatever its markup."""
MARKUP, MARKUP_CHARS = "\n![]&*_`<#-=>|~", 10
"""Characters that each count as `MARKUP_CHARS` characters: a Markdown parser takes 28 us for a list item
and 0.02 us for a letter, and for an open bracket it scans all brackets that follow."""
REFUSED_S = (1.0, 120.0, 300.0, 900.0)
"""Seconds without a call after the first, second … refusal of the credentials in a row. One may be a
mistake; but some mail servers lock an account, or bar a machine, that is refused too often."""
FETCHES_AT_ONCE = 4
"""Files that one account downloads at the same time; all of them are held in memory."""


class Markdown(Value):
    """An outgoing text before the channel renders it; see `Outgoing` for the fields."""

    text: str
    key: str
    draft: bool = False
    plain: bool = False
    reply_to: str = ""
    receipts: tuple[CheckedReceipt, ...] = ()


Content = Markdown | OutgoingFile | Card


class Screen(Protocol):
    """The last check of an outgoing message, on the text that a person will read."""

    def __call__(self, text: str, *, growing: bool = False) -> str:
        """Return the text with secrets and forgeries masked; most texts are returned unchanged."""
        ...


async def off_loop(work: Callable[[], T], *, text: str) -> T:
    """Process a text; a long one in a thread, so that others do not wait."""
    return await asyncio.to_thread(work) if is_slow(text) else work()


def is_slow(text: str) -> bool:
    """Whether a text takes too long to process on the event loop."""
    spare = AT_ONCE_CHARS - len(text)
    if spare >= MARKUP_CHARS * len(text):
        return False
    return spare < 0 or MARKUP_CHARS * sum(map(text.count, MARKUP)) > spare


class Outage(Struct, eq=False, kw_only=True):
    """Whether a platform is unreachable, and a signal for when it is reachable again.

    A caller that waits before a retry can stop waiting as soon as the platform answers another call.

    Attributes:
        ended: How many outages are over.
    """

    ended: int = 0
    _is_on: bool = False
    _next: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        """Record that a call did not reach the platform."""
        self._is_on = True

    def end(self) -> None:
        """Record that the platform answered; does nothing if there was no outage."""
        if self._is_on:
            self._is_on = False
            self.ended += 1
            self._next.set()
            self._next = asyncio.Event()

    async def wait_until_over(self, *, since: int) -> None:
        """Wait until more than `since` outages are over."""
        while self.ended <= since:
            await self._next.wait()


class Account:
    """Grants calls and makes them; drafts and the outbox share it, so that finals go first.

    It outlives its adapters when the channel is restarted: the platform does not forget its rate
    limits, so all calls are paced together. An adapter is never trusted to return: each call has a
    time-out, and an exception becomes an outcome.
    """

    def __init__(
        self,
        *,
        channel: Channel,
        clock: Clock,
        group: asyncio.TaskGroup,
        call_timeout_s: float,
        calls_at_once: int,
        screen: Screen,
        note_refused: Callable[[str, int], Awaitable[None]],
    ) -> None:
        """Start pacing.

        Args:
            channel: The channel of the account.
            clock: For pacing.
            group: Owns the one alarm task, and outlives all callers.
            call_timeout_s: How long one call may take; after that its outcome is unknown.
            calls_at_once: How many calls may be under way; further calls wait for one to end.
            screen: Checks every text after it was rendered.
            note_refused: Called with the reason and the count of refusals in a row when the platform
                has refused the credentials; with 0 once it has answered again.
        """
        self._screen = screen
        self._note_refused = note_refused
        self._refusals, self._refused_until = 0, clock.monotonic()
        self.outage = Outage()
        self._clock = clock
        self._group = group
        self._call_timeout_s = call_timeout_s
        self._slots = asyncio.Semaphore(calls_at_once)
        self._fetches = asyncio.Semaphore(FETCHES_AT_ONCE)
        self._take(channel)
        self._pacing = pacing.fresh(
            self.capabilities, clock.monotonic(), drafts_at_once=max(1, calls_at_once // 2)
        )
        self._granted: dict[str, Callable[[], None]] = {}
        self._alarm: asyncio.Task[None] | None = None
        self._rings_at = 0.0
        self._waits = 0
        # By chat: the end of the wait that the platform named for typing indicators.
        self._pauses: dict[str, float] = {}

    def swap_channel(self, channel: Channel) -> None:
        """Continue with another adapter of the channel."""
        self._take(channel)
        self._pacing = replace(self._pacing, limits=self.capabilities)

    def retry_now(self) -> None:
        """Retry at once: receiving works again, so sending probably does as well."""
        self._refused_until = self._clock.monotonic()
        self.outage.begin()
        self.outage.end()

    def _take(self, channel: Channel) -> None:
        self.channel = channel
        # The same text is measured, screened and sent in turn, but rendered once.
        self._render = lru_cache(maxsize=RENDERED)(channel.render)
        self._is_refused_previews = False

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the channel."""
        return self.channel.capabilities

    def previews(self, place: Address) -> bool:
        """Whether the chat can show a preview of unsent text; False for good once one was refused."""
        return place.direct and self.capabilities.native_draft and not self._is_refused_previews

    def traits(self, place: Address) -> Capabilities:
        """Return the capabilities in this chat: `native_draft` only where a draft shows previews."""
        can_preview = self.capabilities.can_edit and self.previews(place)
        return replace(self.capabilities, native_draft=can_preview)

    def request_call(
        self, name: str, *, place: Address, rank: Rank, message: str, granted: Callable[[], None]
    ) -> None:
        """Ask for one call; `granted` is called once, now or later, and must not wait.

        From the grant until `done` the chat is reserved. So the next call already knows of a
        refusal, and at most one message per chat can have an unknown outcome.

        Args:
            name: The caller's name; another request under the same name replaces this one.
            place: The address; threads of a chat share its budget.
            rank: Finals go first.
            message: The platform's id of the message to change, empty for a new one.
            granted: Called when the request is granted.
        """
        self._granted[name] = granted
        request = pacing.Request(
            id=name, chat=place.chat, rank=rank, message=message, in_group=not place.direct
        )
        self._feed(pacing.Requested(request=request, at=self._clock.monotonic()))

    def withdraw(self, name: str, *, for_good: bool = False) -> None:
        """Withdraw a request; does nothing if there is none.

        Args:
            name: The caller's name.
            for_good: The name will not ask again.
        """
        self._granted.pop(name, None)
        self._feed(pacing.Withdrawn(id=name, at=self._clock.monotonic(), for_good=for_good))

    def done(self, place: Address) -> None:
        """Release a chat after a grant: its call has ended, or is not made."""
        self._feed(pacing.CallEnded(chat=place.chat, at=self._clock.monotonic()))

    @asynccontextmanager
    async def permitted(self, place: Address, *, message: str = "") -> AsyncGenerator[None]:
        """Wait until a final, a card or a note may make one call, and reserve the chat for it."""
        self._waits += 1
        name = f"permit {self._waits}"
        granted = asyncio.Event()
        self.request_call(name, place=place, rank=Rank.FINAL, message=message, granted=granted.set)
        try:
            await granted.wait()
            yield
        finally:
            if granted.is_set():
                self.done(place)
            else:
                self.withdraw(name, for_good=True)

    def lookup_mark(self, place: Address) -> str:
        """Return the channel's current mark, empty if it has none."""
        if not self.capabilities.can_lookup:
            return ""
        mark = foreign.call_now(partial(self.channel.mark, place))
        return "" if isinstance(mark, foreign.Raised) else mark

    def mark_if_sent_now(self, place: Address) -> str:
        """Return the mark after which a final sent now would appear; empty if it has to wait.

        Also empty if the final need not be looked up, or might be given up unsent after a kill.
        """
        traits, request = self.capabilities, pacing.Request(id="", chat=place.chat, rank=Rank.FINAL)
        has_lookup = traits.can_lookup and traits.may_repeat and not traits.idempotent_send
        if not has_lookup or not pacing.is_free(self._pacing, request, self._clock.monotonic()):
            return ""
        return self.lookup_mark(place)

    # --- calls that were granted -----------------------------------------------------------------

    def fits(self, markdown: str) -> bool:
        """Whether the platform can carry this text plus the note that it may be a repeat.

        A text so long that at most its markup could make it fit is not even rendered. One that can't
        be measured is sent whole, so that its delivery reports the fault.
        """
        if len(markdown) > max(MAX_MARKUP * self.capabilities.max_length, ALWAYS_RENDERED):
            return False
        if not self.capabilities.idempotent_send:
            markdown += _LONGEST_REPEAT
        length = foreign.call_now(lambda: self.channel.measure(self._render(markdown)))
        return isinstance(length, foreign.Raised) or length <= self.capabilities.max_length

    def redact_parts(self, parts: Sequence[str], earlier: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the parts of one text; a part that completes a secret of its predecessor is withheld.

        Each part is screened alone when it is sent, but people read the parts one below the other.

        Args:
            parts: In order.
            earlier: The result of an earlier call for the first parts; it is not checked again.
        """
        if len(parts) == 1:
            return tuple(parts)  # the usual case; the part is rendered and screened when it is sent
        redacted = [*earlier]
        above = self._read(earlier[-1]) if earlier else ("", "")
        for part in parts[len(earlier) :]:
            below = self._read(part)
            joined = [f"{first}\n{second}" for first, second in zip(above, below, strict=True)]
            withheld = bool(redacted) and self._screen(joined[0]) != joined[1]
            redacted.append(MARKER if withheld else part)
            above = self._read(MARKER) if withheld else below
        return tuple(redacted)

    def _read(self, part: str) -> tuple[str, str]:
        """Return a part as a person reads it, without the screen and with it."""
        rendered = foreign.call_now(partial(self._render, part))
        plain = "" if isinstance(rendered, foreign.Raised) else rendered.plain
        return plain, self._screen(plain)

    async def post(self, to: Address, content: Content) -> CallOutcome[MessageRef]:
        """Post a message, a file or a card."""
        is_file = isinstance(content, OutgoingFile)

        async def post() -> MessageRef:
            match await self._prepared(content):
                case Outgoing() as outgoing:
                    return await self.channel.send(to, outgoing)
                case OutgoingFile() as file:
                    return await self.channel.send_file(to, file)
                case Card() as card:
                    return await self.channel.ask(to, card)

        extra_s = len(content.content) / SLOWEST_BYTES_PER_S if is_file else 0.0
        return await self._call(post, chat=to.chat, extra_s=extra_s)

    async def lookup(
        self, to: Address, content: Content, *, since: str, apart: frozenset[str], before: str = ""
    ) -> CallOutcome[LookupResult]:
        """Make one lookup; see `Channel.lookup`."""

        async def lookup() -> LookupResult:
            postable = await self._prepared(content)
            return await self.channel.lookup(to, postable, since=since, apart=apart, before=before)

        return await self._call(lookup, chat=to.chat)

    async def _prepared(self, content: Content) -> Postable:
        """Return the content in the form that the channel takes."""
        match content:
            case Markdown():
                return await self._text(content)
            case OutgoingFile(name=name, caption=caption):
                return replace(content, name=self._screen(name), caption=self._screen(caption))
            case Card():
                return content

    async def _text(self, content: Markdown) -> Outgoing:
        return await off_loop(partial(self.outgoing, content), text=content.text)

    def outgoing(self, content: Markdown) -> Outgoing:
        """Return a text rendered, and screened as a person will read it.

        If the screen masks anything, the text goes out without markup: a forgery needs no
        formatting, and markup could hide the rest of it again.
        """
        rendered, plain = self._render(content.text), content.plain
        screened = self._screen(rendered.plain, growing=content.draft)
        if screened != rendered.plain:
            rendered, plain = self._fitting(screened), True
        elif not plain and rendered.body != rendered.plain:
            # The markup carries text too: the target of a link, the language of a code block.
            plain = self._screen(rendered.body) != rendered.body
        receipts = (replace(item, summary=self._screen(item.summary)) for item in content.receipts)
        return Outgoing(
            rendered=rendered,
            key=content.key,
            draft=content.draft,
            plain=plain,
            reply_to=content.reply_to or None,
            receipts=tuple(receipts),
        )

    def _fitting(self, text: str) -> Rendered:
        """Return a text without markup, shortened to fit: a mask may be longer than the secret."""
        while True:
            rendered = Rendered(body=text, plain=text)
            if self.channel.measure(rendered) <= self.capabilities.max_length:
                return rendered
            text = text[: len(text) * 9 // 10]

    async def edit(self, ref: MessageRef, content: Markdown | OutgoingFile) -> CallOutcome[None]:
        """Replace a message's text, or the caption of a file (empty removes it)."""

        async def edit() -> None:
            if isinstance(content, Markdown):
                outgoing = await self._text(content)
            else:
                caption = self._screen(content.caption)
                rendered = Rendered(body=caption, plain=caption)
                outgoing = Outgoing(rendered=rendered, key=content.key, plain=True)
            await self.channel.edit(ref, outgoing)

        return await self._call(edit, chat=ref.address.chat)

    async def delete(self, ref: MessageRef) -> CallOutcome[None]:
        """Remove a message."""
        return await self._call(lambda: self.channel.delete(ref), chat=ref.address.chat)

    async def typing(self, to: Address, tools: tuple[ToolProgress, ...] = ()) -> bool:
        """Show that the bot is at work, if a call slot is free; for platforms that can.

        Args:
            to: The address.
            tools: The tool calls to show.

        Returns:
            False if it may be shown later.
        """
        at = self._clock.monotonic()
        if self._slots.locked() or self._pauses.get(to.chat, at) > at:
            return False
        screened = tuple(replace(tool, tool=self._screen(tool.tool)) for tool in tools)
        outcome = await _bounded(
            lambda: self.channel.typing(to, screened), self._slots, self._call_timeout_s
        )
        # A refused typing indicator delays no message: its wait is kept apart.
        if isinstance(outcome, Unreachable) and outcome.retry_after_s is not None:
            waits = {chat: until for chat, until in self._pauses.items() if until > at}
            self._pauses = {**waits, to.chat: self._clock.monotonic() + outcome.retry_after_s}
        return isinstance(outcome, Delivered | Rejected)

    async def preview(self, to: Address, content: Markdown) -> CallOutcome[None]:
        """Show an unsent draft; after `NotSupported` no preview is tried again."""

        async def preview() -> None:
            outgoing = await self._text(content)
            try:
                await self.channel.preview(to, outgoing)
            except NotSupported:
                self._is_refused_previews = True
                raise

        if not self.previews(to):
            return Rejected(reason=f"`{self.channel.name}` shows no unsent text")
        return await self._call(preview, chat=to.chat)

    async def settle(self, ref: MessageRef, outcome: Outcome) -> CallOutcome[None]:
        """Show how a card ended."""
        return await self._call(lambda: self.channel.settle(ref, outcome), chat=ref.address.chat)

    async def fetch(
        self, attachment: Attachment, *, max_bytes: int, timeout_s: float
    ) -> CallOutcome[bytes]:
        """Download a file; not paced, and no message waits for it."""
        return await _bounded(
            lambda: self.channel.fetch(attachment, max_bytes=max_bytes), self._fetches, timeout_s
        )

    async def _call(
        self, function: Callable[[], Awaitable[T]], *, chat: str, extra_s: float = 0.0
    ) -> CallOutcome[T]:
        """Make a granted call; the pacing knows its message from the grant."""

        async def call() -> T:
            if self._clock.monotonic() < self._refused_until:
                message = f"`{self.channel.name}` has refused the credentials just now"
                raise ChannelUnavailable(message)
            return await function()

        outcome = await _bounded(call, self._slots, self._call_timeout_s + extra_s)
        at = self._clock.monotonic()
        match outcome:
            case Delivered(value=value):
                ref = value.ref if isinstance(value, LookupResult) else value
                name = ref.message if isinstance(ref, MessageRef) else ""
                self._feed(pacing.CallAnswered(chat=chat, at=at, message=name))
                self.outage.end()
                if self._refusals:
                    self._refusals, self._refused_until = 0, at
                    await self._note_refused("", 0)
            case Unreachable(retry_after_s=None):
                self.outage.begin()
                self._feed(pacing.CallUnreached(chat=chat, at=at))
                # Calls that are under way together are refused together.
                if outcome.needs_operator and at >= self._refused_until:
                    self._refused_until = at + REFUSED_S[min(self._refusals, len(REFUSED_S) - 1)]
                    self._refusals += 1
                    await self._note_refused(outcome.reason, self._refusals)
            case Unreachable(retry_after_s=wait_s):
                self._feed(pacing.CallRefused(chat=chat, at=at, retry_after_s=wait_s or 0.0))
            case _:
                pass
        return outcome

    # --- the alarm ------------------------------------------------------------------------------

    def _feed(self, event: pacing.Event) -> None:
        self._pacing, effects = pacing.step(self._pacing, event)
        granted: list[Callable[[], None]] = []
        ring_at: float | None = None
        for effect in effects:
            match effect:
                case pacing.Grant():
                    granted.append(self._granted.pop(effect.id))
                case pacing.WakeAt():
                    ring_at = effect.at
        self._set_alarm(ring_at)
        # Last, because a granted caller may ask again at once.
        for callback in granted:
            callback()

    def _set_alarm(self, at: float | None) -> None:
        if self._alarm is not None:
            if at is not None and self._rings_at <= at:
                # The earlier alarm rings and is then set again, which costs less than a new task.
                return
            self._alarm.cancel()
            self._alarm = None
        if at is not None:
            # A group that is shutting down also ends every caller that waits for a grant.
            self._alarm = begin_in(self._group, self._ring(at), name="pacing")
            self._rings_at = at

    async def _ring(self, at: float) -> None:
        await self._clock.sleep(at - self._clock.monotonic())
        self._alarm = None
        self._feed(pacing.Ticked(at=self._clock.monotonic()))


async def _bounded(
    function: Callable[[], Awaitable[T]], slots: asyncio.Semaphore, timeout_s: float
) -> CallOutcome[T]:
    """Make a call when a slot is free; the time-out begins then."""
    try:
        async with slots, asyncio.timeout(timeout_s):
            return outcome_of(await foreign.call(function))
    except TimeoutError:
        return Unknown(reason=f"no answer within {timeout_s:.3g} s", late=True)


def outcome_of(result: T | foreign.Raised) -> CallOutcome[T]:
    """Return the outcome of a call from its result, or from the exception of its adapter."""
    if not isinstance(result, foreign.Raised):
        return Delivered(value=result)
    match result.error:
        case RateLimited() as error:
            return Unreachable(reason=str(error), retry_after_s=error.retry_after_s)
        case ChannelUnavailable() as error:
            return Unreachable(reason=str(error), barred=error.barred)
        case NeedsOperator() as error:
            return Unreachable(reason=str(error), needs_operator=True)
        case ChannelRejected() as error:
            return Rejected(reason=str(error), gone=error.gone, markup=error.markup)
        case Refused() as error:
            return Rejected(reason=str(error))
        case DeliveryUnknown() as error:
            return Unknown(reason=str(error), late=error.late)
        case _:
            return Unknown(reason=result.line, broken=True)
