"""Secrets never come out, and how a text was cut makes no difference."""

import base64
import json
import string
import unicodedata
from html import escape
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fakes.disguises import LISTED
from tests.fakes.loop_steps import calls_made
from zeroclaw.redact import (
    LONGEST_VALUE,
    LONGEST_WORD,
    MARKER,
    Redaction,
    Redactor,
    disguise,
    holds_marker,
    secret_environment,
    without_credentials,
)
from zeroclaw.redact.disguise import key

VALUE = 's3cret/"va+lue" <ü>'
IN_BASE64 = "hunter>>>???~~~"  # every alignment of it contains a sign that is another one in URLs
KNOWN = (VALUE, IN_BASE64, "hunter2hunter2", "hunter2hunter3", "aaaaaaaaa", "efghijkl", "abcdefgh")
REDACTOR = Redactor((*KNOWN, "short"))

WORD = "aB3" * 20
PEM = "-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----"
PEM_LINES = ("MIIEpAIBAAKCAQEA7bq0+/x1" * 2 + "\n") * 12

# What a text holds, and what comes out.
SHAPES = {
    "jwt": (f"eyJhbGciOi{WORD}.eyJzdWIi{WORD}.{WORD}", MARKER),
    "jwe": (f"eyJhbGciOi{WORD}.{WORD}..{WORD}.{WORD}", MARKER),
    "unsigned jwt": (f"eyJhbGciOi{WORD}.eyJzdWIi{WORD}. ok", f"{MARKER} ok"),
    "aws": ("id AKIA" + "QWERTYUIOPASDFGH, ok", f"id {MARKER}, ok"),
    "not aws": ("AKIA" + "QWERTYUIOPASDFGHJ", "AKIA" + "QWERTYUIOPASDFGHJ"),
    "github": (f"use ghp_{WORD[:36]}!", f"use {MARKER}!"),
    "github fine-grained": (f"github_pat_{WORD}", MARKER),
    "gitlab": (f"glpat-{WORD[:20]}", MARKER),
    "openai": (f"sk-proj-{WORD}.", f"{MARKER}."),
    "anthropic": (f"'sk-ant-api03-{WORD}'", f"'{MARKER}'"),
    "a class name": (
        "sk-fading-circle-container-of-things",
        "sk-fading-circle-container-of-things",
    ),
    "groq": (f"gsk_{WORD}", MARKER),
    "pypi": (f"pypi-{WORD}", MARKER),
    "slack": (f"xoxb-{WORD}", MARKER),
    "slack app": (f"xapp-1-{WORD}", MARKER),
    "slack hook": (
        f"https://hooks.slack.com/services/T0/B0/{WORD}",
        f"https://hooks.slack.com/{MARKER}",
    ),
    "google": (f"AIza{WORD[:35]}", MARKER),
    "google oauth": (f"ya29.{WORD}", MARKER),
    "stripe": (f"sk_live_{WORD}", MARKER),
    "stripe hook": (f"whsec_{WORD}", MARKER),
    "sendgrid": (f"SG.{WORD[:22]}.{WORD[:43]}", MARKER),
    "discord": (f"M{WORD[:23]}.Gabc12.{WORD[:38]}", MARKER),
    "discord hook": (
        f"https://discord.com/api/webhooks/123456789012345678/{WORD}",
        f"https://discord.com/api/webhooks/{MARKER}",
    ),
    "telegram": (f"bot123456789:{WORD[:35]}/getMe", f"bot{MARKER}/getMe"),
    "not telegram": (f"12345:{WORD[:35]} 123456789:{WORD[:36]}",) * 2,
    "age": ("AGE-SECRET-KEY-1" + "Q2W3" * 15, MARKER),
    "url": ("postgres://bob:p@ss:w0rd@db:5432/x", f"postgres://bob:{MARKER}@db:5432/x"),
    "url without a password": ("https://example.org:8080/a@b",) * 2,
    "header": ("Authorization: Basic dXNlcjpwYXNz\n", f"Authorization: Basic {MARKER}\n"),
    "json header": (
        '{"authorization": "Bearer qwertyui"}',
        f'{{"authorization": "Bearer {MARKER}"}}',
    ),
    "header without a scheme": ("authorization: a1b2c3d4e5f6", f"authorization: {MARKER}"),
    "header in prose": ("Authorization: required for all",) * 2,
    "too short a credential": ("Authorization: Basic abc=\n",) * 2,
    "bearer": ("a bearer a1b2c3d4e5f6g7", f"a bearer {MARKER}"),
    "an okapi in prose": ("the okapi key is a1b2c3d4e5f6",) * 2,
    "an api in prose": ("the API is a1b2c3d4e5f6",) * 2,
    "bearer in prose": ("a bearer token is needed",) * 2,
    "pair": ("DB_PASSWORD=c0rrect-horse", f"DB_PASSWORD={MARKER}"),
    "pair with spaces": ("password = 'c0rrect-horse'", f"password = '{MARKER}'"),
    "pair over a word": ("client_secret =c0rrect-horse;", f"client_secret ={MARKER};"),
    "arrow": ("'token' => 'c0rrect-horse'", f"'token' => '{MARKER}'"),
    "yaml": ("api_key: c0rrect-horse.", f"api_key: {MARKER}."),
    "bold": ("**API key:** c0rrect-horse", f"**API key:** {MARKER}"),
    "prose": ("The secret is c0rrect-horse!", f"The secret is {MARKER}!"),
    "two words": ("your access key: c0rrect-horse", f"your access key: {MARKER}"),
    "two words, no key": ("an api for c0rrect-horses", "an api for c0rrect-horses"),
    "query": ("/x?access_token=c0rrect-horse&a=1", f"/x?access_token={MARKER}&a=1"),
    "query of words": ("/x?access_token=correct-horse&a=1",) * 2,
    "a count": ("total_tokens: 123456789012",) * 2,
    "code": ("password = request.form['password']",) * 2,
    "another line": ("password:\nc0rrect-horse",) * 2,
    "escaped line end": (f"x\\nghp_{WORD}\\n", f"x\\n{MARKER}\\n"),
    "escape and name": ("C:\\token=c0rrect-horse", f"C:\\token={MARKER}"),
    "receipt": (f"[receipt: zc-receipt-1700000000-{'x-sk-1' * 7}a]",) * 2,
    "long word": (f"a {'x' * (LONGEST_WORD + 1)} b", f"a {MARKER} b"),
    "longest word": (f"a {'x' * LONGEST_WORD} b",) * 2,
    "pem": (f"a\n{PEM.format(PEM_LINES)}\nb", f"a\n{MARKER}\nb"),
    "pem in json": (json.dumps({"k": PEM.format(PEM_LINES)}), f'{{"k": "{MARKER}"}}'),
    "pem on one line": (PEM.format(PEM_LINES).replace("\n", " ") + " b", f"{MARKER} b"),
    "pem with fields": (
        PEM.format(f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,(0).\n\n{PEM_LINES}"),
        MARKER,
    ),
    "pem as a value": (f"key={PEM.format(PEM_LINES)} b", f"key={MARKER} b"),
    "pem cut off": (PEM.format(PEM_LINES)[:300], MARKER),
    "pem field cut off": (PEM.format("Version: GnuPG (1)"), MARKER),
    "pem in prose": (
        "`-----BEGIN PRIVATE KEY-----` begins one: AKIA" + "QWERTYUIOPASDFGH",
        f"`{MARKER}` begins one: {MARKER}",
    ),
    "pem and a colon": (f"-----BEGIN PRIVATE KEY-----: {WORD}", f"{MARKER}: {WORD}"),
    "pgp": (
        f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v1.4 (Linux)\n\n{PEM_LINES}"
        "=abcd\n-----END PGP PRIVATE KEY BLOCK-----\nb",
        f"{MARKER}\nb",
    ),
    "certificate": (f"-----BEGIN CERTIFICATE-----\n{PEM_LINES}-----END CERTIFICATE-----",) * 2,
    "half a header": ("-----BEGIN RSA",) * 2,
    "long header": (f"-----BEGIN {'A ' * 60}",) * 2,
}

# The shortest tokens of every other issuer and kind.
TOKENS = (
    *(f"{kind}QWERTYUIOPASDFGH" for kind in ("ASIA", "ABIA", "ACCA")),
    *(f"gh{kind}_{WORD[:30]}" for kind in "ousr"),
    *(f"gl{kind}-{WORD[:20]}" for kind in ("ptt", "dt", "rt", "oas", "soat", "agent")),
    *(f"{kind}{WORD[:30]}" for kind in ("xai-", "hf_", "npm_", "r8_")),
    *(f"xox{kind}-{WORD[:10]}" for kind in "aceoprs"),
    *(f"{kind}_{WORD[:16]}" for kind in ("sk_test", "rk_live", "rk_test")),
    *(f"{kind}{WORD[:23]}.Gabc12.{WORD[:27]}" for kind in "NO"),
    *(f"do{kind}_v1_{'0123456789abcdef' * 4}" for kind in "opr"),
    *(f"shp{kind}_{'0123456789aBcDeF' * 2}" for kind in ("at", "ss", "ca", "pa")),
    f"GOCSPX-{WORD[:20]}",
)


def streamed(redactor: Redactor, pieces: list[str]) -> str:
    state, out = Redaction(), ""
    for piece in pieces:
        state, safe = redactor.feed(state, piece)
        out += safe
    return out + redactor.flush(state)


def cut(text: str, points: list[int]) -> list[str]:
    ends = sorted(point % (len(text) + 1) for point in points)
    return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_of_any_kind_is_redacted(token: str) -> None:
    assert REDACTOR.redact(f"a {token} b") == f"a {MARKER} b"


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_redacted_at_every_split_point(name: str) -> None:
    """A well-known shape comes out the same wherever its stream was cut. S3-37, K16."""
    text, expected = SHAPES[name]
    every = range(len(text)) if len(text) < 1000 else range(0, len(text), 61)
    outs = {streamed(REDACTOR, [text[:at], text[at:]]) for at in every}
    assert {REDACTOR.redact(text), streamed(REDACTOR, list(text)), *outs} == {expected}


FORMS = {
    "plain": VALUE,
    "json": json.dumps(VALUE)[1:-1],
    "json in utf-8": json.dumps(VALUE, ensure_ascii=False)[1:-1],
    "json of php": json.dumps(VALUE)[1:-1].replace("/", r"\/"),
    "json of go": json.dumps(VALUE)[1:-1].replace("<", r"\u003c").replace(">", r"\u003e"),
    "html": escape(VALUE),
    "html between tags": escape(VALUE, quote=False),
    "url": quote(VALUE, safe=""),
    "url path": quote(VALUE),
    "url form": quote_plus(VALUE),
    "url in lower case": quote(VALUE, safe="").lower(),
    "base64": base64.b64encode(IN_BASE64.encode()).decode().rstrip("="),
    "base64 in urls": base64.urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
    "base32": base64.b32encode(VALUE.encode()).decode().rstrip("="),
    "hex": VALUE.encode().hex(),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_known_value_is_redacted_in_every_form(name: str) -> None:
    """A value that JSON, HTML or a URL has changed is still recognised. S3-37."""
    text = f"x{FORMS[name]}y"
    outs = {streamed(REDACTOR, [text[:at], text[at:]]) for at in range(len(text))}
    assert outs == {f"x{MARKER}y"}


@pytest.mark.parametrize("quotes", ["''", '""', "'\""])
@pytest.mark.parametrize("apostrophe", ["&#x27;", "&#39;", "&#039;"])
def test_a_known_value_with_quotes_is_redacted_in_html(quotes: str, apostrophe: str) -> None:
    """Libraries differ in how they write an apostrophe. S3-37."""
    redactor = Redactor([f"open{quotes}&sesame"])
    written = escape(f"open{quotes}&sesame").replace("&#x27;", apostrophe)
    assert redactor.redact(written) == MARKER


def test_a_known_value_that_is_no_utf_8_is_redacted() -> None:
    """The environment may hold any bytes. S3-37."""
    value = "caf\udce9-au-lait"
    redactor = Redactor([value])
    written = quote(value, safe="", errors="surrogatepass")
    assert redactor.redact(f"{value} {written}") == f"{MARKER} {MARKER}"


@given(before=st.binary(max_size=7), after=st.binary(max_size=7), safe=st.booleans())
def test_a_known_value_is_redacted_inside_base64(before: bytes, after: bytes, safe: bool) -> None:
    """A value is found at each alignment inside a larger Base64 text. S3-37."""
    value = IN_BASE64
    encode = base64.urlsafe_b64encode if safe else base64.b64encode
    out = REDACTOR.redact(encode(before + value.encode() + after).decode())
    assert holds_marker(out)
    # A character at each edge belongs to a neighbour as well; no whole group of the value is left.
    rest = "".join(character for character in out.replace(MARKER, " ") if character not in " =")
    assert len(rest) <= (len(before) + len(after)) * 4 / 3 + 4


LONG_VALUE = "correct-horse-battery-staple-" * 4
OF_LONG_VALUE = Redactor((LONG_VALUE,))


@pytest.mark.parametrize("width", [64, 76])
@given(before=st.binary(max_size=90), step=st.integers(1, 200))
def test_a_known_value_is_redacted_in_lines_of_base64(before: bytes, step: int, width: int) -> None:
    """As `openssl base64` and `base64` print it, wherever in a line it begins. S3-37."""
    encoded = base64.b64encode(before + LONG_VALUE.encode() + b"!").decode()
    lines = "\n".join(encoded[at : at + width] for at in range(0, len(encoded), width))
    pieces = [lines[at : at + step] for at in range(0, len(lines), step)]
    out = streamed(OF_LONG_VALUE, pieces)
    assert out.count(MARKER) == 1
    # A character at each edge belongs to a neighbour as well.
    assert len("".join(out.replace(MARKER, "").split())) <= (len(before) + 1) * 4 / 3 + 5


@given(
    before=st.binary(max_size=6),
    value=st.text(min_size=8, max_size=40),
    after=st.binary(max_size=6),
    form=st.sampled_from(("hex", "HEX", "base32")),
)
def test_a_known_value_is_redacted_inside_base16_and_base32(
    before: bytes, value: str, after: bytes, form: str
) -> None:
    """As `xxd -p` and `base32` print it, wherever in a larger text it begins. S3-37."""
    data = before + value.encode() + after
    encoded = {
        "hex": data.hex(),
        "HEX": data.hex().upper(),
        "base32": base64.b32encode(data).decode(),
    }
    out = Redactor((value,)).redact(encoded[form])
    assert holds_marker(out)
    # A character at each edge belongs to a neighbour as well, and the last one to nothing.
    rest = "".join(character for character in out.replace(MARKER, " ") if character not in " =")
    assert len(rest) <= (len(before) + len(after)) * 8 / {"base32": 5}.get(form, 4) + 3


def test_a_person_reads_no_known_value_in_base32_of_small_letters() -> None:
    encoded = base64.b32encode(b"a hunter2hunter2 b").decode().lower()
    assert REDACTOR.in_reading(encoded) != []


PARTS = st.one_of(
    st.sampled_from([text for text, _ in SHAPES.values() if len(text) < 1000]),
    st.sampled_from(list(FORMS.values())),
    st.sampled_from([value[:cut] for value in KNOWN for cut in (3, 8, 20)]),
    st.sampled_from(
        [
            "-----BEGIN",
            " PRIVATE KEY-----",
            "-----END X-----",
            "password",
            ": ",
            "=",
            "\\n",
            "\n",
            "Bearer",
            "Authorization",
            "api",
            "key",
            "://",
            "@",
            "eyJ",
            ".",
            "\\",
            "is ",
            " ",
        ]
    ),
    st.text(string.ascii_letters + string.digits + "-_. :=\"'\\\n/@ü", max_size=12),
)
TEXTS = st.lists(PARTS, max_size=8).map("".join)


@given(text=TEXTS, points=st.lists(st.integers(0, 5000), max_size=6))
@example(text="abcdefghijklabcdefgh", points=[8, 9])
def test_where_a_stream_is_cut_makes_no_difference(text: str, points: list[int]) -> None:
    """Any text, cut anywhere, comes out as the whole text does. S3-37, K16."""
    assert streamed(REDACTOR, cut(text, points)) == REDACTOR.redact(text)


@given(text=TEXTS)
@example(text="token=abc123-----BEGIN x")
def test_a_text_streamed_by_characters_comes_out_as_the_whole(text: str) -> None:
    """One character at a time is no different from all at once. S3-37, K16."""
    assert streamed(REDACTOR, list(text)) == REDACTOR.redact(text)


@given(
    values=st.lists(st.text("ab", min_size=8, max_size=12), min_size=1, max_size=5),
    text=st.text("ab", max_size=60),
    points=st.lists(st.integers(0, 60), max_size=4),
)
@example(values=["ab" * 4, "cd" * 4, "ababcdcdcdcde"], text="ababababcdcdcdcde", points=[])
@example(values=["ababcdcdab", "cdcdabccc"], text="ababcdcdabx", points=[])
@example(values=["ababcdcdabdd", "cdcdabcc"[:8], "bcdcdabd"], text="ababcdcdabdx", points=[])
def test_no_known_value_survives(values: list[str], text: str, points: list[int]) -> None:
    """Exactly what lies in an occurrence of a value is covered, overlaps too. P8."""
    covered = {
        at
        for value in values
        for start in range(len(text))
        if text.startswith(value, start)
        for at in range(start, start + len(value))
    }
    out = streamed(Redactor(values), cut(text, points))
    assert out.replace(MARKER, "") == "".join(c for at, c in enumerate(text) if at not in covered)


@pytest.mark.parametrize("before", [3_990, 3_991, 4_000, 4_001, 9_000])
@pytest.mark.parametrize("step", [1, 7, 4_009, 100_000])
def test_a_private_key_behind_a_word_that_is_too_long_is_redacted(before: int, step: int) -> None:
    """It may follow without a blank, wherever a stream is cut (P8)."""
    lines = [base64.b64encode(bytes(range(n, n + 48))).decode() for n in (0, 48, 96, 144)]
    key = "\n".join(("-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"))
    text = f"{'a' * before}{key}\nafter"
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    shown = streamed(Redactor(), pieces)
    assert not any(line in shown for line in lines)
    assert shown.endswith("[redacted]\nafter")


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize("is_encoded", [False, True])
def test_a_known_value_within_a_private_key_does_not_end_it(is_encoded: bool, step: int) -> None:
    """The replacement is part of the key (P8)."""
    value = "correct-horse-battery-staple"
    inside = base64.b64encode(value.encode()).decode() if is_encoded else value
    text = f"{PEM.format(f'{PEM_LINES}{inside}{chr(10)}{PEM_LINES}')}\nafter"
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    assert streamed(Redactor([value]), pieces) == f"{MARKER}\nafter"


def test_overlapping_secrets_are_one_marker() -> None:
    """A value over the edge of two others makes one hole of the three; neighbours stay two."""
    redactor = Redactor(["abcdefgh", "ijklmnop", "efghijklmnopq"])
    assert streamed(redactor, list("xabcdefghijklmnopqx")) == f"x{MARKER}x"
    assert streamed(redactor, list("xabcdefghijklmnopx")) == f"x{MARKER * 2}x"


@given(text=TEXTS, points=st.lists(st.integers(0, 5000), max_size=6))
def test_never_more_than_8_kib_are_held(text: str, points: list[int]) -> None:
    """The text held back is bounded, for any input. K16."""
    state = Redaction()
    for piece in cut(text * 40, points):
        state, _ = REDACTOR.feed(state, piece)
        assert len(state.known.text) + len(state.shape.text) <= LONGEST_VALUE + LONGEST_WORD


def test_a_value_longer_than_is_held_is_redacted_in_pieces() -> None:
    """A long secret is covered to its last character. P8."""
    value = "".join(chr(0x4E00 + at) for at in range(LONGEST_VALUE * 2 + 5))
    out = streamed(Redactor([value]), [f"a{value[:5000]}", f"{value[5000:]}b"])
    assert out.replace(MARKER, "") == "ab"


def test_ordinary_text_is_shown_up_to_the_word_in_progress() -> None:
    """Holding back is no more than the word being written. P6."""
    state, shown = REDACTOR.feed(Redaction(), "Well, this is fi")
    assert shown == "Well, this is "
    _, shown = REDACTOR.feed(state, "ne, no?\n")
    assert shown == "fine, no?\n"


def test_text_without_spaces_is_not_held() -> None:
    """Scripts that write without spaces stream as they come. P6."""
    assert REDACTOR.feed(Redaction(), "漢字かな交じり文")[1] == "漢字かな交じり文"


@pytest.mark.parametrize(
    "text",
    [
        *("-eyJ" * 20_000, "token=" * 10_000, "a" * 80_000, "://a:" * 10_000, "SG." * 20_000),
        *("-----BEGIN " * 8_000, "-----BEGIN PRIVATE KEY-----" + "A-----END " * 8_000),
        "hunter2" * 10_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    """Texts made to make a pattern backtrack are read to their end. S3-37."""
    assert streamed(REDACTOR, cut(text, [*range(0, len(text), 997)])) == REDACTOR.redact(text)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        pytest.param("key: " * 4000, 7, id="one name again and again"),
        pytest.param("key: a1b2c3d4e5f6 " * 2000, 7, id="values that are redacted"),
        pytest.param("xox " * 4000, 7, id="what tells, and is nothing"),
        pytest.param("\\key " * 4000, 7, id="escaped"),
        pytest.param("-----BEGIN " * 4000, 4, id="what begins a private key"),
        pytest.param("".join(f"key{n}: " for n in range(4000)), 30, id="no name twice"),
    ],
)
def test_a_word_costs_few_steps(text: str, most: int) -> None:
    assert calls_made(lambda: REDACTOR.redact(text)) <= most * len(text.split())


def test_nothing_to_look_for_is_fine() -> None:
    """Without known values the shapes still count; values under 8 characters are no values."""
    assert Redactor(["1234567"]).redact("1234567 ghp_" + WORD) == f"1234567 {MARKER}"


def test_held_text_is_not_shown_by_repr() -> None:
    """A state in a log or a traceback gives nothing away. P8."""
    state, _ = REDACTOR.feed(Redaction(), "hunter2hunter")
    state, _ = REDACTOR.feed(state, "x password")
    assert "hunter" not in repr(state)
    assert "passw" not in repr(state)
    assert "hunter" not in repr(REDACTOR)


def test_the_environment_names_its_secrets() -> None:
    """Names that say TOKEN, KEY, SECRET or a word for password, with 8 characters. P8."""
    environment = {
        "BOT_TOKEN": "12345678",
        "api_key": "abcdefghi",
        "MY_SECRET": "1234567",
        "PATH": "/usr/bin:/bin",
        "PGPASSWORD": "p4ssw0rd!",
        "DB_PASSWD": "p4sswd!!",
        "BORG_PASSPHRASE": "open sesame",
    }
    assert secret_environment(environment) == {
        "BOT_TOKEN": "12345678",
        "api_key": "abcdefghi",
        "PGPASSWORD": "p4ssw0rd!",
        "DB_PASSWD": "p4sswd!!",
        "BORG_PASSPHRASE": "open sesame",
    }


def test_a_marker_is_recognised() -> None:
    """A write that would put the marker in place of a secret can be refused. P8."""
    assert holds_marker(f"password: {MARKER}")
    assert not holds_marker("password: redacted")


@pytest.mark.parametrize(
    ("text", "found", "known"),
    [
        ("nothing to see", False, False),
        (f"is {KNOWN[1]} it", True, True),
        (f"{WORD * 100}{KNOWN[1]}{WORD * 100}", True, True),
        ("the key sk-zyxwvutsrq0123456789zyxwvu", True, False),
        (PEM.format("".join(PEM_LINES)), True, False),
        (WORD * 100, False, False),
        (f"already {MARKER}", False, False),
        ("", False, False),
    ],
)
def test_what_can_not_be_redacted_is_looked_into(text: str, found: bool, known: bool) -> None:
    """A word too long to be judged is no secret by its length, but may hold a known one."""
    assert REDACTOR.finds(text) is found
    assert REDACTOR.finds(text, known_only=True) is known


def test_without_known_values_looks_are_found_all_the_same() -> None:
    assert Redactor().finds("the key sk-zyxwvutsrq0123456789zyxwvu")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host:8080/v1", "https://host:8080/v1"),
        ("https://ann:hunter2@host/v1", "https://…@host/v1"),
        ("https://hunter2@host/v1", "https://…@host/v1"),
        ("https://ann:hun/ter2@host/v1", "https://…@host/v1"),
        ("https://ann:hun?t#e://r2@host/v1", "https://…@host/v1"),
        ("https://ann:hun@ter2@host/v1", "https://…@host/v1"),
        ("ann:hunter2@host/v1", "…@host/v1"),
        ("//ann:hunter2@host/v1", "…@host/v1"),
        ("https://host/v1?key=hunter2", "https://host/v1?…"),
        ("https://host/v1#hunter2", "https://host/v1?…"),
        ("", ""),
    ],
)
def test_an_address_is_printed_without_what_opens_it(url: str, shown: str) -> None:
    """P8."""
    assert without_credentials(url) == shown


