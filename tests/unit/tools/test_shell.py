"""The shell: what it promises the model, and what a command may try in the sandbox."""

import asyncio
import os
import secrets
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.fakes.plain_tool import Records, tool_context
from zeroclaw.config.model import ShellSettings
from zeroclaw.errors import ToolArgumentsInvalid, ToolFailed
from zeroclaw.host import processes, sandbox
from zeroclaw.host.masks import MAX_ENTRIES
from zeroclaw.host.processes import OutputCaps
from zeroclaw.host.quotas import MAX_SECRETS
from zeroclaw.host.sandbox import Broken, Limits, System
from zeroclaw.tool import Tool, ToolOutput, line_of
from zeroclaw.tools.shell import tools
from zeroclaw.value import replace

BROKEN = Broken(reason="no sandbox today")
SYSTEM = System(bwrap="/usr/bin/bwrap", prlimit="/usr/bin/prlimit", links=(), directories=())
SMALL = OutputCaps(head_bytes=12, tail_bytes=6, flood_bytes=100_000_000)


async def call(
    workspace: Path,
    command: str,
    *,
    timeout_s: float = 0,
    records: Records | None = None,
    network: bool = False,
    hidden: tuple[str, ...] = (),
    caps: OutputCaps | None = None,
    limits: Limits | None = None,
) -> ToolOutput:
    """Check and run in a real sandbox."""
    system = await asyncio.to_thread(sandbox.detect)
    assert isinstance(system, System)
    [shell] = tools(
        ShellSettings(network=network),
        system,
        limits or Limits(),
        hidden=tuple(workspace / name for name in hidden),
        caps=caps or OutputCaps(),
    )
    arguments = shell.check({"command": command, "timeout_s": timeout_s})
    return await shell.run(arguments, tool_context(workspace, records))


def unboxed(limits: Limits | None = None, caps: OutputCaps = SMALL) -> Tool:
    settings = ShellSettings(without_sandbox="ask")
    [shell] = tools(settings, BROKEN, limits or Limits(), caps=caps)
    return shell


# --- what it declares ----------------------------------------------------------------------------


def test_without_a_sandbox_there_is_no_shell() -> None:
    """Unless the settings say otherwise it isn't offered at all (design §6, Shell)."""
    assert tools(ShellSettings(), BROKEN, Limits()) == ()


@pytest.mark.parametrize(
    ("network", "effects", "resources"),
    [
        (False, {"exec", "read", "write"}, ("sandbox:workspace",)),
        (True, {"exec", "read", "write", "network"}, ("sandbox:workspace", "host:*")),
    ],
)
async def test_it_declares_what_the_sandbox_grants(
    network: bool, effects: set[str], resources: tuple[str, ...]
) -> None:
    """Its resources never depend on the text of a command."""
    [shell] = tools(ShellSettings(network=network), SYSTEM, Limits())
    arguments = shell.check({"command": "cat /etc/passwd > sandbox:other"})
    assert shell.spec.effects == effects
    assert await shell.resources(arguments, tool_context(Path("/w"))) == resources
    assert (shell.spec.risk, shell.spec.idempotent, shell.spec.execution) == (
        "high",
        False,
        "sequential",
    )


async def test_without_a_sandbox_every_call_needs_approval() -> None:
    """Undeclared effects and a resource of its own, so that no allowance for the other fits."""
    shell = unboxed()
    arguments = shell.check({"command": "true"})
    assert shell.spec.effects == frozenset()
    assert await shell.resources(arguments, tool_context(Path("/w"))) == ("sandbox:none",)
    assert "WITHOUT a sandbox" in line_of(shell, arguments, "en")


@pytest.mark.parametrize(
    ("arguments", "timeout_s"), [({}, 60.0), ({"timeout_s": 5}, 5.0), ({"timeout_s": 600}, 600.0)]
)
def test_the_timeout_is_filled_in(arguments: Mapping[str, object], timeout_s: float) -> None:
    """The frozen call says how long it may take."""
    [shell] = tools(ShellSettings(), SYSTEM, Limits())
    checked = shell.check({"command": "true", **arguments})
    assert checked == {"command": "true", "timeout_s": timeout_s}
    assert shell.spec.timeout_s > timeout_s


@pytest.mark.parametrize("timeout_s", [601, -1, float("nan"), float("inf")])
def test_a_timeout_beyond_the_cap_is_refused(timeout_s: float) -> None:
    """The model reads the bound, and so does who writes the configuration."""
    [shell] = tools(ShellSettings(), SYSTEM, Limits())
    with pytest.raises(ToolArgumentsInvalid, match="timeout_s: "):
        shell.check({"command": "true", "timeout_s": timeout_s})
    with pytest.raises(ValidationError):
        ShellSettings(timeout_s=timeout_s)


