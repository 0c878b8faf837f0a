"""Mails become envelopes; any other bytes are skipped, and nothing raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels._remote.incoming import Skipped
from channels.email.decode import (
    CUT,
    MAX_CHARS,
    Bot,
    Decoded,
    decode,
    own_thread,
    press_code,
    returned_to,
    thread_of,
)
from tests.contract.channel_words import call
from tests.fakes.loop_steps import calls_made
from tests.unit.channels.email.letters import (
    ANNS,
    AT,
    HEAD,
    ME,
    bot_mail_id,
    decoded,
    fetched,
    letter,
    me_with,
    reply,
    said_body,
    skip_reason,
)
from zeroclaw import (
    ApprovalId,
    CardCall,
    Choice,
    Command,
    MessageRef,
    Position,
    Pressed,
    Said,
    Sender,
    replace,
)

HTML = HEAD + "\nContent-Type: text/html; charset=utf-8"
OTHER = me_with(address="bot@other.test")
CARD = bot_mail_id(None, "card")
CALL = call(1)


def test_a_mail_is_an_envelope() -> None:
    envelope = decoded(letter())
    assert envelope.address == replace(ANNS, thread="one@a.example")
    assert envelope.sender == Sender(id="ann@a.example", verified=True, display="Ann")
    assert envelope.body == Said(text="the sums\n\nWhat is 2+2?")
    assert envelope.message == "one@a.example"
    assert envelope.position == Position(scope="bot@zero.test INBOX", cursor="7:42")
    assert envelope.sent_at == AT
    assert envelope.dedup[0] == "uid:INBOX:7:42"
    assert len(envelope.dedup) == 2


def test_the_same_mail_under_another_uid_shares_a_key() -> None:
    """A restored mailbox has new UIDs; a Message-ID counts only with its verified sender."""
    again = decode(replace(fetched(letter()), validity=8, uid=1), ME)
    assert isinstance(again, Decoded)
    assert len(set(again.envelope.dedup) & set(decoded(letter()).dedup)) == 1
    forged = decoded(letter(head=HEAD.replace("ann@", "bob@")))
    assert not set(forged.dedup) & set(again.envelope.dedup)
    stranger = decoded(letter(head=HEAD.replace("dmarc=pass", "dmarc=fail")))
    assert (stranger.sender.verified, stranger.dedup) == (False, ("uid:INBOX:7:42",))


def test_an_unverified_sender_is_a_stranger() -> None:
    """Such as one who wrote a verdict below our own server's, or had another server write it."""
    below = (
        HEAD.replace("dmarc=pass", "dmarc=fail")
        + "\nAuthentication-Results: mx.zero.test; dmarc=pass"
    )
    other = HEAD.replace("mx.zero.test;", "mx.a.example;")
    for head in (below, other):
        assert not decoded(letter(head=head)).sender.verified
    assert not decoded(letter(), me_with(authserv_id="")).sender.verified


# --- threads -------------------------------------------------------------------------------------

THREADS = {
    "References: <root@a.example> <two@a.example>\nIn-Reply-To: <two@a.example>": "root@a.example",
    "In-Reply-To: <root@a.example>": "root@a.example",
    "In-Reply-To: =?utf-8?q?=3Croot=40a=2Eexample=3E?=": "root@a.example",
    f"In-Reply-To: <{bot_mail_id('root@a.example')}>": "root@a.example",
    f"References: <lost@a.example> <{bot_mail_id('root@a.example')}>": "root@a.example",
    f"In-Reply-To: <{bot_mail_id(None)}>": None,
    f"References: <{'r' * 200}@a.example>": thread_of("r" * 200 + "@a.example"),
    'References: <a"b@a.example>': thread_of('a"b@a.example'),
    "References: none": "one@a.example",
    "References: none\nIn-Reply-To: <root@a.example>": "root@a.example",
    f"In-Reply-To: <{bot_mail_id(None, me=OTHER)}>": bot_mail_id(None, me=OTHER),
    "In-Reply-To: <zc.%%.x@zero.test>": "zc.%%.x@zero.test",
    "In-Reply-To: <zc._w.x@zero.test>": "zc._w.x@zero.test",
    "In-Reply-To: <zc.YSBi.x@zero.test>": "zc.YSBi.x@zero.test",
    "In-Reply-To: <zc.IwpgeW91YCAqKmFsbCoq.x@zero.test>": "zc.IwpgeW91YCAqKmFsbCoq.x@zero.test",
}


