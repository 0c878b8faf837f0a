"""What is read in the gateway's events; whatever the JSON holds, nothing raises."""

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
    taken = decode.message(event, me, {"21": "20"})
    assert isinstance(taken, Envelope)
    return taken


def said(event: Json, me: Bot = ME) -> Said:
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
    ("event", "why"),
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
def test_what_no_person_said_to_the_bot_is_passed_over(event: Json, why: str) -> None:
    """A forged author can't be: Discord writes it, and webhooks and bots are told apart (P4)."""
    assert decode.message(event, ME, {}) == Skipped(reason=why)


def test_in_servers_a_mention_a_reply_and_an_open_channel_are_taken() -> None:
    """A thread of such a channel too; nothing at all where servers are off."""
    called = in_server(mentions=[BOT], content="<@99>, hello")
    answered = in_server(type=19, referenced_message={"author": BOT, "content": "x"})
    assert envelope(called).address == SERVER
    assert said(called).text == "hello"
    assert said(answered).text == "[in reply to what you wrote:]\n> x\n\nhello"
    assert said(answered).own == "hello"
    assert said(in_server(), ALL).text == "hello"
    assert said(in_server(), ONE).text == "hello"
    assert said(in_server(channel_id="21"), ONE).text == "hello"
    assert decode.message(called, OFF, {}) == Skipped(reason="in a server")


def test_a_mention_opens_a_thread_where_that_is_wanted() -> None:
    """What follows there needs no mention, and a thread of the channel is a place in it too."""
    threads = replace(ME, threads=True)
    called = in_server(mentions=[BOT], content="<@99>, hello")
    begun = envelope(called, threads)
    assert begun.address == replace(SERVER, thread="1")
    assert begun.position == Position(scope="20", cursor="20/1")
    within = in_server(id="2", channel_id="21")
    assert decode.message(within, threads, {"21": "20"}) == Skipped(
        reason="in a server, not for the bot"
    )
    taken = decode.message(within, threads, {"21": "20"}, read={"21"})
    assert isinstance(taken, Envelope)
    assert taken.address == replace(SERVER, thread="21")
    assert taken.position == Position(scope="21", cursor="21/2")
    changed = decode.edited({**called, "edited_timestamp": "2026-01-01T12:00:00"}, threads, {})
    gone = decode.deleted(
        {"id": "2", "channel_id": "21", "guild_id": "3"}, threads, "7", {"21": "20"}
    )
    assert isinstance(changed, Envelope)
    assert isinstance(gone, Envelope)
    assert changed.address == replace(SERVER, thread="1")
    assert gone.address == replace(SERVER, thread="21")
    assert envelope(message(), threads).address == DIRECT


def test_a_name_that_others_chose_is_no_word_of_who_mentions_them() -> None:
    """Else an address in it would count as one that the person dictated (P3)."""
    eve = {"id": "8", "global_name": "Eve https://evil.example/"}
    told = message(content="ask <@8> how it went", mentions=[eve])
    assert said(told).text == "ask @Eve_https://evil.example/ how it went"


def test_names_stand_in_place_of_ids_and_a_bare_call_stays() -> None:
    """A name is one line without brackets, whatever somebody calls themselves."""
    mentions = [BOT, {"id": "8", "username": "x" * 80}]
    assert said(message(content="<@99>", mentions=mentions)).text == "@zero"
    assert said(message(content="hi <@!8> <@5>", mentions=mentions)).text == (
        f"hi @{'x' * 63}… <@5>"
    )
    assert decode.name_of({}) == "somebody"
    assert decode.name_of({"id": "4"}) == "4"


def test_a_slash_and_a_word_is_a_command_unless_it_was_passed_on() -> None:
    assert envelope(message(content="/Stop")).body == Command(name="stop")
    assert envelope(message(content="/tool a  b")).body == Command(name="tool", rest="a  b")
    snapshots: list[Json] = [{"message": {"content": "/stop"}}, {"message": {}}]
    passed_on = message(content="", message_reference={"type": 1}, message_snapshots=snapshots)
    assert envelope(passed_on).body == Said(text="[forwarded message]\n/stop", own="")
    assert envelope(passed_on).alone


