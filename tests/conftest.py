"""The house rules that hold for every test.

Nothing blocks the event loop, no task outlives its test, no socket leaves this machine, and a test
says what it needs: `@pytest.mark.needs("bwrap")` skips it with the reason where that is missing,
and fails it in CI, where nothing may be missing.
"""

import asyncio
import gc
import inspect
import ipaddress
import os
import shutil
import signal
import socket
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path

import pytest
import pytest_asyncio
from blockbuster import blockbuster_ctx
from coverage import Coverage
from hypothesis import HealthCheck, settings

IN_CI = os.environ.get("CI") == "true"
SWITCH_S = sys.getswitchinterval()

# Hypothesis: 100 examples find 9 of 10 planted faults, 1,000 find 10 of 10 (measured 2026-11). The
# gate takes 100; the long searches take 1,000, of which every CI run does a share.
EXAMPLES = {"quick": 25, "check": 100, "long": 1000}
# Of one test that plays many examples, or real processes; a loaded machine must not fail it.
LONG_TIMEOUT_S = 600
LONGEST_TIMEOUT_S = 3600  # among the long searches

for _profile, _examples in EXAMPLES.items():
    settings.register_profile(
        _profile,
        max_examples=_examples,
        deadline=None,
        print_blob=IN_CI,
        suppress_health_check=[HealthCheck.too_slow],  # says how busy the machine is
    )
settings.load_profile("check")


# --- which tests run -----------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long",
        metavar="all|I/N",
        default="",
        help="the long searches and nothing else: all of them, or share I of N",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--long"):
        settings.load_profile("long")


def is_search(item: pytest.Item) -> bool:
    """Whether a test looks for a failure, and looks longer the more examples it is given."""
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return is_property or item.get_closest_marker("search") is not None


def is_chosen(item: pytest.Item, long: str) -> bool:
    """Whether a test belongs to this run.

    Without `--long` that is every test that is not marked `long`. With it these are, and the
    searches once more, with many examples. A share is drawn by the test's name, so that a test
    stays in its own when others come and go.
    """
    is_long = item.get_closest_marker("long") is not None
    if not long:
        return not is_long
    if long == "all":
        return is_long or is_search(item)
    share, _, shares = long.partition("/")
    mine = zlib.crc32(item.nodeid.encode()) % int(shares) == int(share)
    return mine and (is_long or is_search(item))


# --- what a test needs ---------------------------------------------------------------------------


def model_file() -> Path:
    """Where `deploy/fetch_model.py` keeps the small chat model."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "zeroclaw" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def is_free(port: int) -> bool:
    """Whether a daemon could listen on a loopback port."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


