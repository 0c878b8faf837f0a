"""What bubblewrap is told, and whether it keeps its word on this machine.

A command sees the system's programs read-only, its workspace, an empty `/tmp` and nothing else: no
file of ours, no other process, no network unless granted, no environment of ours. What the
workspace keeps under a name of secrets before it starts is masked (`secret_names`); what it makes
itself is its own until it ends. It has no
capabilities and can't get any, and no system call that only an attacker needs (`seccomp`). What it
uses is bounded for all of its processes together: by the kernel, where the daemon has cgroups to
give (`cgroups`), else by limits of each process and a watch (`usage`). When its first process ends,
all of it ends.

It never runs as root, for to root the kernel gives what no namespace takes away. A daemon that is
root lays out what the command is to see in a place that every user may enter, becomes the user
`UNPRIVILEGED`, and goes on as any plain user does; its workspaces belong to that user.

Flags: bwrap(1) of bubblewrap 0.8, tried as root and as a plain user in 2026-11. `--new-session` is
left out on purpose: the child is born in a session of its own already (`processes.run`), and
within our process group even its innermost process can be found and killed.
"""

import asyncio
import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from zeroclaw.errors import ToolFailed, refused_as, system_words
from zeroclaw.host import processes, seccomp, usage
from zeroclaw.host.cgroups import Group, open_group
from zeroclaw.host.processes import Ended, OutputCaps, Recorder
from zeroclaw.host.protected import Found
from zeroclaw.host.usage import Held, Meter
from zeroclaw.tool import Spawned
from zeroclaw.value import Value, replace

WORKSPACE = "/workspace"  # where a command finds its workspace
UNPRIVILEGED = 65_533
"""Who commands of a root daemon run as: a number that no system gives away (Debian policy 9.2.2),
and that a container with the usual 65,536 has."""
_STAGE = "/mnt"  # exists everywhere (FHS 3.12), and is covered for our own processes only

# All that a command is told; nothing of the daemon's environment is handed on.
ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108  the sandbox's own, empty and gone afterwards
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}

# Read-only and without secrets: names of programs, and what name look-ups and TLS need.
_ALWAYS = ("/etc/alternatives", "/etc/ld.so.cache")
_FOR_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki")
_TOLD_TO_ALL = ("/proc/keys", "/proc/key-users")
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_TEST_S = 10.0
_FACTS = {"S ", "L ", "N "}  # how lines of the self-test begin that tell what is


