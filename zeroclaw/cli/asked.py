"""What `policy explain` asks the policy, with the tools of this machine opened to be asked."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal

from zeroclaw.config import Config
from zeroclaw.daemon.tools import Kept, open_tools
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ConfigError
from zeroclaw.host import shelves
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.protected import Protected
from zeroclaw.inbound import explaining
from zeroclaw.inbound.explaining import Asked
from zeroclaw.tools import attachments, notes


async def ask(
    config: Config,
    *,
    who: str,
    tool: str,
    arguments: str,
    resources: tuple[str, ...],
    workspaces: Path,
) -> Asked:
    """Return the question; see `explaining.ask`.

    Raises:
        ConfigError: Nobody is called so.
        ToolArgumentsInvalid: The arguments don't fit the tool.
    """
    await asyncio.to_thread(shelves.names, shelves.TOOLS)  # reads every package, once
    async with AsyncExitStack() as stack:
        offered, no_shell = await open_tools(
            config,
            kept=Kept(attachments=_NoFiles(), notes=_NothingKept(), results=_NothingKept()),
            shielded=Protected(hidden=()),
            redact=str,
            version="",
            stack=stack,
        )
        try:
            asked = await explaining.ask(
                config,
                offered,
                who=who,
                action=tool,
                arguments=arguments,
                resources=resources,
                workspaces=workspaces,
                clock=SystemClock(),
            )
        except ConfigError as error:
            raise ConfigError(tuple(f"--who: {fault}" for fault in error.faults)) from error
    sandbox = (f"there is no sandbox here: {no_shell}",) if no_shell else ()
    return Asked(query=asked.query, notes=(*sandbox, *asked.notes))


class _NoFiles:
    """Stands for the files of every conversation."""

    async def find(self, _conversation: ConversationId, _number: int) -> attachments.File | None:
        """Find none."""
        return None

    async def content(self, _conversation: ConversationId, _number: int) -> bytes | None:
        """Have none."""
        return None


class _NothingKept:
    """Stands for the store of a daemon; tools that are only asked don't touch it."""

    async def all(self, _owner: str) -> tuple[notes.Note, ...]:
        """Return no notes."""
        return ()

    async def add(self, _owner: str, _note: notes.Note, *, most: int) -> Literal["full"]:  # noqa: ARG002  the contract's
        """Keep nothing."""
        return "full"

    async def forget(self, _owner: str, _number: int) -> notes.Note | None:
        """Find nothing to forget."""
        return None

    async def has(self, _conversation: ConversationId, _name: str) -> bool:
        """Know no result."""
        return False

    async def text(self, _conversation: ConversationId, _name: str) -> str | None:
        """Know no result."""
        return None
