"""What a text says once its disguises are off: spelled in ASCII, and what can't be seen gone.

A person reads `sk-abc` in Cyrillic or full-width letters, or with soft hyphens in it, as they read it
in ASCII. So a text that is about to be shown is looked through in its `folded` form: NFKD, each
lookalike as the ASCII sign that it looks like, digits of all scripts as ASCII's, no marks above
letters, nothing invisible. Known values
are compared by their `key`, in which neither case counts, nor white space, nor which of `1`, `l`, `I`
and `0`, `O` it is, nor, where the value is long enough without, any sign that is no letter or digit.

Lookalikes are those of confusables.txt (Unicode Technical Standard 39), small capitals, letters with
a stroke or in a frame, and dashes; read 2026-11.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

CHECKED = ""
"""What a folded text has for a check mark; all other signs that are not ASCII go."""
_LOOKALIKES = {
    "+": "\u16ed\u2795\U0001029b",
    "-": (
        "\u02d7\u058a\u05be\u1400\u1806\u2010\u2012\u2013\u2014\u2015\u2043\u2212\u2502\u2796"
        "\u2cba\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u2e5d\u301c\u3030\u30a0\u30fc\U00010ead"
    ),
    ".": "\u06f0\ua4f8\ua60e",
    "/": "\u1735\u2041\u2044\u2215\u2571\u27cb\u29f8\u2cc6\u3033\u30ce\u31d3\u4e3f\U0001d23a",
    "2": "\u01a7\u03e8\u14bf\ua644\ua6ef\ua75a",
    "3": "\u01b7\u021c\u0417\u0437\u04e0\u2ccc\ua76a\ua7ab\U000118ca\U00016f3b\U0001d206",
    "4": "\u13ce\U000118af",
    "5": "\u01bc\U000118bb",
    "6": "\u0431\u13ee\u2cd2\U000118d5",
    "7": "\U000104d2\U000118c6\U0001d212",
    "8": "\u0222\u0223\u09ea\u0a6a\U0001031a",
    "9": "\u09ed\u0a67\u0b68\u0d6d\u2cca\ua76e\U000118ac\U000118cc\U000118d6",
    ":": "\u02d0\u02f8\u0589\u16ec\u1803\u1809\u205a\u2236\ua4fd\ua789",
    "=": "\ua4ff",
    "A": ("\u023a\u0391\u0410\u13aa\u15c5\ua4ee\U000102a0\U00016f40\U0001f150\U0001f170\U0001f1e6"),
    "B": (
        "\u0181\u0243\u0392\u0412\u13f4\u15f7\ua4d0\ua796\ua7b4\U00010282\U000102a1\U00010301"
        "\U0001f151\U0001f171\U0001f1e7"
    ),
    "C": (
        "\u0187\u023b\u0404\u0421\u13df\u20ac\u2c88\u2ca4\ua4da\ua792\ua7c4\U000102a2"
        "\U00010302\U00010415\U0001051c\U000118e9\U000118f2\U0001f152\U0001f172\U0001f1e8"
        "\U0001f74c"
    ),
    "D": "\u0110\u018a\u13a0\u15de\u15ea\ua4d3\ua7c7\U0001f153\U0001f173\U0001f1e9",
    "E": (
        "\u0190\u0246\u0395\u0415\u13ac\u22ff\u2d39\ua4f0\U00010286\U000118a6\U000118ae"
        "\U0001f154\U0001f174\U0001f1ea"
    ),
    "F": (
        "\u0191\u03dc\u15b4\ua4dd\ua798\U00010287\U000102a5\U00010525\U000118a2\U000118c2"
        "\U0001d213\U0001f155\U0001f175\U0001f1eb"
    ),
    "G": "\u0193\u01e4\u050c\u13c0\u13f3\ua4d6\ua7a0\U0001f156\U0001f176\U0001f1ec",
    "H": (
        "\u0126\u0397\u041d\u13bb\u157c\u2c67\u2c8e\ua4e7\ua7aa\U000102cf\U0001f157\U0001f177"
        "\U0001f1ed"
    ),
    "I": "\u0196\u0197\u0399\u0406\u04c0\u2c92\U0001f158\U0001f178\U0001f1ee",
    "J": "\u0248\u037f\u0408\u13ab\u148d\ua4d9\ua7b2\U0001f159\U0001f179\U0001f1ef",
    "K": (
        "\u0198\u039a\u041a\u13e6\u16d5\u2c69\u2c94\ua4d7\ua740\ua742\ua744\ua7a2\U00010518"
        "\U0001f15a\U0001f17a\U0001f1f0"
    ),
    "L": (
        "\u0141\u023d\u13de\u14aa\u2c60\u2c62\u2cd0\ua4e1\ua748\ua7ad\U0001041b\U00010526"
        "\U000118a3\U000118b2\U00016f16\U0001d22a\U0001f15b\U0001f17b\U0001f1f1"
    ),
    "M": (
        "\u039c\u03fa\u041c\u13b7\u15f0\u16d6\u2c6e\u2c98\ua4df\U000102b0\U00010311\U0001f15c"
        "\U0001f17c\U0001f1f2"
    ),
    "N": "\u019d\u0220\u039d\u2c9a\ua4e0\ua790\ua7a4\U00010513\U0001f15d\U0001f17d\U0001f1f3",
    "O": (
        "\u00d8\u019f\u039f\u041e\u0555\u09e6\u0b20\u0b66\u12d0\u2c9e\u2d54\u3007\ua4f3\ua74a"
        "\ua74c\U00010292\U000102ab\U00010404\U000104c2\U00010516\U000114d0\U000118b5"
        "\U000118e0\U0001f15e\U0001f17e\U0001f1f4"
    ),
    "P": (
        "\u01a4\u03a1\u0420\u13e2\u146d\u2c63\u2ca2\ua4d1\ua750\ua752\ua754\U00010295"
        "\U0001f15f\U0001f17f\U0001f1f5"
    ),
    "Q": "\u2d55\ua756\ua758\U0001f160\U0001f180\U0001f1f6",
    "R": (
        "\u01a6\u024c\u13a1\u13d2\u1587\u2c64\ua4e3\ua7a6\U000104b4\U00016f35\U0001d216"
        "\U0001f161\U0001f181\U0001f1f7"
    ),
    "S": (
        "\u0405\u054f\u13d5\u13da\u2c7e\ua4e2\ua7a8\ua7c5\ua7c9\U00010296\U00010420\U00016f3a"
        "\U0001f162\U0001f182\U0001f1f8"
    ),
    "T": (
        "\u0166\u01ac\u01ae\u023e\u03a4\u0422\u13a2\u22a4\u27d9\u2ca6\ua4d4\U00010297"
        "\U000102b1\U00010315\U000118bc\U00016f0a\U0001f163\U0001f183\U0001f1f9\U0001f768"
    ),
    "U": (
        "\u054d\u1200\u144c\u222a\u22c3\ua4f4\ua7b8\U000104ce\U000118b8\U00016f42\U0001f164"
        "\U0001f184\U0001f1fa"
    ),
    "V": (
        "\u01b2\u0474\u06f7\u13d9\u142f\u2d38\ua4e6\ua6df\ua75e\U0001051d\U000118a0\U00016f08"
        "\U0001d20d\U0001f165\U0001f185\U0001f1fb"
    ),
    "W": "\u051c\u13b3\u13d4\u2c72\ua4ea\U000118e6\U000118ef\U0001f166\U0001f186\U0001f1fc",
    "X": (
        "\u03a7\u0425\u166d\u16b7\u2573\u2cac\u2d5d\ua4eb\ua7b3\U00010290\U000102b4\U00010317"
        "\U00010322\U00010527\U000118ec\U0001f167\U0001f187\U0001f1fd"
    ),
    "Y": (
        "\u01b3\u024e\u03a5\u0423\u04ae\u13a9\u13bd\u1efe\u2ca8\ua4ec\U000102b2\U000118a4"
        "\U00016f43\U0001f168\U0001f188\U0001f1fe"
    ),
    "Z": (
        "\u01b5\u0224\u0396\u13c3\u2c6b\u2c7f\ua4dc\ua7c6\U000102f5\U000118a9\U000118e5"
        "\U0001f169\U0001f189\U0001f1ff"
    ),
    "a": "\u0251\u03b1\u0430\u1d00\u1d8f\u237a\u2c65\uab7a",
    "b": "\u0180\u0184\u0253\u0299\u03b2\u042c\u0432\u13cf\u13fc\u1472\u15af\u1d6c\u1d80\ua797",
    "c": (
        "\u0188\u023c\u0255\u025b\u03b5\u0441\u0454\u0511\u1d04\u22f4\u2c89\u2ca5\ua793\ua794"
        "\uab9b\uabaf\U00010429\U0001043d\U000118ce\U0001df1d"
    ),
    "d": "\u0111\u0221\u0256\u0257\u0501\u13e7\u146f\u1d05\u1d6d\u1d81\u1d91\ua4d2\ua7c8\uab70",
    "e": "\u0247\u0435\u04bd\u1d07\u1d92\u212e\u2c78\uab32\uab34\uab7c",
    "f": "\u0192\u0584\u1d6e\u1d82\u1e9d\ua730\ua799\uab35",
    "g": "\u018d\u01e5\u0260\u0261\u0262\u029b\u050d\u0581\u13fb\u1d83\ua7a1\uab90",
    "h": "\u0127\u0266\u029c\u043d\u04bb\u0570\u13c2\u2c68\ua727\ua795\uab8b",
    "i": (
        "\u0131\u0268\u0269\u026a\u03b9\u0456\u04cf\u13a5\u1d96\u2373\ua647\uab75\U000118c3"
        "\U0001df1a"
    ),
    "j": "\u0249\u029d\u03f3\u0458\u1d0a\uab7b",
    "k": "\u0138\u0199\u03ba\u043a\u1d0b\u1d84\u2c6a\ua741\ua743\ua745\ua7a3",
    "l": (
        "\u0142\u019a\u01c0\u0234\u026b\u026c\u026d\u029f\u06f1\u16c1\u1d0c\u1d85\u2223\u23fd"
        "\u2c61\u2cd1\u2d4f\ua4f2\ua749\ua78e\uab37\uab38\uab39\uabae\U0001028a\U00010309"
        "\U00010320\U00010443\U00016f28\U0001df04\U0001df11\U0001df13"
    ),
    "m": "\u0271\u028d\u043c\u1d0d\u1d6f\u1d86\uab3a",
    "n": "\u019e\u0235\u0272\u0273\u0274\u03b7\u0578\u057c\u1d70\u1d87\ua791\ua7a5\uab3b",
    "o": (
        "\u00f8\u03bf\u03c3\u043e\u0585\u06f5\u0966\u0a66\u0ae6\u0be6\u0c66\u0ce6\u0d20\u0d66"
        "\u0e50\u0ed0\u101d\u1040\u10ff\u1d0f\u1d11\u2c7a\u2c9f\ua74b\ua74d\uab3d\U0001042c"
        "\U000104ea\U000118c8\U000118d7\U0001df1b"
    ),
    "p": "\u01a5\u03c1\u0440\u1d18\u1d29\u1d71\u1d7d\u1d88\u2374\u2ca3\ua751\ua753\ua755\uabb2",
    "q": "\u024b\u02a0\u051b\u0563\u0566\u1d90\ua757\ua759\ua7af",
    "r": (
        "\u024d\u027c\u027d\u027e\u0280\u0433\u1d26\u1d72\u1d73\u1d89\u2c85\ua7a7\uab46\uab47"
        "\uab48\uab49\uab71\uab81\uaba2\U0001df16"
    ),
    "s": (
        "\u01bd\u023f\u0282\u0455\u1d74\u1d8a\ua731\ua7a9\ua7ca\uabaa\U00010448\U000118c1\U0001df1e"
    ),
    "t": "\u0167\u01ab\u01ad\u0236\u0288\u03c4\u0442\u13bf\u1d1b\u1d75\u2c66\uab72\U0001df09",
    "u": "\u03c5\u0438\u057d\u1d1c\u1d99\ua79f\ua7b9\uab4e\uab52\U000104f6\U000118d8",
    "v": ("\u028b\u03bd\u0475\u1d20\u1d8c\u2228\u22c1\u2c71\u2c74\ua75f\uaba9\U00011706\U000118c0"),
    "w": "\u026f\u03c9\u0461\u051d\u0561\u1d21\u2c73\uab83\U0001170a\U0001170e\U0001170f",
    "x": "\u00d7\u03c7\u0445\u1541\u157d\u166e\u1d8d\u292b\u292c\u2a2f\uab56\uab57\uab58\uab59",
    "y": "\u01b4\u024f\u0263\u028f\u03b3\u0443\u04af\u10e7\u1eff\uab5a\U000118dc",
    "z": "\u01b6\u0225\u0240\u0290\u0291\u03b6\u1d22\u1d76\u1d8e\u2c6c\uab93\U000118c4",
    "~": "\u2053\u223c",
}
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters by name that show nothing
_CHECK_MARKS = "✅✓✔☑🗸🗹🕓🕐🕒"
_ZEROS = "٠۰߀०০੦૦୦௦౦೦൦๐໐༠၀០᠐"
_ONES = "❶➀➊"
_TABLE: dict[int, str] = {
    **{ord(zero) + value: str(value) for zero in _ZEROS for value in range(10)},
    **{ord(one) + value - 1: str(value) for one in _ONES for value in range(1, 10)},
    **{ord(sign): letter for letter, signs in _LOOKALIKES.items() for sign in signs},
    **dict.fromkeys(map(ord, _FILLERS), ""),
    **dict.fromkeys(map(ord, _CHECK_MARKS), CHECKED),
}
_DROPPED = re.compile(r"[^\w\x00-\x7f]+|[\x00\x02-\x08\x0e-\x1f\x7f]+")
"""Marks, format characters, emoji: what is no letter, digit, blank or ASCII sign."""
_MARKUP = CHECKED + "\\`*_~[]()<>#|"
_SIGNS = re.compile(r"[\W_]+")
_PIECE_CHARS = 256
_ALIKE = (("1", "l"), ("i", "l"), ("0", "o"))


_READ_AS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZi10", b"abcdefghljklmnopqrstuvwxyzllo")
_NOT_BARE = bytes(one for one in range(128) if not chr(one).isalnum())
_NOT_SHOWN = (_MARKUP + " \t\n\v\f\r\x1c\x1d\x1e\x1f").encode()


def folded(text: str) -> str:
    """Return a text as it reads in ASCII; what reads like nothing in ASCII stays, marks go."""
    if text.isascii():
        is_clean = text.replace("\n", "").isprintable()
        return text if is_clean else _DROPPED.sub("", text)
    # In pieces: marks in a row are put in order in quadratic time, and go all the same.
    pieces = (text[at : at + _PIECE_CHARS] for at in range(0, len(text), _PIECE_CHARS))
    spelled = "".join(unicodedata.normalize("NFKD", piece) for piece in pieces)
    return _DROPPED.sub("", spelled.translate(_TABLE))


def folded_from(text: str) -> tuple[str, Sequence[int]]:
    """Return the folded text, and from which character each of its characters came."""
    pieces = [folded(sign) for sign in text]
    return "".join(pieces), [at for at, piece in enumerate(pieces) for _ in piece]


def key(reading: str, *, bare: bool) -> str:
    """Return what a folded text is compared by; `bare` of all signs, or of markup alone."""
    if reading.isascii():
        # As below, and some fifty times faster.
        return reading.encode().translate(_READ_AS, _NOT_BARE if bare else _NOT_SHOWN).decode()
    if bare:
        short = _SIGNS.sub("", reading)
    else:
        short = "".join(reading.split())
        for sign in _MARKUP:
            short = short.replace(sign, "")
    short = short.lower()
    for sign, alike in _ALIKE:
        short = short.replace(sign, alike)
    return short


def key_from(reading: str, *, bare: bool) -> tuple[str, Sequence[int]]:
    """Return the key of a folded text, and from which character each of its characters came."""
    pieces = [key(sign, bare=bare) for sign in reading]
    return "".join(pieces), [at for at, piece in enumerate(pieces) for _ in piece]


def places(needles: Iterable[str], text: str) -> list[tuple[int, int]]:
    """Return where any of the needles stands in a text, overlapping ones too."""
    found: list[tuple[int, int]] = []
    for needle in needles:
        at = text.find(needle)
        while at >= 0:
            found.append((at, at + len(needle)))
            at = text.find(needle, at + 1)
    return found


def begun(needles: Iterable[str], text: str, *, least: int) -> int:
    """Return the length of the longest end of a text that begins a needle; 0 for less than `least`."""
    longest = 0
    end = text[-least:]
    for needle in needles:
        if end not in needle:
            continue
        for length in range(min(len(needle) - 1, len(text)), max(longest, least - 1), -1):
            if text.endswith(needle[:length]):
                longest = length
                break
    return longest
