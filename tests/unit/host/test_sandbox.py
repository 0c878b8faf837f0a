"""The sandbox: bubblewrap's command line, its self-test, and the system call filter."""

import asyncio
import ctypes
import errno
import os
import re
import struct
import subprocess
import sys
import tempfile
from ctypes.util import find_library
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.host import sandbox
from zeroclaw.host.masks import Mask
from zeroclaw.host.processes import Captured, Ending, OutputCaps, ProcessEnd
from zeroclaw.host.sandbox import Bare, Box, Broken, Folder, Limits, System
from zeroclaw.host.seccomp import (
    ABSENT,
    ALLOW,
    DENIED,
    DENY,
    KILL,
    LIMITED,
    MACHINES,
    MISSING,
    NEWEST,
    NO_FAMILY,
    NO_ROOM_AHEAD,
    program,
)
from zeroclaw.value import replace

SYSTEM = System(
    bwrap="/usr/bin/bwrap",
    prlimit="/usr/bin/prlimit",
    links=(("usr/bin", "/bin"),),
    directories=("/lib64",),
    masked=("/proc/keys",),
)
LIMITS = Limits(
    memory_bytes=1000, cpu_s=2, file_bytes=3000, open_files=4, processes=5, tmp_bytes=6000
)


def argv(
    *, network: bool = False, masks: tuple[Mask, ...] = (), setpriv: str = ""
) -> tuple[str, ...]:
    box = Box(workspace=Path("/w"), network=network, masks=masks, limits=LIMITS)
    system = replace(SYSTEM, setpriv=setpriv)
    return sandbox.box_argv(system, box, ("/bin/sh", "-c", "echo hi"), filter_at=9)


def mask(path: str, *, is_directory: bool = True, is_secret: bool = False) -> Mask:
    return Mask(parts=tuple(path.split("/")), is_directory=is_directory, is_secret=is_secret)


def test_the_full_command_line_is_as_written_here() -> None:
    """A change of the sandbox needs a change of this line (design §6, Shell)."""
    assert " ".join(argv()) == (
        "/usr/bin/bwrap --unshare-all --unshare-user --disable-userns --die-with-parent"
        " --cap-drop ALL --hostname sandbox --seccomp 9 --clearenv"
        " --setenv PATH /usr/local/bin:/usr/bin:/bin --setenv HOME /tmp --setenv LANG C.UTF-8"
        " --setenv TERM dumb --ro-bind /usr /usr --symlink usr/bin /bin --ro-bind /lib64 /lib64"
        " --ro-bind-try /etc/alternatives /etc/alternatives"
        " --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache --proc /proc --ro-bind /dev/null /proc/keys --remount-ro /proc --dev /dev"
        " --size 6000 --tmpfs /dev/shm --remount-ro /dev --size 6000 --tmpfs /tmp"
        " --bind /w /workspace --remount-ro / --chdir /workspace --"
        " /usr/bin/prlimit --as=1000 --cpu=2 --fsize=3000 --nofile=4 --core=0 --nproc=5 --"
        " /bin/sh -c echo hi"
    )


def test_a_root_daemon_runs_the_command_as_the_user_nobody() -> None:
    """Its files are laid out where every user may go; the rest is as for a plain user."""
    command = " ".join(argv(masks=(mask("a/b"),)))
    assert " ".join(argv(masks=(mask("a/b"),), setpriv="/usr/bin/setpriv")) == (
        '/bin/sh -c chown 65533:65533 /proc/self/fd/1 2>&-; exec "$@" stage'
        " /usr/bin/bwrap --die-with-parent --dev-bind / / --tmpfs /mnt --bind /w /mnt/0 --"
        " /usr/bin/setpriv --reuid 65533 --regid 65533 --clear-groups --no-new-privs"
        " --inh-caps=-all --ambient-caps=-all --bounding-set=-all "
        + command.replace("--bind /w ", "--bind /mnt/0 ").replace("bind /w/a ", "bind /mnt/0/a ")
    )


def test_a_program_without_a_workspace_sees_its_own_files() -> None:
    """Its files are read-only at the same paths."""
    box = Box(workspace=None, folders=(Folder(real=Path("/opt/x"), at="/opt/x"),), limits=LIMITS)
    line = " ".join(sandbox.box_argv(SYSTEM, box, ("/opt/x/run",)))
    assert "--tmpfs /tmp --ro-bind /opt/x /opt/x --remount-ro / --chdir / -- " in line
    assert line.endswith("-- /opt/x/run")
    staged = " ".join(sandbox.box_argv(replace(SYSTEM, setpriv="/s"), box, ("/opt/x/run",)))
    assert "--bind /opt/x /mnt/0 -- /s" in staged
    assert "--ro-bind /mnt/0 /opt/x" in staged


