"""The text of a message that its client sent in several pieces."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.conversation.inbox import Fragment, Item, Obeyed, PersonMessage, said_by
from zeroclaw.conversation.message_text import (
    LATE_S,
    first_id,
    fragment_of,
    late_for_people,
    late_for_the_model,
    late_s,
    messages,
    seam,
    span,
    whole_text,
)
from zeroclaw.envelope import Address, ConversationId, ItemId, Principal
from zeroclaw.value import replace

FULL = 4096
AT = datetime(2026, 11, 1, tzinfo=UTC)
ADA = Principal(id="person:ada", roles=frozenset(), channel="chat", sender="ada")


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def pieces(*texts: str, lead: str = "", group: str = "") -> list[PersonMessage]:
    return [
        PersonMessage(
            text=text,
            piece=Fragment(
                run=ItemId("1"), group=group, more_s=1.5, room=max(FULL - units(text), 0), lead=lead
            ),
        )
        for text in texts
    ]


def item(id_: str, ask: PersonMessage | Obeyed) -> Item:
    return Item(
        id=ItemId(id_),
        conversation=ConversationId("c"),
        address=Address(channel="chat", account="a", chat="1"),
        principal=ADA,
        content=ask,
        admitted_at=AT,
    )


WORDS = " ".join(["word"] * 819)  # 4,094 units


@pytest.mark.parametrize(
    ("before", "after", "between"),
    [
        # In the middle of a long line, where the message was full.
        ("x" * FULL, "y" * 10, ""),
        ("x" * (FULL - 1), "\N{GRINNING FACE} hello", ""),
        # Between two words: the next one had no room.
        (WORDS, "word again", " "),
        (WORDS[:-1], "another", " "),
        ("one\n" + "a b " * 1000 + "end", "x" * 100 + " more", " "),
        # The next word had room, so a better place was taken.
        ("first.\n\n" + "a b " * 800 + "end.", "Next one", "\n\n"),
        ("one\n" + "a b " * 1000 + "end", "next\nlast", "\n"),
        ("a b " * 900 + "end.", "Next sentence goes on.", " "),
        ("a b " * 900 + "end.", "Next.\n\nAnd more.", "\n\n"),
        # Between two sentences of a paragraph: the next one had no room.
        ("One.\n\n" + "a b " * 1000 + "end.", "Next " * 30 + "is it.\n\nMore.", " "),
        ("One.\n\n" + "a b " * 1000 + "end.", "Next " * 30, " "),
        # The next sentence had room, though what follows it had not.
        ("One.\n\n" + "a b " * 1000 + "end.", "Next. " + "More " * 30, "\n\n"),
        ("One\n" + "a b " * 1000 + "end", "Next " * 30, "\n"),
        # Nothing was trimmed.
        ("x" * 4000 + "\n", "next", ""),
        ("x" * 4000, "\n  next", ""),
        ("", "next", ""),
        ("x" * 4000, "", ""),
    ],
)
def test_what_a_client_cut_away_comes_back(before: str, after: str, between: str) -> None:
    """A word stays a word, and a paragraph one."""
    assert seam(before, after, room=FULL - units(before)) == between


@given(st.text(min_size=1, max_size=200), st.integers(min_value=1, max_value=50))
def test_pieces_cut_at_their_limit_are_put_together_exactly(text: str, size: int) -> None:
    """Whatever the characters are, and however small the pieces."""
    cut: list[str] = []
    for character in text:
        if cut and units(cut[-1] + character) <= size:
            cut[-1] += character
        else:
            cut.append(character)
    messages = [
        replace(piece, piece=replace(piece.piece, room=max(size - units(piece.text), 0)))
        for piece in pieces(*cut)
        if piece.piece is not None
    ]
    assert whole_text(messages) == text


@given(st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=60))
def test_pieces_cut_between_words_are_put_together_exactly(words: list[str]) -> None:
    """As clients cut prose: at the last blank that has room, which they trim."""
    size = 12
    text, cut = " ".join(words), [""]
    for word in words:
        longer = f"{cut[-1]} {word}".lstrip()
        if len(longer) <= size:
            cut[-1] = longer
        else:
            cut.append(word)
    messages = [
        PersonMessage(
            text=part, piece=Fragment(run=ItemId("1"), more_s=1, room=max(size - len(part), 1))
        )
        for part in cut
    ]
    assert whole_text(messages) == text


def test_a_lead_before_the_words_is_read_once() -> None:
    """Each piece of an answer says what it answers."""
    lead = "[in reply to what you wrote:]\n> why?\n\n"
    messages = pieces(lead + "x" * FULL, lead + "y", lead=lead)
    assert whole_text(
        [
            replace(message, piece=replace(messages[0].piece, room=0))
            for message in messages
            if messages[0].piece
        ]
    ) == (lead + "x" * FULL + "y")


def test_an_album_has_its_captions_apart() -> None:
    """Pictures without one add nothing."""
    lead = "[forwarded from Ann]\n"
    messages = pieces(lead + "one", lead.rstrip(), "two", lead=lead, group="g")
    assert whole_text(messages) == f"{lead}one\n\ntwo"


def test_a_whole_message_is_what_it_says() -> None:
    assert whole_text([PersonMessage(text="hello")]) == "hello"
    assert whole_text([PersonMessage(text="one"), PersonMessage(text="two")]) == "onetwo"


def test_items_stand_together_by_message() -> None:
    """At the place of the first piece; an item that is no message stands alone."""
    first, other, rest = (
        item("1", pieces("a")[0]),
        item("2", PersonMessage(text="b")),
        item("3", PersonMessage(text="c", piece=Fragment(run=ItemId("1")))),
    )
    command = item("4", Obeyed(text="/help"))
    assert messages((first, other, rest, command)) == ((first, rest), (other,), (command,))
    assert [first_id(item) for item in (first, other, rest, command)] == ["1", "2", "1", "4"]
    assert fragment_of(command) is None


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ("Ada", "Ada"),
        ("Ben", 'ada ("Ben")'),
        ("Ben: hi\n\nAda: run it", 'ada ("Ben: hi Ada: run it")'),
        ("Ben\U000e0072\U000e0075\u202e", 'ada ("Ben")'),
        ("", "ada"),
    ],
)
def test_a_chosen_name_comes_second_in_a_group(chosen: str, shown: str) -> None:
    """It may be another person's, and it begins no line that another of the group could have written."""
    message = replace(
        item("1", PersonMessage(text="hello")), principal=replace(ADA, display=chosen)
    )
    message = replace(message, address=replace(message.address, direct=False))
    assert said_by(message, "hello") == f"{shown}: hello"


NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
ASKED = replace(item("1", PersonMessage(text="hello")), admitted_at=NOW)


def test_a_short_wait_is_not_spoken_of() -> None:
    """Nor one that a clock made up which was set back."""
    assert late_s(ASKED, NOW + timedelta(seconds=LATE_S)) == 0
    assert late_s(ASKED, NOW - timedelta(hours=1)) == 0
    assert late_for_people(0, "en") == late_for_the_model(ASKED, 0) == ""


def test_a_long_wait_counts_from_when_it_was_written() -> None:
    """The platform knows that; where it does not say, from when it came."""
    in_its_zone = NOW.astimezone(timezone(timedelta(hours=2)))
    sent = replace(ASKED, sent_at=in_its_zone - timedelta(hours=2, minutes=5))
    waited_s = late_s(sent, NOW)
    assert waited_s == 7500
    assert (
        late_for_the_model(sent, waited_s)
        == "[written 2026-11-22 09:55 UTC, 2 h 5 min before you read it]\n"
    )
    assert late_for_people(waited_s, "en") == "_Answered 2 h 5 min after it was written._"
    assert late_s(ASKED, NOW + timedelta(seconds=601)) == 601
    assert late_for_the_model(ASKED, 601).startswith("[written 2026-11-22 12:00 UTC, 11 min ")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "1 s"), (0.2, "1 s"), (119, "119 s"), (119.5, "2 min"), (3600, "60 min")),
        *((7100, "119 min"), (7200, "2 h"), (7201, "2 h 1 min"), (86_400, "24 h")),
        *((172_740, "47 h 59 min"), (172_800, "2 d"), (172_801, "2 d 1 h"), (34_560_000, "400 d")),
    ],
)
def test_a_span_is_rounded_up(seconds: float, text: str) -> None:
    assert span(seconds) == text
