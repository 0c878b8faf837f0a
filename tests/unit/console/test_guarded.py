"""The console behind the listener: only for logged-in browsers, only from its own pages."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.contract.web_harness import local_listener
from tests.fakes import web_page
from tests.fakes.house import House, World
from tests.fakes.scripted_model import POKE, says
from tests.unit.console.parsed import Part, parsed
from zeroclaw.console.frame import SECTIONS
from zeroclaw.console.notifier import MAX_PAGES, Notice, Notifier
from zeroclaw.console.site import MAX_BYTES
from zeroclaw.errors import Conflict
from zeroclaw.host.guard import POLICY
from zeroclaw.host.local_listener import Listener
from zeroclaw.store import Commit, RowKind


@asynccontextmanager
async def served(
    world: World, directory: Path
) -> AsyncGenerator[tuple[House, Listener, httpx.AsyncClient]]:
    """A house with an open approval request, its console on a real listener, and a logged-in
    client."""
    async with world.running() as house, local_listener(directory, world.clock) as listener:
        listener.mount_beside("/console", house.page.answer)
        world.model.will(POKE, says("done"))
        await house.say("poke it", "ben")
        async with web_page.visiting(listener) as client:
            yield house, listener, client


async def press(client: httpx.AsyncClient) -> dict[str, str]:
    """The fields that the page's form would send for yes."""
    page = parsed((await client.get("/console/approvals")).text)
    [card] = [part for part in page.every("li") if part.attributes.get("class") == "card"]
    return {**card.every("form")[0].fields(), "choice": "once"}


async def pending(house: House) -> int:
    return len(await house.rows(RowKind.APPROVAL, "pending"))


