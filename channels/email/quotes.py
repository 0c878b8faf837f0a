"""Finds the words of a mail that its sender wrote, without quotes, forwarded mails and the signature.

One pass over the lines, each checked only at its beginning and its end: the time grows linearly with
the length of the mail. Mail programs mark a quote in one of four ways, in the language of the person
who replies:

    > a line                                the line is left out, and the line with an address and a
                                            colon that introduces it
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

# A row for each language of common mail programs, the last ones for several: the end and the beginning
# of "… wrote:", the labels of Outlook's block (from, sent, to, subject), the text between dashes, the
# line that a telephone adds.
_LANGUAGES = (
    "wrote|on|from|sent,date|to|subject|original message,forwarded message,begin forwarded message,reply message|sent from my,sent from outlook,get outlook for,sent with proton",
    "schrieb,geschrieben|am|von|gesendet,datum|an|betreff|original-nachricht,ursprüngliche nachricht,weitergeleitete nachricht,anfang der weitergeleiteten nachricht|von meinem,gesendet von,gesendet mit,holen sie sich outlook,diese nachricht wurde von",
    "a écrit|le|de|envoyé|à|objet|message d'origine,message original,message transféré|envoyé de mon,envoyé depuis",
    "escribió|el|de|enviado,enviado el,fecha|para|asunto|mensaje original,mensaje reenviado|enviado desde mi",
    "escreveu|em|de|enviado|para|assunto|mensagem original|enviado do meu",
    "ha scritto|il|da|inviato,data|a|oggetto|messaggio originale,messaggio inoltrato|inviato da",
    "schreef|op|van|verzonden|aan|onderwerp|oorspronkelijk bericht|verzonden vanaf",
    "написал,написала,написал(а),пишет|в|от|отправлено,дата|кому|тема|исходное сообщение,пересылаемое сообщение|отправлено с",  # noqa: RUF001  Cyrillic
    "napisał,napisał(a)|dnia|od|data|do|temat||",
    "skrev|den|från,fra|skickat,sendt|till,til|ämne,emne||skickat från",
    "kirjoitti,yazdı,写道,のメール|||||||",  # noqa: RUF001  Turkish
)
_WROTE, _FIRST, _FROM, _SENT, _TO, _SUBJECT, _ORIGINAL, _DEVICE = (
    tuple(word for cell in column for word in cell.split(",") if word)
    for column in zip(*(row.split("|") for row in _LANGUAGES), strict=True)
)
_WROTE_FIRST = tuple(f"{word} " for word in _FIRST)
_SENT_FROM = tuple(f"{words} " for words in _DEVICE)
_COLONS = (":", "：")  # noqa: RUF001  the wide colon of Chinese and Japanese
_BETWEEN_DASHES = re.compile(r"[-_]{4,}\s*[^\W\d_].{0,80}\s*[-_]{4,}")
_LABELLED = re.compile(r"[*_]{0,2}[^\W\d_][^:：\n]{0,24}[:：](?!//)[*_]{0,2}\s*\S")  # noqa: RUF001


def own_words(text: str) -> str:
    """Return what the sender wrote themselves; empty if all of it is quoted."""
    lines = text.split("\n")[:MOST_LINES]
    kept: list[str] = []
    at = 0
    while at < len(lines) and not _ends_all(lines, at):
        is_quoted = lines[at].lstrip().startswith(">")
        after = 0 if is_quoted else _after_lead(lines, at)
        if not (is_quoted or after):
            kept.append(lines[at])
        at = after or at + 1
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
    is_named = line.startswith(("--", "__")) or line.endswith(":")
    # Outlook draws a line above its headers, and GMX writes the date there.
    first = at + ((line.startswith("____") and not line.strip("_")) or _label(line) in _SENT)
    return (
        lines[at].rstrip("\r") == "-- "
        or (line == "--" and len(lines) - at <= _SIGNATURE_LINES)
        or (is_named and line.lower().strip("*_- :") in _ORIGINAL)
        or _BETWEEN_DASHES.fullmatch(line) is not None
        or _is_header_block(lines, first)
    )


def _is_header_block(lines: Sequence[str], at: int) -> bool:
    labelled = [_LABELLED.match(one[:MOST_LINE_CHARS].strip()) for one in lines[at : at + 3]]
    is_form = len(labelled) == 3 and all(labelled) and "@" in lines[at][:MOST_LINE_CHARS]  # noqa: PLR2004  lines
    if at == len(lines) or _label(lines[at]) not in _FROM:
        return is_form
    below = {_label(one) for one in lines[at + 1 : at + _HEADER_LINES]}
    return is_form or sum(not below.isdisjoint(names) for names in (_SENT, _TO, _SUBJECT)) > 1


def _label(line: str) -> str:
    """Return the label before a line's first colon, without bold marks, or empty."""
    label, colon, _ = line[:80].replace("*", "").replace("\xa0", " ").partition(":")
    return label.strip().lower() if colon else ""


def _after_lead(lines: Sequence[str], at: int) -> int:
    """Return where what a line introduces as a quote begins, 0 for any other line.

    That is right below it if marked lines follow, else at the end of the text: then all of it is
    quoted. Words right above the line are the sender's own.
    """
    said = ""
    for after, line in enumerate(lines[at : at + _LEAD_LINES], at + 1):
        more = line.strip().lower()
        if not 0 < len(more) <= MOST_LINE_CHARS or (said and _begins(more, said)):
            return 0
        said = f"{said} {more}".lstrip()
        below = lines[after : after + _LEAD_LINES] if said.endswith(_COLONS) else ()
        is_marked = "".join(map(str.lstrip, below)).startswith(">")
        if _leads(said, is_marked=is_marked):
            return after if is_marked else len(lines)
    return 0


def _begins(more: str, said: str) -> bool:
    """Tell whether a line begins an introduction, so that what was said above it is none of it."""
    is_whole = not said.startswith(_WROTE_FIRST) and _leads(more, is_marked=True)
    return is_whole or more.startswith(_WROTE_FIRST)


def _leads(said: str, *, is_marked: bool) -> bool:
    """Tell whether a line says that somebody wrote something, in any language if a quote follows."""
    words, is_named = said[:-1].rstrip(), "@" in said
    if not said.endswith(_COLONS) or not (is_named or any(map(str.isdigit, words))):
        return False
    has_verb = words.startswith(_WROTE_FIRST) and any(f" {verb} " in words for verb in _WROTE)
    return (is_named and is_marked) or words.endswith(_WROTE) or has_verb


def _without_device(text: str) -> str:
    """Return a text without the line that a telephone adds."""
    before, _, last = text.rstrip().rpartition("\n")
    line = last.strip()
    return before if len(line) <= 80 and f"{line} ".lower().startswith(_SENT_FROM) else text  # noqa: PLR2004  a line
