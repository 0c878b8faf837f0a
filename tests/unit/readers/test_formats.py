"""What bytes are, whatever their sender calls them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.readers.formats import SNIFFED_BYTES, is_audio_or_video, recognise


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
        (b"From: a\n", "Note.EML", "mail", "mail"),
        (b"%PDF-1.7\n", "a.eml", "pdf", "PDF"),
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
    start = data.ljust(SNIFFED_BYTES, b"x")
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
    assert is_audio_or_video(recognise(data, "a").label) is heard
