"""A receipt verifies if and only if this daemon issued exactly this for exactly that call."""

import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tests.fakes.manual_clock import EPOCH
from tests.fakes.mutant import mutant
from zeroclaw.codec import encode
from zeroclaw.envelope import ActionId, ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate import receipt as room
from zeroclaw.gate.receipt import (
    Fields,
    Key,
    attach,
    defang,
    detach,
    find_tokens,
    issue,
    issued_at,
    signed_bytes,
    signer,
)
from zeroclaw.gate.receipt_keys import FILE, Keys, StoredKey, StoredKeys, open_keys, stored_keys
from zeroclaw.message import ToolOutcome
from zeroclaw.value import replace

KEY = Key(id="first", secret=bytes(range(32)))
OTHER = Key(id="second", secret=bytes(32))
AT = datetime(2026, 11, 21, 12, 3, 59, 999_999, tzinfo=UTC)
FIELDS = Fields(
    conversation=ConversationId("01CONVERSATION"),
    action=ActionId("01ACTION"),
    tool="shell",
    arguments='{"command":"ls"}',
    outcome="ok",
    result="a\nb\n",
)
TEXT = st.text(st.sampled_from("ab|:\x00\x01,1é\ud800"), max_size=3)
OUTCOMES = st.sampled_from(["ok", "failed", "denied", "cancelled", "unknown"])
ANY_FIELDS = st.builds(
    Fields,
    conversation=TEXT.map(ConversationId),
    action=TEXT.map(ActionId),
    tool=TEXT,
    arguments=TEXT,
    outcome=cast("st.SearchStrategy[ToolOutcome]", OUTCOMES),
    result=TEXT,
)


def test_a_receipt_is_the_last_line_of_the_result() -> None:
    """The token holds the unix seconds and the MAC, the same in every release. S2-15."""
    token = issue(KEY, FIELDS, AT)
    assert token == "zc-receipt-1795262639-yoPZYQhU6JWo6MV8wqzE1YEInp1Cav6yrlFs7zrSjcs"
    assert attach(FIELDS.result, token) == f"a\nb\n\n[receipt: {token}]"


@given(fields=ANY_FIELDS, seconds=st.integers(0, 10**11))
def test_an_issued_receipt_verifies(fields: Fields, seconds: int) -> None:
    """A true receipt is recognised, among several keys too. S2-16."""
    token = issue(KEY, fields, datetime.fromtimestamp(seconds, UTC))
    assert signer([OTHER, KEY, OTHER], fields, token) == KEY
    assert issued_at(token) == seconds


