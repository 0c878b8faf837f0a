"""Who is this: the configuration and what was decided since, together."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

import pytest

from tests.fakes.people import configured, local
from zeroclaw.channel import ChannelManifest
from zeroclaw.config.model import PersonSettings
from zeroclaw.envelope import Principal, Sender
from zeroclaw.inbound.identity import PEOPLE, People, Person, person_put
from zeroclaw.store import Claim
from zeroclaw.value import replace

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ADA = PersonSettings(name="ada", ids=("chat:ada", "mail:ada@x"), roles=("operator",))
BEN = PersonSettings(name="ben", ids=("chat:ben", "web:ben"))


MAIL = ChannelManifest(kind="mail", adapter="", settings="", sender="[a-z]+@[a-z]+")


def known(
    who: str, state: Literal["admitted", "revoked"] = "admitted", roles: tuple[str, ...] = ()
) -> Person:
    return Person(id=who, display="", state=state, by="Ada", at=NOW, roles=roles)


def people(*stored: Person, allowed: tuple[str, ...] = ("ada", "ben", "cleo")) -> People:
    """Ada and Ben have names, Cleo has none; the page is local."""
    config = configured(ADA, BEN, allowed={"chat": allowed, "mail": ("ada@x",), "web": ()})
    made = People(config, {**local("web"), "mail": MAIL})
    for person in stored:
        made.learn(person)
    return made


def admitted(made: People, sender: str, channel: str = "chat") -> tuple[str, list[str]] | None:
    """The id and roles of the sender; None for a stranger."""
    found = made.admit(channel, Sender(id=sender, verified=True))
    return None if found is None else (found.id, sorted(found.roles))


Found = tuple[str, list[str]] | None
WHO: dict[str, tuple[People, str, str, Found]] = {
    "named": (people(), "chat", "ben", ("person:ben", [])),
    "without a name": (people(), "chat", "cleo", ("chat:cleo", [])),
    "a stranger": (people(), "chat", "dora", None),
    "let in": (people(known("chat:dora")), "chat", "dora", ("chat:dora", [])),
    "let in elsewhere": (people(known("chat:dora")), "mail", "dora", None),
    "let in, and named by the configuration": (
        people(known("chat:ben"), allowed=()),
        "chat",
        "ben",
        ("person:ben", []),
    ),
    "the first operator": (
        people(known("chat:dora", roles=("operator",))),
        "chat",
        "dora",
        ("chat:dora", ["operator"]),
    ),
    "the first operator, named since": (
        people(known("chat:ben", roles=("operator",))),
        "chat",
        "ben",
        ("person:ben", ["operator"]),
    ),
    "revoked": (people(known("chat:cleo", "revoked")), "chat", "cleo", None),
    "revoked by name": (people(known("person:ben", "revoked")), "chat", "ben", None),
    "revoked by id before they had a name": (
        people(known("chat:ben", "revoked")),
        "chat",
        "ben",
        None,
    ),
    "let in and revoked by name": (
        people(known("chat:ben"), known("person:ben", "revoked")),
        "chat",
        "ben",
        None,
    ),
    "named, at this machine": (people(), "web", "ben", ("person:ben", ["operator"])),
    "revoked, at this machine": (
        people(known("person:ben", "revoked")),
        "web",
        "ben",
        ("person:operator", ["operator"]),
    ),
}


@pytest.mark.parametrize(("made", "channel", "sender", "is_"), WHO.values(), ids=WHO)
def test_a_sender_is_a_person_or_a_stranger(
    made: People, channel: str, sender: str, is_: Found
) -> None:
    """The configuration names, pairing adds, being revoked beats both; this machine is the operator.

    S2-03.
    """
    assert admitted(made, sender, channel) == is_


def test_who_is_let_in_has_the_name_that_the_platform_shows() -> None:
    """The stored one is for lists only."""
    found = people(known("chat:dora")).admit("chat", Sender(id="dora", verified=True, display="D"))
    assert found == Principal(
        id="chat:dora", roles=frozenset(), channel="chat", sender="dora", display="D"
    )


def test_an_unverified_id_belongs_to_no_person() -> None:
    """Also when a person of that id was let in (P4)."""
    made = people(known("chat:dora"))
    assert made.admit("chat", Sender(id="dora", verified=False)) is None


def test_committed_changes_are_followed() -> None:
    """Puts and deletes of people count, all else is passed over."""
    made = people()
    assert made.learn_from_writes([Claim(keys=("k",), until=NOW)]) is False
    assert made.learn_from_writes([person_put(known("chat:cleo", "revoked"))]) is True
    assert (admitted(made, "cleo"), made.revoked) == (None, frozenset({"chat:cleo"}))
    assert made.revoked_by("chat:cleo") == "Ada"
    assert made.learn_from_writes([PEOPLE.delete("chat:cleo")]) is True
    assert admitted(made, "cleo") == ("chat:cleo", [])
    assert (made.stored, made.revoked_by("chat:cleo")) == ((), "")


NAMES = {
    "mail:Ada@X": "person:ada",
    "mail:Eve@x": "mail:eve@x",
    "mail:eve": "",
    "ben": "person:ben",
    "person:ben": "person:ben",
    "chat:ben": "person:ben",
    "mail:ada@x": "person:ada",
    "chat:cleo": "chat:cleo",
    "chat:nobody": "chat:nobody",
    "chat:": "",
    "cleo": "",
    "person:cleo": "",
    "phone:1": "",
    "web:ben": "",
}


@pytest.mark.parametrize(("text", "name"), NAMES.items())
def test_an_operator_names_a_person_by_name_or_id(text: str, name: str) -> None:
    """By name or by id; a person whom the configuration names is meant with all their ids."""
    assert people().id_of(text) == name


@pytest.mark.parametrize(
    ("who", "is_"),
    [("person:ben", True), ("chat:cleo", True), ("chat:dora", False), ("chat:ben", True)],
)
def test_who_needs_nothing_stored(who: str, is_: bool) -> None:
    """Whoever the configuration lets in by itself."""
    assert people().is_configured(who) == is_


def test_operators_sit_where_they_were_let_in() -> None:
    """Configured ones first, with the first operator; none revoked or without the role (P5)."""
    local, dora = ("person:operator", "web:operator"), ("chat:dora", "chat:dora")
    made = people(
        known("chat:dora", roles=("operator",)), known("chat:eve"), known("person:ada", "revoked")
    )
    assert seats(made) == [dora, local]
    ben = ("person:ben", "chat:ben")
    ada, ada_by_mail = ("person:ada", "chat:ada"), ("person:ada", "mail:ada@x")
    assert seats(people(known("chat:ben", roles=("operator",)))) == [ada, ada_by_mail, ben, local]
    with_ids = people(known("chat:ben", roles=("operator",)), known("person:ben", "revoked"))
    assert ben not in seats(with_ids)
    assert people(known("chat:cleo", "revoked")).contacts(("chat:cleo",)) == ()


def seats(made: People) -> list[tuple[str, str]]:
    return [(operator.id, operator.identity) for operator in made.operators()]


REACHED = {
    "an operator who is let in": (people(), ("chat", "web"), True),
    "only at this machine": (people(), ("web",), False),
    "one who is not let in": (people(allowed=()), ("chat",), False),
    "one who was revoked": (people(known("person:ada", "revoked")), ("chat", "mail"), False),
    "one who was let in with the printed code": (
        people(known("person:ada", "revoked"), known("chat:dora", roles=("operator",))),
        ("chat",),
        True,
    ),
}


@pytest.mark.parametrize(("made", "channels", "can"), REACHED.values(), ids=REACHED)
def test_whether_an_operator_can_be_reached(
    made: People, channels: tuple[str, ...], can: bool
) -> None:
    """Elsewhere than at this machine; else a code is printed."""
    assert made.can_be_reached(channels) == can


# --- who was revoked since ------------------------------------------------------------------------


def principal(sender: str, channel: str = "chat", name: str = "") -> Principal:
    """Somebody as they were when their turn began."""
    id_ = f"person:{name}" if name else f"{channel}:{sender}"
    return Principal(id=id_, roles=frozenset(), channel=channel, sender=sender)


OUT: dict[str, tuple[People, Principal, str]] = {
    "let in": (people(), principal("ben", name="ben"), ""),
    "revoked": (people(known("person:ben", "revoked")), principal("ben", name="ben"), "Ada"),
    "taken out": (people(allowed=("ada",)), principal("ben", name="ben"), "the configuration"),
    "by another id still": (people(), principal("ada@y", "mail", name="ada"), "the configuration"),
    "of an operator's making": (people(known("chat:dora")), principal("dora"), ""),
    "who sits here": (people(), principal("operator", "web", name="operator"), ""),
    "of a channel that is gone": (people(), principal("7", "discord"), ""),
    "without their name": (people(), principal("cleo", name="cleo"), ""),
}


@pytest.mark.parametrize(("made", "who", "by"), OUT.values(), ids=OUT)
def test_who_is_let_in_no_more_was_revoked(made: People, who: Principal, by: str) -> None:
    """By an operator, or by the configuration that is silent about what they wrote with."""
    assert made.excluded_by(who) == by


IDS: dict[str, tuple[People, str, str]] = {
    "named": (people(), "person:ben", ""),
    "revoked": (people(known("person:ben", "revoked")), "person:ben", "Ada"),
    "with one of several ids": (people(allowed=()), "person:ada", ""),
    "with none": (people(allowed=("ada",)), "chat:cleo", "the configuration"),
    "here": (people(allowed=()), "person:ben", ""),
    "named no more": (people(), "person:cleo", "the configuration"),
    "of an operator's making": (people(known("chat:dora")), "chat:dora", ""),
    "whoever sits here": (people(), "person:operator", ""),
    "of a channel that is gone": (people(), "discord:7", ""),
}


@pytest.mark.parametrize(("made", "id_", "by"), IDS.values(), ids=IDS)
def test_an_id_is_revoked_when_no_person_can_be_it(made: People, id_: str, by: str) -> None:
    """Grants know ids only, and one of a person's is enough."""
    assert made.id_excluded_by(id_) == by