# --- what it answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("true", "exit code 0\n(no output)"),
        ("cat", "exit code 0\n(no output)"),
        ("echo a; echo b >&2; exit 3", "exit code 3\na\nb\n"),
        ("kill -KILL $$", "ended by signal 9\n(no output)"),
        ("exit 137", "exit code 137 (signal 9, perhaps a limit of the sandbox)\n(no output)"),
        ("exit 200", "exit code 200\n(no output)"),
        ("printf '\\000\\001'", "exit code 0\n[2 bytes of data, not text: 00 01]"),
        ("printf '\\033[31mred\\r\\n'", "exit code 0\nred\n"),
        ("printf 'a long li\\377ne'", "exit code 0\na long li\ufffdne\n[not UTF-8 in 1 place]"),
        (
            "printf 'abcdefghijkl and so on to the end'",
            "exit code 0\nabcdefghijkl\n[… 15 bytes left out …]\nhe end",
        ),
        (
            "printf '12345678901\\303\\251 and so on\\303\\251yzyzy'",
            "exit code 0\n12345678901\n[… 14 bytes left out …]\nyzyzy",
        ),
    ],
)
async def test_an_answer_is_the_exit_code_and_readable_output(
    workspace: Path, command: str, text: str
) -> None:
    """Both streams together; data described, colours dropped, the middle of much left out."""
    shell = unboxed()
    output = await shell.run(shell.check({"command": command}), tool_context(workspace))
    assert output == ToolOutput(text=text)


async def test_a_command_that_hangs_is_an_error_with_its_output(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output so far is not lost."""
    shell, pipe, loop = unboxed(), workspace / "pipe", asyncio.get_running_loop()
    now = loop.time
    os.mkfifo(pipe)
    arguments = shell.check({"command": f"echo so far; echo up > {pipe}; sleep 900"})
    async with asyncio.TaskGroup() as group:
        running = group.create_task(shell.run(arguments, tool_context(workspace)))
        await asyncio.to_thread(pipe.read_text)
        monkeypatch.setattr(loop, "time", lambda: now() + 60)
    text = "killed after 60 s, its time-out\nso far\n"
    assert running.result() == ToolOutput(text=text, is_error=True)


# --- what a command may try ----------------------------------------------------------------------

boxed = pytest.mark.needs("bwrap")


@boxed
async def test_a_command_works_in_its_workspace(workspace: Path) -> None:
    """It starts there, under one name everywhere, and what it writes stays."""
    output = await call(workspace, "pwd; echo hi > made; cat made; echo hi > /tmp/x && echo tmp")
    assert output == ToolOutput(text="exit code 0\n/workspace\nhi\ntmp\n")
    assert await asyncio.to_thread((workspace / "made").read_text) == "hi\n"


@boxed
async def test_nothing_of_the_machine_is_visible(workspace: Path) -> None:
    """No accounts, no home, no data directory, no other process, none of our environment."""
    data = workspace.parent / "outside"
    output = await call(
        workspace,
        f"cat /etc/passwd; ls {data} ../outside /root /home /var; ls /; ls /proc | grep -c '^[0-9]'"
        " ; env | sort",
    )
    text = output.text
    assert "hunter2" not in text
    assert "root:" not in text
    assert text.count("No such file or directory") == 6
    assert text.endswith(
        "HOME=/tmp\nLANG=C.UTF-8\nPATH=/usr/local/bin:/usr/bin:/bin\nPWD=/workspace\nTERM=dumb\n"
    )


@boxed
@pytest.mark.parametrize("place", ["/usr/x", "/x", "/dev/x", "/etc/alternatives/x", "/proc/x"])
async def test_nothing_outside_the_workspace_can_be_written(workspace: Path, place: str) -> None:
    """The system is read-only, and so is the empty root around it."""
    output = await call(workspace, f"touch {place} && echo written")
    assert "written" not in output.text


@boxed
async def test_the_network_is_out_of_reach(workspace: Path) -> None:
    """Not even this machine's own loopback, where the console listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        probe = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"
        alone = await call(workspace, f"bash -c '{probe}'")
        granted = await call(workspace, f"bash -c '{probe}'", network=True)
    assert ("reached" in alone.text, "reached" in granted.text) == (False, True)


@boxed
@pytest.mark.parametrize(
    "attempt",
    [
        "unshare -U true",
        "mount -t tmpfs none /workspace",
        "mount -o remount,rw /usr",
        "prlimit --nofile=100000 true",
        "chroot / true",
    ],
)
async def test_no_privilege_can_be_gained(workspace: Path, attempt: str) -> None:
    """No capabilities, no further namespaces, no higher limits."""
    output = await call(workspace, f"{attempt} && echo gained")
    assert "gained" not in output.text


HIDDEN = ("git/hooks", "notes", ".env", "private")


@boxed
@pytest.mark.parametrize(
    "attempt",
    [
        "echo x > git/hooks/new",
        "echo x > notes",
        "rm -rf git",
        "mv git away",
        "mv git/hooks git/away",
        "ln notes other && echo x > other",
        "cat .env private/key",
        "cp -a .env private other; cat other/key",
        "rm .env && echo x > .env",
    ],
)
async def test_protected_places_hold_against_a_command(workspace: Path, attempt: str) -> None:
    """What is masked stays unread and as it was; renaming a parent opens nothing."""
    await asyncio.to_thread(fill, workspace)
    output = await call(workspace, attempt, hidden=HIDDEN)
    assert "hunter2" not in output.text
    assert await asyncio.to_thread(contents, workspace) == (["old"], "old", "hunter2", "hunter2")


@boxed
async def test_a_link_where_a_protected_place_was_stops_every_command(workspace: Path) -> None:
    """Else an earlier command could have the next one shown what the link points at."""
    (workspace / "notes").symlink_to(workspace.parent / "outside")
    with pytest.raises(ToolFailed, match="`notes` is protected, but is a symbolic link"):
        await call(workspace, "cat notes/secret", hidden=HIDDEN)


@boxed
async def test_a_workspace_that_is_all_protected_runs_nothing(workspace: Path) -> None:
    """A data directory is never a workspace."""
    with pytest.raises(ToolFailed, match="the whole workspace is protected"):
        await call(workspace, "true", hidden=(".",))


@boxed
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "timeout_s", "text"),
    [
        ("trap '' TERM INT HUP; sleep 600", 0.3, "killed after 0.3 s, its time-out\n(no output)"),
        ("setsid nohup sleep 600 & echo up", 0, "exit code 0\nup\n"),
        (
            "for i in $(seq 40); do sleep 600 & done; wait",
            0.3,
            "killed after 0.3 s, its time-out\n(no output)",
        ),
        ("kill 0", 0, "ended by signal 15\n|exit code 143 (signal 15, "),
        (
            "yes | head -c 50000000",
            0,
            "exit code 0\ny\ny\ny\ny\ny\ny\n\n[… 49,999,982 bytes left out …]\ny\ny\ny\n",
        ),
        ("yes", 0, "killed after it had written more than 100,000,000 bytes\ny\ny\ny\ny\ny\ny\n"),
    ],
)
async def test_nothing_of_a_command_outlives_its_answer(
    workspace: Path, command: str, timeout_s: float, text: str
) -> None:
    """Hanging, hiding, forking, fighting, flooding: one clear answer, and all of it is gone."""
    records = Records()
    output = await call(workspace, command, timeout_s=timeout_s, records=records, caps=SMALL)
    assert output.text.startswith(tuple(text.split("|")))  # a root daemon's own part lives on
    assert [group is None for group in records.seen] == [False, True]
    assert await asyncio.to_thread(processes.living, records.pgid) == ()


