"""Gateway events are decoded, and no JSON of any shape raises."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels._remote.fields import Json, number, objects, parse_json, text
from channels.discord import cards, decode
from channels.discord.decode import Bot, Interaction, Skipped
from channels.discord.snowflakes import is_snowflake
from zeroclaw import (
    Address,
    ApprovalId,
    Attachment,
    Command,
    Deleted,
    Edited,
    Envelope,
    MessageRef,
    Position,
    Pressed,
    Said,
    Sender,
    replace,
)

ME = Bot(channel="discord", id="99")
ALL = Bot(channel="discord", id="99", servers="all")
OFF = Bot(channel="discord", id="99", servers="off")
ONE = Bot(channel="discord", id="99", channels=frozenset({"20"}))
ANN = {"id": "7", "username": "ann", "global_name": "Ann [the] first"}
BOT = {"id": "99", "username": "zero", "bot": True}
DIRECT = Address(channel="discord", account="99", chat="@7", direct=True)
SERVER = Address(channel="discord", account="99", chat="20")


def message(**fields: object) -> Json:
    whole: Json = {"id": "1", "channel_id": "10", "author": ANN, "type": 0, "content": "hello"}
    return {**whole, **fields}


def in_server(**fields: object) -> Json:
    return message(**{"channel_id": "20", "guild_id": "3", **fields})


def envelope(event: Json, me: Bot = ME) -> Envelope:
    result = decode.message(event, me, {"21": "20"})
    assert isinstance(result, Envelope)
    return result


def said_body(event: Json, me: Bot = ME) -> Said:
    body = envelope(event, me).body
    assert isinstance(body, Said)
    return body


def test_a_direct_message_is_whole() -> None:
    assert envelope(message(timestamp="2026-01-01T12:00:00+00:00")) == Envelope(
        address=DIRECT,
        sender=Sender(id="7", verified=True, display="Ann (the) first"),
        dedup=("message/10/1",),
        body=Said(text="hello"),
        message="1",
        sent_at=datetime(2026, 1, 1, 12, tzinfo=UTC),
        position=Position(scope="@7", cursor="10/1"),
    )


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (message(author=BOT), "by a bot or without an author"),
        (message(author={**ANN, "system": True}), "by a bot or without an author"),
        (message(id="x"), "by a bot or without an author"),
        (message(channel_id=None), "by a bot or without an author"),
        (message(webhook_id="5"), "not written by a person"),
        (message(type=7), "not written by a person"),
        (message(content=" "), "without text or files"),
        (in_server(), "in a server, not for the bot"),
    ],
)
def test_messages_not_meant_for_the_bot_are_skipped(event: Json, reason: str) -> None:
    """The author can't be forged: Discord sets it, and marks webhooks and bots (P4)."""
    assert decode.message(event, ME, {}) == Skipped(reason=reason)


def test_in_servers_mentions_replies_and_open_channels_are_decoded() -> None:
    """So are threads of such a channel; nothing is with servers off."""
    called = in_server(mentions=[BOT], content="<@99>, hello")
    answered = in_server(type=19, referenced_message={"author": BOT, "content": "x"})
    assert envelope(called).address == SERVER
    assert said_body(called).text == "hello"
    assert said_body(answered).text == "[in reply to what you wrote:]\n> x\n\nhello"
    assert said_body(answered).own == "hello"
    assert said_body(in_server(), ALL).text == "hello"
    assert said_body(in_server(), ONE).text == "hello"
    assert said_body(in_server(channel_id="21"), ONE).text == "hello"
    assert decode.message(called, OFF, {}) == Skipped(reason="in a server")


def test_a_mention_opens_a_thread_if_configured() -> None:
    """Later messages there need no mention, and a thread of the channel is a chat, too."""
    threads = replace(ME, threads=True)
    called = in_server(mentions=[BOT], content="<@99>, hello")
    opened = envelope(called, threads)
    assert opened.address == replace(SERVER, thread="1")
    assert opened.position == Position(scope="20", cursor="20/1")
    in_thread = in_server(id="2", channel_id="21")
    assert decode.message(in_thread, threads, {"21": "20"}) == Skipped(
        reason="in a server, not for the bot"
    )
    event = decode.message(in_thread, threads, {"21": "20"}, read={"21"})
    assert isinstance(event, Envelope)
    assert event.address == replace(SERVER, thread="21")
    assert event.position == Position(scope="21", cursor="21/2")
    changed = decode.edited({**called, "edited_timestamp": "2026-01-01T12:00:00"}, threads, {})
    deletion = decode.deleted(
        {"id": "2", "channel_id": "21", "guild_id": "3"}, threads, "7", {"21": "20"}
    )
    assert isinstance(changed, Envelope)
    assert isinstance(deletion, Envelope)
    assert changed.address == replace(SERVER, thread="1")
    assert deletion.address == replace(SERVER, thread="21")
    assert envelope(message(), threads).address == DIRECT