@pytest.mark.parametrize(("more", "thread"), THREADS.items())
def test_a_thread_is_named_after_the_mail_that_began_it(more: str, thread: str | None) -> None:
    assert decoded(letter(more=more)).address == replace(ANNS, thread=thread)


def test_a_long_thread_id_is_hashed_and_carried_by_our_ids() -> None:
    long_thread = thread_of("r" * 200 + "@a.example")
    assert long_thread.startswith("#")
    assert own_thread(bot_mail_id(long_thread), "zero.test") == long_thread


def test_a_mail_without_an_id_belongs_to_the_chat_itself() -> None:
    envelope = decoded(letter(head=HEAD.rpartition("\n")[0]))
    assert envelope.address == ANNS
    assert envelope.message == "uid:7:42"


def test_an_id_that_no_header_can_hold_is_one_all_the_same() -> None:
    """By it the mail is recognised when it is read again, has a thread, and is a reply."""
    first = decoded(letter(head=HEAD.replace("one@a.example", "one@\u043f\u043a")))
    assert len(first.dedup) == 2
    assert first.address.thread is not None
    answer = decoded(letter("yes", more="References: <one@\u043f\u043a>"))
    assert answer.body == Said(text="yes")


def test_our_own_mails_are_skipped() -> None:
    """Even if a list or another server changed their From, path and marks."""
    our_head = HEAD.replace("one@a.example", bot_mail_id(None))
    assert skip_reason(letter(head=our_head)) == "it is our own"


def test_automatic_mails_are_skipped() -> None:
    assert skip_reason(letter(more="Auto-Submitted: auto-replied")) == "auto-submitted"
    assert (
        skip_reason(letter(head=HEAD.replace("Ann <ann@a.example>", "nobody")))
        == "not exactly one sender"
    )


def test_the_id_is_equal_only_for_the_same_mail() -> None:
    first = bot_mail_id("t@a.example")
    others = {
        bot_mail_id(None),
        bot_mail_id("t@a.example", "l"),
        bot_mail_id("t@a.example", to="bob@a.example"),
    }
    assert first == bot_mail_id("t@a.example")
    assert len(others - {first}) == 3


REPORT = "{head}\nAction: {action}\n\nMessage-ID: <{id}>\nTo: {to}\n"
ANN, BOB = "ann@a.example", "bob@a.example"


@pytest.mark.parametrize(
    ("report", "recipients"),
    [
        (
            REPORT.format(head="To: bot@zero.test", action="failed", id=bot_mail_id("t"), to=ANN),
            {ANN},
        ),
        (REPORT.format(head="", action="failed", id=bot_mail_id(None), to=f" <{ANN}>"), {ANN}),
        (REPORT.format(head="", action="delayed", id=bot_mail_id("t"), to=ANN), set[str]()),
        (REPORT.format(head="", action="failed", id=bot_mail_id("t"), to=BOB), set[str]()),
        (REPORT.format(head="", action="failed", id="zc..0@zero.test", to=ANN), set[str]()),
        (
            REPORT.format(
                head="", action="failed", id=bot_mail_id(None, me=replace(ME, key=b"-")), to=ANN
            ),
            set[str](),
        ),
    ],
)
def test_a_report_counts_only_for_our_mail_and_names_its_recipients(
    report: str, recipients: set[str]
) -> None:
    """Anyone can forge one. P4."""
    assert returned_to(report.encode(), ME) == recipients


BY_SUBJECT = me_with(threads="subject")
SAME_SUBJECT = (
    letter(),
    letter(head=HEAD.replace("one@", "two@").replace("the sums", "AW: Re:  The  sums")),
    reply("and 3+3?", subject="Re: the sums"),
)


@pytest.mark.parametrize("mail", SAME_SUBJECT)
def test_a_thread_may_be_named_by_its_subject(mail: str) -> None:
    """An option for programs that leave the ids out; each person has separate threads."""
    named = decoded(letter(), BY_SUBJECT).address
    assert named.thread is not None
    assert named.thread.startswith("#")
    assert decoded(mail, BY_SUBJECT).address == named
    assert decoded(mail).address != named
    bobs = decoded(letter(head=HEAD.replace("ann@", "bob@")), BY_SUBJECT).address
    assert (bobs.thread, bobs.chat) == (named.thread, "bob@a.example")


