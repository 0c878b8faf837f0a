"""Files that a page uploads are kept until the daemon has fetched them, and no longer."""

import asyncio
import errno
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from channels.web import WebSettings
from channels.web.adapter import WebChannel
from channels.web.uploads import FETCHED_LIFETIME, LIFETIME, UploadRefused, Uploads
from tests.contract.channel_suite import Desk, receiving
from tests.contract.web_harness import Transcript, local_listener, web_context
from tests.fakes.bare_context import bare_context, never_off_the_record
from tests.fakes.manual_clock import ManualClock
from tests.fakes.web_page import following, visiting
from zeroclaw import (
    Address,
    Attachment,
    Channel,
    ChannelRejected,
    ChannelUnavailable,
    Said,
    replace,
)
from zeroclaw.errors import StoreUnusable

# Most open and close real sockets.
pytestmark = pytest.mark.slow

ID = "made-by-page"


async def never() -> bool:
    """The chat is on record."""
    return False


@asynccontextmanager
async def uploading(
    directory: Path,
    *,
    logged_in: bool = True,
    is_left: Callable[[Address], Awaitable[bool]] = never_off_the_record,
) -> AsyncGenerator[tuple[Channel, httpx.AsyncClient, Desk]]:
    """A served channel with its own directory, and a page."""
    clock, desk = ManualClock(), Desk()
    uploads = directory / "kept"
    uploads.mkdir(exist_ok=True)
    async with local_listener(directory, clock) as listener:
        context = web_context(listener, Transcript(), clock, uploads)
        context = replace(context, is_off_the_record=is_left)
        channel = WebChannel(context)
        async with (
            receiving(channel, desk.admit),
            visiting(listener, logged_in=logged_in) as client,
        ):
            yield channel, client, desk


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def named(reference: str = ID) -> Attachment:
    return Attachment(reference=reference, name="a.txt", media_type="")


async def test_a_file_arrives_with_the_message_that_names_it(tmp_path: Path) -> None:
    """It is uploaded first, and can be fetched repeatedly, also by the next process."""
    async with uploading(tmp_path) as (channel, client, desk), following(client) as page:
        await page.hear_until("snapshot")
        answer = await client.post(f"/web/files/{ID}", content=b"milk")
        assert answer.json() == {"status": "accepted", "size": 4}
        files = [{"id": ID, "name": "a.txt", "type": "text/plain", "size": 4}]
        posted = {"id": "message-1", "text": "", "files": files}
        assert (await client.post("/web/messages", json=posted)).status_code == 200
        [stored] = desk.stored
        assert stored.body == Said(text="")
        [attached] = stored.attachments
        assert (attached.name, attached.size_bytes) == ("a.txt", 4)
        assert await channel.fetch(attached, max_bytes=4) == b"milk"
        assert await channel.fetch(attached, max_bytes=4) == b"milk"
        await page.hear_until("item")
        assert page.items["person/message-1"]["files"] == ["a.txt"]
    async with uploading(tmp_path) as (channel, _, _):
        assert await channel.fetch(attached, max_bytes=4) == b"milk"


async def test_a_missing_file_is_refused_for_good(tmp_path: Path) -> None:
    """Never uploaded, too large, or with a name that leads elsewhere."""
    (tmp_path / "secret-of-others").write_bytes(b"x")
    async with uploading(tmp_path) as (channel, client, _):
        await client.post(f"/web/files/{ID}", content=b"milk")
        with pytest.raises(ChannelRejected, match="larger than 3 bytes"):
            await channel.fetch(named(), max_bytes=3)
        for reference in ("never-uploaded", "../secret-of-others", ""):
            with pytest.raises(ChannelRejected, match="sent again"):
                await channel.fetch(named(reference), max_bytes=9)


