"""A daemon that is started for one chat session, and ended with it.

Its standard input is a pipe that stays empty and that only this process holds open. When this
process ends, even by kill -9, the kernel closes the pipe, and the daemon ends as at SIGTERM.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from zeroclaw.errors import (
    ConfigError,
    NeedsOperator,
    StoreUnusable,
    ZeroclawError,
    refused_as,
    ungrouped,
)
from zeroclaw.host.atomic_file import closing_descriptor

LOG = "chat.log"
END_S = 30.0
"""Seconds to wait for its end; longer than the usual grace time and the shutdown after it."""
_EXIT_FAULTY = 2
"""The exit code of `zeroclaw run` for a faulty configuration; it prints one line for each fault."""


class DidNotStart(ZeroclawError):
    """Raised if the daemon ended before it was ready; the text says why."""


async def with_own_daemon(
    place: Path,
    arguments: tuple[str, ...],
    session: Callable[[], Awaitable[None]],
    *,
    keeps_log: bool = True,
) -> None:
    """Run a daemon during a session; its log is in the data directory.

    Args:
        place: The data directory; created if missing.
        arguments: Options for `zeroclaw run`.
        session: The session; begins when the daemon is ready.
        keeps_log: The data directory, with the log in it, outlives the session.

    Raises:
        ConfigError: Its configuration has faults.
        DidNotStart: It ended before it was ready.
        NeedsOperator: It ended during the session; the text says why, or where to look.
    """
    with closing_descriptor(await asyncio.to_thread(_open_log, place)) as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "zeroclaw", "run", "--until-stdin-ends", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # this process handles Ctrl-C
        )
    try:
        # It writes nothing before it is ready, and then little, which fits into the pipe.
        if process.stdout is None or not await process.stdout.readline():
            raise DidNotStart(await _end_reason(process, place / LOG, keeps_log=keeps_log))
        with ungrouped():
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(_watch(process, place / LOG, keeps_log=keeps_log))
                await session()
                watch.cancel()
    finally:
        await _end(process)


async def with_temporary_daemon(
    tables: Mapping[str, object], session: Callable[[Path], Awaitable[None]], *, prefix: str
) -> None:
    """Run a daemon on a directory that is deleted at the end of the session.

    Args:
        tables: Its configuration, without the places of its data.
        session: The session; called with the data directory when the daemon is ready.
        prefix: The prefix of the directory's name.
    """
    import tomli_w

    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        data, config = Path(folder, "data"), Path(folder, "config.toml")
        places = {"data_dir": str(data), "workspace_dir": str(Path(folder, "workspaces"))}
        await asyncio.to_thread(config.write_text, tomli_w.dumps({**places, **tables}), "utf-8")
        options = ("--config", str(config))
        await with_own_daemon(data, options, lambda: session(data), keeps_log=False)


async def _watch(process: asyncio.subprocess.Process, log: Path, *, keeps_log: bool) -> None:
    raise NeedsOperator(await _end_reason(process, log, keeps_log=keeps_log))


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(END_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _open_log(place: Path) -> int:
    with refused_as(StoreUnusable, f"`{place}` can't be used", "name another data directory"):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = os.open(place / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.pwrite(log, b"\n", 0)  # on a full disk the daemon could not say why it ends
        except OSError:
            os.close(log)
            raise
        return log


async def _end_reason(process: asyncio.subprocess.Process, log: Path, *, keeps_log: bool) -> str:
    """Wait for a daemon to end, and return why it ended."""
    code = await process.wait()
    text = await asyncio.to_thread(log.read_text, encoding="utf-8", errors="replace")
    lines = text.splitlines()
    errors = [line.removeprefix("zeroclaw: ") for line in lines if line.startswith("zeroclaw: ")]
    if code == _EXIT_FAULTY:
        raise ConfigError(tuple(errors))
    if errors:
        return "; ".join(errors)
    end = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
    last_line = f"its last line was `{lines[-1] if lines else ''}`"
    hint = f"`{log}` may say more" if keeps_log else last_line
    return f"the daemon {end} and said nothing; {hint}"
