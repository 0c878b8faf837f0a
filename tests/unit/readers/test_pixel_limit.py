"""Which files a model is sent, and as what: no image that unfolds to more pixels than it may."""

import io
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from zeroclaw.readers.formats import recognise
from zeroclaw.readers.pictures import MAX_PARTS, model_media_type


def drawn(kind: str, size: tuple[int, int], how: dict[str, Any], *, mode: str = "") -> bytes:
    made = io.BytesIO()
    Image.new(mode or ("RGBA" if kind == "WEBP" else "RGB"), size).save(made, kind, **how)
    return made.getvalue()


KINDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "png": ("PNG", {}, "image/png"),
    "jpeg": ("JPEG", {}, "image/jpeg"),
    "jpeg in passes": (
        "JPEG",
        {"progressive": True, "exif": b"Exif\0\0" + bytes(900)},
        "image/jpeg",
    ),
    "webp": ("WEBP", {"alpha_quality": 0}, "image/webp"),
    "webp lossless": ("WEBP", {"lossless": True}, "image/webp"),
    "webp extended": ("WEBP", {"lossless": True, "exif": b"Exif\0\0"}, "image/webp"),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_image_is_measured(name: str) -> None:
    """Width times height."""
    kind, how, media_type = KINDS[name]
    data = drawn(kind, (17, 5), how)
    assert [model_media_type(data, "a", max_pixels=most) for most in (84, 85)] == ["", media_type]


@pytest.mark.parametrize("name", KINDS)
@given(size=st.tuples(st.integers(1, 300), st.integers(1, 300)))
def test_an_image_is_sent_if_it_has_no_more_pixels_than_it_may(
    name: str, size: tuple[int, int]
) -> None:
    """By what its head says, as the library that unfolds it reads it."""
    kind, how, media_type = KINDS[name]
    data, pixels = drawn(kind, size, how), size[0] * size[1]
    assert model_media_type(data, "a", max_pixels=pixels) == media_type
    assert model_media_type(data, "a", max_pixels=pixels - 1) == ""


def riff(*chunks: bytes) -> bytes:
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + len(body).to_bytes(4, "little") + body


def frame(*chunks: bytes) -> bytes:
    body = bytes(16) + b"".join(chunks)
    return b"ANMF" + len(body).to_bytes(4, "little") + body


CANVAS = b"VP8X\x0a\0\0\0" + bytes(10)  # one pixel
GIFT = b"giFt\x03\0\0\0abc\0"


@pytest.mark.parametrize("in_frame", [False, True])
@pytest.mark.parametrize("before", [(), (GIFT,)])
@pytest.mark.parametrize("mode", ["RGBA", "RGB"])
def test_a_webp_is_as_large_as_the_largest_picture_in_it(
    mode: str, before: tuple[bytes, ...], in_frame: bool
) -> None:
    """Its canvas may say less than what a decoder unfolds."""
    inner = drawn("WEBP", (300, 200), {"lossless": mode == "RGBA"}, mode=mode)[12:]
    data = riff(CANVAS, *before, frame(inner) if in_frame else inner)
    assert [model_media_type(data, "a", max_pixels=most) for most in (59_999, 60_000)] == [
        "",
        "image/webp",
    ]


def jpeg_segment(kind: int, body: bytes) -> bytes:
    return bytes((0xFF, kind)) + (len(body) + 2).to_bytes(2, "big") + body


def png_chunk(kind: bytes, body: bytes) -> bytes:
    content = kind + body
    return len(body).to_bytes(4, "big") + content + crc32(content).to_bytes(4, "big")