class Limits(Value):
    """What a command may use, all of its processes together where nothing else is said.

    Attributes:
        memory_bytes: Memory; the address space of each process as well.
        workspace_bytes: What its workspace may hold when it ends.
        cpu_s: Seconds of processor time of one process.
        file_bytes: Size of one file.
        open_files: Descriptors of one process.
        processes: At one time, threads included.
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
    """What a sandbox is made of on this machine.

    Attributes:
        bwrap: The absolute path of bubblewrap.
        prlimit: Likewise; it is inside the sandbox as well.
        links: Names at the root that are links here, each with its target.
        directories: Names at the root that are directories here.
        masked: What the kernel tells every user of a machine, and no command needs.
        setpriv: Where the daemon is root, the absolute path of what makes it nobody; else empty.
        subtree: Where each command gets a cgroup; None where the daemon has none to give.
    """

    bwrap: str
    prlimit: str
    links: tuple[tuple[str, str], ...]
    directories: tuple[str, ...]
    masked: tuple[str, ...] = ()
    setpriv: str = ""
    subtree: Path | None = None


class Bare(Value):
    """What is left where there is no sandbox.

    Attributes:
        prlimit: The absolute path of what limits a command; empty where it is missing.
        subtree: Where each command gets a cgroup; None where the daemon has none to give.
    """

    prlimit: str = ""
    subtree: Path | None = None


class Folder(Value):
    """A directory beside the workspace that a command may read, and run what is in it.

    Attributes:
        real: Its real path.
        at: Where the command finds it.
        masked: What of it the command does not see; its rules count from there down.
    """

    real: Path
    at: str
    masked: tuple[Found, ...] = ()


class Box(Value):
    """What one command gets.

    Attributes:
        workspace: Its real path; read-write, at `/workspace`. None for one that needs no place.
        network: It may reach what this machine reaches, loopback included.
        found: The protected places of the workspace.
        programs: Real paths beside the system's that it sees, read-only and where they are.
        folders: Directories that it sees read-only, elsewhere than they are.
        limits: What it may use.
    """

    workspace: Path | None
    network: bool = False
    found: tuple[Found, ...] = ()
    programs: tuple[Path, ...] = ()
    folders: tuple[Folder, ...] = ()
    limits: Limits = Limits()


class Broken(Value):
    """There is no sandbox to be had.

    Attributes:
        reason: Why, and what to do; one line.
    """

    reason: str


def box_argv(
    system: System | Bare, box: Box, argv: Sequence[str], *, filter_at: int | None = None
) -> tuple[str, ...]:
    """Return the whole command line that runs a program in a sandbox, or without one; pure.

    Args:
        system: What this machine has.
        box: What the program gets.
        argv: The program and its arguments.
        filter_at: The descriptor that the filter of system calls is read from.
    """
    if isinstance(system, Bare):
        limited = _limited(system.prlimit, box.limits, processes_too=False)
        return (*(limited if system.prlimit else ()), *argv)
    if not system.setpriv:
        return _plain_argv(system, box, argv, filter_at, {})
    seen = (*box.programs, *(folder.real for folder in box.folders))
    places = (*((box.workspace,) if box.workspace else ()), *seen)
    staged = {place: f"{_STAGE}/{n}" for n, place in enumerate(places)}
    user = str(UNPRIVILEGED)
    return (
        # A program that opens `/dev/stdout` opens this pipe by its name, which its owner alone may.
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
    """Return the command line of a plain user, who finds some places where they were staged."""
    tmp_bytes = str(box.limits.tmp_bytes)
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
        *(flag for path in _readable(box) for flag in ("--ro-bind-try", path, path)),
        *("--proc", "/proc"),
        *(flag for path in system.masked for flag in ("--ro-bind", "/dev/null", path)),
        *("--remount-ro", "/proc", "--dev", "/dev"),
        *("--size", tmp_bytes, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
        *("--size", tmp_bytes, "--tmpfs", "/tmp"),  # noqa: S108
        *(
            flag
            for path in box.programs
            for flag in ("--ro-bind", str(staged.get(path, path)), str(path))
        ),
        *(flag for folder in box.folders for flag in _read_only(folder, staged)),
        *(() if place is None else ("--bind", str(place), WORKSPACE, *_shields(place, box.found))),
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
    given: bytes | None = None,
    is_ours: bool = False,
) -> Ended:
    """Run a program in a sandbox to its end, or end it; `processes.run` says what the rest is.

    One that `is_ours`, written by nobody else, is not watched: that looks through all processes of the
    machine ten times a second.

    In a workspace that holds too much before it begins, files can only be removed; `why` of what
    is returned says so.

    Without a sandbox it starts in its workspace, and is bounded as in one. Nothing masks what the
    workspace or this machine keeps. Without a cgroup the watch does not find a process that leaves
    its process group as well as its parent (`setsid`, twice); from a cgroup a command of the
    daemon's own user can move away.

    Raises:
        ToolFailed: It could not be started, or the workspace holds more than could be counted.
    """
    is_boxed = isinstance(system, System)
    meter, why = None, ""
    if (workspace := box.workspace) is not None:
        held = await asyncio.to_thread(_settle, system, workspace, box.found)
        if is_boxed and len(held.secrets) > usage.MOST_SECRETS:
            message = (
                f"the workspace holds more than {usage.MOST_SECRETS:,} places that keep secrets by"
                " their names: nothing can run in it before somebody clears it by hand"
            )
            raise ToolFailed(message)
        limits, why = _room(box.limits, held)
        box = replace(box, found=(*box.found, *held.secrets), limits=limits)
        meter = Meter(
            most_bytes=limits.workspace_bytes,
            workspace=workspace,
            held=held,
            memory_bytes=limits.memory_bytes if system.subtree is None else None,
            most_processes=None if is_boxed else limits.processes,
        )
    async with AsyncExitStack() as until:
        group: Group | None = None
        if system.subtree is not None:
            group = await asyncio.to_thread(_opened_group, system.subtree, box.limits)
            until.push_async_callback(asyncio.to_thread, group.close)
        filter_at: int | None = None
        if is_boxed:
            filter_at = await asyncio.to_thread(_opened_filter)
            until.callback(os.close, filter_at)
        ended = await processes.run(
            box_argv(system, box, argv, filter_at=filter_at),
            directory=Path("/") if is_boxed or workspace is None else workspace,
            environment=ENVIRONMENT,
            timeout_s=timeout_s,
            caps=caps,
            spawned=spawned,
            given=given,
            passed=() if filter_at is None else (filter_at,),
            watch=None if is_ours else meter,
            group=group,
        )
    return replace(ended, why=ended.why or why)


def _opened_group(subtree: Path, limits: Limits) -> Group:
    with refused_as(ToolFailed, "the command can't have a cgroup"):
        return open_group(subtree, memory_bytes=limits.memory_bytes, processes=limits.processes)


def _room(limits: Limits, held: Held) -> tuple[Limits, str]:
    """Return what a command may use in a workspace, and why that is less, empty for nothing.

    No file may become larger than what is left: the watch sees that too late. One that is larger
    already may be written within.
    """
    why = held.excess(limits.workspace_bytes)
    if not held.is_whole:
        message = f"{why}: nothing can run in it before somebody clears it by hand"
        raise ToolFailed(message)
    left_bytes = limits.workspace_bytes - held.bytes_
    most_bytes = max(left_bytes - left_bytes % usage.BLOCK_BYTES, held.largest_bytes)
    most_bytes = 0 if why else min(limits.file_bytes, most_bytes)
    return replace(limits, file_bytes=most_bytes), why


def _settle(system: System | Bare, workspace: Path, found: tuple[Found, ...]) -> Held:
    """Count what a workspace holds, and where we are root give it to whom commands run as."""
    # Refused, for one, by a file system or a user namespace that does not know that user.
    with refused_as(ToolFailed, "the workspace can't be made ready for commands"):
        return usage.look_through(
            workspace,
            skipped=frozenset(one.rule.parts for one in found if one.rule.shield == "masked"),
            owner=UNPRIVILEGED if isinstance(system, System) and system.setpriv else None,
        )


def _opened_filter() -> int:
    """Open the filter of system calls, which is read once."""
    program = seccomp.program(platform.machine())
    if program is None:
        message = f"there is no filter of system calls for a processor of `{platform.machine()}`"
        raise ToolFailed(message)
    opened = os.memfd_create("seccomp")
    os.write(opened, program)
    os.lseek(opened, 0, os.SEEK_SET)
    return opened


def find_program(name: str) -> str | None:
    """Return a program's absolute path; blocks, so call it in a thread."""
    return shutil.which(name, path=ENVIRONMENT["PATH"])


