"""What people and the model read of a question: the call, its scope, and how it ended."""

import base64
import json
import re
import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.disguises import LISTED
from zeroclaw.envelope import (
    ActionId,
    Address,
    ApprovalId,
    ConversationId,
    MessageRef,
    Principal,
    TurnId,
)
from zeroclaw.gate.action import Action, canonical_json, propose
from zeroclaw.gate.approval import AnswerResult, Approval, Numbered
from zeroclaw.gate.card_arguments import MAX_CARD_CHARS, CardArguments, Unshowable, card_arguments
from zeroclaw.gate.conditions import EFFECTS, ToolFacts
from zeroclaw.gate.scope import Scope, for_a_time, scope_of
from zeroclaw.gate.wording import (
    MAX_NUMBERS,
    Numbers,
    ended,
    head_of,
    numbered,
    parse_numbers,
    refusal_for_model,
    refusal_for_people,
    result_for_people,
    toast,
    unreachable,
)
from zeroclaw.message import ToolMessage
from zeroclaw.redact import Redactor
from zeroclaw.text.escape import escape_invisible
from zeroclaw.text.language import Language
from zeroclaw.tool import Effect
from zeroclaw.value import replace

AT = datetime(2026, 11, 21, 12, 3, 59, tzinfo=UTC)
OPEN = Approval(
    id=ApprovalId("one"),
    action=ActionId("01ACTION"),
    action_hash="0123",
    tool="shell",
    conversation=ConversationId("01CONVERSATION"),
    turn=TurnId("01TURN"),
    requester=Principal(id="web:1", roles=frozenset(), channel="web", sender="1"),
    approvers=("role:operator",),
    summary="run `ls`",
    arguments="ls",
    why="the policy asks",
    card="01CARD",
    deadline_at=AT,
    numbers=(Numbered(place="p", number=1),),
    refs=(MessageRef(address=Address(channel="web", account="", chat="p"), message="1"),),
)
APPROVED = replace(OPEN, state="approved", by="Ann", at=AT)
DENIED = replace(OPEN, state="denied", by="Ann", at=AT)
WHY = replace(DENIED, reason="too risky")
EXPIRED = replace(OPEN, state="expired", at=AT)
NEVER_SHOWN = replace(EXPIRED, refs=())
STOPPED = replace(OPEN, state="stopped", by="Bob", at=AT)
PAGES = Scope(tool="fetch", resources=("host:a.example:443",), is_exact=False, for_s=3600)
FOR_A_TIME = replace(APPROVED, tool="fetch", choice="for_a_time", scope=PAGES)
TOASTS: dict[str, tuple[AnswerResult[Approval], str]] = {
    "approved": (AnswerResult(request=APPROVED, how="counted"), "approved: `shell`"),
    "approved for a time": (
        AnswerResult(request=FOR_A_TIME, how="counted"),
        "approved: `fetch`, and without asking any URL on `a.example` for 1 hour",
    ),
    "approved once, where a time was on offer": (
        AnswerResult(request=replace(APPROVED, choice="once", scope=PAGES), how="counted"),
        "approved: `shell`",
    ),
    "denied": (AnswerResult(request=DENIED, how="counted"), "denied: `shell`"),
    "reason": (
        AnswerResult(request=OPEN, how="reason_wanted"),
        "why is `shell` denied? reply with the reason",
    ),
    "late": (AnswerResult(request=EXPIRED, how="late"), "too late: it expired at 12:03:59 UTC"),
    "expired": (
        AnswerResult(request=EXPIRED, how="second"),
        "too late: it expired at 12:03:59 UTC",
    ),
    "second": (AnswerResult(request=DENIED, how="second"), "already denied by Ann"),
    "second, with a reason": (
        AnswerResult(request=WHY, how="second"),
        "already denied by Ann (too risky)",
    ),
    "stopped": (
        AnswerResult(request=STOPPED, how="second"),
        "too late: the turn was stopped by Bob",
    ),
    "not theirs": (
        AnswerResult(request=OPEN, how="refused", reason="only ann may answer this"),
        "only ann may answer this",
    ),
}


