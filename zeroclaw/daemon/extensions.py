"""Opens tools and context providers: the daemon's own, as configured, and those of other packages."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import cast

from zeroclaw.config.model import CurrentConfig
from zeroclaw.context.notes import Notes
from zeroclaw.context.prompt import fixed, identity, rules, sensitive, setting
from zeroclaw.context.workspace_files import WorkspaceFiles
from zeroclaw.context_provider import ContextProvider
from zeroclaw.conversation.downloads import AttachedFiles
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ConfigError
from zeroclaw.host import places, plugins, sandbox
from zeroclaw.host.http import http_client
from zeroclaw.host.quotas import Quota
from zeroclaw.store import Rows, Store
from zeroclaw.tool import Tool
from zeroclaw.tools import attachments, fetch, files, notes, results, shell
from zeroclaw.turn.kept_results import find_result
from zeroclaw.turn.tool_calls import state_of_files

# --- tools ---------------------------------------------------------------------------------------


async def open_tools(
    settings: CurrentConfig,
    *,
    store: Store,
    hidden: tuple[Path, ...],
    redact: Callable[[str], str],
    stack: AsyncExitStack,
    subtree: Path | None = None,
) -> tuple[dict[str, tuple[Tool, ...]], str]:
    """Return the tools by group, and why there is no shell; `stack` closes their resources.

    No tool sees the `hidden` paths. Commands get cgroups in `subtree`; None if this process has no
    subtree.

    Raises:
        ConfigError: A tool of another package can't be opened.
    """
    tables = settings.config.tools
    groups: dict[str, tuple[Tool, ...]] = {}
    if tables.fetch.enabled:
        # This client keeps no connections alive.
        http = http_client(fetch.limits(tables.fetch))
        stack.push_async_callback(http.aclose)
        groups["fetch"] = fetch.tools(tables.fetch, http=http)
    if tables.files.enabled:
        quota = Quota(tables.shell.workspace_bytes)
        shared = files.FilesSettings(limits=tables.files, hidden=hidden, quota=quota)
        groups["files"] = files.tools(shared)
    no_shell = ""
    if tables.shell.enabled or tables.attachments.enabled:
        limits = sandbox.Limits(
            memory_bytes=tables.shell.memory_bytes, workspace_bytes=tables.shell.workspace_bytes
        )
        tested = await sandbox.self_test(limits, network=tables.shell.network, subtree=subtree)
        if tables.shell.enabled:
            groups["shell"] = shell.tools(
                tables.shell, tested, limits, hidden=hidden, subtree=subtree
            )
            no_shell = tested.reason if isinstance(tested, sandbox.Broken) else ""
        if tables.attachments.enabled:
            files_of, chars = AttachedFiles(store), partial(_answer_chars, settings)
            groups["attachments"] = attachments.tools(tables.attachments, files_of, tested, chars)
    groups |= stored_tools(settings, store, redact)
    groups |= {name: tools_of(name) for name in other_packages()}
    return groups, no_shell


def by_name(groups: Mapping[str, tuple[Tool, ...]]) -> dict[str, Tool]:
    """Return the tools of all groups, by name."""
    return {tool.spec.name: tool for tools in groups.values() for tool in tools}


def other_packages() -> tuple[str, ...]:
    """Return the names of the entry points through which other packages add tools.

    `open_tools` opens ours, each with its table of settings.
    """
    return plugins.names(plugins.TOOLS, of_others=True)


def tools_of(package: str) -> tuple[Tool, ...]:
    """Open the tools of another package.

    Raises:
        ConfigError: They can't be opened.
    """
    named = _opened(plugins.TOOLS, package, key=f"tools.{package}")
    return tuple(cast("Tool", tool) for _, tool in named)


def _opened(group: str, package: str, *, key: str) -> list[tuple[str, object]]:
    """Open the tools or context providers of another package; return each with its name."""
    load = cast(
        "Callable[[], Iterable[Tool | ContextProvider]]", plugins.load(group, package, key=key)
    )
    # The names, too, come from foreign code: it may return what is neither.
    return plugins.opened(lambda: [(it.spec.name, it) for it in load()], package, key=key)


def stored_tools(
    settings: CurrentConfig, store: Store, redact: Callable[[str], str]
) -> dict[str, tuple[Tool, ...]]:
    """Return the tools that work on stored data alone: notes and cut results."""
    tables = settings.config.tools
    groups: dict[str, tuple[Tool, ...]] = {}
    if tables.notes.enabled:
        groups["notes"] = notes.tools(tables.notes, Notes(store), redact)
    if tables.results.enabled:
        groups["results"] = results.tools(
            partial(find_result, store), partial(_answer_chars, settings)
        )
    return groups


def _answer_chars(settings: CurrentConfig) -> int:
    return settings.config.runtime.result_chars


# --- context providers ---------------------------------------------------------------------------

RESERVED = frozenset(
    {"identity", "files", "setting", "rules", "sensitive", "operator", "skills", "notes"}
)
"""Names that providers of other packages must not have."""


def built_in_context(
    settings: CurrentConfig, workspaces: Path, rows: Rows
) -> tuple[ContextProvider, ...]:
    """Return the built-in providers, in the order in which the model reads their texts (S3-06).

    Args:
        settings: For the operator's own prompt.
        workspaces: Contains a directory per conversation.
        rows: To find out which workspaces contain untrusted files.
    """
    context = settings.config.context

    async def is_untrusted(conversation: ConversationId, workspace: Path) -> bool:
        return await state_of_files(rows, conversation, workspace) != "theirs"

    directory = places.expand(context.directory).absolute() if context.directory else workspaces
    workspace_files = WorkspaceFiles(
        directory=directory,
        workspaces=workspaces,
        max_tokens=context.file_tokens,
        is_untrusted=is_untrusted,
    )
    return (
        fixed("identity", identity),
        *((workspace_files,) if context.file_tokens else ()),
        fixed("setting", setting),
        fixed("rules", rules),
        fixed("sensitive", sensitive),
        fixed("operator", lambda _: settings.config.runtime.prompt, label="operator"),
    )


def open_context_providers() -> tuple[ContextProvider, ...]:
    """Open the context providers of other packages.

    Raises:
        ConfigError: A provider can't be opened, or has the name of another one.
    """
    found: dict[str, ContextProvider] = {}
    for package in plugins.names(plugins.CONTEXT_PROVIDERS):
        key = f"context.{package}"
        for name, provider in _opened(plugins.CONTEXT_PROVIDERS, package, key=key):
            if name in found or name in RESERVED:
                raise ConfigError(
                    (f"{key}: `{name}` is a context provider already; uninstall one of the two",)
                )
            found[name] = cast("ContextProvider", provider)
    return tuple(found.values())
