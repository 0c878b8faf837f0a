"""What bubblewrap is told, and whether it keeps its word on this machine.

A command sees the system's programs read-only, its workspace, an empty `/tmp` and nothing else: no
file of ours, no other process, no network unless granted, no environment of ours. It has no
capabilities and can't get any. When its first process ends, all of it ends.

Flags: bwrap(1) of bubblewrap 0.8, tried as root and as a plain user in 2026-11. `--new-session` is
left out on purpose: the child is born in a session of its own already (`processes.run`), and
within our process group even its innermost process can be found and killed.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from zeroclaw.errors import ToolFailed
from zeroclaw.host import processes
from zeroclaw.host.processes import Ended
from zeroclaw.host.protected import Found
from zeroclaw.tool import Spawned
from zeroclaw.value import Value

WORKSPACE = "/workspace"  # where a command finds its workspace

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
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_TEST_S = 10.0


class Limits(Value):
    """What a command may use. Memory, time and file size count per process, as the kernel does.

    Attributes:
        memory_bytes: Address space of one process.
        cpu_s: Seconds of processor time of one process.
        file_bytes: Size of one file.
        open_files: Descriptors of one process.
        processes: At one time in one sandbox; the kernel does not hold root to it.
        tmp_bytes: Size of `/tmp`, and of `/dev/shm`.
    """

    memory_bytes: int = 2_147_483_648
    cpu_s: int = 120
    file_bytes: int = 268_435_456
    open_files: int = 256
    processes: int = 256
    tmp_bytes: int = 67_108_864


class System(Value):
    """What a sandbox is made of on this machine.

    Attributes:
        bwrap: The absolute path of bubblewrap.
        prlimit: Likewise; it is inside the sandbox as well.
        links: Names at the root that are links here, each with its target.
        directories: Names at the root that are directories here.
    """

    bwrap: str
    prlimit: str
    links: tuple[tuple[str, str], ...]
    directories: tuple[str, ...]


class Box(Value):
    """What one command gets.

    Attributes:
        workspace: Its real path; read-write, at `/workspace`.
        network: It may reach what this machine reaches, loopback included.
        found: The protected places of the workspace.
        limits: What it may use.
    """

    workspace: Path
    network: bool = False
    found: tuple[Found, ...] = ()
    limits: Limits = Limits()


class Working(Value):
    """The sandbox kept its word."""

    system: System


class Broken(Value):
    """There is no sandbox to be had.

    Attributes:
        reason: Why, and what to do; one line.
    """

    reason: str


def box_argv(system: System, box: Box, command: str) -> tuple[str, ...]:
    """Return the whole command line that runs a shell command in a sandbox; pure."""
    tmp_bytes = str(box.limits.tmp_bytes)
    environment = (("--setenv", name, value) for name, value in ENVIRONMENT.items())
    return (
        system.bwrap,
        *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"),
        *("--cap-drop", "ALL", "--hostname", "sandbox"),
        *(("--share-net",) if box.network else ()),
        "--clearenv",
        *(flag for triple in environment for flag in triple),
        *("--ro-bind", "/usr", "/usr"),
        *(flag for target, at in system.links for flag in ("--symlink", target, at)),
        *(flag for path in system.directories for flag in ("--ro-bind", path, path)),
        *(flag for path in _readable(box) for flag in ("--ro-bind-try", path, path)),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--size", tmp_bytes, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
        *("--size", tmp_bytes, "--tmpfs", "/tmp"),  # noqa: S108
        *("--bind", str(box.workspace), WORKSPACE),
        *_shields(box),
        *("--remount-ro", "/", "--chdir", WORKSPACE),
        "--",
        *_limited(system.prlimit, box.limits, processes_too=True),
        *("/bin/sh", "-c", command),
    )


def bare_argv(prlimit: str | None, limits: Limits, command: str) -> tuple[str, ...]:
    """Return the command line without a sandbox, limited where prlimit is there; pure."""
    limited = _limited(prlimit, limits, processes_too=False) if prlimit else ()
    return (*limited, "/bin/sh", "-c", command)


def find_program(name: str) -> str | None:
    """Return a program's absolute path; blocks, so call it in a thread."""
    return shutil.which(name, path=ENVIRONMENT["PATH"])


def look_around() -> System | Broken:
    """See what this machine has for a sandbox; blocks, so call it in a thread."""
    bwrap, prlimit = find_program("bwrap"), find_program("prlimit")
    if bwrap is None:
        return Broken(reason="`bwrap` is missing: install the package bubblewrap")
    if prlimit is None:
        return Broken(reason="`prlimit` is missing: install the package util-linux")
    places = [Path("/") / name for name in _SYSTEM]
    links = [(str(place.readlink()), str(place)) for place in places if place.is_symlink()]
    plain = [str(place) for place in places if place.is_dir() and not place.is_symlink()]
    return System(bwrap=bwrap, prlimit=prlimit, links=tuple(links), directories=tuple(plain))


