"""What people tell the bot to remember: known later, to them alone, until they want it forgotten."""

from pathlib import Path

import pytest

from tests.journeys.world import World, world

pytestmark = pytest.mark.slow

FACT = "likes green tea"


async def tell(here: World, who: str, *, chat: str = "") -> None:
    """Somebody has a fact remembered."""
    here.model.call("remember", {"text": FACT}, round=0, key="remember")
    here.model.say("Noted.", round=1, key="remember")
    await here.say(who, "@bot remember that I like green tea", chat=chat)
    await here.until(lambda: "Noted." in here.chat(chat or who).answers)


async def asked(here: World, who: str, text: str, *, chat: str = "") -> str:
    """Somebody writes; return the newest request, whole, as text."""
    here.model.say(f"Answer to {text}", key=text)
    await here.say(who, f"@bot {text}", chat=chat)
    await here.until(lambda: f"Answer to {text}" in here.chat(chat or who).answers)
    return str(here.model.requests[-1].messages)


async def test_what_was_told_is_known_later_by_its_person_until_it_is_forgotten(
    tmp_path: Path,
) -> None:
    """Across `/new` and kills; the others' requests never hold it. S2-05, K25."""
    async with world(tmp_path, autonomy="full") as here:
        await tell(here, "ann")
        await here.daemon.kill()
        await here.daemon.start()
        await here.say("ann", "/new")
        told = await asked(here, "ann", "which drink")
        assert "ann on loopback, another conversation" in told
        assert FACT in told
        assert FACT not in await asked(here, "bob", "which drink does Ann take")
        here.model.call("forget_note", {"number": 1}, round=0, key="forget")
        here.model.say("Forgotten.", round=1, key="forget")
        await here.say("ann", "forget that")
        await here.until(lambda: "Forgotten." in here.chat("ann").answers)
        await here.daemon.kill()
        await here.daemon.start()
        await here.say("ann", "/new")
        assert FACT not in await asked(here, "ann", "and now")


async def test_what_fits_the_message_goes_along_where_not_all_has_room(tmp_path: Path) -> None:
    """All of it while it fits, in its order; the oldest fact, where the message is about it. K25."""
    notes = {"recalled_chars": 400}
    async with world(tmp_path, autonomy="full", tools={"notes": notes}) as here:

        async def remembered(*facts: str) -> None:
            calls = [("remember", {"text": one}) for one in facts]
            here.model.calls(*calls, round=0, key=facts[0])
            here.model.say(f"Noted {facts[0]}", round=1, key=facts[0])
            await here.say("ann", facts[0])
            await here.until(lambda: f"Noted {facts[0]}" in here.chat("ann").answers)

        await remembered("The boat is called Erna.", "The cat is called Momo.")
        told = await asked(here, "ann", "good morning")
        assert ("Erna" in told, "Momo" in told) == (True, True)
        await remembered(*(f"Meeting {number} was long{', so long' * 9}." for number in range(6)))
        await here.say("ann", "/new")
        told = await asked(here, "ann", "how is the boat called")
        assert ("Erna" in told, "Meeting 5" in told, "Meeting 0" in told) == (True, True, False)
        await here.say("ann", "/new")
        told = await asked(here, "ann", "anything new")
        assert ("Erna" in told, "Meeting 5" in told, "Meeting 0" in told) == (False, True, False)


async def test_facts_outlive_the_words_that_a_summary_stands_for(tmp_path: Path) -> None:
    """In another conversation too, after a kill; nobody asked for them to be kept. S3-11."""
    async with world(tmp_path, autonomy="full") as here:
        for number in range(2):
            here.model.say(f"Answer {number}", key=f"number {number}")
            await here.say("ann", f"number {number}, and I like green tea")
            await here.until(lambda n=number: f"Answer {n}" in here.chat("ann").answers)
        here.model.say(f'"Ann {FACT}."\nState: they met.', key='{"', times=None)
        await here.say("ann", "/compact")
        await here.until(lambda: "is summarised now" in here.chat("ann").answers[-1])
        await here.daemon.kill()
        await here.daemon.start()
        await here.say("ann", "/new")
        told = await asked(here, "ann", "which drink")
        assert f"ann on loopback, another conversation: Ann {FACT}." in told
        assert FACT not in await asked(here, "bob", "which drink does Ann take")


async def test_a_fact_of_a_group_does_not_leave_the_group(tmp_path: Path) -> None:
    """Nor does one that was told in private come into it; a kill changes nothing."""
    async with world(tmp_path, autonomy="full") as here:
        await tell(here, "ann", chat="#room")
        await here.daemon.kill()
        await here.daemon.start()
        assert FACT in await asked(here, "bob", "which drink", chat="#room")
        assert FACT not in await asked(here, "bob", "which drink alone")
        assert FACT not in await asked(here, "ann", "which drink mine")
        await tell(here, "ann")
        assert FACT not in await asked(here, "bob", "which drink there", chat="#other")
