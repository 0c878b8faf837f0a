"""An answer that people are not shown: what is returned of it, whatever the model writes."""

import asyncio

import pytest

from tests.fakes.loop_steps import loop_steps
from tests.fakes.manual_clock import ManualClock
from tests.fakes.scripted_model import ScriptedModel
from zeroclaw.context.model import MAX_ANSWER_CHARS, Model, ModelRecord, complete
from zeroclaw.errors import ProviderRejected
from zeroclaw.foreign import Raised
from zeroclaw.message import AssistantMessage, UserMessage
from zeroclaw.provider import Finished, ModelRequest, ReasoningDelta, TextDelta
from zeroclaw.redact import Redactor

SECRET = "horse-battery-staple"
REQUEST = ModelRequest(messages=(UserMessage(content="Sum it up."),))


def model_of(summariser: ScriptedModel) -> Model:
    return Model(
        provider=summariser,
        summariser=summariser,
        redactor=Redactor([SECRET]),
        record=ModelRecord(clock=ManualClock()),
        slots=asyncio.Semaphore(1),
        max_output_tokens=None,
    )


async def test_a_text_that_turns_out_to_be_reasoning_is_not_returned() -> None:
    summariser = ScriptedModel()
    thought = ReasoningDelta(text="hm, rain", takes_back=True)
    texts = TextDelta(text="hm, rain"), thought, TextDelta(text="It rains.")
    summariser.will((*texts, Finished(reason="stop")))
    answer, _ = await complete(model_of(summariser), REQUEST)
    assert answer == AssistantMessage(content="It rains.", finish_reason="stop")


@pytest.mark.parametrize(("texts", "is_charged"), [((TextDelta(text="It"),), True), ((), False)])
async def test_an_answer_that_fails_is_charged_if_it_had_begun(
    texts: tuple[TextDelta, ...], is_charged: bool
) -> None:
    """By estimate, as no usage comes any more; a refused request costs nothing."""
    summariser = ScriptedModel()
    summariser.will((*texts, ProviderRejected("flagged")))
    answer, usage = await complete(model_of(summariser), REQUEST)
    assert isinstance(answer, Raised)
    assert (usage.output_tokens > 0, usage.input_tokens > 0) == (is_charged, is_charged)


async def test_the_beginning_of_an_answer_without_end_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To redact, screen and read all of it held every conversation up for seconds (P9)."""
    summariser, start = ScriptedModel(), "key " * (MAX_ANSWER_CHARS // 4 - 3)
    summariser.will((TextDelta(text=f"{start}{SECRET}{'key ' * 100_000}"), Finished(reason="stop")))
    model = model_of(summariser)
    with loop_steps(monkeypatch) as steps:
        await asyncio.sleep(0)  # whole turns of the loop are counted
        answer, usage = await complete(model, REQUEST)
        await asyncio.sleep(0)
    assert isinstance(answer, AssistantMessage)
    assert answer.content == f"{start}[redacted]ke"
    assert usage.output_tokens > 100_000
    assert steps.taken() <= (200, "")
