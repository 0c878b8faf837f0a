"""Every channel keeps receiving, and a broken one stays alone with it."""

import asyncio
from collections import deque
from collections.abc import Callable

import pytest

from tests.fakes.house_parts import CAPABILITIES, Facts
from tests.fakes.manual_clock import ManualClock
from tests.fakes.scripted_channel import ScriptedChannel
from zeroclaw.channel import Admit, Channel
from zeroclaw.envelope import Accepted, Address, Admission, Envelope, Said, Sender
from zeroclaw.errors import (
    ChannelStopped,
    ChannelUnauthorized,
    ChannelUnavailable,
    ConfigError,
    RateLimited,
)
from zeroclaw.inbound.supervisor import (
    BACK_OFF,
    MAX_REFUSED,
    NOTICE_AFTER,
    REFUSED_S,
    STEADY_S,
    Supervisor,
    contain,
    fault_line,
    pause,
)
from zeroclaw.text.language import Localized


class Frail(ScriptedChannel):
    """Ends `receive` by the next fault, after so many seconds up.

    Attributes:
        ends: What ends each life; None returns, and nothing left to raise keeps it up.
        up_s: How long it is up before that.
        arriving: Messages that come as soon as it is up.
        closing: What `aclose` raises.
    """

    def __init__(self, clock: ManualClock, *ends: BaseException | None, name: str = "chat") -> None:
        super().__init__(clock=clock, capabilities=CAPABILITIES, name=name)
        self.ends = deque(ends)
        self.clock = clock
        self.up_s = 0.0
        self.closing: Exception | None = None
        self.closed = 0
        self.lives = 0
        self.arriving: tuple[Envelope, ...] = ()

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        self.lives += 1
        ready()
        for envelope in self.arriving:
            await admit(envelope)
        if not self.ends:
            await asyncio.get_running_loop().create_future()
        await self.clock.sleep(self.up_s)
        error = self.ends.popleft()
        if error is not None:
            raise error

    async def aclose(self) -> None:
        self.closed += 1
        await asyncio.sleep(0)
        if self.closing is not None:
            raise self.closing


