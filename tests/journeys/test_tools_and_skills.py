"""Tools that come as the model asks for them, and the skills of the operator."""

from pathlib import Path
from typing import cast

import msgspec
import pytest

from tests.emulators.model_server import Received
from tests.journeys.bench_tools import SHELVES
from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow

BENCH = ("peek", "knock", "nap", "dig")
SKILL = """---
name: tide-tables
description: >
  How to read tide tables. Use when somebody
  asks when to sail.
license: MIT
---
# Tides
Add one hour in summer. The token is {secret}.
"""


def sixty(directory: Path) -> Path:
    """Install another package of tools for the world of a directory, and return that."""
    package = directory / "installed" / "shelves-0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shelves\nVersion: 0\n")
    point = "[zeroclaw.tools]\nshelves = tests.journeys.bench_tools:shelves\n"
    (package / "entry_points.txt").write_text(point)
    return directory


def tools_of(request: Received) -> list[dict[str, object]]:
    """Return the tools of a request."""
    tools = cast("list[dict[str, dict[str, object]]]", request.body.get("tools", []))
    return [tool["function"] for tool in tools]


def names_of(request: Received) -> list[str]:
    """Return the names of a request's tools."""
    return [str(tool["name"]) for tool in tools_of(request)]


def prompt_of(request: Received) -> str:
    """Return the system message of a request."""
    return str(request.messages[0]["content"])


async def load_bench(world: World) -> None:
    """Ann asks, and the model loads the bench and then looks."""
    world.model.call("load_tools", {"groups": ["bench"]}, round=0, key="look")
    world.model.call("peek", {"what": "moon"}, round=1, key="look")
    world.model.say("Seen.", round=2, key="look")
    await world.say("ann", "look")
    await world.expect("ann", "Seen.")


def lay(directory: Path, name: str, text: str) -> Path:
    """Put a skill into the operator's folder."""
    folder = directory / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


async def test_sixty_tools_begin_with_one_that_brings_the_others(tmp_path: Path) -> None:
    """The first request stays at 6 KB; loaded tools are appended, and survive a kill.

    S3-13, S3-14, S3-18, K18.
    """
    async with open_world(sixty(tmp_path)) as world:
        await load_bench(world)
        first, second, third = world.model.requests
        assert len(msgspec.json.encode(first.body)) <= 6_000
        assert names_of(first) == ["load_tools"]
        (listing,) = tools_of(first)
        description = str(listing["description"])
        assert "\n- bench: peek, knock, nap, dig\n" in f"{description}\n"
        assert "\n- files: read_file, list_files, " in description
        assert all(name in description for name in SHELVES[:40])
        assert description.endswith(" and 3 more")
        assert names_of(second) == ["load_tools", *BENCH]
        assert tools_of(second)[:1] == tools_of(first)
        assert second.messages[: len(first.messages)] == first.messages
        assert third.body["tools"] == second.body["tools"]
        assert "their tools are among yours" in world.tool_results()[0]
        assert world.bench.ran() == ["moon"]
        assert world.chat("olga").cards == []
        await world.daemon.restart()
        world.model.say("Again.")
        await world.say("ann", "and now?")
        await world.expect("ann", "Seen.", "Again.")
        assert world.model.requests[-1].body["tools"] == second.body["tools"]
        await world.say("ann", "/new")
        world.model.say("Anew.", key="anew")
        await world.say("ann", "anew")
        await world.until(lambda: world.chat("ann").answers[-1] == "Anew.")
        assert world.model.requests[-1].body["tools"] == first.body["tools"]


async def test_few_tools_are_all_there_at_once(tmp_path: Path) -> None:
    """As many as the configuration says, and one more is too many. K18, S0-15."""
    async with open_world(tmp_path, runtime={"eager_tools": 17}) as world:
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")
        assert len(names_of(world.model.requests[-1])) == 17
        assert "load_tools" not in names_of(world.model.requests[-1])
        text = world.config.read_text(encoding="utf-8")
        world.config.write_text(text.replace("eager_tools = 17", "eager_tools = 16"), "utf-8")
        await world.daemon.restart()
        world.model.say("Again.")
        await world.say("ann", "and now?")
        await world.expect("ann", "Hello.", "Again.")
        assert names_of(world.model.requests[-1]) == ["load_tools"]


