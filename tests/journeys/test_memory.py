"""Facts that people have the bot remember: known later, to them alone, until they are forgotten."""

from pathlib import Path

import pytest

from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow

FACT = "likes green tea"


async def state_fact(world: World, person: str, *, chat: str = "") -> None:
    """Let a person's turn remember the fact."""
    world.model.call("remember", {"text": FACT}, round=0, key="remember")
    world.model.say("Noted.", round=1, key="remember")
    await world.say(person, "@bot remember that I like green tea", chat=chat)
    await world.until(lambda: "Noted." in world.chat(chat or person).answers)


async def request_after(world: World, person: str, text: str, *, chat: str = "") -> str:
    """Let a person write; return the newest request as text."""
    world.model.say(f"Answer to {text}", key=text)
    await world.say(person, f"@bot {text}", chat=chat)
    await world.until(lambda: f"Answer to {text}" in world.chat(chat or person).answers)
    return str(world.model.requests[-1].messages)


async def test_a_fact_is_known_in_its_persons_later_turns_until_it_is_forgotten(
    tmp_path: Path,
) -> None:
    """Across `/new` and kills; the others' requests never hold it. S2-05, K25."""
    async with open_world(tmp_path, autonomy="full") as world:
        await state_fact(world, "ann")
        await world.daemon.kill()
        await world.daemon.start()
        await world.say("ann", "/new")
        request = await request_after(world, "ann", "which drink")
        assert "ann on loopback, another conversation" in request
        assert FACT in request
        assert FACT not in await request_after(world, "bob", "which drink does Ann take")
        world.model.call("forget_note", {"number": 1}, round=0, key="forget")
        world.model.say("Forgotten.", round=1, key="forget")
        await world.say("ann", "forget that")
        await world.until(lambda: "Forgotten." in world.chat("ann").answers)
        await world.daemon.kill()
        await world.daemon.start()
        await world.say("ann", "/new")
        assert FACT not in await request_after(world, "ann", "and now")


async def test_what_fits_the_message_goes_along_where_not_all_has_room(tmp_path: Path) -> None:
    """All of it while it fits, in its order; the oldest fact, where the message is about it. K25."""
    notes = {"recalled_chars": 400}
    async with open_world(tmp_path, autonomy="full", tools={"notes": notes}) as world:

        async def remembered(*facts: str) -> None:
            calls = [("remember", {"text": fact}) for fact in facts]
            world.model.calls(*calls, round=0, key=facts[0])
            world.model.say(f"Noted {facts[0]}", round=1, key=facts[0])
            await world.say("ann", facts[0])
            await world.until(lambda: f"Noted {facts[0]}" in world.chat("ann").answers)

        await remembered("The boat is called Erna.", "The cat is called Momo.")
        request = await request_after(world, "ann", "good morning")
        assert ("Erna" in request, "Momo" in request) == (True, True)
        await remembered(*(f"Meeting {number} was long{', so long' * 9}." for number in range(6)))
        await world.say("ann", "/new")
        request = await request_after(world, "ann", "how is the boat called")
        assert ("Erna" in request, "Meeting 5" in request, "Meeting 0" in request) == (
            True,
            True,
            False,
        )
        await world.say("ann", "/new")
        request = await request_after(world, "ann", "anything new")
        assert ("Erna" in request, "Meeting 5" in request, "Meeting 0" in request) == (
            False,
            True,
            False,
        )


async def test_facts_outlive_the_words_that_a_summary_stands_for(tmp_path: Path) -> None:
    """In another conversation too, after a kill, without a request to keep them. S3-11."""
    async with open_world(tmp_path, autonomy="full") as world:
        for number in range(2):
            world.model.say(f"Answer {number}", key=f"number {number}")
            await world.say("ann", f"number {number}, and I like green tea")
            await world.until(lambda n=number: f"Answer {n}" in world.chat("ann").answers)
        world.model.say(f'"Ann {FACT}."\nState: they met.', key='{"', times=None)
        await world.say("ann", "/compact")
        await world.until(lambda: "is summarised now" in world.chat("ann").answers[-1])
        await world.daemon.kill()
        await world.daemon.start()
        await world.say("ann", "/new")
        request = await request_after(world, "ann", "which drink")
        assert f"ann on loopback, another conversation: Ann {FACT}." in request
        assert FACT not in await request_after(world, "bob", "which drink does Ann take")


async def test_a_fact_of_a_group_does_not_leave_the_group(tmp_path: Path) -> None:
    """Nor does a group learn one from a private chat; a kill changes nothing."""
    async with open_world(tmp_path, autonomy="full") as world:
        await state_fact(world, "ann", chat="#room")
        await world.daemon.kill()
        await world.daemon.start()
        assert FACT in await request_after(world, "bob", "which drink", chat="#room")
        assert FACT not in await request_after(world, "bob", "which drink alone")
        assert FACT not in await request_after(world, "ann", "which drink mine")
        await state_fact(world, "ann")
        assert FACT not in await request_after(world, "bob", "which drink there", chat="#other")
