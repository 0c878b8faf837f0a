"""A stranger at the door: silence, or a code that an operator answers; and how people leave again.

Under `pairing = "code"` Mallory, Trudy, Eve and Victor are strangers; Olga is the operator.
"""

from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.test_an_approval import ask_to_knock
from tests.journeys.test_the_command_line import zeroclaw
from tests.journeys.world import World, world

pytestmark = pytest.mark.slow

CODES = {"loopback": {"pairing": "code"}}
NOBODY: dict[str, object] = {"loopback": {"pairing": "code", "allowed_users": list[str]()}}


async def told_a_code(here: World, who: str = "mallory") -> str:
    """Let a stranger write in private; return the code that they are told."""
    await here.say(who, "let me in")
    (told,) = await here.until(lambda: here.chat(who).answers)
    assert told.startswith("Your code is `")
    return told.split("`")[1]


async def claim(here: World) -> str:
    """Return the code that the daemon printed."""
    lines = await here.until(lambda: [line for line in here.daemon.said if "  operator  " in line])
    return lines[-1].split("send ")[1].split()[0]


async def test_closed_is_silence(tmp_path: Path) -> None:
    """Nothing is said, nothing is asked, the model hears nothing (P4, S2-03)."""
    async with world(tmp_path) as here:
        await here.platform.confirmed(await here.say("mallory", "let me in"))
        here.model.say("Hello.")
        await here.say("ann", "hi")
        await here.answered("ann", "Hello.")
        assert here.chat("mallory").from_bot == []
        assert here.chat("olga").from_bot == []


async def test_an_approved_stranger_is_answered(tmp_path: Path) -> None:
    """One code, one card with it; approved, they are told, answered, and known after a kill.

    P4, P5, S2-03.
    """
    async with world(tmp_path, channels=CODES) as here:
        code = await told_a_code(here)
        card = await here.carded()
        (call,) = card.asked.calls
        assert f"code: {code}" in call.arguments
        assert "sender id: mallory" in call.arguments
        await here.platform.confirmed(await here.say("mallory", "hello?"))
        assert len(here.chat("mallory").from_bot) == 1
        pressed = await here.press("olga", card)
        assert pressed.toast == "approved: loopback:mallory"
        await here.until(lambda: card.hows == ["approved"])
        await here.until(lambda: here.chat("mallory").answers[-1] == "You may talk to me now.")
        here.model.say("Hello, Mallory.", key="good morning")
        await here.say("mallory", "good morning")
        await here.until(lambda: here.chat("mallory").answers[-1] == "Hello, Mallory.")
        await here.daemon.restart()
        here.model.say("Still here.", key="and now")
        await here.say("mallory", "and now")
        await here.until(lambda: here.chat("mallory").answers[-1] == "Still here.")
        assert [one.last_user for one in here.model.requests] == ["good morning", "and now"]


async def test_a_denied_stranger_meets_silence(tmp_path: Path) -> None:
    """They are told nothing more, and a second answer changes nothing (P4, P5)."""
    async with world(tmp_path, channels=CODES) as here:
        await told_a_code(here)
        card = await here.carded()
        await here.press("olga", card, "deny")
        await here.until(lambda: card.hows == ["denied"])
        again = await here.press("olga", card)
        assert again.toast == "already denied by olga"
        await here.platform.confirmed(await here.say("mallory", "please"))
        assert len(here.chat("mallory").from_bot) == 1
        assert here.model.requests == []


async def test_silence_of_operators_ends_it_as_expired(tmp_path: Path) -> None:
    """The card shows it, and a late press says so and lets nobody in (P5)."""
    channels = {"loopback": {"pairing": "code", "pairing_s": 3.0}}
    async with world(tmp_path, channels=channels) as here:
        await told_a_code(here)
        card = (await here.until(lambda: here.chat("olga").cards))[0]
        await here.until(lambda: card.hows == ["expired"])
        pressed = await here.press("olga", card)
        assert pressed.toast.startswith("too late: it expired at")
        await here.platform.confirmed(await here.say("mallory", "am I in?"))
        assert len(here.chat("mallory").from_bot) == 1


async def test_a_kill_loses_no_question(tmp_path: Path) -> None:
    """The card that was shown before is answered by the next process (P5)."""
    async with world(tmp_path, channels=CODES) as here:
        await told_a_code(here)
        card = await here.carded()
        await here.daemon.restart()
        await here.press("olga", card)
        await here.until(lambda: card.hows == ["approved"])
        await here.until(lambda: here.chat("mallory").answers[-1] == "You may talk to me now.")


async def test_a_group_is_never_told_a_code(tmp_path: Path) -> None:
    """Everybody would read it; there is silence, and no card (P4)."""
    async with world(tmp_path, channels=CODES) as here:
        await here.platform.confirmed(await here.say("mallory", "let me in", chat="#lobby"))
        # What comes next is answered after whatever would have come of it.
        await told_a_code(here, "trudy")
        await here.carded()
        assert here.chat("#lobby").from_bot == []
        assert len(here.chat("olga").cards) == 1


