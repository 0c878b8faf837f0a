"""Model files arrive whole or not at all, however often it takes."""

import asyncio
import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.emulators.gguf_files import CALLS, CHATS, gguf, text
from tests.emulators.model_server import ModelServer
from tests.emulators.pages import Page, Pages
from zeroclaw.errors import Refused
from zeroclaw.host.http import http_client
from zeroclaw.host.models.downloads import fetch
from zeroclaw.host.models.files import ModelFile, PartialFile, is_here, model_files, place_for, take
from zeroclaw.host.models.gguf import is_gguf, knows_tools, trained_tokens
from zeroclaw.host.models.listing import Server, models_in
from zeroclaw.host.models.servers import NoOffer, offers_of, on_loopback

MODEL = gguf() + bytes(range(256)) * 64
HASH = hashlib.sha256(MODEL).hexdigest()


def mute(done: int, total: int | None) -> None:
    """Show nothing."""


def in_folder(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def bring(
    server: Pages,
    target: Path,
    *,
    path: str = "/m.gguf",
    sha256: str = HASH,
    show: Callable[[int, int | None], None] = mute,
) -> None:
    """Fetch once."""
    http = http_client()
    try:
        await fetch(http, f"{server.url}{path}", target, sha256=sha256, show=show)
    finally:
        await http.aclose()


def leave(target: Path, content: bytes, sha256: str) -> None:
    """Leave what an earlier try would have left."""
    with PartialFile(target, sha256) as part:
        part.write(content)


def content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "m.gguf"


async def test_a_model_is_fetched_checked_and_put_in_its_place(target: Path) -> None:
    async with Pages() as server:
        server.pages["/m.gguf"] = Page(body=MODEL)
        await bring(server, target)
    assert content(target) == MODEL
    assert in_folder(target.parent) == ["m.gguf"]


@pytest.mark.slow
async def test_a_cut_download_goes_on_where_it_was(target: Path) -> None:
    """What has come is asked for no more."""
    async with Pages() as server:
        written = asyncio.Event()
        server.pages["/m.gguf"] = Page(body=MODEL, cut_after=5000, cut_when=written)
        with pytest.raises(Refused, match="it goes on from there"):
            await bring(server, target, show=lambda done, _: written.set() if done else None)
        assert content(target) == b""
        server.pages["/m.gguf"] = Page(body=MODEL)
        await bring(server, target)
        assert server.asked[1][1]["range"] == "bytes=5000-"
    assert content(target) == MODEL


@pytest.mark.parametrize("page", [Page(body=MODEL, ranges=False), Page(body=MODEL[:-1])])
async def test_a_server_without_ranges_is_read_from_the_beginning(target: Path, page: Page) -> None:
    """As is one whose file is shorter than what is here: then it is another file."""
    sha256 = hashlib.sha256(page.body).hexdigest()
    await asyncio.to_thread(leave, target, MODEL + b"more", sha256)
    async with Pages() as server:
        server.pages["/m.gguf"] = page
        await bring(server, target, sha256=sha256)
    assert content(target) == page.body


async def test_a_download_that_only_missed_its_last_step_asks_nobody(target: Path) -> None:
    await asyncio.to_thread(leave, target, MODEL, HASH)
    async with Pages() as server:
        await bring(server, target)
        assert server.asked == []
    assert content(target) == MODEL


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (Page(body=MODEL[:-1] + b"?"), "has another SHA-256 than you gave"),
        (Page(body=b"<html>a page</html>"), "is not a GGUF model; is it a web page"),
        (Page(body=b"GG"), "has another SHA-256"),
        (Page(status=404), "answered 404 to `/m.gguf`"),
        (Page(body=MODEL, headers={"Content-Length": str(10**18)}), "no space for `m.gguf`"),
    ],
)
async def test_what_is_wrong_is_told_and_leaves_nothing_that_could_be_used(
    target: Path, page: Page, why: str
) -> None:
    """P10."""
    async with Pages() as server:
        server.pages["/m.gguf"] = page
        with pytest.raises(Refused, match=why):
            await bring(server, target)
    assert await asyncio.to_thread(model_files, target.parent) == ()


