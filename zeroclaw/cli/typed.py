"""How a person types this program where they stand, for lines that say what to type next.

A checkout's program lies in its `.venv`, where no shell looks.
"""

import os
import shutil
import sys
from pathlib import Path

NAME = "zeroclaw"


def program() -> str:
    """Return what to type for this process's program; reads the disk."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # removed while somebody stands there
        return NAME
    return typed(sys.argv[0], path=os.environ.get("PATH", os.defpath), here=here)


def typed(started: str, *, path: str, here: Path) -> str:
    """Return what to type for a program.

    Args:
        started: The path that it was started by; another name than ours is not told on.
        path: The directories that the person's shell looks in, `$PATH`.
        here: Where the person stands.

    Returns:
        Its name where the shell finds it, else its path from here or from the root.
    """
    whole = here / started
    found = shutil.which(NAME, path=path)
    if whole.name != NAME or (found is not None and Path(found).samefile(whole)):
        return NAME
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)