# Shell builtins only, so that a broken sandbox is told from a missing program.
_PROBE = """
printf made > made || echo "F the workspace can't be written"
[ -e "{secret}" ] && echo "F files outside the workspace can be seen"
(: > /usr/made) 2>/dev/null && echo "F the system's files can be written"
while read -r line; do echo "S $line"; done < /proc/self/status
while read -r line; do echo "N $line"; done < /proc/net/dev
echo "E"
"""


async def self_test(limits: Limits | None = None, *, network: bool = False) -> Working | Broken:
    """Run one command with the production command line and look at what it could do.

    Args:
        limits: As production will use them.
        network: Whether production will grant the network.

    Returns:
        `Broken` for everything it finds; it raises nothing for what it finds.
    """
    system = await asyncio.to_thread(look_around)
    if isinstance(system, Broken):
        return system
    place = await asyncio.to_thread(_make_place)
    try:
        box = Box(workspace=place / "workspace", network=network, limits=limits or Limits())
        probe = _PROBE.format(secret=place / "secret")
        ended = await processes.run(
            box_argv(system, box, probe),
            directory=box.workspace,
            environment=ENVIRONMENT,
            timeout_s=_TEST_S,
            caps=processes.OutputCaps(),
            spawned=_unrecorded,
        )
    except ToolFailed as error:
        return Broken(reason=str(error))
    finally:
        await asyncio.to_thread(shutil.rmtree, place)
    fault = judge(ended, network=network)
    return Working(system=system) if fault is None else Broken(reason=fault)


def judge(ended: Ended, *, network: bool) -> str | None:
    """Return what the self-test's command could do but must not, None for nothing; pure."""
    lines = ended.output.head.decode("utf-8", "replace").splitlines()
    if ended.ending != "exited" or lines[-1:] != ["E"]:
        said = " ".join(line for line in lines if line[:2] not in {"S ", "N "}).strip()
        why = said[:200].replace("`", "'") or f"it ended with {ended.status} and said nothing"
        return f"the sandbox does not start, user namespaces may be switched off here: `{why}`"
    faults = [line[2:] for line in lines if line.startswith("F ")]
    facts = dict(line[2:].split(":", 1) for line in lines if line.startswith("S ") and ":" in line)
    interfaces = {
        line[2:].split(":")[0].strip() for line in lines if line.startswith("N ") and ":" in line
    }
    if set(facts.get("CapEff", "missing").strip()) != {"0"}:
        faults.append("commands have capabilities")
    if facts.get("NoNewPrivs", "").strip() != "1":
        faults.append("commands can gain privileges")
    if not network and interfaces != {"lo"}:
        faults.append("the network can be reached")
    return f"the sandbox leaks: {', '.join(faults)}" if faults else None


def _make_place() -> Path:
    """Make a workspace, and beside it a file that must not be seen from within."""
    place = Path(tempfile.mkdtemp(prefix="zeroclaw-sandbox-")).resolve()
    (place / "workspace").mkdir()
    (place / "secret").touch()
    return place


async def _unrecorded(group: Spawned | None) -> None:
    """Forget it: what the self-test starts dies with the daemon."""


def _readable(box: Box) -> tuple[str, ...]:
    return (*_ALWAYS, *_FOR_NETWORK) if box.network else _ALWAYS


def _shields(box: Box) -> tuple[str, ...]:
    """Return the mounts over protected places, outer places first.

    Each directory above one is a mount of its own, because a mount point can't be renamed: else a
    command moves the directory away and makes a new one without protection.
    """
    flags: list[str] = []
    above = {found.rule.parts[:depth] for found in box.found for depth in _above(found)}
    for parts in sorted(above):
        flags += ["--bind", str(box.workspace.joinpath(*parts)), _inside(parts)]
    for found in sorted(box.found, key=_inner_last):
        at = _inside(found.rule.parts)
        if found.rule.shield == "read_only":
            flags += ["--ro-bind", str(box.workspace.joinpath(*found.rule.parts)), at]
        elif found.is_directory:
            flags += ["--tmpfs", at, "--remount-ro", at]
        else:
            flags += ["--ro-bind", "/dev/null", at]
    return tuple(flags)


def _above(found: Found) -> range:
    return range(1, len(found.rule.parts))


def _inner_last(found: Found) -> tuple[int, bool]:
    """Order the mounts: a masked place in a read-only one is masked after it."""
    return len(found.rule.parts), found.rule.shield == "masked"


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
