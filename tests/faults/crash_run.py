"""A run in which the daemon is killed at chosen points, while its people carry on.

Ann and Bob write, the operator Olga answers every card that appears, the model writes piece by piece;
all of them outlive the daemon and continue when it is back. `idle` waits until, according to the store,
no work is left.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.emulators.model_scripts import Gate
from tests.faults.kill_points import KillPoint, KillPoints
from tests.faults.killed_daemon import PORT_VARIABLE
from tests.faults.ledger import Ledger
from tests.faults.platform_world import Action, Card, OpenWorld, PlatformWorld, answers
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


class Expectation(Value):
    """A message, and its expected answers.

    Attributes:
        where: The chat of the answer.
        parts: The messages of the whole answer.
        marks: Texts that each appear in a separate answer, whose full text depends on when the
            daemon was killed.
        end: The recorded state in which the message ends, empty if it is to be erased.
    """

    where: str
    action: Action
    parts: tuple[str, ...]
    marks: tuple[str, ...]
    end: str


@dataclass(eq=False, kw_only=True)
class CrashRun:
    """A platform, its kill points, and the expected answers.

    Attributes:
        expectations: The messages written so far, with their expected answers.
        actions: All actions of people.
        kills: How often the daemon was killed.
        tasks: People and scripts, which run as long as the run.
        acts: Those of them that have to end before the run is idle.
    """

    world: PlatformWorld
    kill_points: KillPoints
    group: asyncio.TaskGroup
    expectations: list[Expectation] = field(default_factory=list[Expectation])
    actions: list[Action] = field(default_factory=list[Action])
    kills: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    acts: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ledger(self) -> Ledger:
        """The current content of the store."""
        return Ledger(self.world.directory / "data")

    # --- the daemon's lives --------------------------------------------------------------------

    async def start(self) -> None:
        """Start the daemon, for the first time or after it was killed."""
        if self.kill_points.killed_at is not None:
            await self.world.daemon.wait()
        ledger, of_a_turn = self.ledger, '"turn":"'
        self.kill_points.begin(
            approvals=ledger.keys(RowKind.APPROVAL, "pending"),
            finals=[
                *ledger.keys(RowKind.OUTBOX, "pending", of_a_turn),
                *ledger.keys(RowKind.OUTBOX, "sending", of_a_turn),
            ],
        )
        await self.world.daemon.start()

    async def killed(self) -> bool:
        """Wait until the daemon was killed, or no work is left; true if it was killed."""
        await self._until(
            lambda: self.kill_points.killed_at is not None or not self._pending_work()
        )
        is_killed = self.kill_points.killed_at is not None
        self.kills += is_killed
        return is_killed

    async def idle(self) -> None:
        """Wait until no work is left."""
        await self._until(lambda: not self._pending_work())

    async def _until(self, condition: Callable[[], bool]) -> None:
        def check() -> bool:
            self._changed.set()  # for changes without a kill point, such as the arrival of a mail
            self._changed = asyncio.Event()
            return condition()

        try:
            await self.world.until(check)
        except AssertionError as error:
            error.add_note(f"left to do: {self._pending_work()}\n{self.world.daemon.report()}")
            raise

    def _pending_work(self) -> str:
        """Describe one piece of work that is left; cheapest check first, since it runs at every point."""
        if not self.world.listening or self.kill_points.unfinished:
            return f"listening: {self.world.listening}, begun: {self.kill_points.unfinished}"
        if waiting := [action.text for action in self.actions if not action.confirmed]:
            return f"not confirmed: {waiting}"
        if not all(act.done() for act in self.acts):
            return "people are not done"
        chats = self.world.chats()
        if waiting := [card for chat in chats for card in chat.cards if "" in card.outcomes]:
            return f"open cards: {waiting}"
        stand = {chat.name: "\n".join(answers(chat)) for chat in chats}
        for expectation in self.expectations:
            for text in (*expectation.parts, *expectation.marks):
                if text not in stand.get(expectation.where, ""):
                    return f"not said in {expectation.where}: {text!r}"
        # The outbox twice: one row of it causes a notice, which is then sent through another row.
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
    ) -> Action:
        """Write as a person who expects these messages as the answer, or answers with these marks."""
        action = await self.world.say(who, text, where=where, files=files)
        self.actions.append(action)
        name = self.world.chat(where or who).name
        self.expectations.append(
            Expectation(where=name, action=action, parts=parts, marks=marks, end=end)
        )
        return action

    async def edit(self, action: Action, text: str) -> None:
        """Edit a message, and wait until the edit is admitted or the daemon was killed."""
        changed = await self.world.edit(action, text)
        self.actions.append(changed)
        await self.world.until(lambda: changed.confirmed or self.kill_points.killed_at is not None)

    async def confirmed(self, *actions: Action) -> None:
        """Wait until these are admitted, by any daemon of this run."""
        await self.world.until(lambda: all(action.confirmed for action in actions))

    async def command(self, who: str, text: str, *marks: str, end: str = "answered") -> None:
        """Use a command, and wait until it is admitted, by any daemon of this run."""
        await self.confirmed(await self.say(who, text, marks=marks, end=end))

    def keep_running(self, task: Coroutine[object, object, None]) -> None:
        """Run a person or a script in the background until the run ends."""
        self.tasks.append(self.group.create_task(task))

    def act(self, act: Coroutine[object, object, None]) -> None:
        """Run actions of a person in the background; the run is not idle before they end."""
        task = self.group.create_task(act)
        task.add_done_callback(lambda _: self.wake())
        self.tasks.append(task)
        self.acts.append(task)

    def wake(self) -> None:
        """Check again what the run waits for."""
        self.world.wake()
        self._changed.set()
        self._changed = asyncio.Event()

    async def operate(self) -> None:
        """Play Olga, who answers every card once, in any chat."""
        answered: set[tuple[str, str, int]] = set()
        while True:
            for where, card, at in self._unanswered():
                if (where, card.id, at) not in answered:
                    answered.add((where, card.id, at))
                    choice = "deny" if DENIED in card.calls[at].text else "once"
                    press = self.world.press("olga", where, card, choice, call=at)
                    self.actions.append(await press)
            await self._changed.wait()

    def _unanswered(self) -> list[tuple[str, Card, int]]:
        return [
            (chat.name, card, at)
            for chat in self.world.chats()
            for card in chat.cards
            for at, call in enumerate(card.calls)
            if not call.outcome and LEFT not in call.text
        ]

    # --- the model and the tools ---------------------------------------------------------------

    def write(self, key: str, *pieces: str, round: int | None = None) -> None:  # noqa: A002
        """Let the model write an answer piece by piece, with a kill point before each."""
        gates = [self.world.model.gate() for _ in pieces]
        script = [part for pair in zip(gates, pieces, strict=True) for part in pair]
        self.world.model.say(*script, key=key, round=round, times=None)
        self.keep_running(self._pieces(gates))

    async def _pieces(self, gates: Sequence[Gate]) -> None:
        for number, gate in enumerate(gates):
            await gate.reached()
            self.kill_points.progress.streams += number == 0
            await self.kill_points.reach(KillPoint(what="model", name="piece", when="during"))
            # Killed or not: in its next life the daemon may ask again and pass this gate.
            gate.open()
        self.kill_points.progress.streams -= 1

    def hold_tools(self, tool: str) -> None:
        """Hold each run of a bench tool at a kill point."""
        self.keep_running(self._hold(tool))

    async def _hold(self, tool: str) -> None:
        while True:
            hold = Holds(text=f"{tool}: done")
            self.world.bench.will(tool, hold)
            await hold.reached()
            await self.kill_points.reach(KillPoint(what="tool", name=tool, when="during"))
            hold.release()


@asynccontextmanager
async def open_crash_run(directory: Path, open_world: OpenWorld) -> AsyncGenerator[CrashRun]:
    """Open a run whose daemon is not started yet; Olga already answers cards.

    Args:
        directory: An empty directory of this test's own.
        open_platform: Opens the platform.
    """
    wakers: list[Callable[[], None]] = []

    def changed() -> None:
        for wake in wakers:
            wake()

    async with KillPoints(changed) as kill_points:
        environment = {PORT_VARIABLE: str(kill_points.port)}
        async with open_world(directory, environment) as world, asyncio.TaskGroup() as group:
            kill_points.kill = world.daemon.kill
            run = CrashRun(world=world, kill_points=kill_points, group=group)
            wakers.append(run.wake)
            run.keep_running(run.operate())
            try:
                yield run
            finally:
                await world.daemon.kill()
                for task in run.tasks:
                    task.cancel()
