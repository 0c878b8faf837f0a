"""Explain whether a person may do something, with the code that decides it in the daemon.

Used by `zeroclaw policy explain` and the console. `People` admits the person, the tool names the
resources of a call, and `gate.ruling` decides, so the answer is about this machine: without a
working sandbox there is no shell.
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
from zeroclaw.gate.conditions import UNDECLARED, Query, any_call, facts_of
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
_COMMAND, _APPROVE, _TOOL = "command:", "approve:", "tool:"


class Asker(Value):
    """The person whose permission is explained.

    Attributes:
        principal: Their principal, as ingress would identify them.
        refusal: Why ingress does not admit them; empty if it does.
    """

    principal: Principal
    refusal: str = ""


class Explainer(Value):
    """Explains decisions, from everything that the daemon's own depend on.

    Attributes:
        settings: The configuration in force.
        people: The people who are let in now.
        policy: Returns the policy in force, with halt and revocations.
        protected: The resources that no call may touch.
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
        self, *, subject: str, action: str, arguments: str, resources: tuple[str, ...]
    ) -> Explained:
        """Return the decision about an action in a direct chat.

        Args:
            subject: `operator`, `person:<name>`, `role:<name>` or `<channel>:<sender id>`.
            action: A tool's name, or `tool:<name>`, `command:<name>`, `approve:<tool>`.
            arguments: JSON; empty for none.
            resources: The call's; if empty, the tool derives them from the arguments.

        Raises:
            ConfigError: There is no such person.
            ToolArgumentsInvalid: The arguments don't fit the tool, or a resource has no normal
                form.
        """
        asker, policy = asker_of(self.settings.config, self.people, subject), self.policy()
        query = Query(principal=asker.principal, action=action, now=self.clock.now(), direct=True)
        if action.startswith(_COMMAND):
            query = replace(query, own=True)
            ruling = rule(query, policy=policy, protected=self.protected, exclusion=asker.refusal)
            return self._explained(query, ruling)
        if action.startswith(_APPROVE):
            query, approvers = replace(query, own=True), self.settings.config.approvals.approvers
            ruling = rule_answer(query, policy=policy, approvers=approvers, exclusion=asker.refusal)
            return self._explained(query, ruling)
        name = action.removeprefix(_TOOL)
        tool = self.tools.get(name)
        query = replace(
            query,
            action=f"{_TOOL}{name}",
            resources=_normal(resources),
            facts=UNDECLARED if tool is None else facts_of(tool.spec),
            arguments={},
            untrusted=False,
            in_message=False,
        )
        if tool is None:
            names = ", ".join(f"`{other}`" for other in self.tools) or "none"
            ruling = denied("schema", f"no tool is called `{name}` here; known are {names}")
            return self._explained(query, ruling)
        return await self._explain(tool, query, arguments, asker)

    def default_effect(self, tool: Tool, *roles: str) -> StatementEffect | None:
        """Return the policy's effect on a tool for a person with these roles whom no statement names.

        None if that depends on the call's resources or arguments.
        """
        anyone = _nowhere("somebody:", *roles)
        query = any_call(tool.spec, anyone, now=self.clock.now(), direct=True)
        policy = self.policy()
        known = replace(query, arguments={}, untrusted=False, in_message=False)
        effect = policy.decide(known).effect
        return None if effect == "deny" and policy.could(query) else effect

    async def _explain(self, tool: Tool, query: Query, arguments: str, asker: Asker) -> Explained:
        policy, unresolved, notes = self.policy(), "", list[str]()
        checked = _checked(tool, parse_arguments(arguments)) if arguments else {}
        touched = query.resources
        if touched:
            unresolved = self._beyond(tool, touched)
            touched = None if unresolved else touched
        elif arguments:
            touched, unresolved = await self._touched(tool, checked, asker.principal)
        else:
            notes.append("without arguments and resources the call counts as touching nothing")
        query = replace(query, resources=touched, arguments=checked)
        ruling = rule(
            query,
            policy=policy,
            protected=self.protected,
            exclusion=asker.refusal,
            unresolved=unresolved,
        )
        if ruling.decision.effect == "ask":
            notes.append("a grant in force in the conversation would let it run without asking")
        decision = policy.decide(replace(query, untrusted=True))
        if ruling.decision.effect == "allow" and decision.effect != "allow":
            notes.append(
                f"in a turn that holds untrusted text: {decision.effect}, {decision.reason}"
            )
        return self._explained(query, ruling, *notes)

    def _explained(self, query: Query, ruling: Ruling, *notes: str) -> Explained:
        considered = self.policy().explain(query)
        return Explained(query=query, ruling=ruling, considered=considered, notes=notes)

    def _beyond(self, tool: Tool, resources: tuple[str, ...]) -> str:
        """Return why a tool can't touch these resources; empty if it can."""
        root = f"{resource_form(f'file:{self.workspaces}')}/"
        beyond = [resource for resource in resources if not resource.startswith(root)]
        if tool.spec.name in files.NAMES and beyond:
            return f"`{beyond[0]}` is outside the workspaces, `{self.workspaces}`"
        return ""

    async def _touched(
        self, tool: Tool, arguments: Arguments, principal: Principal
    ) -> tuple[tuple[str, ...] | None, str]:
        """Return the resources that the tool names, in a direct chat with an empty workspace."""
        channel, chat = principal.channel, principal.sender
        empty = await asyncio.to_thread(tempfile.TemporaryDirectory)
        try:
            workspace = await asyncio.to_thread(Path(empty.name).resolve)
            context = ToolContext(
                conversation=ConversationId(EXAMPLE),
                principal=principal,
                address=Address(channel=channel, account="", chat=chat, direct=True),
                workspace=workspace,
                clock=self.clock,
                spawned=_start_nothing,
            )
            found, fault = await resolve_resources(tool, arguments, context)
        finally:
            await asyncio.to_thread(empty.cleanup)
        if found is None:
            return None, fault
        real = str(self.workspaces / EXAMPLE)
        return _normal(tuple(resource.replace(str(workspace), real) for resource in found)), ""


