"""Mails of every shape are taken apart, within bounds."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.loop_steps import calls_made
from zeroclaw.text.mail import MAX_LEVELS, MAX_PARTS, MAX_VALUE_CHARS, parse_mail, plain_header


def words(raw: bytes) -> list[str]:
    mail = parse_mail(raw)
    return [mail.text(part) for part in mail.parts]


def nested(levels: int, inner: bytes = b"deep") -> bytes:
    heads = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (at, at) for at in range(levels)
    )
    ends = b"".join(b"\n--b%d--" % at for at in reversed(range(levels)))
    return heads + b"\n" + inner + ends + b"\n"


def test_a_mail_without_headers_is_all_words() -> None:
    assert words(b"\nhello") == ["hello"]
    assert words(b"\r\nhello") == ["hello"]
    assert words(b"") == [""]


def test_headers_end_at_the_first_empty_line_of_either_kind() -> None:
    assert words(b"Subject: a\n\nb\r\n\r\nc") == ["b\n\nc"]
    assert words(b"Subject: a\r\n\r\nb\n\nc") == ["b\n\nc"]


def test_a_header_is_unfolded_and_kept_as_often_as_it_comes() -> None:
    mail = parse_mail(b"A: 1\r\n 2\r\nB: \xc3\xbc\r\na: 3\r\n\r\n")
    assert mail.headers == (("a", "1 2"), ("b", "ü"), ("a", "3"))
    assert (mail.header("a"), mail.header("c")) == ("1 2", "")


def test_a_blank_before_the_colon_ends_no_headers() -> None:
    """RFC 5322, 4.5: so they were written once, and servers read them so; nor is any below unseen."""
    mail = parse_mail(b"A: 1\r\nB \t: 2\r\na : 3\r\n : 4\r\n\r\nx : y")
    assert mail.headers == (("a", "1"), ("b", "2"), ("a", "3 : 4"))
    assert [mail.text(part) for part in mail.parts] == ["x : y"]


def test_a_header_that_is_too_long_reads_as_empty() -> None:
    """Half of it could say the opposite of the whole."""
    assert parse_mail(b"A: " + b"a" * (MAX_VALUE_CHARS + 1) + b"\n\n").headers == (("a", ""),)


@pytest.mark.parametrize("filler", [b" " * MAX_VALUE_CHARS, b";" * 7_000])
def test_a_header_that_is_too_long_has_no_parameters(filler: bytes) -> None:
    """The standard library copies all that follows for each: a hundred such parts took 17 s. P9."""
    long = b"Content-Type: application/pdf;" + filler + b'; name="a.pdf"\n\n'
    [part] = parse_mail(long).parts
    assert (part.kind, part.name) == ("application/pdf", "part-1.pdf")
    assert calls_made(lambda: parse_mail(long)) < 1_000
    [part] = parse_mail(long.replace(filler, filler[:9])).parts
    assert part.name == "a.pdf"


def test_parts_are_found_with_any_line_ending() -> None:
    lines = (
        b"Content-Type: multipart/mixed; boundary=x",
        b"",
        b"preamble",
        b"--x",
        b"",
        b"one",
        b"--x",
        b"Content-Type: text/html",
        b"",
        b"<b>",
        b"--x--",
        b"epilogue",
    )
    assert words(b"\n".join(lines)) == ["one", "<b>"]
    assert words(b"\r\n".join(lines)) == ["one", "<b>"]
    assert words(b"\n".join(lines[:-3])) == ["one", ""]
    assert words(b"\n".join(lines[:4])) == []


def test_a_container_without_a_boundary_is_a_leaf() -> None:
    assert words(b"Content-Type: multipart/mixed\n\n--x\n\none") == ["--x\n\none"]


def test_parts_that_say_the_same_share_their_choice() -> None:
    mail = parse_mail(
        b"Content-Type: multipart/alternative; boundary=x\n\n--x\n\na\n--x\n"
        b"Content-Type: multipart/related; boundary=y\n\n--y\nContent-Type: text/html\n\nb\n--y--\n--x--"
    )
    first, second = mail.parts
    assert first.choice == second.choice > 0


@pytest.mark.parametrize("levels", [1, MAX_LEVELS, 50, 3_000])
def test_nesting_has_a_bound(levels: int) -> None:
    """Beyond it a part is a leaf that is no words; nothing calls itself."""
    [leaf] = parse_mail(nested(levels)).parts
    assert (leaf.kind == "text/plain") is (levels <= MAX_LEVELS)


def test_a_hundred_thousand_parts_are_no_more_than_a_hundred() -> None:
    raw = b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\na\n" * 100_000
    assert len(parse_mail(raw).parts) == MAX_PARTS


def test_containers_of_containers_have_the_bound_of_all() -> None:
    inner = b"Content-Type: multipart/mixed; boundary=y\n\n" + b"--y\n\na\n" * 60
    raw = b"Content-Type: multipart/mixed; boundary=x\n\n" + (b"--x\n" + inner) * 60
    assert len(parse_mail(raw).parts) == MAX_PARTS


def test_boundaries_that_hardly_differ_are_no_trap() -> None:
    near = b"\n--" + b"a" * 69
    raw = b"Content-Type: multipart/mixed; boundary=" + b"a" * 69 + b"b\n\n" + near * 20_000
    assert parse_mail(raw).parts == ()


BODIES = {
    b"base64": (b"aGVs bG8=\n", "hello"),
    b"BASE64 ": (b"aGVsbG8", "hello"),
    b"base64  ": (b"aGVsbG8hQ", "hello!"),
    b"quoted-printable": (b"h=65llo =\n=C3=BC =ZZ", "hello ü =ZZ"),
    b"8bit": (b"\xc3\xbc", "ü"),
    b"x-made-up": (b"a=20b", "a=20b"),
}


@pytest.mark.parametrize(("encoding", "body"), BODIES.items())
def test_a_body_is_read_as_it_travelled(encoding: bytes, body: tuple[bytes, str]) -> None:
    sent, read = body
    assert words(b"Content-Transfer-Encoding: " + encoding + b"\n\n" + sent) == [read]


CHARSETS = {
    b"utf-8": (b"\xc3\xbc\xff", "ü\ufffd"),
    b"iso-8859-1": (b"\xfc", "ü"),
    b"KOI8-R": (b"\xd4", "т"),
    b"ISO-8859-8-I": (b"\xe0", "א"),
    b"gb2312": (b"\x95N", "昇"),
    b"utf-16": (b"\xfe\xff\x00a", "a"),
    b"cp932": (b"\x87@", "①"),
    b"ks_c_5601-1987": (b"\x81A", "갂"),
    b"ms950": (b"\xa7A", "你"),
    b"euc-cn": (b"\xc4\xe3", "你"),
    b"hz-gb-2312": (b"~{Dc~}", "你"),
    b"iso-2022-jp-2": (b"\x1b$B$3\x1b(B \x1b.J\x1bNc", "こ \ufffd\x1bNc"),
    b"latin9": (b"\xa4", "€"),
    b"csISOLatin1": (b"\x80", "€"),
    b"greek": (b"\xeb", "λ"),
    b"cp862": (b"\x80", "א"),
    b"cp1140": (b"\x81", "\ufffd"),
    b"utf-7": (b"+2AA-", "+2AA-"),
    b"punycode": (b"a-\xc3\xbc", "a-ü"),
    b"hex": (b"41", "41"),
    b"no-such-charset": (b"\xfc", "ü"),
    b"a\\b/../c": (b"\xfc\x81", "\xfc\ufffd"),
    b'""': (b"a\x00b", "a\ufffdb"),
}


@pytest.mark.parametrize(("charset", "body"), CHARSETS.items())
def test_a_charset_is_believed_as_far_as_it_can_be_read(
    charset: bytes, body: tuple[bytes, str]
) -> None:
    sent, read = body
    assert words(b"Content-Type: text/plain; charset=" + charset + b"\n\n" + sent) == [read]


def test_a_made_up_charset_is_not_looked_up() -> None:
    """Python remembers each name for good, and strangers' mails may hold a hundred each."""
    sought: list[str] = []
    search = sought.append
    codecs.register(search)
    try:
        words(b"Content-Type: text/plain; charset=made-up-1\n\nhi")
        parse_mail(b"Content-Disposition: inline; filename*=made-up-2''a\n\nhi")
        plain_header("=?made-up-3?Q?a?=")
    finally:
        codecs.unregister(search)
    assert sought == []


