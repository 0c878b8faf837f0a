"""Write what a call carries as python-telegram-bot wants it."""

from collections.abc import Sequence

from telegram import (
    CopyTextButton,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    MessageEntity,
    ReplyParameters,
)

from channels.telegram.cards import Button
from channels.telegram.styled import Mark, cut
from zeroclaw import Address, CheckedReceipt

MOST_RECEIPTS = 20
"""Buttons of one message; the text says below which claim a receipt was meant to stand."""
MOST_LABEL_UNITS = 128
"""Of a button; apps show as much as their screen is wide. The Bot API gives no limit."""


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


def receipts(checked: Sequence[CheckedReceipt]) -> InlineKeyboardMarkup | None:
    """Return a button for each receipt, which copies it when it is pressed; None for none."""
    if not checked:
        return None
    shown = [(f"{'🕓' if one.earlier else '✅'} {one.line()}", one) for one in checked]
    return InlineKeyboardMarkup(
        [
            [
                InlineKeyboardButton(
                    cut(label, MOST_LABEL_UNITS), copy_text=CopyTextButton(one.token)
                )
            ]
            for label, one in shown[:MOST_RECEIPTS]
        ]
    )


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