def asker_of(config: Config, people: People, subject: str) -> Asker:
    """Return the person that `subject` names, and whether ingress admits them.

    Raises:
        ConfigError: There is no such person.
    """
    kind, _, name = subject.partition(":")
    person = next((person for person in config.people if f"person:{person.name}" == subject), None)
    if person is not None:
        reason = "the configuration gives them no id on any channel"
        nowhere = Asker(principal=_nowhere(subject, *person.roles), refusal=reason)
        ids = map(identity_parts, person.ids)
        return _best(*(_sender(config, people, *id_) for id_ in ids), nowhere)
    if subject in (OPERATOR, f"person:{OPERATOR}"):
        reason = "no channel of the configuration is one that the operator alone can reach"
        nowhere = Asker(principal=_nowhere(f"person:{OPERATOR}", OPERATOR), refusal=reason)
        local = (_sender(config, people, channel, OPERATOR) for channel in people.local)
        return _best(*local, nowhere)
    if kind == "person":
        names = ", ".join(f"`{person.name}`" for person in config.people) or "nobody"
        fault = f"`[[people]]` has no `{name}`; it names {names}"
        raise ConfigError((fault,))
    if kind == "role" and name:
        # A person whom statements can name only by this role.
        return Asker(principal=_nowhere("", name))
    if kind and name:
        return _sender(config, people, kind, name)
    fault = (
        f"`{subject}` is nobody; give `operator`, `person:<name>`, `role:<name>` or "
        "`<channel>:<sender id>`"
    )
    raise ConfigError((fault,))


def _nowhere(id_: str, *roles: str) -> Principal:
    """Return a principal on no channel, so that no statement names it by one."""
    return Principal(id=id_, roles=frozenset(roles), channel="", sender="")


def _best(*askers: Asker) -> Asker:
    """Return the first asker whom ingress admits, else the first."""
    return next((asker for asker in askers if not asker.refusal), askers[0])


def _sender(config: Config, people: People, channel: str, sender: str) -> Asker:
    """Return a sender as ingress would identify them."""
    sender = people.spelled(channel, sender) or sender
    platform_sender, identity = Sender(id=sender, verified=True), f"{channel}:{sender}"
    principal, settings = people.principal(channel, platform_sender), config.channels.get(channel)
    if settings is None:
        names = ", ".join(f"`{name}`" for name in config.channels)
        reason = f"there is no channel `{channel}`; the configuration has {names}"
    elif not settings.enabled:
        reason = f"the channel `{channel}` is switched off"
    elif people.admit(channel, platform_sender) is not None:
        reason = ""
    elif by := people.revoked_by(principal.id) or people.revoked_by(identity):
        reason = f"they were revoked by {by}"
    else:
        reason = (
            f"`{identity}` is a stranger: not in `channels.{channel}.allowed_users`, and not let "
            "in by pairing"
        )
    return Asker(principal=principal, refusal=reason)


def _normal(resources: tuple[str, ...]) -> tuple[str, ...]:
    """Return resources in the form that tools use.

    Raises:
        ToolArgumentsInvalid: One has no normal form.
    """
    try:
        return tuple(resource_form(resource) for resource in resources)
    except ValueError as error:
        fault = f"resource: {error}"
        raise ToolArgumentsInvalid((fault,)) from error


def _checked(tool: Tool, arguments: Arguments) -> dict[str, object]:
    """Return the arguments as the tool accepts them.

    Raises:
        ToolArgumentsInvalid: It does not accept them.
    """
    found = call_now(lambda: dict(tool.check(arguments)))
    if not isinstance(found, Raised):
        return found
    if isinstance(found.error, ToolArgumentsInvalid):
        raise found.error
    fault = f"the tool could not check them: {found.line}"
    raise ToolArgumentsInvalid((fault,)) from found.error


async def _start_nothing(_spawned: Spawned | None) -> None:
    """Do nothing: naming resources starts no process."""
