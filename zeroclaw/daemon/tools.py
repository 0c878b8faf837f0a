"""Opens the tools that the configuration offers: for the daemon, and for `policy explain`."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

from zeroclaw.config.model import Config, FetchSettings
from zeroclaw.context.notes import Notes
from zeroclaw.conversation.downloads import AttachedFiles
from zeroclaw.host import plugins, sandbox
from zeroclaw.host.http import http_client
from zeroclaw.host.usage import Quota
from zeroclaw.store import Store
from zeroclaw.tool import Tool
from zeroclaw.tools import attachments, fetch, files, notes, results, shell
from zeroclaw.turn.kept_results import KeptResults

OURS = frozenset({"attachments", "fetch", "files", "notes", "results", "shell"})
"""Entry points of tools that are opened here, with settings of their own."""

NO_SANDBOX = sandbox.Broken(reason="nobody has looked for one")


async def open_tools(
    config: Config,
    *,
    store: Store,
    hidden: tuple[Path, ...],
    redact: Callable[[str], str],
    version: str,
    stack: AsyncExitStack,
    result_chars: Callable[[], int] | None = None,
    subtree: Path | None = None,
) -> tuple[dict[str, tuple[Tool, ...]], str]:
    """Return the tools by group, and why there is no shell; `stack` closes what they opened.

    No tool sees what is `hidden`. Commands get cgroups in `subtree`; None where this process has
    none to give.

    Raises:
        ConfigError: A tool of another package can't be opened.
    """
    wanted = config.tools
    found: dict[str, tuple[Tool, ...]] = {}
    note = ""
    if wanted.fetch.enabled:
        found["fetch"] = _fetch(wanted.fetch, version, stack)
    if wanted.files.enabled:
        settings = files.FilesSettings(
            max_read_bytes=wanted.files.max_read_bytes,
            max_write_bytes=wanted.files.max_write_bytes,
            max_send_bytes=wanted.files.max_send_bytes,
            hidden=hidden,
            quota=Quota(wanted.shell.workspace_bytes),
        )
        found["files"] = files.tools(settings)
    tested: sandbox.System | sandbox.Broken = NO_SANDBOX
    limits = sandbox.Limits(
        memory_bytes=wanted.shell.memory_bytes, workspace_bytes=wanted.shell.workspace_bytes
    )
    if wanted.shell.enabled or wanted.attachments.enabled:
        tested = await sandbox.self_test(limits, network=wanted.shell.network, subtree=subtree)
    if wanted.shell.enabled:
        if isinstance(tested, sandbox.Broken):
            note = tested.reason
        found["shell"] = shell.tools(
            shell.ShellSettings(
                sandbox=tested,
                network=wanted.shell.network,
                timeout_s=wanted.shell.timeout_s,
                limits=limits,
                hidden=hidden,
                without_sandbox=wanted.shell.without_sandbox,
                subtree=subtree,
            )
        )
    found |= stored_tools(config, store, redact, result_chars, boxed=tested)
    for name in plugins.names(plugins.TOOLS):
        if name not in OURS:
            found[name] = tools_of(name)
    return found, note


def by_name(groups: Mapping[str, tuple[Tool, ...]]) -> dict[str, Tool]:
    """Return the tools of all groups."""
    return {tool.spec.name: tool for every in groups.values() for tool in every}


def tools_of(package: str) -> tuple[Tool, ...]:
    """Open the tools that another package brings.

    Raises:
        ConfigError: They can't be opened.
    """
    key = f"tools.{package}"
    opener = plugins.load(plugins.TOOLS, package, key=key)
    return plugins.opened(cast("Callable[[], tuple[Tool, ...]]", opener), package, key=key)


def stored_tools(
    config: Config,
    store: Store,
    redact: Callable[[str], str],
    result_chars: Callable[[], int] | None = None,
    *,
    boxed: sandbox.System | sandbox.Broken = NO_SANDBOX,
) -> dict[str, tuple[Tool, ...]]:
    """Return those that work on what the store keeps: files that came, notes, cut results.

    `boxed` is what files are read in; `result_chars` says how much the model reads at once by now, None for as configured.
    """
    found: dict[str, tuple[Tool, ...]] = {}
    answer_chars = result_chars or (lambda: config.runtime.result_chars)
    if config.tools.attachments.enabled:
        found["attachments"] = attachments.tools(
            attachments.AttachmentsSettings(
                store=AttachedFiles(store),
                sandbox=boxed,
                answer_chars=answer_chars,
                timeout_s=config.tools.attachments.timeout_s,
                memory_bytes=config.tools.attachments.memory_bytes,
            )
        )
    if config.tools.notes.enabled:
        found["notes"] = notes.tools(config.tools.notes, Notes(store), redact)
    if config.tools.results.enabled:
        found["results"] = results.tools(KeptResults(store), answer_chars)
    return found


def _fetch(config: FetchSettings, version: str, stack: AsyncExitStack) -> tuple[Tool, ...]:
    """Return the fetch tool, with a client of its own that keeps no connection."""
    http = http_client(fetch.limits(config))
    stack.push_async_callback(http.aclose)
    return fetch.tools(config, http=http, user_agent=f"zeroclaw/{version}")
