"""Find the words of a mail that its sender wrote: without what it quotes, forwards, and the signature.

One pass over the lines, each looked at by its beginning and its end: the time grows with the length
of the mail, whatever stands in it. Mail programs mark a quotation in one of four ways, in the
language of whoever replies:

    > a line                                the line is left out, and the line that leads it in
    On Monday, Ann <ann@a.example> wrote:   where no `>` follows, all that comes after is quoted
    -----Original Message-----              all that comes after
    From: … Sent: … To: …                   Outlook's block of headers, all that comes after

The last two are known in other languages too, by their form: words between two rows of dashes, and
three lines with a label, the first with an address in it.

Answers between quoted lines are kept. Where nothing is found, everything is the sender's, but for what
is known to be somebody else's: some programs quote and mark nothing, and of that the bot knows what it
wrote itself.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence

MOST_LINES = 20_000
"""What comes after is nobody's own words."""
MOST_LINE_CHARS = 1_000
"""A longer one leads nothing in."""
RUN_WORDS = 8
"""Of so many in a row two people do not happen to write the same."""
_WORD = re.compile(r"[^\W\u3040-\uffff]+|\w")  # where words are not parted, each sign is one
_LEAD_LINES = 3  # over which a long "On … wrote:" is wrapped
_HEADER_LINES = 8
_SIGNATURE_LINES = 15

# A row for each language of the programs that people use: what ends "… wrote:" and what begins it, the
# labels of Outlook's block (from, sent, to, subject), what stands between dashes, what a telephone adds.
_LANGUAGES = (
    "wrote|on|from|sent,date|to|subject|original message,forwarded message,reply message|sent from my,sent from outlook,get outlook for",
    "schrieb,geschrieben|am|von|gesendet,datum|an|betreff|original-nachricht,ursprüngliche nachricht,weitergeleitete nachricht|von meinem,gesendet von,diese nachricht wurde von",
    "a écrit|le|de|envoyé|à|objet|message d'origine,message original,message transféré|envoyé de mon,envoyé depuis",
    "escribió|el|de|enviado,enviado el,fecha|para|asunto|mensaje original,mensaje reenviado|enviado desde mi",
    "escreveu|em|de|enviado|para|assunto|mensagem original|enviado do meu",
    "ha scritto|il|da|inviato,data|a|oggetto|messaggio originale,messaggio inoltrato|inviato da",
    "schreef|op|van|verzonden|aan|onderwerp|oorspronkelijk bericht|verzonden vanaf",
    "написал,написала,написал(а),пишет|в|от|отправлено,дата|кому|тема|исходное сообщение,пересылаемое сообщение|отправлено с",  # noqa: RUF001  Cyrillic
    "napisał,napisał(a)|dnia|od|data|do|temat||",
    "skrev|den|från|skickat|till|ämne||skickat från",
    "skrev|den|fra|sendt|til|emne||",
    "kirjoitti|||||||",
    "yazdı|||||||",  # noqa: RUF001  Turkish
    "写道|||||||",
    "のメール|||||||",
)
_WROTE, _FIRST, _FROM, _SENT, _TO, _SUBJECT, _ORIGINAL, _DEVICE = (
    tuple(word for cell in column for word in cell.split(",") if word)
    for column in zip(*(row.split("|") for row in _LANGUAGES), strict=True)
)
_WROTE_FIRST = tuple(f"{word} " for word in _FIRST)
_SENT_FROM = tuple(f"{words} " for words in _DEVICE)
_SINCE = re.compile(r"\d")
_FORWARDED = ("begin forwarded message:", "anfang der weitergeleiteten nachricht:")
_BETWEEN_DASHES = re.compile(r"[-_]{4,}\s*[^\W\d_].{0,80}\s*[-_]{4,}")
_LABELLED = re.compile(r"[*_]{0,2}[^\W\d_][^:：\n]{0,24}[:：](?!//)[*_]{0,2}\s*\S")  # noqa: RUF001


def own_words(text: str) -> str:
    """Return what its sender wrote themselves; empty where all of it is quoted."""
    lines = text.split("\n")[:MOST_LINES]
    kept: list[str] = []
    at = 0
    while at < len(lines) and not _ends_all(lines, at):
        if lines[at].lstrip().startswith(">"):
            at += 1
        elif after := _after_lead(lines, at):
            at = _quoted_below(lines, after)
        else:
            kept.append(lines[at])
            at += 1
    return _without_device("\n".join(kept)).strip()


