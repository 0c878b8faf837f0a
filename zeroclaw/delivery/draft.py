"""One answer while it is written: messages edited in place until the turn is over.

    Showed ──▶ asking ──Granted──▶ one call ──▶ its outcome ──▶ asking | at rest
                  └─ (nothing left to show: Withdraw)
    Closed ──▶ (the call in flight, if any) ──▶ Ended
    Demanded: what was only previewed becomes a message, to be edited from then on

The machine holds what was asked to be shown last and what stands in the chat, and makes one call
after another until they are the same. It asks before each call, and fills in the text only when
the call is granted: so the first text is shown at once, later ones as often as the pacing allows,
always the newest, and never an older text after a newer one. A tool call does not end a draft (K4).

A text comes cut into parts. Only the last part of a growing text changes; earlier ones are touched
again only when the text was replaced. Messages that a shorter text no longer needs are deleted, or
say so. How an answer ends is the outbox's affair; it begins with the messages that `Ended` names.

Where the platform shows unsent text, the last part is previewed, and is no message before it is
full or `Demanded`. A preview leaves nothing behind, so it can't stand twice: lost or failed, it is
made again, and at the end the final is sent in its place. Refused for good, the draft goes on in
messages.

The last text is not shown here: the final, which follows, would have to wait for the call and then
say the same. A short answer that came whole is one call so.
"""

from typing import assert_never

from zeroclaw.channel import Capabilities
from zeroclaw.delivery.outcomes import CallOutcome, Delivered, Rejected, Unknown, Unreachable
from zeroclaw.envelope import MessageRef
from zeroclaw.text import catalogue
from zeroclaw.value import Value, replace

CONTINUED_ABOVE = catalogue.CONTINUED_ABOVE.en  # stands for it; shown in its reader's language
# A message that a person deleted is sent again this often in a draft's life.
MOST_RESENT = 1


# --- its calls, what happens to it, what it asks for -----------------------------------------------


class Send(Value):
    """Post a message. `call` names the call in its outcome."""

    call: int
    key: str
    text: str
    plain: bool


class Edit(Value):
    """Replace the text of a message, the draft's `part`th."""

    call: int
    part: int
    message: str
    key: str
    text: str
    plain: bool


class Delete(Value):
    """Remove a message that the text no longer needs."""

    call: int
    part: int
    message: str


class Preview(Value):
    """Show the text of what is not sent yet.

    Attributes:
        key: Of the message that it would become.
    """

    call: int
    key: str
    text: str
    plain: bool


Call = Send | Edit | Delete | Preview


class Showed(Value):
    """The runtime has a newer text, whole, cut into parts; a blank one changes nothing.

    Attributes:
        is_last: The final, or `Demanded`, follows at once.
    """

    turn: str
    fence: int
    number: int
    parts: tuple[str, ...]
    is_last: bool = False


class Granted(Value):
    """The call that was asked for may be made."""


class Landed(Value):
    """A call has ended; that of a send that arrived names its message."""

    call: int
    outcome: CallOutcome[MessageRef] | CallOutcome[None]


class Closed(Value):
    """The turn is over; the final takes the messages from here."""


class Demanded(Value):
    """What is shown must stand as messages: the turn waits, and a preview would vanish.

    Attributes:
        soon: A person is waited for, and reads it before they answer.
    """

    soon: bool = False


class Faded(Value):
    """The preview may no longer be seen, though that was not asked for."""


Event = Showed | Granted | Landed | Demanded | Faded | Closed


class Ask(Value):
    """Ask for a call; replaces what was asked before.

    Attributes:
        message: The message that it is about, empty for a new one; of a preview its key.
        soon: A person or a tool waits for it.
    """

    message: str
    soon: bool = False


class Withdraw(Value):
    """Take back what was asked."""


class Ended(Value):
    """The last effect: the messages that stand, in order."""

    messages: tuple[str, ...]


Effect = Ask | Withdraw | Call | Ended


# --- its state -------------------------------------------------------------------------------------


class Part(Value):
    """One message of the draft.

    Attributes:
        message: The platform's id, None for one that is gone and is left to the final.
        text: What stands there, None when that is unknown.
        key: The key that it was sent with.
    """

    message: str | None
    text: str | None
    key: str


