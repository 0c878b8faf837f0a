"""The scripts that run the tests give each group its number of workers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "deploy" / "test.sh"


@pytest.mark.parametrize("workers", ["auto", "3"])
def test_both_groups_get_workers(workers: str, tmp_path: Path) -> None:
    """With `PYTEST_WORKERS=auto`, pytest's own word for it, the script ended before any test."""
    bin_ = tmp_path / ".venv" / "bin"
    bin_.mkdir(parents=True)
    (tmp_path / "deploy").mkdir()
    script = shutil.copy(SCRIPT, tmp_path / "deploy")
    (bin_ / "python").write_text('#!/bin/sh\necho "$4"\n', encoding="utf-8")
    (bin_ / "python").chmod(0o755)
    run = subprocess.run(["sh", script, workers], capture_output=True, text=True, check=True)
    cpus = len(os.sched_getaffinity(0)) if workers == "auto" else int(workers)
    assert run.stdout.split() == [str(cpus + 1), str(cpus * 2)]
