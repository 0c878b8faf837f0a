"""The tools and skills that a person's requests offer the model, at once or on demand (pure, K18).

    eager   at most `runtime.eager_tools` tools: all of them (S0-15)
    lazy    more: `load_tools`, and the groups that this conversation has loaded (S3-13, S3-14)

A conversation has a group, or a skill, once a call in its journal has loaded it. That outlasts
restarts and summaries, and ends with `/new`. A call of a tool whose group is not loaded yet is
gated and runs like any other, and loads its group. Loaded tools come after the earlier ones, so that
a request begins like the one before it.

Tools and skills that the policy denies to a person for every possible call are never listed, loaded or named.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from pathlib import Path

from zeroclaw.config.model import CurrentConfig
from zeroclaw.envelope import Address, Principal, is_off_the_record
from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.gate.action import parse_arguments
from zeroclaw.gate.conditions import any_call, facts_of, leaves_no_trace
from zeroclaw.gate.policy import PolicySet
from zeroclaw.message import ToolCall, ToolDefinition
from zeroclaw.recent import Recent
from zeroclaw.tool import Tool, ToolSpec
from zeroclaw.tools import parse
from zeroclaw.tools.loading.skill import (
    LOAD_SKILLS,
    LOAD_TOOLS,
    LoadSkillArguments,
    LoadToolsArguments,
    Skill,
)
from zeroclaw.value import Value, field, replace

MAX_CACHED = 64
"""Results of `definitions` that are cached, by person and by what their conversation has loaded."""
LISTED_NAMES = 40
"""Tools of one group that are named before the group is loaded."""
MAX_LOADED, MAX_NAME_CHARS = 200, 64
"""The limit of names that a conversation keeps, the newest ones, and of characters per name: models
make some up."""


class Loaded(Value):
    """The tools and skills that a conversation has loaded, in order.

    Attributes:
        tools: Groups that were loaded, and tools that were called.
        skills: By name.
    """

    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()


NOTHING_LOADED = Loaded()


def extend(loaded: Loaded, batch: Iterable[tuple[ToolCall, bool]]) -> Loaded:
    """Return the loaded names after a batch; each call comes with whether it succeeded."""
    tools, skills = dict.fromkeys(loaded.tools), dict.fromkeys(loaded.skills)
    for call, has_succeeded in batch:
        if call.name not in {LOAD_TOOLS.name, LOAD_SKILLS.name}:
            tools[call.name[:MAX_NAME_CHARS]] = None
        elif has_succeeded:
            groups, skill = _loaded_by(call)
            tools |= dict.fromkeys(groups)
            skills |= dict.fromkeys(skill)
    return Loaded(tools=tuple(tools)[-MAX_LOADED:], skills=tuple(skills)[-MAX_LOADED:])


def _loaded_by(call: ToolCall) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the groups and the skill that a call has loaded."""
    try:
        arguments = parse_arguments(call.arguments)
        if call.name == LOAD_TOOLS.name:
            return parse(LoadToolsArguments, arguments).groups, ()
        skill = parse(LoadSkillArguments, arguments)
    except ToolArgumentsInvalid:
        return (), ()  # written by a release that accepted these arguments
    return (), () if skill.file else (skill.name,)