def test_a_mentioned_persons_name_is_not_the_writers_own_words() -> None:
    """Otherwise an address in it would count as one that the writer dictated (P3)."""
    eve = {"id": "8", "global_name": "Eve https://evil.example/"}
    mentioning = message(content="ask <@8> how it went", mentions=[eve])
    assert said_body(mentioning).text == "ask @Eve_https://evil.example/ how it went"


def test_names_replace_ids_and_a_bare_mention_stays() -> None:
    """Any display name becomes one line without brackets."""
    mentions = [BOT, {"id": "8", "username": "x" * 80}]
    assert said_body(message(content="<@99>", mentions=mentions)).text == "@zero"
    assert said_body(message(content="<@99> : :wq?", mentions=mentions)).text == ":wq?"
    assert said_body(message(content="hi <@!8> <@5>", mentions=mentions)).text == (
        f"hi @{'x' * 63}… <@5>"
    )
    assert decode.name_of({}) == "somebody"
    assert decode.name_of({"id": "4"}) == "4"


def test_a_slash_and_a_word_is_a_command_unless_forwarded() -> None:
    assert envelope(message(content="/Stop")).body == Command(name="stop")
    assert envelope(message(content="/tool a  b")).body == Command(name="tool", rest="a  b")
    snapshots: list[Json] = [{"message": {"content": "/stop"}}, {"message": {}}]
    passed_on = message(content="", message_reference={"type": 1}, message_snapshots=snapshots)
    assert envelope(passed_on).body == Said(text="[forwarded message]\n/stop", own="")
    assert envelope(passed_on).alone


def test_a_forwarded_message_is_complete() -> None:
    """Files and stickers go with it, and bots write embeds."""
    file = {"id": "5", "filename": "a.txt", "content_type": "text/plain", "size": 3}
    embeds = [{"title": "Build 7", "description": "failed"}, {"title": 7}]
    parts: list[Json] = [
        {"message": {"content": "", "embeds": embeds}},
        {
            "message": {
                "content": "look",
                "attachments": [file],
                "sticker_items": [{"name": "wave"}],
            }
        },
    ]
    event = message(content="", message_reference={"type": 1}, message_snapshots=parts)
    words = "[forwarded message]\nBuild 7\nfailed\nlook\n[sticker wave]"
    assert said_body(event) == Said(text=words, own="")
    assert [attachment.reference for attachment in envelope(event).attachments] == ["10/1/5"]
    answered = message(referenced_message={"author": BOT, "content": "", "embeds": embeds})
    assert "> Build 7\n> failed" in said_body(answered).text


def test_a_poll_is_its_question_and_its_options() -> None:
    options = [{"poll_media": {"text": "yes"}}, {"poll_media": {"text": "no]"}}, {}]
    event = message(content="", poll={"question": {"text": "Lunch?"}, "answers": options})
    assert said_body(event).text == "[poll: Lunch? Options: yes; no); ]"
    long = message(content="", poll={"question": {"text": "q" * 300}, "answers": options[:1]})
    assert said_body(long).text == f"[poll: {'q' * 300} Options: yes]"


def test_a_replied_message_is_quoted_shortly() -> None:
    event = message(type=19, referenced_message={"author": ANN, "content": "y" * 2000})
    assert said_body(event).text == (
        f'[in reply to what "Ann (the) first" wrote:]\n> {"y" * 1000}…\n\nhello'
    )
    assert said_body(message(referenced_message={"author": ANN, "content": ""})).text == "hello"


def test_files_are_referenced_by_their_message() -> None:
    """Their addresses end after a day."""
    files = [
        {"id": "5", "filename": "a.txt", "content_type": "text/plain", "size": 3},
        {"id": "6"},
        {"id": None},
    ]
    assert envelope(message(content="", attachments=files)).attachments == (
        Attachment(reference="10/1/5", name="a.txt", media_type="text/plain", size_bytes=3),
        Attachment(reference="10/1/6", name="file", media_type="application/octet-stream"),
    )
    stickers = message(content="", sticker_items=[{"name": "wave"}])
    assert said_body(stickers).text == "[sticker wave]"


