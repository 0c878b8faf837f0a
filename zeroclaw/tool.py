"""The contract of a tool: what it declares, what it is handed, what it returns."""

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
"""Ends the resource that stands for all below a directory, see `Tool.resources`."""


def below(directory: str) -> str:
    """Return the resource of all below a directory; both begin with `file:`."""
    return directory.rstrip("/") + BELOW


class ToolSpec(Value):
    """What a tool declares about itself; policy, batch and card read nothing else.

    Attributes:
        name: `[a-z][a-z0-9_]*`, unique.
        description: For the model.
        parameters: JSON Schema of the arguments, an object schema.
        effects: All that a call may do. Empty means undeclared, and counts as everything.
        idempotent: Running it twice equals running it once; only then is it run again after a
            crash that hid its outcome (P3).
        cancellable: Cancelling `run` stops it without harm.
        risk: As shown on the card and used by policy.
        timeout_s: Seconds that one run may take.
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
    """A process group that a tool started, named so that it can't be mistaken for a later one.

    Attributes:
        pgid: Its id, which is also the id of its first process and of its session.
        start_ticks: When that process started, in the kernel's ticks since boot.
        boot: The kernel's id of this boot; after a reboot nothing of the group is left.
    """

    pgid: int
    start_ticks: int
    boot: str


SKILLS = "/skills"
"""Where commands in the sandbox find the folders of `ToolContext.skills`, each by its name."""


def _nothing(_resource: str) -> bool:
    return False


class ToolContext(Value):
    """What one run is handed.

    Attributes:
        conversation: Whose call it is.
        principal: On whose behalf.
        address: Where the answer goes. Unless it is `direct`, what a tool returns may be read
            there by more people than the principal.
        workspace: The conversation's own directory; exists.
        clock: The only source of time.
        spawned: Awaited with the process group before a child does anything, so that it can be
            killed after a crash; awaited with `None` when it has been reaped.
        max_file_bytes: Of one file that the chat of `address` takes; 0 where it takes none.
        permits: Answers for each place below a directory that the call names with all below it:
            `file:/real/path`, and `file:/real/path/**` before that directory is entered. What it
            refuses is neither opened nor named, only counted. It answers for this call alone, from
            any thread; where no gate decided, it refuses everything.
        untrusted: The turn holds untrusted text. A tool that keeps text for
            later turns keeps that with it, and says so in `ToolOutput.untrusted`.
        skills: The operator's skills that the conversation has loaded and that hold more than a text: the
            name and the folder of each. It is the operator's word, and nothing writes there.
    """

    conversation: ConversationId
    principal: Principal
    address: Address
    workspace: Path
    clock: Clock
    spawned: Callable[[Spawned | None], Awaitable[None]]
    max_file_bytes: int = 0
    permits: Callable[[str], bool] = _nothing
    untrusted: bool = False
    skills: tuple[tuple[str, Path], ...] = ()


class ToolFile(Value):
    """A file that goes to the chat of the turn, once the result of its call is recorded.

    Attributes:
        name: As people see it: one name, no path.
        media_type: What it says of itself, such as `text/csv`.
        content: All of it.
        caption: A line or two that stand with it, as they are; empty for none.
    """

    name: str
    media_type: str
    content: Hidden[bytes]
    caption: str = ""


class ToolOutput(Value):
    """What a run returned.

    Attributes:
        text: For the model, before redaction and capping.
        is_error: The call failed in a way the tool itself understood.
        files: For the people of the chat, in this order; a run that failed sends none. One that
            may not go out (it holds a secret, it is too large) makes the call fail.
        untrusted: The text holds words of people outside. All that a tool
            with the effect `network` returns counts so anyway.
    """

    text: str
    is_error: bool = False
    files: tuple[ToolFile, ...] = ()
    untrusted: bool = False


class Tool(Protocol):
    """Something the model may ask for."""

    @property
    def spec(self) -> ToolSpec:
        """The declaration; constant."""
        ...

    def check(self, arguments: Arguments) -> Arguments:
        """Return the arguments validated and with defaults filled in; pure.

        Raises:
            ToolArgumentsInvalid: With every fault.
        """
        ...

    def describe(self, arguments: Arguments) -> str | Localized:
        """Return one line for people: what this call would do; pure.

        A `Sentence` that is filled in is said in the language of each reader; see `line_of`.
        """
        ...

    async def resources(self, arguments: Arguments, context: ToolContext) -> tuple[str, ...]:
        """Return what the call would touch, resolved.

        `file:/real/path`, `host:name:port`, `sandbox:workspace`, `notes:of:person:ann`,
        `results:<conversation>`, `attachment:<conversation>/3`, `skill:<name>`. Called before the decision and
        again before the run; a difference stops the call. A call that walks a directory names it
        and all below it, `file:/real/path` and `file:/real/path/**`, and its run asks
        `context.permits` about each place that it meets.

        Raises:
            ResourcesUnresolved: It can't be told; the gate then fails closed.
        """
        ...

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Do it. Called only after the gate said so, under a time-out set by the caller.

        Raises:
            ToolFailed: With a text for the model.
        """
        ...


def line_of(tool: Tool, arguments: Arguments, language: Language) -> str:
    """Return the tool's own line about a call as one reader is told it, on one line."""
    line = tool.describe(arguments)
    return " ".join((line if isinstance(line, str) else line.to(language)).split())
