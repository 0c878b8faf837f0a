"""What stands where a secret stood, and how much is held back to find one."""

MARKER = "[redacted]"

SHORTEST_VALUE = 8
"""In characters. Shorter values are not looked for: they would hit ordinary text."""

LONGEST_VALUE = 4096
"""In characters. A longer value is looked for in pieces of this length."""

LONGEST_WORD = 4096
"""In characters. A longer run of word characters is redacted whole."""


def holds_marker(text: str) -> bool:
    """Whether text went through redaction and lost something; such text must not be written."""
    return MARKER in text