def look_around(subtree: Path | None = None) -> System | Broken:
    """See what this machine has for a sandbox; blocks, so call it in a thread."""
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
        masked=tuple(path for path in _TOLD_TO_ALL if Path(path).exists()),
        setpriv=setpriv,
        subtree=subtree,
    )


# Shell builtins only, so that a broken sandbox is told from a missing program; where `chmod` is
# one, nobody can set bits either.
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
    """Run one command with the production command line and look at what it could do.

    Args:
        limits: As production will use them.
        network: Whether production will grant the network.
        subtree: Where production will make cgroups.

    Returns:
        `Broken` for everything it finds; it raises nothing for what it finds.
    """
    system = await asyncio.to_thread(look_around, subtree)
    if isinstance(system, Broken):
        return system
    place = await asyncio.to_thread(_make_place)
    wanted = limits or Limits()
    try:
        try:
            box = Box(workspace=place / "workspace", network=network, limits=wanted)
            probe = _PROBE.format(secret=place / "secret")
            ended = await run(
                system,
                box,
                ("/bin/sh", "-c", probe),
                timeout_s=_TEST_S,
                caps=OutputCaps(),
                spawned=unrecorded,
                is_ours=True,
            )
            made_by = await asyncio.to_thread(_owner, place / "workspace" / "made")
        finally:
            await asyncio.to_thread(shutil.rmtree, place)
    except ToolFailed as error:
        return Broken(reason=str(error))
    except OSError as error:  # of root without CAP_DAC_OVERRIDE
        return Broken(reason=f"the daemon can't reach what commands make: {system_words(error)}")
    fault = judge(ended, network=network, limits=wanted, made_by=made_by)
    return system if fault is None else Broken(reason=fault)


