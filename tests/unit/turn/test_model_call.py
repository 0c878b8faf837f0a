"""One request to the model, and what each way of failing means to a person."""

import asyncio

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import SECRET
from tests.fakes.scripted_model import LOOK, asks_for, says
from zeroclaw.config.model import RuntimeSettings
from zeroclaw.errors import (
    ContextOverflow,
    ProviderOverloaded,
    ProviderRejected,
    ProviderUnauthorized,
    ProviderUnreachable,
    ProviderUnusable,
    StreamBroken,
)
from zeroclaw.message import AssistantMessage, Usage
from zeroclaw.provider import ProviderFacts, ReasoningDelta, TextDelta
from zeroclaw.store import RowKind
from zeroclaw.text.catalogue import MODEL_FAILED_HERE
from zeroclaw.turn.entries import TurnFinished


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (
            ProviderOverloaded("busy", retry_after_s=1.0),
            "_The model is busy and did not answer; send `/retry` in a while._",
        ),
        (
            ProviderUnauthorized("401"),
            "_The model refused the key; an operator has to check `[provider] api_key`._",
        ),
        (
            ProviderUnreachable("`h:9` can't be reached: connection refused"),
            "_The model can't answer: `h:9` can't be reached: connection refused._",
        ),
        (ProviderRejected("no such model"), "_The model can't answer: no such model._"),
        (ProviderUnusable("no file"), "_The model can't answer: no file._"),
        (
            RuntimeError(SECRET),
            "_The model can't answer: a fault in its provider (raised RuntimeError)._",
        ),
    ],
)
async def test_a_model_failure_is_shown_in_a_sentence(
    world: World, error: Exception, note: str
) -> None:
    """The conversation stays usable (P10)."""
    async with world.told("hello", (error,)) as house:
        assert house.texts() == [note]
        assert await house.states() == ["failed"]
        await house.say("again")
        assert house.texts()[-1] == "ok"


async def test_only_operators_read_what_this_machine_lacks(world: World) -> None:
    """A path reveals who runs the bot, and where; its users need not know (P8, P10)."""
    world.model.will((ProviderUnusable("no model at `/srv/models/m.gguf`"),))
    async with world.told("hello", by="ben") as house:
        note = MODEL_FAILED_HERE.to("en")
        assert house.texts("ben") == [f"_{note[:1].upper()}{note[1:]}._"]
        assert house.texts() == [
            "An answer to Ben in `chat` failed: the model can't answer: no model at "
            "`/srv/models/m.gguf`."
        ]


async def test_others_read_that_the_model_is_away_and_operators_why(world: World) -> None:
    """Nothing was busy, and where the model runs is nothing for strangers (P8, P10)."""
    world.model.will((ProviderUnreachable("`h:9` can't be reached: connection refused"),))
    async with world.told("hello", by="ben") as house:
        assert house.texts("ben") == [
            "_The model can't be reached, and the operators are told why; send `/retry` in a while._"
        ]
        assert house.texts() == [
            "An answer to Ben in `chat` failed: the model can't answer: `h:9` can't be reached: "
            "connection refused."
        ]


async def test_failures_in_a_row_are_counted_until_an_answer_comes(world: World) -> None:
    """For `zeroclaw doctor`; a conversation that is too long is no failure of the model (P10)."""
    away = (ProviderUnreachable("`h:9` can't be reached"),)
    too_long = (ContextOverflow("too long"),)
    # The request, the summary that is asked for, with half of what it was made of, and once more.
    world.model.will(away, away, *([too_long] * 4), says("back"))
    async with world.running() as house:
        for _ in range(3):
            await house.say("hello", "ben")
        record = house.services.model_record
        assert (record.failures, record.at, record.reason) == (
            2,
            house.world.clock.now(),
            "`h:9` can't be reached",
        )
        await house.say("hello")
        assert (record.failures, record.at, record.reason) == (0, None, "")


