"""Sends happen once and harmlessly, and failed calls raise the right errors."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from discord import Permissions
from simcord.backend.models import Message, Overwrite
from simcord.enums import OverwriteType

from channels.discord import lookup
from channels.discord.emulator.server import Fault
from tests.contract.channel_words import CARD, lookup_to_the_end
from tests.contract.discord_harness import SETTINGS
from tests.unit.channels.discord.rig import Rig, bot_for_ann, rig_for_ann, rigged
from zeroclaw import (
    Address,
    Attachment,
    Channel,
    ChannelRejected,
    ChannelUnavailable,
    DeliveryUnknown,
    Ending,
    LookupResult,
    MessageRef,
    NotSupported,
    Outcome,
    Outgoing,
    OutgoingFile,
    RateLimited,
    Said,
    replace,
)

pytestmark = pytest.mark.slow

SEND = r"/channels/\d+/messages$"


def text(channel: Channel, words: str, key: str = "k1") -> Outgoing:
    return Outgoing(rendered=channel.render(words), key=key)


def server(rig: Rig, channel: int) -> Address:
    return Address(channel="discord", account=str(rig.discord.bot), chat=str(channel))


@asynccontextmanager
async def speaking(**settings: object) -> AsyncGenerator[tuple[Rig, int, Channel, Address]]:
    """A bot, and a channel of a server that it may write in."""
    async with rigged() as rig, rig.bot(SETTINGS.model_copy(update=settings)) as channel:
        general = rig.discord.channel("general")
        yield rig, general, channel, server(rig, general)


def last(rig: Rig, channel: int) -> Message:
    return rig.discord.from_bot(channel)[-1]


async def test_a_text_pings_no_one_and_shows_no_previews() -> None:
    """Whatever the model writes; in edits, captions and cards as well."""
    async with speaking() as (rig, general, channel, to):
        ann = rig.discord.person("ann")
        words = f"@everyone @here <@{ann.id}> <@&1> https://a.example"
        ref = await channel.send(to, text(channel, words))
        sent = last(rig, general)
        assert (sent.ping_user_ids, sent.mention_everyone, sent.flags & 4) == ([], False, 4)
        await channel.edit(ref, text(channel, f"{words} more"))
        sent = last(rig, general)
        assert (sent.ping_user_ids, sent.mention_everyone, sent.flags & 4) == ([], False, 4)
        card = replace(CARD, asked_by=words)
        await channel.ask(to, card)
        assert last(rig, general).ping_user_ids == []


async def test_link_previews_are_shown_if_configured() -> None:
    async with speaking(link_previews=True) as (rig, general, channel, to):
        await channel.send(to, text(channel, "https://a.example"))
        assert last(rig, general).flags & 4 == 0


async def test_in_a_server_an_answer_is_a_reply_and_in_a_direct_chat_not() -> None:
    async with speaking() as (rig, general, channel, to):
        ann = rig.discord.person("ann")
        question = ann.says(general, "hello")
        answer = replace(text(channel, "hi"), reply_to=str(question.id))
        await channel.send(to, answer)
        reference = last(rig, general).reference
        assert reference is not None
        assert reference["message_id"] == str(question.id)
        assert last(rig, general).ping_user_ids == []
        direct = channel.direct_address(str(ann.id))
        assert direct is not None
        await channel.send(direct, replace(answer, reply_to="5"))
        assert last(rig, ann.direct).reference is None


async def test_an_answer_is_no_reply_where_the_history_can_not_be_read() -> None:
    """A reply needs that permission (Permissions, READ_MESSAGE_HISTORY); plain text does not."""
    async with speaking() as (rig, general, channel, to):
        refusal = {
            "code": 160002,
            "message": "Cannot reply without permission to read message history",
        }
        rig.discord.will(Fault(method="POST", path=SEND, status=403, body=refusal))
        question = rig.discord.person("ann").says(general, "hello")
        await channel.send(to, replace(text(channel, "hi"), reply_to=str(question.id)))
        assert (last(rig, general).content, last(rig, general).reference) == ("hi", None)


async def test_a_send_that_is_repeated_within_minutes_shows_one_message() -> None:
    """The nonce is enforced. Another text under the same key is another message."""
    async with speaking() as (rig, general, channel, to):
        rig.discord.will(Fault(method="POST", path=SEND, carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await channel.send(to, text(channel, "hello"))
        await channel.send(to, text(channel, "hello"))
        assert len(rig.discord.from_bot(general)) == 1
        await channel.send(to, text(channel, "bye"))
        assert len(rig.discord.from_bot(general)) == 2


async def test_a_text_sent_to_several_chats_is_shown_in_each() -> None:
    """Such as a card with the same number for two approvers; a nonce is shared by all chats of a
    bot."""
    async with speaking() as (rig, general, channel, to):
        ann = rig.discord.person("ann")
        direct = channel.direct_address(str(ann.id))
        assert direct is not None
        await channel.send(to, text(channel, "hello"))
        await channel.send(direct, text(channel, "hello"))
        assert len(rig.discord.from_bot(general)) == len(rig.discord.from_bot(ann.direct)) == 1


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(method="POST", path=SEND, status=429, body={"retry_after": 2.5}), RateLimited),
        (Fault(method="POST", path=SEND, status=500, body={}), DeliveryUnknown),
        (Fault(method="POST", path=SEND, status=502), DeliveryUnknown),
        (Fault(method="POST", path=SEND), DeliveryUnknown),
        (Fault(method="POST", path=SEND, status=200, body=[]), DeliveryUnknown),
        (Fault(method="POST", path=SEND, status=401, body={"message": "no"}), ChannelUnavailable),
        (Fault(method="POST", path=SEND, status=404, body="lost"), ChannelUnavailable),
        (
            Fault(method="POST", path=SEND, status=400, body={"code": 50035, "message": "Invalid"}),
            ChannelRejected,
        ),
    ],
)
async def test_each_failure_is_raised_at_once_and_the_call_is_not_repeated(
    fault: Fault, kind: type[Exception]
) -> None:
    """The library would wait and retry by itself; here the pacing and the outbox decide."""
    async with speaking() as (rig, general, channel, to):
        rig.discord.will(fault)
        with pytest.raises(kind) as raised:
            await channel.send(to, text(channel, "hello"))
        assert rig.discord.token not in repr(raised.value)
        assert rig.discord.from_bot(general) == []
        await channel.send(to, text(channel, "hello"))
    posts = [path for method, path in rig.discord.calls if method == "POST"]
    assert len(posts) == 2


@pytest.mark.parametrize(
    "fault",
    [
        Fault(
            method="POST",
            path=SEND,
            status=429,
            body={"message": "You are being rate limited.", "retry_after": 7.25, "global": True},
            headers={"Retry-After": "8", "X-RateLimit-Global": "true"},
        ),
        # The proxy before Discord bans by address, and answers with its own page.
        Fault(
            method="POST",
            path=SEND,
            status=429,
            body=b"<!doctype html><title>Error 1015</title>",
            headers={"Retry-After": "7.25"},
        ),
    ],
    ids=["global", "of the proxy"],
)
async def test_a_wait_for_the_whole_account_is_passed_on_exactly(fault: Fault) -> None:
    """Meanwhile no other call is made in any chat: too many refusals lead to a ban. P6."""
    async with speaking() as (rig, general, channel, to):
        other = server(rig, rig.discord.channel("other"))
        rig.discord.will(fault)
        for place in (to, other):
            with pytest.raises(RateLimited) as raised:
                await channel.send(place, text(channel, "hello"))
            assert raised.value.retry_after_s == 7.25
        assert len([path for method, path in rig.discord.calls if method == "POST"]) == 1
        assert rig.discord.from_bot(general) == []
        await rig.clock.advance(7.25)
        await channel.send(other, text(channel, "hello"))


async def test_a_refusal_for_one_chat_delays_no_other() -> None:
    body = {"message": "You are being rate limited.", "retry_after": 7.25, "global": False}
    async with speaking() as (rig, _, channel, to):
        rig.discord.will(Fault(method="POST", path=SEND, status=429, body=body))
        with pytest.raises(RateLimited):
            await channel.send(to, text(channel, "hello"))
        await channel.send(server(rig, rig.discord.channel("other")), text(channel, "hello"))


async def test_an_announced_limit_is_awaited_before_discord_refuses() -> None:
    """Each kind of call of each channel has its own limit, named in the answers. P6."""
    async with rigged() as rig:
        general, other = rig.discord.channel("general"), rig.discord.channel("other")
        limits = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "4.5"}
        rig.discord.limits = [("POST", f"/channels/{general}/messages$", limits)]
        async with rig.bot() as channel:
            ref = await channel.send(server(rig, general), text(channel, "one"))
            await channel.edit(ref, text(channel, "one more"))
            await channel.send(server(rig, other), text(channel, "elsewhere"))
            calls = len(rig.discord.calls)
            with pytest.raises(RateLimited) as raised:
                await channel.send(server(rig, general), text(channel, "two"))
            assert (raised.value.retry_after_s, len(rig.discord.calls)) == (4.5, calls)
            await rig.clock.advance(4.5)
            rig.discord.limits = []
            await channel.send(server(rig, general), text(channel, "two"))
        assert [message.content for message in rig.discord.from_bot(general)] == ["one more", "two"]


async def test_a_deleted_message_is_reported_and_may_be_deleted_twice() -> None:
    async with speaking() as (_, _, channel, to):
        ref = await channel.send(to, text(channel, "hello"))
        await channel.delete(ref)
        await channel.delete(ref)
        with pytest.raises(ChannelRejected) as raised:
            await channel.edit(ref, text(channel, "bye"))
        assert raised.value.gone


async def test_another_writers_message_is_not_edited() -> None:
    async with speaking() as (rig, general, channel, to):
        ann = rig.discord.person("ann")
        theirs = ann.says(general, "hello")
        ref = MessageRef(address=to, message=str(theirs.id))
        with pytest.raises(ChannelRejected):
            await channel.edit(ref, text(channel, "bye"))
        assert theirs.content == "hello"


async def test_a_direct_chat_is_opened_once() -> None:
    """A person's direct chat can be opened by the bot, and is known again after a restart."""
    async with rig_for_ann() as (rig, ann, _):
        async with rig.bot() as channel:
            to = channel.direct_address(str(ann.id))
            assert to is not None
            await channel.send(to, text(channel, "one"))
            await channel.send(to, text(channel, "two", "k2"))
            ann.says(ann.direct, "hello")
            await rig.desk.holds(1)
        async with rig.bot() as channel:
            await channel.send(to, text(channel, "three", "k3"))
    opened = [path for _, path in rig.discord.calls if path == "/users/@me/channels"]
    assert len(opened) == 1
    assert len(rig.discord.from_bot(ann.direct)) == 3


