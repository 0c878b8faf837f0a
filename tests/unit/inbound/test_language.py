"""`/language`: each person chooses for themselves, and the choice is kept."""

from pathlib import Path

import pytest

from tests.fakes.house import World
from tests.fakes.people import people_of
from zeroclaw.config.model import PersonSettings
from zeroclaw.envelope import Principal, Sender
from zeroclaw.inbound.identity import Chosen, People
from zeroclaw.store import RowKind

BEA = PersonSettings(name="bea", ids=("chat:2", "mail:bea@x"), roles=("operator",), language="de")
ANN = PersonSettings(name="ann", ids=("chat:1",), roles=("operator",))
ALLOWED = {"chat": ("1", "2", "3"), "mail": ("*",), "web": ()}


def people(*, default: str = "en") -> People:
    language = "de" if default == "de" else "en"
    return people_of(ANN, BEA, allowed=ALLOWED, language=language)


def reads(house: People, channel: str, sender: str) -> str:
    found = house.admit(channel, Sender(id=sender, verified=True))
    assert isinstance(found, Principal)
    return found.language


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_choice_holds_from_its_own_reply_on(world: World) -> None:
    """The reply is in the language that was chosen, and so is everything after it."""
    async with world.running() as house:
        await house.say("/language de")
        assert house.texts()[-1] == "Ab jetzt spreche ich Deutsch mit dir."
        await house.say("/language")
        assert house.texts()[-1].startswith("Meine eigenen Sätze gibt es auf ")
        await house.say("/language English")
        assert house.texts()[-1] == "From now on I speak English with you."


async def test_nobody_chooses_for_others(world: World) -> None:
    """In one group each is spoken to in their own language."""
    async with world.running() as house:
        await house.say("/language de", "ada", room="r")
        await house.say("/language", "ben", room="r")
        assert house.texts(room="r")[-1].startswith("My own sentences")


async def test_a_language_that_is_not_spoken_changes_nothing(world: World) -> None:
    async with world.running() as house:
        await house.say("/language klingon")
        assert house.texts()[-1] == (
            "My own sentences can be in English (`/language en`), Deutsch (`/language de`). "
            "Now they are in English."
        )
        assert await house.rows(RowKind.LANGUAGE) == ()


def test_the_configuration_speaks_for_who_has_not_chosen() -> None:
    """A person's own key beats everybody's, and a choice beats both, on all their channels."""
    house = people()
    assert [reads(house, "chat", one) for one in "123"] == ["en", "de", "en"]
    house.learn_choice(Chosen(person="person:bea", language="en"))
    house.learn_choice(Chosen(person="chat:3", language="de"))
    assert [reads(house, "chat", one) for one in "123"] == ["en", "en", "de"]
    assert reads(house, "mail", "bea@x") == "en"


def test_everybody_else_reads_the_default() -> None:
    house = people(default="de")
    assert [reads(house, "chat", one) for one in "123"] == ["de", "de", "de"]
    assert reads(house, "web", "browser") == "de"


def test_whoever_is_told_without_having_written_is_told_in_their_language() -> None:
    house = people()
    house.learn_choice(Chosen(person="person:operator", language="de"))
    assert {(contact.channel, contact.language) for contact in house.operators()} == {
        ("chat", "en"),
        ("chat", "de"),
        ("mail", "de"),
        ("web", "de"),
    }
