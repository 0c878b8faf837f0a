"""Finds the text of a mail that its sender wrote, without quotes, forwarded mails and the signature.

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

Answers between quoted lines count as the sender's. If a mail has no such mark, all of its text is the
sender's, except lines that repeat the bot's texts: some programs quote without any mark.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

MAX_LINES = 20_000
"""Later lines do not count as the sender's own text."""
MAX_LINE_CHARS = 1_000
"""Of a longer line only both ends are looked at."""
RUN_WORDS = 8
"""Two people do not write the same run of this many words by chance."""
_WORD = re.compile(r"[^\W\u3040-\uffff]+|\w")  # in scripts without spaces, each character is one
_LEAD_LINES = 3  # most introductions are wrapped over up to this many
_TIME = re.compile(r"\d{1,2}\s?[:.h]\s?\d\d")  # which the first line of a longer one has
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


def own_text(text: str) -> str:
    """Return the text that the sender wrote; empty if all of it is quoted."""
    lines = text.split("\n")[:MAX_LINES]
    own_lines: list[str] = []
    leads = dict(_leads(lines))
    at = 0
    while at < len(lines) and not _ends_own_text(lines, at):
        if at not in leads and not lines[at].lstrip().startswith(">"):
            own_lines.append(lines[at])
        at = leads.get(at, at + 1)
    return _without_device_line("\n".join(own_lines)).strip()


def is_long(text: str) -> bool:
    """Tell whether a text is long enough to be compared with other texts."""
    return len(_WORD.findall(text)) >= RUN_WORDS


def without_repeats(text: str, sources: Iterable[str]) -> str:
    """Return a text without the lines that repeat the sources.

    A line is removed if any part of it belongs to a run of `RUN_WORDS` words that also occurs in a
    source, however the lines are wrapped or marked up.
    """
    lines = text.split("\n")
    words = [(word, at) for at, line in enumerate(lines) for word in _words(line)]
    runs = _runs([word for word, _ in words])
    repeated = set(runs).intersection(run for source in sources for run in _runs(_words(source)))
    removed = {
        at
        for first, run in enumerate(runs)
        if run in repeated
        for _, at in words[first : first + RUN_WORDS]
    }
    return "\n".join(line for at, line in enumerate(lines) if at not in removed).strip()


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(words: Sequence[str]) -> list[str]:
    return [" ".join(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1)]


def _ends_own_text(lines: Sequence[str], at: int) -> bool:
    """Tell whether everything from this line on is a signature or another mail."""
    line = lines[at].strip()[:MAX_LINE_CHARS]
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
    labelled = [_LABELLED.match(line[:MAX_LINE_CHARS].strip()) for line in lines[at : at + 3]]
    is_form = len(labelled) == 3 and all(labelled) and "@" in lines[at][:MAX_LINE_CHARS]  # noqa: PLR2004  lines
    if at == len(lines) or _label(lines[at]) not in _FROM:
        return is_form
    below = {_label(line) for line in lines[at + 1 : at + _HEADER_LINES]}
    return is_form or sum(not below.isdisjoint(names) for names in (_SENT, _TO, _SUBJECT)) > 1


def _label(line: str) -> str:
    """Return the label before a line's first colon, without bold marks, or empty."""
    label, colon, _ = line[:80].replace("*", "").replace("\xa0", " ").partition(":")
    return label.strip().lower() if colon else ""


def _leads(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where introductions of quotes begin, and the lines at which to go on.

    That is right below the introduction if marked lines follow, else the end of the text: then all of
    it is quoted. Words right above the introduction are the sender's own.

    The other writer chose the name in an introduction, and could fill many lines with it. So the first
    line of a long one, which has the time, is joined to the last lines of its paragraph, wherever
    that ends.
    """
    at, parts = 0, [""]
    for after, part in enumerate(map(_ends, lines), 1):
        is_long = parts[0].startswith(_WROTE_FIRST) and _TIME.search(parts[0])
        if len(parts) == _LEAD_LINES and not is_long:
            at, parts = at + 1, parts[1:]
        if not (part and parts[0]) or (not is_long and _begins_lead(part, parts[0])):
            at, parts = after - 1, []
        parts.append(part)
        del parts[1:-_LEAD_LINES]
        is_marked = "".join(map(str.lstrip, lines[after : after + _LEAD_LINES])).startswith(">")
        if _is_lead(" ".join(parts), is_marked=is_marked):
            yield at, after if is_marked else len(lines)
            parts = [""]


def _ends(line: str) -> str:
    """Return both ends of a line, with plain spaces; empty for a quoted one."""
    part, half = " ".join(line.lower().split()), MAX_LINE_CHARS // 2
    return "" if part.startswith(">") else part[:half] + part[half:][-half:]


def _begins_lead(line: str, lead: str) -> bool:
    """Tell whether a line begins an introduction, so that the lines above it are no part of it."""
    is_whole = not lead.startswith(_WROTE_FIRST) and _is_lead(line, is_marked=True)
    return is_whole or line.startswith(_WROTE_FIRST)


def _is_lead(lead: str, *, is_marked: bool) -> bool:
    """Tell whether a line introduces a quote (`… wrote:`), in any language if marked lines follow."""
    phrase, has_address = lead[:-1].rstrip(), "@" in lead
    if not lead.endswith(_COLONS) or not (has_address or any(map(str.isdigit, phrase))):
        return False
    has_verb = phrase.startswith(_WROTE_FIRST) and any(f" {verb} " in phrase for verb in _WROTE)
    return (has_address and is_marked) or phrase.endswith(_WROTE) or has_verb


def _without_device_line(text: str) -> str:
    """Return a text without the line that a telephone adds."""
    before, _, last = text.rstrip().rpartition("\n")
    line = last.strip()
    return before if len(line) <= 80 and f"{line} ".lower().startswith(_SENT_FROM) else text  # noqa: PLR2004  a line
