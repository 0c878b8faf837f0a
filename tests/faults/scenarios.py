"""The scenarios during which the daemon is killed.

A scenario is played before the daemon's first start, so that all of its messages wait for the daemon;
its people carry on across a kill. The expected answers are the same with and without kills.
"""

from collections.abc import Awaitable, Callable, Mapping

from tests.faults.crash_run import CrashRun
from tests.faults.kill_points import KillPoint
from tests.journeys.bench import Holds
from zeroclaw.value import Value, field

LONG = ("The first part of a long answer.", "The second part of it is longer.", "And a third.")


class Scenario(Value):
    """One scenario.

    Attributes:
        play: Scripts the model and lets people write.
        platform: The platform's abilities.
        channel: Keys of the channel's configuration.
        provider: Keys of the provider's configuration.
        notice: A text that exactly one notice to the operator contains.
        erased: A text that the store must not contain.
        texts: The bot's messages in some chats, by the chats' names.
    """

    play: Callable[[CrashRun], Awaitable[None]]
    platform: Mapping[str, object] = field(default_factory=dict[str, object])
    channel: Mapping[str, object] = field(default_factory=dict[str, object])
    provider: Mapping[str, object] = field(default_factory=dict[str, object])
    notice: str = ""
    erased: str = ""
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


async def _text(run: CrashRun) -> None:
    run.write("hi", "Hello ", "to ", "Ann.")
    await run.say("ann", "hi", "Hello to Ann.")


async def grows(run: CrashRun, where: str = "ann") -> None:
    """Let the platform show the beginning of an answer before the model continues, so that it is a draft."""
    gate = run.world.model.gate()
    run.world.model.say("Hello ", gate, "to you.", key="hi", times=None)
    await run.say("ann", "hi", "Hello to you.", where="" if where == "ann" else where)

    async def go_on() -> None:
        await run.world.until(
            lambda: run.kill_points.killed_at or run.kills or run.world.chat(where).messages
        )
        gate.open()

    run.keep_running(go_on())


async def _files(run: CrashRun) -> None:
    run.world.model.call("read_attachment", {"id": 2}, round=0, key="look", times=None)
    run.write("look", "Two ", "files.", round=1)
    await run.say("ann", "look", "Two files.", files={"a.txt": b"milk", "b.csv": b"a,b\n1,2\n"})


async def _long(run: CrashRun) -> None:
    run.write("tell", "\n\n".join(LONG[:1]), "\n\n" + LONG[1], "\n\n" + LONG[2])
    await run.say("ann", "tell me", *LONG)


async def _approved(run: CrashRun) -> None:
    run.world.model.call("knock", {"what": "on wood"}, round=0, key="knock", times=None)
    run.hold_tools("knock")
    run.write("knock", "So ", "be it.", round=1)
    await run.say("ann", "please knock", "So be it.")


async def _shell(run: CrashRun) -> None:
    command = {"command": "echo ran >> runs.txt"}
    run.world.model.call("shell", command, round=0, key="run", times=None)
    run.write("run", "It ", "ran.", round=1)
    await run.say("ann", "run it", "It ran.")


async def _denied(run: CrashRun) -> None:
    run.world.model.call("knock", {"what": "never"}, round=0, key="knock", times=None)
    run.write("knock", "Then ", "not.", round=1)
    await run.say("ann", "please knock", "Then not.")


async def _batch(run: CrashRun) -> None:
    run.world.model.calls(
        ("peek", {"what": "the sky"}),
        ("knock", {"what": "never"}),
        ("knock", {"what": "on wood"}),
        round=0,
        key="all",
        times=None,
    )
    run.write("all", "Two ", "of three.", round=1)
    await run.say("ann", "do all", "Two of three.")


async def _edited(run: CrashRun) -> None:
    run.world.model.call("dig", {"what": "here"}, round=0, key="dig up", times=None)
    run.world.model.say("Dug.", round=1, key="dig up", times=None)
    run.world.model.say("Dug.", key="dig down", times=None)
    message = await run.say("ann", "dig up", "Dug.")

    async def edit_meanwhile() -> None:
        hold = Holds(text="a bone")
        run.world.bench.will("dig", hold)
        await hold.reached()
        await run.edit(message, "dig down")
        await run.kill_points.reach(KillPoint(what="tool", name="dig", when="during"))
        hold.release()

    run.keep_running(edit_meanwhile())


async def _compacted(run: CrashRun) -> None:
    # Only a request for a summary contains JSON.
    run.world.model.say("State: ", "they met.", key='{"', times=None)
    run.write("hi", "Hello ", "to ", "Ann.")
    run.write("go on", "As ", "before.")
    await run.say("ann", "hi", "Hello to Ann.")
    await run.say("ann", "go on", "As before.")


async def _refused(run: CrashRun) -> None:
    run.world.refuse("ann")
    run.world.model.say("A secret recipe.", key="cook", times=None)
    await run.say("ann", "cook", end="failed")


SCENARIOS: Mapping[str, Scenario] = {
    "text": Scenario(play=_text),
    "grows": Scenario(play=grows),
    "files": Scenario(play=_files),
    "long": Scenario(play=_long, platform={"max_length": 40}),
    "long without edits": Scenario(play=_long, platform={"max_length": 40, "can_edit": False}),
    "approved": Scenario(play=_approved),
    "shell": Scenario(play=_shell),
    "denied": Scenario(play=_denied),
    "batch": Scenario(play=_batch),
    "edited": Scenario(play=_edited),
    # Less than the prompt and the tools need: each turn but the first begins with a summary.
    "compacted": Scenario(play=_compacted, provider={"context_tokens": 1024}),
    "refused": Scenario(
        play=_refused, channel={"stream": False}, notice="was refused by the platform"
    ),
    # Platforms that don't detect a repeated send, with drafts and without.
    "unsure": Scenario(play=grows, platform={"idempotent_send": False}),
    "unsure without edits": Scenario(
        play=_text, platform={"idempotent_send": False, "can_edit": False}
    ),
    "unsure card": Scenario(play=_approved, platform={"idempotent_send": False}),
}
