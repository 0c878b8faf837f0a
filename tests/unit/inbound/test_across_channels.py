"""People who are on several channels: who they are, what was granted to them, and who answers where."""

import pytest

from tests.fakes.house import World
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.config.model import ChannelSettings, PersonSettings

POKE = asks_for(("poke", '{"a": 1}'))
PEOPLE = (
    PersonSettings(name="ada", ids=("chat:ada", "mail:ada2"), roles=("operator",)),
    PersonSettings(name="ben", ids=("chat:ben", "mail:ben2")),
    PersonSettings(name="dora", ids=("chat:dora",), roles=("operator",)),
)
ONLY_OPERATORS = "only an operator may answer this"


@pytest.fixture
def two(world: World) -> World:
    """The house with a second platform; Ada, an operator, and Ben are on both, Dora on one."""
    everybody = ChannelSettings(allowed_users=("*",))
    world.add_channel("mail")
    world.configure(people=PEOPLE, channels={"chat": everybody, "mail": everybody})
    return world


def asking(world: World, **settings: object) -> World:
    """Change how approvals are asked for."""
    changed = world.config.approvals.model_copy(update=settings)
    world.configure(approvals=changed)
    return world


async def test_somebody_is_the_same_person_wherever_they_write(two: World) -> None:
    """And reads which of their ids they used; where a login makes the operator, that too."""
    two.add_channel("web")
    two.local = ("web",)
    at_the_page = two.config.people[0].model_copy(update={"ids": (*PEOPLE[0].ids, "web:operator")})
    two.configure(people=(at_the_page, *PEOPLE[1:]))
    async with two.running() as house:
        who = "You are `person:ada`, sender `{}` on `{}`. Roles: operator."
        for sender, channel in (("ada", "chat"), ("ada2", "mail"), ("operator", "web")):
            await house.say("/whoami", sender, channel=channel)
            assert house.texts(sender, channel=channel) == [who.format(sender, channel)]


async def test_what_was_granted_in_one_place_is_asked_about_in_another(two: World) -> None:
    """A grant is of one conversation, also where its holder is the same person (P5)."""
    two.model.will(POKE, says("done"), POKE, says("again"), POKE, says("elsewhere"))
    async with two.running() as house:
        await house.say("poke it", "ben")
        await house.press("for_a_time")
        await house.say("poke it", "ben")
        assert house.texts("ben")[1:] == ["done", "again"]
        await house.say("poke it", "ben2", channel="mail")
        assert len(two.poke.runs) == 2
        await house.press("once", "ada2", channel="mail")
        assert house.texts("ben2", channel="mail")[-1] == "elsewhere"


async def test_whoever_granted_is_not_covered_where_they_write_under_another_id(two: World) -> None:
    """Granted by mail, used in a group of the chat, where another operator is asked (P5).

    The one whose call it was is covered there.
    """
    asking(two, requester_may_answer=False, chat="mail:operators")
    two.model.will(POKE, says("done"), POKE, says("again"), POKE, says("mine"))
    async with two.running() as house:
        await house.say("poke it", "ben", room="team")
        assert await house.press("for_a_time", "ada2", at="operators", channel="mail") == (
            "approved: `poke`, and without asking any content into `/notes/1` for 1 hour"
        )
        await house.say("poke it", "ben", room="team")
        assert len(two.poke.runs) == 2
        await house.say("poke it", room="team")
        assert len(two.poke.runs) == 2
        await house.press(who="dora")
        assert house.texts(room="team")[-1] == "mine"


async def test_who_grants_and_is_tied_to_who_asks_only_later_is_not_covered(two: World) -> None:
    """A reload that makes one person of two ids counts for what they granted before (P5)."""
    loose = (
        PersonSettings(name="ada", ids=("chat:ada",), roles=("operator",)),
        PersonSettings(name="other", ids=("mail:ada2",), roles=("operator",)),
        *PEOPLE[1:],
    )
    asking(two, requester_may_answer=False, chat="mail:operators").configure(people=loose)
    two.model.will(POKE, says("done"), POKE, says("mine"))
    async with two.running() as house:
        await house.say("poke it", "ben", room="team")
        await house.press("for_a_time", "ada2", at="operators", channel="mail")
        two.configure(people=PEOPLE)
        await house.ask("reload")
        await house.say("poke it", room="team")
        assert len(two.poke.runs) == 1
        await house.press(who="dora")
        assert house.texts(room="team")[-1] == "mine"


async def test_nobody_answers_their_own_call_from_another_channel(two: World) -> None:
    """Nor once a reload has tied the id that they asked under to the one that they press with (P5)."""
    loose = (PersonSettings(name="ada", ids=("chat:ada",), roles=("operator",)), *PEOPLE[1:])
    asking(two, requester_may_answer=False, chat="chat:operators").configure(people=loose)
    two.model.will(POKE, says("done"))
    async with two.running() as house:
        await house.say("poke it", "ada2", channel="mail")
        two.configure(people=PEOPLE)
        await house.ask("reload")
        assert await house.press(at="operators") == (
            "whoever asks may not approve; somebody else has to answer this"
        )
        await house.say("/approve 1", room="operators")
        assert two.poke.runs == []
        await house.press(who="dora", at="operators")
        assert house.texts("ada2", channel="mail")[-1] == "done"


async def test_a_question_from_one_channel_is_answered_on_another_after_a_restart(
    two: World,
) -> None:
    """By whom it was put to, once; others are told that it is not theirs (P5)."""
    asking(two, chat="chat:operators")
    two.model.will(POKE, says("done"))
    async with two.running() as house:
        await house.say("poke it", "ben2", channel="mail")
        assert house.texts("ben2", channel="mail") == ["Waiting for an operator to approve `poke`."]
        assert await house.press(who="ben", at="operators") == ONLY_OPERATORS
    async with two.running() as house:
        assert await house.press(who="dora", at="operators") == "approved: `poke`"
        assert house.texts("ben2", channel="mail")[-1] == "done"
        assert await house.press("deny", at="operators") == "already approved by Dora"
        assert house.endings("operators") == [("approved", "Dora")]
        assert len(two.poke.runs) == 1


async def test_an_answer_from_another_channel_can_be_late(two: World) -> None:
    """Then nothing runs, and both chats read so (P5)."""
    asking(two, chat="chat:operators")
    two.model.will(POKE, says("nobody answered"))
    async with two.running() as house:
        await house.say("poke it", "ben2", channel="mail")
        await house.advance(900)
        assert await house.press(at="operators") == "too late: it expired at 12:15:00 UTC"
        assert house.endings("operators") == [("expired", "")]
        assert house.texts("ben2", channel="mail")[-1] == "nobody answered"
        assert two.poke.runs == []


async def test_each_address_of_an_approver_shows_how_it_ended(two: World) -> None:
    """A call that nobody's channel asked for: cards at both, settled by one answer (P5)."""
    two.add_channel("third")
    ids = ("chat:ada", "mail:ada2")
    people = (PersonSettings(name="ada", ids=ids, roles=("operator",)),)
    channels = {**two.config.channels, "third": ChannelSettings(allowed_users=("*",))}
    two.configure(people=people, channels=channels)
    two.model.will(POKE, says("done"))
    async with two.running() as house:
        await house.say("poke it", "cleo", channel="third")
        assert house.card().calls == house.card("ada2", channel="mail").calls
        await house.say("/deny 1 not today", "ada2", channel="mail")
        assert house.endings() == house.endings("ada2", channel="mail")
        assert [how for how, _ in house.endings()] == ["denied"]
        assert house.texts("cleo", channel="third")[-1] == "done"
