"""The contract of a tool: its declaration, the context of a run, its output."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

from zeroclaw.clock import Clock
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.text.language import Language, Localized
from zeroclaw.value import Hidden, Value

Effect = Literal["read", "write", "network", "exec"]
Risk = Literal["low", "medium", "high"]
Arguments = Mapping[str, object]

BELOW = "/**"
"""Suffix of a resource that covers everything below a directory, see `Tool.resources`."""


def below(directory: str) -> str:
    """Return the resource for everything below a directory; both begin with `file:`."""
    return directory.rstrip("/") + BELOW


class ToolSpec(Value):
    """The declaration of a tool; policy, batch and card rely on nothing else.

    Attributes:
        name: `[a-z][a-z0-9_]*`, unique.
        description: For the model.
        parameters: JSON Schema of the arguments, an object schema.
        effects: Everything that a call may do. Empty means undeclared, and counts as everything.
        idempotent: Running it twice equals running it once; only then is it run again after a crash
            that hid its outcome (P3).
        cancellable: Cancelling `run` stops it without harm.
        risk: As shown on the card and used by policy.
        timeout_s: Time limit of one run in seconds.
        execution: `sequential` makes the whole batch run one by one (S1-22).
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    effects: frozenset[Effect]
    idempotent: bool = False
    cancellable: bool = True
    risk: Risk = "medium"
    timeout_s: float = 60.0
    execution: Literal["parallel", "sequential"] = "parallel"


class Spawned(Value):
    """A process group that a tool started, identified so that a later one can't be mistaken for it.

    Attributes:
        pgid: Its id, which is also the id of its first process and of its session.
        start_ticks: When that process started, in the kernel's ticks since boot.
        boot: The kernel's id of this boot; no process survives a reboot.
    """

    pgid: int
    start_ticks: int
    boot: str


SKILLS = "/skills"
"""Where sandboxed commands find the folders of `ToolContext.skills`, by skill name."""


def _permit_nothing(_resource: str) -> bool:
    return False


class ToolContext(Value):
    """The context of one run.

    Attributes:
        conversation: The conversation that the call belongs to.
        principal: The person the call is made for.
        address: The chat of the answer. Unless it is `direct`, people other than the principal may
            read a tool's results there.
        workspace: The conversation's own directory; exists.
        clock: The only source of time.
        spawned: Await it with the process group before a child does anything, so that the group can
            be killed after a crash; await it with `None` once the child is reaped.
        max_file_bytes: The largest file that the chat of `address` accepts; 0 if it accepts none.
        permits: Whether this call may touch a place below a directory that it named with everything
            below. Ask with `file:/real/path`, and with `file:/real/path/**` before entering a
            directory. A refused place is neither opened nor named, only counted. Valid for this
            call alone, callable from any thread; refuses everything if no gate decided on the call.
        untrusted: The turn contains untrusted text. A tool that stores text for later turns stores
            this flag with it, and reports it in `ToolOutput.untrusted`.
        skills: Name and folder of each skill that the conversation has loaded and that has more
            than a text. The operator wrote them, and nothing writes there.
    """

    conversation: ConversationId
    principal: Principal
    address: Address
    workspace: Path
    clock: Clock
    spawned: Callable[[Spawned | None], Awaitable[None]]
    max_file_bytes: int = 0
    permits: Callable[[str], bool] = _permit_nothing
    untrusted: bool = False
    skills: tuple[tuple[str, Path], ...] = ()


class ToolFile(Value):
    """A file that is sent to the turn's chat once the call's result is recorded.

    Attributes:
        name: The name people see: one file name, no path.
        media_type: The claimed type, such as `text/csv`.
        content: The whole file.
        caption: A line or two of plain text shown with it; empty for none.
    """

    name: str
    media_type: str
    content: Hidden[bytes]
    caption: str = ""


class ToolOutput(Value):
    """The result of one run.

    Attributes:
        text: For the model, before redaction and capping.
        is_error: The call failed in a way that the tool itself recognised.
        files: Files for the people in the chat, in this order; a failed run sends none. A file that
            may not be sent (it contains a secret, or is too large) makes the call fail.
        untrusted: The text includes content from outsiders. The output of a tool with the effect
            `network` counts as untrusted in any case.
    """

    text: str
    is_error: bool = False
    files: tuple[ToolFile, ...] = ()
    untrusted: bool = False


class Tool(Protocol):
    """Something the model can call."""

    @property
    def spec(self) -> ToolSpec:
        """The declaration; constant."""
        ...

    def check(self, arguments: Arguments) -> Arguments:
        """Return the arguments, validated and with defaults filled in; pure.

        Raises:
            ToolArgumentsInvalid: Lists every fault.
        """
        ...

    def describe(self, arguments: Arguments) -> str | Localized:
        """Return one line for people about the effect of this call; pure.

        A `Sentence` with its facts is shown in each reader's language; see `line_of`.
        """
        ...

    async def resources(self, arguments: Arguments, context: ToolContext) -> tuple[str, ...]:
        """Return the resources that the call would touch, resolved.

        `file:/real/path`, `host:name:port`, `sandbox:workspace`, `notes:of:person:ann`,
        `results:<conversation>`, `attachment:<conversation>/3`, `skill:<name>`. Called before the
        decision and again before the run; a difference stops the call. A call that walks a
        directory names both the directory and everything below it, `file:/real/path` and
        `file:/real/path/**`, and its run asks `context.permits` about each place it meets.

        Raises:
            ResourcesUnresolved: The tool can't tell; the gate then fails closed.
        """
        ...

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Run the call. Called only after the gate allowed it, under the caller's time-out.

        Raises:
            ToolFailed: The text is for the model.
        """
        ...


def line_of(tool: Tool, arguments: Arguments, language: Language) -> str:
    """Return the tool's line about a call, in one reader's language, on a single line."""
    line = tool.describe(arguments)
    return " ".join((line if isinstance(line, str) else line.to(language)).split())
