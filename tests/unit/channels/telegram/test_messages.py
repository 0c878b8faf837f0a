"""A table is sent as a rich message if the server supports it, and otherwise as text."""

import pytest

from channels.telegram.emulator import BadGateway, Lose, Refuse, TooMany
from channels.telegram.errors import TokenRefused
from tests.unit.channels.telegram.stage import Stage, stage
from zeroclaw import (
    ChannelRejected,
    DeliveryUnknown,
    LookupResult,
    MessageRef,
    NotSupported,
    Outgoing,
    RateLimited,
    ZeroclawError,
)
from zeroclaw.value import replace

# All open real sockets.
pytestmark = pytest.mark.slow

TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"
SHOWN = "a | b\n1 | 2"
SIGNS = "a | b\n--+--\n1 | 2"
SEND, DRAFT, EDIT = "sendRichMessage", "sendRichMessageDraft", "editMessageText"
NO_METHOD = Refuse(code=404, description="Not Found")
NOT_THIS = Refuse(code=400, description="Bad Request: RICH_MESSAGE_CONTENT_REQUIRED")


def table(on: Stage) -> Outgoing:
    return on.outgoing(TABLE)


async def first_message(on: Stage, text: str = "first") -> MessageRef:
    return await on.channel.send(on.to_ann, on.outgoing(text))


async def test_a_table_is_sent_edited_and_drafted_as_one() -> None:
    """S2-06."""
    async with stage() as on:
        await on.channel.preview(on.to_ann, table(on))
        assert on.telegram.draft(on.ann.chat) == SHOWN
        ref = await on.channel.send(on.to_ann, table(on))
        assert on.telegram.draft(on.ann.chat) is None
        assert on.ann.chat.texts == [SHOWN]
        await on.channel.edit(ref, on.outgoing(f"{TABLE}\n| 3 | 4 |"))
        await on.channel.edit(ref, on.outgoing(f"{TABLE}\n| 3 | 4 |"))
        assert on.ann.chat.from_bot[0].texts == [SHOWN, f"{SHOWN}\n3 | 4"]
        assert all(version.rich for version in on.ann.chat.from_bot[0].versions)


async def test_a_message_becomes_rich_once_it_has_a_table() -> None:
    async with stage() as on:
        ref = await first_message(on, "See:")
        await on.channel.edit(ref, on.outgoing(f"See:\n\n{TABLE}"))
        (message,) = on.ann.chat.from_bot
        assert [version.rich is not None for version in message.versions] == [False, True]
        assert on.telegram.called(SEND) == []


async def test_a_draft_and_a_message_become_rich_and_ordinary_again() -> None:
    """As the text requires: an apparent table may turn out to be none."""
    async with stage() as on:
        ref = await first_message(on)
        for text, is_rich in ((TABLE, True), (f"```\n{TABLE}", False), (TABLE, True)):
            await on.channel.preview(ref.address, on.outgoing(text))
            assert (on.ann.chat.drafts[0].rich is not None) is is_rich
            await on.channel.edit(ref, on.outgoing(text))
            assert (on.ann.chat.from_bot[0].versions[-1].rich is not None) is is_rich


async def test_a_rich_message_keeps_its_topic_and_its_reply() -> None:
    async with stage() as on:
        topic = on.telegram.topic(on.ann.chat, "aside")
        place = replace(on.to_ann, thread=str(topic.id))
        await on.channel.preview(place, table(on))
        assert on.ann.chat.drafts[topic.id].texts == (SHOWN,)
        await on.channel.send(place, table(on))
        assert on.ann.chat.from_bot[0].thread == topic.id
        team = on.telegram.supergroup("Team", on.ann)
        on.ann.says("@zero_bot hello", chat=team)
        number = str(team.messages[-1].id)
        await on.channel.send(on.address(team.id), replace(table(on), reply_to=number))
        assert team.from_bot[0].reply_to is team.messages[0]


async def test_a_migrated_group_is_written_to_at_its_new_id() -> None:
    async with stage() as on:
        old = on.telegram.group("Team", ann := on.telegram.person("Ann"))
        ann.upgrades(old)
        ref = await on.channel.send(on.address(old.id), table(on))
        assert ref.address == on.address(old.upgraded_to)


