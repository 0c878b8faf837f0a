"""A conversation that outgrows the model's window continues, turn after turn, and loses nothing.

The window has 4,096 tokens. The model echoes, calls a tool in every third turn, and writes summaries on
request; the text of turn 3 stays in its summaries.
"""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tests.emulators.model_server import ModelServer
from tests.journeys.bench import Holds, Returns
from tests.journeys.world import World, open_world
from tests.unit.host.test_tokenizer import words
from zeroclaw.context.tokens import of_message, of_text
from zeroclaw.host.clock import SystemClock
from zeroclaw.message import UserMessage
from zeroclaw.store import LogKind, read_all
from zeroclaw.stores.sqlite import open_store
from zeroclaw.turn import entries

pytestmark = pytest.mark.slow

WINDOW = 4_096
FACT = "the gate code is 7431"
OF_A_SUMMARY = '{"'
"""What a request for a summary begins with, and nobody here says."""
FILLING = "and some more words, so that there is something to be kept in mind. " * 6
OFF = {"enabled": False}


@asynccontextmanager
async def small(
    directory: Path, window: int = WINDOW, tokenizer: str = "", busy: str = "queue"
) -> AsyncGenerator[World]:
    """Open a world whose model takes little."""
    tools = dict.fromkeys(("attachments", "fetch", "files", "notes", "shell"), OFF)
    provider = {"context_tokens": window, "tokenizer": tokenizer}
    channels = {"loopback": {"while_busy": busy}}
    async with open_world(directory, provider=provider, tools=tools, channels=channels) as world:
        yield world


async def write_turns(world: World, first: int, last: int) -> None:
    """Say so many things, each when the one before it is answered."""
    for number in range(first, last):
        if number % 3 == 1:
            # Without a limit, since a kill before the answer is recorded repeats the request.
            seen = {"what": f"at {number}: {FILLING}"}
            world.model.call("peek", seen, round=0, key=f"turn {number}:", times=None)
        fact = FACT if number == 3 else "nothing new"
        await world.say("ann", f"turn {number}: {fact}, {FILLING}")
        await world.until(lambda n=number: len(answers(world)) == n)


def answers(world: World) -> list[str]:
    return [text for text in world.chat("ann").answers if not text.startswith("_")]


def count_summaries(world: World) -> int:
    """Return how often a summary was requested."""
    return sum(request.last_user.startswith(OF_A_SUMMARY) for request in world.model.requests)


async def journal(world: World) -> list[entries.Entry]:
    """Read the journal of the one conversation; the daemon has ended."""
    store = await open_store(world.data, clock=SystemClock())
    try:
        (stream,) = await store.streams(LogKind.JOURNAL)
        return [
            entries.decode(entry.body) async for entry in read_all(store, LogKind.JOURNAL, stream)
        ]
    finally:
        await store.aclose()


async def check_journal(world: World, turns: int) -> None:
    """Look at what people, the model and the disk have after so many turns."""
    assert await world.daemon.terminate() == 0
    for request in world.model.requests:
        texts = [str(message.get("content") or "") for message in request.messages]
        assert sum(map(of_text, texts)) <= WINDOW * 3 // 4
    last = world.model.requests[-1]
    assert FACT in str(last.messages[0]["content"])
    journalled = await journal(world)
    openings = [entry for entry in journalled if isinstance(entry, entries.TurnOpened)]
    assert len(openings) == turns
    assert FACT in openings[2].user.content
    ends = [entry for entry in journalled if isinstance(entry, entries.TurnFinished)]
    assert [entry.reason for entry in ends] == ["model_stop"] * turns
    results = [entry for entry in journalled if isinstance(entry, entries.CallFinished)]
    assert len(results) == (turns + 2) // 3


