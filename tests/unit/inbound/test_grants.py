"""`/grants` and `/revoke`: what runs without asking for a time, and what ends with a person who is revoked."""

import asyncio

import pytest

from tests.fakes.house import House, World
from tests.fakes.memory_store import put_a_page_before
from tests.fakes.scripted_model import POKE, asks_for, says
from zeroclaw.config.model import ApprovalSettings, ChannelSettings, PolicySettings
from zeroclaw.conversation.inbox import INBOX, Obeyed, Stop
from zeroclaw.envelope import ConversationId, Pressed, Principal
from zeroclaw.errors import Conflict
from zeroclaw.gate import audit
from zeroclaw.gate.approval import APPROVALS
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.grant import GRANTS, to_put
from zeroclaw.inbound.anchors import verify_stream
from zeroclaw.inbound.commands.grants import USAGE
from zeroclaw.inbound.identity import Person, person_put
from zeroclaw.inbound.pairing import CONSOLE
from zeroclaw.store import (
    PAGE,
    TRIES,
    Commit,
    Delete,
    DurablePoint,
    LogKind,
    Put,
    Row,
    RowKind,
    Write,
)
from zeroclaw.text import catalogue
from zeroclaw.value import replace

LINE = "`poke`: any content into `/notes/1`, until 2026-01-01 13:00 UTC, by Ada, for `person:"


async def grant_for_a_time(house: House, who: str = "ada", *, room: str = "") -> None:
    """Have a person's poke approved for a time, by Ada."""
    house.world.model.will(POKE, says("done"))
    await house.say("poke it", who, room=room)
    await house.press("for_a_time")


async def audit_of(house: House, conversation: str) -> list[audit.Entry]:
    """The entries of one chain, which is whole."""
    assert isinstance(await verify_stream(house.world.store, conversation), audit.Intact)
    bodies = await house.world.store.read(LogKind.AUDIT, conversation)
    read = [audit.read(body.body) for body in bodies]
    return [entry for entry in read if isinstance(entry, audit.Entry)]


async def test_the_list_says_what_holds(world: World) -> None:
    """By a number of its own, the same everywhere; for whom, by whom, until when, and where."""
    async with world.told("/grants") as house:
        assert house.texts() == [catalogue.NOTHING_GRANTED.en]
        await grant_for_a_time(house)
        await grant_for_a_time(house, "ben")
        await house.say("/grants")
        assert house.texts()[-1].splitlines() == [
            f"- `1` {LINE}ada`, in this conversation",
            f"- `2` {LINE}ben`, in `chat/ben`",
        ]


async def test_a_revoked_grant_asks_again_at_once(world: World) -> None:
    """The very next decision of the gate (P3); the chat reads so, and the audit has who did it."""
    async with world.running() as house:
        await grant_for_a_time(house, "ben")
        world.model.will(POKE, says("done again"))
        await house.say("poke it", "ben")
        assert house.texts("ben")[-1] == "done again"
        [row] = await house.rows(RowKind.GRANT)
        await house.say("/revoke 1")
        assert house.texts()[-1] == "`1`: revoked; `poke` asks again."
        assert await house.rows(RowKind.GRANT) == ()
        world.model.will(POKE)
        await house.say("poke it", "ben")
        assert len(await house.rows(RowKind.APPROVAL, "pending")) == 1
        assert len(world.poke.runs) == 2
        entries = await audit_of(house, row.conversation or "")
        [ended] = [entry for entry in entries if entry.kind is audit.Kind.REVOKED]
        assert (ended.by, ended.tool, ended.detail) == ("person:ada", "poke", row.key)
        assert await house.rows(RowKind.INBOX, "control") == ()


async def test_a_number_is_never_a_grants_again(world: World) -> None:
    """Across restarts too."""
    async with world.running() as house:
        await grant_for_a_time(house)
        await house.say("/revoke 1")
    async with world.running() as house:
        await grant_for_a_time(house)
        await house.say("/revoke 1")
        assert house.texts()[-1] == ("There is no grant `1`; `/grants` shows those that hold.")
        await house.say("/revoke #2")
        assert house.texts()[-1] == "`2`: revoked; `poke` asks again."