async def test_with_rich_disabled_no_rich_message_is_tried() -> None:
    """`rich = false`."""
    async with stage(rich=False) as on:
        ref = await first_message(on, TABLE)
        await on.channel.preview(ref.address, table(on))
        assert on.ann.chat.texts == [SIGNS]
        assert on.telegram.called(SEND, DRAFT) == []


async def test_plain_text_is_plain() -> None:
    async with stage() as on:
        await on.channel.send(on.to_ann, replace(table(on), plain=True))
        assert on.ann.chat.texts == [SIGNS]


# --- a server that does not know them ----------------------------------------------------------------


@pytest.mark.parametrize("how", ["without", "refused"])
@pytest.mark.parametrize("first", ["send", "preview"])
async def test_an_older_server_is_tried_once(how: str, first: str) -> None:
    """The message is shown at once; all later ones are sent the ordinary way. S2-06."""
    async with stage() as on:
        if how == "without":
            on.telegram.without(SEND, DRAFT)
        else:
            on.telegram.will(SEND, NO_METHOD, times=None)
            on.telegram.will(DRAFT, NO_METHOD, times=None)
        if first == "preview":
            await on.channel.preview(on.to_ann, table(on))
            assert on.telegram.draft(on.ann.chat) == SIGNS
        for _ in range(2):
            await on.channel.preview(on.to_ann, table(on))
            await on.channel.edit(
                await on.channel.send(on.to_ann, table(on)), on.outgoing("# T\n" + TABLE)
            )
        assert len(on.ann.chat.from_bot) == 2
        assert len(on.telegram.called(SEND, DRAFT)) == 1
        assert not any(call.parameters.has("rich_message") for call in on.telegram.called(EDIT))


async def test_an_older_server_refuses_a_rich_edit() -> None:
    """It refuses the edit, since it finds no text in it."""
    async with stage() as on:
        ref = await first_message(on)
        on.telegram.without(SEND, DRAFT)
        await on.channel.edit(ref, table(on))
        assert on.ann.chat.texts == [SIGNS]


async def test_a_server_without_any_drafts_says_so_all_the_same() -> None:
    """Both methods are disabled; the answer is then a message that is edited."""
    async with stage() as on:
        on.telegram.without(SEND, DRAFT, "sendMessageDraft")
        with pytest.raises(NotSupported):
            await on.channel.preview(on.to_ann, table(on))


# --- one that it does not take ------------------------------------------------------------------------


async def test_a_refused_rich_form_is_replaced_and_the_next_one_is_tried() -> None:
    """S2-06."""
    async with stage() as on:
        on.telegram.will(SEND, NOT_THIS)
        await on.channel.send(on.to_ann, table(on))
        await on.channel.send(on.to_ann, table(on))
        assert on.ann.chat.texts == [SIGNS, SHOWN]


@pytest.mark.parametrize(
    "text",
    [
        "|a" * 21 + "|\n" + "|-" * 21 + "|",
        "| a |\n|---|\n" + "| b |\n" * 500,
        "> " * 20 + "a\n\n" + TABLE,
    ],
    ids=["columns", "blocks", "levels"],
)
async def test_a_text_beyond_the_limits_of_a_rich_message_is_sent_in_the_ordinary_form(
    text: str,
) -> None:
    """Only the server knows its limits, and its refusal costs nothing but a call."""
    async with stage() as on:
        await on.channel.send(on.to_ann, on.outgoing(text))
        assert on.ann.chat.texts == [on.channel.render(text).plain]
        assert not on.ann.chat.from_bot[0].versions[-1].rich


async def test_a_growing_message_does_not_retry_a_refused_form() -> None:
    """Otherwise each of its edits would be two calls."""
    async with stage() as on:
        ref = await first_message(on)
        on.telegram.will(DRAFT, NOT_THIS, times=None)
        on.telegram.will(EDIT, NOT_THIS)
        for _ in range(3):
            await on.channel.preview(ref.address, table(on))
            await on.channel.edit(ref, table(on))
        assert len(on.telegram.called(DRAFT)) == 1
        rich = [call for call in on.telegram.called(EDIT) if call.parameters.has("rich_message")]
        assert len(rich) == 1
        await on.channel.preview(ref.address, replace(table(on), key="k2"))
        assert len(on.telegram.called(DRAFT)) == 2


