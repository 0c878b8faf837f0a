"""`/otr`: text off the record is on no disk and is forgotten; the earlier history continues.

pytest tests/journeys/test_off_the_record.py
"""

from pathlib import Path

import pytest

from tests.journeys.leaks import PHRASE, leaks
from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow

GONE = "what you said off the record is gone"


async def begin(world: World, person: str = "ann", *, chat: str = "") -> None:
    """Go off the record."""
    await world.say(person, "/otr", chat=chat)
    await world.until(
        lambda: any(
            answer.startswith("Off the record from")
            for answer in world.chat(chat or person).answers
        )
    )


async def test_a_message_off_the_record_is_known_there_and_on_no_disk(tmp_path: Path) -> None:
    """Messages, answers, calls, results, files: after a kill, and after an end. K23."""
    async with open_world(tmp_path) as world:
        world.model.say("Hello.", key="good morning")
        await world.say("ann", "good morning")
        await world.expect("ann", "Hello.")
        await begin(world)
        world.model.call("peek", {"what": PHRASE}, round=0, key="look")
        world.model.say(f"I saw the {PHRASE}.", round=1, key="look")
        files = {"note.txt": f"{PHRASE}\n".encode()}
        await world.say("ann", f"look: {PHRASE}", files=files)
        await world.until(lambda: f"I saw the {PHRASE}." in world.chat("ann").answers)
        world.model.say("The stone.", key="which one")
        await world.say("ann", "which one?")
        await world.until(lambda: "The stone." in world.chat("ann").answers)
        request = world.model.requests[-1]
        assert PHRASE in str(request.messages)
        assert "off the record" in str(request.messages[0]["content"])
        assert "good morning" not in str(request.messages)
        assert leaks(tmp_path) == []
        await world.daemon.kill()
        assert leaks(tmp_path) == []
        await world.daemon.start()
        await world.until(lambda: GONE in world.chat("ann").answers[-1])
        world.model.say("Where?", key="and now")
        await world.say("ann", "and now?")
        await world.until(lambda: "Where?" in world.chat("ann").answers)
        assert PHRASE not in str(world.model.requests[-1].messages)
        await world.daemon.restart()
        assert leaks(tmp_path) == []


async def test_the_record_goes_on_where_it_was_left(tmp_path: Path) -> None:
    """`/otr off` forgets all text since `/otr`, and the earlier history is known again."""
    async with open_world(tmp_path) as world:
        world.model.say("Hello.", key="good morning")
        await world.say("ann", "good morning")
        await world.expect("ann", "Hello.")
        await begin(world)
        world.model.say("Yes.", key="psst")
        await world.say("ann", f"psst: {PHRASE}")
        await world.until(lambda: "Yes." in world.chat("ann").answers)
        await world.say("ann", "/otr off")
        await world.until(lambda: world.chat("ann").answers[-1].startswith("On the record again"))
        world.model.say("Still here.", key="are you there")
        await world.say("ann", "are you there?")
        await world.until(lambda: "Still here." in world.chat("ann").answers)
        messages = str(world.model.requests[-1].messages)
        assert ("good morning" in messages, PHRASE in messages) == (True, False)
        await world.daemon.kill()
        assert leaks(tmp_path) == []
        await world.daemon.start()
        world.model.say("Once more.", key="and now")
        await world.say("ann", "and now?")
        await world.until(lambda: "Once more." in world.chat("ann").answers)
        assert not any(GONE in answer for answer in world.chat("ann").answers)


@pytest.mark.parametrize("status", [400, 401, 404, 500])
async def test_a_server_error_that_repeats_it_reaches_no_other_person(
    status: int, tmp_path: Path
) -> None:
    """Not in the log, nor to operators, who learn that it failed; a file's name neither. K23."""
    async with open_world(tmp_path, provider={"attempts": 1}) as world:
        await begin(world)
        world.model.refuse(status, f"`{PHRASE}` is not allowed", times=None)
        files = {f"{PHRASE}.txt": b"."}
        await world.say("ann", f"look: {PHRASE}", files=files, claimed_bytes=10**12)
        await world.until(lambda: world.chat("ann").answers[-1].startswith("_The model "))
        await world.until(lambda: world.chat("olga").texts)
        assert world.chat("olga").texts[0].startswith("An answer to ann in `loopback` failed: the ")
        assert PHRASE not in str(world.chat("olga").texts)
        assert "model_failed" in world.daemon.stderr
        assert leaks(tmp_path) == []
        await world.daemon.kill()
        assert leaks(tmp_path) == []
