"""The web chat: a page on the local listener, for whoever holds its login link."""

from pydantic import BaseModel, ConfigDict, Field

from zeroclaw import Capabilities, ChannelManifest

CAPABILITIES = Capabilities(
    max_length=60_000,  # of characters; a page has no limit of its own, this is what reads well
    can_edit=True,
    can_delete=True,
    has_buttons=True,
    idempotent_send=True,
    has_typing=True,
    max_file_bytes=50_000_000,  # a page only links to it; a browser has no limit that is near
)
"""Without `min_edit_interval_s`, which is a setting."""


class WebSettings(BaseModel):
    """The keys of `[channels.web]` beside the common ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(default="zeroclaw", min_length=1, max_length=80)
    """Stands over the page."""
    draft_interval_s: float = Field(default=0.05, ge=0.02, le=10)
    """Seconds between two frames of an answer that is being written."""
    max_file_bytes: int = Field(default=10_000_000, ge=1_000, le=16_000_000)
    """Bytes of a file that is sent with a message."""


MANIFEST = ChannelManifest(
    kind="web",
    adapter="channels.web.adapter:open_channel",
    settings="channels.web:WebSettings",
    local_operator=True,
)
