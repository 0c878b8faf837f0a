"""The console over a whole house: it shows the current state, and acts through ingress."""

import asyncio

import pytest

from tests.fakes.house import House, World
from tests.fakes.plain_tool import BURN, PlainTool
from tests.fakes.scripted_model import asks_for, says
from tests.unit.console.parsed import Part, faults, parsed
from tests.unit.console.visit import visiting
from zeroclaw.config.model import ApprovalSettings, ChannelSettings, PolicySettings, RuntimeSettings
from zeroclaw.console import reading
from zeroclaw.console.frame import SECTIONS
from zeroclaw.console.notifier import MAX_PAGES
from zeroclaw.console.reading import LINES, OUTBOX_ROWS
from zeroclaw.delivery.rows import TextPost, outbox_row
from zeroclaw.errors import ProviderRejected, StoreUnusable
from zeroclaw.gate import audit
from zeroclaw.provider import ProviderFacts
from zeroclaw.store import Append, LogKind, Query, Row, RowKind
from zeroclaw.value import replace

HOSTILE = "<script>alert('hi')</script>"
POKE = asks_for(("poke", '{"a": 1, "b": "</pre><b>"}'))


async def request_poke(house: House, writer: str = "ben", text: str = "poke it") -> None:
    """Have this person's turn wait for an approval."""
    house.world.model.will(POKE, says("done"))
    await house.say(text, writer)


def answer_of(page: Part) -> Part:
    """The form with the buttons of the one open request."""
    [card] = [part for part in page.every("li") if part.attributes.get("class") == "card"]
    return card.every("form")[0]


async def test_every_section_is_valid_on_an_empty_house(world: World) -> None:
    """Each says what it will list."""
    async with visiting(world) as visitor:
        for section in SECTIONS:
            page = await visitor.page(section)
            assert page.every("h1")[0].words == section.capitalize()
            assert "Halted" not in page.words
        first = await visitor.client.get("/console/")
        assert first.headers["location"] == "/console/approvals"


@pytest.mark.parametrize(
    "kind",
    [
        *(RowKind.APPROVAL, RowKind.CONVERSATION, RowKind.GRANT, RowKind.INBOX),
        *(RowKind.OUTBOX, RowKind.STRANGER, RowKind.TURN),
    ],
)
async def test_a_damaged_record_hides_no_section(world: World, kind: RowKind) -> None:
    """The damaged record is left out; everything else is listed."""
    by_code = world.config.channels["chat"].model_copy(update={"pairing": "code"})
    world.configure(channels={**world.config.channels, "chat": by_code})
    async with visiting(world) as visitor:
        house = visitor.house
        await house.say("let me in", "mallory")
        await request_poke(house)
        await house.press("for_a_time")
        await request_poke(house, text="once more")
        await request_poke(house, writer="ada")
        for row in await house.rows(kind):
            world.store.damage(row)
        for section in SECTIONS:
            await visitor.page(section)


async def test_unknown_paths_are_not_found(world: World) -> None:
    async with visiting(world) as visitor:
        for path in ("nothing", "conversations/01X", "audit?of=01X", "a/b", "page.py"):
            answer = await visitor.client.get(f"/console/{path}")
            assert answer.status_code == 404, path


@pytest.mark.parametrize("path", ["conversations/01X", "audit?of=01X"])
async def test_a_link_to_an_erased_conversation_says_so_and_links_on(
    world: World, path: str
) -> None:
    async with visiting(world) as visitor:
        page = parsed((await visitor.client.get(f"/console/{path}")).text)
        assert faults(page) == []
        assert "/forget" in page.by_id("main").words
        assert page.links()["Conversations"] == "/console/conversations"


async def test_a_conversation_links_to_its_context_usage(world: World) -> None:
    """The same figures as `/context` has in the chat; reading them changes nothing. S3-09."""
    world.model.facts = ProviderFacts(model="small", context_tokens=8_000)
    async with visiting(world) as visitor:
        house = visitor.house
        await house.say("hello")
        page = await visitor.page("conversations")
        page = await visitor.page(page.links()["chat/ada"].removeprefix("/console/"))
        link = page.links()["what the model is told"].removeprefix("/console/")
        before = len(world.store.commits)
        page = await visitor.page(link)
        assert len(world.store.commits) == before
        shown = {row.every("td")[0].words: row.every("td")[1].words for row in page.every("tr")[1:]}
        await house.say("/context")
        rows = [line.split("  ") for line in house.texts()[-1].splitlines()[3:-1]]
        assert {parts[0].strip(): parts[-1].strip() for parts in rows} == shown
        assert list(shown)[:2] == ["instructions", "messages"]


