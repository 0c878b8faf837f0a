"""The soak itself works: a few seconds of it find nothing, and what it looks for it would find."""

from pathlib import Path

import pytest

from channels.telegram.emulator import Emulator, Lose
from channels.telegram.emulator.chats import Version
from channels.telegram.emulator.entities import Formatted
from channels.telegram.emulator.faults import Call, Fault
from channels.telegram.emulator.wire import Parameters
from tests.faults.fork_client import PRODUCT, fork
from tests.soak.expected import REPEAT, Books, ExpectedAnswer
from tests.soak.histories import history
from tests.soak.measured import Measured, is_disk_flat, is_memory_flat
from tests.soak.model import answer_to
from tests.soak.on_telegram import disobeyed
from tests.soak.place import Room
from tests.soak.soak import PLACES, Soak, SoakResult, soaked, stalls_in
from zeroclaw.host.clock import SystemClock

pytestmark = pytest.mark.slow

SECONDS = 6.0
SEED = 4
LOST = Lose(carried_out=True)


async def test_a_few_seconds_of_it_find_nothing(tmp_path: Path) -> None:
    """People write, Telegram fails, and everything is answered once, in order, in its time. P1, P6."""
    lines: list[str] = []
    soak = Soak(seconds=SECONDS, people=5, seed=SEED)
    came_to = await soaked(soak, tmp_path, tell=lines.append, command=PRODUCT, launch=fork)
    assert came_to.sums.are_good, lines
    assert any("troubles: " in line for line in lines), lines


@pytest.mark.needs("dovecot", "postfix", "emulate")
async def test_a_few_seconds_on_all_channels_find_nothing(tmp_path: Path) -> None:
    """One daemon, the same people on each platform, and the operator on Slack. P1, P2, P5."""
    lines: list[str] = []
    soak = Soak(seconds=SECONDS, people=2, seed=SEED, channels=tuple(PLACES))
    came_to = await soaked(soak, tmp_path, tell=lines.append, command=PRODUCT, launch=fork)
    assert came_to.sums.are_good, lines
    (counts,) = [line for line in lines if line.startswith("messages: ")]
    assert " 0 on" not in counts, "people wrote everywhere"


async def test_the_soak_counts_lost_doubled_and_disordered_answers(tmp_path: Path) -> None:
    """One that is marked as a possible repeat is counted apart."""
    async with Emulator(clock=SystemClock()) as telegram:
        ann, zero = telegram.person("Ann"), telegram.account.bot
        books = Books()
        for key in ("text p.1", "text p.2", "text p.3", "text p.4"):
            books.expected.append(ExpectedAnswer(key=key, chat=ann.chat, action=ann.says(key)))
        for key, more in (("2", ""), ("1", ""), ("1", ""), ("3", ""), ("3", REPEAT)):
            text = answer_to(f"text p.{key}") + more
            version = Version(formatted=Formatted(text=text))
            telegram.account.add(ann.chat, zero, version, telegram.now())
        sums = books.sums(exceeded=0, runs=["a", "b", "a"])
    assert sums.lost == ("text p.4",)
    assert sums.doubled == ("text p.1",)
    assert sums.out_of_order == ("text p.2",)
    assert sums.repeats == 1
    assert sums.ran_twice == ("a",)
    assert not sums.are_good


@pytest.mark.parametrize(("answers", "out_of_order"), [("21", ()), ("12", ("text p.1",))])
def test_the_soak_uses_the_order_of_the_platform(
    answers: str, out_of_order: tuple[str, ...]
) -> None:
    """A mailbox that numbers two mails the other way round has no other order than that. P2."""
    room = Room("ann")
    room.stand([answer_to(f"text p.{answer}") for answer in answers])
    books = Books(
        expected=[
            ExpectedAnswer(key=f"text p.{number}", chat=room, action=-number) for number in (1, 2)
        ]
    )
    sums = books.sums(exceeded=0, runs=[], order=lambda answer: int(str(answer.action)))
    assert (sums.lost, sums.out_of_order) == ((), out_of_order)


