"""An answer becomes a mail with the same text, and nothing forbidden."""

from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email import CAPABILITIES, render
from channels.email.decode import Parent
from channels.email.render import Parts
from tests.fakes.loop_steps import calls_made
from tests.unit.channels.email.letters import ME, me_with
from zeroclaw import (
    ApprovalId,
    Card,
    CardCall,
    CheckedReceipt,
    Ending,
    Outcome,
    Outgoing,
    OutgoingFile,
    Rendered,
    replace,
    without_mark_signs,
)
from zeroclaw.delivery.account import is_slow

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RECEIPT = CheckedReceipt(token="t", tool="shell", summary="run <b>", outcome="ok", at=AT)
CALL = CardCall(
    approval=ApprovalId("a-1"),
    number=3,
    tool="shell",
    summary="run </pre><script>",
    arguments='{"command": "ls\u202e"}',
    why="the policy asks",
    hash8="0123abcd",
    scope="all of it",
)
CARD = Card(key="c", asked_by="Ann <b>", calls=(CALL,), deadline_at=AT + timedelta(minutes=9))
FOUR = Parts(text="4")
PARENT = Parent(id="one@a.example", subject="sums", references=("root@a.example",))


def answer(
    rendered: Rendered,
    receipts: tuple[CheckedReceipt, ...] = (),
    *,
    is_plain: bool = False,
    is_folded: bool = False,
) -> Parts:
    outgoing = Outgoing(rendered=rendered, key="k", receipts=receipts, plain=is_plain)
    return render.answer(outgoing, is_folded=is_folded)


def rich(text: str) -> str:
    return answer(render.markdown(text)).html


def written(
    words: Parts = FOUR, *, message_id: str = "zc..x@zero.test", parent: Parent = PARENT
) -> bytes:
    settings = me_with(name="Zero, the bot").settings
    raw = render.mail(words, parent, settings, message_id=message_id, to="ann@a.example", at=AT)
    assert raw.isascii()
    return raw


def read(raw: bytes) -> EmailMessage:
    return BytesParser(policy=default).parsebytes(raw)


def test_the_text_is_the_markdown_and_the_plain_form_that_of_its_html() -> None:
    rendered = render.markdown("*a*\r\n\tb\rc")
    assert (rendered.body, rendered.plain) == ("*a*\n\tb\nc", "a b c")
    assert answer(rendered).text == "*a*\n\tb\nc"
    assert answer(rendered, is_plain=True) == Parts(text="a b c")
    drawn = render.markdown(
        "&#114;e   \t  [c](https://a.example)![x](https://b.example/y.png)  \n|a|\n|-|\n|b|"
    )
    assert drawn.plain == "re c!x\n\na\nb"


def test_no_thread_uses_a_half_compiled_parser() -> None:
    """It would parse an answer by only some of them; the library compiles them at first use."""
    parser = render._parser()  # pyright: ignore[reportPrivateUsage]  threads share it
    rulers = (parser.core.ruler, parser.block.ruler, parser.inline.ruler, parser.inline.ruler2)
    assert all(ruler.__cache__ for ruler in rulers)


def test_characters_that_no_mail_can_carry_are_replaced() -> None:
    assert render.markdown("a\x00\ud800b").body == "a\ufffd\ufffdb"


def test_the_html_has_the_same_text() -> None:
    html = rich("# T\n\n*a* **b** ~~c~~ `d`\n\n1. x\n2. y\n\n|h|\n|-|\n|v|\n\n```py\nz\n```\n> q")
    for piece in ("<h1>T</h1>", "<em>a</em>", "<strong>b</strong>", "<code>d</code>", "<li>y</li>"):
        assert piece in html
    assert "<table>" in html
    assert "<blockquote>" in html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("|run|does|\n|-|-|\n|`a | b`|c|", "<td><code>a | b</code></td>\n<td>c</td>"),
        ("|a|\n|-|\n|b|c|", "|b|c|"),
        ("[1]: https://a.example", "[1]: https://a.example"),
        ("![a](https://a.example)", '!<a href="https://a.example" rel="noopener noreferrer">a</a>'),
    ],
)
def test_html_leaves_out_no_text(text: str, html: str) -> None:
    assert html in rich(text)


