"""The text of a chat: turns the daemon's lines into messages, cards and remarks.

`View` returns the text to print for a line, once and for good, and the answer that is still
growing. On a terminal the growing answer is drawn above the input, and rows that no longer fit
there are printed; so nothing that is printed is ever erased. If printed text has changed, the whole
answer is printed again below. A pipe gets only whole messages, once each.

No message can imitate the program's own marks: they alone are in inverse on a terminal, and `pipe`
replaces their signs in all other text. Text from others is never in inverse: a long line might
wrap and begin a row with a false mark.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from itertools import chain

from zeroclaw.card_words import CardWords
from zeroclaw.delivery.split import open_fence
from zeroclaw.json_fields import array_at, object_at, objects_at
from zeroclaw.text.escape import escape_invisible
from zeroclaw.text.language import ENGLISH
from zeroclaw.value import Struct, Value, field

Line = Mapping[str, object]
"""A message from the daemon, or a table within it."""
StyledText = list[tuple[str, str]]
"""Styles and texts for prompt_toolkit, which searches no text for markup or escapes."""

KEYS: Mapping[str, str] = {"a": "once", "t": "for_a_time", "d": "deny"}
"""The choice of each single letter, if exactly one call waits."""
_ENDINGS = {"approved": "✅", "denied": "❌", "expired": "❌", "stopped": "⏹"}

BOT = "● "
PROMPT = "» "
_ELLIPSIS = "…"
_INDENT = " " * len("│    ")
MARK, ARGUMENTS, BOLD, _DIM, _WARM = "reverse", "class:arguments", "bold", "dim", "ansiyellow"


def wrapped(text: str, columns: int, above: str) -> str:
    """Return a text whose rows end between words: each break takes the place of a space.

    Lines of code are not broken, so that they can be copied, and the terminal breaks a word that
    is longer than a row. The text `above` may have begun a block of code.
    """
    fence = reduce(open_fence, above.split("\n"), "")
    lines: list[str] = []
    for line in text.split("\n"):
        outer, fence = fence, open_fence(fence, line.removeprefix(BOT))
        lines.append(line if outer or fence else _between_words(line, columns))
    return "\n".join(lines)


def _between_words(line: str, columns: int) -> str:
    from prompt_toolkit.utils import get_cwidth

    rows, column = "", -1
    for word in line.split(" "):
        cells = get_cwidth(word)
        is_break = column + 1 + cells > columns >= cells and column > 0
        rows += f"\n{word}" if is_break else f" {word}"
        column = cells if is_break else column + 1 + cells
        if column > columns:
            column %= columns
    return rows[1:]


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
        new_cards: Number of cards shown since the person last typed a line.
    """

    new_cards: int = 0
    _open: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    _shown: set[str] = field(default_factory=set[str])
    _ended: set[str] = field(default_factory=set[str])

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls that wait for an answer, oldest first."""
        return tuple(self._open.values())

    def take(self, item: Line, columns: int = 0) -> StyledText:
        """Return the text for an item of kind card: the card, or new endings; 0 columns don't wrap."""
        key, card = str(item["id"]), object_at(item, "card")
        calls = objects_at(card, "calls")
        choices = tuple(map(str, array_at(card, "choices")))
        for call in calls:
            self._note(key, call, choices)
        is_new = key not in self._shown and has_open_calls(item)
        card_lines = [*self._card(card, calls, choices)] if is_new else []
        self._shown.add(key)
        self.new_cards += is_new
        rows = (*card_lines, *self._endings(calls))
        return [part for line in rows for part in _line_of_card(line, columns)]

    def _note(self, card: str, call: Line, choices: tuple[str, ...]) -> None:
        approval = str(call["approval"])
        if call.get("ending") is not None:
            self._open.pop(approval, None)
        elif approval not in self._ended:
            self._open[approval] = OpenCall(approval=approval, card=card, choices=choices)

    def _card(
        self, card: Line, calls: Sequence[Line], choices: tuple[str, ...]
    ) -> Iterator[StyledText]:
        until = datetime.fromisoformat(str(card["deadline_at"])).astimezone()
        labels = _labels(card)
        head = labels["head"].format_map({"who": card["asked_by"], "at": f"{until:%H:%M:%S}"})
        yield [(MARK, "┌"), (_WARM, f" {head}")]
        for call in calls:
            name, mark = f"{call['number']}  {call['tool']}", f"  #{call['hash8']}"
            yield [("", "│ "), (BOLD, name), ("", f"  {call['summary']}"), (_DIM, mark)]
            yield [("", "│    "), (_DIM, str(call["why"]))]
            for line in str(call["arguments"]).splitlines():
                yield [("", "│    "), (ARGUMENTS, line)]
            if scope := call.get("scope"):
                yield [("", "│    "), (_DIM, str(scope))]
        yield [(MARK, "└"), (_WARM, f" {self._hint(labels, calls, choices)}")]

    def _hint(
        self, labels: Mapping[str, str], calls: Sequence[Line], choices: tuple[str, ...]
    ) -> str:
        numbers = [str(call["number"]) for call in calls if call.get("ending") is None]
        if len(self._open) != 1:
            return f"/approve {' '.join(numbers)} · /deny {numbers[0]} {labels['because']}"
        offered = [(key, choice) for key, choice in KEYS.items() if choice in choices]
        keys = " · ".join(f"{key} = {labels[choice]}" for key, choice in offered)
        return f"{keys} · /deny {numbers[0]} {labels['because']}"

    def _endings(self, calls: Sequence[Line]) -> Iterator[StyledText]:
        for call in calls:
            approval, ending = str(call["approval"]), object_at(call, "ending")
            if ending and approval not in self._ended:
                self._ended.add(approval)
                how = str(ending["how"])
                reason = f": {ending['reason']}" if ending.get("reason") else ""
                text = f"  {call['tool']} {ending.get('said', how)}{reason}"
                yield [(MARK, f"{_ENDINGS.get(how, '·')} {call['number']}"), (_DIM, text)]


