"""Builds the bubblewrap command line, and tests whether the sandbox works on this machine.

A command sees the system's programs read-only, its workspace and an empty `/tmp`, and nothing else:
no file of the daemon, no other process, no network unless granted, none of the daemon's
environment. Files in the workspace with names of secrets (`secret_names`) are masked if they exist
before the command starts; it can read the files that it creates until it ends. A command has no
capabilities and can't gain any, and no system call that only an attacker needs (`seccomp`). The
resources of all its processes together are bounded: by the kernel if the daemon has cgroups
(`cgroups`), otherwise by limits per process and a watch (`quotas`). When its first process ends,
all others end too.

It never runs as root, because root keeps powers that no namespace takes away. A root daemon
bind-mounts everything the command may see at a path that every user can enter, becomes the user
`UNPRIVILEGED`, and continues like any plain user. Its workspaces belong to that user.

Flags: bwrap(1) of bubblewrap 0.8, tried as root and as a plain user in 2026-11. `--new-session` is
left out on purpose: the child already has its own session (`processes.run`), and within its process
group even its innermost process can be found and killed.
"""

import asyncio
import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

from zeroclaw.errors import ToolFailed, refused_as, system_words
from zeroclaw.host import processes, quotas, seccomp
from zeroclaw.host.cgroups import Group, open_group
from zeroclaw.host.masks import Mask, Parts
from zeroclaw.host.processes import OutputCaps, ProcessEnd, Recorder
from zeroclaw.host.quotas import DiskUsage, Meter
from zeroclaw.tool import Spawned
from zeroclaw.value import Value, replace

WORKSPACE = "/workspace"  # path of the workspace inside the sandbox
UNPRIVILEGED = 65_533
"""User that commands of a root daemon run as: a number that no system assigns (Debian policy 9.2.2),
and that exists in a container with the usual 65,536 ids."""
_STAGE = "/mnt"  # exists everywhere (FHS 3.12), and is covered in the sandbox's processes only

# The whole environment of a command; nothing is inherited from the daemon.
ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108  the sandbox's, empty and gone afterwards
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}

# Read-only and without secrets: links to programs, and files that name look-ups and TLS need.
_ALWAYS = ("/etc/alternatives", "/etc/ld.so.cache")
_FOR_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki")
_SHOWN_TO_ALL = ("/proc/keys", "/proc/key-users")
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_TEST_S = 10.0
_MEASURING = ThreadPoolExecutor(2, thread_name_prefix="workspaces")
"""The threads in which commands wait for the measurement of their workspace. It takes a second for a
full one, so in the common threads a few of them would stop all else."""
_FACTS = {"S ", "L ", "N "}  # prefixes of the self-test's lines that report facts


class Limits(Value):
    """Resource limits of a command; for all its processes together unless noted.

    Attributes:
        memory_bytes: Memory; also the address space of each process.
        workspace_bytes: Size of the workspace at its end.
        cpu_s: Seconds of CPU time, per process.
        file_bytes: Size of one file.
        open_files: Descriptors, per process.
        processes: Concurrent processes, threads included.
        tmp_bytes: Size of `/tmp`, and of `/dev/shm`.
    """

    memory_bytes: int = 2_147_483_648
    workspace_bytes: int = 2_147_483_648
    cpu_s: int = 120
    file_bytes: int = 268_435_456
    open_files: int = 256
    processes: int = 64
    tmp_bytes: int = 67_108_864


class System(Value):
    """This machine's parts of a sandbox.

    Attributes:
        bwrap: Absolute path of bubblewrap.
        prlimit: Absolute path of `prlimit`; exists inside the sandbox too.
        links: Root entries that are symbolic links on this machine, each with its target.
        directories: Root entries that are directories on this machine.
        masked: Files that the kernel shows to every user, and that no command needs.
        setpriv: Absolute path of `setpriv` if the daemon is root; else empty.
        subtree: Where each command gets a cgroup; None if the daemon has no subtree.
    """

    bwrap: str
    prlimit: str
    links: tuple[tuple[str, str], ...]
    directories: tuple[str, ...]
    masked: tuple[str, ...] = ()
    setpriv: str = ""
    subtree: Path | None = None


class Bare(Value):
    """A machine without a sandbox.

    Attributes:
        prlimit: Absolute path of `prlimit`; empty if missing.
        subtree: Where each command gets a cgroup; None if the daemon has no subtree.
    """

    prlimit: str = ""
    subtree: Path | None = None


