"""People on several channels: who they are, what was granted to them, where they are reached, and in which language."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import CAPABILITIES, CHAT
from tests.fakes.manual_clock import ManualClock
from tests.fakes.people import people_of
from tests.fakes.scripted_channel import ScriptedChannel
from tests.fakes.scripted_model import POKE, says
from zeroclaw.channel import Channel
from zeroclaw.config.model import ApprovalSettings, ChannelSettings, Config, PersonSettings
from zeroclaw.delivery.rows import NOTICE_DAYS
from zeroclaw.envelope import Address, Principal, Reader, Sender
from zeroclaw.inbound.identity import LANGUAGE_CHOICES, LanguageChoice, People
from zeroclaw.inbound.live_config import LiveConfig
from zeroclaw.inbound.operators import Operators
from zeroclaw.store import RowKind
from zeroclaw.text.language import Language, Sentence
from zeroclaw.value import replace

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
    """Change the settings of approvals."""
    changed = world.config.approvals.model_copy(update=settings)
    world.configure(approvals=changed)
    return world


async def test_a_person_is_the_same_on_every_channel(two: World) -> None:
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


async def test_a_grant_of_one_place_does_not_cover_another(two: World) -> None:
    """A grant is of one conversation, also where its holder is the same person (P5)."""
    two.model.will(POKE, says("done"), POKE, says("again"), POKE, says("elsewhere"))
    async with two.told("poke it", by="ben") as house:
        await house.press("for_a_time")
        await house.say("poke it", "ben")
        assert house.texts("ben")[1:] == ["done", "again"]
        await house.say("poke it", "ben2", channel="mail")
        assert len(two.poke.runs) == 2
        await house.press("once", "ada2", channel="mail")
        assert house.texts("ben2", channel="mail")[-1] == "elsewhere"


async def test_a_granter_is_not_covered_under_another_id(two: World) -> None:
    """Granted by mail, used in a group of the chat, where another operator is asked (P5).

    The one whose call it was is covered there.
    """
    asking(two, requester_may_answer=False, chat="mail:operators")
    two.model.will(POKE, says("done"), POKE, says("again"), POKE, says("mine"))
    async with two.told("poke it", by="ben", room="team") as house:
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
    async with two.told("poke it", by="ben", room="team") as house:
        await house.press("for_a_time", "ada2", at="operators", channel="mail")
        two.configure(people=PEOPLE)
        await house.ask("reload")
        await house.say("poke it", room="team")
        assert len(two.poke.runs) == 1
        await house.press(who="dora")
        assert house.texts(room="team")[-1] == "mine"


async def test_a_requester_may_not_answer_from_another_channel(two: World) -> None:
    """Nor once a reload has tied the id that they asked under to the one that they press with (P5)."""
    loose = (PersonSettings(name="ada", ids=("chat:ada",), roles=("operator",)), *PEOPLE[1:])
    asking(two, requester_may_answer=False, chat="chat:operators").configure(people=loose)
    async with two.told("poke it", POKE, says("done"), by="ada2", channel="mail") as house:
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
    """By those who got the card, once; others read that it is not theirs (P5)."""
    asking(two, chat="chat:operators")
    async with two.told("poke it", POKE, says("done"), by="ben2", channel="mail") as house:
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
    async with two.told("poke it", by="ben2", channel="mail") as house:
        await house.advance(900)
        assert await house.press(at="operators") == "too late: it expired at 12:15:00 UTC"
        assert house.endings("operators") == [("expired", "")]
        assert house.texts("ben2", channel="mail")[-1] == "nobody answered"
        assert two.poke.runs == []


async def test_each_address_of_an_approver_shows_how_it_ended(two: World) -> None:
    """A call from a third channel: cards at both, settled by one answer (P5)."""
    two.add_channel("third")
    ids = ("chat:ada", "mail:ada2")
    people = (PersonSettings(name="ada", ids=ids, roles=("operator",)),)
    channels = {**two.config.channels, "third": ChannelSettings(allowed_users=("*",))}
    two.configure(people=people, channels=channels)
    async with two.told("poke it", POKE, says("done"), by="cleo", channel="third") as house:
        assert house.card().calls == house.card("ada2", channel="mail").calls
        await house.say("/deny 1 not today", "ada2", channel="mail")
        assert house.endings() == house.endings("ada2", channel="mail")
        assert [how for how, _ in house.endings()] == ["denied"]
        assert house.texts("cleo", channel="third")[-1] == "done"


# --- where approvers and operators are reached ----------------------------------------------------

ADA = PersonSettings(name="ada", ids=("chat:1", "mail:ada@x"), roles=("operator",))
BEN = PersonSettings(name="ben", ids=("chat:2",), roles=("admin",))
ALLOWED = {"chat": ("1", "2"), "mail": ("*",), "web": (), "terminal": ()}
HOUSEHOLD = people_of(ADA, BEN, allowed=ALLOWED)


class Rude(ScriptedChannel):
    """Raises when it has to return an address."""

    def direct_address(self, sender: str) -> Address | None:
        raise RuntimeError("oops")


class Shy(ScriptedChannel):
    """Can't write to a person first."""

    def direct_address(self, sender: str) -> Address | None:
        return None


