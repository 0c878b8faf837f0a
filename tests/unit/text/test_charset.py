"""Bytes as text, whatever encoding they claim."""

import sys
from types import FrameType

import pytest

from zeroclaw.text.charset import codec_of, decode_text

CHARACTERS = {
    "windows-1252": "\xe9",
    "iso-8859-8": "\u05d0",
    "iso-2022-kr": "\uac00",
    **dict.fromkeys(("utf-16", "utf-16be", "utf-32", "utf-8"), "\U0001f40e"),
    **dict.fromkeys(("shift_jis", "gb18030", "iso-2022-jp", "hz"), "\u4e2d"),
}


@pytest.mark.parametrize(("label", "character"), CHARACTERS.items())
def test_a_long_text_is_whole_wherever_its_pieces_end(label: str, character: str) -> None:
    """Also where a character has several bytes, and where an earlier shift counts (P9)."""
    codec, text = codec_of(label), "a" + character * 70_000
    assert decode_text(text.encode(codec), codec) == (text, codec)


def test_undefined_bytes_let_other_threads_run_in_between() -> None:
    """Each costs a call of the error handler, and a stranger's mail has millions of them (P9)."""
    calls: list[str] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.endswith("cp1252.py"):
            calls.append(event)

    sys.setprofile(note)
    try:
        text, _ = decode_text(b"\x81" * 1_000_000)
    finally:
        sys.setprofile(None)
    assert text == "\ufffd" * 1_000_000
    assert len(calls) > 10
