"""A sound or video is answered by a sentence of the bot's own, with any answer of the model."""

from datetime import UTC, datetime

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import CAPABILITIES
from tests.fakes.scripted_model import says
from tests.unit.conversation.test_downloads import file, send, texts_sent
from zeroclaw.config.model import PersonSettings
from zeroclaw.conversation.attachments import AttachmentRow, is_unheard
from zeroclaw.envelope import Attachment, ItemId
from zeroclaw.errors import ProviderRejected
from zeroclaw.store import DurablePoint
from zeroclaw.text.catalogue import UNHEARD
from zeroclaw.value import replace

OGG = b"OggS" + bytes(200)
SENTENCE = UNHEARD.to("en")
BELOW = f"\n\n_{SENTENCE}_"


def voice(world: World, name: str = "voice.ogg") -> Attachment:
    return replace(file(world, name, OGG), media_type="audio/ogg")


async def test_a_caption_is_answered_and_the_sentence_is_sent(world: World) -> None:
    async with world.running() as house:
        await send(house, "who is this?", voice(world))
        assert house.texts() == [f"ok{BELOW}"]
        assert "there is no transcriber; the person is told so" in texts_sent(world)[0]


async def test_the_sentence_stands_below_a_failure_and_its_retry(world: World) -> None:
    """It needs no model."""
    world.model.will((ProviderRejected("it is down"),), says("better"))
    async with world.running() as house:
        await send(house, "who is this?", voice(world))
        assert house.texts() == [f"_The model can't answer: it is down._{BELOW}"]
        await house.say("/retry")
        assert house.texts()[-1] == f"better{BELOW}"


async def test_a_picture_beside_a_video_is_the_models(world: World) -> None:
    async with world.running() as house:
        await send(house, "", voice(world), file(world, "a.txt", b"milk"))
        assert house.texts() == [f"ok{BELOW}"]


async def test_the_sentence_is_in_the_persons_language(world: World) -> None:
    world.configure(people=(PersonSettings(name="ada", ids=("chat:ada",), language="de"),))
    async with world.running() as house:
        await send(house, "", voice(world))
        assert house.texts() == [UNHEARD.to("de")]


@pytest.mark.parametrize(
    "point",
    [
        DurablePoint.ADMITTED,
        DurablePoint.FETCHED,
        DurablePoint.TURN_STARTED,
        DurablePoint.FINISHED,
        DurablePoint.DELIVERED,
    ],
)
async def test_a_kill_after_any_point_leaves_one_sentence(
    world: World, point: DurablePoint
) -> None:
    """Also of a turn that was over as it began (P1)."""
    world.add_platform("chat", replace(CAPABILITIES, idempotent_send=True))
    recording = voice(world)
    async with world.running() as house:
        world.store.cut_after(point)
        await house.say_and_die("", recording)
    world.store.heal()
    async with world.running() as house:
        await house.advance(2)  # what was committed to be said waits until its channel is there
        assert house.texts() == [SENTENCE]
        assert await house.states() == ["answered"]
        assert world.model.requests == []


@pytest.mark.parametrize(
    ("media_type", "label", "failed", "expected"),
    [
        ("audio/ogg", "Ogg audio or video", "", True),
        ("application/octet-stream", "MP3 audio", "", True),
        ("audio/amr", "data of an unknown kind", "", True),
        ("video/mp4", "", "it is too large", True),
        ("image/heic", "MP4 video or audio", "", False),
        ("audio/ogg", "text", "", False),
        ("application/pdf", "", "it is too large", False),
    ],
)
def test_a_sound_is_recognized_by_its_bytes_then_by_its_platform(
    media_type: str, label: str, failed: str, *, expected: bool
) -> None:
    attachment = AttachmentRow(
        number=1,
        item=ItemId("i"),
        place=0,
        principal="p",
        attachment=Attachment(reference="r", name="a", media_type=media_type),
        at=datetime(2026, 1, 1, tzinfo=UTC),
        label=label,
        failed=failed,
    )
    assert is_unheard(attachment) is expected
    assert is_unheard(replace(attachment, media_type="audio/wav"), ("images",)) is expected
    assert not is_unheard(replace(attachment, media_type="audio/wav"), ("audio",))
