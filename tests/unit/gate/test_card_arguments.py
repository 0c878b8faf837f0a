"""What a card shows of a call, un-escaped, is what the hash binds (P5)."""

import base64
import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.disguises import LISTED
from zeroclaw.gate.action import canonical_json
from zeroclaw.gate.card_arguments import MOST_CARD_CHARS, CardArguments, Unshowable, card_arguments
from zeroclaw.redact import Redactor
from zeroclaw.text.escape import escape_invisible

NOTHING_KNOWN = Redactor()
KEY, OTHER = "sk-abcdefgh1234", "hunter2-hunter2"
KNOWING = Redactor(references={KEY: '{env="KEY"}', OTHER: '{file="/run/other"}'})

TEXTS = st.text() | st.text(alphabet='\\"⟦⟧⟨⟩U+202E{}\u202e\u200d\ufe0f\U000e0072a\u0338\n\x1b')
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
TREES = st.recursive(
    SCALARS | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=12
)


def shown(arguments: dict[str, object], redactor: Redactor = NOTHING_KNOWN) -> CardArguments:
    found = card_arguments(arguments, redactor)
    assert isinstance(found, CardArguments)
    return found


@given(st.dictionaries(TEXTS, TREES))
def test_what_is_shown_reads_back_as_what_the_hash_binds(arguments: dict[str, object]) -> None:
    """For all arguments that hold no known secret, and whatever a channel does with signs. P5."""
    text = shown(json.loads(canonical_json(arguments))).text
    assert canonical_json(json.loads(text)) == canonical_json(arguments)
    assert escape_invisible(text) == text
    assert all(sign == "\n" or sign.isprintable() for sign in text)


@pytest.mark.parametrize(
    "command",
    [
        'echo "-----BEGIN PRIVATE KEY-----" | rm -rf x #-----END PRIVATE KEY-----" | wc -c',
        "echo api token: a1b2c3d4e5f6&touch$IFS*X&true",
        "curl http://a:x&rm$IFS-rf$IFS*&@host",
        f"echo {'a' * 5000};rm -rf x;echo {'b' * 5000}",
        "curl 'https://x.example/?api_key=abcdef123456789&x=$(rm x)'",
        "Authorization: Bearer abcdef1234567890;rm",
        "AKIAABCDEFGHIJKLMNOP ghp_0123456789012345678901234567890123456789",
    ],
)
def test_nothing_is_hidden_by_its_shape(command: str) -> None:
    """What merely looks like a secret may be a command, and is shown."""
    assert json.loads(shown({"command": command}, KNOWING).text) == {"command": command}


@pytest.mark.parametrize(
    ("said", "shows"),
    [
        ("\u0441url x", r"\u0441url x"),
        ("curl e\u0445ample.org", r"curl e\u0445ample.org"),
        ("\uff43url", r"\uff43url"),
        ("\U0001d41aws", r"\ud835\udc1aws"),
        ("это\nюля 50км", r"это\nюля 50км"),
        ("\u0441\u043e\u0440\u0443 x", r"\u0441\u043e\u0440\u0443 x"),
        ("\u039a\u0395\u03a5", r"\u039a\u0395\u03a5"),
        ("\u0441\u043e\u0440\u0443 это", "\u0441\u043e\u0440\u0443 это"),
        ("café naïve straße Ærø", "café naïve straße Ærø"),
        ("Python程序 αβγ", "Python程序 αβγ"),
        ("a\u3164b", r"a\u3164b"),
        ("\u217durl ex\ua4d1le.org", r"\u217durl ex\ua4d1le.org"),
        ("v\u0966\u2c9f", r"v\u0966\u2c9f"),
        ("m² ½ ªº x① \u05d5Telegram Łódź Kapitel Ⅳ", "m² ½ ªº x① \u05d5Telegram Łódź Kapitel Ⅳ"),
        ("দাম ১০০ টাকা", "দাম ১০০ টাকা"),
    ],
)
def test_a_letter_that_passes_for_a_latin_one_is_escape_invisible(said: str, shows: str) -> None:
    """Within a word that has Latin letters, or where no letter of its own script tells it apart."""
    text = shown({"command": said}).text
    assert text == f'{{\n  "command": "{shows}"\n}}'
    assert json.loads(text) == {"command": said}


