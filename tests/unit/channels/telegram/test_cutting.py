"""Which messages very likely go on in the next one."""

import pytest

from channels.telegram.contents import ALBUM_S, FULL, FULL_S, HALF, HALF_S, NEARLY_FULL
from tests.unit.channels.telegram.updates import BOT, message, new, taken
from zeroclaw import Command, Continues

PHOTO = {"photo": [{"file_id": "f", "width": 9, "height": 9}]}


@pytest.mark.parametrize(
    ("said", "more"),
    [
        ("hello", None),
        ("x" * HALF, None),
        ("x" * (HALF + 1), Continues(within_s=HALF_S, room=HALF - 1)),
        ("x" * NEARLY_FULL, Continues(within_s=HALF_S, room=300)),
        ("x" * (NEARLY_FULL + 1), Continues(within_s=FULL_S, room=299)),
        ("x" * FULL, Continues(within_s=FULL_S)),
        # Telegram counts UTF-16 units, of which an emoji has two.
        ("\N{GRINNING FACE}" * (HALF // 2), None),
        ("\N{GRINNING FACE}" * (FULL // 2), Continues(within_s=FULL_S)),
        # More than Telegram takes, as another server may.
        ("x" * (FULL + 5), Continues(within_s=FULL_S)),
    ],
)
def test_only_a_long_text_goes_on(said: str, more: Continues | None) -> None:
    """The fuller it is the longer is waited; all others wait for nothing."""
    assert taken(new(text=said)).continues == more


def test_a_picture_of_an_album_goes_on() -> None:
    """Whoever wrote under it, or passes it on."""
    album = taken(new(media_group_id="7", caption="two", **PHOTO))
    assert album.continues == Continues(within_s=ALBUM_S, group="7")
    origin = {"sender_user_name": "Eve"}
    passed_on = taken(new(media_group_id="7", forward_origin=origin, **PHOTO))
    assert passed_on.continues == Continues(
        within_s=ALBUM_S, group="7", lead="[forwarded from Eve]\n"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"forward_origin": {"sender_user_name": "Eve"}, "text": "x" * FULL},
        {"via_bot": BOT, "text": "x" * FULL},
    ],
)
def test_what_its_sender_did_not_write_stands_alone(fields: dict[str, object]) -> None:
    """It neither goes on nor is it the rest of something."""
    envelope = taken(new(**fields))
    assert envelope.continues is None
    assert envelope.alone
    assert not taken(new(text="hello")).alone


def test_a_caption_does_not_go_on() -> None:
    assert taken(new(caption="x" * FULL, **PHOTO)).continues is None


def test_what_reads_like_a_command_may_be_cut_from_a_text() -> None:
    """It is told as it was written, and how it goes on."""
    said = "/Users are\nmany " + "x" * 4000
    command = taken(new(text=said))
    assert command.body == Command(name="users", rest=said[len("/Users ") :])
    assert command.verbatim == said
    assert command.continues is not None
    assert taken(new(text="hello")).verbatim == ""


def test_what_is_answered_is_told_with_it() -> None:
    """Each piece of an answer says so, and it is read once."""
    answered = message(message_id=2, text="why?", **{"from": BOT})
    envelope = taken(new(text="x" * FULL, reply_to_message=answered))
    assert envelope.continues is not None
    assert envelope.continues.lead == "[in reply to what you wrote:]\n> why?\n\n"
