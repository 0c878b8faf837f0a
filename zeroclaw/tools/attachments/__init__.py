"""The tool that reads files which came with messages: `read_attachment`.

A file belongs to the conversation it came into, where a number names it; a number of another one
looks as if it didn't exist. The call's only resource is `attachment:<conversation>/<number>`.
Nothing of a file is looked into here but its first bytes: text is made of it in a process of its
own (`zeroclaw.readers.child`), which is given little memory and time, and is killed when it takes
more. That process runs in the sandbox that commands run in, with no place to write and no network.
Where there is none, PDFs and images, whose readers are large and old, are not read.
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
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ToolArgumentsInvalid, ToolFailed
from zeroclaw.host import processes, sandbox
from zeroclaw.host.executors import FairShare
from zeroclaw.host.processes import Ended, OutputCaps, Recorder
from zeroclaw.host.sandbox import Box, Broken, Limits, System
from zeroclaw.readers.formats import is_heard, recognise
from zeroclaw.readers.replies import Asked, Reply, asked_line, read_reply
from zeroclaw.recent import Recent
from zeroclaw.text import catalogue
from zeroclaw.tool import Tool, ToolContext, ToolOutput, ToolSpec
from zeroclaw.tools import ModelSchema, ModelTool, ToolArguments, counted, quoted, without_controls
from zeroclaw.value import Value, replace

__all__ = ["NAME", "AttachmentsSettings", "AttachmentsStore", "File", "tools", "try_reader"]

NAME = "read_attachment"
"""What the tool is called; the model is told of it where files came."""

NAME_CHARS = 80
READ_AT_ONCE = 4
"""Files that are read at the same time, one of each conversation; each is held in memory, and its
process may take all that one may. Further calls wait."""
KEPT_ANSWERS = 32
"""Answers of readers that are remembered: a model that asks again and again starts no process."""
_AROUND_S = 20.0  # starting, killing and cleaning up, on top of the reading
_HEAD_CHARS = 700  # of an answer, beside the piece itself
_MOST_ROWS = 1_000
# More than any answer has, and little enough to hold; one line, so the tail is never needed.
_CAPS = OutputCaps(head_bytes=8_388_608, tail_bytes=1, flood_bytes=8_388_608)
_BOXED = ("pdf", "image")
_CHILD = ("-P", "-m", "zeroclaw.readers.child")
_TMP_BYTES = 1_048_576  # readers write nothing
# The process needs no secrets of ours, so it gets no other variable than these.
_PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH")


class File(Value):
    """A file that came with a message, or should have.

    Attributes:
        name: Its sender's; untrusted.
        size_bytes: As it came.
        failed: Why it did not come, empty for one that did.
    """

    name: str
    size_bytes: int
    failed: str = ""


class AttachmentsStore(Protocol):
    """Where files are kept; handed in by the owner of a store."""

    async def find(self, conversation: ConversationId, number: int, /) -> File | None:
        """Return a file, None when this conversation has none of that number."""
        ...

    async def content(self, conversation: ConversationId, number: int, /) -> bytes | None:
        """Return a file's bytes, None when they did not come or are no longer kept."""
        ...


class AttachmentsSettings(Value):
    """Where files are kept, and what reading one may cost.

    Attributes:
        store: Keeps them.
        sandbox: What `sandbox.self_test` found.
        answer_chars: Says how long one answer may be; the runtime cuts longer ones again.
        timeout_s: Seconds for one call; as much processor time at most.
        memory_bytes: Address space of the process that reads.
    """

    store: AttachmentsStore
    sandbox: System | Broken
    answer_chars: Callable[[], int] = lambda: 20_000
    timeout_s: float = 20.0
    memory_bytes: int = 536_870_912


class ReadArguments(ToolArguments):
    """What `read_attachment` takes."""

    id: int = Field(ge=1, le=99_999_999, description="As its message lists it.")
    page: int = Field(default=1, ge=1, le=1_000_000, description="Of a PDF.")
    offset: int = Field(
        default=0, ge=0, le=1_000_000_000, description="Characters of a text, rows of a table."
    )
    limit: int = Field(default=0, ge=0, le=1_000_000_000, description="Likewise; 0 for the most.")


