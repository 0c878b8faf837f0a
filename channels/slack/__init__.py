"""Slack: one app in one workspace, received by Socket Mode or by the Events API.

Nothing of the libraries of the extra `slack` is imported before it is known to be there.
"""

from typing import Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from channels._remote.settings import RemoteSettings
from zeroclaw import HOOK_PATH, Budget, Capabilities, ChannelManifest, SecretReference

CAPABILITIES = Capabilities(
    # docs.slack.dev, "Markdown block": 12,000 characters in all such blocks of a message, read 2026-11.
    # Held in UTF-16 units, the strictest count.
    max_length=12_000,
    can_edit=True,
    can_delete=True,
    has_buttons=True,
    has_threads=True,
    has_typing=True,
    names_tools=True,
    max_file_bytes=50_000_000,  # Slack takes 1 GB ("Working with files", read 2026-11); all of it is held
)
"""Without limits; those below are added where `limits` says so."""

# "Rate limits", read 2026-11, each for one method: about one message a second in a channel, short
# bursts pass; several hundred a minute in a workspace. `chat.update` is of tier 3, 50 a minute for all
# channels, with sporadic bursts; of those this leaves room for edits that arrive late.
EDIT_INTERVAL_S = 3.0
CHAT = Budget(per_s=0.9, burst=3)
ACCOUNT = Budget(per_s=4, burst=20)
EDITS = Budget(per_s=0.8, burst=20)
API = "https://slack.com/api"


class SlackSettings(RemoteSettings):
    """The keys of `[channels.slack]` beside the common ones."""

    bot_token: SecretReference
    """Of the app in the workspace, `xoxb-…`."""
    receive: Literal["socket_mode", "webhook"] = "socket_mode"
    """How events come: on a connection that is opened to Slack, or Slack calls the public listener
    (its Events API)."""
    app_token: SecretReference | None = None
    """Of the app itself, `xapp-…`, by which that connection is opened; for `socket_mode`."""
    signing_secret: SecretReference | None = None
    """Of the app, by which Slack proves that it is who calls; for `webhook`."""
    webhook_path: str = Field(default="/slack", max_length=200)
    """Which path of the public listener Slack calls; for `webhook`."""
    channels: Literal["off", "mentioned", "all"] = "mentioned"
    """What is taken in channels: nothing, what mentions the bot or follows in its threads, or every
    message of the channels that it is in."""
    prompts: tuple[str, ...] = Field(default=(), max_length=4)
    """What Slack offers to ask where somebody opens the app's assistant; at most four."""
    drafts: Literal["streamed", "edited"] = "streamed"
    """What an answer in a thread is while it is written: one of Slack's streams, where it takes them,
    or a message that is edited, as it is everywhere else."""
    api_base_url: str = Field(default=API, max_length=200)
    """Where the Web API answers; another one for a server of your own."""

    def capabilities(self) -> Capabilities:
        """Return what an account can do, within the limits that are kept."""
        return self.within(
            CAPABILITIES, edit_interval_s=EDIT_INTERVAL_S, chat=CHAT, account=ACCOUNT, edits=EDITS
        )

    @field_validator("webhook_path")
    @classmethod
    def _can_be_served(cls, path: str) -> str:
        if HOOK_PATH.fullmatch(path) is None:
            message = "must be a path such as /slack"
            raise ValueError(message)
        return path

    @model_validator(mode="after")
    def _comes_one_way(self) -> "SlackSettings":
        """Refuse a way in without its secret, and a secret of the other one, which nobody would use."""
        wanted, idle = ("app_token", "signing_secret")
        if self.receive == "webhook":
            wanted, idle = idle, wanted
        if getattr(self, wanted) is None:
            fault = f'receive = "{self.receive}" needs the key `{wanted}`'
            raise ValueError(fault)
        if getattr(self, idle) is not None:
            fault = f'`{idle}` is not used with receive = "{self.receive}"; leave one of them out'
            raise ValueError(fault)
        return self


def is_public(settings: BaseModel) -> bool:
    """Whether Slack calls the public listener; asked with the settings of one channel."""
    return isinstance(settings, SlackSettings) and settings.receive == "webhook"


MANIFEST = ChannelManifest(
    kind="slack",
    adapter="channels.slack.adapter:SlackChannel",
    settings="channels.slack:SlackSettings",
    needs=("slack_bolt",),
    check="channels.slack.calls:check",
    sender=r"[A-Z0-9]{2,30}",
    public="channels.slack:is_public",
)
