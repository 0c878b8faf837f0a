"""A text that a person sends at once is one message, in any number of pieces."""

from pathlib import Path

import pytest

from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

SENTENCES = "All work and no play makes a long text, and few read it to its end. " * 12
LONG = "\n\n".join(f"{number}. {SENTENCES.strip()}" for number in range(1, 12))
"""Some 9,000 characters in paragraphs of 800, of which a client makes three messages."""
WORDS = " ".join(f"word{number}" for number in range(1_100))
"""Some 9,000 characters without a line's end."""


def questions(world: Bot) -> list[str]:
    """The newest user message of each request."""
    return [request.last_user for request in world.model.requests]


@pytest.mark.parametrize("text", [WORDS, "x" * 9_000, LONG])
async def test_a_long_paste_is_one_message(tmp_path: Path, text: str) -> None:
    """Read as it was pasted, and answered once. S0-07, S2-01, P1."""
    async with bot(tmp_path) as world:
        world.model.say("That was long.")
        pieces = world.ann.pastes(text)
        assert len(pieces) == 3
        await world.expect(world.ann.chat, "That was long.")
        for piece in pieces:
            await world.telegram.confirmed(piece)
        (question,) = questions(world)
        assert question == text


async def test_a_kill_between_the_pieces_loses_none(tmp_path: Path) -> None:
    """The confirmed pieces wait for the rest, which comes after the restart. S2-01, P1."""
    async with bot(tmp_path) as world:
        world.model.say("That was long.")
        first, *others = WORDS[:4_090], WORDS[4_090:8_000], WORDS[8_000:]
        await world.telegram.confirmed(world.ann.says(first))
        await world.daemon.kill()
        for piece in others:
            world.ann.says(piece)
        await world.daemon.start()
        await world.expect(world.ann.chat, "That was long.")
        (question,) = questions(world)
        assert question.replace(" ", "") == WORDS.replace(" ", "")


async def test_an_album_is_one_message_with_its_pictures(tmp_path: Path) -> None:
    """One answer to all of them, in their order. S2-01."""
    async with bot(tmp_path) as world:
        world.model.say("Nice pictures.")
        world.ann.sends_album(
            {"a.jpg": b"a", "b.jpg": b"bb", "c.jpg": b"ccc"}.items(), caption="my cats"
        )
        await world.expect(world.ann.chat, "Nice pictures.")
        (question,) = questions(world)
        assert question.startswith("my cats\n\n[Files that came with this message")
        listed = [
            line.split(":")[1] for line in question.splitlines() if line[:2] in ("1.", "2.", "3.")
        ]
        assert len(listed) == 3


async def test_in_a_group_only_the_first_piece_names_the_bot(tmp_path: Path) -> None:
    """The rest is taken with it, and other talk is not. S2-01, P4."""
    async with bot(tmp_path) as world:
        group = world.telegram.supergroup("Team", world.ann, world.bob)
        world.model.say("That was long.", key="word0")
        world.model.say("Nice pictures.", key="cats")
        world.bob.says("hello all", chat=group)
        world.ann.pastes(f"@zero_bot {WORDS}", chat=group)
        await world.expect(group, "That was long.")
        world.bob.says("really?", chat=group)
        pictures = {"a.jpg": b"a", "b.jpg": b"bb"}
        world.ann.sends_album(pictures.items(), caption="@zero_bot my cats", chat=group)
        await world.expect(group, "That was long.", "Nice pictures.")
        text, album = questions(world)
        assert text == f"Ann: {WORDS}"
        assert album.startswith("Ann: my cats\n\n[Files that came")
        assert "\n2. " in album


async def test_an_album_is_whole_wherever_it_names_the_bot(tmp_path: Path) -> None:
    """Telegram Desktop writes the caption of several files below the last. S2-01."""
    async with bot(tmp_path) as world:
        group = world.telegram.supergroup("Team", world.ann)
        world.model.say("Nice pictures.")
        pictures = {"a.jpg": b"a", "b.jpg": b"bb"}
        world.ann.sends_album(pictures.items(), caption="@zero_bot my cats", below=1, chat=group)
        await world.expect(group, "Nice pictures.")
        (album,) = questions(world)
        assert album.startswith("Ann: my cats\n\n[Files that came")
        assert "\n2. " in album


async def test_an_ordinary_message_is_not_joined(tmp_path: Path) -> None:
    """Two short ones are two, however fast they come. S2-01."""
    async with bot(tmp_path) as world:
        world.model.say("to one", key="one")
        world.model.say("to two", key="two")
        world.ann.says("one")
        world.ann.says("two")
        await world.expect(world.ann.chat, "to one", "to two")


async def test_a_mention_that_an_edit_adds_to_an_album_is_read(tmp_path: Path) -> None:
    """With the words of the edit, and all pictures. S2-01."""
    async with bot(tmp_path) as world:
        group = world.telegram.supergroup("Team", world.ann)
        world.model.say("The second.")
        pictures = {"a.jpg": b"a", "b.jpg": b"bb"}
        first, last = world.ann.sends_album(pictures.items(), caption="my cats", chat=group)
        await world.telegram.confirmed(last)
        world.ann.edits(first.sent, "@zero_bot which of my cats is older?")
        await world.expect(group, "The second.")
        (album,) = questions(world)
        assert album.startswith("Ann: which of my cats is older?\n\n[Files that came")
        assert "\n2. " in album
