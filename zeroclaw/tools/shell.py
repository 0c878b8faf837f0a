"""The tool that runs a command in the sandbox.

Its resources follow from the grants of the sandbox, never from the text of the command. Without
a working sandbox the tool is not offered, unless the settings say `without_sandbox = "ask"`. Then
it declares no effects, which counts as all of them, so every command needs approval at any autonomy. Its
only resource is then `sandbox:none`, which no statement about `sandbox:workspace` allows.
"""

import asyncio
import re
from pathlib import Path

from pydantic import Field

from zeroclaw.config.model import LONGEST_COMMAND_S, ShellSettings
from zeroclaw.errors import ToolArgumentsInvalid, ToolFailed
from zeroclaw.host import sandbox
from zeroclaw.host.masks import Mask, hidden_in, masks_in, masks_of
from zeroclaw.host.processes import Captured, OutputCaps, ProcessEnd
from zeroclaw.host.sandbox import Bare, Box, Broken, Folder, Limits, System
from zeroclaw.secret_names import names_secrets
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.tool import SKILLS, Effect, Tool, ToolContext, ToolOutput, ToolSpec
from zeroclaw.tools import (
    ModelSchema,
    ModelTool,
    ToolArguments,
    counted,
    quoted,
    readable,
    without_controls,
)
from zeroclaw.value import Struct

# For starting, killing and cleaning up, on top of the command's own time.
_OVERHEAD_S = 20.0

# UTF-8, RFC 3629 section 3: a first byte and up to three continuation bytes.
_CONTINUATIONS = bytes(range(0x80, 0xC0))
_CUT_AT_THE_END = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z")
_SIGNALS = range(1, 65)

CAPS = OutputCaps()


class ShellArguments(ToolArguments):
    """Arguments of `shell`."""

    command: str = Field(min_length=1, max_length=65_536)
    timeout_s: float = Field(default=0, ge=0, description="0 for the usual time.")


def tools(
    settings: ShellSettings,
    boxed: System | Broken,
    limits: Limits,
    *,
    hidden: tuple[Path, ...] = (),
    subtree: Path | None = None,
    caps: OutputCaps = CAPS,
) -> tuple[Tool, ...]:
    """Return the shell, or no tool where it must not be offered.

    Args:
        settings: The settings of the shell.
        boxed: The result of `sandbox.self_test`, with the same limits and network.
        limits: The limits of each command.
        hidden: Paths anywhere on this machine that no command sees. A command can create one that does
            not exist when it starts.
        subtree: The cgroup above those of commands without a sandbox; None for no cgroups.
        caps: The limits of the output.
    """
    system = None if isinstance(boxed, Broken) else boxed
    if system is None and settings.without_sandbox == "off":
        return ()
    shell = _Shell(settings, system, limits, hidden, subtree, caps)
    return (
        ModelTool(
            spec=shell.spec(),
            model=ShellArguments,
            summary=shell.summary,
            find_resources=shell.resources,
            handler=shell.run,
            apply_settings=shell.apply_settings,
        ),
    )


