"""The slash commands, the same on every channel."""

import asyncio
import re
from datetime import date

import msgspec
import pytest

from tests.fakes.house import House, World
from tests.fakes.manual_clock import EPOCH
from tests.fakes.memory_store import put_a_page_before
from tests.fakes.scripted_model import POKE, Answer, says
from zeroclaw.config.model import BudgetSettings, PriceSettings, ProviderSettings
from zeroclaw.conversation.inbox import INBOX, item_put
from zeroclaw.envelope import Principal
from zeroclaw.errors import StreamBroken
from zeroclaw.gate.policy import Statement
from zeroclaw.gate.shipped import assemble
from zeroclaw.host.answers import UsageReport, Used
from zeroclaw.inbound.commands.registry import COMMANDS, menu_of
from zeroclaw.limits.usage import MAX_DAYS, first_day
from zeroclaw.message import Usage
from zeroclaw.provider import Finished, TextDelta, UsageReported
from zeroclaw.store import PAGE, RowKind


async def test_help_lists_every_command(world: World) -> None:
    """Each with what it does (P10)."""
    async with world.told("/help") as house:
        [text] = house.texts()
        assert text.splitlines()[0] == "- `/help`: this list"
        assert len(text.splitlines()) == len(COMMANDS)


@pytest.mark.parametrize("command", ["/halt", "/resume", "/tool look {}"])
async def test_what_only_operators_may_is_refused_with_a_reason(world: World, command: str) -> None:
    """One line that says why, and nothing happens (P10)."""
    async with world.told(command, by="ben") as house:
        [text] = house.texts("ben")
        assert text.startswith(f"`{command.split(maxsplit=1)[0]}` is not for you: ")
        assert house.services.policy.halted_by == ""
        assert world.look.runs == []


async def test_status_tells_how_the_daemon_is(world: World) -> None:
    """Model, channels, what waits, disk; a halt and who made it."""
    async with world.told("/tool poke {}") as house:
        await house.say("/status")
        lines = house.texts()[-1].splitlines()
        assert lines[0] == "- zeroclaw 1, model scripted"
        assert lines[1] == "- channels: `chat` up"
        assert lines[2:4] == [
            "- messages: 0 waiting here, 0 waiting in all chats, 1 being answered",
            "- approvals: 1 waiting",
        ]
        await house.say("/halt")
        await house.say("/status")
        assert "- halted by Ada; `/resume` goes on" in house.texts()[-1]


async def test_status_counts_all_that_waits(world: World) -> None:
    """A page is not the end of the count; what waits for `/resume` is not being answered."""
    async with world.told("/halt") as house:
        await house.say("one")
        row = (await house.rows(RowKind.INBOX, "queued"))[0]
        await put_a_page_before(world.store, item_put(INBOX.of(row), "queued"))
        await house.say("/status")
        count = PAGE + 1
        waits = f"- messages: {count} waiting here, {count} waiting in all chats, 0 being answered"
        assert waits in house.texts()[-1]


async def test_status_shows_why_a_channel_is_not_up(world: World) -> None:
    """A failed channel is seen from another one."""
    async with world.running() as house:
        house.services.supervisor._note("chat", "waiting", "cut off")  # pyright: ignore[reportPrivateUsage]
        await house.say("/status")
        assert "`chat` waiting (cut off)" in house.texts()[-1]
        report = await house.ask("status")
        assert report["channels"] == {
            "chat": {"condition": "waiting", "since": "2026-01-01T12:00:00Z", "why": "cut off"}
        }


# --- /new ----------------------------------------------------------------------------------------


async def test_new_as_the_first_word_makes_one_conversation(world: World) -> None:
    """There is no old one to end."""
    async with world.told("/new") as house:
        await house.say("one")
        assert world.model.asked() == ["user: one"]
        assert await house.states() == ["answered"]


@pytest.mark.parametrize("command", ["/new", "/otr", "/stop", "/retry", "/compact"])
async def test_words_behind_a_command_that_takes_none_are_not_lost_in_silence(
    world: World, command: str
) -> None:
    """Their writer is asked to send them again; the model does not answer them (P1)."""
    async with world.told(f"{command} and then tell me a story") as house:
        note = "I used only the command: send the text after it as a message of its own."
        assert len([text for text in house.texts() if text.endswith(note)]) == 1
        await house.say(f"{command} ")
        assert len([text for text in house.texts() if text.endswith(note)]) == 1
        assert world.model.requests == []