@pytest.mark.parametrize("calls_tools", [True, False])
async def test_only_a_model_that_calls_tools_is_sent_any(tmp_path: Path, calls_tools: bool) -> None:
    """The other reads that it has none; the provider's facts decide. S0-15."""
    package = tmp_path / "installed" / "chatter-0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: chatter\nVersion: 0\n")
    point = "[zeroclaw.providers]\nchatter = tests.journeys.bench_tools:chatter\n"
    (package / "entry_points.txt").write_text(point)
    kind = "openai" if calls_tools else "chatter"
    async with open_world(tmp_path, provider={"kind": kind}) as world:
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")
        (request,) = world.model.requests
        assert ("tools" in request.body) is calls_tools
        assert ("You have no tools here." in prompt_of(request)) is not calls_tools


async def test_a_kill_between_loading_and_use_loses_nothing(tmp_path: Path) -> None:
    """The resumed turn has the same tools. S3-14, K18."""
    async with open_world(sixty(tmp_path)) as world:
        gate = world.model.gate()
        world.model.call("load_tools", {"groups": ["bench"]}, round=0)
        world.model.hang(gate)
        await world.say("ann", "look")
        await gate.reached()
        assert names_of(world.model.requests[-1]) == ["load_tools", *BENCH]
        await world.daemon.kill()
        world.model.call("peek", {"what": "moon"}, round=1)
        world.model.say("Seen.", round=2)
        await world.daemon.start()
        await world.expect("ann", "Seen.")
        assert names_of(world.model.requests[-1]) == ["load_tools", *BENCH]
        assert world.bench.ran() == ["moon"]


async def test_a_tool_that_was_not_loaded_runs_all_the_same(tmp_path: Path) -> None:
    """Through the gate like every call; its group comes along, also where the call was wrong. K18."""
    async with open_world(sixty(tmp_path)) as world:
        world.model.calls(("peek", {"what": "moon"}), ("recall", {"limit": "many"}), round=0)
        world.model.call("load_tools", {"groups": ["nowhere"]}, round=1)
        world.model.say("Seen.", round=2)
        await world.say("ann", "look")
        await world.expect("ann", "Seen.")
        seen, recalled, loaded = world.tool_results()
        assert "peek: moon" in seen
        assert "the arguments of `recall` can't be used" in recalled
        assert "there is no group `nowhere`" in loaded
        notes = ("remember", "recall", "forget_note")
        assert names_of(world.model.requests[-1]) == ["load_tools", *BENCH, *notes]


async def test_a_tool_that_a_person_may_never_call_is_not_listed(tmp_path: Path) -> None:
    """Neither listed, nor loaded, nor suggested; for others it is there. K18, S3-14."""
    no_bench = {
        "id": "no-bench",
        "effect": "deny",
        "principals": ["person:ann"],
        "actions": [f"tool:{name}" for name in BENCH],
    }
    async with open_world(sixty(tmp_path), policy={"statement": [no_bench]}) as world:
        world.model.call("load_tools", {"groups": ["bench"]}, round=0, key="look")
        world.model.call("peeek", {"what": "moon"}, round=1, key="look")
        world.model.say("Nothing there.", round=2, key="look")
        await world.say("ann", "look")
        await world.expect("ann", "Nothing there.")
        await world.say("ann", "/tools")
        listed = await world.until(lambda: world.chat("ann").answers[1:])
        assert "- files: `read_file`, " in listed[0]
        request = f"{world.model.requests[-1].body}{listed}"
        assert names_of(world.model.requests[-1]) == ["load_tools"]
        assert "there is no group `bench`" in request
        assert "there is no tool `peeek`" in request
        assert not any(f"{name}`" in request or f" {name}," in request for name in BENCH)
        world.model.say("Hello.", key="hi")
        await world.say("bob", "hi")
        await world.expect("bob", "Hello.")
        assert "bench: peek, knock, nap, dig" in str(tools_of(world.model.requests[-1]))


