"""Commands act at once, for whoever may use them, and say what they did."""

from pathlib import Path

import pytest
from zeroclaw_test_platform.chats import Message

from tests.journeys.world import World, world

pytestmark = pytest.mark.slow


async def told(here: World, who: str, text: str) -> str:
    """Let somebody write a command, and return what they are told."""
    before = len(here.chat(who).answers)
    await here.say(who, text)
    await here.until(lambda: len(here.chat(who).answers) > before)
    return here.chat(who).answers[-1]


async def test_help_whoami_and_what_is_unknown(tmp_path: Path) -> None:
    """Nobody has to read a manual, and a typo is told, not sent to the model (P10)."""
    async with world(tmp_path) as here:
        assert "/stop" in await told(here, "ann", "/help")
        assert "person:ann" in await told(here, "ann", "/whoami")
        assert "operator" in await told(here, "olga", "/whoami")
        assert "/help" in await told(here, "ann", "/hlep me")
        assert "nothing to retry" in await told(here, "ann", "/retry")
        assert "loopback" in await told(here, "olga", "/status")
        assert here.model.requests == []


async def test_commands_act_while_a_turn_runs(tmp_path: Path) -> None:
    """They do not wait in line (P2)."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One ", gate, "two.")
        await here.say("ann", "count")
        await gate.reached()
        await here.say("ann", "/whoami")
        await here.until(lambda: any("person:ann" in text for text in here.chat("ann").answers))
        gate.open()
        await here.until(lambda: "One two." in here.chat("ann").answers)


async def two_cards(here: World) -> tuple[Message, Message]:
    """Two people want something: Ann two calls, Bob one."""
    here.model.calls(("knock", {"what": "a"}), ("knock", {"what": "b"}), key="ann's", round=0)
    here.model.say("Done.", key="ann's", round=1)
    here.model.call("knock", {"what": "c"}, key="bob's", round=0)
    here.model.say("Done.", key="bob's", round=1)
    await here.say("ann", "ann's")
    first = await here.carded()
    await here.say("bob", "bob's")
    await here.until(lambda: len(here.chat("olga").open_cards) == 2)
    return first, here.chat("olga").open_cards[1]


async def test_numbers_count_up_over_all_cards_of_a_chat(tmp_path: Path) -> None:
    """`/approve 1 3` names calls of two cards; a number that is nobody's runs nothing. P5."""
    async with world(tmp_path, platform={"has_buttons": False}) as here:
        first, second = await two_cards(here)
        assert [call.number for call in first.asked.calls] == [1, 2]
        assert [call.number for call in second.asked.calls] == [3]
        pending = await told(here, "olga", "/pending")
        assert [f"`{number}`" in pending for number in (1, 2, 3)] == [True] * 3
        assert "no call" in await told(here, "olga", "/approve 9")
        assert here.bench.runs == []
        await here.say("olga", "/approve 1 3")
        await here.say("olga", "/deny 2 not that one")
        await here.answered("ann", "Done.")
        await here.answered("bob", "Done.")
        assert sorted(here.bench.ran()) == ["a", "c"]
        await here.until(
            lambda: (first.hows, second.hows) == (["approved", "denied"], ["approved"])
        )
        assert "Nothing waits" in await told(here, "olga", "/pending")


async def test_a_number_is_good_in_the_chat_that_it_was_given_in(tmp_path: Path) -> None:
    """Ann can't use the operator's number, and Bob's chat has none of his own."""
    async with world(tmp_path, platform={"has_buttons": False}) as here:
        await two_cards(here)
        assert "approved" not in await told(here, "ann", "/approve 1")
        assert "approved" not in await told(here, "bob", "/approve 3")
        assert here.bench.runs == []


async def test_a_number_is_never_used_again(tmp_path: Path) -> None:
    """After a restart the next card goes on counting. P5."""
    async with world(tmp_path, platform={"has_buttons": False}) as here:
        await two_cards(here)
        await here.say("olga", "/deny 1 2 3")
        await here.until(lambda: here.chat("olga").open_cards == [])
        await here.daemon.restart()
        here.model.call("knock", {"what": "d"}, key="again", round=0)
        await here.say("ann", "again")
        card = await here.carded()
        assert [call.number for call in card.asked.calls] == [4]


async def test_a_tool_that_is_called_by_hand_needs_no_model(tmp_path: Path) -> None:
    """The result is the answer, with its receipt; bad arguments are told as to a model. S2-08."""
    async with world(tmp_path) as here:
        text = await told(here, "olga", '/tool peek {"what": "the sky"}')
        assert "peek: the sky" in text
        assert here.chat("olga").receipts[0].startswith("receipt: peek · ok")
        assert "can't be used" in await told(here, "olga", "/tool peek {")
        assert "no tool `peak`" in await told(here, "olga", "/tool peak")
        assert "Name the tool" in await told(here, "olga", "/tool")
        assert "not for you" in await told(here, "ann", '/tool peek {"what": "x"}')
        assert here.model.requests == []
        assert here.bench.ran() == ["the sky"]


async def test_later_requests_see_what_was_called_by_hand(tmp_path: Path) -> None:
    """The model reads the call and its result as its own conversation. S1-17."""
    async with world(tmp_path) as here:
        await told(here, "olga", '/tool peek {"what": "the sky"}')
        here.model.say("It was blue.")
        await here.say("olga", "what did I look at?")
        await here.until(lambda: here.chat("olga").answers[-1] == "It was blue.")
        roles = [message["role"] for message in here.model.requests[0].messages[1:]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]
