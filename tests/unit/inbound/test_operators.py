"""Where approvers and operators are reached."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import CAPABILITIES, CHAT
from tests.fakes.manual_clock import ManualClock
from tests.fakes.people import people_of
from tests.fakes.scripted_channel import ScriptedChannel
from zeroclaw.channel import Channel
from zeroclaw.config.model import ApprovalSettings, ChannelSettings, Config, PersonSettings
from zeroclaw.delivery.rows import NOTICE_DAYS
from zeroclaw.envelope import Address, Principal, Reader, Sender
from zeroclaw.inbound.identity import Contact, People
from zeroclaw.inbound.live_config import LiveConfig
from zeroclaw.inbound.operators import Operators
from zeroclaw.store import RowKind
from zeroclaw.text.language import Sentence
from zeroclaw.value import replace

ADA = PersonSettings(name="ada", ids=("chat:1", "mail:ada@x"), roles=("operator",))
BEN = PersonSettings(name="ben", ids=("chat:2",), roles=("admin",))
ALLOWED = {"chat": ("1", "2"), "mail": ("*",), "web": (), "terminal": ()}
PEOPLE = people_of(ADA, BEN, allowed=ALLOWED)


class Rude(ScriptedChannel):
    """Breaks down when asked for an address."""

    def direct_address(self, sender: str) -> Address | None:
        message = "oops"
        raise RuntimeError(message)


class Shy(ScriptedChannel):
    """Can write to nobody first."""

    def direct_address(self, sender: str) -> Address | None:
        return None


def channel(name: str, kind: type[ScriptedChannel] = ScriptedChannel) -> ScriptedChannel:
    return kind(clock=ManualClock(), capabilities=CAPABILITIES, name=name)


def operators(
    *there: Channel,
    approvers: tuple[str, ...] = ("role:operator",),
    requester_may_answer: bool = True,
    people: People = PEOPLE,
    chat: str = "",
) -> Operators:
    by_name = {one.name: one for one in there}
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
    )


def places(readers: tuple[Reader, ...]) -> list[str]:
    return [f"{one.address.channel}:{one.address.chat}" for one in readers]


def who(channel_name: str, sender: str) -> Principal:
    found = PEOPLE.admit(channel_name, Sender(id=sender, verified=True))
    assert found is not None
    return found


def at(name: str, chat: str, *, direct: bool = True) -> Address:
    return Address(channel=name, account="bot", chat=chat, direct=direct)


ALL = (channel("chat"), channel("mail"), channel("web"), channel("terminal"))


@pytest.mark.parametrize(
    ("asked_by", "here", "found"),
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
    asked_by: tuple[str, str], here: Address, found: list[str]
) -> None:
    """In the very chat when it is an approver's own, else beside it, and never in a group (P5)."""
    assert places(operators(*ALL).approvers(who(*asked_by), here)) == found


def test_without_an_approver_near_all_others_are_asked() -> None:
    """Whoever sits at this machine comes last (P5)."""
    here = at("pager", "room", direct=False)
    ben = who("chat", "2")
    assert places(operators(*ALL).approvers(ben, here)) == ["chat:1", "mail:ada@x"]
    assert places(operators(*ALL[2:]).approvers(ben, here)) == ["web:operator"]
    assert operators().approvers(ben, here) == ()


def test_a_requester_is_passed_over_on_every_channel() -> None:
    """One person with two ids does not approve their own call by the other one (P5)."""
    others = operators(*ALL, requester_may_answer=False)
    assert places(others.approvers(who("mail", "ada@x"), at("mail", "ada@x"))) == ["web:operator"]
    assert others.approvers(who("web", "operator"), at("web", "operator")) != ()
    alone = people_of(allowed=ALLOWED)
    nobody = operators(*ALL, requester_may_answer=False, people=alone)
    assert nobody.approvers(who("web", "operator"), at("web", "operator")) == ()


def test_approvers_are_whom_the_configuration_names() -> None:
    """By role, by name, or by a bare id of a channel (P5)."""
    here = at("pager", "1")
    ada = who("chat", "1")
    assert places(operators(*ALL, approvers=("role:admin",)).approvers(ada, here)) == ["chat:2"]
    assert places(operators(*ALL, approvers=("person:ben",)).approvers(ada, here)) == ["chat:2"]
    bare = operators(*ALL, approvers=("mail:eve@x", "chat:1", "nowhere:9"))
    assert places(bare.approvers(ada, here)) == ["mail:eve@x"]


def test_a_channel_that_reaches_nobody_is_passed_over() -> None:
    """Whether it says so or breaks down (P9)."""
    found = operators(channel("chat", Rude), channel("mail", Shy), ALL[2]).readers()
    assert places(found) == ["web:operator"]


def test_trouble_is_told_to_everybody_but_the_trouble() -> None:
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
    assert PEOPLE.admit("chat", Sender(id="3", verified=True)) is None
    assert PEOPLE.admit("web", Sender(id="x", verified=False)) is None
    assert PEOPLE.admit("unheard-of", Sender(id="1", verified=True)) is None


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
    assert people.operators() == (
        Contact(person="person:operator", channel="web", sender="operator"),
    )
    named = PersonSettings(name="dora", ids=("web:operator",), roles=("operator",))
    once = people_of(named, allowed={"web": ()}).operators()
    assert once == (Contact(person="person:dora", channel="web", sender="operator"),)


@pytest.mark.parametrize("channels", [("mail",), ("chat", "mail")])
async def test_a_notice_waits_for_an_operator_across_restarts(
    tmp_path: Path, channels: tuple[str, ...]
) -> None:
    """It is a row until a channel comes up that reaches one, for a week; then it is told once."""
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


async def test_the_page_is_told_before_the_terminal(tmp_path: Path) -> None:
    """It keeps what was said while nobody looked."""
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
    here, there = channel("chat"), channel("mail")
    group = Address(channel="chat", account="bot", chat="team", thread="7")
    principal = Principal(id="chat:2", channel="chat", sender="2", display="Ben", roles=frozenset())
    asked_in = here.address("2")
    routed = operators(here, there, chat="chat:team/7").approvers(principal, asked_in)
    assert routed == (Reader(address=group, language="en"),)
    assert places(operators(there, chat="chat:team").approvers(principal, asked_in)) == [
        "mail:ada@x"
    ]
    ada = Principal(
        id="person:ada", channel="chat", sender="1", display="Ada", roles=frozenset({"operator"})
    )
    own = replace(here.address("1"), direct=True)
    assert places(operators(here, chat="chat:team").approvers(ada, own)) == ["chat:1"]
