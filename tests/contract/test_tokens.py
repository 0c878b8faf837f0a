"""Counted and estimated tokens, against the model's own count of a whole request."""

import json
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.contract.provider_implementations import local_provider, over, played
from tests.unit.context.samples import COUNTED, TEXTS, VOCABULARIES
from tests.unit.providers.contexts import context
from zeroclaw.context.tokens import (
    Scale,
    TokenCache,
    of_request,
    report,
    uncounted_texts,
    weigh,
    with_counts,
)
from zeroclaw.host.http import HttpClient, HttpRequest, http_client
from zeroclaw.message import AssistantMessage, Message, SystemMessage, UserMessage
from zeroclaw.provider import Endpoint, ModelRequest, Provider, ProviderFacts, UsageReported
from zeroclaw.providers.local.provider import LocalProvider, LocalRules
from zeroclaw.value import replace


@pytest.mark.slow
@pytest.mark.long("reads two thousand tokens on a small machine")
@pytest.mark.needs("llama", "model")
@pytest.mark.timeout(300)
async def test_a_request_takes_no_more_than_was_estimated(small_model: Path) -> None:
    """In many languages, with the chat template's tokens; and the next estimate is close. S0-16."""
    languages = ("English", "German", "Chinese", "code", "Russian")
    messages: tuple[Message, ...] = (
        SystemMessage(content="You are brief."),
        *(
            message
            for name in languages
            for message in (UserMessage(content=TEXTS[name]), AssistantMessage(content="Yes."))
        ),
        UserMessage(content="Well?"),
    )
    provider = local_provider(small_model)
    cache = weigh(TokenCache(), messages)
    estimate = of_request(cache, Scale())
    async with aclosing(provider):
        # A small model may begin with a blank, and an answer of blanks alone is refused.
        request = ModelRequest(messages=messages, max_output_tokens=8)
        events = await played(provider, request)
        (usage,) = [event.usage for event in events if isinstance(event, UsageReported)]
        assert usage.input_tokens <= estimate <= 2 * usage.input_tokens
        cache, scale = report(cache, Scale(), usage.input_tokens)
        longer = (*messages, AssistantMessage(content="No."), UserMessage(content=TEXTS["hex"]))
        cache = weigh(cache, longer)
        close = of_request(cache, scale)
        events = await played(provider, replace(request, messages=longer))
        (usage,) = [event.usage for event in events if isinstance(event, UsageReported)]
        assert usage.input_tokens <= close <= 1.3 * usage.input_tokens


SAMPLES = ("English", "German", "Chinese", "code", "JSON", "base64")
OWN = VOCABULARIES.index("SmolLM2")


@pytest.mark.slow
@pytest.mark.needs("llama", "model")
@pytest.mark.timeout(120)
async def test_llama_cpp_counts_for_its_model(small_model: Path) -> None:
    """Each text exactly, all in one call; and a request takes no more, the template's marks included.

    The reference is the count of the model's own process for the whole request. S0-16.
    """
    endpoints: list[Endpoint] = []

    def open_endpoint(endpoint: Endpoint) -> Provider:
        endpoints.append(endpoint)
        return over(endpoint)

    provider = LocalProvider(
        rules=LocalRules(model_file=small_model, threads=1),
        facts=ProviderFacts(model=small_model.stem, context_tokens=2048, calls_tools=False),
        context=replace(context(), open_endpoint=open_endpoint),
    )
    async with aclosing(provider), aclosing(http_client()) as http:
        assert await provider.count(("a",)) is None, "none before the model is loaded"
        await provider.start()
        (endpoint,) = endpoints
        # The mark is one token as a mark, and seven as plain text.
        sizes = await provider.count((*TEXTS.values(), "<|im_start|>", ""))
        assert sizes == (*(COUNTED[name][OWN] for name in TEXTS), 7, 0)
        for name in SAMPLES:
            messages: tuple[Message, ...] = (
                SystemMessage(content="You are brief."),
                UserMessage(content=TEXTS[name]),
                AssistantMessage(content="Yes."),
                UserMessage(content=TEXTS[name][:100]),
            )
            texts = uncounted_texts(TokenCache(), messages, ())
            found = dict(zip(texts, await provider.count(texts) or (), strict=True))
            cache = weigh(with_counts(TokenCache(), messages, (), found), messages)
            truth = await _of_the_whole(http, endpoint, messages)
            estimate = of_request(cache, Scale())
            assert sum(found.values()) < truth <= estimate <= truth + 100, name


async def _of_the_whole(http: HttpClient, endpoint: Endpoint, messages: Iterable[Message]) -> int:
    """Ask how many tokens a request would take."""
    roles: dict[type[Message], str] = {
        SystemMessage: "system",
        UserMessage: "user",
        AssistantMessage: "assistant",
    }
    request = HttpRequest(
        url=f"{endpoint.base_url}/chat/completions/input_tokens",
        headers={"Authorization": f"Bearer {endpoint.api_key}", "Content-Type": "application/json"},
        body=json.dumps(
            {
                "messages": [
                    {"role": roles[type(message)], "content": message.content}
                    for message in messages
                ]
            }
        ).encode(),
    )
    async with http.open(request) as answer:
        body = b"".join([chunk async for chunk in answer.chunks])
    return json.loads(body)["input_tokens"]