def tools(settings: AttachmentsSettings) -> tuple[Tool, ...]:
    """Return the tool."""
    files = _Files(settings)
    spec = ToolSpec(
        name=NAME,
        description=(
            "Read a file that came with a message: text, rows of CSV, pages of PDF, or what an image"
            " says about itself."
        ),
        parameters=ModelSchema(ReadArguments),
        effects=frozenset({"read"}),
        idempotent=True,
        risk="low",
        timeout_s=settings.timeout_s + _AROUND_S,
    )
    return (
        ModelTool(
            spec=spec,
            model=ReadArguments,
            line=lambda asked: catalogue.WOULD_READ_ATTACHMENT.about(id=asked.id),
            reach=_reach,
            work=files.read,
            settled=files.settled,
        ),
    )


async def _reach(asked: ReadArguments, context: ToolContext) -> tuple[str, ...]:
    return (f"attachment:{context.conversation}/{asked.id}",)


class _Files:
    """Reads pieces of files that came with messages of the same conversation."""

    def __init__(self, settings: AttachmentsSettings) -> None:
        self._settings = settings
        self._share = FairShare("files that came", at_once=READ_AT_ONCE)
        self._sandbox: System | Broken | None = None
        self._answers: Recent[tuple[bytes, Asked], Reply] = Recent(KEPT_ANSWERS)

    @property
    def _most_chars(self) -> int:
        return self._settings.answer_chars() - _HEAD_CHARS

    def settled(self, asked: ReadArguments) -> ReadArguments:
        """Refuse a piece that would be cut again."""
        if asked.limit > self._most_chars:
            raise ToolArgumentsInvalid((f"limit: must be at most {self._most_chars}",))
        return asked

    async def read(self, asked: ReadArguments, context: ToolContext) -> ToolOutput:
        """Read a piece."""
        store, here = self._settings.store, context.conversation
        file = await store.find(here, asked.id)
        if file is None:
            told = f"there is no attachment {asked.id} here; a message lists its files by number"
            return ToolOutput(text=told, is_error=True)
        which = f"attachment {asked.id} {quoted(file.name or 'file', limit_chars=NAME_CHARS)}"
        if file.failed:
            why = quoted(file.failed).strip("`")
            told = f"{which} did not come: {why}"
            return ToolOutput(text=told, is_error=True, untrusted=True)
        async with self._share.place(context.conversation):
            # Its name, too, is whatever its sender liked.
            return replace(await self._read_file(which, file, asked, context), untrusted=True)

    async def _read_file(
        self, which: str, file: File, asked: ReadArguments, context: ToolContext
    ) -> ToolOutput:
        content = await self._settings.store.content(context.conversation, asked.id)
        if content is None:
            told = f"{which} is no longer kept: ask for it to be sent again"
            return ToolOutput(text=told, is_error=True)
        found = recognise(content, file.name)
        head = f"{which}, {found.label}, {counted(len(content), 'byte')}"
        if found.reader == "none":
            what = "transcriber" if is_heard(found.label) else "reader"
            return ToolOutput(text=f"{head}: there is no {what} for it", is_error=True)
        # Tried with the first file: a start need not wait for what its people may never send.
        self._sandbox = self._sandbox or await try_reader(self._settings.sandbox)
        if isinstance(self._sandbox, Broken) and found.reader in _BOXED:
            told = f"{head}: it is read in a sandbox only, and there is none: "
            return ToolOutput(text=told + self._sandbox.reason, is_error=True)
        # Of a table the limit counts rows; what fits into an answer bounds its characters as well.
        chars = 0 if found.reader == "table" else asked.limit
        question = Asked(
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

    async def _answer(self, asked: Asked, content: bytes, context: ToolContext) -> Reply:
        """Return what a reader says of these very bytes, from memory where it said it already."""
        key = (await asyncio.to_thread(_digest, content), asked)
        reply = self._answers.pop(key, None) or await self._read(asked, content, context)
        self._answers[key] = reply
        return reply

    async def _read(self, asked: Asked, content: bytes, context: ToolContext) -> Reply:
        """Have a file read by a process, and say how that ended when there is no answer."""
        settings = self._settings
        cpu_s = int(settings.timeout_s) + 1  # a processor of its own spends as much as the clock
        line = asked_line(asked) + content
        if isinstance(self._sandbox, System):
            limits = Limits(memory_bytes=settings.memory_bytes, cpu_s=cpu_s)
            ended = await _run_boxed(
                self._sandbox, line, limits, timeout_s=settings.timeout_s, spawned=context.spawned
            )
        else:
            ended = await processes.run(
                (sys.executable, *_CHILD, str(settings.memory_bytes), str(cpu_s)),
                directory=Path("/"),
                environment={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                timeout_s=settings.timeout_s,
                caps=_CAPS,
                spawned=context.spawned,
                given=line,
            )
        reply = read_reply(ended.output.head) if ended.ending == "exited" else None
        if reply is None:
            raise ToolFailed(_broken(ended, settings.timeout_s))
        return reply


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


async def _run_boxed(
    found: System, given: bytes, limits: Limits, *, timeout_s: float, spawned: Recorder
) -> Ended:
    """Let a reader answer in the sandbox, within the memory and the processor time of `limits`."""
    box, argv = await asyncio.to_thread(_reader, limits)
    return await sandbox.run(
        found, box, argv, timeout_s=timeout_s, caps=_CAPS, spawned=spawned, given=given
    )


def _reader(limits: Limits) -> tuple[Box, tuple[str, ...]]:
    """Return what a reader gets, and its command line; looks at the disk, so call it in a thread.

    It sees the system, this Python and its packages, and of an installation that can be edited the
    one folder that is ours: beside it may be anything.
    """
    ours = Path(zeroclaw.__file__).resolve().parent
    packages = (Path(path) for path in sys.path if path.endswith("-packages"))
    seen = {Path(sys.base_prefix).resolve(), ours, *packages}
    programs = sorted(path for path in seen if path.is_dir() and not path.is_relative_to("/usr"))
    limits = replace(limits, file_bytes=0, tmp_bytes=_TMP_BYTES)
    return Box(workspace=None, programs=tuple(programs), limits=limits), (
        # Where its packages are is told as a list, for it may be many ways of having installed them.
        *("/usr/bin/env", f"PYTHONPATH={os.pathsep.join([str(ours.parent), *sys.path])}"),
        *(str(Path(sys.executable).resolve()), *_CHILD),
        *(str(limits.memory_bytes), str(limits.cpu_s)),
    )


async def try_reader(found: System | Broken) -> System | Broken:
    """Read a word in the sandbox, and say so where that does not work."""
    if isinstance(found, Broken):
        return found
    line = asked_line(Asked(reader="text")) + b"word"
    try:
        ended = await _run_boxed(
            found, line, Limits(), timeout_s=_AROUND_S, spawned=sandbox.unrecorded
        )
    except ToolFailed as error:
        return Broken(reason=str(error))
    reply = read_reply(ended.output.head)
    if reply is None or reply.text != "word":
        return Broken(reason="Python and what it needs can't be read in it; see who may read them")
    return found


def _broken(ended: Ended, timeout_s: float) -> str:
    """Say why a reader gave no answer; the maker of the file has a say in that."""
    if ended.ending == "timed_out" or ended.status == -signal.SIGXCPU:
        return f"reading it took longer than {timeout_s:g} s, so it was ended"
    if ended.ending == "flooded":
        return "reading it gave more than anybody could read, so it was ended"
    if ended.status < 0:
        return f"its reader was ended by signal {-ended.status}: the file may be made to do that"
    return "its reader stumbled over it: the file is damaged, or made to do that"
