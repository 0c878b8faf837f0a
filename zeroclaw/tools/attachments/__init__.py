"""The tool that reads files of messages: `read_attachment`.

A file belongs to the conversation it came into, and has a number there; numbers of other
conversations look as if they didn't exist. The call's only resource is
`attachment:<conversation>/<number>`.

This process looks only at the first bytes of a file. A child process (`zeroclaw.readers.child`)
turns it into text, with little memory and time, and is killed when it exceeds them. The child runs
in the sandbox for commands, without network and without a writable place. Without a sandbox, PDFs
and images are not read, because their readers are large and old.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pydantic import Field

import zeroclaw
from zeroclaw.config.model import AttachmentToolSettings
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ToolArgumentsInvalid, ToolFailed
from zeroclaw.host import sandbox
from zeroclaw.host.executors import FairShare
from zeroclaw.host.processes import OutputCaps, ProcessEnd, Recorder
from zeroclaw.host.sandbox import Bare, Box, Broken, Folder, Limits, System
from zeroclaw.readers.formats import is_audio_or_video, recognise
from zeroclaw.readers.replies import ReadRequest, Reply, line_of, parse_reply
from zeroclaw.text import catalogue
from zeroclaw.tool import Tool, ToolContext, ToolOutput
from zeroclaw.tools import ModelTool, ToolArguments, counted, quoted, read_spec, without_controls
from zeroclaw.value import Struct, Value, field, replace

__all__ = ["NAME", "AttachmentsStore", "File", "tools", "try_reader"]

NAME = "read_attachment"
"""Name of the tool; notes about arrived files mention it."""

NAME_CHARS = 80
READ_AT_ONCE = 4
"""Files read at the same time, one per conversation; further calls wait. Each file is held in memory,
and each process may use the whole memory limit."""
_OVERHEAD_S = 20.0  # for starting, killing and cleaning up, on top of the reading
_HEAD_CHARS = 700  # reserved in an answer for all but the piece itself
_MAX_ROWS = 1_000
# More than any reply has, and little enough for memory. A reply is one line, so the tail is never
# needed.
_CAPS = OutputCaps(head_bytes=8_388_608, tail_bytes=1, flood_bytes=8_388_608)
_BOXED = ("pdf", "image")
_CHILD = ("-P", "-m", "zeroclaw.readers.child")
_TMP_BYTES = 1_048_576  # readers write nothing
_PASSED_VARIABLES = ("LD_LIBRARY_PATH",)  # a Python outside the system may need it to start


class File(Value):
    """A file of a message, perhaps one that failed to arrive.

    Attributes:
        name: Chosen by its sender; untrusted.
        size_bytes: Its size on arrival.
        failed: The reason why it did not arrive; empty if it did.
    """

    name: str
    size_bytes: int
    failed: str = ""


class AttachmentsStore(Protocol):
    """Stores files; injected."""

    async def find(self, conversation: ConversationId, number: int, /) -> File | None:
        """Return a file; None if this conversation has none of that number."""
        ...

    async def content(self, conversation: ConversationId, number: int, /) -> bytes | None:
        """Return a file's bytes; None if they did not arrive or are no longer stored."""
        ...


class ReadArguments(ToolArguments):
    """Arguments of `read_attachment`."""

    id: int = Field(ge=1, le=99_999_999, description="As its message lists it.")
    page: int = Field(default=1, ge=1, le=1_000_000, description="Of a PDF.")
    offset: int = Field(
        default=0,
        ge=0,
        le=1_000_000_000,
        description="Characters of a text or mail, rows of a table.",
    )
    limit: int = Field(default=0, ge=0, le=1_000_000_000, description="Likewise; 0 for the most.")


