"""Shows approval cards in lines, and knows which calls still wait for an answer."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import cast

from zeroclaw.card_words import CardWords
from zeroclaw.cli.talking.ink import Ink
from zeroclaw.text.language import ENGLISH
from zeroclaw.value import Value

KEYS: Mapping[str, str] = {"a": "once", "t": "for_a_time", "d": "deny"}
"""What a single letter answers when exactly one call waits."""
_ENDINGS = {"approved": "✓", "denied": "✗", "expired": "✗", "stopped": "■"}

Table = Mapping[str, object]


class OpenCall(Value):
    """A call that waits for an answer.

    Attributes:
        card: The id of the card that shows it.
        choices: What may be answered.
    """

    approval: str
    number: int
    card: str
    choices: tuple[str, ...]


class Cards:
    """The cards of a conversation."""

    def __init__(self, ink: Ink) -> None:
        """Begin without any."""
        self._ink = ink
        self._open: dict[str, OpenCall] = {}
        self._shown: set[str] = set()
        self._ended: set[str] = set()

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """Those that wait for an answer, oldest first."""
        return tuple(self._open.values())

    def take(self, item: Table) -> str:
        """Return what an item of kind card adds to the screen: the card, or new endings."""
        key, card = str(item["id"]), _table(item.get("card"))
        calls = [_table(call) for call in _list(card.get("calls"))]
        choices = tuple(str(choice) for choice in _list(card.get("choices")))
        for call in calls:
            self._note(key, call, choices)
        if key in self._shown:
            lines = self._endings(calls)
        elif any(call.get("ending") is None for call in calls):
            lines = (*self._card(card, calls, choices), *self._endings(calls))
        else:
            lines = self._endings(calls)
        self._shown.add(key)
        return "".join(f"{line}\n" for line in lines)

    def _note(self, card: str, call: Table, choices: tuple[str, ...]) -> None:
        approval = str(call["approval"])
        if call.get("ending") is not None:
            self._open.pop(approval, None)
        elif approval not in self._ended:
            number = call.get("number")
            self._open[approval] = OpenCall(
                approval=approval,
                number=number if isinstance(number, int) else 0,
                card=card,
                choices=choices,
            )

    def _card(self, card: Table, calls: list[Table], choices: tuple[str, ...]) -> Iterator[str]:
        until = datetime.fromisoformat(str(card["deadline_at"])).astimezone()
        words = _words(card)
        head = words["head"].format_map({"who": card["asked_by"], "at": f"{until:%H:%M:%S}"})
        yield self._ink.warm(f"┌ {head}")
        for call in calls:
            name = self._ink.bold(f"{call['number']}  {call['tool']}")
            mark = self._ink.dim(f"#{call['hash8']}")
            yield f"│ {name}  {call['summary']}  {mark}"
            yield f"│    {self._ink.dim(str(call['why']))}"
            for line in str(call["arguments"]).splitlines():
                yield f"│    {line}"
            if scope := str(call.get("scope", "")):
                yield f"│    {self._ink.dim(scope)}"
        yield self._ink.warm(f"└ {self._how(words, calls, choices)}")

    def _how(self, words: Mapping[str, str], calls: list[Table], choices: tuple[str, ...]) -> str:
        numbers = " ".join(str(call["number"]) for call in calls)
        if len(self._open) != 1:
            return f"/approve {numbers} · /deny {calls[0]['number']} {words['because']}"
        offered = [(key, choice) for key, choice in KEYS.items() if choice in choices]
        keys = " · ".join(f"{key} = {words[choice]}" for key, choice in offered)
        return f"{keys} · /deny {numbers} {words['because']}"

    def _endings(self, calls: list[Table]) -> tuple[str, ...]:
        lines: list[str] = []
        for call in calls:
            approval, ending = str(call["approval"]), call.get("ending")
            if ending is None or approval in self._ended:
                continue
            self._ended.add(approval)
            lines.append(self._ending(call, _table(ending)))
        return tuple(lines)

    def _ending(self, call: Table, ending: Table) -> str:
        how = str(ending["how"])
        said = ending.get("said", how)
        reason = f": {ending['reason']}" if ending.get("reason") else ""
        sign = _ENDINGS.get(how, "·")
        return self._ink.dim(f"{sign} {call['number']}  {call['tool']} {said}{reason}")


def _words(card: Table) -> Mapping[str, str]:
    """Return the card's fixed words; English ones where an older daemon has sent none."""
    sent = {name: str(word) for name, word in _table(card.get("words")).items()}
    return {**CardWords(ENGLISH).by_name(len(_list(card.get("calls")))), **sent}


def has_open_calls(item: Table) -> bool:
    """Whether an item is a card with a call that waits for an answer."""
    calls = (_table(call) for call in _list(_table(item.get("card")).get("calls")))
    return any(call.get("ending") is None for call in calls)


def _table(value: object) -> Table:
    # What comes over the socket is JSON, whose objects have text keys only.
    return cast("Table", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
