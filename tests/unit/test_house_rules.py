"""The rules that `tests/conftest.py` holds every test to: each is broken once and seen to bite."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]  # each looks at runs of pytest

TESTS = Path(__file__).parents[1]

BREACHES = {
    "a blocking call in the event loop": ("async def test_it(): zeroclaw.block()", "BlockingError"),
    "a task that outlives its test": (
        "async def test_it(): KEPT.append(asyncio.ensure_future(asyncio.sleep(60)))",
        "Task-",
    ),
    "a signal that stays blocked": (
        "def test_it(): signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})",
        "SIGUSR1",
    ),
    "a connection that leaves the machine": (
        "def test_it(): socket.create_connection(('192.0.2.1', 53))",
        "tests stay on this machine",
    ),
    "a requirement that is missing in CI": (
        "@pytest.mark.needs('nothing-has-this')\ndef test_it(): pass",
        "`nothing-has-this` is missing",
    ),
}

IMPORTS = "import asyncio, signal, socket\nimport pytest\nimport zeroclaw\nKEPT = []\n"
PRODUCT = "import time\ndef block(): time.sleep(0.001)\n"


@pytest.fixture
def small_project(tmp_path: Path) -> Path:
    """A project with the real conftest and settings, and a product that can block."""
    (tmp_path / "tests").mkdir()
    rules = (TESTS / "conftest.py").read_text(encoding="utf-8")
    missing = '"nothing-has-this": (lambda: False, "conjure it"),'
    (tmp_path / "tests" / "conftest.py").write_text(
        rules.replace('    "bwrap": (', f'    {missing}\n    "bwrap": ('), encoding="utf-8"
    )
    shutil.copy(TESTS.parent / "pyproject.toml", tmp_path)
    for package, source in (("zeroclaw", PRODUCT), ("channels", "")):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(source, encoding="utf-8")
    return tmp_path


def run_pytest(
    project: Path, tests: list[str], *more: str, ci: str
) -> subprocess.CompletedProcess[str]:
    """Run each test from a file of its own."""
    for number, test in enumerate(tests):
        file = project / "tests" / f"test_{number}.py"
        file.write_text(IMPORTS + test + "\n", encoding="utf-8")
    # the copy stands before the installed checkout on the path
    environment = os.environ | {"CI": ci, "PYTHONPATH": str(project)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *more]
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def test_a_house_rule_bites(small_project: Path) -> None:
    """A test that breaks a rule of the house fails and says which; one run breaks them all."""
    done = run_pytest(small_project, [test for test, _ in BREACHES.values()], ci="true")
    summary = done.stdout.partition("short test summary")[2]
    lines = dict(
        re.findall(r"^(?:FAILED|ERROR) tests/test_(\d).py([^\f]*?)(?=^\S)", summary, re.MULTILINE)
    )
    deaf = [
        breach
        for number, (breach, (_, complaint)) in enumerate(BREACHES.items())
        if complaint not in lines.get(str(number), "")
    ]
    assert (done.returncode, deaf) == (1, []), done.stdout


def test_a_missing_requirement_skips_with_its_remedy_on_a_laptop(small_project: Path) -> None:
    """Outside CI a test whose program is missing says how to get it, and fails nothing."""
    test, _ = BREACHES["a requirement that is missing in CI"]
    done = run_pytest(small_project, [test], ci="")
    assert (done.returncode, "conjure it" in done.stdout) == (0, True)


LENGTHS = [
    "def test_it(): pass",
    "@pytest.mark.long('searches')\ndef test_it(): pass",
    "@pytest.mark.search\ndef test_it(): pass",
    "from hypothesis import given, strategies as st\n@given(st.none())\ndef test_it(none): pass",
    "from hypothesis.stateful import RuleBasedStateMachine, rule\n"
    "class M(RuleBasedStateMachine):\n"
    "    @rule()\n"
    "    def go(self): pass\n"
    "TestIt = M.TestCase",
]


def chosen(project: Path, *long: str) -> list[str]:
    """Return the numbers of the tests that one run of pytest takes."""
    done = run_pytest(project, LENGTHS, "--collect-only", *long, ci="")
    return re.findall(r"^tests/test_(\d)\.py::", done.stdout, re.MULTILINE)


def test_long_tests_run_only_on_request(small_project: Path) -> None:
    """Properties run each time, and once more among the long searches, all or a share of them."""
    assert sorted(chosen(small_project)) == ["0", "2", "3", "4"]
    assert sorted(chosen(small_project, "--long=all")) == ["1", "2", "3", "4"]
    shares = [chosen(small_project, f"--long={share}/2") for share in range(2)]
    assert sorted(shares[0] + shares[1]) == ["1", "2", "3", "4"]
