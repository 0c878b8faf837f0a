"""Decoding of Slack's events; no JSON raises an error."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels._remote.fields import (
    Json,
    as_object,
    inner,
    integer,
    number,
    objects,
    parse_json,
    text,
)
from channels._remote.incoming import text_hash
from channels.slack import decode
from channels.slack.decode import (
    MAX_ABOVE,
    MAX_THREADS,
    NOT_READ,
    Above,
    Bot,
    Decoded,
    Reading,
    Skipped,
    read_cursor,
)
from zeroclaw import (
    Address,
    ApprovalId,
    Attachment,
    Command,
    Deleted,
    Edited,
    Envelope,
    Membership,
    MessageRef,
    Moved,
    Position,
    Pressed,
    Said,
    Sender,
    replace,
)

ME = Bot(channel="slack", account="T1-UBOT", user="UBOT")
ALL = Bot(channel="slack", account="T1-UBOT", user="UBOT", channels="all")
OFF = Bot(channel="slack", account="T1-UBOT", user="UBOT", channels="off")
ROOT, TS, LATER = "1699999999.000100", "1700000000.000100", "1700000009.000100"
NEW = Reading()
DIRECT = Address(channel="slack", account="T1-UBOT", chat="@UANN", direct=True)


def message(**fields: object) -> Json:
    defaults: Json = {
        "type": "message",
        "channel": "D1",
        "channel_type": "im",
        "user": "UANN",
        "ts": TS,
        "text": "hello",
    }
    return {**defaults, **fields}


def in_channel(**fields: object) -> Json:
    return message(**{"channel": "C1", "channel_type": "channel", **fields})


def decoded(
    event: Json,
    bot: Bot,
    reading: Reading,
    *,
    event_id: str = "",
    is_joined: bool = False,
    above: Above = (),
) -> Decoded | Skipped:
    return decode.message(event, bot, reading, event_id=event_id, is_joined=is_joined, above=above)


def taken(found: Decoded | Skipped) -> Envelope:
    assert isinstance(found, Decoded), found
    return found.envelope


def envelope(event: Json, bot: Bot = ME, reading: Reading = NEW, *, above: Above = ()) -> Envelope:
    return taken(decoded(event, bot, reading, above=above))


def skipped(event: Json, bot: Bot = ME) -> str:
    found = decoded(event, bot, NEW)
    assert isinstance(found, Skipped), found
    return found.reason


def thread(of: str) -> Address:
    return Address(channel="slack", account="T1-UBOT", chat="C1", thread=of)


# --- messages --------------------------------------------------------------------------------------


def test_a_direct_message_has_all_its_fields() -> None:
    found = decoded(message(client_msg_id="c1"), ME, NEW, event_id="Ev1")
    assert found == Decoded(
        envelope=Envelope(
            address=DIRECT,
            sender=Sender(id="UANN", verified=True),
            dedup=(f"message/D1/{TS}", "event/Ev1", "client/UANN/c1"),
            body=Said(text="hello"),
            message=TS,
            position=Position(scope="@UANN", cursor=TS),
            sent_at=datetime.fromtimestamp(1_700_000_000, tz=UTC),
        )
    )


def test_a_message_with_an_impossible_id_has_no_time() -> None:
    assert envelope(message(ts="999999999999.1")).sent_at is None


def test_a_thread_of_a_direct_chat_has_an_address_of_its_own() -> None:
    assert envelope(message(thread_ts=LATER)).address.thread == LATER
    assert envelope(message(thread_ts=TS)).address.thread is None
    assert envelope(message(thread_ts="odd")).address.thread is None


def test_a_mention_in_a_channel_starts_a_thread() -> None:
    found = envelope(in_channel(text="<@UBOT> hello"))
    assert (found.address, found.body) == (thread(TS), Said(text="hello"))
    assert found.position == Position(scope="C1", cursor=f"{TS} {TS}:{TS}")


def test_a_message_in_a_joined_thread_needs_no_mention() -> None:
    reading = NEW.after(TS, TS)
    event = in_channel(ts=LATER, thread_ts=TS)
    found = decoded(event, ME, reading, is_joined=True)
    assert isinstance(found, Decoded)
    assert found.envelope.address == thread(TS)
    assert found.envelope.position == Position(scope="C1", cursor=f"{TS} {TS}:{LATER}")
    assert skipped(event) == "in a channel, not for the bot"
    assert isinstance(decoded(event, OFF, reading, is_joined=True), Skipped)


def test_the_settings_choose_which_messages_in_channels_are_taken() -> None:
    assert skipped(in_channel()) == "in a channel, not for the bot"
    assert envelope(in_channel(), ALL).address == thread(TS)
    assert skipped(in_channel(text="<@UBOT> hi"), OFF) == "in a channel, not for the bot"
    assert envelope(message(), OFF).address == DIRECT


@pytest.mark.parametrize(
    "event",
    [
        message(user="UBOT"),
        message(bot_id="B2"),
        message(user="USLACKBOT"),
        message(user=""),
        message(user=7),
        message(ts="soon"),
        message(subtype="channel_join"),
        message(channel="../x"),
        message(channel=None),
        {},
    ],
)
def test_a_message_that_no_person_wrote_is_skipped(event: Json) -> None:
    assert skipped(event) in {"not written by a person", "no chat to answer in"}


def test_an_empty_message_is_skipped() -> None:
    assert skipped(message(text="")) == "without text or files"


@pytest.mark.parametrize(
    ("content", "typed"),
    [
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<@UBOT>  do it ", "do it"),
        ("<@UBOT>, do it", "do it"),
        ("<@UBOT> :wave: do it", ":wave: do it"),
        ("<@UBOT> , do it", "do it"),
        ("<@UBOT> ", "@UBOT"),
        ("ask <@UBOT> now", "ask  now"),
        ("<@UBOB> and <@UEVE|eve>", "@UBOB and @UEVE"),
        ("see <#C9|general> <!here> <!subteam^S1|@team>", "see #general @here @team"),
        ("<https://a.example/x>", "https://a.example/x"),
        ("<https://a.example|name>", "name (https://a.example)"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("1 < 2", "1 < 2"),
    ],
)
def test_slacks_markup_is_turned_back_into_typed_text(content: str, typed: str) -> None:
    assert envelope(message(text=content)).body == Said(text=typed)


def test_a_slash_and_a_word_are_a_command() -> None:
    assert envelope(message(text="/Stop")).body == Command(name="stop")
    assert envelope(in_channel(text="<@UBOT>: /approve 1 3")).body == Command(
        name="approve", rest="1 3"
    )


def test_a_shared_message_is_quoted_below_the_text() -> None:
    shared = [{"is_share": True, "text": "buy\nnow"}, {"text": "an unfurled link"}]
    body = envelope(message(attachments=shared)).body
    assert body == Said(text="hello\n\n> buy\n> now", own="hello")
    assert envelope(message(text="", attachments=shared)).body == Said(text="> buy\n> now", own="")


def test_a_mention_in_a_thread_quotes_the_messages_above_it() -> None:
    """The first message with its files, other apps, the newest; also for a bare mention."""
    file = {"id": "F1", "name": "a.png", "mimetype": "image/png", "size": 7}
    alert = {"ts": "1.1", "username": "Sentry]", "attachments": [{"fallback": "it fails"}]}
    above: list[Json] = [{"ts": "1.0", "user": "UBOB", "text": "see", "files": [file]}, alert]
    above += [{"ts": f"2.{n}", "user": "UBOT", "text": f"{n}"} for n in range(MAX_ABOVE - 1)]
    mention = in_channel(text="<@UBOT>", thread_ts="1.0")
    found = envelope(mention, above=[*above, {"ts": TS}])
    assert isinstance(found.body, Said)
    assert found.body.own == "@UBOT"
    quotes = found.body.text
    assert quotes.startswith(
        '[in reply to what "UBOB" wrote:]\n> see\n\n[in reply to what "Sentry)" wrote:]\n> it fails'
    )
    assert quotes.endswith(f"[in reply to what you wrote:]\n> {MAX_ABOVE - 2}\n\n@UBOT")
    assert ([file.reference for file in found.body.quoted], found.attachments) == (["F1"], ())
    newer = envelope(mention, above=[above[0], {**alert, "ts": "1.5"}, *above[1:]])
    assert isinstance(newer.body, Said)
    assert newer.body.text == quotes, "of more than that the oldest are left out"
    command = envelope({**mention, "text": "<@UBOT> /stop"}, above=above)
    assert (command.body, command.attachments) == (Command(name="stop"), ())
    assert envelope(mention, above=None).body == Said(text=f"{NOT_READ}@UBOT", own="@UBOT")


@pytest.mark.parametrize("author", [{}, {"username": " "}, {"username": "UBOT"}])
def test_a_message_of_another_app_is_never_quoted_as_the_bots(author: Json) -> None:
    above = [{"ts": "1.0", "bot_id": "B9", "text": "down", **author}]
    found = envelope(in_channel(text="<@UBOT> well?", thread_ts="1.0"), above=above)
    assert isinstance(found.body, Said)
    assert "what you wrote" not in found.body.text


def test_files_become_attachments() -> None:
    files: list[object] = [
        {"id": "F1", "name": "a.txt", "mimetype": "text/plain", "size": 3},
        {"id": "F2", "mimetype": "x/y", "size": "many"},
        {"id": "../etc"},
        7,
    ]
    found = envelope(message(text="", subtype="file_share", files=files))
    assert found.attachments == (
        Attachment(reference="F1", name="a.txt", media_type="text/plain", size_bytes=3),
        Attachment(reference="F2", name="file", media_type="x/y", size_bytes=None),
    )


# --- edits and deletions -----------------------------------------------------------------------------


def changed(after: Json, before: Json, **fields: object) -> Json:
    event = {"subtype": "message_changed", "message": after, "previous_message": before}
    return message(**{**event, "user": None, **fields})


EDITED = {"user": "UANN", "ts": LATER}


def test_an_edit_names_its_message_and_its_version() -> None:
    found = envelope(changed(message(text="better", edited=EDITED), message()))
    assert found.body == Edited(message=TS, said=Said(text="better"))
    assert found.address == DIRECT
    assert found.sent_at == datetime.fromtimestamp(1_700_000_009, tz=UTC)
    again = envelope(changed(message(text="best", edited=EDITED), message(text="better")))
    assert found.dedup == (f"edit/{TS}/{LATER}/{text_hash('better')}/D1",)
    assert again.dedup != found.dedup, "Slack counts seconds, in which a person can edit twice"


def test_an_edit_keeps_the_shared_message() -> None:
    shared = [{"is_share": True, "text": "from Bob"}]
    after = message(text="better", edited=EDITED, attachments=shared)
    body = envelope(changed(after, message())).body
    assert body == Edited(message=TS, said=Said(text="better\n\n> from Bob", own="better"))


def test_an_edit_in_a_thread_has_the_address_of_the_thread() -> None:
    after = in_channel(text="better", edited=EDITED, ts=LATER, thread_ts=TS)
    event = changed(after, in_channel(), channel="C1", channel_type="channel")
    assert envelope(event).address == thread(TS)
    root = changed(
        in_channel(text="better", edited=EDITED), in_channel(), channel="C1", channel_type="channel"
    )
    assert envelope(root).address == thread(TS)
    direct = changed(message(text="x", edited=EDITED, thread_ts=LATER), message())
    assert envelope(direct).address.thread == LATER


@pytest.mark.parametrize(
    "event",
    [
        changed(message(), message()),
        changed(message(text="better"), message()),
        changed(message(edited=EDITED), message()),
        changed(message(text="x", edited=EDITED, bot_id="B1"), message()),
        changed(message(text="x", edited=EDITED, ts="odd"), message()),
    ],
)
def test_a_change_made_by_slack_is_not_an_edit(event: Json) -> None:
    """Such as an unfurled link, a growing thread, or a bot's message."""
    assert skipped(event) == "not an edit by a person"


