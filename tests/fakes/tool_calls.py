"""What a tool is handed in tests, and what it told about its children."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.manual_clock import ManualClock
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.tool import Spawned, ToolContext

SOMEBODY = Principal(id="person:ada", roles=frozenset(), channel="web", sender="ada")
AT_HOME = Address(channel="web", account="local", chat="ada", direct=True)


@dataclass(kw_only=True)
class Records:
    """Every group that was recorded, in order, with None for "reaped"."""

    seen: list[Spawned | None] = field(default_factory=list[Spawned | None])

    async def spawned(self, group: Spawned | None) -> None:
        self.seen.append(group)

    @property
    def pgid(self) -> int:
        """The first group's id."""
        [first] = [group for group in self.seen[:1] if group is not None]
        return first.pgid


def everything(resource: str) -> bool:
    """What a call may touch where no policy narrows it."""
    return resource.startswith("file:/")


def tool_context(
    workspace: Path, records: Records | None = None, permits: Callable[[str], bool] = everything
) -> ToolContext:
    return ToolContext(
        conversation=ConversationId("01CONVERSATION"),
        principal=SOMEBODY,
        address=AT_HOME,
        workspace=workspace,
        clock=ManualClock(),
        spawned=(records or Records()).spawned,
        max_file_bytes=1_000_000,
        permits=permits,
    )