async def test_a_too_large_upload_is_refused(tmp_path: Path) -> None:
    """Neither as a file nor as a message."""
    async with uploading(tmp_path) as (_, client, desk):
        large = await client.post(f"/web/files/{ID}", content=b"x" * 10_000_001)
        assert large.status_code == 413
        assert large.json() == {"error": "it is larger than 10,000,000 bytes"}
        long = await client.post("/web/messages", content=b"x" * (4 * 1024 * 1024 + 1))
        assert long.status_code == 413
        assert desk.arrived == []
        assert names_in(tmp_path / "kept") == []


async def test_a_stranger_uploads_nothing(tmp_path: Path) -> None:
    """Neither without a login nor from another page (P4)."""
    async with uploading(tmp_path, logged_in=False) as (_, client, _):
        assert (await client.post(f"/web/files/{ID}", content=b"x")).status_code == 401
    async with uploading(tmp_path) as (_, client, _):
        other = {"sec-fetch-site": "cross-site"}
        answer = await client.post(f"/web/files/{ID}", content=b"x", headers=other)
        assert answer.status_code == 403
        assert names_in(tmp_path / "kept") == []


async def test_an_id_that_no_page_makes_is_refused(tmp_path: Path) -> None:
    """It could be the path of another file."""
    async with uploading(tmp_path) as (channel, client, _):
        assert (await client.post("/web/files/short", content=b"x")).status_code == 422
        with pytest.raises(ChannelRejected):
            await channel.fetch(named("../sessions"), max_bytes=9)


async def _chunks(body: bytes) -> AsyncGenerator[bytes]:
    yield body


async def test_files_expire_after_a_day_and_fetched_ones_soon(tmp_path: Path) -> None:
    """Unused uploads do not fill the disk."""
    clock = ManualClock()
    uploads = Uploads(tmp_path, clock, 100, never)
    await uploads.take("fetched-one", _chunks(b"a"))
    await uploads.take("waiting-one", _chunks(b"b"))
    assert await uploads.content("fetched-one", 9) == b"a"
    clock.leap(FETCHED_LIFETIME + timedelta(seconds=1))
    await uploads.sweep()
    assert await uploads.content("fetched-one", 9) is None
    clock.leap(LIFETIME - FETCHED_LIFETIME - timedelta(seconds=2))
    await uploads.sweep()
    assert names_in(tmp_path) == ["waiting-one"]
    clock.leap(timedelta(seconds=2))
    await uploads.sweep()
    assert names_in(tmp_path) == []


async def test_waiting_uploads_share_one_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond it the page asks the person to send what is uploaded."""
    monkeypatch.setattr("channels.web.uploads.MAX_BYTES", 5)
    async with uploading(tmp_path) as (_, client, _):
        assert (await client.post("/web/files/file-one", content=b"xxxx")).status_code == 200
        full = await client.post("/web/files/file-two", content=b"xx")
        assert full.status_code == 503
        assert "too many files wait" in full.json()["error"]
        assert (await client.post("/web/files/file-one", content=b"xxxxx")).status_code == 200


async def test_many_files_at_once_are_all_kept(tmp_path: Path) -> None:
    """A page uploads dropped files in parallel, and none disturbs another."""
    uploads = Uploads(tmp_path, ManualClock(), 100, never)
    names = [f"dropped-{number:03}" for number in range(60)]
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(uploads.take(name, _chunks(b"milk")))
            group.create_task(uploads.sweep())
    assert sorted(names_in(tmp_path)) == names


@pytest.mark.parametrize("path", ["/files/made-by-page", "/messages", "/answers"])
async def test_a_page_closed_during_an_upload_is_no_error(tmp_path: Path, path: str) -> None:
    """The partial upload is dropped, and no error is raised or logged."""
    uploads, desk = Uploads(tmp_path, ManualClock(), 100, never), Desk()
    context = bare_context("web", WebSettings(), transcript=Transcript(), directory=tmp_path)
    channel = WebChannel(context)
    scope = {"type": "http", "method": "POST", "path": path, "headers": (), "query_string": b""}
    messages: list[dict[str, object]] = [
        {"type": "http.disconnect"},
        {"type": "http.request", "body": b"mi", "more_body": True},
    ]

    async def receive() -> dict[str, object]:
        return messages.pop()

    async def send(_: object) -> None:
        pass

    with channel.serving(desk.admit):
        await channel.application()(scope, receive, send)
    assert await uploads.content("made-by-page", 9) is None
    assert desk.arrived == []


async def test_uploads_in_progress_share_one_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are held in memory, so a hundred uploads can't begin at once; an end makes room."""
    monkeypatch.setattr("channels.web.uploads.MAX_BYTES", 5)
    uploads = Uploads(tmp_path, ManualClock(), 4, never)
    has_begun, goes_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncGenerator[bytes]:
        yield b"mil"
        has_begun.set()
        await goes_on.wait()

    async with asyncio.TaskGroup() as group:
        first = group.create_task(uploads.take("slow-one", slowly()))
        await has_begun.wait()
        with pytest.raises(UploadRefused, match="too many files are on their way"):
            await uploads.take("other-one", _chunks(b"xxx"))
        goes_on.set()
    assert first.result() == 3
    assert await uploads.take("third-one", _chunks(b"xx")) == 2


