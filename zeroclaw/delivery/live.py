"""Show drafts: perform each machine's effects on the platform, and feed the outcomes back.

`Live` knows the open drafts, for the turns that write them and for the transcript.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import takewhile
from typing import assert_never

from zeroclaw.channel import Capabilities, ToolProgress, TranscriptItem
from zeroclaw.clock import made_at
from zeroclaw.delivery import draft as machine
from zeroclaw.delivery.account import Account, Markdown
from zeroclaw.delivery.outcomes import CallOutcome, Delivered, Unknown, Unreachable
from zeroclaw.delivery.pacing import Rank
from zeroclaw.delivery.rows import CERTAIN, DraftRemainder, Uncertainty
from zeroclaw.delivery.split import CUT_AT_ONCE_CHARS, Outline, Piece, in_one, pieces
from zeroclaw.envelope import Address, MessageRef, TurnId
from zeroclaw.errors import StoreRefused, StoreUnusable
from zeroclaw.host.clock import begin_in
from zeroclaw.text.language import Language
from zeroclaw.value import Struct, Value, field, replace

TYPING_DELAY_S = 0.3
"""Seconds before the first typing indicator, which an earlier first text makes needless."""
TYPING_S = 4.0
"""Seconds between typing indicators; platforms show one for 5 s (Telegram) to 10 s (Discord)."""
LOOK_S = 10.0
"""Seconds between checks of a preview. One that did not change for a whole span is shown again, so
after 20 s at most; Telegram shows it for 30 s."""
LONGEST_STAND_S = 5.0
"""Seconds; a slow platform delays the tools of its own conversation no longer than this."""

NOTHING = Capabilities(max_length=0, can_edit=False, can_delete=False)
"""The capabilities of a channel that is not running."""


class NewDraft(Value):
    """A draft before its first text.

    Attributes:
        turn: The turn that writes it; each turn has one open draft.
        address: The chat that shows it.
        record: Awaited with each new message before the next call; where a message can be looked up,
            also with a mark before it is sent, and with an empty one if it did not arrive. When it
            raises `StoreRefused` or `StoreUnusable`, the message is not sent, and the draft shows no
            more text.
        refs: The turn's messages from before a restart; the first text replaces theirs.
        resumed: The turn was begun before a restart.
        language: The reader's language.
        reply_to: The platform's id of the message that it answers, empty for none.
        lost: The mark from which to look up a message that the turn may have sent before a restart;
            empty for none.
    """

    turn: TurnId
    address: Address
    record: Callable[[MessageRef | str], Awaitable[None]]
    refs: tuple[MessageRef, ...] = ()
    resumed: bool = False
    language: Language = "en"
    reply_to: str = ""
    lost: str = ""


class DraftHandle:
    """One draft, for the runner of its turn; made by `Live.open`.

    Attributes:
        place: The key of its address.
        text: The newest text, even if it is not shown yet.
        is_parked: The turn waits for a person; no typing is shown.
    """

    def __init__(
        self,
        new: NewDraft,
        *,
        account: Account | None,
        group: asyncio.TaskGroup,
        on_end: Callable[[], object],
    ) -> None:
        self._new = new
        self.is_parked = False
        self.place = new.address.key()
        self._account = account
        self._group = group
        self._on_end = on_end
        self._refs = {ref.message: ref for ref in new.refs}
        self._draft: machine.Draft = machine.opened(
            new.turn,
            NOTHING if account is None else account.traits(new.address),
            tuple(self._refs),
            resumed=new.resumed,
            lost=bool(new.lost),
            language=new.language,
        )
        # Its own: an older draft of the turn, which withdraws at its end, may still wait for its call.
        self._name = f"draft {new.turn} {id(self)}"
        self._uncertainty = Uncertainty(mark=new.lost)
        self.text = ""
        self._newest: machine.Showed | None = None
        self._cut: tuple[str, tuple[Piece, ...]] = ("", ())
        self._outline = Outline()
        self._is_cutting = False
        self._is_read_now = False
        self._after_cut: list[Callable[[], None]] = []
        self._redacted: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._ended = asyncio.Event()
        self._typing_is_over = asyncio.Event()
        self._typing_is_over.set()  # it has not begun
        self._tools: tuple[ToolProgress, ...] = ()
        self._shows_tools = False
        self._tools_changed = asyncio.Event()
        self._not_yet: asyncio.TimerHandle | None = None
        self._at_rest, self._stands = asyncio.Event(), asyncio.Event()
        self._previewed = 0
        self._remainder = DraftRemainder()
        self._update_rest()

    def begin(self) -> None:
        """Show that an answer is being worked on, until its next text comes."""
        account = self._account
        is_needed = self._typing_is_over.is_set() and not self._draft.closed
        if account is not None and account.capabilities.has_typing and is_needed:
            self._typing_is_over.clear()
            # No task yet: most answers begin before one is needed.
            loop = asyncio.get_running_loop()
            self._not_yet = loop.call_later(TYPING_DELAY_S, self._begin_to_type, account)

    def show_tools(self, tools: tuple[ToolProgress, ...]) -> None:
        """Show the progress of a batch's tools; never waits, and only the newest state is shown."""
        account = self._account
        if account is None or not account.capabilities.names_tools or self._draft.closed:
            return
        if not tools or tools == self._tools:
            return
        self._tools = tools
        self._tools_changed.set()
        if not self._shows_tools:
            self._shows_tools = True
            begin_in(self._group, self._type_tools(account), name=f"tools {self._new.turn}")

    async def at_rest(self) -> None:
        """Wait until the newest text is shown, or can't be shown."""
        await self._at_rest.wait()

    def show(self, text: str, *, is_last: bool = False) -> None:
        """Show this text soon; never waits, and only the newest text counts.

        Args:
            text: The complete text so far, redacted and screened.
            is_last: The final, or a tool, follows at once.
        """
        if self._draft.closed:
            return
        self.text = self.as_shown(text)
        self._newest = machine.Showed(parts=(), is_last=is_last)
        self._stop_typing()
        self._update_rest()
        if not is_last:
            self._show_if_free()

    def as_shown(self, text: str) -> str:
        """Return a text without breaks if the chat shows it as one message, or once it is complete."""
        traits = self._draft.traits
        return text if traits.can_edit and traits.multi_message else in_one(text)

    def demand_messages(self, *, is_read_now: bool = False) -> None:
        """Request that the current text become messages instead of a preview.

        Args:
            is_read_now: The turn waits for a person, who reads the text before they answer.
        """
        if not self._draft.closed:
            self._is_read_now = is_read_now
            self._cut_newest(self._demand)

    async def wait_for_messages(self) -> None:
        """Wait until the demanded messages exist; gives up soon if the platform is slow."""
        if self._stands.is_set():
            return  # the usual case; a time-out costs more than the check
        await _wait(self._stands, LONGEST_STAND_S)

    def begin_close(self) -> DraftRemainder | None:
        """Stop showing text; return the remainder for the final, None while a call is under way."""
        if not self._ended.is_set():
            self._feed(machine.Closed())
        return self._remainder if self._ended.is_set() else None

    async def close(self) -> DraftRemainder:
        """End the draft; waits only for the one call under way.

        Safe twice, and after being cancelled.

        Returns:
            The remainder for the final.
        """
        self.begin_close()
        await self._ended.wait()
        return self._remainder

    def snapshot(self) -> TranscriptItem:
        """Return the draft for transcripts: its newest text, even if that is not shown yet."""
        parts = self._draft.parts
        return TranscriptItem(
            kind="bot",
            key=parts[0].key if parts else machine.message_key(self._new.turn, 0),
            ref=next((part.message for part in parts if part.message is not None), ""),
            text=self.text,
            at=made_at(self._new.turn),
            draft=True,
        )

    # --- events and effects ----------------------------------------------------------------------

    def _cut_newest(self, callback: Callable[[], None]) -> None:
        """Cut the newest text, then call `callback`.

        A text is cut only when it may be shown; most are replaced by a newer one before. A long
        text is cut in a thread, and callbacks that arrive meanwhile run after it.
        """
        if not self._is_cutting and self._newest is None:
            callback()
            return
        self._after_cut.append(callback)
        if self._is_cutting or self._newest is None:
            return
        is_long = len(self.text) - self._settled(self.text) > CUT_AT_ONCE_CHARS
        if is_long and begin_in(self._group, self._cut_apart(), name=self._name) is not None:
            self._is_cutting = True
            self._update_rest()
        else:
            frame, self._newest = self._newest, None
            self._go_on(replace(frame, parts=self._parts(self.text)))

    async def _cut_apart(self) -> None:
        event: machine.Event = machine.Closed()  # if cancelled, the group is shutting down
        try:
            while self._newest is not None:
                frame, self._newest = self._newest, None
                parts = await asyncio.to_thread(self._parts, self.text)
                # If a newer text came meanwhile and must become messages too, cut it as well;
                # otherwise it is shown in its turn.
                if self._newest is None or self._demand not in self._after_cut:
                    event = replace(frame, parts=parts)
                    break
        finally:
            self._go_on(event)
        # Only now: until here, the demanded text was not yet fed to the machine. If cancelled, never:
        # the thread may still be cutting.
        self._is_cutting = False
        self._update_rest()
        self._show_if_free()

    def _demand(self) -> None:
        self._feed(machine.Demanded(soon=self._is_read_now))

    def _go_on(self, event: machine.Event) -> None:
        """Feed an event, then run the callbacks that waited for the cut."""
        self._feed(event)
        while self._after_cut:
            self._after_cut.pop(0)()

    def _show_if_free(self) -> None:
        if self._draft.requested is None and self._draft.flight is None and not self._is_cutting:
            self._cut_newest(lambda: None)

    def _granted(self) -> None:
        request = self._draft.requested

        def begin_call() -> None:
            # If the newest text changes another message, that request has replaced this one.
            if self._draft.requested == request:
                self._feed(machine.Granted())
            if self._draft.flight is None and self._account is not None:
                self._account.done(self._new.address)

        self._cut_newest(begin_call)

    def _feed(self, event: machine.Event) -> None:
        self._draft, effects = machine.step(self._draft, event)
        for effect in effects:
            match effect:
                case machine.RequestSlot():
                    self._ask(effect)
                case machine.Withdraw():
                    self._withdraw()
                case machine.Send() | machine.Edit() | machine.Delete() | machine.Preview():
                    self._start(effect)
                case machine.DraftEnded():
                    self._remainder = self._remainder_of(effect.messages)
                    self._withdraw(for_good=True)
                    self._on_end()
                    self._ended.set()
                    self._stop_typing()
                    self._tools_changed.set()
                case _:
                    assert_never(effect)
        self._update_rest()

    def _remainder_of(self, messages: tuple[str, ...]) -> DraftRemainder:
        draft = self._draft
        # Without markup, the final tries it again.
        parts = () if draft.plain else draft.parts
        ended = takewhile(lambda part: part.message and part.is_ended, parts)
        may_stand = draft.uncertain
        return DraftRemainder(
            refs=tuple(self._refs[message] for message in messages),
            ended=tuple(part.text or "" for part in ended),
            uncertainty=replace(self._uncertainty, may_stand=may_stand) if may_stand else CERTAIN,
            posted=draft.sent,
            inherited=draft.unsure and not may_stand,
        )

    def _update_rest(self) -> None:
        draft = self._draft
        has_newer = self._newest is not None and not self._newest.is_last
        is_cutting = self._is_cutting or has_newer
        is_busy = is_cutting or draft.requested is not None or draft.flight is not None
        if is_busy and not draft.ended:
            self._at_rest.clear()
        else:
            self._at_rest.set()
        if machine.is_previewed(draft) or (self._is_cutting and not draft.ended):
            self._stands.clear()
        else:
            self._stands.set()

    def _ask(self, slot: machine.RequestSlot) -> None:
        if self._account is not None:
            self._account.request_call(
                self._name,
                place=self._new.address,
                rank=Rank.FINAL if slot.soon else Rank.DRAFT,
                message=slot.message,
                granted=self._granted,
            )

    def _withdraw(self, *, for_good: bool = False) -> None:
        if self._account is not None:
            self._account.withdraw(self._name, for_good=for_good)

    def _settled(self, text: str) -> int:
        """Return the end of the unchanged pieces of the last cut."""
        before, cut = self._cut
        end = cut[-2].end if len(cut) > 1 else 0
        return end if text.startswith(before[:end]) else 0

    def _parts(self, text: str) -> tuple[str, ...]:
        """Cut a text from its settled position on; never called twice at once, from any thread."""
        if self._account is None:
            return ()
        start, fits = self._settled(text), self._account.fits
        settled = self._cut[1][:-1] if start else ()
        cut = (*settled, *pieces(text, fits, start=start, outline=self._outline))
        self._cut = (text, cut)
        parts = tuple(piece.text for piece in cut if piece.text)
        # Only the changed parts are checked again, because this runs for each frame.
        old_parts, redacted = self._redacted
        unchanged = sum(
            1
            for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old_parts, parts, strict=False))
        )
        self._redacted = (parts, self._account.redact_parts(parts, redacted[:unchanged]))
        return self._redacted[1]

    # --- calls -----------------------------------------------------------------------------------

    def _stop_typing(self) -> None:
        self._typing_is_over.set()
        if self._not_yet is not None:
            self._not_yet.cancel()

    def _begin_to_type(self, account: Account) -> None:
        begin_in(self._group, self._type(account), name=f"typing {self._new.turn}")

    async def _type(self, account: Account) -> None:
        while not self._typing_is_over.is_set():
            if not self._shows_tools and not self.is_parked:
                await account.typing(self._new.address)
            await _wait(self._typing_is_over, TYPING_S)

    async def _type_tools(self, account: Account) -> None:
        """Show the tools until all have ended, repeatedly, because an indicator fades.

        A tool that still runs when the draft ends is shown as failed.
        """
        is_shown = False
        while not is_shown:
            self._tools_changed.clear()
            is_over = self._ended.is_set()
            if is_over:
                self._tools = tuple(map(_cut_short, self._tools))
            tools = self._tools
            is_done = await account.typing(self._new.address, tools) or is_over
            is_shown = is_done and tools == self._tools and not any(map(_is_running, tools))
            if not is_shown:
                await _wait(self._tools_changed, TYPING_S)
        self._shows_tools = False

    async def _refresh(self) -> None:
        """Show a preview again that has not changed for long; it would vanish."""
        while not self._ended.is_set():
            previewed = self._previewed
            await _wait(self._ended, LOOK_S)
            if previewed == self._previewed:
                self._feed(machine.Faded())

    def _start(self, call: machine.Call) -> None:
        if self._account is None:
            return
        task = begin_in(self._group, self._perform(self._account, call), name=self._name)
        if task is None:
            self._end_unstarted(call)
        else:
            task.add_done_callback(lambda _: self._end_unstarted(call))

    def _end_unstarted(self, call: machine.Call) -> None:
        """End a draft whose call was cancelled before its first step, so that no `finally` ran."""
        if self._draft.flight == call:
            self._feed(machine.Closed())
            self._feed(machine.Landed(call=call.call, outcome=Unreachable(reason="cancelled")))

    async def _perform(self, account: Account, call: machine.Call) -> None:
        """Make one call; it ends in exactly one event, even if cancelled."""
        outcome: CallOutcome[MessageRef] | CallOutcome[None] = Unknown(reason="cancelled")
        try:
            outcome = await self._outcome(account, call)
        finally:
            account.done(self._new.address)
            self._feed(machine.Landed(call=call.call, outcome=outcome))
            self._show_if_free()

    async def _outcome(
        self, account: Account, call: machine.Call
    ) -> CallOutcome[MessageRef] | CallOutcome[None]:
        match call:
            case machine.Send():
                return await self._post(account, call)
            case machine.Edit():
                return await account.edit(self._refs[call.message], self._content(call))
            case machine.Delete():
                return await account.delete(self._refs[call.message])
            case machine.Preview():
                self._previewed += 1
                if self._previewed == 1:
                    self._group.create_task(self._refresh(), name=f"preview {self._new.turn}")
                return await account.preview(self._new.address, self._content(call))
            case _:
                assert_never(call)

    def _content(self, call: machine.Send | machine.Edit | machine.Preview) -> Markdown:
        is_growing = not self._draft.is_ending
        return Markdown(text=call.text, key=call.key, draft=is_growing, plain=call.plain)

    async def _post(self, account: Account, call: machine.Send) -> CallOutcome[MessageRef]:
        """Post a message; recorded before the send, unless the platform recognises our keys."""
        keyed = account.capabilities.idempotent_send
        mark = "" if keyed else account.lookup_mark(self._new.address)
        if mark and not await self._is_recorded(mark):
            return Unreachable(reason="it is not on record")
        self._uncertainty = Uncertainty(mark=mark)
        reply_to = "" if self._refs else self._new.reply_to
        content = replace(self._content(call), reply_to=reply_to)
        outcome = await account.post(self._new.address, content)
        if isinstance(outcome, Delivered):
            ref = outcome.value
            self._refs[ref.message] = ref
            await self._is_recorded(ref)
        elif isinstance(outcome, Unknown):
            self._uncertainty = replace(self._uncertainty, late=outcome.late)
        elif mark:
            await self._is_recorded("")
        return outcome

    async def _is_recorded(self, message: MessageRef | str) -> bool:
        """Record a message, or the mark of one; False if that is not possible."""
        try:
            await self._new.record(message)
        except (StoreRefused, StoreUnusable):
            # A newer holder has the conversation, and this draft is no longer wanted; or the turn's
            # row can't be read, which may not end the task group that all drafts share.
            self._feed(machine.Closed())
            return False
        return True


