"""Texts, and how many tokens five vocabularies make of them.

Counted in 2026-11: SmolLM2's by llama.cpp (xllamacpp 2026.10, `/tokenize` of the model that `make run`
fetches), the others by quicktok-v1 0.4.0, which ships them. Each column is one vocabulary, so that a
reader sees how far apart they are.
"""

import base64
import hashlib
import json

VOCABULARIES = ("SmolLM2", "cl100k", "o200k", "Llama 3", "Qwen 3")


def _bytes(count: int) -> bytes:
    return b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(count // 32 + 1))[:count]


_ITEMS = [
    {
        "id": 100_000_007 * n % 999_983,
        "name": f"item-{n}",
        "price": n * 3.17,
        "tags": ["new", "sale"],
        "at": f"2026-11-{n + 1:02}T22:10:21Z",
        "ok": n % 2 == 0,
        "of": None,
    }
    for n in range(20)
]
TEXTS = {
    "English": (
        "Could you remind me to call the dentist tomorrow at nine? Also, please look whether the "
        "package has arrived; the tracking page said it would be here by Friday. I don't think we "
        "need anything else for the trip, but the hotel in Lisbon wants to know when we arrive, and "
        "whether both of us take breakfast. Thanks a lot, and have a nice weekend!"
    ),
    "German": (
        "Der Gesetzgeber hat die Datenschutzgrundverordnung im vergangenen Jahr überarbeitet; "
        "Geschäftsführer mittelständischer Unternehmen müssen deshalb ihre "
        "Auftragsverarbeitungsverträge prüfen lassen. Könntest du mir bitte morgen früh eine "
        "Zusammenfassung der Gesprächsnotizen schicken? Die Straßenbahn fährt heute wegen Bauarbeiten "
        "nicht, darum müssen wir über die Brücke gehen. Schöne Grüße, und vergiss die "
        "Krankenversicherungskarte nicht!"
    ),
    "Chinese": (
        "天空是蓝色的，云朵在慢慢地移动。我昨天去了图书馆，借了三本关于人工智能历史的书。请帮我总结一下这份会议记录，"
        "并列出下一步需要完成的任务。根据最新的统计数据，该地区的人口在过去十年中增长了百分之十二。如果您有任何问题，"
        "请随时与我们联系。春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。"
    ),
    "code": (
        "def of_text(text: str) -> int:\n"
        '    """Return at least as many tokens as a text takes; 0 only for none."""\n'
        "    if not text:\n        return 0\n"
        '    body = text.encode(errors="replace")\n'
        "    counts = [len(body) - len(body.translate(None, kind)) for kind, _ in _KINDS]\n"
        "    signs = len(body) - sum(counts)\n"
        "    for (name, value), other in zip(found.items(), others, strict=True):\n"
        "        if name != other[0] and not (value & 0xFF) >> 4:\n"
        '            raise ValueError(f"{name!r}: {value:>8.3f}")\n'
    ),
    "JSON": json.dumps(_ITEMS),
    "JSON, laid out": json.dumps(_ITEMS, indent=2),
    "base64": base64.b64encode(_bytes(1_500)).decode(),
    "base64, lines": base64.encodebytes(_bytes(1_500)).decode(),
    "hex": _bytes(600).hex(),
    "UUIDs": "\n".join(
        "-".join((h[:8], h[8:12], h[12:16], h[16:20], h[20:32]))
        for h in (hashlib.sha256(b"u%d" % n).hexdigest() for n in range(20))
    ),
    "numbers": "\n".join(f"{n * 7919 % 1000}.{n * 104729 % 1000:03},{n * 31}" for n in range(60)),
    "log": "\n".join(
        f"2026-11-24T22:{n % 60:02}:{n * 7 % 60:02}.{n * 37 % 1000:03}Z INFO gateway[{n * 71}] "
        f"request_finished path=/v1/messages/{hashlib.sha256(b'l%d' % n).hexdigest()[:8]} status=200"
        for n in range(20)
    ),
    "Emoji": "👍🎉😀 ok 🚀🚀 ✅ done ❌ no 🧑‍💻🇩🇪 ❤️‍🔥 great 👨‍👩‍👧‍👦",
    "Russian": (
        "Вчера я ходил в библиотеку и взял три книги по истории искусственного интеллекта. "
        "Пожалуйста, подготовьте краткое изложение протокола совещания."
    ),
    "short": "Ok, thanks!",
}
COUNTED: dict[str, tuple[int, ...]] = {
    "English": (75, 75, 74, 75, 75),
    "German": (171, 120, 83, 120, 114),
    "Chinese": (254, 160, 106, 109, 86),
    "code": (155, 140, 142, 140, 140),
    "JSON": (1462, 1208, 1208, 1208, 1462),
    "JSON, laid out": (1764, 1529, 1529, 1529, 1783),
    "base64": (1589, 1415, 1344, 1413, 1469),
    "base64, lines": (1621, 1446, 1374, 1444, 1500),
    "hex": (1069, 672, 676, 672, 1052),
    "UUIDs": (679, 466, 462, 466, 648),
    "numbers": (733, 386, 386, 386, 733),
    "log": (1121, 728, 729, 728, 1030),
    "Emoji": (66, 59, 39, 54, 39),
    "Russian": (104, 75, 38, 47, 51),
    "short": (4, 4, 4, 4, 4),
}
"""By text and vocabulary, in their order."""