def test_a_stall_of_the_event_loop_fails_it() -> None:
    """One line of the log is enough; all else may be well."""
    sums = Books().sums(exceeded=0, runs=[])
    assert SoakResult(sums=sums, growth=(), stalls=()).is_good
    logged = "x  info  turn_finished\nx  warning  loop_stalled cpu_ms=140 place=a.py:1:f\n"
    assert not SoakResult(sums=sums, growth=(), stalls=stalls_in(logged)).is_good


async def test_the_history_of_a_message_is_in_order() -> None:
    """Calls of other chats, and those after the last that speaks of it, are left out."""
    async with Emulator(clock=SystemClock()) as telegram:
        ann = telegram.person("Ann")
        action = ann.says("text p.1")
        expected = ExpectedAnswer(key="text p.1", chat=ann.chat, action=action)
        began = telegram.now().at
        for seconds, chat, text in ((1, ann.chat.id, ""), (2, 8, "text p.1"), (4, ann.chat.id, "")):
            telegram.calls.append(_call(at=began + seconds, chat=chat, text=text))
        telegram.calls.append(_call(at=began + 3, chat=ann.chat.id, text="text p.1", fault=LOST))
        turns = [(began + 2.5, "it is killed"), (began + 9, "it is started")]
        lines = history(telegram, expected, began=began, turns=turns)
    first, written, *rest = lines
    assert "text p.1" in first
    assert f"written as {action.sent.id}" in written
    assert [line.split()[0] for line in rest] == ["1.000", "2.500", "3.000"]
    assert "it is killed" in rest[1]
    assert repr(LOST) in rest[2]


def test_the_soak_reports_a_call_before_the_end_of_its_wait() -> None:
    """A process that was started since knows nothing of it."""
    calls = [
        _call(at=10, refusal="Too Many Requests: retry after 3"),
        _call(at=11, chat=8),
        _call(at=12),
        _call(at=14),
        _call(at=20, refusal="Too Many Requests: retry after 3"),
        _call(at=22),
    ]
    (early,) = disobeyed(calls, lives=[21.0])
    assert "1.00 s too early" in early


@pytest.mark.parametrize(
    ("mib", "is_flat"),
    [
        ([60.0] * 40, True),
        # What fills up to a bound has filled most of it before.
        ([70 - 10 * 0.85**look for look in range(40)], True),
        # A leak, slow or in steps, and one that hides behind what the allocator gives back.
        ([60 + look * 0.25 for look in range(40)], False),
        ([60.0] * 19 + [65.0] * 21, False),
        ([60 + look * 0.25 - (look % 4) for look in range(40)], False),
        # A moment of much.
        ([60.0] * 30 + [75.0] * 5 + [61.0] * 5, True),
        ([60.0], True),
    ],
)
def test_the_soak_tells_leaking_memory_from_filling_memory(mib: list[float], is_flat: bool) -> None:
    """Two equal late stretches are compared, by their medians."""
    samples = [
        Measured(pss_mib=size, disk_mib=1, messages=number) for number, size in enumerate(mib)
    ]
    assert is_memory_flat(samples) == is_flat


def test_the_soak_reports_a_growing_disk() -> None:
    begin = Measured(pss_mib=50, disk_mib=1, messages=0)
    warm = Measured(pss_mib=60, disk_mib=2, messages=100)
    assert is_disk_flat(begin, warm, Measured(pss_mib=60, disk_mib=3, messages=200))
    assert not is_disk_flat(begin, warm, Measured(pss_mib=60, disk_mib=5, messages=200))


def _call(
    *, at: float, chat: int = 7, refusal: str = "", text: str = "", fault: Fault | None = None
) -> Call:
    parameters = Parameters(values={"text": text})
    return Call(
        method="sendMessage", chat=chat, parameters=parameters, at=at, refusal=refusal, fault=fault
    )
