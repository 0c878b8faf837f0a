"""What goes out by the adapter stands on Telegram, and each way to fail is told apart."""

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
async def test_each_way_that_a_send_can_fail_is_told_apart(
    fault: TooMany | BadGateway | Lose | Refuse, kind: type[ZeroclawError]
) -> None:
    """Nobody is told that nothing arrived where something may have (P1)."""
    async with stage() as on:
        ann = on.telegram.person("Ann")
        on.telegram.will("sendMessage", fault)
        with pytest.raises(ZeroclawError) as caught:
            await on.channel.send(on.address(ann.id), on.outgoing("hello"))
    assert type(caught.value) is kind
    assert on.telegram.token not in str(caught.value)


async def test_a_chat_of_another_platform_is_refused_by_the_send_and_not_by_its_mark() -> None:
    """A row may be older than the channel's kind; the outbox takes what a send refuses (P1)."""
    async with stage() as on:
        ann = on.telegram.person("Ann")
        elsewhere = replace(on.address(ann.id), chat="c1")
        assert on.channel.mark(elsewhere) == ""
        with pytest.raises(ChannelRejected, match="no chat `c1`"):
            await on.channel.send(elsewhere, on.outgoing("hello"))


async def test_where_nobody_answers_nothing_arrived() -> None:
    async with stage() as on:
        ann = on.telegram.person("Ann")
        await on.telegram.down()
        with pytest.raises(ChannelUnavailable):
            await on.channel.send(on.address(ann.id), on.outgoing("hello"))


async def test_an_edit_of_a_message_that_is_gone_says_so() -> None:
    async with stage() as on:
        ann = on.telegram.person("Ann")
        ref = await on.channel.send(on.address(ann.id), on.outgoing("hello"))
        await on.channel.delete(ref)
        await on.channel.delete(ref)
        with pytest.raises(ChannelRejected) as caught:
            await on.channel.edit(ref, on.outgoing("bye"))
    assert caught.value.gone


async def test_a_group_that_became_another_is_written_to_where_it_is_now() -> None:
    async with stage() as on:
        ann = on.telegram.person("Ann")
        old = on.telegram.group("Team", ann)
        ann.upgrades(old)
        ref = await on.channel.send(on.address(old.id), on.outgoing("hello"))
        assert ref.address == on.address(old.upgraded_to)
        assert on.telegram.account.chats[old.upgraded_to].texts == ["hello"]


async def test_an_answer_in_a_group_that_became_another_one_answers_no_other_message() -> None:
    """Numbers of messages begin anew there."""
    async with stage() as on:
        ann = on.telegram.person("Ann")
        old = on.telegram.group("Team", ann)
        ann.says("hello", chat=old)
        number = old.messages[-1].id
        ann.upgrades(old)
        new = on.telegram.account.chats[old.upgraded_to]
        ann.says("something else", chat=new)
        assert number in {message.id for message in new.messages}
        await on.channel.send(on.address(old.id), replace(on.outgoing("hi"), reply_to=str(number)))
        assert new.from_bot[-1].reply_to is None


async def test_a_reply_reaches_a_topic_that_bots_can_not_send_to() -> None:
    """Telegram finds some old topics no more; people who write there do not see that."""
    async with stage() as on:
        forum, asked, to = on.message_in_a_topic()
        on.telegram.will("sendMessage", Refuse(description="Bad Request: message thread not found"))
        ref = await on.channel.send(to, replace(on.outgoing("hi"), reply_to=str(asked.id)))
        assert ref.address == to
        sent = forum.from_bot[-1]
        assert (sent.thread, sent.reply_to) == (asked.thread, asked)


@pytest.mark.parametrize("replies", [True, False])
async def test_what_was_for_a_topic_that_was_deleted_is_shown_to_nobody(*, replies: bool) -> None:
    """Its group is not to read what was said there."""
    async with stage() as on:
        forum, asked, to = on.message_in_a_topic()
        asked.deleted = True
        forum.topics.clear()
        reply_to = str(asked.id) if replies else None
        with pytest.raises(ChannelRejected, match="not found"):
            await on.channel.send(to, replace(on.outgoing("hi"), reply_to=reply_to))
        assert not [message for message in forum.from_bot if message.text]


