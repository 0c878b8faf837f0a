"""Untrusted text in a turn's request: where it came from, and what its person said themselves (pure).

Text is untrusted when no person here vouches for it: what a tool with the effect `network` returned,
an attachment, quoted or forwarded words, and whatever a turn that held such text has kept in a
note or in the files of its workspace. It stays in a conversation's requests until `/new`, and so
does its mark. The marks are kept whatever the autonomy is; what follows from them is the policy's.

What a person wrote themselves is trusted, and a call is theirs if it holds nothing but what they set
off: a line of its own, a code block, or the whole message, to the letter. Prose is about a command as
often as it is one (`do not run …`), and nothing tells the two apart in all languages. Only a single
word of a call that runs nothing, a URL for example, may stand anywhere. Who they are called is theirs
as well: an admitted person can write anything anyway, and names of others come with quoted words.

A command is more than its letters where a turn with untrusted text has changed the files that it may
run: `make` in a message says nothing about a Makefile that a page dictated. Files that came because their
person dictated a call with the effect `network` are as untrusted to read, and theirs to run: they chose
where from. That mark is the whole workspace's: a command reads and writes what it likes there, packs, links
and renames, and no list of files would be complete.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, cast

from zeroclaw.gate.action import canonical_json
from zeroclaw.gate.conditions import ToolFacts
from zeroclaw.text import catalogue
from zeroclaw.text.language import ENGLISH, Language, Sentence, Translations, translated
from zeroclaw.value import Value

MOST_SOURCES = 8
"""That are named; the newest stay, and one is enough to ask."""
NAME_CHARS = 120
MOST_WORDS_CHARS = 16_000
"""Of one message of a person that is compared with arguments; no person types more by hand."""

Files = Literal["theirs", "brought", "planted"]
"""Of a workspace: nobody else's, brought in by a call that its person dictated, or written by a turn with
untrusted text; each is worse than the one before."""
Kind = Literal["result", "kept", "attachment", "quoted", "earlier", "files", "notes", "context"]

_BLOCK = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
_QUOTED = re.compile(r"^[ \t]*>.*", re.MULTILINE)
_LIST_SIGN = re.compile(r"\A\s*(?:[-*•]|[0-9]{1,3}[.)])\s+")
_AROUND = "\"'`([{<«»„“”>}])"
_STOPS = ".,;:!?…"
_UNQUOTED = str.maketrans('"`', "''")


class Source(Value):
    """Where untrusted text came from.

    Attributes:
        kind: `result` is what a tool returned, `kept` what one read where a turn with untrusted
            text had written, `earlier` what an older release kept without a mark, `files` those
            of the workspace, unread, `notes` those that a turn with untrusted text had kept,
            `context` what a Context Provider adds.
        name: The call's own line, what the sender calls a file, the notes' numbers, or what a
            provider is called; see `named`.
        names: The same in other languages.
    """

    kind: Kind
    name: str = ""
    names: Translations = ()


class Taint(Value):
    """What the gate is told about the text of a turn.

    Attributes:
        sources: Of the untrusted text in its request; empty for none.
        words: What its person wrote themselves, each message of this turn.
        typed: Its person wrote the call, no model did.
        files: What its workspace holds at worst.
    """

    sources: tuple[Source, ...] = ()
    words: tuple[str, ...] = ()
    typed: bool = False
    files: Files = "theirs"

    def sources_for(self, facts: ToolFacts) -> tuple[Source, ...]:
        """Return where untrusted text came from that a call may act on.

        A command may run what was written into its workspace, and no request holds that.
        """
        if self.files != "theirs" and "exec" in facts.effects:
            return self.sources or (named("files"),)
        return self.sources

    def is_in_message(
        self, written: Mapping[str, object], parameters: Mapping[str, object], facts: ToolFacts
    ) -> bool:
        """Tell whether a call holds nothing but what its person wrote.

        Args:
            written: The arguments as the model wrote them, before defaults.
            parameters: The tool's JSON Schema.
            facts: Of the tool.
        """
        if self.typed:
            return True
        if self.files == "planted" and "exec" in facts.effects:
            return False
        leaves = frozenset(_leaves(written, parameters))
        typed = [_QUOTED.sub("", one) for one in self.words if len(one) <= MOST_WORDS_CHARS]
        theirs = {one for text in typed for one in _set_off(text)}
        if "exec" not in facts.effects:
            theirs |= {one for text in typed for one in _words(text)}
        return bool(leaves) and "" not in leaves and leaves <= theirs


def named(kind: Kind, name: str = "", names: Translations = ()) -> Source:
    """Return a source whose name, which a stranger may have chosen, is one short line."""
    others: Translations = tuple((language, _short(other)) for language, other in names)
    return Source(kind=kind, name=_short(name), names=others)


def _short(name: str) -> str:
    line = "".join(letter if letter.isprintable() else " " for letter in name[: 4 * NAME_CHARS])
    line = " ".join(line.split())
    if len(line) <= NAME_CHARS:
        return line
    cut = f"{line[: NAME_CHARS - 1]}…"
    # What the cut left open would put the next source's name outside of code.
    return f"{cut}`" if cut.count("`") % 2 else cut


def joined(known: Iterable[Source], new: Iterable[Source]) -> tuple[Source, ...]:
    """Return both without repeats, the newest of them; empty only if both are."""
    return tuple(dict.fromkeys((*known, *new)))[-MOST_SOURCES:]


def in_words(sources: Iterable[Source], language: Language) -> str:
    """Return where text came from, for people; one line."""
    return "; ".join(_in_words(one, language) for one in sources)


_CAME: Mapping[Kind, Sentence] = {
    "result": catalogue.UNTRUSTED_RESULT,
    "kept": catalogue.UNTRUSTED_KEPT,
    "attachment": catalogue.UNTRUSTED_ATTACHMENT,
    "quoted": catalogue.UNTRUSTED_QUOTED,
    "earlier": catalogue.UNTRUSTED_EARLIER,
    "files": catalogue.UNTRUSTED_FILES,
    "notes": catalogue.UNTRUSTED_NOTES,
    "context": catalogue.UNTRUSTED_CONTEXT,
}


def _in_words(source: Source, language: Language) -> str:
    name = translated(source.name, source.names, language)
    shown = name.translate(_UNQUOTED) if source.kind == "attachment" else name
    return _CAME[source.kind].to(language, name=shown)


def of_result(
    facts: ToolFacts, taint: Taint, lines: Mapping[Language, str], *, marked: bool
) -> tuple[Source, ...]:
    """Return what a result adds to the untrusted text.

    Args:
        facts: Of the tool that ran.
        taint: As the call ran.
        lines: The tool's own line about the call, in every language.
        marked: The tool said itself that it returns such text.
    """
    if marked or "network" in facts.effects:
        kind = "result"
    elif taint.files != "theirs":
        kind = "kept"
    else:
        return ()
    others: Translations = tuple((one, line) for one, line in lines.items() if one != ENGLISH)
    return (named(kind, lines[ENGLISH], others),)


def files_after(facts: ToolFacts, taint: Taint, *, is_in_message: bool) -> Files:
    """Return what the workspace may hold at worst once a call has run.

    One that its person dictated writes what they wished for, if it reaches no network.
    """
    is_online = "network" in facts.effects
    if taint.files == "planted" or not facts.effects & {"write", "exec"}:
        return taint.files
    if not is_in_message and (is_online or taint.sources_for(facts)):
        return "planted"
    return "brought" if is_online else taint.files


def _leaves(written: Mapping[str, object], parameters: Mapping[str, object]) -> Iterator[str]:
    """Yield every text of a call's arguments that is neither its schema's name nor default."""
    found = parameters.get("properties")
    known = cast("Mapping[str, object]", found if isinstance(found, Mapping) else {})
    for name, value in written.items():
        if name not in known:
            yield name
        about = known.get(name)
        if isinstance(about, Mapping) and "default" in about:
            default = cast("Mapping[str, object]", about)["default"]
            if canonical_json(value) == canonical_json(default):
                continue
        yield from _texts(value)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, object]", value).items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[object]", value):
            yield from _texts(item)
    else:
        yield canonical_json(value)


def _set_off(text: str) -> Iterator[str]:
    """Yield what a message sets off: itself, its code blocks, its other lines."""
    yield text.strip()
    for block in _BLOCK.finditer(text):
        yield block[1].strip()
    # Only what every reader sees as the end of a line: `splitlines` knows nine others.
    for line in _BLOCK.sub("\n", text).split("\n"):
        said = _LIST_SIGN.sub("", line, count=1).strip()
        code = said.strip("`")
        ticks = "`" * ((len(said) - len(code)) // 2)
        is_code = "`" not in code and said == f"{ticks}{code}{ticks}"
        yield code.strip() if is_code else said


def _words(text: str) -> Iterator[str]:
    """Yield the words of a message, as they are and without the signs around them."""
    for word in text.split():
        yield word
        yield word.rstrip(_STOPS)
        yield word.strip(_AROUND).rstrip(_STOPS).strip(_AROUND)
