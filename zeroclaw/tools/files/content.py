"""Reads, writes, edits and sends one file of a workspace. All of it blocks: call it in a thread."""

import mimetypes
import os
from typing import Annotated, BinaryIO

from pydantic import Field

from zeroclaw.errors import ToolFailed
from zeroclaw.host.masks import Parts, is_masked
from zeroclaw.redact import holds_marker
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.tool import ToolFile, ToolOutput
from zeroclaw.tools import ToolArguments, counted, described, is_binary, quoted, readable
from zeroclaw.tools.files.workspace import (
    RunContext,
    missing_parts,
    open_at,
    opened_directory,
    opened_file,
    parts_of,
    replace_at,
    shown,
    stat_at,
)

# Bytes searched for the first requested line; the shell can read larger files.
SCAN_BYTES = 67_108_864
_BLOCK_BYTES = 65_536

Path = Annotated[str, Field(min_length=1, max_length=4096)]


class PathArguments(ToolArguments):
    """Arguments that all file tools take."""

    path: Path


class ReadArguments(PathArguments):
    """Arguments of `read_file`."""

    first_line: int = Field(default=1, ge=1)
    max_lines: int = Field(default=2000, ge=1, le=100_000)


class WriteArguments(PathArguments):
    """Arguments of `write_file`."""

    content: str = Field(description="All of it.")


class EditArguments(PathArguments):
    """Arguments of `edit_file`."""

    old_text: str = Field(min_length=1, description="Must stand there exactly once.")
    new_text: str


def read_file(arguments: ReadArguments, run: RunContext) -> ToolOutput:
    """Return some lines of a file, with the number of the next one."""
    parts = readable_parts(arguments.path, run)
    with opened_file(run.workspace, parts) as file:
        start = file.read(8192)
        if is_binary(start):
            return ToolOutput(text=described(start, os.fstat(file.fileno()).st_size))
        file.seek(0)
        lines = _lines(file, arguments, run)
    return ToolOutput(text=lines or f"[the file is empty from line {arguments.first_line} on]")


def write_file(arguments: WriteArguments, run: RunContext) -> ToolOutput:
    """Create or replace a file."""
    parts = writable_parts(arguments.path, run)
    _refuse_markers(arguments.content)
    data = _encoded(arguments.content, run)
    missing, replaced = missing_parts(run.workspace, parts)
    _demand_room(run, data, replaced, new_entries=len(missing))
    with opened_directory(run.workspace, parts[:-1], make=True) as directory:
        before = stat_at(directory, parts)
        if before is not None:
            open_at(directory, parts).close()  # refuses anything but a regular file
        run.raise_if_stopped()
        replace_at(directory, parts, data, replaces=before)
    done = "made" if before is None else "replaced"
    return ToolOutput(text=f"{done} {shown(parts)}: {counted(len(data), 'byte')}")


def edit_file(arguments: EditArguments, run: RunContext) -> ToolOutput:
    """Replace a text that occurs exactly once in a file."""
    parts = writable_parts(arguments.path, run)
    _refuse_markers(arguments.old_text, arguments.new_text)
    with opened_directory(run.workspace, parts[:-1]) as directory:
        with open_at(directory, parts) as file:
            before = os.fstat(file.fileno())
            data = file.read(run.settings.limits.max_write_bytes + 1)
        if len(data) > run.settings.limits.max_write_bytes:
            message = f"{shown(parts)} is larger than {run.settings.limits.max_write_bytes:,} bytes"
            raise ToolFailed(message)
        text = _decoded(data, parts)
        count = text.count(arguments.old_text)
        if count != 1:
            raise _not_once(count, text, arguments, parts)
        new = _encoded(text.replace(arguments.old_text, arguments.new_text), run)
        _demand_room(run, new, before, new_entries=0)
        run.raise_if_stopped()
        replace_at(directory, parts, new, replaces=before)
    line = text[: text.index(arguments.old_text)].count("\n") + 1
    return ToolOutput(text=f"edited {shown(parts)} at line {line}: {counted(len(new), 'byte')}")


def readable_parts(path: str, run: RunContext, *, verb: str = "read") -> Parts:
    """Return the parts of a path; refuse one that must not be read."""
    parts = parts_of(path, run.workspace)
    if is_masked(parts, run.hidden):
        message = f"{shown(parts)} is protected and can't be {verb}"
        raise ToolFailed(message)
    return parts


def writable_parts(path: str, run: RunContext) -> Parts:
    """Return the parts of a path; refuse one that must not be changed."""
    parts = readable_parts(path, run, verb="changed")
    if not parts:
        message = "the workspace is a directory: give the path of a file in it"
        raise ToolFailed(message)
    return parts


