"""Explain whether a person may do something, with the same code that decides it in the daemon.

Used by `zeroclaw policy explain` and the console. `People` says who is let in, the tool says what a
call would touch, and `gate.ruling` decides, so the answer is about this machine: without a working
sandbox there is no shell.
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from zeroclaw.clock import Clock
from zeroclaw.config.model import Config, CurrentConfig, StatementEffect
from zeroclaw.envelope import Address, ConversationId, Principal, Sender
from zeroclaw.errors import ConfigError, ToolArgumentsInvalid
from zeroclaw.foreign import Raised, call_now
from zeroclaw.gate.action import parse_arguments
from zeroclaw.gate.conditions import EFFECTS, Query, ToolFacts, any_call, facts_of
from zeroclaw.gate.decide import resolve_resources
from zeroclaw.gate.policy import PolicySet
from zeroclaw.gate.protection import Protected
from zeroclaw.gate.ruling import Explained, Ruling, denied, rule, rule_answer
from zeroclaw.inbound.identity import OPERATOR, People, identity_parts
from zeroclaw.resource import resource_form
from zeroclaw.tool import Arguments, Spawned, Tool, ToolContext
from zeroclaw.tools import files
from zeroclaw.value import Value, replace

EXAMPLE = "CONVERSATION"
"""Stands for a conversation's id in the path of its workspace."""
RESOLVE_S = 10.0
"""Seconds that a tool gets to say what it would touch."""
_COMMAND, _APPROVE, _TOOL = "command:", "approve:", "tool:"
_UNDECLARED = ToolFacts(effects=EFFECTS, risk="high", declared=False)


class Asker(Value):
    """The person that the question is about.

    Attributes:
        principal: Their principal, as ingress would identify them.
        out: Why ingress does not let them in, empty when it does.
    """

    principal: Principal
    out: str = ""


class Explainer(Value):
    """All that the daemon's decisions depend on.

    Attributes:
        settings: The configuration in force.
        people: Who is let in now.
        policy: Returns the policy in force, with halt and revocations.
        protected: What no call may touch.
        tools: The offered tools, by name.
        workspaces: The directory of the conversations' workspaces.
        clock: For conditions on time, and for tools.
    """

    settings: CurrentConfig
    people: People
    policy: Callable[[], PolicySet]
    protected: Protected
    tools: Mapping[str, Tool]
    workspaces: Path
    clock: Clock

    async def explain(
        self, *, who: str, action: str, arguments: str, resources: tuple[str, ...]
    ) -> Explained:
        """Return what would be decided about a question in a direct chat.

        Args:
            who: `operator`, `person:<name>`, `role:<name>` or `<channel>:<sender id>`.
            action: A tool's name, or `tool:<name>`, `command:<name>`, `approve:<tool>`.
            arguments: JSON; empty for none.
            resources: What the call touches; if empty, the tool says it from the arguments.

        Raises:
            ConfigError: There is no such person.
            ToolArgumentsInvalid: The arguments don't fit the tool, or a resource has no normal
                form.
        """
        asker, policy = asker_of(self.settings.config, self.people, who), self.policy()
        query = Query(principal=asker.principal, action=action, now=self.clock.now(), direct=True)
        if action.startswith(_COMMAND):
            query = replace(query, own=True)
            ruling = rule(query, policy=policy, protected=self.protected, out=asker.out)
            return self._explained(query, ruling)
        if action.startswith(_APPROVE):
            query, approvers = replace(query, own=True), self.settings.config.approvals.approvers
            ruling = rule_answer(query, policy=policy, approvers=approvers, out=asker.out)
            return self._explained(query, ruling)
        name = action.removeprefix(_TOOL)
        tool = self.tools.get(name)
        query = replace(
            query,
            action=f"{_TOOL}{name}",
            resources=_normal(resources),
            facts=_UNDECLARED if tool is None else facts_of(tool.spec),
            arguments={},
            untrusted=False,
            in_message=False,
        )
        if tool is None:
            known = ", ".join(f"`{other}`" for other in self.tools) or "none"
            ruling = denied("schema", f"no tool is called `{name}` here; known are {known}")
            return self._explained(query, ruling)
        return await self._explain_call(tool, query, arguments, asker)

    def standing(self, tool: Tool, *roles: str) -> StatementEffect | None:
        """Return the policy's answer for a tool to a person with these roles whom no statement names.

        None if that depends on the call: on what it touches, or on its arguments.
        """
        somebody = _nowhere("somebody:", *roles)
        query = any_call(tool.spec, somebody, now=self.clock.now(), direct=True)
        policy = self.policy()
        told = replace(query, arguments={}, untrusted=False, in_message=False)
        effect = policy.decide(told).effect
        return None if effect == "deny" and policy.could(query) else effect

    async def _explain_call(
        self, tool: Tool, query: Query, arguments: str, asker: Asker
    ) -> Explained:
        policy, unresolved, notes = self.policy(), "", list[str]()
        given = _checked(tool, parse_arguments(arguments)) if arguments else {}
        touched = query.resources
        if touched:
            unresolved = self._beyond(tool, touched)
            touched = None if unresolved else touched
        elif arguments:
            touched, unresolved = await self._touched(tool, given, asker.principal)
        else:
            notes.append("without arguments and resources the call counts as touching nothing")
        query = replace(query, resources=touched, arguments=given)
        ruling = rule(
            query, policy=policy, protected=self.protected, out=asker.out, unresolved=unresolved
        )
        if ruling.decision.effect == "ask":
            notes.append("a grant in force in the conversation would let it run without asking")
        decision = policy.decide(replace(query, untrusted=True))
        if ruling.decision.effect == "allow" and decision.effect != "allow":
            notes.append(f"in a turn that holds untrusted text: {decision.effect}, {decision.why}")
        return self._explained(query, ruling, *notes)

    def _explained(self, query: Query, ruling: Ruling, *notes: str) -> Explained:
        considered = self.policy().explain(query)
        return Explained(query=query, ruling=ruling, considered=considered, notes=notes)

    def _beyond(self, tool: Tool, resources: tuple[str, ...]) -> str:
        """Return why a tool can't touch these resources, empty if it may."""
        root = f"{resource_form(f'file:{self.workspaces}')}/"
        beyond = [one for one in resources if not one.startswith(root)]
        if tool.spec.name in files.NAMES and beyond:
            return f"`{beyond[0]}` is outside the workspaces, `{self.workspaces}`"
        return ""

    async def _touched(
        self, tool: Tool, arguments: Arguments, who: Principal
    ) -> tuple[tuple[str, ...] | None, str]:
        """Return what the tool says it would touch in a direct chat with an empty workspace."""
        empty = await asyncio.to_thread(tempfile.TemporaryDirectory)
        try:
            workspace = await asyncio.to_thread(Path(empty.name).resolve)
            context = ToolContext(
                conversation=ConversationId(EXAMPLE),
                principal=who,
                address=Address(channel=who.channel, account="", chat=who.sender, direct=True),
                workspace=workspace,
                clock=self.clock,
                spawned=_nothing_is_started,
            )
            found, why = await resolve_resources(tool, arguments, context, timeout_s=RESOLVE_S)
        finally:
            await asyncio.to_thread(empty.cleanup)
        if found is None:
            return None, why
        real = str(self.workspaces / EXAMPLE)
        return _normal(tuple(one.replace(str(workspace), real) for one in found)), ""