@boxed
@pytest.mark.slow
async def test_a_cancelled_command_is_gone(workspace: Path) -> None:
    """Also what hid from its process group, because the sandbox dies as a whole."""
    records = Records()
    os.mkfifo(workspace / "pipe")
    mark = secrets.token_hex(8)
    command = f"setsid sh -c 'while :; do sleep 600; done' {mark} & echo up > pipe; wait"
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call(workspace, command, records=records))
        assert await asyncio.to_thread((workspace / "pipe").read_text) == "up\n"
        assert await asyncio.to_thread(is_running, mark)
        task.cancel()
    assert task.cancelled()
    assert not await asyncio.to_thread(is_running, mark)
    assert await asyncio.to_thread(processes.living, records.pgid) == ()


@boxed
@pytest.mark.parametrize(
    "greedy",
    [
        "head -c 300000000 /dev/zero > big",
        "head -c 100000000 /dev/zero > /tmp/big",
        "head -c 100000000 /dev/zero > /dev/shm/big",
        "dd if=/dev/zero of=/dev/null bs=3000000000 count=1",
    ],
)
async def test_limits_hold(workspace: Path, greedy: str) -> None:
    """Files, the temporary directories and memory are bounded."""
    output = await call(workspace, f"{greedy} && echo had it all")
    assert "had it all" not in output.text


@boxed
@pytest.mark.parametrize(
    "place",
    [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/vm/drop_caches",
        "/proc/sysrq-trigger",
        "/proc/self/oom_score_adj",
        "/proc/1/mem",
        "/proc/1/comm",
        "/proc/self/uid_map",
        "/dev/mem",
        "/dev/kmsg",
        "/sys/kernel/uevent_helper",
    ],
)
async def test_no_door_to_the_kernel_is_open(workspace: Path, place: str) -> None:
    """Opened for writing, and not a byte written; `core_pattern` would run a program as root."""
    output = await call(workspace, f"(: >> {place}) && echo opened")
    assert "opened" not in output.text


@boxed
async def test_no_setting_of_the_kernel_can_be_written_and_no_key_is_listed(
    workspace: Path,
) -> None:
    """There were 763 of the first kind for a command of root's daemon."""
    found = await call(workspace, "find /proc/sys /proc/self -writable -type f 2>&-; true")
    assert found.text == "exit code 0\n(no output)"
    keys = await call(workspace, "cat /proc/keys /proc/key-users 2>&-")
    assert keys.text == "exit code 1\n(no output)"


@boxed
async def test_a_command_runs_as_an_unused_user(workspace: Path) -> None:
    """Root's daemon runs it under an unused user id; both read and write the files of either."""
    before = workspace / "before"
    await asyncio.to_thread(before.write_text, "old", encoding="utf-8")
    await asyncio.to_thread(before.chmod, 0o600)
    output = await call(workspace, "echo new > made; echo new > before; echo out > /dev/stderr")
    assert output == ToolOutput(text="exit code 0\nout\n")
    owners = {(workspace / name).stat().st_uid for name in ("made", "before")}
    assert owners == {sandbox.UNPRIVILEGED if os.getuid() == 0 else os.getuid()}
    assert 0 not in owners
    assert await asyncio.to_thread(before.read_text) == "new\n"
    await asyncio.to_thread((workspace / "made").unlink)