async def test_an_erased_conversation_has_no_context_to_show(world: World) -> None:
    """The person of the next request is unknown."""
    async with visiting(world) as visitor:
        await visitor.house.say("hello")
        page = await visitor.page("conversations")
        path = page.links()["chat/ada"].removeprefix("/console/")
        world.store.forget(RowKind.INBOX)
        page = await visitor.page(f"{path}?window=1")
        assert "Nobody has written here." in page.words


async def test_an_approval_is_answered_from_the_page_through_ingress(world: World) -> None:
    """The chat's card is settled, the call runs, and the audit has who answered (P5)."""
    async with visiting(world) as visitor:
        house = visitor.house
        await request_poke(house)
        page = await visitor.page("approvals")
        [card] = [part for part in page.every("li") if part.attributes.get("class") == "card"]
        assert card.every("pre")[0].text == '{\n  "a": 1,\n  "b": "</pre><b>"\n}'
        assert "asked byBen" in card.words
        # Its number holds in Ada's chat; beside this page `/approve 1` may mean another call.
        assert house.card().calls[0].number == 1
        assert card.every("h3")[0].words.startswith("poke")
        assert "No request has ended" in page.by_id("ended").words
        assert "Approvals 1 waiting" in page.by_id("sections").words
        page = await visitor.send(answer_of(page), "Approve once")
        assert page.by_id("result").words == "approved: poke"
        assert "Nothing waits for you" in page.by_id("waiting").words
        assert "approved poke" in page.by_id("ended").words
        assert house.endings() == [("approved", "operator")]
        assert house.texts("ben")[-1] == "done"
        entries = await audit_entries(house)
        [answered] = [entry for entry in entries if entry.kind is audit.Kind.ANSWERED]
        assert (answered.by, answered.decision) == ("person:operator", "once")
        again = await visitor.client.get("/console/approvals")
        assert "approved: <code>poke" not in again.text


async def audit_entries(house: House) -> list[audit.Entry]:
    entries: list[audit.Entry] = []
    for stream in await house.world.store.streams(LogKind.AUDIT):
        for row in await house.world.store.read(LogKind.AUDIT, stream):
            entry = audit.read(row.body)
            entries += [entry] if isinstance(entry, audit.Entry) else []
    return entries


async def test_a_request_names_the_approvers_of_the_reloaded_configuration(world: World) -> None:
    """The page names who may answer it now, not when it was asked."""
    async with visiting(world) as visitor:
        await request_poke(visitor.house)
        world.configure(approvals=ApprovalSettings(approvers=("person:ben",)))
        await visitor.house.ask("reload")
        page = await visitor.page("approvals")
        facts = {
            part.every("dt")[0].words: part.every("dd")[0].words
            for part in page.every("div")
            if part.every("dt")
        }
        assert facts["approvers"] == "ben"


async def test_a_denial_carries_its_reason(world: World) -> None:
    async with visiting(world) as visitor:
        await request_poke(visitor.house)
        page = await visitor.page("approvals")
        [card] = [part for part in page.every("li") if part.attributes.get("class") == "card"]
        page = await visitor.send(card.every("form")[1], "Deny", reason=f" {HOSTILE} ")
        [row] = page.by_id("ended").every("li")
        assert row.every("q")[0].text == HOSTILE
        assert world.poke.runs == []


async def test_a_late_answer_shows_the_outcome(world: World) -> None:
    """An answer from an old page changes nothing."""
    async with visiting(world) as visitor:
        await request_poke(visitor.house)
        form = answer_of(await visitor.page("approvals"))
        await visitor.house.press("deny")
        page = await visitor.send(form, "Approve once")
        assert page.by_id("result").words == "already denied by Ada"
        assert world.poke.runs == []


