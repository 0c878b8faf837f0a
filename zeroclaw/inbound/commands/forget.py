"""`/forget`: a person's request to erase their messages, once they have confirmed it.

    (none) ── /forget [person] ──▶ asked ── /forget <code> ──▶ open ── erased ──▶ (none)

Each person has one request at a time. `retention` carries out an open one, also after a restart.
"""

from datetime import timedelta

from zeroclaw.envelope import Address, Principal
from zeroclaw.inbound.commands.invocation import Invocation, Reply
from zeroclaw.inbound.context import InboundContext
from zeroclaw.store import RowKind
from zeroclaw.table import Column, Table, UntilDue, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.value import Value, replace

REPEAT_WITHIN = timedelta(minutes=10)
CODE_CHARS = 4
ASKED, OPEN = "asked", "open"


class ErasureRequest(Value, stored_as="Wish"):
    """The row of a request; its key is the person who made it.

    Attributes:
        person: The person whose messages are erased, as `Principal.id`.
        by: The person who made the request.
        address: Their chat, which gets the confirmation.
        code: The code that they repeat to confirm.
    """

    person: str
    by: Principal
    address: Address
    code: str

    @property
    def described(self) -> Localized:
        """The erased content, in words for the person who made the request."""
        if self.person == self.by.id:
            return catalogue.YOUR_MESSAGES
        return catalogue.THEIR_MESSAGES.about(whom=self.person)


ERASURE_REQUESTS = Table(
    kind=RowKind.FORGETTING,
    codec=json_codec(ErasureRequest),
    columns=frozenset({Column.STATE, Column.DUE_AT}),
    keeps=UntilDue(),  # an unconfirmed one; a confirmed one has no deadline and stays until it is done
)


async def forget(context: InboundContext, invocation: Invocation) -> Reply:
    """Return the reply to `/forget`, with the write of the request's new state."""
    now, principal, language = context.clock.now(), invocation.principal, invocation.language
    argument = invocation.command.rest.strip()
    row = await invocation.reads.get(RowKind.FORGETTING, principal.id)
    if row is not None and row.state == OPEN:
        return Reply(text=catalogue.FORGETTING_ALREADY.to(language))
    if row is not None and row.due_at is not None and now < row.due_at:
        request = ERASURE_REQUESTS.of(row)
        if argument.upper() == request.code:
            confirmed = replace(request, address=invocation.address)
            put = ERASURE_REQUESTS.put(principal.id, confirmed, state=OPEN)
            return Reply(text=catalogue.FORGETTING_NOW.to(language), writes=(put,))
    # The configuration may have lost a name under which messages are stored.
    named = argument if ":" in argument else f"person:{argument}"
    person = (context.people.id_of(argument) or named) if argument else principal.id
    may_any = context.may(principal, "command:forget", direct=invocation.address.direct, own=False)
    if person != principal.id and not may_any:
        return Reply(text=catalogue.FORGET_ONLY_YOURS.to(language))
    # The end of a ulid is random; that is enough, because the code only guards against mistakes.
    code = context.ids.ulid()[-CODE_CHARS:]
    new = ErasureRequest(person=person, by=principal, address=invocation.address, code=code)
    due_at = now + REPEAT_WITHIN
    put = ERASURE_REQUESTS.put(principal.id, new, state=ASKED, due_at=due_at)
    text = catalogue.FORGET_ASKS.to(language, what=new.described, code=code)
    return Reply(text=text, writes=(put,))