@boxed
async def test_a_masked_place_keeps_its_owner(workspace: Path) -> None:
    """It may be a file that its own reader refuses from anybody else."""
    await asyncio.to_thread(fill, workspace)
    await call(workspace, "true", hidden=HIDDEN)
    assert (workspace / ".env").stat().st_uid == os.getuid()
    assert (workspace / "private" / "key").stat().st_uid == os.getuid()


SECRETS = (
    ".env",
    ".ENV.local",
    ".env.d/nested/value",
    "app/deep/.env",
    "app/.ssh/id_rsa",
    ".aws/credentials",
    "tls/server.Key",
    "certs.pem/one",
    "a b/\n/.netrc",
    "\udcff/.pgpass",
)


def keep_secrets(workspace: Path) -> None:
    """Secrets of a project, some names of them for what else there is, and what must stay open."""
    for name in SECRETS:
        place = workspace / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("hunter2", encoding="utf-8")
    (workspace / "by-a-link").symlink_to(".env")
    (workspace / "above").symlink_to("app/.ssh")
    for name in (".env.example", "keys.txt", "cacert.pem"):
        (workspace / name).write_text("open\n", encoding="utf-8")


@boxed
@pytest.mark.parametrize(
    "attempt",
    [
        "cat .env .ENV.local .env.d/nested/value app/deep/.env app/.ssh/id_rsa by-a-link above/*",
        "find . -type f -exec cat {} +; grep -r hunter .; tar c . | tr -cd 'a-z0-9'",
        "mv app away; cat away/deep/.env away/.ssh/id_rsa; mv away/deep app; cat app/.env",
        "mv app away; mkdir -p app/deep; cat app/deep/.env away/deep/.env; mv away/deep/.env x",
        "cp -a . /tmp/all; cat /tmp/all/.env; ln .env other; ln -f .env other; cat other",
        "mv .env plain; cat plain; mv .aws plain; cat plain/*; rm -rf .env .aws; cat .env .aws/*",
        "umount .env; mount --bind . /tmp; cat /tmp/.env; cat /proc/self/cwd/.env",
        "cat /proc/1/cwd/../workspace/.env; cat /proc/$$/cwd/.env; cd app; cat ../.env",
    ],
)
async def test_files_of_secrets_in_a_workspace_are_masked(workspace: Path, attempt: str) -> None:
    """No policy and no approval opens it, under any name that a command uses."""
    await asyncio.to_thread(keep_secrets, workspace)
    output = await call(workspace, f"{attempt}; echo ended")
    assert "ended\n" in output.text
    assert "hunter2" not in output.text
    later = await call(workspace, "find . -type f -exec cat {} +; echo ended")
    assert "ended\n" in later.text
    assert "hunter2" not in later.text
    paths = await asyncio.to_thread(lambda: [*workspace.rglob("*")])
    holding = [path for path in paths if path.is_file() and path.read_bytes() == b"hunter2"]
    assert len([path for path in holding if not path.is_symlink()]) >= len(SECRETS)


@boxed
async def test_other_files_stay_open_and_a_link_out_stops_no_command(workspace: Path) -> None:
    """A link of a secret's name leads to nothing outside; inside, to what has its own name."""
    await asyncio.to_thread(keep_secrets, workspace)
    outside = workspace.parent / "outside" / "secret"
    await asyncio.to_thread(outside.write_text, "hunter2", encoding="utf-8")
    (workspace / "x.key").symlink_to(outside)
    (workspace / "y.key").symlink_to("keys.txt")
    (workspace / "z.key").symlink_to(".")
    output = await call(workspace, "cat .env.example keys.txt cacert.pem y.key x.key")
    assert "open\nopen\nopen\nopen\n" in output.text
    assert "hunter2" not in output.text


@boxed
async def test_what_a_command_makes_is_its_own_until_it_ends(workspace: Path) -> None:
    """It knew what it wrote; the next one finds it closed."""
    made = await call(workspace, "mkdir app; echo made > app/.env; cat app/.env")
    assert made.text == "exit code 0\nmade\n"
    assert "made" not in (await call(workspace, "cat app/.env")).text


@boxed
async def test_a_secret_in_a_hidden_place_and_a_hidden_one_in_a_secret_hold(
    workspace: Path,
) -> None:
    """Mounts over mounts, in an order that starts."""
    await asyncio.to_thread(keep_secrets, workspace)
    hidden = ("app", "tls/server.Key", ".aws/credentials", ".env.d/nested")
    attempt = "cat app/deep/.env .aws/credentials .env.d/nested/value tls/server.Key; echo ended"
    output = await call(workspace, attempt, hidden=hidden)
    assert output.text.endswith("ended\n")
    assert "hunter2" not in output.text


@boxed
@pytest.mark.slow
async def test_more_secrets_than_can_be_masked_stop_every_command(workspace: Path) -> None:
    """As many as the bound are masked, one more is refused with the reason."""
    for number in range(MAX_SECRETS):
        (workspace / f"{number}.key").write_text("hunter2", encoding="utf-8")
    # Each mount of bubblewrap reads the table of those before it: seconds, on a busy machine a minute.
    output = await call(workspace, "cat *.key; echo ended", timeout_s=600)
    assert output.text.endswith("ended\n")
    assert "hunter2" not in output.text
    (workspace / "one.more.key").touch()
    with pytest.raises(ToolFailed, match="more than 1,000 places with names of secrets"):
        await call(workspace, "true")


