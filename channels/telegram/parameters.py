"""Write what a call carries as python-telegram-bot wants it."""

from collections.abc import Sequence

from telegram import InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity, ReplyParameters

from channels.telegram.cards import Button
from channels.telegram.styled import Mark
from zeroclaw import Address


def thread(place: Address) -> int | None:
    """Return the topic of a place."""
    return None if place.thread is None else int(place.thread)


def entities(marks: Sequence[Mark]) -> list[MessageEntity]:
    """Return the styles of a text."""
    return [
        MessageEntity(
            one.kind,
            one.offset,
            one.length,
            url=one.url or None,
            language=one.language or None,
        )
        for one in marks
    ]


def keyboard(rows: Sequence[Sequence[Button]]) -> InlineKeyboardMarkup | None:
    """Return the buttons under a message, None for none."""
    if not rows:
        return None
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton(one.label, callback_data=one.data) for one in row] for row in rows]
    )


def answering(message: str) -> ReplyParameters | None:
    """Return what a message answers; it is sent also where that is gone."""
    if not message.isdecimal():
        return None
    return ReplyParameters(int(message), allow_sending_without_reply=True)
