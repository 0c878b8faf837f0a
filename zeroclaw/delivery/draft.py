"""One answer while it is written: messages edited in place until the turn is over.

    Showed ──▶ asking ──Granted──▶ one call ──▶ its outcome ──▶ asking | at rest
                  └─ (all is shown: Withdraw)
    Closed ──▶ (the call in flight, if any) ──▶ DraftEnded
    Demanded: previewed text is sent as a message, and edited from then on

The machine knows the newest text and the text in the chat, and makes one call after another until
they are the same. It asks before each call, and fills in the text only when the call is granted. So
the first text is shown at once, later ones as often as the pacing allows; always the newest, and
never an older text after a newer one. A tool call does not end a draft (K4), but after a card the
text goes on in a new message, because nobody gets notice of an edit.

A text arrives cut into parts. Only the last part of a growing text changes; earlier ones are edited
again only when the text was replaced. Messages above a card are ended while a person reads them, so
that the final need not edit each. Messages that a shorter text no longer needs are deleted, or
edited to point above. The outbox ends the answer; it starts from the messages of `DraftEnded`.

Where the platform can preview unsent text, the last part is previewed, and becomes a message only
when it is full or `Demanded`. A preview leaves no message behind, so it can't appear twice: if it
is lost or fails, it is shown again, and at the end the final is sent in its place. If the platform
rejects previews for good, the draft continues with messages.

The last text is not shown here: the final follows with the same text, and would have to wait for
the call. So a short answer that arrives whole takes one call.
"""

from typing import assert_never

from zeroclaw.channel import Capabilities
from zeroclaw.delivery.outcomes import CallOutcome, Delivered, Rejected, Unknown, Unreachable
from zeroclaw.envelope import MessageRef
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.value import Value, replace

# How often a draft sends a message again after a person deleted it.
MAX_RESENT = 1


# --- calls, events and effects --------------------------------------------------------------------


class Send(Value):
    """Post a message. `call` names the call in its outcome."""

    call: int
    key: str
    text: str
    plain: bool


class Edit(Value):
    """Replace the text of the message of part number `part`."""

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
    """Show unsent text.

    Attributes:
        key: The key of the message that it would become.
    """

    call: int
    key: str
    text: str
    plain: bool


Call = Send | Edit | Delete | Preview


class Showed(Value):
    """The runtime has a newer complete text, cut into parts.

    Attributes:
        parts: Its parts. Without any, it changes nothing unless it is the last, and messages can be
            deleted: most texts begin with less than a person can see.
        is_last: The final, or `Demanded`, follows at once.
    """

    parts: tuple[str, ...]
    is_last: bool = False


class Granted(Value):
    """The requested call may be made."""


class Landed(Value):
    """A call has ended; the outcome of a delivered send is its message."""

    call: int
    outcome: CallOutcome[MessageRef] | CallOutcome[None]


class Closed(Value):
    """The turn is over; the final takes over the messages."""


class Demanded(Value):
    """Previewed text must become messages: the turn waits, and a preview would vanish.

    Attributes:
        soon: The turn waits for a person, who reads the text before they answer.
    """

    soon: bool = False


class Faded(Value):
    """The preview may have vanished; show it again."""


Event = Showed | Granted | Landed | Demanded | Faded | Closed


class RequestSlot(Value):
    """Ask for a call; replaces the request before.

    Attributes:
        message: The message to change, empty for a new one; for a preview its key.
        soon: A person or a tool is waiting for it.
    """

    message: str
    soon: bool = False


class Withdraw(Value):
    """Withdraw the request."""


class DraftEnded(Value):
    """The last effect: the messages that exist, in order."""

    messages: tuple[str, ...]


Effect = RequestSlot | Withdraw | Call | DraftEnded


# --- its state -------------------------------------------------------------------------------------


class DraftMessage(Value):
    """One message of the draft.

    Attributes:
        message: The platform's id, None if the message is gone and left to the final.
        text: The text of the message, None when that is unknown.
        key: The key that it was sent with.
        is_ended: It was shown as a text that grows no more.
    """

    message: str | None
    text: str | None
    key: str
    is_ended: bool = False


