"""Opens the configured tools, for the daemon and for `policy explain`."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import cast

from zeroclaw.config.model import CurrentConfig
from zeroclaw.context.notes import Notes
from zeroclaw.conversation.downloads import AttachedFiles
from zeroclaw.host import plugins, sandbox
from zeroclaw.host.http import http_client
from zeroclaw.host.quotas import Quota
from zeroclaw.store import Store
from zeroclaw.tool import Tool
from zeroclaw.tools import attachments, fetch, files, notes, results, shell
from zeroclaw.turn.kept_results import find_result

_OUR_PACKAGES = frozenset({"attachments", "fetch", "files", "notes", "results", "shell"})
"""Entry points of the tools that are opened here, with settings of their own."""


async def open_tools(
    settings: CurrentConfig,
    *,
    store: Store,
    hidden: tuple[Path, ...],
    redact: Callable[[str], str],
    version: str,
    stack: AsyncExitStack,
    subtree: Path | None = None,
) -> tuple[dict[str, tuple[Tool, ...]], str]:
    """Return the tools by group, and why there is no shell; `stack` closes what they opened.

    No tool sees the `hidden` paths. Commands get cgroups in `subtree`; None if this process has no
    subtree.

    Raises:
        ConfigError: A tool of another package can't be opened.
    """
    wanted = settings.config.tools
    found: dict[str, tuple[Tool, ...]] = {}
    if wanted.fetch.enabled:
        # A client of its own, which keeps no connections alive.
        http = http_client(fetch.limits(wanted.fetch))
        stack.push_async_callback(http.aclose)
        found["fetch"] = fetch.tools(wanted.fetch, http=http, user_agent=f"zeroclaw/{version}")
    if wanted.files.enabled:
        quota = Quota(wanted.shell.workspace_bytes)
        shared = files.FilesSettings(limits=wanted.files, hidden=hidden, quota=quota)
        found["files"] = files.tools(shared)
    why = ""
    if wanted.shell.enabled or wanted.attachments.enabled:
        limits = sandbox.Limits(
            memory_bytes=wanted.shell.memory_bytes, workspace_bytes=wanted.shell.workspace_bytes
        )
        boxed = await sandbox.self_test(limits, network=wanted.shell.network, subtree=subtree)
        if wanted.shell.enabled:
            found["shell"] = shell.tools(
                wanted.shell, boxed, limits, hidden=hidden, subtree=subtree
            )
            why = boxed.reason if isinstance(boxed, sandbox.Broken) else ""
        if wanted.attachments.enabled:
            files_of, chars = AttachedFiles(store), partial(_answer_chars, settings)
            found["attachments"] = attachments.tools(wanted.attachments, files_of, boxed, chars)
    found |= stored_tools(settings, store, redact)
    found |= {name: tools_of(name) for name in other_packages()}
    return found, why


def by_name(groups: Mapping[str, tuple[Tool, ...]]) -> dict[str, Tool]:
    """Return the tools of all groups, by name."""
    return {tool.spec.name: tool for every in groups.values() for tool in every}


def other_packages() -> tuple[str, ...]:
    """Return the packages of other authors that bring tools, by the names of their entry points."""
    return tuple(name for name in plugins.names(plugins.TOOLS) if name not in _OUR_PACKAGES)


def tools_of(package: str) -> tuple[Tool, ...]:
    """Open the tools of another package.

    Raises:
        ConfigError: They can't be opened.
    """
    key = f"tools.{package}"
    opener = cast("Callable[[], tuple[Tool, ...]]", plugins.load(plugins.TOOLS, package, key=key))
    return plugins.opened(lambda: tuple(opener()), package, key=key)


def stored_tools(
    settings: CurrentConfig, store: Store, redact: Callable[[str], str]
) -> dict[str, tuple[Tool, ...]]:
    """Return the tools that work on stored data alone: notes and cut results."""
    wanted = settings.config.tools
    found: dict[str, tuple[Tool, ...]] = {}
    if wanted.notes.enabled:
        found["notes"] = notes.tools(wanted.notes, Notes(store), redact)
    if wanted.results.enabled:
        found["results"] = results.tools(
            partial(find_result, store), partial(_answer_chars, settings)
        )
    return found


def _answer_chars(settings: CurrentConfig) -> int:
    return settings.config.runtime.result_chars
