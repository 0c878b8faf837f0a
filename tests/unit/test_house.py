"""The rules of the house itself: its import contracts bite, its files are named, its doors light."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from zeroclaw.errors import Refused, ungrouped

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = [contract["name"] for contract in PYPROJECT["tool"]["importlinter"]["contracts"]]
PRODUCT = sorted([*ROOT.glob("zeroclaw/**/*.py"), *ROOT.glob("channels/**/*.py")])
WRITTEN = [*PRODUCT, *sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("deploy/**/*.py")])]

# Contract: the file and the line in it that break the contract.
BREACHES = {
    "rooms import downward": ("zeroclaw/errors.py", "import zeroclaw.daemon"),
    "the house does not know its channels": ("zeroclaw/daemon.py", "import channels.web"),
    "channels come in by the front door": ("channels/web/adapter.py", "import zeroclaw.redact"),
    "no channel imports another": ("channels/terminal/adapter.py", "import channels.web"),
    "no emulator knows its adapter": (
        "channels/telegram/emulator/http.py",
        "import channels.telegram.decode",
    ),
    "no adapter knows its emulator": (
        "channels/telegram/decode.py",
        "import channels.telegram.emulator",
    ),
    "no provider imports another": (
        "zeroclaw/providers/scripted.py",
        "import zeroclaw.providers.openai",
    ),
    "no tool imports another": ("zeroclaw/tools/shell.py", "import zeroclaw.tools.files"),
    "contracts do nothing": ("zeroclaw/channel.py", "import asyncio"),
    "pure rooms decide": ("zeroclaw/turn/machine.py", "import random"),
    "pure rooms open no files": ("zeroclaw/gate/policy.py", "import pathlib"),
    "one file each speaks http": ("zeroclaw/providers/openai/__init__.py", "import httpx"),
}
# The console's place: nothing below it knows it, it knows nothing above, what it shows is pure.
OF_THE_CONSOLE = [
    ("rooms import downward", "zeroclaw/inbound/context.py", "import zeroclaw.console.notifier"),
    ("rooms import downward", "zeroclaw/console/notifier.py", "import zeroclaw.daemon"),
    ("pure rooms decide", "zeroclaw/console/markup.py", "import asyncio"),
    ("pure rooms open no files", "zeroclaw/console/markup.py", "import pathlib"),
]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run the linter on a copy; it looks for packages in its working directory first."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


def copied_to(directory: Path) -> Path:
    for package in ("zeroclaw", "channels"):
        shutil.copytree(ROOT / package, directory / package)
    shutil.copy(ROOT / "pyproject.toml", directory)
    return directory


def test_every_import_contract_has_a_breach_that_proves_it() -> None:
    """A contract that nothing was seen to break is no contract."""
    assert list(BREACHES) == CONTRACTS


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the linter says of each contract in a copy of the tree that breaks them all."""
    tree = copied_to(tmp_path_factory.mktemp("breached"))
    for _, file, line in (*((name, *BREACHES[name]) for name in BREACHES), *OF_THE_CONSOLE):
        with (tree / file).open("a", encoding="utf-8") as breached:
            breached.write(f"\n{line}\n")
    linted = lint_imports(tree)
    assert linted.returncode == 1, linted.stdout
    _, _, broken = linted.stdout.partition("Broken contracts")
    titles = "|".join(map(re.escape, CONTRACTS))
    _, *parts = re.split(rf"^({titles})\n-+$", broken, flags=re.MULTILINE)
    return {
        name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contract", "file", "line"), [*((name, *BREACHES[name]) for name in BREACHES), *OF_THE_CONSOLE]
)
def test_an_import_contract_goes_red_when_it_is_broken(
    contract: str, file: str, line: str, complaints: dict[str, str]
) -> None:
    """One forbidden import breaks the contract that forbids it, which names that very line."""
    importer = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert f"{importer} -> {line.removeprefix('import ')} (l." in complaints[contract]


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_file_outside_the_layers_breaks_them(tmp_path: Path) -> None:
    """The list of layers is exhaustive."""
    tree = copied_to(tmp_path)
    (tree / "zeroclaw" / "sundry.py").write_text('"""Anything."""\n', encoding="utf-8")
    linted = lint_imports(tree)
    assert (linted.returncode, "zeroclaw.sundry" in linted.stdout) == (1, True), linted.stdout