def test_what_is_forwarded_is_whole() -> None:
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
    assert said(event) == Said(text=words, own="")
    assert [attachment.reference for attachment in envelope(event).attachments] == ["10/1/5"]
    answered = message(referenced_message={"author": BOT, "content": "", "embeds": embeds})
    assert "> Build 7\n> failed" in said(answered).text


def test_a_poll_is_its_question_and_its_options() -> None:
    options = [{"poll_media": {"text": "yes"}}, {"poll_media": {"text": "no]"}}, {}]
    event = message(content="", poll={"question": {"text": "Lunch?"}, "answers": options})
    assert said(event).text == "[poll: Lunch? Options: yes; no); ]"
    long = message(content="", poll={"question": {"text": "q" * 300}, "answers": options[:1]})
    assert said(long).text == f"[poll: {'q' * 300} Options: yes]"


def test_what_is_answered_is_quoted_shortly() -> None:
    event = message(type=19, referenced_message={"author": ANN, "content": "y" * 2000})
    assert said(event).text == (
        f'[in reply to what "Ann (the) first" wrote:]\n> {"y" * 1000}…\n\nhello'
    )
    assert said(message(referenced_message={"author": ANN, "content": ""})).text == "hello"


def test_files_are_known_by_where_they_stand() -> None:
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
    assert said(stickers).text == "[sticker wave]"


def test_a_reply_brings_the_files_that_it_is_about() -> None:
    """Apart from those of its own."""
    answered = {"id": "3", "channel_id": "10", "author": ANN, "attachments": [{"id": "5"}]}
    taken = envelope(message(attachments=[{"id": "6"}], referenced_message=answered))
    assert isinstance(taken.body, Said)
    found = [[one.reference for one in of] for of in (taken.attachments, taken.body.quoted)]
    assert found == [["10/1/6"], ["10/3/5"]]


def test_an_edit_carries_its_version() -> None:
    event = message(edited_timestamp="2026-01-01T12:00:00", content="bye")
    taken = decode.edited(event, ME, {})
    assert isinstance(taken, Envelope)
    assert taken.body == Edited(message="1", said=Said(text="bye"))
    assert taken.dedup == ("edit/10/1/2026-01-01T12:00:00",)
    assert taken.sent_at == datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("event", "me", "why"),
    [
        (message(), ME, "an edit by a bot or without an author"),
        (message(author=BOT, edited_timestamp="1"), ME, "an edit by a bot or without an author"),
        (message(content="", edited_timestamp="1"), ME, "an edit without text"),
        (in_server(edited_timestamp="1"), OFF, "an edit without text"),
    ],
)
def test_an_edit_that_says_nothing_is_passed_over(event: Json, me: Bot, why: str) -> None:
    assert decode.edited(event, me, {}) == Skipped(reason=why)


WRITTEN = "2026-01-01T12:00:00+00:00"