class Draft(Value):
    """The state of one draft.

    Attributes:
        turn: The turn that writes the text.
        language: The reader's language.
        wanted: The parts of the newest text, None before the first.
        is_last: The final shows these parts, and follows at once.
        parts: The messages that exist, in order.
        demanded: Count of parts, from the first, that must be messages.
        is_read_now: A person reads the messages before they answer.
        previewed: The previewed text of the next part, None for none, or when that is unknown.
        requested: The request for the next call, None for none.
        flight: The one call under way.
        is_ending: It shows a text that grows no more.
        calls: Count of calls.
        sent: Count of posted messages, including those before a restart.
        resent: Count of messages sent again after a person deleted them.
        plain: The platform could not read the markup.
        muted: The platform rejected the draft; it shows no more text before the final.
        uncertain: The last send may have arrived.
        unsure: The next send may have arrived before, with another text.
        closed: It takes no more texts.
        ended: No call is under way any more.
    """

    turn: str
    traits: Capabilities
    wanted: tuple[str, ...] | None = None
    is_last: bool = False
    parts: tuple[DraftMessage, ...] = ()
    demanded: int = 0
    is_read_now: bool = False
    previewed: str | None = None
    requested: RequestSlot | None = None
    flight: Call | None = None
    is_ending: bool = False
    calls: int = 0
    sent: int = 0
    resent: int = 0
    plain: bool = False
    muted: bool = False
    uncertain: bool = False
    unsure: bool = False
    closed: bool = False
    ended: bool = False
    language: Language = "en"


def opened(
    turn: str,
    traits: Capabilities,
    messages: tuple[str, ...] = (),
    *,
    resumed: bool = False,
    lost: bool = False,
    language: Language = "en",
) -> Draft:
    """Return a draft before its first text.

    Args:
        turn: The turn that writes it.
        traits: The channel's capabilities; `native_draft` if this draft may be previewed.
        messages: The turn's messages from before a restart; the first text replaces theirs.
        resumed: The turn was begun before a restart, though it may have left no message.
        lost: One more message may exist, unrecorded. The final looks it up, and until then the draft
            shows no text, as after a send that was lost in this process.
        language: The reader's language.
    """
    parts = tuple(
        DraftMessage(message=message, text=None, key=message_key(turn, number))
        for number, message in enumerate(messages)
    )
    # The former process may have died between a send and its record; the same key finds the
    # message.
    unsure = resumed or bool(messages)
    return Draft(
        turn=turn,
        traits=traits,
        parts=parts,
        sent=len(parts),
        muted=lost,
        uncertain=lost,
        unsure=unsure,
        language=language,
    )


def is_previewed(draft: Draft) -> bool:
    """Whether a demanded part is still only a preview and may yet become a message."""
    wanted = _wanted(draft)
    is_over = draft.closed or draft.muted or not draft.traits.native_draft
    return not is_over and len(draft.parts) < min(draft.demanded, len(wanted))


def stays(draft: Draft) -> bool:
    """Whether the text grows no more: a person reads it above a card, and it goes on below."""
    return draft.is_read_now and draft.traits.multi_message


def message_key(turn: str, number: int) -> str:
    """Return the key of a turn's message number `number`, from 0; the same after a restart."""
    return f"{turn}:{number}"


def step(draft: Draft, event: Event) -> tuple[Draft, tuple[Effect, ...]]:
    """Handle an event; return the effects, in order."""
    match event:
        case Showed():
            if draft.closed:
                return draft, ()
            is_news = event.parts or (event.is_last and draft.traits.can_delete)
            draft = replace(
                draft,
                wanted=event.parts if is_news else draft.wanted,
                is_last=event.is_last,
                is_read_now=False,
            )
        case Granted():
            return _begin_call(draft)
        case Demanded():
            demanded = len(draft.wanted or ())
            draft = replace(draft, demanded=demanded, is_last=False, is_read_now=event.soon)
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
    return _proceed(draft)


def _proceed(draft: Draft) -> tuple[Draft, tuple[Effect, ...]]:
    """Ask for the next call, withdraw a request that is no longer needed, or end."""
    if draft.flight is not None or draft.ended:
        return draft, ()
    call = _next_call(draft)
    effects: list[Effect] = []
    request = None if call is None else _request_for(draft, call)
    if request != draft.requested:
        draft = replace(draft, requested=request)
        effects.append(Withdraw() if request is None else request)
    if draft.closed:
        draft = replace(draft, ended=True)
        messages = tuple(part.message for part in draft.parts if part.message is not None)
        effects.append(DraftEnded(messages=messages))
    return draft, tuple(effects)


def _request_for(draft: Draft, call: Call) -> RequestSlot:
    match call:
        case Send():
            return RequestSlot(message="", soon=draft.is_read_now or is_previewed(draft))
        case Preview():
            return RequestSlot(message=call.key)
        case Edit() if call.text == draft.parts[call.part].text:
            return RequestSlot(message=call.message)  # a person can read it already
        case Edit() | Delete():
            return RequestSlot(message=call.message, soon=draft.is_read_now)
        case _:
            assert_never(call)


def _begin_call(draft: Draft) -> tuple[Draft, tuple[Effect, ...]]:
    """Make the granted call, with the current text."""
    # A grant may cross our withdrawal, and is then dropped.
    call = None if draft.requested is None else _next_call(draft)
    if call is None:
        return draft, ()
    draft = replace(draft, requested=None, flight=call, is_ending=stays(draft))
    return replace(draft, calls=draft.calls + 1), (call,)


