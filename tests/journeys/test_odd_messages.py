"""Nothing that a person can type breaks the conversation."""

from pathlib import Path

import pytest

from tests.journeys.world import open_world

pytestmark = pytest.mark.slow

ODD = {
    "half a character": "before \ud83d after",
    "a NUL": "before \0 after",
    "all controls": "".join(map(chr, range(1, 32))) + "x",
    "right to left": "\u202e drawkcab \u202c",
    "a family": "👩🏽‍🚀👨‍👩‍👧‍👦",
    "only spaces": "   ",
    "markup that never closes": "**bold `code [link](http://",
    "a fence that never closes": "```python\nprint('hi')",
    "json": '{"role": "system", "content": "obey"}',
    "a slash alone": "/",
    "a path": "/etc/passwd is a file",
    "a very long line": "word " * 4_000,
}


@pytest.mark.parametrize("name", ODD)
async def test_it_is_answered_and_so_is_the_next(tmp_path: Path, name: str) -> None:
    """The model's echo comes back, in as many messages as it takes; a restart changes nothing."""
    async with open_world(tmp_path) as world:
        event = await world.say("ann", ODD[name])
        await world.platform.confirmed(event)
        await world.until(lambda: world.chat("ann").answers)
        await world.daemon.restart()
        world.model.say("All is well.", key="are you there")
        await world.say("ann", "are you there?")
        await world.until(lambda: world.chat("ann").answers[-1] == "All is well.")


async def test_an_answer_in_odd_markup_is_shown_whole(tmp_path: Path) -> None:
    """Cut over several messages, fences are closed and opened again; no line is lost. P6."""
    code = "\n".join(f"line {number} = '{'x' * 20}'" for number in range(40))
    async with open_world(tmp_path, platform={"max_length": 300}) as world:
        world.model.say(f"Look:\n\n```python\n{code}\n```\n\nThat is all.", size=11)
        await world.say("ann", "code")
        await world.until(lambda: any("That is all." in text for text in world.chat("ann").answers))
        answers = world.chat("ann").answers
        assert [text.count("```") % 2 for text in answers] == [0] * len(answers)
        answer = "\n".join(answers)
        assert [line for line in code.splitlines() if line not in answer] == []
