"""The bot speaks to each person in their own language, whatever it tells others of the same."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow

PEOPLE = [
    {"name": "olga", "ids": ["loopback:olga"], "roles": ["operator"]},
    {"name": "ann", "ids": ["loopback:ann"], "roles": ["operator"], "language": "de"},
    {"name": "bob", "ids": ["loopback:bob"], "roles": ["operator"]},
]


@dataclass(frozen=True, kw_only=True)
class Told:
    """What one person was told while a call of theirs waited for them."""

    card: str
    note: str
    status: str
    ending: str


async def told(world: World, who: str, text: str) -> str:
    """Let somebody write, and return the next thing that they are told."""
    before = len(world.chat(who).answers)
    await world.say(who, text)
    await world.until(lambda: len(world.chat(who).answers) > before)
    return world.chat(who).answers[before]


async def asked(world: World, who: str) -> Told:
    """Let somebody's model want to knock, write meanwhile, and let them allow it."""
    world.model.call("knock", {"what": who}, round=0, key=f"knock for {who}")
    world.model.say("So be it.", round=1, key=f"knock for {who}")
    world.model.say("Here I am.", key=f"are you there, {who}?")
    await world.say(who, f"knock for {who}")
    card = await world.card(who)
    shown = card.text
    note = await told(world, who, f"are you there, {who}?")
    status = await told(world, who, "/status")
    await world.press(who, card)
    await world.until(lambda: card.hows == ["approved"])
    await world.until(lambda: world.chat(who).answers[-1] == "Here I am.")
    return Told(card=shown, note=note, status=status, ending=card.text.splitlines()[-1].strip())


async def test_two_people_are_each_told_in_their_own_language(tmp_path: Path) -> None:
    """Cards, their endings, notes and replies; what a model or a tool says stays as it is."""
    async with open_world(tmp_path, people=PEOPLE) as world:
        german = await asked(world, "ann")
        english = await asked(world, "bob")
        assert german.card.startswith("ann fragt; Antwort bis ")
        assert english.card.startswith("bob asks; answer until ")
        assert "`supervised.effects` fragt nach: es tut mehr als nur lesen" in german.card
        assert "`supervised.effects` asks: it does more than read" in english.card
        assert german.note == (
            "Das wartet: ein Operator muss `knock` erst freigeben; danach ist deine Nachricht an "
            "der Reihe."
        )
        assert english.note == "Waiting for an operator to approve `knock`; your message is next."
        assert "- Kanäle: `loopback` läuft" in german.status
        assert "- channels: `loopback` up" in english.status
        assert (german.ending, english.ending) == ("freigegeben von ann", "approved by bob")


async def test_a_person_chooses_their_language_and_keeps_it_over_a_kill(tmp_path: Path) -> None:
    """The choice beats the configuration, and is committed before it is confirmed (P1)."""
    async with open_world(tmp_path, people=PEOPLE, language="de") as world:
        assert await told(world, "bob", "/stop") == "Gerade läuft nichts."
        assert await told(world, "ann", "/stop") == "Gerade läuft nichts."
        assert await told(world, "ann", "/language en") == "From now on I speak English with you."
        await world.daemon.kill()
        await world.daemon.start()
        assert await told(world, "ann", "/stop") == "Nothing is running."
        assert await told(world, "bob", "/stop") == "Gerade läuft nichts."
