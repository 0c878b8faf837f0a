"""How a stranger becomes known: one code, one question to the operators, one answer (P4).

    writes in private ──▶ waiting ── an operator says yes ──▶ approved
                             ├────── an operator says no ───▶ denied, and silence for a day
                             └────── the code's time ───────▶ expired

Nothing that the stranger wrote is stored, and of the code only a salted hash. The number of rows is
bounded by the limits below, and a row is deleted a day after its end. Of two answers the first one
counts; an answer admitted at or after the deadline has lost.

The first operator: a one-time code that the daemon prints, and the person who sends it.

    open ── the code, in a private chat ──▶ used
      └──── its time ─────────────────────▶ over

That code is kept in memory only: a restart without an operator prints another one. Wrong guesses
are counted by sender and by channel; beyond either limit a text is not even compared.
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
from zeroclaw.table import Column, Stays, Table, Words, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.value import Value, replace

ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Characters that are not confused when read out: no 0 O 1 I, and no L."""
CODE_CHARS = 8
MOST_WAITING = 3
"""Strangers of one channel who may wait for an answer at the same time."""
MOST_AN_HOUR = 10
"""Codes that one channel gives out in an hour, in total."""
MOST_A_DAY = 3
"""Codes that one stranger gets in a day."""
PAUSE = timedelta(minutes=10)
"""The shortest time between two codes for one stranger, even if codes expire sooner."""
SILENT = timedelta(days=1)
"""How long a stranger who was denied gets no new code."""
KEPT = timedelta(days=1)
"""How long an ended question is stored, for late answers and for the limits."""
MOST_ID_CHARS = 320
"""Limit of a stranger's id, which is stored and shown whole: the longest mail address (RFC 5321)."""
MOST_CHAT_CHARS = 1_400
"""Limit of their address: channel, account, chat and thread; a thread may be the id of a mail."""

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


