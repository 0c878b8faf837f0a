"""With `threads`, a mention opens a thread, in which no further mention is needed."""

import pytest

from channels.discord.emulator.server import Fault, Person
from tests.contract.discord_harness import SETTINGS
from tests.unit.channels.discord.rig import Rig, bot_for_ann, rig_for_ann, rigged
from tests.unit.channels.discord.test_sending import server, text
from zeroclaw import Address, ChannelRejected, ChannelUnavailable, NotSupported, replace

pytestmark = pytest.mark.slow

THREADS = SETTINGS.model_copy(update={"threads": True})


async def begun_thread(rig: Rig, person: Person, channel: int) -> Address:
    """Let a person mention the bot in a channel; return the thread that it opens."""
    person.says(channel, f"<@{rig.discord.bot}> hello")
    await rig.discord.until_called("POST", "/threads$")
    return rig.desk.stored[0].address


async def test_a_mention_opens_a_thread_for_the_conversation() -> None:
    """Each conversation has one thread; messages there need no mention, also after a restart."""
    async with rig_for_ann() as (rig, ann, general):
        async with rig.bot(THREADS) as channel:
            first = ann.says(general, f"<@{rig.discord.bot}> what is new,\nand what is not?")
            await rig.discord.until_called("POST", "/threads$")
            place = rig.desk.stored[0].address
            await channel.send(place, text(channel, "nothing"))
            await channel.send(place, text(channel, "at all"))
            thread = int(str(place.thread))
            assert [message.content for message in rig.discord.from_bot(thread)] == [
                "nothing",
                "at all",
            ]
            assert rig.discord.backend.channels[thread].name == "what is new, and what is not?"
            ann.says(general, "to somebody else")
        ann.says(thread, "and now?")
        async with rig.bot(THREADS) as channel:
            await rig.desk.holds(2)
            ann.says(thread, "and then?")
            await rig.desk.holds(3)
            await channel.send(place, text(channel, "later"))
        assert [envelope.address for envelope in rig.desk.stored] == [place] * 3
        assert (place.chat, place.thread) == (str(general), str(first.id))


async def test_a_thread_that_a_reply_opens_is_named_after_the_reply() -> None:
    async with bot_for_ann(THREADS) as (rig, ann, general, channel):
        lunch = ann.says(general, "lunch?")
        ann.says(general, f"<@{rig.discord.bot}> where to?", reply_to=lunch.id)
        await rig.desk.holds(1)
        place = rig.desk.stored[0].address
        await channel.send(place, text(channel, "here"))
        assert rig.discord.backend.channels[int(str(place.thread))].name == "where to?"


@pytest.mark.parametrize("is_archived", [False, True])
async def test_messages_in_a_thread_during_an_outage_stay_in_its_conversation(
    *, is_archived: bool
) -> None:
    """Servers send their threads after a session has begun, without the archived ones."""
    async with rig_for_ann() as (rig, ann, general):
        async with rig.bot(THREADS):
            place = await begun_thread(rig, ann, general)
            thread = int(str(place.thread))
            ann.says(thread, "and now?")
            await rig.desk.holds(2)
        ann.says(thread, "and then?")
        if is_archived:
            rig.discord.archive(thread)
        rig.discord.are_servers_late = True
        async with rig.bot(THREADS):
            await rig.discord.until(lambda: rig.discord.is_connected)
            rig.discord.dispatch_servers()
            await rig.desk.holds(3)
    assert [envelope.address for envelope in rig.desk.stored] == [place] * 3


async def test_an_archived_thread_that_a_message_opens_again_needs_no_mention() -> None:
    """The bot's own, even if no message in it was stored before a restart."""
    async with rig_for_ann() as (rig, ann, general):
        async with rig.bot(THREADS):
            place = await begun_thread(rig, ann, general)
        thread = int(str(place.thread))
        rig.discord.archive(thread)
        async with rig.bot(THREADS):
            ann.says(general, f"<@{rig.discord.bot}> are you there?")
            await rig.desk.holds(2)
            rig.discord.archive(thread, is_archived=False)
            ann.says(thread, "and now?")
            await rig.desk.holds(3)
    assert rig.desk.stored[2].address == place


async def test_a_command_in_an_archived_thread_belongs_to_its_conversation() -> None:
    """Servers do not send such a thread, but the command names it."""
    async with rig_for_ann() as (rig, ann, general):
        async with rig.bot(THREADS):
            place = await begun_thread(rig, ann, general)
        thread = int(str(place.thread))
        rig.discord.archive(thread)
        async with rig.bot(THREADS):
            ann.uses(thread, "ask", question="and now?")
            await rig.desk.holds(2)
    assert rig.desk.stored[1].address == place


async def test_an_answer_in_a_thread_without_a_first_message_is_posted_there_at_once() -> None:
    """Such as a forum post whose answer was not sent before a restart."""
    async with rigged() as rig:
        general = rig.discord.channel("general")
        thread = rig.discord.thread(general, "aside")
        place = replace(server(rig, general), thread=str(thread))
        rig.discord.are_servers_late = True
        async with rig.bot(THREADS) as channel:
            await channel.send(place, text(channel, "hi"))
        assert [message.content for message in rig.discord.from_bot(thread)] == ["hi"]


