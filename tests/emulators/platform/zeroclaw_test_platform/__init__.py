"""A platform for tests: its server runs in the test, its channel inside the daemon.

The halves meet over a TCP socket of this machine. `zeroclaw_test_platform.platform.Platform` is
the server; the capabilities of an account are in the channel's settings, so that the adapter
knows them before it has connected.
"""

from pydantic import BaseModel, ConfigDict, Field

from zeroclaw import Budget, Capabilities, ChannelManifest


class LoopbackSettings(BaseModel):
    """The keys of `[channels.<name>]` beside the common ones; defaults make a generous platform."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    port: int = Field(ge=1, le=65535)
    account: str = Field(default="bot", min_length=1)
    max_length: int = Field(default=4000, ge=20)
    can_edit: bool = True
    can_delete: bool = True
    min_edit_interval_s: float = Field(default=0.0, ge=0)
    chat_per_s: float = Field(default=0.0, ge=0)
    chat_burst: int = Field(default=1, ge=1)
    account_per_s: float = Field(default=0.0, ge=0)
    account_burst: int = Field(default=1, ge=1)
    has_buttons: bool = True
    has_threads: bool = True
    multi_message: bool = True
    idempotent_send: bool = True
    has_typing: bool = True
    max_file_bytes: int = Field(default=1_000_000, ge=0)
    opens_direct_chats: bool = True
    """Whether the bot may write to a person who never wrote to it."""

    def capabilities(self) -> Capabilities:
        """Return the capabilities of the account."""
        return Capabilities(
            max_length=self.max_length,
            can_edit=self.can_edit,
            can_delete=self.can_delete,
            min_edit_interval_s=self.min_edit_interval_s,
            chat_budget=Budget(per_s=self.chat_per_s, burst=self.chat_burst),
            account_budget=Budget(per_s=self.account_per_s, burst=self.account_burst),
            has_buttons=self.has_buttons,
            has_threads=self.has_threads,
            multi_message=self.multi_message,
            idempotent_send=self.idempotent_send,
            has_typing=self.has_typing,
            max_file_bytes=self.max_file_bytes,
        )


MANIFEST = ChannelManifest(
    kind="loopback",
    adapter="zeroclaw_test_platform.adapter:open_channel",
    settings="zeroclaw_test_platform:LoopbackSettings",
)
