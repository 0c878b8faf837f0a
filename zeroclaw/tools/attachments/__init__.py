"""The tool that reads files which came with messages: `read_attachment`.

A file belongs to the conversation it came into, and has a number there; numbers of other
conversations look as if they didn't exist. The call's only resource is
`attachment:<conversation>/<number>`.

This process looks only at the first bytes of a file. A child process (`zeroclaw.readers.child`)
turns it into text, with little memory and time, and is killed when it exceeds them. The child runs
in the sandbox for commands, without network and without a writable place. Without a sandbox, PDFs
and images are not read, because their readers are large and old.
"""

import asyncio
import hashlib
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
from zeroclaw.host.sandbox import Bare, Box, Broken, Limits, System
from zeroclaw.readers.formats import is_audio_or_video, recognise
from zeroclaw.readers.replies import ReadRequest, Reply, line_of, parse_reply
from zeroclaw.recent import Recent
from zeroclaw.text import catalogue
from zeroclaw.tool import Tool, ToolContext, ToolOutput
from zeroclaw.tools import ModelTool, ToolArguments, counted, quoted, read_spec, without_controls
from zeroclaw.value import Struct, Value, field, replace

__all__ = ["NAME", "AttachmentsStore", "File", "tools", "try_reader"]

NAME = "read_attachment"
"""Name of the tool; the model is told about it when files arrive."""

NAME_CHARS = 80
READ_AT_ONCE = 4
"""Files read at the same time, one per conversation; further calls wait. Each file is held in memory,
and each process may use the whole memory limit."""
KEPT_ANSWERS = 32
"""Reader replies that are cached, so that a model that repeats itself starts no process."""
_AROUND_S = 20.0  # for starting, killing and cleaning up, on top of the reading
_HEAD_CHARS = 700  # reserved in an answer for all but the piece itself
_MOST_ROWS = 1_000
# More than any reply has, and little enough to hold. A reply is one line, so the tail is never
# needed.
_CAPS = OutputCaps(head_bytes=8_388_608, tail_bytes=1, flood_bytes=8_388_608)
_BOXED = ("pdf", "image")
_CHILD = ("-P", "-m", "zeroclaw.readers.child")
_TMP_BYTES = 1_048_576  # readers write nothing
_PASSED_ON = ("LD_LIBRARY_PATH",)  # a Python outside the system may need it to start


class File(Value):
    """A file that came with a message, or failed to.

    Attributes:
        name: Chosen by its sender; untrusted.
        size_bytes: Its size on arrival.
        failed: Why it did not arrive; empty if it did.
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
        """Return a file's bytes; None if they did not arrive or are no longer kept."""
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
        store: Where files are stored.
        boxed: The result of `sandbox.self_test`.
        answer_chars: Returns the current cap on an answer; the runtime cuts longer ones again.
    """
    files = _Files(settings, store, boxed, answer_chars)
    said = (
        "Read a file of a message: text, mail, rows of CSV, pages of PDF, or what an image says of"
        " itself."
    )
    spec = read_spec(NAME, said, ReadArguments, settings.timeout_s + _AROUND_S)
    return (
        ModelTool(
            spec=spec,
            model=ReadArguments,
            summary=lambda asked: catalogue.WOULD_READ_ATTACHMENT.about(id=asked.id),
            find_resources=_resources,
            handler=files.read,
            apply_settings=files.apply_settings,
        ),
    )


async def _resources(asked: ReadArguments, context: ToolContext) -> tuple[str, ...]:
    return (f"attachment:{context.conversation}/{asked.id}",)


class _Files(Struct, eq=False):
    """Reads pieces of files that came with messages of the same conversation."""

    settings: AttachmentToolSettings
    store: AttachmentsStore
    boxed: System | Broken
    answer_chars: Callable[[], int]
    _share: FairShare = field(
        default_factory=lambda: FairShare("files that came", at_once=READ_AT_ONCE)
    )
    _tested: System | Broken | None = None
    _answers: Recent[tuple[bytes, ReadRequest], Reply] = field(
        default_factory=lambda: Recent(KEPT_ANSWERS)
    )

    @property
    def _most_chars(self) -> int:
        return self.answer_chars() - _HEAD_CHARS

    def apply_settings(self, asked: ReadArguments) -> ReadArguments:
        """Refuse a limit that the runtime would cut again."""
        if asked.limit > self._most_chars:
            raise ToolArgumentsInvalid((f"limit: must be at most {self._most_chars}",))
        return asked

    async def read(self, asked: ReadArguments, context: ToolContext) -> ToolOutput:
        """Read a piece."""
        file = await self.store.find(context.conversation, asked.id)
        if file is None:
            told = f"there is no attachment {asked.id} here; a message lists its files by number"
            return ToolOutput(text=told, is_error=True)
        which = f"attachment {asked.id} {quoted(file.name or 'file', limit_chars=NAME_CHARS)}"
        if file.failed:
            why = quoted(file.failed).strip("`")
            told = f"{which} did not come: {why}"
            return ToolOutput(text=told, is_error=True, untrusted=True)
        async with self._share.slot(context.conversation):
            # Untrusted, even its name: the sender chose it.
            return replace(await self._read_file(which, file, asked, context), untrusted=True)

    async def _read_file(
        self, which: str, file: File, asked: ReadArguments, context: ToolContext
    ) -> ToolOutput:
        content = await self.store.content(context.conversation, asked.id)
        if content is None:
            told = f"{which} is no longer kept: ask for it to be sent again"
            return ToolOutput(text=told, is_error=True)
        found = recognise(content, file.name)
        head = f"{which}, {found.label}, {counted(len(content), 'byte')}"
        if found.reader == "none":
            what = "transcriber" if is_audio_or_video(found.label) else "reader"
            return ToolOutput(text=f"{head}: there is no {what} for it", is_error=True)
        # Tested with the first file, so that a start doesn't wait for it.
        self._tested = self._tested or await try_reader(self.boxed)
        if isinstance(self._tested, Broken) and found.reader in _BOXED:
            told = f"{head}: it is read in a sandbox only, and there is none: "
            return ToolOutput(text=told + self._tested.reason, is_error=True)
        # For a table the limit counts rows; the longest answer bounds its characters too.
        chars = 0 if found.reader == "table" else asked.limit
        question = ReadRequest(
            reader=found.reader,
            page=asked.page,
            offset=asked.offset,
            limit=chars or self._most_chars,
            rows=asked.limit or _MOST_ROWS,
        )
        reply = await self._answer(question, content, context)
        if reply.failed:
            return ToolOutput(text=f"{head}: {without_controls(reply.failed)}", is_error=True)
        about = without_controls(reply.about)
        text = without_controls(reply.text)
        return ToolOutput(text=f"{head}; {about}:\n{text}" if text else f"{head}; {about}")

    async def _answer(self, asked: ReadRequest, content: bytes, context: ToolContext) -> Reply:
        """Return the reader's reply for this content and question, from the cache if possible."""
        key = ((await asyncio.to_thread(hashlib.sha256, content)).digest(), asked)
        reply = self._answers.pop(key, None) or await self._read(asked, content, context)
        self._answers[key] = reply
        return reply

    async def _read(self, asked: ReadRequest, content: bytes, context: ToolContext) -> Reply:
        """Have a child process read the file; fail with the reason if it gives no reply."""
        settings = self.settings
        # It may compute all the time.
        limits = Limits(memory_bytes=settings.memory_bytes, cpu_s=int(settings.timeout_s) + 1)
        ended = await _run_reader(
            self._tested if isinstance(self._tested, System) else Bare(),
            line_of(asked) + content,
            limits,
            timeout_s=settings.timeout_s,
            spawned=context.spawned,
        )
        reply = parse_reply(ended.output.head) if ended.ending == "exited" else None
        if reply is None:
            raise ToolFailed(_broken(ended, settings.timeout_s))
        return reply


