"""The tools and skills that a person's requests offer the model, at once or on demand (pure, K18).

    eager   at most `runtime.eager_tools` tools: all of them (S0-15)
    lazy    more: `load_tools`, and the groups that this conversation has loaded (S3-13, S3-14)

A conversation has a group, or a skill, once a call in its journal has asked for it. That outlasts
restarts and summaries, and ends with `/new`. A call of a tool whose group is not loaded yet is
gated and runs like any other, and loads its group. What is loaded is added after the earlier tools,
so that a request begins like the one before it.

What the policy denies to a person for every possible call is not listed, loaded or named.
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

MOST_MADE = 64
"""Results of `definitions` that are cached, by person and by what their conversation has loaded."""
LISTED_NAMES = 40
"""Tools of one group that are named before the group is loaded."""
MOST_LOADED, MOST_NAME_CHARS = 200, 64
"""The limit of names that a conversation keeps, newest first to stay, and of characters per name:
models make some up."""


class Loaded(Value):
    """What a conversation has loaded, in order.

    Attributes:
        tools: Groups that were loaded, and tools that were called.
        skills: By name.
    """

    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()


NOTHING_LOADED = Loaded()


def extended(loaded: Loaded, batch: Iterable[tuple[ToolCall, bool]]) -> Loaded:
    """Return what is loaded after a batch; each call comes with whether it succeeded."""
    tools, skills = dict.fromkeys(loaded.tools), dict.fromkeys(loaded.skills)
    for call, is_ok in batch:
        if call.name not in {LOAD_TOOLS.name, LOAD_SKILLS.name}:
            tools[call.name[:MOST_NAME_CHARS]] = None
        elif is_ok:
            groups, skill = _asked(call)
            tools |= dict.fromkeys(groups)
            skills |= dict.fromkeys(skill)
    return Loaded(tools=tuple(tools)[-MOST_LOADED:], skills=tuple(skills)[-MOST_LOADED:])


def _asked(call: ToolCall) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the groups and the skill that a call has loaded."""
    try:
        arguments = parse_arguments(call.arguments)
        if call.name == LOAD_TOOLS.name:
            return parse(LoadToolsArguments, arguments).groups, ()
        asked = parse(LoadSkillArguments, arguments)
    except ToolArgumentsInvalid:
        return (), ()  # written by a release that accepted these arguments
    return (), () if asked.file else (asked.name,)


class Offers(Value):
    """All tools and skills, and to whom they may be offered; one for the whole daemon.

    Attributes:
        tools: By name.
        groups: The group of each tool.
        skills: Returns the operator's current skills.
        policy: Returns the policy in force.
        known: Returns the current data of a principal.
        now: For statements that hold only at some times.
        settings: How many tools are sent without being loaded.
        made: A cache of `definitions`, keyed by all that its result depends on.
    """

    tools: Mapping[str, Tool]
    groups: Mapping[str, str]
    skills: Callable[[], tuple[Skill, ...]]
    policy: Callable[[], PolicySet]
    known: Callable[[Principal], Principal]
    now: Callable[[], datetime]
    settings: CurrentConfig
    made: Recent[object, tuple[ToolDefinition, ...]] = field(
        default_factory=lambda: Recent[object, tuple[ToolDefinition, ...]](MOST_MADE)
    )

    @property
    def has_any(self) -> bool:
        """Whether there is anything that a model could call."""
        return bool(self.tools or self.skills())

    def groups_for(
        self, principal: Principal, address: Address, here: str = ""
    ) -> Mapping[str, tuple[ToolSpec, ...]]:
        """Return the tools that a person may have in a chat, by group.

        If the conversation `here` is off the record, tools that leave a trace are excluded.
        """
        found: dict[str, tuple[ToolSpec, ...]] = {}
        may, is_off = self._judge(principal, address), is_off_the_record(here)
        for name, tool in self.tools.items():
            if is_off and not leaves_no_trace(facts_of(tool.spec)):
                continue
            if may(tool.spec, ()):
                group = self.groups.get(name, name)
                found[group] = (*found.get(group, ()), tool.spec)
        return found

    def skills_for(self, principal: Principal, address: Address) -> Mapping[str, Skill]:
        """Return the skills that a person may have in a chat, by name."""
        if not (skills := self.skills()):
            return {}  # every turn asks
        may = self._judge(principal, address)
        return {one.name: one for one in skills if may(LOAD_SKILLS, (f"skill:{one.name}",))}

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
        self, principal: Principal, address: Address, loaded: Loaded, here: str = ""
    ) -> tuple[ToolDefinition, ...]:
        """Return the tools of a person's request in the conversation `here`, in order.

        The same objects are returned as long as nothing they depend on has changed.
        """
        policy, eager = self.policy(), self.settings.config.runtime.eager_tools
        who = (self.known(principal), address.direct, is_off_the_record(here))
        key = (policy, policy.is_timed and self.now(), *who, loaded, self.skills(), eager)
        if key not in self.made:
            self.made[key] = self._defined(principal, address, loaded, here)
        return self.made[key]

    def _defined(
        self, principal: Principal, address: Address, loaded: Loaded, here: str
    ) -> tuple[ToolDefinition, ...]:
        groups = self.groups_for(principal, address, here)
        specs = [LOAD_SKILLS] if self.skills_for(principal, address) else []
        if sum(map(len, groups.values())) <= self.settings.config.runtime.eager_tools:
            specs += (one for every in groups.values() for one in every)
        else:
            may = self._judge(principal, address)
            listed = {
                group: every
                for group, every in groups.items()
                if may(LOAD_TOOLS, (f"tools:{group}",))
            }
            # A tool whose group may not be loaded is still offered once it was called.
            specs = [_listing(listed), *specs] if listed else specs
            has = dict.fromkeys(self.groups.get(name, name) for name in loaded.tools)
            specs += (one for group in has for one in groups.get(group, ()))
        return tuple(
            ToolDefinition(
                name=one.name, description=one.description, parameters=dict(one.parameters)
            )
            for one in specs
        )

    def _judge(
        self, principal: Principal, address: Address
    ) -> Callable[[ToolSpec, tuple[str, ...]], bool]:
        """Return a function that decides whether a person may have a tool, with given resources."""
        known, now, policy = self.known(principal), self.now(), self.policy()

        def may(spec: ToolSpec, resources: tuple[str, ...]) -> bool:
            query = any_call(spec, known, now=now, direct=address.direct)
            return policy.could(replace(query, resources=resources))

        return may


def _listing(groups: Mapping[str, tuple[ToolSpec, ...]]) -> ToolSpec:
    lines = (f"\n- {group}: {_listed(every)}" for group, every in groups.items())
    return replace(LOAD_TOOLS, description=f"{LOAD_TOOLS.description} There are:{''.join(lines)}")


def _listed(specs: tuple[ToolSpec, ...]) -> str:
    names = ", ".join(one.name for one in specs[:LISTED_NAMES])
    left = len(specs) - LISTED_NAMES
    return f"{names} and {left} more" if left > 0 else names