def test_a_deletion_names_its_message() -> None:
    event = message(subtype="message_deleted", deleted_ts=TS, previous_message=message(), user=None)
    assert envelope(event).body == Deleted(message=TS)
    malformed = {**event, "previous_message": message(ts="odd")}
    assert skipped(malformed) == "a deletion of no person's message"


def test_a_message_replaced_by_a_tombstone_is_a_deletion() -> None:
    tombstone = message(subtype="tombstone", user="USLACKBOT", thread_ts=TS)
    before = message(thread_ts=TS, channel="C1")
    event = in_channel(
        subtype="message_changed", message=tombstone, previous_message=before, user=None
    )
    found = envelope(event)
    assert (found.body, found.address) == (Deleted(message=TS), thread(TS))
    assert found.sender.id == "UANN"
    assert isinstance(decoded({**event, "previous_message": None}, ME, NEW), Skipped)


def test_a_tombstone_in_a_direct_chat_is_a_deletion_there() -> None:
    """Slack names itself as the author of what is left of the message."""
    tombstone = message(subtype="tombstone", user="USLACKBOT", thread_ts=TS)
    before = message(thread_ts=TS, channel="D1")
    event = message(
        subtype="message_changed", message=tombstone, previous_message=before, user=None
    )
    assert (envelope(event).body, envelope(event).address) == (Deleted(message=TS), DIRECT)