PNG, JPEG, WEBP = (drawn(kind, (300, 200), {}) for kind in ("PNG", "JPEG", "WEBP"))
SMALL_JPEG_FRAME = jpeg_segment(0xC0, b"\x08\0\x0a\0\x0a\x01\x01\x11\0")
HIDING: dict[str, bytes] = {
    "fill bytes before a comment that holds a header": (
        JPEG[:2]
        + b"\xff"  # read as a segment of its own, it would be FE FF bytes long
        + jpeg_segment(0xFE, (bytes(0xFEFF - 3) + SMALL_JPEG_FRAME).ljust(0xFFFD, b"\0"))
        + JPEG[2:]
    ),
    "two headers of a JPEG": JPEG[:2] + SMALL_JPEG_FRAME + JPEG[2:],
    "two headers of a PNG": (
        PNG[:8] + png_chunk(b"IHDR", b"\0\0\0\x0a\0\0\0\x0a\x08\x02\0\0\0") + PNG[8:]
    ),
    "a chunk before the header of a PNG": PNG[:8] + png_chunk(b"giFt", PNG[16:29]) + PNG[8:],
    "a picture before the larger one": riff(drawn("WEBP", (10, 10), {})[12:], WEBP[12:]),
    "a chunk that reaches past its frame": (
        riff(CANVAS, frame(b"giFt" + len(WEBP[12:]).to_bytes(4, "little")), WEBP[12:])
    ),
    "a frame that is larger than its picture": (
        riff(CANVAS, b"ANMF\x10\0\0\0" + bytes(6) + b"\x2b\x01\0\xc7\0\0" + bytes(4))
    ),
}


@pytest.mark.parametrize("hiding", HIDING)
def test_no_header_hides_a_larger_one(hiding: str) -> None:
    """P9: of what is sent, no picture has more pixels than it may, whichever a decoder takes."""
    assert model_media_type(HIDING[hiding], "a", max_pixels=59_999) == ""


def test_a_webp_of_more_parts_than_are_looked_at_is_not_sent() -> None:
    assert model_media_type(riff(CANVAS, *[GIFT] * MAX_PARTS), "a", max_pixels=60_000) == ""


def test_a_webp_without_transparency_is_measured_too() -> None:
    made = io.BytesIO()
    Image.new("RGB", (17, 5)).save(made, "WEBP")
    assert made.getvalue()[12:16] == b"VP8 "
    assert [model_media_type(made.getvalue(), "a", max_pixels=most) for most in (84, 85)] == [
        "",
        "image/webp",
    ]


@given(
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBPVP8X"]),
    st.binary(max_size=400),
)
def test_no_bytes_make_it_fail(start: bytes, rest: bytes) -> None:
    """Whoever made them."""
    data = start + rest
    assert model_media_type(data, "a", max_pixels=1_000) in {"", recognise(data, "a").media_type}


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(40),
        b"RIFF\0\0\0\0WEBPODD " + bytes(40),
        b"\xff\xd8" + b"\xff\xe0\0\x02" * 100_000,  # segments without end
        b"\xff\xd8\xff\xe0\0\x04ab\0\0\0\0\0\0\0\0\0\0",
        b"\xff\xd8\xff\xc0\0\x11",
        b"GIF89a" + bytes(20),  # most that are sent move, which few models take
    ],
)
def test_an_image_that_does_not_say_its_size_is_not_sent(data: bytes) -> None:
    assert model_media_type(data, "a", max_pixels=1_000_000_000) == ""


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b"%PDF-1.7\n", "application/pdf"),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
        (b"ID3\3", "audio/mpeg"),
        (b"OggS" + bytes(24) + b"OpusHead", "audio/ogg"),
        (b"OggS" + bytes(24) + b"\x01vorbis", "audio/ogg"),
        (b"OggS" + bytes(24) + b"\x80theora", ""),
        (b"fLaC", "audio/flac"),
        (b"\0\0\0\x18ftypM4A \0", "audio/mp4"),
        (b"\0\0\0\x18ftypmp42", ""),
        (b"milk", ""),
    ],
)
def test_what_models_take_is_known_by_its_bytes(data: bytes, media_type: str) -> None:
    assert model_media_type(data, "a.png", max_pixels=1) == media_type