async def test_an_answer_to_an_unknown_request_says_so(world: World) -> None:
    async with visiting(world) as visitor:
        await request_poke(visitor.house)
        form = answer_of(await visitor.page("approvals"))
        page = await visitor.send(form, "Approve once", approval="nobody-asks")
        assert page.by_id("result").words == "nobody asks this any more"


async def test_a_grant_is_listed_and_revoked(world: World) -> None:
    """By the same path as `zeroclaw grants revoke`; the next call asks again at once."""
    async with visiting(world) as visitor:
        house = visitor.house
        await request_poke(house)
        await visitor.send(answer_of(await visitor.page("approvals")), "Approve for a time")
        page = await visitor.page("grants")
        [row] = page.by_id("held").every("li")
        assert row.words.startswith("1 poke: any content into /notes/1, until 2026-01-01 13:00 UTC")
        assert "in chat/ben" in row.words
        page = await visitor.send(row.every("form")[0])
        assert "Nothing is granted" in page.words
        assert page.by_id("result").words.endswith("revoked; poke asks again.")
        assert await house.rows(RowKind.GRANT) == ()


async def test_grants_and_pairing_requests_are_listed_until_they_end(world: World) -> None:
    """Their rows may be stored for longer."""
    by_code = world.config.channels["chat"].model_copy(update={"pairing": "code"})
    world.configure(channels={**world.config.channels, "chat": by_code})
    async with visiting(world) as visitor:
        await visitor.house.say("let me in", "mallory")
        await request_poke(visitor.house)
        await visitor.house.press("for_a_time")
        for is_over in (False, True):
            page = await visitor.page("grants")
            assert ("Nothing is granted" in page.words) == is_over
            page = await visitor.page("people")
            assert ("No pairing requests." in page.words) == is_over
            await visitor.house.advance(3_601)


async def test_ended_requests_are_listed_by_their_end(world: World) -> None:
    """Not by when they were asked."""
    async with visiting(world) as visitor:
        world.model.will(POKE, POKE, says("done"), says("done"))
        for room in ("", "club"):
            await visitor.house.say("poke it", "ben", room=room)
        for which in (1, 0):
            page = await visitor.page("approvals")
            cards = [part for part in page.every("li") if part.attributes.get("class") == "card"]
            page = await visitor.send(cards[which].every("form")[0], "Deny")
            await visitor.house.advance(1)
        places = [row.every("dd")[1].words for row in page.by_id("endings").every("li")]
        assert places == ["chat/ben", "chat/club"]


async def test_a_disabled_channel_is_not_listed_as_admitting(world: World) -> None:
    """It used to be listed among those that do."""
    world.configure(channels={**world.config.channels, "idle": ChannelSettings(enabled=False)})
    async with visiting(world) as visitor:
        page = await visitor.page("people")
    assert page.ids("channel-") == ["channel-chat"]


async def test_people_are_revoked_and_admitted_again(world: World) -> None:
    """By the same path as `zeroclaw pair`, at once."""
    async with visiting(world) as visitor:
        page = await visitor.page("people")
        page = await visitor.send(page.by_id("person-ben").every("form")[0], "Revoke")
        assert "revoked: person:ben" in page.by_id("result").words
        assert "revoked" in page.by_id("person-ben").words
        await visitor.house.say("anybody?", "ben")
        assert visitor.house.texts("ben") == []
        page = await visitor.send(page.by_id("known-person:ben").every("form")[0], "Let in again")
        assert page.ids("known-") == []
        await visitor.house.say("anybody?", "ben")
        assert visitor.house.texts("ben") == ["ok"]


async def test_a_pairing_request_is_listed_and_approved_by_its_code(world: World) -> None:
    """P4: their display name is only text."""
    chat = world.config.channels["chat"].model_copy(update={"pairing": "code"})
    world.configure(channels={**world.config.channels, "chat": chat})
    async with visiting(world) as visitor:
        await visitor.house.say("hello", "mallory")
        code = visitor.house.texts("mallory")[0].split("`")[1]
        page = await visitor.page("people")
        assert "People 1 waiting" in page.by_id("sections").words
        assert "chat:mallory" in page.by_id("asking").words
        form = page.by_id("strangers").every("form")[0]
        page = await visitor.send(form, who=code.lower())
        assert page.by_id("result").words == "approved: chat:mallory"
        assert 'chat:mallory "Mallory"' in page.by_id("known-chat:mallory").words