async def test_new_leaves_another_persons_turn_running(world: World) -> None:
    """Without the right to stop it, a new conversation waits for it, and says so (P2, S4-20)."""
    held = asyncio.Event()
    world.model.will((held, *says("to ben")), says("to cleo"))
    async with world.told("one", by="ben", room="lobby") as house:
        await house.say("/new", "cleo", room="lobby")
        await house.say("two", "cleo", room="lobby")
        assert sorted(house.texts(room="lobby")) == [
            "A new conversation; the old one is kept.",
            "The answer to Ben is finished first; Ben or an operator may stop it.",
        ]
        held.set()
        await house.settle()
        assert house.texts(room="lobby")[-2:] == ["to ben", "to cleo"]
        assert world.model.asked() == ["user: chat:cleo: two"]
        assert await house.states() == ["answered", "answered", "answered"]


@pytest.mark.parametrize("who", ["ben", "ada"])
async def test_new_of_who_may_stop_the_turn_ends_it(world: World, who: str) -> None:
    """Its own person, and an operator (S4-20)."""
    async with world.told("one", (asyncio.Event(),), by="ben", room="lobby") as house:
        await house.say("/new", who, room="lobby")
        note = f"_Stopped: a new conversation was begun by {who.title()}._"
        assert note in house.texts(room="lobby")


async def test_a_turn_that_new_left_running_can_still_be_stopped(world: World) -> None:
    """However many conversations were begun since; `/stop` means what runs (S4-20)."""
    async with world.told("one", (asyncio.Event(),), by="ben", room="lobby") as house:
        await house.say("/new", "cleo", room="lobby")
        await house.say("/new", "cleo", room="lobby")
        await house.say("two", "cleo", room="lobby")
        await house.say("/stop", "cleo", room="lobby")
        assert house.texts(room="lobby")[-1] == "Only Ben or an operator may stop this."
        await house.say("/stop", "ben", room="lobby")
        assert house.texts(room="lobby")[-2:] == ["_Stopped by Ben._", "ok"]
        await house.say("/stop", "ben", room="lobby")
        assert house.texts(room="lobby")[-1] == "Nothing is running."


# --- /halt and /resume ---------------------------------------------------------------------------


async def test_a_turn_found_at_a_start_is_ended_by_the_halt(world: World) -> None:
    """Whatever it waited for; its question ends with it (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
    await world.halt("Ada")
    async with world.running() as house:
        assert await house.states() == ["stopped"]
        assert house.endings() == [("stopped", "Ada")]
        assert await house.audited() == ["proposed", "evaluated", "cancelled"]


async def test_where_nothing_is_halted_nothing_goes_on(world: World) -> None:
    """A command without effect does not claim one (P10)."""
    async with world.told("/resume") as house:
        await house.say("/halt")
        await house.say("/resume")
        await house.say("/resume")
        assert [text.partition(":")[0] for text in house.texts()] == [
            "Nothing is halted.",
            "Halted",
            "Resumed",
            "Nothing is halted.",
        ]
        assert (await house.ask("resume"))["before"] is False


async def test_the_control_lane_is_served_during_a_halt(world: World) -> None:
    """A `/stop` is answered although nothing starts."""
    async with world.told("one") as house:
        await house.say("/halt")
        await house.say("/stop")
        assert house.texts()[-1] == "Nothing is running."


# --- /retry and /tool ----------------------------------------------------------------------------


async def test_retry_asks_again_what_failed(world: World) -> None:
    """From the user message of the newest failed or stopped turn; it takes its place in line."""
    world.model.will((StreamBroken("cut"),), (StreamBroken("cut"),), says("better"))
    async with world.told("one") as house:
        assert house.texts() == [
            "_The model's answer broke off or was empty twice; send `/retry` to ask again._"
        ]
        await house.say("/retry")
        assert house.texts()[-1] == "better"
        assert world.model.asked()[-1] == "user: one"
        assert await house.states() == ["failed", "answered"]
        await house.say("/retry")
        assert house.texts()[-1].startswith("There is nothing to retry")


async def test_retry_without_a_failure_says_so(world: World) -> None:
    """No approval is requested (P10)."""
    async with world.told("/retry") as house:
        assert house.texts() == [
            "There is nothing to retry: no message of this conversation failed or was stopped."
        ]
        assert await house.states() == ["answered"]


async def test_tool_without_a_name_shows_how_it_is_written(world: World) -> None:
    """And without arguments it is called with none (P10)."""
    async with world.told("/tool") as house:
        assert house.texts() == ['Name the tool: `/tool shell {"command": "ls"}`']
        await house.say("/tool look")
        assert world.look.runs == [{}]


async def test_a_tool_call_of_a_person_is_gated_like_any_other(world: World) -> None:
    """An operator's own risky call asks, too (P3)."""
    async with world.told("/tool poke {}") as house:
        assert world.poke.runs == []
        assert await house.press() == "approved: `poke`"
        assert world.poke.runs == [{}]


