"""A message whose answer was lost is found where it stands, or known not to, or said to be unknown."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from channels.telegram import lookup
from channels.telegram.emulator import BadGateway, Hang, Lose, Refuse, TooMany
from channels.telegram.emulator.account import Chat
from tests.contract.channel_suite import Desk, receiving
from tests.contract.channel_words import CARD, NONE, lookup_to_the_end, outgoing_file
from tests.unit.channels.telegram.stage import Stage, stage
from zeroclaw import (
    Address,
    ChannelUnavailable,
    DeliveryUnknown,
    LookupResult,
    MessageRef,
    NotSupported,
    Outgoing,
    RateLimited,
    Rendered,
    replace,
)

# All open real sockets.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("fault", [BadGateway(carried_out=True), Lose(carried_out=True)], ids=repr)
async def test_one_that_stands_is_found(fault: BadGateway | Lose) -> None:
    """Others wrote meanwhile elsewhere; what people see is not changed (P1)."""
    async with begun() as (on, chat, here):
        mark = on.channel.mark(here)
        on.telegram.skip_ids(2)
        on.telegram.will("sendMessage", fault)
        with pytest.raises(DeliveryUnknown):
            await on.channel.send(here, on.outgoing("*hello*"))
        seen = await lookup_to_the_end(on.channel, here, on.outgoing("*hello*"), mark)
        assert seen.ref == MessageRef(address=here, message=str(chat.from_bot[-1].id))
        assert chat.texts == ["first", "hello"]
        assert len(chat.from_bot[-1].versions) == 1


async def test_another_process_finds_it_by_the_mark() -> None:
    """It knows nothing but what was stored (P1)."""
    async with begun() as (on, chat, here):
        mark = await lost(on, here)
        again = on.restarted()
        assert again.channel.mark(here) == ""
        seen = await lookup_to_the_end(again.channel, here, on.outgoing("hello"), mark)
        await again.channel.aclose()
        assert seen.ref is not None
        assert seen.ref.message == str(chat.from_bot[-1].id)


@pytest.mark.parametrize("fault", [BadGateway(), Lose(carried_out=False)], ids=repr)
async def test_one_that_does_not_stand_is_not_found(fault: BadGateway | Lose) -> None:
    async with begun() as (on, chat, here):
        mark = on.channel.mark(here)
        on.telegram.will("sendMessage", fault)
        with pytest.raises(DeliveryUnknown):
            await on.channel.send(here, on.outgoing("hello"))
        seen = await lookup_to_the_end(on.channel, here, on.outgoing("hello"), mark)
        assert seen.ref is None
        assert len(on.telegram.called("editMessageText")) == lookup.PROBES_AHEAD
        assert chat.texts == ["first"]


async def test_a_lost_card_is_found_with_its_buttons() -> None:
    async with begun() as (on, chat, here):
        mark = on.channel.mark(here)
        on.telegram.will("sendMessage", Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await on.channel.ask(here, CARD)
        buttons = chat.from_bot[-1].buttons
        seen = await lookup_to_the_end(on.channel, here, CARD, mark)
        assert seen.ref is not None
        assert seen.ref.message == str(chat.from_bot[-1].id)
        assert buttons
        assert chat.from_bot[-1].buttons == buttons
        assert len(chat.from_bot[-1].versions) == 1


async def test_a_lost_file_is_found_by_its_caption() -> None:
    """Texts up there are passed by."""
    async with begun() as (on, chat, here):
        mark = on.channel.mark(here)
        file = outgoing_file()
        on.telegram.will("sendDocument", Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await on.channel.send_file(here, file)
        seen = await lookup_to_the_end(on.channel, here, file, mark)
        assert seen.ref is not None
        assert seen.ref.message == str(chat.from_bot[-1].id)
        assert len(chat.from_bot[-1].versions) == 1


@pytest.mark.parametrize("first", ["text", "file"])
async def test_of_two_that_were_lost_each_is_found(first: str) -> None:
    """Where the look for one has passed the other, that one is still to be looked for (P1)."""
    async with begun() as (on, chat, here):
        file, text = outgoing_file(), on.outgoing("hello")
        mark = await lost(on, here)
        on.telegram.will("sendDocument", Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await on.channel.send_file(here, file)
        standing = [str(message.id) for message in chat.from_bot[-2:]]
        sought = (text, file) if first == "text" else (file, text)
        found = [(await lookup_to_the_end(on.channel, here, one, mark)).ref for one in sought]
        messages = [ref.message for ref in found if ref is not None]
        assert sorted(messages) == standing
        assert [len(message.versions) for message in chat.from_bot[-2:]] == [1, 1]


async def test_in_a_group_that_became_another_it_can_not_be_told() -> None:
    """What stood in the old one can't be edited, so nothing is learned of it."""
    async with stage() as on:
        ann = on.telegram.person("Ann")
        team = on.telegram.group("Team", ann)
        here = on.address(team.id)
        await on.channel.send(here, on.outgoing("first"))
        mark = await lost(on, here)
        ann.upgrades(team)
        with pytest.raises(DeliveryUnknown, match="can't be looked up"):
            await lookup_to_the_end(on.channel, here, on.outgoing("hello"), mark)


