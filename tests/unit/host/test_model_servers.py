"""What model servers say that they offer."""

import asyncio
import json

import pytest

from tests.emulators.model_server import ModelServer
from tests.emulators.pages import Page, Pages
from zeroclaw.host.models.listing import Server, models_in
from zeroclaw.host.models.servers import NoOffer, offers_of, on_loopback


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
        assert len(server.asked) == 1


@pytest.mark.slow
async def test_those_that_answer_are_found_in_the_order_in_which_they_are_named() -> None:
    """All at once: one that hangs costs its own time only. One that offers nothing is none."""
    async with Pages() as slow, Pages() as empty, Pages() as full, ModelServer() as model:
        slow.pages["/v1/models"] = Page(hangs=True)
        empty.pages["/v1/models"] = Page(body=listed())
        full.pages["/v1/models"] = Page(body=listed("a", "b"))
        asked = [f"{one.url}/v1" for one in (slow, empty, full)]
        async with asyncio.timeout(20):
            found = await on_loopback((*asked, model.url, "http://127.0.0.1:1/v1"))
        assert [one.models for one in found] == [("a", "b"), ("scripted",)]
