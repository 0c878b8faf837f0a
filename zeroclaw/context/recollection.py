"""The notes that go along with a turn: those of its owner that fit its message (S2-05).

Which they are is chosen once, as the turn begins, and kept as numbers: each request reads them anew,
so one that is forgotten leaves the next request, and no journal holds its words.
"""

import asyncio
from collections.abc import Callable, Iterable

from zeroclaw.context.notes import Notes
from zeroclaw.context_provider import ContextRequest, ContextSpec, ContextText
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.tools.notes.note import Note, as_data, chosen, owner_of, owner_of_person
from zeroclaw.value import Value

_SPEC = ContextSpec(name="notes", most_tokens=100_000, place="turn", trusted=True)


class Recollection(Value):
    """Finds them; one for the whole daemon, and a Context Provider.

    Attributes:
        notes: Where it looks.
        most_chars: Of the notes that go along with one message; 0 for none.
        redact: Takes out what is known as a secret by now.
        most_notes: That an owner may have.
    """

    notes: Notes
    most_chars: int
    redact: Callable[[str], str]
    most_notes: int = 0

    async def choose(self, address: Address, principal: Principal, words: str) -> tuple[Note, ...]:
        """Return the notes that fit a message, of those that every reader there may see."""
        if not self.most_chars:
            return ()
        owner = owner_of(address, principal)
        if address.direct and principal.id != principal.identity:
            # What they told before the configuration named them was kept under that.
            await self.notes.adopt(owner_of_person(principal.identity), owner)
        every = await self.notes.all(owner)
        return await asyncio.to_thread(chosen, every, words, self.most_chars) if every else ()

    @property
    def spec(self) -> ContextSpec:
        """What it declares; what untrusted notes do to a turn is known where they are chosen."""
        return _SPEC

    async def texts(self, request: ContextRequest) -> tuple[ContextText, ...]:
        """Return the notes that were chosen for a turn, as one text that is framed already."""
        address, principal = request.address, request.principal
        text = await self.text(address, principal, request.notes, request.conversation)
        return (ContextText(text=text, is_data=False),)

    async def text(
        self, address: Address, principal: Principal, numbers: Iterable[int], here: ConversationId
    ) -> str:
        """Return the chosen notes as they stand in a request; those that are forgotten do not."""
        found = [await self.notes.get(owner_of(address, principal), one) for one in numbers]
        return as_data((note for note in found if note is not None), here, self.redact)