async def test_conversations_show_their_state(world: World) -> None:
    """Waiting for an approval, idle, failed; with the writers and messages, as text."""
    async with visiting(world) as visitor:
        house = visitor.house
        await house.say(f"I am {HOSTILE} hunter2-and-then-some", "ada")
        await request_poke(house)
        page = await visitor.page("conversations")
        assert "waiting for approval chat/ben" in page.by_id("working").words
        rows = [part.words for part in page.by_id("talks").every("li")]
        assert [row.split("chat/")[0].strip() for row in rows] == ["waiting for approval", "idle"]
        assert [("journal entries" in row, "audit entries" in row) for row in rows] == [
            (True, True),
            (True, False),
        ]
        path = page.links()["chat/ada"].removeprefix("/console/")
        page = await visitor.page(path)
        items = page.by_id("talk").every("li")
        assert [item.attributes["class"] for item in items] == ["person", "bot"]
        assert HOSTILE in items[0].text
        # Messages are stored as typed, and shown with known secrets redacted.
        assert "hunter2" not in page.text
        assert page.every("h1")[0].words == "chat/ada"


async def test_a_conversation_is_listed_with_its_writers_and_newest_outcome(world: World) -> None:
    """The latest writer is named first; writers of other chats are not listed."""
    fails = (ProviderRejected("the model is gone"),)
    world.model.will(fails, says("ok"), says("ok"), fails)
    async with visiting(world) as visitor:
        house = visitor.house
        await house.say("tea?", "ben", room="club")
        await house.say("coffee?", room="club")
        await house.say("rain?", "ben")
        await house.advance(60)
        await house.say("sun?", "ben")
        page = await visitor.page("conversations")
        rows = [part.words.partition(" UTC ")[0] for part in page.by_id("talks").every("li")]
        assert rows == [
            "failed chat/benrain? · Ben · last 2026-01-01 12:01",
            "idle chat/clubtea? · Ada, Ben · last 2026-01-01 12:00",
        ]


async def test_a_conversation_shows_its_first_words_until_it_has_a_title(world: World) -> None:
    """The model is asked for a title only if titles are enabled (S3-31)."""
    world.model.will(*map(says, "123"), says("All about tea"))
    async with visiting(world) as visitor:
        await visitor.house.say("What is tea?", "ben")
        assert "What is tea?" in (await visitor.page("conversations")).by_id("talks").words
        world.configure(runtime=RuntimeSettings(titles=True))
        await visitor.house.ask("reload")
        await visitor.house.say("And coffee?", "ben")
        await visitor.house.say("Well?", "ben")
        assert "All about tea" in (await visitor.page("conversations")).by_id("talks").words


async def test_an_off_the_record_conversation_is_not_shown(world: World) -> None:
    """It gets no title either, since a model would have to read it for that. K23, S3-31."""
    asks: dict[str, object] = {
        "id": "asks",
        "effect": "ask",
        "actions": ["tool:look"],
        "principals": ["anyone"],
    }
    policy = PolicySettings(statement=(asks,))
    world.configure(runtime=RuntimeSettings(titles=True), policy=policy)
    async with visiting(world) as visitor:
        await visitor.house.say("/otr", "ben")
        for _ in range(4):
            await visitor.house.say("What is marmalade?", "ben")
        assert len(world.model.requests) == 4
        listed = await visitor.page("conversations")
        assert "off the record" in listed.by_id("talks").words
        page = await visitor.page(listed.links()["chat/ben"].removeprefix("/console/"))
        assert "neither kept nor shown" in page.text
        assert "marmalade" not in listed.text + page.text
        world.model.will(asks_for(("look", "{}")), says("seen"))
        await visitor.house.say("look", "ben")
        await visitor.house.press("deny")
        page = await visitor.page("approvals")
        assert "No request has ended" in page.by_id("ended").words


