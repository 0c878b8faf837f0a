"""What stands on a screen that can only be written at its end: messages, cards, a prompt.

`Ink` says how text looks there and what can be taken away again, `Cards` knows the approval cards
and which calls still wait, and `View` turns each line of the daemon into the text that it adds. On
a terminal an answer is shown while it grows: what is new is appended, and when the text so far has
changed it is taken away and written anew. Into a pipe only whole messages go, once each.

A true mark is something that no text can be: on a terminal its sign is in inverse, and no text has a
style; into a pipe it begins a line, as no line of a message does, with a sign that no message keeps.
Nothing that anybody wrote is in inverse, or a long line might wrap and begin a row with a false mark.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from zeroclaw.card_words import CardWords
from zeroclaw.json_fields import array_at, object_at, objects_at
from zeroclaw.text.escape import without_mark_signs
from zeroclaw.text.language import ENGLISH
from zeroclaw.value import Struct, Value, field

Line = Mapping[str, object]
"""What the daemon sends, or a table within it."""

KEYS: Mapping[str, str] = {"a": "once", "t": "for_a_time", "d": "deny"}
"""What a single letter answers when exactly one call waits."""
_ENDINGS = {"approved": "✅", "denied": "❌", "expired": "❌", "stopped": "⏹"}

BOT = "● "
PROMPT = "» "
_AT_WORK = "…"

_WIDE = frozenset("WF")
_INSTEAD = {"┌┍┎┏╒╓╔": "╭", "└┕┖┗╘╙╚": "╰", "❌❎": "✗", "⏹": "■"}
_OWN_SIGNS = {ord(sign): instead for signs, instead in _INSTEAD.items() for sign in signs}
"""What the program's own lines begin with, and what looks like it, by what a text has instead."""


