"""What a chat shows: messages, cards and remarks, each line of the daemon turned into text.

`View` says what to print for a line, once and for good, and what is still growing. On a terminal
the growing answer stands above the input, and what no longer fits there is printed; so nothing that
is printed is ever erased. If printed text has changed, the whole answer is printed again below. A
pipe gets only whole messages, once each.

No message can imitate the program's own marks: they alone are in inverse on a terminal, and `pipe`
takes their signs out of everything else. Text from others is never in inverse: a long line might
wrap and begin a row with a false mark.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain

from zeroclaw.card_words import CardWords
from zeroclaw.json_fields import array_at, object_at, objects_at
from zeroclaw.text.escape import escape_invisible
from zeroclaw.text.language import ENGLISH
from zeroclaw.value import Struct, Value, field

Line = Mapping[str, object]
"""A message from the daemon, or a table within it."""
Shown = list[tuple[str, str]]
"""Styles and texts as prompt_toolkit takes them; no text is searched for markup or escapes."""

KEYS: Mapping[str, str] = {"a": "once", "t": "for_a_time", "d": "deny"}
"""The answer that a single letter gives if exactly one call waits."""
_ENDINGS = {"approved": "✅", "denied": "❌", "expired": "❌", "stopped": "⏹"}

BOT = "● "
PROMPT = "» "
_AT_WORK = "…"
_INDENT = " " * len("│    ")
MARK, ARGUMENTS, BOLD, _DIM, _WARM = "reverse", "class:arguments", "bold", "dim", "ansiyellow"


def wrapped(text: str, columns: int, *, is_code: bool) -> str:
    """Return a text whose rows end between words: each break takes the place of a space.

    Lines of code stay whole, to be copied as they are, and the terminal breaks a word that is
    longer than a row.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        is_fence = line.removeprefix(BOT).startswith("```")
        lines.append(line if is_code or is_fence else _between_words(line, columns))
        is_code ^= is_fence
    return "\n".join(lines)


def _between_words(line: str, columns: int) -> str:
    from prompt_toolkit.utils import get_cwidth

    out, column = "", -1
    for word in line.split(" "):
        cells = get_cwidth(word)
        is_over = column + 1 + cells > columns >= cells and column > 0
        out += f"\n{word}" if is_over else f" {word}"
        column = cells if is_over else column + 1 + cells
        if column > columns:
            column %= columns
    return out[1:]


class OpenCall(Value):
    """A call that waits for an answer.

    Attributes:
        card: The id of the card that shows it.
        choices: The answers that are offered.
    """

    approval: str
    card: str
    choices: tuple[str, ...]


