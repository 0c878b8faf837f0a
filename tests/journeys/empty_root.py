"""An empty Debian to be a newcomer in: made by debootstrap, and entered as a machine of its own.

    async with empty_root("python3", "make") as root:
        running = await root.start("make run")
        await running.until(re.compile("ready"))

What debootstrap makes is kept in the cache directory of this user, so that only the first time takes
minutes. A second one waits until the first is gone. What is left when a test ends, or is killed, is a
directory that the next one removes: mounts and processes end with the process that started them.
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

from tests.journeys import this_machine
from tests.journeys.this_machine import Machine

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
        said: What it printed, both outputs, line by line.
    """

    def __init__(self, process: Process, group: asyncio.TaskGroup) -> None:
        """Take a process that was just started; `group` owns what reads its output."""
        self._process = process
        self._news = asyncio.Event()
        self._is_over = False
        self.said: list[str] = []
        group.create_task(self._read())

    async def until(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Wait for a line that matches; fail when the command ends without one."""
        while True:
            news = self._news
            for line in self.said:
                if found := pattern.search(line):
                    return found
            if self._is_over:
                raise AssertionError(f"it ended before it said `{pattern.pattern}`")
            await news.wait()

    async def ended(self) -> int:
        """Wait for its end; return the exit code."""
        while not self._is_over:
            await self._news.wait()
        return await self._process.wait()

    def pid_of(self, *words: str) -> int:
        """Return the process of this command whose arguments hold these words in a row."""
        wanted = b"\0".join(word.encode() for word in words)
        for pid in _descendants(self._process.pid):
            if wanted in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        raise LookupError(f"no process with {words}")

    def account(self) -> str:
        """Return the end of what it said, for the message of a failure."""
        return "\n".join(self.said)[-_SHOWN_CHARS:]

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self.said.append(line.decode("utf-8", "replace").rstrip("\n"))
            self._wake()
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


@dataclass(frozen=True, kw_only=True)
class EmptyRoot:
    """The machine, with a clean clone of this checkout, as it is, in its user's home.

    Attributes:
        first: Its first process, as this machine counts.
    """

    first: int
    environment: Mapping[str, str]
    group: asyncio.TaskGroup

    async def start(self, command: str, *, given: str = "") -> Running:
        """Start a command line in the clone, as its user would type it there.

        Args:
            command: For the shell.
            given: On standard input, which ends after it.
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
        process.stdin.write(given.encode())
        process.stdin.close()
        return Running(process, self.group)


@asynccontextmanager
async def empty_root(*packages: str) -> AsyncGenerator[EmptyRoot]:
    """Make the root and enter it; whatever happens, nothing of it is left.

    Args:
        packages: Names of Debian packages, which it has beside what every Debian has.
    """
    machine = await asyncio.to_thread(this_machine.look)
    with _place() as place:
        root = place / "root"
        await _lay_out(machine, await _made(machine, packages, place), root)
        first = await asyncio.create_subprocess_exec(
            *("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", str(_ENTER)),
            *(str(root), *(str(path) for path in machine.paths)),
            stdin=PIPE,
            stdout=PIPE,
        )
        environment = {**_ENVIRONMENT, **machine.environment}
        try:
            async with asyncio.TaskGroup() as group, _ending(first):
                pid = await _pid_said_by(first)
                yield EmptyRoot(first=pid, environment=environment, group=group)
        finally:
            await first.wait()  # for the last of its processes


@asynccontextmanager
async def _ending(first: Process) -> AsyncGenerator[None]:
    """Let the machine end, and whatever runs in it."""
    assert first.stdin is not None
    try:
        yield
    finally:
        first.stdin.close()


async def _pid_said_by(first: Process) -> int:
    assert first.stdout is not None
    said = await first.stdout.readline()
    if not said.strip().isdigit():
        raise AssertionError("the root could not be entered; see standard error")
    return int(said)


@contextmanager
def _place() -> Generator[Path]:
    """Have the directory of all roots to oneself; the root in it is removed before and after."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "zeroclaw" / "empty-debian"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(place / "root", ignore_errors=True)
        try:
            yield place
        finally:
            shutil.rmtree(place / "root", ignore_errors=True)


async def _made(machine: Machine, packages: tuple[str, ...], place: Path) -> Path:
    """Return the archive of such a root, which is made unless it is there."""
    wish = (machine.suite, ",".join(machine.components), ",".join(packages), machine.mirror)
    key = hashlib.sha256("\n".join(wish).encode()).hexdigest()[:12]
    archive = place / f"{machine.suite}-{key}.tar"
    if not archive.exists():
        scratch = place / "root"
        scratch.mkdir()
        made = ("unshare", "--mount", "sh", "-euc", _MAKE, "-", str(scratch), str(archive), *wish)
        await _done(*made, environment={**os.environ, **machine.environment})
        scratch.rmdir()
    return archive


async def _lay_out(machine: Machine, archive: Path, root: Path) -> None:
    """Unpack a root, and put in it what a newcomer has: a way to the mirror, and a clone."""
    await _done("mkdir", str(root))
    await _done("tar", "--directory", str(root), "--extract", "--file", str(archive))
    reaching = root / "etc/apt/apt.conf.d/99reaching"
    await asyncio.to_thread(reaching.write_text, machine.apt, encoding="utf-8")
    await _clone(root / "tmp" / "repository", root / CHECKOUT.lstrip("/"))


async def _clone(repository: Path, to: Path) -> None:
    """Clone this checkout as it is, by a repository of its own.

    The checkout may have none, or one that belongs to somebody else, whom git does not trust.
    """
    git = ("git", "--git-dir", str(repository), "--work-tree", str(ROOT))
    nobody = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
    await _done(*git, "init", "--quiet")
    await _done(*git, "add", "--all")
    await _done(*git, *nobody, "commit", "--quiet", "--message", "as it is")
    await _done("git", "clone", "--quiet", repository.as_uri(), str(to))


async def _done(*command: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a command of this machine to its end."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stdout=PIPE, stderr=STDOUT, env=environment
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        message = f"`{command[0]}` failed: {said.decode(errors='replace')[-_SHOWN_CHARS:]}"
        raise AssertionError(message)


def _descendants(pid: int) -> Iterator[int]:
    """Return the processes that a process started, and theirs."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            yield from _descendants(int(child))
