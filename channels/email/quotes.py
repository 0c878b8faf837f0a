"""Finds the words of a mail that its sender wrote, without quotes, forwarded mails and the signature.

One pass over the lines, each checked only at its beginning and its end: the time grows linearly with
the length of the mail. Mail programs mark a quote in one of four ways, in the language of the person
who replies:

    > a line                                the line is left out, and the line that introduces it
    On Monday, Ann <ann@a.example> wrote:   if no `>` follows, everything after it is quoted
    -----Original Message-----              everything after it is quoted
    From: … Sent: … To: …                   Outlook's header block; everything after it is quoted

The last two are recognised by their form in other languages, too: words between two rows of dashes,
and three lines with labels, the first with an address.

Answers between quoted lines are kept. If nothing is found, all of the text is the sender's, except
lines known to be the bot's: some programs quote without any mark, and the bot knows its own texts.
"""

import re
from collections.abc import Iterable, Sequence

MOST_LINES = 20_000
"""Lines after these do not count as the sender's own words."""
MOST_LINE_CHARS = 1_000
"""A longer line does not introduce a quote."""
RUN_WORDS = 8
"""Two people do not write this many words in a row alike by chance."""
_WORD = re.compile(r"[^\W\u3040-\uffff]+|\w")  # in scripts without spaces, each character is one
_LEAD_LINES = 3  # a long "On … wrote:" is wrapped over up to this many
_HEADER_LINES = 8
_SIGNATURE_LINES = 15

# A row for each language of common mail programs: the end and the beginning of "… wrote:", the labels
# of Outlook's block (from, sent, to, subject), the text between dashes, the line that a telephone adds.
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
    """Return what the sender wrote themselves; empty if all of it is quoted."""
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
    """Tell whether a text is long enough to be compared with texts of others."""
    return len(_WORD.findall(own)) >= RUN_WORDS


def without_known(own: str, known: Iterable[str]) -> str:
    """Return a text without the lines that repeat other texts.

    A line is removed if any part of it belongs to a run of `RUN_WORDS` words that also occurs in
    another text, however the lines are wrapped or marked up.
    """
    lines = own.split("\n")
    words = [(word, at) for at, line in enumerate(lines) for word in _words(line)]
    mine = _runs([word for word, _ in words])
    runs = set(mine).intersection(run for text in known for run in _runs(_words(text)))
    taken = {
        at
        for first, run in enumerate(mine)
        if run in runs
        for _, at in words[first : first + RUN_WORDS]
    }
    return "\n".join(line for at, line in enumerate(lines) if at not in taken).strip()


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(words: Sequence[str]) -> list[str]:
    return [" ".join(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1)]


def _ends_all(lines: Sequence[str], at: int) -> bool:
    """Tell whether everything from this line on is a signature or another mail."""
    line = lines[at].strip()[:MOST_LINE_CHARS]
    is_named = line.startswith(("--", "__")) and line.lower().strip("*_- ") in _ORIGINAL
    # Outlook draws a line above its headers.
    first = at + (line.startswith("____") and not line.strip("_"))
    return (
        lines[at].rstrip("\r") == "-- "
        or (line == "--" and len(lines) - at <= _SIGNATURE_LINES)
        or is_named
        or _BETWEEN_DASHES.fullmatch(line) is not None
        or line.lower() in _FORWARDED
        or _is_header_block(lines, first)
    )


def _is_header_block(lines: Sequence[str], at: int) -> bool:
    labelled = [_LABELLED.match(one[:MOST_LINE_CHARS].strip()) for one in lines[at : at + 3]]
    if len(labelled) == 3 and all(labelled) and "@" in lines[at][:MOST_LINE_CHARS]:  # noqa: PLR2004  lines
        return True
    if at == len(lines) or _label(lines[at]) not in _FROM:
        return False
    below = {_label(one) for one in lines[at + 1 : at + _HEADER_LINES]}
    return sum(not below.isdisjoint(names) for names in (_SENT, _TO, _SUBJECT)) > 1


def _label(line: str) -> str:
    """Return the label before a line's first colon, without bold marks, or empty."""
    label, colon, _ = line[:80].replace("*", "").replace("\xa0", " ").partition(":")
    return label.strip().lower() if colon else ""


def _after_lead(lines: Sequence[str], at: int) -> int:
    """Return where a line that introduces a quote ends, 0 for any other line."""
    said = ""
    for after, line in enumerate(lines[at : at + _LEAD_LINES], at + 1):
        if not 0 < len(line.strip()) <= MOST_LINE_CHARS:
            return 0
        said = f"{said} {line.strip().lower()}"
        # The wide colon is used in Chinese and Japanese.
        if said.endswith((":", "：")) and _leads(said[:-1].strip()):  # noqa: RUF001
            return after
    return 0


def _leads(said: str) -> bool:
    """Tell whether a line says that somebody wrote something at some time."""
    named = "@" in said or _SINCE.search(said) is not None
    return named and (
        said.endswith(_WROTE)
        or (said.startswith(_WROTE_FIRST) and any(f" {verb} " in said for verb in _WROTE))
    )


def _quoted_below(lines: Sequence[str], at: int) -> int:
    """Return where the marked lines of an introduced quote begin; the end if none are marked."""
    below = (line for line in range(at, min(at + _LEAD_LINES, len(lines))) if lines[line].strip())
    first = next(below, len(lines))
    return first if first < len(lines) and lines[first].lstrip().startswith(">") else len(lines)


def _without_device(text: str) -> str:
    """Return a text without the line that a telephone adds."""
    before, _, last = text.rstrip().rpartition("\n")
    line = last.strip()
    return before if len(line) <= 80 and f"{line} ".lower().startswith(_SENT_FROM) else text  # noqa: PLR2004  a line