class Rig:
    """A supervisor, and its notices."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.notices: list[tuple[str, str]] = []
        self.ready: list[str] = []
        self.log = Facts()
        self.supervisor = Supervisor(
            admit=self.admit, clock=self.clock, tell_operators=self.tell, log=self.log
        )

    async def admit(self, _envelope: Envelope) -> Admission:
        return Accepted()

    async def tell(self, name: str, notice: Localized) -> None:
        self.notices.append((name, notice.to("en")))

    async def keep(self, channel: Frail, make: Callable[[], Channel] | None = None) -> None:
        await self.supervisor.keep(
            channel.name, make or (lambda: channel), lambda _channel: None, self.ready.append
        )

    def state(self, name: str = "chat") -> tuple[str, str]:
        found = self.supervisor.states[name]
        return found.condition, found.why


CUT = ChannelUnavailable("the line was cut")


async def test_a_channel_that_is_cut_is_started_again_with_growing_pauses() -> None:
    """1, 2, 4 … s, while a person may be waiting; after a steady time it begins anew."""
    rig = Rig()
    channel = Frail(rig.clock, *[CUT] * 9)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(channel))
        await rig.clock.settle()
        assert rig.state() == ("waiting", "the line was cut")
        pauses: list[float] = []
        for _ in range(8):
            pauses.append(rig.clock.sleeping()[0])
            await rig.clock.advance(pauses[-1])
        assert pauses == [1, 2, 4, 8, *[BACK_OFF.longest_s] * 4]
        assert rig.ready == ["chat"] * 9
        channel.ends.extend([CUT])
        channel.up_s = STEADY_S
        await rig.clock.advance(rig.clock.sleeping()[0])
        assert rig.state() == ("up", "")
        await rig.clock.advance(STEADY_S)
        assert rig.clock.sleeping() == (1.0,)
        task.cancel()


@pytest.mark.parametrize(("fault", "last"), [(CUT, 1), (RuntimeError("a fault"), 8)])
async def test_a_line_that_is_cut_now_and_then_delays_no_person(
    fault: Exception, last: float
) -> None:
    """Where people were heard since the last cut it begins anew; not so after a fault in the code."""
    rig = Rig()
    channel = Frail(rig.clock, CUT, CUT, CUT, fault)
    envelope = Envelope(
        address=Address(channel="chat", account="bot", chat="7", direct=True),
        sender=Sender(id="7", verified=True),
        dedup=("1",),
        body=Said(text="hi"),
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(channel))
        await rig.clock.settle()
        for pause_s in (1, 2, 4):
            assert rig.clock.sleeping() == (pause_s,)
            channel.arriving = (envelope,) if pause_s == 4 else ()
            await rig.clock.advance(pause_s)
        assert rig.clock.sleeping() == (last,)
        task.cancel()


async def test_the_operator_reads_once_that_a_channel_keeps_failing() -> None:
    """One cut line is no news; the third in a row is, the fourth is not again."""
    rig = Rig()
    channel = Frail(rig.clock, *[CUT] * 5)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(channel))
        await rig.clock.advance(1)
        assert rig.notices == []
        await rig.clock.advance(60)
        assert rig.notices == [("chat", "`chat` keeps failing: the line was cut. I go on trying.")]
        assert channel.lives == 6
        assert channel.closed == 5
        task.cancel()


async def test_the_operator_reads_once_that_calls_are_refused_and_receiving_fails_too() -> None:
    """What fails second is no news, until the channel is down for good."""
    rig = Rig()
    refused = ChannelUnauthorized("the token was refused")
    channel = Frail(rig.clock, refused)
    channel.up_s = STEADY_S
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.keep(channel))
        await rig.clock.settle()
        for times in range(1, 5):
            await rig.supervisor.note_refused("chat", "the login was refused", times)
        expected = ("chat", "`chat` keeps failing: the login was refused. I go on trying.")
        assert rig.notices == [expected]
        await rig.clock.advance(STEADY_S)
        channel.up_s = 0
        channel.ends.extend([refused] * MAX_REFUSED)
        for _ in range(1, MAX_REFUSED):
            await rig.clock.advance(REFUSED_S)
    down = ("chat", "`chat` is down until you act: the token was refused")
    assert rig.notices == [expected, down]


async def test_receiving_that_still_fails_when_calls_are_answered_again_is_reported() -> None:
    """Who mended the one knows nothing of the other."""
    rig = Rig()
    async with asyncio.TaskGroup() as group:
        channel = Frail(rig.clock, *[CUT] * 8)
        channel.up_s = STEADY_S
        task = group.create_task(rig.keep(channel))
        await rig.clock.settle()
        await rig.supervisor.note_refused("chat", "the login was refused", NOTICE_AFTER)
        await rig.clock.advance(STEADY_S)
        channel.up_s = 0
        for _ in range(NOTICE_AFTER):
            await rig.clock.advance(15)
        assert len(rig.notices) == 1
        await rig.supervisor.note_refused("chat", "", 0)
        for _ in range(2):
            await rig.clock.advance(15)
            cut = ("chat", "`chat` keeps failing: the line was cut. I go on trying.")
            assert rig.notices[1:] == [cut]
        task.cancel()


async def test_refused_calls_are_reported_when_the_channel_receives_again() -> None:
    """While it does not, the operator reads that; an answer ends the outage."""
    rig = Rig()
    channel = Frail(rig.clock, *[CUT] * 3)
    reason = "the login was refused"
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(channel))
        await rig.clock.advance(6)
        await rig.supervisor.note_refused("chat", reason, 3)
        assert [notice for _, notice in rig.notices] == [
            "`chat` keeps failing: the line was cut. I go on trying."
        ]
        await rig.clock.advance(60)
        await rig.supervisor.note_refused("chat", reason, 4)
        await rig.supervisor.note_refused("chat", "", 0)
        await rig.supervisor.note_refused("chat", reason, 3)
        assert [notice for _, notice in rig.notices[1:]] == [
            "`chat` keeps failing: the login was refused. I go on trying."
        ] * 2
        task.cancel()


async def test_a_channel_that_is_asked_to_wait_is_not_started_before() -> None:
    """What the platform asks for is obeyed, where it is more than the pause."""
    rig = Rig()
    channel = Frail(rig.clock, RateLimited("too many calls", retry_after_s=90))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(channel))
        await rig.clock.advance(89)
        assert channel.lives == 1
        await rig.clock.advance(1)
        assert channel.lives == 2
        task.cancel()


async def test_a_channel_whose_key_was_refused_waits_for_a_person() -> None:
    """It is not started again by itself, and the operator reads that at once."""
    rig = Rig()
    await rig.keep(Frail(rig.clock, ChannelUnauthorized("the token was refused")))
    assert rig.state() == ("down", "the token was refused")
    assert rig.notices == [("chat", "`chat` is down until you act: the token was refused")]
    down = {"channel": "chat", "reason": "the token was refused", "level": "error"}
    assert rig.log.seen == [("channel_down", down)]


async def test_a_key_that_was_good_is_tried_again_a_few_times_before_a_person_has_to_act() -> None:
    """Platforms refuse good ones at times (github.com/tdlib/telegram-bot-api/issues/77, 2021-01)."""
    rig = Rig()
    refused = ChannelUnauthorized("the token was refused")
    channel = Frail(rig.clock, refused)
    channel.up_s = STEADY_S
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(channel))
        await rig.clock.settle()
        await rig.clock.advance(STEADY_S)
        assert rig.state() == ("waiting", "the token was refused")
        channel.up_s = 0
        channel.ends.extend([refused] * 2)
        for _ in range(3):
            await rig.clock.advance(REFUSED_S)
        assert rig.state() == ("up", "")
        expected = "`chat` keeps failing: the token was refused. I go on trying."
        assert rig.notices == [("chat", expected)]
        task.cancel()


async def test_a_key_that_is_refused_when_an_outage_ends_is_tried_again() -> None:
    """A mail server that comes up again may refuse logins until it has read its accounts."""
    rig = Rig()
    refused, away = ChannelUnauthorized("the login was refused"), ChannelUnavailable("away")
    channel = Frail(rig.clock, away, *[away] * MAX_REFUSED, refused)
    channel.up_s = STEADY_S
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(channel))
        await rig.clock.settle()
        await rig.clock.advance(STEADY_S)
        channel.up_s = 0
        while channel.ends:
            await rig.clock.advance(1)
        assert rig.state() == ("waiting", "the login was refused")
        await rig.clock.advance(REFUSED_S)
        assert rig.state() == ("up", "")
        task.cancel()


async def test_a_channel_that_stops_itself_waits_for_a_person() -> None:
    """Started again, it would answer the robots again that it stopped for."""
    rig = Rig()
    channel = Frail(rig.clock, ChannelStopped("it looks like a loop"))
    channel.up_s = STEADY_S
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.keep(channel))
        await rig.clock.settle()
        await rig.clock.advance(STEADY_S)
    assert rig.state() == ("down", "it looks like a loop")


async def test_a_key_that_stays_refused_waits_for_a_person() -> None:
    """Some servers lock an account that fails to log in too often."""
    rig = Rig()
    channel = Frail(rig.clock, ChannelUnauthorized("the token was refused"))
    channel.up_s = STEADY_S
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.keep(channel))
        await rig.clock.settle()
        await rig.clock.advance(STEADY_S)
        channel.up_s = 0
        channel.ends.extend([ChannelUnauthorized("the token was refused")] * MAX_REFUSED)
        for _ in range(1, MAX_REFUSED):
            await rig.clock.advance(REFUSED_S)
    assert channel.lives == MAX_REFUSED
    assert rig.state() == ("down", "the token was refused")


async def test_a_channel_that_lacks_something_waits_for_a_person() -> None:
    """A package that is missing does not come by trying again."""
    rig = Rig()
    await rig.keep(Frail(rig.clock, ConfigError(("channels.chat: install the extra",))))
    assert rig.state() == ("down", "channels.chat: install the extra")


async def test_a_fault_in_a_channels_code_is_reported_by_its_kind() -> None:
    """A stranger's text may hold anything, secrets included (P8)."""
    rig = Rig()
    channel = Frail(rig.clock, ValueError("token=hunter2"), None)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(channel))
        await rig.clock.settle()
        assert rig.state()[1].startswith("a fault in its code (ValueError at test_supervisor.py:")
        await rig.clock.advance(1)
        assert rig.state() == ("waiting", "it stopped receiving by itself")
        task.cancel()


