"""Pairing: a stranger gets one code, the operators one request, which gets one answer (P4).

    writes in private ──▶ waiting ── an operator approves ──▶ approved
                             ├────── an operator denies ────▶ denied, and ignored for a day
                             └────── the deadline ──────────▶ expired

No text of the stranger is stored, and of the code only a salted hash. The limits below bound the
number of rows, and a row is deleted a day after its end. Of two answers the first one counts; an
answer at or after the deadline does not.

The first operator is the person who sends a one-time code that the daemon prints.

    open ── the code, in a private chat ──▶ used
      └──── the deadline ─────────────────▶ over

That code is in memory only: a restart without an operator prints another one. Wrong guesses are
counted by sender and by channel; beyond either limit a text is not even compared.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from zeroclaw.channel import Card, CardCall, Outcome
from zeroclaw.clock import still_holds
from zeroclaw.envelope import Address, Principal, labelled
from zeroclaw.gate.approval import AnswerResult, ApprovalRequest, ending_of, language_in, number_of
from zeroclaw.gate.scope import duration
from zeroclaw.gate.wording import ended
from zeroclaw.store import Put, RowKind
from zeroclaw.table import Column, Stays, Table, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language, Localized
from zeroclaw.value import Hidden, Value, replace

ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Characters that are not confused when read out: no 0 O 1 I, and no L."""
CODE_CHARS = 8
MAX_WAITING = 3
"""Waiting requests of one channel."""
MAX_PER_HOUR = 10
"""Codes that one channel gives out in an hour."""
MAX_PER_DAY = 3
"""Codes that one stranger gets in a day."""
PAUSE = timedelta(minutes=10)
"""The shortest time between two codes for one stranger, even if the first expires sooner."""
DENIED_FOR = timedelta(days=1)
"""The time in which a denied stranger gets no new code."""
STORED_FOR = timedelta(days=1)
"""The time for which an ended request is stored, for late answers and for the limits."""
MAX_ID_CHARS = 320
"""Limit of a stranger's id, which is shown uncut: the longest mail address (RFC 5321)."""
MAX_CHAT_CHARS = 1_400
"""Limit of the address key: channel, account, chat and thread, which may be the id of a mail."""

CONSOLE = Principal(
    id="person:operator",
    roles=frozenset({"operator"}),
    channel="console",
    sender="operator",
    display=catalogue.BY_OPERATOR_HERE.en,
)
"""The user of the command line on this machine."""

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_CODE = re.compile(f"[{ALPHABET}]{{{CODE_CHARS}}}")

State = Literal["waiting", "approved", "denied", "expired"]


class PairingRequest(ApprovalRequest, stored_as="Stranger"):
    """A stranger's request to be admitted.

    Attributes:
        id: Unguessable; the buttons of its cards carry it.
        channel: The channel of their message.
        sender: Their id there.
        display: The name that they chose; cleaned, shown, never used to decide.
        address: Their private chat.
        salt: The salt of the hash; hex.
        code_hash: The hash of their code; hex.
        asked_at: When they wrote.
        deadline_at: When the code expires.
        numbers: Its number in each operator's chat.
        refs: Its recorded cards.
        messages: The keys of the outbox rows that carry the code.
        by: The name of the operator who answered; empty for the deadline.
        at: When it ended.
    """

    channel: str
    sender: str
    display: str
    address: Address
    salt: str
    code_hash: str
    asked_at: datetime
    messages: tuple[str, ...] = ()
    state: State = "waiting"

    @property
    def identity(self) -> str:
        """Their id, as `Principal.id` of people without a name in the configuration."""
        return f"{self.channel}:{self.sender}"

    @property
    def label(self) -> str:
        """Their id and name for people to read; see `Principal.label`."""
        return labelled(exact(self.identity), self.display)


# --- codes ---------------------------------------------------------------------------------------


def code_of(random: bytes) -> str:
    """Return the code that random bytes make.

    Args:
        random: At least 16 bytes; with fewer some codes would be likelier than others.
    """
    number = int.from_bytes(random)
    characters: list[str] = []
    for _ in range(CODE_CHARS):
        number, digit = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[digit])
    return "".join(characters)


def read_code(text: str) -> str:
    """Return the text as a code, in upper case; empty if it is none."""
    code = text.strip().upper()
    return code if _CODE.fullmatch(code) else ""


def hash_of(code: str, salt: str) -> str:
    """Return the hash of a code that is stored; hex."""
    return hmac.new(salt.encode(), code.encode(), hashlib.sha256).hexdigest()


def is_code(code: str, *, salt: str, code_hash: str) -> bool:
    """Whether this is the code; takes the same time for every wrong one."""
    return hmac.compare_digest(hash_of(code, salt), code_hash)


# --- who gets a code -----------------------------------------------------------------------------


def may_ask(stored: Iterable[PairingRequest], *, channel: str, sender: str, now: datetime) -> bool:
    """Whether a stranger gets a code now; else the event is ignored.

    Args:
        stored: At least all stored requests of this channel.
        channel: The channel of their message.
        sender: Their id there.
        now: The time.
    """
    of_channel = [request for request in stored if request.channel == channel]
    if sum(is_open(request, now) for request in of_channel) >= MAX_WAITING:
        return False
    if sum(request.asked_at > now - _HOUR for request in of_channel) >= MAX_PER_HOUR:
        return False
    of_sender = [request for request in of_channel if request.sender == sender]
    if any(is_open(request, now) or _is_denied(request, now) for request in of_sender):
        return False
    if any(request.asked_at > now - PAUSE for request in of_sender):
        return False
    return sum(request.asked_at > now - _DAY for request in of_sender) < MAX_PER_DAY


