"""The tools and skills of a request, and those that a conversation has loaded."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.fakes.house import World
from tests.fakes.plain_tool import BURN, LOOK, POKE, PlainTool
from tests.fakes.scripted_model import Answer, asks_for, says
from tests.unit.gate.gate_house import ANN, BOB, statement
from tests.unit.turn.parts import call
from zeroclaw.config.model import Config, RuntimeSettings
from zeroclaw.context.offers import MAX_LOADED, MAX_NAME_CHARS, Loaded, Offers, extend
from zeroclaw.envelope import Address, off_the_record
from zeroclaw.gate.policy import PolicySet, Statement
from zeroclaw.inbound.live_config import LiveConfig
from zeroclaw.message import ToolCall, ToolDefinition
from zeroclaw.store import DurablePoint
from zeroclaw.tool import Effect
from zeroclaw.tools.loading.skill import Skill
from zeroclaw.value import replace

HERE = Address(channel="web", account="local", chat="7", direct=True)
ALLOW = statement("a", "allow")
LOAD = asks_for(("load_tools", '{"groups": ["poke"]}'))
TIDES = Skill(name="tides", description="When to sail.", text="Add an hour.", folder=Path("/s"))
PORTS = replace(TIDES, name="ports")


def offers(
    *statements: Statement, eager: int = 0, skills: tuple[Skill, ...] = (), more: int = 0
) -> Offers:
    specs = (LOOK, POKE, BURN, *(replace(LOOK, name=f"look_{number}") for number in range(more)))
    groups: Mapping[str, str] = {spec.name: "more" for spec in specs[3:]} | {"look": "eyes"}
    return Offers(
        tools={spec.name: PlainTool(spec) for spec in specs},
        groups=groups,
        skills=lambda: skills,
        policy=lambda: PolicySet((ALLOW, *statements)),
        current=lambda principal: principal,
        now=lambda: datetime(2026, 11, 21, tzinfo=UTC),
        settings=LiveConfig(Config(runtime=RuntimeSettings(eager_tools=eager)), ()),
    )


def names(tools: Iterable[ToolDefinition]) -> list[str]:
    return [tool.name for tool in tools]


def test_off_the_record_no_tool_is_offered_or_listed_that_leaves_a_trace() -> None:
    """Nor one that was loaded before; skills and what only reads are. K23."""
    conversation, loaded = off_the_record("01A"), Loaded(tools=("burn", "look"))
    assert names(offers(eager=3).definitions(ANN, HERE, Loaded(), conversation)) == ["look"]
    listing, *rest = offers(eager=0).definitions(ANN, HERE, loaded, conversation)
    assert [tool.name for tool in rest] == ["look"]
    assert "poke" not in listing.description


def test_few_tools_are_offered_at_once() -> None:
    """Up to the bound all, beyond it the one that brings them. K18, S0-15."""
    assert names(offers(eager=3).definitions(ANN, HERE, Loaded())) == ["look", "poke", "burn"]
    lazy = offers(eager=2).definitions(ANN, HERE, Loaded())
    assert names(lazy) == ["load_tools"]
    assert lazy[0].description.endswith("There are:\n- eyes: look\n- poke: poke\n- burn: burn")


def test_loaded_tools_stand_behind_in_that_order() -> None:
    """By a group's name or a tool's; what is gone since is left out. S3-14."""
    loaded = Loaded(tools=("burn", "gone", "look", "eyes"))
    assert names(offers().definitions(ANN, HERE, loaded)) == ["load_tools", "burn", "look"]


def test_a_large_group_is_named_in_part() -> None:
    """Its first forty tools, and how many are left."""
    listing, *_ = offers(more=42).definitions(ANN, HERE, Loaded())
    assert listing.description.endswith("look_38, look_39 and 2 more")


def test_what_policy_denies_is_not_there() -> None:
    """Nor the group that has nothing else, nor the loader. K18."""
    mine = offers(
        statement("b", "deny", principals=("person:ann",), actions=("tool:look", "tool:load_tools"))
    )
    assert set(mine.groups_for(ANN, HERE)) == {"poke", "burn"}
    assert set(mine.groups_for(BOB, HERE)) == {"eyes", "poke", "burn"}
    reading = offers(statement("b", "deny", when={"effects_any_of": ["write"]}))
    assert set(reading.groups_for(ANN, HERE)) == {"eyes"}
    loaded = Loaded(tools=("look", "poke"))
    assert names(mine.definitions(ANN, HERE, loaded)) == ["poke"]
    eyes = offers(statement("b", "deny", resources=("tools:p*",)))
    listing, *_ = eyes.definitions(ANN, HERE, loaded)
    assert listing.description.endswith("There are:\n- eyes: look\n- burn: burn")


def test_a_skill_brings_its_loader() -> None:
    """Where the person may have one; without tools or skills there is nothing at all. S3-07."""
    mine = offers(eager=9, skills=(TIDES,))
    assert names(mine.definitions(ANN, HERE, Loaded())) == ["load_skills", "look", "poke", "burn"]
    lazy = offers(skills=(TIDES,)).definitions(ANN, HERE, Loaded())
    assert names(lazy) == ["load_tools", "load_skills"]
    denied = offers(statement("b", "deny", resources=("skill:tides",)), skills=(TIDES,))
    assert names(denied.definitions(ANN, HERE, Loaded())) == ["load_tools"]
    assert mine.has_any
    assert not replace(offers(), tools={}).has_any


def test_definitions_are_cached_by_all_that_decides_them() -> None:
    """By who asks, where, what was loaded, and the policy, skills and bound in force."""
    policies, skills = [PolicySet((ALLOW,))], [tuple[Skill, ...]()]
    config = LiveConfig(Config(runtime=RuntimeSettings(eager_tools=3)), ())
    mine = replace(
        offers(), policy=lambda: policies[-1], skills=lambda: skills[-1], settings=config
    )
    first = mine.definitions(ANN, HERE, Loaded())
    assert mine.definitions(ANN, HERE, Loaded()) is first
    assert names(mine.definitions(ANN, HERE, Loaded(), off_the_record("01A"))) == ["look"]
    by_role = statement("b", "deny", principals=("role:operator",), actions=("tool:burn",))
    in_groups = statement("c", "deny", actions=("tool:poke",), when={"channel_is_direct": False})
    policies.append(PolicySet((ALLOW, by_role, in_groups)))
    assert names(mine.definitions(ANN, HERE, Loaded())) == ["look", "poke"]
    assert names(mine.definitions(BOB, HERE, Loaded())) == ["look", "poke", "burn"]
    group = replace(HERE, direct=False)
    assert names(mine.definitions(BOB, group, Loaded())) == ["look", "burn"]
    skills.append((TIDES,))
    assert names(mine.definitions(BOB, HERE, Loaded()))[0] == "load_skills"
    config.config = Config(runtime=RuntimeSettings(eager_tools=0))
    assert names(mine.definitions(BOB, HERE, Loaded(tools=("look",))))[1:] == [
        "load_skills",
        "look",
    ]


def test_a_decision_by_the_hour_is_made_each_time() -> None:
    """A policy may name hours, so its answer changes without a reload."""
    hours = [datetime(2026, 11, 21, 12, tzinfo=UTC), datetime(2026, 11, 21, 17, tzinfo=UTC)]
    nights = statement("b", "deny", actions=("tool:burn",), when={"hour_between": [9, 17]})
    policy = PolicySet((ALLOW, nights))
    mine = replace(offers(eager=3), policy=lambda: policy, now=lambda: hours[0])
    assert names(mine.definitions(ANN, HERE, Loaded())) == ["look", "poke"]
    hours.pop(0)
    assert names(mine.definitions(ANN, HERE, Loaded())) == ["look", "poke", "burn"]


def commands(*statements: Statement, effects: frozenset[Effect] = frozenset({"exec"})) -> Offers:
    """Offers with a shell, and a skill that has a script."""
    shell = PlainTool(replace(POKE, name="shell", effects=effects))
    offered = offers(*statements, skills=(replace(TIDES, files=("high.py",)), PORTS))
    return replace(offered, tools={**offered.tools, "shell": shell})


NO_TIDES = statement("b", "deny", actions=("tool:shell",), resources=("skill:tides",))


@pytest.mark.parametrize(
    ("mine", "found"),
    [
        pytest.param(commands(), (("tides", Path("/s")),), id="all may"),
        pytest.param(commands(NO_TIDES), (), id="commands may not have it"),
        pytest.param(commands(statement("b", "deny", resources=("skill:*",))), (), id="nobody may"),
        pytest.param(commands(effects=frozenset()), (), id="there is no sandbox"),
        pytest.param(offers(skills=(TIDES,)), (), id="there are no commands"),
    ],
)
def test_commands_find_the_folders_that_policy_lets_them_have(
    mine: Offers, found: tuple[tuple[str, Path], ...]
) -> None:
    """Of skills that were loaded and are there by now, if they hold more than a text."""
    assert mine.folders_for(ANN, HERE, ("ports", "gone", "tides")) == found
    assert mine.folders_for(ANN, HERE, ()) == ()


@pytest.mark.parametrize(
    ("point", "left"),
    [
        (DurablePoint.TURN_STARTED, (LOAD, says("done"))),
        (DurablePoint.CALL_STARTED, (says("done"),)),
        (DurablePoint.CALL_FINISHED, (says("done"),)),
    ],
)
async def test_a_kill_between_loading_and_use_leaves_what_was_loaded(
    tmp_path: Path, point: DurablePoint, left: tuple[Answer, ...]
) -> None:
    """Wherever it comes: the next request has it, and a summary takes nothing of it. S3-14, K18."""
    world = World(tmp_path)
    world.configure(runtime=RuntimeSettings(eager_tools=0))
    world.model.will(LOAD, says("done"))
    async with world.running() as house:
        world.store.cut_after(point)
        await house.say_and_die("poke it")
    world.store.heal()
    world.model.otherwise(*left)
    async with world.running() as house:
        assert await house.states() == ["answered"]
        assert [tool.name for tool in world.model.requests[-1].tools] == ["load_tools", "poke"]
        await house.say("/compact")
        await house.say("and now?")
        assert "[Previous conversation summary: " in world.model.requests[-1].messages[0].content
        assert [tool.name for tool in world.model.requests[-1].tools] == ["load_tools", "poke"]


def ended(name: str, arguments: str = "{}", *, ok: bool = True) -> tuple[ToolCall, bool]:
    return call(name, arguments=arguments), ok


def test_a_batch_asks_for_what_its_calls_name() -> None:
    """A tool that was called counts however that ended, a loader only when it ended well."""
    hostile = extend(Loaded(), [ended(f"{'x' * 9_000}{number}") for number in range(3)])
    assert hostile == Loaded(tools=("x" * MAX_NAME_CHARS,))
    many = extend(Loaded(), [ended(f"t{number}") for number in range(MAX_LOADED + 1)])
    assert (many.tools[0], len(many.tools)) == ("t1", MAX_LOADED)
    loaded = extend(
        Loaded(tools=("poke",), skills=("ports",)),
        (
            ended("look", ok=False),
            ended("load_tools", '{"groups": ["eyes", "poke"]}'),
            ended("load_tools", '{"groups": ["nowhere"]}', ok=False),
            ended("load_tools", '{"group": "of another release"}'),
            ended("load_skills", '{"name": "tides"}'),
            ended("load_skills", '{"name": "winds", "file": "a.md"}'),
            ended("load_skills", '{"name": "waves"}', ok=False),
        ),
    )
    assert loaded == Loaded(tools=("poke", "look", "eyes"), skills=("ports", "tides"))