NAMES = {
    b'attachment; filename="a b.txt"': "a b.txt",
    b"attachment; filename*=utf-8''%C3%BC.txt": "ü.txt",
    b"attachment; filename*0=a; filename*1=b.txt": "ab.txt",
    b'attachment; filename="=?utf-8?Q?=C3=BC.txt?="': "ü.txt",
    b"attachment": "part-1.plain",
    b"attachment; filename*=idna''a%FC": "aü",
    b"attachment; filename*=; filename*0": "part-1.plain",
    b"attachment; filename*=utf-8\x00''a": "a",
}


@pytest.mark.parametrize(("disposition", "name"), NAMES.items())
def test_a_file_is_called_as_its_sender_calls_it(disposition: bytes, name: str) -> None:
    [part] = parse_mail(b"Content-Disposition: " + disposition + b"\n\nx").parts
    assert (part.name, part.is_file) == (name, True)


def test_a_boundary_that_can_not_be_read_is_none() -> None:
    assert words(b"Content-Type: multipart/mixed; boundary*=; boundary*0\n\n--a\n\nb") == [
        "--a\n\nb"
    ]


def test_a_size_that_is_no_number_is_reckoned() -> None:
    sizes = [
        parse_mail(b"Content-Disposition: attachment; size=" + size + b"\n\nx").parts[0].size_bytes
        for size in (b"12", b"-1", b"\xc2\xb2", b"9" * 40)
    ]
    assert sizes == [12, 1, 1, 1]