def is_open(request: PairingRequest, now: datetime) -> bool:
    """Whether an answer can still count."""
    return request.state == "waiting" and now < request.deadline_at


def _is_denied(request: PairingRequest, now: datetime) -> bool:
    return request.state == "denied" and request.at is not None and now < request.at + DENIED_FOR


# --- rows ----------------------------------------------------------------------------------------


PAIRINGS = Table(
    kind=RowKind.STRANGER,
    codec=json_codec(PairingRequest),
    columns=frozenset({Column.STATE, Column.PLACE, Column.DUE_AT}),
    keeps=Stays(until="a day after its end, when pairing deletes it with its cards"),
)


def to_put(request: PairingRequest) -> Put:
    """Return the write that records a request; due at its deadline, then for its deletion."""
    return PAIRINGS.put(
        request.id,
        request,
        state=request.state,
        place=request.channel,
        due_at=request.deadline_at if request.at is None else request.at + STORED_FOR,
    )


# --- cards ---------------------------------------------------------------------------------------


def card_of(request: PairingRequest, place: str, code: str = "") -> Card:
    """Return the card of a request.

    Args:
        request: The request.
        place: The address key of the chat that gets the card; its number is shown.
        code: The stranger's code; empty once the request has ended, or if only its hash is known.
    """
    language = language_in(request, place)
    facts = catalogue.STRANGER_FACTS.to(
        language, name=request.display, channel=request.channel, sender=exact(request.sender)
    )
    is_by_id = request.is_open and not code
    reason = catalogue.STRANGER_WHY_BY_ID if is_by_id else catalogue.STRANGER_WHY
    call = CardCall(
        approval=request.id,
        number=number_of(request, place),
        tool="pairing",
        summary=catalogue.STRANGER_ASKS.to(language, name=request.label, channel=request.channel),
        arguments=facts + (catalogue.STRANGER_CODE.to(language, code=code) if code else ""),
        why=reason.to(language),
        hash8=hashlib.sha256(request.id.encode()).hexdigest()[:8],
    )
    return Card(
        key=f"pairing-{request.id}",
        asked_by=request.label,
        calls=(call,),
        deadline_at=request.deadline_at,
        choices=("once", "deny"),
        language=language,
    )


def outcome_of(request: PairingRequest, place: str) -> Outcome:
    """Return the card, with the outcome of its request if that has ended."""
    ending = ending_of(request)
    return Outcome(card=card_of(request, place), endings=(ending,) if ending else ())


# --- texts ---------------------------------------------------------------------------------------


def exact(identity: str) -> str:
    """Return an id in full for people: the id decides, so a cut one could look like another.

    Only characters that would break a line, or end the backticks around it, become U+FFFD.
    """
    return "".join(c if c.isprintable() and c != "`" else "\ufffd" for c in identity)


def by_of(principal: Principal) -> str:
    """Return the name of a person who answered, for a row; of the command line a phrase."""
    return principal.display if principal == CONSOLE else principal.label


def code_message(code: str, holds_s: float) -> Localized:
    """Return the message with a code; strangers get no other text."""
    return catalogue.YOUR_CODE.about(code=code, span=duration(holds_s))


def toast(result: AnswerResult[PairingRequest], language: Language) -> str:
    """Return the line that an operator reads after an answer."""
    request = result.request
    if result.how != "counted":
        return result.reason or ended(request, language)
    if request.state == "approved":
        return catalogue.STRANGER_APPROVED.to(language, name=request.label)
    return catalogue.STRANGER_DENIED.to(language, name=request.label)


def list_line(request: PairingRequest, language: Language, place: str = "") -> str:
    """Return a waiting request as one line of a list."""
    number = number_of(request, place)
    return catalogue.STRANGER_LINE.to(
        language,
        number=f"`{number}` " if number else "",
        name=labelled(f"`{exact(request.identity)}`", request.display),
        until=ended(request, language),
    )


# --- the first operator --------------------------------------------------------------------------

CLAIM_FOR = timedelta(hours=1)
MAX_SENDER_GUESSES = 5
MAX_CHANNEL_GUESSES = 20

Guess = Literal["none", "wrong", "right"]
"""`none`: the text is no guess: it does not look like a code, or no code is open."""


class Claim(Value):
    """The printed code, whose sender becomes an operator; never stored.

    Attributes:
        until: When it expires.
        guesses: The channel and sender of each wrong guess.
    """

    code: Hidden[str]
    until: datetime
    guesses: tuple[tuple[str, str], ...] = ()


def open_claim(code: str, *, now: datetime) -> Claim:
    """Return the claim for a new code."""
    return Claim(code=code, until=now + CLAIM_FOR)


def is_valid(claim: Claim, now: datetime) -> bool:
    """Whether its code is still valid."""
    return still_holds(claim.until, CLAIM_FOR, now)


def guess(
    claim: Claim, text: str, *, channel: str, sender: str, now: datetime
) -> tuple[Claim, Guess]:
    """Return the claim after a stranger's text, and whether the text was the code."""
    code = read_code(text)
    if not code or not is_valid(claim, now):
        return claim, "none"
    if _is_over_guesses(claim.guesses, channel, sender):
        return claim, "wrong"
    if not hmac.compare_digest(code, claim.code):
        return replace(claim, guesses=(*claim.guesses, (channel, sender))), "wrong"
    return claim, "right"


def _is_over_guesses(guesses: Sequence[tuple[str, str]], channel: str, sender: str) -> bool:
    total = sum(place == channel for place, _ in guesses)
    return total >= MAX_CHANNEL_GUESSES or guesses.count((channel, sender)) >= MAX_SENDER_GUESSES