async def test_a_thread_left_unopened_by_a_kill_is_opened_by_the_next_send() -> None:
    async with rig_for_ann() as (rig, ann, general):
        first = ann.says(general, f"<@{rig.discord.bot}> hello")
        place = replace(server(rig, general), thread=str(first.id))
        async with rig.bot(THREADS) as channel:
            rig.discord.backend.create_thread(general, "x", rig.discord.bot, message_id=first.id)
            await channel.send(place, text(channel, "hi"))
        assert [message.content for message in rig.discord.from_bot(first.id)] == ["hi"]


async def test_a_thread_that_a_person_opened_first_needs_no_mention() -> None:
    async with rig_for_ann() as (rig, ann, general):
        async with rig.bot(THREADS) as channel:
            first = ann.says(general, "to somebody else")
            rig.discord.backend.create_thread(general, "x", ann.id, message_id=first.id)
            place = replace(server(rig, general), thread=str(first.id))
            await channel.send(place, text(channel, "a scheduled message"))
            ann.says(first.id, "why?")
            await rig.desk.holds(1)
        assert rig.desk.stored[0].address == place


async def test_a_failed_opening_of_a_thread_leaves_no_message_in_doubt() -> None:
    """Nothing was sent yet, and opening a thread twice does no harm. P1."""
    async with rig_for_ann() as (rig, ann, general):
        first = ann.says(general, f"<@{rig.discord.bot}> hello")
        place = replace(server(rig, general), thread=str(first.id))
        async with rig.bot(THREADS) as channel:
            rig.discord.will(Fault(method="POST", path="/threads$", status=502))
            with pytest.raises(ChannelUnavailable):
                await channel.send(place, text(channel, "hi"))
            await channel.send(place, text(channel, "hi"))
        assert [message.content for message in rig.discord.from_bot(first.id)] == ["hi"]


async def test_a_thread_that_can_not_be_opened_at_first_ends_no_receiving() -> None:
    async with rig_for_ann() as (rig, ann, general):
        rig.discord.will(Fault(method="POST", path="/threads$", status=502, carried_out=True))
        async with rig.bot(THREADS) as channel:
            place = await begun_thread(rig, ann, general)
            ann.says(ann.direct, "hello")
            await rig.desk.holds(2)
            await channel.send(place, text(channel, "hi"))
        thread = int(str(place.thread))
        assert [message.content for message in rig.discord.from_bot(thread)] == ["hi"]


async def test_an_answer_for_a_thread_closed_to_the_bot_is_not_shown_to_others() -> None:
    """A private thread, from which the bot was removed while it was not running."""
    async with rigged() as rig:
        general = rig.discord.channel("general")
        place = replace(server(rig, general), thread="1000000000000000001")
        refusal = {"code": 50001, "message": "Missing Access"}
        rig.discord.will(Fault(method="GET", path="/channels/10+1$", status=403, body=refusal))
        async with rig.bot(THREADS) as channel:
            with pytest.raises(ChannelRejected, match="missing access"):
                await channel.send(place, text(channel, "hi"))
        assert rig.discord.from_bot(general) == []


async def test_an_answer_for_a_deleted_thread_is_not_shown_to_others() -> None:
    """It may have been a private one. P4."""
    async with rigged() as rig:
        general = rig.discord.channel("general")
        async with rig.bot(THREADS) as channel:
            gone = replace(server(rig, general), thread="900000000000000001")
            with pytest.raises(ChannelRejected):
                await channel.send(gone, text(channel, "for few"))
        assert rig.discord.from_bot(general) == []


async def test_without_permission_for_threads_the_answer_is_in_the_channel() -> None:
    async with rig_for_ann() as (rig, ann, general):
        refusal = {"code": 50013, "message": "Missing Permissions"}
        rig.discord.will(Fault(method="POST", path="/threads$", status=403, body=refusal))
        async with rig.bot(THREADS) as channel:
            ann.says(general, f"<@{rig.discord.bot}> hello")
            await rig.desk.holds(1)
            await rig.log.until("thread_not_opened")
            place = rig.desk.stored[0].address
            await channel.send(place, replace(text(channel, "hi"), reply_to=str(place.thread)))
        assert [message.content for message in rig.discord.from_bot(general)] == ["hi"]


async def test_an_address_of_a_thread_is_refused_without_threads() -> None:
    async with rigged() as rig:
        general = rig.discord.channel("general")
        async with rig.bot() as channel:
            place = replace(server(rig, general), thread="5")
            with pytest.raises(NotSupported):
                await channel.send(place, text(channel, "hi"))


async def test_threads_need_the_message_content_intent() -> None:
    assert THREADS.reads_everything
    assert THREADS.capabilities().has_threads
    assert not SETTINGS.capabilities().has_threads
