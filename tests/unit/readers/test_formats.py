"""What bytes are, whatever their sender calls them."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from zeroclaw.readers.formats import LOOKED_AT_BYTES, is_heard, recognise, sent_as


@pytest.mark.parametrize(
    ("data", "name", "reader", "label"),
    [
        (b"", "a.pdf", "none", "empty"),
        (b"%PDF-1.7\n", "a.txt", "pdf", "PDF"),
        (b"junk before\n%PDF-1.4", "a", "pdf", "PDF"),
        (b"\x89PNG\r\n\x1a\n....", "a.pdf", "image", "PNG image"),
        (b"\xff\xd8\xff\xe0", "a", "image", "JPEG image"),
        (b"GIF89a", "a", "image", "GIF image"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "a", "image", "WebP image"),
        (b"RIFF\0\0\0\0WAVEfmt ", "a", "none", "WAV audio"),
        (b"RIFF\0\0\0\0odd ", "a", "none", "data of an unknown kind"),
        (b"\0\0\0\x18ftypmp42", "a", "none", "MP4 video or audio"),
        (b"PK\x03\x04", "report.docx", "none", "ZIP archive or office document"),
        (b"OggS\0", "voice", "none", "Ogg audio or video"),
        (b"\xff\xfb\x90\0", "a", "none", "MP3 audio"),
        (b"\0\1\2", "a.txt", "none", "data of an unknown kind"),
        (b"a;b\n", "A.CSV ", "table", "CSV table"),
        (b"a\tb\n", "a.tsv", "table", "CSV table"),
        (b"a;b\n", "a.txt", "text", "text"),
        (b"\xff\xfea\0;\0", "a.csv", "table", "CSV table"),
        ("größer\x1b[0m".encode("latin-1"), "a", "text", "text"),
    ],
)
def test_bytes_say_what_they_are(data: bytes, name: str, reader: str, label: str) -> None:
    """A name counts only where two kinds of text are told apart."""
    found = recognise(data, name)
    assert (found.reader, found.label) == (reader, label)


@given(st.binary(max_size=2_000), st.text(max_size=20))
def test_any_bytes_are_something(data: bytes, name: str) -> None:
    """And more of them than are looked at change nothing."""
    found = recognise(data, name)
    assert found.label
    start = data.ljust(LOOKED_AT_BYTES, b"x")
    assert recognise(start + b"\0", name) == recognise(start, name)


@pytest.mark.parametrize(
    ("data", "heard"),
    [
        (b"OggS", True),
        (b"ID3", True),
        (b"RIFF\0\0\0\0AVI ", True),
        (b"\0\0\0\x18ftypmp42", True),
        (b"%PDF-1.7\n", False),
        (b"GIF89a", False),
        (b"milk", False),
    ],
)
def test_sound_is_told_apart_because_nothing_here_reads_it(data: bytes, heard: bool) -> None:
    assert is_heard(recognise(data, "a").label) is heard


def drawn(kind: str, size: tuple[int, int], how: dict[str, Any]) -> bytes:
    made = io.BytesIO()
    Image.new("RGBA" if kind == "WEBP" else "RGB", size).save(made, kind, **how)
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
    assert [sent_as(data, "a", most_pixels=most) for most in (84, 85)] == ["", media_type]


@pytest.mark.parametrize("name", KINDS)
@given(size=st.tuples(st.integers(1, 300), st.integers(1, 300)))
def test_an_image_is_sent_if_it_has_no_more_pixels_than_it_may(
    name: str, size: tuple[int, int]
) -> None:
    """By what its head says, as the library that unfolds it reads it."""
    kind, how, media_type = KINDS[name]
    data, pixels = drawn(kind, size, how), size[0] * size[1]
    assert sent_as(data, "a", most_pixels=pixels) == media_type
    assert sent_as(data, "a", most_pixels=pixels - 1) == ""


@pytest.mark.parametrize("frame", [b"", b"ANMF" + (10_020).to_bytes(4, "little") + bytes(16)])
@pytest.mark.parametrize("before", [b"", b"giFt\x03\0\0\0abc\0"])
@pytest.mark.parametrize("kind", ["lossless", "lossy"])
def test_a_webp_is_as_large_as_the_largest_picture_in_it(
    frame: bytes, before: bytes, kind: str
) -> None:
    """Its canvas may say less than what a decoder unfolds."""
    inner = drawn("WEBP", (300, 200), {"lossless": True})
    if kind == "lossy":
        made = io.BytesIO()
        Image.new("RGB", (300, 200)).save(made, "WEBP")
        inner = made.getvalue()
    canvas = b"VP8X\x0a\0\0\0" + bytes(10)
    data = b"RIFF\xff\xff\0\0WEBP" + canvas + before + frame + inner[12:]
    assert [sent_as(data, "a", most_pixels=most) for most in (59_999, 60_000)] == ["", "image/webp"]


def test_a_webp_of_more_parts_than_are_looked_at_is_not_sent() -> None:
    inner = drawn("WEBP", (300, 200), {"lossless": True})
    gifts = b"giFt\x02\0\0\0ab" * 1_000
    data = b"RIFF\xff\xff\0\0WEBPVP8X\x0a\0\0\0" + bytes(10) + gifts + inner[12:]
    assert sent_as(data, "a", most_pixels=60_000) == ""


def test_a_webp_without_transparency_is_measured_too() -> None:
    made = io.BytesIO()
    Image.new("RGB", (17, 5)).save(made, "WEBP")
    assert made.getvalue()[12:16] == b"VP8 "
    assert [sent_as(made.getvalue(), "a", most_pixels=most) for most in (84, 85)] == [
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
    assert sent_as(data, "a", most_pixels=1_000) in {"", recognise(data, "a").media_type}


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
    assert sent_as(data, "a", most_pixels=1_000_000_000) == ""


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
    assert sent_as(data, "a.png", most_pixels=1) == media_type
