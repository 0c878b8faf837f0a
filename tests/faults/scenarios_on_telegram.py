"""The scenarios on Telegram: the general ones, and Telegram's own.

Ann's direct chat shows an unfinished answer as a native draft, the group as a message that is edited; a
long call comes as a file; messages reach the daemon by polling.
"""

from collections.abc import Mapping

from channels.telegram.emulator import Hang
from tests.faults.crash_run import LEFT, CrashRun
from tests.faults.kill_points import KillPoint
from tests.faults.on_telegram import TEAM, OnTelegram
from tests.faults.platform_world import answers
from tests.faults.scenarios import SCENARIOS, Scenario, grows

FULL_CHARS = 3000
"""The length of a paragraph that leaves no room for another one in a message."""
SHORT = "Never mind."
REASON = "not on a Sunday"
PARTS = tuple(f"{name} part: {'word ' * (FULL_CHARS // 5)}end." for name in ("One", "Two", "Last"))


async def _slow(run: CrashRun) -> None:
    world = run.world
    assert isinstance(world, OnTelegram)
    gate = world.model.gate()
    world.model.say(gate, "Here I am.", key="think", times=None)

    async def think() -> None:
        await world.until(lambda: world.telegram.called("sendChatAction"))
        gate.open()

    run.keep_running(think())
    await run.say("ann", "think", "Here I am.")


async def _drafted(run: CrashRun) -> None:
    world = run.world
    assert isinstance(world, OnTelegram)
    gate = world.model.gate()
    world.model.say("Here ", gate, "I am.", key="think", times=None)

    async def read() -> None:
        # The end must come later than the draft, else the answer is sent at once.
        await world.until(lambda: world.telegram.called("sendMessageDraft"))
        gate.open()

    run.keep_running(read())
    await run.say("ann", "think", "Here I am.")


async def _group(run: CrashRun) -> None:
    await grows(run, TEAM)


async def _group_asks(run: CrashRun) -> None:
    # Private chats share one numbering; without a known number the bot can look nothing up.
    world = run.world
    world.model.say("Hello Olga.", key="good day", times=None)
    await run.say("olga", "good day", "Hello Olga.")
    run.world.model.call("knock", {"what": "on wood"}, round=0, key="knock", times=None)
    run.hold_tools("knock")
    run.write("knock", "So ", "be it.", round=1)

    async def ask_in_team() -> None:
        await world.until(lambda: "Hello Olga." in answers(world.chat("olga")))
        await run.say("bob", "please knock", "So be it.", where=TEAM)

    run.act(ask_in_team())


async def _long(run: CrashRun) -> None:
    first, *rest = PARTS
    run.write("tell", first, *(f"\n\n{part}" for part in rest))
    await run.say("ann", "tell me", *PARTS)


async def _long_in_group(run: CrashRun) -> None:
    first, *rest = PARTS
    run.write("tell", first, *(f"\n\n{part}" for part in rest))
    await run.say("ann", "tell me", *PARTS, where=TEAM)


async def _long_card(run: CrashRun) -> None:
    what = {"what": f"on {'wood ' * FULL_CHARS}"}
    run.world.model.call("knock", what, round=0, key="knock", times=None)
    run.write("knock", "So ", "be it.", round=1)
    await run.say("ann", "please knock", "So be it.")


async def _file_out(run: CrashRun) -> None:
    model, sums = run.world.model, "sums.csv"
    written, sent = {"path": sums, "content": "1;2\n"}, {"path": sums, "caption": "The sums."}
    model.call("write_file", written, round=0, key="sums", times=None)
    model.call("send_file", sent, round=1, key="sums", times=None)
    run.write("sums", "There ", "they are.", round=2)
    await run.say("ann", "the sums, please", "The sums.", "There they are.")


async def _shorter(run: CrashRun) -> None:
    world = run.world
    first, *rest = PARTS
    gate = world.model.gate()
    world.model.say(first, *(f"\n\n{part}" for part in rest), gate, cut=True, key="tell")
    world.model.say(SHORT, key="tell", times=None)

    async def break_off() -> None:
        await world.until(lambda: len(world.chat(TEAM).messages) == len(PARTS))
        gate.open()

    run.act(break_off())
    await run.say("ann", "tell me", SHORT, where=TEAM)


async def _reasoned(run: CrashRun) -> None:
    run.world.model.call("knock", {"what": LEFT}, round=0, key="knock", times=None)
    run.write("knock", "Then ", "not.", round=1)
    await run.say("ann", "please knock", "Then not.")
    run.act(_give_a_reason(run))


async def _give_a_reason(run: CrashRun) -> None:
    """Play Olga, who presses again if the question for her reason was lost with the daemon."""
    world = run.world
    assert isinstance(world, OnTelegram)
    cards = world.chat("olga")
    (card,) = await world.until(lambda: cards.cards)
    while not (questions := world.questions("olga")):
        kills = run.kills
        press = await world.press("olga", "olga", card, "deny_with_reason", call=0)
        run.actions.append(press)
        await world.until(
            lambda press=press, kills=kills: (
                world.questions("olga")
                or (run.kills > kills and world.listening and press.confirmed)
            )
        )
    run.actions.append(await world.reply("olga", questions[0], REASON))
    await world.until(lambda: REASON in cards.cards[0].calls[0].text)


async def _file(run: CrashRun) -> None:
    run.world.model.call("read_attachment", {"id": 1}, round=0, key="look", times=None)
    run.write("look", "A ", "file.", round=1)
    await run.say("ann", "look", "A file.", files={"a.txt": b"milk"})


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
    "shorter": Scenario(play=_shorter, texts={TEAM: (SHORT,)}),
    "reasoned": Scenario(play=_reasoned),
}


def cut(scenario: Scenario, method: str, number: int, *, carried_out: bool) -> Scenario:
    """Hold a call of the Bot API, so that the daemon can be killed before its answer.

    Args:
        scenario: The scenario to play.
        method: The method of the call.
        number: Which call of that method, from 1.
        carried_out: The call takes effect.
    """

    async def play(run: CrashRun) -> None:
        assert isinstance(run.world, OnTelegram)
        hang = Hang(carried_out=carried_out)
        run.world.telegram.will(method, *[None] * (number - 1), hang)

        async def stand() -> None:
            await hang.reached()
            await run.kill_points.reach(KillPoint(what="api", name=method, when="during"))

        run.keep_running(stand())
        await scenario.play(run)

    return Scenario(
        play=play,
        platform=scenario.platform,
        channel=scenario.channel,
        notice=scenario.notice,
        texts=scenario.texts,
    )
