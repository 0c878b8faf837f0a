"""A looping turn is warned and then ended; one that makes progress is left alone (K22)."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import tomli_w

from tests.journeys.loop_scripts import FRESH, LATER, NOISY, SEEN, UNSEEN, Round, Scripts
from tests.journeys.world import open_world

pytestmark = [pytest.mark.slow, pytest.mark.needs("bwrap")]
DONE = "That was all."
STOPPED = "again and again"


def script_of(scripts: Mapping[str, Sequence[Round]]) -> str:
    """Return the script of a model that plays each of these for the message of its name."""
    turns = [
        {
            "when": f"<{name}>",
            "answer": [
                *(
                    {"steps": [{"call": tool, "arguments": arguments} for tool, arguments in calls]}
                    for calls in rounds
                ),
                {"steps": [{"say": DONE}]},
            ],
        }
        for name, rounds in scripts.items()
    ]
    return tomli_w.dumps({"turn": turns})


async def play(directory: Path, scripts: Mapping[str, Sequence[Round]]) -> dict[str, str]:
    """Return the last answer to each script."""
    (directory / "script.toml").write_text(script_of(scripts), encoding="utf-8")
    provider = {"kind": "scripted", "script": str(directory / "script.toml")}
    answers: dict[str, str] = {}
    async with open_world(
        directory, autonomy="full", policy={"ask_when_untrusted": False}, provider=provider
    ) as world:
        for name in scripts:
            before = len(world.chat("ann").answers)
            await world.say("ann", f"<{name}>")
            await world.until(
                lambda before=before: any(
                    DONE in text or "topped" in text for text in world.chat("ann").answers[before:]
                )
            )
            answers[name] = world.chat("ann").answers[-1]
            new = await world.say("ann", "/new")
            await world.until(lambda new=new: new.confirmed)
    return answers


async def test_a_few_of_each(tmp_path: Path) -> None:
    """One process plays them, on the tools that people have; the rest are among the long tests.

    A model that pages through a file is not stopped. S4-04, S4-18, K22.
    """
    looping = ("two files in turn", "searches in other words")
    honest = ("reads a long file", "mends until it works")
    answers = await play(
        tmp_path,
        {name: SEEN.looping[name] for name in looping}
        | {name: SEEN.honest[name] for name in honest},
    )
    assert [STOPPED in answers[name] for name in (*looping, *honest)] == [True, True, False, False]


@pytest.mark.long("plays a hundred and forty conversations")
@pytest.mark.parametrize(
    ("scripts", "when", "wrong"),
    [
        pytest.param(SEEN, "before", ((), ()), id="seen"),
        # It does something new in each second round; the bound of rounds ends it.
        pytest.param(UNSEEN, "after", (("reads one file and writes a diary",), ()), id="unseen"),
        pytest.param(FRESH, "before", ((), ()), id="fresh"),
        pytest.param(LATER, "after", ((), ()), id="later"),
        # So do these.
        pytest.param(
            NOISY,
            "before",
            (("makes a name and forgets it", "plans and plans", "writes a note of each look"), ()),
            id="noisy",
        ),
    ],
)
async def test_false_stops_and_misses_are_counted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    scripts: Scripts,
    when: str,
    wrong: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    """Loops are stopped and honest scripts are not, except for the listed misses and stops (K22)."""
    answers = await play(tmp_path, {**scripts.looping, **scripts.honest})
    misses = [name for name in scripts.looping if STOPPED not in answers[name]]
    stops = [name for name in scripts.honest if STOPPED in answers[name]]
    counts = {
        "scripts written": f"{when} the thresholds",
        "looping": len(scripts.looping),
        "misses": misses,
        "honest": len(scripts.honest),
        "false stops": stops,
    }
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps(counts)}\n")
    assert (tuple(misses), tuple(stops)) == wrong
