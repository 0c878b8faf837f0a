"""A message whose answer was lost is found, or known not to stand, or said to be unknown."""

import asyncio

import pytest

from channels.telegram import sending as sending_room
from channels.telegram.emulator import BadGateway, Hang, Lose, TooMany
from tests.contract.channel_suite import Desk, receiving
from tests.contract.channel_words import CARD
from tests.unit.channels.telegram.stage import Stage, stage
from zeroclaw import Address, ChannelUnavailable, DeliveryUnknown

# All open real sockets.
pytestmark = pytest.mark.slow

CARRIED_OUT = [BadGateway(carried_out=True), Lose(carried_out=True)]
NOT_CARRIED_OUT = [BadGateway(), Lose(carried_out=False)]


async def begun(on: Stage) -> int:
    """Let Ann's chat begin with a message of the bot, so that an id is known."""
    ann = on.telegram.person("Ann")
    await on.channel.send(on.place(ann.id), on.outgoing("first"))
    return ann.id


@pytest.mark.parametrize("fault", CARRIED_OUT, ids=repr)
async def test_one_that_stands_is_found(fault: BadGateway | Lose) -> None:
    """Others wrote meanwhile, in this chat and elsewhere; nothing is sent again (P1)."""
    async with stage() as on:
        chat = on.telegram.account.chats[await begun(on)]
        on.telegram.skip_ids(2)
        on.telegram.will("sendMessage", fault)
        ref = await on.channel.send(on.place(chat.id), on.outgoing("*hello*"))
        assert chat.texts == ["first", "hello"]
        assert ref.message == str(chat.from_bot[-1].id)
        assert len(chat.from_bot[-1].versions) == 1
        await on.channel.edit(ref, on.outgoing("bye"))
        assert chat.texts == ["first", "bye"]


@pytest.mark.parametrize("fault", NOT_CARRIED_OUT, ids=repr)
async def test_one_that_does_not_stand_may_be_sent_again(fault: BadGateway | Lose) -> None:
    async with stage() as on:
        chat = on.telegram.account.chats[await begun(on)]
        on.telegram.will("sendMessage", fault)
        with pytest.raises(ChannelUnavailable, match="did not arrive"):
            await on.channel.send(on.place(chat.id), on.outgoing("hello"))
        assert chat.texts == ["first"]


async def test_a_lost_card_is_found_with_its_buttons() -> None:
    async with stage() as on:
        chat = on.telegram.account.chats[await begun(on)]
        on.telegram.will("sendMessage", Lose(carried_out=True))
        ref = await on.channel.ask(on.place(chat.id), CARD)
        assert ref.message == str(chat.from_bot[-1].id)
        assert len(chat.from_bot) == 2


async def test_what_people_write_counts_as_known() -> None:
    """Their newer messages are no place to look at."""
    desk = Desk()
    async with stage() as on:
        ann = on.telegram.person("Ann")
        async with receiving(on.channel, desk.admit):
            await on.telegram.confirmed(ann.says("hi"))
            on.telegram.will("sendMessage", Lose(carried_out=True))
            ref = await on.channel.send(on.place(ann.id), on.outgoing("hello"))
            assert [call.message for call in on.telegram.called("editMessageText")] == [
                int(ref.message)
            ]


@pytest.mark.parametrize("is_super", [True, False])
async def test_groups_are_counted_as_telegram_counts_them(is_super: bool) -> None:
    """A supergroup has its own counter; a basic group shares that of private chats."""
    async with stage() as on:
        ann = on.telegram.person("Ann")
        open_group = on.telegram.supergroup if is_super else on.telegram.group
        team = open_group("Team", ann)
        await on.channel.send(on.place(team.id), on.outgoing("first"))
        for _ in range(4):
            await on.channel.send(on.place(ann.id), on.outgoing("elsewhere"))
        on.telegram.will("sendMessage", Lose(carried_out=True))
        await on.channel.send(on.place(team.id), on.outgoing("hello"))
        assert team.texts == ["first", "hello"]


async def test_where_too_much_lies_between_it_stays_unknown() -> None:
    """Each look is a call, and the account has others to make."""
    async with stage() as on:
        ann = on.place(await begun(on))
        bob = on.place(on.telegram.person("Bob").id)
        hang = Hang(carried_out=True)
        on.telegram.will("sendMessage", hang, chat=on.telegram.account.chats[int(ann.chat)])
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(unknown(on, ann))
            await hang.reached()
            for number in range(sending_room.MOST_LOOKS):
                await on.channel.send(bob, on.outgoing(str(number)))
            on.telegram.cut()
            await sending
        assert on.telegram.called("editMessageText") == []


async def unknown(on: Stage, place: Address) -> None:
    with pytest.raises(DeliveryUnknown):
        await on.channel.send(place, on.outgoing("hello"))


async def test_where_nothing_is_known_it_stays_unknown() -> None:
    """Then the outbox sends it again, and says that it may be a repeat."""
    async with stage() as on:
        ann = on.telegram.person("Ann")
        on.telegram.will("sendMessage", Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await on.channel.send(on.place(ann.id), on.outgoing("hello"))
        assert on.telegram.called("editMessageText") == []


async def test_a_look_that_is_refused_leaves_it_unknown() -> None:
    async with stage() as on:
        chat = on.telegram.account.chats[await begun(on)]
        on.telegram.will("sendMessage", Lose(carried_out=True))
        on.telegram.will("editMessageText", TooMany(retry_after_s=9))
        with pytest.raises(DeliveryUnknown):
            await on.channel.send(on.place(chat.id), on.outgoing("hello"))


async def test_looking_can_be_switched_off() -> None:
    async with stage(uncertain="resend") as on:
        chat = on.telegram.account.chats[await begun(on)]
        on.telegram.will("sendMessage", Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await on.channel.send(on.place(chat.id), on.outgoing("hello"))
        assert on.telegram.called("editMessageText") == []
