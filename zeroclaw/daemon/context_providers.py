"""The daemon's context providers: its own, in order, and those of other packages."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from zeroclaw.config.model import CurrentConfig
from zeroclaw.context.prompt import fixed, identity, rules, sensitive, setting
from zeroclaw.context.workspace_files import WorkspaceFiles
from zeroclaw.context_provider import ContextProvider
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ConfigError
from zeroclaw.host import places, plugins
from zeroclaw.store import Rows
from zeroclaw.turn.tool_calls import state_of_files


def own_context(
    settings: CurrentConfig, workspaces: Path, rows: Rows
) -> tuple[ContextProvider, ...]:
    """Return the daemon's own providers, in the order in which the model reads their texts (S3-06).

    Args:
        settings: For the operator's own prompt.
        workspaces: Contains a directory per conversation.
        rows: To find out which workspaces contain untrusted files.
    """
    context = settings.config.context

    async def is_untrusted(conversation: ConversationId, workspace: Path) -> bool:
        return await state_of_files(rows, conversation, workspace) != "theirs"

    directory = places.expand(context.directory).absolute() if context.directory else workspaces
    files = WorkspaceFiles(
        directory=directory,
        workspaces=workspaces,
        most_tokens=context.file_tokens,
        is_untrusted=is_untrusted,
    )
    return (
        fixed("identity", identity),
        *((files,) if context.file_tokens else ()),
        fixed("setting", setting),
        fixed("rules", rules),
        fixed("sensitive", sensitive),
        fixed("operator", lambda _: settings.config.runtime.prompt, shown="operator"),
    )


def open_context_providers() -> tuple[ContextProvider, ...]:
    """Open the context providers of other packages.

    Raises:
        ConfigError: One can't be opened, or has the name of another.
    """
    found: dict[str, ContextProvider] = {}
    for package in plugins.names(plugins.CONTEXT_PROVIDERS):
        key = f"context.{package}"
        opener = plugins.load(plugins.CONTEXT_PROVIDERS, package, key=key)
        made = cast("Callable[[], tuple[ContextProvider, ...]]", opener)
        opened = plugins.opened(
            lambda made=made: [(one.spec.name, one) for one in made()], package, key=key
        )
        for name, one in opened:
            if name in found or name in RESERVED:
                raise ConfigError(
                    (f"{key}: `{name}` is a context provider already; uninstall one of the two",)
                )
            found[name] = one
    return tuple(found.values())


RESERVED = frozenset(
    {"identity", "files", "setting", "rules", "sensitive", "operator", "skills", "notes"}
)
"""Names that providers of other packages must not have."""