CHANGES = {
    "conversation": replace(FIELDS, conversation=ConversationId("01OTHER")),
    "action": replace(FIELDS, action=ActionId("01OTHER")),
    "tool": replace(FIELDS, tool="shel"),
    "arguments": replace(FIELDS, arguments='{"command":"lt"}'),
    "outcome": replace(FIELDS, outcome="denied"),
    "result": replace(FIELDS, result="a\nb"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_receipt_for_anything_else_fails(name: str) -> None:
    """Changing any one field makes the receipt worthless. S2-18."""
    assert not signer([KEY], CHANGES[name], issue(KEY, FIELDS, AT))


def test_a_receipt_of_another_key_or_time_fails() -> None:
    """Another process's key, or another second, is another receipt. S2-16, S2-18."""
    token = issue(KEY, FIELDS, AT)
    later = issue(KEY, FIELDS, AT + timedelta(seconds=1))
    assert not signer([OTHER], FIELDS, token)
    assert not signer([], FIELDS, token)
    assert not signer([KEY], FIELDS, token[:22] + later[22:])


@given(at=st.integers(0, 64), sign=st.sampled_from("aZ09-_.= "))
def test_a_changed_token_fails(at: int, sign: str) -> None:
    """There is one spelling of a receipt; any other character in it makes it false. S2-18."""
    token = issue(KEY, FIELDS, AT)
    changed = token[:at] + sign + token[at + 1 :]
    assert bool(signer([KEY], FIELDS, changed)) == (changed == token)


@pytest.mark.parametrize(
    "token", ["", "x", "zc-receipt-01-" + "a" * 43, "zc-receipt-1-" + "a" * 44]
)
def test_what_is_not_shaped_like_a_token_fails(token: str) -> None:
    """Text from a model may be anything. S2-18."""
    assert not signer([KEY], FIELDS, token)
    assert issued_at(token) is None


def mixed(fields: Fields, other: Fields, names: frozenset[str]) -> tuple[Fields, Fields]:
    """Two calls that differ in the named fields at most."""
    changes = {name: getattr(other, name) for name in names}
    return fields, replace(fields, **changes)


NAMES = st.frozensets(st.sampled_from(list(Fields.__struct_fields__)), max_size=2)
PAIRS = st.builds(mixed, ANY_FIELDS, ANY_FIELDS, NAMES)


def injective(signed: Callable[[Fields, int], bytes]) -> Callable[[], None]:
    """A property test: two different calls never give the same bytes to sign."""

    @settings(phases=(Phase.explicit, Phase.generate), database=None)
    @given(pair=PAIRS, seconds=st.integers(0, 3), later=st.integers(0, 3))
    def check(pair: tuple[Fields, Fields], seconds: int, later: int) -> None:
        first, second = pair
        same = (first, seconds) == (second, later)
        assert (signed(first, seconds) == signed(second, later)) == same

    edges = replace(FIELDS, tool="a|b", arguments="c"), replace(FIELDS, tool="a", arguments="b|c")
    check = example(pair=edges, seconds=1, later=1)(check)
    check = example(pair=(FIELDS, FIELDS), seconds=1, later=2)(check)
    for changed in CHANGES.values():
        check = example(pair=(FIELDS, changed), seconds=1, later=1)(check)
    return check


def test_two_calls_never_sign_the_same_bytes() -> None:
    """Field boundaries can't be moved: different fields, different bytes. S2-16, P7."""
    injective(signed_bytes)()


def test_joining_fields_by_a_sign_is_caught() -> None:
    """The same check finds the fault of joining fields without their lengths."""
    planted = mutant(
        room, 'b"".join(len(part).to_bytes(8, "big") + part for part in parts)', 'b"|".join(parts)'
    )
    with pytest.raises(AssertionError):
        injective(cast("Callable[[Fields, int], bytes]", planted["signed_bytes"]))()


MISSED = {
    "the conversation": 'fields.conversation.encode(errors="surrogatepass")',
    "the action": 'fields.action.encode(errors="surrogatepass")',
    "the tool": 'fields.tool.encode(errors="surrogatepass")',
    "the arguments": 'fields.arguments.encode(errors="surrogatepass")',
    "the outcome": "fields.outcome.encode()",
    "the result": 'hashlib.sha256(fields.result.encode(errors="surrogatepass")).digest()',
    "the time": "str(seconds).encode()",
}


@pytest.mark.parametrize("name", MISSED)
def test_a_field_that_is_not_signed_is_caught(name: str) -> None:
    """The same check finds each field that the MAC would leave out."""
    planted = mutant(room, MISSED[name], 'b""')
    with pytest.raises(AssertionError):
        injective(cast("Callable[[Fields, int], bytes]", planted["signed_bytes"]))()


@given(text=st.text(st.sampled_from("ab\n[]-"), max_size=8))
def test_a_result_is_taken_apart_again(text: str) -> None:
    """The attached receipt is found again, and the text is unchanged. S2-17."""
    token = issue(KEY, FIELDS, AT)
    assert detach(attach(text, token)) == (text, token)


@pytest.mark.parametrize(
    "content", ["", "a", f"[receipt: zc-receipt-1-{'a' * 43}]", f"a\nzc-receipt-1-{'a' * 43}"]
)
def test_a_result_without_a_receipt_has_none(content: str) -> None:
    """Nothing that `attach` didn't write is taken for a receipt."""
    assert detach(content) == (content, None)


def test_tokens_are_found_in_a_text() -> None:
    """Every exact token, in order, and nothing that only begins like one."""
    first, second = issue(KEY, FIELDS, AT), issue(OTHER, FIELDS, AT)
    assert find_tokens(f"{first}, `{second}` and {first}x or zc-receipt-1") == (first, second)


LOOKALIKES = st.lists(
    st.sampled_from(["zc-receipt-", "ZC-Receipt-", "zc", "-receipt-", "-", "\u2011", "a", " "]),
    max_size=9,
).map("".join)


@given(text=LOOKALIKES)
def test_tool_output_holds_nothing_like_a_receipt(text: str) -> None:
    """Receipt-shaped text from a tool is made harmless, in any case and with any dash. P7."""
    safe = defang(text)
    assert "zc-receipt-" not in safe.lower().replace("\u2011", "-")
    assert defang(safe) == safe


@given(first=LOOKALIKES, second=LOOKALIKES)
def test_output_may_be_made_harmless_in_pieces(first: str, second: str) -> None:
    """What is harmless stays so, and a receipt over the edge of two pieces is found. P7."""
    assert defang(defang(first) + second) == defang(first + second)


def test_a_key_is_not_shown_by_repr() -> None:
    """A key in a log or a traceback gives nothing away. P8."""
    assert repr(KEY) == "Key(id='first')"


# --- keys: one a process, kept for as long as configured ------------------------------------------

DAY = timedelta(days=1)


def opened(directory: Path, name: str, *, day: int = 0, keep_days: int = 30) -> Keys:
    return open_keys(
        directory, keep_days=keep_days, now=EPOCH + day * DAY, name=name, secret=name.encode() * 8
    )


def test_each_process_signs_with_a_key_of_its_own(tmp_path: Path) -> None:
    """And verifies with those before it (S2-16, P7)."""
    first = opened(tmp_path, "one1")
    second = opened(tmp_path, "two2", day=1)
    assert first.every == (first.current,)
    assert second.every == (first.current, second.current)
    assert first.since_s == second.since_s == EPOCH.timestamp()
    assert (first.earlier, second.earlier) == (None, EPOCH)
    assert second.current.secret == b"two2" * 8
    assert repr(b"two2" * 8) not in repr(second)


def test_a_key_is_kept_for_so_many_days_after_it_signed_last(tmp_path: Path) -> None:
    """Until the next start; then its receipts can no longer be verified, and it is gone from disk."""
    first = opened(tmp_path, "one1")
    assert first.current in opened(tmp_path, "two2", day=40).every
    assert first.current in opened(tmp_path, "thr3", day=69).every
    later = opened(tmp_path, "fou4", day=70)
    assert first.current not in later.every
    assert later.since_s == (EPOCH + 40 * DAY).timestamp()
    assert b"one1" not in (tmp_path / FILE).read_bytes()


def test_a_key_is_kept_as_long_where_the_daemon_starts_often(tmp_path: Path) -> None:
    """The start before was yesterday's, so the clock is believed and not what may follow it."""
    first = opened(tmp_path, "one1")
    opened(tmp_path, "two2", day=1)
    opened(tmp_path, "thr3", day=29)
    assert first.current in opened(tmp_path, "fou4", day=30).every
    assert first.current not in opened(tmp_path, "fiv5", day=31).every


def test_a_clock_that_is_wrong_at_some_starts_loses_no_key(tmp_path: Path) -> None:
    first, second = opened(tmp_path, "one1"), opened(tmp_path, "two2", day=1)
    key_ids = {first.current, second.current}
    assert key_ids <= {*opened(tmp_path, "thr3", day=400).every}
    assert key_ids <= {*opened(tmp_path, "fou4", day=400).every}
    assert key_ids <= {*opened(tmp_path, "fiv5", day=2).every}


def test_starts_before_the_clock_was_set_lose_no_key(tmp_path: Path) -> None:
    """On a machine without a battery; the later one may have signed until just now (P7)."""
    in_1970 = -(EPOCH - EPOCH.fromtimestamp(0, tz=EPOCH.tzinfo)).days
    opened(tmp_path, "one1", day=in_1970 + 1)
    second = opened(tmp_path, "two2", day=in_1970)
    assert second.current in opened(tmp_path, "thr3", day=100).every
    assert second.current in opened(tmp_path, "fou4", day=102).every


def test_what_an_earlier_release_left_verifies_and_disproves_nothing(tmp_path: Path) -> None:
    """Its file stayed while no key was kept, so keys of that time may be missing from it (P7)."""
    old = StoredKey(id="old0", secret="00" * 32, made_at=EPOCH)
    (tmp_path / FILE).write_bytes(encode(StoredKeys(keys=(old,))).replace(b',"since":null', b""))
    now = EPOCH + DAY
    assert stored_keys(tmp_path, now=now, secret=b"").since_s == now.timestamp()
    keys = opened(tmp_path, "one1", day=1)
    assert ([key.id for key in keys.every], keys.since_s) == (["old0", "one1"], now.timestamp())
    assert opened(tmp_path, "two2", day=2).since_s == now.timestamp()


def test_without_keeping_nothing_reaches_the_disk(tmp_path: Path) -> None:
    """`keep_days = 0` is memory only, and the stored keys are deleted (S2-17)."""
    opened(tmp_path, "zero")
    keys = opened(tmp_path, "one1", keep_days=0)
    assert (keys.every, keys.since_s) == ((keys.current,), EPOCH.timestamp())
    assert list(tmp_path.iterdir()) == []
    assert len(opened(tmp_path, "two2", keep_days=0).every) == 1


def test_the_file_is_the_operators_alone(tmp_path: Path) -> None:
    """Whatever a crash left beside it (P8)."""
    (tmp_path / "receipt-keys.json.new").write_bytes(b"half")
    opened(tmp_path, "one1")
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize(
    "body",
    [
        b"\xff",
        b"{",
        b'{"keys": 1}',
        encode(StoredKeys(keys=(StoredKey(id="a", secret="not hex", made_at=EPOCH),))),
    ],
)
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path: Path, body: bytes) -> None:
    """One line that says what to do (P10)."""
    path = tmp_path / FILE
    path.write_bytes(body)
    with pytest.raises(StoreUnusable, match="is damaged; move it away"):
        opened(tmp_path, "one1")
    assert path.read_bytes() == body


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    """With what stands in the way (P10)."""
    (tmp_path / FILE).mkdir()
    with pytest.raises(StoreUnusable, match="can't be read: is a directory"):
        opened(tmp_path, "one1")
    with pytest.raises(StoreUnusable, match="can't be written: no such file or directory"):
        opened(tmp_path / "missing", "one1")