def test_the_network_is_shared_only_when_granted() -> None:
    """A grant adds the network and the files for DNS and TLS, nothing else."""
    added = set(argv(network=True)) - set(argv())
    assert added == {
        "--share-net",
        "/etc/resolv.conf",
        "/etc/hosts",
        "/etc/nsswitch.conf",
        "/etc/ssl",
        "/etc/pki",
    }


@pytest.mark.parametrize(
    ("places", "mounts"),
    [
        ((mask("a"),), "--tmpfs /workspace/a --remount-ro /workspace/a"),
        ((mask("a", is_directory=False),), "--ro-bind /dev/null /workspace/a"),
        (
            (mask("a/b/c"),),
            "--bind /w/a /workspace/a --bind /w/a/b /workspace/a/b"
            " --tmpfs /workspace/a/b/c --remount-ro /workspace/a/b/c",
        ),
        ((mask("a/b", is_directory=False, is_secret=True),), "--ro-bind /dev/null /workspace/a/b"),
        (
            (mask("a/b"), mask("a", is_secret=True)),
            "--tmpfs /workspace/a --remount-ro /workspace/a",
        ),
    ],
)
def test_protected_places_are_mounted_over(places: tuple[Mask, ...], mounts: str) -> None:
    """The outermost ones; no directory above one can be renamed, except above a secret's mask."""
    line = " ".join(argv(masks=places))
    assert f"--bind /w /workspace {mounts} --remount-ro / " in line


def test_without_a_sandbox_only_the_limits_remain() -> None:
    """The number of processes is not bounded there: the kernel would count the daemon's too."""
    box = Box(workspace=Path("/w"), limits=LIMITS)
    bare = sandbox.box_argv(Bare(prlimit="/usr/bin/prlimit"), box, ("/bin/sh", "-c", "true"))
    assert bare == (
        *("/usr/bin/prlimit", "--as=1000", "--cpu=2", "--fsize=3000", "--nofile=4", "--core=0"),
        *("--", "/bin/sh", "-c", "true"),
    )
    assert sandbox.box_argv(Bare(), box, ("true",)) == ("true",)


GOOD = (
    "S CapEff:\t0000000000000000\nS NoNewPrivs:\t1\nS Seccomp:\t2\nL Limit Soft Limit Hard Units\n"
    "L Max processes 5 5 processes\nL Max address space 1000 1000 bytes\nN Inter-| x\nN lo: 0\nE\n"
)


@pytest.mark.parametrize(
    ("output", "network", "fault"),
    [
        (GOOD, False, None),
        (GOOD.replace("lo:", "lo:\nN eth0:"), True, None),
        (GOOD.replace("lo:", "lo:\nN eth0:"), False, "the network can be reached"),
        (GOOD.replace("0000\n", "0400\n"), False, "commands have capabilities"),
        (GOOD.replace("CapEff", "Other"), False, "commands have capabilities"),
        (GOOD.replace("\t1", "\t0"), False, "commands can gain privileges"),
        (GOOD.replace("\t2", "\t0"), False, "no system call is denied"),
        (GOOD.replace("5 5", "5 6"), False, "the number of processes is not bounded"),
        (GOOD.replace("1000 1000", "1000 unlimited"), False, "memory is not bounded"),
        ("F files can be seen\n" + GOOD, False, "files can be seen"),
        ("bwrap: no `x`\n", False, "the sandbox does not start.*`bwrap: no 'x''?`"),
        ("", False, "it ended with 1 and no error"),
    ],
)
def test_the_self_test_is_judged_by_the_abilities_of_the_command(
    output: str, network: bool, fault: str | None
) -> None:
    """Anything that it can see, reach or become is a leak, and no output is no proof."""
    judged = breach(output, network=network)
    assert (judged is None) == (fault is None)
    assert judged is None or re.search(fault or "", judged)


def test_a_command_whose_files_belong_to_root_is_root() -> None:
    """Whatever user id it has inside."""
    assert breach(GOOD, owner=0) == "the sandbox leaks: commands run as root"


def breach(
    output: str, *, ending: Ending = "exited", network: bool = False, owner: int = 1
) -> str | None:
    captured = Captured(head=output.encode(), tail=b"", total_bytes=len(output))
    result = ProcessEnd(ending=ending, status=1, output=captured, is_gone=True)
    return sandbox.breach(result, network=network, limits=LIMITS, owner=owner)


