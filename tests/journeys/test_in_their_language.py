"""The bot writes to each person in their own language, also about the same event."""

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
class ApprovalTexts:
    """The texts that a person read about a call of theirs."""

    card: str
    note: str
    status: str
    ending: str


async def reply_to(world: World, person: str, text: str) -> str:
    """Let a person write, and return the bot's next message to them."""
    before = len(world.chat(person).answers)
    await world.say(person, text)
    await world.until(lambda: len(world.chat(person).answers) > before)
    return world.chat(person).answers[before]


async def approval_texts(world: World, person: str) -> ApprovalTexts:
    """Let a person's turn call `knock`, write meanwhile, and let them approve it."""
    world.model.call("knock", {"what": person}, round=0, key=f"knock for {person}")
    world.model.say("So be it.", round=1, key=f"knock for {person}")
    world.model.say("Here I am.", key=f"are you there, {person}?")
    await world.say(person, f"knock for {person}")
    card = await world.card(person)
    card_text = card.text
    note = await reply_to(world, person, f"are you there, {person}?")
    status = await reply_to(world, person, "/status")
    await world.press(person, card)
    await world.until(lambda: card.outcomes == ["approved"])
    await world.until(lambda: world.chat(person).answers[-1] == "Here I am.")
    return ApprovalTexts(
        card=card_text, note=note, status=status, ending=card.text.splitlines()[-1].strip()
    )


async def test_two_people_each_read_their_own_language(tmp_path: Path) -> None:
    """Cards, outcomes, notes and replies are translated; texts of models and tools are not."""
    async with open_world(tmp_path, people=PEOPLE) as world:
        german = await approval_texts(world, "ann")
        english = await approval_texts(world, "bob")
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
        assert await reply_to(world, "bob", "/stop") == "Gerade läuft nichts."
        assert await reply_to(world, "ann", "/stop") == "Gerade läuft nichts."
        assert (
            await reply_to(world, "ann", "/language en") == "From now on I speak English with you."
        )
        await world.daemon.kill()
        await world.daemon.start()
        assert await reply_to(world, "ann", "/stop") == "Nothing is running."
        assert await reply_to(world, "bob", "/stop") == "Gerade läuft nichts."