@boxed
async def test_a_workspace_in_a_place_of_secrets_runs_nothing(workspace: Path) -> None:
    """Files there are closed as well."""
    inner = workspace / ".ssh" / "inner"
    await asyncio.to_thread(inner.mkdir, parents=True)
    with pytest.raises(ToolFailed, match="the whole workspace is protected"):
        await call(inner, "true")


PYTHON = "/usr/bin/python3"
needs_python = pytest.mark.skipif(not Path(PYTHON).exists(), reason="Debian's python3 is missing")


CAPABLE = "\x01\0\0\2" + "\1\0\0\0" * 4  # struct vfs_cap_data, linux/capability.h


def calls(number: int, *arguments: int | str) -> str:
    """A command that makes one system call and says how it went; numbers are of x86_64."""
    listed = ", ".join(
        repr(argument.encode() if isinstance(argument, str) else argument) for argument in arguments
    )
    return (
        f'{PYTHON} -c "import ctypes as c; l = c.CDLL(None, use_errno=True);'
        f" print('said', l.syscall({number}, {listed}), c.get_errno())\""
    )


@boxed
@needs_python
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are of x86_64")
@pytest.mark.parametrize(
    ("number", "arguments", "error"),
    [
        (250, (0, -3, 1), 1),  # keyctl: which session keyring
        (248, ("user", "a", "b", 1, -3), 1),  # add_key
        (249, ("user", "a", 0, -3), 1),  # request_key
        (101, (16, 1, 0, 0), 1),  # ptrace: attach to the first process
        (311, (1, 0, 0, 0, 0, 0), 1),  # process_vm_writev
        (321, (0, 0, 0), 1),  # bpf
        (425, (1, 0), 1),  # io_uring_setup
        (323, (0,), 1),  # userfaultfd
        (298, (0, 0, 0, 0, 0), 1),  # perf_event_open
        (272, (0x10000000,), 1),  # unshare: a user namespace
        (56, (0x10000011, 0, 0, 0, 0), 1),  # clone: likewise
        (435, (0, 0), 38),  # clone3
        (437, (0, 0, 0, 0), 38),  # openat2
        (308, (0, 0), 1),  # setns
        (165, ("none", "/tmp", "tmpfs", 0, 0), 1),  # mount
        (319, ("x", 0), 38),  # memfd_create
        (29, (0, 1_000_000_000, 0o1600), 38),  # shmget
        (64, (0, 32_000, 0o600), 38),  # semget: 2 MB of the kernel's memory
        (68, (0, 0o600), 38),  # msgget
        (206, (60_000, "12345678"), 38),  # io_setup: nearly all that the machine has
        (16, (0, 0x5412, "x"), 1),  # ioctl: TIOCSTI
        (41, (40, 1, 0), 97),  # socket: vsock
        (41, (38, 5, 0), 97),  # socket: crypto of the kernel
        (304, (0, 0, 0), 1),  # open_by_handle_at
        (90, ("/workspace", 0o4755), 1),  # chmod
        (85, ("/workspace/x", 0o4755), 1),  # creat
        (2, ("/workspace/x", 0x41, 0o6755), 1),  # open
        (133, ("/workspace/x", 0o104755, 0), 1),  # mknod: a file with setuid
        (133, ("/workspace/x", 0o020666, 0x103), 1),  # mknod: /dev/null
        (188, ("/workspace", "security.capability", CAPABLE, 20, 0), 1),  # setxattr
        (500, (), 38),  # a call of tomorrow
    ],
)
async def test_an_attackers_system_calls_are_denied(
    workspace: Path, number: int, arguments: tuple[int | str, ...], error: int
) -> None:
    """By the filter, before the kernel decides."""
    output = await call(workspace, calls(number, *arguments))
    assert output.text == f"exit code 0\nsaid -1 {error}\n"


@boxed
@pytest.mark.parametrize("mode", ["4755", "2755", "6777", "u+s", "g+s"])
async def test_no_file_with_its_owners_rights_reaches_this_machine(
    workspace: Path, mode: str
) -> None:
    """A root daemon's workspace would hold a way to become its owner."""
    ways = (
        f"cp /bin/true a; chmod {mode} a; install -m {mode} /bin/true b; mkdir -m {mode} c; "
        f"mknod d c 1 3; mkfifo -m {mode} e; (umask 0; cp --preserve=mode /usr/bin/su f); true"
    )
    await call(workspace, ways)
    made = {
        place.name: place.lstat().st_mode for place in await asyncio.to_thread(listed, workspace)
    }
    assert {"a", "f"} <= made.keys()
    for mode_made in made.values():
        assert not mode_made & 0o6000
        assert not stat.S_ISCHR(mode_made) | stat.S_ISBLK(mode_made)