@pytest.mark.parametrize("ending", ["timed_out", "flooded"])
def test_a_self_test_that_does_not_end_has_failed(ending: Ending) -> None:
    """Correct output does not count if it had to be killed."""
    assert breach(GOOD, ending=ending) is not None


# Each is the self-test's message for a sandbox that lacks one part.
@pytest.mark.needs("bwrap")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("lacking", "instead", "fault"),
    [
        (("--seccomp",), (), "setuid files can be made, no system call is denied"),
        (("--remount-ro", "/proc"), (), "/proc can be written"),
        (("--unshare-all",), ("--unshare-pid", "--unshare-uts"), "the network can be reached"),
        (("--nproc=64",), (), "the number of processes is not bounded"),
        (("--as=2147483648",), (), "memory is not bounded"),
        (
            ("--size", "67108864", "--tmpfs", "/tmp"),
            ("--bind", "/tmp", "/tmp"),
            "files outside the workspace can be seen",
        ),
    ],
)
async def test_the_self_test_names_what_a_sandbox_lacks(
    monkeypatch: pytest.MonkeyPatch, lacking: tuple[str, ...], instead: tuple[str, ...], fault: str
) -> None:
    """Tested in a real sandbox, from whose command line the part was removed."""
    box_argv = sandbox.box_argv

    def without_part(*arguments: object, **options: object) -> tuple[str, ...]:
        line = list(box_argv(*arguments, **options))  # pyright: ignore[reportArgumentType]
        [at] = [at for at in range(len(line)) if tuple(line[at : at + len(lacking)]) == lacking]
        line[at : at + len(lacking) + (lacking == ("--seccomp",))] = instead
        return tuple(line)

    monkeypatch.setattr(sandbox, "box_argv", without_part)
    tested = await sandbox.self_test()
    assert isinstance(tested, Broken)
    assert re.search(fault, tested.reason)


