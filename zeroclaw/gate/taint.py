"""Untrusted text in a turn's request: its sources, and what the turn's person said themselves (pure).

Text is untrusted when no person here vouches for it: the results of tools with the effect
`network`, attachments, quoted or forwarded words, and whatever a turn with such text has stored in
a note or in the files of its workspace. It stays in a conversation's requests until `/new`, and so
does its mark. The marks are set in every autonomy; the policy decides what follows from them.

What a person wrote themselves is trusted. A call is theirs if it contains only what they set off: a
line of its own, a code block, or the whole message, exactly. Prose is about a command as often as
it is one (`do not run …`), and nothing tells the two apart in all languages. Only for a call that
runs nothing may a single word, such as a URL, come from anywhere in the message. A person's name
counts as theirs as well: an admitted person can write anything anyway, and other people's names
come with quoted words.

A command is more than its text if a turn with untrusted text has changed files that it may run:
`make` in a message says nothing about a Makefile that a page dictated. Files that arrived by a call
with the effect `network` that their person dictated are untrusted to read, but theirs to run: they
chose the source. That mark belongs to the whole workspace: a command reads, writes, packs, links
and renames there as it likes, so no list of files would be complete.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, cast

from zeroclaw.gate.action import canonical_json
from zeroclaw.gate.conditions import ToolFacts
from zeroclaw.text import catalogue
from zeroclaw.text.language import ENGLISH, LANGUAGES, Language, Sentence, Translations, translated
from zeroclaw.value import Value

MOST_SOURCES = 8
"""Sources that are named; the newest are kept, and one is enough to ask."""
NAME_CHARS = 120
MOST_WORDS_CHARS = 16_000
"""Longest message that is compared with arguments; no person types more by hand."""

Files = Literal["theirs", "brought", "planted"]
"""The state of a workspace: no untrusted files, files brought in by a call that its person dictated, or
files written by a turn with untrusted text; each is worse than the one before."""
Kind = Literal["result", "kept", "attachment", "quoted", "earlier", "files", "notes", "context"]

_MARKER = r"(?:[-*•]|[0-9]{1,3}[.)])"  # of a list
_BLOCK = re.compile(
    rf"(?:(?<!`)(?=`)|^[ \t]*+(?:{_MARKER}[ \t]++)?(?=~))"
    r"(`{3,}+|~{3,}+)([^\n`]*\n.*?)(?:\1|\Z)",
    re.DOTALL | re.MULTILINE,
)
_LANGUAGE = re.compile(r"[\w.+#{}-]*")
_QUOTED = re.compile(r"^[ \t]*>(?:>> (?s:.*)|.*)", re.MULTILINE)  # Discord's `>>> ` quotes the rest
# Only the line ends that every reader sees: `splitlines` knows nine others. A shell goes on after `\`.
_LINE_END = re.compile(r"(?<!\\)(?<!\\\r)\n")
_LIST_SIGN = re.compile(rf"\A\s*{_MARKER}\s+")
_AROUND = "\"'`([{<«»„“”>}])"
_STOPS = ".,;:!?…"
_UNQUOTED = str.maketrans('"`', "''")


class Source(Value):
    """Where untrusted text came from.

    Attributes:
        kind: `result` is a tool's result; `kept` is a result read where a turn with untrusted text
            had written; `earlier` was stored unmarked by an older release; `files` are those of the
            workspace, unread; `notes` were stored by a turn with untrusted text; `context` comes
            from a Context Provider.
        name: The call's own line, the sender's name of a file, the notes' numbers, or the
            provider's name; see `named`.
        names: The same in other languages.
    """

    kind: Kind
    name: str = ""
    names: Translations = ()


class Taint(Value):
    """What the gate is told about the text of a turn.

    Attributes:
        sources: The sources of the untrusted text in its request; empty for none.
        words: The messages that its person wrote themselves in this turn.
        typed: Its person wrote the call, not a model.
        files: The worst state of its workspace.
    """

    sources: tuple[Source, ...] = ()
    words: tuple[str, ...] = ()
    typed: bool = False
    files: Files = "theirs"

    def sources_for(self, facts: ToolFacts) -> tuple[Source, ...]:
        """Return the sources of untrusted text that a call may act on.

        A command may run what was written into its workspace, which no request contains.
        """
        if self.files != "theirs" and "exec" in facts.effects:
            return self.sources or (named("files"),)
        return self.sources

    def is_in_message(
        self, written: Mapping[str, object], parameters: Mapping[str, object], facts: ToolFacts
    ) -> bool:
        """Whether a call contains only what its person wrote.

        Args:
            written: The arguments as the model wrote them, before defaults.
            parameters: The tool's JSON Schema.
            facts: The tool's facts.
        """
        if self.typed:
            return True
        if self.files == "planted" and "exec" in facts.effects:
            return False
        leaves = frozenset(_leaves(written, parameters))
        typed = [_QUOTED.sub("\0", one) for one in self.words if len(one) <= MOST_WORDS_CHARS]
        theirs = {one for text in typed for one in _set_off(text)}
        if "exec" not in facts.effects:
            theirs |= {one for text in typed for one in _words(text)}
        return bool(leaves) and "" not in leaves and leaves <= theirs


def named(kind: Kind, name: str = "", names: Translations = ()) -> Source:
    """Return a source; its name, which a stranger may have chosen, becomes one short line."""
    others: Translations = tuple((language, _short(other)) for language, other in names)
    return Source(kind=kind, name=_short(name), names=others)


def _short(name: str) -> str:
    line = "".join(letter if letter.isprintable() else " " for letter in name[: 4 * NAME_CHARS])
    line = " ".join(line.split())
    if len(line) <= NAME_CHARS:
        return line
    cut = f"{line[: NAME_CHARS - 1]}…"
    # An open backtick would put the next source's name outside of code.
    return f"{cut}`" if cut.count("`") % 2 else cut


def merge_sources(known: Iterable[Source], new: Iterable[Source]) -> tuple[Source, ...]:
    """Return both without repeats, only the newest; empty only if both are."""
    return tuple(dict.fromkeys((*known, *new)))[-MOST_SOURCES:]


def in_words(sources: Iterable[Source], language: Language) -> str:
    """Return the sources for people to read; one line."""
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
    facts: ToolFacts, taint: Taint, line: Callable[[Language], str], *, marked: bool
) -> tuple[Source, ...]:
    """Return the sources that a result adds to the untrusted text.

    Args:
        facts: The facts of the tool that ran.
        taint: The taint when the call ran.
        line: Returns the tool's own line about the call in a language; most results need none.
        marked: The tool itself said that it returns untrusted text.
    """
    if marked or "network" in facts.effects:
        kind = "result"
    elif taint.files != "theirs":
        kind = "kept"
    else:
        return ()
    others: Translations = tuple((one, line(one)) for one in LANGUAGES if one != ENGLISH)
    return (named(kind, line(ENGLISH), others),)


def files_after(facts: ToolFacts, taint: Taint, *, is_in_message: bool) -> Files:
    """Return the worst state of the workspace after a call has run.

    A call that its person dictated writes what they wanted, if it does not use the network.
    """
    is_online = "network" in facts.effects
    if taint.files == "planted" or not facts.effects & {"write", "exec"}:
        return taint.files
    if not is_in_message and (is_online or taint.sources_for(facts)):
        return "planted"
    return "brought" if is_online else taint.files


def _leaves(written: Mapping[str, object], parameters: Mapping[str, object]) -> Iterator[str]:
    """Yield every text in a call's arguments except the schema's names and defaults."""
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
    elif isinstance(value, Mapping) and value:
        for key, item in cast("Mapping[str, object]", value).items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list | tuple) and value:
        for item in cast("Sequence[object]", value):
            yield from _texts(item)
    else:
        yield canonical_json(cast("object", value))


def _set_off(text: str) -> Iterator[str]:
    """Yield what a message sets off: itself, its code blocks, its other lines.

    A zero byte marks where a quote or a block was, so that what is around it is not taken for whole.
    """
    yield text.strip()
    for block in _BLOCK.finditer(text):
        first, _, code = block[2].partition("\n")
        # Slack's signs have no lines of their own, and no language; see the last line for that.
        has_language = _LANGUAGE.fullmatch(first.strip()) and not code.rpartition("\n")[2].strip()
        yield (code if has_language else block[2]).strip()
    for line in _LINE_END.split(_BLOCK.sub("\0", text)):
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
