"""Model files arrive whole or not at all, after any number of attempts."""

import asyncio
import fcntl
import hashlib
import json
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.emulators.gguf_files import CALLS, CHATS, gguf, text
from tests.emulators.model_server import ModelServer
from tests.emulators.pages import Page, Pages
from zeroclaw.errors import Refused
from zeroclaw.host.http import http_client
from zeroclaw.host.models.downloads import check_model, fetch
from zeroclaw.host.models.gguf import ModelFile, is_gguf, knows_tools, model_files, trained_tokens
from zeroclaw.host.models.listing import Server, models_in
from zeroclaw.host.models.servers import NoOffer, offers_of, on_loopback

MODEL = gguf() + bytes(range(256)) * 64
HASH = hashlib.sha256(MODEL).hexdigest()


def mute(done: int, total: int) -> None:
    """Ignore the progress."""


async def bring(
    server: Pages,
    target: Path,
    *,
    path: str = "/m.gguf",
    sha256: str = HASH,
    show: Callable[[int, int], None] = mute,
) -> None:
    """Fetch a file once."""
    http = http_client()
    try:
        await fetch(http, f"{server.url}{path}", target, sha256=sha256, show=show)
    finally:
        await http.aclose()


def content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "data" / "models" / "m.gguf"


async def left_by_a_cut(server: Pages, target: Path, body: bytes) -> None:
    """Leave a part with these bytes, as an interrupted download does."""
    written = asyncio.Event()
    page = Page(body=MODEL + b"more" * 99, cut_after=len(body), cut_when=written)
    server.pages["/m.gguf"] = page
    with pytest.raises(Refused, match="to resume the download"):
        await bring(server, target, show=lambda _done, _total: written.set())
    assert content(target) == b""


async def cut(server: Pages, target: Path, begun: Callable[[], None]) -> None:
    """Start a download, and interrupt it."""
    with pytest.raises(Refused, match="to resume the download"):
        await bring(server, target, show=lambda _done, _total: begun())


async def test_a_model_is_fetched_checked_and_moved_into_place(target: Path) -> None:
    shown: list[tuple[int, int]] = []
    async with Pages() as server:
        server.pages["/m.gguf"] = Page(body=MODEL)
        await bring(server, target, show=lambda done, total: shown.append((done, total)))
    assert content(target) == MODEL
    assert [path.name for path in target.parent.iterdir()] == ["m.gguf"]
    assert target.parent.parent.stat().st_mode & 0o777 == 0o700
    assert shown[-1] == (len(MODEL), len(MODEL))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "page", "requested"),
    [
        (MODEL[:5000], Page(body=MODEL), "bytes=5000-"),
        (MODEL[:5000], Page(body=MODEL, ranges=False), "bytes=5000-"),
        (MODEL, Page(body=MODEL), f"bytes={len(MODEL)}-"),
    ],
)
async def test_an_interrupted_download_is_resumed(
    target: Path, part: bytes, page: Page, requested: str
) -> None:
    """It restarts if the server knows no ranges; if only the last step is missing, that is done."""
    async with Pages() as server:
        await left_by_a_cut(server, target, part)
        server.pages["/m.gguf"] = page
        await bring(server, target)
        assert server.requests[-1][1]["range"] == requested
    assert content(target) == MODEL


@pytest.mark.slow
async def test_a_part_of_another_file_is_deleted(target: Path) -> None:
    async with Pages() as server:
        await left_by_a_cut(server, target, MODEL + b"mor")
        server.pages["/m.gguf"] = Page(body=MODEL)
        with pytest.raises(Refused, match="has another SHA-256 than you gave"):
            await bring(server, target)
        await bring(server, target)
    assert content(target) == MODEL


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (Page(body=MODEL[:-1] + b"?"), "has another SHA-256 than you gave"),
        (Page(body=b"<html>a page</html>"), "is not a GGUF model; is it a web page"),
        (Page(body=b"GG"), "is not a GGUF model"),
        (Page(status=404), "answered 404 to `/m.gguf`"),
        (
            Page(body=MODEL, headers={"Content-Length": str(10**18)}),
            "models` can't be used: .*; make room there",
        ),
    ],
)
async def test_a_bad_download_is_reported_and_leaves_no_usable_file(
    target: Path, page: Page, reason: str
) -> None:
    """P10."""
    async with Pages() as server:
        server.pages["/m.gguf"] = page
        with pytest.raises(Refused, match=reason):
            await bring(server, target)
    assert await asyncio.to_thread(model_files, target.parent) == ()


