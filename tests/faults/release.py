"""Daemons of an earlier release, so that what they leave behind is opened by this one.

`tests/faults/releases/` holds the sources of each, as its commit had them, with the few files of its
own tests that stop it at an instant. They run on the packages of today.
"""

import atexit
import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.forked import Mother, forked
from tests.journeys.daemon_process import Running

RELEASES = Path(__file__).with_name("releases")


class FirstLife:
    """Starts a release the first time and the daemon of today from then on; a `Launch`."""

    def __init__(self, release: str) -> None:
        self._release = release
        self._is_begun = False

    async def __call__(
        self, command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path
    ) -> Running:
        """Start a daemon."""
        launch = forked if self._is_begun else _mother(self._release)
        self._is_begun = True
        return await launch(command, environment=environment, directory=directory, log=log)


@cache
def _mother(release: str) -> Mother:
    """Start the mother of a release; both she and her files end with this process."""
    unpacked = TemporaryDirectory(prefix=f"zeroclaw-{release}-")
    root = Path(unpacked.name)
    with tarfile.open(RELEASES / f"{release}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # none before 3.11.4
        archive.extractall(root)
    _install(root)
    path = f"PYTHONPATH={root}:{root / 'tests/emulators/platform'}"
    mother = Mother("env", "--chdir", str(root), path)

    def end() -> None:
        mother.end()
        unpacked.cleanup()

    atexit.register(end)
    return mother


def _install(root: Path) -> None:
    """Let a release find the entry points that it had: those of packages that it does not know are left out."""
    groups: dict[str, list[str]] = {}
    for one in metadata.distribution("zeroclaw").entry_points:
        if (root / one.module.replace(".", "/")).exists() or (
            root / f"{one.module.replace('.', '/')}.py"
        ).exists():
            groups.setdefault(one.group, []).append(f"{one.name} = {one.value}")
    # Of two that are called alike the one that stands first on the path is found.
    about = root / "zeroclaw-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: zeroclaw\nVersion: 0\n")
    lines = [line for group, found in groups.items() for line in (f"[{group}]", *found)]
    (about / "entry_points.txt").write_text("\n".join(lines))
