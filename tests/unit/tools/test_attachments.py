"""Reading files that came with messages: the tool, over its real reading process."""

import asyncio
import csv
import io
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.manual_clock import ManualClock
from zeroclaw.config.model import AttachmentToolSettings
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.errors import ToolArgumentsInvalid, ToolFailed
from zeroclaw.host import sandbox
from zeroclaw.host.processes import Captured, OutputCaps, ProcessEnd
from zeroclaw.host.sandbox import Bare, Broken, Limits, System, detect
from zeroclaw.readers import replies
from zeroclaw.readers.replies import Reply
from zeroclaw.tool import Arguments, Spawned, Tool, ToolContext, ToolOutput, line_of
from zeroclaw.tools import attachments
from zeroclaw.tools.attachments import File, tools, try_reader
from zeroclaw.value import replace


async def _nothing(_: Spawned | None) -> None:
    """Nobody records it."""


HERE = ConversationId("01HERE")
CONTEXT = ToolContext(
    conversation=HERE,
    principal=Principal(id="person:ada", roles=frozenset(), channel="chat", sender="ada"),
    address=Address(channel="chat", account="bot", chat="ada", direct=True),
    workspace=Path("/"),
    clock=ManualClock(),
    spawned=_nothing,
)


class StoredFiles:
    """Files of one conversation, by number."""

    def __init__(self, **files: bytes | None) -> None:
        self._files = list(files.items())

    async def find(self, conversation: ConversationId, number: int) -> File | None:
        if conversation != HERE or number > len(self._files):
            return None
        name, content = self._files[number - 1]
        failed = "it is `gone`" if name == "missed" else ""
        return File(name=name.replace("_", "."), size_bytes=len(content or b""), failed=failed)

    async def content(self, conversation: ConversationId, number: int) -> bytes | None:
        assert conversation == HERE
        return self._files[number - 1][1]


SYSTEM = detect()
FOUND = SYSTEM


def tool(stored: StoredFiles, boxed: System | Broken | None = None, **bounds: float) -> Tool:
    settings = AttachmentToolSettings().model_copy(update=bounds)
    [attachment_tool] = tools(settings, stored, boxed or FOUND, lambda: 2_000)
    return attachment_tool


async def read(content: bytes, name: str = "a_txt", **arguments: object) -> ToolOutput:
    reading = tool(StoredFiles(**{name: content}))
    return await reading.run(reading.check({"id": 1, **arguments}), CONTEXT)


# --- text ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("größer €".encode(), "UTF-8"),
        ("größer €".encode("utf-8-sig"), "UTF-8"),
        ("größer €".encode("utf-16"), "UTF-16-LE"),
        (b"\xfe\xff" + "größer €".encode("utf-16-be"), "UTF-16-BE"),
        ("größer €".encode("cp1252"), "Windows-1252, as it seems"),
    ],
)
async def test_text_is_read_in_any_encoding(content: bytes, encoding: str) -> None:
    """A mark says it, else UTF-8 proves itself, else it is what Windows wrote."""
    output = await read(content)
    size = len(content)
    assert output == ToolOutput(
        text=f"attachment 1 `a.txt`, text, {size} bytes; {encoding}; characters 0 to 8 of 8; "
        "this is the end:\ngrößer €",
        untrusted=True,
    )


@pytest.mark.slow
async def test_a_mail_that_was_saved_is_read_as_people_read_it() -> None:
    output = await read(b"From: Ann <a@a.example>\n\nhi\n", "a_eml")
    assert output == ToolOutput(
        text="attachment 1 `a.eml`, mail, 28 bytes; decoded; characters 0 to 28 of 28; this is the "
        "end:\nFrom: Ann <a@a.example>\n\nhi\n",
        untrusted=True,
    )


@pytest.mark.slow
async def test_a_long_text_is_read_in_pieces() -> None:
    """Each says how to read on; one piece is never cut again by the runtime."""
    content = b"x" * 5_000
    first = await read(content)
    assert "characters 0 to 1300 of 5000; read on with offset 1300:" in first.text
    assert len(first.text) < 2_000
    last = await read(content, offset=4_990, limit=100)
    assert last.text.endswith("characters 4990 to 5000 of 5000; this is the end:\nxxxxxxxxxx")
    past = await read(content, offset=5_000)
    assert past.is_error
    assert past.text.endswith("offset: 5000 is past the end of 5,000 characters")


