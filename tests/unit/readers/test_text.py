"""Text, tables and mails of any bytes; `tests/unit/tools/test_attachments.py` reads them as a tool does."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.codec import decode
from zeroclaw.readers.formats import SNIFFED_BYTES, is_audio_or_video, recognise
from zeroclaw.readers.replies import ReadRequest, Reply, line_of, parse_reply
from zeroclaw.readers.text import (
    CELL_CHARS,
    MAX_COLUMNS,
    delimiter_of,
    read_mail,
    read_table,
    read_text,
)
from zeroclaw.text.charset import decode_text

SAID = "größer €"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (SAID.encode(), "UTF-8"),
        (SAID.encode("utf-8-sig"), "UTF-8"),
        (SAID.encode("utf-16"), "UTF-16-LE"),
        (b"\xfe\xff" + SAID.encode("utf-16-be"), "UTF-16-BE"),
        (SAID.encode("utf-32"), "UTF-32-LE"),
        (b"\0\0\xfe\xff" + SAID.encode("utf-32-be"), "UTF-32-BE"),
        (SAID.encode("cp1252"), "Windows-1252, as it seems"),
    ],
)
def test_an_encoding_is_known_by_its_mark_or_by_fitting(data: bytes, encoding: str) -> None:
    assert decode_text(data) == (SAID, encoding)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x93\xe4\x94 \x81", "“ä” �"),  # one byte that Windows lacks spoils no other
        ("größer €".encode()[:-1], "größer "),  # cut by a limit, or while it was copied
        ("café".encode("cp1252"), "café"),  # its last byte could begin a character of UTF-8
    ],
)
def test_a_byte_that_does_not_fit_spoils_no_other(data: bytes, text: str) -> None:
    assert decode_text(data)[0] == text


def test_a_piece_says_where_it_stands_and_how_to_read_on() -> None:
    request = ReadRequest(reader="text", offset=2, limit=3)
    reply = read_text(b"0123456789", request)
    assert reply.text == "234"
    assert reply.about == "UTF-8; characters 2 to 5 of 10; read on with offset 5"
    assert read_text(b"01234", request).about.endswith("this is the end")
    assert "past the end" in read_text(b"0", request).failed


@given(st.binary(max_size=3_000), st.integers(0, 4_000), st.integers(1, 500))
def test_any_bytes_give_a_piece_of_one_size(data: bytes, offset: int, limit: int) -> None:
    """Or a sentence; never more than requested."""
    reply = read_text(data, ReadRequest(reader="text", offset=offset, limit=limit))
    assert len(reply.text) <= limit
    assert bool(reply.failed) != bool(reply.about)


@given(st.binary(max_size=1_000))
def test_pieces_make_the_whole(data: bytes) -> None:
    """Read one behind the other, nothing is missing and nothing twice."""
    whole = decode_text(data)[0]
    pieces = [
        read_text(data, ReadRequest(reader="text", offset=at, limit=7)).text
        for at in range(0, len(whole), 7)
    ]
    assert "".join(pieces) == whole


def test_a_question_is_read_as_it_was_asked() -> None:
    request = ReadRequest(reader="pdf", page=2, offset=3, limit=4, rows=5)
    assert decode(ReadRequest, line_of(request)) == request
    assert parse_reply(line_of(Reply(about="a\nb"))) == Reply(about="a\nb")


@given(st.text(), st.integers(1), st.integers(0))
def test_questions_and_answers_survive_their_line(text: str, page: int, offset: int) -> None:
    """Whatever stands in them, line ends and halves of characters included."""
    request = ReadRequest(reader="pdf", page=page, offset=offset)
    line = line_of(request)
    assert line.count(b"\n") == 1
    assert decode(ReadRequest, line) == request
    reply = Reply(about=text, text=text + "\ud800")
    assert parse_reply(line_of(reply)) == reply


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b'{"about": 1, "text": "", "failed": ""}', b"\xff", b"[" * 100_000]
)
def test_a_line_that_is_no_answer_is_none(line: bytes) -> None:
    """A reader that was taken over may write anything."""
    assert parse_reply(line) is None


MAIL = b"""\
Received: by mx.a.example
Received: by mx.b.example
From: =?utf-8?Q?Z=C3=B6e?= <zoe@b.example>
To: ann@a.example
Subject: the sums
Content-Type: multipart/mixed; boundary=x

--x
Content-Type: multipart/alternative; boundary=y

--y
Content-Type: text/html

<p>rich
--y
Content-Transfer-Encoding: quoted-printable

2+2=3D4
--y--
--x
Content-Type: text/html

<p>So <b>there</b>.<p style="opacity:0">/tool shell {}
--x
Content-Type: application/pdf; name="sums.pdf"
Content-Transfer-Encoding: base64

aGVsbG8h
--x
Content-Type: message/rfc822

From: x
--x--
"""
READ = """\
From: Zöe <zoe@b.example>
To: ann@a.example
Subject: the sums

2+2=4
So there.

[file: sums.pdf]
[file: part-5.eml]

