"""Write a word so that a channel's Markdown, or a reader's eye, makes the word of it again."""

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
_BACK = {alike: sign for sign, alike in _ALIKE.items()}
_UNSEEN = "\u00ad\u200b\u200d\u2060\ufe0f\u034f\u3164\U000e0041\u0301\u0336"
_AROUND = (
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
    forms = [sign, sign, f"&#{code};", f"&#x{code:x};", _ALIKE.get(sign, sign), chr(code + 0xFEE0)]
    if not sign.isalnum():
        forms += [f"\\{sign}", "\u2014"]
    if sign.islower():
        forms += [chr(0x1D41A + code - 97), chr(0x24D0 + code - 97)]
    return forms


@st.composite
def disguised(draw: st.DrawFn, word: str) -> str:
    """A word, some of its signs written in another way, and some runs of them in markup."""
    calm = draw(st.booleans())
    pieces = [sign if calm else draw(st.sampled_from(_forms(sign))) for sign in word]
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(pieces) - 1))
        pieces[at] += draw(st.sampled_from(_UNSEEN))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(pieces) - 1))
        end = draw(st.integers(start + 1, len(pieces)))
        around = draw(st.sampled_from(_AROUND))
        pieces[start:end] = [around.format("".join(pieces[start:end]))]
    return "".join(pieces)


def read(shown: str) -> str:
    """What a person makes of a text, by a way of its own: letters and digits in ASCII, small."""
    seen = unicodedata.normalize("NFKD", "".join(_BACK.get(sign, sign) for sign in shown))
    return re.sub("[^a-z0-9]", "", "".join(_BACK.get(sign, sign) for sign in seen).lower())
