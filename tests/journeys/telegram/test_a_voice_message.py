"""A voice message, where nothing turns speech into text."""

from pathlib import Path

import pytest

from tests.journeys.telegram.bot import bot
from zeroclaw.text.catalogue import UNHEARD

pytestmark = pytest.mark.slow


async def test_a_voice_message_gets_a_sentence_that_it_is_not_heard(tmp_path: Path) -> None:
    """Without asking the model; a caption is answered, and the sentence said as well."""
    async with bot(tmp_path) as world:
        sound, sentence = b"OggS" + bytes(200), UNHEARD.to("en")
        world.ann.sends("voice", sound, name="voice.ogg")
        await world.expect(world.ann.chat, sentence)
        assert world.model.requests == []
        world.model.say("that is Bob")
        world.ann.sends("voice", sound, name="voice.ogg", caption="who is it?")
        await world.expect(world.ann.chat, sentence, f"that is Bob\n\n{sentence}")
        content = str(world.model.requests[-1].messages[-1]["content"])
        assert "2. `voice.ogg`: Ogg audio or video, 204 bytes; nobody here can listen" in content