def tools(
    settings: AttachmentToolSettings,
    store: AttachmentsStore,
    boxed: System | Broken,
    answer_chars: Callable[[], int],
) -> tuple[Tool, ...]:
    """Return the tool.

    Args:
        settings: The limits of reading a file.
        store: Stores the files.
        boxed: The result of `sandbox.self_test`.
        answer_chars: Returns the current cap on an answer; the runtime cuts longer ones again.
    """
    files = _Files(settings, store, boxed, answer_chars)
    description = (
        "Read a file of a message: text, mail, rows of CSV, pages of PDF, data of an image."
    )
    spec = read_spec(NAME, description, ReadArguments, settings.timeout_s + _OVERHEAD_S)
    return (
        ModelTool(
            spec=spec,
            model=ReadArguments,
            summary=lambda arguments: catalogue.WOULD_READ_ATTACHMENT.about(id=arguments.id),
            find_resources=lambda arguments, context: (
                f"attachment:{context.conversation}/{arguments.id}",
            ),
            handler=files.read,
            apply_settings=files.apply_settings,
        ),
    )


class _Files(Struct, eq=False):
    """Reads pieces of files from messages of the same conversation."""

    settings: AttachmentToolSettings
    store: AttachmentsStore
    boxed: System | Broken
    answer_chars: Callable[[], int]
    _share: FairShare = field(
        default_factory=lambda: FairShare("files that came", at_once=READ_AT_ONCE)
    )
    _tested: System | Broken | None = None

    @property
    def _max_chars(self) -> int:
        return self.answer_chars() - _HEAD_CHARS

    def apply_settings(self, arguments: ReadArguments) -> ReadArguments:
        """Refuse a limit that the runtime would cut again."""
        if arguments.limit > self._max_chars:
            raise ToolArgumentsInvalid((f"limit: must be at most {self._max_chars}",))
        return arguments

    async def read(self, arguments: ReadArguments, context: ToolContext) -> ToolOutput:
        """Read a piece."""
        number = arguments.id
        file = await self.store.find(context.conversation, number)
        if file is None:
            fault = f"there is no attachment {number} here; a message lists its files by number"
            return ToolOutput(text=fault, is_error=True)
        title = f"attachment {number} {quoted(file.name or 'file', limit_chars=NAME_CHARS)}"
        if file.failed:
            reason = quoted(file.failed).strip("`")
            fault = f"{title} did not arrive: {reason}"
            return ToolOutput(text=fault, is_error=True, untrusted=True)
        async with self._share.slot(context.conversation):
            # Untrusted, even its name: the sender chose it.
            return replace(await self._read_file(title, file, arguments, context), untrusted=True)

    async def _read_file(
        self, title: str, file: File, arguments: ReadArguments, context: ToolContext
    ) -> ToolOutput:
        content = await self.store.content(context.conversation, arguments.id)
        if content is None:
            fault = f"{title} is no longer stored: ask for it to be sent again"
            return ToolOutput(text=fault, is_error=True)
        kind = recognise(content, file.name)
        head = f"{title}, {kind.label}, {counted(len(content), 'byte')}"
        if kind.reader == "none":
            noun = "transcriber" if is_audio_or_video(kind.label) else "reader"
            return ToolOutput(text=f"{head}: there is no {noun} for it", is_error=True)
        # Tested with the first file, so that a start doesn't wait for it. A failure may pass.
        if not isinstance(self._tested, System):
            self._tested = await try_reader(self.boxed)
        if isinstance(self._tested, Broken) and kind.reader in _BOXED:
            fault = f"{head}: it is read in a sandbox only, and there is none: "
            return ToolOutput(text=fault + self._tested.reason, is_error=True)
        # For a table the limit counts rows; the longest answer bounds its characters too.
        chars = 0 if kind.reader == "table" else arguments.limit
        request = ReadRequest(
            reader=kind.reader,
            page=arguments.page,
            offset=arguments.offset,
            limit=chars or self._max_chars,
            rows=arguments.limit or _MAX_ROWS,
        )
        reply = await self._reply(request, content, context)
        if reply.failed:
            return ToolOutput(text=f"{head}: {without_controls(reply.failed)}", is_error=True)
        about = without_controls(reply.about)
        text = without_controls(reply.text)
        return ToolOutput(text=f"{head}; {about}:\n{text}" if text else f"{head}; {about}")

    async def _reply(self, request: ReadRequest, content: bytes, context: ToolContext) -> Reply:
        """Have a child process read the file; fail with the reason if it gives no reply."""
        settings = self.settings
        # It may compute all the time.
        limits = Limits(memory_bytes=settings.memory_bytes, cpu_s=int(settings.timeout_s) + 1)
        end = await _run_reader(
            self._tested if isinstance(self._tested, System) else Bare(),
            line_of(request) + content,
            limits,
            timeout_s=settings.timeout_s,
            spawned=context.spawned,
        )
        reply = parse_reply(end.output.head) if end.ending == "exited" else None
        if reply is None:
            raise ToolFailed(_broken(end, settings.timeout_s))
        return reply