def test_a_reply_to_our_mail_stays_in_its_thread_under_any_subject() -> None:
    answered = f"In-Reply-To: <{bot_mail_id('root@a.example')}>"
    assert decoded(letter(more=answered), BY_SUBJECT).address.thread == "root@a.example"
    bare = HEAD.replace("Subject: the sums", "Subject: Re:")
    assert decoded(letter(head=bare), BY_SUBJECT).address.thread == "one@a.example"


# --- words ---------------------------------------------------------------------------------------


def test_the_subject_comes_first_where_a_thread_begins() -> None:
    assert said_body(letter("")) == Said(text="the sums")
    assert said_body(letter(head=HEAD.replace("the sums", "Fwd: Re: the sums"))).text.startswith(
        "the sums\n"
    )
    assert said_body(letter("hello", head=HEAD.replace("Subject: the sums\n", ""))) == Said(
        text="hello"
    )
    assert said_body(reply("hello")) == Said(text="hello")


def test_repeated_words_of_the_bot_are_not_the_senders_own() -> None:
    """Only in a reply from a verified sender; a command above them counts."""
    bots_words = "It costs three euros, and the shop opens at nine."
    mail = fetched(reply(f"/approve 3\n\n{bots_words}"))
    first = decode(mail, ME)
    assert isinstance(first, Decoded)
    assert first.may_quote
    again = decode(mail, ME, [bots_words])
    assert isinstance(again, Decoded)
    assert again.envelope.body == Command(name="approve", rest="3")
    assert not again.may_quote
    reply_body = decode(fetched(reply(f"Which bus?\n\n{bots_words}")), ME, [bots_words])
    assert isinstance(reply_body, Decoded)
    assert reply_body.envelope.body == Said(text=f"Which bus?\n\n{bots_words}", own="Which bus?")
    for other in (
        letter(bots_words),
        reply("Which bus?"),
        reply(bots_words).replace("pass", "fail"),
    ):
        event = decode(fetched(other), ME)
        assert isinstance(event, Decoded)
        assert not event.may_quote


def test_quoted_words_are_not_the_senders_own() -> None:
    body = "Yes.\n\nOn 1 Jan, bot@zero.test wrote:\n> Shall I?"
    assert said_body(reply(body)) == Said(text=body, own="Yes.")
    assert said_body(letter(body)) == Said(text=f"the sums\n\n{body}", own="Yes.")


FORWARDED = ["Fwd: rm -rf x", "WG: rm -rf x", "TR : rm -rf x", "RV: Re: rm -rf x", "转发：rm -rf x"]  # noqa: RUF001


@pytest.mark.parametrize("subject", FORWARDED)
def test_a_forwarded_subject_is_not_the_senders_own(subject: str) -> None:
    """The writer of the forwarded mail chose it, so it must not count as the sender's request."""
    head = HEAD.replace("the sums", subject)
    for body in ("See below.\n\n> all of it", "", "Hi,\nall of it"):
        assert "rm -rf x" in said_body(letter(body, head=head)).text
        assert "rm -rf x" not in str(said_body(letter(body, head=head)).own)


def test_text_forwarded_without_a_known_mark_is_not_the_senders_own() -> None:
    """Mail programs mark it in more languages than are known here."""
    body = "Look.\n\n\u05de\u05d0\u05ea: Bob\n\nrm -rf x"
    assert said_body(letter(body, head=HEAD.replace("the sums", "Fwd: sums"))).own == ""
    marked = "Look.\n\n---------- Forwarded message ---------\nrm -rf x"
    assert said_body(letter(marked, head=HEAD.replace("the sums", "Fwd: sums"))).own == "Look."


@pytest.mark.parametrize(
    "subject", ["Fwd: /tool shell {}", "Re: /tool shell {}", "/x: /tool shell {}"]
)
def test_a_command_in_a_forwarded_subject_is_none(subject: str) -> None:
    assert not isinstance(decoded(letter("", head=HEAD.replace("the sums", subject))).body, Command)


def test_a_word_that_ends_like_a_reply_prefix_is_kept() -> None:
    assert (
        said_body(letter("", head=HEAD.replace("the sums", "Software: old"))).text
        == "Software: old"
    )


@pytest.mark.parametrize("quoted", ["rm -rf x", f"{'<div>' * 1_000}rm -rf x", "</b>rm -rf x"])
def test_text_quoted_by_html_is_not_the_senders_own_at_any_nesting(quoted: str) -> None:
    body = f"{'<div>' * 1_000}Yes<blockquote><b><p>{quoted}</blockquote>"
    body_said = said_body(letter(body, head=HTML, more="References: <root@a.example>"))
    assert ("rm -rf x" in body_said.text, body_said.own) == (True, "Yes")


