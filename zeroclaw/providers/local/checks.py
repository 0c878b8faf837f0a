"""Checks the requirements of a local model on this machine, before a request waits for it."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from zeroclaw.errors import ProviderUnusable, system_words
from zeroclaw.host.models.gguf import is_gguf
from zeroclaw.host.plugins import interpreter

PACKAGE = "xllamacpp"
FETCH = f"`{interpreter()} deploy/fetch_model.py`"
LINKED_AGAINST = "libgomp.so.1"  # not in its wheel, and missing on minimal systems
LINKED_REMEDY = ", install the system's package with it (Debian: libgomp1)"
IMPORT_S = 20.0  # time limit; importing the package takes a fifth of a second


def check_model(model_file: Path) -> None:
    """Check the package and the model file before a process is started for them; blocks.

    Raises:
        ProviderUnusable: The package or the file is missing, or the file is not a model.
    """
    if find_spec(PACKAGE) is None:
        message = (
            f"the package `{PACKAGE}` is missing: install the extra `local`, or set `[provider]`"
        )
        raise ProviderUnusable(message)
    try:
        is_model = is_gguf(model_file)
    except OSError as error:
        message = (
            f"no model at `{model_file}` ({system_words(error)}): fetch one with {FETCH}, or set "
            "`provider.model_file`, or another `[provider]`"
        )
        raise ProviderUnusable(message) from error
    if not is_model:
        message = f"`{model_file}` is not a GGUF model: set `provider.model_file` to one"
        raise ProviderUnusable(message)


async def check_package() -> None:
    """Import the package in a separate process, as the child does.

    Raises:
        ProviderUnusable: It does not load, for example because the system lacks a library.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", f"import {PACKAGE}"),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
    )
    reason = f"no end within {IMPORT_S:g} s"
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(IMPORT_S):
                _, stderr = await process.communicate()
                reason = stderr.decode(errors="replace").strip().rpartition("\n")[2]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        message = f"the package `{PACKAGE}` does not load: {with_remedy(reason)}"
        raise ProviderUnusable(message)


def with_remedy(reason: str) -> str:
    """Return a load error as one line, with what to do if that is known."""
    remedy = LINKED_REMEDY if LINKED_AGAINST in reason else ""
    return f"{' '.join(reason.split())}{remedy}"