@pytest.mark.slow
async def test_without_a_login_nothing_is_shown_or_changed(world: World, tmp_path: Path) -> None:
    async with served(world, tmp_path) as (house, listener, client):
        fields = await press(client)
        async with web_page.visiting(listener, logged_in=False) as stranger:
            for path in ("", "events", "console.js", "conversations/1", *SECTIONS):
                answer = await stranger.get(f"/console/{path}")
                assert (answer.status_code, "poke" in answer.text) == (401, False)
            assert (await stranger.post("/console/approvals", data=fields)).status_code == 401
        assert await pending(house) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"sec-fetch-site": "", "origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "", "origin": "null"}, 403),
        ({"host": "evil.example"}, 421),
    ],
)
async def test_a_form_of_another_page_does_nothing(
    world: World, tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    """Even with the cookie and the token."""
    async with served(world, tmp_path) as (house, _listener, client):
        fields = await press(client)
        answer = await client.post("/console/approvals", data=fields, headers=headers)
        assert (answer.status_code, await pending(house)) == (status, 1)


@pytest.mark.slow
@pytest.mark.parametrize("token", [None, "", "guessed", "ümlaut"])
@pytest.mark.parametrize("section", ["approvals", "grants", "people", "audit"])
async def test_a_form_without_the_token_does_nothing(
    world: World, tmp_path: Path, token: str | None, section: str
) -> None:
    """Even from this origin: another program's page may stand there after the daemon is gone."""
    async with served(world, tmp_path) as (house, _listener, client):
        fields = await press(client)
        fields |= {"revoke": "x", "do": "revoke", "who": "person:ben", "check": ""}
        fields |= {} if token is None else {"token": token}
        if token is None:
            del fields["token"]
        answer = await client.post(f"/console/{section}", data=fields)
        assert (answer.status_code, await pending(house)) == (403, 1)
        assert answer.text == "this page is older than the daemon; reload it and try again"
        assert await house.rows(RowKind.PERSON) == ()


@pytest.mark.slow
async def test_the_longest_fields_of_each_form_arrive_in_any_script(
    world: World, tmp_path: Path
) -> None:
    """A browser counts characters, and sends nine bytes for each of these."""
    async with served(world, tmp_path) as (_house, _listener, client):
        card = parsed((await client.get("/console/approvals")).text).by_id("cards")
        reason = {**card.every("form")[1].fields(), "choice": "deny_with_reason", **filled(card)}
        assert (await client.post("/console/approvals", data=reason)).status_code == 303
        question = parsed((await client.get("/console/policy")).text).by_id("question")
        answer = await client.get("/console/policy", params=filled(question))
        assert (answer.status_code, "The question" in answer.text) == (200, True)


def filled(part: Part) -> dict[str, str]:
    """The fields in which a person types, each as long as the page lets it be."""
    fields = (*part.every("input"), *part.every("textarea"))
    limits = {field.attributes["name"]: field.attributes.get("maxlength") for field in fields}
    return {name: "字" * int(limit) for name, limit in limits.items() if limit is not None}


@pytest.mark.slow
async def test_malformed_forms_are_refused_in_one_line(world: World, tmp_path: Path) -> None:
    """P10; nothing is changed, and no large body is read whole."""
    async with served(world, tmp_path) as (house, _listener, client):
        fields = await press(client)
        long = {**fields, "reason": "x" * MAX_BYTES}
        assert (await client.post("/console/approvals", data=long)).status_code == 422
        assert (await client.post("/console/approvals", content=b"\xff")).status_code == 422
        many = {f"field{number}": "" for number in range(20)}
        assert (await client.post("/console/approvals", data=many)).status_code == 422
        assert (await client.post("/console/policy", data=fields)).status_code == 405
        for change in ({"choice": "maybe"}, {"approval": ""}):
            answer = await client.post(
                "/console/approvals", data={**fields, **change}, follow_redirects=True
            )
            assert "this form is not one of" in answer.text
        token = {"token": fields["token"]}
        for section, sent in (
            ("grants", {"revoke": "1 2"}),
            ("people", {"do": "list", "who": "x"}),
            ("people", {"do": "approve", "who": " "}),
        ):
            answer = await client.post(
                f"/console/{section}", data={**token, **sent}, follow_redirects=True
            )
            assert "this form is not one of" in answer.text
        answer = await client.post(
            "/console/audit", data={**token, "check": "01X"}, follow_redirects=True
        )
        assert str(answer.url).endswith("&of=01X")
        assert "there is no such chain" in answer.text
        assert await pending(house) == 1


async def test_a_page_that_is_closed_while_it_sends_a_form_is_no_fault(world: World) -> None:
    """Nothing is raised, which the log would show as a failure."""
    scope: dict[str, object] = {
        "type": "http",
        "method": "POST",
        "root_path": "/console",
        "path": "/console/approvals",
        "headers": (),
        "query_string": b"",
    }
    messages: list[dict[str, object]] = [
        {"type": "http.disconnect"},
        {"type": "http.request", "body": b"choice=on", "more_body": True},
    ]

    async def receive() -> dict[str, object]:
        return messages.pop()

    async def send(_: object) -> None:
        pass

    async with world.running() as house:
        await house.page.answer(scope, receive, send)
    assert messages == []


@pytest.mark.slow
async def test_an_answer_that_cannot_be_stored_says_so(world: World, tmp_path: Path) -> None:
    """The request stays open."""

    def busy(_commit: Commit) -> None:
        raise Conflict("somebody else was first")

    async with served(world, tmp_path) as (house, _listener, client):
        fields = await press(client)
        world.store.before = busy
        answer = await client.post("/console/approvals", data=fields)
        world.store.heal()
        assert (answer.status_code, await pending(house)) == (503, 1)
        assert answer.text == "it could not be stored; try again"


@pytest.mark.slow
async def test_the_root_address_redirects_to_the_chat_and_never_to_the_console(
    world: World, tmp_path: Path
) -> None:
    """The console's responses carry the listener's policy."""
    async with served(world, tmp_path) as (house, listener, client):
        assert (await client.get("/")).status_code == 404
        listener.web("/web", house.page.answer)
        assert (await client.get("/")).headers["location"] == f"{listener.root}/web/"
        answer = await client.get("/console/style.css")
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["content-type"].startswith("text/css")


@pytest.mark.slow
async def test_an_open_page_is_notified_of_changes(world: World, tmp_path: Path) -> None:
    """At once when it connects, and after each commit; not the change itself."""
    async with (
        served(world, tmp_path) as (house, _listener, client),
        web_page.following(client, "console") as line,
    ):
        assert await line.hear() == ("changed", {})
        await house.press()
        assert await line.hear() == ("changed", {})


async def test_a_page_that_does_not_read_finds_one_change_in_place_of_many() -> None:
    """So events do not pile up, and a commit never waits for a page (P9)."""
    notifier = Notifier()
    with notifier.subscribe() as subscription:
        for _ in range(1_000):
            notifier.notify()
        assert await subscription.get() is Notice.CHANGED
        notifier.ping()
        assert await subscription.get() is Notice.PING
        notifier.ping()
        notifier.notify()
        notifier.ping()
        assert await subscription.get() is Notice.CHANGED
        notifier.close()
        assert await subscription.get() is Notice.END
        notifier.close()
    with notifier.subscribe() as late:
        assert await late.get() is Notice.END


async def test_only_so_many_pages_may_listen() -> None:
    notifier = Notifier()
    with notifier.subscribe():
        assert notifier.has_room()
    opened = [notifier.subscribe() for _ in range(MAX_PAGES)]
    for subscription in opened:
        subscription.__enter__()
    assert not notifier.has_room()
    opened[0].__exit__(None, None, None)
    assert notifier.has_room()
