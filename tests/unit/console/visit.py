"""The console of a whole house, visited without a socket, or through the listener."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from tests.fakes.house import House, World
from tests.unit.console.parsed import Part, faults, parsed
from zeroclaw.console.notifier import Notifier

SAME = {"sec-fetch-site": "same-origin"}


@dataclass(kw_only=True)
class Visitor:
    """A person who is logged in and opens the console's pages."""

    house: House
    client: httpx.AsyncClient
    notifier: Notifier

    async def page(self, path: str) -> Part:
        """Open a page; every page is whole, and usable without a mouse."""
        answer = await self.client.get(f"/console/{path}")
        assert answer.status_code == 200, answer.text
        opened = parsed(answer.text)
        assert faults(opened) == []
        return opened

    async def send(self, form: Part, press: str = "", **typed: str) -> Part:
        """Send a form, by one of its buttons, and go where it leads."""
        buttons = [button for button in form.every("button") if button.words == press]
        pressed = {
            button.attributes["name"]: button.attributes["value"]
            for button in buttons
            if "name" in button.attributes
        }
        fields = {**form.fields(), **pressed, **typed}
        answer = await self.client.post(form.attributes["action"], data=fields)
        assert answer.status_code == 303, answer.text
        await self.house.settle()
        return await self.page(answer.headers["location"].removeprefix("/console/"))


@asynccontextmanager
async def visiting(world: World) -> AsyncGenerator[Visitor]:
    """A running house with its console, which is loaded by the first request, as in a daemon."""
    async with world.running() as house:
        page = house.page
        transport = httpx.ASGITransport(app=page.answer, root_path="/console")
        async with httpx.AsyncClient(
            transport=transport, base_url="http://x", headers=SAME, timeout=None
        ) as client:
            yield Visitor(house=house, client=client, notifier=page.notifier)
