"""The tokenizer of a file that an operator configures."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from zeroclaw.config.validate import parse
from zeroclaw.daemon.config_check import check
from zeroclaw.errors import ConfigError, Refused
from zeroclaw.host.tokenizer import FileTokenizer

pytestmark = pytest.mark.needs("tokenizers")

WORDS: dict[str, object] = {
    "version": "1.0",
    "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
    "padding": {
        "strategy": {"Fixed": 64},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "?",
    },
    "added_tokens": [
        {
            "id": 1,
            "content": "<|im_start|>",
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
    ],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": {"?": 0, "<|im_start|>": 1}, "unk_token": "?"},
}
"""Every word and every run of signs is a token."""


def words(directory: Path) -> Path:
    """Write the tokenizer's file."""
    path = directory / "tokenizer.json"
    path.write_text(json.dumps(WORDS))
    return path


async def test_each_text_is_counted_by_itself(tmp_path: Path) -> None:
    """Texts are not truncated or padded, even if the file says so; special tokens are plain
    text."""
    tokenizer = await asyncio.to_thread(FileTokenizer, words(tmp_path))
    texts = ("", "one", "one two three four five six", "<|im_start|>", "a \ud83d", "b " * 40_000)
    assert await tokenizer.count(texts) == (0, 1, 6, 3, 2, 40_000)


@pytest.mark.parametrize("body", ["", "{}", "[]", "not JSON", "[" * 10_000, "\x00"])
def test_a_file_that_is_no_tokenizer_is_reported(tmp_path: Path, body: str) -> None:
    """In one line that says which file to name instead."""
    path = tmp_path / "tokenizer.json"
    path.write_text(body)
    with pytest.raises(Refused, match=r"is no tokenizer: name the `tokenizer\.json`"):
        FileTokenizer(path)


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    """It may be missing, or far too large."""
    with pytest.raises(Refused, match="can't be read: no such file"):
        FileTokenizer(tmp_path / "tokenizer.json")
    path = tmp_path / "model.gguf"
    with path.open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(Refused, match="more than 67,108,864 bytes"):
        FileTokenizer(path)


def test_without_the_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is imported only when a file is named."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(Refused, match="install the extra `tokenizer`"):
        FileTokenizer(words(tmp_path))


def test_a_bad_file_is_one_fault_of_the_configuration(tmp_path: Path) -> None:
    """With its key path, for each provider; a valid one is kept."""
    good = words(tmp_path)
    text = f'[provider]\ntokenizer = "{good}"\n[compaction.provider]\nkind = "local"\ntokenizer = "gone"'
    with pytest.raises(ConfigError) as raised:
        check(parse(text), {})
    (fault,) = raised.value.faults
    assert fault.startswith("compaction.provider.tokenizer: `")
    assert fault.endswith("gone` can't be read: no such file or directory")
    assert set(check(parse(text.replace("gone", str(good))), {}).tokenizers) == {
        "provider",
        "compaction.provider",
    }
