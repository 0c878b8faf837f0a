"""A stranger at the door: silence, or a code that an operator answers; and how people leave again.

Under `pairing = "code"` Mallory, Trudy, Eve and Victor are strangers; Olga is the operator.
"""

from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.test_an_approval import ask_to_knock
from tests.journeys.test_the_command_line import zeroclaw
from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow

CODES = {"loopback": {"pairing": "code"}}
NOBODY: dict[str, object] = {"loopback": {"pairing": "code", "allowed_users": list[str]()}}


async def receive_code(world: World, person: str = "mallory") -> str:
    """Let a stranger write in private; return the code in the bot's answer."""
    await world.say(person, "let me in")
    (answer,) = await world.until(lambda: world.chat(person).answers)
    assert answer.startswith("Your code is `")
    return answer.split("`")[1]


async def claim(world: World) -> str:
    """Return the code that the daemon printed."""
    lines = await world.until(
        lambda: [line for line in world.daemon.stdout if "  operator  " in line]
    )
    return lines[-1].split("send ")[1].split()[0]


async def test_closed_is_silence(tmp_path: Path) -> None:
    """No answer is sent, no approval requested, and the model hears nothing (P4, S2-03)."""
    async with open_world(tmp_path) as world:
        await world.platform.confirmed(await world.say("mallory", "let me in"))
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")
        assert world.chat("mallory").from_bot == []
        assert world.chat("olga").from_bot == []


async def test_an_approved_stranger_is_answered(tmp_path: Path) -> None:
    """One code, one card with it; once approved, they hear of it, are answered, and known after a kill.

    P4, P5, S2-03.
    """
    async with open_world(tmp_path, channels=CODES) as world:
        code = await receive_code(world)
        card = await world.card()
        (call,) = card.request.calls
        assert f"code: {code}" in call.arguments
        assert "sender id: mallory" in call.arguments
        await world.platform.confirmed(await world.say("mallory", "hello?"))
        assert len(world.chat("mallory").from_bot) == 1
        pressed = await world.press("olga", card)
        assert pressed.toast == "approved: loopback:mallory"
        await world.until(lambda: card.outcomes == ["approved"])
        await world.until(lambda: world.chat("mallory").answers[-1] == "You may talk to me now.")
        world.model.say("Hello, Mallory.", key="good morning")
        await world.say("mallory", "good morning")
        await world.until(lambda: world.chat("mallory").answers[-1] == "Hello, Mallory.")
        await world.daemon.restart()
        world.model.say("Still here.", key="and now")
        await world.say("mallory", "and now")
        await world.until(lambda: world.chat("mallory").answers[-1] == "Still here.")
        assert [request.last_user for request in world.model.requests] == [
            "good morning",
            "and now",
        ]


async def test_a_denied_stranger_meets_silence(tmp_path: Path) -> None:
    """They hear nothing more, and a second answer changes nothing (P4, P5)."""
    async with open_world(tmp_path, channels=CODES) as world:
        await receive_code(world)
        card = await world.card()
        await world.press("olga", card, "deny")
        await world.until(lambda: card.outcomes == ["denied"])
        again = await world.press("olga", card)
        assert again.toast == "already denied by olga"
        await world.platform.confirmed(await world.say("mallory", "please"))
        assert len(world.chat("mallory").from_bot) == 1
        assert world.model.requests == []


async def test_silence_of_operators_ends_it_as_expired(tmp_path: Path) -> None:
    """The card shows it, and a late press says so and admits no stranger (P5)."""
    channels = {"loopback": {"pairing": "code", "pairing_s": 3.0}}
    async with open_world(tmp_path, channels=channels) as world:
        await receive_code(world)
        card = (await world.until(lambda: world.chat("olga").cards))[0]
        await world.until(lambda: card.outcomes == ["expired"])
        pressed = await world.press("olga", card)
        assert pressed.toast.startswith("too late: it expired at")
        await world.platform.confirmed(await world.say("mallory", "am I in?"))
        assert len(world.chat("mallory").from_bot) == 1


async def test_a_kill_loses_no_question(tmp_path: Path) -> None:
    """The card that was shown before is answered by the next process (P5)."""
    async with open_world(tmp_path, channels=CODES) as world:
        await receive_code(world)
        card = await world.card()
        await world.daemon.restart()
        await world.press("olga", card)
        await world.until(lambda: card.outcomes == ["approved"])
        await world.until(lambda: world.chat("mallory").answers[-1] == "You may talk to me now.")


async def test_a_group_never_reads_a_code(tmp_path: Path) -> None:
    """The whole group would read it; the bot is silent, and there is no card (P4)."""
    async with open_world(tmp_path, channels=CODES) as world:
        await world.platform.confirmed(await world.say("mallory", "let me in", chat="#lobby"))
        # The next answer comes after any effect that it would have had.
        await receive_code(world, "trudy")
        await world.card()
        assert world.chat("#lobby").from_bot == []
        assert len(world.chat("olga").cards) == 1