def test_an_edit_that_mentions_the_bot_is_a_new_message_too() -> None:
    """For ingress, if it knows none such; what was written since may be read already."""
    called = in_server(mentions=[BOT], content="<@99>, hello", timestamp=WRITTEN)
    edited = {**called, "edited_timestamp": "2026-01-02T12:00:00+00:00"}
    at = datetime(2026, 1, 2, 12, tzinfo=UTC)
    assert decode.as_new(edited, ME, {}, ()) == replace(envelope(called), sent_at=at)
    read = {str(called["channel_id"])}
    assert decode.as_new(edited, ME, {}, read) == replace(
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
    """In private all is known; of what is older nobody may know whether it was answered."""
    called = in_server(mentions=[BOT], timestamp=WRITTEN, edited_timestamp=WRITTEN)
    assert decode.as_new(called, ME, {}, ()) is not None
    assert decode.as_new({**called, **fields}, ME, {}, ()) is None


def test_a_deletion_is_its_writers() -> None:
    """Discord does not say whose message it was, so one that is not remembered is passed over."""
    taken = decode.deleted({"id": "1", "channel_id": "20", "guild_id": "3"}, ME, "7", {})
    assert isinstance(taken, Envelope)
    assert taken.body == Deleted(message="1")
    assert (taken.address, taken.sender.id) == (SERVER, "7")
    passed = decode.deleted({"id": "1", "channel_id": "20"}, ME, "", {})
    assert passed == Skipped(reason="a deletion of an unknown message")


def test_a_mention_of_the_bots_own_role_calls_it() -> None:
    """Discord offers the role beside the name; a role that the bot has among others calls nobody."""
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
    assert said(called, me) == Said(text="hello <@&6>")
    for others in (["6"], "5", None):
        passed = decode.message(in_server(mention_roles=others), me, {})
        assert passed == Skipped(reason="in a server, not for the bot")


# --- interactions --------------------------------------------------------------------------------


def acted(kind: int, data: Json, **fields: object) -> Interaction | None:
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


CARD = MessageRef(address=SERVER, message="30")


def test_a_press_carries_the_call_the_choice_and_the_card() -> None:
    found = acted(3, {"custom_id": cards.data(ApprovalId("a1"), "once")})
    assert found is not None
    assert found.envelope is not None
    assert found.envelope.body == Pressed(approval=ApprovalId("a1"), choice="once", card=CARD)
    assert found.envelope.dedup == ("interaction/50",)
    assert (found.kind, found.language, found.application) == ("press", "de", "98")
    assert "secret-token" not in repr(found)


def test_a_form_carries_the_reason_however_deep_it_lies() -> None:
    form = cards.form("why?", "Reason", ApprovalId("a1"))["custom_id"]
    old = [{"components": [{"value": " too early "}]}]
    new = [{"component": {"value": "too early"}}]
    denied = Pressed(approval=ApprovalId("a1"), choice="deny", reason="too early", card=CARD)
    for rows in (old, new):
        found = acted(5, {"custom_id": form, "components": rows})
        assert found is not None
        assert found.envelope is not None
        assert found.envelope.body == denied
    assert acted(5, {"custom_id": form, "components": [{"component": {"value": " "}}]}) is None


def test_a_press_without_a_card_or_in_a_direct_chat_is_a_press_too() -> None:
    carried = {"custom_id": cards.data(ApprovalId("a1"), "deny")}
    found = acted(3, carried, message=None, member=None, user=ANN, guild_id=None)
    assert found is not None
    assert found.envelope is not None
    assert found.envelope.address == DIRECT
    assert found.envelope.body == Pressed(approval=ApprovalId("a1"), choice="deny")


def test_slash_commands_are_commands_and_a_question_is_said() -> None:
    asked = acted(2, {"name": "ask", "options": [{"name": "question", "value": " what? "}]})
    stopped = acted(
        2, {"name": "Tool", "type": 1, "options": [{"name": "arguments", "value": "x"}]}
    )
    assert asked is not None
    assert asked.envelope is not None
    assert (asked.envelope.body, asked.echo) == (Said(text="what?"), "what?")
    assert stopped is not None
    assert stopped.envelope is not None
    assert stopped.envelope.body == Command(name="tool", rest="x")


def test_a_receipts_button_shows_what_it_stands_for() -> None:
    found = acted(3, {"custom_id": "zc:v:zc-receipt-1-abc"})
    assert found is not None
    assert (found.envelope, found.shows) == (None, "zc-receipt-1-abc")


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
def test_what_is_not_ours_is_nothing(kind: int, data: Json) -> None:
    assert acted(kind, data) is None


def test_an_interaction_of_nobody_is_nothing() -> None:
    assert acted(3, {"custom_id": cards.data(ApprovalId("a1"), "once")}, token="") is None
    assert acted(3, {}, member={"user": BOT}) is None


USED: Json = {"name": "ask", "options": [{"name": "question", "value": "what?"}]}
STOP: Json = {"name": "stop"}
ALONE: Json = {"member": None, "user": ANN, "guild_id": None}


@pytest.mark.parametrize(
    "where", [{**ALONE, "context": 2}, {"authorizing_integration_owners": {"1": "900"}}]
)
def test_a_command_where_the_bot_is_no_member_is_answered_to_its_user_alone(where: Json) -> None:
    """Somebody who installed the app can use it with a friend or on a strange server; it was taken."""
    found = acted(2, USED, **where)
    assert found is not None
    assert (found.envelope, found.shows) == (None, decode.NOT_HERE.to("de"))
    press = {"custom_id": cards.data(ApprovalId("a1"), "once")}
    assert acted(3, press, **where) is None
    assert acted(4, USED, **where) is None


@pytest.mark.parametrize(
    "where", [{**ALONE, "context": 1}, {"authorizing_integration_owners": {"0": "100", "1": "900"}}]
)
def test_a_command_where_the_bot_is_a_member_is_taken(where: Json) -> None:
    found = acted(2, USED, **where)
    assert found is not None
    assert found.envelope is not None


SEE, SEND, SEND_IN_THREADS, ADMINISTRATOR = 1 << 10, 1 << 11, 1 << 38, 1 << 3


@pytest.mark.parametrize("may", [SEE, SEND, SEND_IN_THREADS])
def test_a_question_where_no_answer_can_stand_is_not_taken(may: int) -> None:
    """People can use the commands in channels that are closed to the bot; nobody saw an answer there."""
    found = acted(2, USED, app_permissions=str(may))
    assert found is not None
    assert (found.envelope, found.shows) == (None, decode.NOT_HERE.to("de"))
    for kind, data in ((3, {"custom_id": cards.data(ApprovalId("a1"), "once")}), (2, STOP)):
        taken = acted(kind, data, app_permissions=str(may))
        assert taken is not None
        assert taken.envelope is not None
    direct = acted(2, USED, **ALONE, context=0, app_permissions="0")
    assert direct is not None
    assert direct.envelope is not None


def test_no_question_is_taken_in_servers_that_are_ignored() -> None:
    asked: Json = {"id": "50", "token": "secret-token", "type": 2, "channel_id": "20", "data": USED}
    found = decode.interaction({**asked, "guild_id": "3", "member": {"user": ANN}}, OFF, {})
    assert found is not None
    assert (found.envelope, found.shows) == (None, decode.NOT_HERE.to("en"))


@pytest.mark.parametrize(
    ("parents", "may", "may_not"),
    [({}, SEND, SEND_IN_THREADS), ({"20": "19"}, SEND_IN_THREADS, SEND)],
)
def test_channels_and_threads_have_permissions_of_their_own(
    parents: Mapping[str, str], may: int, may_not: int
) -> None:
    """A channel of announcements is closed by the one, and leaves everybody the other."""
    asked: Json = {"id": "50", "token": "secret-token", "type": 2, "channel_id": "20", "data": USED}
    asked |= {"guild_id": "3", "member": {"user": ANN}}
    for bits, is_taken in ((may, True), (may_not, False)):
        found = decode.interaction({**asked, "app_permissions": str(SEE | bits)}, ME, parents)
        assert found is not None
        assert (found.envelope is not None) is is_taken


@pytest.mark.parametrize("may", [SEE | SEND, ADMINISTRATOR, "many", None])
def test_a_question_where_an_answer_may_stand_is_taken(may: object) -> None:
    found = acted(2, USED, app_permissions=str(may))
    assert found is not None
    assert found.envelope is not None


# --- odd JSON ------------------------------------------------------------------------------------

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
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)


@given(event=st.dictionaries(KEYS, ODD))
def test_no_event_breaks_decoding(event: dict[str, object]) -> None:
    """A malformed event is passed over, and what follows it is heard (P9)."""
    whole: Json = {**message(), **event}
    for me in (ME, ALL):
        decode.message(whole, me, {})
        decode.edited({"edited_timestamp": "x", **whole}, me, {})
        called = {"guild_id": "3", "mentions": [BOT], "timestamp": WRITTEN}
        decode.as_new({**called, "edited_timestamp": WRITTEN, **whole}, me, {}, ())
        decode.deleted(whole, me, "7", {})
        decode.interaction({"type": 3, "token": "t", "user": ANN, **whole}, me, {})


def test_fields_of_odd_shapes_read_as_nothing() -> None:
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


def test_a_cursor_says_in_which_channel_and_how_far() -> None:
    assert decode.read_cursor(decode.cursor("10", "1")) == ("10", 1)
    assert decode.read_cursor("10") is None
    assert decode.read_cursor("10/x") is None