# --- tables --------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_table_is_read_by_rows() -> None:
    """The first row comes with every piece, and says what the columns are."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";")
    writer.writerow(["name", "sum"])
    writer.writerows([f"n{n}", f"{n},50"] for n in range(1, 31))
    output = await read(out.getvalue().encode("cp1252"), "sums_csv", offset=20, limit=2)
    assert output.text.endswith(
        "2 columns parted by semicolons, 30 rows below the first; the first, and rows 21 to 22; "
        "read on with offset 22:\nrow | name | sum\n21 | n21 | 21,50\n22 | n22 | 22,50"
    )
    past = await read(out.getvalue().encode(), "sums_csv", offset=30)
    assert past.text.endswith("offset: there are no rows behind 30, only 30")


@pytest.mark.slow
async def test_a_wide_table_is_read_within_an_answer() -> None:
    """Long cells and many columns are cut, and said to be."""
    content = b",".join(b"x" * 400 for _ in range(300)) + b"\n" + b"1,2\n" * 50_000
    output = await read(content, "wide_csv")
    assert "[100 more columns]" in output.text
    assert "50000 rows below the first" in output.text
    assert "read on with offset 1:" in output.text


# --- where it is read ----------------------------------------------------------------------------

boxed = pytest.mark.needs("bwrap")
NO_SANDBOX = Broken(reason="`bwrap` is missing: install the package bubblewrap")


@pytest.mark.slow
async def test_without_a_sandbox_text_is_read_and_nothing_that_is_a_program() -> None:
    """A PDF and an image meet libraries that are large and old; the answer says why not."""
    files = StoredFiles(
        a_txt=b"word", b_pdf=b"%PDF-1.7", c_png=b"\x89PNG\r\n\x1a\n", d_csv=b"a,b\n1,2\n"
    )
    reading = tool(files, NO_SANDBOX)
    outputs = [await reading.run(reading.check({"id": n}), CONTEXT) for n in (1, 2, 3, 4)]
    assert [output.is_error for output in outputs] == [False, True, True, False]
    for output in outputs[1:3]:
        assert output.text.endswith(
            ": it is read in a sandbox only, and there is none: `bwrap` is missing: install the"
            " package bubblewrap"
        )


@boxed
@pytest.mark.slow
async def test_the_reader_runs_in_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees no file of ours, writes nowhere, reaches no network, and runs as an unused user."""
    look = (
        "import os, socket\n"
        "print(sorted(os.listdir('/')), os.path.exists('/etc/passwd'), os.path.exists('/root'))\n"
        "print(os.getuid() == 0, open('/proc/self/status').read().split('Seccomp:')[1][1])\n"
        "for path in ('/tmp/x', '/workspace', '/x', __import__('sys').base_prefix + '/x'):\n"
        "    try: open(path, 'w').write('x' * 9999); print('wrote', path)\n"
        "    except OSError: pass\n"
        "print(len(socket.if_nameindex()))\n"
    )
    monkeypatch.setattr(attachments, "_CHILD", ("-c", look))
    assert isinstance(SYSTEM, System)
    limits = Limits(memory_bytes=536_870_912, cpu_s=20)
    box, argv = await asyncio.to_thread(attachments._reader, limits)  # pyright: ignore[reportPrivateUsage]
    ended = await sandbox.run(SYSTEM, box, argv, timeout_s=600, caps=OutputCaps(), spawned=_nothing)
    lines = ended.output.head.decode().splitlines()
    assert "'workspace'" not in lines[0]
    assert "'etc'" in lines[0]  # with what the dynamic linker reads, and nothing else
    assert lines[0].endswith("] False False") or "/root" in str(box.folders)
    assert lines[1:] == ["False 2", "1"]