async def test_a_tool_that_failed_is_tried_again(world: World) -> None:
    """`/retry` of a stopped `/tool` makes the same call, through the gate again."""
    async with world.told('/tool poke {"a": 1}') as house:
        await house.say("/stop")
        await house.say("/retry")
        await house.press()
        assert world.poke.runs == [{"a": 1}]


async def test_a_retry_makes_no_tool_call_that_its_person_may_not_make(world: World) -> None:
    """Another person's `/tool` runs again only for a person who may use `/tool` (P3)."""
    async with world.told('/tool poke {"a": 1}', room="lobby") as house:
        await house.say("/stop", room="lobby")
        await house.say("/retry", "ben", room="lobby")
        assert house.texts(room="lobby")[-1].startswith(
            "What would be retried is a `/tool` call, and `/tool` is not for you: "
        )
        assert await house.states() == ["stopped", "answered", "answered"]
        assert len(await house.rows(RowKind.APPROVAL)) == 1
        await house.say("/retry", room="lobby")
        await house.press()
        assert world.poke.runs == [{"a": 1}]


# --- menus ----------------------------------------------------------------------------------------

SEATS = (
    Principal(id="person:ada", roles=frozenset(), channel="chat", sender="7"),
    Principal(id="person:ada", roles=frozenset(), channel="other", sender="8"),
    Principal(id="person:bo", roles=frozenset(), channel="chat", sender="7"),
)
DENY_FORGET = Statement(
    id="no-forget", effect="deny", principals=("anyone",), actions=("command:forget",)
)


def test_everybody_sees_what_everybody_may_use_and_operators_see_all() -> None:
    """In the order of `/help`, each operator of the channel once."""
    menu = menu_of("chat", assemble("supervised"), SEATS, EPOCH)
    assert [command.name for command in menu.operators] == list(COMMANDS)
    everyones = [command.name for command in menu.everyone]
    assert set(COMMANDS) - set(everyones) == {"tool", "halt", "resume", "pair"}
    assert menu.operator_senders == ("7",)


def test_a_command_that_a_statement_denies_is_not_listed() -> None:
    menu = menu_of("chat", assemble("supervised", (DENY_FORGET,)), (), EPOCH)
    assert "forget" not in {command.name for command in (*menu.everyone, *menu.operators)}


def test_a_command_is_described_in_each_language_without_markup() -> None:
    menu = menu_of("chat", assemble("full"), (), EPOCH)
    [queue] = [command for command in menu.everyone if command.name == "queue"]
    assert (
        queue.does["en"] == "what happens to messages that come while I answer; /queue explains it"
    )
    assert all(set(command.does) == {"en", "de"} for command in menu.operators)
    assert set(menu.ask) == set(menu.typed) == {"en", "de"}
    # Bot API, setMyCommands and BotCommand; Discord, Application Command Structure; read 2026-11.
    assert len(menu.operators) < 100
    assert all(re.fullmatch("[a-z0-9_]{1,32}", command.name) for command in menu.operators)
    described = [menu.ask, menu.typed, *(command.does for command in menu.operators)]
    assert all(0 < len(text) <= 100 for does in described for text in does.values())