def channel(name: str, kind: type[ScriptedChannel] = ScriptedChannel) -> ScriptedChannel:
    return kind(clock=ManualClock(), capabilities=CAPABILITIES, name=name)


def operators(
    *channels: Channel,
    approvers: tuple[str, ...] = ("role:operator",),
    requester_may_answer: bool = True,
    people: People = HOUSEHOLD,
    chat: str = "",
) -> Operators:
    by_name = {channel_.name: channel_ for channel_ in channels}
    return Operators(
        people,
        by_name.get,
        settings=LiveConfig(
            Config(
                approvals=ApprovalSettings(
                    requester_may_answer=requester_may_answer, approvers=approvers, chat=chat
                )
            ),
            (),
        ),
        may_approve=lambda principal, _tool: not names(principal).isdisjoint(approvers),
    )


def names(principal: Principal) -> set[str]:
    return {principal.id, *(f"role:{role}" for role in principal.roles)}


def places(readers: tuple[Reader, ...]) -> list[str]:
    return [f"{reader.address.channel}:{reader.address.chat}" for reader in readers]


def who(channel_name: str, sender: str) -> Principal:
    found = HOUSEHOLD.admit(channel_name, Sender(id=sender, verified=True))
    assert found is not None
    return found


def at(name: str, chat: str, *, direct: bool = True) -> Address:
    return Address(channel=name, account="bot", chat=chat, direct=direct)


TOOLS = ("poke",)
ALL = (channel("chat"), channel("mail"), channel("web"), channel("terminal"))


@pytest.mark.parametrize(
    ("asked_by", "address", "found"),
    [
        (("chat", "1"), at("chat", "1"), ["chat:1"]),
        (("chat", "1"), at("chat", "room", direct=False), ["chat:1"]),
        (("chat", "2"), at("chat", "2"), ["chat:1"]),
        (("mail", "eve@x"), at("mail", "eve@x"), ["mail:ada@x"]),
        (("web", "operator"), at("web", "operator"), ["web:operator"]),
        (("web", "operator"), at("web", "room", direct=False), ["web:operator"]),
    ],
)
def test_a_question_is_put_where_an_approver_is_nearest(
    asked_by: tuple[str, str], address: Address, found: list[str]
) -> None:
    """In the very chat when it is an approver's own, else beside it, and never in a group (P5)."""
    assert places(operators(*ALL).approvers(who(*asked_by), address, TOOLS)) == found


def test_without_an_approver_near_all_others_are_asked() -> None:
    """Whoever sits at this machine comes last (P5)."""
    address = at("pager", "room", direct=False)
    ben = who("chat", "2")
    assert places(operators(*ALL).approvers(ben, address, TOOLS)) == ["chat:1", "mail:ada@x"]
    assert places(operators(*ALL[2:]).approvers(ben, address, TOOLS)) == ["web:operator"]
    assert operators().approvers(ben, address, TOOLS) == ()


def test_each_tool_of_a_card_is_put_to_a_person_who_may_approve_it() -> None:
    """Those near may approve one of the two, and only a person on another channel the other (P5)."""
    found = operators(*ALL, approvers=("person:ada", "person:ben"))
    may = {"poke": {"chat:2"}, "shell": {"mail:ada@x"}}
    found.may_approve = lambda principal, tool: principal.identity in may[tool]
    address, cleo = at("chat", "room", direct=False), who("mail", "cleo@x")
    assert places(found.approvers(cleo, address, ("poke",))) == ["chat:2"]
    assert places(found.approvers(cleo, address, ("shell",))) == ["mail:ada@x"]
    assert places(found.approvers(cleo, address, ("poke", "shell"))) == ["chat:2", "mail:ada@x"]
    refused = {at("chat", "2").key()}
    assert places(found.approvers(cleo, address, ("poke", "shell"), refused=refused)) == [
        "mail:ada@x"
    ]


