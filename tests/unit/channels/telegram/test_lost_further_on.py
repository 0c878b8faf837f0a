"""How far a message is looked for whose answer was lost, and what is found when it was sent again."""

import pytest

from channels.telegram import lookup
from channels.telegram.emulator import Lose
from tests.contract.channel_words import NONE, looked, outgoing_file
from tests.unit.channels.telegram.losing import begun, lost, unknown
from tests.unit.channels.telegram.stage import stage
from zeroclaw import DeliveryUnknown, LookupResult, Outgoing, Rendered, replace

# All open real sockets.
pytestmark = pytest.mark.slow


async def test_sent_again_its_number_tells_how_far_to_look() -> None:
    """Numbers ran further than anybody looked, and the first one is found after all (P1)."""
    async with stage() as on:
        chat = on.telegram.account.chats[await begun(on)]
        here = on.place(chat.id)
        mark = on.channel.mark(here)
        on.telegram.skip_ids(lookup.LOOK_AHEAD + 2)
        await lost(on, here)
        seen = await looked(on.channel, here, on.outgoing("hello"), mark)
        assert seen.ref is None
        new = await on.channel.send(here, on.outgoing("hello"))
        seen = await looked(on.channel, here, on.outgoing("hello"), seen.since, before=new.message)
        assert seen.ref is not None
        assert int(seen.ref.message) == int(new.message) - 1


async def test_sent_again_without_a_gap_nothing_is_left_to_look_at() -> None:
    """It takes no call to know that."""
    async with stage() as on:
        chat = on.telegram.account.chats[await begun(on)]
        here = on.place(chat.id)
        seen = await looked(on.channel, here, on.outgoing("hello"), on.channel.mark(here))
        calls = len(on.telegram.called("editMessageText"))
        new = await on.channel.send(here, on.outgoing("hello"))
        seen = await looked(on.channel, here, on.outgoing("hello"), seen.since, before=new.message)
        assert seen.ref is None
        assert len(on.telegram.called("editMessageText")) == calls


@pytest.mark.parametrize("caption", ["the *sums*", ""])
async def test_what_stands_with_a_file_that_was_sent_again_can_be_cleared(caption: str) -> None:
    """As a text that stands alone after all, it no longer says that it may be a repeat (P1)."""
    async with stage() as on:
        chat = on.telegram.account.chats[await begun(on)]
        again = replace(outgoing_file(), caption="the *sums*\n\n(possible repeat)")
        ref = await on.channel.send_file(on.place(chat.id), again)
        plain = Rendered(body=caption, plain=caption)
        await on.channel.edit(ref, Outgoing(rendered=plain, key=again.key, plain=True))
        assert chat.from_bot[-1].text == caption
        assert "document" in chat.from_bot[-1].media


async def test_what_others_write_unheard_leads_further() -> None:
    """In a group where the bot hears only what is meant for it, the numbers run all the same."""
    async with stage(groups="mentioned") as on:
        ann = on.telegram.person("Ann")
        team = on.telegram.supergroup("Team", ann)
        here = on.place(team.id)
        await on.channel.send(here, on.outgoing("first"))
        mark = on.channel.mark(here)
        for number in range(lookup.LOOK_AHEAD + 3):
            ann.says(f"unheard {number}", chat=team)
        await lost(on, here)
        seen = await looked(on.channel, here, on.outgoing("hello"), mark)
        assert seen.ref is not None
        assert seen.ref.message == str(team.from_bot[-1].id)


async def test_where_too_much_lies_between_it_stays_unknown() -> None:
    """Each look is a call, and the account has others to make, so none is made that is no use."""
    async with stage() as on:
        ann = on.place(await begun(on))
        on.telegram.skip_ids(lookup.MOST_LOOKS)
        mark = await lost(on, ann)
        new = await on.channel.send(ann, on.outgoing("hello"))
        with pytest.raises(DeliveryUnknown):
            await looked(on.channel, ann, on.outgoing("hello"), mark, before=new.message)
        assert on.telegram.called("editMessageText") == []


async def test_where_nothing_tells_how_far_it_may_stand_most_looks_are_made() -> None:
    """It hardly stands far from where others wrote first (P1)."""
    async with stage() as on:
        ann = on.place(await begun(on))
        on.telegram.skip_ids(lookup.MOST_LOOKS)
        mark = await lost(on, ann)
        await on.channel.send(on.place(on.telegram.person("Bob").id), on.outgoing("hi"))
        with pytest.raises(DeliveryUnknown):
            await looked(on.channel, ann, on.outgoing("hello"), mark)
        assert len(on.telegram.called("editMessageText")) == lookup.MOST_LOOKS


async def test_one_that_comes_after_the_look_is_found_below_the_one_that_was_sent_again() -> None:
    """Numbers that were not given yet when they were looked at are looked at again (P1)."""
    async with stage() as on:
        chat = on.telegram.account.chats[await begun(on)]
        here = on.place(chat.id)
        mark = on.channel.mark(here)
        seen = await looked(on.channel, here, on.outgoing("hello"), mark)
        await lost(on, here)  # carried out only now
        new = await on.channel.send(here, on.outgoing("hello"))
        seen = await looked(on.channel, here, on.outgoing("hello"), seen.since, before=new.message)
        assert seen.ref is not None
        assert int(seen.ref.message) == int(new.message) - 1


async def test_what_is_sent_after_a_look_can_be_looked_for_from_its_end() -> None:
    """By a process that knows no more; others wrote in between (P1)."""
    async with stage() as on:
        chat = on.telegram.account.chats[await begun(on)]
        here, bob = on.place(chat.id), on.place(on.telegram.person("Bob").id)
        mark = on.channel.mark(here)
        for number in range(3 * lookup.LOOK_AHEAD):
            await on.channel.send(bob, on.outgoing(str(number)))
        seen = await looked(on.channel, here, on.outgoing("hello"), mark)
        await lost(on, here)
        again = on.restarted()
        seen = await looked(again.channel, here, on.outgoing("hello"), seen.since)
        await again.channel.aclose()
        assert seen.ref is not None
        assert seen.ref.message == str(chat.from_bot[-1].id)


@pytest.mark.parametrize("is_new", [False, True])
async def test_numbers_that_are_given_meanwhile_lead_no_further(is_new: bool) -> None:
    """A busy account's would run ahead of the looks, and the chat would wait for all of them (P9)."""
    async with stage() as on:
        ann = on.place(await begun(on))
        bob = on.place(on.telegram.person("Bob").id)
        mark = on.channel.mark(ann)
        on.telegram.will("sendMessage", Lose(carried_out=False))
        await unknown(on, ann)
        by = on.restarted() if is_new else on
        seen = LookupResult(since=mark, is_over=False)
        while not seen.is_over:
            for number in range(2):
                await by.channel.send(bob, by.outgoing(str(number)))
            seen = await by.channel.lookup(
                ann, on.outgoing("hello"), since=seen.since, apart=NONE, before=""
            )
        assert seen.ref is None
        assert len(on.telegram.called("editMessageText")) <= lookup.LOOK_AHEAD
        if is_new:
            await by.channel.aclose()
