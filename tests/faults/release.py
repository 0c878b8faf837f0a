"""Daemons of an earlier release, so that the current one opens the stores that they leave behind.

`tests/faults/releases/` holds the sources of each release, as its commit had them, with the few test
files that stop it at a kill point. They run on the current dependencies.
"""

import atexit
import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.fork_client import ForkServer, fork
from tests.journeys.daemon_process import Process

RELEASES = Path(__file__).with_name("releases")


class FirstLife:
    """Starts a release the first time and the current daemon from then on; a `Launch`."""

    def __init__(self, release: str) -> None:
        self._release = release
        self._is_begun = False

    async def __call__(
        self, command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path
    ) -> Process:
        """Start a daemon."""
        launch = fork if self._is_begun else _fork_server(self._release)
        self._is_begun = True
        return await launch(command, environment=environment, directory=directory, log=log)


@cache
def _fork_server(release: str) -> ForkServer:
    """Start the fork server of a release; it and its files end with this process."""
    unpacked = TemporaryDirectory(prefix=f"zeroclaw-{release}-")
    root = Path(unpacked.name)
    with tarfile.open(RELEASES / f"{release}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # none before 3.11.4
        archive.extractall(root)
    _install(root)
    path = f"PYTHONPATH={root}:{root / 'tests/emulators/platform'}"
    server = ForkServer("env", "--chdir", str(root), path, module="tests.faults.mother")

    def end() -> None:
        server.end()
        unpacked.cleanup()

    atexit.register(end)
    return server


def _install(root: Path) -> None:
    """Give a release its own entry points, without those of modules that it does not have."""
    groups: dict[str, list[str]] = {}
    for entry in metadata.distribution("zeroclaw").entry_points:
        path = root / entry.module.replace(".", "/")
        if path.exists() or path.with_name(f"{path.name}.py").exists():
            groups.setdefault(entry.group, []).append(f"{entry.name} = {entry.value}")
    # Of two distributions with the same name the first one on the path is found.
    dist_info = root / "zeroclaw-0.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: zeroclaw\nVersion: 0\n")
    lines = [line for group, found in groups.items() for line in (f"[{group}]", *found)]
    (dist_info / "entry_points.txt").write_text("\n".join(lines))