@pytest.mark.parametrize("name", TOASTS)
def test_the_approver_reads_the_result_of_their_answer(name: str) -> None:
    """Each result has its own line. P5, P10."""
    result, expected = TOASTS[name]
    assert toast(result, "en") == expected


def test_a_question_says_where_it_stands() -> None:
    """An open question names its deadline; a stop without a person names none. P5."""
    assert ended(OPEN, "en") == "open until 12:03:59 UTC"
    assert ended(replace(STOPPED, by=""), "en") == "too late: the turn was stopped"


def test_the_model_reads_why_a_call_did_not_run() -> None:
    """A refusal, a timeout, no reachable approver and a stop are different sentences. P5, K8."""
    sentences = [refusal_for_model(found) for found in (DENIED, WHY, EXPIRED, STOPPED)]
    sentences.append(unreachable("shell"))
    assert len(set(sentences)) == 5
    assert all("did not run" in sentence.lower() for sentence in sentences)
    assert "refused by Ann, who said: too risky." in sentences[1]
    assert "nobody answered in time" in sentences[2]
    assert "no operator can be reached" in sentences[4]
    assert refusal_for_model(NEVER_SHOWN) == sentences[4]


@pytest.mark.parametrize(
    ("approval", "english", "german"),
    [
        (
            DENIED,
            "`shell` did not run: denied by Ann",
            "`shell` wurde nicht ausgeführt: abgelehnt von Ann",
        ),
        (
            WHY,
            "`shell` did not run: denied by Ann (too risky)",
            "`shell` wurde nicht ausgeführt: abgelehnt von Ann (too risky)",
        ),
        (
            EXPIRED,
            "`shell` did not run: nobody approved it in time",
            "`shell` wurde nicht ausgeführt: niemand hat es rechtzeitig freigegeben",
        ),
        (
            NEVER_SHOWN,
            "`shell` did not run: it needs approval, and no operator can be reached from here who "
            "may give it",
            "`shell` wurde nicht ausgeführt: ein Operator müsste es freigeben, und von hier ist "
            "keiner zu erreichen, der das darf",
        ),
    ],
)
def test_a_person_reads_the_text_for_people(approval: Approval, english: str, german: str) -> None:
    """A person who called the tool does not read what a model should do next. P10."""
    assert [refusal_for_people(approval, language) for language in ("en", "de")] == [
        english,
        german,
    ]


RECEIPT = "[receipt: zc-receipt-1-" + "a" * 43 + "]"


@pytest.mark.parametrize(
    ("content", "for_people", "expected"),
    [
        (f"{head_of('shell')}```\nhi\n```", "", "`shell` liefert:\n```\nhi\n```"),
        (head_of("shell", "; invisible: 3") + "x", "", "`shell` liefert:\nx"),
        ("`shell` failed: no\nway", "", "`shell` ist fehlgeschlagen: no\nway"),
        ("Do not try again.", "nein", "nein"),
        ("there is no tool", "", "there is no tool"),
    ],
)
def test_a_result_is_read_by_a_person_in_their_words(
    content: str, for_people: str, expected: str
) -> None:
    """The wrapping that is for the model goes, what the tool said and its receipt stay."""
    for tail in ("", f"\n{RECEIPT}"):
        result = ToolMessage(
            content=content + tail, tool_call_id="", tool_name="shell", for_people=for_people
        )
        assert result_for_people(result, "de") == expected + tail


@pytest.mark.parametrize("approval", [OPEN, APPROVED], ids=["open", "approved"])
def test_a_call_that_may_run_has_no_such_sentence(approval: Approval) -> None:
    """Telling the model that an approved call was refused would be a lie."""
    with pytest.raises(ValueError, match=approval.state):
        refusal_for_model(approval)