def test_a_requester_is_passed_over_on_every_channel() -> None:
    """One person with two ids does not approve their own call by the other one (P5)."""
    others = operators(*ALL, requester_may_answer=False)
    assert places(others.approvers(who("mail", "ada@x"), at("mail", "ada@x"), TOOLS)) == [
        "web:operator"
    ]
    assert others.approvers(who("web", "operator"), at("web", "operator"), TOOLS) != ()
    alone = people_of(allowed=ALLOWED)
    empty = operators(*ALL, requester_may_answer=False, people=alone)
    assert empty.approvers(who("web", "operator"), at("web", "operator"), TOOLS) == ()


def test_approvers_are_those_of_the_configuration() -> None:
    """By role, by name, or by a bare id of a channel (P5)."""
    address = at("pager", "1")
    ada = who("chat", "1")
    assert places(operators(*ALL, approvers=("role:admin",)).approvers(ada, address, TOOLS)) == [
        "chat:2"
    ]
    assert places(operators(*ALL, approvers=("person:ben",)).approvers(ada, address, TOOLS)) == [
        "chat:2"
    ]
    bare = operators(*ALL, approvers=("mail:eve@x", "chat:1", "nowhere:9"))
    assert places(bare.approvers(ada, address, TOOLS)) == ["mail:eve@x"]


def test_a_channel_that_reaches_no_operator_is_skipped() -> None:
    """Whether it says so or breaks down (P9)."""
    found = operators(channel("chat", Rude), channel("mail", Shy), ALL[2]).readers()
    assert places(found) == ["web:operator"]


def test_trouble_is_reported_on_every_channel_but_the_failing_one() -> None:
    """A channel that fails, or a chat that refused, is left out."""
    everyone = operators(*ALL)
    assert places(everyone.readers()) == ["chat:1", "mail:ada@x"]
    assert places(everyone.readers(but=at("chat", "1").key())) == ["mail:ada@x"]
    assert places(everyone.readers(but_channel="mail")) == ["chat:1"]
    only_chat = operators(ALL[0], ALL[2])
    assert places(only_chat.readers(but_channel="chat")) == ["web:operator"]


def test_people_are_known_by_the_platforms_word() -> None:
    """Listed, starred or local; a person of the configuration keeps name and roles (P4)."""
    assert who("chat", "1").id == "person:ada"
    assert who("mail", "eve@x") == Principal(
        id="mail:eve@x", roles=frozenset(), channel="mail", sender="eve@x", display="eve@x"
    )
    assert who("web", "anybody").id == "person:operator"
    assert HOUSEHOLD.admit("chat", Sender(id="3", verified=True)) is None
    assert HOUSEHOLD.admit("web", Sender(id="x", verified=False)) is None
    assert HOUSEHOLD.admit("unheard-of", Sender(id="1", verified=True)) is None


def test_a_person_at_this_machine_is_the_operator_by_name() -> None:
    """A local id may belong to a person of the configuration."""
    dora = PersonSettings(name="dora", ids=("web:operator",))
    people = people_of(dora, allowed={"web": ()})
    found = people.admit("web", Sender(id="operator", verified=True, display="D"))
    assert found == Principal(
        id="person:dora",
        roles=frozenset({"operator"}),
        channel="web",
        sender="operator",
        display="D",
    )
    assert [person.id for person in people.operators()] == ["person:dora"]
    named = PersonSettings(name="dora", ids=("web:operator",), roles=("operator",))
    once = people_of(named, allowed={"web": ()}).operators()
    assert [(person.id, person.identity) for person in once] == [("person:dora", "web:operator")]


@pytest.mark.parametrize("channels", [("mail",), ("chat", "mail")])
async def test_a_notice_waits_for_an_operator_across_restarts(
    tmp_path: Path, channels: tuple[str, ...]
) -> None:
    """It is a row until a channel comes up that reaches one, for a week; then it is sent once."""
    world = World(tmp_path, Config(people=(), channels={"chat": CHAT}))
    async with world.running() as house:
        await house.services.notices.tell(Sentence(en="trouble", de="Ärger"))
        await house.settle()
        (waiting,) = await house.rows(RowKind.NOTICE)
        assert waiting.due_at == world.clock.now() + timedelta(days=NOTICE_DAYS)
    dora = PersonSettings(name="dora", ids=("mail:d",), roles=("operator",), language="de")
    world.configure(people=(dora,), channels=dict.fromkeys(channels, CHAT))
    world.add_platform("mail")
    for _ in range(2):
        async with world.running() as house:
            await house.settle()
            assert house.texts("d", channel="mail") == ["Ärger"]
            assert await house.rows(RowKind.NOTICE) == ()


