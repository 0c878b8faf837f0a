"""Code shared by the chats on this machine: one person, one chat, live events for all open views.

The web page and the terminal are such chats. Each defines how it is served and displayed. This
package turns their events into envelopes (`decode`), describes the items of the chat (`render`),
delivers live events to all open views (`feed`), and has the common part of the adapter (`adapter`).
"""

from pydantic import BaseModel, ConfigDict, Field

from zeroclaw import Capabilities

CAPABILITIES = Capabilities(
    max_length=60_000,  # characters; far below a line of 1 MiB even if all are escaped
    can_edit=True,
    can_delete=True,
    multi_message=False,
    idempotent_send=True,
    has_typing=True,
)
"""Without `min_edit_interval_s`, which comes from the settings."""


class LocalSettings(BaseModel):
    """The keys of every local channel, in addition to the common ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    draft_interval_s: float = Field(default=0.05, ge=0.02, le=10)
    """Seconds between two updates of an answer that is being written."""