class Stranger(ApprovalRequest):
    """The pairing request: whether a stranger may talk to the bot, and how that ended.

    Attributes:
        id: Unguessable; the buttons of its cards carry it.
        channel: The channel they wrote on.
        sender: Their id there.
        display: The name that they chose; cleaned, shown, never used to decide.
        address: Their private chat.
        salt: The salt of the hash; hex.
        code_hash: The hash of their code; hex.
        asked_at: When they wrote.
        deadline_at: When the code ends.
        numbers: The number of the question in each operator's chat.
        refs: Every known card that shows it.
        messages: The keys of the outbox rows that carry the code.
        by: Who answered, for people; empty for the deadline.
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


def may_ask(known: Iterable[Stranger], *, channel: str, sender: str, now: datetime) -> bool:
    """Whether a stranger gets a code now; otherwise they get silence.

    Args:
        known: At least every stored question of this channel.
        channel: The channel they write on.
        sender: Their id there.
        now: The time.
    """
    here = [one for one in known if one.channel == channel]
    if sum(is_open(one, now) for one in here) >= MOST_WAITING:
        return False
    if sum(one.asked_at > now - _HOUR for one in here) >= MOST_AN_HOUR:
        return False
    own = [one for one in here if one.sender == sender]
    if any(is_open(one, now) or _is_silenced(one, now) for one in own):
        return False
    if any(one.asked_at > now - PAUSE for one in own):
        return False
    return sum(one.asked_at > now - _DAY for one in own) < MOST_A_DAY


def is_open(one: Stranger, now: datetime) -> bool:
    """Whether it still waits for an answer that could count."""
    return one.state == "waiting" and now < one.deadline_at


def _is_silenced(one: Stranger, now: datetime) -> bool:
    return one.state == "denied" and one.at is not None and now < one.at + SILENT


# --- rows ----------------------------------------------------------------------------------------


STRANGERS = Table(
    kind=RowKind.STRANGER,
    codec=json_codec(Stranger),
    columns=frozenset({Column.STATE, Column.PLACE, Column.DUE_AT}),
    keeps=Stays(until="some time after its end, when pairing forgets it with its cards"),
    words=Words.PERSON,
)


def to_put(one: Stranger) -> Put:
    """Return the write that records it.

    The row is due at the deadline while it waits, and then when it is to be deleted.
    """
    return STRANGERS.put(
        one.id,
        one,
        state=one.state,
        place=one.channel,
        due_at=one.deadline_at if one.at is None else one.at + KEPT,
    )


# --- cards ---------------------------------------------------------------------------------------


def card_of(one: Stranger, place: str, code: str = "") -> Card:
    """Return the card that asks operators about a stranger.

    Args:
        one: The request.
        place: The address key of the chat that gets the card; its number is shown.
        code: The stranger's code; empty once the question has ended, or if it is not known any more.
    """
    language = language_in(one, place)
    facts = catalogue.STRANGER_FACTS.to(
        language, name=one.display, channel=one.channel, sender=exact(one.sender)
    )
    is_by_id = one.is_open and not code
    why = catalogue.STRANGER_WHY_BY_ID if is_by_id else catalogue.STRANGER_WHY
    call = CardCall(
        approval=one.id,
        number=number_of(one, place),
        tool="pairing",
        summary=catalogue.STRANGER_ASKS.to(language, name=one.label, channel=one.channel),
        arguments=facts + (catalogue.STRANGER_CODE.to(language, code=code) if code else ""),
        why=why.to(language),
        hash8=hashlib.sha256(one.id.encode()).hexdigest()[:8],
    )
    return Card(
        key=f"pairing-{one.id}",
        asked_by=one.label,
        calls=(call,),
        deadline_at=one.deadline_at,
        choices=("once", "deny"),
        language=language,
    )


def outcome_of(one: Stranger, place: str) -> Outcome:
    """Return the card and how its question ended, if it has."""
    ending = ending_of(one)
    return Outcome(card=card_of(one, place), endings=(ending,) if ending else ())


# --- words ---------------------------------------------------------------------------------------


def exact(identity: str) -> str:
    """Return a whole id for people: it alone decides, so no part may look like another id's.

    Only characters that would break a line, or end the backticks around it, become U+FFFD.
    """
    return "".join(c if c.isprintable() and c != "`" else "\ufffd" for c in identity)


def by_of(principal: Principal) -> str:
    """Return who answered, for a row; the command line has a phrase instead of a name."""
    return principal.display if principal == CONSOLE else principal.label


def code_message(code: str, holds_s: float, language: Language) -> str:
    """Return the only text that a stranger gets."""
    span = duration(timedelta(seconds=holds_s))
    return catalogue.YOUR_CODE.to(language, code=code, span=span)


def toast(result: AnswerResult[Stranger], language: Language) -> str:
    """Return what an operator reads after answering; one line."""
    one = result.request
    if result.how != "counted":
        return result.why or ended(one, language)
    if one.state == "approved":
        return catalogue.STRANGER_APPROVED.to(language, name=one.label)
    return catalogue.STRANGER_DENIED.to(language, name=one.label)


def list_line(one: Stranger, language: Language, place: str = "") -> str:
    """Return a waiting question as one line of a list."""
    number = number_of(one, place)
    return catalogue.STRANGER_LINE.to(
        language,
        number=f"`{number}` " if number else "",
        name=labelled(f"`{exact(one.identity)}`", one.display),
        until=ended(one, language),
    )


# --- the first operator --------------------------------------------------------------------------

HOLDS = timedelta(hours=1)
GUESSES_OF_A_SENDER = 5
GUESSES_OF_A_CHANNEL = 20

Guess = Literal["none", "wrong", "right"]
"""`none`: the text does not count as a guess: it does not look like a code, or no code is open."""


class Claim(Value):
    """The code that makes its sender an operator; only its hash is kept.

    Attributes:
        salt: The salt of the hash; hex.
        code_hash: Hex.
        until: When it ends.
        guesses: The channel and sender of each wrong guess.
        used: The code was sent.
    """

    salt: str
    code_hash: str
    until: datetime
    guesses: tuple[tuple[str, str], ...] = ()
    used: bool = False


def open_claim(code: str, *, salt: str, now: datetime) -> Claim:
    """Return the claim of a new code."""
    return Claim(salt=salt, code_hash=hash_of(code, salt), until=now + HOLDS)


def is_valid(claim: Claim, now: datetime) -> bool:
    """Whether its code counts."""
    return still_holds(claim.until, HOLDS, now)


def guess(
    claim: Claim, text: str, *, channel: str, sender: str, now: datetime
) -> tuple[Claim, Guess]:
    """Return the claim after a stranger's text, and whether the text was the code."""
    code = read_code(text)
    if not code or claim.used or not is_valid(claim, now):
        return claim, "none"
    if _has_guessed_enough(claim.guesses, channel, sender):
        return claim, "wrong"
    if not is_code(code, salt=claim.salt, code_hash=claim.code_hash):
        return replace(claim, guesses=(*claim.guesses, (channel, sender))), "wrong"
    return replace(claim, used=True), "right"


def _has_guessed_enough(guesses: Sequence[tuple[str, str]], channel: str, sender: str) -> bool:
    of_channel = sum(where == channel for where, _ in guesses)
    return of_channel >= GUESSES_OF_A_CHANNEL or (
        guesses.count((channel, sender)) >= GUESSES_OF_A_SENDER
    )