# --- `/usage` -------------------------------------------------------------------------------------

BEN = "ben"
DAY_S = 86_400.0


def uses(tokens: int, output: int, cached: int = 0) -> Answer:
    """An answer of so many tokens."""
    usage = Usage(input_tokens=tokens, output_tokens=output, cached_tokens=cached)
    return (TextDelta(text="so"), UsageReported(usage=usage), Finished(reason="stop"))


async def usage_for(house: House, who: str = "ada", *, room: str = "") -> str:
    await house.say("/usage", who, room=room)
    return house.texts(who, room=room)[-1]


async def test_each_sees_their_own_and_an_operator_all(world: World) -> None:
    """In private; in a group others read along."""
    prices = {"scripted": PriceSettings(input=10, output=100, cached=1)}
    world.configure(budget=BudgetSettings(prices=prices))
    world.model.will(uses(1_000, 10, 200), uses(490, 10), uses(40, 10))
    async with world.told("one", by=BEN) as house:
        await house.advance(DAY_S)
        await house.say("two", BEN)
        await house.say("three")
        ben = "you: today 500 tokens for $0.0059; in 30 days 1,510 tokens for $0.0151"
        assert await usage_for(house, BEN) == f"- {ben}"
        mine = "- you: today 50 tokens for $0.0014; in 30 days 50 tokens for $0.0014"
        assert (await usage_for(house)).splitlines() == [
            mine,
            "- everybody: today 550 tokens for $0.0073; in 30 days 1,560 tokens for $0.0165",
            "  - ben: 1,510 tokens for $0.0151",
            "  - ada: 50 tokens for $0.0014",
        ]
        assert await usage_for(house, room="hall") == mine


async def test_usage_shows_how_far_the_budgets_are(world: World) -> None:
    """A share to whose it is, the day's to operators."""
    world.configure(budget=BudgetSettings(day_tokens=1_000, person_day_tokens=400))
    async with world.told("one", uses(90, 10), by=BEN) as house:
        assert (await usage_for(house, BEN)).splitlines()[1:] == [
            "- 25 % of your daily budget, 400 tokens, is used"
        ]
        lines = (await usage_for(house)).splitlines()
        assert lines[1] == "- 0 % of your daily budget, 400 tokens, is used"
        assert lines[-1].startswith("- 10 % of what may be used in a day, 1,000 tokens, is used")


async def test_tokens_without_a_price_are_named(world: World) -> None:
    """Rather than shown as if it were free."""
    provider = ProviderSettings(kind="openai", base_url="https://x.example/v1", model="m")
    world.configure(provider=provider)
    async with world.told("one", uses(90, 10), by=BEN) as house:
        amount = "100 tokens for $0.00 (no price is known for 100 tokens)"
        assert await usage_for(house, BEN) == f"- you: today {amount}; in 30 days {amount}"


async def test_the_control_socket_lists_it_by_day_person_and_model(world: World) -> None:
    """As far back as requested."""
    async with world.told("one", uses(100, 5), uses(50, 1), uses(7, 1), by=BEN) as house:
        await house.advance(DAY_S)
        await house.say("two", BEN)
        await house.say("three", BEN)
        await house.say("/tool look {}")
        used = msgspec.convert(await house.ask("usage", days=2), UsageReport).used
        assert used == (
            Used(
                day="2026-01-01",
                person="ben",
                model="scripted",
                turns=1,
                input_tokens=100,
                output_tokens=5,
            ),
            Used(
                day="2026-01-02",
                person="ben",
                model="scripted",
                turns=2,
                input_tokens=57,
                output_tokens=2,
            ),
        )
        today = msgspec.convert(await house.ask("usage"), UsageReport).used
        assert today == used[1:]


def test_days_are_bounded(world: World) -> None:
    """Nobody asks for the time before there was one."""
    now = world.clock.now()
    assert [first_day(now, days) for days in (-5, 0, 1, 2)] == [
        date(2026, 1, 1), date(2026, 1, 1), date(2026, 1, 1), date(2025, 12, 31)
    ]  # fmt: skip
    assert first_day(now, 10**9) == first_day(now, MAX_DAYS)
