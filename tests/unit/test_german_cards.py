"""A German card is German: on every channel, for every tool and every ending."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, cast, get_args
from urllib.parse import unquote

import pytest

from channels._local import render as local
from channels.discord import cards as discord
from channels.email import render as email
from channels.slack import cards as slack
from channels.telegram import cards as telegram
from channels.terminal import render as terminal
from channels.web import render as web
from tests.contract.tool_implementations import IMPLEMENTATIONS
from tests.fakes.german import english_in
from tests.unit.channels.email.letters import ME, bot_mail_id
from zeroclaw.card_words import NAMELESS
from zeroclaw.channel import Ending, Outcome
from zeroclaw.cli.chat.screen import Cards
from zeroclaw.envelope import ActionId, ApprovalId, Choice, ConversationId, Principal, TurnId
from zeroclaw.gate.approval import Approval, Numbered, card_of
from zeroclaw.gate.policy import SHIPPED, Reason
from zeroclaw.gate.scope import Scope
from zeroclaw.gate.taint import named
from zeroclaw.text.language import LANGUAGES
from zeroclaw.tool import line_of
from zeroclaw.value import replace

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLACE = "chat"
MAIL = bot_mail_id(None, "c", to="olga@x.test")
How = Literal["approved", "denied", "expired", "stopped"]
SOURCES = (named("result", "fetch `x`", (("de", "`x` abrufen"),)), named("quoted"), named("files"))

ONE = Approval(
    id=ApprovalId("a"),
    action=ActionId("01A"),
    action_hash="0a1b2c3d",
    tool="x",
    conversation=ConversationId("01C"),
    turn=TurnId("01T"),
    requester=Principal(id="person:olga", roles=frozenset(), channel="chat", sender="7"),
    approvers=("role:operator",),
    summary="",
    arguments="{}",
    why="",
    hidden=("X",),
    scope=Scope(tool="x", resources=("host:x:443",), is_exact=False, for_s=3600),
    reasons=tuple(Reason(statement=statement, sources=SOURCES) for statement in SHIPPED),
    card="c",
    deadline_at=AT + timedelta(minutes=15),
    numbers=(Numbered(place=PLACE, number=1, language="de"),),
)


@dataclass(frozen=True)
class Question:
    """A question about a call of each tool, as it is shown with these endings."""

    endings: tuple[How, ...] = ()
    by: str = "olga"

    def outcome(self) -> Outcome:
        card = card_of(
            [request_of(name, order) for order, name in enumerate(IMPLEMENTATIONS)], PLACE
        )
        calls = card.calls[: len(self.endings) or None]
        return Outcome(
            card=replace(card, calls=calls),
            endings=tuple(
                Ending(approval=call.approval, how=how, by=self.by, at=AT)
                for call, how in zip(calls, self.endings, strict=False)
            ),
        )


def request_of(name: str, order: int = 0) -> Approval:
    """The question about a tool's good call."""
    implementation = IMPLEMENTATIONS[name]
    tool = implementation.make()
    good = tool.check(implementation.good)
    # What the model wrote stands in backticks, in any language.
    lines = {
        language: re.sub("`[^`]*`", "`x`", line_of(tool, good, language)) for language in LANGUAGES
    }
    return replace(
        ONE,
        id=ApprovalId(f"a{order}"),
        order=order,
        summary=lines["en"],
        summaries=(("de", lines["de"]),),
    )


def on_telegram(outcome: Outcome) -> str:
    seen = telegram.view(outcome)
    labels = [str(button["text"]) for row in seen.rows for button in row]
    attached = "" if seen.file is None else seen.file.content.decode()
    return "\n".join((seen.text, attached, *labels))


def on_discord(outcome: Outcome) -> str:
    """The ids of its buttons are no words."""
    seen = discord.view(outcome)
    rows = cast("list[dict[str, list[dict[str, str]]]]", seen.components)
    labels = [button["label"] for row in rows for button in row["components"]]
    return "\n".join((seen.content, seen.file, *labels))


def on_slack(outcome: Outcome) -> str:
    blocks = "\n".join(
        text for block in slack.view(outcome) for text in texts(block) if not text.startswith("zc-")
    )
    return f"{blocks}\n{slack.summary(outcome)}\n{slack.card_text(outcome.card)}"


def in_a_mail(outcome: Outcome) -> str:
    """The card, its subject, and the mail about its end; addresses are no words."""
    shown = email.card(outcome.card, id=MAIL, to="olga@x.test", bot=ME)
    ended = email.ended(outcome)
    text = "\n".join((shown.text, ended.text, shown.subject))
    return re.sub(
        r"mailto:\S+", lambda link: unquote(link[0].partition("=")[2].split("%5B")[0]), text
    )