async def test_a_message_of_ours_that_is_known_is_not_taken_for_it() -> None:
    """Even with the same words, and though this process did not send it."""
    async with begun() as (on, chat, here):
        mark = on.channel.mark(here)
        await on.channel.send(here, on.outgoing("hello"))
        known = str(chat.from_bot[-1].id)
        await lost(on, here)
        for adapter in (on, on.restarted()):
            seen = await lookup_to_the_end(
                adapter.channel, here, on.outgoing("hello"), mark, apart=frozenset({known})
            )
            assert seen.ref is not None
            assert seen.ref.message == str(chat.from_bot[-1].id)
            await adapter.channel.aclose()


async def test_an_old_update_that_comes_again_moves_no_mark_back() -> None:
    """Else an answer of ours above it would be taken for the one that is sought."""
    desk = Desk()
    async with stage() as on:
        ann = on.telegram.person("Ann")
        async with receiving(on.channel, desk.admit):
            action = ann.says("hi")
            await on.telegram.confirmed(action)
            here = on.address(ann.id)
            await on.channel.send(here, on.outgoing("the first answer"))
            on.telegram.redeliver(action)
            await on.telegram.confirmed(action)
            mark = await lost(on, here)
            seen = await lookup_to_the_end(on.channel, here, on.outgoing("hello"), mark)
            assert seen.ref is not None
            assert ann.chat.texts[-2:] == ["the first answer", "hello"]


async def test_what_people_write_is_no_place_to_look_at() -> None:
    desk = Desk()
    async with stage() as on:
        ann = on.telegram.person("Ann")
        async with receiving(on.channel, desk.admit):
            await on.telegram.confirmed(ann.says("hi"))
            here = on.address(ann.id)
            mark = on.channel.mark(here)
            await on.telegram.confirmed(ann.says("are you there?"))
            on.telegram.will("sendMessage", Lose(carried_out=True))
            with pytest.raises(DeliveryUnknown):
                await on.channel.send(here, on.outgoing("hello"))
            seen = await lookup_to_the_end(on.channel, here, on.outgoing("hello"), mark)
            assert seen.ref is not None
            called = [call.message for call in on.telegram.called("editMessageText")]
            assert called == [int(seen.ref.message)]


@pytest.mark.parametrize("is_super", [True, False])
async def test_groups_are_counted_as_telegram_counts_them(is_super: bool) -> None:
    """A supergroup has its own counter; a basic group shares that of private chats."""
    async with stage() as on:
        ann = on.telegram.person("Ann")
        open_group = on.telegram.supergroup if is_super else on.telegram.group
        team = open_group("Team", ann)
        here = on.address(team.id)
        await on.channel.send(here, on.outgoing("first"))
        for _ in range(4):
            await on.channel.send(on.address(ann.id), on.outgoing("elsewhere"))
        mark = await lost(on, here)
        seen = await lookup_to_the_end(on.channel, here, on.outgoing("hello"), mark)
        assert seen.ref is not None
        assert team.texts == ["first", "hello"]


async def test_messages_of_ours_elsewhere_are_not_looked_at() -> None:
    """They use up the numbers that private chats share, and are known."""
    async with begun() as (on, _, ann):
        bob = on.address(on.telegram.person("Bob").id)
        hang = Hang(carried_out=True)
        on.telegram.will("sendMessage", hang, chat=on.telegram.account.chats[int(ann.chat)])
        mark = on.channel.mark(ann)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(unknown(on, ann))
            await hang.reached()
            for number in range(lookup.MAX_PROBES):
                await on.channel.send(bob, on.outgoing(str(number)))
            on.telegram.cut()
            await sending
        seen = await lookup_to_the_end(on.channel, ann, on.outgoing("hello"), mark)
        assert seen.ref is not None
        assert len(on.telegram.called("editMessageText")) == 1