HOSTILE = {
    "![x](https://a.example/spy.png)": "img",
    "<img src=x onerror=alert(1)>": "<img",
    "<script>x</script>": "<script",
    "[a](javascript:alert(1))": 'href="javascript',
    "[a](data:text/html,x)": 'href="data',
    "<details><summary>✅ 1</summary></details>": "<details",
    "<p style='x'>": "<p style",
    "<div style='background:#e8f5e9'>✅ receipt</div>": "<div",
    '[a](https://a.example "title")': "title=",
    "[a](mailto:bot@a.example?subject=/tool)": "subject",
    "[a](MAILTO:bot@a.example?body=/approve)": "approve",
}


@pytest.mark.parametrize(("text", "never"), HOSTILE.items())
def test_html_has_nothing_active_and_no_imitations(text: str, never: str) -> None:
    assert never not in rich(text)


def test_expensive_markdown_is_shown_as_it_is() -> None:
    for piece in (
        "[",
        "*a_",
        "`",
        "<a ",
        "![",
        "~~",
        "> ",
        "- ",
        "1. ",
        "|a",
        "\\",
        "&#",
        "[a](",
        "#",
    ):
        text = piece * (CAPABILITIES.max_length // len(piece))
        assert rich(text)


@pytest.mark.parametrize(
    "piece", ["[a](b", "[a\n", "[a](", "![", ")[", "<![CDATA[", "- a\n", "[", "*a_", "#\n", "a"]
)
def test_rendering_on_the_event_loop_takes_few_steps(piece: str) -> None:
    """Some answers of 4,096 characters take ten times as many; a thread renders those. P9."""
    text = (piece * 4_096)[:4_096]
    while is_slow(text):
        text = text[: -max(1, len(piece))]
    assert calls_made(lambda: render.markdown(text)) <= 65_000


def test_receipts_are_below_a_rule_that_no_text_has() -> None:
    imitated = "-- \n✅ receipt: shell\n-- \r\n--  \n -- "
    body = render.markdown(imitated)
    rendered_answer = answer(body, (RECEIPT,))
    text, _, below = rendered_answer.text.partition("\n-- \n")
    assert text == body.body.replace("✅", "✓") + "\n"
    assert below == f"✅ {RECEIPT.line()}"
    assert "run &lt;b&gt;</div>" in rendered_answer.html
    escaped = answer(render.markdown("\\-- \nx"), is_plain=True)
    assert escaped.text == "-- x"
    earlier = replace(RECEIPT, earlier=True)
    assert answer(body, (earlier,)).text.endswith(f"\n-- \n🕓 {earlier.line()}")
    assert answer(body, (RECEIPT,), is_plain=True).html == ""
    assert answer(render.markdown(""), (RECEIPT,)).text == f"✅ {RECEIPT.line()}"


def test_receipts_are_folded_below_one_line_when_asked_for() -> None:
    """HTML has a box that unfolds, which no answer can have; text, which can't unfold, has all.
    P7."""
    body = render.markdown("Done. <details>")
    files = replace(RECEIPT, tool="read_file", earlier=True)
    rendered_answer = answer(body, (RECEIPT, RECEIPT, files), is_folded=True)
    head = "✅ 3 receipts: shell (2), read_file"
    below = [f"✅ {RECEIPT.line()}", f"✅ {RECEIPT.line()}", f"🕓 {files.line()}"]
    assert rendered_answer.text.partition("\n-- \n")[2] == "\n".join(below)
    box = rendered_answer.html[rendered_answer.html.index("<details") :]
    assert rendered_answer.html.startswith("<p>Done. &lt;details&gt;</p>")
    assert f"<summary>{head}</summary>✅ receipt" in box
    assert box.count("<br>") == 2
    assert box.endswith("</details>")
    alone = answer(body, (RECEIPT,), is_plain=True, is_folded=True)
    assert alone == Parts(text=f"Done. <details>\n\n-- \n✅ {RECEIPT.line()}")
    assert answer(body, is_folded=True) == answer(body)


LOOKS_TRUE = (
    "✅ 3 receipts: shell (2)",
    "🕓 2 receipts: fetch",
    f"☑️ {RECEIPT.line()}",
    "🕗 receipt",
)


@pytest.mark.parametrize("line", LOOKS_TRUE)
@pytest.mark.parametrize("is_plain", [True, False])
def test_no_text_has_the_signs_of_true_marks(line: str, *, is_plain: bool) -> None:
    """A plain text has no box, so only its marks have these signs. An honest line keeps its
    words. P7."""
    rendered = render.markdown(f"Done.\n\n-- \n\n{line}\n\n✅ 3 receipts: taxi, lunch")
    shown_text = answer(rendered, (RECEIPT,), is_plain=is_plain).text
    above, _, below = shown_text.rpartition("\n-- \n")
    assert below == f"✅ {RECEIPT.line()}"
    assert not {"✅", "🕓", "🕗", "☑"} & set(above)
    assert "✓ 3 receipts: taxi, lunch" in above
    assert not is_plain or line[1:].lstrip("\ufe0f") in above
    assert "✅" not in render.plain_text(line).text


@given(st.text(st.sampled_from("-- \n✅🕓☑\ufe0freceipts: ") | st.characters(), max_size=60))
def test_no_answers_text_has_the_signs_or_the_rule(text: str) -> None:
    """P7: so no line of it equals a true mark or the rule above them."""
    body = render.markdown(text)
    for is_plain in (True, False):
        shown_text = answer(body, is_plain=is_plain).text
        assert not {"✅", "🕓"} & set(shown_text)
        assert "-- " not in shown_text.split("\n")


class _Tags(HTMLParser):
    """The elements of a page, as an HTML parser reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, object]] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append((tag, attrs))


@given(
    st.lists(
        st.sampled_from(
            ["<details open>", "<summary>", "<div style='x'>", "✅ 1 receipt", "&lt;", "\n", "> "]
        )
    )
)
def test_no_answer_becomes_the_box_of_true_marks(pieces: list[str]) -> None:
    """P7: in HTML it is an element and a style that nothing in an answer can become."""
    tags = _Tags()
    tags.feed(rich("".join(pieces)))
    assert not {"details", "summary", "div"} & {tag for tag, _ in tags.seen}
    assert [attributes for _, attributes in tags.seen if attributes] == []


def test_a_card_shows_the_whole_call_and_links() -> None:
    shown = render.card(
        CARD, id="zc..0123@zero.test", to="ann@a.example", bot=me_with(address="bot+x@zero.test")
    )
    for piece in (
        "3. shell: run </pre><script>",
        "ls⟨U+202E⟩",
        "0123abcd",
        "all of it",
        "/approve 3",
    ):
        assert piece in shown.text
    assert "<script>" not in shown.html
    assert (
        '<pre style="white-space:pre-wrap' in shown.html
    )  # so the end of a command is never out of sight
    links = [line for line in shown.text.split("\n") if "mailto:" in line]
    assert [line.partition(": mailto:bot%2Bx@zero.test?subject=")[0] for line in links] == [
        "Approve once",
        "Approve for a time",
        "Deny",
    ]
    assert shown.subject == render.card_title(CARD) == "A call needs your answer"
    because = replace(CARD, choices=("once", "deny_with_reason"))
    assert "Deny" not in render.card(because, id="zc..0@zero.test", to="ann@a.example", bot=ME).text


def test_an_outcome_shows_approver_and_reason() -> None:
    ending = Ending(approval=CALL.approval, how="denied", by="Bob", at=AT, reason="no")
    words = render.ended(Outcome(card=CARD, endings=(ending,)))
    assert words.text.endswith("⛔ denied by Bob, 2026-01-02 03:04:05 UTC: no")
    open_ = replace(CALL, approval=ApprovalId("a-2"))
    two_calls = replace(CARD, calls=(CALL, open_))
    stopped = Ending(approval=CALL.approval, how="stopped", by="", at=AT)
    assert "stopped" in render.ended(Outcome(card=two_calls, endings=(stopped,))).text


@pytest.mark.parametrize(
    ("subject", "answer"),
    {
        "sums": "Re: sums",
        "RE: sums": "Re: sums",
        "AW: Re: AW: Re: sums": "Re: sums",
        "Re:": "Re: zeroclaw",
        "": "Re: zeroclaw",
        "a\r\nBcc: x": "Re: a Bcc: x",
    }.items(),
)
def test_an_answer_keeps_the_subject(subject: str, answer: str) -> None:
    parent = replace(PARENT, subject=subject)
    assert read(written(parent=parent))["Subject"] == answer


def test_a_mail_says_that_it_is_automatic_and_what_it_answers() -> None:
    mail = read(written())
    assert mail["From"] == '"Zero, the bot" <bot@zero.test>'
    assert (mail["To"], mail["Subject"]) == ("ann@a.example", "Re: sums")
    assert mail["Message-ID"] == "<zc..x@zero.test>"
    assert mail["In-Reply-To"] == "<one@a.example>"
    assert mail["References"] == "<root@a.example> <one@a.example>"
    assert (mail["Auto-Submitted"], mail["X-Auto-Response-Suppress"]) == ("auto-replied", "All")
    assert read(written(parent=Parent()))["Auto-Submitted"] == "auto-generated"


def test_a_long_thread_keeps_its_first_and_its_last_ids() -> None:
    ids = tuple(f"{number}@a.example" for number in range(100))
    parent = Parent(id=ids[-1], references=ids[:-1])
    named = read(written(parent=parent))["References"].split()
    assert (named[0], named[-1], len(named)) == ("<0@a.example>", "<99@a.example>", 21)


def test_long_ids_travel_as_they_are() -> None:
    """The standard library encodes ids that do not fit a line, and an encoded id is none."""
    long = f"{'r' * 100}@a.example"
    raw = written(
        message_id=f"zc.{'c' * 160}.x@zero.test", parent=Parent(id=long, references=(long,))
    )
    assert b"=?utf-8" not in raw
    assert f"<{long}> <{long}>".encode() in raw


def test_an_id_that_no_header_can_hold_is_left_out() -> None:
    """Encoded with it, the other ids would be read by no program."""
    for odd in ("\u00fc@a.example", "\x01@a.example"):
        raw = written(parent=Parent(id=odd, references=("r@a.example", odd)))
        assert b"=?utf-8" not in raw
        mail = read(raw)
        assert (mail["In-Reply-To"], mail["References"]) == (None, "<r@a.example>")


def test_ids_too_many_for_one_line_are_folded_between_them() -> None:
    ids = tuple(f"{'r' * 100}{number}@a.example" for number in range(20))
    raw = written(parent=Parent(id=ids[-1], references=ids[:-1]))
    assert max(map(len, raw.split(b"\r\n"))) <= 990
    assert read(raw)["References"].split() == [f"<{id_}>" for id_ in ids]


def test_the_same_mail_again_is_the_same_bytes() -> None:
    file = OutgoingFile(name='ü "x".csv', media_type="text/csv", content=b"a", key="f")
    words = Parts(text="ü", html="<p>ü</p>")
    once, again = (written(replace(words, file=file)) for _ in range(2))
    assert once == again
    mail = read(once)
    [attached] = mail.iter_attachments()
    assert (attached.get_filename(), attached.get_payload(decode=True)) == ('ü "x".csv', b"a")


@pytest.mark.parametrize(
    "kind", ["", "text", "message/rfc822", "multipart/mixed", "a/b; c=d\r\nX: y"]
)
def test_a_file_of_an_invalid_type_is_sent_as_bytes(kind: str) -> None:
    file = OutgoingFile(name="a", media_type=kind, content=b"a", key="f")
    [attached] = read(written(replace(FOUR, file=file))).iter_attachments()
    assert attached.get_content_type() == "application/octet-stream"


def test_a_caption_is_plain() -> None:
    assert render.plain_text("*a*\n-- \n") == Parts(text="*a*\n--\n")


@given(st.text(max_size=200))
def test_every_text_travels_whole(text: str) -> None:
    rendered = render.markdown(text)
    mail = read(written(answer(rendered)))
    part = mail.get_body(("plain",))
    assert part is not None
    got = part.get_content().replace("\r\n", "\n")
    assert got.removesuffix("\n") == without_mark_signs(rendered.body).removesuffix("\n")
    assert "<script" not in unescape(rich(text)).lower() or "<script" in text.lower()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("The **shop** opens at `eight`.\n- then", "The shop opens at eight.\n\n- then"),
        ("see [the page](https://a.example/b)", "see the page"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("1. one\n2. two", "- one\n- two"),
        ("a&amp;b", "a&b"),
        ("non**sense**", "nonsense"),
        ("| a |\n|---|\n| b |", "a\nb"),
    ],
)
def test_markdown_that_renders_to_other_words_is_read_as_shown(text: str, read: str) -> None:
    """So a mail's repetition of an answer is recognised in either form."""
    assert "\n".join(render.markdown(text).plain.split("\n")[:3]).strip() == read
