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

from zeroclaw_test_platform.chats import Message
from zeroclaw_test_platform.event import Event

from tests.emulators.model_scripts import Gate
from tests.faults.forked import forked
from tests.faults.instants import Instant, Instants
from tests.faults.killed_daemon import PORT_VARIABLE
from tests.faults.ledger import Ledger
from tests.journeys.bench import Holds
from tests.journeys.world import World, world
from zeroclaw.store import RowKind

COMMAND = ("tests.faults.killed_daemon",)
OPEN: Mapping[RowKind, set[str]] = {
    RowKind.INBOX: {"queued", "control", "taken"},
    RowKind.OUTBOX: {"pending", "sending"},
    RowKind.TURN: {"open"},
    RowKind.APPROVAL: {"pending"},
    RowKind.FORGETTING: {"open"},
}
DENIED = "never"
LEFT = "later"
"""Olga denies calls with the one word in their arguments, leaves those with the other to
themselves, and approves the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message, and what it comes to.

    Attributes:
        parts: The whole answer, as messages.
        marks: Texts that each stand within an answer of its own, where the whole of it hangs on
            when the daemon was killed.
        end: The recorded state that it ends in, empty when it is to be forgotten.
    """

    who: str
    event: Event
    parts: tuple[str, ...]
    marks: tuple[str, ...]
    end: str


@dataclass(eq=False, kw_only=True)
class Scene:
    """A world, its instants, and what is expected of it.

    Attributes:
        said: What was said so far and what is expected for it.
        events: All that people did.
        kills: How often the daemon was killed.
    """

    here: World
    instants: Instants
    group: asyncio.TaskGroup
    said: list[Said] = field(default_factory=list[Said])
    events: list[Event] = field(default_factory=list[Event])
    kills: int = 0
    lives: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    acts: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    _pulse: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ledger(self) -> Ledger:
        """What the store holds now."""
        return Ledger(self.here.data)

    # --- the daemon's lives --------------------------------------------------------------------

    async def start(self) -> None:
        """Start the daemon, for the first time or after it was killed."""
        if self.instants.last is not None:
            await self.here.daemon.ended()
        ledger, a_turn = self.ledger, '"turn":"'
        self.instants.begin(
            asked=ledger.keys(RowKind.APPROVAL, "pending"),
            finals=[
                *ledger.keys(RowKind.OUTBOX, "pending", a_turn),
                *ledger.keys(RowKind.OUTBOX, "sending", a_turn),
            ],
        )
        await self.here.daemon.start()

    async def ended(self) -> bool:
        """Wait until the daemon was killed, or there is nothing left to do; true when killed."""
        await self.here.until(lambda: self.instants.last is not None or self._is_quiet())
        is_killed = self.instants.last is not None
        self.kills += is_killed
        return is_killed

    async def quiet(self) -> None:
        """Wait until there is nothing left to do."""
        await self.here.until(self._is_quiet)

    def _is_quiet(self) -> bool:
        """Cheapest question first: this is asked at every instant."""
        platform = self.here.platform
        is_at_rest = platform.connected and not self.instants.begun
        if not is_at_rest or not all(event.confirmed for event in self.events):
            return False
        if any(chat.open_cards for chat in platform.desk.chats.values()):
            return False
        if not all(act.done() for act in self.acts):
            return False
        answers = {chat.id: "\n".join(chat.answers) for chat in platform.desk.chats.values()}
        for one in self.said:
            if any(text not in answers.get(one.who, "") for text in (*one.parts, *one.marks)):
                return False
        return not any(self.ledger.states(kind) & states for kind, states in OPEN.items())

    # --- the people ----------------------------------------------------------------------------

    async def say(
        self,
        who: str,
        text: str,
        *parts: str,
        marks: tuple[str, ...] = (),
        end: str = "answered",
        files: Mapping[str, bytes] | None = None,
    ) -> Event:
        """Write as a person who expects these messages for an answer, or answers so marked."""
        event = await self.here.say(who, text, files=files)
        self.events.append(event)
        self.said.append(Said(who=who, event=event, parts=parts, marks=marks, end=end))
        return event

    async def command(self, who: str, text: str, *marks: str, end: str = "answered") -> None:
        """Use a command, and wait until it is admitted, whichever daemon admits it."""
        await self.here.platform.confirmed(await self.say(who, text, marks=marks, end=end))

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
        self.here.platform.wake()
        self._pulse.set()
        self._pulse = asyncio.Event()

    async def operate(self) -> None:
        """Be Olga, who answers every card once, wherever it shows up."""
        answered: set[tuple[str, int]] = set()
        while True:
            for card, at in self._unanswered():
                if (card.id, at) not in answered:
                    answered.add((card.id, at))
                    is_denied = DENIED in card.asked.calls[at].arguments
                    choice = "deny" if is_denied else "once"
                    press = self.here.platform.press("olga", card, choice, call=at)
                    self.events.append(await press)
            await self._pulse.wait()

    def _unanswered(self) -> list[tuple[Message, int]]:
        cards = [card for chat in self.here.platform.desk.chats.values() for card in chat.cards]
        return [
            (card, at)
            for card in cards
            for at, how in enumerate(card.hows)
            if not how and LEFT not in card.asked.calls[at].arguments
        ]

    # --- the model and the tools ---------------------------------------------------------------

    def write(self, key: str, *pieces: str, round: int | None = None) -> None:  # noqa: A002
        """Let the model write an answer piece by piece, an instant between two of them."""
        gates = [self.here.model.gate() for _ in pieces]
        script = [part for pair in zip(gates, pieces, strict=True) for part in pair]
        self.here.model.say(*script, key=key, round=round, times=None)
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
            self.here.bench.will(tool, hold)
            await hold.reached()
            await self.instants.passed(Instant(what="tool", name=tool, when="during"))
            hold.release()


@asynccontextmanager
async def scene(
    directory: Path, *, platform: Mapping[str, object] | None = None, **config: object
) -> AsyncGenerator[Scene]:
    """Open a world whose daemon is not started yet; Olga is at work.

    Args:
        directory: An empty directory of this test's own.
        platform: What the platform can do.
        config: Tables of the configuration.
    """
    pulses: list[Callable[[], None]] = []

    def changed() -> None:
        for pulse in pulses:
            pulse()

    async with (
        Instants(changed) as instants,
        world(
            directory,
            platform=platform,
            environment={
                PORT_VARIABLE: str(instants.port),
                # A daemon that is started so often compiles its source once.
                "PYTHONDONTWRITEBYTECODE": "",
            },
            start=False,
            command=COMMAND,
            launch=forked,
            **config,
        ) as here,
        asyncio.TaskGroup() as group,
    ):
        instants.kill = here.daemon.kill
        made = Scene(here=here, instants=instants, group=group)
        pulses.append(made.pulse)
        made.live(made.operate())
        try:
            yield made
        finally:
            await here.daemon.kill()
            for life in made.lives:
                life.cancel()