async def test_that_an_answer_broke_off_is_logged_and_counts_for_no_failure(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The person is asked to try again; only the log can tell operators what the server did (P10)."""
    world.model.will((StreamBroken("`h:9` sent nothing for 60 s"),), says("better"))
    async with world.told("hello") as house:
        assert "answer_interrupted" in caplog.messages
        assert house.services.model_record.failures == 0


async def test_a_turn_can_be_followed_through_the_log_by_its_id(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The log alone shows the way of one message among others (P10)."""
    caplog.set_level("INFO", logger="zeroclaw.turn")
    broken = (StreamBroken("`h:9` sent nothing for 60 s"),)
    world.model.will((ProviderUnreachable("`h:9` can't be reached"),), broken, broken)
    async with world.told("hello") as house:
        conversation = (await house.rows(RowKind.TURN))[0].conversation
        await house.say("hello", "ben")
    logged = [(record.msg, vars(record)["zeroclaw_fields"]) for record in caplog.records]
    of_ada = [(event, fields) for event, fields in logged if fields["conversation"] == conversation]
    turn = of_ada[0][1]["turn"]
    assert of_ada == [
        ("turn_started", {"turn": turn, "conversation": conversation, "channel": "chat"}),
        (
            "model_failed",
            {"turn": turn, "conversation": conversation, "reason": "`h:9` can't be reached"},
        ),
        ("turn_finished", {"turn": turn, "conversation": conversation, "reason": "error"}),
    ]
    assert len({fields["turn"] for _, fields in logged}) == 2
    assert "answer_interrupted" in caplog.messages


async def test_why_an_answer_off_the_record_broke_off_is_not_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A server's error may repeat the conversation (K23)."""
    async with world.told("/otr on") as house:
        world.model.will((StreamBroken("`psst` is not allowed"),), says("better"))
        await house.say("psst")
    logged = [vars(record) for record in caplog.records if record.msg == "answer_interrupted"]
    assert len(logged) == 1
    assert "psst" not in str(logged)


async def test_a_message_that_is_too_long_says_so(world: World) -> None:
    """Nothing is dropped silently, and the request is made twice (K11)."""
    world.model.will((ContextOverflow("too long"),), (ContextOverflow("too long"),))
    async with world.told("hello") as house:
        assert house.texts() == [
            "_This is more than the model can read at once; send less of it, or in parts._"
        ]


async def test_a_forgery_that_only_its_rendering_shows_is_masked_wherever_it_is_read(
    world: World,
) -> None:
    """In the chat, and in what the page and the operator read back (P7)."""
    async with world.running() as house:
        world.model.will(says("I looked: zc-**re**ceipt-1700000000-abc."))
        await house.say("prove it")
        assert house.texts()[-1] == "I looked: ⚠️ false receipt."
        [*_, item] = await house.transcript()
        shown = (item.text, item.plain, item.receipts)
        assert shown == ("I looked: ⚠️ false receipt.", True, ())


async def test_thoughts_that_were_taken_for_the_answer_are_no_part_of_it(world: World) -> None:
    """The screen shows them until the model says that they end; history and chat do not keep them."""
    thought = "Okay, a [receipt: zc-"
    taken_back = ReasoningDelta(text=thought, takes_back=True)
    world.model.will((TextDelta(text=thought), taken_back, *says("An animal.")))
    async with world.told("what is a lobster?") as house:
        await house.say("and then?")
        assert house.texts() == ["An animal.", "ok"]
    answers = [
        message
        for message in world.model.requests[-1].messages
        if isinstance(message, AssistantMessage)
    ]
    assert [answer.content for answer in answers] == ["An animal."]


async def test_thoughts_within_an_answer_take_nothing_of_it_back(world: World) -> None:
    """They stay with it for the provider, which may ask for them again."""
    thought = ReasoningDelta(text="hm", details=("{}",))
    world.model.will((TextDelta(text="An "), thought, *asks_for(("look", "{}"), saying="animal.")))
    async with world.running() as house:
        await house.say("what is a lobster?")
    [answer] = [
        message
        for message in world.model.requests[-1].messages
        if isinstance(message, AssistantMessage)
    ]
    assert answer.content == "An animal."
    assert (answer.reasoning, answer.reasoning_details) == ("hm", ("{}",))


async def test_thoughts_before_a_stop_are_no_answer(world: World) -> None:
    """Neither in the chat nor in the history (P6)."""
    taken_back = ReasoningDelta(text="Okay, a lobster.", takes_back=True)
    world.model.will((TextDelta(text="Okay, a lobster."), taken_back, asyncio.Event()))
    async with world.told("what is a lobster?") as house:
        await house.say("/stop")
        assert "Okay" not in house.texts()[0]
        await house.say("and then?")
    assert "Okay" not in "".join(message.content for message in world.model.requests[-1].messages)


async def test_usage_of_all_requests_adds_up(world: World) -> None:
    """The turn's end has the whole (S4-17)."""
    async with world.told("look", (*LOOK[:-1], *says()[:1], LOOK[-1]), says("done")) as house:
        last = (await house.journal())[-1]
        assert isinstance(last, TurnFinished)
        assert last.usage == Usage(input_tokens=20, output_tokens=4)


async def test_the_model_gets_the_tools_and_the_operators_words(world: World) -> None:
    """Unless it can't call tools (S0-15, S2-05)."""
    world.configure(runtime=RuntimeSettings(prompt="Be brief."))
    async with world.told("hello") as house:
        request = world.model.requests[0]
        assert [tool.name for tool in request.tools] == ["look", "poke", "burn"]
        assert request.messages[0].content.endswith("\n\nBe brief.")
        world.model.facts = ProviderFacts(model="small", calls_tools=False)
        await house.say("hello")
        assert world.model.requests[1].tools == ()


async def test_the_model_serves_so_many_at_once(world: World) -> None:
    """First come, first served; the others wait (P2)."""
    world.configure(runtime=RuntimeSettings(model_concurrency=1))
    held = asyncio.Event()
    async with world.told("one", (held, *says("to ada")), says("to ben")) as house:
        await house.say("two", "ben")
        assert len(world.model.requests) == 1
        held.set()
        await house.settle()
        assert house.texts("ben") == ["to ben"]


async def test_a_model_that_is_stopped_in_its_batch_leaves_a_whole_history(world: World) -> None:
    """Every call of it gets a result, gated or not (S1-17, K24)."""
    held = asyncio.Event()
    world.look.resolving = held
    async with world.told("look", asks_for(("look", "{}"), ("look", "{}"))) as house:
        await house.say("/stop")
        await house.say("and now")
        lines = world.model.asked()
        assert [line.partition(":")[0] for line in lines] == [
            "user",
            "assistant",
            "tool",
            "tool",
            "user",
        ]
        assert await house.audited() == []


async def test_a_secret_in_the_operators_own_prompt_reaches_no_model(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Their words are left out whole, which the log says without a word of them (P8, S0-19)."""
    runtime = world.config.runtime.model_copy(update={"prompt": f"Be brief. Key: {SECRET}."})
    world.configure(runtime=runtime)
    async with world.told("hello"):
        sent = world.model.requests[0].messages[0].content
        assert "Be brief" not in sent
        assert SECRET not in sent
        assert "context_left_out" in caplog.messages
        assert SECRET not in caplog.text
