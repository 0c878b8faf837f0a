"""Turns the daemon's lines into text for a screen that can only be written at its end.

On a terminal an answer is shown while it grows: what is new is appended, and when the text so far
has changed it is taken away and written anew. Into a pipe only whole messages go, once each.
"""

from collections.abc import Mapping
from typing import cast

from zeroclaw.cli.talking.cards import Cards, OpenCall, has_open_calls
from zeroclaw.cli.talking.ink import Ink

BOT = "● "
PROMPT = "» "
_AT_WORK = "…"

Line = Mapping[str, object]


class View:
    """What stands on the screen, and what each line adds to it.

    Attributes:
        answered: How many messages of the bot have come to their end since the view began.
        is_live: The snapshot is whole.
    """

    def __init__(self, ink: Ink, *, history: int) -> None:
        """Begin with an empty screen.

        Args:
            ink: What the screen can do; without moves only whole messages are written.
            history: How many earlier messages are shown first.
        """
        self._ink = ink
        self._history = history
        self._cards = Cards(ink)
        self._printed: dict[str, str] = {}
        self._finals: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._own: set[str] = set()
        self._before: list[Line] = []
        self._tail = ""
        self._tail_text = ""
        self._has_loose_line = False
        self._drafts: set[str] = set()
        self._was_live = False
        self.is_live = False
        self.answered = 0

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """Calls that wait for an answer."""
        return self._cards.open_calls

    @property
    def is_drafting(self) -> bool:
        """An answer is being written."""
        return bool(self._drafts)

    def said(self, key: str) -> None:
        """Remember a message of this client; it stands on the screen as it was typed."""
        self._own.add(f"person/{key}")

    def prompt(self) -> str:
        """Return the prompt, which the next line takes away again; empty into a pipe."""
        if not self._ink.moves or self._tail:
            return ""
        self._has_loose_line = True
        return self._ink.clear_line() + self._ink.bold(PROMPT)

    def typed_for(self, text: str) -> str:
        """Return a message that nobody typed as if somebody had; empty into a pipe."""
        return f"{self._ink.bold(PROMPT)}{text}\n" if self._ink.moves else ""

    def entered(self) -> None:
        """A line was typed: the prompt is no longer where the cursor is."""
        self._has_loose_line = False

    def note(self, text: str) -> str:
        """Return a remark of the client's own."""
        return self._fresh() + self._ink.dim(f"· {text}") + "\n"

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
        shown = over[len(over) - min(self._history, len(over)) :]
        for line in over:
            if line not in shown:
                self._know(line)
        earlier = "".join(self._item(line) for line in shown)
        opened = "".join(self._item(line) for line in before if _is_open(line))
        self.answered = 0
        if earlier:
            earlier += self._ink.dim("─── now ───") + "\n"
        return earlier + opened

    def _know(self, line: Line) -> None:
        """Take an earlier item as shown."""
        key = str(line["id"])
        self._finals[key] = self._printed[key] = str(line["text"])
        if line.get("kind") == "card":
            self._cards.take(line)

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
                shown = self._cards.take(line)
                return self._fresh() + shown if shown else ""
            case _:
                is_draft = line.get("draft") is True
                return self._message(key, str(line["text"]), _receipts(line), is_draft=is_draft)

    def _person(self, key: str, text: str) -> str:
        if key in self._own or key in self._printed:
            return ""
        self._printed[key] = text
        return self._fresh() + self._ink.dim(f"{PROMPT}{text}") + "\n"

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
        proofs = "".join(f"{self._ink.badge(one)}\n" for one in receipts)
        if not self._ink.moves:
            return "" if is_draft else f"{text}\n{proofs}"
        return self._grown(key, text, is_draft=is_draft) + proofs

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
        erased = self._ink.erase(self._tail_text)
        self._tail_text = f"{BOT}{text}"
        return f"{chr(10) if erased is None else erased}{self._tail_text}"

    def _typing(self) -> str:
        if not self._ink.moves or self._tail:
            return ""
        fresh = self._fresh()
        self._has_loose_line = True
        return fresh + self._ink.dim(_AT_WORK)

    def _fresh(self) -> str:
        """Return what brings the cursor to the beginning of an empty line."""
        if self._tail:
            self._tail = ""
            return "\n"
        if self._has_loose_line:
            self._has_loose_line = False
            return self._ink.clear_line()
        return ""


def _receipts(line: Line) -> list[str]:
    """Return the marks of the receipts that an answer carries; imitated in a text they are masked."""
    found = line.get("receipts")
    return [f"✅ {one}" for one in cast("list[object]", found)] if isinstance(found, list) else []


def _is_open(line: Line) -> bool:
    """Whether an item of the snapshot is still going on."""
    return line.get("draft") is True or has_open_calls(line)