async def test_the_page_gets_a_notice_before_the_terminal(tmp_path: Path) -> None:
    """It keeps messages while no page is open."""
    channels = {"terminal": ChannelSettings(), "web": ChannelSettings()}
    world = World(tmp_path, Config(people=(), channels=channels))
    world.local = ("terminal", "web")
    async with world.running() as house:
        await house.services.notices.tell(Sentence(en="trouble", de="Ärger"))
        await house.settle()
        assert house.texts("operator", channel="web") == ["trouble"]
        assert house.texts("operator", channel="terminal") == []


def test_where_a_chat_is_configured_the_question_comes_there() -> None:
    """Whoever may answer is there too; else each is asked in private, as without it."""
    chosen, other = channel("chat"), channel("mail")
    group = Address(channel="chat", account="bot", chat="team", thread="7")
    principal = Principal(id="chat:2", channel="chat", sender="2", display="Ben", roles=frozenset())
    asked_in = chosen.address("2")
    routed = operators(chosen, other, chat="chat:team/7").approvers(principal, asked_in, TOOLS)
    assert routed == (Reader(address=group, language="en"),)
    assert places(operators(other, chat="chat:team").approvers(principal, asked_in, TOOLS)) == [
        "mail:ada@x"
    ]
    ada = Principal(
        id="person:ada", channel="chat", sender="1", display="Ada", roles=frozenset({"operator"})
    )
    own = replace(chosen.address("1"), direct=True)
    assert places(operators(chosen, chat="chat:team").approvers(ada, own, TOOLS)) == ["chat:1"]


# --- `/language`: each person chooses for themselves, and the choice is kept ----------------------

BEA = PersonSettings(name="bea", ids=("chat:2", "mail:bea@x"), roles=("operator",), language="de")
ANN = PersonSettings(name="ann", ids=("chat:1",), roles=("operator",))
LET_IN = {"chat": ("1", "2", "3"), "mail": ("*",), "web": ()}


def household(*, default: str = "en") -> People:
    language = "de" if default == "de" else "en"
    return people_of(ANN, BEA, allowed=LET_IN, language=language)


def reads(house: People, channel: str, sender: str) -> str:
    found = house.admit(channel, Sender(id=sender, verified=True))
    assert isinstance(found, Principal)
    return found.language


@pytest.fixture
def bilingual(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_choice_holds_from_its_own_reply_on(bilingual: World) -> None:
    """The reply is in the language that was chosen, and so is everything after it."""
    async with bilingual.told("/language de") as house:
        assert house.texts()[-1] == "Ab jetzt spreche ich Deutsch mit dir."
        await house.say("/language")
        assert house.texts()[-1].startswith("Meine eigenen Sätze gibt es auf ")
        await house.say("/language English")
        assert house.texts()[-1] == "From now on I speak English with you."


async def test_a_person_chooses_a_language_for_themselves_only(bilingual: World) -> None:
    """In one group each is spoken to in their own language."""
    async with bilingual.told("/language de", room="r") as house:
        await house.say("/language", "ben", room="r")
        assert house.texts(room="r")[-1].startswith("My own sentences")


async def test_a_language_that_is_not_spoken_changes_nothing(bilingual: World) -> None:
    async with bilingual.told("/language klingon") as house:
        assert house.texts()[-1] == (
            "My own sentences can be in English (`/language en`), Deutsch (`/language de`). "
            "Now they are in English."
        )
        assert await house.rows(RowKind.LANGUAGE) == ()


def chooses(house: People, person: str, language: Language) -> None:
    chosen = LanguageChoice(person=person, language=language)
    house.learn_from_writes((LANGUAGE_CHOICES.put(person, chosen),))


def test_the_configuration_speaks_for_who_has_not_chosen() -> None:
    """A person's own key beats the general one, and a choice beats both, on all their channels."""
    house = household()
    assert [reads(house, "chat", sender) for sender in "123"] == ["en", "de", "en"]
    chooses(house, "person:bea", "en")
    chooses(house, "chat:3", "de")
    assert [reads(house, "chat", sender) for sender in "123"] == ["en", "en", "de"]
    assert reads(house, "mail", "bea@x") == "en"


def test_all_others_read_the_default() -> None:
    house = household(default="de")
    assert [reads(house, "chat", sender) for sender in "123"] == ["de", "de", "de"]
    assert reads(house, "web", "browser") == "de"


def test_a_notice_to_a_person_who_has_not_written_is_in_their_language() -> None:
    house = household()
    chooses(house, "person:operator", "de")
    assert {(contact.channel, contact.language) for contact in house.operators()} == {
        ("chat", "en"),
        ("chat", "de"),
        ("mail", "de"),
        ("web", "de"),
    }
