"""What takes place while a turn runs and somebody says more: each way that a message can take.

Turns are held, by the model's gate or by the tool, until what is said meanwhile is admitted: in the
same life of the daemon or in a later one.
"""

from collections.abc import Mapping

from tests.emulators.model_scripts import Gate
from tests.faults.scenarios import Scenario
from tests.faults.scene import LEFT, Scene
from tests.journeys.bench import Holds

BEGUN = "Once upon a time "
MOST_LIVES = 3
"""Of a daemon in one scenario; a tool that may be repeated is held in each of them."""


async def _begun(scene: Scene, gate: Gate) -> None:
    """Wait until the beginning of a story is seen."""
    await gate.reached()
    await scene.stage.until(lambda: BEGUN.strip() in scene.stage.chat("ann").ever)


async def _story(scene: Scene, note: str) -> Gate:
    """Let Ann be told a story that goes on until somebody ends it."""
    gate = scene.stage.model.gate()
    scene.stage.model.say(BEGUN, gate, "there was more.", key="a story", times=None)
    await scene.say("ann", "a story", marks=(note,), end="stopped")
    return gate


async def _collect(scene: Scene) -> None:
    gate = scene.stage.model.gate()
    scene.stage.model.say(gate, "Of course.", key="may I ask", times=None)
    scene.stage.model.say("Both at noon.", key="is lunch?\n\nand tea", times=None)
    await scene.say("ann", "may I ask", "Of course.")

    async def ask_two() -> None:
        await gate.reached()
        first = await scene.say("ann", "when is lunch?", "Both at noon.")
        second = await scene.say("ann", "and tea?", end="joined")
        await scene.confirmed(first, second)
        gate.open()

    scene.act(ask_two())


async def _steer(scene: Scene) -> None:
    hold = Holds(text="blue")
    scene.stage.bench.will("peek", *[hold] * MOST_LIVES)
    scene.stage.model.call("peek", {"what": "the sky"}, round=0, key="look up", times=None)
    scene.stage.model.say("Blue, and the sea too.", key="the sea too", times=None)
    await scene.say("ann", "look up", "Blue, and the sea too.")

    async def add() -> None:
        await hold.reached()
        await scene.confirmed(await scene.say("ann", "the sea too", end="joined"))
        hold.release()

    scene.act(add())


async def _interrupt(scene: Scene) -> None:
    scene.stage.model.say("At noon.", key="never mind", times=None)
    gate = await _story(scene, "nterrupted by a newer message")

    async def ask_something_else() -> None:
        await _begun(scene, gate)
        await scene.say("ann", "never mind, when is lunch?", "At noon.")

    scene.act(ask_something_else())


async def _stop(scene: Scene) -> None:
    gate = await _story(scene, f"topped by {scene.stage.named('ann')}")

    async def stop() -> None:
        await _begun(scene, gate)
        await scene.command("ann", "/stop")

    scene.act(stop())


async def _stop_asked(scene: Scene) -> None:
    scene.stage.model.call("knock", {"what": LEFT}, round=0, key="knock", times=None)
    await scene.say(
        "ann", "please knock", marks=(f"topped by {scene.stage.named('ann')}",), end="stopped"
    )

    async def stop() -> None:
        await scene.stage.until(lambda: scene.stage.chat("olga").cards)
        await scene.command("ann", "/stop")

    scene.act(stop())


async def _new(scene: Scene) -> None:
    scene.stage.model.say("Fresh.", key="who are you", times=None)
    gate = await _story(scene, "topped: a new conversation was begun")

    async def begin_anew() -> None:
        await _begun(scene, gate)
        await scene.command("ann", "/new")
        await scene.say("ann", "who are you?", "Fresh.", marks=("A new conversation;",))

    scene.act(begin_anew())


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
