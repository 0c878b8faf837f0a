"""An answer that people are not shown: what is returned of it, whatever the model writes."""

import asyncio

import pytest

from tests.fakes.loop_steps import loop_steps
from tests.fakes.manual_clock import ManualClock
from tests.fakes.scripted_model import ScriptedModel
from zeroclaw.context.model import MAX_ANSWER_CHARS, Model, ModelRecord, complete
from zeroclaw.message import AssistantMessage, UserMessage
from zeroclaw.provider import Finished, ModelRequest, TextDelta
from zeroclaw.redact import Redactor

SECRET = "horse-battery-staple"
REQUEST = ModelRequest(messages=(UserMessage(content="Sum it up."),))


async def test_the_beginning_of_an_answer_without_end_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To redact, screen and read all of it held every conversation up for seconds (P9)."""
    summariser, start = ScriptedModel(), "key " * (MAX_ANSWER_CHARS // 4 - 3)
    summariser.will((TextDelta(text=f"{start}{SECRET}{'key ' * 100_000}"), Finished(reason="stop")))
    model = Model(
        provider=summariser,
        summariser=summariser,
        redactor=Redactor([SECRET]),
        record=ModelRecord(clock=ManualClock()),
        slots=asyncio.Semaphore(1),
        max_output_tokens=None,
    )
    with loop_steps(monkeypatch) as steps:
        await asyncio.sleep(0)  # whole turns of the loop are counted
        answer, usage = await complete(model, REQUEST)
        await asyncio.sleep(0)
    assert isinstance(answer, AssistantMessage)
    assert answer.content == f"{start}[redacted]ke"
    assert usage.output_tokens > 100_000
    assert steps.taken() <= (200, "")
