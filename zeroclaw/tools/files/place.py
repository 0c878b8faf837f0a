"""Where one run of a file tool works, and what it may cost."""

import threading
from collections.abc import Callable
from pathlib import Path

from zeroclaw.errors import ToolFailed
from zeroclaw.host.executors import FairShare
from zeroclaw.host.protected import Protected, Rule
from zeroclaw.host.usage import Quota
from zeroclaw.value import Value, field


class FilesSettings(Value):
    """What the file tools may cost.

    Attributes:
        max_read_bytes: Of one answer.
        max_write_bytes: Of one file, before and after.
        max_send_bytes: Of one file that goes to a chat, whatever the chat takes.
        max_entries: Of one list.
        max_search_bytes: Read by one search, all files together.
        max_search_cpu_s: Seconds of its thread's processor time that one search may take.
        max_searched_file_bytes: Larger files are passed over by a search, and counted.
        protected: What can't be changed or seen.
        share: The places for all of this, one a conversation.
        quota: What a workspace may hold.
    """

    max_read_bytes: int = 262_144
    max_write_bytes: int = 1_048_576
    max_send_bytes: int = 10_000_000
    max_entries: int = 1_000
    max_search_bytes: int = 67_108_864
    max_search_cpu_s: float = 5.0
    max_searched_file_bytes: int = 4_194_304
    protected: Protected = field(default_factory=Protected)
    share: FairShare = field(default_factory=lambda: FairShare("calls on files", at_once=4))
    quota: Quota = field(default_factory=Quota)


class Place(Value):
    """What the thread of one run is handed.

    Attributes:
        workspace: Its real path.
        rules: What of it is protected.
        settings: What the run may cost.
        stopped: Set when nobody waits for the answer any more.
        permits: What of a directory may be touched, see `ToolContext.permits`.
        max_file_bytes: Of one file that the chat takes; 0 where it takes none.
    """

    workspace: Path
    rules: tuple[Rule, ...]
    settings: FilesSettings
    stopped: threading.Event
    permits: Callable[[str], bool]
    max_file_bytes: int = 0

    def go_on(self) -> None:
        """Stop here when the call was cancelled.

        Raises:
            ToolFailed: It was; nobody reads this.
        """
        if self.stopped.is_set():
            message = "stopped"
            raise ToolFailed(message)
