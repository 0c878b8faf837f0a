"""Questions in the chat that is configured for all of them, and what comes where it takes none."""

from tests.fakes.house import World
from tests.fakes.scripted_model import asks_for
from zeroclaw.errors import ChannelRejected, ChannelUnavailable

POKE = asks_for(("poke", '{"a": 1}'))
TWO_POKES = asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}'))
TOLD = (
    "A question for the chat in `approvals.chat` was refused in `chat`, so each approver is asked in "
    "private: chat not found."
)


def routed(world: World, **settings: object) -> World:
    """Have all questions put into the chat `team`."""
    more = {"chat": "chat:team", **settings}
    world.configure(approvals=world.config.approvals.model_copy(update=more))
    return world


async def test_a_question_that_the_configured_chat_refuses_is_put_in_private(world: World) -> None:
    """A bot that is no member there would let every call wait for its deadline (P10)."""
    routed(world).model.will(TWO_POKES)
    world.platforms["chat"].will("ask", ChannelRejected("chat not found"))
    async with world.running() as house:
        await house.say("poke both", "ben")
        assert house.texts()[1:] == [TOLD]
        assert [call.number for call in house.card().calls] == [1, 2]
        await house.press()
        await house.say("/approve 2")
        assert house.endings() == [("approved", "Ada"), ("approved", "Ada")]
        assert "ok" in house.texts("ben")
        assert len(world.poke.runs) == 2


async def test_whoever_asked_is_not_asked_in_its_place_where_they_may_not_answer(
    world: World,
) -> None:
    """A refusal opens no way around the second pair of eyes (P5)."""
    both = ("person:ada", "person:ben")
    routed(world, approvers=both, requester_may_answer=False).model.will(POKE)
    world.platforms["chat"].will("ask", ChannelRejected("chat not found"))
    async with world.running() as house:
        await house.say("poke it")
        assert not any(shown.card for shown in world.platforms["chat"].standing(house.place()))
        assert house.card("ben").calls[0].tool == "poke"
        await house.press(who="ben")
        assert house.endings("ben") == [("approved", "Ben")]


async def test_where_all_read_the_card_whoever_asked_may_still_not_answer(world: World) -> None:
    """Neither by their press nor by its number (P5)."""
    both = ("person:ada", "person:ben")
    routed(world, approvers=both, requester_may_answer=False).model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        assert await house.press(at="team") == (
            "whoever asks may not approve; somebody else has to answer this"
        )
        await house.say("/approve 1", room="team")
        assert house.endings("team") == []
        assert world.poke.runs == []
        await house.press(who="ben", at="team")
        assert house.endings("team") == [("approved", "Ben")]


async def test_a_question_that_ended_meanwhile_is_put_to_nobody_else(world: World) -> None:
    """Operators read only that a card was refused."""
    routed(world).model.will(POKE)
    down = [ChannelUnavailable("down")] * 3
    world.platforms["chat"].will("ask", *down, ChannelRejected("chat not found"))
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.say("/stop", "ben")
        await house.advance(60)
        assert house.texts() == [
            "An approval card in `chat` was refused by the platform: chat not found."
        ]


async def test_nobody_is_asked_twice_of_a_card_that_each_refuses(world: World) -> None:
    """A question that no chat takes waits for its deadline, and is tried in each of them once."""
    routed(world).model.will(POKE)
    refused = [ChannelRejected("chat not found"), ChannelRejected("blocked")]
    world.platforms["chat"].will("ask", *refused)
    async with world.running() as house:
        await house.say("poke it", "ben")
        assert [call.name for call in world.platforms["chat"].calls].count("ask") == 2
        await house.advance(900)
        assert await house.states() == ["answered"]