async def test_if_both_forms_are_refused_the_last_refusal_counts() -> None:
    """Unreadable markup is followed by plain text."""
    markup = Refuse(code=400, description="Bad Request: can't parse entities: no")
    async with stage() as on:
        on.telegram.will(SEND, NOT_THIS)
        on.telegram.will("sendMessage", markup)
        with pytest.raises(ChannelRejected) as caught:
            await on.channel.send(on.to_ann, table(on))
        assert caught.value.markup


async def test_an_edit_of_a_deleted_message_is_not_made_twice() -> None:
    async with stage() as on:
        ref = await first_message(on)
        await on.channel.delete(ref)
        with pytest.raises(ChannelRejected) as caught:
            await on.channel.edit(ref, table(on))
        assert caught.value.gone
        assert len(on.telegram.called(EDIT)) == 1


# --- what may have arrived ----------------------------------------------------------------------------


async def shown(on: Stage, method: str, ref: MessageRef) -> None:
    match method:
        case "sendRichMessage":
            await on.channel.send(ref.address, table(on))
        case "sendRichMessageDraft":
            await on.channel.preview(ref.address, table(on))
        case _:
            await on.channel.edit(ref, table(on))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Refuse(code=401, description="Unauthorized"), TokenRefused),
        (TooMany(retry_after_s=7), RateLimited),
        (BadGateway(carried_out=True), DeliveryUnknown),
        (Lose(carried_out=False), DeliveryUnknown),
        (Lose(carried_out=True), DeliveryUnknown),
        (Refuse(code=500, description="Internal Server Error"), DeliveryUnknown),
    ],
    ids=repr,
)
@pytest.mark.parametrize("method", [SEND, DRAFT, EDIT])
async def test_a_lost_message_is_not_repeated_in_another_form(
    method: str, fault: TooMany | BadGateway | Lose | Refuse, kind: type[ZeroclawError]
) -> None:
    """The next step is decided as for every lost answer (P1)."""
    async with stage() as on:
        ref = await first_message(on)
        before = len(on.telegram.calls)
        on.telegram.will(method, fault)
        with pytest.raises(ZeroclawError) as caught:
            await shown(on, method, ref)
        assert type(caught.value) is kind
        assert len(on.telegram.calls) == before + 1
        await shown(on, method, ref)
        assert on.telegram.calls[-1].parameters.has("rich_message")


async def lookup_result(on: Stage, ref: MessageRef, since: str) -> LookupResult:
    result = LookupResult(since=since, is_over=False)
    while not result.is_over:
        result = await on.channel.lookup(
            ref.address, table(on), since=result.since, apart=frozenset()
        )
    return result


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_lost_rich_message_is_found_by_its_number(restarted: bool) -> None:
    """The lookup changes nothing visible. P1."""
    async with stage() as on:
        ref = await first_message(on)
        mark = on.channel.mark(ref.address)
        on.telegram.will(SEND, Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await on.channel.send(ref.address, table(on))
        stage_now = on.restarted() if restarted else on
        result = await lookup_result(stage_now, ref, mark)
        if restarted:
            await stage_now.channel.aclose()
        assert result.ref is not None
        assert result.ref.message == str(on.ann.chat.from_bot[-1].id)
        assert len(on.ann.chat.from_bot[-1].versions) == 1


async def test_a_message_lost_in_the_ordinary_form_is_found_too() -> None:
    """Its rich form is refused again, or becomes the visible one. P1."""
    async with stage() as on:
        ref = await first_message(on)
        mark = on.channel.mark(ref.address)
        on.telegram.will(SEND, NOT_THIS)
        on.telegram.will("sendMessage", Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await on.channel.send(ref.address, table(on))
        on.telegram.will(EDIT, NOT_THIS)
        result = await lookup_result(on, ref, mark)
        assert result.ref is not None
        assert on.ann.chat.from_bot[-1].texts == [SIGNS]


async def test_an_undelivered_message_is_not_found() -> None:
    async with stage() as on:
        ref = await first_message(on)
        mark = on.channel.mark(ref.address)
        assert (await lookup_result(on, ref, mark)).ref is None
