"""The screen of a chat, which is only appended to at its end: messages, cards, a prompt.

`Ink` formats text for the screen and knows what can be erased, `Cards` knows the approval cards and
which calls still wait, and `View` turns each line from the daemon into the text to append. On a
terminal an answer is shown while it grows: new text is appended, and if earlier text has changed,
the answer is erased and written again. A pipe gets only whole messages, once each.

No message can imitate the program's own marks. On a terminal a mark is in inverse, and messages
have no style. In a pipe a mark is a sign at the beginning of a line: messages lose these signs, and
their lines are prefixed or indented. Text from others is never in inverse: a long line might wrap
and begin a row with a false mark.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from zeroclaw.card_words import CardWords
from zeroclaw.json_fields import array_at, object_at, objects_at
from zeroclaw.text.escape import without_mark_signs
from zeroclaw.text.language import ENGLISH
from zeroclaw.value import Struct, Value, field, replace

Line = Mapping[str, object]
"""A message from the daemon, or a table within it."""

KEYS: Mapping[str, str] = {"a": "once", "t": "for_a_time", "d": "deny"}
"""The answer that a single letter gives if exactly one call waits."""
_ENDINGS = {"approved": "✅", "denied": "❌", "expired": "❌", "stopped": "⏹"}

BOT = "● "
PROMPT = "» "
_AT_WORK = "…"

_WIDE = frozenset("WF")
_INSTEAD = {"┌┍┎┏╒╓╔": "╭", "└┕┖┗╘╙╚": "╰", "❌❎": "✗", "⏹": "■"}
_OWN_SIGNS = {ord(sign): instead for signs, instead in _INSTEAD.items() for sign in signs}
"""Signs that begin the program's own lines, and lookalikes, with their replacements in texts."""


