"""What takes place on Telegram while a daemon is killed: what is everywhere, and what is only there.

Ann's own chat shows an answer that is written as a native draft, the group as a message that is
edited; a long call comes as a file; a person reaches the daemon by a poll.
"""

from collections.abc import Mapping

from channels.telegram.emulator import Hang
from tests.faults.instants import Instant
from tests.faults.on_telegram import TEAM, OnTelegram
from tests.faults.scenarios import SCENARIOS, Scenario, grows
from tests.faults.scene import LEFT, Scene
from tests.faults.stage import answers

FULL_CHARS = 3000
"""Of a paragraph that leaves no room for another one in a message."""
SHORT = "Never mind."
REASON = "not on a Sunday"
PARTS = tuple(f"{name} part: {'word ' * (FULL_CHARS // 5)}end." for name in ("One", "Two", "Last"))


async def _slow(scene: Scene) -> None:
    stage = scene.stage
    assert isinstance(stage, OnTelegram)
    gate = stage.model.gate()
    stage.model.say(gate, "Here I am.", key="think", times=None)

    async def think() -> None:
        await stage.until(lambda: stage.telegram.called("sendChatAction"))
        gate.open()

    scene.live(think())
    await scene.say("ann", "think", "Here I am.")


async def _drafted(scene: Scene) -> None:
    stage = scene.stage
    assert isinstance(stage, OnTelegram)
    gate = stage.model.gate()
    stage.model.say("Here ", gate, "I am.", key="think", times=None)

    async def read() -> None:
        # Its end must not come together with it: then the answer is sent at once.
        await stage.until(lambda: stage.telegram.called("sendMessageDraft"))
        gate.open()

    scene.live(read())
    await scene.say("ann", "think", "Here I am.")


async def _group(scene: Scene) -> None:
    await grows(scene, TEAM)


async def _group_asks(scene: Scene) -> None:
    # Private chats are numbered together; of a number that nobody knows nothing can be looked for.
    stage = scene.stage
    stage.model.say("Hello Olga.", key="good day", times=None)
    await scene.say("olga", "good day", "Hello Olga.")
    scene.stage.model.call("knock", {"what": "on wood"}, round=0, key="knock", times=None)
    scene.hold_tools("knock")
    scene.write("knock", "So ", "be it.", round=1)

    async def ask_in_team() -> None:
        await stage.until(lambda: "Hello Olga." in answers(stage.chat("olga")))
        await scene.say("bob", "please knock", "So be it.", where=TEAM)

    scene.act(ask_in_team())


async def _long(scene: Scene) -> None:
    first, *more = PARTS
    scene.write("tell", first, *(f"\n\n{one}" for one in more))
    await scene.say("ann", "tell me", *PARTS)


async def _long_in_group(scene: Scene) -> None:
    first, *more = PARTS
    scene.write("tell", first, *(f"\n\n{one}" for one in more))
    await scene.say("ann", "tell me", *PARTS, where=TEAM)


async def _long_card(scene: Scene) -> None:
    what = {"what": f"on {'wood ' * FULL_CHARS}"}
    scene.stage.model.call("knock", what, round=0, key="knock", times=None)
    scene.write("knock", "So ", "be it.", round=1)
    await scene.say("ann", "please knock", "So be it.")


async def _file_out(scene: Scene) -> None:
    model, sums = scene.stage.model, "sums.csv"
    written, sent = {"path": sums, "content": "1;2\n"}, {"path": sums, "caption": "The sums."}
    model.call("write_file", written, round=0, key="sums", times=None)
    model.call("send_file", sent, round=1, key="sums", times=None)
    scene.write("sums", "There ", "they are.", round=2)
    await scene.say("ann", "the sums, please", "The sums.", "There they are.")


async def _shorter(scene: Scene) -> None:
    stage = scene.stage
    first, *more = PARTS
    gate = stage.model.gate()
    stage.model.say(first, *(f"\n\n{one}" for one in more), gate, cut=True, key="tell")
    stage.model.say(SHORT, key="tell", times=None)

    async def break_off() -> None:
        await stage.until(lambda: len(stage.chat(TEAM).shown) == len(PARTS))
        gate.open()

    scene.act(break_off())
    await scene.say("ann", "tell me", SHORT, where=TEAM)


async def _reasoned(scene: Scene) -> None:
    scene.stage.model.call("knock", {"what": LEFT}, round=0, key="knock", times=None)
    scene.write("knock", "Then ", "not.", round=1)
    await scene.say("ann", "please knock", "Then not.")
    scene.act(_give_a_reason(scene))


async def _give_a_reason(scene: Scene) -> None:
    """Be Olga, who presses again where the question for her reason was lost with the daemon."""
    stage = scene.stage
    assert isinstance(stage, OnTelegram)
    cards = stage.chat("olga")
    (card,) = await stage.until(lambda: cards.cards)
    while not (asked := stage.questions("olga")):
        kills = scene.kills
        press = await stage.press("olga", "olga", card, "deny_with_reason", call=0)
        scene.deeds.append(press)
        await stage.until(
            lambda press=press, kills=kills: (
                stage.questions("olga")
                or (scene.kills > kills and stage.listening and press.confirmed)
            )
        )
    scene.deeds.append(await stage.reply("olga", asked[0], REASON))
    await stage.until(lambda: REASON in cards.cards[0].calls[0].says)


async def _file(scene: Scene) -> None:
    scene.stage.model.call("read_attachment", {"id": 1}, round=0, key="look", times=None)
    scene.write("look", "A ", "file.", round=1)
    await scene.say("ann", "look", "A file.", files={"a.txt": b"milk"})


ON_TELEGRAM: Mapping[str, Scenario] = {
    **{
        name: SCENARIOS[name]
        for name in ("text", "approved", "shell", "denied", "batch", "edited", "refused")
    },
    "slow": Scenario(play=_slow),
    "drafted": Scenario(play=_drafted),
    "group": Scenario(play=_group),
    "group asks": Scenario(play=_group_asks),
    "long": Scenario(play=_long),
    "long in group": Scenario(play=_long_in_group),
    "long card": Scenario(play=_long_card),
    "file": Scenario(play=_file),
    "file out": Scenario(play=_file_out),
    "shorter": Scenario(play=_shorter, stands={TEAM: (SHORT,)}),
    "reasoned": Scenario(play=_reasoned),
}


def cut(scenario: Scenario, method: str, number: int, *, carried_out: bool) -> Scenario:
    """Let a call of the Bot API stand, so that it can be killed before its answer.

    Args:
        scenario: What takes place.
        method: Of the Bot API.
        number: Which of its calls, the first is 1.
        carried_out: It has its effect; else it never has.
    """

    async def play(scene: Scene) -> None:
        assert isinstance(scene.stage, OnTelegram)
        hang = Hang(carried_out=carried_out)
        scene.stage.telegram.will(method, *[None] * (number - 1), hang)

        async def stand() -> None:
            await hang.reached()
            await scene.instants.passed(Instant(what="api", name=method, when="during"))

        scene.live(stand())
        await scenario.play(scene)

    return Scenario(
        play=play,
        platform=scenario.platform,
        channel=scenario.channel,
        told=scenario.told,
        stands=scenario.stands,
    )