@boxed
@needs_python
@pytest.mark.slow
async def test_at_most_64_processes_run_at_once(workspace: Path) -> None:
    """Threads count as well; for any user of the daemon."""
    bomb = "import os, threading, time\nn = 1\ntry:\n while os.fork(): n += 1\n time.sleep(9)\n"
    bomb += "except OSError: print(n)"
    output = await call(workspace, f"{PYTHON} -c '{bomb}'")
    assert output.text.startswith("exit code 0\n")
    assert 32 <= int(output.text.splitlines()[1]) <= 64


SMALL_LIMITS = Limits(memory_bytes=300_000_000, workspace_bytes=20_000_000)
SPREAD = (
    "import os, time\nfor _ in range(6): os.fork() or (x := b'x' * 90_000_000, time.sleep(20))\n"
)
# It takes room as long as it is open, and no walk finds it.
NAMELESS = "exec 3>x$n; rm x$n; head -c 8000000 /dev/zero >&3; sleep 20"
# What one writes stays when it ends, as another process still holds the piece.
LENT = (
    "import mmap, os, time\nfor _ in range(6):\n m = mmap.mmap(-1, 60_000_000)\n"
    " if not os.fork(): m.write(b'x' * 60_000_000); os._exit(0)\n os.wait()\n"
    " if not os.fork(): time.sleep(20)\n m.close()\n"
)


@boxed
@needs_python
@pytest.mark.slow
@pytest.mark.parametrize("program", [SPREAD, LENT])
async def test_memory_is_bounded_for_all_processes_together(workspace: Path, program: str) -> None:
    """Each stays below the bound; also what they share, which counts with none of them."""
    (workspace / "greedy.py").write_text(program + "time.sleep(20)", encoding="utf-8")
    output = await call(workspace, f"{PYTHON} greedy.py", limits=SMALL_LIMITS)
    assert output.is_error
    assert output.text.startswith(
        "killed because its processes together used more than 300,000,000 bytes of memory"
    )


@boxed
@pytest.mark.slow
async def test_a_hidden_place_does_not_count_against_a_command(workspace: Path) -> None:
    """A workspace may be a link to a home that also holds the data; each command was killed."""
    (workspace / "private").mkdir()
    (workspace / "private" / "store").write_bytes(b"x" * 30_000_000)
    output = await call(workspace, "sleep 0.5", hidden=HIDDEN, limits=SMALL_LIMITS)
    assert output == ToolOutput(text="exit code 0\n(no output)")


@boxed
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fill", "what"),
    [
        ("for n in $(seq 9); do head -c 4000000 /dev/zero > $n; done", "more than its 20,000,000"),
        (
            "mkdir d; head -c 15000000 /dev/zero > d/x; cp d/x d/y; chmod 0 d",
            "more than its 20,000,000",
        ),
        ("for n in $(seq 70); do mkdir d; cd d; done", "directories nested deeper than 64"),
        (f"for n in $(seq 4); do ({NAMELESS}) & done", "more than its 20,000,000"),
    ],
)
async def test_a_workspace_has_a_quota_while_a_command_runs(
    workspace: Path, fill: str, what: str
) -> None:
    """Spread over files, behind a locked door, or far down."""
    output = await call(workspace, f"{fill}; sleep 20", limits=SMALL_LIMITS)
    assert output.is_error
    assert output.text.startswith("killed because the workspace holds ")
    assert what in output.text


@boxed
@pytest.mark.slow
@pytest.mark.parametrize("locked", ["chmod 0 . ; sleep 0.5", "mkdir d; chmod 0 d . ; sleep 0.5"])
async def test_a_command_can_not_lock_its_workspace(workspace: Path, locked: str) -> None:
    """Neither the watch over it, nor the next command."""
    await call(workspace, locked)
    again = await call(workspace, "echo back > made; cat made")
    assert again.text == "exit code 0\nback\n"


@boxed
async def test_in_a_full_workspace_files_can_only_be_removed(workspace: Path) -> None:
    """So the next command makes room; holes take none."""
    await asyncio.to_thread((workspace / "big").write_bytes, b"x" * 30_000_000)
    full = await call(workspace, "echo x > new; echo after; cat new", limits=SMALL_LIMITS)
    assert "files could only be removed, as the workspace holds more than" in full.text
    removed = await call(workspace, "rm big; truncate -s 1G holes", limits=SMALL_LIMITS)
    assert "only be removed" in removed.text
    again = await call(workspace, "truncate -s 15M holes; cat new; echo x", limits=SMALL_LIMITS)
    assert again.text == "exit code 0\nx\n"


@boxed
async def test_room_is_not_taken_ahead(workspace: Path) -> None:
    """A file that is only reserved fills a disk between two looks; who needs room writes."""
    reserve = "fallocate -l 8M x; fallocate --posix -l 8M y; stat -c %b x; stat -c %s y"
    output = await call(workspace, reserve, limits=SMALL_LIMITS)
    assert "not supported" in output.text.lower()
    assert output.text.endswith("\n0\n8388608\n")


@boxed
async def test_no_file_gets_larger_than_what_the_workspace_has_left(workspace: Path) -> None:
    """The watch would see it too late."""
    await asyncio.to_thread((workspace / "big").write_bytes, b"x" * 8_000_000)
    fill = "head -c 90000000 /dev/zero > new; wc -c < new"
    more = await call(workspace, fill, limits=SMALL_LIMITS)
    assert 11_900_000 < int(more.text.splitlines()[-1]) <= 12_000_000