async def test_a_failed_opening_of_a_direct_chat_leaves_no_message_in_doubt() -> None:
    """Nothing was sent yet, and opening a chat twice does no harm. P1."""
    async with rigged() as rig, rig.bot() as channel:
        ann = rig.discord.person("ann")
        to = channel.direct_address(str(ann.id))
        assert to is not None
        rig.discord.will(Fault(method="POST", path="/users/@me/channels$"))
        with pytest.raises(ChannelUnavailable):
            await channel.send(to, text(channel, "one"))
        await channel.send(to, text(channel, "one"))
        assert len(rig.discord.from_bot(ann.direct)) == 1


async def test_an_invalid_address_is_refused_before_any_call() -> None:
    """Only numeric ids are put into API addresses."""
    async with rigged() as rig, rig.bot() as channel:
        invalid = Address(channel="discord", account="1", chat="../users/@me")
        before = len(rig.discord.calls)
        with pytest.raises(ChannelRejected):
            await channel.send(invalid, text(channel, "hello"))
        with pytest.raises(ChannelRejected):
            await channel.delete(MessageRef(address=replace(invalid, chat="5"), message="x/y"))
        with pytest.raises(ChannelRejected):
            await channel.fetch(
                Attachment(reference="1/../3", name="a", media_type="b"), max_bytes=9
            )
        assert len(rig.discord.calls) == before
        assert channel.direct_address("ann") is None


