"""Configuration keys shared by all platforms on the internet."""

from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from zeroclaw import Budget, Capabilities, NotSupported, replace

FASTEST_EDIT_S = 0.05
"""Edit interval with `limits = "off"`: as often as the eye can follow."""


def is_safe(url: str) -> bool:
    """Whether a secret may be sent to a URL: by https, or by http to a near host."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:  # such as an unclosed bracket
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_near(host)))


def is_near(host: str) -> bool:
    """Whether a host is this machine or in its private network, where plain HTTP will do."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan"))


def check_lookup(channel: str, can: Capabilities) -> None:
    """Check that the settings allow looking messages up.

    Raises:
        NotSupported: They do not.
    """
    if not can.can_lookup:
        message = f"`{channel}` is configured not to look messages up"
        raise NotSupported(message)


def is_public(settings: BaseModel) -> bool:
    """Whether the platform calls the public listener for a channel with these settings."""
    return getattr(settings, "receive", "") == "webhook"


class RemoteSettings(BaseModel):
    """The keys of a platform's table, in addition to the common ones and its own."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    link_previews: bool = False
    """Whether the platform shows previews of links in answers; it fetches each link for that."""
    uncertain: Literal["lookup", "resend", "hold"] = "lookup"
    """How to handle a send with unknown outcome: look the message up in the chat; send it again, marked
    as a possible repeat; or do neither, and tell the operator."""
    api_base_url: str = Field(default="", max_length=200)
    """Base URL of the API; change it for a server of your own."""
    limits: Literal["published", "off"] = "published"
    """Which rate limits to respect; use `off` only for a server of your own that has none."""

    def within(self, can: Capabilities) -> Capabilities:
        """Return an account's capabilities under these settings; `can` has the published limits."""
        is_lookup = self.uncertain not in {"resend", "hold"}
        can = replace(can, can_lookup=is_lookup, may_repeat=self.uncertain != "hold")
        if self.limits == "published":
            return can
        return replace(
            can,
            min_edit_interval_s=FASTEST_EDIT_S,
            chat_budget=Budget(),
            group_budget=None,
            account_budget=Budget(),
            edit_budget=Budget(),
        )

    @field_validator("api_base_url")
    @classmethod
    def _is_safe(cls, url: str) -> str:
        """Reject plain HTTP to the internet, because every call carries a token."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
            message = f"must be an address such as {cls.model_fields['api_base_url'].default}"
            raise ValueError(message)
        if not is_safe(url):
            message = f"`{parts.hostname}` needs https: a token goes with each call"
            raise ValueError(message)
        return url.rstrip("/")
