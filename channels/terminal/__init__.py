"""The terminal chat: `zeroclaw chat` on the control socket, for the daemon's own uid."""

from zeroclaw import ChannelManifest

MANIFEST = ChannelManifest(
    kind="terminal",
    adapter="channels.terminal.adapter:TerminalChannel",
    settings="channels._local:LocalSettings",
    local_operator=True,
)