async def test_of_four_strangers_three_get_a_code(tmp_path: Path) -> None:
    """Until one of them has been answered (P4)."""
    async with world(tmp_path, channels=CODES) as here:
        for who in ("mallory", "trudy", "eve"):
            await told_a_code(here, who)
        await here.platform.confirmed(await here.say("victor", "let me in"))
        assert here.chat("victor").from_bot == []
        await here.until(lambda: len(here.chat("olga").open_cards) == 3)
        await here.press("olga", here.chat("olga").cards[0], "deny")
        await told_a_code(here, "victor")


async def test_without_buttons_a_stranger_is_answered_by_number(tmp_path: Path) -> None:
    """Or by the code that they read out (P5)."""
    async with world(tmp_path, channels=CODES, platform={"has_buttons": False}) as here:
        await told_a_code(here)
        card = await here.carded()
        assert "/approve 1" in card.text
        await here.say("olga", "/approve 1")
        await here.until(lambda: card.hows == ["approved"])
        code = await told_a_code(here, "trudy")
        await here.say("olga", f"/pair deny {code}")
        await here.until(lambda: "denied: loopback:trudy" in here.chat("olga").texts)


async def test_the_command_line_answers_a_stranger(tmp_path: Path) -> None:
    """By the code that they read out; the list says who waits and who is in (P10)."""
    async with world(tmp_path, channels=CODES) as here:
        code = await told_a_code(here)
        card = await here.carded()
        assert "mallory" in (await zeroclaw(here, "pair", "list"))[1]
        assert (await zeroclaw(here, "pair", "approve", "ABCD2345"))[0] == 1
        assert await zeroclaw(here, "pair", "approve", code) == (
            0,
            "approved: loopback:mallory\n",
            "",
        )
        await here.until(lambda: card.hows == ["approved"])
        await here.daemon.terminate()
        code, out, _ = await zeroclaw(here, "pair", "list")
        assert (code, "admitted by the operator on this machine" in out) == (0, True)


# --- putting out ---------------------------------------------------------------------------------


async def test_revoking_stops_a_running_answer(tmp_path: Path) -> None:
    """At once; what was shown stays, and nothing more is answered, after a kill either (P4)."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("Once upon a time ", gate, "there was more.")
        await here.say("ann", "a story")
        await gate.reached()
        await here.say("olga", "/pair revoke ann")
        await here.until(lambda: here.chat("ann").answers)
        assert "topped: you may no longer talk to me by olga" in here.chat("ann").answers[0]
        await here.platform.confirmed(await here.say("ann", "why?"))
        await here.daemon.restart()
        await here.platform.confirmed(await here.say("ann", "why?"))
        assert len(here.chat("ann").answers) == 1
        assert len(here.model.requests) == 1
        assert (await zeroclaw(here, "pair", "approve", "ann"))[0] == 0
        here.model.say("Welcome back.", key="hello")
        await here.say("ann", "hello")
        await here.until(lambda: here.chat("ann").answers[-1] == "Welcome back.")


async def test_revoking_ends_a_question_of_theirs(tmp_path: Path) -> None:
    """The card shows that it was stopped; a press runs nothing (P3, P5)."""
    async with world(tmp_path) as here:
        card = await ask_to_knock(here)
        assert (await zeroclaw(here, "pair", "revoke", "ann"))[0] == 0
        await here.until(lambda: card.hows == ["stopped"])
        await here.press("olga", card)
        assert here.bench.runs == []


async def test_revoking_stops_a_running_tool(tmp_path: Path) -> None:
    """It is cancelled, and the turn goes no further (P3, K24)."""
    async with world(tmp_path) as here:
        hold = Holds()
        here.bench.will("peek", hold)
        here.model.call("peek", {"what": "far away"}, round=0, key="look")
        await here.say("ann", "look")
        await hold.reached()
        await here.say("olga", "/pair revoke loopback:ann")
        await here.until(lambda: any("topped" in one for one in here.chat("ann").answers))
        await here.until(lambda: here.bench.runs[0].ended)
        assert len(here.model.requests) == 1


# --- the first operator --------------------------------------------------------------------------


async def test_the_printed_code_makes_the_first_operator(tmp_path: Path) -> None:
    """Whoever sends it in private is the operator, once, and stays it; it is in no log (P8)."""
    async with world(tmp_path, channels=NOBODY, people=[]) as here:
        code = await claim(here)
        await here.platform.confirmed(await here.say("eve", code, chat="#lobby"))
        await here.platform.confirmed(await here.say("eve", "ABCD2345"))
        assert here.chat("eve").from_bot == []
        await here.say("victor", code)
        await here.until(lambda: here.chat("victor").answers)
        assert here.chat("victor").answers[0].startswith("You are an operator of this bot now")
        await told_a_code(here)
        card = await here.carded("victor")
        await here.platform.confirmed(await here.say("trudy", code))
        await here.press("victor", card)
        await here.until(lambda: card.hows == ["approved"])
        assert code not in here.daemon.stderr
        said = len(here.daemon.said)
        await here.daemon.restart()
        await here.until(lambda: any("ready" in line for line in here.daemon.said[said:]))
        assert not any("  operator  " in line for line in here.daemon.said[said:])
        await here.say("victor", "/pair")
        await here.until(lambda: "admitted by the code" in here.chat("victor").ever)
