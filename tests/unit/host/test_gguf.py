"""What a model file says of itself."""

from pathlib import Path

import pytest

from tests.emulators.gguf_files import CALLS, CHATS, gguf
from zeroclaw.host.gguf import is_gguf, knows_tools


@pytest.mark.parametrize(
    ("content", "known"),
    [
        (gguf(CALLS), True),
        (gguf(CHATS), False),
        (gguf("{{ mytools }}"), False),
        (gguf(CALLS, key="tokenizer.chat_template.tool_use"), True),
        (gguf(None), False),
        (gguf(CALLS)[:-20], True),
        (gguf(CALLS)[: -len(CALLS) - 3], False),
        (b"GGUF", False),
        (b"<html>tools</html>", None),
        (b"", None),
    ],
)
def test_tools_are_known_where_the_template_names_them(
    tmp_path: Path, content: bytes, *, known: bool | None
) -> None:
    """A word of the vocabulary is no template; what is cut off is told of by who loads it."""
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    assert knows_tools(path) is known
    assert is_gguf(path) is (known is not None)


def test_a_file_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert knows_tools(tmp_path / "m.gguf") is None
