"""The platforms other than Telegram, and the local channels, on which the same scenarios are played."""

from collections.abc import Mapping
from typing import Protocol

import pytest

from tests.faults.on_discord import on_discord
from tests.faults.on_email import on_email
from tests.faults.on_slack import on_slack
from tests.faults.on_terminal import on_terminal
from tests.faults.on_web import on_web
from tests.faults.platform_world import OpenWorld


class Opens(Protocol):
    """Makes the opener of a platform."""

    def __call__(self, *, channel: Mapping[str, object]) -> OpenWorld:
        """Return the opener, with these keys of the channel's configuration."""
        ...


PLATFORMS: Mapping[str, Opens] = {"discord": on_discord, "email": on_email, "slack": on_slack}
NEEDS = {"discord": (), "email": ("dovecot", "postfix"), "slack": ("emulate",)}
LOCAL: Mapping[str, Opens] = {"terminal": on_terminal, "web": on_web}
"""Local channels have one person, whose chat also shows the cards."""
WITHOUT_EDITS = {"email", *LOCAL}
WITHOUT_FILES = {"terminal"}


def on(platform: str) -> pytest.MarkDecorator:
    """Return the mark of a test that needs a platform."""
    return pytest.mark.needs("bwrap", *NEEDS.get(platform, ()))
