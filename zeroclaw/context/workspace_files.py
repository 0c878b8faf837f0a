"""The files with the bot's identity and knowledge: the operator's, and those of a workspace.

    the operator's directory          IDENTITY, SOUL and AGENTS are rules, USER and MEMORY are data
    a conversation's workspace        all five are data, because the model can write them there

Missing files are skipped. Links are not followed, and only plain files are opened
(`tools/files/workspace.py`).
"""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from zeroclaw.context_provider import ContextRequest, ContextSpec, ContextText
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ToolFailed
from zeroclaw.host.executors import run_inline
from zeroclaw.tools.files.workspace import opened_file
from zeroclaw.value import Value

_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
MAX_BYTES = 65_536
"""Bytes read of one file; the model is shown less."""
FILES = (
    ("IDENTITY.md", "who you are", False),
    ("SOUL.md", "what matters to you, and how you talk", False),
    ("USER.md", "about the people you talk to", True),
    ("MEMORY.md", "what you are to know", True),
    ("AGENTS.md", "how you work here", False),
)
"""In order (S3-06): the name, its meaning, and whether it is data."""


class WorkspaceFiles(Value):
    """Reads the files; a Context Provider.

    Attributes:
        directory: The operator's, None for none.
        workspaces: Holds a directory for each conversation.
        max_tokens: The limit of each file.
        is_untrusted: Whether a conversation's workspace, by its real path, holds untrusted files.
    """

    directory: Path | None
    workspaces: Path
    max_tokens: int
    is_untrusted: Callable[[ConversationId, Path], Awaitable[bool]]

    @property
    def spec(self) -> ContextSpec:
        """The provider's spec."""
        return ContextSpec(name="files", max_tokens=self.max_tokens, priority=2, trusted=True)

    async def texts(self, request: ContextRequest) -> tuple[ContextText, ...]:
        """Return the files that exist, the operator's first."""
        places = (f"{self.workspaces}/{request.conversation}", self.directory)
        if not run_inline(lambda: any(map(_has_any, places))):
            return ()  # the usual case

        def read() -> tuple[dict[str, str], Path, dict[str, str]]:
            workspace = self.workspaces / request.conversation
            local = dict(_found(workspace))
            shared = {} if self.directory is None else dict(_found(self.directory))
            return shared, workspace.resolve() if local else workspace, local

        shared, workspace, local = await asyncio.to_thread(read)
        untrusted = bool(local) and await self.is_untrusted(request.conversation, workspace)
        return (
            *(
                ContextText(text=shared[name], name=name, title=f"{name}, {about}", is_data=is_data)
                for name, about, is_data in FILES
                if name in shared
            ),
            *(
                ContextText(
                    text=local[name],
                    name=f"workspace/{name}",
                    title=f"{name} in the workspace of this conversation",
                    untrusted=untrusted,
                )
                for name, _, _ in FILES
                if name in local
            ),
        )


def _has_any(directory: Path | str | None) -> bool:
    """Whether a directory has an entry with the name of one of the files, even a link.

    Links are not followed here: a command may have made a long chain, or one to a disk that hangs.
    """
    return (
        directory is not None
        and os.path.lexists(directory)
        and any(os.path.lexists(f"{directory}/{name}") for name, _, _ in FILES)
    )


def _found(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield the files of a directory that exist and can be read; blocks.

    Raises:
        ToolFailed: The system has no room to open them: a rule must not be missing unnoticed.
    """
    for name, _, _ in FILES:
        try:
            with opened_file(directory, (name,)) as file:
                yield name, file.read(MAX_BYTES).decode("utf-8", "replace")
        except ToolFailed as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in _NO_ROOM:
                raise