# Each name, how its presence is seen, and how to get it.
REQUIREMENTS: dict[str, tuple[Callable[[], bool], str]] = {
    "attachments": (
        lambda: find_spec("pypdf") is not None and find_spec("PIL") is not None,
        "install the extra `attachments`",
    ),
    "bwrap": (lambda: shutil.which("bwrap") is not None, "apt-get install bubblewrap"),
    "chromium": (
        lambda: shutil.which("chromium-headless-shell") is not None,
        "apt-get install chromium-headless-shell",
    ),
    "debootstrap": (lambda: shutil.which("debootstrap") is not None, "apt-get install debootstrap"),
    "default port": (lambda: is_free(8420), "end what listens on 127.0.0.1:8420"),
    "dovecot": (
        lambda: Path("/usr/lib/dovecot/lmtp").exists() and os.geteuid() == 0,
        "apt-get install dovecot-imapd dovecot-lmtpd, and run as root on a machine made for tests",
    ),
    "emulate": (
        (Path(__file__).parent.parent / "channels/slack/emulator/node_modules/emulate").is_dir,
        "sh deploy/setup.sh dev",
    ),
    "git": (lambda: shutil.which("git") is not None, "apt-get install git"),
    "ipv6": (
        lambda: (
            Path("/proc/net/if_inet6").exists() and Path("/proc/net/if_inet6").read_text() != ""
        ),
        "give the loopback interface ::1; containers often have none",
    ),
    "keyring": (
        lambda: os.uname().machine in {"x86_64", "aarch64"} and Path("/proc/keys").exists(),
        "run the tests on a kernel with keyrings, on x86_64 or aarch64",
    ),
    "libseccomp": (lambda: find_library("seccomp") is not None, "apt-get install libseccomp2"),
    "llama": (lambda: find_spec("xllamacpp") is not None, "install the extra `local`"),
    "model": (lambda: model_file().is_file(), "python deploy/fetch_model.py"),
    "openssl": (lambda: shutil.which("openssl") is not None, "apt-get install openssl"),
    "postfix": (
        lambda: Path("/usr/sbin/postfix").exists() and os.geteuid() == 0,
        "apt-get install postfix, and run as root on a machine made for tests",
    ),
    "root": (lambda: os.geteuid() == 0, "run the tests as root, on a machine made for tests"),
    "tokenizers": (lambda: find_spec("tokenizers") is not None, "install the extra `tokenizer`"),
    "unshare": (lambda: shutil.which("unshare") is not None, "apt-get install util-linux"),
    "platform": (
        lambda: find_spec("zeroclaw_test_platform") is not None,
        "pip install -e tests/emulators/platform",
    ),
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            present, remedy = REQUIREMENTS[name]
            if not present():
                report = pytest.fail if IN_CI else pytest.skip
                report(f"`{name}` is missing: {remedy}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Leave out of what coverage measures, on 3.11 five times slower, all that repeats itself."""
    repeats = is_search(item) or item.get_closest_marker("unmeasured") is not None
    measured = Coverage.current() if repeats else None
    if measured is None:
        return (yield)
    measured.stop()
    of_programs = os.environ.pop("COVERAGE_PROCESS_CONFIG", "")
    try:
        return (yield)
    finally:
        os.environ |= {"COVERAGE_PROCESS_CONFIG": of_programs} if of_programs else {}
        measured.start()


@pytest.fixture(scope="session")
def small_model() -> Path:
    """The file of the small chat model; its test is marked `needs("llama", "model")`."""
    return model_file()


# --- what no test does ---------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    """A blocking call of the product inside an event loop raises `BlockingError` there.

    For all tests at once: to begin it takes longer than many a test.
    """
    with blockbuster_ctx(["zeroclaw", "channels"]) as watched:
        # Coverage's own, which a line meets whose thread runs beside another thread of ours.
        watched.functions["threading.Lock.acquire"].can_block_in(
            "coverage/collector.py", "lock_data"
        )
        # What takes few steps takes less than the way to a thread.
        for name in ("sqlite3.Connection.execute", "sqlite3.Cursor.fetchall"):
            watched.functions[name].can_block_in("stores/sqlite/reader.py", "read_fast")
        for name in ("os.access", "os.mkdir", "os.path.abspath", "os.readlink", "os.stat"):
            watched.functions[name].can_block_in("host/executors.py", "run_inline")
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """After a test no signal is blocked, garbage is collected, and threads switch as before.

    Else every program that a later test starts is deaf to that signal.
    """
    result = yield
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    assert (blocked, gc.isenabled(), sys.getswitchinterval()) == (set(), True, SWITCH_S)
    return result


@pytest.fixture
def no_leaked_tasks(_function_scoped_runner: asyncio.Runner) -> Iterator[None]:
    """Every task that a test started has ended when the test ends.

    It runs nothing in the loop of a test that left none, for that costs more than many a test.
    """
    yield
    if asyncio.all_tasks(_function_scoped_runner.get_loop()):
        _function_scoped_runner.run(_end_tasks(but=set()))


@pytest_asyncio.fixture(loop_scope="session")
async def no_leaked_tasks_in_a_browser(browser: object) -> AsyncIterator[None]:
    """The same for a test in the loop of the browser, whose own tasks have begun and go on."""
    before = asyncio.all_tasks()
    yield
    await _end_tasks(but=before)


async def _end_tasks(*, but: set[asyncio.Task[object]]) -> None:
    """Fail if another task than these still runs, once what was ready to run has run."""
    leaked = asyncio.all_tasks() - but - {asyncio.current_task()}
    for task in leaked:
        task.cancel()  # or it would still run beside the next test of its loop
    if leaked:
        await asyncio.wait(leaked)
    assert [task.get_name() for task in leaked] == []


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[object]:
    """The browser of all tests of this process; each opens its own contexts and `browsing` closes them.

    What a test needs it starts in its body, but not this: the browser and its driver take longer to
    start than most tests take. They belong to one event loop, so each test with this fixture runs in it.
    """
    from tests.journeys.browsing import open_browser

    async with open_browser() as opened:
        yield opened


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests; give the leak check to every async one, and time to those that take it.

    The leak check comes before the other fixtures of a test, so that it looks last.
    """
    long = str(config.getoption("--long"))
    left = [item for item in items if not is_chosen(item, long)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if is_chosen(item, long)]
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if "browser" in item.fixturenames:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            _check_first(item, "no_leaked_tasks_in_a_browser")
        elif inspect.iscoroutinefunction(item.obj):
            _check_first(item, "no_leaked_tasks")
        takes_time = any(item.get_closest_marker(name) for name in ("slow", "long"))
        if takes_time or is_search(item):
            limit_s = LONGEST_TIMEOUT_S if long else LONG_TIMEOUT_S
            item.add_marker(pytest.mark.timeout(limit_s))  # behind a limit of its own


def _check_first(item: pytest.Function, fixture: str) -> None:
    if fixture not in item.fixturenames:  # all cases of a parametrised test share this list
        item.fixturenames.insert(0, fixture)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while thousands of tests are made, nor among them ever after."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _loopback_only(connect: Callable[..., object]) -> Callable[..., object]:
    """Let loopback and unix sockets pass; a host name other than localhost resolves nowhere."""

    def guarded(self: socket.socket, address: tuple[str, int] | str | bytes, /) -> object:
        if isinstance(address, tuple) and address[0] != "localhost":
            host = address[0].partition("%")[0]
            if not ipaddress.ip_address(host).is_loopback:
                message = f"tests stay on this machine, but this one connects to {host}"
                raise PermissionError(message)
        return connect(self, address)

    return guarded


# For the whole test process, so that a fixture cannot come too late.
for _name in ("connect", "connect_ex"):
    setattr(socket.socket, _name, _loopback_only(getattr(socket.socket, _name)))


# --- what a test has to tell ---------------------------------------------------------------------


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded as `told`: the seed of random ones, and what they came to."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    recorded = [
        str(value) for report in reports for name, value in report.user_properties if name == "told"
    ]
    if recorded:
        terminalreporter.section("told")
        for line in sorted(recorded):
            terminalreporter.write_line(line)