def test_a_reply_brings_the_files_that_it_is_about() -> None:
    """They are apart from its own."""
    answered = {"id": "3", "channel_id": "10", "author": ANN, "attachments": [{"id": "5"}]}
    reply = envelope(message(attachments=[{"id": "6"}], referenced_message=answered))
    assert isinstance(reply.body, Said)
    references = [
        [attachment.reference for attachment in attachments]
        for attachments in (reply.attachments, reply.body.quoted)
    ]
    assert references == [["10/1/6"], ["10/3/5"]]


def test_an_edit_carries_its_version() -> None:
    event = message(edited_timestamp="2026-01-01T12:00:00", content="bye")
    result = decode.edited(event, ME, {})
    assert isinstance(result, Envelope)
    assert result.body == Edited(message="1", said=Said(text="bye"))
    assert result.dedup == ("edit/10/1/2026-01-01T12:00:00",)
    assert result.sent_at == datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("event", "me", "reason"),
    [
        (message(), ME, "an edit by a bot or without an author"),
        (message(author=BOT, edited_timestamp="1"), ME, "an edit by a bot or without an author"),
        (message(id="", edited_timestamp="1"), ME, "an edit by a bot or without an author"),
        (message(channel_id="", edited_timestamp="1"), ME, "an edit by a bot or without an author"),
        (message(content="", edited_timestamp="1"), ME, "an edit without text"),
        (in_server(edited_timestamp="1"), OFF, "an edit without text"),
    ],
)
def test_an_edit_without_text_is_skipped(event: Json, me: Bot, reason: str) -> None:
    assert decode.edited(event, me, {}) == Skipped(reason=reason)


WRITTEN = "2026-01-01T12:00:00+00:00"


def test_an_edit_that_mentions_the_bot_is_a_new_message_too() -> None:
    """Ingress admits it if it does not know the message; later messages may already be read."""
    called = in_server(mentions=[BOT], content="<@99>, hello", timestamp=WRITTEN)
    edited = {**called, "edited_timestamp": "2026-01-02T12:00:00+00:00"}
    at = datetime(2026, 1, 2, 12, tzinfo=UTC)
    assert decode.as_new(edited, ME, {}, ()) == replace(envelope(called), sent_at=at)
    read_chats = {str(called["channel_id"])}
    assert decode.as_new(edited, ME, {}, read_chats) == replace(
        envelope(called), position=None, sent_at=at
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"guild_id": None},
        {"mentions": []},
        {"edited_timestamp": "2026-01-02T12:00:01+00:00"},
        {"edited_timestamp": None},
        {"timestamp": "soon"},
        {"author": BOT},
    ],
)
def test_other_edits_are_no_new_message(fields: Json) -> None:
    """In private all messages are known; whether an older message was answered may be unknown."""
    called = in_server(mentions=[BOT], timestamp=WRITTEN, edited_timestamp=WRITTEN)
    assert decode.as_new(called, ME, {}, ()) is not None
    assert decode.as_new({**called, **fields}, ME, {}, ()) is None


def test_a_deletion_counts_as_the_writers() -> None:
    """Discord does not name the writer, so a deletion of an unknown message is skipped."""
    event = decode.deleted({"id": "1", "channel_id": "20", "guild_id": "3"}, ME, "7", {})
    assert isinstance(event, Envelope)
    assert event.body == Deleted(message="1")
    assert (event.address, event.sender) == (SERVER, Sender(id="7", verified=True))
    skipped = decode.deleted({"id": "1", "channel_id": "20"}, ME, "", {})
    assert skipped == Skipped(reason="a deletion of an unknown message")


def test_a_mention_of_the_bots_own_role_is_a_mention_of_the_bot() -> None:
    """Discord offers the role beside the name; a role that the bot shares with others does not
    count."""
    server = {
        "roles": [
            {"id": "5", "tags": {"bot_id": "99"}},
            {"id": "6"},
            {"id": "7", "tags": {"premium_subscriber": None}},
        ]
    }
    me = replace(ME, roles=decode.own_role(server, ME))
    assert me.roles == {"5"}
    called = in_server(mention_roles=["5"], content="<@&5>, hello <@&6>")
    assert said_body(called, me) == Said(text="hello <@&6>")
    for others in (["6"], "5", None):
        skipped = decode.message(in_server(mention_roles=others), me, {})
        assert skipped == Skipped(reason="in a server, not for the bot")


# --- interactions --------------------------------------------------------------------------------


def interaction_of(kind: int, data: Json, **fields: object) -> Interaction | None:
    whole: Json = {
        "id": "50",
        "token": "secret-token",
        "application_id": "98",
        "type": kind,
        "channel_id": "20",
        "guild_id": "3",
        "member": {"user": ANN},
        "message": {"id": "30"},
        "data": data,
        "locale": "de",
    }
    return decode.interaction({**whole, **fields}, ME, {})


