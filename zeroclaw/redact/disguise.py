"""What a text says once its disguises are off: spelled in ASCII, and what can't be seen gone.

A person reads `sk-abc` in Cyrillic or full-width letters, or with soft hyphens in it, as they read it
in ASCII. So a text that is about to be shown is looked through in its `folded` form: NFKD, each
lookalike as the ASCII signs that it looks like, digits of all scripts as ASCII's, no marks above
letters, nothing invisible. Known values
are compared by their `key`, in which neither case counts, nor white space, nor which of `1`, `l`, `I`
and `0`, `O` it is, nor, where the value is long enough without, any sign that is no letter or digit.

Both are made sign by sign, and what each sign becomes is remembered. A sign that unfolds to many
that are no ASCII counts as one, so that no text grows by being looked at.

Lookalikes are all of confusables.txt (Unicode Technical Standard 39, version 15.1, read 2026-11)
that look like ASCII letters, digits or the signs that secrets and receipts are made of; further
small capitals, letters with a stroke or in a frame, and dashes. A letter of which only the other
case is listed looks like the same one.
"""
# ruff: noqa: RUF001  they are to be mistaken for one another

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from zeroclaw.text.escape import DOTS

CHECKED = "\x01"
"""What a folded text has for a check mark; all other signs that are not ASCII go."""
DOT = "\x02"
"""What a folded text has for a dot between words, which a true mark has between its parts."""
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
"""Each word is what is read, in ASCII, and then the signs that look like it."""

_NAMES = """
white_check_mark=✅ heavy_check_mark=✅ ballot_box_with_check=✅ zero=0 one=1 two=2
three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 a=a b=b m=m o=o o2=o v=v x=x parking=p
information_source=i heavy_minus_sign=-
"""
_NAMED_SIGNS = {name: sign for name, _, sign in (one.partition("=") for one in _NAMES.split())}
_SIGNS_NAMED = {name.replace("_", ""): sign for name, sign in _NAMED_SIGNS.items()}
# What reads Markdown may have taken a `_` for the mark of a style.
_NAMED = re.compile(
    ":(?:(?:regional_?indicator_?|alphabet-(?:white|yellow)-)(?P<letter>[a-z])"
    r"|(?P<clock>clock\d{1,4})"
    f"|(?P<sign>{'|'.join(_NAMED_SIGNS).replace('_', '_?')})):"
)
_WORDS = re.compile(r"([!-~]+)(\S+)")
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters by name that show nothing
_CHECK_MARKS = "✅✓✔☑🗸🗹🮱√" + "".join(
    map(chr, range(0x1F550, 0x1F568))
)  # and each full and half hour
_ZEROS = "٠۰߀०০੦૦୦௦౦೦൦๐໐༠၀០᠐"
_ONES = "❶➀➊"
_KNOWN: dict[str, str] = {
    **{chr(ord(zero) + value): str(value) for zero in _ZEROS for value in range(10)},
    **{chr(ord(one) + value - 1): str(value) for one in _ONES for value in range(1, 10)},
    **{sign: one[1] for one in _WORDS.finditer(_LOOKALIKES) for sign in one[2]},
    **dict.fromkeys(_FILLERS, ""),
    **dict.fromkeys(_CHECK_MARKS, CHECKED),
    **dict.fromkeys(DOTS, DOT),
}
_DROPPED = re.compile(r"[^\w\x00-\x7f]+|[\x00\x03-\x08\x0e-\x1f\x7f]+")
"""Marks, format characters, emoji: what is no letter, digit, blank or ASCII sign."""
_TELLS = re.compile(r"[!-~]")
_SIGNS = re.compile(r"[\W_]+")
_REMEMBERED = 20_000  # signs; more than one text of people has, and some 2 MB

_READ_AS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZi10", b"abcdefghljklmnopqrstuvwxyzllo")
_NOT_BARE = bytes(one for one in range(128) if not chr(one).isalnum())
_NOT_SHOWN = (CHECKED + DOT + "\\`*_~[]()<>#| \t\n\v\f\r\x1c\x1d\x1e\x1f").encode()