async def test_several_are_revoked_at_once(world: World) -> None:
    """Of several conversations too, each in a commit of its own; nonsense among them harms none."""
    async with world.running() as house:
        await grant_for_a_time(house)
        await grant_for_a_time(house, "ben")
        await grant_for_a_time(house, "cleo")
        await house.say("/revoke 2, 1 7 `x` 1 3")
        listed = [line for text in house.texts()[-3:] for line in text.splitlines()]
        assert listed == [
            "`2`: revoked; `poke` asks again.",
            "There is no grant `7`; `/grants` shows those that hold.",
            "There is no grant `x`; `/grants` shows those that hold.",
            "`1`: revoked; `poke` asks again.",
            "`3`: revoked; `poke` asks again.",
        ]
        assert await house.rows(RowKind.GRANT) == ()
        assert await house.rows(RowKind.INBOX, "control") == ()


async def test_a_grant_that_ends_elsewhere_is_announced_in_its_own_chat(world: World) -> None:
    """The command stands in the conversation where it was typed, not in the grant's."""
    async with world.running() as house:
        await grant_for_a_time(house, "ben")
        [grant] = await house.rows(RowKind.GRANT)
        await house.say("/revoke 1")
        texts = {
            item.content.text: item.conversation
            for item in map(INBOX.of, await house.rows(RowKind.INBOX, "answered"))
            if isinstance(item.content, Obeyed)
        }
        assert texts["/revoke 1"] != grant.conversation


async def test_without_a_name_nothing_is_revoked(world: World) -> None:
    """It says how to name one (P10)."""
    async with world.running() as house:
        await grant_for_a_time(house)
        await house.say("/revoke")
        assert house.texts()[-1] == "Say which, for example `/revoke 1`; `/grants` lists them."
        assert len(await house.rows(RowKind.GRANT)) == 1


async def test_who_has_no_rights_sees_their_own_conversation_only(world: World) -> None:
    """And may end what was granted to them, by the number that it has everywhere, or its id (P4)."""
    async with world.running() as house:
        await grant_for_a_time(house, "ben")
        await grant_for_a_time(house, "cleo")
        await house.say("/grants", "ben")
        mine, others = [row.key[-8:] for row in await house.rows(RowKind.GRANT)]
        assert house.texts("ben")[-1] == f"- `1` {LINE}ben`, in this conversation"
        await house.say(f"/revoke {others} {mine.lower()} 2", "ben")
        assert house.texts("ben")[-1].splitlines() == [
            f"There is no grant `{others}`; `/grants` shows those that hold.",
            f"`{mine.lower()}`: revoked; `poke` asks again.",
            "There is no grant `2`; `/grants` shows those that hold.",
        ]
        assert [row.key[-8:] for row in await house.rows(RowKind.GRANT)] == [others]


async def test_another_persons_grant_is_listed_in_a_group_but_not_ended(world: World) -> None:
    """Whoever shares the conversation may know what runs in it."""
    async with world.running() as house:
        await grant_for_a_time(house, "ben", room="lobby")
        await house.say("/grants", "cleo", room="lobby")
        assert house.texts(room="lobby")[-1].endswith(f"{LINE}ben`, in this conversation")
        [row] = await house.rows(RowKind.GRANT)
        name = row.key[-8:]
        await house.say(f"/revoke {name}", "cleo", room="lobby")
        assert house.texts(room="lobby")[-1] == (
            f"`{name}` is not yours to revoke; an operator can."
        )
        assert len(await house.rows(RowKind.GRANT)) == 1


async def test_in_a_group_only_its_own_grants_are_listed_and_revoked(world: World) -> None:
    """An operator's question is read by all who are there; they learn of no other chat."""
    async with world.running() as house:
        await grant_for_a_time(house, "ben")
        await grant_for_a_time(house, "ben", room="lobby")
        await house.say("/grants", room="lobby")
        assert house.texts(room="lobby")[-1] == f"- `2` {LINE}ben`, in this conversation"
        await house.say("/revoke 1", room="lobby")
        unknown = "There is no grant `1`; `/grants` shows those that hold."
        assert house.texts(room="lobby")[-1] == unknown
        assert len(await house.rows(RowKind.GRANT)) == 2


