"""Lists and searches the directories of a workspace. All of it blocks: call it in a thread."""

import fnmatch
import itertools
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated

from pydantic import Field

from zeroclaw.errors import ToolFailed
from zeroclaw.host.masks import Parts, is_masked
from zeroclaw.text.escape import shortened
from zeroclaw.tool import BELOW, ToolOutput
from zeroclaw.tools import counted, is_binary, quoted, without_controls
from zeroclaw.tools.files.content import PathArguments, readable_parts
from zeroclaw.tools.files.pattern import FoundLine, Pattern, PatternInvalid
from zeroclaw.tools.files.workspace import (
    Kind,
    RunContext,
    kind_of,
    open_at,
    opened_directory,
    shown,
    stat_at,
)
from zeroclaw.value import Value

# Cap on one line of output, so that a minified file doesn't fill the answer.
_LINE_CHARS = 300
_MAX_DEPTH = 40
_MAX_VISITED = 50_000

Path = Annotated[str, Field(max_length=4096)]


class ListArguments(PathArguments):
    """Arguments of `list_files`."""

    path: Path = "."
    depth: int = Field(default=1, ge=1, le=_MAX_DEPTH)


class SearchArguments(PathArguments):
    """Arguments of `search_files`."""

    pattern: str = Field(min_length=1, max_length=1000)
    path: Path = Field(default=".", description="A file or a directory.")
    names: str = Field(
        default="*", min_length=1, max_length=200, description="Of files, such as `*.py`."
    )
    regex: bool = Field(
        default=False, description=r"In RE2's syntax; \d \w \b know ASCII, \pL is any letter."
    )
    ignore_case: bool = False
    max_results: int = Field(default=100, ge=1, le=1000)


class _Entry(Value):
    """One directory entry of a walk.

    Attributes:
        directory: Descriptor of its open directory, valid until the next entry is requested.
        parts: Its path from the workspace down.
        kind: Its file type.
        size_bytes: Its size; meaningful for files.
    """

    directory: int
    parts: Parts
    kind: Kind
    size_bytes: int


def list_files(arguments: ListArguments, run: RunContext) -> ToolOutput:
    """Return the names below a directory, each with its type."""
    parts = readable_parts(arguments.path, run)
    skips = _Skips(run)
    lines: list[str] = []
    for entry in _walk(run, parts, arguments.depth, skips):
        if len(lines) >= run.settings.max_entries:
            lines.append(f"[there is more; these are the first {len(lines):,}]")
            break
        lines.append(_line(entry, len(parts)))
    return ToolOutput(text="\n".join([*lines, *skips.notes()]) or f"[{shown(parts)} is empty]")


def search_files(arguments: SearchArguments, run: RunContext) -> ToolOutput:
    """Return the matching lines as `path:line: text`, and notes about skipped files."""
    skips = _Skips(run)
    search = _Search(arguments, run, skips)
    for entry in _files(run, readable_parts(arguments.path, run), skips):
        if fnmatch.fnmatchcase(entry.parts[-1], arguments.names) and not search.take(entry):
            break
    notes = [*search.notes(), *skips.notes()]
    return ToolOutput(text="\n".join([*(search.lines or ["[nothing found]"]), *notes]))


