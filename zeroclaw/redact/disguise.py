"""Removes disguises from a text: lookalikes become ASCII, invisible characters are dropped.

A person reads `sk-abc` the same in Cyrillic or full-width letters, or with soft hyphens in it. So
outgoing text is checked in its `folded` form: NFKD, each lookalike replaced by the ASCII characters
it resembles, digits of all scripts by ASCII digits, without combining marks or invisible characters.
Known values are compared by their `key`, which ignores case, white space, and the differences between
`1`, `l`, `I` and `i` and between `0` and `O`. If a value has enough letters and digits, its key
ignores every other character.

Both work character by character and cache the result for each character. A character that expands
to several non-ASCII ones counts as one, so that such a character never lengthens a text.

The lookalikes are all entries of confusables.txt (Unicode Technical Standard 39, version 15.1, read
2026-11) that resemble ASCII letters, digits or the punctuation of secrets and receipts, and in
addition small capitals, letters with a stroke or in a frame, and dashes. If only one case of a
letter is listed, the other counts as the same lookalike.
"""
# ruff: noqa: RUF001  these characters are meant to be ambiguous

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from zeroclaw.text.escape import DOTS

CHECKED = "\x01"
"""Stands for a check mark in a folded text; all other non-ASCII symbols are dropped."""
DOT = "\x02"
"""Stands for a dot between words in a folded text, as between the parts of a receipt's mark."""
_LOOKALIKES = """
+᛭➕𐊛 -˗֊\u05be᐀᠆‐‒–—―⁃−│➖Ⲻ⸗⸚⸺⸻⹀⹝〜〰゠ー\U00010ead\u06d4 -.꓾ .۰ꓸꓻ꘎\U0001d16d\u0701\u0702𐩐 ..ꓺ /᜵⁁⁄∕╱⟋⧸Ⳇ〳ノ㇓丿𝈺
//⫽ ///⫻ 2ƧϨᒿꙄꛯꝚ 3ƷȜЗзӠⳌꝪꞫ𑣊𖼻𝈆 4Ꮞ𑢯 5Ƽ𑢻 6бᏮⳒ𑣕 7𐓒𑣆𝈒 8Ȣȣ৪੪\u0b03𐌚𞣋 9৭੧୨൭ⳊꝮ𑢬𑣌𑣖 :ː˸։\u0903\u0a83᛬᠃᠉⁚∶ꓽ꞉︰\u05c3\u0703\u0704
=꓿ AȺΑАᎪᗅꓮ𐊠𖽀🅐🅰🇦 AAꜲ AEÆӔ AOꜴ AR🜇 AUꜶ AVꜸꜺ AYꜼ BƁɃΒВᏴᗷꓐꞖꞴ𐊂𐊡𐌁🅑🅱🇧 CƇȻЄСᏟ€ⲈⲤꓚꞒꟄ𐊢𐌂𐐕𐔜𑣩𑣲🅒🅲🇨🝌Ϲ
DĐƊᎠᗞᗪꓓꟇ🅓🅳🇩 EƐɆΕЕᎬ⋿ⴹꓰ𐊆𑢦𑢮🅔🅴🇪 FƑϜᖴꓝꞘ𐊇𐊥𐔥𑢢𑣂𝈓🅕🅵🇫 GƓǤԌᏀᏳꓖꞠ🅖🅶🇬 HĦΗНᎻᕼⱧⲎꓧꞪ𐋏🅗🅷🇭 IƖƗΙІӀⲒ🅘🅸🇮 JɈͿЈᎫᒍꓙꞲ🅙🅹🇯
KƘΚКᏦᛕⱩⲔꓗꝀꝂꝄꞢ𐔘🅚🅺🇰 LŁȽԼᏞᒪⱠⱢⳐꓡꝈꞭ𐐛𐔦𑢣𑢲𖼖𝈪🅛🅻🇱 MΜϺМᎷᗰᛖⱮⲘꓟ𐊰𐌑🅜🅼🇲 MB🝫 NƝȠΝⲚꓠꞐꞤ𐔓🅝🅽🇳
OØƟΟОՕ০ଠ୦ዐᎤⲞⵔ〇ꓳꝊꝌ𐊒𐊫𐐄𐓂𐔖𑓐𑢵𑣠🅞🅾🇴 OEŒ OOꚘꝎ PƤΡРᏢᑭᒆⱣⲢꓑꝐꝒꝔ𐊕🅟🅿🇵 QⵕꝖꝘ🅠🆀🇶 QE🜀 RƦɌᎡᏒᖇⱤꓣꞦ𐒴𖼵𝈖🅡🆁🇷
SЅՏᏕᏚⱾꓢꞨꟅꟉ𐊖𐐠𖼺🅢🆂🇸 TŦƬƮȾΤТᎢ⊤⟙Ⲧꓔ𐊗𐊱𐌕𑢼𖼊🅣🆃🇹🝨 T3Ꜩ UՍሀᑌᑧ∪⋃ꓴꞸ𐓎𑢸𖽂🅤🆄🇺 VƲѴ۷ᏙᐯⴸꓦꛟꝞ𐔝𑢠𖼈𝈍🅥🆅🇻 VB🝬 WԜᎳᏔⱲꓪ𑣦𑣯🅦🆆🇼
XΧХ᙭ᚷ╳ⲬⵝꓫꞳ𐊐𐊴𐌗𐌢𐔧𑣬🅧🆇🇽 YƳɎΥУҮᎩᎽỾⲨꓬ𐊲𑢤𖽃🅨🆈🇾 ZƵȤΖᏃⱫⱿꓜꟆ𐋵𑢩𑣥🅩🆉🇿 aɑαаᴀᶏ⍺ⱥꭺ aaꜳ aeæӕ aoꜵ auꜷ avꜹꜻ ayꜽ
bƀƄɓʙβЬвᏏᏼᑲᒈᖯᵬᶀꞗ blЫ cƈȼɕɛεсєԑᴄ⋴ⲉⲥꞓꞔꮛꮯ𐐩𐐽𑣎𝼝ϲ dđȡɖɗԁᏧᑯᒇᴅᵭᶁᶑꓒꟈꭰ dzʣ eɇеҽᴇᶒ℮ⱸꬲꬴꭼ fƒքᵮᶂẝꜰꞙꬵ
gƍǥɠɡɢʛԍցᏻᶃꞡꮐ hħɦʜнһհᏂⱨꜧꞕꮋ iıɨɩɪιіӏᎥᶖ⍳ꙇꭵ𑣃𝼚˛ jɉʝϳјᴊꭻ kĸƙκкᴋᶄⱪꝁꝃꝅꞣ
lłƚǀȴɫɬɭʟլ۱ᛁᴌᶅ∣⏽ⱡⳑⵏꓲꝉꞎꬷꬸꬹꮮ𐊊𐌉𐌠𐑃𖼨𝼄𝼑𝼓￨\u05c0\u05d5\u05df\u0627\u07ca𞣇 lOЮ llǁ‖∥ lsʪ lt₶ lzʫ mɱʍмᴍᵯᶆꬺ nƞȵɲɳɴηոռᵰᶇꞑꞥꬻ
oøοσоօ۵०੦૦௦\u0c02౦\u0c82೦\u0d02ഠ൦\u0d82๐໐ဝ၀ჿᴏᴑⱺⲟꝋꝍꬽ𐐬𐓪𑣈𑣗𝼛\u05e1\u0647\u06be\u06c1\u06d5 oeœ oo∞ꚙꝏ pƥρрᴘᴩᵱᵽᶈ⍴ⲣꝑꝓꝕꮲ qɋʠԛգզᶐꝗꝙꞯ
rɍɼɽɾʀгґᴦᵲᵳᶉⲅꞧꭆꭇꭈꭉꭱꮁꮢ𝼖 rn𑜀𑣣 sƽȿʂѕᵴᶊꜱꞩꟊꮪ𐑈𑣁𝼞 sss🝜 tŧƫƭȶʈτтᎿᴛᵵⱦꭲ𝼉 tfꝷ tsʦ uυиսᴜᶙꞟꞹꭎꭒ𐓶𑣘 ueᵫ uoꭣ
vʋνѵᴠᶌ∨⋁ⱱⱴꝟꮩ𑜆𑣀\u05d8 wɯωѡԝաᴡⱳꮃ𑜊𑜎𑜏 x×χхᕁᕽ᙮ᶍ⤫⤬⨯ꭖꭗꭘꭙ yƴɏɣʏγуүყỿꭚ𑣜 zƶȥɀʐʑζᴢᵶᶎⱬꮓ𑣄 ~⁓∼
"""
"""Each word is an ASCII reading followed by the characters that look like it."""

