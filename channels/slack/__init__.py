"""Slack: one app in one workspace, received by Socket Mode or by the Events API.

Importing this module needs none of the libraries of the extra `slack`.
"""

from typing import Literal

from pydantic import Field, field_validator, model_validator

from channels._remote.settings import RemoteSettings
from zeroclaw import HOOK_PATH, Budget, Capabilities, ChannelManifest, SecretReference

CAPABILITIES = Capabilities(
    # 12,000 characters in all such blocks of a message (docs.slack.dev, "Markdown block", read
    # 2026-11). Counted in UTF-16 units, the strictest measure.
    max_length=12_000,
    can_edit=True,
    can_delete=True,
    has_buttons=True,
    has_threads=True,
    has_typing=True,
    names_tools=True,
    # Slack takes 1 GB ("Working with files", read 2026-11), but a file is held in memory.
    max_file_bytes=50_000_000,
    # "Rate limits", read 2026-11, per method: about one message a second in a channel, with short
    # bursts; several hundred a minute in a workspace. `chat.update` is tier 3: 50 a minute for all
    # channels, with sporadic bursts. This stays below that, so that late edits still fit.
    min_edit_interval_s=3.0,
    chat_budget=Budget(per_s=0.9, burst=3),
    account_budget=Budget(per_s=4, burst=20),
    edit_budget=Budget(per_s=0.8, burst=20),
)
API = "https://slack.com/api"


class SlackSettings(RemoteSettings):
    """The keys of `[channels.slack]`, in addition to the common ones."""

    bot_token: SecretReference
    """The bot token of the app in the workspace, `xoxb-…`."""
    receive: Literal["socket_mode", "webhook"] = "socket_mode"
    """How events arrive: over a connection opened to Slack, or by Slack calling the public listener
    (its Events API)."""
    app_token: SecretReference | None = None
    """The app-level token, `xapp-…`, which opens that connection; for `socket_mode`."""
    signing_secret: SecretReference | None = None
    """The app's signing secret, with which Slack signs its calls; for `webhook`."""
    webhook_path: str = Field(default="/slack", max_length=200)
    """The path of the public listener that Slack calls; for `webhook`."""
    channels: Literal["off", "mentioned", "all"] = "mentioned"
    """Which messages in channels are taken: none; mentions of the bot and messages in its threads; or
    all messages of the channels that it is in."""
    prompts: tuple[str, ...] = Field(default=(), max_length=4)
    """Suggested prompts when a person opens the direct chat, or an older app's assistant; at most four."""
    drafts: Literal["streamed", "edited"] = "streamed"
    """How a growing answer in a thread is shown: as one of Slack's streams if Slack allows it, or as
    a message that is edited, as everywhere else."""
    api_base_url: str = Field(default=API, max_length=200)
    """Base URL of the Web API; change it for a server of your own."""

    def capabilities(self) -> Capabilities:
        """Return the account's capabilities under these settings."""
        return self.within(CAPABILITIES)

    @field_validator("webhook_path")
    @classmethod
    def _is_path(cls, path: str) -> str:
        if HOOK_PATH.fullmatch(path) is None:
            message = "must be a path such as /slack"
            raise ValueError(message)
        return path

    @model_validator(mode="after")
    def _has_one_secret(self) -> "SlackSettings":
        """Require the secret of the chosen `receive`; reject the other one's, which would be unused."""
        needed, unused = "app_token", "signing_secret"
        if self.receive == "webhook":
            needed, unused = unused, needed
        if getattr(self, needed) is None:
            fault = f'receive = "{self.receive}" needs the key `{needed}`'
            raise ValueError(fault)
        if getattr(self, unused) is not None:
            fault = f'`{unused}` is not used with receive = "{self.receive}"; leave one of them out'
            raise ValueError(fault)
        return self


MANIFEST = ChannelManifest(
    kind="slack",
    adapter="channels.slack.adapter:SlackChannel",
    settings="channels.slack:SlackSettings",
    needs=("slack_bolt",),
    check="channels.slack.calls:check",
    sender=r"[A-Z0-9]{2,30}",
    public="channels._remote.settings:is_public",
)