@pytest.mark.parametrize("field", ["user", "channel", "thread_ts"])
def test_a_press_of_slacks_stop_button_is_a_command_in_its_thread(field: str) -> None:
    press: Json = {"user": "UANN", "channel": "D1", "thread_ts": TS}
    found = decode.stopped(press, ME, "Ev1")
    assert found == Decoded(
        envelope=Envelope(
            address=replace(DIRECT, thread=TS),
            sender=Sender(id="UANN", verified=True),
            dedup=("event/Ev1",),
            body=Command(name="stop"),
        )
    )
    assert isinstance(decode.stopped({**press, field: "?"}, ME, "Ev1"), Skipped)


# --- presses, forms, commands ------------------------------------------------------------------------


def press(action: str = "zc-once:1", **fields: object) -> Json:
    return {
        "type": "block_actions",
        "user": {"id": "UANN"},
        "container": {"channel_id": "D1", "message_ts": TS},
        "trigger_id": "t1",
        "actions": [{"action_id": action, "value": "a1", "action_ts": LATER}],
        **fields,
    }


def test_a_press_carries_the_call_the_choice_and_the_card() -> None:
    card = MessageRef(address=DIRECT, message=TS)
    assert decode.pressed(press(), ME, {DIRECT.chat}) == Decoded(
        trigger="t1",
        envelope=Envelope(
            address=DIRECT,
            sender=Sender(id="UANN", verified=True),
            dedup=(f"press/D1/{TS}/{LATER}/a1",),
            body=Pressed(approval=ApprovalId("a1"), choice="once", card=card),
        ),
    )


