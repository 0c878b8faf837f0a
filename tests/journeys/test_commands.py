"""Commands act at once, for people who may use them, and report the result."""

from pathlib import Path

import pytest
from zeroclaw_test_platform.chats import Message

from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow


async def reply_to(world: World, person: str, text: str) -> str:
    """Let a person write a command, and return the bot's reply."""
    before = len(world.chat(person).answers)
    await world.say(person, text)
    await world.until(lambda: len(world.chat(person).answers) > before)
    return world.chat(person).answers[-1]


async def test_help_whoami_and_what_is_unknown(tmp_path: Path) -> None:
    """No manual is needed, and a typo gets a reply instead of going to the model (P10)."""
    async with open_world(tmp_path) as world:
        assert "/stop" in await reply_to(world, "ann", "/help")
        assert "person:ann" in await reply_to(world, "ann", "/whoami")
        assert "operator" in await reply_to(world, "olga", "/whoami")
        assert "/help" in await reply_to(world, "ann", "/hlep me")
        assert "nothing to retry" in await reply_to(world, "ann", "/retry")
        assert "loopback" in await reply_to(world, "olga", "/status")
        assert world.model.requests == []


async def test_commands_act_while_a_turn_runs(tmp_path: Path) -> None:
    """They do not wait in line (P2)."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One ", gate, "two.")
        await world.say("ann", "count")
        await gate.reached()
        await world.say("ann", "/whoami")
        await world.until(lambda: any("person:ann" in text for text in world.chat("ann").answers))
        gate.open()
        await world.until(lambda: "One two." in world.chat("ann").answers)


async def two_cards(world: World) -> tuple[Message, Message]:
    """Two people want something: Ann two calls, Bob one."""
    world.model.calls(("knock", {"what": "a"}), ("knock", {"what": "b"}), key="ann's", round=0)
    world.model.say("Done.", key="ann's", round=1)
    world.model.call("knock", {"what": "c"}, key="bob's", round=0)
    world.model.say("Done.", key="bob's", round=1)
    await world.say("ann", "ann's")
    first = await world.card()
    await world.say("bob", "bob's")
    await world.until(lambda: len(world.chat("olga").open_cards) == 2)
    return first, world.chat("olga").open_cards[1]


async def test_numbers_count_up_over_all_cards_of_a_chat(tmp_path: Path) -> None:
    """`/approve 1 3` names calls of two cards; an unknown number runs nothing. P5."""
    async with open_world(tmp_path, platform={"has_buttons": False}) as world:
        first, second = await two_cards(world)
        assert [call.number for call in first.request.calls] == [1, 2]
        assert [call.number for call in second.request.calls] == [3]
        pending = await reply_to(world, "olga", "/pending")
        assert [f"`{number}`" in pending for number in (1, 2, 3)] == [True] * 3
        assert "no call" in await reply_to(world, "olga", "/approve 9")
        assert world.bench.runs == []
        await world.say("olga", "/approve 1 3")
        await world.say("olga", "/deny 2 not that one")
        await world.expect("ann", "Done.")
        await world.expect("bob", "Done.")
        assert sorted(world.bench.ran()) == ["a", "c"]
        await world.until(
            lambda: (first.outcomes, second.outcomes) == (["approved", "denied"], ["approved"])
        )
        assert "Nothing waits" in await reply_to(world, "olga", "/pending")


async def test_a_number_is_good_in_the_chat_that_it_was_given_in(tmp_path: Path) -> None:
    """Ann can't use the operator's number, and Bob's chat has none of his own."""
    async with open_world(tmp_path, platform={"has_buttons": False}) as world:
        await two_cards(world)
        assert "approved" not in await reply_to(world, "ann", "/approve 1")
        assert "approved" not in await reply_to(world, "bob", "/approve 3")
        assert world.bench.runs == []


async def test_a_number_is_never_used_again(tmp_path: Path) -> None:
    """After a restart the next card goes on counting. P5."""
    async with open_world(tmp_path, platform={"has_buttons": False}) as world:
        await two_cards(world)
        await world.say("olga", "/deny 1 2 3")
        await world.until(lambda: world.chat("olga").open_cards == [])
        await world.daemon.restart()
        world.model.call("knock", {"what": "d"}, key="again", round=0)
        await world.say("ann", "again")
        card = await world.card()
        assert [call.number for call in card.request.calls] == [4]


async def test_a_tool_that_is_called_by_hand_needs_no_model(tmp_path: Path) -> None:
    """The result is the answer, with its receipt; bad arguments get the model's error text. S2-08."""
    async with open_world(tmp_path) as world:
        text = await reply_to(world, "olga", '/tool peek {"what": "the sky"}')
        assert "peek: the sky" in text
        assert world.chat("olga").receipts[0].startswith("receipt: peek · ok")
        assert "can't be used" in await reply_to(world, "olga", "/tool peek {")
        assert "no tool `peak`" in await reply_to(world, "olga", "/tool peak")
        assert "Name the tool" in await reply_to(world, "olga", "/tool")
        assert "not for you" in await reply_to(world, "ann", '/tool peek {"what": "x"}')
        assert world.model.requests == []
        assert world.bench.ran() == ["the sky"]


async def test_later_requests_see_what_was_called_by_hand(tmp_path: Path) -> None:
    """The model reads the call and its result as its own conversation. S1-17."""
    async with open_world(tmp_path) as world:
        await reply_to(world, "olga", '/tool peek {"what": "the sky"}')
        world.model.say("It was blue.")
        await world.say("olga", "what did I look at?")
        await world.until(lambda: world.chat("olga").answers[-1] == "It was blue.")
        roles = [message["role"] for message in world.model.requests[0].messages[1:]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]
