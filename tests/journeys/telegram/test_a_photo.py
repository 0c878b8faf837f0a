"""A photo in a message: shown to a model that takes images, named to one that does not."""

import io
from base64 import b64encode
from pathlib import Path

import pytest
from PIL import Image

from tests.journeys.telegram.bot import bot

pytestmark = pytest.mark.slow


def photo() -> bytes:
    drawn = io.BytesIO()
    Image.new("RGB", (64, 48), "red").save(drawn, "JPEG")
    return drawn.getvalue()


async def test_a_photo_reaches_a_model_that_sees_also_after_a_kill(tmp_path: Path) -> None:
    """As the part of the wire that carries images, beside its caption and its name. S1-08."""
    async with bot(tmp_path, provider={"takes": ["images"]}) as world:
        world.model.say("A red one.", key="what is it")
        world.ann.sends("photo", photo(), name="a.jpg", caption="what is it?")
        await world.expect(world.ann.chat, "A red one.")
        text, image = world.model.requests[-1].parts
        assert str(text["text"]).startswith("what is it?\n\n[Files that came with this message")
        url = f"data:image/jpeg;base64,{b64encode(photo()).decode()}"
        assert image == {"type": "image_url", "image_url": {"url": url}}
        await world.restart()
        world.model.say("Still red.", key="and now")
        world.ann.says("and now?")
        await world.expect(world.ann.chat, "A red one.", "Still red.")
        assert image in world.model.requests[-1].parts


async def test_another_persons_photo_is_shown_in_a_reply_to_it(tmp_path: Path) -> None:
    """In a group it was not for the bot until then. S1-08."""
    async with bot(tmp_path, provider={"takes": ["images"]}) as world:
        group = world.telegram.supergroup("Team", world.ann, world.bob)
        world.model.say("A red one.", key="what is it")
        world.bob.sends("photo", photo(), name="a.jpg", chat=group)
        world.ann.says("@zero_bot what is it?", chat=group, reply_to=group.messages[-1])
        await world.expect(group, "A red one.")
        text, image = world.model.requests[-1].parts
        assert "with the message it replies to" in str(text["text"])
        assert image["type"] == "image_url"


async def test_a_photo_is_named_to_a_model_that_does_not_see(tmp_path: Path) -> None:
    """And read with the tool, as every file."""
    async with bot(tmp_path) as world:
        world.model.call("read_attachment", {"id": 1}, key="what is it", round=0)
        world.model.say("A JPEG.", key="what is it", round=1)
        world.ann.sends("photo", photo(), name="a.jpg", caption="what is it?")
        await world.expect(world.ann.chat, "A JPEG.")
        assert world.model.requests[-1].parts == []
        assert "JPEG image, 64 x 48 pixels" in str(world.model.requests[-1].messages[-1])


async def test_an_endpoint_that_refuses_the_photo_is_asked_without_it(tmp_path: Path) -> None:
    """The answer comes all the same."""
    async with bot(tmp_path, provider={"takes": ["images"]}) as world:
        world.model.refuse(400, "image_url is not supported", key="what is it")
        world.model.say("I can't see it.", key="what is it")
        world.ann.sends("photo", photo(), name="a.jpg", caption="what is it?")
        await world.expect(world.ann.chat, "I can't see it.")
        assert [bool(request.parts) for request in world.model.requests] == [True, False]
        assert "[file 1 is not shown]" in world.model.requests[-1].last_user