@pytest.mark.parametrize(("thread", "cursor"), [("", TS), (ROOT, f"- {ROOT}:{TS}")])
def test_reading_starts_at_a_card_in_a_chat_without_a_position(thread: str, cursor: str) -> None:
    container = {"channel_id": "D1", "message_ts": TS, "thread_ts": thread}
    found = taken(decode.pressed(press(container=container), ME))
    assert found.position == Position(scope=DIRECT.chat, cursor=cursor)


@pytest.mark.parametrize(
    ("action", "choice"),
    [("zc-time:2", "for_a_time"), ("zc-deny:1", "deny"), ("zc-why:1", "deny_with_reason")],
)
def test_each_button_is_a_choice(action: str, choice: str) -> None:
    found = taken(decode.pressed(press(action), ME))
    assert isinstance(found.body, Pressed)
    assert found.body.choice == choice


def test_a_card_in_a_thread_has_the_address_of_the_thread() -> None:
    """No message of its channel is read back because of a press."""
    container = {"channel_id": "C1", "message_ts": LATER, "thread_ts": TS}
    found = taken(decode.pressed(press(container=container), ME))
    assert found.address == thread(TS)
    assert found.position is None


@pytest.mark.parametrize(
    "payload",
    [
        press("other"),
        press(actions=[]),
        press(type="shortcut"),
        press(user={}),
        press(actions=[{"action_id": "zc-once:1"}]),
        {},
        {"type": "view_submission", "user": {"id": "UANN"}, "view": {"callback_id": "other"}},
        {"type": "view_submission", "user": {"id": "UANN"}, "view": {"callback_id": decode.FORM}},
    ],
)
def test_other_buttons_and_forms_are_skipped(payload: Json) -> None:
    assert isinstance(decode.pressed(payload, ME), Skipped)