class Record:
    """Whether the page's chat is off the record, as the daemon reports it to an adapter."""

    def __init__(self, *, off: bool) -> None:
        self.off = off

    async def is_left(self) -> bool:
        await asyncio.sleep(0)
        return self.off


async def test_an_off_the_record_upload_is_never_on_disk(tmp_path: Path) -> None:
    """It waits in memory, can be fetched as often as others, and expires like them."""
    clock, record = ManualClock(), Record(off=True)
    uploads = Uploads(tmp_path, clock, 100, record.is_left)
    await uploads.take("fetched-one", _chunks(b"milk"))
    await uploads.take("waiting-one", _chunks(b"more"))
    assert names_in(tmp_path) == []
    assert await uploads.content("fetched-one", 9) == b"milk"
    assert await uploads.content("fetched-one", 2) == b"mil"
    clock.leap(FETCHED_LIFETIME + timedelta(seconds=1))
    await uploads.sweep()
    assert await uploads.content("fetched-one", 9) is None
    record.off = False
    await uploads.sweep(("waiting-one",))
    assert await uploads.content("waiting-one", 9) == b"more"
    assert names_in(tmp_path) == []
    assert await Uploads(tmp_path, clock, 100, record.is_left).content("waiting-one", 9) is None


async def test_earlier_files_leave_the_disk_when_the_chat_goes_off_the_record(
    tmp_path: Path,
) -> None:
    """Files that no message on record names, before and after a kill.

    The messages of the others may still be waiting, however many processes are killed.
    """
    record = Record(off=False)
    uploads = Uploads(tmp_path, ManualClock(), 100, record.is_left)
    for name in ("named-file", "unnamed-file"):
        await uploads.take(name, _chunks(b"milk"))
    await uploads.sweep(("named-file",))
    record.off = True
    await uploads.sweep()
    assert names_in(tmp_path) == ["named-file"]
    assert await uploads.content("unnamed-file", 9) == b"milk"
    record.off = False
    await uploads.take("another-file", _chunks(b"milk"))
    record.off = True
    for _ in range(2):
        later = Uploads(tmp_path, ManualClock(), 100, record.is_left)
        await later.sweep()
        assert names_in(tmp_path) == ["named-file"]
        assert await later.content("named-file", 9) == b"milk"


async def test_a_file_stored_as_the_chat_goes_off_the_record_is_removed_from_disk(
    tmp_path: Path,
) -> None:
    """A file named by a message from just before, or being written to the disk."""
    record = Record(off=False)
    uploads = Uploads(tmp_path, ManualClock(), 100, record.is_left)

    async def as_it_is_left() -> AsyncGenerator[bytes]:
        yield b"milk"
        record.off = True

    await uploads.take("racing-file", as_it_is_left())
    assert names_in(tmp_path) == []
    record.off = False
    await uploads.take("other-file", _chunks(b"milk"))
    record.off = True
    await uploads.sweep(("other-file",))
    assert names_in(tmp_path) == []


