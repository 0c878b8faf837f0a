"""Disguises a word so that a channel's Markdown, or a reader's eye, turns it back into the word."""
# ruff: noqa: RUF001  the characters are lookalikes on purpose

import re
import unicodedata

from hypothesis import strategies as st

_ALIKE = {
    **dict(
        zip(
            "acdehijklmnoprstuvwxyz",
            "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u03ba\u04cf\u043c\u0578\u043e\u0440\u0280\u0455\u0442\u03c5\u03bd\u051d\u0445\u0443\u1d22",
            strict=True,
        )
    ),
    **dict(
        zip(
            "ABCEHIKMOPSTXYZ",
            "\u0410\u0412\u0421\u0415\u041d\u0406\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423\u0396",
            strict=True,
        )
    ),
    "-": "\u2010",
}
_MORE = {"C": "\u03f9", "c": "\u03f2", "i": "\u02db", "l": "\u05d5", "o": "\u05e1", "v": "\u05d8"}
_BACK = {alike: sign for table in (_ALIKE, _MORE) for sign, alike in table.items()}
_INVISIBLE = "\u00ad\u200b\u200d\u2060\ufe0f\u034f\u3164\U000e0041\u0301\u0336"
_MARKUP = (
    *("**{}**", "*{}*", "__{}__", "_{}_", "`{}`", "~~{}~~", "||{}||", "[{}](https://a.example/b)"),
    *(
        "<b>{}</b>",
        "{}\n",
        "{} ",
        "\n> {}",
        "\n- {}",
        "\n| {} |\n",
        "\n```py\n{}\n```\n",
        "***{}***",
    ),
)


def _forms(sign: str) -> list[str]:
    code = ord(sign)
    alike = (_ALIKE.get(sign, sign), _MORE.get(sign, sign), chr(code + 0xFEE0))
    forms = [sign, sign, f"&#{code};", f"&#x{code:x};", *alike]
    if not sign.isalnum():
        forms += [f"\\{sign}", "\u2014"]
    if sign.islower():
        forms += [chr(0x1D41A + code - 97), chr(0x24D0 + code - 97)]
    return forms


@st.composite
def disguised(draw: st.DrawFn, word: str) -> str:
    """Draw a word with some signs disguised, and some runs of signs in markup."""
    is_plain = draw(st.booleans())
    pieces = [sign if is_plain else draw(st.sampled_from(_forms(sign))) for sign in word]
    for _ in range(draw(st.integers(0, 3))):
        index = draw(st.integers(0, len(pieces) - 1))
        pieces[index] += draw(st.sampled_from(_INVISIBLE))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(pieces) - 1))
        end = draw(st.integers(start + 1, len(pieces)))
        markup = draw(st.sampled_from(_MARKUP))
        pieces[start:end] = [markup.format("".join(pieces[start:end]))]
    return "".join(pieces)


def read(shown: str) -> str:
    """Return a text as a person reads it, by other means than the product: lower-case ASCII."""
    normal = unicodedata.normalize("NFKD", "".join(_BACK.get(sign, sign) for sign in shown))
    return re.sub("[^a-z0-9]", "", "".join(_BACK.get(sign, sign) for sign in normal).lower())


LISTED = """
2ƧϨᒿꙄꛯꝚ 3ƷȜЗӠⳌꝪꞫ𑣊𖼻𝈆 4Ꮞ𑢯 5Ƽ𑢻 6бᏮⳒ𑣕 7𐓒𑣆𝈒 8Ȣȣ৪੪\u0b03𐌚\U0001e8cb 9৭੧୨൭ⳊꝮ𑢬𑣌𑣖 AΑАᎪᗅꓮ𐊠𖽀 BΒВᏴᗷꓐꞴ𐊂𐊡𐌁 CϹСᏟⲤꓚ𐊢𐌂𐐕𐔜𑣩𑣲🝌
DᎠᗞᗪꓓ EΕЕᎬ⋿ⴹꓰ𐊆𑢦𑢮 FϜᖴꓝꞘ𐊇𐊥𐔥𑢢𑣂𝈓 GԌᏀᏳꓖ HΗНᎻᕼⲎꓧ𐋏 JͿЈᎫᒍꓙꞲ KΚКᏦᛕⲔꓗ𐔘 LᏞᒪⳐꓡ𐐛𐔦𑢣𑢲𖼖𝈪 MΜϺМᎷᗰᛖⲘꓟ𐊰𐌑 NΝⲚꓠ𐔓
OΟОՕ\u07c0০ଠ୦ዐⲞⵔ〇ꓳ𐊒𐊫𐐄𐓂𐔖𑓐𑢵𑣠𝟎𝟘𝟢𝟬𝟶🯰 PΡРᏢᑭⲢꓑ𐊕 Qⵕ RƦᎡᏒᖇꓣ𐒴𖼵𝈖 SЅՏᏕᏚꓢ𐊖𐐠𖼺 TΤТᎢ⊤⟙Ⲧꓔ𐊗𐊱𐌕𑢼𖼊🝨 UՍሀᑌ∪⋃ꓴ𐓎𑢸𖽂 VѴ۷Ꮩᐯⴸꓦꛟ𐔝𑢠𖼈𝈍 WԜᎳᏔꓪ𑣦𑣯
XΧХ᙭ᚷ╳ⲬⵝꓫꞳ𐊐𐊴𐌗𐌢𐔧𑣬 YΥУҮᎩᎽⲨꓬ𐊲𑢤𖽃 ZΖᏃꓜ𐋵𑢩𑣥 aɑαа⍺ bƄЬᏏᑲᖯ cϲсᴄⲥꮯ𐐽 dԁᏧᑯꓒ eеҽ℮ꬲ fքẝꞙꬵ gƍɡցᶃ hһհᏂ iıɩɪ˛ͺιіӏᎥ⍳ꙇꭵ𑣃 jϳј
lƖǀΙІӀ\u05c0\u05d5\u05df\u0627\u0661۱\u07caᛁℐℑⅠ∣⏽ⲒⵏꓲＩ￨𐊊𐌉𐌠𖼨𝐈𝐼𝑰𝓘𝕀𝕴𝖨𝗜𝘐𝙄𝙸𝟏𝟙𝟣𝟭𝟷\U0001e8c7🯱 nոռ
oοσоօ\u05e1\u0647\u06be\u06c1\u06d5۵०੦૦௦\u0c02౦\u0c82೦\u0d02ഠ൦\u0d82๐໐ဝ၀ჿᴏᴑⲟꬽ𐐬𐓪𑣈𑣗 pρр⍴ⲣ qԛգզ rгᴦⲅꭇꭈꮁ sƽѕꜱꮪ𐑈𑣁
uυսᴜꞟꭎꭒ𐓶𑣘 vνѵ\u05d8ᴠ∨⋁ꮩ𑜆𑣀 wɯѡԝաᴡꮃ𑜊𑜎𑜏 x×хᕁᕽ᙮⤫⤬⨯ yɣʏγуүყỿꭚ𑣜 zᴢꮓ𑣄
"""
"""A letter or digit, and what Unicode lists as its lookalike (confusables.txt, read 2026-11), but for what
NFKD makes of it, digits of Arabic that are read as such, and three that look like two letters."""