@pytest.mark.parametrize("named", [(), (PersonSettings(name="benno", ids=BEN.ids),)])
def test_who_was_revoked_by_name_comes_back_under_no_other(
    named: tuple[PersonSettings, ...],
) -> None:
    """A configuration that calls them otherwise, or by no name, was not meant to let them in (P4)."""
    made = people(replace(known("person:ben", "revoked"), ids=BEN.ids))
    made.apply_config(configured(*named, allowed={"chat": ("ben", "cleo"), "web": ()}))
    assert admitted(made, "ben") is None
    assert admitted(made, "cleo") == ("chat:cleo", [])
    assert made.revoked_as("chat:ben") == "person:ben"
    assert {"person:ben", "chat:ben"} <= made.revoked


def test_another_configuration_leaves_stored_people_alone() -> None:
    """Ben is out of it, Dora was let in by an operator, and Cleo has a name by now."""
    made = people(known("chat:dora"), known("chat:eve", "revoked"))
    cleo = PersonSettings(name="cleo", ids=("chat:cleo",), roles=("operator",))
    allowed = {"chat": ("cleo", "eve"), "web": ()}
    made.apply_config(configured(cleo, allowed=allowed, language="de"))
    assert {who: admitted(made, who) for who in ("ben", "cleo", "dora", "eve")} == {
        "ben": None,
        "cleo": ("person:cleo", ["operator"]),
        "dora": ("chat:dora", []),
        "eve": None,
    }
    assert (made.local, made.language) == (("web",), "de")
    assert made.by_now(principal("cleo")).id == "person:cleo"
    assert made.by_now(principal("ben", name="ben")).id == "person:ben"


def test_a_look_up_reads_who_is_revoked_and_finds_out_nothing_itself() -> None:
    """The gate looks up approvers of long calls in a thread, while others are revoked (P4)."""
    read: list[str] = []

    class Ids(tuple[str, ...]):
        """Ids that tell when they are read."""

        __slots__ = ()

        def __iter__(self) -> Iterator[str]:
            read.append("ids")
            return super().__iter__()

    made = people(replace(known("chat:dora", "revoked"), ids=Ids(("chat:eve",))))
    known_by_then = len(read)
    assert (made.is_revoked("chat:eve"), admitted(made, "dora")) == (True, None)
    made.learn(known("chat:cleo", "revoked"))
    assert admitted(made, "cleo") is None
    assert (known_by_then, len(read)) == (1, 2)
