"""What is read in Slack's events; whatever the JSON holds, nothing raises."""

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

ME = Bot(channel="slack", account="T1-UBOT", user="UBOT", bot="BBOT")
ALL = Bot(channel="slack", account="T1-UBOT", user="UBOT", bot="BBOT", channels="all")
OFF = Bot(channel="slack", account="T1-UBOT", user="UBOT", bot="BBOT", channels="off")
ROOT, TS, LATER = "1699999999.000100", "1700000000.000100", "1700000009.000100"
NEW = Reading()
DIRECT = Address(channel="slack", account="T1-UBOT", chat="@UANN", direct=True)


def message(**fields: object) -> Json:
    whole: Json = {
        "type": "message",
        "channel": "D1",
        "channel_type": "im",
        "user": "UANN",
        "ts": TS,
        "text": "hello",
    }
    return {**whole, **fields}


def in_channel(**fields: object) -> Json:
    return message(**{"channel": "C1", "channel_type": "channel", **fields})


def heard(
    event: Json,
    me: Bot,
    reading: Reading,
    *,
    event_id: str = "",
    is_joined: bool = False,
    above: Above = (),
) -> Decoded | Skipped:
    return decode.message(event, me, reading, event_id=event_id, is_joined=is_joined, above=above)


def envelope(event: Json, me: Bot = ME, reading: Reading = NEW, *, above: Above = ()) -> Envelope:
    taken = heard(event, me, reading, above=above)
    assert isinstance(taken, Decoded), taken
    return taken.envelope


def passed(event: Json, me: Bot = ME) -> str:
    taken = heard(event, me, NEW)
    assert isinstance(taken, Skipped), taken
    return taken.reason


def thread(of: str) -> Address:
    return Address(channel="slack", account="T1-UBOT", chat="C1", thread=of)


# --- messages --------------------------------------------------------------------------------------