NOT_ENDING = st.text(alphabet=st.characters(exclude_characters="@", codec="utf-8"))


@given(NOT_ENDING, NOT_ENDING, st.sampled_from(["?", "#"]), NOT_ENDING)
def test_a_password_of_any_characters_is_not_printed(
    before: str, user: str, mark: str, after: str
) -> None:
    shown = without_credentials(f"https://{before}:{user}@host/v1{mark}{after}")
    assert shown == "https://…@host/v1?…"


@given(st.text(st.characters(max_codepoint=127)), st.booleans())
def test_a_reading_in_ascii_has_the_key_that_it_has_beside_other_letters(
    reading: str, bare: bool
) -> None:
    """The fast way and the other are one."""
    assert key(f"{reading}\u6587", bare=bare) == key(reading, bare=bare) + "\u6587"


def test_signs_beyond_those_that_are_remembered_read_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A text of more different signs than anybody writes takes longer, and no more memory."""
    monkeypatch.setattr(disguise, "_MAX_CACHED", 0)
    for _ in range(2):
        assert disguise.folded("\U0001d57c\U0001d58a") == disguise.folded("Qe")


def test_every_lookalike_that_unicode_lists_reads_as_its_letter() -> None:
    """Lunate sigmas for `c` did not: NFKD made another letter of them before they were looked up. P7."""
    pairs = [(word[0], sign) for word in LISTED.split() for sign in word[1:]]
    read = [(letter, key(disguise.folded(sign), bare=True), sign) for letter, sign in pairs]
    assert [pair for pair in read if key(pair[0], bare=True) != pair[1]] == []
    assert len(pairs) > 450


def test_the_other_case_of_a_lookalike_reads_as_the_same_letter() -> None:
    """Where Unicode lists only one of the two. P7."""
    assert disguise.folded("\u0413\u025c") == "r3"


@given(st.characters(min_codepoint=0x80))
def test_what_unicode_takes_for_an_ascii_letter_reads_as_that_letter(sign: str) -> None:
    """Mathematical, wide and circled letters, those in a frame, Roman numbers."""
    is_letter = (plain := unicodedata.normalize("NFKD", sign)).isascii() and plain.isalnum()
    assert not is_letter or disguise.folded(sign) == plain