class Draft(Value):
    """The state of one draft.

    Attributes:
        turn: Whose text this is; frames of another turn are dropped.
        fence: Of the newest frame.
        number: Of the newest frame within the fence.
        wanted: The parts that were asked to be shown last.
        is_last: The final shows them, and comes at once.
        parts: The messages that stand, in order.
        demanded: So many parts, from the first, must be messages.
        is_read_now: A person reads them before they answer.
        previewed: What is seen of the next part, None for nothing, or when that is unknown.
        asked: What was asked for the next call, None for nothing.
        flight: The one call under way.
        calls: How many were made.
        sent: How many messages were posted, those of a former life included.
        resent: How many messages were sent again after a person deleted them.
        plain: The platform could not read the markup.
        muted: The platform refused the draft; nothing more is shown before the final.
        uncertain: A send may have arrived, unknown to us.
        unsure: The next send may have arrived before, with another text.
        closed: No more frames.
        ended: Nothing is under way any more.
    """

    turn: str
    fence: int
    traits: Capabilities
    number: int = -1
    wanted: tuple[str, ...] = ()
    is_last: bool = False
    parts: tuple[Part, ...] = ()
    demanded: int = 0
    is_read_now: bool = False
    previewed: str | None = None
    asked: Ask | None = None
    flight: Call | None = None
    calls: int = 0
    sent: int = 0
    resent: int = 0
    plain: bool = False
    muted: bool = False
    uncertain: bool = False
    unsure: bool = False
    closed: bool = False
    ended: bool = False


def opened(
    turn: str,
    fence: int,
    traits: Capabilities,
    messages: tuple[str, ...] = (),
    *,
    resumed: bool = False,
    lost: bool = False,
) -> Draft:
    """Return a draft before its first text.

    Args:
        turn: Its turn.
        fence: The conversation's fencing token.
        traits: Of its channel, `native_draft` where this draft may be previewed.
        messages: What a former life of the turn left; the first frame replaces their texts.
        resumed: The turn had a former life, though it may have left nothing.
        lost: One more message may stand, unrecorded. The final looks for it, and until then
            nothing is shown, as after a send that was lost in this life.
    """
    parts = tuple(
        Part(message=message, text=None, key=message_key(turn, number))
        for number, message in enumerate(messages)
    )
    # A former life may have died between a send and its record; the same key finds that message.
    unsure = resumed or bool(messages)
    return Draft(
        turn=turn,
        fence=fence,
        traits=traits,
        parts=parts,
        sent=len(parts),
        muted=lost,
        uncertain=lost,
        unsure=unsure,
    )


def is_previewed(draft: Draft) -> bool:
    """Whether part of what was demanded may yet become a message, and is none."""
    wanted = _wanted(draft)
    is_over = draft.closed or draft.muted or not draft.traits.native_draft
    return not is_over and len(draft.parts) < min(draft.demanded, len(wanted))


def message_key(turn: str, number: int) -> str:
    """Return the key of a turn's message after so many; the same in every life of the turn."""
    return f"{turn}:{number}"


def step(draft: Draft, event: Event) -> tuple[Draft, tuple[Effect, ...]]:
    """Take in what happened; return what to do now, in order."""
    match event:
        case Showed():
            if not _is_news(draft, event):
                return draft, ()
            draft = replace(
                draft,
                fence=event.fence,
                number=event.number,
                is_last=event.is_last,
                is_read_now=False,
            )
            if event.parts:
                draft = replace(draft, wanted=event.parts)
        case Granted():
            return _fly(draft)
        case Demanded():
            draft = replace(
                draft, demanded=len(draft.wanted), is_last=False, is_read_now=event.soon
            )
        case Faded():
            draft = replace(draft, previewed=None)
        case Closed():
            draft = replace(draft, closed=True)
        case Landed():
            if draft.flight is None or draft.flight.call != event.call:
                return draft, ()
            draft = _land(replace(draft, flight=None), draft.flight, event.outcome)
        case _:
            assert_never(event)
    return _rest(draft)


def _is_news(draft: Draft, frame: Showed) -> bool:
    newer = (frame.fence, frame.number) > (draft.fence, draft.number)
    return frame.turn == draft.turn and newer and not draft.closed


def _rest(draft: Draft) -> tuple[Draft, tuple[Effect, ...]]:
    """Ask for the next call, or take back what is no longer needed, or end."""
    if draft.flight is not None or draft.ended:
        return draft, ()
    call = _next_call(draft)
    effects: list[Effect] = []
    ask = None if call is None else _ask(draft, call)
    if ask != draft.asked:
        draft = replace(draft, asked=ask)
        effects.append(Withdraw() if ask is None else ask)
    if draft.closed:
        draft = replace(draft, ended=True)
        messages = tuple(part.message for part in draft.parts if part.message is not None)
        effects.append(Ended(messages=messages))
    return draft, tuple(effects)


def _ask(draft: Draft, call: Call) -> Ask:
    match call:
        case Send():
            return Ask(message="", soon=draft.is_read_now or is_previewed(draft))
        case Preview():
            return Ask(message=call.key)
        case Edit() | Delete():
            return Ask(message=call.message, soon=draft.is_read_now)
        case _:
            assert_never(call)


def _fly(draft: Draft) -> tuple[Draft, tuple[Effect, ...]]:
    """Make the call that was granted, with the text of now."""
    # A grant may cross our withdrawal; then there is nothing to do.
    call = None if draft.asked is None else _next_call(draft)
    if call is None:
        return draft, ()
    return replace(draft, asked=None, flight=call, calls=draft.calls + 1), (call,)


