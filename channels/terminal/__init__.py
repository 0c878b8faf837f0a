"""The terminal chat: `zeroclaw chat` on the control socket, for the daemon's own uid."""

from pydantic import BaseModel, ConfigDict, Field

from zeroclaw import Capabilities, ChannelManifest

CAPABILITIES = Capabilities(
    max_length=60_000,  # characters; with every one escaped still far below a line of 1 MiB
    can_edit=True,
    can_delete=True,
    idempotent_send=True,
    has_typing=True,
)
"""Without `min_edit_interval_s`, which is a setting."""


class TerminalSettings(BaseModel):
    """The keys of `[channels.terminal]` beside the common ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    draft_interval_s: float = Field(default=0.05, ge=0.02, le=10)
    """Seconds between two frames of an answer that is being written."""


MANIFEST = ChannelManifest(
    kind="terminal",
    adapter="channels.terminal.adapter:open_channel",
    settings="channels.terminal:TerminalSettings",
    local_operator=True,
)
