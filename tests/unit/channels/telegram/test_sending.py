"""Sends of the adapter appear on Telegram, and each failure is distinguished."""

import pytest

from channels.telegram.emulator import BadGateway, BadMarkup, Lose, Refuse, TooMany
from channels.telegram.errors import NoMethod, TokenRefused
from tests.contract.channel_words import APPROVED, CARD, DENIED
from tests.unit.channels.telegram.stage import Stage, stage
from zeroclaw import (
    ChannelRejected,
    ChannelUnavailable,
    DeliveryUnknown,
    MessageRef,
    NotSupported,
    Outcome,
    OutgoingFile,
    RateLimited,
    ZeroclawError,
)
from zeroclaw.value import replace

# All open real sockets.
pytestmark = pytest.mark.slow


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (TooMany(retry_after_s=7), RateLimited),
        (BadGateway(), DeliveryUnknown),
        (BadGateway(carried_out=True), DeliveryUnknown),
        (Lose(carried_out=False), DeliveryUnknown),
        (Lose(carried_out=True), DeliveryUnknown),
        (Refuse(code=500, description="Internal Server Error"), DeliveryUnknown),
        (Refuse(code=403, description="Forbidden: bot was blocked by the user"), ChannelRejected),
        (Refuse(code=400, description="Bad Request: chat not found"), ChannelRejected),
        (Refuse(code=401, description="Unauthorized"), TokenRefused),
        (Refuse(code=404, description="Not Found"), NoMethod),
        (Refuse(code=404, description="Not Found: method not found"), NoMethod),
    ],
)
async def test_each_failure_of_a_send_is_distinguished(
    fault: TooMany | BadGateway | Lose | Refuse, kind: type[ZeroclawError]
) -> None:
    """No error claims that nothing arrived if something may have (P1)."""
    async with stage() as on:
        on.telegram.will("sendMessage", fault)
        with pytest.raises(ZeroclawError) as caught:
            await on.channel.send(on.to_ann, on.outgoing("hello"))
    assert type(caught.value) is kind
    assert on.telegram.token not in str(caught.value)


async def test_a_chat_of_another_platform_is_refused_by_the_send_and_not_by_its_mark() -> None:
    """A row may be older than the channel's kind; the outbox handles a send's refusal (P1)."""
    async with stage() as on:
        elsewhere = replace(on.to_ann, chat="c1")
        assert on.channel.mark(elsewhere) == ""
        with pytest.raises(ChannelRejected, match="no chat `c1`"):
            await on.channel.send(elsewhere, on.outgoing("hello"))


async def test_without_a_server_the_message_was_not_sent() -> None:
    async with stage() as on:
        await on.telegram.down()
        with pytest.raises(ChannelUnavailable):
            await on.channel.send(on.to_ann, on.outgoing("hello"))


async def test_an_edit_of_a_deleted_message_says_so() -> None:
    async with stage() as on:
        ref = await on.channel.send(on.to_ann, on.outgoing("hello"))
        await on.channel.delete(ref)
        await on.channel.delete(ref)
        with pytest.raises(ChannelRejected) as caught:
            await on.channel.edit(ref, on.outgoing("bye"))
    assert caught.value.gone


async def test_a_migrated_group_is_written_to_at_its_new_id() -> None:
    async with stage() as on:
        old = on.telegram.group("Team", on.ann)
        on.ann.upgrades(old)
        ref = await on.channel.send(on.address(old.id), on.outgoing("hello"))
        assert ref.address == on.address(old.upgraded_to)
        assert on.telegram.account.chats[old.upgraded_to].texts == ["hello"]


async def test_an_answer_in_a_migrated_group_replies_to_no_other_message() -> None:
    """Message numbers start again there."""
    async with stage() as on:
        old = on.telegram.group("Team", on.ann)
        on.ann.says("hello", chat=old)
        number = old.messages[-1].id
        on.ann.upgrades(old)
        new = on.telegram.account.chats[old.upgraded_to]
        on.ann.says("something else", chat=new)
        assert number in {message.id for message in new.messages}
        await on.channel.send(on.address(old.id), replace(on.outgoing("hi"), reply_to=str(number)))
        assert new.from_bot[-1].reply_to is None


async def test_a_reply_reaches_a_topic_that_bots_can_not_send_to() -> None:
    """Telegram no longer finds some old topics; people who write there do not notice."""
    async with stage() as on:
        forum, message, to = on.message_in_a_topic()
        on.telegram.will("sendMessage", Refuse(description="Bad Request: message thread not found"))
        ref = await on.channel.send(to, replace(on.outgoing("hi"), reply_to=str(message.id)))
        assert ref.address == to
        sent = forum.from_bot[-1]
        assert (sent.thread, sent.reply_to) == (message.thread, message)


@pytest.mark.parametrize("replies", [True, False])
async def test_a_message_for_a_deleted_topic_is_not_shown(*, replies: bool) -> None:
    """The group must not read the topic's messages."""
    async with stage() as on:
        forum, message, to = on.message_in_a_topic()
        message.deleted = True
        forum.topics.clear()
        reply_to = str(message.id) if replies else None
        with pytest.raises(ChannelRejected, match="not found"):
            await on.channel.send(to, replace(on.outgoing("hi"), reply_to=reply_to))
        assert not [message for message in forum.from_bot if message.text]