async def test_memory_and_disk_have_one_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An off-the-record page has to wait as well, and a repeat replaces its file."""
    monkeypatch.setattr("channels.web.uploads.MAX_BYTES", 5)
    record = Record(off=False)
    uploads = Uploads(tmp_path, ManualClock(), 100, record.is_left)
    await uploads.take("file-one", _chunks(b"xx"))
    record.off = True
    await uploads.take("file-two", _chunks(b"xx"))
    with pytest.raises(UploadRefused, match="too many files wait"):
        await uploads.take("file-three", _chunks(b"xx"))
    await uploads.take("file-two", _chunks(b"xxx"))
    record.off = False
    with pytest.raises(UploadRefused, match="too many files wait"):
        await uploads.take("file-one", _chunks(b"xxx"))
    await uploads.take("file-two", _chunks(b"x"))
    assert await uploads.content("file-two", 9) == b"x"


@pytest.mark.parametrize("is_known", [True, False])
async def test_the_page_goes_off_the_record(tmp_path: Path, *, is_known: bool) -> None:
    """As the daemon reports; if it can't, uploads stay off the disk as well."""
    record = Record(off=False)

    async def is_left(_: Address) -> bool:
        if record.off and not is_known:
            raise StoreUnusable("the store can't be read")
        return await record.is_left()

    async with uploading(tmp_path, is_left=is_left) as (channel, client, _):
        assert (await client.post(f"/web/files/{ID}", content=b"milk")).status_code == 200
        assert names_in(tmp_path / "kept") == [ID]
        record.off = True
        posted = {"id": "message-1", "text": "/otr"}
        assert (await client.post("/web/messages", json=posted)).status_code == 200
        assert names_in(tmp_path / "kept") == []
        assert (await client.post("/web/files/later-one", content=b"tea")).status_code == 200
        assert names_in(tmp_path / "kept") == []
        for name, body in ((ID, b"milk"), ("later-one", b"tea")):
            assert await channel.fetch(named(name), max_bytes=9) == body


async def test_a_file_that_the_disk_fails_to_read_may_be_fetched_later(tmp_path: Path) -> None:
    """It is not taken for a fault in the code, after which it would never be fetched again."""
    async with uploading(tmp_path) as (channel, _, _):
        (tmp_path / "kept" / ID).mkdir()
        with pytest.raises(ChannelUnavailable, match="can't be read now: is a directory"):
            await channel.fetch(named(), max_bytes=9)


async def test_a_stored_message_is_confirmed_even_if_the_uploads_can_not_be_swept(
    tmp_path: Path,
) -> None:
    """Otherwise the page would post it again and again, and none of those behind it. P1."""
    async with uploading(tmp_path) as (_, client, desk):
        (tmp_path / "kept").rmdir()
        posted = {"id": "message-1", "text": "hello"}
        assert (await client.post("/web/messages", json=posted)).status_code == 200
        assert [envelope.body for envelope in desk.stored] == [Said(text="hello")]


async def test_the_page_is_served_even_if_the_uploads_can_not_be_swept(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"")
    async with local_listener(tmp_path, clock := ManualClock()) as listener:
        context = web_context(listener, Transcript(), clock, tmp_path / "kept")
        async with receiving(WebChannel(context), Desk().admit), visiting(listener) as client:
            assert (await client.get("/web/")).status_code == 200


async def test_a_file_that_does_not_fit_on_the_disk_leaves_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try would leave a part, and the disk would stay full for a day."""

    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    uploads = Uploads(tmp_path, ManualClock(), 100, never)
    await uploads.take("first-one", _chunks(b"milk"))
    monkeypatch.setattr("channels.web.uploads.os.fsync", refuse)
    for name in ("first-one", "second-one"):
        with pytest.raises(UploadRefused, match="no space left on device"):
            await uploads.take(name, _chunks(b"more"))
    assert names_in(tmp_path) == ["first-one"]
    assert await uploads.content("first-one", 9) == b"milk"
