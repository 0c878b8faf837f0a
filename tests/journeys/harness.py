"""The part of a journey that is the same on every platform: a model, a tool bench and the daemon."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tests.emulators.model_server import ModelServer
from tests.faults.fork_client import PRODUCT, fork
from tests.journeys.bench import Bench
from tests.journeys.configuration import WITHOUT_DEFAULT_CHANNELS, merged, toml
from tests.journeys.daemon_process import DaemonProcess, Launch

MODEL_KEY = "sk-journey-0123456789abcdefghij"
# Known only because its variable is named like a secret; no pattern would find it.
KNOWN_SECRET = "correct horse battery 7431"
M = TypeVar("M", bound=ModelServer)


@contextmanager
def one_failure() -> Generator[None]:
    """Let a lone failure inside a task group stand for itself."""
    try:
        yield
    except ExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise


@dataclass(frozen=True, kw_only=True)
class Harness(Generic[M]):
    """One journey's model and tools, and the directory of its daemon.

    Attributes:
        directory: The test's own.
        group: Owns the task that reads the daemon's output.
        changed: Called when a tool begins, and when the daemon prints a line.
    """

    directory: Path
    model: M
    bench: Bench
    group: asyncio.TaskGroup
    changed: Callable[[], None]

    def daemon(
        self,
        *tables: Mapping[str, object],
        environment: Mapping[str, str],
        command: tuple[str, ...] = PRODUCT,
        launch: Launch = fork,
    ) -> DaemonProcess:
        """Return the daemon, which has not been started.

        Args:
            tables: Parts of the configuration, merged in this order over the usual one.
            environment: Added to the usual environment of the process.
            command: The program; tests of faults use composition roots of their own.
            launch: How it is started.
        """
        path = self.directory / "zeroclaw.toml"
        merged_tables = usual_tables(self.directory, self.model)
        for table in tables:
            merged_tables = merged(merged_tables, table)
        path.write_text(toml(merged_tables), encoding="utf-8")
        return DaemonProcess(
            group=self.group,
            config=path,
            log=self.directory / "stderr.log",
            environment=daemon_environment(self.directory, self.bench) | dict(environment),
            changed=self.changed,
            command=command,
            launch=launch,
        )


@asynccontextmanager
async def open_harness(
    directory: Path, model: M, changed: Callable[[], None]
) -> AsyncGenerator[Harness[M]]:
    """Open a model and a bench; `changed` is called when a tool begins or the daemon prints a line."""
    with one_failure():
        async with model, Bench(changed) as bench, asyncio.TaskGroup() as group:
            yield Harness(
                directory=directory, model=model, bench=bench, group=group, changed=changed
            )


@asynccontextmanager
async def ends_cleanly(
    daemon: DaemonProcess, secrets: Mapping[str, str], transcript: Callable[[], object] = str
) -> AsyncGenerator[None]:
    """Assert that the daemon ends cleanly on SIGTERM and has logged no secret; kill it in any case.

    Args:
        daemon: The journey's daemon.
        secrets: By the variables that hold them.
        transcript: Returns the platform's account of the journey, for a failure.
    """
    try:
        with one_failure():  # of the test's own task group
            yield
        if daemon.is_running:
            assert await daemon.terminate() == 0, "SIGTERM ends it cleanly, whatever is open"
        logged = [name for name, secret in secrets.items() if secret in daemon.stderr]
        assert logged == [], "no secret is in a log"
    except AssertionError as error:
        error.add_note(f"{transcript()}\n{daemon.report()}")
        raise
    finally:
        await daemon.kill()


def people(platform: str, **ids: int | str | tuple[str, ...]) -> list[dict[str, object]]:
    """Return the `people` of a configuration, by their ids on a platform; Olga is an operator."""
    return [
        {
            "name": name,
            "ids": [
                f"{platform}:{person_id}"
                for person_id in (table if isinstance(table, tuple) else (table,))
            ],
            **({"roles": ["operator"]} if name == "olga" else {}),
        }
        for name, table in ids.items()
    ]


def usual_tables(directory: Path, model: ModelServer) -> dict[str, object]:
    """Return the configuration of every journey, without people; no channel is on."""
    return {
        "data_dir": str(directory / "data"),
        "workspace_dir": str(directory / "workspaces"),
        "provider": {
            "kind": "openai",
            "base_url": model.url,
            "model": "scripted",
            "api_key": {"env": "JOURNEY_MODEL_KEY"},
            "stall_s": 20.0,
        },
        "runtime": {"grace_s": 0.2, "call_timeout_s": 20.0},
        "approvals": {"timeout_s": 300.0},
        # Test people write as fast as programs.
        "limits": {
            "person_per_minute": 6000,
            "person_burst": 10_000,
            "conversation_per_minute": 6000,
            "conversation_burst": 10_000,
        },
        "listener": {"port": 0},
        **WITHOUT_DEFAULT_CHANNELS,
    }


def daemon_environment(directory: Path, bench: Bench) -> dict[str, str]:
    """Return the daemon's environment; it finds the bench's tools by their entry point, as always."""
    installed = directory / "installed" / "journeys-0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: journeys\nVersion: 0\n")
    (installed / "entry_points.txt").write_text(
        "[zeroclaw.tools]\nbench = tests.journeys.bench_tools:tools\n"
    )
    return {
        "HOME": str(directory / "home"),
        "XDG_CONFIG_HOME": str(directory / "home" / "config"),
        "XDG_DATA_HOME": str(directory / "home" / "data"),
        "PYTHONPATH": os.pathsep.join((str(installed.parent), os.environ.get("PYTHONPATH", ""))),
        "JOURNEY_MODEL_KEY": MODEL_KEY,
        "JOURNEY_SIGNING_SECRET": KNOWN_SECRET,
        "JOURNEY_BENCH_PORT": str(bench.port),
    }