@pytest.mark.parametrize("mark", ["", "7", "a/b/c/0", "1/2"])
async def test_where_nothing_is_known_it_stays_unknown(mark: str) -> None:
    """Then the outbox sends it again, and says that it may be a repeat."""
    async with stage() as on:
        here = on.address(on.telegram.person("Ann").id)
        assert on.channel.mark(here) == ""
        with pytest.raises(DeliveryUnknown):
            await on.channel.lookup(here, on.outgoing("hello"), since=mark, apart=NONE)
        assert on.telegram.called("editMessageText") == []


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (TooMany(retry_after_s=9), RateLimited),
        (BadGateway(), ChannelUnavailable),
        (Lose(carried_out=False), ChannelUnavailable),
        (Refuse(code=403, description="Forbidden: bot was blocked by the user"), DeliveryUnknown),
    ],
    ids=repr,
)
async def test_a_look_that_fails_may_be_made_again_and_one_that_is_refused_may_not(
    fault: TooMany | BadGateway | Lose | Refuse, kind: type[Exception]
) -> None:
    """It changes nothing the second time."""
    async with begun() as (on, _, here):
        mark = await lost(on, here)
        on.telegram.will("editMessageText", fault)
        with pytest.raises(kind) as caught:
            await lookup_to_the_end(on.channel, here, on.outgoing("hello"), mark)
        assert type(caught.value) is kind


@pytest.mark.parametrize("uncertain", ["resend", "hold"])
async def test_looking_can_be_switched_off(uncertain: str) -> None:
    async with begun(uncertain=uncertain) as (on, _, here):
        assert not on.channel.capabilities.can_lookup
        assert on.channel.capabilities.may_repeat is (uncertain == "resend")
        with pytest.raises(NotSupported):
            on.channel.mark(here)
        with pytest.raises(NotSupported):
            await on.channel.lookup(here, on.outgoing("hello"), since="1/1/0", apart=NONE)


# --- how far it is looked for, and what is found when it was sent again ---------------------------


async def test_sent_again_its_number_tells_how_far_to_look() -> None:
    """Numbers ran further than anybody looked, and the first one is found after all (P1)."""
    async with begun() as (on, _, here):
        mark = on.channel.mark(here)
        on.telegram.skip_ids(lookup.PROBES_AHEAD + 2)
        await lost(on, here)
        seen = await lookup_to_the_end(on.channel, here, on.outgoing("hello"), mark)
        assert seen.ref is None
        new = await on.channel.send(here, on.outgoing("hello"))
        seen = await lookup_to_the_end(
            on.channel, here, on.outgoing("hello"), seen.since, before=new.message
        )
        assert seen.ref is not None
        assert int(seen.ref.message) == int(new.message) - 1


async def test_sent_again_without_a_gap_nothing_is_left_to_look_at() -> None:
    """It takes no call to know that."""
    async with begun() as (on, _, here):
        seen = await lookup_to_the_end(
            on.channel, here, on.outgoing("hello"), on.channel.mark(here)
        )
        calls = len(on.telegram.called("editMessageText"))
        new = await on.channel.send(here, on.outgoing("hello"))
        seen = await lookup_to_the_end(
            on.channel, here, on.outgoing("hello"), seen.since, before=new.message
        )
        assert seen.ref is None
        assert len(on.telegram.called("editMessageText")) == calls


@pytest.mark.parametrize("caption", ["the *sums*", ""])
async def test_what_stands_with_a_file_that_was_sent_again_can_be_cleared(caption: str) -> None:
    """As a text that stands alone after all, it no longer says that it may be a repeat (P1)."""
    async with begun() as (on, chat, _):
        again = replace(outgoing_file(), caption="the *sums*\n\n(possible repeat)")
        ref = await on.channel.send_file(on.address(chat.id), again)
        plain = Rendered(body=caption, plain=caption)
        await on.channel.edit(ref, Outgoing(rendered=plain, key=again.key, plain=True))
        assert chat.from_bot[-1].text == caption
        assert "document" in chat.from_bot[-1].media