async def test_who_may_approve_a_tool_may_revoke_it(world: World) -> None:
    """Without being an operator."""
    world.configure(
        approvals=world.config.approvals.model_copy(update={"approvers": ("person:ben",)})
    )
    async with world.running() as house:
        world.model.will(POKE, says("done"))
        await house.say("poke it", "cleo")
        await house.press("for_a_time", "ben")
        await house.say("/revoke 1", "ben")
        assert house.texts("ben")[-1] == "`1`: revoked; `poke` asks again."


async def test_a_call_that_has_not_started_finds_its_grant_gone(world: World) -> None:
    """Allowed by a grant, it waits behind another of its batch; the last check stops it (P3)."""
    async with world.running() as house:
        await grant_for_a_time(house)
        world.burn.hold = asyncio.Event()
        world.model.will(asks_for(("burn", "{}"), ("poke", '{"a": 1}')), says("so be it"))
        await house.say("burn and poke")
        await house.say("/revoke 1")
        await house.press()
        world.burn.hold.set()
        await house.settle()
        assert len(world.poke.runs) == 1
        results = [line for line in world.model.asked() if line.startswith("tool:")]
        assert "needs approval now" in results[-1]
        assert [kind for kind in await house.audited() if kind == "revoked"] == ["revoked"]


async def test_what_has_ended_is_neither_shown_nor_revoked(world: World) -> None:
    """Its time is over, whether or not its row was removed."""
    async with world.running() as house:
        await grant_for_a_time(house)
        await house.advance(3600)
        await house.say("/grants")
        assert house.texts()[-1] == catalogue.NOTHING_GRANTED.en
        await house.say("/revoke 1")
        assert "There is no grant" in house.texts()[-1]


async def test_of_two_who_revoke_the_second_reads_that_it_is_gone(world: World) -> None:
    """And the audit has it once."""
    async with world.running() as house:
        await grant_for_a_time(house)
        [row] = await house.rows(RowKind.GRANT)

        def meanwhile(_commit: Commit) -> None:
            world.store.before = None
            world.store.forget(RowKind.GRANT)

        world.store.before = meanwhile
        await house.say("/revoke 1")
        assert "There is no grant" in house.texts()[-1]
        entries = await audit_of(house, row.conversation or "")
        assert audit.Kind.REVOKED not in {entry.kind for entry in entries}


async def test_a_restart_in_between_audits_it(world: World) -> None:
    """The grant is gone with the commit; its entry follows with the next holder of the conversation."""
    async with world.running() as house:
        await grant_for_a_time(house)
        world.store.cut_after(DurablePoint.ADMITTED)
        await house.say_and_die("/revoke 1")
        assert await house.rows(RowKind.GRANT) == ()
        assert "revoked" not in await house.audited()
    world.store.heal()
    async with world.running() as house:
        assert [kind for kind in await house.audited() if kind == "revoked"] == ["revoked"]
        await house.advance(5)
        assert house.texts()[-1] == "`1`: revoked; `poke` asks again."


async def test_a_page_of_grants_hides_none(world: World) -> None:
    """Neither from the gate nor from a person."""
    async with world.running() as house:
        await grant_for_a_time(house)
        [row] = await house.rows(RowKind.GRANT)
        grant = GRANTS.of(row)
        await put_a_page_before(world.store, to_put(replace(grant, tool="other")))
        world.model.will(POKE, says("done again"))
        await house.say("poke it")
        assert house.texts()[-1] == "done again"
        listed = await house.ask("grants", words="list")
        assert len(str(listed["text"]).splitlines()) == PAGE + 1


# --- the console ---------------------------------------------------------------------------------


async def test_the_console_lists_and_revokes(world: World) -> None:
    """By the same numbers as the chats, as an operator; each conversation hears of its own."""
    async with world.running() as house:
        await grant_for_a_time(house)
        await grant_for_a_time(house, "ben")
        first, second = "1", "2"
        reply = await house.ask("grants", words="list")
        assert str(reply["text"]).splitlines() == [
            f"- `{first}` {LINE}ada`, in `chat/ada`",
            f"- `{second}` {LINE}ben`, in `chat/ben`",
        ]
        assert isinstance(reply["grants"], list)
        assert reply["grants"][0] == {
            "id": (await house.rows(RowKind.GRANT))[0].key,
            "name": first,
            "tool": "poke",
            "resources": ["file:/notes/1"],
            "arguments_hash": "",
            "conversation": (await house.rows(RowKind.GRANT))[0].conversation,
            "holder": "person:ada",
            "granted_by": "Ada",
            "until": "2026-01-01T13:00:00+00:00",
        }
        reply = await house.ask("grants", words=f"revoke {first} {second} 9")
        assert (reply["changed"], str(reply["text"]).splitlines()) == (
            True,
            [
                f"`{first}`: revoked; `poke` asks again.",
                "There is no grant `9`; `zeroclaw grants list` shows those that hold.",
                f"`{second}`: revoked; `poke` asks again.",
            ],
        )
        assert await house.rows(RowKind.INBOX, "control") == ()
        assert [kind for kind in await house.audited() if kind == "revoked"] == ["revoked"] * 2