async def test_a_conversation_goes_on_when_the_window_is_full(tmp_path: Path) -> None:
    """Older turns become a summary, which is summed up again; one quiet line says so.

    S0-16, S3-09, S3-10, S3-12, S3-38, S4-06, S4-09, K10, K12.
    """
    async with small(tmp_path) as world:
        world.model.say(f"State: {FACT}.", key=OF_A_SUMMARY, times=None)
        await write_turns(world, 1, 15)
        assert count_summaries(world) >= 2
        notes = [text for text in world.chat("ann").answers if text.startswith("_")]
        assert len(notes) == 1
        assert notes[0].startswith("_This conversation has grown long")
        # The verbatim share is the newest, and smaller than the whole.
        prompt, *messages = world.model.requests[-1].messages
        user_texts = [str(message["content"]) for message in messages if message["role"] == "user"]
        assert user_texts[-1].startswith("turn 14: ")
        assert [message.partition(":")[0] for message in user_texts] == [
            f"turn {number}" for number in range(15 - len(user_texts), 15)
        ]
        assert 1 < len(user_texts) < 14
        rules, _, summary = str(prompt["content"]).partition("[Previous conversation summary: ")
        assert "You talk to `ann`" in rules
        assert summary.startswith(f"State: {FACT}.")
        await check_journal(world, 14)


@pytest.mark.needs("tokenizers")
@pytest.mark.parametrize("is_counted", [True, False])
async def test_a_tokenizer_of_the_operator_fills_the_window(
    tmp_path: Path, is_counted: bool
) -> None:
    """It counts exactly where the estimate is too high, so that no summary comes too early. S0-16, S3-09.

    This tokenizer counts each word as one token, however long.
    """
    async with small(tmp_path, tokenizer=str(words(tmp_path)) if is_counted else "") as world:
        world.model.say("State: they talk.", key=OF_A_SUMMARY, times=None)
        for number in range(1, 9):
            await world.say("ann", f"{number} {'x' * 600}")
            await world.until(lambda n=number: len(answers(world)) == n)
        assert (count_summaries(world) == 0) is is_counted
        await world.say("ann", "/context")
        await world.until(lambda: len(answers(world)) == 9)
        share = int(re.findall(r"(\d+) % of 4,096 tokens", answers(world)[-1])[0])
        texts = [str(message.get("content") or "") for message in world.model.requests[-1].messages]
        assert (share * WINDOW / 100 < sum(map(of_text, texts))) is is_counted


async def test_old_results_become_lines_before_a_summary_is_considered(tmp_path: Path) -> None:
    """At their full size a summary would be due; it comes before tools and answer. S3-08, S3-38."""
    window = 6_784
    async with small(tmp_path, window=window) as world:
        world.model.say("State: they look.", key=OF_A_SUMMARY, times=None)
        seen = Returns(text="old stars, " * 105)
        world.bench.will("peek", seen, seen, seen)
        for number in range(1, 20):
            if number <= 3:
                world.model.call("peek", {"what": "stars"}, round=0, key=f"turn {number}:")
            world.model.say(f"yes {number}", key=f"turn {number}:", round=int(number <= 3))
            await world.say("ann", f"turn {number}: nothing new")
            await world.until(lambda n=number: len(answers(world)) == n)
        assert count_summaries(world) == 0
        last = world.model.requests[-1]
        lines = [str(message["content"]) for message in last.messages if message["role"] == "tool"]
        assert [message.startswith("[an earlier result of `peek`") for message in lines] == [
            True
        ] * 3
        tokens = sum(of_message(_message(message)) for message in last.messages) + 3 * of_text(
            seen.text
        )
        assert tokens > 0.7 * window * 3 / 4, "with them, a summary would have been made"
        # Now it outgrows the window: the request for the summary comes before the turn's own.
        await world.say("ann", f"turn 20: {FILLING * 16}")
        await world.until(lambda: len(answers(world)) == 20)
        *_, summary, question = world.model.requests
        assert summary.last_user.startswith(OF_A_SUMMARY)
        assert "tools" not in summary.body
        assert "State: they look." in str(question.messages[0]["content"])
        assert question.body["tools"] == last.body["tools"]


def _message(sent: Mapping[str, object]) -> UserMessage:
    return UserMessage(content=f"{sent.get('content') or ''}{sent.get('tool_calls') or ''}")