@boxed
async def test_a_large_file_may_be_written_within_where_little_is_left(workspace: Path) -> None:
    """A database in place, say: it takes no more room than it has."""
    await asyncio.to_thread((workspace / "big").write_bytes, b"x" * 15_000_000)
    within = "dd if=/dev/zero of=big bs=1M seek=10 count=1 conv=notrunc status=none && echo done"
    output = await call(workspace, within, limits=SMALL_LIMITS)
    assert output.text == "exit code 0\ndone\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("for n in $(seq 9); do head -c 4000000 /dev/zero > $n; done", "workspace holds more than"),
        ("for n in $(seq 30); do sleep 20 & done", "more than 20 of its processes ran at once"),
        ("for n in $(seq 30); do (sleep 20 &) done", "more than 20 of its processes ran at once"),
        (f"{PYTHON} greedy.py", "its processes together used more than 300,000,000 bytes"),
    ],
)
async def test_without_a_sandbox_a_command_is_watched_as_in_one(
    workspace: Path, command: str, reason: str
) -> None:
    """Its workspace, its processes, and their memory together."""
    (workspace / "greedy.py").write_text(SPREAD + "time.sleep(20)", encoding="utf-8")
    shell = unboxed(replace(SMALL_LIMITS, processes=20))
    arguments = shell.check({"command": f"{command}; sleep 20"})
    output = await shell.run(arguments, tool_context(workspace))
    assert output.is_error
    assert output.text.startswith("killed because ")
    assert reason in output.text


async def test_without_a_sandbox_a_full_workspace_can_only_be_emptied(workspace: Path) -> None:
    """As in one."""
    await asyncio.to_thread((workspace / "big").write_bytes, b"x" * 30_000_000)
    shell = unboxed(SMALL_LIMITS, OutputCaps())
    for command, word in (("echo x > new; cat new; rm big", "only be removed"), ("echo x", "x\n")):
        output = await shell.run(shell.check({"command": command}), tool_context(workspace))
        assert word in output.text
    assert (workspace / "new").read_bytes() == b""


def listed(workspace: Path) -> list[Path]:
    return list(workspace.iterdir())