async def test_of_four_strangers_three_get_a_code(tmp_path: Path) -> None:
    """Until one of them has been answered (P4)."""
    async with open_world(tmp_path, channels=CODES) as world:
        for person in ("mallory", "trudy", "eve"):
            await receive_code(world, person)
        await world.platform.confirmed(await world.say("victor", "let me in"))
        assert world.chat("victor").from_bot == []
        await world.until(lambda: len(world.chat("olga").open_cards) == 3)
        await world.press("olga", world.chat("olga").cards[0], "deny")
        await receive_code(world, "victor")


async def test_without_buttons_a_stranger_is_answered_by_number(tmp_path: Path) -> None:
    """Or by the code that they read out (P5)."""
    async with open_world(tmp_path, channels=CODES, platform={"has_buttons": False}) as world:
        await receive_code(world)
        card = await world.card()
        assert "/approve 1" in card.text
        await world.say("olga", "/approve 1")
        await world.until(lambda: card.outcomes == ["approved"])
        code = await receive_code(world, "trudy")
        await world.say("olga", f"/pair deny {code}")
        await world.until(lambda: "denied: loopback:trudy" in world.chat("olga").texts)


async def test_the_command_line_answers_a_stranger(tmp_path: Path) -> None:
    """By the code that they read out; the list says who waits and who is in (P10)."""
    async with open_world(tmp_path, channels=CODES) as world:
        code = await receive_code(world)
        card = await world.card()
        assert "mallory" in (await zeroclaw(world, "pair", "list"))[1]
        assert (await zeroclaw(world, "pair", "approve", "ABCD2345"))[0] == 1
        assert await zeroclaw(world, "pair", "approve", code) == (
            0,
            "approved: loopback:mallory\n",
            "",
        )
        await world.until(lambda: card.outcomes == ["approved"])
        await world.daemon.terminate()
        code, output, _ = await zeroclaw(world, "pair", "list")
        assert (code, "admitted by the operator on this machine" in output) == (0, True)


# --- putting out ---------------------------------------------------------------------------------


async def test_revoking_stops_a_running_answer(tmp_path: Path) -> None:
    """At once; the text so far stays, and nothing more is answered, nor after a kill (P4)."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("Once upon a time ", gate, "there was more.")
        await world.say("ann", "a story")
        await gate.reached()
        await world.say("olga", "/pair revoke ann")
        await world.until(lambda: world.chat("ann").answers)
        assert "topped by olga: you may no longer talk to me" in world.chat("ann").answers[0]
        await world.platform.confirmed(await world.say("ann", "why?"))
        await world.daemon.restart()
        await world.platform.confirmed(await world.say("ann", "why?"))
        assert len(world.chat("ann").answers) == 1
        assert len(world.model.requests) == 1
        assert (await zeroclaw(world, "pair", "approve", "ann"))[0] == 0
        world.model.say("Welcome back.", key="hello")
        await world.say("ann", "hello")
        await world.until(lambda: world.chat("ann").answers[-1] == "Welcome back.")


async def test_revoking_ends_a_question_of_theirs(tmp_path: Path) -> None:
    """The card shows that it was stopped; a press runs nothing (P3, P5)."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        assert (await zeroclaw(world, "pair", "revoke", "ann"))[0] == 0
        await world.until(lambda: card.outcomes == ["stopped"])
        await world.press("olga", card)
        assert world.bench.runs == []


async def test_revoking_stops_a_running_tool(tmp_path: Path) -> None:
    """It is cancelled, and the turn goes no further (P3, K24)."""
    async with open_world(tmp_path) as world:
        hold = Holds()
        world.bench.will("peek", hold)
        world.model.call("peek", {"what": "far away"}, round=0, key="look")
        await world.say("ann", "look")
        await hold.reached()
        await world.say("olga", "/pair revoke loopback:ann")
        await world.until(lambda: any("topped" in text for text in world.chat("ann").answers))
        await world.until(lambda: world.bench.runs[0].ended)
        assert len(world.model.requests) == 1


# --- the first operator --------------------------------------------------------------------------


async def test_the_printed_code_makes_the_first_operator(tmp_path: Path) -> None:
    """The first sender of the code in private becomes the operator for good; no log has the code (P8)."""
    async with open_world(tmp_path, channels=NOBODY, people=[]) as world:
        code = await claim(world)
        await world.platform.confirmed(await world.say("eve", code, chat="#lobby"))
        await world.platform.confirmed(await world.say("eve", "ABCD2345"))
        assert world.chat("eve").from_bot == []
        await world.say("victor", code)
        await world.until(lambda: world.chat("victor").answers)
        assert world.chat("victor").answers[0].startswith("You are an operator of this bot now")
        await receive_code(world)
        card = await world.card("victor")
        await world.platform.confirmed(await world.say("trudy", code))
        await world.press("victor", card)
        await world.until(lambda: card.outcomes == ["approved"])
        assert code not in world.daemon.stderr
        printed = len(world.daemon.stdout)
        await world.daemon.restart()
        await world.until(lambda: any("ready" in line for line in world.daemon.stdout[printed:]))
        assert not any("  operator  " in line for line in world.daemon.stdout[printed:])
        await world.say("victor", "/pair")
        await world.until(lambda: "admitted by the code" in world.chat("victor").ever)