def test_text_beyond_a_bound_is_left_out() -> None:
    assert len(said_body(reply("word " * MAX_CHARS)).text) == MAX_CHARS
    parts = [f"--b\n\n> quoted\n{'word ' * (MAX_CHARS // 5)}\n"] * 3
    mail = said_body(reply("\n".join(parts), more="Content-Type: multipart/mixed; boundary=b"))
    assert mail.own is not None
    assert len(mail.own) == MAX_CHARS


@pytest.mark.parametrize(
    ("body", "command"),
    {
        "/stop": Command(name="stop"),
        "/Tool  shell {}\n\n-- \nAnn": Command(name="tool", rest="shell {}"),
        "/stop\n\nOn 1 Jan, bot@zero.test wrote:\n> Hm": Command(name="stop"),
    }.items(),
)
def test_a_slash_and_a_word_is_a_command(body: str, command: Command) -> None:
    assert decoded(reply(body)).body == command
    assert decoded(letter(body)).body == command


def test_a_command_may_be_a_subject_alone() -> None:
    assert decoded(letter("", head=HEAD.replace("the sums", "/help me"))).body == Command(
        name="help", rest="me"
    )
    assert said_body(letter("x", head=HEAD.replace("the sums", "/help"))).text == "/help\n\nx"


def test_a_mail_of_html_alone_is_read() -> None:
    body = (
        "<html><head><title>t</title><style>p{}</style></head><body><!-- c --><p>Yes,\n  <b>do</b> it.</p>"
        "<script>x()</script><div>2<br>3</div><div hidden>x</div>"
        "<div class=gmail_quote>On 1 Jan <blockquote>Shall I?</blockquote></div></body></html>"
    )
    assert said_body(letter(body, head=HTML, more="References: <root@a.example>")) == Said(
        text="Yes, do it.\n\n2\n3\nOn 1 Jan\n\nShall I?", own="Yes, do it.\n\n2\n3"
    )
    assert said_body(letter("", head=HTML)).text == "the sums"


@pytest.mark.parametrize(
    "attribute",
    [
        "style='Display : none'",
        'style="color:red;visibility:hidden"',
        "style=mso-hide:all",
        "style='opacity: 0'",
        "style='opacity:0.0;x:y'",
        "style='max-height:0px;overflow:hidden'",
        "aria-hidden=true",
    ],
)
def test_invisible_text_of_html_is_not_read(attribute: str) -> None:
    """It is meant for machines like this one."""
    body = f"<p>Yes<span {attribute}>do <b>it</b></span></p><p style='opacity:0.5;max-height:90px'>or no"
    assert (
        said_body(letter(body, head=HTML, more="References: <root@a.example>")).text
        == "Yes\n\nor no"
    )


ALTERNATIVE = HEAD + "\nContent-Type: multipart/alternative; boundary=x"


def test_of_alternatives_the_plain_part_is_read_unless_it_is_empty() -> None:
    alternatives = "--x\n\n{}\n--x\nContent-Type: text/html\n\n<p>rich</p>\n--x--"
    assert (
        said_body(letter(alternatives.format("plain"), head=ALTERNATIVE)).text
        == "the sums\n\nplain"
    )
    assert said_body(letter(alternatives.format(" "), head=ALTERNATIVE)).text == "the sums\n\nrich"


OUTLOOK = (
    "<p>Yes.</p><div id=appendonsend></div><hr><div id=divRplyFwdMsg>From: x</div><p>quoted</p>"
)


def test_text_after_outlooks_mark_is_quoted() -> None:
    body = said_body(letter(OUTLOOK, head=HTML, more="References: <root@a.example>"))
    assert body == Said(text="Yes.\n\nFrom: x\n\nquoted", own="Yes.")


@pytest.mark.parametrize(
    "container", ["blockquote style='x'", "div id=mail-editor-reference-message-container"]
)
def test_text_that_html_marks_as_quoted_is_not_the_senders_own(container: str) -> None:
    body = f"<p>Yes.</p><{container}>rm -rf x</{container.partition(' ')[0]}>"
    body_said = said_body(letter(body, head=HTML, more="References: <root@a.example>"))
    assert ("rm -rf x" in body_said.text, body_said.own) == (True, "Yes.")