def judge(ended: Ended, *, network: bool, limits: Limits, made_by: int | None) -> str | None:
    """Return what the self-test's command could do but must not, None for nothing; pure.

    Args:
        ended: What it said.
        network: Whether it was to have the network.
        limits: What it was to be held to.
        made_by: Who, as this machine counts, owns the file that it made; None when it made none.
    """
    lines = ended.output.head.decode("utf-8", "replace").splitlines()
    if ended.ending != "exited" or lines[-1:] != ["E"]:
        said = " ".join(line for line in lines if line[:2] not in _FACTS).strip()
        why = said[:200].replace("`", "'") or f"it ended with {ended.status} and said nothing"
        return f"the sandbox does not start, user namespaces may be switched off here: `{why}`"
    faults = [line[2:] for line in lines if line.startswith("F ")]
    facts = dict(line[2:].split(":", 1) for line in lines if line.startswith("S ") and ":" in line)
    interfaces = {
        line[2:].split(":")[0].strip() for line in lines if line.startswith("N ") and ":" in line
    }
    bounds = {" ".join(line.split()[1:-3]): line.split()[-2] for line in lines if line[:2] == "L "}
    if made_by == 0:
        faults.append("commands run as root")
    if set(facts.get("CapEff", "missing").strip()) != {"0"}:
        faults.append("commands have capabilities")
    if facts.get("NoNewPrivs", "").strip() != "1":
        faults.append("commands can gain privileges")
    if facts.get("Seccomp", "").strip() != "2":
        faults.append("no system call is denied, those of keyrings among them")
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
    """Make a workspace, and beside it a file that must not be seen from within."""
    place = Path(tempfile.mkdtemp(prefix="zeroclaw-sandbox-")).resolve()
    (place / "workspace").mkdir()
    (place / "secret").touch()
    return place


async def unrecorded(group: Spawned | None) -> None:
    """Forget it: what is tried at the start dies with the daemon."""


def _readable(box: Box) -> tuple[str, ...]:
    return (*_ALWAYS, *_FOR_NETWORK) if box.network else _ALWAYS


def _shields(workspace: Path, places: tuple[Found, ...]) -> tuple[str, ...]:
    """Return the mounts over protected places.

    Each directory above one is a mount of its own, because a mount point can't be renamed: else a
    command moves the directory away and makes a new one without protection. Above a secret there
    is none: a mask moves with the directory, and what is made anew is the command's own.
    """
    covered = {found.rule.parts for found in places}
    outer = [found for found in places if not _is_below(found.rule.parts, covered)]
    masked = [found.rule.parts for found in outer if found.rule.shield == "masked"]
    above = {parts[:depth] for parts in masked for depth in range(1, len(parts))}
    flags: list[str] = []
    for parts in sorted(above):
        flags += ["--bind", str(workspace.joinpath(*parts)), _inside(parts)]
    flags += _masks(WORKSPACE, outer)
    return tuple(flags)


def _masks(at: str, places: Iterable[Found]) -> list[str]:
    """Return the mounts over places below a directory, each of which exists there."""
    flags: list[str] = []
    for found in places:
        place = "/".join((at, *found.rule.parts))
        if found.is_directory:
            flags += ["--tmpfs", place, "--remount-ro", place]
        else:
            flags += ["--ro-bind", "/dev/null", place]
    return flags


def _read_only(folder: Folder, staged: Mapping[Path, str]) -> tuple[str, ...]:
    """Return the mounts of a folder; nothing in it can be moved, so what is masked stays so."""
    real = staged.get(folder.real, str(folder.real))
    return ("--ro-bind", real, folder.at, *_masks(folder.at, folder.masked))


def _is_below(parts: tuple[str, ...], covered: set[tuple[str, ...]]) -> bool:
    return any(parts[:depth] in covered for depth in range(1, len(parts)))


def _inside(parts: tuple[str, ...]) -> str:
    return "/".join((WORKSPACE, *parts))


def _limited(prlimit: str, limits: Limits, *, processes_too: bool) -> tuple[str, ...]:
    # Inside a sandbox the kernel counts that sandbox's processes (Linux 5.14), outside all of the
    # user's, the daemon among them.
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