class _Skips:
    """Counts the paths that a walk skips: the call may not touch them, or they can't be opened."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._workspace = f"file:{run.workspace}".rstrip("/")
        self.count = 0

    def skip(self, parts: Parts, all_below: str = "") -> bool:
        """Whether a path must be neither opened nor named; with `BELOW`, all paths in it."""
        run = self._run
        resource = "/".join((self._workspace, *parts)) + all_below
        skipped = is_masked(parts, run.hidden) or not run.permits(resource)
        self.count += skipped
        return skipped

    def notes(self) -> list[str]:
        """Return the note about skipped places, if any."""
        skipped = counted(self.count, "path")
        note = f"[skipped {skipped}: protected, not allowed by the policy, or unreadable]"
        return [note] if self.count else []


class _Search:
    """The state of one search: its matches, and the limit that ended it."""

    def __init__(self, arguments: SearchArguments, run: RunContext, skips: _Skips) -> None:
        self._pattern = _pattern(arguments)
        self._stops_at_s = time.thread_time() + run.settings.max_search_cpu_s
        self._max_results = arguments.max_results
        self._run, self._skips = run, skips
        self._remaining_bytes = run.settings.max_search_bytes
        self._large, self._stopped_by = 0, ""
        self.lines: list[str] = []

    def take(self, entry: _Entry) -> bool:
        """Search one file; return whether to continue."""
        if entry.size_bytes > self._run.settings.max_searched_file_bytes:
            self._large += 1
            return True
        if entry.size_bytes > self._remaining_bytes:
            self._stopped_by = "it had read as much as one search may"
            return False
        try:
            file = open_at(entry.directory, entry.parts)
        except ToolFailed:
            self._skips.count += 1
            return True
        with file:
            data = file.read(self._remaining_bytes)
        self._remaining_bytes -= len(data)
        if is_binary(data):
            return True
        try:
            for line in self._pattern.lines(data, self._raise_if_stopped):
                if len(self.lines) >= self._max_results:
                    self._stopped_by = f"it had found {self._max_results:,} lines"
                    return False
                self.lines.append(_found(entry.parts, line))
        except TimeoutError:
            self._stopped_by = "it had taken as long as one search may"
            return False
        return True

    def _raise_if_stopped(self) -> None:
        self._run.raise_if_stopped()
        if time.thread_time() >= self._stops_at_s:
            raise TimeoutError

    def notes(self) -> list[str]:
        """Return the notes about the limits of the search, if any."""
        limit = self._run.settings.max_searched_file_bytes
        large = [f"[skipped {counted(self._large, 'file')} larger than {limit:,} bytes]"]
        stopped = [f"[the search stopped when {self._stopped_by}: narrow it down]"]
        return [*(large if self._large else []), *(stopped if self._stopped_by else [])]


def _pattern(arguments: SearchArguments) -> Pattern:
    source = arguments.pattern
    try:
        return Pattern(source, regex=arguments.regex, ignore_case=arguments.ignore_case)
    except PatternInvalid as error:
        message = f"the pattern {quoted(source)} can't be used: {error}"
        raise ToolFailed(message) from None


def _files(run: RunContext, parts: Parts, skips: _Skips) -> Iterator[_Entry]:
    """Yield every file at or below a path."""
    if parts:
        with opened_directory(run.workspace, parts[:-1]) as directory:
            entry = _entry_of(directory, parts)
            if entry is not None and entry.kind == "file":
                yield entry
                return
    for entry in _walk(run, parts, _MAX_DEPTH, skips):
        if entry.kind == "file":
            yield entry


def _walk(run: RunContext, parts: Parts, depth: int, skips: _Skips) -> Iterator[_Entry]:
    """Yield the entries below a directory: first its own, sorted, then those of its subdirectories.

    Each directory is opened again from the workspace down. So few descriptors are open at a time,
    and a directory that was swapped for a link is not entered.
    """
    waiting: list[tuple[Parts, int]] = [(parts, depth)]
    visited = 0
    while waiting:
        directory_parts, levels = waiting.pop()
        inner: list[tuple[Parts, int]] = []
        with ExitStack() as stack:
            try:
                directory = stack.enter_context(opened_directory(run.workspace, directory_parts))
            except ToolFailed:
                if directory_parts == parts:
                    raise
                skips.count += 1
                continue
            for name in _names(directory):
                run.raise_if_stopped()
                visited += 1
                if visited > _MAX_VISITED:
                    message = f"more than {_MAX_VISITED:,} names: give a narrower path"
                    raise ToolFailed(message)
                entry_parts = (*directory_parts, name)
                entry = None if skips.skip(entry_parts) else _entry_of(directory, entry_parts)
                if entry is None:
                    continue
                yield entry
                if entry.kind == "directory" and levels > 1 and not skips.skip(entry_parts, BELOW):
                    inner.append((entry.parts, levels - 1))
        waiting.extend(reversed(inner))


def _names(directory: int) -> list[str]:
    """Return the sorted names in a directory, at most as many as a walk may visit."""
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in itertools.islice(entries, _MAX_VISITED + 1))


def _entry_of(directory: int, parts: Parts) -> _Entry | None:
    """Return the entry of a name; None if it is gone."""
    status = stat_at(directory, parts)
    if status is None:
        return None
    return _Entry(
        directory=directory, parts=parts, kind=kind_of(status.st_mode), size_bytes=status.st_size
    )


def _line(entry: _Entry, above: int) -> str:
    name = _name(entry.parts[above:])
    match entry.kind:
        case "directory":
            return f"{name}/"
        case "file":
            return f"{name} ({entry.size_bytes:,} bytes)"
        case "link":
            return f"{name} (symbolic link, not followed)"
        case "special":
            return f"{name} (pipe, socket or device)"


def _found(parts: Parts, line: FoundLine) -> str:
    cut = shortened(without_controls(line.text).rstrip(), _LINE_CHARS)
    return f"{_name(parts)}:{line.number}: {cut}"


def _name(parts: Parts) -> str:
    """Return a path on one line; bytes that are not UTF-8 become U+FFFD."""
    plain = "/".join(parts).encode("utf-8", "replace").decode("utf-8")
    return without_controls(plain).replace("\n", " ")