async def test_without_a_summary_a_conversation_goes_on(tmp_path: Path) -> None:
    """Requests leave out what does not fit, one note says so, and the journal keeps it. K13."""
    async with small(tmp_path) as world:
        world.model.refuse(400, "no summaries here", key=OF_A_SUMMARY, times=None)
        await write_turns(world, 1, 13)
        assert count_summaries(world) == 3
        notes = [text for text in world.chat("ann").answers if text.startswith("_")]
        assert len(notes) == 1
        assert notes[0].startswith("_This conversation is longer than the model can read at once")
        assert "turn 1:" not in str(world.model.requests[-1].messages)
        assert await world.daemon.terminate() == 0
        journalled = await journal(world)
        texts = [
            entry.user.content for entry in journalled if isinstance(entry, entries.TurnOpened)
        ]
        assert [entry.partition(":")[0] for entry in texts] == [f"turn {n}" for n in range(1, 13)]
        assert not any(isinstance(entry, entries.Compacted) for entry in journalled)


async def test_every_end_is_shown_and_counted(tmp_path: Path) -> None:
    """An answer, the bound of rounds, a refusal of the model, a stop: each has its usage. S4-19."""
    async with open_world(tmp_path, runtime={"max_iterations": 1}) as world:
        world.model.say("Hello.", key="hello", usage=(10, 1))
        await world.say("ann", "hello")
        await world.expect("ann", "Hello.")
        world.model.call("peek", {"what": "sky"}, key="dig")
        await world.say("ann", "dig")
        await world.until(lambda: len(world.chat("ann").answers) == 2)
        world.model.refuse(400, "not this", key="refuse")
        await world.say("ann", "refuse")
        await world.until(lambda: len(world.chat("ann").answers) == 3)
        gate = world.model.gate()
        world.model.say("So ", gate, "far", key="wait")
        await world.say("ann", "wait")
        await gate.reached()
        await world.say("ann", "/stop")
        await world.until(lambda: len(world.chat("ann").answers) == 4)
        answered = world.chat("ann").answers
        assert "topped after 1 round" in answered[1]
        assert "not this" in answered[2]
        assert await world.daemon.terminate() == 0
        journalled = await journal(world)
        ends = [entry for entry in journalled if isinstance(entry, entries.TurnFinished)]
        *used, stopped = [(entry.reason, entry.usage.total_tokens) for entry in ends]
        assert used == [("model_stop", 11), ("max_turns", 29), ("error", 0)]
        # Of the answer that was cut off an estimate; the prompt and the tools alone take more.
        assert (stopped[0], stopped[1] > 200) == ("user_abort", True)


async def test_three_tenths_of_the_room_stay_as_they_were(tmp_path: Path) -> None:
    """By their size, not by their number: of short messages there are more. S3-10."""
    async with small(tmp_path) as world:
        world.model.say("State: they talk.", key=OF_A_SUMMARY, times=None)
        remaining: dict[str, int] = {}
        for filling in ("and so on " * 30, "and so on "):
            before = count_summaries(world)
            while count_summaries(world) == before:
                count = len(answers(world))
                await world.say("ann", f"{count}: {filling}")
                await world.until(lambda n=count: len(answers(world)) > n)
            contents = [
                str(message.get("content") or "") for message in world.model.requests[-1].messages
            ]
            assert sum(map(of_text, contents[1:])) < 0.3 * WINDOW * 3 / 4
            remaining[filling] = len(contents)
        long, short = remaining.values()
        assert 3 <= long < short


async def test_a_second_endpoint_makes_the_summaries(tmp_path: Path) -> None:
    """It gets no other request, and the answering endpoint gets no summary request. S3-12."""
    async with ModelServer() as second:
        second.say("State: they talk.", key=OF_A_SUMMARY, times=None)
        provider = {"kind": "openai", "base_url": second.url, "model": "cheap"}
        tools = dict.fromkeys(("attachments", "fetch", "files", "notes", "shell"), OFF)
        window = {"context_tokens": WINDOW}
        async with open_world(
            tmp_path, provider=window, tools=tools, compaction={"provider": provider}
        ) as world:
            await write_turns(world, 1, 9)
            assert count_summaries(world) == 0
            requests = [request for request in second.requests if request.messages]
            assert requests
            assert {request.body["model"] for request in requests} == {"cheap"}
            assert all(request.last_user.startswith(OF_A_SUMMARY) for request in requests)
            prompt = str(world.model.requests[-1].messages[0]["content"])
            assert "State: they talk." in prompt