def test_files_are_named_after_what_they_hold() -> None:
    """No drawer for things without a name."""
    banned = {"utils", "helpers", "common", "misc", "base", "core", "manager", "service", "handler"}
    parts = {part for path in WRITTEN for part in path.relative_to(ROOT).with_suffix("").parts}
    assert parts & banned == set()


def test_every_file_says_its_purpose_first() -> None:
    """A newcomer reads the first line of a file and knows what is in it."""
    mute = [
        relative(path)
        for path in PRODUCT
        if not re.match(r'(#.*\n)*r?"""[^"]', path.read_text(encoding="utf-8"))
    ]
    assert mute == []


def test_every_shipped_module_imports_absolutely_and_without_tricks() -> None:
    """A cycle that needs `TYPE_CHECKING` is a wrong layer."""
    tricks = re.compile(
        r"^from __future__ import annotations|\bTYPE_CHECKING\b|unittest\.mock", re.MULTILINE
    )
    this_file = Path(__file__)
    found = [
        relative(path)
        for path in WRITTEN
        if path != this_file and tricks.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_no_group_is_made_of_an_error_that_is_reported_in_one_line() -> None:
    """Python 3.11.2, Debian 12's, makes one of what `except*` raises; `errors.ungrouped` does not."""
    found = [
        f"{relative(path)}:{node.lineno}"
        for path in PRODUCT
        if "except*" in (source := path.read_text(encoding="utf-8"))
        for tried in ast.walk(ast.parse(source))
        if isinstance(tried, ast.TryStar)
        for handler in tried.handlers
        for node in ast.walk(handler)
        if isinstance(node, ast.Raise) and node.exc is not None
    ]
    assert found == []


def test_an_error_of_ours_is_raised_in_place_of_its_group() -> None:
    """One of the system's too; a group that holds anything else stays whole."""
    ours = Refused("no")
    with pytest.raises(Refused) as raised, ungrouped():
        raise BaseExceptionGroup("", [BaseExceptionGroup("", [ours])])
    assert raised.value is ours
    with pytest.raises(BrokenPipeError), ungrouped():
        raise BaseExceptionGroup("", [BrokenPipeError()])
    for more in (ValueError(), KeyboardInterrupt()):
        with pytest.raises(BaseExceptionGroup), ungrouped():
            raise BaseExceptionGroup("", [ours, more])
    with pytest.raises(BaseExceptionGroup), ungrouped():
        raise BaseExceptionGroup("", [ValueError()])


def test_no_group_is_repeated_possessively() -> None:
    """Python before 3.11.5 keeps half of the repeat that failed: a mark passed, a stream lost text."""
    repeated = re.compile(r"[^(]\)(?:[*+?]|\{+[0-9,]+\}+)\+")
    found = [
        f"{relative(path)}:{number}"
        for path in PRODUCT
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if repeated.search(line)
    ]
    assert found == []


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_top_level_holds_what_belongs_there() -> None:
    """What a test or a tool left in the working directory is not committed with the rest."""
    assert {path.relative_to(ROOT).parts[0] for path in tracked_files()} == {
        ".ci", ".gitignore", "LICENSE", "Makefile", "README.md", "channels", "config.example.toml",
        "deploy", "docs", "pyproject.toml", "tests", "zeroclaw",
    }  # fmt: skip


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    """What is in the repository works anywhere: no path of one machine, no index address."""
    banned = re.compile(
        rb"/work/(main|shared)|/root/|/home/[a-z]|/tmp/zc"
        rb"|(?:pypi|files\.pythonhosted|registry\.npmjs|deb\.debian)\.org|--(?:extra-)?index-url"
    )
    this_file = Path(__file__)
    found = [
        relative(path)
        for path in tracked_files()
        if path != this_file and banned.search(path.read_bytes())
    ]
    assert found == []


def modules_after(statement: str) -> set[str]:
    listed = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(listed.stdout.split())


HEAVY = {
    "telegram", "discord", "slack_bolt", "slack_sdk", "aiohttp", "aioimaplib", "aiosmtplib",
    "redis", "xllamacpp", "tokenizers", "starlette", "httpx",
}  # fmt: skip


def test_the_front_door_is_light() -> None:
    """Whoever imports the contracts pays for no platform SDK, client, server or event loop."""
    assert modules_after("import zeroclaw") & (HEAVY | {"pydantic", "asyncio"}) == set()


def test_the_command_line_starts_without_what_a_command_may_never_use() -> None:
    """`zeroclaw --help` imports no SDK, no web stack and no client."""
    assert modules_after("import zeroclaw.cli") & HEAVY == set()


def test_a_daemon_starts_without_the_page_that_its_operator_may_never_open() -> None:
    """The console is loaded by the first request for it; what tells it of changes is light."""
    loaded = modules_after("import zeroclaw.daemon")
    pages = {name for name in loaded if name.startswith("zeroclaw.console.")}
    assert (pages, "starlette" in loaded) == ({"zeroclaw.console.notifier"}, False)


def test_a_daemon_starts_without_what_only_some_calls_need() -> None:
    """A search in files, or a name that nothing has: each loads what it needs."""
    unused = {"re2", "difflib"}
    assert modules_after("import zeroclaw.daemon") & unused == set()


def test_listing_the_channels_imports_no_sdk() -> None:
    """A manifest names its adapter; it does not import it."""
    names = PYPROJECT["project"]["entry-points"]["zeroclaw.channels"].values()
    statement = "; ".join(f"import {name.partition(':')[0]}" for name in names)
    assert modules_after(statement) & HEAVY == set()


SDKS = {
    "telegram": set[str](),
    "discord": {"discord"},
    "slack": set[str](),  # Socket Mode has no signatures
    "email": {"aioimaplib", "aiosmtplib"},
    "web": set[str](),
    "terminal": set[str](),
}


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("name", SDKS)
def test_a_channel_that_is_on_loads_no_other_channels_sdk(name: str) -> None:
    """As the daemon loads it; in a process of its own, for here all of them are loaded already."""
    statement = (
        "from zeroclaw.daemon.config_check import ChannelPart; "
        f"from channels.{name} import MANIFEST; "
        f"ChannelPart(name={name!r}, manifest=MANIFEST, settings=None, secrets={{}}).load()"
    )
    every = {"slack_bolt", "slack_sdk"}.union(*SDKS.values())
    assert modules_after(statement) & every == SDKS[name]


def locked(lock: Path) -> dict[str, str]:
    """The versions of a lock file by normalised name."""
    pairs = re.findall(
        r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pairs}


def required(*, groups: tuple[str, ...]) -> list[Requirement]:
    project, extras = PYPROJECT["project"], PYPROJECT["project"]["optional-dependencies"]
    lines = [*project["dependencies"], *extras["local"]]
    lines += [line for group in groups for line in PYPROJECT["dependency-groups"][group]]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize(
    ("lock", "groups"),
    [("requirements.lock", ("build",)), ("requirements-dev.lock", ("build", "test", "lint"))],
)
def test_the_lock_files_fit_the_project(lock: str, groups: tuple[str, ...]) -> None:
    """Every requirement is locked at a version it allows; `make lock` renews a stale file."""
    versions = locked(ROOT / "deploy" / lock)
    stale = [
        str(requirement)
        for requirement in required(groups=groups)
        if not requirement.specifier.contains(
            versions.get(re.sub(r"[-_.]+", "-", requirement.name).lower(), "0"), prereleases=True
        )
    ]
    assert stale == []


def test_every_locked_package_is_checked_by_hash() -> None:
    """A package without a hash could be replaced on its way here."""
    text = (ROOT / "deploy" / "requirements-dev.lock").read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
    bare = [block.split()[0] for block in blocks if "==" in block and "--hash=sha256:" not in block]
    assert bare == []