def asker_of(config: Config, people: People, who: str) -> Asker:
    """Return who is meant, and whether ingress lets them in.

    Raises:
        ConfigError: There is no such person.
    """
    kind, _, name = who.partition(":")
    person = next((one for one in config.people if f"person:{one.name}" == who), None)
    if person is not None:
        return _best(
            [_sender(config, people, *identity_parts(identity)) for identity in person.ids],
            _nowhere(who, *person.roles),
            out="the configuration gives them no id on any channel",
        )
    if who in (OPERATOR, f"person:{OPERATOR}"):
        return _best(
            [_sender(config, people, channel, OPERATOR) for channel in people.local],
            _nowhere(f"person:{OPERATOR}", OPERATOR),
            out="no channel of the configuration is one that the operator alone can reach",
        )
    if kind == "person":
        known = ", ".join(f"`{one.name}`" for one in config.people) or "nobody"
        fault = f"`[[people]]` has no `{name}`; it names {known}"
        raise ConfigError((fault,))
    if kind == "role" and name:
        # A person whom statements can name only by this role.
        return Asker(principal=_nowhere("", name))
    if kind and name:
        return _sender(config, people, kind, name)
    fault = (
        f"`{who}` is nobody; give `operator`, `person:<name>`, `role:<name>` or "
        "`<channel>:<sender id>`"
    )
    raise ConfigError((fault,))


def _nowhere(id_: str, *roles: str) -> Principal:
    """Return a person whom no statement can name by a channel."""
    return Principal(id=id_, roles=frozenset(roles), channel="", sender="")


def _best(askers: list[Asker], nobody: Principal, *, out: str) -> Asker:
    """Return the first who is let in, else the first, else `nobody`."""
    let_in = (one for one in askers if not one.out)
    return next(let_in, askers[0] if askers else Asker(principal=nobody, out=out))


def _sender(config: Config, people: People, channel: str, sender: str) -> Asker:
    """Return how ingress identifies a sender."""
    sender = people.spelled(channel, sender) or sender
    meant, identity = Sender(id=sender, verified=True), f"{channel}:{sender}"
    whose, settings = people.principal(channel, meant), config.channels.get(channel)
    if settings is None:
        known = ", ".join(f"`{name}`" for name in config.channels)
        why = f"there is no channel `{channel}`; the configuration has {known}"
    elif not settings.enabled:
        why = f"the channel `{channel}` is switched off"
    elif people.admit(channel, meant) is not None:
        why = ""
    elif by := people.revoked_by(whose.id) or people.revoked_by(identity):
        why = f"they were revoked by {by}"
    else:
        why = (
            f"`{identity}` is a stranger: not in `channels.{channel}.allowed_users`, and not let "
            "in by pairing"
        )
    return Asker(principal=whose, out=why)


def _normal(resources: tuple[str, ...]) -> tuple[str, ...]:
    """Return resources in the form that tools use.

    Raises:
        ToolArgumentsInvalid: One has no normal form.
    """
    try:
        return tuple(resource_form(one) for one in resources)
    except ValueError as error:
        fault = f"resource: {error}"
        raise ToolArgumentsInvalid((fault,)) from error


def _checked(tool: Tool, given: Arguments) -> dict[str, object]:
    """Return the arguments as the tool accepts them.

    Raises:
        ToolArgumentsInvalid: It does not accept them.
    """
    found = call_now(lambda: dict(tool.check(given)))
    if not isinstance(found, Raised):
        return found
    if isinstance(found.error, ToolArgumentsInvalid):
        raise found.error
    fault = f"the tool could not check them: {found.line}"
    raise ToolArgumentsInvalid((fault,)) from found.error


async def _nothing_is_started(_spawned: Spawned | None) -> None:
    """Do nothing: naming resources starts no process."""