async def test_a_skill_is_listed_loaded_and_there_until_the_conversation_ends(
    tmp_path: Path,
) -> None:
    """Its text comes with the system message, and outlasts a kill; no tool runs for it. S3-07, S3-18."""
    folder = lay(tmp_path, "tide-tables", SKILL.format(secret="correct horse battery 7431"))
    (folder / "ports.md").write_text("Kiel: none.\n", encoding="utf-8")
    lay(tmp_path, "no-description", "---\nname: no-description\n---\nAnything.\n")
    async with open_world(tmp_path, skills_dir=str(tmp_path / "skills")) as world:
        world.model.call("load_skills", {"name": "tide-tables"}, round=0, key="sail")
        world.model.call(
            "load_skills", {"name": "tide-tables", "file": "ports.md"}, round=1, key="sail"
        )
        world.model.say("At noon.", round=2, key="sail")
        await world.say("ann", "when to sail?")
        await world.expect("ann", "At noon.")
        first, second, _ = world.model.requests
        assert "- tide-tables: How to read tide tables. Use when somebody asks" in prompt_of(first)
        assert "Add one hour" not in prompt_of(first)
        assert prompt_of(second).startswith(prompt_of(first))
        assert "Add one hour in summer. The token is [redacted" in prompt_of(second)
        assert second.body["tools"] == first.body["tools"]
        loaded, file = world.tool_results()
        assert "- `ports.md`" in loaded
        assert "Kiel: none." in file
        assert world.chat("olga").cards == []
        await world.daemon.restart()
        world.model.say("Again.")
        await world.say("ann", "and now?")
        await world.expect("ann", "At noon.", "Again.")
        assert prompt_of(world.model.requests[-1]) == prompt_of(second)
        await world.say("ann", "/tools")
        (answer,) = await world.until(lambda: world.chat("ann").answers[2:])
        assert "- `tide-tables`: How to read tide tables." in answer
        assert "no-description" not in f"{answer}{world.model.requests[-1].body}"
        assert "`no-description` is left out: its `SKILL.md` needs a `description`" in (
            world.daemon.report()
        )


async def test_a_skill_is_withheld_where_the_policy_denies_it(tmp_path: Path) -> None:
    """By its resource, even if the model knows it from elsewhere. S3-07."""
    lay(tmp_path, "tide-tables", SKILL.format(secret="none"))
    denied = {
        "id": "no-tides",
        "effect": "deny",
        "principals": ["person:ann"],
        "actions": ["tool:load_skills"],
        "resources": ["skill:tide-*"],
    }
    skills = str(tmp_path / "skills")
    async with open_world(tmp_path, skills_dir=skills, policy={"statement": [denied]}) as world:
        world.model.call("load_skills", {"name": "tide-tables"}, round=0)
        world.model.say("I can't.", round=1)
        await world.say("ann", "when to sail?")
        await world.expect("ann", "I can't.")
        assert "tide-tables" not in str(world.model.requests[0].body)
        assert "Add one hour" not in str(world.model.requests[1].body)
        assert "`no-tides` denies it" in world.tool_results()[0]


@pytest.mark.needs("bwrap")
async def test_a_script_of_a_skill_runs_once_it_is_loaded(tmp_path: Path) -> None:
    """Asked about as every command, and gone with the skill. S3-07.

    The daemon and a real sandbox, for which skills those are follows from its journal.
    """
    folder = lay(tmp_path, "tide-tables", SKILL.format(secret="none"))
    (folder / "high.sh").write_text("echo high at $1 >/workspace/said; cat /workspace/said\n")
    for place in (tmp_path, tmp_path / "skills"):
        place.chmod(0o755)  # commands of a root daemon run as the user nobody
    script = {"command": "sh /skills/tide-tables/high.sh noon"}
    async with open_world(tmp_path, skills_dir=str(tmp_path / "skills")) as world:
        world.model.call("load_skills", {"name": "tide-tables"}, round=0)
        world.model.call("shell", script, round=1)
        world.model.say("So it is.", round=2)
        await world.say("ann", "when to sail?")
        card = await world.card()
        assert "sh /skills/tide-tables/high.sh noon" in card.text
        await world.daemon.kill()
        await world.daemon.start()
        await world.press("olga", card)
        await world.expect("ann", "So it is.")
        assert "exit code 0\nhigh at noon" in world.tool_results()[-1]
        prompt = prompt_of(world.model.requests[-1])
        assert "find its folder at `/skills/tide-tables`, read-only" in prompt
        [written] = (tmp_path / "workspaces").glob("*/said")
        assert written.read_text(encoding="utf-8") == "high at noon\n"


async def test_what_tools_write_is_never_a_skill(tmp_path: Path) -> None:
    """A folder that tools write to, or that holds one, is refused when the daemon starts. S3-07."""
    (tmp_path / "workspaces" / "skills").mkdir(parents=True)
    directory = str(tmp_path / "workspaces" / "skills")
    async with open_world(tmp_path, start=False, skills_dir=directory) as world:
        await world.daemon.start()
        assert await world.daemon.wait() != 0
        assert "are inside each other; move the skills out" in world.daemon.report()