def decoded(kind: int, data: Json, **fields: object) -> Interaction:
    interaction = interaction_of(kind, data, **fields)
    assert interaction is not None
    return interaction


def admitted(kind: int, data: Json, **fields: object) -> Envelope:
    """Return the envelope of an interaction that is more than an answer to its user."""
    found = decoded(kind, data, **fields).envelope
    assert found is not None
    return found


CARD = MessageRef(address=SERVER, message="30")


def test_a_press_carries_the_call_the_choice_and_the_card() -> None:
    interaction = decoded(3, {"custom_id": cards.data(ApprovalId("a1"), "once")})
    assert interaction.envelope is not None
    assert interaction.envelope.body == Pressed(approval=ApprovalId("a1"), choice="once", card=CARD)
    assert interaction.envelope.dedup == ("interaction/50",)
    assert (interaction.kind, interaction.language, interaction.application) == (
        "press",
        "de",
        "98",
    )
    assert "secret-token" not in repr(interaction)


def test_a_form_carries_the_reason_at_any_depth() -> None:
    form = cards.form("why?", "Reason", ApprovalId("a1"))["custom_id"]
    old = [{"components": [{"value": " too early "}]}]
    new = [{"component": {"value": "too early"}}]
    denied = Pressed(approval=ApprovalId("a1"), choice="deny", reason="too early", card=CARD)
    for rows in (old, new):
        assert admitted(5, {"custom_id": form, "components": rows}).body == denied
    assert (
        interaction_of(5, {"custom_id": form, "components": [{"component": {"value": " "}}]})
        is None
    )


def test_a_press_without_a_card_or_in_a_direct_chat_is_a_press_too() -> None:
    carried = {"custom_id": cards.data(ApprovalId("a1"), "deny")}
    found = admitted(3, carried, message=None, member=None, user=ANN, guild_id=None)
    assert found.address == DIRECT
    assert found.body == Pressed(approval=ApprovalId("a1"), choice="deny")


def test_slash_commands_are_commands_and_ask_is_a_message() -> None:
    asked = {"name": "ask", "options": [{"name": "question", "value": " what? "}]}
    used = {"name": "Tool", "type": 1, "options": [{"name": "arguments", "value": "x"}]}
    assert admitted(2, asked).body == Said(text="what?")
    assert admitted(2, used).body == Command(name="tool", rest="x")


def test_a_receipts_button_carries_the_receipt() -> None:
    interaction = decoded(3, {"custom_id": "zc:v:zc-receipt-1-abc"})
    assert (interaction.envelope, interaction.shows) == (None, "zc-receipt-1-abc")


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (3, {"custom_id": "another"}),
        (3, {"custom_id": "zc:a:x:a1"}),
        (3, {"custom_id": "zc:a:o:"}),
        (3, {"custom_id": "zc:v:`no`"}),
        (5, {"custom_id": "another"}),
        (2, {"name": "ask"}),
        (2, {"name": "stop", "type": 2}),
        (2, {}),
        (4, {}),
    ],
)
def test_foreign_interactions_are_ignored(kind: int, data: Json) -> None:
    assert interaction_of(kind, data) is None


def test_an_interaction_without_a_user_is_ignored() -> None:
    press = {"custom_id": cards.data(ApprovalId("a1"), "once")}
    lacking: list[Json] = [{"id": ""}, {"token": ""}, {"type": 4}, {"channel_id": ""}]
    assert [interaction_of(3, press, **fields) for fields in lacking] == [None] * 4
    assert interaction_of(3, press, member={"user": BOT}) is None


USED: Json = {"name": "ask", "options": [{"name": "question", "value": "what?"}]}
STOP: Json = {"name": "stop"}
ALONE: Json = {"member": None, "user": ANN, "guild_id": None}


@pytest.mark.parametrize(
    "where", [{**ALONE, "context": 2}, {"authorizing_integration_owners": {"1": "900"}}]
)
def test_a_command_where_the_bot_is_no_member_is_answered_only_to_its_user(where: Json) -> None:
    """A user who installed the app can use it with a friend or on a strange server; it used to
    be admitted."""
    interaction = decoded(2, USED, **where)
    assert (interaction.envelope, interaction.shows) == (None, decode.NOT_HERE.to("de"))
    press = {"custom_id": cards.data(ApprovalId("a1"), "once")}
    assert interaction_of(3, press, **where) is None
    assert interaction_of(4, USED, **where) is None


