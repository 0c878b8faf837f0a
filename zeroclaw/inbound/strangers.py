"""Events of strangers: ignored, or answered with a code and a pairing request to operators (P4).

`pairing.py` decides; this file reads the rows and plans the writes. A stranger's event holds a lock
from reading to committing, so that concurrent events are counted.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta

from zeroclaw.envelope import ApprovalId, Command, Envelope, Principal, Reader, Said, chosen_name
from zeroclaw.inbound import pairing
from zeroclaw.inbound.approvals import Approvals, let_in
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.identity import OPERATOR, PEOPLE
from zeroclaw.inbound.pairing import PAIRINGS, Claim, PairingRequest
from zeroclaw.store import Put, Reads, RowKind, Write
from zeroclaw.text import catalogue
from zeroclaw.value import Struct, field


class Strangers(Struct, eq=False):
    """Plans strangers' events; one for the whole daemon.

    Attributes:
        requests: Shows pairing requests to operators.
        operators: Returns the chats of the operators.
        claim: The claim of the printed code, while one is open.
    """

    context: InboundContext
    requests: Approvals
    operators: Callable[[], tuple[Reader, ...]]
    claim: Claim | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    # --- the first operator --------------------------------------------------------------------

    def open_claim(self, channels: Iterable[str]) -> str:
        """Return the code whose first sender, in private, becomes an operator; new each hour.

        Empty if no channel has pairing, or an operator can be reached already.

        Args:
            channels: The names of all running channels.
        """
        names = tuple(channels)
        if not any(map(self._holds_s, names)) or self.context.people.can_be_reached(names):
            return ""
        now = self.context.clock.now()
        if self.claim is None or not pairing.is_valid(self.claim, now):
            self.claim = pairing.open_claim(self._code(), now=now)
        return self.claim.code

    def written(self, writes: Iterable[Write]) -> None:
        """Close the claim once an operator is stored."""
        for write in writes:
            if isinstance(write, Put) and write.kind is RowKind.PERSON:
                self.claim = None if OPERATOR in PEOPLE.of(write).roles else self.claim

    # --- an unknown sender ---------------------------------------------------------------------

    def _can_pair(self, envelope: Envelope) -> bool:
        """Whether an event may have an effect: a private message from a sender who wasn't revoked.

        A stranger's row is bounded (P4), so overlong ids, which no platform gives out, are ignored.
        """
        sender, address = envelope.sender, envelope.address
        return (
            self._holds_s(address.channel) is not None
            and address.direct
            and sender.verified
            and len(sender.id) <= pairing.MAX_ID_CHARS
            and len(address.key()) <= pairing.MAX_CHAT_CHARS
            and isinstance(envelope.body, Said | Command)
            and not self.context.people.is_revoked(envelope.identity)
        )

    def lock_for(self, principal: Principal | None) -> AbstractAsyncContextManager[None]:
        """Return the lock to hold until the commit, for an event that may get or use a code."""
        is_known = principal is not None and self.claim is None
        return nullcontext() if is_known else self._lock

    async def plan(self, reads: Reads, envelope: Envelope, *, is_known: bool) -> Plan | None:
        """Return the effects of an event, None to ignore it; a known sender can only use the code."""
        if not self._can_pair(envelope):
            return None
        match self._guess(envelope):
            case "right":
                return await self._first_operator(reads, envelope)
            case "none" if not is_known:
                return await self._request(reads, envelope)
            case _:
                return None

    def _guess(self, envelope: Envelope) -> pairing.Guess:
        """Compare a message with the printed code; wrong guesses are counted."""
        if self.claim is None or not isinstance(envelope.body, Said):
            return "none"
        self.claim, result = pairing.guess(
            self.claim,
            envelope.body.text,
            channel=envelope.address.channel,
            sender=envelope.sender.id,
            now=self.context.clock.now(),
        )
        # `written` closes a used claim, so that it can be used again after a failed commit.
        return result

    async def _first_operator(self, reads: Reads, envelope: Envelope) -> Plan:
        writes = await let_in(
            self.context,
            reads,
            envelope.identity,
            envelope.address,
            catalogue.YOU_ARE_AN_OPERATOR,
            display=chosen_name(envelope.sender.display),
            by=catalogue.BY_PRINTED_CODE.en,
            roles=(OPERATOR,),
        )
        return Plan(conversation=None, writes=writes)

    async def _request(self, reads: Reads, envelope: Envelope) -> Plan | None:
        """Return the plan that sends a code to the stranger and a request to the operators."""
        now, address, sender = self.context.clock.now(), envelope.address, envelope.sender
        rows = PAIRINGS.readable(self.context.store, place=address.channel)
        requests = [request async for request in rows]
        holds_s = self._holds_s(address.channel)
        may = pairing.may_ask(requests, channel=address.channel, sender=sender.id, now=now)
        if holds_s is None or not may:
            return None
        code, salt = self._code(), self.context.ids.token()
        # Their language is not known yet.
        reader = Reader(address=address, language=self.context.people.language)
        # Quiet, because a stranger who can't be reached needs no operator.
        post = self.context.note(pairing.code_message(code, holds_s), reader, quiet=True)
        request = PairingRequest(
            id=ApprovalId(self.context.ids.token()),
            channel=address.channel,
            sender=sender.id,
            display=chosen_name(sender.display),
            address=address,
            salt=salt,
            code_hash=pairing.hash_of(code, salt),
            asked_at=now,
            deadline_at=now + timedelta(seconds=holds_s),
            messages=(post.key,),
        )
        writes = await self.requests.put_to(reads, self.operators(), request, code)
        return Plan(conversation=None, writes=(post, *writes))

    def _holds_s(self, channel: str) -> float | None:
        """Return for how many seconds a channel's codes are valid, None if it gives out none now."""
        settings = self.context.settings.config.settings_of(channel)
        if settings.pairing != "code" or channel in self.context.people.local:
            return None
        return settings.pairing_s

    def _code(self) -> str:
        return pairing.code_of(hashlib.sha256(self.context.ids.token().encode()).digest())