@pytest.mark.slow
async def test_a_download_that_another_process_runs_is_left_to_it(target: Path) -> None:
    """Otherwise both would append to one file, even after the check."""
    has_begun, is_seen = asyncio.Event(), asyncio.Event()
    async with Pages() as server, asyncio.TaskGroup() as group:
        server.pages["/m.gguf"] = Page(body=MODEL, cut_after=5000, cut_when=is_seen)
        first = group.create_task(cut(server, target, has_begun.set))
        await has_begun.wait()
        with pytest.raises(Refused, match="another process is downloading"):
            await bring(server, target)
        is_seen.set()
        await first
        server.pages["/m.gguf"] = Page(body=MODEL)
        await bring(server, target)
    assert content(target) == MODEL


async def test_a_download_is_locked_until_it_is_in_place(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise another one could empty the file after the check."""
    sync, refused = os.fsync, list[Path]()

    def look_and_sync(descriptor: int) -> None:
        [part] = target.parent.iterdir()
        with part.open("ab") as other, suppress(BlockingIOError):
            refused.append(part)
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            refused.clear()
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", look_and_sync)
    async with Pages() as server:
        server.pages["/m.gguf"] = Page(body=MODEL)
        await bring(server, target)
    assert (len(refused), content(target)) == (1, MODEL)


async def test_redirects_are_followed_but_not_for_ever(target: Path) -> None:
    async with Pages() as server:
        server.pages["/round"] = Page(status=302, headers={"location": "/round"})
        with pytest.raises(Refused, match="redirects more than 5 times"):
            await bring(server, target, path="/round")
        server.pages["/a"] = Page(status=302, headers={"location": "/m.gguf"})
        server.pages["/m.gguf"] = Page(body=MODEL)
        await bring(server, target, path="/a")
        server.pages["/ftp"] = Page(status=302, headers={"location": "ftp://127.0.0.1/m.gguf"})
        with pytest.raises(Refused, match="which is not http"):
            await bring(server, target.with_name("b.gguf"), path="/ftp")
    assert content(target) == MODEL


def test_a_file_is_checked(tmp_path: Path) -> None:
    """P10: not a model, another hash, a missing file."""
    (tmp_path / "a.gguf").write_bytes(b"hello")
    (tmp_path / "b.gguf").write_bytes(MODEL)
    check_model(tmp_path / "b.gguf", "", tmp_path)
    check_model(tmp_path / "b.gguf", HASH, tmp_path)
    for name, sha256, reason in (
        ("a.gguf", "", "is not a GGUF model"),
        ("b.gguf", "0" * 64, "has another SHA-256"),
        ("c.gguf", "", "can't be used: no such file"),
    ):
        with pytest.raises(Refused, match=reason):
            check_model(tmp_path / name, sha256, tmp_path)


async def test_an_unwritable_place_is_reported(tmp_path: Path) -> None:
    """P10: a file is in place of the directory."""
    (tmp_path / "models").touch()
    into = tmp_path / "models" / "m.gguf"
    async with Pages() as server:
        with pytest.raises(Refused, match=r"models` can't be used: (file exists|not a dir)"):
            await bring(server, into)
        assert server.requests == []


def test_models_are_listed_with_their_templates_abilities(tmp_path: Path) -> None:
    (tmp_path / "b.gguf").write_bytes(gguf())
    (tmp_path / "a.gguf").write_bytes(gguf(CHATS))
    (tmp_path / "c.gguf").write_bytes(b"no model")
    (tmp_path / "d.gguf").symlink_to("/nowhere")
    assert model_files(tmp_path) == (
        ModelFile(path=tmp_path / "a.gguf", size_bytes=len(gguf(CHATS)), calls_tools=False),
        ModelFile(path=tmp_path / "b.gguf", size_bytes=len(gguf()), calls_tools=True),
    )
    assert model_files(tmp_path / "nowhere") == ()


# --- facts in a model file ---


@pytest.mark.parametrize(
    ("content", "known"),
    [
        (gguf(CALLS), True),
        (gguf(CHATS), False),
        (gguf("{{ mytools }}"), False),
        (gguf(CALLS, key="tokenizer.chat_template.tool_use"), True),
        (gguf(None), False),
        (gguf(CALLS)[:-20], True),
        (gguf(CALLS)[: -len(CALLS) - 3], False),
        (b"GGUF", False),
        (b"<html>tools</html>", None),
        (b"", None),
    ],
)
def test_tool_support_is_read_from_the_template(
    tmp_path: Path, content: bytes, *, known: bool | None
) -> None:
    """A word of the vocabulary is no template; loading reports a truncated file."""
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    assert knows_tools(path) is known
    assert is_gguf(path) is (known is not None)


def test_a_missing_file_has_no_facts(tmp_path: Path) -> None:
    assert knows_tools(tmp_path / "m.gguf") is None


def test_a_model_file_holds_its_context_window(tmp_path: Path) -> None:
    """Under a key that begins with its architecture's name; other files give none."""
    model = tmp_path / "m.gguf"
    key = text("llama.context_length") + struct.pack("<II", 4, 8192)
    model.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key)
    assert trained_tokens(model) == 8192
    model.write_bytes(gguf())
    assert trained_tokens(model) is None
    model.write_bytes(key)
    assert trained_tokens(model) is None
    assert trained_tokens(tmp_path / "none.gguf") is None