@pytest.mark.parametrize(
    "where", [{**ALONE, "context": 1}, {"authorizing_integration_owners": {"0": "100", "1": "900"}}]
)
def test_a_command_where_the_bot_is_a_member_is_decoded(where: Json) -> None:
    assert admitted(2, USED, **where).body == Said(text="what?")


SEE, SEND, SEND_IN_THREADS, ADMINISTRATOR = 1 << 10, 1 << 11, 1 << 38, 1 << 3


@pytest.mark.parametrize("may", [SEE, SEND, SEND_IN_THREADS])
def test_a_question_where_the_bot_may_not_write_is_refused(may: int) -> None:
    """People can use the commands in channels that are closed to the bot, where no answer
    appears."""
    interaction = decoded(2, USED, app_permissions=str(may))
    assert (interaction.envelope, interaction.shows) == (None, decode.NOT_HERE.to("de"))
    for kind, data in ((3, {"custom_id": cards.data(ApprovalId("a1"), "once")}), (2, STOP)):
        assert admitted(kind, data, app_permissions=str(may)).address == SERVER
    assert admitted(2, USED, **ALONE, context=0, app_permissions="0").address == DIRECT


def test_questions_in_ignored_servers_are_refused() -> None:
    raw: Json = {"id": "50", "token": "secret-token", "type": 2, "channel_id": "20", "data": USED}
    interaction = decode.interaction({**raw, "guild_id": "3", "member": {"user": ANN}}, OFF, {})
    assert interaction is not None
    assert (interaction.envelope, interaction.shows) == (None, decode.NOT_HERE.to("en"))


@pytest.mark.parametrize(
    ("parents", "may", "may_not"),
    [({}, SEND, SEND_IN_THREADS), ({"20": "19"}, SEND_IN_THREADS, SEND)],
)
def test_channels_and_threads_have_separate_permissions(
    parents: Mapping[str, str], may: int, may_not: int
) -> None:
    """An announcement channel denies the one, and allows everyone the other."""
    raw: Json = {"id": "50", "token": "secret-token", "type": 2, "channel_id": "20", "data": USED}
    raw |= {"guild_id": "3", "member": {"user": ANN}}
    for bits, is_taken in ((may, True), (may_not, False)):
        interaction = decode.interaction({**raw, "app_permissions": str(SEE | bits)}, ME, parents)
        assert interaction is not None
        assert (interaction.envelope is not None) is is_taken


@pytest.mark.parametrize("may", [SEE | SEND, ADMINISTRATOR, "many", None])
def test_a_question_where_the_bot_may_write_is_decoded(may: object) -> None:
    assert admitted(2, USED, app_permissions=str(may)).body == Said(text="what?")


# --- malformed JSON -------------------------------------------------------------------------------

KEYS = st.sampled_from(
    [
        "id",
        "channel_id",
        "guild_id",
        "author",
        "type",
        "content",
        "mentions",
        "attachments",
        "data",
        "token",
        "member",
        "user",
        "referenced_message",
        "message_snapshots",
        "custom_id",
        "options",
        "components",
        "edited_timestamp",
        "timestamp",
        "message",
        "name",
        "message_reference",
    ]
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)


@given(event=st.dictionaries(KEYS, ANY_JSON))
def test_no_event_breaks_decoding(event: dict[str, object]) -> None:
    """A malformed event is skipped, and later events are received (P9)."""
    whole: Json = {**message(), **event}
    for me in (ME, ALL):
        decode.message(whole, me, {})
        decode.edited({"edited_timestamp": "x", **whole}, me, {})
        called = {"guild_id": "3", "mentions": [BOT], "timestamp": WRITTEN}
        decode.as_new({**called, "edited_timestamp": WRITTEN, **whole}, me, {}, ())
        decode.deleted(whole, me, "7", {})
        decode.interaction({"type": 3, "token": "t", "user": ANN, **whole}, me, {})


def test_fields_of_wrong_types_are_ignored() -> None:
    assert parse_json(b"{") is None
    assert parse_json(b"[" * 100_000) is None
    assert parse_json(b'{"a": 1}') == {"a": 1}
    assert objects({"a": 1}, "a") == []
    assert text({"a": "\ud800x"}, "a") == "\ufffdx"
    assert text({"a": 1}, "a") == ""
    assert number({"a": 1.5}, "a") == 1.5
    assert number({"a": True}, "a") is None
    assert not is_snowflake("٣")
    assert not is_snowflake("1" * 21)


def test_a_cursor_holds_channel_and_message() -> None:
    assert decode.read_cursor(decode.cursor("10", "1")) == ("10", 1)
    assert decode.read_cursor("10") is None
    assert decode.read_cursor("10/x") is None
