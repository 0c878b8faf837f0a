"""What the chats of this machine share: one person, one chat, live events for all open views.

The web page and the terminal are two of these. Each says how it is served and shown; here stand
the envelopes that its events become (`decode`), what stands in the chat (`render`), how live events
reach everybody who is open (`feed`), and the adapter but for its doors (`adapter`).
"""

from pydantic import BaseModel, ConfigDict, Field

from zeroclaw import Capabilities

CAPABILITIES = Capabilities(
    max_length=60_000,  # characters; with every one escaped still far below a line of 1 MiB
    can_edit=True,
    can_delete=True,
    idempotent_send=True,
    has_typing=True,
)
"""Without `min_edit_interval_s`, which is a setting."""


class LocalSettings(BaseModel):
    """The keys that every local channel has beside the common ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    draft_interval_s: float = Field(default=0.05, ge=0.02, le=10)
    """Seconds between two frames of an answer that is being written."""