async def _run_reader(
    system: System | Bare, data: bytes, limits: Limits, *, timeout_s: float, spawned: Recorder
) -> ProcessEnd:
    """Run a reader, in the sandbox if there is one, within the memory and CPU time of `limits`."""
    box, argv = await asyncio.to_thread(_reader, limits)
    return await sandbox.run(
        system, box, argv, timeout_s=timeout_s, caps=_CAPS, spawned=spawned, stdin=data
    )


def _reader(limits: Limits) -> tuple[Box, tuple[str, ...]]:
    """Return the sandbox and the command line of a reader; looks at the disk, so call it in a thread.

    The reader sees the system, this Python and its packages. Of an editable installation it sees
    only our package, because the parent directory may contain anything.
    """
    package = Path(zeroclaw.__file__).resolve().parent
    packages = (Path(path) for path in sys.path if path.endswith("-packages"))
    roots = {Path(sys.base_prefix).resolve(), package, *packages}
    seen = sorted(path for path in roots if path.is_dir() and not path.is_relative_to("/usr"))
    folders = tuple(Folder(real=path, at=str(path)) for path in seen)
    limits = replace(limits, file_bytes=0, tmp_bytes=_TMP_BYTES)
    return Box(workspace=None, folders=folders, limits=limits), (
        # Passed as a list, because packages can be installed in many ways.
        *("/usr/bin/env", f"PYTHONPATH={os.pathsep.join([str(package.parent), *sys.path])}"),
        *(f"{name}={os.environ[name]}" for name in _PASSED_VARIABLES if name in os.environ),
        *(str(Path(sys.executable).resolve()), *_CHILD),
        *(str(limits.memory_bytes), str(limits.cpu_s)),
    )


async def try_reader(system: System | Broken) -> System | Broken:
    """Read a word in the sandbox; return `Broken` if that fails."""
    if isinstance(system, Broken):
        return system
    line = line_of(ReadRequest(reader="text")) + b"word"
    try:
        end = await _run_reader(
            system, line, Limits(), timeout_s=_OVERHEAD_S, spawned=sandbox.unrecorded
        )
    except ToolFailed as error:
        return Broken(reason=str(error))
    reply = parse_reply(end.output.head)
    if reply is None or reply.text != "word":
        return Broken(reason="Python or its libraries can't be read in it; check their permissions")
    return system


def _broken(end: ProcessEnd, timeout_s: float) -> str:
    """Return the reason why a reader gave no reply; the file itself may be the cause."""
    if end.ending == "timed_out" or end.status == -signal.SIGXCPU:
        return f"reading it took longer than {timeout_s:g} s, so it was ended"
    if end.ending == "flooded":
        return "reading it gave more output than allowed, so it was ended"
    if end.status < 0:
        return f"its reader was ended by signal {-end.status}: the file may be made to do that"
    return "its reader stumbled over it: the file is damaged, or made to do that"