class _Shell(Struct, eq=False):
    """Runs one command at a time; without a `system`, outside of a sandbox."""

    settings: ShellSettings
    system: System | None
    limits: Limits
    hidden: tuple[Path, ...]
    subtree: Path | None
    caps: OutputCaps

    def spec(self) -> ToolSpec:
        """Return the declaration of the tool."""
        settings, effects = self.settings, set[Effect]()
        if self.system is not None:
            effects |= {"exec", "read", "write"}
        if self.system is not None and settings.network:
            effects.add("network")
        bare = "this machine, where every command needs approval"
        place = "an isolated sandbox" if effects else bare
        network = "has" if settings.network or not effects else "has no"
        return ToolSpec(
            name="shell",
            description=(
                f"Run a command with /bin/sh in {place}. It starts in the workspace, {network}"
                " network and no input, and leaves nothing running. Returns its exit code and its"
                " output, both streams together."
            ),
            parameters=ModelSchema(ShellArguments),
            effects=frozenset(effects),
            risk="high",
            timeout_s=LONGEST_COMMAND_S + _OVERHEAD_S,
            # Commands of one batch share a workspace, and the model may rely on their order.
            execution="sequential",
        )

    def apply_settings(self, arguments: ShellArguments) -> ShellArguments:
        """Fill in the default time-out, and refuse one beyond the maximum."""
        if arguments.timeout_s > LONGEST_COMMAND_S:
            raise ToolArgumentsInvalid((f"timeout_s: must be at most {LONGEST_COMMAND_S:g}",))
        timeout_s = arguments.timeout_s or self.settings.timeout_s
        return arguments.model_copy(update={"timeout_s": timeout_s})

    def summary(self, arguments: ShellArguments) -> Localized:
        """Return the beginning of the command and its place of execution."""
        command = quoted(arguments.command)
        if self.system is None:
            return catalogue.WOULD_RUN_UNBOXED.about(command=command)
        if self.settings.network:
            return catalogue.WOULD_RUN_ONLINE.about(command=command)
        return catalogue.WOULD_RUN_OFFLINE.about(command=command)

    def resources(self, _: ShellArguments, context: ToolContext) -> tuple[str, ...]:
        """Return the grants of the sandbox; the same for every command."""
        if self.system is None:
            return ("sandbox:none",)
        skills = (f"skill:{name}" for name, _ in context.skills)
        return ("sandbox:workspace", *(("host:*",) if self.settings.network else ()), *skills)

    async def run(self, arguments: ShellArguments, context: ToolContext) -> ToolOutput:
        """Run the command; all processes that it started have ended on return."""
        skills, faults = await asyncio.to_thread(_skills, context if self.system else None)
        end = await self._run(arguments, context, skills)
        lines = (_ending(end, arguments.timeout_s, self.caps), *faults, _displayed(end.output))
        return ToolOutput(text="\n".join(lines), is_error=end.ending != "exited")

    async def _run(
        self, arguments: ShellArguments, context: ToolContext, skills: tuple[Folder, ...]
    ) -> ProcessEnd:
        workspace = await asyncio.to_thread(context.workspace.resolve)
        system: System | Bare
        masks: tuple[Mask, ...] = ()
        if self.system is None:
            prlimit = await asyncio.to_thread(sandbox.find_program, "prlimit")
            system = Bare(prlimit=prlimit or "", subtree=self.subtree)
        else:
            hidden = hidden_in(workspace, self.hidden)
            if () in hidden or any(map(names_secrets, workspace.parts)):
                message = "the whole workspace is protected, so no command can run in it"
                raise ToolFailed(message)
            system, masks = self.system, await asyncio.to_thread(masks_of, workspace, hidden)
        return await sandbox.run(
            system,
            Box(
                workspace=workspace,
                network=self.settings.network,
                masks=masks,
                folders=skills,
                limits=self.limits,
            ),
            ("/bin/sh", "-c", arguments.command),
            timeout_s=arguments.timeout_s,
            caps=self.caps,
            spawned=context.spawned,
        )


def _skills(context: ToolContext | None) -> tuple[tuple[Folder, ...], list[str]]:
    """Return the skill folders that can be mounted, and a note about each that can't; blocks."""
    found: list[Folder] = []
    faults: list[str] = []
    for name, folder in () if context is None else context.skills:
        at = f"{SKILLS}/{name}"
        try:
            found.append(Folder(real=folder, at=at, masks=masks_in(folder)))
        except ValueError as error:
            faults.append(f"[`{at}` is not there: the skill's folder {error}]")
    return tuple(found), faults


def _ending(end: ProcessEnd, timeout_s: float, caps: OutputCaps) -> str:
    suffix = "" if end.is_gone else "; some processes that it started could not be killed"
    if end.excess and end.ending != "over_bounds":
        suffix = f"; files could only be removed, as {end.excess}{suffix}"
    match end.ending:
        case "timed_out":
            return f"killed after {timeout_s:g} s, its time-out{suffix}"
        case "flooded":
            return f"killed after it had written more than {caps.flood_bytes:,} bytes{suffix}"
        case "over_bounds":
            return f"killed because {end.excess}{suffix}"
        case "exited" if end.status < 0:
            return f"ended by signal {-end.status}{suffix}"
        case "exited":
            signal = end.status - 128
            note = (
                f" (signal {signal}, perhaps a limit of the sandbox)" if signal in _SIGNALS else ""
            )
            return f"exit code {end.status}{note}{suffix}"


def _displayed(output: Captured) -> str:
    """Return the output as text, with a marker where bytes were left out."""
    if output.total_bytes == 0:
        return "(no output)"
    whole = output.head + output.tail
    if len(whole) == output.total_bytes:
        return _text(whole)
    # Leave out a character that was cut in two.
    head = _CUT_AT_THE_END.sub(b"", output.head)
    tail = output.tail.lstrip(_CONTINUATIONS)
    gap = f"[… {counted(output.total_bytes - len(head) - len(tail), 'byte')} left out …]"
    return f"{_text(head)}\n{gap}\n{_text(tail)}"


def _text(data: bytes) -> str:
    decoded = readable(data)
    if not decoded.is_text:
        return decoded.text
    note = f"\n[not UTF-8 in {counted(decoded.bad_bytes, 'place')}]" if decoded.bad_bytes else ""
    return without_controls(decoded.text) + note