class Folder(Value):
    """A directory outside the workspace that a command may read and execute from.

    Attributes:
        real: Its real path.
        at: Its path inside the sandbox; may be the same.
        masks: Its hidden places.
    """

    real: Path
    at: str
    masks: tuple[Mask, ...] = ()


class Box(Value):
    """The permissions and limits of one command.

    Attributes:
        workspace: Real path of the workspace, mounted read-write at `/workspace`; None for none.
        network: Whether it may use this machine's network, loopback included.
        masks: The protected places of the workspace.
        folders: Directories that it sees, read-only.
        limits: Its resource limits.
    """

    workspace: Path | None
    network: bool = False
    masks: tuple[Mask, ...] = ()
    folders: tuple[Folder, ...] = ()
    limits: Limits = Limits()


class Broken(Value):
    """No sandbox is available.

    Attributes:
        reason: Why, and what to do; one line.
    """

    reason: str


def box_argv(
    system: System | Bare, box: Box, argv: Sequence[str], *, filter_at: int | None = None
) -> tuple[str, ...]:
    """Return the whole command line that runs a program in a sandbox, or without one; pure.

    Args:
        system: This machine's parts of a sandbox.
        box: The program's permissions and limits.
        argv: The program and its arguments.
        filter_at: Descriptor from which bubblewrap reads the system call filter.
    """
    if isinstance(system, Bare):
        limited = _limited(system.prlimit, box.limits, processes_too=False)
        return (*(limited if system.prlimit else ()), *argv)
    if not system.setpriv:
        return _plain_argv(system, box, argv, filter_at, {})
    folders = (folder.real for folder in box.folders)
    places = (*((box.workspace,) if box.workspace else ()), *folders)
    staged = {place: f"{_STAGE}/{n}" for n, place in enumerate(places)}
    user = str(UNPRIVILEGED)
    return (
        # A program that opens `/dev/stdout` reopens this pipe by name, which only its owner may do.
        *("/bin/sh", "-c", f'chown {user}:{user} /proc/self/fd/1 2>&-; exec "$@"', "stage"),
        *(system.bwrap, "--die-with-parent", "--dev-bind", "/", "/", "--tmpfs", _STAGE),
        *(flag for place, at in staged.items() for flag in ("--bind", str(place), at)),
        "--",
        *(system.setpriv, "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs"),
        *("--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"),
        *_plain_argv(system, box, argv, filter_at, staged),
    )


