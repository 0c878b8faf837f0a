"""An empty Debian, as a newcomer has it: made by debootstrap, and entered as a separate machine.

    async with empty_root("python3", "make") as root:
        running = await root.start("make run")
        await running.until(re.compile("ready"))

The archive that debootstrap makes stays in the user's cache directory, so that only the first test takes
minutes. A second test waits until the first has ended. A test that ends, or is killed, leaves a directory
that the next one removes: mounts and processes end with the process that started them.
"""

import asyncio
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.journeys.package_sources import PackageSources, find_package_sources

ROOT = Path(__file__).parents[2]
HOME = "root"
CHECKOUT = f"/{HOME}/zeroclaw"
_ENTER = Path(__file__).with_name("enter_root.sh")
_SHOWN_CHARS = 6_000
_ENVIRONMENT = {
    "HOME": f"/{HOME}",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
}
# In memory, for dpkg syncs every file; an own mount namespace takes it away again.
_MAKE = """
mount -t tmpfs -o mode=755 tmpfs "$1"
debootstrap --variant=minbase --components="$4" --include="$5" "$3" "$1" "$6"
rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/*
tar --directory "$1" --create --file "$2.partial" .
mv "$2.partial" "$2"
"""


class Running:
    """A command that runs in the root.

    Attributes:
        lines: Its standard output and standard error, line by line.
    """

    def __init__(self, process: Process, group: asyncio.TaskGroup) -> None:
        """Take a process that was just started; `group` owns what reads its output."""
        self._process = process
        self._changed = asyncio.Event()
        self._is_over = False
        self.lines: list[str] = []
        group.create_task(self._read())

    async def until(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Wait for a line that matches; fail when the command ends without one."""
        while True:
            changed = self._changed
            for line in self.lines:
                if found := pattern.search(line):
                    return found
            if self._is_over:
                raise AssertionError(f"it ended before it printed `{pattern.pattern}`")
            await changed.wait()

    async def wait(self) -> int:
        """Wait for its end; return the exit code."""
        while not self._is_over:
            await self._changed.wait()
        return await self._process.wait()

    def pid_of(self, *words: str) -> int:
        """Return the process of this command that has these arguments in a row."""
        needle = b"\0".join(word.encode() for word in words)
        for pid in _descendants(self._process.pid):
            if needle in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        raise LookupError(f"no process with {words}")

    def report(self) -> str:
        """Return the end of its output, for the message of a failure."""
        return "\n".join(self.lines)[-_SHOWN_CHARS:]

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))
            self._wake()
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


@dataclass(frozen=True, kw_only=True)
class EmptyRoot:
    """The machine, with a clean clone of this checkout, as it is, in its user's home.

    Attributes:
        first: Its first process, as this machine counts.
    """

    first: int
    environment: Mapping[str, str]
    group: asyncio.TaskGroup

    async def start(self, command: str, *, stdin: str = "") -> Running:
        """Start a command line in the clone, as its user would type it there.

        Args:
            command: For the shell.
            stdin: Standard input, which is closed after it.
        """
        process = await asyncio.create_subprocess_exec(
            *("nsenter", "--target", str(self.first), "--mount", "--pid"),
            *("sh", "-c", f'cd {CHECKOUT} && exec "$@"', "-", "sh", "-c", command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=STDOUT,
            env=self.environment,
        )
        assert process.stdin is not None
        process.stdin.write(stdin.encode())
        process.stdin.close()
        return Running(process, self.group)


@asynccontextmanager
async def empty_root(*packages: str) -> AsyncGenerator[EmptyRoot]:
    """Make the root and enter it; it is removed at the end.

    Args:
        packages: Names of Debian packages beside those that every Debian has.
    """
    sources = await asyncio.to_thread(find_package_sources)
    with _cache_directory() as cache:
        root = cache / "root"
        await _unpack(sources, await _archive(sources, packages, cache), root)
        first = await asyncio.create_subprocess_exec(
            *("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", str(_ENTER)),
            *(str(root), *(str(path) for path in sources.paths)),
            stdin=PIPE,
            stdout=PIPE,
        )
        environment = {**_ENVIRONMENT, **sources.environment}
        try:
            async with asyncio.TaskGroup() as group, _ending(first):
                pid = await _read_pid(first)
                yield EmptyRoot(first=pid, environment=environment, group=group)
        finally:
            await first.wait()  # for the last of its processes


@asynccontextmanager
async def _ending(first: Process) -> AsyncGenerator[None]:
    """End the machine and every process in it."""
    assert first.stdin is not None
    try:
        yield
    finally:
        first.stdin.close()


async def _read_pid(first: Process) -> int:
    assert first.stdout is not None
    output = await first.stdout.readline()
    if not output.strip().isdigit():
        raise AssertionError("the root could not be entered; see standard error")
    return int(output)


@contextmanager
def _cache_directory() -> Generator[Path]:
    """Lock the directory of all roots; the root in it is removed before and after."""
    user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = user_cache / "zeroclaw" / "empty-debian"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(cache / "root", ignore_errors=True)
        try:
            yield cache
        finally:
            shutil.rmtree(cache / "root", ignore_errors=True)


async def _archive(sources: PackageSources, packages: tuple[str, ...], cache: Path) -> Path:
    """Return the archive of such a root; make it unless the cache has it."""
    key_parts = (sources.suite, ",".join(sources.components), ",".join(packages), sources.mirror)
    key = hashlib.sha256("\n".join(key_parts).encode()).hexdigest()[:12]
    archive = cache / f"{sources.suite}-{key}.tar"
    if not archive.exists():
        scratch = cache / "root"
        scratch.mkdir()
        command = (
            "unshare",
            "--mount",
            "sh",
            "-euc",
            _MAKE,
            "-",
            str(scratch),
            str(archive),
            *key_parts,
        )
        await _run(*command, environment={**os.environ, **sources.environment})
        scratch.rmdir()
    return archive


async def _unpack(sources: PackageSources, archive: Path, root: Path) -> None:
    """Unpack a root, and add a newcomer's two needs: a way to the mirror, and a clone."""
    await _run("mkdir", str(root))
    await _run("tar", "--directory", str(root), "--extract", "--file", str(archive))
    apt_config = root / "etc/apt/apt.conf.d/99reaching"
    await asyncio.to_thread(apt_config.write_text, sources.apt, encoding="utf-8")
    await _clone(root / "tmp" / "repository", root / CHECKOUT.lstrip("/"))


async def _clone(repository: Path, to: Path) -> None:
    """Clone this checkout as it is, through a new repository.

    The checkout may have none, or one of another user, which git does not trust.
    """
    git = ("git", "--git-dir", str(repository), "--work-tree", str(ROOT))
    nobody = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
    await _run(*git, "init", "--quiet")
    await _run(*git, "add", "--all")
    await _run(*git, *nobody, "commit", "--quiet", "--message", "as it is")
    await _run("git", "clone", "--quiet", repository.as_uri(), str(to))


async def _run(*command: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a command on this machine to its end."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stdout=PIPE, stderr=STDOUT, env=environment
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        message = f"`{command[0]}` failed: {output.decode(errors='replace')[-_SHOWN_CHARS:]}"
        raise AssertionError(message)


def _descendants(pid: int) -> Iterator[int]:
    """Yield the processes that a process started, and theirs."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            yield from _descendants(int(child))
