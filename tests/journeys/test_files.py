"""A person sends files, and the model reads them through its tool, through every fault on the way."""

from base64 import b64encode
from pathlib import Path

import pytest
from zeroclaw_test_platform.faults import Refuse, Unavailable

from tests.journeys.world import World, open_world

pytestmark = [pytest.mark.slow, pytest.mark.needs("platform")]

SUMS = "name;sum\nAnn;3,50\nBob;4,00\n".encode("cp1252")


def newest_input(world: World) -> str:
    """Return the person's newest message as the model reads it."""
    return [
        str(message["content"])
        for message in world.model.requests[-1].messages
        if message["role"] == "user"
    ][-1]


async def test_a_table_is_read_by_the_model(tmp_path: Path) -> None:
    """Sent with a message, listed by number, read without a question: it only reads."""
    async with open_world(tmp_path) as world:
        world.model.call("read_attachment", {"id": 1})
        world.model.say("7.50 in all", round=1)
        await world.say("ann", "sum it up", files={"sums.csv": SUMS})
        await world.expect("ann", "7.50 in all")
        assert "1. `sums.csv`: CSV table, 27 bytes]" in newest_input(world)
        [result] = world.tool_results()
        assert "row | name | sum\n1 | Ann | 3,50\n2 | Bob | 4,00" in result
        assert world.chat("olga").cards == []


async def test_a_sound_and_a_document_reach_a_model_that_takes_them(tmp_path: Path) -> None:
    """As the parts of the wire that carry them, byte for byte; a table is read with the tool. S1-08."""
    sound, page = b"RIFF\4\0\0\0WAVEfmt ", b"%PDF-1.7\n%%EOF\n"
    async with open_world(tmp_path, provider={"takes": ["audio", "files"]}) as world:
        world.model.say("A sound and a page.", key="what")
        files = {"a.wav": sound, "b.pdf": page, "sums.csv": SUMS}
        await world.say("ann", "what is it?", files=files)
        await world.expect("ann", "A sound and a page.")
        text, *parts = world.model.requests[-1].parts
        assert str(text["text"]).startswith("what is it?\n\n[Files that came with this message")
        data = f"data:application/pdf;base64,{b64encode(page).decode()}"
        assert parts == [
            {
                "type": "input_audio",
                "input_audio": {"data": b64encode(sound).decode(), "format": "wav"},
            },
            {"type": "file", "file": {"filename": "b.pdf", "file_data": data}},
        ]


@pytest.mark.parametrize("claimed_bytes", [None, 5])
async def test_a_file_that_is_too_large_is_reported_and_not_stored(
    tmp_path: Path, claimed_bytes: int | None
) -> None:
    """Whatever the platform says of its size."""
    async with open_world(tmp_path, attachments={"max_bytes": 1000}) as world:
        world.model.say("too large")
        await world.say("ann", "look", files={"a.txt": b"x" * 1001}, claimed_bytes=claimed_bytes)
        await world.expect("ann", "too large")
        assert "1. `a.txt`: did not come, tell the person: " in newest_input(world)
        assert len(world.platform.called("fetch")) == (0 if claimed_bytes is None else 1)


async def test_a_fetch_that_fails_twice_is_made_a_third_time(tmp_path: Path) -> None:
    """The answer waits for it, without a notice."""
    async with open_world(tmp_path) as world:
        world.platform.will("fetch", Unavailable(), Unavailable())
        world.model.say("seen")
        await world.say("ann", "look", files={"a.txt": b"milk"})
        await world.expect("ann", "seen")
        assert newest_input(world).endswith("1. `a.txt`: text, 4 bytes]")
        assert len(world.platform.called("fetch")) == 3


async def test_a_file_that_never_comes_does_not_hold_up_the_answer(tmp_path: Path) -> None:
    """A refusal is final; another person's answer does not wait for any of it."""
    async with open_world(tmp_path, attachments={"timeout_s": 2.5}) as world:
        world.platform.will("fetch", Refuse(), times=1)
        world.platform.will("fetch", Unavailable(), times=None)
        world.model.say("one is missing, and so is the other")
        await world.say("ann", "look", files={"a.txt": b"milk", "b.txt": b"bread"})
        await world.expect("ann", "one is missing, and so is the other")
        assert "1. `a.txt`: did not come, tell the person: 'loopback': refused" in newest_input(
            world
        )
        assert "2. `b.txt`: did not come, tell the person: 'loopback': come back" in newest_input(
            world
        )


async def test_a_person_reads_no_other_persons_file(tmp_path: Path) -> None:
    """Numbers are the conversation's own."""
    async with open_world(tmp_path) as world:
        world.model.say("thanks")
        await world.say("ann", "keep it", files={"secret.txt": b"the recipe"})
        await world.expect("ann", "thanks")
        world.model.call("read_attachment", {"id": 1})
        world.model.say("nothing there", round=1)
        await world.say("bob", "read hers")
        await world.expect("bob", "nothing there")
        [result] = world.tool_results()
        assert "there is no attachment 1 here" in result
        assert "recipe" not in result