@pytest.mark.slow
async def test_redirects_are_followed_but_not_for_ever(target: Path) -> None:
    async with Pages() as server:
        server.pages["/round"] = Page(status=302, headers={"location": "/round"})
        with pytest.raises(Refused, match="from one address to the next"):
            await bring(server, target, path="/round")
        server.pages["/a"] = Page(status=302, headers={"location": "/m.gguf"})
        server.pages["/m.gguf"] = Page(body=MODEL)
        await bring(server, target, path="/a")
        server.pages["/ftp"] = Page(status=302, headers={"location": "ftp://127.0.0.1/m.gguf"})
        with pytest.raises(Refused, match="which is not"):
            await bring(server, target.with_name("b.gguf"), path="/ftp")
    assert content(target) == MODEL


def test_two_do_not_fetch_the_same(target: Path) -> None:
    with PartialFile(target, HASH), pytest.raises(Refused, match="another zeroclaw"):
        PartialFile(target, HASH)


def test_a_path_is_linked_or_copied(tmp_path: Path) -> None:
    source, models = tmp_path / "big.gguf", tmp_path / "models"
    source.write_bytes(MODEL)
    take(source, models / "a.gguf", copies=False, sha256="", show=mute)
    take(source, models / "b.gguf", copies=True, sha256=HASH, show=mute)
    take(source, models / "c.gguf", copies=False, sha256=HASH, show=mute)
    take(source, models / "d.gguf", copies=True, sha256="", show=mute)
    assert [(models / f"{name}.gguf").is_symlink() for name in "abcd"] == [True, False, True, False]
    assert [(models / f"{name}.gguf").read_bytes() == MODEL for name in "abcd"] == [True] * 4
    assert in_folder(models) == ["a.gguf", "b.gguf", "c.gguf", "d.gguf"]


@pytest.mark.parametrize("copies", [False, True])
def test_a_path_is_checked(tmp_path: Path, *, copies: bool) -> None:
    """P10: no model, another hash, not there."""
    (tmp_path / "a.gguf").write_bytes(b"hello")
    (tmp_path / "b.gguf").write_bytes(MODEL)
    into = tmp_path / "models" / "m.gguf"
    for name, sha256, why in (
        ("a.gguf", "", "is not a GGUF model"),
        ("b.gguf", "0" * 64, "has another SHA-256"),
        ("c.gguf", "", "can't be used: no such file"),
    ):
        with pytest.raises(Refused, match=why):
            take(tmp_path / name, into, copies=copies, sha256=sha256, show=mute)
    assert not into.exists()


async def test_a_place_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    """P10: a file stands where the directory should be."""
    (tmp_path / "models").touch()
    into = tmp_path / "models" / "m.gguf"
    async with Pages() as server:
        with pytest.raises(Refused, match=r"models` can't be used: (file exists|not a dir)"):
            await bring(server, into)
        assert server.asked == []


@pytest.mark.parametrize("name", ["m.bin", ".gguf", "../m.gguf", "a/m.gguf", "\x1bm.gguf", ""])
def test_a_model_has_a_plain_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="is no name for a model"):
        place_for(name, tmp_path)


def test_what_is_here_is_not_overwritten(target: Path) -> None:
    """The same model is simply here; another one is somebody's, and so is a broken link."""
    assert not is_here(target, HASH)
    target.write_bytes(MODEL)
    assert is_here(target, HASH)
    for sha256 in ("", "0" * 64):
        with pytest.raises(Refused, match="is there already"):
            is_here(target, sha256)
    target.unlink()
    target.symlink_to("/nowhere")
    with pytest.raises(Refused, match="is there already"):
        is_here(target, HASH)