async def test_what_others_write_unheard_leads_further() -> None:
    """In a group where the bot hears only what is meant for it, the numbers run all the same."""
    async with stage(groups="mentioned") as on:
        ann = on.telegram.person("Ann")
        team = on.telegram.supergroup("Team", ann)
        here = on.address(team.id)
        await on.channel.send(here, on.outgoing("first"))
        mark = on.channel.mark(here)
        for number in range(lookup.PROBES_AHEAD + 3):
            ann.says(f"unheard {number}", chat=team)
        await lost(on, here)
        seen = await lookup_to_the_end(on.channel, here, on.outgoing("hello"), mark)
        assert seen.ref is not None
        assert seen.ref.message == str(team.from_bot[-1].id)


async def test_where_too_much_lies_between_it_stays_unknown() -> None:
    """Each look is a call, and the account has others to make, so none is made that is no use."""
    async with begun() as (on, _, ann):
        on.telegram.skip_ids(lookup.MAX_PROBES)
        mark = await lost(on, ann)
        new = await on.channel.send(ann, on.outgoing("hello"))
        with pytest.raises(DeliveryUnknown):
            await lookup_to_the_end(on.channel, ann, on.outgoing("hello"), mark, before=new.message)
        assert on.telegram.called("editMessageText") == []


async def test_where_nothing_tells_how_far_it_may_stand_most_looks_are_made() -> None:
    """It hardly stands far from where others wrote first (P1)."""
    async with begun() as (on, _, ann):
        on.telegram.skip_ids(lookup.MAX_PROBES)
        mark = await lost(on, ann)
        await on.channel.send(on.address(on.telegram.person("Bob").id), on.outgoing("hi"))
        with pytest.raises(DeliveryUnknown):
            await lookup_to_the_end(on.channel, ann, on.outgoing("hello"), mark)
        assert len(on.telegram.called("editMessageText")) == lookup.MAX_PROBES


async def test_one_that_comes_after_the_look_is_found_below_the_one_that_was_sent_again() -> None:
    """Numbers that were not given yet when they were looked at are looked at again (P1)."""
    async with begun() as (on, _, here):
        mark = on.channel.mark(here)
        seen = await lookup_to_the_end(on.channel, here, on.outgoing("hello"), mark)
        await lost(on, here)  # carried out only now
        new = await on.channel.send(here, on.outgoing("hello"))
        seen = await lookup_to_the_end(
            on.channel, here, on.outgoing("hello"), seen.since, before=new.message
        )
        assert seen.ref is not None
        assert int(seen.ref.message) == int(new.message) - 1


async def test_what_is_sent_after_a_look_can_be_looked_for_from_its_end() -> None:
    """By a process that knows no more; others wrote in between (P1)."""
    async with begun() as (on, chat, here):
        bob = on.address(on.telegram.person("Bob").id)
        mark = on.channel.mark(here)
        for number in range(3 * lookup.PROBES_AHEAD):
            await on.channel.send(bob, on.outgoing(str(number)))
        seen = await lookup_to_the_end(on.channel, here, on.outgoing("hello"), mark)
        await lost(on, here)
        again = on.restarted()
        seen = await lookup_to_the_end(again.channel, here, on.outgoing("hello"), seen.since)
        await again.channel.aclose()
        assert seen.ref is not None
        assert seen.ref.message == str(chat.from_bot[-1].id)


@pytest.mark.parametrize("is_new", [False, True])
async def test_numbers_that_are_given_meanwhile_lead_no_further(is_new: bool) -> None:
    """A busy account's would run ahead of the looks, and the chat would wait for all of them (P9)."""
    async with begun() as (on, _, ann):
        bob = on.address(on.telegram.person("Bob").id)
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
        assert len(on.telegram.called("editMessageText")) <= lookup.PROBES_AHEAD
        if is_new:
            await by.channel.aclose()


@asynccontextmanager
async def begun(**settings: object) -> AsyncGenerator[tuple[Stage, Chat, Address]]:
    """Ann's chat, which begins with a message of the bot, so that a number is known."""
    async with stage(**settings) as on:
        ann = on.telegram.person("Ann")
        here = on.address(ann.id)
        await on.channel.send(here, on.outgoing("first"))
        yield on, ann.chat, here


async def lost(on: Stage, to: Address, text: str = "hello") -> str:
    """Send a message whose answer is lost; return the mark of before."""
    mark = on.channel.mark(to)
    on.telegram.will("sendMessage", Lose(carried_out=True))
    with pytest.raises(DeliveryUnknown):
        await on.channel.send(to, on.outgoing(text))
    return mark


async def unknown(on: Stage, place: Address) -> None:
    with pytest.raises(DeliveryUnknown):
        await on.channel.send(place, on.outgoing("hello"))
