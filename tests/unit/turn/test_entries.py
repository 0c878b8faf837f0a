"""The stored form of the journal's entries."""

from datetime import timedelta

import pytest

from tests.unit.turn.parts import (
    AT,
    USED,
    USER,
    action,
    allowed,
    approval,
    asked,
    call,
    denied,
    opened,
    result,
)
from zeroclaw.envelope import ItemId
from zeroclaw.errors import StoreUnusable
from zeroclaw.message import AssistantMessage
from zeroclaw.turn import entries
from zeroclaw.turn.batch import Fill
from zeroclaw.turn.entries import Entry, decode, encode

# Everything that must come back as it was: escapes, blanks, a lone surrogate, other scripts.
ARGUMENTS = '{"a" :1,\t"b": "\\ud83d\\u0000é𝄞"}\n'
DETAILS = ('{"type":"reasoning.encrypted","data":"A+/="}', '{ "signature" : "x" }')
MESSAGE = AssistantMessage(
    content="grüße 𝄞 \ud83d",
    tool_calls=(call(arguments=ARGUMENTS), call("b", "")),
    reasoning="because",
    reasoning_details=DETAILS,
    finish_reason="tool_calls",
)
FILL = Fill(position=1, action=None, outcome="cancelled", result=result("no"), receipt="zc")
EVERY_KIND: list[Entry] = [
    opened(),
    opened("tool"),
    opened("retry"),
    entries.AssistantReceived(message=MESSAGE, usage=USED, at=AT, shown="shown"),
    entries.Gated(verdicts=(allowed("a", sequential=True), asked("b"), denied("c", "zc")), at=AT),
    entries.AnswerTaken(approval=approval("a"), how="approved", at=AT, by="Sam"),
    entries.AnswerTaken(approval=approval("a"), how="expired", at=AT, result=result("late")),
    entries.CallStarted(action=action("a"), at=AT),
    entries.CallFinished(
        action=action("a"), result=result("ok"), outcome="ok", at=AT, receipt="zc", usage=USED
    ),
    entries.BatchAppended(at=AT, context_heavy=True),
    entries.Steered(user=USER, item=ItemId("item-2"), at=AT),
    entries.Compacted(summary="before", kept=2, at=AT, usage=USED),
    entries.TurnResumed(at=AT + timedelta(microseconds=1)),
    entries.RequestLost(at=AT, usage=USED),
    entries.TurnFinished(
        reason="user_abort", usage=USED, at=AT, message=MESSAGE, fills=(FILL,), note="stopped"
    ),
    entries.Noted(text="edited: hello", why="edit", at=AT),
]


@pytest.mark.parametrize("entry", EVERY_KIND)
def test_an_entry_comes_back_as_it_was(entry: Entry) -> None:
    """Arguments and reasoning blocks byte for byte, times to the microsecond (S1-10, S1-28)."""
    body = encode(entry)
    assert decode(body) == entry
    assert encode(decode(body)) == body


def test_an_entry_is_one_line() -> None:
    """A journal can be read by lines."""
    assert b"\n" not in encode(EVERY_KIND[3])


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"\xff", "a journal entry is damaged: "),
        (b"{", "a journal entry is damaged: "),
        (b"[]", "a journal entry is damaged: "),
        (b'{"version":1,"entry":7}', "a journal entry is damaged: "),
        (b'{"version":2,"entry":{"is":"Noted"}}', "version `2`"),
        (b'{"version":1,"entry":{"is":"Sung"}}', "'Sung' - at `$.is`; restore the data directory"),
        (b'{"version":1,"entry":{"is":"Noted","text":"x"}}', "missing required field"),
        (b'{"version":1,"entry":{"is":"TurnResumed","at":"noon"}}', "a journal entry is damaged: "),
    ],
)
def test_an_unreadable_entry_says_what_is_wrong(body: bytes, text: str) -> None:
    """One line that says what to do; nothing is guessed (P10)."""
    with pytest.raises(StoreUnusable) as refused:
        decode(body)
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)