async def test_what_stood_in_a_group_that_became_another_can_not_be_changed_any_more() -> None:
    """So that what was to be shown there is sent to where the group is now."""
    async with stage() as on:
        ann = on.telegram.person("Ann")
        old = on.telegram.group("Team", ann)
        ref = await on.channel.send(on.address(old.id), on.outgoing("hello"))
        ann.upgrades(old)
        with pytest.raises(ChannelRejected) as edited:
            await on.channel.edit(ref, on.outgoing("bye"))
        with pytest.raises(ChannelRejected) as deleted:
            await on.channel.delete(ref)
        assert edited.value.gone
        assert deleted.value.gone


async def test_in_a_group_an_answer_shows_what_it_answers() -> None:
    """In private it is clear, and a quote under each answer would be noise."""
    async with stage() as on:
        ann = on.telegram.person("Ann")
        team = on.telegram.supergroup("Team", ann)
        asked = ann.says("@zero_bot hello", chat=team)
        number = str(team.messages[-1].id)
        answer = replace(on.outgoing("hi"), reply_to=number)
        await on.channel.send(on.address(team.id), answer)
        await on.channel.send(on.address(ann.id), answer)
        assert asked.update.kind == "message"
        assert team.from_bot[-1].reply_to is team.messages[0]
        assert ann.chat.from_bot[-1].reply_to is None
        file = OutgoingFile(
            name="a", media_type="text/plain", content=b"a", key="f", reply_to=number
        )
        await on.channel.send_file(on.address(team.id), file)
        await on.channel.send_file(on.address(ann.id), file)
        assert team.from_bot[-1].reply_to is team.messages[0]
        assert ann.chat.from_bot[-1].reply_to is None


async def test_a_long_card_is_a_file_that_stays_when_it_ends() -> None:
    """The whole call can be read before it is answered, and after (P5)."""
    long = replace(CARD, calls=(replace(CARD.calls[0], arguments="x" * 5000), CARD.calls[1]))
    async with stage() as on:
        ann = on.telegram.person("Ann")
        ref = await on.channel.ask(on.address(ann.id), long)
        (card,) = ann.chat.from_bot
        assert "document" in card.media
        assert len(card.buttons) == 6
        ends = Outcome(card=long, endings=(DENIED, APPROVED))
        await on.channel.settle(ref, ends)
        await on.channel.settle(ref, ends)
        assert card.buttons == []
        assert "document" in card.media
        assert "denied by the operator" in card.text


@pytest.mark.parametrize(("previews", "is_off"), [(False, True), (True, False)])
async def test_links_are_not_looked_behind_unless_it_is_asked_for(
    previews: bool, is_off: bool
) -> None:
    async with stage(link_previews=previews) as on:
        ann = on.telegram.person("Ann")
        await on.channel.send(on.address(ann.id), on.outgoing("https://example.org"))
        (call,) = on.telegram.called("sendMessage")
        assert call.parameters.json("link_preview_options") == {"is_disabled": is_off}


# --- files ---------------------------------------------------------------------------------------


# --- whose it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("chat", ["", "x", "--1", "1x"])
async def test_what_is_no_chat_is_refused_here(chat: str) -> None:
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
    """So a restart goes on in the draft of before, and the next message has another."""
    async with stage() as on:
        place = on.address(on.telegram.person("Ann").id)
        await on.channel.preview(place, on.outgoing("one"))
        again = on.restarted()
        await again.channel.preview(place, again.outgoing("one two"))
        await again.channel.preview(place, replace(again.outgoing("next"), key="k2"))
        await again.channel.aclose()
        [first, second, other] = drafts(on)
        assert first == second != other
        assert 0 not in (first, other)


async def test_it_is_shown_in_its_topic() -> None:
    async with stage() as on:
        ann = on.telegram.person("Ann")
        topic = on.telegram.topic(ann.chat, "aside")
        place = replace(on.address(ann.id), thread=str(topic.id))
        await on.channel.preview(place, on.outgoing("*one*"))
        assert ann.chat.drafts[topic.id].texts == ("one",)
        assert 0 not in ann.chat.drafts


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
    """Only a method that is not there means that there are no previews at all."""
    async with stage() as on:
        on.telegram.will(METHOD, fault)
        with pytest.raises(expected):
            await on.channel.preview(on.address(on.telegram.person("Ann").id), on.outgoing("one"))


async def test_where_it_is_not_wished_nothing_is_called() -> None:
    """`drafts = "edited"`."""
    async with stage(drafts="edited") as on:
        with pytest.raises(NotSupported):
            await on.channel.preview(on.address(on.telegram.person("Ann").id), on.outgoing("one"))
        assert on.telegram.called(METHOD) == []
