"""How this machine's resolver is asked."""

import asyncio
import socket
import threading

import pytest

from zeroclaw.host.resolver import NameUnknown, resolve


async def test_the_hosts_file_counts() -> None:
    """Every address once."""
    found = await resolve("localhost")
    assert len(set(found)) == len(found)
    assert set(found) <= {"127.0.0.1", "::1"}
    assert found != ()


@pytest.mark.parametrize(
    ("name", "address"), [("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("::1", "::1")]
)
async def test_an_address_comes_back_as_itself(name: str, address: str) -> None:
    """However it is written, so whoever asks can judge it."""
    assert await resolve(name) == (address,)


@pytest.mark.parametrize("name", ["", "a..b", f"{'a' * 70}.invalid", "ex\udc80mple"])
async def test_what_has_no_address_is_told(name: str) -> None:
    """In one error, with the resolver's words; an empty name is not this machine."""
    with pytest.raises(NameUnknown):
        await resolve(name)


async def test_slow_names_take_nobodys_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are asked for, what else needs a thread gets one at once (P9)."""
    answered = threading.Event()

    def ask(*_: object, **__: object) -> list[object]:
        answered.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(resolve(f"n{number}.invalid")) for number in range(64)]
        other = group.create_task(asyncio.to_thread(lambda: "served"))
        assert await other == "served"
        answered.set()
    assert {one.result() for one in asked} == {()}