def is_long(own: str) -> bool:
    """Tell whether words are so many that some of them may be known to be somebody else's."""
    return len(_WORD.findall(own)) >= RUN_WORDS


def without_known(own: str, known: Iterable[str]) -> str:
    """Return words without the lines that repeat what stands in other texts.

    A line is somebody else's that has a part in a run of words which stand in another text just so,
    whatever lines it was wrapped into, and with whatever markup.
    """
    lines = own.split("\n")
    words = [(word, at) for at, line in enumerate(lines) for word in _words(line)]
    mine = {word for word, _ in words}
    runs = {run for text in known for _, run in _runs(_words(text), mine)}
    taken = {
        at
        for end, run in _runs([word for word, _ in words], mine)
        if run in runs
        for _, at in words[end - RUN_WORDS : end]
    }
    return "\n".join(line for at, line in enumerate(lines) if at not in taken).strip()


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(words: Sequence[str], of: Container[str]) -> Iterator[tuple[int, str]]:
    """Yield each run of words that are all among `of`, and where it ends; few texts share many."""
    length = 0
    for end, word in enumerate(words, 1):
        length = length + 1 if word in of else 0
        if length >= RUN_WORDS:
            yield end, " ".join(words[end - RUN_WORDS : end])


def _ends_all(lines: Sequence[str], at: int) -> bool:
    """Tell whether all from this line on is a signature or somebody else's mail."""
    raw, line = lines[at], lines[at].strip()[:MOST_LINE_CHARS]
    if raw.rstrip("\r") == "-- ":
        return True
    if line == "--":
        return len(lines) - at <= _SIGNATURE_LINES
    low = line.lower().strip("*_- ")
    if line.startswith(("--", "__")) and low in _ORIGINAL:
        return True
    if _BETWEEN_DASHES.fullmatch(line):
        return True
    # Outlook draws a line over its headers.
    first = at + (line.startswith("____") and not line.strip("_"))
    return line.lower() in _FORWARDED or _is_header_block(lines, first)


def _is_header_block(lines: Sequence[str], at: int) -> bool:
    labelled = [_LABELLED.match(one[:MOST_LINE_CHARS].strip()) for one in lines[at : at + 3]]
    if len(labelled) == 3 and all(labelled) and "@" in lines[at][:MOST_LINE_CHARS]:  # noqa: PLR2004  lines
        return True
    if at == len(lines) or _label(lines[at]) not in _FROM:
        return False
    below = {_label(one) for one in lines[at + 1 : at + _HEADER_LINES]}
    return sum(not below.isdisjoint(names) for names in (_SENT, _TO, _SUBJECT)) > 1


def _label(line: str) -> str:
    """Return the words before a line's first colon, without what makes them bold; empty for none."""
    label, colon, _ = line[:80].replace("*", "").replace("\xa0", " ").partition(":")
    return label.strip().lower() if colon else ""


def _after_lead(lines: Sequence[str], at: int) -> int:
    """Return where a line that leads a quotation in is over, 0 for any other line."""
    first = lines[at].strip()
    if not first or len(first) > MOST_LINE_CHARS:
        return 0
    said = ""
    for after in range(at + 1, min(at + 1 + _LEAD_LINES, len(lines) + 1)):
        said = f"{said} {lines[after - 1].strip()[:MOST_LINE_CHARS]}".strip().lower()
        # The wide colon is that of Chinese and Japanese.
        if said.endswith((":", "：")) and _leads(said[:-1].rstrip()):  # noqa: RUF001
            return after
        if not lines[after - 1].strip():
            return 0
    return 0


def _leads(said: str) -> bool:
    """Tell whether a line says that somebody wrote something at some time."""
    named = "@" in said or _SINCE.search(said) is not None
    return named and (
        said.endswith(_WROTE)
        or (said.startswith(_WROTE_FIRST) and any(f" {verb} " in said for verb in _WROTE))
    )


def _quoted_below(lines: Sequence[str], at: int) -> int:
    """Return where the marked lines begin that are led in here; the end where none is marked."""
    below = (line for line in range(at, min(at + _LEAD_LINES, len(lines))) if lines[line].strip())
    first = next(below, len(lines))
    return first if first < len(lines) and lines[first].lstrip().startswith(">") else len(lines)


def _without_device(text: str) -> str:
    """Return a text without what a telephone puts under it."""
    before, _, last = text.rstrip().rpartition("\n")
    line = last.strip()
    return before if len(line) <= 80 and f"{line} ".lower().startswith(_SENT_FROM) else text  # noqa: PLR2004  a line