@pytest.mark.parametrize("words", ["please", "revoke", "list all", 7])
async def test_a_wrong_command_at_the_console_is_answered_in_one_line(
    world: World, words: object
) -> None:
    """It says what there is, or lists (P10)."""
    async with world.running() as house:
        reply = await house.ask("grants", words=words)
        assert reply["text"] == (catalogue.NOTHING_GRANTED.en if words == 7 else USAGE)
        assert reply["changed"] is False


async def test_a_lost_race_at_the_console_is_planned_anew(world: World) -> None:
    """Until it gives up, with what to do (P10)."""
    async with world.running() as house:
        await grant_for_a_time(house)

        def lose_race(_commit: Commit) -> None:
            raise Conflict("another writer was first")

        def once(commit: Commit) -> None:
            world.store.before = None
            lose_race(commit)

        [row] = await house.rows(RowKind.GRANT)
        world.store.before = lose_race
        with pytest.raises(
            Conflict, match="others kept changing what this depends on, 8 times: try again"
        ):
            await house.ask("grants", words=f"revoke {row.key}")
        world.store.before = once
        reply = await house.ask("grants", words=f"revoke {row.key}")
        assert reply["changed"] is True


# --- revoked people -------------------------------------------------------------------------------

STOPPED = "_Stopped by the operator on this machine: you may no longer talk to me._"
BEN = Principal(id="person:ben", roles=frozenset(), channel="chat", sender="ben")


def out_by_ada(world: World) -> Person:
    """The record of Ben when Ada has revoked him."""
    return Person(id=BEN.id, display="", state="revoked", by="Ada", at=world.clock.now())


async def revoke(house: House, person: str = "ben") -> None:
    assert (await house.ask("pair", words=f"revoke {person}"))["changed"] is True


async def ended_by(house: House, *held: Row) -> list[str]:
    """Who ended these grants, according to the audit."""
    chains = [await audit_of(house, str(row.conversation)) for row in held]
    return [entry.by for chain in chains for entry in chain if entry.kind is audit.Kind.REVOKED]


async def test_the_gate_denies_them_at_once(world: World) -> None:
    """With the commit that says so, before their turn has even heard of it (P3)."""
    async with world.running() as house:
        query = Query(principal=BEN, action="command:help", now=world.clock.now())
        assert house.services.policy().decide(query).effect == "allow"
        await revoke(house)
        assert house.services.policy().decide(query).effect == "deny"
        await house.ask("pair", words="approve ben")
        assert house.services.policy().decide(query).effect == "allow"


async def test_grants_of_a_revoked_person_end(world: World) -> None:
    """And what they granted; others keep theirs."""
    async with world.told("poke it", POKE, says("done"), POKE, says("done"), by="ben") as house:
        await house.press("for_a_time")
        await house.say("poke it", "cleo")
        await house.press("for_a_time")
        held = await house.rows(RowKind.GRANT)
        assert len(held) == 2
        await revoke(house)
        assert len(await house.rows(RowKind.GRANT)) == 1
        await revoke(house, "ada")
        assert await house.rows(RowKind.GRANT) == ()
        assert await ended_by(house, *held) == ["revocation", "revocation"]


