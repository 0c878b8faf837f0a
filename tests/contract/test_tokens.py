"""What is counted without a tokenizer, against the model's own count of a whole request."""

from contextlib import aclosing
from pathlib import Path

import pytest

from tests.contract.provider_implementations import local_provider, played
from tests.unit.context.samples import TEXTS
from zeroclaw.context.tokens import Learned, Weighed, of_request, report, weighed
from zeroclaw.message import AssistantMessage, Message, SystemMessage, UserMessage
from zeroclaw.provider import ModelRequest, UsageReported
from zeroclaw.value import replace


@pytest.mark.slow
@pytest.mark.long("reads two thousand tokens on a small machine")
@pytest.mark.needs("llama", "model")
@pytest.mark.timeout(300)
async def test_a_request_takes_no_more_than_was_estimated(small_model: Path) -> None:
    """In many languages, with what the chat template adds; and the next estimate is close. S0-16."""
    said = ("English", "German", "Chinese", "code", "Russian")
    messages: tuple[Message, ...] = (
        SystemMessage(content="You are brief."),
        *(
            one
            for name in said
            for one in (UserMessage(content=TEXTS[name]), AssistantMessage(content="Yes."))
        ),
        UserMessage(content="Well?"),
    )
    provider = local_provider(small_model)
    known = weighed(Weighed(), messages)
    estimate = of_request(known, Learned(), messages, 0)
    async with aclosing(provider):
        request = ModelRequest(messages=messages, max_output_tokens=1)
        events = await played(provider, request)
        (told,) = [one.usage for one in events if isinstance(one, UsageReported)]
        assert told.input_tokens <= estimate <= 2 * told.input_tokens
        known, learned = report(known, Learned(), messages, 0, told.input_tokens)
        longer = (*messages, AssistantMessage(content="No."), UserMessage(content=TEXTS["hex"]))
        known = weighed(known, longer)
        close = of_request(known, learned, longer, 0)
        events = await played(provider, replace(request, messages=longer))
        (told,) = [one.usage for one in events if isinstance(one, UsageReported)]
        assert told.input_tokens <= close <= 1.3 * told.input_tokens
