"""`/forget`: a person's request to erase what they said, once they have confirmed it.

    (none) ── /forget [person] ──▶ asked ── /forget <code> ──▶ open ── erased ──▶ (none)

Each person has one request at a time. `retention` carries out an open one, also after a restart.
"""

from datetime import timedelta

from zeroclaw.envelope import Address, Principal
from zeroclaw.inbound.commands.invocation import Invocation, Reply
from zeroclaw.inbound.context import InboundContext
from zeroclaw.store import RowKind
from zeroclaw.table import Column, Table, UntilDue, Words, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.value import Value, replace

REPEAT_WITHIN = timedelta(minutes=10)
CODE_CHARS = 4
ASKED, OPEN = "asked", "open"


class ErasureRequest(Value, stored_as="Wish"):
    """The row of a request; its key is the person who made it.

    Attributes:
        person: Whose words are erased, as `Principal.id`.
        by: Who made the request.
        address: Where they are told that it is done.
        code: What they repeat to confirm.
    """

    person: str
    by: Principal
    address: Address
    code: str

    @property
    def words(self) -> Localized:
        """What is erased, for the one who made the request."""
        if self.person == self.by.id:
            return catalogue.WHAT_YOU_SAID
        return catalogue.WHAT_THEY_SAID.about(whom=self.person)


ERASURE_REQUESTS = Table(
    kind=RowKind.FORGETTING,
    codec=json_codec(ErasureRequest),
    columns=frozenset({Column.STATE, Column.DUE_AT}),
    keeps=UntilDue(),  # if nobody repeated it in time; else it has no deadline, and stays until done
    words=Words.PERSON,
)


async def forget(context: InboundContext, given: Invocation) -> Reply:
    """Return the reply to `/forget`, with the write of the request's new state."""
    now, principal, language = context.clock.now(), given.principal, given.language
    named = given.command.rest.strip()
    row = await given.reads.get(RowKind.FORGETTING, principal.id)
    if row is not None and row.state == OPEN:
        return Reply(text=catalogue.FORGETTING_ALREADY.to(language))
    if row is not None and row.due_at is not None and now < row.due_at:
        request = ERASURE_REQUESTS.of(row)
        if named.upper() == request.code:
            opened = replace(request, address=given.address)
            put = ERASURE_REQUESTS.put(principal.id, opened, state=OPEN)
            return Reply(text=catalogue.FORGETTING_NOW.to(language), writes=(put,))
    person = (named if ":" in named else f"person:{named}") if named else principal.id
    may_others = context.may(principal, "command:forget", direct=given.address.direct, own=False)
    if person != principal.id and not may_others:
        return Reply(text=catalogue.FORGET_ONLY_YOURS.to(language))
    # The end of a ulid is random; that is enough, because the code only guards against mistakes.
    code = context.ids.ulid()[-CODE_CHARS:]
    asked = ErasureRequest(person=person, by=principal, address=given.address, code=code)
    due_at = now + REPEAT_WITHIN
    put = ERASURE_REQUESTS.put(principal.id, asked, state=ASKED, due_at=due_at)
    text = catalogue.FORGET_ASKS.to(language, what=asked.words, code=code)
    return Reply(text=text, writes=(put,))
