"""The colours of all pages can be read."""

import re
from pathlib import Path

import pytest

SHEET = Path(__file__).parents[3] / "zeroclaw/web_page/base.css"
COLOURS = re.compile(r"^ *(--[a-z-]+: [^;]+;)$", re.MULTILINE)


def luminance(colour: str) -> float:
    """The relative luminance of `#rrggbb`, as WCAG 2.2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21."""
    darker, lighter = sorted((luminance(colour), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("night", [False, True], ids=["day", "night"])
def test_all_text_can_be_read(night: bool) -> None:
    """WCAG 2.2, AA: 4.5 to 1 for small text, on each ground that it stands on."""
    lines = COLOURS.findall(SHEET.read_text(encoding="utf-8"))
    half = len(lines) // 2
    shown = "".join(lines[half:] if night else lines[:half])
    of = dict(re.findall(r"(--[a-z-]+): (#[0-9a-f]{6});", shown))
    plain = ("--paper", "--raised", "--code", "--own")
    grounds: dict[str, tuple[str, ...]] = {
        "--ink": plain,
        "--soft": plain,
        **{f"--{name}": (f"--{name}-soft", "--raised") for name in ("ask", "bad", "good")},
        "--accent": ("--paper", "--raised"),
        "--on-accent": ("--accent",),
    }
    faint = {
        f"{text} on {ground}": round(contrast(of[text], of[ground]), 2)
        for text, under in grounds.items()
        for ground in under
        if contrast(of[text], of[ground]) < 4.5
    }
    assert faint == {}
