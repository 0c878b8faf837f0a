"""Character encodings: as pages and mails declare them, else as bytes look (pure).

The names are the labels of the web (encoding.spec.whatwg.org, read 2026-11), and Python's names, for mails
have many more. A foreign label is looked up here only: some of Python's codecs decompress or take
quadratic time, and its codec cache keeps every name ever looked up.
"""

import codecs
import re
from encodings.aliases import aliases
from functools import cache

# Codecs that turn any bytes into text in linear time. ASCII is no charset here: what claims to be it,
# and is not, is read as if it claimed nothing.
_SAFE = re.compile(
    r"utf_(?:8|(?:16|32)(?:_[bl]e)?)|latin_1|iso8859_\d+|cp(?:437|[789]\d\d|125\d|1125)|koi8_[rtu]|kz1048"
    r"|ptcp154|mac_\w+|tis_620|gb\w+|hz|big5\w*|euc_\w+|johab|shift_jis\w*|iso2022_(?:jp\w*|kr)"
)
# By the standard of the web, some names mean a larger charset, or one order of bytes.
_LARGER = {
    "latin_1": "cp1252",
    "iso8859_9": "cp1254",
    **dict.fromkeys(("tis_620", "iso8859_11"), "cp874"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf_16": "utf_16_le",
    "utf_32": "utf_32_le",
    "iso2022_jp_2": "iso2022_jp_ext",  # it raises RuntimeError on some bytes (Python 3.11)
}
# Names that Python's list lacks.
_FURTHER = {
    **{f"iso8859{number}{way}": f"iso8859_{number}" for number in (6, 8) for way in "ie"},
    **dict.fromkeys(("xsjis", "windows31j", "windows932", "xmscp932"), "cp932"),
    "windows874": "cp874",
    "windows949": "cp949",
    "xgbk": "gbk",
    "utf8sig": "utf_8",
    "xmacroman": "mac_roman",
    "xmaccyrillic": "mac_cyrillic",
    **{name: name for name in ("cp720", "cp737", "cp874", "koi8_t", "koi8_u")},
}
_SHIFTING = ("iso2022", "hz")
_PIECE_BYTES = 65_536
_PUNCTUATION = re.compile(r"[^a-z0-9]")
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32-LE",  # first, because the mark of UTF-16 begins it
    codecs.BOM_UTF32_BE: "UTF-32-BE",
    codecs.BOM_UTF16_LE: "UTF-16-LE",
    codecs.BOM_UTF16_BE: "UTF-16-BE",
    codecs.BOM_UTF8: "UTF-8",
}


@cache  # made at the first label: it would cost each start a millisecond
def _charsets() -> dict[str, str]:
    return {
        _PUNCTUATION.sub("", name): _LARGER.get(codec, codec)
        for label, codec in {**aliases, **_FURTHER}.items()
        if _SAFE.fullmatch(codec)
        for name in (codec, label)
    }


def codec_of(label: str) -> str:
    """Return Python's codec for a declared label; empty for an unknown one."""
    return _charsets().get(_PUNCTUATION.sub("", label.lower()), "")


def decode_text(data: bytes, codec: str = "") -> tuple[str, str]:
    """Return bytes as text, and the name of their encoding; bytes that it lacks become U+FFFD.

    Args:
        data: The bytes. A byte order mark comes first, as in browsers.
        codec: The declared one, empty for none.
    """
    for mark, name in BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return _marked(data[len(mark) :], name), name
    if codec:
        return _marked(data, codec), codec
    try:
        return data.decode(), "UTF-8"
    except UnicodeDecodeError as error:
        text = data[: error.start].decode()
        if error.end == len(data) and not text.isascii():  # cut inside of its last character
            return text, "UTF-8"
    # Windows' default for decades is Latin-1 with letters in place of some controls.
    return _marked(data, "cp1252"), "Windows-1252, as it seems"


def _marked(data: bytes, codec: str) -> str:
    """Return bytes as text in which those without a meaning are marked.

    Each of them may cost half a microsecond, and no other thread runs within one call. So the bytes are
    decoded piece by piece, unless they have shifts: those are cheap, and some can't be decoded so.
    """
    if codec.startswith(_SHIFTING):
        return data.decode(codec, "replace")
    decoder = codecs.getincrementaldecoder(codec)("replace")
    pieces = (data[at : at + _PIECE_BYTES] for at in range(0, len(data), _PIECE_BYTES))
    return "".join(map(decoder.decode, pieces)) + decoder.decode(b"", final=True)
