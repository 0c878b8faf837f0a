"""Files that people send go to a model that takes them: by reference, within bounds, while fresh."""

import io
from base64 import b64decode, b64encode

import pytest
from PIL import Image

from tests.fakes.house import House, World
from tests.fakes.scripted_model import asks_for, says
from tests.unit.conversation.test_downloads import file, send
from zeroclaw.config.model import AttachmentSettings
from zeroclaw.context.history import FILES_STAY
from zeroclaw.conversation.attachments import ATTACHMENTS
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.errors import ProviderRejected
from zeroclaw.message import FileKind, FilePart, Usage, UserMessage
from zeroclaw.provider import ProviderFacts, UsageReported
from zeroclaw.retention.tables import TABLES
from zeroclaw.store import DropBlob, LogKind, RowKind
from zeroclaw.text.catalogue import UNHEARD
from zeroclaw.turn import entries


def picture(colour: str = "red", size: tuple[int, int] = (4, 3)) -> bytes:
    drawn = io.BytesIO()
    Image.new("RGB", size, colour).save(drawn, "PNG")
    return drawn.getvalue()


RED = picture()
WAV = b"RIFF\x24\0\0\0WAVEfmt " + bytes(20)


def takes(world: World, *kinds: FileKind) -> None:
    world.model.facts = ProviderFacts(model="scripted", takes=frozenset(kinds))


def shown(world: World) -> list[bytes]:
    """The files that the newest request shows."""
    return sorted(world.model.requests[-1].files.values())


def parts(world: World) -> list[FilePart]:
    """The files of the newest request's messages."""
    return [
        part
        for message in world.model.requests[-1].messages
        if isinstance(message, UserMessage)
        for part in message.files
    ]


def base64(*bodies: bytes) -> list[bytes]:
    return sorted(b64encode(body) for body in bodies)


async def test_where_a_picture_was_taken_is_not_sent_with_it(world: World) -> None:
    """Nor by whom, nor what hangs on its end; the file that is kept is as it came (P8)."""
    takes(world, "images")
    secret = b"52.5186N of Olga's"
    exif, drawn = Image.Exif(), io.BytesIO()
    exif[0x013B], exif[0x0112] = secret.decode(), 6
    exif.get_ifd(0x8825)[29] = secret.decode()
    Image.new("RGB", (4, 3)).save(drawn, "JPEG", exif=exif, comment=secret)
    whole = drawn.getvalue() + b"PK\x03\x04" + secret
    async with world.running() as house:
        await send(house, "look", file(world, "a.jpg", whole))
        [sent] = shown(world)
        with Image.open(io.BytesIO(b64decode(sent))) as image:
            assert (image.size, dict(image.getexif())) == ((4, 3), {0x0112: 6})
        assert secret not in b64decode(sent)
        assert await world.store.blob(parts(world)[0].digest) == whole


async def test_a_picture_that_is_not_built_as_one_is_not_sent(world: World) -> None:
    """Its decoded content is unknown, so a line stands for it."""
    takes(world, "images")
    async with world.running() as house:
        await send(house, "look", file(world, "a.png", RED[:-20]))
        assert shown(world) == []


async def test_a_file_is_called_by_a_line_in_which_all_is_seen(world: World) -> None:
    """The name goes to the model beside its bytes, and its sender chose it."""
    takes(world, "images")
    async with world.running() as house:
        await send(house, "look", file(world, "a\n\u202eb\U000e0072.png", RED))
        assert [part.name for part in parts(world)] == ["a ⟨U+202E⟩b⟨U+E0072⟩.png"]


@pytest.mark.parametrize("kinds", [(), ("audio", "files")])
async def test_other_models_read_its_name(world: World, kinds: tuple[FileKind, ...]) -> None:
    """They have the tool that reads it, as ever; and so has one that takes something else."""
    takes(world, *kinds)
    async with world.running() as house:
        await send(house, "look", file(world, "a.png", RED))
        assert (shown(world), parts(world)) == ([], [])
        assert "`a.png`: PNG image" in world.model.asked()[-1]


async def test_the_journal_holds_no_bytes(world: World) -> None:
    """It refers to the blob; what its row leads to goes with the row."""
    takes(world, "images")
    async with world.running() as house:
        await send(house, "look", file(world, "a.png", RED))
        [row] = await house.rows(RowKind.ATTACHMENT)
        digest = ATTACHMENTS.of(row).digest
        [stream] = await world.store.streams(LogKind.JOURNAL)
        bodies = [entry.body for entry in await world.store.read(LogKind.JOURNAL, stream)]
        assert not any(b64encode(RED) in body for body in bodies)
        opened = entries.decode(bodies[0])
        assert isinstance(opened, entries.TurnOpened)
        assert [part.digest for part in opened.user.files] == [digest]
        blobs = TABLES[RowKind.ATTACHMENT].blobs
        assert blobs is not None
        assert blobs(row) == (digest,)


async def test_a_picture_whose_blob_is_gone_is_not_shown(world: World) -> None:
    """Retention takes blobs; the conversation goes on, with the reference as it was."""
    takes(world, "images")
    async with world.running() as house:
        await send(house, "look", file(world, "a.png", RED))
        digest = parts(world)[0].digest
        await world.store.write(DropBlob(digest=digest))
        await house.say("and now?")
        assert shown(world) == []
        assert [part.digest for part in parts(world)] == [digest]


