"""The web chat over real sockets: pages that open, reconnect, or are one of two."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from channels import web as manifest
from channels.web.adapter import PING_S, WebChannel
from tests.contract.channel_suite import Desk, receiving
from tests.contract.web_harness import OPERATOR, Transcript, local_listener, web_context
from tests.fakes.manual_clock import EPOCH, ManualClock
from tests.fakes.web_page import following, visiting
from zeroclaw import (
    Admission,
    Answered,
    Attachment,
    Channel,
    ChannelRejected,
    ChannelUnavailable,
    Envelope,
    Ignored,
    Outgoing,
    TranscriptItem,
)
from zeroclaw.host.local_listener import Listener
from zeroclaw.value import replace

# Each opens and closes real sockets.
pytestmark = pytest.mark.slow

KEY = "made-by-page"


@dataclass(kw_only=True)
class Running:
    """A served channel with its surroundings."""

    channel: Channel
    client: httpx.AsyncClient
    transcript: Transcript
    clock: ManualClock
    desk: Desk
    listener: Listener

    async def send(self, text: str, key: str, *, draft: bool = False) -> None:
        rendered = self.channel.render(text)
        await self.channel.send(OPERATOR, Outgoing(rendered=rendered, key=key, draft=draft))

    def keep(self, text: str, key: str, *, draft: bool = False) -> None:
        """Put a message into the transcript."""
        item = TranscriptItem(
            cursor=str(len(self.transcript.items)), kind="bot", key=key, ref=key,
            text=text, at=EPOCH, draft=draft,
        )  # fmt: skip
        self.transcript.items = [item for item in self.transcript.items if item.key != key]
        self.transcript.items.append(item)

    async def post(self, text: str, key: str = KEY) -> httpx.Response:
        return await self.client.post("/web/messages", json={"id": key, "text": text})


@asynccontextmanager
async def running(directory: Path) -> AsyncGenerator[Running]:
    clock, desk, transcript = ManualClock(), Desk(), Transcript()
    async with local_listener(directory, clock) as listener:
        channel = WebChannel(web_context(listener, transcript, clock, directory))
        async with receiving(channel, desk.admit), visiting(listener) as client:
            yield Running(
                channel=channel,
                client=client,
                transcript=transcript,
                clock=clock,
                desk=desk,
                listener=listener,
            )


async def test_a_page_that_opens_mid_draft_gets_the_whole_draft_and_then_goes_on_live(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as web:
        web.keep("The answer is", "m1", draft=True)
        await web.send("The answer is", "m1", draft=True)
        async with following(web.client) as page:
            await page.hear_until("snapshot")
            assert page.texts() == ["The answer is"]
            await web.send("The answer is 42.", "m1")
            await page.hear_until("item")
            assert page.texts() == ["The answer is 42."]


async def test_events_during_the_snapshot_are_neither_lost_nor_repeated(tmp_path: Path) -> None:
    """Events from the start of the read are kept, except those that the snapshot has."""
    async with running(tmp_path) as web:
        web.keep("ended", "old")
        web.keep("The answer", "draft", draft=True)
        web.transcript.holding = asyncio.Event()
        async with following(web.client) as page:
            await web.transcript.requested.wait()
            await web.send("end", "old", draft=True)
            await web.send("The", "draft", draft=True)
            await web.send("new", "new")
            web.transcript.holding.set()
            await web.send("last", "last")
            await page.hear_until("item", id="last")
            assert page.texts() == ["ended", "The answer", "new", "last"]
            assert page.names == ["snapshot", "item", "item"]


async def test_a_second_page_shows_messages_of_the_first(tmp_path: Path) -> None:
    async with running(tmp_path) as web, following(web.client) as other:
        await other.hear_until("snapshot")
        assert (await web.post("hello")).json() == {"status": "accepted", "toast": ""}
        await other.hear_until("item", id=f"person/{KEY}", text="hello")
        await web.post("/deny 2 no", "another-id")
        await other.hear_until("item", id="person/another-id", text="/deny 2 no")


async def test_a_repeated_post_gets_the_same_answer(tmp_path: Path) -> None:
    """The page posts until it is confirmed; the daemon admits the message once. S2-02."""
    async with running(tmp_path) as web:
        first = await web.post("hello")
        again = await web.post("hello")
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert len(web.desk.stored) == 1


async def test_a_pasted_log_is_sent_whole(tmp_path: Path) -> None:
    async with running(tmp_path) as web:
        text = "0123456789\n" * 50_000
        assert (await web.post(text)).status_code == 200
        envelope = web.desk.stored[0]
    assert getattr(envelope.body, "text", "") == text


async def test_an_unstored_message_is_neither_confirmed_nor_shown(tmp_path: Path) -> None:
    async with running(tmp_path) as web, following(web.client) as page:
        await page.hear_until("snapshot")
        web.desk.fault = ChannelUnavailable("the disk is full at /secret/place")
        refused = await web.post("hello")
        assert (refused.status_code, refused.json()) == (
            503,
            {"error": "it could not be stored yet"},
        )
        web.desk.fault = None
        await web.post("hello")
        await page.hear_until("item")
    assert page.names == ["snapshot", "item"]


@pytest.mark.parametrize(
    ("admission", "answer"),
    [
        (Answered(text="too late"), {"status": "accepted", "toast": "too late"}),
        (Ignored(), {"error": "it was ignored"}),
    ],
)
async def test_the_answer_of_ingress_goes_back_to_the_page(
    admission: Admission, answer: dict[str, str], tmp_path: Path
) -> None:
    async def admit(envelope: Envelope) -> Admission:
        return admission

    clock = ManualClock()
    async with local_listener(tmp_path, clock) as listener:
        channel = WebChannel(web_context(listener, Transcript(), clock, tmp_path))
        async with receiving(channel, admit), visiting(listener) as client:
            press = {"id": KEY, "approval": "a", "choice": "once"}
            assert (await client.post("/web/answers", json=press)).json() == answer


async def test_an_unreadable_post_is_refused_in_one_line(tmp_path: Path) -> None:
    async with running(tmp_path) as web:
        refused = await web.client.post("/web/messages", json={"id": KEY})
        assert (refused.status_code, refused.json()) == (422, {"error": "text: field required"})


async def test_open_pages_are_pinged_by_the_clock(tmp_path: Path) -> None:
    async with running(tmp_path) as web, following(web.client) as page:
        await page.hear_until("snapshot")
        await web.clock.advance(PING_S)
        await page.read()
        assert page.pings == 1


async def test_an_unreadable_transcript_is_reported_and_the_page_reconnects(tmp_path: Path) -> None:
    async with running(tmp_path) as web:
        web.transcript.fault = ChannelUnavailable("the store is away")
        async with following(web.client) as page:
            await page.hear_until("trouble", why="the conversation can't be read right now")
            with pytest.raises(StopAsyncIteration):
                await page.hear()


async def test_the_pages_files_are_served_and_nothing_else(tmp_path: Path) -> None:
    async with running(tmp_path) as web:
        index = await web.client.get("/web/")
        assert index.headers["content-type"] == "text/html; charset=utf-8"
        kinds = {
            name: (await web.client.get(f"/web/{name}")).headers["content-type"]
            for name in ("app.js", "base.css", "style.css", "icon.svg")
        }
        lost = [
            (await web.client.get(f"/web/{name}")).status_code
            for name in ("adapter.py", "..%2Fadapter.py", "page/app.js")
        ]
    assert lost == [404, 404, 404]
    assert kinds == {
        "app.js": "text/javascript; charset=utf-8",
        "base.css": "text/css; charset=utf-8",
        "style.css": "text/css; charset=utf-8",
        "icon.svg": "image/svg+xml",
    }


async def test_the_page_loads_nothing_foreign_and_runs_nothing_inline() -> None:
    """The files contain nothing that the content security policy forbids."""
    page = Path(manifest.__file__).parent / "page"
    index = (page / "index.html").read_text(encoding="utf-8")
    assert "style=" not in index
    assert "onclick=" not in index
    assert "<script>" not in index
    scripts = "".join(file.read_text(encoding="utf-8") for file in page.glob("*.js"))
    assert "innerHTML" not in scripts
    assert "outerHTML" not in scripts
    assert "insertAdjacentHTML" not in scripts
    assert "eval(" not in scripts


async def test_an_unknown_address_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as web:
        elsewhere = replace(OPERATOR, chat="somebody")
        with pytest.raises(ChannelRejected):
            await web.channel.typing(elsewhere)
        assert web.channel.direct_address("somebody") is None
        with pytest.raises(ChannelRejected):
            await web.channel.fetch(
                Attachment(reference="r", name="a.txt", media_type="text/plain"), max_bytes=9
            )


async def test_when_the_channel_ends_open_pages_end_and_posts_are_not_confirmed(
    tmp_path: Path,
) -> None:
    clock, desk = ManualClock(), Desk()
    async with local_listener(tmp_path, clock) as listener, visiting(listener) as client:
        channel = WebChannel(web_context(listener, Transcript(), clock, tmp_path))
        async with receiving(channel, desk.admit):
            stream = client.stream("GET", "/web/events")
            answer = await stream.__aenter__()
        assert b"event: snapshot" in b"".join([chunk async for chunk in answer.aiter_bytes()])
        await stream.__aexit__(None, None, None)
        late = await client.post("/web/messages", json={"id": KEY, "text": "hello"})
        assert late.status_code == 503
        assert (await client.get("/web/events")).status_code == 503
    assert desk.arrived == []


ROUTES = ("GET /", "GET /events", "GET /app.js", "GET /sent/key", "POST /messages", "POST /answers")


@pytest.mark.parametrize("route", [*ROUTES, "POST /files/made-by-page"])
async def test_a_stranger_gets_nothing_from_any_path(route: str, tmp_path: Path) -> None:
    """Without a login each path has one answer, whatever is in the chat. P4, S2-03."""
    method, _, path = route.partition(" ")
    async with running(tmp_path) as served:
        served.keep("the operator's own", "k1")
        outside = {"cookie": "zeroclaw_session=guessed"}
        async with visiting(served.listener, logged_in=False) as stranger:
            nowhere = await stranger.get("/nothing")
            for headers in ({}, outside):
                answer = await stranger.request(
                    method, f"/web{path}", content=b"{}", headers=headers
                )
                assert (answer.status_code, answer.content) == (401, nowhere.content)
        assert "operator's own" not in nowhere.text
        assert served.desk.arrived == []


async def test_a_page_of_another_site_can_not_post_for_the_logged_in_person(tmp_path: Path) -> None:
    """The browser sends the login along, and the requesting site. P4, S2-03."""
    async with running(tmp_path) as served:
        for site in ("cross-site", "same-site"):
            for path in ("messages", "answers"):
                answer = await served.client.post(
                    f"/web/{path}",
                    json={"id": KEY, "text": "let me in"},
                    headers={"sec-fetch-site": site},
                )
                assert answer.status_code == 403
        assert served.desk.arrived == []