_NAMES = """
white_check_mark=✅ heavy_check_mark=✅ ballot_box_with_check=✅ zero=0 one=1 two=2
three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 a=a b=b m=m o=o o2=o v=v x=x parking=p
information_source=i heavy_minus_sign=-
"""
_SIGN_OF = {name: sign for name, _, sign in (pair.partition("=") for pair in _NAMES.split())}
_SIGN_OF_PLAIN_NAME = {name.replace("_", ""): sign for name, sign in _SIGN_OF.items()}
# A Markdown parser may have consumed a `_` as emphasis.
_NAMED = re.compile(
    ":(?:(?:regional_?indicator_?|alphabet-(?:white|yellow)-)(?P<letter>[a-z])"
    r"|(?P<clock>clock\d{1,4})"
    f"|(?P<sign>{'|'.join(_SIGN_OF).replace('_', '_?')})):"
)
_LOOKALIKE_WORD = re.compile(r"([!-~]+)(\S+)")
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters by name, but invisible
_CHECK_MARKS = "✅✓✔☑🗸🗹🮱√" + "".join(
    map(chr, range(0x1F550, 0x1F568))
)  # and each full and half hour
_ZEROS = "٠۰߀०০੦૦୦௦౦೦൦๐໐༠၀០᠐"
_ONES = "❶➀➊"
_READINGS: dict[str, str] = {
    **{chr(ord(zero) + value): str(value) for zero in _ZEROS for value in range(10)},
    **{chr(ord(one) + value - 1): str(value) for one in _ONES for value in range(1, 10)},
    **{sign: word[1] for word in _LOOKALIKE_WORD.finditer(_LOOKALIKES) for sign in word[2]},
    **dict.fromkeys(_FILLERS, ""),
    **dict.fromkeys(_CHECK_MARKS, CHECKED),
    **dict.fromkeys(DOTS, DOT),
}
_DROPPED = re.compile(r"[^\w\x00-\x7f]+|[\x00\x03-\x08\x0e-\x1f\x7f]+")
"""Marks, format characters, emoji: anything but letters, digits, white space and ASCII."""
_ASCII_SIGN = re.compile(r"[!-~]")
_SIGNS = re.compile(r"[\W_]+")
_MAX_CACHED = 20_000  # characters; more than any ordinary text uses, and some 2 MB

