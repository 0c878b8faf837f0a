"""The names of character encodings, as pages and mails declare them (pure).

They are the labels of the web (encoding.spec.whatwg.org, read 2026-11), and a few that only mails
have. A foreign label is looked up here only: some of Python's codecs decompress or take quadratic
time, and its codec cache keeps every name ever looked up.
"""

import re

# Labels without punctuation, and Python's codecs. By the standard, Latin-1 means Windows-1252. ASCII is
# no charset here: what claims to be it, and is not, is read as if it claimed nothing.
_CHARSETS: dict[str, str] = {
    "utf8": "utf-8",
    "utf16": "utf-16",  # its byte order mark may say that it is the other one
    "utf16le": "utf-16-le",
    "utf16be": "utf-16-be",
    **dict.fromkeys(("latin1", "l1", "iso88591", "iso885911987"), "cp1252"),
    **{f"iso8859{number}": f"iso8859-{number}" for number in (*range(2, 9), 10, 13, 14, 15, 16)},
    **{f"latin{number}": f"iso8859-{number}" for number in (2, 3, 4)},
    "iso88599": "cp1254",
    "latin5": "cp1254",
    **{f"windows{number}": f"cp{number}" for number in range(1250, 1259)},
    **{f"cp{number}": f"cp{number}" for number in (437, 850, 852, 866, *range(1250, 1259))},
    **{f"ibm{number}": f"cp{number}" for number in (437, 850, 852, 866)},
    **dict.fromkeys(("windows874", "tis620", "iso885911"), "cp874"),
    **{f"iso8859{number}{way}": f"iso8859-{number}" for number in (6, 8) for way in "ie"},
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "macintosh": "mac-roman",
    "xmaccyrillic": "mac-cyrillic",
    **dict.fromkeys(("gb2312", "gbk", "cp936", "gb18030", "xgbk"), "gb18030"),
    **dict.fromkeys(("big5", "big5hkscs"), "big5hkscs"),
    "eucjp": "euc_jp",
    "iso2022jp": "iso2022_jp",
    "iso2022kr": "iso2022_kr",
    **dict.fromkeys(("shiftjis", "sjis", "xsjis", "windows31j", "mskanji"), "cp932"),
    **dict.fromkeys(("euckr", "ksc56011987", "windows949"), "cp949"),
}
_PUNCTUATION = re.compile(r"[^a-z0-9]")


def codec_of(label: str) -> str:
    """Return Python's codec for a declared label; empty for an unknown one."""
    return _CHARSETS.get(_PUNCTUATION.sub("", label.lower()), "")
