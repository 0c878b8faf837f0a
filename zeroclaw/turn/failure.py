"""A message that failed, as operators are told of it."""

from zeroclaw.text.language import Localized
from zeroclaw.value import Value


class Failure(Value):
    """One failure; no words of anybody's.

    Attributes:
        id: The same each time that this one is told, which may be asked for twice.
        why: What is equal where the cause is.
        says: The line about it: who, where and why.
        place: The chat whose person was told already.
    """

    id: str
    why: str
    says: Localized
    place: str