async def test_a_kill_while_a_summary_is_made_costs_a_request(tmp_path: Path) -> None:
    """It is requested again, and no history is lost. S4-16, P1."""
    async with small(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("State: ", gate, f"{FACT}.", key=OF_A_SUMMARY)
        world.model.say(f"State: {FACT}.", key=OF_A_SUMMARY, times=None)
        async with asyncio.TaskGroup() as group:
            talk = group.create_task(write_turns(world, 1, 12))
            await gate.reached()
            await world.daemon.kill()
            assert count_summaries(world) == 1
            await world.daemon.start()
            await talk
        assert count_summaries(world) >= 2
        await check_journal(world, 11)


async def test_a_turn_that_outgrows_the_window_goes_on(tmp_path: Path) -> None:
    """Its own message and its last two rounds stay; the others are summed up in the middle of it.

    S0-16, K11, K12.
    """
    async with small(tmp_path) as world:
        world.model.say("State: digging.", key=OF_A_SUMMARY, times=None)
        for depth in range(9):
            world.model.call("peek", {"what": f"{depth} deep: {FILLING}"}, key="dig ")
        world.model.say("Deep enough.", key="dig ")
        await world.say("ann", "dig until I say so")
        await world.until(lambda: answers(world) == ["Deep enough."])
        assert count_summaries(world) >= 1
        last = world.model.requests[-1].messages
        assert "State: digging." in str(last[0]["content"])
        assert last[1]["content"] == "dig until I say so"
        assert len([message for message in last if message["role"] == "tool"]) in (2, 3)


async def test_where_tools_alone_seem_to_fill_the_window_a_summary_comes_before_a_cut(
    tmp_path: Path,
) -> None:
    """The estimate of the tools exceeds the room; the count that the endpoint reports does not. S3-09, K11."""
    async with open_world(tmp_path, provider={"context_tokens": WINDOW}) as world:
        world.model.say(f"State: {FACT}.", key=OF_A_SUMMARY, times=None)
        for number in range(1, 13):
            usage = (1_800 + 150 * number, 20)
            world.model.say(f"Answer {number}.", key=f"turn {number}:", usage=usage)
            await world.say("ann", f"turn {number}: {FILLING}")
            await world.until(lambda n=number: f"Answer {n}." in world.chat("ann").answers)
        notes = [text for text in world.chat("ann").answers if text.startswith("_")]
        assert [text.partition(":")[0] for text in notes] == ["_This conversation has grown long"]


async def test_a_long_message_that_steers_a_turn_leads_to_a_summary_first(tmp_path: Path) -> None:
    """It joins behind a batch, and is weighed with it. K11."""
    async with small(tmp_path, busy="steer") as world:
        world.model.say(f"State: {FACT}.", key=OF_A_SUMMARY, times=None)
        for number in (1, 2):
            await world.say("ann", f"{number}: {FILLING}")
            await world.until(lambda n=number: len(answers(world)) == n)
        hold = Holds()
        world.bench.will("peek", hold)
        world.model.call("peek", {"what": "the sky"}, round=0, key="look up")
        await world.say("ann", "look up")
        await world.until(lambda: world.bench.runs)
        steering = await world.say("ann", f"the sea too: {FILLING * 6}")
        await world.platform.confirmed(steering)
        hold.release()
        await world.until(lambda: answers(world)[-1].startswith("the sea too"))
        notes = [text for text in world.chat("ann").answers if text.startswith("_")]
        assert [text.partition(":")[0] for text in notes] == ["_This conversation has grown long"]


@pytest.mark.parametrize(
    "sizes", [pytest.param((80,), id="one large call"), pytest.param((6,) * 20, id="twenty calls")]
)
async def test_calls_that_outgrow_the_window_end_no_turn(
    tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    """Their arguments are shortened, and the last calls stay complete. S0-16."""
    async with small(tmp_path) as world:
        calls = [("peek", {"what": f"{at}: {FILLING * size}"}) for at, size in enumerate(sizes)]
        world.model.calls(*calls, key="look")
        world.model.say("Seen.", key="look")
        await world.say("ann", "look around")
        await world.until(lambda: answers(world) == ["Seen."])
        _, request = world.model.requests
        assert of_text(msgspec.json.encode(request.messages).decode()) <= WINDOW * 3 // 4
        assert "characters left out for lack of room" in str(request.messages[2]["tool_calls"])


async def test_a_refusal_for_its_length_costs_a_summary_and_one_more_request(
    tmp_path: Path,
) -> None:
    """The endpoint serves less than the configuration says; the person reads an answer. K11."""
    async with small(tmp_path, window=4 * WINDOW) as world:
        world.model.say(f"State: {FACT}.", key=OF_A_SUMMARY)
        await write_turns(world, 1, 3)
        before = len(world.model.requests)
        too_long = "This model's maximum context length is 4096 tokens."
        world.model.refuse(400, too_long, key="turn 3:")
        await write_turns(world, 3, 4)
        refused, summary, again = world.model.requests[before:]
        assert summary.last_user.startswith(OF_A_SUMMARY)
        assert refused.last_user == again.last_user
        assert len(again.messages) < len(refused.messages)
        await check_journal(world, 3)


@pytest.mark.long("says a thousand things, and kills the daemon between and within them")
@pytest.mark.timeout(1_200)
async def test_a_thousand_turns_end_well(tmp_path: Path) -> None:
    """The last turn knows the text of turn 3, and the disk holds every turn. S4-16, P1."""
    turns, chance = 1_000, random.Random(7)
    async with small(tmp_path) as world:
        world.model.say(f"State: {FACT}.", key=OF_A_SUMMARY, times=None)
        done = 0
        while done < turns:
            chunk = min(chance.randrange(20, 120), turns - done)
            async with asyncio.TaskGroup() as group:
                talk = group.create_task(write_turns(world, done + 1, done + chunk + 1))
                killed_at = done + chance.randrange(chunk)
                await world.until(lambda n=killed_at: len(answers(world)) >= n)
                await world.daemon.kill()
                await world.daemon.start()
                await talk
            done += chunk
        assert count_summaries(world) > 50
        await check_journal(world, turns)


@pytest.mark.needs("llama", "model")
@pytest.mark.long("has a small model answer thirty times")
@pytest.mark.timeout(2_400)
@pytest.mark.parametrize(
    ("settings", "window"),
    [
        pytest.param({}, 4_096, id="as much of its window as is usual"),
        # No more than it was trained on, which its file says.
        pytest.param({"context_tokens": 100_000}, 8_192, id="all of it"),
    ],
)
async def test_thirty_turns_with_a_model_on_this_machine_end_well(
    tmp_path: Path, small_model: Path, settings: Mapping[str, int], window: int
) -> None:
    """Longer than the window that it has, and within it by its own count. S0-16, S3-09."""
    turns = 30
    small = {"kind": "local", "model_file": str(small_model), "max_output_tokens": 40}
    provider = {**small, "stall_s": 600, **settings}
    tools = dict.fromkeys(("attachments", "fetch", "files", "notes", "shell"), OFF)
    async with open_world(tmp_path, provider=provider, tools=tools) as world:
        world.platform.patience_s = 900
        for number in range(1, turns + 1):
            await world.say("ann", f"Question {number}. {FILLING * 2}What do you say?")
            await world.until(lambda n=number: len(answers(world)) == n)
        await world.say("ann", "/context")
        await world.until(lambda: len(answers(world)) == turns + 1)
        assert f"of {window:,} tokens" in answers(world)[-1]
        assert await world.daemon.terminate() == 0
        summaries, paid, input_tokens = 0, 0, list[int]()
        for entry in await journal(world):
            if isinstance(entry, entries.Compacted):
                summaries, paid = summaries + 1, entry.usage.input_tokens
                assert entry.usage.input_tokens <= window * 3 // 4
            elif isinstance(entry, entries.TurnFinished):
                assert entry.reason == "model_stop"
                input_tokens.append(entry.usage.input_tokens - paid)
                paid = 0
        assert len(input_tokens) == turns
        assert summaries > 0
        assert max(input_tokens) <= window * 3 // 4, "no request was larger than was estimated"
