"""Untrusted text in a turn's request: its sources, and the person's own words (pure).

Text is untrusted when no person here vouches for it: the results of tools with the effect
`network`, attachments, quoted or forwarded words, and the notes and workspace files that a turn
with such text has written. It stays in a conversation's requests until `/new`, and so
does its mark. The marks are set in every autonomy; the policy decides on their effect.

A person's own text is trusted. A call is theirs if it contains only text that they set off: a
separate line, a code block, or the whole message, exactly. Prose is about a command as often as it
is one (`do not run …`), and no test tells the two apart in all languages. Only for a call that
executes no command may a single word, such as a URL, come from anywhere in the message. A person's name
counts as theirs as well: an admitted person can write anything anyway, and other people's names
come with quoted words.

A command is more than its text if a turn with untrusted text has changed files that it may run:
`make` in a message does not vouch for a Makefile that a page dictated. Files that arrived by a call
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

MAX_SOURCES = 8
"""Sources of a request on record, the newest; one is enough to ask."""
NAME_CHARS = 120
MAX_WORDS_CHARS = 16_000
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
    """The facts about a turn's text that the gate uses.

    Attributes:
        sources: The sources of the untrusted text in its request; empty for none.
        words: The messages of this turn that its person wrote themselves.
        typed: Its person wrote the call, not a model.
        files: The worst state of its workspace.
    """

    sources: tuple[Source, ...] = ()
    words: tuple[str, ...] = ()
    typed: bool = False
    files: Files = "theirs"

    def sources_for(self, facts: ToolFacts) -> tuple[Source, ...]:
        """Return the sources of untrusted text that a call may act on.

        A command may run files of its workspace, which no request contains.
        """
        if self.files != "theirs" and "exec" in facts.effects:
            return self.sources or (named("files"),)
        return self.sources

    def is_in_message(
        self, written: Mapping[str, object], parameters: Mapping[str, object], facts: ToolFacts
    ) -> bool:
        """Whether a call contains only text that its person wrote.

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
        short = (message for message in self.words if len(message) <= MAX_WORDS_CHARS)
        unquoted = [_QUOTED.sub("\0", message) for message in short]
        dictated = {passage for text in unquoted for passage in _set_off(text)}
        if "exec" not in facts.effects:
            dictated |= {word for text in unquoted for word in _words(text)}
        return bool(leaves) and "" not in leaves and leaves <= dictated


def named(kind: Kind, name: str = "", names: Translations = ()) -> Source:
    """Return a source; its name, which a stranger may have chosen, becomes one short line."""
    translations: Translations = tuple((language, _short(text)) for language, text in names)
    return Source(kind=kind, name=_short(name), names=translations)


def _short(name: str) -> str:
    line = "".join(letter if letter.isprintable() else " " for letter in name[: 4 * NAME_CHARS])
    line = " ".join(line.split())
    if len(line) <= NAME_CHARS:
        return line
    cut = f"{line[: NAME_CHARS - 1]}…"
    # An open backtick would put the next source's name outside of code.
    return f"{cut}`" if cut.count("`") % 2 else cut


def merge_sources(earlier: Iterable[Source], new: Iterable[Source]) -> tuple[Source, ...]:
    """Return both without repeats, only the newest; empty only if both are."""
    return tuple(dict.fromkeys((*earlier, *new)))[-MAX_SOURCES:]


def in_words(sources: Iterable[Source], language: Language) -> str:
    """Return the sources for people to read; one line."""
    return "; ".join(_in_words(source, language) for source in sources)


_SENTENCES: Mapping[Kind, Sentence] = {
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
    displayed = name.translate(_UNQUOTED) if source.kind == "attachment" else name
    return _SENTENCES[source.kind].to(language, name=displayed)


def of_result(
    facts: ToolFacts, taint: Taint, line: Callable[[Language], str], *, marked: bool
) -> tuple[Source, ...]:
    """Return the sources that a result adds to the untrusted text.

    Args:
        facts: The facts of the tool that ran.
        taint: The taint when the call ran.
        line: Returns the tool's own line about the call in a language; most results need none.
        marked: The tool itself declared its result as untrusted text.
    """
    if marked or "network" in facts.effects:
        kind = "result"
    elif taint.files != "theirs":
        kind = "kept"
    else:
        return ()
    names: Translations = tuple((other, line(other)) for other in LANGUAGES if other != ENGLISH)
    return (named(kind, line(ENGLISH), names),)


def files_after(facts: ToolFacts, taint: Taint, *, is_in_message: bool) -> Files:
    """Return the worst state of the workspace after a call has run.

    A call that its person dictated has the effect they chose, if it does not use the network.
    """
    is_online = "network" in facts.effects
    if taint.files == "planted" or not facts.effects & {"write", "exec"}:
        return taint.files
    if not is_in_message and (is_online or taint.sources_for(facts)):
        return "planted"
    return "brought" if is_online else taint.files


def _leaves(written: Mapping[str, object], parameters: Mapping[str, object]) -> Iterator[str]:
    """Yield every text in a call's arguments except the schema's names and defaults."""
    properties = parameters.get("properties")
    schemas = cast("Mapping[str, object]", properties if isinstance(properties, Mapping) else {})
    for name, value in written.items():
        if name not in schemas:
            yield name
        schema = schemas.get(name)
        if isinstance(schema, Mapping) and "default" in schema:
            default = cast("Mapping[str, object]", schema)["default"]
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
    """Yield the passages that a message sets off: itself, its code blocks, its other lines.

    A zero byte replaces each quote or block, so that the text around it never counts as a whole line.
    """
    yield text.strip()
    for block in _BLOCK.finditer(text):
        first, _, code = block[2].partition("\n")
        # Slack's fences share lines with code and name no language; the last line shows which it is.
        has_language = _LANGUAGE.fullmatch(first.strip()) and not code.rpartition("\n")[2].strip()
        yield (code if has_language else block[2]).strip()
    for line in _LINE_END.split(_BLOCK.sub("\0", text)):
        passage = _LIST_SIGN.sub("", line, count=1).strip()
        code = passage.strip("`")
        ticks = "`" * ((len(passage) - len(code)) // 2)
        is_code = "`" not in code and passage == f"{ticks}{code}{ticks}"
        yield code.strip() if is_code else passage


def _words(text: str) -> Iterator[str]:
    """Yield the words of a message, as they are and without surrounding punctuation."""
    for word in text.split():
        yield word
        yield word.rstrip(_STOPS)
        yield word.strip(_AROUND).rstrip(_STOPS).strip(_AROUND)
