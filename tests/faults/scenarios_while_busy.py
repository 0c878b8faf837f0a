"""Scenarios of messages that arrive while a turn runs, in each mode.

Turns are held, by the model's gate or by the tool, until the later messages are admitted: in the
same life of the daemon or in a later one.
"""

from collections.abc import Mapping

from tests.emulators.model_scripts import Gate
from tests.faults.crash_run import LEFT, CrashRun
from tests.faults.scenarios import Scenario
from tests.journeys.bench import Holds

BEGUN = "Once upon a time "
MAX_LIVES = 3
"""Of a daemon in one scenario; a tool that may be repeated is held in each of them."""


async def _begun(run: CrashRun, gate: Gate) -> None:
    """Wait until the beginning of a story is seen."""
    await gate.reached()
    await run.world.until(lambda: BEGUN.strip() in run.world.chat("ann").ever)


async def _story(run: CrashRun, note: str) -> Gate:
    """Have Ann's turn write a story that goes on until it is ended."""
    gate = run.world.model.gate()
    run.world.model.say(BEGUN, gate, "there was more.", key="a story", times=None)
    await run.say("ann", "a story", marks=(note,), end="stopped")
    return gate


async def _collect(run: CrashRun) -> None:
    gate = run.world.model.gate()
    run.world.model.say(gate, "Of course.", key="may I ask", times=None)
    run.world.model.say("Both at noon.", key="is lunch?\n\nand tea", times=None)
    await run.say("ann", "may I ask", "Of course.")

    async def ask_two() -> None:
        await gate.reached()
        first = await run.say("ann", "when is lunch?", "Both at noon.")
        second = await run.say("ann", "and tea?", end="joined")
        await run.confirmed(first, second)
        gate.open()

    run.act(ask_two())


async def _steer(run: CrashRun) -> None:
    hold = Holds(text="blue")
    run.world.bench.will("peek", *[hold] * MAX_LIVES)
    run.world.model.call("peek", {"what": "the sky"}, round=0, key="look up", times=None)
    run.world.model.say("Blue, and the sea too.", key="the sea too", times=None)
    await run.say("ann", "look up", "Blue, and the sea too.")

    async def add() -> None:
        await hold.reached()
        await run.confirmed(await run.say("ann", "the sea too", end="joined"))
        hold.release()

    run.act(add())


async def _interrupt(run: CrashRun) -> None:
    run.world.model.say("At noon.", key="never mind", times=None)
    gate = await _story(run, "nterrupted by a newer message")

    async def ask_something_else() -> None:
        await _begun(run, gate)
        await run.say("ann", "never mind, when is lunch?", "At noon.")

    run.act(ask_something_else())


async def _stop(run: CrashRun) -> None:
    gate = await _story(run, f"topped by {run.world.display_name('ann')}")

    async def stop() -> None:
        await _begun(run, gate)
        await run.command("ann", "/stop")

    run.act(stop())


async def _stop_asked(run: CrashRun) -> None:
    run.world.model.call("knock", {"what": LEFT}, round=0, key="knock", times=None)
    await run.say(
        "ann", "please knock", marks=(f"topped by {run.world.display_name('ann')}",), end="stopped"
    )

    async def stop() -> None:
        await run.world.until(lambda: run.world.chat("olga").cards)
        await run.command("ann", "/stop")

    run.act(stop())


async def _new(run: CrashRun) -> None:
    run.world.model.say("Fresh.", key="who are you", times=None)
    gate = await _story(run, "topped: a new conversation was begun")

    async def begin_anew() -> None:
        await _begun(run, gate)
        await run.command("ann", "/new")
        await run.say("ann", "who are you?", "Fresh.", marks=("A new conversation;",))

    run.act(begin_anew())


def _while_busy(mode: str) -> Mapping[str, object]:
    return {"while_busy": mode, "collect_s": 0.0}


BUSY: Mapping[str, Scenario] = {
    "collect": Scenario(play=_collect, channel=_while_busy("collect")),
    "steer": Scenario(play=_steer, channel=_while_busy("steer")),
    "interrupt": Scenario(play=_interrupt, channel=_while_busy("interrupt")),
    "stop": Scenario(play=_stop),
    "stop asked": Scenario(play=_stop_asked),
    "new": Scenario(play=_new),
}