def on_the_page(outcome: Outcome) -> str:
    """All that the page has to show; its own script holds no words, see below."""
    sent = web.frame(local.card("m", outcome, AT)).decode()
    (data,) = [line[6:] for line in sent.split("\n") if line.startswith("data: ")]
    return "\n".join(texts(cast("Mapping[str, object]", json.loads(data))["card"]))


def on_a_terminals_line(outcome: Outcome) -> str:
    line = terminal.line(local.card("m", outcome, AT))
    return "\n".join(texts(line["card"]))


def on_a_screen(outcome: Outcome) -> str:
    """As a person sees it in a terminal, before and after its endings."""
    screen = Cards()
    before = terminal.line(local.card("m", Outcome(card=outcome.card, endings=()), AT))
    after = terminal.line(local.card("m", outcome, AT))
    return "".join(text for _, text in (*screen.take(before), *screen.take(after)))


def english_on(card: str) -> set[str]:
    """The English words of a card, but for the names of statements, which are what they are."""
    for statement in SHIPPED:
        card = card.replace(statement, "")
    return english_in(card)


FOR_PROGRAMS = {"choices", "how", "approval", "hash8", "language"} | {
    *("type", "style", "action_id", "block_id", "value")  # Slack's
}


def texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for name, item in cast("Mapping[str, object]", value).items():
                if name not in FOR_PROGRAMS:
                    yield from texts(item)
        case list():
            for item in cast("list[object]", value):
                yield from texts(item)
        case _:
            pass


RENDERERS = [
    on_telegram,
    on_discord,
    on_slack,
    in_a_mail,
    on_the_page,
    on_a_terminals_line,
    on_a_screen,
]
CARDS = [
    Question(),
    *(Question(endings=(how,)) for how in get_args(How)),
    *(Question(endings=("denied",), by=name) for name in NAMELESS),
    Question(endings=("expired", "stopped"), by=""),
]


@pytest.mark.parametrize("card", CARDS, ids=str)
@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_german_card_has_no_english_word(
    renderer: Callable[[Outcome], str], card: Question
) -> None:
    """Every tool's line, every shipped reason, every button, every ending, who has no name."""
    assert english_on(renderer(card.outcome())) == set()


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_every_tool_says_in_german_what_it_would_do(name: str) -> None:
    request = request_of(name)
    assert dict(request.summaries)["de"] != request.summary
    assert english_in(dict(request.summaries)["de"]) == set()


@pytest.mark.parametrize("choice", get_args(Choice))
@pytest.mark.parametrize("renderer", RENDERERS)
def test_every_answer_is_offered_in_german(
    renderer: Callable[[Outcome], str], choice: Choice
) -> None:
    card = card_of([replace(request_of(next(iter(IMPLEMENTATIONS))), choices=(choice,))], PLACE)
    assert english_on(renderer(Outcome(card=card, endings=()))) == set()


@pytest.mark.parametrize("arguments", ["{}", '"' + "x" * 50_000 + '"'], ids=["text", "file"])
@pytest.mark.parametrize("renderer", RENDERERS)
def test_every_card_says_what_for_a_time_lets_run(
    renderer: Callable[[Outcome], str], arguments: str
) -> None:
    """In the words of what runs, beside the button that lets it, or in the card's file (P5)."""
    card = card_of([replace(ONE, arguments=arguments)], PLACE)
    text = renderer(Outcome(card=card, endings=())).replace("`", "")
    assert "„Eine Zeit lang“ erlaubt jede URL auf x für 1 Stunde" in text


def test_a_question_of_an_earlier_release_is_shown_as_it_was_stored() -> None:
    """It has its line in English alone."""
    (call,) = card_of([replace(ONE, summary="run it")], PLACE).calls
    assert call.summary == "run it"


def test_the_page_has_no_words_of_its_own_for_a_card() -> None:
    """They travel with the card; what the script itself says would be English to everybody."""
    script = (Path(web.__file__).parent / "page" / "cards.js").read_text(encoding="utf-8")
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", script, flags=re.DOTALL)
    strings = re.findall(r'"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`', code)
    spoken = [re.sub(r"\$\{[^}]*\}", "", double or single) for double, single in strings]
    names = re.compile(r'[a-z0-9_.:\-\[\]()="\'/ ]*')
    assert [text for text in spoken if english_in(text) and not names.fullmatch(text)] == []