async def test_a_file_and_a_long_card_are_found_again_and_settled() -> None:
    async with speaking() as (rig, general, channel, to):
        calls = tuple(replace(call, arguments="x" * 1500) for call in CARD.calls)
        card = replace(CARD, calls=calls)
        file = OutgoingFile(name='a"b.txt', media_type="text/plain", content=b"abc", key="f")
        mark = channel.mark(to)
        sent = await channel.send_file(to, file)
        card_ref = await channel.ask(to, card)
        assert (await lookup_to_the_end(channel, to, file, mark)).ref == sent
        assert (await lookup_to_the_end(channel, to, card, mark)).ref == card_ref
        other = replace(file, content=b"abcd")
        assert (await lookup_to_the_end(channel, to, other, mark)).ref is None
        assert (await lookup_to_the_end(channel, to, text(channel, ""), mark)).ref is None
        await channel.settle(card_ref, Outcome(card=card, endings=()))
        assert last(rig, general).attachments[0]["filename"] == "calls.txt"


async def test_a_lookup_reads_page_by_page_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    async with speaking() as (rig, general, channel, to):
        ann = rig.discord.person("ann")
        mark = channel.mark(to)
        for number in range(220):
            ann.says(general, f"message {number}")
        ref = await channel.send(to, text(channel, "hello"))
        assert (await lookup_to_the_end(channel, to, text(channel, "hello"), mark)).ref == ref
        monkeypatch.setattr(lookup, "MAX_PAGES", 2)
        with pytest.raises(DeliveryUnknown):
            await lookup_to_the_end(channel, to, text(channel, "hello"), mark)
        with pytest.raises(DeliveryUnknown):
            await lookup_to_the_end(channel, to, text(channel, "hello"), "")


