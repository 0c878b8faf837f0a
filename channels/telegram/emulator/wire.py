"""The parameters of a Bot API call, however they were sent.

A value is a string, from a query or a form, or JSON. Telegram accepts both everywhere, and parses
numbers and flags leniently: an invalid one is 0 or false.
"""

import json
from collections.abc import Mapping
from typing import TypeGuard

from zeroclaw import Value, field

Json = Mapping[str, object]
_MAX_DIGITS = 20


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Whether parsed JSON is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[object]]:
    """Whether parsed JSON is an array."""
    return isinstance(value, list)


def is_number(value: object) -> TypeGuard[int]:
    """Whether parsed JSON is a whole number; true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def text_of(body: Json, key: str) -> str:
    """Return a string, empty for anything else."""
    value = body.get(key)
    return value if isinstance(value, str) else ""


def number_of(body: Json, key: str) -> int:
    """Return a whole number, 0 for anything else."""
    value = body.get(key)
    if isinstance(value, str):
        return whole(value)
    return value if is_number(value) else 0


def whole(text: str) -> int:
    """Parse a whole number; 0 for anything else, and for more digits than any number here has."""
    digits = text.strip().removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS
    return int(text) if is_number else 0


class Upload(Value):
    """A file uploaded in a form."""

    name: str
    content: bytes
    media_type: str = "application/octet-stream"


class Parameters(Value):
    """The parameters of one call.

    Attributes:
        values: By name; strings, or the values of a JSON body.
        files: Uploads, by the name of their form part.
    """

    values: Json = field(default_factory=dict[str, object])
    files: Mapping[str, Upload] = field(default_factory=dict[str, Upload])

    def has(self, name: str) -> bool:
        """Whether a parameter was sent and is not empty."""
        return self.values.get(name) not in (None, "")

    def text(self, name: str) -> str:
        """Return a string, a number as its digits, and an empty string for anything else."""
        value = self.values.get(name)
        return str(value) if isinstance(value, str | int) else ""

    def number(self, name: str) -> int:
        """Return a whole number, 0 for anything else."""
        return number_of(self.values, name)

    def flag(self, name: str) -> bool:
        """Return a flag; `true`, `yes` and `1` are true, in any letter case."""
        return self.text(name).lower() in ("true", "yes", "1")

    def json(self, name: str) -> object:
        """Return a parameter parsed as JSON; None if it is missing.

        Raises:
            ValueError: It is invalid JSON.
        """
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        return json.loads(value) if value else None

    def json_object(self, name: str) -> dict[str, object] | None:
        """Return a JSON object; None if it is missing.

        Raises:
            ValueError: It is something else.
        """
        value = self.json(name)
        if value is None or is_object(value):
            return value
        message = "expected an Object"
        raise ValueError(message)

    def json_array(self, name: str) -> list[object] | None:
        """Return a JSON array; None if it is missing.

        Raises:
            ValueError: It is something else.
        """
        value = self.json(name)
        if value is None or is_array(value):
            return value
        message = "expected an Array"
        raise ValueError(message)
