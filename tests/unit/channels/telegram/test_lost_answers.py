"""Lookup of a message whose response was lost: found, known to be missing, or unknown."""

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
async def test_a_delivered_message_is_found(fault: BadGateway | Lose) -> None:
    """Other people wrote elsewhere meanwhile; the chat's content does not change (P1)."""
    async with ann_chat() as (on, chat, address):
        mark = on.channel.mark(address)
        on.telegram.skip_ids(2)
        on.telegram.will("sendMessage", fault)
        with pytest.raises(DeliveryUnknown):
            await on.channel.send(address, on.outgoing("*hello*"))
        result = await lookup_to_the_end(on.channel, address, on.outgoing("*hello*"), mark)
        assert result.ref == MessageRef(address=address, message=str(chat.from_bot[-1].id))
        assert chat.texts == ["first", "hello"]
        assert len(chat.from_bot[-1].versions) == 1


async def test_another_process_finds_it_by_the_mark() -> None:
    """It knows only what is stored (P1)."""
    async with ann_chat() as (on, chat, address):
        mark = await lose_answer(on, address)
        again = on.restarted()
        assert again.channel.mark(address) == ""
        result = await look(again, address, mark)
        await again.channel.aclose()
        assert result.ref == MessageRef(address=address, message=str(chat.from_bot[-1].id))


@pytest.mark.parametrize("fault", [BadGateway(), Lose(carried_out=False)], ids=repr)
async def test_an_undelivered_message_is_not_found(fault: BadGateway | Lose) -> None:
    async with ann_chat() as (on, chat, address):
        mark = on.channel.mark(address)
        on.telegram.will("sendMessage", fault)
        with pytest.raises(DeliveryUnknown):
            await on.channel.send(address, on.outgoing("hello"))
        result = await look(on, address, mark)
        assert result.ref is None
        assert len(on.telegram.called("editMessageText")) == lookup.PROBES_AHEAD
        assert chat.texts == ["first"]


