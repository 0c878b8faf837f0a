"""The notes that are sent with a turn: those of its owner that match its message (S2-05).

They are chosen once, when the turn begins, and kept as numbers. Each request reads them again, so
the next request goes without a forgotten note, and no journal contains its text.
"""

import asyncio
from collections.abc import Callable, Iterable

from zeroclaw.context.notes import Notes
from zeroclaw.context_provider import ContextRequest, ContextSpec, ContextText
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.tools.notes.note import Note, as_data, chosen, owner_of, owner_of_person
from zeroclaw.value import Value


class Recollection(Value):
    """Finds the notes; one for the whole daemon, and a Context Provider.

    Attributes:
        notes: The stored notes.
        max_chars: The limit of the notes sent with one message; 0 for none.
        redact: Removes secrets that have become known since.
        max_notes: The limit of an owner's notes.
        spec: The provider's spec; untrusted notes taint the turn where they are chosen, not here.
    """

    notes: Notes
    max_chars: int
    redact: Callable[[str], str]
    max_notes: int = 0
    spec: ContextSpec = ContextSpec(name="notes", max_tokens=100_000, place="turn", trusted=True)

    async def choose(self, address: Address, principal: Principal, text: str) -> tuple[Note, ...]:
        """Return the notes that match a message, of those that every reader there may see."""
        if not self.max_chars:
            return ()
        owner = owner_of(address, principal)
        if address.direct and principal.id != principal.identity:
            # Notes from before the configuration named the person are stored under their identity.
            await self.notes.adopt(owner_of_person(principal.identity), owner)
        notes = await self.notes.all(owner)
        return await asyncio.to_thread(chosen, notes, text, self.max_chars) if notes else ()

    async def texts(self, request: ContextRequest) -> tuple[ContextText, ...]:
        """Return the notes that were chosen for a turn, as one text that is framed already."""
        owner = owner_of(request.address, request.principal)
        text = await self.text(owner, request.notes, request.conversation)
        return (ContextText(text=text, is_data=False),)

    async def text(self, owner: str, numbers: Iterable[int], conversation: ConversationId) -> str:
        """Return the chosen notes as they appear in a request, without forgotten ones."""
        notes = [await self.notes.get(owner, number) for number in numbers]
        return as_data((note for note in notes if note is not None), conversation, self.redact)
