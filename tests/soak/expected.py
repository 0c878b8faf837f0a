"""The answers that people expect, and the messages that the chats show."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from tests.faults.promises import REPEAT
from tests.soak.model import answer_to
from tests.soak.place import Chat
from zeroclaw.value import Value

LOOK_BACK = 60
"""Messages of a chat among which the answer to a new one stands."""


class ExpectedAnswer(Value):
    """A message that is to be answered once.

    Attributes:
        action: What the place knows it by.
    """

    key: str
    chat: Chat
    action: object

    @property
    def end(self) -> str:
        """The end of the last message of its answer."""
        return answer_to(self.key)[-60:]

    def is_answered(self) -> bool:
        """Whether the end of its answer stands."""
        return any(
            self._is_end(message.text)
            for message in reversed(self.chat.messages)
            if message.is_from_bot and not message.deleted
        )

    def places(self) -> tuple[list[int], list[int]]:
        """Return the ids of the messages that end its answer: plain ones, and possible repeats."""
        found = [message for message in self.chat.from_bot if self._is_end(message.text)]
        plain = [message.id for message in found if not message.text.endswith(REPEAT)]
        return plain, [message.id for message in found if message.text.endswith(REPEAT)]

    def _is_end(self, text: str) -> bool:
        return text.removesuffix(REPEAT).endswith(self.end)


def _in_written_order(_: ExpectedAnswer) -> int:
    return 0


class Sums(Value):
    """The counts of a soak; the first four are to be 0.

    Attributes:
        lost: Keys of messages without a whole answer.
        doubled: Keys that were answered twice, without a word that it may be a repeat.
        out_of_order: Keys that were answered before one that stood before them.
        exceeded: Calls that came before they were allowed.
        repeats: Answers that say that they may be a repeat.
        ran_twice: Calls of a tool that changes things, which ran more than once.
    """

    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    out_of_order: tuple[str, ...]
    exceeded: int
    repeats: int
    ran_twice: tuple[str, ...]

    @property
    def are_good(self) -> bool:
        """Whether nothing is there that may not be."""
        return not (
            self.lost or self.doubled or self.out_of_order or self.exceeded or self.ran_twice
        )


@dataclass(eq=False, kw_only=True)
class Books:
    """All written messages, in order."""

    expected: list[ExpectedAnswer] = field(default_factory=list[ExpectedAnswer])

    def sums(
        self,
        *,
        exceeded: int,
        runs: list[str],
        order: Callable[[ExpectedAnswer], int] = _in_written_order,
    ) -> Sums:
        """Return what it came to; `order` numbers messages of one chat that are out of order by it."""
        lost: list[str] = []
        doubled: list[str] = []
        out_of_order: list[str] = []
        repeats = 0
        newest: dict[Hashable, int] = {}
        for expected in sorted(self.expected, key=order):
            plain, marked = expected.places()
            repeats += len(marked)
            if not plain and not marked:
                lost.append(expected.key)
                continue
            if len(plain) > 1:
                doubled.append(expected.key)
            first = min(plain + marked)
            if first < newest.get(expected.chat.id, 0):
                out_of_order.append(expected.key)
            newest[expected.chat.id] = max(first, newest.get(expected.chat.id, 0))
        twice = sorted({what for what in runs if runs.count(what) > 1})
        return Sums(
            lost=tuple(lost),
            doubled=tuple(doubled),
            out_of_order=tuple(out_of_order),
            exceeded=exceeded,
            repeats=repeats,
            ran_twice=tuple(twice),
        )