async def test_an_unrecorded_draft_is_found_and_becomes_the_full_answer() -> None:
    """A killed process leaves a shorter draft; known drafts are left alone (P1, P6)."""
    async with speaking() as (rig, general, channel, to):
        known = await channel.send(to, text(channel, "known"))
        draft = await channel.send(to, text(channel, "hel", "k2"))
        full_text, apart = text(channel, "hello", "k3"), frozenset({known.message})
        result = await lookup_to_the_end(channel, to, full_text, "1", apart=apart)
        assert result.ref == draft
        assert [message.content for message in rig.discord.from_bot(general)] == ["known", "hello"]


@pytest.mark.parametrize(
    ("status", "code", "kind"), [(400, 50035, ChannelRejected), (500, 0, ChannelUnavailable)]
)
async def test_a_draft_that_can_not_be_changed_says_what_to_do(
    status: int, code: int, kind: type[Exception]
) -> None:
    async with speaking() as (rig, _, channel, to):
        await channel.send(to, text(channel, "hel"))
        body = {"code": code, "message": "no"}
        rig.discord.will(Fault(method="PATCH", path="/messages/", status=status, body=body))
        with pytest.raises(kind):
            await lookup_to_the_end(channel, to, text(channel, "hello", "k2"), "1")


async def test_a_card_in_an_archived_thread_shows_how_it_ended() -> None:
    """Discord refuses every change in such a thread, and the buttons would stay (P5)."""
    async with speaking() as (rig, general, channel, _):
        thread = rig.discord.thread(general, "aside")
        to = server(rig, thread)
        draft, card = await channel.send(to, text(channel, "hel")), await channel.ask(to, CARD)
        rig.discord.archive(thread)
        at = rig.clock.now()
        denied = tuple(
            Ending(approval=call.approval, how="denied", by="Olga", at=at) for call in CARD.calls
        )
        await channel.settle(card, Outcome(card=CARD, endings=denied))
        assert last(rig, thread).components == []
        rig.discord.archive(thread)
        await channel.delete(draft)
        assert [str(message.id) for message in rig.discord.from_bot(thread)] == [card.message]


async def test_a_card_in_a_thread_that_stays_closed_is_no_deleted_card() -> None:
    """A moderator locked the thread; operators are told that the card could not be changed."""
    async with speaking() as (rig, general, channel, _):
        thread = rig.discord.thread(general, "aside")
        card = await channel.ask(server(rig, thread), CARD)
        rig.discord.archive(thread)
        locked = {"code": 50013, "message": "Missing Permissions"}
        rig.discord.will(Fault(method="PATCH", path=r"/channels/\d+$", status=403, body=locked))
        with pytest.raises(ChannelRejected) as refused:
            await channel.settle(card, Outcome(card=CARD, endings=()))
        assert not refused.value.gone


async def test_a_shown_question_matches_nothing() -> None:
    """A question of `/ask` is shown in the chat as ours, and is no message of the outbox."""
    async with speaking() as (rig, general, channel, to):
        ann = rig.discord.person("ann")
        question = ann.uses(general, "ask", question="what?")
        await question.answered()
        assert (await lookup_to_the_end(channel, to, text(channel, "hello"), "1")).ref is None