def test_models_are_listed_with_what_their_template_knows(tmp_path: Path) -> None:
    (tmp_path / "b.gguf").write_bytes(gguf())
    (tmp_path / "a.gguf").write_bytes(gguf(CHATS))
    (tmp_path / "c.gguf").write_bytes(b"no model")
    (tmp_path / "d.gguf").symlink_to("/nowhere")
    assert model_files(tmp_path) == (
        ModelFile(path=tmp_path / "a.gguf", size_bytes=len(gguf(CHATS)), calls_tools=False),
        ModelFile(path=tmp_path / "b.gguf", size_bytes=len(gguf()), calls_tools=True),
    )
    assert model_files(tmp_path / "nowhere") == ()


# --- what a model file says of itself ---


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
def test_tools_are_known_where_the_template_names_them(
    tmp_path: Path, content: bytes, *, known: bool | None
) -> None:
    """A word of the vocabulary is no template; what is cut off is told of by who loads it."""
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    assert knows_tools(path) is known
    assert is_gguf(path) is (known is not None)


def test_a_file_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert knows_tools(tmp_path / "m.gguf") is None


def test_a_model_file_says_what_window_it_was_trained_for(tmp_path: Path) -> None:
    """By a key that begins with its architecture's name; no other file says anything."""
    model = tmp_path / "m.gguf"
    key = text("llama.context_length") + struct.pack("<II", 4, 8192)
    model.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key)
    assert trained_tokens(model) == 8192
    model.write_bytes(gguf())
    assert trained_tokens(model) is None
    model.write_bytes(key)
    assert trained_tokens(model) is None
    assert trained_tokens(tmp_path / "none.gguf") is None


# --- what model servers say that they offer -------------------------------------------------------


def listed(*names: object) -> bytes:
    """As a server lists its models."""
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
def test_only_a_list_of_models_is_one(body: bytes, models: tuple[str, ...] | None) -> None:
    """And nothing in it can do anything to a terminal."""
    assert models_in(body) == models


async def test_a_server_is_asked_with_its_key_and_no_other() -> None:
    async with Pages() as server:
        server.pages["/v1/models"] = Page(body=listed("a"))
        found = await offers_of(f"{server.url}/v1/", api_key="k")
        await offers_of(f"{server.url}/v1")
        name = server.url.removeprefix("http://")
        assert found == Server(name=name, base_url=f"{server.url}/v1", models=("a",))
        keys = [headers.get("authorization") for _, headers in server.asked]
        assert keys == ["Bearer k", None]


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (Page(status=302, headers={"location": "/elsewhere"}), "answered 302"),
        (Page(status=401, body=listed("a")), "answered 401"),
        (Page(body=b"<html>"), "no list of models"),
        (Page(body=listed("a" * 100) + b" " * 1_000_000 + b"}"), "no list of models"),
        (Page(body=listed("a"), cut_after=3), "can't be reached"),
        (Page(hangs=True), "within 0.2 s"),
    ],
)
async def test_what_is_no_offer_is_told_in_one_line(page: Page, why: str) -> None:
    """P10. A redirect is not followed: whoever was asked is who answers."""
    async with Pages() as server:
        server.pages["/v1/models"] = page
        server.pages["/elsewhere"] = Page(body=listed("b"))
        with pytest.raises(NoOffer, match=why):
            await offers_of(f"{server.url}/v1", within_s=0.2 if page.hangs else 20)
        assert server.asked[1:] == []  # nor need the first have come within so short a time


@pytest.mark.slow
async def test_those_that_answer_are_found_in_the_order_in_which_they_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All at once: one that hangs costs its own time only. One that offers nothing is none."""
    monkeypatch.setattr(
        "zeroclaw.host.models.servers.LOOPBACK_S", 3.0
    )  # the others are there by then
    async with Pages() as slow, Pages() as empty, Pages() as full, ModelServer() as model:
        slow.pages["/v1/models"] = Page(hangs=True)
        empty.pages["/v1/models"] = Page(body=listed())
        full.pages["/v1/models"] = Page(body=listed("a", "b"))
        asked = [f"{one.url}/v1" for one in (slow, empty, full)]
        found = await on_loopback((*asked, model.url, "http://127.0.0.1:1/v1"))
        assert [one.models for one in found] == [("a", "b"), ("scripted",)]