def _line_of_card(line: StyledText, columns: int) -> Iterator[tuple[str, str]]:
    """Wrap a line between words; a text in it can't begin another line."""
    parts = [(style, " ".join(text.splitlines())) for style, text in line]
    remaining = "".join(text for _, text in parts)
    if columns > len(_INDENT) and parts[-1][0] != ARGUMENTS:
        remaining = _between_words(remaining, columns - len(_INDENT))
    for style, text in parts:
        yield style, remaining[: len(text)].replace("\n", f"\n{_INDENT}")
        remaining = remaining[len(text) :]
    yield "", "\n"


def _labels(card: Line) -> Mapping[str, str]:
    """Return the card's fixed texts; English ones if an older daemon has sent none."""
    sent = {name: str(text) for name, text in object_at(card, "words").items()}
    return {**CardWords(ENGLISH).by_name(len(array_at(card, "calls"))), **sent}


def has_open_calls(item: Line) -> bool:
    """Whether an item is a card with a call that waits for an answer."""
    calls = objects_at(object_at(item, "card"), "calls")
    return any(call.get("ending") is None for call in calls)


class View(Struct, kw_only=True):
    """The state of the screen; turns each line from the daemon into the text to print.

    Attributes:
        is_terminal: Answers are shown while they grow; otherwise only whole ones.
        history: Number of earlier messages to show first.
        columns: The terminal's width in cells.
        max_rows: Limit of rows of a growing answer that are not printed yet.
        answered: Number of the bot's messages that have ended since the view began.
        is_live: The snapshot is complete.
        earlier: The people's earlier messages, oldest first.
        cards: The approval cards.
    """

    is_terminal: bool
    history: int
    columns: int = 80
    max_rows: int = 12
    is_live: bool = False
    answered: int = 0
    earlier: list[str] = field(default_factory=list[str])
    cards: Cards = field(default_factory=Cards)
    _printed: dict[str, str] = field(default_factory=dict[str, str])
    _finals: dict[str, str] = field(default_factory=dict[str, str])
    _snapshot: list[Line] = field(default_factory=list[Line])
    _drafts: dict[str, str] = field(default_factory=dict[str, str])
    _last: str = ""  # the key of the answer whose beginning was printed last
    _is_typing: bool = False
    _was_live: bool = False

    @property
    def is_drafting(self) -> bool:
        """Whether an answer is being written."""
        return bool(self._drafts)

    def sent(self, key: str) -> None:
        """Remember a message of this client; the screen already shows it."""
        self._printed[f"person/{key}"] = ""

    def entered(self, text: str) -> StyledText:
        """Return a message of this client; nothing in a pipe."""
        if not self.is_terminal:
            return []
        # It may be pasted, and contain control sequences.
        escaped = escape_invisible(text).replace("\n", f"\n{' ' * len(PROMPT)}")
        return [*self.settled(), (BOLD, PROMPT), ("", f"{escaped}\n")]

    def is_sure(self) -> bool:
        """Note that a line was typed; return whether a letter in it can only mean the open card.

        On a terminal it may have been typed for an earlier card, which ended as the next one
        appeared.
        """
        new_cards, self.cards.new_cards = self.cards.new_cards, 0
        return new_cards <= 1 or not self.is_terminal

    def note(self, text: str) -> StyledText:
        """Return a remark of the client itself."""
        return [*self.settled(), (MARK, "·"), (_DIM, f" {text}\n")]

    def growing(self) -> str:
        """Return the text above the input: the end of an answer that is being written."""
        rows = [row for key in self._drafts for row in self._rows(key)]
        text = "\n".join(rows[-self.max_rows :]).expandtabs()
        # A word may be far longer than the screen.
        return text[-self.max_rows * self.columns :] or _ELLIPSIS * self._is_typing

    def settled(self, *, but: str = "") -> StyledText:
        """Return the unprinted rest of growing answers, so that another text can follow."""
        self._is_typing = False
        if not self.is_terminal or (but and but == self._last):
            return []
        keys = [key for key, text in self._drafts.items() if text.strip() and key != but]
        text = [*chain.from_iterable(map(self._unprinted, keys))]
        self._last = ""
        return text

    def take(self, line: Line) -> StyledText:
        """Return the text to print for a line from the daemon."""
        match line.get("type"):
            case "snapshot":
                self.is_live = self._is_typing = False
                self._last = ""
                self._drafts.clear()
                self._snapshot.clear()
            case "live":
                return self._begin_live()
            case "item" if not self.is_live:
                self._snapshot.append(line)
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

    def _begin_live(self) -> StyledText:
        self.is_live = True
        snapshot, self._snapshot = self._snapshot, []
        if self._was_live:
            # After a lost connection, items that were shown before add nothing.
            return [*chain.from_iterable(map(self._item, snapshot))]
        self._was_live = True
        self.earlier += [str(line["text"]) for line in snapshot if line.get("kind") == "person"]
        ended = [line for line in snapshot if not _is_open(line)]
        recent = ended[len(ended) - min(self.history, len(ended)) :]
        for line in ended:
            if line not in recent:
                self._skip(line)
        earlier = [*chain.from_iterable(map(self._item, recent))]
        still_open = chain.from_iterable(self._item(line) for line in snapshot if _is_open(line))
        self.answered = 0
        if earlier:
            earlier.append((_DIM, "─── now ───\n"))
        return [*earlier, *still_open]

    def _skip(self, line: Line) -> None:
        """Treat an earlier item as already shown."""
        key = str(line["id"])
        self._finals[key] = self._printed[key] = str(line["text"])
        if line.get("kind") == "card":
            self.cards.take(line)

    # --- items -----------------------------------------------------------------------------------

    def _item(self, line: Line) -> StyledText:
        key = str(line["id"])
        match line.get("kind"):
            case "person":
                return self._person(key, str(line["text"]))
            case "card":
                card = self.cards.take(line, self.columns if self.is_terminal else 0)
                return [*self.settled(), *card] if card else []
            case _:
                is_draft = line.get("draft") is True
                return self._message(key, str(line["text"]), _receipts(line), is_draft=is_draft)

    def _person(self, key: str, text: str) -> StyledText:
        if key in self._printed:
            return []
        self._printed[key] = text
        return [*self.settled(), (_DIM, f"{PROMPT}{text}\n")]

    def _message(self, key: str, text: str, receipts: list[str], *, is_draft: bool) -> StyledText:
        self._is_typing = False
        if is_draft:
            self._drafts[key] = text
            return self._scrolled(key) if self.is_terminal else []
        self.answered += key not in self._finals
        if self._finals.get(key) == text:
            self._drafts.pop(key, None)
            return []
        self._finals[key] = text
        proofs = [part for receipt in receipts for part in self._mark(receipt)]
        if not self.is_terminal:
            self._drafts.pop(key, None)
            return [("", f"{BOT}{text}\n"), *proofs]
        other_answers = self.settled(but=key)
        self._drafts[key] = text
        answer = self._unprinted(key)
        del self._drafts[key]
        self._last = ""
        return [*other_answers, *answer, *proofs]

    def _mark(self, receipt: str) -> StyledText:
        kind, colon, proven = receipt.partition(":")
        return [(MARK, f"✅ {kind}{colon}"), ("", f"{proven}\n")]

    def _rows(self, key: str) -> list[str]:
        """Return the rows of an answer that are not printed yet."""
        text, printed = self._drafts[key], self._printed.get(key)
        if printed is None or not (text.startswith(printed) or text.rstrip() == printed.rstrip()):
            new, printed = f"{BOT}{text}", ""
        elif key == self._last:
            new = text[len(printed) :]
        else:
            # Blanks alone would begin an empty line.
            new = text[len(printed) :].lstrip()
            new = f"{BOT}{_ELLIPSIS} {new}" if new else ""
        return wrapped(new, self.columns, printed).split("\n")

    def _unprinted(self, key: str) -> StyledText:
        """Return the part of an answer that is not printed yet, and note it as printed."""
        text = "\n".join(self._rows(key))
        self._printed[key] = self._drafts[key]
        return [("", f"{text}\n")] if text else []

    def _scrolled(self, key: str) -> StyledText:
        """Return the first rows of a growing answer that is too long for its place above the input."""
        rows = self._rows(key)
        if len(rows) <= self.max_rows:
            return []
        # Half of the rows at once: each print redraws the input.
        count = len(rows) - max(1, self.max_rows // 2)
        other_answers, text = self.settled(but=key), self._drafts[key]
        self._printed[key] = text[: len(text) - len("\n".join(rows[count:]))]
        self._last = key
        return [*other_answers, ("", "\n".join((*rows[:count], "")))]


def _receipts(line: Line) -> list[str]:
    """Return the receipts of an answer; imitations within its text are masked."""
    return [" ".join(str(receipt).splitlines()) for receipt in array_at(line, "receipts")]


def _remark(line: Line) -> str:
    """Return the remark to print for a line of the daemon; empty for none."""
    if line.get("type") == "refused":
        return f"not taken: {line['why']}{'; it is tried again' if line.get('again') else ''}"
    return str(line.get("toast") or line.get("why") or "")


def _is_open(line: Line) -> bool:
    """Whether an item of the snapshot has not ended."""
    return line.get("draft") is True or has_open_calls(line)