class Ink(Value):
    """What the screen can do.

    Attributes:
        moves: The cursor can be moved; without it text is only ever appended.
        colours: Colours are wanted; see no-color.org.
        columns: Width in cells.
        rows: Height.
    """

    moves: bool
    colours: bool
    columns: int = 80
    rows: int = 24

    def dim(self, text: str) -> str:
        """Return a text in the background."""
        return f"\x1b[2m{text}\x1b[22m" if self.colours else text

    def bold(self, text: str) -> str:
        """Return a text that stands out."""
        return f"\x1b[1m{text}\x1b[22m" if self.colours else text

    def badge(self, text: str) -> str:
        """Return the program's own sign: in inverse, which no message has, with colours or without."""
        return f"\x1b[7m{text}\x1b[27m" if self.moves else text

    def said(self, text: str) -> str:
        """Return a message as it stands behind its sign; into a pipe none of its lines begins one."""
        if self.moves:
            return text
        lines = self.line(text).splitlines()
        return "\n".join(f"  {line}" if line and at else line for at, line in enumerate(lines))

    def line(self, text: object) -> str:
        """Return what somebody wrote within a line; into a pipe no sign is left that begins ours."""
        return str(text) if self.moves else without_mark_signs(str(text)).translate(_OWN_SIGNS)

    def arguments(self, text: object) -> str:
        """Return the JSON of a call, which stays the same call: there a sign is escaped."""
        if self.moves:
            return str(text)
        kept = ((sign, self.line(sign) == sign) for sign in str(text))
        return "".join(sign if is_kept else json.dumps(sign)[1:-1] for sign, is_kept in kept)

    def warm(self, text: str) -> str:
        """Return a text that asks for something."""
        return f"\x1b[33m{text}\x1b[39m" if self.colours else text

    def clear_line(self) -> str:
        """Return what takes the line of the cursor away."""
        return "\r\x1b[K" if self.moves else ""

    def erase(self, text: str) -> str | None:
        """Return what takes a text away that ends at the cursor; None when it is out of reach.

        One whose rows terminals count differently is: above it stands what must not be lost.
        """
        up, most = (
            sum(rows) - 1 for rows in zip(*map(self._rows_of, text.split("\n")), strict=True)
        )
        if not self.moves or up != most or up >= self.rows - 1:
            return None
        return f"\r\x1b[{up}A\x1b[J" if up else "\r\x1b[J"

    def _rows_of(self, line: str) -> tuple[int, int]:
        """Return the least and the most rows that a line may have."""
        cells = [_cells(sign) for sign in line]
        least, most = sum(one for one, _ in cells), sum(one for _, one in cells)
        # A wide sign does not begin in a row's last cell.
        columns = max(1, self.columns - (most > len(line)))
        return max(1, -(-least // self.columns)), max(1, -(-most // columns))


def _cells(sign: str) -> tuple[int, int]:
    """Return the least and the most cells that a sign is drawn in."""
    width = unicodedata.east_asian_width(sign)
    if sign.isascii() and sign.isprintable():
        return 1, 1
    if sign.isalpha() and width != "A" and not "\u1160" <= sign <= "\u11ff":
        cells = 2 if width in _WIDE else 1
        return cells, cells
    return (0, 8) if sign == "\t" else (0, 2)


class OpenCall(Value):
    """A call that waits for an answer.

    Attributes:
        card: The id of the card that shows it.
        choices: What may be answered.
    """

    approval: str
    card: str
    choices: tuple[str, ...]


class Cards(Struct, kw_only=True):
    """The cards of a conversation.

    Attributes:
        ink: What the screen can do.
        fresh: How many were shown since a line was typed.
    """

    ink: Ink
    fresh: int = 0
    _open: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    _shown: set[str] = field(default_factory=set[str])
    _ended: set[str] = field(default_factory=set[str])

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """Those that wait for an answer, oldest first."""
        return tuple(self._open.values())

    def take(self, item: Line) -> str:
        """Return what an item of kind card adds to the screen: the card, or new endings."""
        key, card = str(item["id"]), object_at(item, "card")
        calls = objects_at(card, "calls")
        choices = tuple(map(str, array_at(card, "choices")))
        for call in calls:
            self._note(key, call, choices)
        is_new = key not in self._shown and has_open_calls(item)
        lines = [*self._card(card, calls, choices)] if is_new else []
        self._shown.add(key)
        self.fresh += is_new
        # Whatever stands in one of them, only this program begins a line.
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
    """Return the card's fixed words; English ones where an older daemon has sent none."""
    sent = {name: str(word) for name, word in object_at(card, "words").items()}
    return {**CardWords(ENGLISH).by_name(len(array_at(card, "calls"))), **sent}


def has_open_calls(item: Line) -> bool:
    """Whether an item is a card with a call that waits for an answer."""
    calls = objects_at(object_at(item, "card"), "calls")
    return any(call.get("ending") is None for call in calls)


class View(Struct, kw_only=True):
    """What stands on the screen, and what each line adds to it.

    Attributes:
        cards: The approval cards; their `ink` is that of the screen, and without moves only whole
            messages are written.
        history: How many earlier messages are shown first.
        answered: How many messages of the bot have come to their end since the view began.
        is_live: The snapshot is whole.
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
    _has_loose_line: bool = False
    _drafts: set[str] = field(default_factory=set[str])
    _was_live: bool = False

    @property
    def ink(self) -> Ink:
        """What the screen can do."""
        return self.cards.ink

    @property
    def is_drafting(self) -> bool:
        """An answer is being written."""
        return bool(self._drafts)

    def said(self, key: str) -> None:
        """Remember a message of this client; it stands on the screen as it was typed."""
        self._own.add(f"person/{key}")

    def prompt(self) -> str:
        """Return the prompt, which the next line takes away again; empty into a pipe."""
        if not self.ink.moves or self._tail:
            return ""
        self._has_loose_line = True
        return self.ink.clear_line() + self.ink.bold(PROMPT)

    def typed_for(self, text: str) -> str:
        """Return a message of the program as if a person had typed it; empty into a pipe."""
        return f"{self.ink.bold(PROMPT)}{text}\n" if self.ink.moves else ""

    def entered(self) -> bool:
        """A line was typed: the prompt is no longer where the cursor is.

        Returns whether a letter in it can only mean the card that is open: on a terminal it may have been
        typed for one before, which ended as the next came.
        """
        self._has_loose_line = False
        fresh, self.cards.fresh = self.cards.fresh, 0
        return fresh <= 1 or not self.ink.moves

    def note(self, text: str) -> str:
        """Return a remark of the client's own."""
        return f"{self._fresh()}{self.ink.badge('·')} {self.ink.dim(self.ink.said(text))}\n"

    def take(self, line: Line) -> str:
        """Return what a line of the daemon adds."""
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
            # After a lost connection: what is known adds nothing.
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
        """Take an earlier item as shown."""
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
        self._printed[key] = text
        if key == self._tail:
            added = self._rewritten(old or "", text)
        elif text == old:
            return ""
        elif old is None or not text.startswith(old):
            added = self._begun(text)
        else:
            added = self._begun(f"… {text.removeprefix(old).lstrip()}")
        self._tail = key if is_draft else ""
        return added if is_draft else f"{added}\n"

    def _begun(self, text: str) -> str:
        """Return a message on a line of its own."""
        fresh = self._fresh()
        self._tail_text = f"{BOT}{text}"
        return fresh + self._tail_text

    def _rewritten(self, old: str, text: str) -> str:
        """Return what makes of the text at the cursor the new one."""
        if text.startswith(old):
            more = text.removeprefix(old)
            self._tail_text += more
            return more
        erased = self.ink.erase(self._tail_text)
        self._tail_text = f"{BOT}{text}"
        return f"{chr(10) if erased is None else erased}{self._tail_text}"

    def _typing(self) -> str:
        if not self.ink.moves or self._tail:
            return ""
        fresh = self._fresh()
        self._has_loose_line = True
        return fresh + self.ink.dim(_AT_WORK)

    def _fresh(self) -> str:
        """Return what brings the cursor to the beginning of an empty line."""
        if self._tail:
            self._tail = ""
            return "\n"
        if self._has_loose_line:
            self._has_loose_line = False
            return self.ink.clear_line()
        return ""


def _receipts(line: Line) -> list[str]:
    """Return the receipts that an answer carries; imitated in a text they are masked."""
    return [" ".join(str(one).splitlines()) for one in array_at(line, "receipts")]


def _is_open(line: Line) -> bool:
    """Whether an item of the snapshot is still going on."""
    return line.get("draft") is True or has_open_calls(line)