def test_every_lookalike_that_unicode_lists_is_told_apart_within_a_word() -> None:
    """But for Latin letters, of languages that are written with them, and those from right to left."""
    signs = [
        sign
        for word in LISTED.split()
        for sign in word[1:]
        if (sign.isalnum() and unicodedata.bidirectional(sign) not in ("R", "AL"))
        and (sign in "\u0251\u0261" or not unicodedata.name(sign).startswith("LATIN "))
    ]
    assert [sign for sign in signs if sign in shown({"command": f"ca{sign}t"}).text] == []
    assert len(signs) > 350


def test_a_known_secret_is_shown_as_its_reference() -> None:
    """The card says which one stands there, and how often."""
    found = shown({"command": f"curl -H '{KEY}' -d '{OTHER}' # {KEY}", "env": {KEY: 1}}, KNOWING)
    assert found == CardArguments(
        text='{\n  "command": "curl -H \'⟦{env="KEY"}⟧\' -d \'⟦{file="/run/other"}⟧\' # '
        '⟦{env="KEY"}⟧",\n  "env": {\n    "⟦{env="KEY"}⟧": 1\n  }\n}',
        hidden=('{env="KEY"}', '{file="/run/other"}', '{env="KEY"}', '{env="KEY"}'),
    )


@given(st.lists(TEXTS | st.sampled_from([KEY, OTHER]), max_size=6))
def test_a_reference_can_not_be_forged(parts: list[str]) -> None:
    """Putting the values back gives the call; a bracket that a model wrote never stays one."""
    command = "|".join(parts)
    found = shown({"command": command}, KNOWING)
    values = {'{env="KEY"}': KEY, '{file="/run/other"}': OTHER}
    put_back = re.sub("⟦(.*?)⟧", lambda mark: values[mark[1]], found.text)
    assert json.loads(put_back) == {"command": command}
    assert found.text.count("⟦") == found.text.count("⟧") == len(found.hidden)


@pytest.mark.parametrize(
    "form",
    [
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        "hunter2-hunter2-hunter2",  # overlaps itself
        "%68" + OTHER[1:] + " sk%2Dabcdefgh1234".replace("%2D", "-").replace("sk-", "sk-"),
    ],
)
def test_a_secret_that_can_not_be_named_is_not_put_to_anybody(form: str) -> None:
    """A form of it, or two that overlap, would be hidden without a name."""
    redactor = Redactor(references={KEY: '{env="KEY"}', OTHER: '{env="OTHER"}'})
    found = card_arguments({"command": form}, redactor)
    if isinstance(found, CardArguments):
        assert KEY not in found.text
        return
    assert found.why == "it holds a secret in a form that a card can neither show nor name"


def test_a_number_that_is_a_secret_is_not_put_to_anybody() -> None:
    """It stands outside of a text, where no reference can."""
    found = card_arguments({"pin": 12345678}, Redactor(references={"12345678": "x"}))
    assert isinstance(found, Unshowable)


def test_a_value_inside_another_is_named_as_the_longer_one() -> None:
    """The longer one is what stands there."""
    redactor = Redactor(references={"abcdefgh": "short", "x-abcdefgh-y": "long"})
    found = shown({"a": ["x-abcdefgh-y", "abcdefgh"]}, redactor)
    assert found.hidden == ("long", "short")


def test_a_call_that_is_too_large_is_not_put_to_anybody() -> None:
    """As it is shown, what can't be seen spelled out; the rest of the card counts too."""
    for arguments, chars in (
        ({"text": "x" * MOST_CARD_CHARS}, "60,016"),
        ({"text": "\u202e" * 20_000}, "120,016"),
    ):
        assert card_arguments(arguments, NOTHING_KNOWN) == Unshowable(
            why=f"it is too large to be shown whole on a card: {chars} characters where 60,000 are "
            "left; make it smaller, or split it"
        )
    assert isinstance(card_arguments({"text": "x" * 100}, NOTHING_KNOWN, 100), Unshowable)
