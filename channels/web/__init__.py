"""The web chat: a page on the local listener, for the holder of its login link."""

from pydantic import Field

from channels._local import CAPABILITIES as LOCAL
from channels._local import LocalSettings
from zeroclaw import ChannelManifest, replace

CAPABILITIES = replace(
    LOCAL,
    has_buttons=True,
    max_file_bytes=50_000_000,  # the page only links to files; a browser's own limit is far higher
)


class WebSettings(LocalSettings):
    """The keys of `[channels.web]`, in addition to the common ones."""

    title: str = Field(default="zeroclaw", min_length=1, max_length=80)
    """Title of the page."""
    max_file_bytes: int = Field(default=10_000_000, ge=1_000, le=16_000_000)
    """Largest file that can be sent with a message, in bytes."""


MANIFEST = ChannelManifest(
    kind="web",
    adapter="channels.web.adapter:WebChannel",
    settings="channels.web:WebSettings",
    local_operator=True,
)