class Cards(Struct, kw_only=True):
    """The cards of a conversation.

    Attributes:
        fresh: Number of cards shown since a line was typed.
    """

    fresh: int = 0
    _open: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    _shown: set[str] = field(default_factory=set[str])
    _ended: set[str] = field(default_factory=set[str])

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls that wait for an answer, oldest first."""
        return tuple(self._open.values())

    def take(self, item: Line, columns: int = 0) -> Shown:
        """Return what an item of kind card adds: the card, or new endings; 0 columns don't wrap."""
        key, card = str(item["id"]), object_at(item, "card")
        calls = objects_at(card, "calls")
        choices = tuple(map(str, array_at(card, "choices")))
        for call in calls:
            self._note(key, call, choices)
        is_new = key not in self._shown and has_open_calls(item)
        lines = [*self._card(card, calls, choices)] if is_new else []
        self._shown.add(key)
        self.fresh += is_new
        rows = (*lines, *self._endings(calls))
        return [part for line in rows for part in _line_of_card(line, columns)]

    def _note(self, card: str, call: Line, choices: tuple[str, ...]) -> None:
        approval = str(call["approval"])
        if call.get("ending") is not None:
            self._open.pop(approval, None)
        elif approval not in self._ended:
            self._open[approval] = OpenCall(approval=approval, card=card, choices=choices)

    def _card(self, card: Line, calls: Sequence[Line], choices: tuple[str, ...]) -> Iterator[Shown]:
        until = datetime.fromisoformat(str(card["deadline_at"])).astimezone()
        words = _words(card)
        head = words["head"].format_map({"who": card["asked_by"], "at": f"{until:%H:%M:%S}"})
        yield [(MARK, "┌"), (_WARM, f" {head}")]
        for call in calls:
            name, mark = f"{call['number']}  {call['tool']}", f"  #{call['hash8']}"
            yield [("", "│ "), (BOLD, name), ("", f"  {call['summary']}"), (_DIM, mark)]
            yield [("", "│    "), (_DIM, str(call["why"]))]
            for line in str(call["arguments"]).splitlines():
                yield [("", "│    "), (ARGUMENTS, line)]
            if scope := call.get("scope"):
                yield [("", "│    "), (_DIM, str(scope))]
        yield [(MARK, "└"), (_WARM, f" {self._how(words, calls, choices)}")]

    def _how(
        self, words: Mapping[str, str], calls: Sequence[Line], choices: tuple[str, ...]
    ) -> str:
        numbers = " ".join(str(call["number"]) for call in calls)
        if len(self._open) != 1:
            return f"/approve {numbers} · /deny {calls[0]['number']} {words['because']}"
        offered = [(key, choice) for key, choice in KEYS.items() if choice in choices]
        keys = " · ".join(f"{key} = {words[choice]}" for key, choice in offered)
        return f"{keys} · /deny {numbers} {words['because']}"

    def _endings(self, calls: Sequence[Line]) -> Iterator[Shown]:
        for call in calls:
            approval, ending = str(call["approval"]), object_at(call, "ending")
            if ending and approval not in self._ended:
                self._ended.add(approval)
                how = str(ending["how"])
                reason = f": {ending['reason']}" if ending.get("reason") else ""
                said = f"{call['tool']} {ending.get('said', how)}{reason}"
                yield [(MARK, f"{_ENDINGS.get(how, '·')} {call['number']}"), (_DIM, f"  {said}")]


def _line_of_card(line: Shown, columns: int) -> Iterator[tuple[str, str]]:
    """Wrap a line between words; whatever its texts contain, only this program begins one."""
    parts = [(style, " ".join(text.splitlines())) for style, text in line]
    rest = "".join(text for _, text in parts)
    if columns > len(_INDENT) and parts[-1][0] != ARGUMENTS:
        rest = _between_words(rest, columns - len(_INDENT))
    for style, text in parts:
        yield style, rest[: len(text)].replace("\n", f"\n{_INDENT}")
        rest = rest[len(text) :]
    yield "", "\n"


def _words(card: Line) -> Mapping[str, str]:
    """Return the card's fixed words; English ones if an older daemon has sent none."""
    sent = {name: str(word) for name, word in object_at(card, "words").items()}
    return {**CardWords(ENGLISH).by_name(len(array_at(card, "calls"))), **sent}


def has_open_calls(item: Line) -> bool:
    """Whether an item is a card with a call that waits for an answer."""
    calls = objects_at(object_at(item, "card"), "calls")
    return any(call.get("ending") is None for call in calls)