@boxed
@pytest.mark.slow
async def test_a_reader_that_can_not_start_is_found_before_a_file_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where Python is a place that only root may enter, say."""
    assert await try_reader(NO_SANDBOX) == NO_SANDBOX
    assert await try_reader(FOUND) == FOUND
    monkeypatch.setattr(attachments, "_CHILD", ("-c", "0"))
    assert await try_reader(FOUND) == Broken(
        reason="Python or its libraries can't be read in it; check their permissions"
    )


async def test_a_sandbox_that_failed_once_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment without descriptors must not leave every later file outside it, or unread."""
    systems: list[System | Bare] = []

    async def run_reader(system: System | Bare, *_: object, **__: object) -> ProcessEnd:
        systems.append(system)
        if len(systems) == 1:
            message = "the program could not be started: too many open files"
            raise ToolFailed(message)
        head = replies.line_of(Reply(text="word"))
        output = Captured(head=head, tail=b"", total_bytes=len(head))
        return ProcessEnd(ending="exited", status=0, output=output, is_gone=True)

    monkeypatch.setattr(attachments, "_run_reader", run_reader)
    system = System(bwrap="/bwrap", prlimit="/prlimit", links=(), directories=())
    reading = tool(StoredFiles(b_pdf=b"%PDF-1.7"), system)
    outputs = [await reading.run(reading.check({"id": 1}), CONTEXT) for _ in range(2)]
    assert [output.is_error for output in outputs] == [True, False]
    assert outputs[0].text.endswith("too many open files")
    assert systems == [system] * 3


# --- PDF -----------------------------------------------------------------------------------------


def pdf(*pages: bytes, packed: bool = False) -> bytes:
    """A PDF with a content stream for each page."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>"
        % (len(pages), b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(len(pages)))),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    filtered = b" /Filter /FlateDecode" if packed else b""
    for number, page in enumerate(pages):
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * number),
            b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(page), filtered, page),
        ]
    body, places = b"%PDF-1.4\n", list[int]()
    for number, object_ in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, object_)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return (
        body
        + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\n"
        % (size, table, size)
        + b"startxref\n%d\n%%%%EOF" % len(body)
    )


def page_text(text: str) -> bytes:
    return b"BT /F1 12 Tf 20 200 Td (%s) Tj ET" % text.encode()


@pytest.mark.slow
@pytest.mark.needs("attachments")
async def test_a_pdf_is_read_page_by_page() -> None:
    """Each page says whether there is another."""
    content = pdf(page_text("first page"), page_text("second page"))
    first = await read(content, "book_pdf")
    assert first.text.endswith("page 1 of 2: 10 characters; read on with page 2:\nfirst page")
    second = await read(content, "book_pdf", page=2)
    assert second.text.endswith("page 2 of 2: 11 characters; this is the last:\nsecond page")
    third = await read(content, "book_pdf", page=3)
    assert third == ToolOutput(
        text=f"attachment 1 `book.pdf`, PDF, {len(content):,} bytes: page: 3 is past the end, it "
        "has 2 pages",
        is_error=True,
        untrusted=True,
    )


@pytest.mark.slow
@pytest.mark.needs("attachments")
async def test_a_pdf_that_unfolds_a_thousandfold_is_ended() -> None:
    """Half a megabyte that takes twice what it may end one small process, no more (P9)."""
    squeeze = zlib.compressobj(9)
    piece = b" " * 1_048_576
    bomb = b"".join(squeeze.compress(piece) for _ in range(512)) + squeeze.flush()
    reading = tool(StoredFiles(bomb_pdf=pdf(bomb, packed=True)), memory_bytes=268_435_456)
    try:
        output = await reading.run(reading.check({"id": 1}), CONTEXT)
    except ToolFailed as error:
        text = str(error)
    else:
        text = output.text
    assert "page 1 of 1: 0 characters" not in text
    assert len(text) < 300


@pytest.mark.slow
@pytest.mark.needs("attachments")
async def test_a_pdf_that_never_ends_is_ended() -> None:
    """A page that takes minutes is given what one call may take."""
    endless = page_text("x" * 50) * 400_000
    reading = tool(StoredFiles(slow_pdf=pdf(endless)), timeout_s=1.0)
    with pytest.raises(ToolFailed, match="reading it took longer than 1 s, so it was ended"):
        await reading.run(reading.check({"id": 1}), CONTEXT)


@pytest.mark.slow
@pytest.mark.needs("attachments")
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
async def test_a_damaged_pdf_or_image_is_reported_or_read(data: st.DataObject) -> None:
    """For any bytes there is an answer of one size, or a sentence."""
    whole = data.draw(
        st.sampled_from([pdf(page_text("text")), png(3, 2), b"\xff\xd8\xff\xe1", b"GIF89a"])
    )
    at = data.draw(st.integers(0, len(whole) - 1))
    content = whole[:4] + whole[4:at] + data.draw(st.binary(max_size=40)) + whole[at:]
    try:
        text = (await read(content, "a_bin")).text
    except ToolFailed as error:
        text = str(error)
    assert 0 < len(text) < 2_000


# --- images --------------------------------------------------------------------------------------


def png(width: int, height: int) -> bytes:
    """A PNG's signature, header and end, without pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = zlib.crc32(kind + body)
        return len(body).to_bytes(4, "big") + kind + body + crc.to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\x00\x00\x00"
    pixels = chunk(b"IDAT", zlib.compress(b""))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