# --- models offered by servers -------------------------------------------------------


def listed(*names: object) -> bytes:
    """The response of a server that lists these models."""
    return json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()


@pytest.mark.parametrize(
    ("body", "models"),
    [
        (listed("qwen3:8b", "llama3", "qwen3:8b"), ("qwen3:8b", "llama3")),
        (listed(), ()),
        (listed("\x1b[2Jevil", " ", "x" * 201, 7, "fine"), ("fine",)),
        (b'{"data": ["a", {"name": "b"}]}', ()),
        (b'{"data": {}}', None),
        (b"[]", None),
        (b"<html>", None),
        (b"\xff", None),
    ],
)
def test_only_a_valid_list_of_models_counts(body: bytes, models: tuple[str, ...] | None) -> None:
    """Control characters in it are escaped."""
    assert models_in(body) == models


async def test_a_server_is_asked_with_its_key_and_no_other() -> None:
    async with Pages() as server:
        server.pages["/v1/models"] = Page(body=listed("a"))
        offers = await offers_of(f"{server.url}/v1/", api_key="k")
        await offers_of(f"{server.url}/v1")
        name = server.url.removeprefix("http://")
        assert offers == Server(name=name, base_url=f"{server.url}/v1", models=("a",))
        keys = [headers.get("authorization") for _, headers in server.requests]
        assert keys == ["Bearer k", None]


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (Page(status=302, headers={"location": "/elsewhere"}), "answered 302"),
        (Page(status=401, body=listed("a")), "answered 401"),
        (Page(body=b"<html>"), "no list of models"),
        (Page(body=listed("a" * 100) + b" " * 1_000_000 + b"}"), "no list of models"),
        (Page(body=listed("a"), cut_after=3), "can't be reached"),
        (Page(hangs=True), "within 0.2 s"),
    ],
)
async def test_an_invalid_offer_is_reported_in_one_line(page: Page, message: str) -> None:
    """P10. A redirect is not followed: only the given server may answer."""
    async with Pages() as server:
        server.pages["/v1/models"] = page
        server.pages["/elsewhere"] = Page(body=listed("b"))
        with pytest.raises(NoOffer, match=message):
            await offers_of(f"{server.url}/v1", within_s=0.2 if page.hangs else 20)
        assert server.requests[1:] == []  # the first may not have arrived in so short a time


@pytest.mark.slow
async def test_answering_servers_are_found_in_the_given_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are asked together: a hanging one delays only itself. One without models is left out."""
    monkeypatch.setattr(
        "zeroclaw.host.models.servers.LOOPBACK_S", 3.0
    )  # the others have answered by then
    async with Pages() as slow, Pages() as empty, Pages() as full, ModelServer() as model:
        slow.pages["/v1/models"] = Page(hangs=True)
        empty.pages["/v1/models"] = Page(body=listed())
        full.pages["/v1/models"] = Page(body=listed("a", "b"))
        urls = [f"{server.url}/v1" for server in (slow, empty, full)]
        servers = await on_loopback((*urls, model.url, "http://127.0.0.1:1/v1"))
        assert [server.models for server in servers] == [("a", "b"), ("scripted",)]