async def _run_reader(
    found: System | Bare, given: bytes, limits: Limits, *, timeout_s: float, spawned: Recorder
) -> ProcessEnd:
    """Run a reader, in the sandbox if there is one, within the memory and CPU time of `limits`."""
    box, argv = await asyncio.to_thread(_reader, limits)
    return await sandbox.run(
        found, box, argv, timeout_s=timeout_s, caps=_CAPS, spawned=spawned, stdin=given
    )


def _reader(limits: Limits) -> tuple[Box, tuple[str, ...]]:
    """Return the sandbox and the command line of a reader; looks at the disk, so call it in a thread.

    The reader sees the system, this Python and its packages. Of an editable installation it sees
    only our package: its parent directory may hold anything.
    """
    ours = Path(zeroclaw.__file__).resolve().parent
    packages = (Path(path) for path in sys.path if path.endswith("-packages"))
    seen = {Path(sys.base_prefix).resolve(), ours, *packages}
    programs = sorted(path for path in seen if path.is_dir() and not path.is_relative_to("/usr"))
    limits = replace(limits, file_bytes=0, tmp_bytes=_TMP_BYTES)
    return Box(workspace=None, programs=tuple(programs), limits=limits), (
        # Passed as a list, because packages can be installed in many ways.
        *("/usr/bin/env", f"PYTHONPATH={os.pathsep.join([str(ours.parent), *sys.path])}"),
        *(f"{name}={os.environ[name]}" for name in _PASSED_ON if name in os.environ),
        *(str(Path(sys.executable).resolve()), *_CHILD),
        *(str(limits.memory_bytes), str(limits.cpu_s)),
    )


async def try_reader(found: System | Broken) -> System | Broken:
    """Read a word in the sandbox; return `Broken` if that fails."""
    if isinstance(found, Broken):
        return found
    line = line_of(ReadRequest(reader="text")) + b"word"
    try:
        ended = await _run_reader(
            found, line, Limits(), timeout_s=_AROUND_S, spawned=sandbox.unrecorded
        )
    except ToolFailed as error:
        return Broken(reason=str(error))
    reply = parse_reply(ended.output.head)
    if reply is None or reply.text != "word":
        return Broken(reason="Python and what it needs can't be read in it; see who may read them")
    return found


def _broken(ended: ProcessEnd, timeout_s: float) -> str:
    """Return why a reader gave no reply; the file itself may be the cause."""
    if ended.ending == "timed_out" or ended.status == -signal.SIGXCPU:
        return f"reading it took longer than {timeout_s:g} s, so it was ended"
    if ended.ending == "flooded":
        return "reading it gave more than anybody could read, so it was ended"
    if ended.status < 0:
        return f"its reader was ended by signal {-ended.status}: the file may be made to do that"
    return "its reader stumbled over it: the file is damaged, or made to do that"