@pytest.mark.parametrize(
    ("text", "numbers", "rest"),
    [
        ("1 3 too risky", (1, 3), "too risky"),
        (" 1, 3,4 ", (1, 3, 4), ""),
        ("#2 #2 1", (2, 1), ""),
        ("", (), ""),
        ("all of them", (), "all of them"),
        ("1st one", (), "1st one"),
        ("1 2x", (1,), "2x"),
        ("1234567890", (), "1234567890"),
        ("-1", (), "-1"),
        ("٣", (), "٣"),
    ],
)
def test_numbers_are_read_from_a_command(text: str, numbers: tuple[int, ...], rest: str) -> None:
    """Numbers first, then a reason; what is no plain number names nothing. P5."""
    assert parse_numbers(text) == Numbers(numbers=numbers, rest=rest)


@given(
    numbers=st.lists(st.integers(0, 999_999_999), unique=True, max_size=40),
    reason=st.sampled_from(["", "no"]),
)
def test_any_numbers_are_read(numbers: list[int], reason: str) -> None:
    """However many, but for those that are too many: then none is."""
    text = " ".join([*map(str, numbers), reason])
    found = Numbers(numbers=tuple(numbers), rest=reason)
    if len(numbers) > MAX_NUMBERS:
        found = Numbers(numbers=(), rest="", too_many=True)
    assert parse_numbers(text) == found


def test_numbers_name_questions_of_one_chat() -> None:
    """Another chat's number is unknown. P5."""
    second = replace(DENIED, id=ApprovalId("two"), numbers=(Numbered(place="p", number=2),))
    other = replace(OPEN, id=ApprovalId("three"), numbers=(Numbered(place="q", number=3),))
    assert numbered([OPEN, second, other], "p") == {1: OPEN, 2: second}
    assert numbered([OPEN, other], "q") == {3: other}


def test_who_has_no_name_is_called_by_what_they_are() -> None:
    """A person's name is never translated, even a German word."""
    by_console = replace(OPEN, state="denied", by="the console")
    assert ended(by_console, "en") == "already denied by the console"
    assert ended(by_console, "de") == "schon abgelehnt von der Konsole"
    assert ended(replace(by_console, by="console"), "de") == "schon abgelehnt von console"
    approved = replace(OPEN, state="approved", by="Ann")
    assert ended(approved, "en") == "already approved by Ann"
    assert ended(approved, "de") == "schon freigegeben von Ann"


# --- arguments on a card: what it shows, un-escaped, is what the hash binds (P5) ------------------

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
def test_shown_arguments_read_back_as_those_that_the_hash_binds(
    arguments: dict[str, object],
) -> None:
    """For all arguments that hold no known secret, on every channel. P5."""
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
    ("command", "shows"),
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
def test_a_letter_that_passes_for_a_latin_one_is_escaped(command: str, shows: str) -> None:
    """Within a word that has Latin letters, or where no letter of its own script tells it apart."""
    text = shown({"command": command}).text
    assert text == f'{{\n  "command": "{shows}"\n}}'
    assert json.loads(text) == {"command": command}


def test_every_lookalike_that_unicode_lists_is_escaped_within_a_word() -> None:
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
    assert found.reason == "it holds a secret in a form that a card can neither show nor name"


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
        ({"text": "x" * MAX_CARD_CHARS}, "60,016"),
        ({"text": "\u202e" * 20_000}, "120,016"),
    ):
        assert card_arguments(arguments, NOTHING_KNOWN) == Unshowable(
            reason=f"it is too large to be shown whole on a card: {chars} characters where 60,000 are "
            "left; make it smaller, or split it"
        )
    assert isinstance(card_arguments({"text": "x" * 100}, NOTHING_KNOWN, 100), Unshowable)


# --- what "for a time" lets run (P5) --------------------------------------------------------------