def test_a_direct_message_is_whole() -> None:
    taken = heard(message(client_msg_id="c1"), ME, NEW, event_id="Ev1")
    assert taken == Decoded(
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


def test_a_message_of_no_year_was_written_at_no_time() -> None:
    assert envelope(message(ts="999999999999.1")).sent_at is None


def test_a_thread_of_a_direct_chat_is_a_place_of_its_own() -> None:
    assert envelope(message(thread_ts=LATER)).address.thread == LATER
    assert envelope(message(thread_ts=TS)).address.thread is None
    assert envelope(message(thread_ts="odd")).address.thread is None


def test_a_mention_in_a_channel_begins_a_thread() -> None:
    found = envelope(in_channel(text="<@UBOT> hello"))
    assert (found.address, found.body) == (thread(TS), Said(text="hello"))
    assert found.position == Position(scope="C1", cursor=f"{TS} {TS}:{TS}")


def test_what_follows_in_a_known_thread_needs_no_mention() -> None:
    reading = NEW.after(TS, TS)
    event = in_channel(ts=LATER, thread_ts=TS)
    found = heard(event, ME, reading, is_joined=True)
    assert isinstance(found, Decoded)
    assert found.envelope.address == thread(TS)
    assert found.envelope.position == Position(scope="C1", cursor=f"{TS} {TS}:{LATER}")
    assert passed(event) == "in a channel, not for the bot"
    assert isinstance(heard(event, OFF, reading, is_joined=True), Skipped)


def test_which_channels_are_heard_is_configured() -> None:
    assert passed(in_channel()) == "in a channel, not for the bot"
    assert envelope(in_channel(), ALL).address == thread(TS)
    assert passed(in_channel(text="<@UBOT> hi"), OFF) == "in a channel, not for the bot"
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
def test_what_no_person_wrote_is_passed_over(event: Json) -> None:
    assert passed(event) in {"not written by a person", "no chat to answer in"}


def test_an_empty_message_is_passed_over() -> None:
    assert passed(message(text="")) == "without text or files"


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<@UBOT>  do it ", "do it"),
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
def test_slacks_marks_are_read_as_they_were_typed(said: str, read: str) -> None:
    assert envelope(message(text=said)).body == Said(text=read)


def test_a_slash_and_a_word_is_a_command() -> None:
    assert envelope(message(text="/Stop")).body == Command(name="stop")
    assert envelope(in_channel(text="<@UBOT> /approve 1 3")).body == Command(
        name="approve", rest="1 3"
    )


def test_what_is_shared_stands_below_the_words_of_who_shares_it() -> None:
    shared = [{"is_share": True, "text": "buy\nnow"}, {"text": "an unfurled link"}]
    body = envelope(message(attachments=shared)).body
    assert body == Said(text="hello\n\n> buy\n> now", own="hello")
    assert envelope(message(text="", attachments=shared)).body == Said(text="> buy\n> now", own="")


def test_who_calls_the_bot_into_a_thread_is_told_with_what_stands_above() -> None:
    """The first message with its files, what other apps show, the newest; a bare call is one too."""
    file = {"id": "F1", "name": "a.png", "mimetype": "image/png", "size": 7}
    alert = {"ts": "1.1", "username": "Sentry]", "attachments": [{"fallback": "it fails"}]}
    above: list[Json] = [{"ts": "1.0", "user": "UBOB", "text": "see", "files": [file]}, alert]
    above += [{"ts": f"2.{n}", "user": "UBOT", "text": f"{n}"} for n in range(MAX_ABOVE - 1)]
    call = in_channel(text="<@UBOT>", thread_ts="1.0")
    taken = envelope(call, above=[*above, {"ts": TS}])
    assert isinstance(taken.body, Said)
    assert taken.body.own == "@UBOT"
    told = taken.body.text
    assert told.startswith(
        '[in reply to what "UBOB" wrote:]\n> see\n\n[in reply to what "Sentry)" wrote:]\n> it fails'
    )
    assert told.endswith(f"[in reply to what you wrote:]\n> {MAX_ABOVE - 2}\n\n@UBOT")
    assert ([one.reference for one in taken.body.quoted], taken.attachments) == (["F1"], ())
    newer = envelope(call, above=[above[0], {**alert, "ts": "1.5"}, *above[1:]])
    assert isinstance(newer.body, Said)
    assert newer.body.text == told, "of more than that the oldest are left out"
    command = envelope({**call, "text": "<@UBOT> /stop"}, above=above)
    assert (command.body, command.attachments) == (Command(name="stop"), ())
    assert envelope(call, above=None).body == Said(text=f"{NOT_READ}@UBOT", own="@UBOT")


@pytest.mark.parametrize("who", [{}, {"username": " "}, {"username": "UBOT"}])
def test_what_another_app_says_in_a_thread_is_never_the_bots_own(who: Json) -> None:
    above = [{"ts": "1.0", "bot_id": "B9", "text": "down", **who}]
    taken = envelope(in_channel(text="<@UBOT> well?", thread_ts="1.0"), above=above)
    assert isinstance(taken.body, Said)
    assert "what you wrote" not in taken.body.text


def test_files_are_recorded() -> None:
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


def changed(now: Json, before: Json, **fields: object) -> Json:
    event = {"subtype": "message_changed", "message": now, "previous_message": before}
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


def test_an_edit_keeps_what_its_message_shares() -> None:
    shared = [{"is_share": True, "text": "from Bob"}]
    now = message(text="better", edited=EDITED, attachments=shared)
    body = envelope(changed(now, message())).body
    assert body == Edited(message=TS, said=Said(text="better\n\n> from Bob", own="better"))


def test_an_edit_in_a_thread_stands_there() -> None:
    now = in_channel(text="better", edited=EDITED, ts=LATER, thread_ts=TS)
    event = changed(now, in_channel(), channel="C1", channel_type="channel")
    assert envelope(event).address == thread(TS)
    begun = changed(
        in_channel(text="better", edited=EDITED), in_channel(), channel="C1", channel_type="channel"
    )
    assert envelope(begun).address == thread(TS)
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
def test_what_slack_changes_by_itself_is_no_edit(event: Json) -> None:
    """A link that is unfurled, a thread that grows, a message of a bot."""
    assert passed(event) == "not an edit by a person"


def test_a_deletion_names_its_message() -> None:
    event = message(subtype="message_deleted", deleted_ts=TS, previous_message=message(), user=None)
    assert envelope(event).body == Deleted(message=TS)
    odd = {**event, "previous_message": message(ts="odd")}
    assert passed(odd) == "a deletion of no person's message"


def test_what_leaves_a_stone_in_its_thread_is_a_deletion() -> None:
    stone = message(subtype="tombstone", user="USLACKBOT", thread_ts=TS)
    before = message(thread_ts=TS, channel="C1")
    event = in_channel(subtype="message_changed", message=stone, previous_message=before, user=None)
    found = envelope(event)
    assert (found.body, found.address) == (Deleted(message=TS), thread(TS))
    assert found.sender.id == "UANN"
    assert isinstance(heard({**event, "previous_message": None}, ME, NEW), Skipped)


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
def test_reading_begins_at_a_card_where_nothing_was_taken(thread: str, cursor: str) -> None:
    box = {"channel_id": "D1", "message_ts": TS, "thread_ts": thread}
    taken = decode.pressed(press(container=box), ME)
    assert isinstance(taken, Decoded)
    assert taken.envelope.position == Position(scope=DIRECT.chat, cursor=cursor)


@pytest.mark.parametrize(
    ("action", "choice"),
    [("zc-time:2", "for_a_time"), ("zc-deny:1", "deny"), ("zc-why:1", "deny_with_reason")],
)
def test_each_button_is_a_choice(action: str, choice: str) -> None:
    taken = decode.pressed(press(action), ME)
    assert isinstance(taken, Decoded)
    assert isinstance(taken.envelope.body, Pressed)
    assert taken.envelope.body.choice == choice


def test_a_card_in_a_thread_is_known_by_it() -> None:
    box = {"channel_id": "C1", "message_ts": LATER, "thread_ts": TS}
    taken = decode.pressed(press(container=box), ME)
    assert isinstance(taken, Decoded)
    assert taken.envelope.address == thread(TS)


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
def test_what_is_no_button_or_form_of_ours_is_passed_over(payload: Json) -> None:
    assert isinstance(decode.pressed(payload, ME), Skipped)


def test_a_form_carries_the_reason_to_the_card_it_began_at() -> None:
    card = MessageRef(address=thread(TS), message=LATER)
    view = {
        "id": "V1",
        "callback_id": decode.FORM,
        "private_metadata": decode.form_data(ApprovalId("a1"), card, "C1"),
        "state": {"values": {"reason": {"reason": {"value": "too early"}}}},
    }
    payload: Json = {"type": "view_submission", "user": {"id": "UANN"}, "view": view}
    taken = decode.pressed(payload, ME)
    assert isinstance(taken, Decoded)
    assert taken.envelope.body == Pressed(
        approval=ApprovalId("a1"), choice="deny", reason="too early", card=card
    )
    assert taken.envelope.dedup == ("form/V1/a1",)


def test_a_form_whose_card_is_odd_still_answers() -> None:
    """The approval alone decides; where the card stands only says where it is shown."""
    view = {"id": "V1", "callback_id": decode.FORM, "private_metadata": '{"approval": "a1"}'}
    payload: Json = {"type": "view_submission", "user": {"id": "UANN"}, "view": view}
    taken = decode.pressed(payload, ME)
    assert isinstance(taken, Decoded)
    assert taken.envelope.address == DIRECT


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("stop", Command(name="stop")),
        ("Approve 1 3 ", Command(name="approve", rest="1 3")),
        ("", Command(name="help")),
        ("<@U1> hi", Command(name="help")),
    ],
)
def test_a_slash_command_is_a_command_of_the_bots(words: str, body: Command) -> None:
    payload: Json = {"user_id": "UANN", "channel_id": "D1", "text": words, "trigger_id": "t1"}
    taken = decode.slash(payload, ME)
    assert isinstance(taken, Decoded)
    assert (taken.envelope.body, taken.envelope.address) == (body, DIRECT)
    assert taken.envelope.dedup == ("slash/t1",)