def holding(boundary: str, *parts: str) -> str:
    between = "".join(f"\n--{boundary}\n{part}" for part in parts)
    return f"Content-Type: multipart/mixed; boundary={boundary}\n{between}\n--{boundary}--\n"


def test_many_containers_of_long_boundaries_take_few_steps() -> None:
    """Strangers' mails are parsed before their sender is known as a stranger. P9."""
    empty = [holding(f"{'b' * 1_000}{at}") for at in range(MAX_PARTS)]
    rows = [holding(f"a{at}", *empty) for at in range(10)]
    assert calls_made(lambda: parse_mail(holding("x", *rows).encode())) <= 300 * 2 * MAX_PARTS


def test_of_too_many_containers_the_first_ones_are_read() -> None:
    within = [holding(f"b{at}", f"\n{at}") for at in range(2 * MAX_PARTS)]
    mail = holding("x", holding("y", *within[:60]), holding("z", *within[60:]))
    assert words(mail.encode()) == [
        f"{at}" for at in range(MAX_PARTS - 4)
    ]  # x, y, z and the last that is opened


def test_a_boundary_may_be_the_last_that_came() -> None:
    assert words(b"Content-Type: multipart/mixed; boundary=x\n\n--x\n\nhi\n--x") == ["hi"]


def test_a_footer_beside_a_page_hides_neither() -> None:
    """Mailing lists put one below each mail; only of alternatives one is read."""
    footer = "\nlist footer"
    page = "Content-Type: text/html\n\n<p>hello"
    texts = parse_mail(holding("x", page, footer).encode()).texts()
    assert texts == [("text/html", "<p>hello"), ("text/plain", "list footer")]


def test_the_parts_of_a_digest_are_forwarded_mails() -> None:
    """They need not say so (RFC 2046, 5.1.5), and passed for the text of whoever forwards them."""
    digest = holding("y", "\nFrom: Eve <eve@b.example>\n\nrun it").replace("mixed", "digest")
    mail = parse_mail(holding("x", "\nhello", digest).encode())
    assert mail.texts() == [("text/plain", "hello")]
    assert [part.name for part in mail.parts if part.is_file] == ["part-2.eml"]


ENCODED = {
    "plain": "plain",
    "=?utf-8?B?w7w=?= =?iso-8859-1?Q?=FC_b?=": "üü b",
    "=?utf-8?B?w7w?=": "ü",
    "=?no-such?Q?a=FC?=": "aü",
    "=?utf-8?B?a?=": "=?utf-8?B?a?=",
    "a\x00b": "a\ufffdb",
    "a\r\n b": "a b",
}


@pytest.mark.parametrize(("value", "read"), ENCODED.items())
def test_encoded_words_are_read(value: str, read: str) -> None:
    assert plain_header(value) == read


HEADS = st.sampled_from(
    (b"Content-Type: multipart/mixed; boundary=x\n", b"Content-Type: text/html; charset=", b"\n\n",
     b"--x\n", b"--x--", b"Content-Transfer-Encoding: base64\n", b"\r\n", b"=?utf-8?Q?", b"\x00\xff")
)  # fmt: skip


@given(st.lists(HEADS | st.binary(max_size=8), max_size=30).map(b"".join))
def test_any_bytes_are_parsed(raw: bytes) -> None:
    mail = parse_mail(raw)
    for part in mail.parts:
        mail.text(part).encode()
    for _, value in mail.headers:
        plain_header(value).encode()
