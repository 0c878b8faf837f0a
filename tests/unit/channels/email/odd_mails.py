"""Odd mails, each with the reason why programs write it, and what decoding it must give.

We wrote them after what programs do; none was a real person's mail.
"""

import base64

from channels._remote.incoming import Skipped
from channels.email.decode import decode
from tests.unit.channels.email.letters import ME, VERDICT, fetched
from zeroclaw import Command, Said, Value

FROM = "From: Ann <ann@a.example>"
MAX_SHOWN = 200


class OddMail(Value):
    """One odd mail.

    Attributes:
        reason: Who writes it so, or how it would harm a reader that trusts it.
        raw: As it arrives.
        expected: The `summary` of it.
    """

    reason: str
    raw: bytes
    expected: str


def summary(raw: bytes) -> str:
    """Say in one line how a mail is decoded: the reason to skip it, or its sender, body and
    files."""
    event = decode(fetched(raw), ME)
    if isinstance(event, Skipped):
        return f"skipped: {event.reason}"
    envelope = event.envelope
    body = envelope.body
    match body:
        case Said(text=text, own=own):
            content = repr(text[:MAX_SHOWN])
            content += "" if own is None else f" own {own[:MAX_SHOWN]!r}"
        case Command(name=name, rest=rest):
            content = f"/{name} {rest}"
        case _:
            content = type(body).__name__
    sender = envelope.sender.id if envelope.sender.verified else f"unverified {envelope.sender.id}"
    files = [attachment.name for attachment in envelope.attachments]
    return f"{sender}: {content}" + (f" with {files}" if files else "")


def mail(*head: str, body: str | bytes = "hello", who: str = FROM) -> bytes:
    """Write a mail with a verified sender; it is a reply, so that its subject does not count."""
    headers = (VERDICT, who, "Message-ID: <m@a.example>", "References: <r@a.example>")
    raw = body if isinstance(body, bytes) else body.replace("\n", "\r\n").encode()
    return "\r\n".join((*headers, *head, "", "")).encode() + raw


def many(kind: str, *parts: str | bytes, end: bytes = b"--") -> bytes:
    """Write a mail of several parts."""
    raw = [
        part if isinstance(part, bytes) else part.replace("\n", "\r\n").encode() for part in parts
    ]
    body = b"".join(b"--b\r\n" + part + b"\r\n" for part in raw) + b"--b" + end + b"\r\n"
    return mail("MIME-Version: 1.0", f"Content-Type: {kind}; boundary=b", body=body)


def html(source: str) -> bytes:
    """Write a mail of HTML alone."""
    return mail("Content-Type: text/html; charset=utf-8", body=source)


TEXT = "Content-Type: text/plain\n\nhello"
HTML = "Content-Type: text/html\n\n"
UNSEEN = f"<!--{'x' * 500_000}-->"
FILE = "Content-Type: application/pdf\nContent-Disposition: attachment; filename="
DEEP = 50
PARTS = 100_000


def nested(levels: int) -> bytes:
    """Write containers within each other, each with a boundary of its own."""
    heads = "".join(
        f'Content-Type: multipart/mixed; boundary="n{level}"\r\n\r\n--n{level}\r\n'
        for level in range(levels)
    )
    return (
        mail("MIME-Version: 1.0", body=b"").removesuffix(b"\r\n")
        + (heads + "Content-Type: text/plain\r\n\r\nat the bottom\r\n").encode()
    )