async def test_a_failed_conversation_says_so(world: World) -> None:
    async with visiting(world) as visitor:
        world.model.will((ProviderRejected("the model is gone"),))
        await visitor.house.say("hello")
        states = await visitor.house.states()
        page = await visitor.page("conversations")
        [row] = page.by_id("talks").every("li")
        assert (states, row.words.split()[0]) == (["failed"], "failed")


async def test_a_conversation_at_work_says_so(world: World) -> None:
    """Running while the model writes; queued while everything is halted."""
    async with visiting(world) as visitor:
        world.model.will((asyncio.Event(),))
        await visitor.house.say("think")
        page = await visitor.page("conversations")
        assert page.by_id("working").words.startswith("running chat/ada")
        await visitor.house.say("/halt", "ada")
        await visitor.house.say("wait", "ben")
        page = await visitor.page("conversations")
        rows = [part.words for part in page.by_id("talks").every("li")]
        assert [row.split()[0] for row in rows] == ["queued", "idle"]
        assert "1 message waits" in rows[0]


async def test_conversations_at_work_that_are_not_shown_are_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAGE", 1)
    async with visiting(world) as visitor:
        world.model.will(POKE, POKE)
        await visitor.house.say("poke it", "ben")
        await visitor.house.say("poke it", "ada")
        page = await visitor.page("conversations")
        assert page.by_id("at-work-title").words == "At work now, newest 1 of 2"
        assert "chat/ada" in page.by_id("working").words


async def test_a_turn_of_a_removed_conversation_is_not_counted(world: World) -> None:
    async with visiting(world) as visitor:
        house = visitor.house
        world.model.will(POKE, POKE)
        await house.say("poke it", "ben")
        [conversation] = await house.rows(RowKind.CONVERSATION)
        await house.say("poke it", "ada")
        world.store.damage(conversation)
        page = await visitor.page("conversations")
        assert page.by_id("at-work-title").words == "At work now"
        assert len(page.by_id("working").every("li")) == 1


async def test_an_unreadable_table_breaks_only_its_section(world: World) -> None:
    """It shows one line that says what to do (P10)."""
    select = world.store.select

    async def failing(query: Query) -> tuple[Row, ...]:
        if query.kind is RowKind.GRANT:
            raise StoreUnusable("the disk failed to read")
        return await select(query)

    async with visiting(world) as visitor:
        world.store.select = failing
        answer = await visitor.client.get("/console/grants")
        assert (answer.status_code, "zeroclaw doctor" in answer.text) == (503, True)
        await visitor.page("people")


async def test_the_number_of_notified_pages_is_bounded(world: World) -> None:
    """The others change only when they are reloaded."""
    async with visiting(world) as visitor:
        lines = [visitor.notifier.subscribe() for _ in range(MAX_PAGES)]
        for line in lines:
            line.__enter__()
        assert (await visitor.client.get("/console/events")).status_code == 503


async def test_ended_requests_are_found_behind_many_messages(world: World) -> None:
    """Up to the number of rows that the console reads."""
    async with visiting(world) as visitor:
        await request_poke(visitor.house)
        await visitor.house.press("deny")
        row = outbox_row("01", TextPost(address=visitor.house.place(), text="x"))
        later = tuple(replace(row, key=f"Z{number:04}") for number in range(OUTBOX_ROWS - 10))
        await world.store.write(*later)
        page = await visitor.page("approvals")
        assert "denied poke" in page.by_id("ended").words


async def test_a_long_conversation_is_read_in_pages(world: World) -> None:
    async with visiting(world) as visitor:
        for number in range(40):
            await visitor.house.say(f"message {number}.")
        page = await visitor.page("conversations")
        path = page.links()["chat/ada"].removeprefix("/console/")
        newest = await visitor.page(path)
        assert "message 39." in newest.text
        assert "message 5." not in newest.text
        older = await visitor.page(newest.links()["older →"].removeprefix("/console/"))
        assert "message 5." in older.text
        assert "older →" not in older.links()