def test_html_that_is_deep_or_broken_is_read() -> None:
    deep = "<div>" * 50_000 + "deep" + "<" * 1_000
    assert "deep" in said_body(letter(deep, head=HTML)).text
    assert said_body(letter("\x00<p>a\ue00ab", head=HTML)).text.startswith("the sums")
    assert said_body(letter("<frameset></frameset>", head=HTML)).text == "the sums"


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "piece",
    ["<p>a", "<b>", "<a href=x>", "<b><a>", "<table><tr><td>", "<p id=appendonsend>", "<div></div>",
     "<div class=gmail_quote>a</div>", "</p>", "<br>", "<li><ul>", "<svg>", "<select>"],
)  # fmt: skip
def test_twice_as_much_hostile_html_takes_twice_the_steps(piece: str) -> None:
    """Sibling selectors took two minutes for half a megabyte of the first."""

    def steps(chars: int) -> int:
        mail = letter(piece * (chars // len(piece)), head=HTML)
        return calls_made(lambda: decoded(mail))

    assert steps(8_000) <= 2.1 * steps(4_000)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("piece", ["<!--", "&amp", "<id", "<p id ", "< id="])
def test_no_pattern_takes_the_square_of_hostile_html(piece: str) -> None:
    """Half a megabyte is read at all; the steps inside a pattern can't be counted."""
    decoded(letter(piece * (500_000 // len(piece)), head=HTML))


# --- files ---------------------------------------------------------------------------------------

MIXED = HEAD + "\nContent-Type: multipart/mixed; boundary=x"
PARTS = """--x

words
--x
Content-Type: image/png
Content-Disposition: inline; filename="a.png"; size=12
Content-Transfer-Encoding: base64

aGVsbG8h
--x
Content-Type: message/rfc822

From: x
--x
Content-Type: text/calendar

x
--x--"""


def test_files_are_named_and_referred_to() -> None:
    files = decoded(letter(PARTS, head=MIXED)).attachments
    assert [(file.name, file.media_type, file.size_bytes) for file in files] == [
        ("a.png", "image/png", 12),
        ("part-3.eml", "message/rfc822", 7),
        ("part-4.calendar", "text/calendar", 1),
    ]
    assert files[0].reference == "7:42:1"


def test_a_missing_size_is_computed() -> None:
    [file, *_] = decoded(letter(PARTS.replace("; size=12", ""), head=MIXED)).attachments
    assert file.size_bytes == 6


def test_the_files_of_a_too_large_mail_are_only_named() -> None:
    """The last of them is not there as a whole."""
    long, me = letter(f"{PARTS}{' ' * 100_000}", head=MIXED), me_with(max_mail_bytes=100_000)
    cut, whole = decoded(long, me).attachments, decoded(long).attachments
    assert [file.name for file in cut] == [file.name for file in whole]
    assert [file.reference.partition(":")[0] for file in cut] == [CUT] * 3
    assert [file.reference.partition(":")[0] for file in whole] == ["7"] * 3


# --- answers to a card ---------------------------------------------------------------------------


def pressed(subject: str, body: str = "", me: Bot = ME) -> object:
    return decoded(reply(body, subject=subject), me).body


def code_of(
    call: CardCall = CALL,
    choice: Choice = "once",
    *,
    card: str = CARD,
    to: str = "ann@a.example",
    me: Bot = ME,
) -> str:
    return press_code(call, choice, card=card, to=to, key=me.key)


def test_a_mail_from_a_cards_link_answers_it() -> None:
    ref = MessageRef(address=ANNS, message=CARD)
    once = f"Approve once: 1 {code_of()}"
    assert pressed(once, "thanks") == Pressed(approval=CALL.approval, choice="once", card=ref)
    deny = code_of(choice="deny_with_reason")
    assert pressed(deny, "too early\n\n-- \nAnn") == Pressed(
        approval=CALL.approval, choice="deny", reason="too early", card=ref
    )


def test_an_answer_counts_whatever_it_quotes_of_the_card() -> None:
    """A denial's reason is what its sender wrote; a reply to the bot's reply counts too. P5."""
    ref = MessageRef(address=ANNS, message=CARD)
    deny = f"Re: AW: Deny: 1 {code_of(choice='deny')}"
    quoting = f"no\n\nOn Monday, bot <bot@zero.test> wrote:\n> Approve: mailto:?subject={code_of()}"
    assert pressed(deny, quoting) == Pressed(
        approval=CALL.approval, choice="deny", reason="no", card=ref
    )
    assert pressed("Re: card", quoting) == Said(text=quoting, own="no"), (
        "a code that is quoted below is no answer"
    )


def test_an_answer_to_a_code_can_be_replied_to() -> None:
    """Its subject has no code; whoever replied to it pressed again, and their words were lost. P1."""
    event = decode(fetched(letter("", head=HEAD.replace("the sums", f"Allow: 1 {code_of()}"))), ME)
    assert isinstance(event, Decoded)
    assert isinstance(event.envelope.body, Pressed)
    assert event.parent.subject.strip() == "Allow: 1"
    subject = f"Re: {event.parent.subject}"
    assert decoded(reply("/approve 3", subject=subject)).body == Command(name="approve", rest="3")


def test_a_card_may_be_in_a_thread() -> None:
    card = bot_mail_id("root@a.example", "card")
    body = pressed(code_of(choice="for_a_time", card=card))
    ref = MessageRef(address=replace(ANNS, thread="root@a.example"), message=card)
    assert body == Pressed(approval=CALL.approval, choice="for_a_time", card=ref)


def test_a_card_of_an_earlier_release_is_answered_by_its_links() -> None:
    """Its id carries no proof."""
    card = f"zc..{20 * '0'}@zero.test"
    ref = MessageRef(address=ANNS, message=card)
    assert pressed(code_of(card=card)) == Pressed(approval=CALL.approval, choice="once", card=ref)


OTHER_CODES = {
    "another call's": code_of(replace(CALL, hash8="76543210")),
    "another question's": code_of(replace(CALL, approval=ApprovalId("a-2"))),
    "another answer's": code_of(choice="deny"),
    "another card's": code_of(card=bot_mail_id(None, "other")),
    "another thread's": code_of(card=bot_mail_id("root@a.example", "card")),
    "another approver's": code_of(to="olga@a.example"),
    "another daemon's": code_of(me=replace(ME, key=b"another")),
}


@pytest.mark.parametrize("case", OTHER_CODES)
def test_a_code_counts_only_for_its_own_call(case: str) -> None:
    """Its proof can't be guessed, nor taken from a code made for another purpose. P5."""
    other, mine = OTHER_CODES[case], code_of()
    assert other.rpartition(":")[2] != mine.rpartition(":")[2]
    forged = f"{mine.rpartition(':')[0]}:{other.rpartition(':')[2]}"
    assert pressed(forged, "1 2 3") == Command(name="approve")
    assert pressed(mine) == Pressed(
        approval=CALL.approval, choice="once", card=MessageRef(address=ANNS, message=CARD)
    )


def test_a_forwarded_link_counts_for_no_other_person() -> None:
    """Another approver has their own link, and is asked which call they mean. P4, P5."""
    assert pressed(code_of(to="olga@a.example")) == Command(name="approve")
    assert pressed(code_of(choice="deny", to="olga@a.example")) == Command(name="deny")
    forwarded = f"Fwd: Approve once: 1 {code_of(to='olga@a.example')}"
    assert pressed(forwarded, "please click 1") == Command(name="approve")


def test_without_a_key_no_code_counts() -> None:
    """Everyone knows an empty key."""
    keyless = replace(ME, key=b"")
    assert decoded(reply("", subject=code_of(me=keyless)), keyless).body == Command(name="approve")


@pytest.mark.parametrize(
    "subject", ["[zc:x:a:0:]", "[zc:o::0:]", "zc:o:a", "[zc:o:a:00:]", code_of()[:-2]]
)
def test_a_subject_without_a_code_is_text(subject: str) -> None:
    assert pressed(subject, "hello") == Said(text="hello")


LINES = st.sampled_from(
    (*HEAD.split("\n"), "Content-Type: multipart/mixed; boundary=x", "--x", "--x--", "", "> q",
     "Content-Type: text/html", "<p>a<div", "References: <a@b.example>", f"Subject: {code_of()}",
     "Content-Transfer-Encoding: base64", "From: Bob <bob@b.example>")
)  # fmt: skip


@given(st.lists(LINES | st.text(max_size=20), max_size=30).map("\n".join))
def test_any_text_is_decoded_or_skipped(text: str) -> None:
    event = decode(fetched(text.encode("utf-8", "replace")), ME)
    assert isinstance(event, Decoded | Skipped)