ODD_MAILS: dict[str, OddMail] = {
    # --- who ---------------------------------------------------------------------------------
    "a group for a sender": OddMail(
        reason="RFC 6854 allows it; an undisclosed sender is nobody who can be answered",
        raw=mail(who="From: Friends: ann@a.example, bob@a.example;"),
        expected="skipped: not exactly one sender",
    ),
    "two senders": OddMail(
        reason="RFC 5322 allows it; which of the two DMARC has looked at is anybody's guess",
        raw=mail(who="From: ann@a.example, eve@evil.example"),
        expected="skipped: not exactly one sender",
    ),
    "two headers for a sender": OddMail(
        reason="a program shows one, and a filter judges the other",
        raw=mail("From: eve@evil.example"),
        expected="skipped: not exactly one sender",
    ),
    "a header with a blank before its colon": OddMail(
        reason="servers read it, and all below it; who does not sees one sender, and they another",
        raw=mail("X-Loose : x", "From : eve@evil.example"),
        expected="skipped: not exactly one sender",
    ),
    "an address for a name": OddMail(
        reason="phones show the name alone, and so show whom the writer likes",
        raw=mail(who='From: "ann@a.example" <eve@evil.example>'),
        expected="unverified eve@evil.example: 'hello'",
    ),
    "an address in a comment": OddMail(
        reason="old programs write the name behind the address, in brackets",
        raw=mail(who="From: eve@evil.example (ann@a.example)"),
        expected="unverified eve@evil.example: 'hello'",
    ),
    "a name in encoded words that hides an address": OddMail(
        reason="encoded words are read after the address was found, never before (RFC 2047, 5)",
        raw=mail(who="From: =?utf-8?q?ann=40a=2Eexample=3E?= <eve@evil.example>"),
        expected="unverified eve@evil.example: 'hello'",
    ),
    "a sender in quotes": OddMail(
        reason='`"a b"@…` is an address by the book; no provider gives one out, and parsers differ',
        raw=mail(who='From: "ann@a.example"@evil.example'),
        expected="skipped: not exactly one sender",
    ),
    "a domain that only looks alike": OddMail(
        reason="a Cyrillic letter in it makes another domain, which DNS knows by its own name",
        raw=mail(who="From: Ann <ann@\N{CYRILLIC SMALL LETTER A}.example>"),
        expected="unverified ann@xn--80a.example: 'hello'",
    ),
    "a verdict in a comment": OddMail(
        reason="comments in Authentication-Results may say anything",
        raw=mail().replace(b"dmarc=pass", b"dmarc=fail (dmarc=pass)"),
        expected="unverified ann@a.example: 'hello'",
    ),
    "a verdict in a quoted word": OddMail(
        reason="so may quoted words",
        raw=mail().replace(b"dmarc=pass", b'dmarc=fail reason="; dmarc=pass"'),
        expected="unverified ann@a.example: 'hello'",
    ),
    "a verdict that does not end": OddMail(
        reason="an open comment of the writer's would swallow the server's own words below",
        raw=mail().replace(b"dmarc=pass", b"(dmarc=pass"),
        expected="unverified ann@a.example: 'hello'",
    ),
    # --- machines ------------------------------------------------------------------------------
    "Exchange's absence": OddMail(
        reason="Exchange says Auto-Submitted only to the outside, and this always",
        raw=mail("X-Auto-Response-Suppress: DR, OOF, AutoReply"),
        expected="skipped: wants no automatic answer",
    ),
    "an absence by vacation(1)": OddMail(
        reason="sieve's vacation says both (RFC 5230, 4.7)",
        raw=mail("Auto-Submitted: auto-replied (vacation)", "Precedence: bulk"),
        expected="skipped: auto-submitted",
    ),
    "a bounce": OddMail(
        reason="Postfix's: from MAILER-DAEMON, with a report of three parts",
        raw=many("multipart/report; report-type=delivery-status", TEXT),
        expected="skipped: a report",
    ),
    "a bounce by qmail": OddMail(
        reason="plain text without any mark; only its empty return path and its sender tell",
        raw=b"Return-Path: <>\r\n" + mail(body="Hi. This is the qmail-send program at a.example."),
        expected="skipped: no return path",
    ),
    "a receipt that it was read": OddMail(
        reason="Outlook sends one by itself where the reader allows it (RFC 8098)",
        raw=many("multipart/report; report-type=disposition-notification", TEXT),
        expected="skipped: a report",
    ),
    "a list": OddMail(
        reason="an answer to a list goes to all of it",
        raw=mail("List-Id: All of a.example <all.a.example>"),
        expected="skipped: a list",
    ),
    "a newsletter": OddMail(
        reason="bulk mail from Gmail's point of view has this, and often nothing else",
        raw=mail("List-Unsubscribe-Post: List-Unsubscribe=One-Click"),
        expected="skipped: a list",
    ),
    "a ticket system": OddMail(
        reason="OTRS and others set this alone; two of them talk all night",
        raw=mail("X-Loop: support@a.example"),
        expected="skipped: marked as automatic",
    ),
    "a provider's own number": OddMail(
        reason="Fastmail, Proton and QQ number each sender for Google; a person wrote it all the same",
        raw=mail("Feedback-ID: i1234abcd:Fastmail"),
        expected="ann@a.example: 'hello'",
    ),
    "a person's program says that it is none": OddMail(
        reason="some say `Auto-Submitted: no` of what a person writes",
        raw=mail("Auto-Submitted: no"),
        expected="ann@a.example: 'hello'",
    ),
    # --- broken MIME ---------------------------------------------------------------------------
    "no headers at all": OddMail(
        reason="a file that somebody piped into sendmail",
        raw=b"\r\nhello",
        expected="skipped: not exactly one sender",
    ),
    "nothing": OddMail(
        reason="a disk that was full", raw=b"", expected="skipped: not exactly one sender"
    ),
    "ends of lines of Unix": OddMail(
        reason="what a script writes, and old servers store",
        raw=mail().replace(b"\r\n", b"\n"),
        expected="ann@a.example: 'hello'",
    ),
    "an end of lines of old Macs": OddMail(
        reason="a lone CR ends no line here; a reader that takes it for one finds headers in the words",
        raw=mail("Subject: x\rAuto-Submitted: auto-replied"),
        expected="ann@a.example: 'hello'",
    ),
    "a verdict behind a lone CR": OddMail(
        reason="the server sees one header and leaves it; a reader that ends lines there sees the writer's own",
        raw=mail("X: y\r" + VERDICT).replace(VERDICT.encode() + b"\r\n", b"", 1),
        expected="unverified ann@a.example: 'hello'",
    ),
    "a colon missing": OddMail(
        reason="headers end at the first line that is none, as they do for Postfix; the rest is words",
        raw=mail("no header", "Auto-Submitted: auto-replied"),
        expected="ann@a.example: 'no header\\nAuto-Submitted: auto-replied\\n\\nhello'",
    ),
    "a container that never ends": OddMail(
        reason="cut off on its way, or by a program that counts on its reader",
        raw=many("multipart/mixed", TEXT, end=b""),
        expected="ann@a.example: 'hello'",
    ),
    "a boundary that nobody named": OddMail(
        reason="then there are no parts, and all of it is words of an unknown kind",
        raw=mail("Content-Type: multipart/mixed", body="--b\nContent-Type: text/plain\n\nhello"),
        expected="ann@a.example: '' with ['part-1.mixed']",
    ),
    "a part within a file": OddMail(
        reason="a boundary that begins as another does (`b` and `bb`) divides nothing",
        raw=many("multipart/mixed", "Content-Type: text/plain\n\nhello\n--bb\nfriends"),
        expected="ann@a.example: 'hello\\n--bb\\nfriends'",
    ),
    "fifty levels": OddMail(
        reason="parsers that call themselves for each level end there",
        raw=nested(DEEP),
        expected="ann@a.example: '' with ['part-1.mixed']",
    ),
    "a hundred thousand parts": OddMail(
        reason="a mail of a megabyte; parsers that ask every open container about every line take minutes",
        raw=many("multipart/mixed", TEXT, *[b"\r\n"] * PARTS),
        expected="ann@a.example: 'hello'",
    ),
    "a line of a megabyte": OddMail(
        reason="HTML newsletters have no ends of lines; a quadratic expression dies here",
        raw=mail(body="> " * 500_000 + "x"),
        expected="ann@a.example: " + repr("> " * 100) + " own ''",
    ),
    "a header of a megabyte": OddMail(
        reason="no header is read in part: its beginning is nothing, and what is beyond the bound is words",
        raw=mail("Subject: " + "x" * 1_000_000),
        expected="ann@a.example: " + repr("x" * 200),
    ),
    "base64 with anything between": OddMail(
        reason="gateways put advertisements below; mail programs read on",
        raw=mail("Content-Transfer-Encoding: base64", body="aGVs!!\n  bG8\n=\n"),
        expected="ann@a.example: 'hello'",
    ),
    "quoted-printable that is none": OddMail(
        reason="`=` in a URL that nobody encoded stays as it is",
        raw=mail("Content-Transfer-Encoding: quoted-printable", body="a=zz b=\nc"),
        expected="ann@a.example: 'a=zz bc'",
    ),
    # --- letters -------------------------------------------------------------------------------
    "Japanese": OddMail(
        reason="ISO-2022-JP is 7-bit, shifts by escapes, and is still what telephones there write",
        raw=mail("Content-Type: text/plain; charset=iso-2022-jp", body="\x1b$B$3$s\x1b(B"),
        expected="ann@a.example: 'こん'",
    ),
    "Chinese under the smaller name": OddMail(
        reason="GB2312 is said, GBK is meant; what the smaller does not know is marked",
        raw=mail("Content-Type: text/plain; charset=gb2312", body="你好".encode("gbk")),
        expected="ann@a.example: '你好'",
    ),
    "Latin under the name of ASCII": OddMail(
        reason="the commonest lie; a strict reader fails, and it is read like eight bits without a name",
        raw=mail("Content-Type: text/plain; charset=us-ascii", body=b"gr\xfc\xdfe"),
        expected="ann@a.example: 'grüße'",
    ),
    "a mark of the byte order": OddMail(
        reason="what editors of Windows put before a text is none of it, and before a command hides it",
        raw=mail("Content-Type: text/plain; charset=utf-8", body="\ufeff/approve 3"),
        expected="ann@a.example: /approve 3",
    ),
    "eight bits without a name": OddMail(
        reason="scripts; UTF-8 if it is valid, else what Windows writes",
        raw=mail(body=b"gr\xfc\xdfe"),
        expected="ann@a.example: 'grüße'",
    ),
    "a charset that nobody knows": OddMail(
        reason="`x-unknown`, `unicode-1-1-utf-7x` and the names of fonts are found in the wild",
        raw=mail("Content-Type: text/plain; charset=x-unknown", body="hello"),
        expected="ann@a.example: 'hello'",
    ),
    "a codec that is no charset": OddMail(
        reason="`charset=zip` or `hex` are codecs to Python, and would run",
        raw=mail("Content-Type: text/plain; charset=hex", body="68656c6c6f"),
        expected="ann@a.example: '68656c6c6f'",
    ),
    "a charset in quotes that do not end": OddMail(
        reason="a program for tablets of 2012",
        raw=mail('Content-Type: text/plain; charset="utf-8', body="grüße"),
        expected="ann@a.example: 'grüße'",
    ),
    "a name that drives Python mad": OddMail(
        reason="`filename*=idna''…` makes the standard library raise; the name can be read all the same",
        raw=many(
            "multipart/mixed", TEXT, "Content-Disposition: attachment; filename*=idna''a\n\nx"
        ),
        expected="ann@a.example: 'hello' with ['a']",
    ),
    "a file that climbs": OddMail(
        reason="a name is a suggestion; it is shown, and never a path",
        raw=many("multipart/mixed", TEXT, f'{FILE}"../../etc/passwd"\n\nx'),
        expected="ann@a.example: 'hello' with ['../../etc/passwd']",
    ),
    "a file in encoded words": OddMail(
        reason="Outlook and Gmail write names so, against RFC 2231",
        raw=many("multipart/mixed", TEXT, f'{FILE}"=?utf-8?q?Stra=C3=9Fe.pdf?="\n\nx'),
        expected="ann@a.example: 'hello' with ['Straße.pdf']",
    ),
    "a file in pieces": OddMail(
        reason="Apple Mail and Thunderbird write long names so (RFC 2231, 4.1)",
        raw=many(
            "multipart/mixed", TEXT, f"{FILE}x; filename*0*=utf-8''Stra%C3; filename*1*=%9Fe\n\nx"
        ),
        expected="ann@a.example: 'hello' with ['x']",
    ),
    # --- what programs write ---------------------------------------------------------------------
    "Outlook's winmail.dat": OddMail(
        reason="rich text between Exchange servers; the words stand beside it",
        raw=many(
            "multipart/mixed", TEXT, 'Content-Type: application/ms-tnef; name="winmail.dat"\n\nx'
        ),
        expected="ann@a.example: 'hello' with ['winmail.dat']",
    ),
    "an invitation": OddMail(
        reason="a calendar's part says the same as the words, in another form",
        raw=many(
            "multipart/alternative",
            TEXT,
            "Content-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR",
        ),
        expected="ann@a.example: 'hello' with ['part-2.calendar']",
    ),
    "a signed mail": OddMail(
        reason="S/MIME puts the words one level down, and the signature beside",
        raw=many(
            "multipart/signed",
            TEXT,
            'Content-Type: application/pkcs7-signature; name="smime.p7s"\n\nx',
        ),
        expected="ann@a.example: 'hello' with ['smime.p7s']",
    ),
    "a mail within a mail": OddMail(
        reason="forwarded as a file; its words are somebody else's, and its headers count for nothing",
        raw=many(
            "multipart/mixed",
            TEXT,
            "Content-Type: message/rfc822\n\nAuto-Submitted: auto-replied\n\nx",
        ),
        expected="ann@a.example: 'hello' with ['part-2.eml']",
    ),
    "an empty plain part": OddMail(
        reason="programs that write HTML alone put one beside it",
        raw=many(
            "multipart/alternative",
            "Content-Type: text/plain\n\n \n",
            "Content-Type: text/html\n\n<p>hello</p>",
        ),
        expected="ann@a.example: 'hello'",
    ),
    "HTML in many parts": OddMail(
        reason="each may be long, and a hundred of them in one mail took a minute to read",
        raw=many("multipart/mixed", f"{HTML}{UNSEEN}", f"{HTML}<p>late</p>"),
        expected="ann@a.example: ''",
    ),
    "HTML that hides": OddMail(
        reason="what its reader does not see is not said to the model either",
        raw=html("<title>x</title><style>y</style><p hidden>z</p><script>w</script><p>hello</p>"),
        expected="ann@a.example: 'hello'",
    ),
    "Gmail's quotation": OddMail(
        reason="its own mark around what is quoted",
        raw=html(
            '<div>hello</div><div class="gmail_quote"><div>On Monday, Bob wrote:</div>old</div>'
        ),
        expected="ann@a.example: 'hello\\nOn Monday, Bob wrote:\\nold' own 'hello'",
    ),
    "Outlook's quotation": OddMail(
        reason="a mark before it, and nothing around it",
        raw=html('<p>hello</p><div id="divRplyFwdMsg">From: Bob</div><div>old</div>'),
        expected="ann@a.example: 'hello\\n\\nFrom: Bob\\nold' own 'hello'",
    ),
    "Apple Mail's quotation": OddMail(
        reason="a blockquote of the kind that is cited",
        raw=html(
            'hello<blockquote type="cite">On 1 May 2026, Bob &lt;b@a.example&gt; wrote: old</blockquote>'
        ),
        expected="ann@a.example: 'hello\\n\\nOn 1 May 2026, Bob <b@a.example> wrote: old' own 'hello'",
    ),
    "a command above a quotation": OddMail(
        reason="people answer a card with a word on top",
        raw=mail(body="/approve 3\n\nOn 1 May 2026, Zero <bot@zero.test> wrote:\n> knock"),
        expected="ann@a.example: /approve 3",
    ),
    "a command in a quotation": OddMail(
        reason="what somebody else wrote commands nothing",
        raw=mail(body="> /approve 3\n\nshould I?"),
        expected="ann@a.example: '> /approve 3\\n\\nshould I?' own 'should I?'",
    ),
    "a NUL": OddMail(
        reason="no store takes one in a text",
        raw=mail(body=b"a\x00b"),
        expected="ann@a.example: 'a�b'",
    ),
    "half a character": OddMail(
        reason="UTF-7 and broken UTF-16 can say lone surrogates, which nothing can write down",
        raw=mail(
            "Content-Type: text/plain; charset=utf-16-le",
            "Content-Transfer-Encoding: base64",
            body=base64.b64encode(b"a\x00\x00\xd8b\x00"),
        ),
        expected="ann@a.example: 'a�b'",
    ),
}
