"""Every renderer shows a card's calls whole: what stands there reads back as what the hash binds."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from email import message_from_bytes, policy
from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from channels._local import render as local
from channels.discord import cards as discord
from channels.email import render as email
from channels.email.decode import Parent
from channels.slack import cards as slack
from channels.telegram import cards as telegram
from channels.terminal import render as terminal
from channels.web import render as web
from tests.unit.channels.email.letters import ME, bot_mail_id
from tests.unit.gate.test_wording import TEXTS, TREES, shown
from zeroclaw.channel import Card, CardCall, Outcome
from zeroclaw.cli.chat.screen import Cards
from zeroclaw.envelope import ApprovalId
from zeroclaw.gate.action import canonical_json
from zeroclaw.text.language import LANGUAGES, Language

AT = datetime(2026, 1, 1, tzinfo=UTC)
WHY = "it does more than read"
HASH = "0a1b2c3d"
MAIL = bot_mail_id(None)


def on_telegram(outcome: Outcome) -> str:
    """The message's text, or the file that is attached to it."""
    seen = telegram.view(outcome)
    return between(seen.text if seen.file is None else seen.file.content.decode())


def on_discord(outcome: Outcome) -> str:
    """A block ends at the first three backticks, with any text behind them."""
    seen = discord.view(outcome)
    if seen.file:
        return between(seen.file)
    (block,) = re.findall(r"```\n(.*?)```", seen.content, re.DOTALL)
    return block


def on_slack(outcome: Outcome) -> str:
    """Slack shows the text of a preformatted element letter by letter."""
    if slack.is_file(outcome.card):
        return between(slack.card_text(outcome.card))
    blocks: Any = slack.view(outcome)
    parts = [part for block in blocks for part in block.get("elements", [])]
    (text,) = [part["elements"] for part in parts if part["type"] == "rich_text_preformatted"]
    assert [part["type"] for part in text] == ["text"]
    return str(text[0]["text"])


def between(listed: str) -> str:
    return listed[listed.index("run it\n") + 7 : listed.rindex(f"\n{WHY} · {HASH}")]


class Page(HTMLParser):
    """The words of each `pre` of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self._is_within = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._is_within = tag == "pre"
        self.words += [""] * self._is_within

    def handle_endtag(self, tag: str) -> None:
        self._is_within = False

    def handle_data(self, data: str) -> None:
        if self._is_within:
            self.words[-1] += data


def mailed(outcome: Outcome, kind: str) -> str:
    words = email.card(outcome.card, id=MAIL, to="ann@zc.example", bot=ME)
    raw = email.mail(words, Parent(), ME.settings, message_id=MAIL, to="ann@zc.example", at=AT)
    part = message_from_bytes(raw, policy=policy.default).get_body((kind,))
    assert part is not None
    return str(part.get_content())


def in_a_mails_text(outcome: Outcome) -> str:
    return between(mailed(outcome, "plain").replace("\r\n", "\n"))


def in_a_mails_html(outcome: Outcome) -> str:
    (words,) = Page(mailed(outcome, "html")).words
    return words


def on_a_terminals_line(outcome: Outcome) -> str:
    return arguments_of(terminal.line(local.card("m", outcome, AT)))


def on_the_page(outcome: Outcome) -> str:
    sent = web.frame(local.card("m", outcome, AT)).decode()
    (data,) = [line[6:] for line in sent.split("\n") if line.startswith("data: ")]
    return arguments_of(json.loads(data))


def on_a_screen(outcome: Outcome) -> str:
    """As a person sees it in a terminal, the frame taken away."""
    item = terminal.line(local.card("m", outcome, AT))
    lines = "".join(text for _, text in Cards().take(item)).split("\n")
    edge = "│    "
    return "\n".join(line.removeprefix(edge) for line in lines[3:-2])


def arguments_of(line: object) -> str:
    return json.loads(json.dumps(line))["card"]["calls"][0]["arguments"]


RENDERERS: list[Callable[[Outcome], str]] = [
    on_telegram,
    on_discord,
    on_slack,
    in_a_mails_text,
    in_a_mails_html,
    on_a_terminals_line,
    on_the_page,
    on_a_screen,
]


@given(arguments=st.dictionaries(TEXTS, TREES), padding=st.sampled_from([0, 900, 5_000, 50_000]))
def test_no_renderer_cuts_or_hides(arguments: dict[str, object], padding: int) -> None:
    """For all arguments that hold no known secret, as text or as a file, in each language (P5)."""
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
    cut = [
        (renderer.__name__, language)
        for language in LANGUAGES
        for renderer in RENDERERS
        if canonical_json(json.loads(renderer(outcome(call, language)))) != bound
    ]
    assert cut == []


def outcome(call: CardCall, language: Language) -> Outcome:
    card = Card(key="c", asked_by="ann", calls=(call,), deadline_at=AT, language=language)
    return Outcome(card=card, endings=())