class Offers(Value):
    """All tools and skills, and to whom they may be offered; one for the whole daemon.

    Attributes:
        tools: By name.
        groups: The group of each tool.
        skills: Returns the operator's current skills.
        policy: Returns the policy in force.
        current: Returns a principal with the person's current data.
        now: For statements that hold only at some times.
        settings: How many tools are sent without being loaded.
        cache: The results of `definitions`, by all values that they depend on.
    """

    tools: Mapping[str, Tool]
    groups: Mapping[str, str]
    skills: Callable[[], tuple[Skill, ...]]
    policy: Callable[[], PolicySet]
    current: Callable[[Principal], Principal]
    now: Callable[[], datetime]
    settings: CurrentConfig
    cache: Recent[object, tuple[ToolDefinition, ...]] = field(
        default_factory=lambda: Recent[object, tuple[ToolDefinition, ...]](MAX_CACHED)
    )

    @property
    def has_any(self) -> bool:
        """Whether there is anything that a model could call."""
        return bool(self.tools or self.skills())

    def groups_for(
        self, principal: Principal, address: Address, conversation: str = ""
    ) -> Mapping[str, tuple[ToolSpec, ...]]:
        """Return the tools that a person may have in a chat, by group.

        If the conversation is off the record, tools that leave a trace are excluded.
        """
        groups: dict[str, tuple[ToolSpec, ...]] = {}
        may, is_private = self._judge(principal, address), is_off_the_record(conversation)
        for name, tool in self.tools.items():
            if is_private and not leaves_no_trace(facts_of(tool.spec)):
                continue
            if may(tool.spec, ()):
                group = self.groups.get(name, name)
                groups[group] = (*groups.get(group, ()), tool.spec)
        return groups

    def skills_for(self, principal: Principal, address: Address) -> Mapping[str, Skill]:
        """Return the skills that a person may have in a chat, by name."""
        if not (skills := self.skills()):
            return {}  # every turn asks
        may = self._judge(principal, address)
        return {skill.name: skill for skill in skills if may(LOAD_SKILLS, (f"skill:{skill.name}",))}

    def folders_for(
        self, principal: Principal, address: Address, loaded: Collection[str]
    ) -> tuple[tuple[str, Path], ...]:
        """Return the loaded skills whose folders shell commands can read, by name, with their folders.

        Those are skills with further files, where the policy allows this person's commands to have
        them.
        """
        shell = self.tools.get("shell")
        if not loaded or shell is None or not shell.spec.effects:
            return ()  # without a sandbox there is no place for them
        may, skills = self._judge(principal, address), self.skills_for(principal, address)
        return tuple(
            (name, skills[name].folder)
            for name in sorted(skills.keys() & set(loaded))
            if skills[name].files and may(shell.spec, (f"skill:{name}",))
        )

    def definitions(
        self, principal: Principal, address: Address, loaded: Loaded, conversation: str = ""
    ) -> tuple[ToolDefinition, ...]:
        """Return the tools of a person's request in a conversation, in order.

        The same objects are returned as long as nothing they depend on has changed.
        """
        policy, eager = self.policy(), self.settings.config.runtime.eager_tools
        person = (self.current(principal), address.direct, is_off_the_record(conversation))
        key = (policy, policy.is_timed and self.now(), *person, loaded, self.skills(), eager)
        if key not in self.cache:
            self.cache[key] = self._define(principal, address, loaded, conversation)
        return self.cache[key]

    def _define(
        self, principal: Principal, address: Address, loaded: Loaded, conversation: str
    ) -> tuple[ToolDefinition, ...]:
        groups = self.groups_for(principal, address, conversation)
        specs = [LOAD_SKILLS] if self.skills_for(principal, address) else []
        if sum(map(len, groups.values())) <= self.settings.config.runtime.eager_tools:
            specs += (spec for group in groups.values() for spec in group)
        else:
            may = self._judge(principal, address)
            listed = {
                group: members
                for group, members in groups.items()
                if may(LOAD_TOOLS, (f"tools:{group}",))
            }
            # A tool whose group may not be loaded is still offered once it was called.
            specs = [_listing(listed), *specs] if listed else specs
            loaded_groups = dict.fromkeys(self.groups.get(name, name) for name in loaded.tools)
            specs += (spec for group in loaded_groups for spec in groups.get(group, ()))
        return tuple(
            ToolDefinition(
                name=spec.name, description=spec.description, parameters=dict(spec.parameters)
            )
            for spec in specs
        )

    def _judge(
        self, principal: Principal, address: Address
    ) -> Callable[[ToolSpec, tuple[str, ...]], bool]:
        """Return a function that decides whether a person may have a tool, with given resources."""
        current, now, policy = self.current(principal), self.now(), self.policy()

        def may(spec: ToolSpec, resources: tuple[str, ...]) -> bool:
            query = any_call(spec, current, now=now, direct=address.direct)
            return policy.could(replace(query, resources=resources))

        return may


def _listing(groups: Mapping[str, tuple[ToolSpec, ...]]) -> ToolSpec:
    lines = (f"\n- {group}: {_listed(members)}" for group, members in groups.items())
    return replace(LOAD_TOOLS, description=f"{LOAD_TOOLS.description} There are:{''.join(lines)}")


def _listed(specs: tuple[ToolSpec, ...]) -> str:
    names = ", ".join(spec.name for spec in specs[:LISTED_NAMES])
    remaining = len(specs) - LISTED_NAMES
    return f"{names} and {remaining} more" if remaining > 0 else names