def test_a_form_sends_the_reason_with_its_card() -> None:
    card = MessageRef(address=thread(TS), message=LATER)
    view = {
        "id": "V1",
        "callback_id": decode.FORM,
        "private_metadata": decode.form_data(ApprovalId("a1"), card, "C1"),
        "state": {"values": {"reason": {"reason": {"value": "too early"}}}},
    }
    payload: Json = {"type": "view_submission", "user": {"id": "UANN"}, "view": view}
    found = taken(decode.pressed(payload, ME))
    assert found.body == Pressed(
        approval=ApprovalId("a1"), choice="deny", reason="too early", card=card
    )
    assert found.dedup == ("form/V1/a1",)


def test_a_form_without_a_valid_card_still_answers() -> None:
    """Only the approval decides; the card's address says only where to show the result."""
    view = {"id": "V1", "callback_id": decode.FORM, "private_metadata": '{"approval": "a1"}'}
    payload: Json = {"type": "view_submission", "user": {"id": "UANN"}, "view": view}
    found = taken(decode.pressed(payload, ME))
    assert found.address == DIRECT


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        ("stop", Command(name="stop")),
        ("Approve 1 3 ", Command(name="approve", rest="1 3")),
        ("/approve 1", Command(name="approve", rest="1")),
        ("", Command(name="help")),
        ("<@U1> hi", Command(name="help")),
    ],
)
def test_a_slash_command_is_one_of_the_bots_commands(arguments: str, body: Command) -> None:
    payload: Json = {"user_id": "UANN", "channel_id": "D1", "text": arguments, "trigger_id": "t1"}
    found = taken(decode.slash(payload, ME))
    assert (found.body, found.address) == (body, DIRECT)
    assert found.dedup == ("slash/t1",)


def test_a_slash_command_in_a_channel_belongs_to_it() -> None:
    payload: Json = {"user_id": "UANN", "channel_id": "C1", "text": "stop", "trigger_id": "t1"}
    found = taken(decode.slash(payload, ME))
    assert found.address == Address(channel="slack", account="T1-UBOT", chat="C1")
    for field in ("user_id", "channel_id", "trigger_id"):
        assert isinstance(decode.slash({**payload, field: ""}, ME), Skipped)


MOVED: Json = {"type": "channel_id_changed", "old_channel_id": "G01", "new_channel_id": "C99"}


def test_a_channel_with_a_new_id_keeps_its_reading_position() -> None:
    """A private channel gets one when another workspace shares it; the event names no person."""
    reading = NEW.after(TS, TS)
    assert decode.chat_of(MOVED) == "G01"
    result = decode.moved(MOVED, ME, reading, "Ev1")
    assert isinstance(result, Decoded)
    moved, to = result.envelope, Address(channel="slack", account=ME.account, chat="C99")
    assert (moved.address, moved.body) == (replace(to, chat="G01"), Moved(to=to))
    assert (moved.sender.id, moved.dedup) == ("G01", ("event/Ev1", "moved/G01/C99/"))
    again = decode.moved(MOVED, ME, reading, "Ev2")
    assert isinstance(again, Decoded)
    assert set(moved.dedup) & set(again.envelope.dedup)
    assert moved.position is not None
    assert moved.position.scope == "C99"
    position = read_cursor(moved.position.cursor)
    assert position == replace(reading, old_id="G01")
    assert read_cursor(position.after(LATER, TS).text()).old_id == "G01"
    assert isinstance(decode.moved({**MOVED, "new_channel_id": 7}, ME, reading, ""), Skipped)


# --- reading positions --------------------------------------------------------------------------------