async def test_messages_of_a_migrated_group_can_no_longer_be_changed() -> None:
    """So the message is sent to the group's new id."""
    async with stage() as on:
        old = on.telegram.group("Team", on.ann)
        ref = await on.channel.send(on.address(old.id), on.outgoing("hello"))
        on.ann.upgrades(old)
        with pytest.raises(ChannelRejected) as edited:
            await on.channel.edit(ref, on.outgoing("bye"))
        with pytest.raises(ChannelRejected) as deleted:
            await on.channel.delete(ref)
        assert edited.value.gone
        assert deleted.value.gone


async def test_in_a_group_an_answer_is_a_reply() -> None:
    """In a private chat it is clear, and a quote with each answer would be noise."""
    async with stage() as on:
        team = on.telegram.supergroup("Team", on.ann)
        question = on.ann.says("@zero_bot hello", chat=team)
        number = str(team.messages[-1].id)
        answer = replace(on.outgoing("hi"), reply_to=number)
        await on.channel.send(on.address(team.id), answer)
        await on.channel.send(on.to_ann, answer)
        assert question.update.kind == "message"
        assert team.from_bot[-1].reply_to is team.messages[0]
        assert on.ann.chat.from_bot[-1].reply_to is None
        file = OutgoingFile(
            name="a", media_type="text/plain", content=b"a", key="f", reply_to=number
        )
        await on.channel.send_file(on.address(team.id), file)
        await on.channel.send_file(on.to_ann, file)
        assert team.from_bot[-1].reply_to is team.messages[0]
        assert on.ann.chat.from_bot[-1].reply_to is None


async def test_a_long_card_is_a_file_that_stays_when_it_ends() -> None:
    """The whole call can be read before it is answered, and after (P5)."""
    long = replace(CARD, calls=(replace(CARD.calls[0], arguments="x" * 5000), CARD.calls[1]))
    async with stage() as on:
        ref = await on.channel.ask(on.to_ann, long)
        (card,) = on.ann.chat.from_bot
        assert "document" in card.media
        assert len(card.buttons) == 6
        outcome = Outcome(card=long, endings=(DENIED, APPROVED))
        await on.channel.settle(ref, outcome)
        await on.channel.settle(ref, outcome)
        assert card.buttons == []
        assert "document" in card.media
        assert "denied by the operator" in card.text


@pytest.mark.parametrize(("previews", "is_off"), [(False, True), (True, False)])
async def test_links_have_no_previews_unless_configured(previews: bool, is_off: bool) -> None:
    async with stage(link_previews=previews) as on:
        await on.channel.send(on.to_ann, on.outgoing("https://example.org"))
        (call,) = on.telegram.called("sendMessage")
        assert call.parameters.json("link_preview_options") == {"is_disabled": is_off}


# --- files ---------------------------------------------------------------------------------------


# --- addresses ---------------------------------------------------------------------------------


@pytest.mark.parametrize("chat", ["", "x", "--1", "1x"])
async def test_an_invalid_chat_is_refused_before_any_call(chat: str) -> None:
    async with stage() as on:
        place = replace(on.address(1), chat=chat)
        with pytest.raises(ChannelRejected):
            await on.channel.send(place, on.outgoing("hello"))
        with pytest.raises(ChannelRejected):
            await on.channel.delete(MessageRef(address=on.address(1), message="x"))
        assert on.channel.direct_address("@ann") is None


# --- Telegram's own drafts ------------------------------------------------------------------------

METHOD = "sendMessageDraft"


def drafts(on: Stage) -> list[object]:
    """The numbers of the drafts that were shown, in order."""
    return [call.parameters.number("draft_id") for call in on.telegram.called(METHOD)]


async def test_the_same_key_has_the_same_number_in_every_process() -> None:
    """So a restart continues the same draft, and the next message has another."""
    async with stage() as on:
        place = on.to_ann
        await on.channel.preview(place, on.outgoing("one"))
        again = on.restarted()
        await again.channel.preview(place, again.outgoing("one two"))
        await again.channel.preview(place, replace(again.outgoing("next"), key="k2"))
        await again.channel.aclose()
        [first, second, other] = drafts(on)
        assert first == second != other
        assert 0 not in (first, other)


async def test_a_draft_is_shown_in_its_topic() -> None:
    async with stage() as on:
        topic = on.telegram.topic(on.ann.chat, "aside")
        place = replace(on.to_ann, thread=str(topic.id))
        await on.channel.preview(place, on.outgoing("*one*"))
        assert on.ann.chat.drafts[topic.id].texts == ("one",)
        assert 0 not in on.ann.chat.drafts


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Refuse(code=404, description="Not Found: method not found"), NotSupported),
        (Refuse(code=400, description="Bad Request: TEXTDRAFT_PEER_INVALID"), ChannelRejected),
        (BadMarkup(), ChannelRejected),
        (TooMany(retry_after_s=3), RateLimited),
    ],
    ids=repr,
)
async def test_a_refusal_says_what_to_do_next(
    fault: Refuse | BadMarkup | TooMany, expected: type[ZeroclawError]
) -> None:
    """Only a missing method means that there are no previews at all."""
    async with stage() as on:
        on.telegram.will(METHOD, fault)
        with pytest.raises(expected):
            await on.channel.preview(on.to_ann, on.outgoing("one"))


async def test_with_edited_drafts_the_method_is_not_called() -> None:
    """`drafts = "edited"`."""
    async with stage(drafts="edited") as on:
        with pytest.raises(NotSupported):
            await on.channel.preview(on.to_ann, on.outgoing("one"))
        assert on.telegram.called(METHOD) == []