class Ink(Value):
    """The abilities of the screen.

    Attributes:
        moves: The cursor can be moved; otherwise text is only appended.
        colours: Colours are wanted; see no-color.org.
        columns: Width in cells.
        rows: Height in rows.
    """

    moves: bool
    colours: bool
    columns: int = 80
    rows: int = 24

    def dim(self, text: str) -> str:
        """Return a text in a fainter style."""
        return f"\x1b[2m{text}\x1b[22m" if self.colours else text

    def bold(self, text: str) -> str:
        """Return a text in bold."""
        return f"\x1b[1m{text}\x1b[22m" if self.colours else text

    def badge(self, text: str) -> str:
        """Return a mark of the program: in inverse, with or without colours; messages never are."""
        return f"\x1b[7m{text}\x1b[27m" if self.moves else text

    def said(self, text: str) -> str:
        """Return a message to follow its sign; in a pipe its further lines are indented."""
        if self.moves:
            return text
        lines = self.line(text).splitlines()
        return "\n".join(f"  {line}" if line and at else line for at, line in enumerate(lines))

    def line(self, text: object) -> str:
        """Return another's text for use within a line; in a pipe without the signs of our marks."""
        return str(text) if self.moves else without_mark_signs(str(text)).translate(_OWN_SIGNS)

    def arguments(self, text: object) -> str:
        """Return the JSON of a call; signs of our marks are escaped, so the call stays the same."""
        if self.moves:
            return str(text)
        kept = ((sign, self.line(sign) == sign) for sign in str(text))
        return "".join(sign if is_kept else json.dumps(sign)[1:-1] for sign, is_kept in kept)

    def warm(self, text: str) -> str:
        """Return a text that asks for attention."""
        return f"\x1b[33m{text}\x1b[39m" if self.colours else text

    def clear_line(self) -> str:
        """Return the sequence that clears the cursor's line."""
        return "\r\x1b[K" if self.moves else ""

    def wrapped(self, row: str) -> str:
        """Return a row that breaks between words.

        The terminal breaks words that are too long for a row, or whose width terminals differ in,
        which `turned` could not take back; nor a sign in the last cell, which is left empty: the
        cursor stays on it, so it would be one cell off.
        """
        first, *words = row.split(" ")
        out, column, most = first, _width(first)[1], self.columns - 1
        for word in words:
            least, cells = _width(word)
            is_over = column <= most < column + 1 + cells and least == cells <= most
            out += f"\n{word}" if is_over else f" {word}"
            column = cells if is_over else column + 1 + cells
        return out

    def turned(self, row: str, into: str) -> str:
        """Return the text that turns the row that ends at the cursor into another."""
        differs = (at for at, sign in enumerate(row) if sign != into[at])
        kept = next(differs, len(row))
        back = _width(row[kept:])[1]
        return (f"\x1b[{back}D\x1b[K" if back else "") + into[kept:]

    def erase(self, text: str) -> str | None:
        """Return the sequence that erases a text ending at the cursor; None if it is out of reach.

        A text is also out of reach if terminals differ in its number of rows: erasing too many
        would lose the text above.
        """
        up, most = (
            sum(rows) - 1 for rows in zip(*map(self._rows_of, text.split("\n")), strict=True)
        )
        if not self.moves or up != most or up >= self.rows - 1:
            return None
        return f"\r\x1b[{up}A\x1b[J" if up else "\r\x1b[J"

    def _rows_of(self, line: str) -> tuple[int, int]:
        """Return the minimum and maximum number of rows of a line."""
        least, most = _width(line)
        # A wide character does not begin in a row's last cell.
        columns = max(1, self.columns - (most > len(line)))
        return max(1, -(-least // self.columns)), max(1, -(-most // columns))


def _cells(sign: str) -> tuple[int, int]:
    """Return the minimum and maximum number of cells of a character."""
    width = unicodedata.east_asian_width(sign)
    if sign.isascii() and sign.isprintable():
        return 1, 1
    if sign.isalpha() and width != "A" and not "\u1160" <= sign <= "\u11ff":
        cells = 2 if width in _WIDE else 1
        return cells, cells
    return (0, 8) if sign == "\t" else (0, 2)


def _width(text: str) -> tuple[int, int]:
    """Return the minimum and maximum number of cells of a text."""
    cells = [_cells(sign) for sign in text]
    return sum(least for least, _ in cells), sum(most for _, most in cells)


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
        ink: The abilities of the screen.
        fresh: Number of cards shown since a line was typed.
    """

    ink: Ink
    fresh: int = 0
    _open: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    _shown: set[str] = field(default_factory=set[str])
    _ended: set[str] = field(default_factory=set[str])

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls that wait for an answer, oldest first."""
        return tuple(self._open.values())

    def take(self, item: Line) -> str:
        """Return the text that an item of kind card appends: the card, or new endings."""
        key, card = str(item["id"]), object_at(item, "card")
        calls = objects_at(card, "calls")
        choices = tuple(map(str, array_at(card, "choices")))
        for call in calls:
            self._note(key, call, choices)
        is_new = key not in self._shown and has_open_calls(item)
        lines = [*self._card(card, calls, choices)] if is_new else []
        self._shown.add(key)
        self.fresh += is_new
        # Whatever the texts contain, only this program begins a line.
        every = (" ".join(line.splitlines()) for line in (*lines, *self._endings(calls)))
        return "".join(f"{line}\n" for line in every)

    def _note(self, card: str, call: Line, choices: tuple[str, ...]) -> None:
        approval = str(call["approval"])
        if call.get("ending") is not None:
            self._open.pop(approval, None)
        elif approval not in self._ended:
            self._open[approval] = OpenCall(approval=approval, card=card, choices=choices)

    def _card(self, card: Line, calls: Sequence[Line], choices: tuple[str, ...]) -> Iterator[str]:
        until = datetime.fromisoformat(str(card["deadline_at"])).astimezone()
        words = _words(card)
        ink, who = self.ink, self.ink.line(card["asked_by"])
        head = words["head"].format_map({"who": who, "at": f"{until:%H:%M:%S}"})
        yield f"{ink.badge('┌')} {ink.warm(head)}"
        for call in calls:
            name = ink.bold(f"{call['number']}  {ink.line(call['tool'])}")
            mark = ink.dim(f"#{call['hash8']}")
            yield f"│ {name}  {ink.line(call['summary'])}  {mark}"
            yield f"│    {ink.dim(ink.line(call['why']))}"
            for line in ink.arguments(call["arguments"]).splitlines():
                yield f"│    {line}"
            if scope := ink.line(call.get("scope", "")):
                yield f"│    {ink.dim(scope)}"
        yield f"{ink.badge('└')} {ink.warm(self._how(words, calls, choices))}"

    def _how(
        self, words: Mapping[str, str], calls: Sequence[Line], choices: tuple[str, ...]
    ) -> str:
        numbers = " ".join(str(call["number"]) for call in calls)
        if len(self._open) != 1:
            return f"/approve {numbers} · /deny {calls[0]['number']} {words['because']}"
        offered = [(key, choice) for key, choice in KEYS.items() if choice in choices]
        keys = " · ".join(f"{key} = {words[choice]}" for key, choice in offered)
        return f"{keys} · /deny {numbers} {words['because']}"

    def _endings(self, calls: Sequence[Line]) -> Iterator[str]:
        for call in calls:
            approval, ending = str(call["approval"]), call.get("ending")
            if ending is not None and approval not in self._ended:
                self._ended.add(approval)
                yield self._ending(call, object_at(call, "ending"))

    def _ending(self, call: Line, ending: Line) -> str:
        how, ink = str(ending["how"]), self.ink
        reason = f": {ending['reason']}" if ending.get("reason") else ""
        said = ink.line(f"{call['tool']} {ending.get('said', how)}{reason}")
        sign = ink.badge(f"{_ENDINGS.get(how, '·')} {call['number']}")
        return f"{sign}  {ink.dim(said)}"


def _words(card: Line) -> Mapping[str, str]:
    """Return the card's fixed words; English ones if an older daemon has sent none."""
    sent = {name: str(word) for name, word in object_at(card, "words").items()}
    return {**CardWords(ENGLISH).by_name(len(array_at(card, "calls"))), **sent}


def has_open_calls(item: Line) -> bool:
    """Whether an item is a card with a call that waits for an answer."""
    calls = objects_at(object_at(item, "card"), "calls")
    return any(call.get("ending") is None for call in calls)


class View(Struct, kw_only=True):
    """The state of the screen, and what each line from the daemon appends to it.

    Attributes:
        cards: The approval cards; their `ink` is the screen's. Without cursor moves only whole
            messages are written.
        history: Number of earlier messages to show first.
        answered: Number of the bot's messages that have ended since the view began.
        is_live: The snapshot is complete.
    """

    cards: Cards
    history: int
    is_live: bool = False
    answered: int = 0
    _printed: dict[str, str] = field(default_factory=dict[str, str])
    _finals: dict[str, str] = field(default_factory=dict[str, str])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])
    _own: set[str] = field(default_factory=set[str])
    _before: list[Line] = field(default_factory=list[Line])
    _tail: str = ""
    _tail_text: str = ""
    _is_code: bool = False  # the row at the cursor
    _has_loose_line: bool = False
    _drafts: set[str] = field(default_factory=set[str])
    _was_live: bool = False

    @property
    def ink(self) -> Ink:
        """The abilities of the screen."""
        return self.cards.ink

    @property
    def is_drafting(self) -> bool:
        """Whether an answer is being written."""
        return bool(self._drafts)

    def said(self, key: str) -> None:
        """Remember a message of this client; it is on the screen as it was typed."""
        self._own.add(f"person/{key}")

    def prompt(self) -> str:
        """Return the prompt, which the next line erases; empty in a pipe."""
        if not self.ink.moves or self._tail:
            return ""
        self._has_loose_line = True
        return self.ink.clear_line() + self.ink.bold(PROMPT)

    def typed_for(self, text: str) -> str:
        """Return a message of the program as if a person had typed it; empty in a pipe."""
        return f"{self.ink.bold(PROMPT)}{text}\n" if self.ink.moves else ""

    def entered(self) -> bool:
        """Note that a line was typed, so the prompt is no longer at the cursor.

        Returns whether a letter in it can only mean the open card. On a terminal it may have been
        typed for an earlier card, which ended as the next one appeared.
        """
        self._has_loose_line = False
        fresh, self.cards.fresh = self.cards.fresh, 0
        return fresh <= 1 or not self.ink.moves

    def resized(self, columns: int, rows: int) -> str:
        """Use another size; return what ends a growing answer, which goes on in a new line.

        Its rows have moved or been written over, so nothing of it may be erased.
        """
        self.cards.ink = replace(self.ink, columns=columns, rows=rows)
        return self._fresh() if self._tail else ""

    def note(self, text: str) -> str:
        """Return a remark of the client itself."""
        return f"{self._fresh()}{self.ink.badge('·')} {self.ink.dim(self.ink.said(text))}\n"

    def take(self, line: Line) -> str:
        """Return the text that a line from the daemon appends."""
        match line.get("type"):
            case "snapshot":
                self.is_live = False
                self._numbers.clear()
                self._drafts.clear()
                self._before.clear()
                return ""
            case "live":
                return self._begin_live()
            case "item" if not self.is_live:
                self._before.append(line)
                return ""
            case "item":
                return self._item(line)
            case "gone":
                self._drafts.discard(str(line["id"]))
                return ""
            case "typing":
                return self._typing()
            case "received":
                return self.note(str(line["toast"])) if line.get("toast") else ""
            case "refused":
                later = "; it is tried again" if line.get("again") else ""
                return self.note(f"not taken: {line['why']}{later}")
            case "trouble":
                return self.note(str(line["why"]))
            case _:
                return ""

    # --- the snapshot ----------------------------------------------------------------------------

    def _begin_live(self) -> str:
        self.is_live = True
        before, self._before = self._before, []
        if self._was_live:
            # After a lost connection, items that are known append nothing.
            return "".join(self._item(line) for line in before)
        self._was_live = True
        over = [line for line in before if not _is_open(line)]
        shown = over[len(over) - min(self.history, len(over)) :]
        for line in over:
            if line not in shown:
                self._know(line)
        earlier = "".join(self._item(line) for line in shown)
        opened = "".join(self._item(line) for line in before if _is_open(line))
        self.answered = 0
        if earlier:
            earlier += self.ink.dim("─── now ───") + "\n"
        return earlier + opened

    def _know(self, line: Line) -> None:
        """Treat an earlier item as already shown."""
        key = str(line["id"])
        self._finals[key] = self._printed[key] = str(line["text"])
        if line.get("kind") == "card":
            self.cards.take(line)

    # --- items -----------------------------------------------------------------------------------

    def _item(self, line: Line) -> str:
        key, number = str(line["id"]), line.get("number")
        if isinstance(number, int):
            if number < self._numbers.get(key, 0):
                return ""
            self._numbers[key] = number
        match line.get("kind"):
            case "person":
                return self._person(key, str(line["text"]))
            case "card":
                shown = self.cards.take(line)
                return self._fresh() + shown if shown else ""
            case _:
                is_draft = line.get("draft") is True
                return self._message(key, str(line["text"]), _receipts(line), is_draft=is_draft)

    def _person(self, key: str, text: str) -> str:
        if key in self._own or key in self._printed:
            return ""
        self._printed[key] = text
        return self._fresh() + self.ink.dim(f"{PROMPT}{self.ink.said(text)}") + "\n"

    def _message(self, key: str, text: str, receipts: list[str], *, is_draft: bool) -> str:
        if is_draft:
            self._drafts.add(key)
        else:
            self._drafts.discard(key)
            if key not in self._finals:
                self.answered += 1
            if self._finals.get(key) == text:
                return ""
            self._finals[key] = text
        proofs = "".join(f"{self._mark(one)}\n" for one in receipts)
        if not self.ink.moves:
            return "" if is_draft else f"{BOT}{self.ink.said(text)}\n{proofs}"
        return self._grown(key, text, is_draft=is_draft) + proofs

    def _mark(self, receipt: str) -> str:
        kind, colon, proven = receipt.partition(":")
        return f"{self.ink.badge(f'✅ {kind}{colon}')}{self.ink.line(proven)}"

    def _grown(self, key: str, text: str, *, is_draft: bool) -> str:
        old = self._printed.get(key)
        if key != self._tail and old is not None and text.rstrip() == old.rstrip():
            return ""  # a delta of only spaces would begin an empty line
        self._printed[key] = text
        if key == self._tail:
            added = self._rewritten(old or "", text)
        elif old is None or not text.startswith(old):
            added = self._begun(text)
        else:
            added = self._begun(f"… {text.removeprefix(old).lstrip()}")
        self._tail = key if is_draft else ""
        return added if is_draft else f"{added}\n"

    def _begun(self, text: str) -> str:
        """Return a message on a line of its own."""
        return self._fresh() + self._written(text)

    def _written(self, text: str) -> str:
        self._tail_text, self._is_code = "", False
        return self._appended(f"{BOT}{text}")

    def _appended(self, more: str) -> str:
        """Return a text to append to the one at the cursor; rows of code are not wrapped."""
        above, newline, row = self._tail_text.rpartition("\n")
        rows, added = [above] if newline else [], ""
        for at, part in enumerate(more.split("\n")):
            if at:
                self._is_code ^= row.removeprefix(BOT).startswith("```")
                rows.append(row)
                row, added = "", f"{added}\n"
            is_whole = self._is_code or len(row) > self.ink.columns
            shown = row + part if is_whole else self.ink.wrapped(row + part)
            added += self.ink.turned(row, shown)
            *full, row = shown.split("\n")
            rows += full
        self._tail_text = "\n".join((*rows, row))
        return added

    def _rewritten(self, old: str, text: str) -> str:
        """Return the text that turns the text at the cursor into the new one."""
        if text.startswith(old):
            return self._appended(text.removeprefix(old))
        erased = self.ink.erase(self._tail_text)
        return f"{chr(10) if erased is None else erased}{self._written(text)}"

    def _typing(self) -> str:
        if not self.ink.moves or self._tail:
            return ""
        fresh = self._fresh()
        self._has_loose_line = True
        return fresh + self.ink.dim(_AT_WORK)

    def _fresh(self) -> str:
        """Return the text that moves the cursor to the beginning of an empty line."""
        if self._tail:
            self._tail = ""
            return "\n"
        if self._has_loose_line:
            self._has_loose_line = False
            return self.ink.clear_line()
        return ""


def _receipts(line: Line) -> list[str]:
    """Return the receipts of an answer; imitations within its text are masked."""
    return [" ".join(str(one).splitlines()) for one in array_at(line, "receipts")]


def _is_open(line: Line) -> bool:
    """Whether an item of the snapshot has not ended."""
    return line.get("draft") is True or has_open_calls(line)