@pytest.mark.needs("bwrap", "unshare", "root")
@pytest.mark.parametrize(
    ("among", "reason"),
    [
        (
            ("unshare", "--map-root-user", "--mount"),
            "the workspace can't be made ready for commands: ",
        ),
        (
            ("setpriv", "--bounding-set", "-dac_override,-dac_read_search"),
            "the daemon can't reach files of commands: permission denied",
        ),
    ],
)
def test_a_restricted_root_has_no_sandbox(
    tmp_path: Path, among: tuple[str, ...], reason: str
) -> None:
    """In a container of one user, root can't become the user of commands; without a capability it
    can't enter its directories. The daemon starts all the same."""
    test = (
        "import asyncio; from zeroclaw.host import sandbox; print(asyncio.run(sandbox.self_test()))"
    )
    tested = subprocess.run(
        (*among, sys.executable, "-c", test),
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f'Broken(reason="{reason}' in tested.stdout


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("network", [False, True])
async def test_the_sandbox_works_here(
    network: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The production command line passes the self-test on this machine, which leaves no file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert isinstance(await sandbox.self_test(network=network), System)
    assert await asyncio.to_thread(lambda: [*tmp_path.iterdir()]) == []


async def test_a_command_that_is_stopped_as_it_starts_leaves_no_filter_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`/stop` may arrive at any instant, and a daemon runs for years."""
    loop, make, descriptors = asyncio.get_running_loop(), os.memfd_create, list[int]()

    def stopped_meanwhile(name: str) -> int:
        descriptors.append(make(name))
        loop.call_soon_threadsafe(running.cancel)
        return descriptors[0]

    monkeypatch.setattr(os, "memfd_create", stopped_meanwhile)
    command = sandbox.run(
        SYSTEM,
        Box(workspace=None, limits=LIMITS),
        ("/bin/true",),
        timeout_s=60,
        caps=OutputCaps(),
        spawned=sandbox.unrecorded,
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(command)
    assert running.cancelled()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptors[0])


@pytest.mark.parametrize(("present", "missing"), [((), "bubblewrap"), (("bwrap",), "util-linux")])
async def test_a_missing_program_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: tuple[str, ...], missing: str
) -> None:
    """The message tells the operator what to install."""
    make_programs(tmp_path, present, "exit 0")
    monkeypatch.setattr(sandbox, "ENVIRONMENT", {"PATH": str(tmp_path)})
    result = await sandbox.self_test()
    assert isinstance(result, Broken)
    assert f"install the package {missing}" in result.reason


@pytest.mark.parametrize(
    ("output", "guess"),
    [
        (
            "bwrap: setting up uid map: Permission denied",
            "user namespaces may be switched off here",
        ),
        (
            "prlimit: failed to set the NPROC resource limit: Operation not permitted",
            "a hard limit of the daemon (`ulimit -Ha`) is lower than a command's limit",
        ),
    ],
)
async def test_a_bubblewrap_without_permission_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, guess: str
) -> None:
    """The operator gets its message, and the switch or limit of the machine behind it."""
    make_programs(tmp_path, ("bwrap", "prlimit", "setpriv"), f"echo '{output}' >&2; exit 1")
    monkeypatch.setattr(sandbox, "ENVIRONMENT", {"PATH": str(tmp_path)})
    assert await sandbox.self_test() == Broken(
        reason=f"the sandbox does not start, {guess}: `{output}`"
    )


async def test_a_machine_without_room_for_the_test_has_no_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon starts all the same."""
    make_programs(tmp_path, ("bwrap", "prlimit", "setpriv"), "exit 1")
    monkeypatch.setattr(sandbox, "ENVIRONMENT", {"PATH": str(tmp_path)})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    tested = await sandbox.self_test()
    assert isinstance(tested, Broken)
    assert "no such file or directory" in tested.reason


def make_programs(directory: Path, names: tuple[str, ...], script: str) -> None:
    for name in names:
        (directory / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (directory / name).chmod(0o755)


UNIT = Path(__file__).parents[3] / "deploy" / "zeroclaw.service"


def test_the_service_is_not_root_and_allows_the_sandbox() -> None:
    """An option that hides parts of /proc forbids a new one; systemd's filter would precede
    ours."""
    lines = UNIT.read_text(encoding="utf-8").splitlines()
    settings = dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#")
    assert settings["User"] not in {"", "root", "0"}
    assert settings["Delegate"] == "yes"
    barring = {
        *("ProtectControlGroups", "ProtectKernelLogs", "ProtectKernelTunables", "ProtectHostname"),
        *("ProtectProc", "ProcSubset", "PrivateUsers", "RestrictNamespaces", "SystemCallFilter"),
    }
    assert not barring & settings.keys()


@pytest.mark.needs("unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root hides a part of /proc")
@pytest.mark.parametrize(("hidden", "starts"), [("", True), ("/proc/kmsg", False)])
def test_a_service_that_hides_a_part_of_proc_has_no_sandbox(hidden: str, starts: bool) -> None:
    """So the settings above are necessary; `ProtectKernelLogs` hides this one."""
    hide = f"mount --bind /dev/null {hidden}" if hidden else "true"
    user = "setpriv --reuid 1234 --regid 1234 --clear-groups"
    box = "bwrap --unshare-all --unshare-user --ro-bind / / --proc /proc /bin/true"
    result = subprocess.run(
        ("unshare", "--mount", "sh", "-c", f"{hide}; cd /; {user} {box}"), check=False
    )
    assert (result.returncode == 0) == starts


# --- the filter of system calls: the program is run here, by the rules of seccomp(2) --------------

COLUMNS = {name: machine.column for name, machine in MACHINES.items()}
machines = pytest.mark.parametrize("machine", sorted(MACHINES))


def judged(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """Run the program on one system call, as the kernel does."""
    filter_program = program(machine)
    assert filter_program is not None
    code = [
        struct.unpack_from("<HBBI", filter_program, at) for at in range(0, len(filter_program), 8)
    ]
    padded = (*arguments, *(0,) * (6 - len(arguments)))
    audit = MACHINES[machine].audit if audit is None else audit
    data = struct.pack("<IIQ6Q", number, audit, 0, *padded)
    at, word = 0, 0
    while True:
        operation, then, otherwise, value = code[at]
        at += 1
        match operation:
            case 0x20:
                [word] = struct.unpack_from("<I", data, value)
            case 0x15:
                at += then if word == value else otherwise
            case 0x35:
                at += then if word >= value else otherwise
            case 0x45:
                at += then if word & value else otherwise
            case 0x06:
                return value
            case _:
                pytest.fail(f"{operation:#x} is no instruction of ours")


@machines
def test_calls_that_only_attackers_need_are_denied(machine: str) -> None:
    """With any arguments."""
    for table, answer in ((DENIED, DENY), (ABSENT, MISSING)):
        for name, numbers in table.items():
            if (number := numbers[COLUMNS[machine]]) is not None:
                assert judged(machine, number, 2**64 - 1) == answer, name


@machines
def test_another_call_table_does_not_bypass_the_filter(machine: str) -> None:
    """32-bit programs, x32, another processor: killed. Calls newer than the tables are not
    allowed."""
    assert judged(machine, 0, audit=0x40000003) == KILL
    assert judged(machine, 0x40000000 | 250) == KILL
    assert judged(machine, NEWEST + 1) == MISSING
    assert program("mips") is None


SET_ID = st.sampled_from([0o4000, 0o2000, 0o6000])
HIGH = st.integers(0, 2**32 - 1).map(lambda high: high << 32)


@machines
@pytest.mark.parametrize(
    "name", ["chmod", "fchmod", "fchmodat", "fchmodat2", "mknod", "mknodat", "creat"]
)
@given(mode=st.integers(0, 0o1777), bits=SET_ID, high=HIGH)
def test_no_mode_gets_set_id_bits(machine: str, name: str, mode: int, bits: int, high: int) -> None:
    """With any other bits in the word, and above it, where the kernel does not look."""
    numbers, _ = LIMITED[name]
    number = numbers[COLUMNS[machine]]
    if number is None:
        return
    at = 2 if name in {"fchmodat", "fchmodat2", "mknodat"} else 1
    before = (0xFFFFFFFF,) * at
    assert judged(machine, number, *before, high | mode | bits) == DENY
    assert judged(machine, number, *before, high | mode) == ALLOW


@machines
@given(mode=st.integers(0, 0o1777), bits=SET_ID, flags=st.sampled_from([0x40, 0x410000, 0x42]))
def test_no_file_is_created_with_set_id_bits(
    machine: str, mode: int, bits: int, flags: int
) -> None:
    """Only if the call makes a file: otherwise the mode argument is arbitrary."""
    for name, at in (("open", 1), ("openat", 2)):
        number = LIMITED[name][0][COLUMNS[machine]]
        if number is not None:
            before = (7,) * at
            assert judged(machine, number, *before, flags, mode | bits) == DENY
            assert judged(machine, number, *before, flags, mode) == ALLOW
            assert judged(machine, number, *before, 0, mode | bits) == ALLOW


@machines
@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("mknodat", (0, 0, 0o020600), DENY),
        ("mknodat", (0, 0, 0o060600), DENY),
        ("mknodat", (0, 0, 0o010600), ALLOW),
        ("mknodat", (0, 0, 0o140600), ALLOW),
        ("clone", (0x10000000 | 17,), DENY),
        ("clone", (0x00020000 | 17,), DENY),
        ("clone", (17,), ALLOW),
        ("clone", (0x003D0F00,), ALLOW),  # a thread
        ("ioctl", (0, 0x5412), DENY),
        ("ioctl", (0, 0x541C), DENY),
        ("ioctl", (0, 1 << 32 | 0x5412), DENY),
        ("ioctl", (0, 0x5413), ALLOW),
        ("personality", (0x0040000,), DENY),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("socket", (1,), ALLOW),
        ("socket", (10,), ALLOW),
        ("socket", (40,), NO_FAMILY),
        ("socket", (38,), NO_FAMILY),
        ("fallocate", (0, 0), NO_ROOM_AHEAD),
        ("fallocate", (0, 1), NO_ROOM_AHEAD),
        ("fallocate", (0, 3), ALLOW),
    ],
)
def test_some_calls_are_denied_by_their_arguments(
    machine: str, name: str, arguments: tuple[int, ...], answer: int
) -> None:
    """Devices, namespaces, a terminal's input, another kind of process, sockets of unknown
    families."""
    number = LIMITED[name][0][COLUMNS[machine]]
    assert number is not None
    assert judged(machine, number, *arguments) == answer


@machines
@given(number=st.integers(0, NEWEST))
def test_everything_else_is_allowed(machine: str, number: int) -> None:
    """The filter does not affect ordinary programs."""
    tables = [*DENIED.values(), *ABSENT.values(), *(numbers for numbers, _ in LIMITED.values())]
    if number not in {numbers[COLUMNS[machine]] for numbers in tables}:
        assert judged(machine, number, 2**64 - 1, 2**64 - 1, 2**64 - 1) == ALLOW


@pytest.mark.needs("libseccomp")
def test_the_numbers_are_those_of_a_library_that_knows_them() -> None:
    """`libseccomp` knows every number except those newer than itself."""
    library = ctypes.CDLL(find_library("seccomp"))
    tables = {**DENIED, **ABSENT, **{name: numbers for name, (numbers, _) in LIMITED.items()}}
    for machine, column in COLUMNS.items():
        for name, numbers in tables.items():
            known = library.seccomp_syscall_resolve_name_arch(
                ctypes.c_uint32(MACHINES[machine].audit), name.encode()
            )
            if known >= 0:  # otherwise it does not exist there
                assert numbers[column] == known, (machine, name)
    assert errno.EPERM == DENY & 0xFFFF
