"""Scenarios of commands that do more than answer.

Each waits for what the one before it shows, in the same life of the daemon or in a later one.
"""

import re
from collections.abc import Mapping

from tests.faults.crash_run import CrashRun
from tests.faults.platform_world import answers
from tests.faults.scenarios import Scenario

SECRET = "sugared plums"


async def _tool(run: CrashRun) -> None:
    # Killed while it runs, its result is that it may have run; its receipt stands in both.
    await run.say("olga", '/tool knock {"what": "on wood"}', marks=("(receipt below)",))


async def _halt(run: CrashRun) -> None:
    gate = run.world.model.gate()
    # First, for of a story that was stopped before it began both questions are asked as one.
    run.world.model.say("Here I am.", key="hello?", times=None)
    run.world.model.say("Once ", gate, key="a story", times=None)
    await run.say("ann", "a story", marks=("topped: everything was halted",), end="stopped")

    async def halt_and_resume() -> None:
        await gate.reached()
        await run.command("olga", "/halt", "Halted: nothing runs")
        hello = await run.say("ann", "hello?", "Here I am.", marks=("your message waits",))
        await run.confirmed(hello)
        await run.command("olga", "/resume", "Resumed:")

    run.act(halt_and_resume())


async def _forget(run: CrashRun) -> None:
    answer = f"You like {SECRET}."
    run.world.model.say(answer, key=SECRET, times=None)
    await run.say("ann", f"I like {SECRET}", answer, end="")
    chat = run.world.chat("ann")

    def code() -> str:
        found = re.search(r"`/forget (\w+)`", "\n".join(answers(chat)))
        return "" if found is None else found[1]

    async def have_it_forgotten() -> None:
        until = run.world.until
        await until(lambda: answer in answers(chat))
        await run.command("ann", "/forget", "This removes what you said", end="")
        await run.command(
            "ann", f"/forget {await until(code)}", "what you said to me is removed", end=""
        )

    run.act(have_it_forgotten())


COMMANDED: Mapping[str, Scenario] = {
    "tool": Scenario(play=_tool),
    "halt": Scenario(play=_halt),
    "forget": Scenario(play=_forget, erased=SECRET),
}