async def test_a_channel_that_ends_as_if_cancelled_is_started_again() -> None:
    """A library may raise this though nobody cancelled it; else nobody would be heard any more."""
    rig = Rig()
    channel = Frail(rig.clock, asyncio.CancelledError())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(channel))
        await rig.clock.settle()
        assert rig.state() == ("waiting", "it ended as if it had been cancelled")
        await rig.clock.advance(1)
        assert rig.state() == ("up", "")
        task.cancel()


async def test_a_channel_that_cannot_be_made_is_tried_again() -> None:
    """As one that failed later."""
    rig = Rig()

    def make() -> Channel:
        raise ImportError("no such module")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(Frail(rig.clock), make))
        await rig.clock.settle()
        assert rig.state()[0] == "waiting"
        task.cancel()


async def test_an_adapter_that_cannot_close_is_left_behind() -> None:
    """Its fault ends no other channel (P9)."""
    rig = Rig()
    channel = Frail(rig.clock, CUT)
    channel.closing = RuntimeError("stuck")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(channel))
        await rig.clock.advance(1)
        assert rig.state() == ("up", "")
        assert "channel_left_open" in rig.log.events()
        task.cancel()


async def test_an_adapter_that_closes_for_ever_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It gets its time and no more."""
    monkeypatch.setattr("zeroclaw.inbound.supervisor.CLOSE_S", 0.0)
    rig = Rig()

    class Hanging(Frail):
        async def aclose(self) -> None:
            await asyncio.get_running_loop().create_future()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.keep(Hanging(rig.clock, CUT)))
        await rig.clock.advance(1)
        assert rig.state() == ("up", "")
        assert rig.log.seen[0][1]["reason"] == "no end within 0 s"
        task.cancel()


async def test_one_conversations_fault_is_handed_back() -> None:
    """Unwrapped from its task group, for the caller that handles it (P9)."""

    async def fail() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_raise())

    async def _raise() -> None:
        raise LookupError("x")

    async def work() -> None:
        await asyncio.sleep(0)

    error = await contain(fail)
    assert isinstance(error, LookupError)
    assert await contain(work) is None
    assert fault_line(LookupError("secret")) == "a fault in its code (LookupError)"


async def test_a_retry_ends_with_the_group_that_owns_it() -> None:
    """Though the failure of a task group hid its cancellation (before Python 3.13)."""
    clock, tries = ManualClock(), 0

    async def hang() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            raise LookupError("x")

    async def fails_when_told_to_end() -> None:
        async with asyncio.TaskGroup() as inner:
            inner.create_task(hang())

    async def tries_again(group: asyncio.TaskGroup) -> None:
        nonlocal tries
        while True:
            tries += 1
            await contain(fails_when_told_to_end)
            await pause(1, clock=clock, group=group)

    async def gives_up() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        raise CUT

    async def lives() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(tries_again(group))
            group.create_task(gives_up())

    assert await contain(lives) is CUT
    assert tries == 1


async def test_a_pause_is_over_when_its_time_is() -> None:
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(pause(5, clock=clock, group=group))
        await clock.settle()
        assert clock.sleeping() == (5,)
        await clock.advance(5)
        assert waiting.done()
