"""What takes place when somebody uses a command that does more than to say something.

Each waits for what the one before it shows, in the same life of the daemon or in a later one.
"""

import re
from collections.abc import Mapping

from tests.faults.scenarios import Scenario
from tests.faults.scene import Scene
from tests.faults.stage import answers

SECRET = "sugared plums"


async def _tool(scene: Scene) -> None:
    # Killed while it runs, its result is that it may have run; its receipt stands in both.
    await scene.say("olga", '/tool knock {"what": "on wood"}', marks=("(receipt below)",))


async def _halt(scene: Scene) -> None:
    gate = scene.stage.model.gate()
    # First, for of a story that was stopped before it began both questions are asked as one.
    scene.stage.model.say("Here I am.", key="hello?", times=None)
    scene.stage.model.say("Once ", gate, key="a story", times=None)
    await scene.say("ann", "a story", marks=("topped: everything was halted",), end="stopped")

    async def halt_and_resume() -> None:
        await gate.reached()
        await scene.command("olga", "/halt", "Halted: nothing runs")
        hello = await scene.say("ann", "hello?", "Here I am.", marks=("your message waits",))
        await scene.confirmed(hello)
        await scene.command("olga", "/resume", "Resumed:")

    scene.act(halt_and_resume())


async def _forget(scene: Scene) -> None:
    answer = f"You like {SECRET}."
    scene.stage.model.say(answer, key=SECRET, times=None)
    await scene.say("ann", f"I like {SECRET}", answer, end="")
    chat = scene.stage.chat("ann")

    def code() -> str:
        found = re.search(r"`/forget (\w+)`", "\n".join(answers(chat)))
        return "" if found is None else found[1]

    async def have_it_forgotten() -> None:
        until = scene.stage.until
        await until(lambda: answer in answers(chat))
        await scene.command("ann", "/forget", "This removes what you said", end="")
        await scene.command(
            "ann", f"/forget {await until(code)}", "what you said to me is removed", end=""
        )

    scene.act(have_it_forgotten())


COMMANDED: Mapping[str, Scenario] = {
    "tool": Scenario(play=_tool),
    "halt": Scenario(play=_halt),
    "forget": Scenario(play=_forget, forgotten=SECRET),
}
