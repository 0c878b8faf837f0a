"""Tells operators that messages fail: the first ones each by a line, the rest by a count.

    quiet ──a failure──▶ told, for a while ──more──▶ counted ──the while is over──▶ told how many
      ▲                                                                                  │
      └─────────────── a while without one ◀── a while that is twice as long ◀───────────┘

The line of a failure is committed with the failure; the count is kept in memory, and a restart
loses it: each failed message is on record all the same, and the next one is told again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from zeroclaw.clock import Clock, Ids
from zeroclaw.delivery.rows import quiet_notes
from zeroclaw.envelope import Reader
from zeroclaw.store import Put
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.turn.failure import Failure
from zeroclaw.turn.span import span

FIRST_WHILE_S = 600.0
LONGEST_WHILE_S = 3600.0
MOST_CAUSES = 3
"""Different causes that are told by a line each while it lasts; a cause may have endless forms."""


@dataclass(slots=True, kw_only=True)
class _Spell:
    """A time in which messages fail.

    Attributes:
        causes: What was told by a line.
        lines: Of the failures, by id; none for those that were counted.
        fresh: How many there were in this while.
        counted: How many of them were not told by a line.
    """

    causes: set[str] = field(default_factory=set[str])
    lines: dict[str, tuple[Put, ...]] = field(default_factory=dict[str, tuple[Put, ...]])
    fresh: int = 0
    counted: int = 0


class Failures:
    """Gathers what fails; one for the whole daemon."""

    def __init__(
        self,
        *,
        readers: Callable[[str], tuple[Reader, ...]],
        tell: Callable[[Localized], Awaitable[None]],
        clock: Clock,
        ids: Ids,
        group: asyncio.TaskGroup,
    ) -> None:
        """Hold what is needed.

        Args:
            readers: The operators' chats, but for the one with this address key.
            tell: Puts a sentence into all of them.
            clock: For how long it lasts.
            ids: For rows.
            group: Owns what waits.
        """
        self._readers = readers
        self._tell = tell
        self._clock = clock
        self._ids = ids
        self._group = group
        self._spell: _Spell | None = None

    def line(self, failure: Failure) -> tuple[Put, ...]:
        """Return what to write with a failure, so that operators are told; never waits.

        Asked again for the same failure it returns the same.
        """
        readers = self._readers(failure.place)
        if not readers:
            return ()  # whoever would be told wrote the message, and was told
        if self._spell is None:
            self._spell = _Spell()
            self._group.create_task(self._count(self._spell), name="failures")
        spell = self._spell
        if failure.id not in spell.lines:
            spell.lines[failure.id] = self._new(spell, failure, readers)
        return spell.lines[failure.id]

    def _new(self, spell: _Spell, failure: Failure, readers: tuple[Reader, ...]) -> tuple[Put, ...]:
        spell.fresh += 1
        if failure.why in spell.causes or len(spell.causes) >= MOST_CAUSES:
            spell.counted += 1
            return ()
        spell.causes.add(failure.why)
        return quiet_notes(failure.says, readers, self._ids.ulid)

    async def _count(self, spell: _Spell) -> None:
        """Tell how many there were, ever more rarely, until there are none."""
        while_s = FIRST_WHILE_S
        while spell.fresh:
            spell.fresh = 0
            await self._clock.sleep(while_s)
            # What was only counted is asked for no more by now.
            spell.lines = {one: line for one, line in spell.lines.items() if line}
            if spell.counted:
                count, spell.counted = spell.counted, 0
                await self._tell(catalogue.MORE_FAILED.about(count=count, time=span(while_s)))
            while_s = min(while_s * 2, LONGEST_WHILE_S)
        self._spell = None