def test_a_slash_command_in_a_channel_belongs_to_it() -> None:
    payload: Json = {"user_id": "UANN", "channel_id": "C1", "text": "stop", "trigger_id": "t1"}
    taken = decode.slash(payload, ME)
    assert isinstance(taken, Decoded)
    assert taken.envelope.address == Address(channel="slack", account="T1-UBOT", chat="C1")
    assert isinstance(decode.slash({**payload, "user_id": ""}, ME), Skipped)


MOVED: Json = {"type": "channel_id_changed", "old_channel_id": "G01", "new_channel_id": "C99"}


def test_a_channel_with_another_id_moves_with_its_reading_position() -> None:
    """As a private one does once another workspace shares it; the event names no person."""
    reading = NEW.after(TS, TS)
    assert decode.chat_of(MOVED) == "G01"
    taken = decode.moved(MOVED, ME, reading, "Ev1")
    assert isinstance(taken, Decoded)
    found, to = taken.envelope, Address(channel="slack", account=ME.account, chat="C99")
    assert (found.address, found.body) == (replace(to, chat="G01"), Moved(to=to))
    assert (found.sender.id, found.dedup) == ("G01", ("event/Ev1", "moved/G01/C99/"))
    told_again = decode.moved(MOVED, ME, reading, "Ev2")
    assert isinstance(told_again, Decoded)
    assert set(found.dedup) & set(told_again.envelope.dedup)
    assert found.position is not None
    assert found.position.scope == "C99"
    kept = read_cursor(found.position.cursor)
    assert kept == replace(reading, old_id="G01")
    assert read_cursor(kept.after(LATER, TS).text()).old_id == "G01"
    assert isinstance(decode.moved({**MOVED, "new_channel_id": 7}, ME, reading, ""), Skipped)