async def test_grants_by_a_former_approver_end(world: World) -> None:
    """A reload that leaves Ada no operator ends what she let run as one (P5)."""
    async with world.told("poke it", POKE, says("done"), POKE, by="ben") as house:
        await house.press("for_a_time")
        (held,) = await house.rows(RowKind.GRANT)
        ada, ben = world.config.people
        world.configure(
            people=(ada.model_copy(update={"roles": ()}), ben),
            approvals=ApprovalSettings(approvers=("person:ben",)),
        )
        await house.ask("reload")
        assert await house.rows(RowKind.GRANT) == ()
        assert await ended_by(house, held) == ["configuration"]
        await house.say("poke it", "ben")
        assert len(world.poke.runs) == 1


async def test_grants_of_a_person_who_is_let_in_no_more_end(world: World) -> None:
    """Let in again, they begin without it (P5)."""
    async with world.told("poke it", POKE, says("done"), by="ben") as house:
        await house.press("for_a_time")
        (held,) = await house.rows(RowKind.GRANT)
        world.configure(channels={"chat": ChannelSettings(allowed_users=("ada", "cleo"))})
        await house.ask("reload")
        assert await house.rows(RowKind.GRANT) == ()
        assert await ended_by(house, held) == ["configuration"]


async def test_a_grant_outlives_an_hour_in_which_who_gave_it_may_not(world: World) -> None:
    """It does not count in that hour; a reload that falls into it ends nothing (P5)."""
    lunch: dict[str, object] = {
        "id": "lunch",
        "effect": "deny",
        "principals": ["person:ada"],
        "actions": ["approve:*"],
        "when": {"hour_between": [13, 14]},
    }
    world.configure(
        policy=PolicySettings(statement=(lunch,)), approvals=ApprovalSettings(grant_s=10_000)
    )
    world.model.will(POKE, says("done"), POKE, says("no"), POKE, says("done"))
    async with world.told("poke it", by="ben") as house:
        await house.press("for_a_time")
        await house.advance(3_700)
        await house.ask("reload")
        await house.say("poke it", "ben")
        assert len(world.poke.runs) == 1
        await house.advance(3_600)
        await house.say("poke it", "ben")
        assert len(world.poke.runs) == 2


async def test_a_grant_that_another_writer_ends_in_that_instant_is_ended_once(world: World) -> None:
    """And audited once."""
    async with world.told("poke it", POKE, says("done"), by="ben") as house:
        await house.press("for_a_time")

        def meanwhile(commit: Commit) -> None:
            if any(isinstance(write, Delete) for write in commit.writes):
                world.store.before = None
                world.store.forget(RowKind.GRANT)

        world.store.before = meanwhile
        await revoke(house)
        assert "revoked" not in await house.audited()
        assert await house.rows(RowKind.INBOX, "control") == ()


async def test_a_revoked_person_is_granted_nothing_while_their_turn_ends(world: World) -> None:
    """The grant would come too late to be ended with their others, and be theirs again later."""
    async with world.told("poke it", POKE, by="ben") as house:
        press = house.envelope(house.pressed("for_a_time"))

        async def press_first(writes: tuple[Write, ...]) -> None:
            if any(isinstance(write, Put) and write.state == "control" for write in writes):
                world.store.meanwhile = None
                await house.services.ingress.admit(press)

        world.store.meanwhile = press_first
        await revoke(house)
        assert world.store.meanwhile is None
        assert await house.rows(RowKind.GRANT) == ()
        assert world.poke.runs == []


async def test_a_grant_that_is_committed_behind_a_revocations_look_ends_too(world: World) -> None:
    """It was planned before its holder was revoked, and their turn has not ended yet."""
    world.model.will(POKE)
    planned, committed = asyncio.Event(), asyncio.Event()
    async with world.told("poke it", by="ben") as house:
        press = house.envelope(house.pressed("for_a_time"))

        async def stop_later(_writes: tuple[Write, ...]) -> None:
            world.store.meanwhile = None
            planned.set()
            await committed.wait()

        async def look_first(_writes: tuple[Write, ...]) -> None:
            world.store.meanwhile = stop_later
            house.services.learn_people((person_put(out_by_ada(world)),))
            await planned.wait()

        world.store.meanwhile = look_first
        await house.services.ingress.admit(press)
        (held,) = await house.rows(RowKind.GRANT)
        committed.set()
        await house.settle()
        assert await house.rows(RowKind.GRANT) == ()
        assert await ended_by(house, held) == ["revocation"]
        assert world.poke.runs == []