def jpeg_with_a_place() -> bytes:
    """A picture with what cameras write, and where it was taken."""
    image = pytest.importorskip("PIL.Image")
    picture = image.new("RGB", (8, 4))
    exif = picture.getexif()
    exif[0x010F] = "Pinhole"
    exif[0x0112] = 6
    exif.get_ifd(0x8825)[1] = "N"
    exif.get_ifd(0x8825)[2] = (52.0, 31.0, 12.0)
    out = io.BytesIO()
    picture.save(out, "JPEG", exif=exif)
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.needs("attachments")
async def test_an_image_says_what_it_is_without_its_pixels() -> None:
    """A billion pixels cost nothing, because none is unfolded."""
    output = await read(png(60_000, 60_000), "big_png")
    assert output.text.endswith("PNG image, 60000 x 60000 pixels, RGB")


@pytest.mark.slow
@pytest.mark.needs("attachments")
async def test_an_image_keeps_where_it_was_taken() -> None:
    """The camera's metadata is read, but for the place."""
    output = await read(jpeg_with_a_place(), "a_jpg")
    assert output.text.endswith(
        "JPEG image, 8 x 4 pixels, RGB:\ncamera make: Pinhole\nto be turned: a quarter to the right\n"
        "location: it holds one, which is not shown"
    )
    assert "52" not in output.text


# --- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "a_zip",
            b"PK\x03\x04",
            "`a.zip`, ZIP archive or office document, 4 bytes: there is no reader for it",
        ),
        ("a_txt", b"", "`a.txt`, empty, 0 bytes: there is no reader for it"),
        ("a_txt", None, "`a.txt` is no longer stored: ask for it to be sent again"),
        ("missed", None, "`missed` did not arrive: it is 'gone'"),
    ],
)
async def test_a_file_that_cannot_be_read_is_reported(
    name: str, content: bytes | None, sentence: str
) -> None:
    """In a sentence, without starting anything."""
    reading = tool(StoredFiles(**{name: content}))
    output = await reading.run({"id": 1}, CONTEXT)
    assert output == ToolOutput(text=f"attachment 1 {sentence}", is_error=True, untrusted=True)


@pytest.mark.slow
async def test_a_batch_of_calls_reads_one_file_after_another() -> None:
    """It takes no more than one conversation's place (P9)."""
    living: set[Spawned] = set()
    most = started = 0

    async def record(now: Spawned | None) -> None:
        nonlocal most, started
        started += now is not None
        if now is None:
            living.pop()
        else:
            living.add(now)
        most = max(most, len(living))

    reading = tool(StoredFiles(a_txt=b"milk", b_txt=b"milk", c_txt=b"fresh milk"))
    context = replace(CONTEXT, spawned=record)
    async with asyncio.TaskGroup() as group:
        called = [
            group.create_task(reading.run(reading.check({"id": number % 3 + 1}), context))
            for number in range(6)
        ]
    assert all(call.result().text.endswith("milk") for call in called)
    assert (most, started) == (1, 6)


async def test_files_of_another_conversation_can_not_be_read() -> None:
    """They look as if they didn't exist, and policy sees whose they would be (P4)."""
    reading = tool(StoredFiles(a_txt=b"secret"))
    theirs = replace(CONTEXT, conversation=ConversationId("01THEIRS"))
    output = await reading.run({"id": 1}, theirs)
    assert output.text == "there is no attachment 1 here; a message lists its files by number"
    assert await reading.resources({"id": 1}, theirs) == ("attachment:01THEIRS/1",)
    assert line_of(reading, {"id": 1}, "en") == "read attachment 1"


@pytest.mark.parametrize(
    "arguments", [{}, {"id": 0}, {"id": "one"}, {"id": 1, "limit": 1_301}, {"id": 1, "page": 0}]
)
def test_arguments_that_do_not_fit_are_refused(arguments: Arguments) -> None:
    """Before any approval request for the call."""
    with pytest.raises(ToolArgumentsInvalid):
        tool(StoredFiles()).check(arguments)