async def test_a_conversation_that_just_fits_its_page_has_no_older_one(world: World) -> None:
    """Each message and each answer is a row; nothing older could be shown."""
    async with visiting(world) as visitor:
        for number in range(LINES // 2):
            await visitor.house.say(f"message {number}.")
        page = await visitor.page("conversations")
        path = page.links()["chat/ada"].removeprefix("/console/")
        newest = await visitor.page(path)
        assert ("message 0." in newest.text, "older →" in newest.links()) == (True, False)


async def test_many_conversations_and_chains_are_read_in_pages(world: World) -> None:
    async with visiting(world) as visitor:
        for number in range(27):
            world.model.will(asks_for(("look", "{}")), says("seen"))
            await visitor.house.say("look", room=f"room{number:02}")
        page = await visitor.page("conversations")
        assert len(page.by_id("talks").every("li")) == 25
        older = await visitor.page(page.links()["older →"].removeprefix("/console/"))
        assert [part.words.split()[1] for part in older.by_id("talks").every("h3")] == [
            "chat/room01",
            "chat/room00",
        ]
        page = await visitor.page("audit")
        older = await visitor.page(page.links()["older →"].removeprefix("/console/"))
        assert len(older.by_id("streams").every("li")) == 2


async def test_viewing_the_audit_checks_it(world: World) -> None:
    async with visiting(world) as visitor:
        house = visitor.house
        await request_poke(house)
        await house.press()
        page = await visitor.page("audit")
        [row] = page.by_id("streams").every("li")
        assert row.words.startswith("intact chat/ben")
        page = await visitor.page(page.links()["chat/ben"].removeprefix("/console/"))
        kinds = [part.every("strong")[0].words for part in page.every("tbody")[0].every("tr")]
        assert kinds == ["executed", "answered", "evaluated", "proposed"]
        await house.advance(60)
        page = await visitor.send(page.by_id("verdict").every("form")[0])
        assert "intact" in page.by_id("verdict").words
        assert "12:01 UTC" in page.by_id("verdict").words
        await house.advance(60)
        page = await visitor.page("audit")
        page = await visitor.send(page.by_id("chains").every("form")[0])
        assert "intact" in page.by_id("streams").words
        assert "12:02 UTC" in page.by_id("streams").words


async def test_a_chain_with_a_forged_entry_is_shown_as_damaged(world: World) -> None:
    """Where it breaks, with the entry marked; the rest can still be read."""
    async with visiting(world) as visitor:
        house = visitor.house
        await request_poke(house)
        [stream] = await world.store.streams(LogKind.AUDIT)
        forged, _ = audit.link(
            audit.GENESIS, audit.Entry(kind=audit.Kind.EXECUTED, at=world.clock.now())
        )
        spoil = Append(log=LogKind.AUDIT, stream=stream, body=forged)
        await world.store.write(spoil)
        page = await visitor.page(f"audit?of={stream}")
        assert "damaged At entry 3: it does not follow the entry before it" in page.words
        assert page.by_id("entry-3").attributes["data-broken"] == "true"
        page = await visitor.page("audit")
        assert page.by_id("streams").words.startswith("damaged")
        spoil = Append(log=LogKind.AUDIT, stream=stream, body=b"{}")
        await world.store.write(spoil)
        page = await visitor.page(f"audit?of={stream}")
        assert page.by_id("entry-4").words == "4unreadable"


async def test_a_long_chain_is_read_in_pages(world: World) -> None:
    async with visiting(world) as visitor:
        head = audit.GENESIS
        writes: list[Append] = []
        for _ in range(120):
            body, head = audit.link(
                head, audit.Entry(kind=audit.Kind.REVOKED, at=world.clock.now())
            )
            writes.append(Append(log=LogKind.AUDIT, stream="01X", body=body))
        await world.store.write(*writes)
        page = await visitor.page("audit?of=01X")
        assert page.ids("entry-") == [f"entry-{n}" for n in range(120, 70, -1)]
        page = await visitor.page(page.links()["older →"].removeprefix("/console/"))
        page = await visitor.page(page.links()["older →"].removeprefix("/console/"))
        assert page.ids("entry-") == [f"entry-{n}" for n in range(20, 0, -1)]
        assert "older →" not in page.links()
        assert page.links()["← newest"] == "/console/audit?of=01X"
        page = await visitor.page("audit?of=01X&before=²")
        assert page.ids("entry-")[0] == "entry-120"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("who=person:ben&action=poke&arguments={}", "ask person:ben may do it if an approver"),
        ("who=person:ben&action=tool:look&arguments={}", "allow person:ben may do it: tool:look"),
        ("who=person:ben&action=command:halt", "deny person:ben may not do it: command:halt"),
        ("who=role:editor&action=x", "no tool is called x here"),
        ("who=nobody&action=look", "nobody is nobody"),
        ("who=operator&action=poke&arguments={", "not valid JSON"),
        ("who=operator&action=poke&resources=file:/a%0A%20file:/b", "Touches: file:/a file:/b"),
    ],
)
async def test_the_policy_explains_itself(world: World, query: str, text: str) -> None:
    """As `zeroclaw policy explain`, with the active policy (S2-08)."""
    async with visiting(world) as visitor:
        page = await visitor.page(f"policy?{query}")
        assert text in page.by_id("answer").words
        for row in page.by_id("answer").every("tr")[1:]:
            is_matched = row.every("td")[1].words == "yes"
            assert row.attributes["data-matched"] == ("true" if is_matched else "false")
            assert is_matched or "data-made" not in row.attributes
        for name, known in (("who", "person:ben"), ("action", "poke"), ("action", "command:halt")):
            options = page.by_id(f"{name}-known").every("option")
            assert known in [option.attributes["value"] for option in options]