def test_a_cursor_is_parsed_to_the_same_position() -> None:
    reading = NEW.after(TS, TS).after(LATER, TS)
    assert read_cursor(reading.text()) == reading
    assert reading == Reading(top=TS, threads={TS: LATER})
    assert read_cursor(NEW.text()) == NEW


def test_only_the_most_recently_active_threads_are_remembered() -> None:
    reading = NEW
    for index in range(MAX_THREADS + 5):
        reading = reading.after(f"{1700000000 + index}.000100", f"{1700000000 + index}.000100")
    assert len(reading.threads) == MAX_THREADS
    assert "1700000000.000100" not in reading.threads
    assert read_cursor(reading.text()) == reading


def test_a_reading_position_never_goes_back() -> None:
    """Redelivered and late events may come in any order."""
    reading = NEW.after(LATER, LATER).after(TS, LATER)
    assert reading == Reading(top=LATER, threads={LATER: LATER})
    assert NEW.after(LATER, "").after(TS, "").top == LATER


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inside: (
        st.lists(inside, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("channel", "channel_type", "user", "ts", "text", "subtype", "message"),
                    *("type", "previous_message", "edited", "files", "attachments", "actions"),
                    *("view", "id", "container", "state", "values", "thread_ts", "deleted_ts"),
                    "private_metadata",
                ]
            ),
            inside,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(JSON, st.text(max_size=60))
def test_no_event_raises_an_error(event: object, cursor: str) -> None:
    data = as_object(event)
    decoded(data, ALL, read_cursor(cursor), event_id="Ev1")
    decoded({**message(), **data}, ALL, NEW)
    decode.pressed({**press(), **data}, ME)
    decode.slash({"user_id": "UANN", **data}, ME)


def test_malformed_fields_are_read_as_empty() -> None:
    assert parse_json(b"{") is None
    assert parse_json(b"[" * 100_000) is None
    assert inner({"a": {"b": {"c": 1}}}, "a", "b") == {"c": 1}
    assert inner({"a": 1}, "a", "b") == {}
    assert objects({"a": [{"b": 1}, 2]}, "a") == [{"b": 1}, {}]
    assert objects({"a": 1}, "a") == []
    assert text({"a": "\ud800x"}, "a") == "\ufffdx"
    assert text({"a": 1}, "a") == ""
    assert (integer({"a": True}, "a"), integer({"a": 2}, "a")) == (None, 2)
    assert (number({"a": 1.5}, "a"), number({"a": 2}, "a"), number({}, "a")) == (1.5, 2, None)


@pytest.mark.parametrize(
    ("payload", "is_elsewhere"),
    [
        ({}, False),
        ({"team_id": "T1"}, False),
        ({"team_id": "T2"}, True),
        ({"team_id": "T2", "context_team_id": "T1"}, False),
        ({"team": {"id": "T1"}}, False),
        ({"team": {"id": "T2"}}, True),
        ({"team": {"id": "T2"}, "view": {"app_installed_team_id": "T1"}}, False),
        ({"team": {"id": "T1"}, "view": {"app_installed_team_id": "T2"}}, True),
        ({"team": None}, False),
        ({"team_id": 7}, False),
    ],
)
def test_an_event_of_another_workspace_is_recognized(payload: Json, *, is_elsewhere: bool) -> None:
    """There the same id is another person; a shared channel names the bot's own too (P4)."""
    assert decode.is_elsewhere(payload, ME) is is_elsewhere


def test_opening_the_assistant_starts_a_thread_in_the_direct_chat() -> None:
    assistant: Json = {"user_id": "U01", "channel_id": "D01", "thread_ts": "1700000000.000001"}
    found = decode.opened({"assistant_thread": assistant}, ME, "Ev1")
    assert isinstance(found, Decoded)
    envelope = found.envelope
    assert (envelope.address.chat, envelope.address.thread) == ("@U01", "1700000000.000001")
    assert (envelope.body, envelope.dedup) == (Membership(present=True), ("event/Ev1",))
    assert decode.opened({"assistant_thread": {**assistant, "user_id": 7}}, ME, "Ev1") == Skipped(
        reason="no direct chat was opened"
    )
