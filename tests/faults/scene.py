"""A world whose daemon can be killed at an instant, with people who do not care that it was.

Ann and Bob write, the operator Olga answers every card that shows up, the model writes piece by
piece; all of them outlive the daemon and go on when it is back. `quiet` waits until nothing is
left to do, by what the store says.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.emulators.model_scripts import Gate
from tests.faults.instants import Instant, Instants
from tests.faults.killed_daemon import PORT_VARIABLE
from tests.faults.ledger import Ledger
from tests.faults.stage import Card, Deed, Open, Stage, answers
from tests.journeys.bench import Holds
from zeroclaw.store import RowKind
from zeroclaw.value import Value

OPEN: Mapping[RowKind, set[str]] = {
    RowKind.INBOX: {"queued", "control", "taken"},
    RowKind.OUTBOX: {"pending", "sending"},
    RowKind.NOTICE: {""},
    RowKind.TURN: {"open"},
    RowKind.APPROVAL: {"pending"},
    RowKind.FORGETTING: {"open"},
}
DENIED = "never"
LEFT = "later"
"""Olga denies calls with the one word in their arguments, leaves those with the other to
themselves, and approves the rest."""


class Said(Value):
    """A message, and what it comes to.

    Attributes:
        where: The chat that it is answered in.
        parts: The whole answer, as messages.
        marks: Texts that each stand within an answer of its own, where the whole of it hangs on
            when the daemon was killed.
        end: The recorded state that it ends in, empty when it is to be forgotten.
    """

    where: str
    deed: Deed
    parts: tuple[str, ...]
    marks: tuple[str, ...]
    end: str


@dataclass(eq=False, kw_only=True)
class Scene:
    """A stage, its instants, and what is expected of it.

    Attributes:
        said: What was said so far and what is expected for it.
        deeds: All that people did.
        kills: How often the daemon was killed.
    """

    stage: Stage
    instants: Instants
    group: asyncio.TaskGroup
    said: list[Said] = field(default_factory=list[Said])
    deeds: list[Deed] = field(default_factory=list[Deed])
    kills: int = 0
    lives: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    acts: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    _pulse: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ledger(self) -> Ledger:
        """What the store holds now."""
        return Ledger(self.stage.directory / "data")

    # --- the daemon's lives --------------------------------------------------------------------

    async def start(self) -> None:
        """Start the daemon, for the first time or after it was killed."""
        if self.instants.last is not None:
            await self.stage.daemon.wait()
        ledger, a_turn = self.ledger, '"turn":"'
        self.instants.begin(
            asked=ledger.keys(RowKind.APPROVAL, "pending"),
            finals=[
                *ledger.keys(RowKind.OUTBOX, "pending", a_turn),
                *ledger.keys(RowKind.OUTBOX, "sending", a_turn),
            ],
        )
        await self.stage.daemon.start()

    async def ended(self) -> bool:
        """Wait until the daemon was killed, or there is nothing left to do; true when killed."""
        await self._until(lambda: self.instants.last is not None or not self._left_to_do())
        is_killed = self.instants.last is not None
        self.kills += is_killed
        return is_killed

    async def quiet(self) -> None:
        """Wait until there is nothing left to do."""
        await self._until(lambda: not self._left_to_do())

    async def _until(self, holds: Callable[[], bool]) -> None:
        def looked() -> bool:
            self._pulse.set()  # whoever looks sees what no instant tells of: that a mail has come
            self._pulse = asyncio.Event()
            return holds()

        try:
            await self.stage.until(looked)
        except AssertionError as error:
            error.add_note(f"left to do: {self._left_to_do()}\n{self.stage.daemon.report()}")
            raise

    def _left_to_do(self) -> str:
        """Tell one thing that is not over; cheapest question first, for it is asked at every instant."""
        if not self.stage.listening or self.instants.begun:
            return f"listening: {self.stage.listening}, begun: {self.instants.begun}"
        if waiting := [deed.text for deed in self.deeds if not deed.confirmed]:
            return f"not confirmed: {waiting}"
        if not all(act.done() for act in self.acts):
            return "people are not done"
        chats = self.stage.chats()
        if waiting := [card for chat in chats for card in chat.cards if "" in card.hows]:
            return f"open cards: {waiting}"
        stand = {chat.name: "\n".join(answers(chat)) for chat in chats}
        for one in self.said:
            for text in (*one.parts, *one.marks):
                if text not in stand.get(one.where, ""):
                    return f"not said in {one.where}: {text!r}"
        # The outbox twice: a notice comes of one row of it, and goes for another.
        kinds = (*OPEN, RowKind.OUTBOX)
        found = [(kind, self.ledger.states(kind) & OPEN[kind]) for kind in kinds]
        return ", ".join(f"{kind} {states}" for kind, states in found if states)

    # --- the people ----------------------------------------------------------------------------

    async def say(
        self,
        who: str,
        text: str,
        *parts: str,
        marks: tuple[str, ...] = (),
        end: str = "answered",
        where: str = "",
        files: Mapping[str, bytes] | None = None,
    ) -> Deed:
        """Write as a person who expects these messages for an answer, or answers so marked."""
        deed = await self.stage.say(who, text, where=where, files=files)
        self.deeds.append(deed)
        here = self.stage.chat(where or who).name
        self.said.append(Said(where=here, deed=deed, parts=parts, marks=marks, end=end))
        return deed

    async def edit(self, deed: Deed, text: str) -> None:
        """Change what was said, and wait until that is admitted, or the daemon was killed."""
        changed = await self.stage.edit(deed, text)
        self.deeds.append(changed)
        await self.stage.until(lambda: changed.confirmed or self.instants.last is not None)

    async def confirmed(self, *deeds: Deed) -> None:
        """Wait until these are admitted, whichever daemon admits them."""
        await self.stage.until(lambda: all(deed.confirmed for deed in deeds))

    async def command(self, who: str, text: str, *marks: str, end: str = "answered") -> None:
        """Use a command, and wait until it is admitted, whichever daemon admits it."""
        await self.confirmed(await self.say(who, text, marks=marks, end=end))

    def live(self, life: Coroutine[object, object, None]) -> None:
        """Keep somebody alive for as long as the scene."""
        self.lives.append(self.group.create_task(life))

    def act(self, act: Coroutine[object, object, None]) -> None:
        """Let somebody do things one after the other; it is not quiet before they have."""
        task = self.group.create_task(act)
        task.add_done_callback(lambda _: self.pulse())
        self.lives.append(task)
        self.acts.append(task)

    def pulse(self) -> None:
        """Something has happened."""
        self.stage.wake()
        self._pulse.set()
        self._pulse = asyncio.Event()

    async def operate(self) -> None:
        """Be Olga, who answers every card once, wherever it shows up."""
        answered: set[tuple[str, str, int]] = set()
        while True:
            for where, card, at in self._unanswered():
                if (where, card.id, at) not in answered:
                    answered.add((where, card.id, at))
                    choice = "deny" if DENIED in card.calls[at].says else "once"
                    press = self.stage.press("olga", where, card, choice, call=at)
                    self.deeds.append(await press)
            await self._pulse.wait()

    def _unanswered(self) -> list[tuple[str, Card, int]]:
        return [
            (chat.name, card, at)
            for chat in self.stage.chats()
            for card in chat.cards
            for at, call in enumerate(card.calls)
            if not call.how and LEFT not in call.says
        ]

    # --- the model and the tools ---------------------------------------------------------------

    def write(self, key: str, *pieces: str, round: int | None = None) -> None:  # noqa: A002
        """Let the model write an answer piece by piece, an instant between two of them."""
        gates = [self.stage.model.gate() for _ in pieces]
        script = [part for pair in zip(gates, pieces, strict=True) for part in pair]
        self.stage.model.say(*script, key=key, round=round, times=None)
        self.live(self._pieces(gates))

    async def _pieces(self, gates: Sequence[Gate]) -> None:
        for number, gate in enumerate(gates):
            await gate.reached()
            self.instants.progress.streams += number == 0
            await self.instants.passed(Instant(what="model", name="piece", when="during"))
            # Killed or not: in its next life the daemon asks again and may pass here.
            gate.open()
        self.instants.progress.streams -= 1

    def hold_tools(self, tool: str) -> None:
        """Let runs of a tool of the bench stand for an instant."""
        self.live(self._hold(tool))

    async def _hold(self, tool: str) -> None:
        while True:
            hold = Holds(text=f"{tool}: done")
            self.stage.bench.will(tool, hold)
            await hold.reached()
            await self.instants.passed(Instant(what="tool", name=tool, when="during"))
            hold.release()


@asynccontextmanager
async def scene(directory: Path, opened: Open) -> AsyncGenerator[Scene]:
    """Open a stage whose daemon is not started yet; Olga is at work.

    Args:
        directory: An empty directory of this test's own.
        opened: What opens the stage.
    """
    pulses: list[Callable[[], None]] = []

    def changed() -> None:
        for pulse in pulses:
            pulse()

    async with Instants(changed) as instants:
        environment = {PORT_VARIABLE: str(instants.port)}
        async with opened(directory, environment) as stage, asyncio.TaskGroup() as group:
            instants.kill = stage.daemon.kill
            made = Scene(stage=stage, instants=instants, group=group)
            pulses.append(made.pulse)
            made.live(made.operate())
            try:
                yield made
            finally:
                await stage.daemon.kill()
                for life in made.lives:
                    life.cancel()
