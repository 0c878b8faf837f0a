"""The result of cutting a text: the messages, and the contents between the cuts."""

from collections.abc import Iterable
from itertools import pairwise

from zeroclaw.delivery.split import Fits, Piece, pieces


def split(markdown: str, fits: Fits) -> tuple[str, ...]:
    """The texts of the messages to send, in order; none for a blank text."""
    return tuple(piece.text for piece in pieces(markdown, fits) if piece.text)


def contents_of(found: Iterable[Piece], text: str, start: int = 0) -> list[str]:
    """The unchanged text between each two cuts; joined, all of it if nothing is lost."""
    cuts = [start, *(piece.end for piece in found)]
    return [text[begin:end] for begin, end in pairwise(cuts)]
