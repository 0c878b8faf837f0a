"""What the bytes of an answer are taken for."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.tools.fetch.body import ContentType, Decompressor, content_type, decode


@pytest.mark.parametrize(
    ("header", "name", "charset", "kind"),
    [
        ("", "", "", "text"),
        ("text/html; charset=utf-8", "text/html", "utf-8", "html"),
        ("Text/HTML;charset='latin1'", "text/html", "latin1", "html"),
        ("application/xhtml+xml", "application/xhtml+xml", "", "html"),
        ('text/plain; a=b; CharSet="UTF-8"', "text/plain", "UTF-8", "text"),
        ("application/json", "application/json", "", "text"),
        ("application/ld+json", "application/ld+json", "", "text"),
        ("application/atom+xml", "application/atom+xml", "", "text"),
        ("text/csv", "text/csv", "", "text"),
        ("image/png", "image/png", "", None),
        ("image/svg+xml", "image/svg+xml", "", "text"),
        ("application/octet-stream; charset=utf-8", "application/octet-stream", "utf-8", None),
        ("nonsense", "nonsense", "", None),
    ],
)
def test_a_content_type_says_how_a_body_is_read(
    header: str, name: str, charset: str, kind: str | None
) -> None:
    """Pages, other text, or not at all."""
    found = content_type(header)
    assert (found.name, found.charset, found.kind) == (name, charset, kind)


PLAIN = ContentType(name="text/plain", charset="", kind="text")
PAGE = ContentType(name="text/html", charset="", kind="html")


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("grün".encode(), "", "grün"),
        ("grün".encode("latin-1"), "", "grün"),
        ("grün".encode("latin-1"), "ISO-8859-1", "grün"),
        (b"\x80 5", "us-ascii", "€ 5"),
        ("grün".encode(), "iso-8859-1", "grÃ¼n"),
        ("привет".encode("cp1251"), "windows-1251", "привет"),
        ("привет".encode("koi8-r"), "KOI8-R", "привет"),
        ("你好".encode("gb18030"), "gb2312", "你好"),
        ("こんにちは".encode("shift_jis"), "Shift_JIS", "こんにちは"),
        ("안녕".encode("euc_kr"), "euc-kr", "안녕"),
        ("\ufeffgrün".encode(), "iso-8859-1", "grün"),
        ("\ufeffgrün".encode("utf-16-le"), "", "grün"),
        ("\ufeffgrün".encode("utf-16-be"), "", "grün"),
        ("grün".encode("utf-16-le"), "utf-16", "grün"),
        (b"gr\xfcn", "utf-8", "gr\ufffdn"),
        ("grün".encode(), "rot13", "grün"),
        ("grün".encode(), "zlib_codec", "grün"),
        ("grün".encode(), "utf-7", "grün"),
        ("grün".encode(), "no such thing \ud800", "grün"),
        ("grü".encode()[:-1], "", "gr"),
        (b"", "", ""),
    ],
)
def test_a_text_is_spelled_as_it_says(data: bytes, charset: str, text: str) -> None:
    """The mark first, then the header, then UTF-8 where it fits, at last Windows-1252."""
    assert decode(data, ContentType(name="text/plain", charset=charset, kind="text")) == text


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        ('<meta charset="windows-1251">п'.encode("cp1251"), PAGE, "п"),
        ("<META http-equiv=x content='text/html; charset=koi8-r'>п".encode("koi8-r"), PAGE, "п"),
        ("<meta charset=utf-16>п".encode(), PAGE, "п"),
        ('<?xml version="1.0" encoding="koi8-r"?>п'.encode("koi8-r"), PLAIN, "п"),
        ('<meta charset="koi8-r">п'.encode(), PLAIN, "п"),
        (b" " * 1100 + '<meta charset="koi8-r">п'.encode(), PAGE, "п"),
    ],
)
def test_a_text_may_say_itself_how_it_is_spelled(
    data: bytes, declared: ContentType, text: str
) -> None:
    """A page and an XML text do, near their beginning."""
    assert decode(data, declared)[-1] == text


@given(st.binary(), st.text(max_size=20), st.sampled_from(["html", "text"]))
def test_every_body_is_some_text(data: bytes, charset: str, kind: str) -> None:
    """Whatever it is and says."""
    declared = ContentType(name="", charset=charset, kind="html" if kind == "html" else "text")
    assert decode(data, declared).encode("utf-8", "replace") is not None


def fed(encoding: str, max_bytes: int, *chunks: bytes) -> Decompressor:
    body = Decompressor(encoding, max_bytes)
    for chunk in chunks:
        body.feed(chunk)
    body.end()
    return body


def test_a_body_is_kept_up_to_the_cap() -> None:
    """One byte more than fits sets the flag, and is not kept."""
    fits, more = fed("", 4, b"ab", b"cd"), fed("identity", 4, b"ab", b"cde")
    assert (fits.data, fits.is_full, fits.done) == (b"abcd", False, False)
    assert (more.data, more.is_full, more.done) == (b"abcd", True, True)


@given(st.binary(max_size=300), st.integers(1, 50), st.integers(100, 400))
def test_unpacking_gives_what_was_packed(data: bytes, step: int, cap: int) -> None:
    """In whatever chunks it comes, and however many members there are; never more than the cap."""
    packed = gzip.compress(data) + gzip.compress(b"tail")
    whole = data + b"tail"
    body = fed("gzip", cap, *(packed[at : at + step] for at in range(0, len(packed), step)))
    assert body.data == whole[:cap]
    assert body.is_full or len(whole) <= cap
    assert not body.is_broken


def test_a_bomb_is_unpacked_to_the_cap_only() -> None:
    """A hundred megabytes in a hundred kilobytes cost what the cap says (decoded size counts)."""
    squeeze = zlib.compressobj(9, wbits=31)
    bomb = b"".join(squeeze.compress(bytes(1_000_000)) for _ in range(100)) + squeeze.flush()
    body = fed("gzip", 200_000, bomb)
    assert (len(body.data), body.is_full) == (200_000, True)


def test_what_unpacks_to_nothing_ends_too() -> None:
    """Empty members for ever are held to what arrived."""
    body = fed("x-gzip", 100, *[gzip.compress(b"")] * 11)
    assert (body.data, body.is_full) == (b"", True)


@pytest.mark.parametrize(
    "chunks", [(b"not gzip", b"more"), (gzip.compress(b"ab")[:-1],), (gzip.compress(b"ab"), b"x")]
)
def test_what_is_not_packed_as_it_says_is_broken(chunks: tuple[bytes, ...]) -> None:
    """No gzip, or one that ends too early."""
    body = fed("gzip", 100, *chunks)
    assert (body.is_broken, body.done) == (True, True)


def test_nothing_is_packed_as_nothing() -> None:
    """Answers without a body say gzip as well."""
    body = fed("gzip", 100)
    assert (body.data, body.is_broken) == (b"", False)


def test_an_answer_of_countless_files_ends() -> None:
    """Nobody is held up by a chunk that begins anew some thousand times (P9)."""
    body = fed("gzip", 1_000_000, gzip.compress(b"") * 3_000 + gzip.compress(b"tail"))
    assert (body.data, body.is_full, body.is_broken) == (b"", True, False)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_packing_that_was_not_asked_for_is_refused(encoding: str) -> None:
    """Only gzip is unpacked within a bound."""
    with pytest.raises(ValueError, match=encoding):
        Decompressor(encoding, 100)