# --- how far a chat was read --------------------------------------------------------------------------


def test_a_cursor_is_read_back_as_it_was() -> None:
    reading = NEW.after(TS, TS).after(LATER, TS)
    assert read_cursor(reading.text()) == reading
    assert reading == Reading(top=TS, threads={TS: LATER})
    assert read_cursor(NEW.text()) == NEW


def test_only_the_threads_that_were_last_alive_are_remembered() -> None:
    reading = NEW
    for at in range(MAX_THREADS + 5):
        reading = reading.after(f"{1700000000 + at}.000100", f"{1700000000 + at}.000100")
    assert len(reading.threads) == MAX_THREADS
    assert "1700000000.000100" not in reading.threads
    assert read_cursor(reading.text()) == reading


def test_reading_never_goes_back() -> None:
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
def test_whatever_comes_nothing_raises(event: object, cursor: str) -> None:
    data = as_object(event)
    heard(data, ALL, read_cursor(cursor), event_id="Ev1")
    heard({**message(), **data}, ALL, NEW)
    decode.pressed({**press(), **data}, ME)
    decode.slash({"user_id": "UANN", **data}, ME)


def test_odd_fields_read_as_nothing() -> None:
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
def test_what_happened_in_another_workspace_is_told_apart(
    payload: Json, *, is_elsewhere: bool
) -> None:
    """There the same id is another person; a shared channel names the bot's own beside it (P4)."""
    assert decode.is_elsewhere(payload, ME) is is_elsewhere


def test_who_opens_the_assistant_begins_a_thread_of_their_direct_chat() -> None:
    about: Json = {"user_id": "U01", "channel_id": "D01", "thread_ts": "1700000000.000001"}
    taken = decode.opened({"assistant_thread": about}, ME, "Ev1")
    assert isinstance(taken, Decoded)
    envelope = taken.envelope
    assert (envelope.address.chat, envelope.address.thread) == ("@U01", "1700000000.000001")
    assert (envelope.body, envelope.dedup) == (Membership(present=True), ("event/Ev1",))
    assert decode.opened({"assistant_thread": {**about, "user_id": 7}}, ME, "Ev1") == Skipped(
        reason="no direct chat was opened"
    )