async def test_a_failed_history_says_whether_to_look_again() -> None:
    async with speaking() as (rig, _, channel, to):
        outgoing = text(channel, "hello")
        rig.discord.will(Fault(method="GET", path=SEND, status=500, body={}))
        with pytest.raises(ChannelUnavailable):
            await lookup_to_the_end(channel, to, outgoing, "1")
        odd_ones: tuple[object, ...] = (b"<html>Welcome</html>", {"messages": []})
        for history in odd_ones:
            rig.discord.will(Fault(method="GET", path=SEND, status=200, body=history))
            with pytest.raises(ChannelUnavailable, match="can't be read"):
                await lookup_to_the_end(channel, to, outgoing, "1")
        body = {"code": 50001, "message": "Missing Access"}
        rig.discord.will(Fault(method="GET", path=SEND, status=403, body=body))
        with pytest.raises(ChannelRejected):
            await lookup_to_the_end(channel, to, outgoing, "1")
        body = {"code": 10003, "message": "Unknown Channel"}
        rig.discord.will(Fault(method="GET", path=SEND, status=404, body=body))
        assert (await lookup_to_the_end(channel, to, outgoing, "1")).ref is None


async def test_a_history_that_the_bot_may_not_read_does_not_prove_that_nothing_arrived() -> None:
    """Discord returns an empty history without the permission Read Message History (P1)."""
    async with speaking() as (rig, general, channel, to):
        mark, outgoing = channel.mark(to), text(channel, "hello")
        ref = await channel.send(to, outgoing)
        after = await channel.lookup(to, outgoing, since=ref.message, apart=frozenset())
        assert after == LookupResult(since=ref.message)
        denied = Overwrite(
            target_id=rig.discord.bot,
            type=OverwriteType.MEMBER,
            deny=Permissions.read_message_history.flag,
        )
        rig.discord.backend.channels[general].overwrites.append(denied)
        with pytest.raises(DeliveryUnknown):
            await channel.lookup(to, outgoing, since=mark, apart=frozenset())


async def test_an_html_page_as_an_answer_is_no_success() -> None:
    """A proxy may answer for Discord, and the outcome of the call is unknown."""
    async with speaking() as (rig, _, channel, to):
        ref = await channel.send(to, text(channel, "hel"))
        rig.discord.will(Fault(method="PATCH", path="", status=200, body=b"<html>Welcome</html>"))
        with pytest.raises(DeliveryUnknown):
            await channel.edit(ref, text(channel, "hello"))


async def test_with_hold_or_resend_there_is_no_lookup() -> None:
    async with speaking(uncertain="hold") as (_, _, channel, to):
        assert not channel.capabilities.may_repeat
        with pytest.raises(NotSupported):
            channel.mark(to)
        with pytest.raises(NotSupported):
            await channel.lookup(to, text(channel, "hello"), since="1", apart=frozenset())


async def test_a_deleted_file_and_a_failing_host_are_distinguished() -> None:
    async with bot_for_ann() as (rig, ann, _, channel):
        sent = ann.sends(ann.direct, "a.txt", b"abc", claimed_bytes=3)
        await rig.desk.holds(1)
        [file] = rig.desk.stored[0].attachments
        sent.attachments[0]["url"] = "ftp://a.example/a"
        with pytest.raises(ChannelRejected, match="no address"):
            await channel.fetch(file, max_bytes=9)
        sent.attachments[0]["url"] = "http://127.0.0.1:1/a"
        with pytest.raises(ChannelUnavailable):
            await channel.fetch(file, max_bytes=9)
        sent.attachments[0]["url"] = rig.discord.url.replace("/api/v10", "/files/none")
        with pytest.raises(ChannelRejected, match="no longer there"):
            await channel.fetch(file, max_bytes=9)
        rig.discord.will(Fault(method="GET", path="/messages/", status=200, body={}))
        with pytest.raises(ChannelUnavailable, match="can't be read"):
            await channel.fetch(file, max_bytes=9)
        sent.attachments.clear()
        with pytest.raises(ChannelRejected, match="no longer there"):
            await channel.fetch(file, max_bytes=9)


async def test_a_reply_brings_a_file_that_can_be_fetched() -> None:
    """The file belongs to the replied message."""
    async with bot_for_ann() as (rig, ann, _, channel):
        sent = ann.sends(ann.direct, "a.txt", b"abc", claimed_bytes=3)
        ann.says(ann.direct, "what is it?", reply_to=sent.id)
        await rig.desk.holds(2)
        body = rig.desk.stored[1].body
        assert isinstance(body, Said)
        [file] = body.quoted
        assert await channel.fetch(file, max_bytes=9) == b"abc"