class _Table(dict[int, str]):
    """What each sign becomes, worked out when it is met first; for `str.translate`."""

    def __init__(self, becomes: Callable[[str], str]) -> None:
        super().__init__()
        self._becomes = becomes

    def __missing__(self, code: int) -> str:
        became = self._becomes(chr(code))
        if len(self) >= _REMEMBERED:
            self.clear()
        self[code] = became
        return became


def _reads(sign: str) -> str:
    """Return how one sign reads."""
    # Some are told apart by NFKD alone: a lunate sigma is a `c`, and the sigma that it stands for none.
    pieces = sign if sign in _KNOWN else unicodedata.normalize("NFKD", sign)
    spelled = "".join(map(_looks_like, pieces))
    spelled = _DROPPED.sub("", spelled)
    # Many an Arabic sign stands for a whole word, and no part of that is taken for a letter.
    is_one = unicodedata.bidirectional(sign) == "AL" or not _TELLS.search(spelled)
    return spelled[:1] if is_one else spelled


def _looks_like(sign: str) -> str:
    if sign.isascii():
        return sign
    for one in (sign, sign.lower(), sign.upper()):
        if one in _KNOWN:
            return _KNOWN[one]
    return sign


def _counts_bare(sign: str) -> str:
    return _counts(_SIGNS.sub("", sign))


def _counts(sign: str) -> str:
    small = sign.lower()
    return small.encode().translate(_READ_AS, _NOT_SHOWN).decode() if small.isascii() else small


_FOLDED = _Table(_reads)
_KEYS = {True: _Table(_counts_bare), False: _Table(_counts)}


def without_names(text: str) -> str:
    """Return a text with the signs that are named in it: some channels show `:one:` as a digit.

    The names are Discord's and Slack's, of signs that a secret or a receipt can be spelled with; most
    texts stay the same.
    """

    def sign(found: re.Match[str]) -> str:
        if found["clock"]:
            return "🕓"
        return found["letter"] or _SIGNS_NAMED[found["sign"].replace("_", "")]

    return _NAMED.sub(sign, text)


def folded(text: str) -> str:
    """Return a text as it reads in ASCII; what reads like nothing in ASCII stays, marks go."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return text.translate(_FOLDED)


def folded_from(text: str) -> tuple[str, Sequence[int]]:
    """Return the folded text, and from which character each of its characters came."""
    return _from(text, _FOLDED)


@lru_cache(4096)
def is_lookalike(sign: str) -> bool:
    """Whether a letter or digit that is not Latin is taken for an ASCII one in a Latin word.

    Letters of scripts that are written from right to left are not: there they stand as prefixes.
    """
    reading = folded(sign)
    return (
        not sign.isascii()
        and reading.isalnum()
        and reading.isascii()
        and (sign in _DRAWN_ALIKE or not unicodedata.name(sign, "").startswith("LATIN "))
        and unicodedata.bidirectional(sign) not in _RIGHT_TO_LEFT
        and not unicodedata.decomposition(sign).startswith(_SET_APART)
    )


_DRAWN_ALIKE = "ɑɡ"
_RIGHT_TO_LEFT = ("R", "AL")
_SET_APART = ("<circle>", "<fraction>", "<square>", "<sub>", "<super>")


def key(reading: str, *, bare: bool) -> str:
    """Return what a folded text is compared by; `bare` of all signs, or of markup alone."""
    if reading.isascii():
        # As below, and some fifty times faster.
        return reading.encode().translate(_READ_AS, _NOT_BARE if bare else _NOT_SHOWN).decode()
    return reading.translate(_KEYS[bare])


def key_from(reading: str, *, bare: bool) -> tuple[str, Sequence[int]]:
    """Return the key of a folded text, and from which character each of its characters came."""
    return _from(reading, _KEYS[bare])


def _from(text: str, table: _Table) -> tuple[str, Sequence[int]]:
    pieces = [table[ord(sign)] for sign in text]
    return "".join(pieces), [at for at, piece in enumerate(pieces) for _ in piece]


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