async def test_files_that_a_model_refuses_after_all_are_left_out(world: World) -> None:
    """Whatever is known of what it takes, an answer without them is better than none; both count."""
    takes(world, "images")
    paid = UsageReported(usage=Usage(input_tokens=9_000))
    world.model.will((paid, ProviderRejected("no pictures here")), says("I can't see it."))
    async with world.running() as house:
        await send(house, "look", file(world, "a.png", RED))
        assert house.texts() == ["I can't see it."]
        assert [len(request.files) for request in world.model.requests] == [1, 0]
        [row] = await house.rows(RowKind.TURN)
        assert TURNS.of(row).usage.input_tokens > 9_000


async def test_old_pictures_are_not_shown(world: World) -> None:
    """Those of the newest messages are; what is sent again begins as it did till then."""
    takes(world, "images")
    async with world.running() as house:
        await send(house, "look", file(world, "a.png", RED))
        for number in range(FILES_STAY - 1):
            await house.say(f"message {number}")
            assert shown(world) == base64(RED)
        await house.say("one more")
        assert shown(world) == []


async def test_a_picture_stays_for_the_rounds_of_its_turn_and_after_a_kill(world: World) -> None:
    takes(world, "images")
    async with world.running() as house:
        world.model.will(asks_for(("look", "{}")), says("seen"))
        await send(house, "look", file(world, "a.png", RED))
        assert len(world.model.requests) == 2
        assert shown(world) == base64(RED)
    async with world.running() as house:
        await house.say("and now?")
        assert shown(world) == base64(RED)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (AttachmentSettings(), ["blue", "green"]),
        (AttachmentSettings(shown_files=1), ["blue"]),
        (AttachmentSettings(shown_files=0), []),
        (AttachmentSettings(shown_bytes=len(picture("blue")) + 1), ["blue"]),
        (AttachmentSettings(shown_bytes=0), []),
        (AttachmentSettings(shown_pixels=11), []),
    ],
)
async def test_what_a_request_shows_is_bounded(
    world: World, bounds: AttachmentSettings, expected: list[str]
) -> None:
    """In number, in bytes, and each picture in pixels; the newest message's go first."""
    world.configure(attachments=bounds)
    takes(world, "images")
    async with world.running() as house:
        await send(house, "look", file(world, "g.png", picture("green")))
        await send(house, "look", file(world, "b.png", picture("blue")))
        assert shown(world) == base64(*map(picture, expected))


async def test_the_same_picture_sent_twice_is_two_parts(world: World) -> None:
    """Each message has its own."""
    takes(world, "images")
    async with world.running() as house:
        await send(house, "one", file(world, "a.png", RED))
        await send(house, "two", file(world, "b.png", RED))
        assert shown(world) == base64(RED)
        assert len(parts(world)) == 2


async def test_a_sound_goes_to_a_model_that_hears(world: World) -> None:
    """The person then gets no note that it can't be listened to, and it is a message by itself."""
    takes(world, "audio")
    async with world.running() as house:
        await send(house, "", file(world, "a.wav", WAV))
        assert shown(world) == base64(WAV)
        assert house.texts() == ["ok"]
        assert "nobody here can listen" not in world.model.asked()[-1]
    takes(world, "images")
    async with world.running() as house:
        await send(house, "", file(world, "a.wav", WAV))
        assert house.texts()[-1] == UNHEARD.to("en")


async def test_a_pdf_goes_to_a_model_that_reads_files(world: World) -> None:
    takes(world, "files")
    async with world.running() as house:
        await send(house, "sum up", file(world, "a.pdf", b"%PDF-1.7\n"))
        assert shown(world) == base64(b"%PDF-1.7\n")


async def test_a_repeated_message_has_its_files(world: World) -> None:
    takes(world, "images")
    async with world.running() as house:
        world.model.will((RuntimeError("broken"),))
        await send(house, "look", file(world, "a.png", RED))
        await house.say("/retry")
        assert shown(world) == base64(RED)


async def test_files_are_as_untrusted_as_ever(world: World) -> None:
    """Text in a picture is not the person's own."""
    takes(world, "images")
    async with world.running() as house:
        await send(house, "look", file(world, "a.png", RED))
        assert await _origins(house) == [["attachment"]]


async def _origins(house: House) -> list[list[str]]:
    [stream] = await house.world.store.streams(LogKind.JOURNAL)
    read = await house.world.store.read(LogKind.JOURNAL, stream)
    journal = [entries.decode(entry.body) for entry in read]
    return [
        [source.kind for source in entry.untrusted or ()]
        for entry in journal
        if isinstance(entry, entries.TurnOpened)
    ]


async def test_an_earlier_release_s_files_and_turns_open(world: World) -> None:
    """It wrote neither what models take nor which files a message holds."""
    takes(world, "images")
    async with world.running() as house:
        await send(house, "look", file(world, "a.png", RED))
        [stream] = await world.store.streams(LogKind.JOURNAL)

    def older(body: bytes) -> bytes:
        head, found, rest = body.partition(b',"files":[')
        older = head + rest.partition(b"}]")[2] if found else body
        return older.replace(b',"notes":[]', b"")

    world.store.rewrite(stream, older)
    bodies = [entry.body for entry in await world.store.read(LogKind.JOURNAL, stream)]
    assert not any(b'"files"' in body or b'"notes"' in body for body in bodies)
    async with world.running() as house:
        await house.say("and now?")
        assert shown(world) == []
        assert "look" in world.model.asked()[0]
