"""What the daemon is made of, and every fault of it at once."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.house_parts import Facts
from tests.fakes.installed import install
from tests.fakes.manual_clock import ManualClock
from tests.unit.daemon.test_life import start_in
from zeroclaw.channel import ChannelContext, TranscriptItem
from zeroclaw.config import parse
from zeroclaw.daemon.parts import Openers, check, open_parts
from zeroclaw.envelope import Address
from zeroclaw.errors import ConfigError

MANIFEST = "from zeroclaw import ChannelManifest\n"


def faults_of(text: str, environment: dict[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        check(parse(text), environment or {})
    return caught.value.faults


def test_every_fault_is_told_at_once() -> None:
    """Each with its key path and what is allowed (P10)."""
    faults = faults_of(
        'provider = {kind = "nope", api_key = {env = "MISSING"}}\n'
        "[channels.terminal]\nunknown = 1\n"
        '[channels.pigeon]\n[[policy.statement]]\nid = "x"\n'
    )
    paths = [fault.partition(":")[0] for fault in faults]
    assert paths[:2] == ["channels.terminal.unknown", "channels.pigeon.kind"]
    assert paths[-2:] == ["provider.api_key", "provider.kind"]
    assert any(path.startswith("policy.statement") for path in paths)


def test_a_channel_that_is_switched_off_is_checked_and_not_made() -> None:
    """Its keys have to be right all the same."""
    checked = check(parse("[channels.terminal]\nenabled = false\n[channels.web]\n"), {})
    assert [part.name for part in checked.channels] == ["web"]
    assert faults_of("[channels.terminal]\nenabled = false\nunknown = 1\n")


def test_a_secret_is_known_to_the_redactor() -> None:
    """Under its key path, and never in a `repr` (P8)."""
    text = 'provider = {kind = "local", api_key = {env = "THE_WORD"}}\n'
    checked = check(parse(text), {"THE_WORD": "open sesame, please"})
    assert checked.secrets == {"provider.api_key": "open sesame, please"}
    assert "sesame" not in checked.redactor.redact("it is open sesame, please.")
    assert "sesame" not in repr(checked)


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("MANIFEST = 7\n", "channels.pigeon: its entry point is no channel manifest"),
        ("raise RuntimeError\n", "channels.pigeon: `pigeon` is installed but can't be loaded"),
        (
            MANIFEST + 'MANIFEST = ChannelManifest(kind="pigeon", adapter="", settings="x:y")\n',
            "channels.pigeon: `x:y` can't be loaded",
        ),
        (
            MANIFEST
            + 'MANIFEST = ChannelManifest(kind="pigeon", adapter="", settings="pathlib:Path")\n',
            "channels.pigeon: `pathlib:Path` is no pydantic model",
        ),
    ],
)
def test_a_channel_that_is_installed_wrongly_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, fault: str
) -> None:
    """With what is wrong about it (P10)."""
    name = f"pigeon_{abs(hash(code))}"
    (tmp_path / f"{name}.py").write_text(code)
    install(tmp_path, monkeypatch, f"[zeroclaw.channels]\npigeon = {name}:MANIFEST\n")
    faults = faults_of("[channels.pigeon]\n")
    assert faults[0].startswith(fault)


async def test_tools_that_others_bring_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside those that come along."""
    (tmp_path / "brought_tools.py").write_text(
        "from tests.fakes.plain_tool import LOOK, PlainTool\n"
        "def tools():\n    return (PlainTool(LOOK),)\n"
    )
    install(tmp_path, monkeypatch, "[zeroclaw.tools]\nbrought = brought_tools:tools\n")
    async with AsyncExitStack() as stack:
        parts = await open_parts(start_in(tmp_path), Openers(), stack)
        assert "look" in parts.tools
        assert "read_file" in parts.tools or len(parts.tools) > 1


async def test_a_tool_that_cannot_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, and no traceback of a stranger's code (P10)."""
    (tmp_path / "broken_tools.py").write_text("def tools():\n    raise RuntimeError('x')\n")
    install(tmp_path, monkeypatch, "[zeroclaw.tools]\nbroken = broken_tools:tools\n")
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigError, match=r"tools\.broken: `broken` can't be opened"):
            await open_parts(start_in(tmp_path), Openers(), stack)


async def test_a_provider_that_cannot_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own words when it has some (P10)."""
    start = start_in(tmp_path)
    (tmp_path / "script.toml").write_text("this is no script")
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigError, match="script"):
            await open_parts(start, Openers(), stack)


async def test_a_page_needs_a_listener(tmp_path: Path) -> None:
    """And only a page does; a fresh login is handed out for each person who asks."""
    start = start_in(tmp_path, "listener = {port = 0}\n[channels.web]\n")
    async with AsyncExitStack() as stack:
        parts = await open_parts(start, Openers(), stack)
        assert parts.listener is not None
    async with AsyncExitStack() as stack:
        parts = await open_parts(start_in(tmp_path), Openers(), stack)
        assert parts.listener is None
        assert parts.shell_note == ""


def test_an_adapter_is_imported_when_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing then is a fault of that channel alone (P9)."""
    (tmp_path / "stork.py").write_text(
        MANIFEST
        + "MANIFEST = ChannelManifest(\n"
        + '    kind="stork", adapter="stork:nowhere",\n'
        + '    settings="channels.terminal:TerminalSettings",\n)\n'
    )
    install(tmp_path, monkeypatch, "[zeroclaw.channels]\nstork = stork:MANIFEST\n")
    [part] = check(parse("[channels.stork]\n"), {}).channels
    context = ChannelContext(
        name="stork",
        settings=part.settings,
        secrets={},
        clock=ManualClock(),
        mount=NoDoors(),
        log=Facts(),
        positions={},
        transcript=nothing,
    )
    with pytest.raises(ConfigError, match=r"channels\.stork: `stork:nowhere` can't be loaded"):
        part.make(context)


class NoDoors:
    """A mount that no test comes to."""

    def web(self, prefix: str, application: object) -> str:
        return prefix

    def stream(self, name: str, serve: object) -> None:
        return None


async def nothing(_address: Address, _after: str) -> tuple[TranscriptItem, ...]:
    return ()


async def test_the_configuration_itself_is_out_of_every_tools_reach(tmp_path: Path) -> None:
    """As the data directory is; the workspaces are not (S3-23)."""
    start = start_in(tmp_path)
    config = tmp_path / "config.toml"
    config.write_text("")
    start = replace(start, places=replace(start.places, config=config))
    async with AsyncExitStack() as stack:
        parts = await open_parts(start, Openers(), stack)
        assert parts.protected.closed == (str(start.places.data), str(config))
        assert parts.protected.open == (str(start.places.workspaces),)


async def test_a_tool_that_is_switched_off_is_not_there(tmp_path: Path) -> None:
    """Nothing is left when all are off."""
    off = start_in(tmp_path).config.tools.files.model_copy(update={"enabled": False})
    start = start_in(tmp_path)
    tools = start.config.tools.model_copy(update={"files": off})
    start = replace(start, config=start.config.model_copy(update={"tools": tools}))
    async with AsyncExitStack() as stack:
        assert (await open_parts(start, Openers(), stack)).tools == {}