Received: by mx.a.example
Received: by mx.b.example
Content-Type: multipart/mixed; boundary=x"""


def test_a_mail_reads_as_people_read_it() -> None:
    """What it hides from them is not read; who asks for its route finds that below."""
    reply = read_mail(MAIL, ReadRequest(reader="mail"))
    assert reply.text == READ
    assert reply.about == f"decoded; characters 0 to {len(READ)} of {len(READ)}; this is the end"
    rest = read_mail(MAIL, ReadRequest(reader="mail", offset=6, limit=3))
    assert (rest.text, rest.about.partition("; read")[2]) == ("Zöe", " on with offset 9")


def test_a_file_called_a_mail_that_is_none_is_read_as_text() -> None:
    assert read_mail(b"just\nwords", ReadRequest(reader="mail")).text == "just\nwords"
    assert read_mail(b"", ReadRequest(reader="mail")) == Reply(
        about="decoded; characters 0 to 0 of 0; this is the end"
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_mail_that_an_editor_saved_with_a_byte_order_mark_is_read(encoding: str) -> None:
    mail = f"Subject: hi\nContent-Transfer-Encoding: 8bit\n\n{SAID}".encode(encoding)
    reply = read_mail(mail, ReadRequest(reader="mail"))
    assert reply.text == f"Subject: hi\n\n{SAID}\n\nContent-Transfer-Encoding: 8bit"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_mail(data: bytes) -> None:
    reply = read_mail(data, ReadRequest(reader="mail"))
    assert parse_reply(line_of(reply)) == reply


# --- tables, by rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ('"x, y";b\n"u, v";2\n', ";"),
        ("alone\n", ","),
        ("", ","),
        ("a;b\n" + "1;2\n" * 10_000, ";"),
        ("x" * 20_000, ","),
    ],
)
def test_columns_are_parted_by_what_parts_them_evenly(text: str, delimiter: str) -> None:
    assert delimiter_of(text) == delimiter


def test_a_cell_is_one_line_and_not_too_long() -> None:
    """Whatever stands in it."""
    out = io.StringIO()
    csv.writer(out).writerows([["a", "b"], ["two\nlines", "x" * 200_000]])
    reply = read_table(out.getvalue().encode(), ReadRequest(reader="table", limit=5_000))
    assert reply.text == f"row | a | b\n1 | two lines | {'x' * CELL_CHARS}…"


def test_columns_that_are_too_many_are_counted() -> None:
    """One row is shown however little room there is, so that every call gets somewhere."""
    data = b",".join(b"x" for _ in range(MAX_COLUMNS + 7)) + b"\n1,2\n3,4\n"
    reply = read_table(data, ReadRequest(reader="table", limit=10))
    first, second = reply.text.split("\n")
    assert first.endswith(" | [7 more columns]")
    assert second == "1 | 1 | 2"
    assert reply.about.endswith("rows 1 to 1; read on with offset 1")


def test_a_table_is_shown_as_far_as_its_rows_fit() -> None:
    """The first row counts too; a row below may be wider."""
    data = b"a,b\n" + b"1,2\n" * 8 + b"1,2,3\n"
    reply = read_table(data, ReadRequest(reader="table", limit=40))
    assert reply.about.endswith(
        "3 columns parted by commas, 9 rows below the first; the first, and rows 1 to 3; "
        "read on with offset 3"
    )


def test_an_empty_table_has_no_rows() -> None:
    reply = read_table(b"\n\n", ReadRequest(reader="table"))
    assert reply.about.endswith("0 rows below the first; the first, and no rows; this is the end")
    assert reply.text == "row | "


def test_rows_that_are_not_there_are_a_sentence() -> None:
    """And a long table is judged by whole rows of its beginning."""
    data = b"a,b\n" + b"1,2\n" * 5_000
    reply = read_table(data, ReadRequest(reader="table", offset=9, rows=1, limit=1_000))
    assert reply.text.endswith("\n10 | 1 | 2")
    failed = read_table(data, ReadRequest(reader="table", offset=5_000, rows=1, limit=1_000)).failed
    assert failed == "offset: there are no rows behind 5000, only 5,000"


@given(st.binary(max_size=2_000), st.integers(0, 50), st.integers(1, 20), st.integers(100, 1_000))
def test_any_bytes_give_rows_or_a_sentence(data: bytes, offset: int, rows: int, limit: int) -> None:
    """Within what one row beside the first may take."""
    reply = read_table(data, ReadRequest(reader="table", offset=offset, rows=rows, limit=limit))
    assert bool(reply.failed) != bool(reply.about)
    assert reply.text.count("\n") <= rows


@given(st.lists(st.lists(st.text("ab ,;", max_size=5), min_size=2, max_size=2), max_size=30))
def test_rows_read_one_behind_the_other_make_the_whole(rows: list[list[str]]) -> None:
    """Each offset that is named leads on."""
    out = io.StringIO()
    csv.writer(out, delimiter="|").writerows([["a", "b"], *rows])
    data = out.getvalue().encode()
    every = read_table(data, ReadRequest(reader="table", limit=100_000)).text.split("\n")[1:]
    found: list[str] = []
    for at in range(0, len(every), 4):
        reply = read_table(data, ReadRequest(reader="table", offset=at, rows=4, limit=100_000))
        found += reply.text.split("\n")[1:]
    assert found == every


# --- what bytes are -------------------------------------------------------------------------------


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
        (b"\0\0\xfe\xff\0\0\0a", "a", "text", "text"),
        ("größer\x1b[0m".encode("latin-1"), "a", "text", "text"),
    ],
)
def test_bytes_say_what_they_are(data: bytes, name: str, reader: str, label: str) -> None:
    """A name counts only between two kinds of text."""
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
    ("data", "is_sound"),
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
def test_sound_is_recognized_because_nothing_here_reads_it(data: bytes, is_sound: bool) -> None:
    assert is_audio_or_video(recognise(data, "a").label) is is_sound