def _plain_argv(
    system: System, box: Box, argv: Sequence[str], filter_at: int | None, staged: Mapping[Path, str]
) -> tuple[str, ...]:
    """Return the command line for a plain user; `staged` maps places to their mount points."""
    tmp_bytes = str(box.limits.tmp_bytes)
    readable = (*_ALWAYS, *_FOR_NETWORK) if box.network else _ALWAYS
    environment = (("--setenv", name, value) for name, value in ENVIRONMENT.items())
    place = None if box.workspace is None else Path(staged.get(box.workspace, box.workspace))
    return (
        system.bwrap,
        *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"),
        *("--cap-drop", "ALL", "--hostname", "sandbox"),
        *(("--share-net",) if box.network else ()),
        *(() if filter_at is None else ("--seccomp", str(filter_at))),
        "--clearenv",
        *(flag for triple in environment for flag in triple),
        *("--ro-bind", "/usr", "/usr"),
        *(flag for target, at in system.links for flag in ("--symlink", target, at)),
        *(flag for path in system.directories for flag in ("--ro-bind", path, path)),
        *(flag for path in readable for flag in ("--ro-bind-try", path, path)),
        *("--proc", "/proc"),
        *(flag for path in system.masked for flag in ("--ro-bind", "/dev/null", path)),
        *("--remount-ro", "/proc", "--dev", "/dev"),
        *("--size", tmp_bytes, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
        *("--size", tmp_bytes, "--tmpfs", "/tmp"),  # noqa: S108
        *(flag for folder in box.folders for flag in _read_only(folder, staged)),
        *(() if place is None else ("--bind", str(place), WORKSPACE, *_shields(place, box.masks))),
        *("--remount-ro", "/", "--chdir", "/" if place is None else WORKSPACE),
        "--",
        *_limited(system.prlimit, box.limits, processes_too=True),
        *argv,
    )


async def run(
    system: System | Bare,
    box: Box,
    argv: Sequence[str],
    *,
    timeout_s: float,
    caps: OutputCaps,
    spawned: Recorder,
    stdin: bytes | None = None,
) -> ProcessEnd:
    """Run a program in a sandbox until it ends, or kill it; see `processes.run` for the other arguments.

    In a workspace that is over its limit before the start, files can only be removed;
    `ProcessEnd.excess` then names the limit.

    Without a sandbox (`Bare`) the program starts in its workspace and has the same bounds, but
    nothing is masked, in the workspace or elsewhere. Then without a cgroup, the watch misses a
    process that leaves both its process group and its parent (`setsid`, twice). With a cgroup, a
    command can move itself out, since it runs as the daemon's own user.

    Raises:
        ToolFailed: It could not be started, or the workspace is too large to be measured.
    """
    is_sandboxed = isinstance(system, System)
    meter, excess = None, ""
    if (workspace := box.workspace) is not None:
        skipped = frozenset(mask.parts for mask in box.masks)
        usage = await asyncio.get_running_loop().run_in_executor(
            _MEASURING, _measure, system, workspace, skipped
        )
        if is_sandboxed and len(usage.secrets) > quotas.MAX_SECRETS:
            message = (
                f"the workspace holds more than {quotas.MAX_SECRETS:,} places with names of secrets:"
                " nothing can run in it before a person clears it by hand"
            )
            raise ToolFailed(message)
        limits, excess = _remaining_limits(box.limits, usage)
        box = replace(box, masks=(*box.masks, *usage.secrets), limits=limits)
        meter = Meter(
            max_bytes=limits.workspace_bytes,
            workspace=workspace,
            usage=usage,
            skipped=skipped,
            memory_bytes=limits.memory_bytes if system.subtree is None else None,
            max_processes=None if is_sandboxed else limits.processes,
        )
    async with AsyncExitStack() as stack:
        group: Group | None = None
        if system.subtree is not None:
            group = await asyncio.to_thread(_open_group, system.subtree, box.limits)
            stack.push_async_callback(asyncio.to_thread, group.close)
        filter_at: int | None = None
        if is_sandboxed:
            filter_at = _open_filter()  # in a thread, a cancellation would leave it open
            stack.callback(os.close, filter_at)
        end = await processes.run(
            box_argv(system, box, argv, filter_at=filter_at),
            directory=Path("/") if is_sandboxed or workspace is None else workspace,
            environment=ENVIRONMENT,
            timeout_s=timeout_s,
            caps=caps,
            spawned=spawned,
            stdin=stdin,
            pass_fds=() if filter_at is None else (filter_at,),
            watch=meter,
            group=group,
        )
    return replace(end, excess=end.excess or excess)


def _open_group(subtree: Path, limits: Limits) -> Group:
    with refused_as(ToolFailed, "the command can't have a cgroup"):
        return open_group(subtree, memory_bytes=limits.memory_bytes, processes=limits.processes)


def _remaining_limits(limits: Limits, usage: DiskUsage) -> tuple[Limits, str]:
    """Return the limits for a run in this workspace, and why they are reduced; empty if they are not.

    No file may grow beyond the free space, because the watch would notice too late. A file that is
    larger already may be written in place.
    """
    excess = usage.excess(limits.workspace_bytes)
    if not usage.is_whole:
        message = f"{excess}: nothing can run in it before a person clears it by hand"
        raise ToolFailed(message)
    free_bytes = limits.workspace_bytes - usage.bytes_
    file_bytes = max(free_bytes - free_bytes % quotas.BLOCK_BYTES, usage.largest_bytes)
    file_bytes = 0 if excess else min(limits.file_bytes, file_bytes)
    return replace(limits, file_bytes=file_bytes), excess


def _measure(system: System | Bare, workspace: Path, skipped: frozenset[Parts]) -> DiskUsage:
    """Measure a workspace; a root daemon also gives it to the user that commands run as."""
    # Fails, for example, on a file system or in a user namespace that does not know that user.
    with refused_as(ToolFailed, "the workspace can't be made ready for commands"):
        return quotas.measure(
            workspace,
            skipped=skipped,
            owner=UNPRIVILEGED if isinstance(system, System) and system.setpriv else None,
        )


def _open_filter() -> int:
    """Open the system call filter as a descriptor, which is read once; takes 0.1 ms."""
    program = seccomp.program(platform.machine())
    if program is None:
        message = f"there is no filter of system calls for a processor of `{platform.machine()}`"
        raise ToolFailed(message)
    descriptor = os.memfd_create("seccomp")
    os.pwrite(descriptor, program, 0)
    return descriptor


def find_program(name: str) -> str | None:
    """Return a program's absolute path; blocks, so call it in a thread."""
    return shutil.which(name, path=ENVIRONMENT["PATH"])


def detect(subtree: Path | None = None) -> System | Broken:
    """Find this machine's parts of a sandbox; blocks, so call it in a thread."""
    bwrap, prlimit = find_program("bwrap"), find_program("prlimit")
    if bwrap is None:
        return Broken(reason="`bwrap` is missing: install the package bubblewrap")
    if prlimit is None:
        return Broken(reason="`prlimit` is missing: install the package util-linux")
    setpriv = find_program("setpriv") if os.geteuid() == 0 else ""
    if setpriv is None:
        return Broken(reason="`setpriv` is missing: install the package util-linux")
    places = [Path("/") / name for name in _SYSTEM]
    links = [(str(place.readlink()), str(place)) for place in places if place.is_symlink()]
    plain = [str(place) for place in places if place.is_dir() and not place.is_symlink()]
    return System(
        bwrap=bwrap,
        prlimit=prlimit,
        links=tuple(links),
        directories=tuple(plain),
        masked=tuple(path for path in _SHOWN_TO_ALL if Path(path).exists()),
        setpriv=setpriv,
        subtree=subtree,
    )


# Only shell builtins, to tell a broken sandbox from a missing program. Where `chmod` is not a
# builtin, the command fails, and so sets no bits either.
_PROBE = """
printf made > made || echo "F the workspace can't be written"
[ -e "{secret}" ] && echo "F files outside the workspace can be seen"
(: > /usr/made) 2>/dev/null && echo "F the system's files can be written"
(: >> /proc/sys/kernel/core_pattern) 2>/dev/null && echo "F the kernel's settings can be written"
(: >> /proc/self/comm) 2>/dev/null && echo "F /proc can be written"
chmod 4755 made 2>/dev/null && echo "F setuid files can be made"
while read -r line; do echo "S $line"; done < /proc/self/status
while read -r line; do echo "L $line"; done < /proc/self/limits
while read -r line; do echo "N $line"; done < /proc/net/dev
echo "E"
"""


async def self_test(
    limits: Limits | None = None, *, network: bool = False, subtree: Path | None = None
) -> System | Broken:
    """Run one command with the production command line, and check that it is confined.

    Args:
        limits: The limits used in production.
        network: Whether production grants the network.
        subtree: Where production creates cgroups.

    Returns:
        The system, or `Broken` with the reason; problems of the sandbox raise nothing.
    """
    system = await asyncio.to_thread(detect, subtree)
    if isinstance(system, Broken):
        return system
    limits = limits or Limits()
    try:
        place = await asyncio.to_thread(_make_place)
        try:
            box = Box(workspace=place / "workspace", network=network, limits=limits)
            probe = _PROBE.format(secret=place / "secret")
            ended = await run(
                system,
                box,
                ("/bin/sh", "-c", probe),
                timeout_s=_TEST_S,
                caps=OutputCaps(),
                spawned=unrecorded,
            )
            owner = await asyncio.to_thread(_owner, place / "workspace" / "made")
        finally:
            await asyncio.to_thread(shutil.rmtree, place)
    except ToolFailed as error:
        return Broken(reason=str(error))
    except OSError as error:  # for root without CAP_DAC_OVERRIDE
        return Broken(reason=f"the daemon can't reach files of commands: {system_words(error)}")
    fault = breach(ended, network=network, limits=limits, owner=owner)
    return system if fault is None else Broken(reason=fault)


def breach(end: ProcessEnd, *, network: bool, limits: Limits, owner: int | None) -> str | None:
    """Return how the self-test's command escaped its confinement; None if it did not; pure.

    Args:
        end: The command's result.
        network: Whether it should have had the network.
        limits: The limits it should have had.
        owner: Owner, on this machine, of the file that it created; None if there is no file.
    """
    lines = end.output.head.decode("utf-8", "replace").splitlines()
    if end.ending != "exited" or lines[-1:] != ["E"]:
        errors = " ".join(line for line in lines if line[:2] not in _FACTS).strip()
        reason = errors[:200].replace("`", "'") or f"it ended with {end.status} and no error"
        guess = "user namespaces may be switched off here"
        if reason.startswith("prlimit:"):
            guess = "a hard limit of the daemon (`ulimit -Ha`) is lower than a command's limit"
        return f"the sandbox does not start, {guess}: `{reason}`"
    faults = [line[2:] for line in lines if line.startswith("F ")]
    facts = dict(line[2:].split(":", 1) for line in lines if line.startswith("S ") and ":" in line)
    interfaces = {
        line[2:].split(":")[0].strip() for line in lines if line.startswith("N ") and ":" in line
    }
    bounds = {" ".join(line.split()[1:-3]): line.split()[-2] for line in lines if line[:2] == "L "}
    if owner == 0:
        faults.append("commands run as root")
    if set(facts.get("CapEff", "missing").strip()) != {"0"}:
        faults.append("commands have capabilities")
    if facts.get("NoNewPrivs", "").strip() != "1":
        faults.append("commands can gain privileges")
    if facts.get("Seccomp", "").strip() != "2":
        faults.append("no system call is denied, not even those of keyrings")
    if bounds.get("Max processes") != str(limits.processes):
        faults.append("the number of processes is not bounded")
    if bounds.get("Max address space") != str(limits.memory_bytes):
        faults.append("memory is not bounded")
    if not network and interfaces != {"lo"}:
        faults.append("the network can be reached")
    return f"the sandbox leaks: {', '.join(faults)}" if faults else None


def _owner(place: Path) -> int | None:
    return place.stat().st_uid if place.exists() else None


def _make_place() -> Path:
    """Create a workspace, and next to it a file that must not be visible from inside."""
    place = Path(tempfile.mkdtemp(prefix="zeroclaw-sandbox-")).resolve()
    place.chmod(0o711)  # otherwise the user that a root daemon's commands run as is kept out anyway
    (place / "workspace").mkdir()
    (place / "secret").touch()
    return place


async def unrecorded(group: Spawned | None) -> None:
    """Record nothing: the self-test's process dies with the daemon."""


def _shields(workspace: Path, masks: tuple[Mask, ...]) -> tuple[str, ...]:
    """Return the mounts over protected places.

    Each directory above one becomes a mount too, because a mount point can't be renamed. Otherwise
    a command could move the directory away and create an unprotected one. A secret needs none: its
    mask moves with the directory, and the command itself creates a new one's contents.
    """
    covered = {mask.parts for mask in masks}
    outer = [mask for mask in masks if not _is_below(mask.parts, covered)]
    fixed = [mask.parts for mask in outer if not mask.is_secret]
    above = {parts[:depth] for parts in fixed for depth in range(1, len(parts))}
    flags: list[str] = []
    for parts in sorted(above):
        flags += ["--bind", str(workspace.joinpath(*parts)), "/".join((WORKSPACE, *parts))]
    flags += _masked(WORKSPACE, outer)
    return tuple(flags)


def _masked(at: str, masks: Iterable[Mask]) -> list[str]:
    """Return the mounts over existing places below a directory."""
    flags: list[str] = []
    for mask in masks:
        place = "/".join((at, *mask.parts))
        if mask.is_directory:
            flags += ["--tmpfs", place, "--remount-ro", place]
        else:
            flags += ["--ro-bind", "/dev/null", place]
    return flags


def _read_only(folder: Folder, staged: Mapping[Path, str]) -> tuple[str, ...]:
    """Return the mounts of a read-only folder; nothing in it can be moved, so masks stay in place."""
    real = staged.get(folder.real, str(folder.real))
    return ("--ro-bind", real, folder.at, *_masked(folder.at, folder.masks))


def _is_below(parts: Parts, covered: set[Parts]) -> bool:
    return any(parts[:depth] in covered for depth in range(1, len(parts)))


def _limited(prlimit: str, limits: Limits, *, processes_too: bool) -> tuple[str, ...]:
    # In a sandbox, the kernel counts the sandbox's processes (Linux 5.14); outside, all processes
    # of the user, including the daemon.
    bound = (f"--nproc={limits.processes}",) if processes_too else ()
    return (
        prlimit,
        f"--as={limits.memory_bytes}",
        f"--cpu={limits.cpu_s}",
        f"--fsize={limits.file_bytes}",
        f"--nofile={limits.open_files}",
        "--core=0",
        *bound,
        "--",
    )