def is_running(mark: str) -> bool:
    """Some process of this machine has the mark among its arguments."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended while we looked
            if mark.encode() in place.read_bytes():
                return True
    return False


def fill(workspace: Path) -> None:
    (workspace / "git" / "hooks").mkdir(parents=True)
    (workspace / "git" / "hooks" / "old").touch()
    (workspace / "notes").write_text("old", encoding="utf-8")
    (workspace / ".env").write_text("hunter2", encoding="utf-8")
    (workspace / "private").mkdir()
    (workspace / "private" / "key").write_text("hunter2", encoding="utf-8")


def contents(workspace: Path) -> tuple[list[str], str, str, str]:
    return (
        [place.name for place in (workspace / "git" / "hooks").iterdir()],
        (workspace / "notes").read_text(encoding="utf-8"),
        (workspace / ".env").read_text(encoding="utf-8"),
        (workspace / "private" / "key").read_text(encoding="utf-8"),
    )


# --- the folders of skills -----------------------------------------------------------------------

SCRIPT = (
    "import sys\nprint('high at', 6 + int(sys.argv[1]), open('/skills/tides/ports.md').read())\n"
)


def lay_skill(root: Path) -> Path:
    """A skill as people have it, with a script and a table."""
    folder = root / "skills" / "tides"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("text", encoding="utf-8")
    (folder / "ports.md").write_text("Kiel", encoding="utf-8")
    (folder / "scripts" / "high.py").write_text(SCRIPT, encoding="utf-8")
    run = folder / "scripts" / "run.sh"
    run.write_text('#!/bin/sh\ncd "$(dirname "$0")" && python3 high.py 1\n', encoding="utf-8")
    for place in (root, root / "skills", *(root / "skills").rglob("*")):
        place.chmod(
            0o755
        )  # a root daemon's commands run as another user, so our umask must not decide
    return folder


async def with_skill(workspace: Path, folder: Path, command: str) -> str:
    """Run a command of a conversation that has loaded the skill."""
    system = await asyncio.to_thread(sandbox.detect)
    assert isinstance(system, System)
    [shell] = tools(ShellSettings(), system, Limits())
    context = replace(tool_context(workspace), skills=(("tides", folder),))
    arguments = shell.check({"command": command})
    assert await shell.resources(arguments, context) == ("sandbox:workspace", "skill:tides")
    return (await shell.run(arguments, context)).text


@boxed
@pytest.mark.parametrize(
    "command", ["python3 /skills/tides/scripts/high.py 1", "/skills/tides/scripts/run.sh"]
)
async def test_a_script_of_a_loaded_skill_runs(
    workspace: Path, tmp_path: Path, command: str
) -> None:
    """Where its text says that it is; what it makes goes into the workspace."""
    folder = lay_skill(tmp_path)
    output = await with_skill(workspace, folder, f"{command} | tee said")
    assert output == "exit code 0\nhigh at 7 Kiel\n"
    assert (workspace / "said").read_text(encoding="utf-8") == "high at 7 Kiel\n"


@boxed
async def test_a_skill_that_was_not_loaded_is_not_there(workspace: Path, tmp_path: Path) -> None:
    """Nor is another one beside one that was."""
    lay_skill(tmp_path)
    assert "No such file" in (await call(workspace, "ls /skills")).text
    other = tmp_path / "skills" / "ports"
    other.mkdir()
    output = await with_skill(
        workspace, tmp_path / "skills" / "tides", "ls /skills /skills/tides/.."
    )
    assert output == "exit code 0\n/skills:\ntides\n\n/skills/tides/..:\ntides\n"


@boxed
@pytest.mark.parametrize(
    "attempt",
    [
        "echo x >/skills/tides/ports.md",
        "echo x >/skills/tides/new",
        "echo x >/skills/new",
        "rm -f /skills/tides/ports.md",
        "mv /skills/tides /skills/other",
        "mv /skills/tides/scripts /skills/tides/other",
        "chmod 777 /skills/tides/scripts/run.sh",
        "touch /skills/tides/ports.md",
        "mount -o remount,rw /skills/tides",
        "umount /skills/tides",
        "ln /skills/tides/ports.md ports && echo x >ports",
        "ln -s /skills/tides/ports.md ports && echo x >ports",
    ],
)
async def test_no_command_changes_a_skill(workspace: Path, tmp_path: Path, attempt: str) -> None:
    """It is the operator's word to the model."""
    folder = lay_skill(tmp_path)
    before = {path: (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in folder.rglob("*")}
    output = await with_skill(workspace, folder, attempt)
    assert not output.startswith("exit code 0")
    assert {
        path: (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in folder.rglob("*")
    } == before
    assert (folder / "ports.md").read_text(encoding="utf-8") == "Kiel"


@boxed
async def test_only_the_files_of_a_skills_folder_are_seen(workspace: Path, tmp_path: Path) -> None:
    """Links lead nowhere, hidden files are masked, and setuid bits are dropped."""
    folder = lay_skill(tmp_path)
    outside = tmp_path / "elsewhere"
    outside.write_text("outside", encoding="utf-8")
    (folder / "out").symlink_to(outside)
    (folder / "up").symlink_to("../..")
    (folder / ".env").write_text("hidden", encoding="utf-8")
    (folder / "scripts" / ".git").mkdir()
    (folder / "scripts" / ".git" / "config").write_text("hidden", encoding="utf-8")
    (folder / "scripts" / "tls.pem").write_text("hidden", encoding="utf-8")
    (folder / "id_rsa").symlink_to("scripts/tls.pem")
    (folder / "keyrings").mkdir()
    (folder / "keyrings" / "key").write_text("hidden", encoding="utf-8")
    os.mkfifo(folder / "pipe")
    (folder / "scripts" / "run.sh").chmod(0o6755)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "door"))
        server.listen()
        output = await with_skill(
            workspace,
            folder,
            "cd /skills/tides; cat out .env scripts/.git/config scripts/tls.pem id_rsa keyrings/key 2>&1;"
            " cat <pipe; ls up;"
            " python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"door\")'",
        )
    assert "outside" not in output.replace("out: No such", "")
    assert "hidden" not in output
    assert "skills\n" in output  # `up` is the sandbox's own root
    assert "Error" in output
    user = await with_skill(workspace, folder, "id -u; grep NoNewPrivs /proc/self/status")
    assert "NoNewPrivs:\t1" in user


def _becomes_a_link(folder: Path) -> None:
    folder.rename(folder.with_name("other"))
    folder.symlink_to("other")


SPOILT: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "an open file": (
        lambda folder: (folder / "ports.md").chmod(0o666),
        "can be written by every user",
    ),
    "an open directory": (
        lambda folder: (folder / "scripts").chmod(0o777),
        "can be written by every",
    ),
    "an open folder": (lambda folder: folder.chmod(0o777), "can be written by every user"),
    "a folder that is gone": (
        lambda folder: folder.rename(folder.with_name("gone")),
        "can't be read",
    ),
    "a folder that is a link": (_becomes_a_link, "became a symbolic link"),
    "a huge folder": (
        lambda folder: [(folder / str(number)).touch() for number in range(MAX_ENTRIES)],
        "holds more than 5,000 files",
    ),
}


@boxed
@pytest.mark.parametrize("spoilt", SPOILT)
async def test_a_skill_that_may_not_be_shown_is_left_out_and_named(
    workspace: Path, tmp_path: Path, spoilt: str
) -> None:
    """The command runs all the same: the skill is missing, and the output says why."""
    folder = lay_skill(tmp_path)
    spoil, reason = SPOILT[spoilt]
    spoil(folder)
    output = await with_skill(workspace, folder, "ls /skills/tides; echo done")
    assert output.startswith("exit code 0\n[`/skills/tides` is not there: the skill's folder ")
    assert reason in output
    assert output.endswith("done\n")


async def test_without_a_sandbox_no_folder_is_promised(workspace: Path, tmp_path: Path) -> None:
    shell = unboxed()
    context = replace(tool_context(workspace), skills=(("tides", lay_skill(tmp_path)),))
    arguments = shell.check({"command": "ls /skills"})
    assert await shell.resources(arguments, context) == ("sandbox:none",)
    assert "/skills/tides" not in (await shell.run(arguments, context)).text