_READ_AS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZi10", b"abcdefghljklmnopqrstuvwxyzllo")
_NOT_BARE = bytes(code for code in range(128) if not chr(code).isalnum())
_NOT_SHOWN = (CHECKED + DOT + "\\`*_~[]()<>#| \t\n\v\f\r\x1c\x1d\x1e\x1f").encode()


class _Table(dict[int, str]):
    """A table for `str.translate` that computes each character's replacement on first use."""

    def __init__(self, compute: Callable[[str], str]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, code: int) -> str:
        replacement = self._compute(chr(code))
        if len(self) >= _MAX_CACHED:
            self.clear()
        self[code] = replacement
        return replacement


def _reading(sign: str) -> str:
    """Return how one character reads in ASCII."""
    # Known ones skip NFKD, which may lose the likeness: a lunate sigma resembles `c`, but becomes an
    # ordinary sigma, which does not.
    pieces = sign if sign in _READINGS else unicodedata.normalize("NFKD", sign)
    spelled = "".join(map(_looks_like, pieces))
    spelled = _DROPPED.sub("", spelled)
    # Some Arabic characters stand for whole words, no part of which is mistaken for a letter.
    is_one = unicodedata.bidirectional(sign) == "AL" or not _ASCII_SIGN.search(spelled)
    return spelled[:1] if is_one else spelled