# --- the next call -------------------------------------------------------------------------------


def _next_call(draft: Draft) -> Call | None:
    """Return the next call that brings the chat closer to the wanted text, None for none."""
    is_over = draft.closed or draft.muted or draft.is_last
    if is_over or not draft.traits.can_edit or draft.wanted is None:
        return None
    wanted = _wanted(draft)
    for number, (part, text) in enumerate(zip(draft.parts, wanted, strict=False)):
        if part.message is not None and part.text != text:
            return _edit(draft, number, part.message, text)
    for number in range(len(draft.parts) - 1, len(wanted) - 1, -1):
        message, above = draft.parts[number].message, catalogue.CONTINUED_ABOVE.to(draft.language)
        if message is None or draft.parts[number].text == above:
            continue
        if draft.traits.can_delete:
            return Delete(call=draft.calls, part=number, message=message)
        return _edit(draft, number, message, above)
    next_part = len(draft.parts)
    if next_part >= len(wanted):
        return _ending(draft, wanted)
    # The same for every attempt, even if the text has changed; not reused after a success.
    key = message_key(draft.turn, draft.sent)
    text = wanted[next_part]
    may_grow = next_part == len(wanted) - 1
    if draft.traits.native_draft and may_grow and next_part >= draft.demanded:
        if text == draft.previewed:
            return None
        return Preview(call=draft.calls, key=key, text=text, plain=draft.plain)
    return Send(call=draft.calls, key=key, text=text, plain=draft.plain)


def _ending(draft: Draft, wanted: tuple[str, ...]) -> Edit | None:
    """Return the next edit that ends a message of a text that grows no more, None for none."""
    shown = zip(draft.parts, wanted, strict=False) if stays(draft) else ()
    for number, (part, text) in enumerate(shown):
        if part.message is not None and not part.is_ended:
            return _edit(draft, number, part.message, text)
    return None


def _wanted(draft: Draft) -> tuple[str, ...]:
    """Return the parts that the channel can show."""
    wanted = draft.wanted or ()
    return wanted if draft.traits.multi_message else wanted[:1]


def _edit(draft: Draft, number: int, message: str, text: str) -> Edit:
    key, plain = draft.parts[number].key, draft.plain
    return Edit(call=draft.calls, part=number, message=message, key=key, text=text, plain=plain)


# --- outcomes of a call --------------------------------------------------------------------------


def _land(draft: Draft, call: Call, outcome: CallOutcome[MessageRef] | CallOutcome[None]) -> Draft:
    match outcome:
        case Delivered():
            return _delivered(draft, call, outcome.value)
        case Unreachable():
            return draft
        case Rejected():
            return _rejected(draft, call, outcome)
        case Unknown():
            return _lost(draft, call)
        case _:
            assert_never(outcome)


def _delivered(draft: Draft, call: Call, ref: MessageRef | None) -> Draft:
    match call, ref:
        case Send(), MessageRef():
            # If an earlier send with this key arrived, the message shows the text of that send.
            is_repeat = draft.unsure and draft.traits.idempotent_send
            text = None if is_repeat else call.text
            part = DraftMessage(message=ref.message, text=text, key=call.key)
            return replace(
                draft,
                parts=(*draft.parts, replace(part, is_ended=draft.is_ending)),
                sent=draft.sent + 1,
                previewed=None,
                unsure=False,
                uncertain=False,
            )
        case Edit(), _:
            part = replace(draft.parts[call.part], text=call.text, is_ended=draft.is_ending)
            return _with_part(draft, call.part, part)
        case Delete(), _:
            return _with_part(draft, call.part, None)
        case Preview(), None:
            return replace(draft, previewed=call.text)
        case _:
            message = f"`{type(call).__name__}` can't make `{type(ref).__name__}`"
            raise ValueError(message)


def _rejected(draft: Draft, call: Call, refusal: Rejected) -> Draft:
    if isinstance(call, Delete):
        if refusal.gone:
            return _with_part(draft, call.part, None)
        return replace(draft, traits=replace(draft.traits, can_delete=False))
    if refusal.gone and isinstance(call, Edit):
        is_last = call.part == len(draft.parts) - 1
        if is_last and draft.resent < MAX_RESENT:
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
            # Without idempotent sends, a repeat might show it twice; the final suffices, and says so.
            is_silent = not draft.traits.idempotent_send
            # If the send arrived, it replaced the preview.
            return replace(draft, muted=is_silent, uncertain=True, unsure=True, previewed=None)
        case _:
            assert_never(call)


def _with_part(draft: Draft, number: int, part: DraftMessage | None) -> Draft:
    replacement = () if part is None else (part,)
    return replace(draft, parts=(*draft.parts[:number], *replacement, *draft.parts[number + 1 :]))
