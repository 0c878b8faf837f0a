"""`/otr`: what is said off the record is on no disk, and is forgotten; what was said before goes on.

pytest tests/journeys/test_off_the_record.py
"""

from pathlib import Path

import pytest

from tests.journeys.traces import PHRASE, traces
from tests.journeys.world import World, world

pytestmark = pytest.mark.slow

GONE = "what you said off the record is gone"


async def begin(here: World, who: str = "ann", *, chat: str = "") -> None:
    """Go off the record."""
    await here.say(who, "/otr", chat=chat)
    await here.until(
        lambda: any(one.startswith("Off the record from") for one in here.chat(chat or who).answers)
    )


async def test_what_is_said_off_the_record_is_known_there_and_on_no_disk(tmp_path: Path) -> None:
    """Messages, answers, calls, results, files: after a kill, and after an end. K23."""
    async with world(tmp_path) as here:
        here.model.say("Hello.", key="good morning")
        await here.say("ann", "good morning")
        await here.answered("ann", "Hello.")
        await begin(here)
        here.model.call("peek", {"what": PHRASE}, round=0, key="look")
        here.model.say(f"I saw the {PHRASE}.", round=1, key="look")
        files = {"note.txt": f"{PHRASE}\n".encode()}
        await here.say("ann", f"look: {PHRASE}", files=files)
        await here.until(lambda: f"I saw the {PHRASE}." in here.chat("ann").answers)
        here.model.say("The stone.", key="which one")
        await here.say("ann", "which one?")
        await here.until(lambda: "The stone." in here.chat("ann").answers)
        request = here.model.requests[-1]
        assert PHRASE in str(request.messages)
        assert "off the record" in str(request.messages[0]["content"])
        assert "good morning" not in str(request.messages)
        assert traces(tmp_path) == []
        await here.daemon.kill()
        assert traces(tmp_path) == []
        await here.daemon.start()
        await here.until(lambda: GONE in here.chat("ann").answers[-1])
        here.model.say("Where?", key="and now")
        await here.say("ann", "and now?")
        await here.until(lambda: "Where?" in here.chat("ann").answers)
        assert PHRASE not in str(here.model.requests[-1].messages)
        await here.daemon.restart()
        assert traces(tmp_path) == []


async def test_the_record_goes_on_where_it_was_left(tmp_path: Path) -> None:
    """`/otr off` forgets what was said since, and the history of before is known again."""
    async with world(tmp_path) as here:
        here.model.say("Hello.", key="good morning")
        await here.say("ann", "good morning")
        await here.answered("ann", "Hello.")
        await begin(here)
        here.model.say("Yes.", key="psst")
        await here.say("ann", f"psst: {PHRASE}")
        await here.until(lambda: "Yes." in here.chat("ann").answers)
        await here.say("ann", "/otr off")
        await here.until(lambda: here.chat("ann").answers[-1].startswith("On the record again"))
        here.model.say("Still here.", key="are you there")
        await here.say("ann", "are you there?")
        await here.until(lambda: "Still here." in here.chat("ann").answers)
        messages = str(here.model.requests[-1].messages)
        assert ("good morning" in messages, PHRASE in messages) == (True, False)
        await here.daemon.kill()
        assert traces(tmp_path) == []
        await here.daemon.start()
        here.model.say("Once more.", key="and now")
        await here.say("ann", "and now?")
        await here.until(lambda: "Once more." in here.chat("ann").answers)
        assert not any(GONE in one for one in here.chat("ann").answers)


@pytest.mark.parametrize("status", [400, 401, 404, 500])
async def test_what_a_server_repeats_of_it_is_told_to_nobody_else(
    status: int, tmp_path: Path
) -> None:
    """Not in the log, nor to operators, who learn that it failed; a file's name neither. K23."""
    async with world(tmp_path, provider={"attempts": 1}) as here:
        await begin(here)
        here.model.refuse(status, f"`{PHRASE}` is not allowed", times=None)
        files = {f"{PHRASE}.txt": b"."}
        await here.say("ann", f"look: {PHRASE}", files=files, said_bytes=10**12)
        await here.until(lambda: here.chat("ann").answers[-1].startswith("_The model "))
        await here.until(lambda: here.chat("olga").texts)
        assert here.chat("olga").texts[0].startswith("An answer to ann in `loopback` failed: the ")
        assert PHRASE not in str(here.chat("olga").texts)
        assert "model_failed" in here.daemon.stderr
        assert traces(tmp_path) == []
        await here.daemon.kill()
        assert traces(tmp_path) == []