def _lines(stream: BinaryIO, arguments: ReadArguments, run: RunContext) -> str:
    """Return the requested lines, up to the cap, and a note if there are more."""
    remaining = run.settings.limits.max_read_bytes
    scanned, to_skip = 0, arguments.first_line - 1
    while to_skip:
        run.raise_if_stopped()
        block = stream.read(_BLOCK_BYTES)
        scanned += len(block)
        if not block:
            return ""
        if scanned > SCAN_BYTES:
            message = f"line {arguments.first_line} is too far into the file: use the shell"
            raise ToolFailed(message)
        skipped = min(block.count(b"\n"), to_skip)
        to_skip -= skipped
        if not to_skip:
            stream.seek(-len(block.split(b"\n", skipped)[-1]), os.SEEK_CUR)
    lines: list[bytes] = []
    while len(lines) < arguments.max_lines and (line := stream.readline(remaining)):
        lines.append(line)
        remaining -= len(line)
    decoded = readable(b"".join(lines))
    note = f"\n[not UTF-8 in {counted(decoded.bad_bytes, 'place')}]" if decoded.bad_bytes else ""
    if not stream.read(1):
        return decoded.text + note
    following = arguments.first_line + len(lines)
    if remaining == 0 and not lines[-1].endswith(b"\n"):
        note += f"\n[cut within line {following - 1}, where one answer is full]"
    return f"{decoded.text}{note}\n[there is more: go on with first_line={following}]"


def _refuse_markers(*texts: str) -> None:
    if any(holds_marker(text) for text in texts):
        message = "the text holds a redaction marker: writing it would destroy the redacted text"
        raise ToolFailed(message)


def _encoded(text: str, run: RunContext) -> bytes:
    data = text.encode("utf-8")
    if len(data) > run.settings.limits.max_write_bytes:
        limit = run.settings.limits.max_write_bytes
        message = f"the file would have {len(data):,} bytes, at most {limit:,} can be written"
        raise ToolFailed(message)
    return data


def _demand_room(
    run: RunContext, data: bytes, replaced: os.stat_result | None, *, new_entries: int
) -> None:
    """Refuse a write beyond the workspace's quota; one that shrinks it is always allowed."""
    # Another hard link keeps the old content.
    freed = replaced.st_size if replaced is not None and replaced.st_nlink == 1 else 0
    run.settings.quota.spend(
        run.workspace, new_bytes=len(data) - freed, new_entries=new_entries, skipped=run.hidden
    )


def _decoded(data: bytes, parts: Parts) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{shown(parts)} is not UTF-8 text at byte {error.start}, so it can't be edited"
        raise ToolFailed(message) from None


def _not_once(count: int, text: str, arguments: EditArguments, parts: Parts) -> ToolFailed:
    start = quoted(arguments.old_text, limit_chars=60)
    if count:
        return ToolFailed(
            f"{start} is in {shown(parts)} {count} times: give more of the text around it"
        )
    hint = ""
    if "".join(arguments.old_text.split()) in "".join(text.split()):
        hint = ", but would be with other spaces or line ends"
    return ToolFailed(f"{start} is not in {shown(parts)}{hint}")


# --- send_file -----------------------------------------------------------------------------------


MAX_CAPTION_CHARS = 500
UNKNOWN_TYPE = "application/octet-stream"


class SendArguments(PathArguments):
    """Arguments of `send_file`."""

    caption: str = Field(default="", max_length=MAX_CAPTION_CHARS, description="Plain text.")
    name: str = Field(default="", max_length=255, description="Shown in place of its own.")


def send_file(arguments: SendArguments, run: RunContext) -> ToolOutput:
    """Return the file as output; it is sent once the result of the call is recorded."""
    parts = readable_parts(arguments.path, run)
    if not run.max_file_bytes:
        message = "this chat takes no files; describe its content instead, or name a chat that takes files"
        raise ToolFailed(message)
    with opened_file(run.workspace, parts) as file:
        limit = min(run.max_file_bytes, run.settings.limits.max_send_bytes)
        size_bytes = os.fstat(file.fileno()).st_size
        # The file may grow while we read it.
        content = file.read(limit + 1) if size_bytes <= limit else b""
    size_bytes = max(size_bytes, len(content))
    if size_bytes > limit:
        size = counted(size_bytes, "byte")
        message = f"{shown(parts)} has {size}, and {limit:,} is the most that can be sent here"
        raise ToolFailed(message)
    run.raise_if_stopped()
    name = arguments.name.strip() or parts[-1]
    attachment = ToolFile(
        name=name, media_type=media_type(name), content=content, caption=arguments.caption
    )
    text = f"{shown(parts)} goes to the chat as {quoted(name)}: {counted(len(content), 'byte')}"
    return ToolOutput(text=text, files=(attachment,))


def send_line(arguments: SendArguments) -> Localized:
    """Return one line about the call."""
    name = (
        catalogue.WOULD_SEND_AS.about(name=quoted(arguments.name)) if arguments.name.strip() else ""
    )
    caption = quoted(arguments.caption, limit_chars=60)
    text = catalogue.WOULD_SEND_SAYING.about(words=caption) if arguments.caption.strip() else ""
    return catalogue.WOULD_SEND.about(path=quoted(arguments.path), name=name, words=text)


def media_type(name: str) -> str:
    """Guess a file's media type from its extension, with the same result on every machine."""
    # Use only Python's own table: the system's differs between machines and is read from files.
    types = mimetypes.MimeTypes(filenames=())
    guessed, packed = types.guess_type(name, strict=True)
    return UNKNOWN_TYPE if packed or guessed is None else guessed