def facts(*effects: Effect) -> ToolFacts:
    return ToolFacts(effects=frozenset(effects), risk="medium", declared=True)


def touching(*resources: str) -> Action:
    return propose(
        id=ActionId("01ACTION"),
        conversation=ConversationId("c"),
        principal=Principal(id="web:1", roles=frozenset(), channel="web", sender="1"),
        turn=TurnId("01TURN"),
        tool="any",
        arguments={},
        resources=resources,
    )


def scope_words(
    of: Action,
    about: ToolFacts,
    for_s: float = 3600,
    language: Language = "en",
    workspace: str = "",
) -> str:
    scope = scope_of(of, about, for_s, workspace)
    assert scope is not None
    return for_a_time(scope, language)


FETCH, WRITE, RUN = facts("network", "read"), facts("read", "write"), facts("exec")
UNDECLARED = ToolFacts(effects=EFFECTS, risk="high", declared=False)


@pytest.mark.parametrize(
    ("of", "about", "words"),
    [
        (touching("host:example.org:443"), FETCH, "any URL on `example.org` for 1 hour"),
        (touching("host:example.org:80"), FETCH, "any URL on `example.org:80` for 1 hour"),
        (touching("host:example.org:443"), facts("network", "write"), "any call on `example.org`"),
        (touching("file:/w/notes.txt"), WRITE, "any content into `/w/notes.txt` for 1 hour"),
        (touching("file:/w/a"), facts("read"), "any call on `/w/a` for 1 hour"),
        (touching("file:/w/`a\n"), WRITE, "any content into `/w/'a` for 1 hour"),
        (touching("notes:web"), WRITE, "any call on `notes:web` for 1 hour"),
        (touching("sandbox:workspace"), RUN, "exactly this command for 1 hour"),
        (touching("host:example.org:443"), UNDECLARED, "exactly this command for 1 hour"),
        (touching("host:*"), FETCH, "exactly this call for 1 hour"),
        (touching(), WRITE, "exactly this call for 1 hour"),
        (touching(), facts("read"), "exactly this call for 1 hour"),
        (touching(*(f"file:/{n}" for n in range(6))), WRITE, "exactly this call for 1 hour"),
    ],
)
def test_a_scope_says_what_it_lets_run(of: Action, about: ToolFacts, words: str) -> None:
    """In the words of what runs; where the resources say too little, only the same call does."""
    assert scope_words(of, about).startswith(words)


@pytest.mark.parametrize(
    ("for_s", "en", "de"),
    [
        (3600, "1 hour", "1 Stunde"),
        (7200, "2 hours", "2 Stunden"),
        (5400, "90 minutes", "90 Minuten"),
        (60, "a minute", "eine Minute"),
        (90, "90 seconds", "90 Sekunden"),
        (30, "30 seconds", "30 Sekunden"),
    ],
)
def test_a_scope_says_how_long_it_holds(for_s: float, en: str, de: str) -> None:
    """In the largest unit that says it exactly, in the reader's language."""
    run = touching("sandbox:workspace")
    assert scope_words(run, RUN, for_s) == f"exactly this command for {en}"
    assert scope_words(run, RUN, for_s, "de") == f"genau diesen Befehl für {de}"


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("/w/c/notes.txt", "notes.txt"),
        ("/w/c/deep/notes.txt", "deep/notes.txt"),
        ("/w/c/w/c/notes.txt", "w/c/notes.txt"),
        ("/w/cc/notes.txt", "/w/cc/notes.txt"),
        ("/w/c", "/w/c"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_a_file_is_called_as_it_is_in_its_workspace(file: str, shown: str) -> None:
    """A path of the workspace is relative there; every other one begins at the root (P5)."""
    words = scope_words(touching(f"file:{file}"), WRITE, workspace="/w/c")
    assert words == f"any content into `{shown}` for 1 hour"