# --- what is still to do -------------------------------------------------------------------------


def _next_call(draft: Draft) -> Call | None:
    """Return the call that brings what stands closer to what is wanted, None when it is that."""
    is_over = draft.closed or draft.muted or draft.is_last
    if is_over or not draft.traits.can_edit or not draft.wanted:
        return None
    wanted = _wanted(draft)
    for number, (part, text) in enumerate(zip(draft.parts, wanted, strict=False)):
        if part.message is not None and part.text != text:
            return _edit(draft, number, part.message, text)
    for number in range(len(draft.parts) - 1, len(wanted) - 1, -1):
        message = draft.parts[number].message
        if message is None or draft.parts[number].text == CONTINUED_ABOVE:
            continue
        if draft.traits.can_delete:
            return Delete(call=draft.calls, part=number, message=message)
        return _edit(draft, number, message, CONTINUED_ABOVE)
    next_part = len(draft.parts)
    if next_part >= len(wanted):
        return None
    # The same for every attempt, whatever its text has become; never used again after it.
    key = message_key(draft.turn, draft.sent)
    text = wanted[next_part]
    may_grow = next_part == len(wanted) - 1
    if draft.traits.native_draft and may_grow and next_part >= draft.demanded:
        if text == draft.previewed:
            return None
        return Preview(call=draft.calls, key=key, text=text, plain=draft.plain)
    return Send(call=draft.calls, key=key, text=text, plain=draft.plain)


def _wanted(draft: Draft) -> tuple[str, ...]:
    """Return the parts that the channel can show."""
    return draft.wanted if draft.traits.multi_message else draft.wanted[:1]


def _edit(draft: Draft, number: int, message: str, text: str) -> Edit:
    key, plain = draft.parts[number].key, draft.plain
    return Edit(call=draft.calls, part=number, message=message, key=key, text=text, plain=plain)


# --- what a call has changed ---------------------------------------------------------------------


def _land(draft: Draft, call: Call, outcome: CallOutcome[MessageRef] | CallOutcome[None]) -> Draft:
    match outcome:
        case Delivered():
            return _carried_out(draft, call, outcome.value)
        case Unreachable():
            return draft
        case Rejected():
            return _refused(draft, call, outcome)
        case Unknown():
            return _lost(draft, call)
        case _:
            assert_never(outcome)


def _carried_out(draft: Draft, call: Call, made: MessageRef | None) -> Draft:
    match call, made:
        case Send(), MessageRef():
            # Sent before under its key, the message shows what it was sent with then.
            is_repeat = draft.unsure and draft.traits.idempotent_send
            text = None if is_repeat else call.text
            part = Part(message=made.message, text=text, key=call.key)
            return replace(
                draft,
                parts=(*draft.parts, part),
                sent=draft.sent + 1,
                previewed=None,
                unsure=False,
                uncertain=False,
            )
        case Edit(), _:
            part = replace(draft.parts[call.part], text=call.text)
            return _with_part(draft, call.part, part)
        case Delete(), _:
            return _with_part(draft, call.part, None)
        case Preview(), None:
            return replace(draft, previewed=call.text)
        case _:
            message = f"`{type(call).__name__}` can't make `{type(made).__name__}`"
            raise ValueError(message)


def _refused(draft: Draft, call: Call, refusal: Rejected) -> Draft:
    if isinstance(call, Delete):
        if refusal.gone:
            return _with_part(draft, call.part, None)
        return replace(draft, traits=replace(draft.traits, can_delete=False))
    if refusal.gone and isinstance(call, Edit):
        is_last = call.part == len(draft.parts) - 1
        if is_last and draft.resent < MOST_RESENT:
            return replace(_with_part(draft, call.part, None), resent=draft.resent + 1)
        return _with_part(draft, call.part, replace(draft.parts[call.part], message=None))
    if refusal.markup and not call.plain:
        return replace(draft, plain=True)
    if isinstance(call, Preview):
        return replace(draft, traits=replace(draft.traits, native_draft=False))
    return replace(draft, muted=True)


def _lost(draft: Draft, call: Call) -> Draft:
    match call:
        case Edit():
            return _with_part(draft, call.part, replace(draft.parts[call.part], text=None))
        case Delete():
            return draft
        case Preview():
            return replace(draft, previewed=None)
        case Send():
            # Elsewhere, sent again, it might stand there twice; the final is enough, and says so.
            is_silent = not draft.traits.idempotent_send
            # Arrived, it took the preview away.
            return replace(draft, muted=is_silent, uncertain=True, unsure=True, previewed=None)
        case _:
            assert_never(call)


def _with_part(draft: Draft, number: int, part: Part | None) -> Draft:
    kept = () if part is None else (part,)
    return replace(draft, parts=(*draft.parts[:number], *kept, *draft.parts[number + 1 :]))
