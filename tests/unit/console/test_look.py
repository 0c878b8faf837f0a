"""The console looks like the chat beside it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
COLOURS = re.compile(r"^ *(--[a-z-]+: [^;]+;)$", re.MULTILINE)


def colours(page: str) -> list[str]:
    """The colours of a page's sheet, by day and by night, in order."""
    return COLOURS.findall((ROOT / page / "style.css").read_text(encoding="utf-8"))


def test_both_pages_have_the_same_colours() -> None:
    """Neither can load the other's sheet: the chat may be called anything, or not be there."""
    assert colours("zeroclaw/console/page") == colours("channels/web/page")


def test_both_pages_have_the_same_icon() -> None:
    icons = [ROOT / page / "icon.svg" for page in ("zeroclaw/console/page", "channels/web/page")]
    assert icons[0].read_bytes() == icons[1].read_bytes()