async def test_a_lost_card_is_found_with_its_buttons() -> None:
    async with ann_chat() as (on, chat, address):
        mark = on.channel.mark(address)
        on.telegram.will("sendMessage", Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await on.channel.ask(address, CARD)
        buttons = chat.from_bot[-1].buttons
        result = await lookup_to_the_end(on.channel, address, CARD, mark)
        assert result.ref == MessageRef(address=address, message=str(chat.from_bot[-1].id))
        assert buttons
        assert chat.from_bot[-1].buttons == buttons
        assert len(chat.from_bot[-1].versions) == 1


async def test_a_lost_file_is_found_by_its_caption() -> None:
    """Texts in between are skipped."""
    async with ann_chat() as (on, chat, address):
        mark = on.channel.mark(address)
        file = outgoing_file()
        on.telegram.will("sendDocument", Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await on.channel.send_file(address, file)
        result = await lookup_to_the_end(on.channel, address, file, mark)
        assert result.ref == MessageRef(address=address, message=str(chat.from_bot[-1].id))
        assert len(chat.from_bot[-1].versions) == 1


@pytest.mark.parametrize("first", ["text", "file"])
async def test_two_lost_messages_are_both_found(first: str) -> None:
    """A lookup that passed the other message leaves it to its own lookup (P1)."""
    async with ann_chat() as (on, chat, address):
        file, text = outgoing_file(), on.outgoing("hello")
        mark = await lose_answer(on, address)
        on.telegram.will("sendDocument", Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await on.channel.send_file(address, file)
        ids = [str(message.id) for message in chat.from_bot[-2:]]
        outgoings = (text, file) if first == "text" else (file, text)
        refs = [
            (await lookup_to_the_end(on.channel, address, outgoing, mark)).ref
            for outgoing in outgoings
        ]
        messages = [ref.message for ref in refs if ref is not None]
        assert sorted(messages) == ids
        assert [len(message.versions) for message in chat.from_bot[-2:]] == [1, 1]


async def test_in_a_migrated_group_the_outcome_stays_unknown() -> None:
    """Messages of the old group can't be edited, so the lookup learns nothing."""
    async with stage() as on:
        team = on.telegram.group("Team", on.ann)
        address = on.address(team.id)
        await on.channel.send(address, on.outgoing("first"))
        mark = await lose_answer(on, address)
        on.ann.upgrades(team)
        with pytest.raises(DeliveryUnknown, match="can't be looked up"):
            await lookup_to_the_end(on.channel, address, on.outgoing("hello"), mark)


async def test_a_known_message_is_not_taken_for_the_lost_one() -> None:
    """Even with the same text, and although another process sent it."""
    async with ann_chat() as (on, chat, address):
        mark = on.channel.mark(address)
        await on.channel.send(address, on.outgoing("hello"))
        known = str(chat.from_bot[-1].id)
        await lose_answer(on, address)
        for adapter in (on, on.restarted()):
            result = await lookup_to_the_end(
                adapter.channel, address, on.outgoing("hello"), mark, apart=frozenset({known})
            )
            assert result.ref == MessageRef(address=address, message=str(chat.from_bot[-1].id))
            await adapter.channel.aclose()


async def test_a_repeated_old_update_moves_no_mark_back() -> None:
    """Otherwise an older answer of ours would be taken for the lost one."""
    desk = Desk()
    async with stage() as on, receiving(on.channel, desk.admit):
        action = on.ann.says("hi")
        await on.telegram.confirmed(action)
        address = on.to_ann
        await on.channel.send(address, on.outgoing("the first answer"))
        on.telegram.redeliver(action)
        await on.telegram.confirmed(action)
        mark = await lose_answer(on, address)
        result = await look(on, address, mark)
        assert result.ref is not None
        assert on.ann.chat.texts[-2:] == ["the first answer", "hello"]


async def test_peoples_messages_are_not_looked_at() -> None:
    desk = Desk()
    async with stage() as on, receiving(on.channel, desk.admit):
        await on.telegram.confirmed(on.ann.says("hi"))
        address = on.to_ann
        mark = on.channel.mark(address)
        await on.telegram.confirmed(on.ann.says("are you there?"))
        on.telegram.will("sendMessage", Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await on.channel.send(address, on.outgoing("hello"))
        result = await look(on, address, mark)
        assert result.ref is not None
        called = [call.message for call in on.telegram.called("editMessageText")]
        assert called == [int(result.ref.message)]


@pytest.mark.parametrize("is_super", [True, False])
async def test_groups_are_numbered_as_telegram_does(is_super: bool) -> None:
    """A supergroup has its own counter; a basic group shares that of private chats."""
    async with stage() as on:
        open_group = on.telegram.supergroup if is_super else on.telegram.group
        team = open_group("Team", on.ann)
        address = on.address(team.id)
        await on.channel.send(address, on.outgoing("first"))
        for _ in range(4):
            await on.channel.send(on.to_ann, on.outgoing("elsewhere"))
        mark = await lose_answer(on, address)
        result = await look(on, address, mark)
        assert result.ref is not None
        assert team.texts == ["first", "hello"]


async def test_messages_of_ours_elsewhere_are_not_looked_at() -> None:
    """They are known, and use up the numbers that private chats share."""
    async with ann_chat() as (on, _, ann):
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
        result = await look(on, ann, mark)
        assert result.ref is not None
        assert len(on.telegram.called("editMessageText")) == 1


@pytest.mark.parametrize("mark", ["", "7", "a/b/c/0", "1/2"])
async def test_without_a_known_number_the_outcome_stays_unknown(mark: str) -> None:
    """Then the outbox sends it again, marked as a possible repeat."""
    async with stage() as on:
        address = on.to_ann
        assert on.channel.mark(address) == ""
        with pytest.raises(DeliveryUnknown):
            await on.channel.lookup(address, on.outgoing("hello"), since=mark, apart=NONE)
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
async def test_a_failed_lookup_may_be_retried_and_a_refused_one_may_not(
    fault: TooMany | BadGateway | Lose | Refuse, kind: type[Exception]
) -> None:
    """The second lookup changes nothing."""
    async with ann_chat() as (on, _, address):
        mark = await lose_answer(on, address)
        on.telegram.will("editMessageText", fault)
        with pytest.raises(kind) as caught:
            await lookup_to_the_end(on.channel, address, on.outgoing("hello"), mark)
        assert type(caught.value) is kind


@pytest.mark.parametrize("uncertain", ["resend", "hold"])
async def test_the_lookup_can_be_disabled(uncertain: str) -> None:
    async with ann_chat(uncertain=uncertain) as (on, _, address):
        assert not on.channel.capabilities.can_lookup
        assert on.channel.capabilities.may_repeat is (uncertain == "resend")
        with pytest.raises(NotSupported):
            on.channel.mark(address)
        with pytest.raises(NotSupported):
            await on.channel.lookup(address, on.outgoing("hello"), since="1/1/0", apart=NONE)


# --- how far a lookup goes, and lookups after a repeat ---------------------------


async def test_the_number_of_the_repeat_bounds_the_lookup() -> None:
    """Numbers ran further than the first lookup, and the first message is found after all (P1)."""
    async with ann_chat() as (on, _, address):
        mark = on.channel.mark(address)
        on.telegram.skip_ids(lookup.PROBES_AHEAD + 2)
        await lose_answer(on, address)
        result = await look(on, address, mark)
        assert result.ref is None
        new = await on.channel.send(address, on.outgoing("hello"))
        result = await look(on, address, result.since, before=new.message)
        assert result.ref is not None
        assert int(result.ref.message) == int(new.message) - 1


async def test_a_repeat_without_a_gap_leaves_nothing_to_look_at() -> None:
    """This needs no call."""
    async with ann_chat() as (on, _, address):
        result = await lookup_to_the_end(
            on.channel, address, on.outgoing("hello"), on.channel.mark(address)
        )
        calls = len(on.telegram.called("editMessageText"))
        new = await on.channel.send(address, on.outgoing("hello"))
        result = await look(on, address, result.since, before=new.message)
        assert result.ref is None
        assert len(on.telegram.called("editMessageText")) == calls


@pytest.mark.parametrize("caption", ["the *sums*", ""])
async def test_the_repeat_mark_of_a_file_can_be_cleared(caption: str) -> None:
    """Once the text is known to be the only one, the mark of a repeat is removed (P1)."""
    async with ann_chat() as (on, chat, _):
        again = replace(outgoing_file(), caption="the *sums*\n\n(possible repeat)")
        ref = await on.channel.send_file(on.address(chat.id), again)
        plain = Rendered(body=caption, plain=caption)
        await on.channel.edit(ref, Outgoing(rendered=plain, key=again.key, plain=True))
        assert chat.from_bot[-1].text == caption
        assert "document" in chat.from_bot[-1].media


async def test_unseen_messages_of_others_extend_the_lookup() -> None:
    """In a group where the bot receives only messages for it, the numbers grow all the same."""
    async with stage(groups="mentioned") as on:
        team = on.telegram.supergroup("Team", on.ann)
        address = on.address(team.id)
        await on.channel.send(address, on.outgoing("first"))
        mark = on.channel.mark(address)
        for number in range(lookup.PROBES_AHEAD + 3):
            on.ann.says(f"unheard {number}", chat=team)
        await lose_answer(on, address)
        result = await look(on, address, mark)
        assert result.ref == MessageRef(address=address, message=str(team.from_bot[-1].id))


async def test_a_too_large_gap_leaves_the_outcome_unknown() -> None:
    """Each step of a lookup is a call of the account's budget, so useless ones are left out."""
    async with ann_chat() as (on, _, ann):
        on.telegram.skip_ids(lookup.MAX_PROBES)
        mark = await lose_answer(on, ann)
        new = await on.channel.send(ann, on.outgoing("hello"))
        with pytest.raises(DeliveryUnknown):
            await lookup_to_the_end(on.channel, ann, on.outgoing("hello"), mark, before=new.message)
        assert on.telegram.called("editMessageText") == []


async def test_without_a_bound_the_lookup_uses_its_full_budget() -> None:
    """The message is probably near the first one of others (P1)."""
    async with ann_chat() as (on, _, ann):
        on.telegram.skip_ids(lookup.MAX_PROBES)
        mark = await lose_answer(on, ann)
        await on.channel.send(on.address(on.telegram.person("Bob").id), on.outgoing("hi"))
        with pytest.raises(DeliveryUnknown):
            await lookup_to_the_end(on.channel, ann, on.outgoing("hello"), mark)
        assert len(on.telegram.called("editMessageText")) == lookup.MAX_PROBES


async def test_a_message_delivered_after_the_lookup_is_found_before_the_repeat() -> None:
    """Numbers that were not yet given at the first lookup are looked at again (P1)."""
    async with ann_chat() as (on, _, address):
        mark = on.channel.mark(address)
        result = await look(on, address, mark)
        await lose_answer(on, address)  # delivered only now
        new = await on.channel.send(address, on.outgoing("hello"))
        result = await look(on, address, result.since, before=new.message)
        assert result.ref is not None
        assert int(result.ref.message) == int(new.message) - 1


async def test_a_later_lookup_can_start_from_the_end_of_the_first() -> None:
    """By a process without memory; other people wrote in between (P1)."""
    async with ann_chat() as (on, chat, address):
        bob = on.address(on.telegram.person("Bob").id)
        mark = on.channel.mark(address)
        for number in range(3 * lookup.PROBES_AHEAD):
            await on.channel.send(bob, on.outgoing(str(number)))
        result = await look(on, address, mark)
        await lose_answer(on, address)
        again = on.restarted()
        result = await look(again, address, result.since)
        await again.channel.aclose()
        assert result.ref == MessageRef(address=address, message=str(chat.from_bot[-1].id))


@pytest.mark.parametrize("is_new", [False, True])
async def test_numbers_given_meanwhile_do_not_extend_the_lookup(is_new: bool) -> None:
    """A busy account's numbers would outrun the lookup, and the chat would wait for all of them
    (P9)."""
    async with ann_chat() as (on, _, ann):
        bob = on.address(on.telegram.person("Bob").id)
        mark = on.channel.mark(ann)
        on.telegram.will("sendMessage", Lose(carried_out=False))
        await unknown(on, ann)
        by = on.restarted() if is_new else on
        result = LookupResult(since=mark, is_over=False)
        while not result.is_over:
            for number in range(2):
                await by.channel.send(bob, by.outgoing(str(number)))
            result = await by.channel.lookup(
                ann, on.outgoing("hello"), since=result.since, apart=NONE, before=""
            )
        assert result.ref is None
        assert len(on.telegram.called("editMessageText")) <= lookup.PROBES_AHEAD
        if is_new:
            await by.channel.aclose()


@asynccontextmanager
async def ann_chat(**settings: object) -> AsyncGenerator[tuple[Stage, Chat, Address]]:
    """Ann's chat, with a first message of the bot, so that a number is known."""
    async with stage(**settings) as on:
        address = on.to_ann
        await on.channel.send(address, on.outgoing("first"))
        yield on, on.ann.chat, address


async def lose_answer(on: Stage, to: Address, text: str = "hello") -> str:
    """Send a message whose answer is lost; return the mark from before."""
    mark = on.channel.mark(to)
    on.telegram.will("sendMessage", Lose(carried_out=True))
    with pytest.raises(DeliveryUnknown):
        await on.channel.send(to, on.outgoing(text))
    return mark


async def look(on: Stage, to: Address, mark: str, before: str = "") -> LookupResult:
    return await lookup_to_the_end(on.channel, to, on.outgoing("hello"), mark, before=before)


async def unknown(on: Stage, to: Address) -> None:
    with pytest.raises(DeliveryUnknown):
        await on.channel.send(to, on.outgoing("hello"))
