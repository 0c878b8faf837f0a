"""Receipts: the last line of a result, which proves that this daemon made it (S2-15, S2-16).

    [receipt: zc-receipt-<unix seconds>-<HMAC-SHA256 in base64url, no padding>]

The MAC covers every field with its length before it, so that different fields never give the same
bytes. A receipt exists only in the result; there is no register of receipts (S2-17). A model can
repeat one, but can't make one (S2-18).
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from datetime import datetime

from zeroclaw.envelope import ActionId, ConversationId
from zeroclaw.gate.action import Action
from zeroclaw.message import ToolMessage, ToolOutcome
from zeroclaw.value import Hidden, Value

_VERSION = b"zc-receipt 1"

PREFIX_PLAIN = "zc-receipt-"

# Models write other dashes and other cases; `receipt_screen.py` and `defang` recognise them too.
DASHES = "\u2010-\u2015\u2212\ufe58\ufe63\uff0d-"
ANY_DASH = re.compile(f"[{DASHES}]")
PREFIX = tuple(f"[{DASHES}]" if char == "-" else f"[{char}{char.upper()}]" for char in PREFIX_PLAIN)

_TOKEN = re.compile(r"zc-receipt-(0|[1-9][0-9]{0,11})-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])")
_SHAPED = re.compile("".join(PREFIX))
_HARMLESS = "not-a-receipt-"


class Key(Value):
    """The key that receipts are signed with; each daemon process has its own.

    Attributes:
        id: Names the process; not secret.
        secret: 32 random bytes.
    """

    id: str
    secret: Hidden[bytes]


class Fields(Value):
    """The facts that a receipt proves, apart from its time.

    Attributes:
        arguments: Canonical JSON, as in the action.
        result: The text before the receipt: redacted, capped, wrapped and defanged.
    """

    conversation: ConversationId
    action: ActionId
    tool: str
    arguments: str
    outcome: ToolOutcome
    result: str


def fields_of(action: Action, outcome: ToolOutcome, result: str) -> Fields:
    """Return the facts that the receipt of a gated call proves."""
    return Fields(
        conversation=action.conversation,
        action=action.id,
        tool=action.tool,
        arguments=action.canonical_arguments,
        outcome=outcome,
        result=result,
    )


def signed(
    key: Key, fields: Fields, at: datetime, *, for_people: str = ""
) -> tuple[ToolMessage, str]:
    """Return a result with its receipt as the last line, and the receipt; see `issue`.

    The batch adds the model's own id of the call, which is no part of a receipt.
    """
    token = issue(key, fields, at)
    message = ToolMessage(
        content=attach(fields.result, token),
        tool_call_id="",
        tool_name=fields.tool,
        is_error=fields.outcome != "ok",
        for_people=for_people,
    )
    return message, token


def issue(key: Key, fields: Fields, at: datetime) -> str:
    """Sign an outcome and return the token; `at` is aware, and rounded down to whole seconds."""
    seconds = int(at.timestamp())
    return _token(key, signed_bytes(fields, seconds), seconds)


def attach(text: str, token: str) -> str:
    """Return the result as the model reads it; the receipt was issued for `text`."""
    return f"{text}\n[receipt: {token}]"


def detach(content: str) -> tuple[str, str | None]:
    """Return the two arguments of `attach`; None as the token where there is no receipt."""
    text, newline, line = content.rpartition("\n")
    token = line.removeprefix("[receipt: ").removesuffix("]")
    if newline and _TOKEN.fullmatch(token) and line == f"[receipt: {token}]":
        return text, token
    return content, None


def signer(keys: Iterable[Key], fields: Fields, token: str) -> Key | None:
    """Return the key that issued exactly this token for exactly these fields, None for none.

    Takes the same time wherever a well-formed wrong token differs, and for every key.
    """
    match = _TOKEN.fullmatch(token)
    if match is None:
        return None
    issuer, seconds = None, int(match[1])
    signed = signed_bytes(fields, seconds)
    for key in keys:
        # Build the whole token and compare it, so that each has only one spelling.
        if hmac.compare_digest(_token(key, signed, seconds), token):
            issuer = key
    return issuer


def issued_at(token: str) -> int | None:
    """Return the unix seconds that a token claims, None when it has not the form of one."""
    match = _TOKEN.fullmatch(token)
    return int(match[1]) if match else None


def find_tokens(text: str) -> tuple[str, ...]:
    """Return everything in a text that has exactly the form of a token, in order."""
    return tuple(match[0] for match in _TOKEN.finditer(text))


def defang(text: str) -> str:
    """Return text from outside without any imitation of a receipt.

    The daemon applies it to a tool's output before it issues a receipt; idempotent.
    """
    return _SHAPED.sub(_HARMLESS, text)


def signed_bytes(fields: Fields, seconds: int) -> bytes:
    """Return the bytes that the MAC covers; different fields or seconds give different bytes."""
    parts = (
        _VERSION,
        fields.conversation.encode(errors="surrogatepass"),
        fields.action.encode(errors="surrogatepass"),
        fields.tool.encode(errors="surrogatepass"),
        fields.arguments.encode(errors="surrogatepass"),
        fields.outcome.encode(),
        hashlib.sha256(fields.result.encode(errors="surrogatepass")).digest(),
        str(seconds).encode(),
    )
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _token(key: Key, signed: bytes, seconds: int) -> str:
    mac = hmac.digest(key.secret, signed, "sha256")
    return f"zc-receipt-{seconds}-{urlsafe_b64encode(mac).rstrip(b'=').decode()}"