class View(Struct, kw_only=True):
    """What stands on the screen, and what each line from the daemon adds to it.

    Attributes:
        is_terminal: Answers are shown while they grow; otherwise only whole ones.
        history: Number of earlier messages to show first.
        columns: The terminal's width in cells.
        most_rows: Rows of a growing answer that are not printed yet.
        answered: Number of the bot's messages that have ended since the view began.
        is_live: The snapshot is complete.
        earlier: What people said before, oldest first.
        cards: The approval cards.
    """

    is_terminal: bool
    history: int
    columns: int = 80
    most_rows: int = 12
    is_live: bool = False
    answered: int = 0
    earlier: list[str] = field(default_factory=list[str])
    cards: Cards = field(default_factory=Cards)
    _printed: dict[str, str] = field(default_factory=dict[str, str])
    _finals: dict[str, str] = field(default_factory=dict[str, str])
    _before: list[Line] = field(default_factory=list[Line])
    _drafts: dict[str, str] = field(default_factory=dict[str, str])
    _last: str = ""  # the message that what was printed last goes on with
    _is_typing: bool = False
    _was_live: bool = False

    @property
    def is_drafting(self) -> bool:
        """Whether an answer is being written."""
        return bool(self._drafts)

    def said(self, key: str) -> None:
        """Remember a message of this client; it is on the screen as it was typed."""
        self._printed[f"person/{key}"] = ""

    def entered(self, text: str) -> Shown:
        """Return a message of this client; nothing in a pipe."""
        if not self.is_terminal:
            return []
        # It may be pasted, and hold what a terminal would obey.
        shown = escape_invisible(text).replace("\n", f"\n{' ' * len(PROMPT)}")
        return [*self.settled(), (BOLD, PROMPT), ("", f"{shown}\n")]

    def is_sure(self) -> bool:
        """Note that a line was typed; whether a letter in it can only mean the open card.

        On a terminal it may have been typed for an earlier card, which ended as the next one
        appeared.
        """
        fresh, self.cards.fresh = self.cards.fresh, 0
        return fresh <= 1 or not self.is_terminal

    def note(self, text: str) -> Shown:
        """Return a remark of the client itself."""
        return [*self.settled(), (MARK, "·"), (_DIM, f" {text}\n")]

    def growing(self) -> str:
        """Return what stands above the input: the end of an answer that is being written."""
        rows = [row for key in self._drafts for row in self._rows(key)]
        shown = "\n".join(rows[-self.most_rows :]).expandtabs()
        # A word may be far longer than the screen.
        return shown[-self.most_rows * self.columns :] or _AT_WORK * self._is_typing

    def settled(self, *, but: str = "") -> Shown:
        """Return what is not printed yet of growing answers, for something else to follow it."""
        self._is_typing = False
        if not self.is_terminal or (but and but == self._last):
            return []
        keys = [key for key, text in self._drafts.items() if text.strip() and key != but]
        shown = [*chain.from_iterable(map(self._rest, keys))]
        self._last = ""
        return shown

    def take(self, line: Line) -> Shown:
        """Return what a line from the daemon adds."""
        match line.get("type"):
            case "snapshot":
                self.is_live = self._is_typing = False
                self._last = ""
                self._drafts.clear()
                self._before.clear()
            case "live":
                return self._begin_live()
            case "item" if not self.is_live:
                self._before.append(line)
            case "item":
                return self._item(line)
            case "gone":
                self._drafts.pop(str(line["id"]), None)
            case "typing":
                self._is_typing = True
            case _ if remark := _remark(line):
                return self.note(remark)
            case _:
                pass
        return []

    # --- the snapshot ----------------------------------------------------------------------------

    def _begin_live(self) -> Shown:
        self.is_live = True
        before, self._before = self._before, []
        if self._was_live:
            # After a lost connection, items that are known add nothing.
            return [*chain.from_iterable(map(self._item, before))]
        self._was_live = True
        self.earlier += [str(line["text"]) for line in before if line.get("kind") == "person"]
        over = [line for line in before if not _is_open(line)]
        shown = over[len(over) - min(self.history, len(over)) :]
        for line in over:
            if line not in shown:
                self._know(line)
        earlier = [*chain.from_iterable(map(self._item, shown))]
        opened = chain.from_iterable(self._item(line) for line in before if _is_open(line))
        self.answered = 0
        if earlier:
            earlier.append((_DIM, "─── now ───\n"))
        return [*earlier, *opened]

    def _know(self, line: Line) -> None:
        """Treat an earlier item as already shown."""
        key = str(line["id"])
        self._finals[key] = self._printed[key] = str(line["text"])
        if line.get("kind") == "card":
            self.cards.take(line)

    # --- items -----------------------------------------------------------------------------------

    def _item(self, line: Line) -> Shown:
        key = str(line["id"])
        match line.get("kind"):
            case "person":
                return self._person(key, str(line["text"]))
            case "card":
                shown = self.cards.take(line, self.columns if self.is_terminal else 0)
                return [*self.settled(), *shown] if shown else []
            case _:
                is_draft = line.get("draft") is True
                return self._message(key, str(line["text"]), _receipts(line), is_draft=is_draft)

    def _person(self, key: str, text: str) -> Shown:
        if key in self._printed:
            return []
        self._printed[key] = text
        return [*self.settled(), (_DIM, f"{PROMPT}{text}\n")]

    def _message(self, key: str, text: str, receipts: list[str], *, is_draft: bool) -> Shown:
        self._is_typing = False
        if is_draft:
            self._drafts[key] = text
            return self._scrolled(key) if self.is_terminal else []
        self.answered += key not in self._finals
        if self._finals.get(key) == text:
            self._drafts.pop(key, None)
            return []
        self._finals[key] = text
        proofs = [part for one in receipts for part in self._mark(one)]
        if not self.is_terminal:
            self._drafts.pop(key, None)
            return [("", f"{BOT}{text}\n"), *proofs]
        others = self.settled(but=key)
        self._drafts[key] = text
        rest = self._rest(key)
        del self._drafts[key]
        self._last = ""
        return [*others, *rest, *proofs]

    def _mark(self, receipt: str) -> Shown:
        kind, colon, proven = receipt.partition(":")
        return [(MARK, f"✅ {kind}{colon}"), ("", f"{proven}\n")]

    def _rows(self, key: str) -> list[str]:
        """Return the rows of an answer that are not printed yet."""
        text, old = self._drafts[key], self._printed.get(key)
        if old is None or not (text.startswith(old) or text.rstrip() == old.rstrip()):
            shown, old = f"{BOT}{text}", ""
        elif key == self._last:
            shown = text[len(old) :]
        else:
            # Blanks alone would begin an empty line.
            rest = text[len(old) :].lstrip()
            shown = f"{BOT}{_AT_WORK} {rest}" if rest else ""
        is_code = sum(line.startswith("```") for line in old.split("\n")) % 2 == 1
        return wrapped(shown, self.columns, is_code=is_code).split("\n")

    def _rest(self, key: str) -> Shown:
        """Return all of an answer that is not printed yet."""
        shown = "\n".join(self._rows(key))
        self._printed[key] = self._drafts[key]
        return [("", f"{shown}\n")] if shown else []

    def _scrolled(self, key: str) -> Shown:
        """Return the rows that a growing answer has no room for above the input."""
        rows = self._rows(key)
        if len(rows) <= self.most_rows:
            return []
        # By half, so that it is not for each row that all below is drawn anew.
        over = len(rows) - max(1, self.most_rows // 2)
        others, text = self.settled(but=key), self._drafts[key]
        self._printed[key] = text[: len(text) - len("\n".join(rows[over:]))]
        self._last = key
        return [*others, ("", "\n".join((*rows[:over], "")))]


def _receipts(line: Line) -> list[str]:
    """Return the receipts of an answer; imitations within its text are masked."""
    return [" ".join(str(one).splitlines()) for one in array_at(line, "receipts")]


def _remark(line: Line) -> str:
    """Return what a line of the daemon is to be told as; empty if nothing."""
    if line.get("type") == "refused":
        return f"not taken: {line['why']}{'; it is tried again' if line.get('again') else ''}"
    return str(line.get("toast") or line.get("why") or "")


def _is_open(line: Line) -> bool:
    """Whether an item of the snapshot has not ended."""
    return line.get("draft") is True or has_open_calls(line)
