"""The platforms beside Telegram, and the channels of this machine, on which the same scenes are played."""

from collections.abc import Mapping
from typing import Protocol

import pytest

from tests.faults.on_discord import on_discord
from tests.faults.on_email import on_email
from tests.faults.on_slack import on_slack
from tests.faults.on_terminal import on_terminal
from tests.faults.on_web import on_web
from tests.faults.stage import Open


class Opens(Protocol):
    """What makes a stage of a platform."""

    def __call__(self, *, channel: Mapping[str, object]) -> Open:
        """Return what opens it, with these keys of its channel's configuration."""
        ...


PLATFORMS: Mapping[str, Opens] = {"discord": on_discord, "email": on_email, "slack": on_slack}
NEEDS = {"discord": (), "email": ("dovecot", "postfix"), "slack": ("emulate",)}
LOCAL: Mapping[str, Opens] = {"terminal": on_terminal, "web": on_web}
"""One person, whose chat asks, answers and shows."""
WITHOUT_EDITS = {"email", *LOCAL}
WITHOUT_FILES = {"terminal"}


def on(platform: str) -> pytest.MarkDecorator:
    """Return the mark of a test that plays there."""
    return pytest.mark.needs("bwrap", *NEEDS.get(platform, ()))