async def test_tools_are_listed_with_their_policy(world: World) -> None:
    """The tools, their packages, effects, and the decisions for operators and others."""
    no_burn: dict[str, object] = {
        "id": "no-burn",
        "effect": "deny",
        "actions": ["tool:burn"],
        "principals": ["role:operator"],
    }
    no_dig = {**no_burn, "id": "no-dig", "actions": ["tool:dig"], "principals": ["anyone"]}
    world.configure(policy=PolicySettings(statement=(no_burn, no_dig)))
    world.tools = (*world.tools, PlainTool(replace(BURN, name="dig", effects=frozenset())))
    async with visiting(world) as visitor:
        page = await visitor.page("tools")
        rows = [tuple(part.words for part in row.every("td")) for row in page.every("tr")[1:]]
        names = [row.every("th")[0].words.split()[0] for row in page.every("tr")[1:]]
        shown = dict(zip(names, rows, strict=True))
        assert shown["look"] == ("look", "read · low", "allow", "allow")
        assert shown["burn"] == ("burn", "write · medium", "deny", "ask")
        assert shown["dig"] == ("dig", "anything, it does not say · high", "deny", "deny")
        assert "load_tools" in shown
        assert "Off: attachments fetch files" in page.by_id("main").words
        assert page.links()["look"] == "/console/policy?who=operator&action=look"
        await visitor.page("policy?who=operator&action=look")


async def test_a_tool_whose_policy_depends_on_the_call_says_so(world: World) -> None:
    """A statement on resources does not decide about a tool as a whole."""
    some: dict[str, object] = {
        "id": "some",
        "effect": "allow",
        "actions": ["tool:poke"],
        "principals": ["person:ben"],
        "resources": ["file:/srv/*"],
    }
    world.configure(policy=PolicySettings(statement=(some,)), autonomy="readonly")
    async with visiting(world) as visitor:
        page = await visitor.page("tools")
        [row] = [part for part in page.every("tr")[1:] if part.every("th")[0].words[:4] == "poke"]
        assert [part.words for part in row.every("td")][2:] == ["deny", "deny"]
    everybody = {**some, "principals": ["anyone"]}
    world.configure(policy=PolicySettings(statement=(everybody,)), autonomy="readonly")
    async with visiting(world) as visitor:
        page = await visitor.page("tools")
        [row] = [part for part in page.every("tr")[1:] if part.every("th")[0].words[:4] == "poke"]
        assert [part.words for part in row.every("td")][2:] == [
            "depends on the call",
            "depends on the call",
        ]


async def test_the_explanation_includes_a_halt(world: World) -> None:
    async with visiting(world) as visitor:
        await visitor.house.say("/halt")
        page = await visitor.page("policy?who=operator&action=look&arguments={}")
        assert "deny person:operator may not do it" in page.by_id("answer").words
        assert "Halted by Ada" in page.by_id("main").words
