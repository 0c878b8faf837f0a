"""The child process of the local provider: its life, its death, and the errors without it."""

import asyncio
import errno
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from struct import pack

import pytest

from tests.contract.provider_implementations import ask, local_provider
from tests.emulators.gguf_files import text
from tests.unit.providers.contexts import context
from zeroclaw.config.model import ProviderSettings
from zeroclaw.errors import ProviderUnreachable, ProviderUnusable, StreamBroken
from zeroclaw.provider import Finished, StreamEvent
from zeroclaw.providers.local import LocalProvider, open_provider

SHORT = ask("Say hello.", bound=4)
PARENT = """
import asyncio, pathlib, sys
from tests.contract.provider_implementations import local_provider

async def main():
    provider = local_provider(pathlib.Path(sys.argv[1]))
    await provider.start()
    print(provider.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def play(provider: LocalProvider) -> list[StreamEvent]:
    async with aclosing(provider.stream(SHORT)) as events:
        return [event async for event in events]


async def to_the_end(events: AsyncGenerator[StreamEvent, None]) -> None:
    async for _ in events:
        pass


async def death_of(pid: int) -> None:
    """Wait until a process, not necessarily our child, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def shown_to_others(pid: int) -> tuple[bytes, bytes]:
    """The arguments and the variables of a process."""
    process = Path(f"/proc/{pid}")
    return (process / "cmdline").read_bytes(), (process / "environ").read_bytes()


def pid_of(provider: LocalProvider) -> int:
    assert provider.pid is not None
    return provider.pid


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.needs("llama", "model")
async def test_a_child_killed_in_the_middle_breaks_that_answer_only(small_model: Path) -> None:
    """The next request starts another child."""
    provider = local_provider(small_model)
    await provider.start()
    first = pid_of(provider)
    async with aclosing(provider.stream(ask("Count to a thousand.", bound=1000))) as events:
        await anext(events)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(StreamBroken):
            await to_the_end(events)
    assert isinstance((await play(provider))[-1], Finished)
    assert pid_of(provider) != first
    await provider.aclose()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.needs("llama", "model")
async def test_a_child_that_died_while_idle_is_replaced(small_model: Path) -> None:
    """And closing ends it, also the one of a request that came after a close."""
    provider = local_provider(small_model)
    await provider.start()
    first = pid_of(provider)
    os.kill(first, signal.SIGKILL)
    await death_of(first)
    assert isinstance((await play(provider))[-1], Finished)
    second = pid_of(provider)
    await provider.aclose()
    assert provider.pid is None
    assert isinstance((await play(provider))[-1], Finished)
    assert len({first, second, pid_of(provider)}) == 3
    await provider.aclose()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.needs("llama", "model")
async def test_the_child_knows_no_secret_and_ends_with_a_killed_parent(small_model: Path) -> None:
    """However the daemon ends, no model server stays behind; others can't read its key."""
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PARENT,
        str(small_model),
        stdout=PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd(), "SOME_TOKEN": "a secret"},  # noqa: PTH109
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    arguments, variables = shown_to_others(child)
    assert b"child.py" in arguments
    assert b"SOME_TOKEN" not in variables
    assert b"OMP_WAIT_POLICY=PASSIVE" in variables  # else a busy machine has a tenth of its speed
    parent.kill()
    await parent.wait()
    await death_of(child)


@pytest.mark.needs("llama")
async def test_a_missing_model_is_reported_with_what_to_do(tmp_path: Path) -> None:
    """One line, before any process is started."""
    provider = open_provider(ProviderSettings(), context(tmp_path))
    with pytest.raises(ProviderUnusable) as caught:
        await play(provider)
    assert str(caught.value).startswith(f"no model at `{tmp_path}/SmolLM2")
    assert "deploy/fetch_model.py" in str(caught.value)
    assert provider.pid is None


@pytest.mark.needs("llama")
async def test_a_file_that_is_no_model_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"hello")
    provider = local_provider(tmp_path / "a.gguf")
    with pytest.raises(ProviderUnusable, match="is not a GGUF model"):
        await provider.start()


@pytest.mark.needs("llama")
async def test_a_process_that_can_not_be_started_is_no_fault_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of descriptors or processes, another try may succeed."""

    async def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    (tmp_path / "a.gguf").write_bytes(b"GGUF and nothing more")
    provider = local_provider(tmp_path / "a.gguf")
    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    with pytest.raises(ProviderUnreachable, match="for `a`: resource temporarily unavailable"):
        await play(provider)


@pytest.mark.slow
@pytest.mark.needs("llama")
async def test_a_model_that_does_not_load_is_reported(tmp_path: Path) -> None:
    """Its process has ended by then."""
    (tmp_path / "a.gguf").write_bytes(b"GGUF and nothing more")
    provider = local_provider(tmp_path / "a.gguf")
    with pytest.raises(ProviderUnusable, match=r"`a\.gguf` does not load"):
        await provider.start()
    assert provider.pid is None


@pytest.mark.slow
@pytest.mark.needs("llama")
async def test_a_library_that_the_system_lacks_is_reported_with_its_package(tmp_path: Path) -> None:
    """A system that was made small has no OpenMP runtime, which no Python package brings."""
    model, child = tmp_path / "a.gguf", tmp_path / "child.py"
    model.write_bytes(b"GGUF")
    child.write_text("""print('{"error": "ImportError: libgomp.so.1: cannot open"}', flush=True)""")
    provider = local_provider(model, child=child)
    with pytest.raises(ProviderUnusable, match=r"cannot open, install .* libgomp1"):
        await provider.start()


def test_the_shipped_model_says_that_it_only_chats() -> None:
    """Another model is expected to call tools."""
    shipped = open_provider(ProviderSettings(), context()).facts
    chosen = open_provider(ProviderSettings(model_file="/m/big.gguf"), context()).facts
    assert not shipped.calls_tools
    assert "never calls a tool" in shipped.note
    assert (chosen.model, chosen.calls_tools, chosen.note) == ("big", True, "")


@pytest.mark.parametrize(
    ("trained", "reported", "window", "source"),
    [
        (2_048, None, 2_048, "the model file"),
        (
            131_072,
            None,
            4_096,
            "what is usual here, of the 131,072 that the model file names; "
            "`provider.context_tokens` takes more memory",
        ),
        (None, None, 4_096, "what is usual here"),
        (2_048, 1_024, 1_024, "the configuration, of the 2,048 that the model file names"),
        (
            2_048,
            8_192,
            2_048,
            "the model file, which the 8,192 of the configuration can't make larger",
        ),
        (131_072, 8_192, 8_192, "the configuration, of the 131,072 that the model file names"),
        (None, 8_192, 8_192, "the configuration"),
    ],
)
def test_the_source_of_a_models_window_is_reported(
    tmp_path: Path, trained: int | None, reported: int | None, window: int, source: str
) -> None:
    """Memory is taken for all of it at the start, so no file has more than is usual. S0-16."""
    model = tmp_path / "m.gguf"
    key = b"" if trained is None else text("llama.context_length") + pack("<II", 4, trained)
    model.write_bytes(b"GGUF" + pack("<IQQ", 3, 0, 1) + key)
    settings = ProviderSettings(model_file=str(model), context_tokens=reported)
    facts = open_provider(settings, context()).facts
    assert (facts.context_tokens, facts.context_from) == (window, source)
