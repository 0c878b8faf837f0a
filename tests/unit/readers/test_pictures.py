"""A model is sent the picture of an image, and nothing that the image says beside it (P8)."""

import io
import struct
from collections.abc import Mapping
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from zeroclaw.readers.pictures import MAX_PARTS, without_metadata

TELLS = b"52.5186N 13.3761E of Olga's"
TYPES = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
SIZE = (24, 16)
ORIENTATION = 0x0112


def exif(orientation: int = 1) -> bytes:
    made = Image.Exif()
    made[0x010F] = TELLS.decode()
    made[ORIENTATION] = orientation
    made.get_ifd(0x8825)[29] = TELLS.decode()
    return made.tobytes()


def drawn(mode: str = "RGB") -> Image.Image:
    return Image.linear_gradient("L").crop((0, 0, *SIZE)).convert(mode)


def saved(kind: str, *, mode: str = "RGB", **options: object) -> bytes:
    out = io.BytesIO()
    drawn(mode).save(out, kind, **options)
    return out.getvalue()


def seen(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        return image


def chunk(kind: bytes, body: bytes) -> bytes:
    content = kind + body
    return len(body).to_bytes(4, "big") + content + crc32(content).to_bytes(4, "big")


def text_of_png() -> PngInfo:
    info = PngInfo()
    info.add_text("Author", TELLS.decode())
    info.add_text("Comment", TELLS.decode(), zip=True)
    info.add_itxt("GPS", TELLS.decode())
    return info


def profile() -> bytes:
    return bytes(132) + TELLS


def segment(kind: int, body: bytes) -> bytes:
    return bytes((0xFF, kind)) + struct.pack(">H", len(body) + 2) + body


JPEG, PNG, WEBP = saved("JPEG"), saved("PNG"), saved("WEBP", lossless=True)
TALKATIVE: Mapping[str, tuple[str, bytes]] = {
    "jpeg": (
        "JPEG",
        saved("JPEG", exif=exif(), comment=TELLS, icc_profile=profile(), xmp=TELLS) + TELLS,
    ),
    "jpeg in scans": ("JPEG", saved("JPEG", progressive=True, exif=exif()) + b"PK\x03\x04" + TELLS),
    "jpeg of four inks": ("JPEG", saved("JPEG", mode="CMYK", exif=exif())),
    "jpeg of parts": ("JPEG", saved("JPEG", restart_marker_blocks=1, comment=TELLS)),
    "jpeg with a thumbnail": (
        "JPEG",
        JPEG[:2] + segment(0xE0, b"JFIF\0\1\2\0\0\1\0\1\x03\x03" + TELLS) + JPEG[20:],
    ),
    "jpeg with room": ("JPEG", JPEG[:2] + segment(0xED, TELLS) + b"\xff\xff" + JPEG[2:]),
    "jpeg with more after its scan": ("JPEG", JPEG[:-2] + segment(0xFE, TELLS) + JPEG[-2:]),
    "png": ("PNG", saved("PNG", exif=exif(), pnginfo=text_of_png(), icc_profile=profile()) + TELLS),
    "png with a chunk of its own": ("PNG", PNG[:33] + chunk(b"giFt", TELLS) + PNG[33:]),
    "png of a palette": ("PNG", saved("PNG", mode="P", transparency=3, exif=exif())),
    "webp": (
        "WEBP",
        saved("WEBP", lossless=True, exif=exif(), icc_profile=profile(), xmp=TELLS) + TELLS,
    ),
    "webp that is seen through": ("WEBP", saved("WEBP", mode="RGBA", exif=exif())),
}


@pytest.mark.parametrize("form", TALKATIVE)
def test_the_picture_is_sent_and_all_else_stays(form: str) -> None:
    """Place, owner, comments, thumbnails, profiles, and what hangs on the end."""
    kind, data = TALKATIVE[form]
    assert TELLS in data or b"zTXt" in data
    sent = without_metadata(data, TYPES[kind])
    assert TELLS not in sent
    assert b"Author" not in sent
    before, after = seen(data), seen(sent)
    assert (after.format, after.mode, after.tobytes()) == (kind, before.mode, before.tobytes())
    assert dict(after.getexif()) == {}
    assert {"icc_profile", "xmp", "comment", "exif"}.isdisjoint(after.info)
    assert without_metadata(sent, TYPES[kind]) == sent


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("orientation", range(2, 9))
def test_how_it_is_turned_is_all_that_is_kept_of_what_a_camera_wrote(
    kind: str, orientation: int
) -> None:
    sent = without_metadata(saved(kind, exif=exif(orientation)), TYPES[kind])
    assert dict(seen(sent).getexif()) == {ORIENTATION: orientation}
    assert TELLS not in sent


@pytest.mark.parametrize(("kind", "data"), [("JPEG", JPEG), ("PNG", PNG), ("WEBP", WEBP)])
def test_a_picture_alone_is_sent_as_it_came(kind: str, data: bytes) -> None:
    assert without_metadata(data, TYPES[kind]) == data


def test_a_moving_picture_moves_on() -> None:
    """What a frame of it carries beside its picture goes as well."""
    out = io.BytesIO()
    Image.new("RGB", SIZE, "red").save(
        out, "WEBP", save_all=True, append_images=[drawn()], exif=exif(), lossless=True
    )
    data = out.getvalue()
    at = data.rindex(b"ANMF")
    size = int.from_bytes(data[at + 4 : at + 8], "little")
    more = b"giFt" + len(TELLS).to_bytes(4, "little") + TELLS + b"\0" * (len(TELLS) % 2)
    whole = (
        data[: at + 4]
        + (size + len(more)).to_bytes(4, "little")
        + data[at + 8 : at + 8 + size]
        + more
        + data[at + 8 + size :]
    )
    whole = whole[:4] + (len(whole) - 8).to_bytes(4, "little") + whole[8:]
    sent = without_metadata(whole, "image/webp")
    assert TELLS not in sent
    with Image.open(io.BytesIO(sent)) as image:
        assert getattr(image, "n_frames", 1) == 2


def turning(order: str, *tags: bytes, first: int = 8) -> bytes:
    head = {"big": b"MM\0*", "little": b"II*\0"}[order]
    packed = head + first.to_bytes(4, "big" if order == "big" else "little")
    return packed + len(tags).to_bytes(2, "big" if order == "big" else "little") + b"".join(tags)


ODD = {
    "no header": b"XX*\0" + bytes(20),
    "of this machine": turning("little", struct.pack("<HHIHH", ORIENTATION, 3, 1, 6, 0)),
    "behind another": turning("big", bytes(12), struct.pack(">HHIHH", ORIENTATION, 3, 1, 6, 0)),
    "of another kind": turning("big", struct.pack(">HHIHH", ORIENTATION, 4, 1, 6, 0)),
    "too far": turning("big", struct.pack(">HHIHH", ORIENTATION, 3, 1, 9, 0)),
    "none": turning("big", struct.pack(">HHIHH", ORIENTATION, 3, 1, 0, 0)),
    "elsewhere": turning("big", first=2**32 - 1),
    "more than there are": turning("big")[:8] + b"\xff\xff",
    "empty": b"",
}


@pytest.mark.parametrize("form", ODD)
def test_what_a_camera_wrote_wrongly_turns_nothing(form: str) -> None:
    data = JPEG[:2] + segment(0xE1, b"Exif\0\0" + ODD[form]) + JPEG[2:]
    sent = without_metadata(data, "image/jpeg")
    assert seen(sent).getexif().get(ORIENTATION, 1) == (
        6 if form in ("of this machine", "behind another") else 1
    )


def test_a_picture_that_was_cut_short_is_sent_as_far_as_it_goes() -> None:
    """Telephones that lose their network leave such files; there is a picture in them."""
    assert without_metadata(JPEG[:-2], "image/jpeg") == JPEG[:-2]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("JPEG", JPEG[:100]),
        ("JPEG", b"\xff\xd8\xff"),
        ("JPEG", b"\xff\xd8" + segment(0xFE, b"") * (MAX_PARTS + 1)),
        ("JPEG", b"\xff\xd8\xff\xe0\0\1" + JPEG),
        ("JPEG", b"\xff\xd8AAAA"),
        ("PNG", PNG[:60]),
        ("PNG", PNG[:8]),
        ("PNG", PNG[:33] + chunk(b"tEXt", b"") * MAX_PARTS + PNG[33:]),
        ("WEBP", WEBP[:-9]),
        ("WEBP", WEBP[:4] + (2**32 - 1).to_bytes(4, "little") + WEBP[8:] + b"AAAA\xff\xff\xff\xff"),
        ("WEBP", b"RIFF\xff\xff\xff\0WEBP" + (b"giFt\1\0\0\0aa") * (MAX_PARTS + 1)),
    ],
)
def test_a_picture_of_the_wrong_structure_is_not_sent(kind: str, data: bytes) -> None:
    """Where its parts end is not known, so neither is what they are. P9: and they are bounded."""
    assert without_metadata(data, TYPES[kind]) == b""


def test_a_file_that_is_no_image_is_sent_as_it_is() -> None:
    assert without_metadata(TELLS, "application/pdf") == TELLS


@given(st.sampled_from([*TALKATIVE.values()]), st.data())
def test_a_damaged_picture_ends_and_reveals_no_more_than_a_whole_one(
    picture: tuple[str, bytes], data: st.DataObject
) -> None:
    """It never raises, and what is sent is no longer than what came and a turn of the picture."""
    kind, whole = picture
    broken = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(8, len(broken) - 1))] = data.draw(st.integers(0, 255))
    sent = without_metadata(bytes(broken), TYPES[kind])
    assert len(sent) <= len(whole) + 100
    assert without_metadata(sent, TYPES[kind]) == sent or sent == b""
