"""What takes place while a daemon is killed: a handful of scenes, each with its whole script.

A scene is played before the daemon's first start, so that everything waits for it; the people in
it go on across a kill. Whatever happens, the same answers are expected.
"""

from collections.abc import Awaitable, Callable, Mapping

from tests.faults.instants import Instant
from tests.faults.scene import Scene
from tests.journeys.bench import Holds
from zeroclaw.value import Value, field

LONG = ("The first part of a long answer.", "The second part of it is longer.", "And a third.")


class Scenario(Value):
    """One of them.

    Attributes:
        play: Writes the scripts and lets people speak.
        platform: What the platform can do.
        channel: Keys of the channel's configuration.
        provider: Keys of the provider's.
        told: What an operator must have been told, exactly once.
        forgotten: What is stored nowhere any more.
        stands: All that the bot has said in some chats and that stands there, by their names.
    """

    play: Callable[[Scene], Awaitable[None]]
    platform: Mapping[str, object] = field(default_factory=dict[str, object])
    channel: Mapping[str, object] = field(default_factory=dict[str, object])
    provider: Mapping[str, object] = field(default_factory=dict[str, object])
    told: str = ""
    forgotten: str = ""
    stands: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


async def _text(scene: Scene) -> None:
    scene.write("hi", "Hello ", "to ", "Ann.")
    await scene.say("ann", "hi", "Hello to Ann.")


async def grows(scene: Scene, where: str = "ann") -> None:
    """Let the beginning of an answer stand before the model goes on; one that came whole is no draft."""
    gate = scene.stage.model.gate()
    scene.stage.model.say("Hello ", gate, "to you.", key="hi", times=None)
    await scene.say("ann", "hi", "Hello to you.", where="" if where == "ann" else where)

    async def go_on() -> None:
        await scene.stage.until(
            lambda: scene.instants.last or scene.kills or scene.stage.chat(where).shown
        )
        gate.open()

    scene.live(go_on())


async def _files(scene: Scene) -> None:
    scene.stage.model.call("read_attachment", {"id": 2}, round=0, key="look", times=None)
    scene.write("look", "Two ", "files.", round=1)
    await scene.say("ann", "look", "Two files.", files={"a.txt": b"milk", "b.csv": b"a,b\n1,2\n"})


async def _long(scene: Scene) -> None:
    scene.write("tell", "\n\n".join(LONG[:1]), "\n\n" + LONG[1], "\n\n" + LONG[2])
    await scene.say("ann", "tell me", *LONG)


async def _approved(scene: Scene) -> None:
    scene.stage.model.call("knock", {"what": "on wood"}, round=0, key="knock", times=None)
    scene.hold_tools("knock")
    scene.write("knock", "So ", "be it.", round=1)
    await scene.say("ann", "please knock", "So be it.")


async def _shell(scene: Scene) -> None:
    command = {"command": "echo ran >> runs.txt"}
    scene.stage.model.call("shell", command, round=0, key="run", times=None)
    scene.write("run", "It ", "ran.", round=1)
    await scene.say("ann", "run it", "It ran.")


async def _denied(scene: Scene) -> None:
    scene.stage.model.call("knock", {"what": "never"}, round=0, key="knock", times=None)
    scene.write("knock", "Then ", "not.", round=1)
    await scene.say("ann", "please knock", "Then not.")


async def _batch(scene: Scene) -> None:
    scene.stage.model.calls(
        ("peek", {"what": "the sky"}),
        ("knock", {"what": "never"}),
        ("knock", {"what": "on wood"}),
        round=0,
        key="all",
        times=None,
    )
    scene.write("all", "Two ", "of three.", round=1)
    await scene.say("ann", "do all", "Two of three.")


async def _edited(scene: Scene) -> None:
    scene.stage.model.call("dig", {"what": "here"}, round=0, key="dig up", times=None)
    scene.stage.model.say("Dug.", round=1, key="dig up", times=None)
    scene.stage.model.say("Dug.", key="dig down", times=None)
    said = await scene.say("ann", "dig up", "Dug.")

    async def edit_meanwhile() -> None:
        hold = Holds(text="a bone")
        scene.stage.bench.will("dig", hold)
        await hold.reached()
        await scene.edit(said, "dig down")
        await scene.instants.passed(Instant(what="tool", name="dig", when="during"))
        hold.release()

    scene.live(edit_meanwhile())


async def _compacted(scene: Scene) -> None:
    # A request for a summary holds JSON, and nobody here says any.
    scene.stage.model.say("State: ", "they met.", key='{"', times=None)
    scene.write("hi", "Hello ", "to ", "Ann.")
    scene.write("go on", "As ", "before.")
    await scene.say("ann", "hi", "Hello to Ann.")
    await scene.say("ann", "go on", "As before.")


async def _refused(scene: Scene) -> None:
    scene.stage.refuse("ann")
    scene.stage.model.say("A secret recipe.", key="cook", times=None)
    await scene.say("ann", "cook", end="failed")


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
    # Less than the prompt and the tools take: each turn but the first begins with a summary.
    "compacted": Scenario(play=_compacted, provider={"context_tokens": 1024}),
    "refused": Scenario(
        play=_refused, channel={"stream": False}, told="was refused by the platform"
    ),
    # Platforms that don't know a repeated send, with drafts and without.
    "unsure": Scenario(play=grows, platform={"idempotent_send": False}),
    "unsure without edits": Scenario(
        play=_text, platform={"idempotent_send": False, "can_edit": False}
    ),
    "unsure card": Scenario(play=_approved, platform={"idempotent_send": False}),
}