async def test_any_number_of_grants_at_once_get_a_number_each(world: World) -> None:
    """Their writers need not try again, however many press in one instant."""
    rooms = [f"room{number}" for number in range(TRIES + 2)]
    async with world.running() as house:
        for room in rooms:
            world.model.will(POKE)
            await house.say("poke it", "ben", room=room)
        waiting = [APPROVALS.of(row) for row in await house.rows(RowKind.APPROVAL, "pending")]
        world.model.will(*(says("done") for _ in rooms))
        async with asyncio.TaskGroup() as group:
            for approval in waiting:
                press = house.envelope(Pressed(approval=approval.id, choice="for_a_time"))
                group.create_task(house.services.ingress.admit(press))
        await house.settle()
        held = [GRANTS.of(row) for row in await house.rows(RowKind.GRANT)]
        assert sorted(grant.number for grant in held) == list(range(1, len(rooms) + 1))
        assert len(world.poke.runs) == len(rooms)


async def test_others_go_on(world: World) -> None:
    """Their answers, their waiting messages and their questions are not touched (P9)."""
    more = asyncio.Event()
    world.model.will((*says("Once upon")[:1], more, *says(" a time")))
    async with world.told("a story", by="cleo") as house:
        await house.say("and another", "cleo")
        await revoke(house)
        more.set()
        await house.settle()
        assert house.texts("cleo") == ["Once upon a time", "ok"]


async def test_a_late_stop_ends_no_other_persons_turn(world: World) -> None:
    """It was meant for the turn before, in the same group (P9)."""
    more = asyncio.Event()
    world.model.will((*says("Once upon")[:1], more, *says(" a time")))
    async with world.told("a story", by="cleo", room="room") as house:
        [stream] = await world.store.streams(LogKind.JOURNAL)
        context = house.services.revocation.context
        place, stop = house.place("cleo", "room"), Stop(cause="revoked")
        await world.store.write(context.control(stop, ConversationId(stream), place, CONSOLE, None))
        house.services.mailboxes.wake(ConversationId(stream))
        await house.settle()
        more.set()
        await house.settle()
        assert house.texts(room="room") == ["Once upon a time"]


async def test_an_operator_who_is_revoked_answers_nothing_more(world: World) -> None:
    """Neither by pressing nor with a card (P5)."""
    async with world.told("poke it", POKE, by="ben") as house:
        await revoke(house, "ada")
        assert await house.press() == ""
        assert world.poke.runs == []
        assert house.services.operators.readers() == ()


async def test_a_kill_in_between_leaves_nothing_running(world: World) -> None:
    """A revoked person's turn is not taken up again after a restart."""
    more = asyncio.Event()
    world.model.will((*says("Once upon")[:1], more, *says(" a time")))
    async with world.told("a story", by="ben") as house:
        await house.say("and another", "ben")
        await world.store.write(person_put(out_by_ada(world)))
    async with world.running() as house:
        (text,) = house.texts("ben")  # of what was queued they hear nothing
        assert text.endswith("_Stopped by Ada: you may no longer talk to me._")
        assert await house.states("stopped") == ["stopped", "stopped"]


async def test_a_message_that_comes_in_at_that_instant_is_not_answered(world: World) -> None:
    """It was let in before, and is committed after; it ends like what waited."""
    async with world.running() as house:

        def meanwhile(_commit: Commit) -> None:
            world.store.before = None
            house.services.learn_people((person_put(out_by_ada(world)),))

        world.store.before = meanwhile
        await house.say("hi", "ben")
        texts = house.texts("ben")
        assert texts in ([], ["_Stopped by Ada: you may no longer talk to me._"])
        assert await house.rows(RowKind.TURN, "open") == ()


async def test_a_damaged_row_prevents_no_revocation(world: World) -> None:
    """It is its own conversation's trouble; the start and the others are not held up."""
    world.model.will((*says("Once upon")[:1], asyncio.Event()))
    kinds = ((RowKind.INBOX, "queued"), (RowKind.TURN, "open"), (RowKind.GRANT, ""))
    damaged = tuple(
        Put(kind=kind, key="0", body=b"", conversation=ConversationId("c"), state=state)
        for kind, state in kinds
    )
    async with world.told("a story", by="ben") as house:
        await world.store.write(*damaged)
        await revoke(house)
        assert house.texts("ben")[0].endswith(STOPPED)