def _looks_like(sign: str) -> str:
    known = filter(_READINGS.__contains__, (sign, sign.lower(), sign.upper()))
    return _READINGS.get(next(known, ""), sign)


def _bare_key(sign: str) -> str:
    return _key_of(_SIGNS.sub("", sign))


def _key_of(sign: str) -> str:
    small = sign.lower()
    return small.encode().translate(_READ_AS, _NOT_SHOWN).decode() if small.isascii() else small


_FOLDED = _Table(_reading)
_KEYS = {True: _Table(_bare_key), False: _Table(_key_of)}


def without_names(text: str) -> str:
    """Return a text with emoji names replaced by characters: some channels show `:one:` as a digit.

    The names are Discord's and Slack's, for characters that can spell a secret or a receipt. Most
    texts don't change.
    """

    def sign(match: re.Match[str]) -> str:
        if match["clock"]:
            return "🕓"
        return match["letter"] or _SIGN_OF_PLAIN_NAME[match["sign"].replace("_", "")]

    return _NAMED.sub(sign, text)


def folded(text: str) -> str:
    """Return a text as it reads in ASCII; keeps letters with no ASCII reading, drops marks."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return text.translate(_FOLDED)


def folded_from(text: str) -> tuple[str, Sequence[int]]:
    """Return the folded text, and for each of its characters the index it came from."""
    return _translate(text, _FOLDED)


@lru_cache(4096)
def is_lookalike(sign: str) -> bool:
    """Whether a non-Latin letter or digit passes for an ASCII one in a Latin word.

    Letters of right-to-left scripts do not: there they are used as prefixes.
    """
    reading = folded(sign)
    return (
        not sign.isascii()
        and reading.isalnum()
        and reading.isascii()
        and (sign in _ALIKE_LATIN or not unicodedata.name(sign, "").startswith("LATIN "))
        and unicodedata.bidirectional(sign) not in _RIGHT_TO_LEFT
        and not unicodedata.decomposition(sign).startswith(_COMPOSED)
    )


_ALIKE_LATIN = "ɑɡ"
_RIGHT_TO_LEFT = ("R", "AL")
_COMPOSED = ("<circle>", "<fraction>", "<square>", "<sub>", "<super>")


def key(reading: str, *, bare: bool) -> str:
    """Return a folded text's comparison key; `bare` drops all punctuation, not only markup."""
    if reading.isascii():
        # The same as below, some fifty times faster.
        return reading.encode().translate(_READ_AS, _NOT_BARE if bare else _NOT_SHOWN).decode()
    return reading.translate(_KEYS[bare])


def key_from(reading: str, *, bare: bool) -> tuple[str, Sequence[int]]:
    """Return the key of a folded text, and for each of its characters the index it came from."""
    return _translate(reading, _KEYS[bare])


def _translate(text: str, table: _Table) -> tuple[str, Sequence[int]]:
    pieces = [table[ord(sign)] for sign in text]
    return "".join(pieces), [at for at, piece in enumerate(pieces) for _ in piece]


def prefix_length(needles: Iterable[str], text: str, *, least: int) -> int:
    """Return the length of the longest suffix of a text that begins a needle, 0 below `least`."""
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
