"""Every renderer shows a card's calls whole: what stands there reads back as what the hash binds."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels._local import render as local
from channels.telegram import cards as telegram
from channels.terminal import render as terminal
from channels.web import render as web
from tests.unit.gate.test_card_arguments import TEXTS, TREES, shown
from zeroclaw.channel import Card, CardCall, Outcome
from zeroclaw.cli.chat.screen import Cards, Ink
from zeroclaw.envelope import ApprovalId
from zeroclaw.gate.action import canonical_json
from zeroclaw.text.language import LANGUAGES, Language

AT = datetime(2026, 1, 1, tzinfo=UTC)
WHY = "it does more than read"
HASH = "0a1b2c3d"


def on_telegram(outcome: Outcome) -> str:
    """The message's text, or the file that is attached to it."""
    seen = telegram.view(outcome)
    whole = seen.text if seen.file is None else seen.file.content.decode()
    return whole[whole.index("run it\n") + 7 : whole.rindex(f"\n{WHY} · {HASH}")]


def on_a_terminals_line(outcome: Outcome) -> str:
    return arguments_of(terminal.line(local.card("m", outcome, AT), 1))


def on_the_page(outcome: Outcome) -> str:
    sent = web.frame(local.card("m", outcome, AT), 1).decode()
    (data,) = [line[6:] for line in sent.split("\n") if line.startswith("data: ")]
    return arguments_of(json.loads(data))


def on_a_screen(outcome: Outcome) -> str:
    """As a person sees it in a terminal, the frame taken away."""
    item = terminal.line(local.card("m", outcome, AT), 1)
    lines = Cards(Ink(moves=False, colours=False)).take(item).split("\n")
    edge = "│    "
    return "\n".join(line.removeprefix(edge) for line in lines[3:-2])


def arguments_of(line: object) -> str:
    return json.loads(json.dumps(line))["card"]["calls"][0]["arguments"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("renderer", [on_telegram, on_a_terminals_line, on_the_page, on_a_screen])
@settings(max_examples=30)
@given(arguments=st.dictionaries(TEXTS, TREES), padding=st.sampled_from([0, 900, 5_000, 50_000]))
def test_no_renderer_cuts_or_hides(
    renderer: Callable[[Outcome], str],
    language: Language,
    arguments: dict[str, object],
    padding: int,
) -> None:
    """For all arguments that hold no known secret, as text or as a file (P5)."""
    bound = canonical_json({**arguments, "padding": "x" * padding})
    call = CardCall(
        approval=ApprovalId("a"),
        number=1,
        tool="shell",
        summary="run it",
        arguments=shown(json.loads(bound)).text,
        why=WHY,
        hash8=HASH,
    )
    card = Card(key="c", asked_by="ann", calls=(call,), deadline_at=AT, language=language)
    seen = renderer(Outcome(card=card, endings=()))
    assert canonical_json(json.loads(seen)) == bound