class Live(Struct, eq=False, kw_only=True):
    """All open drafts. One that hangs or fails delays no other.

    Attributes:
        account_of: Returns the account of a channel by name; None if the channel is not running,
            and the draft shows no text.
        group: Owns the calls, and outlives every draft.
    """

    account_of: Callable[[str], Account | None]
    group: asyncio.TaskGroup
    _open: dict[TurnId, DraftHandle] = field(default_factory=dict[TurnId, DraftHandle])

    def open(self, new: NewDraft) -> DraftHandle:
        """Open a draft and start to show it; one of the same turn may still wait for its call."""

        def on_end() -> None:
            if self._open.get(new.turn) is handle:
                del self._open[new.turn]

        account = self.account_of(new.address.channel)
        handle = self._open[new.turn] = DraftHandle(
            new, account=account, group=self.group, on_end=on_end
        )
        handle.begin()
        return handle

    def open_drafts(self, address: Address) -> tuple[TranscriptItem, ...]:
        """Return the drafts of an address that have a text, oldest first."""
        place = address.key()
        drafts = (handle.snapshot() for handle in self._open.values() if handle.place == place)
        return tuple(draft for draft in drafts if draft.text)


async def _wait(event: asyncio.Event, limit_s: float) -> None:
    """Wait for an event, but not longer than the limit."""
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await event.wait()


def _is_running(tool: ToolProgress) -> bool:
    return tool.state == "running"


def _cut_short(tool: ToolProgress) -> ToolProgress:
    return replace(tool, state="failed") if _is_running(tool) else tool
