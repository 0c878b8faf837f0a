"""How much a model reads at once, and who counts its tokens."""

import json
from collections.abc import Sequence

import pytest

from tests.unit.providers.contexts import context
from tests.unit.providers.fake_http import FakeHttp, Played
from tests.unit.providers.test_openai import provider
from zeroclaw.config.model import ProviderSettings
from zeroclaw.host.http import HttpConnectFailed
from zeroclaw.provider import Endpoint
from zeroclaw.providers.openai.provider import OpenAIProvider
from zeroclaw.providers.openai.tokenize import sizes_in, tokenize_body
from zeroclaw.providers.openai.windows import AS_OF, is_llama_cpp, known_window, window_in
from zeroclaw.value import replace

LISTED = json.dumps({"data": [{"id": "m", "owned_by": "llamacpp"}]}).encode()
TOKENS = b'{"tokens": [1, 2, -1, 3, -1]}'


def test_one_request_counts_many_texts() -> None:
    """Parted by what is no token; a mark of the template is text, and half of a pair is readable."""
    body = json.loads(tokenize_body(("<|im_start|>", "\ud83d")))
    assert body == {
        "content": ["<|im_start|>", -1, "\ufffd", -1],
        "add_special": False,
        "parse_special": False,
    }


@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        (TOKENS, (2, 1)),
        (b'{"tokens": [-1, -1]}', (0, 0)),
        (b'{"tokens": [1, -1]}', None),
        (b'{"tokens": {}}', None),
        (b"[]", None),
        (b"<html>", None),
        (b"\xff", None),
    ],
)
def test_an_answer_that_counts_something_else_counts_nothing(
    body: bytes, sizes: tuple[int, ...] | None
) -> None:
    """A proxy may answer anything."""
    assert sizes_in(body, 2) == sizes


@pytest.mark.parametrize(
    ("body", "is_one"),
    [(LISTED, True), (b'{"data": [{"id": "m"}, 7]}', False), (b"[]", False), (b"<html>", False)],
)
def test_a_list_tells_whose_server_it_is(body: bytes, is_one: bool) -> None:
    """By the owner of its models."""
    assert is_llama_cpp(body) == is_one


async def test_a_llama_cpp_that_a_person_runs_counts() -> None:
    """Once its list was read; not before."""
    http = FakeHttp(Played(parts=(LISTED,)), Played(parts=(TOKENS,)))
    endpoint = provider(http, base_url="http://host/v1/")
    assert (endpoint.facts.counted_by, await endpoint.count(("a", "b"))) == ("", None)
    await endpoint.measure()
    assert (endpoint.facts.counted_by, await endpoint.count(("a", "b"))) == ("llama.cpp", (2, 1))
    request = http.requests[-1]
    assert (request.method, request.url) == ("POST", "http://host/tokenize")
    assert request.headers["Authorization"].startswith("Bearer sk-")


async def test_a_server_that_fails_counts_nothing() -> None:
    """The estimate stands; an answer without end is given up."""
    endless = Played(parts=(b"0" * 8_000_000, b"0" * 8_000_000))
    http = FakeHttp(
        Played(parts=(LISTED,)), HttpConnectFailed("gone"), Played(parts=(3.0,)), endless
    )
    endpoint = provider(http)
    await endpoint.measure()
    assert [await endpoint.count(("a", "b")) for _ in range(3)] == [None, None, None]


class Words:
    """A `Counting` that counts words."""

    async def count(self, texts: Sequence[str]) -> tuple[int, ...] | None:
        """One for each."""
        return tuple(len(text.split()) for text in texts)


async def test_the_file_of_an_operator_comes_first() -> None:
    """Whatever the endpoint could say."""
    endpoint = OpenAIProvider(
        endpoint=Endpoint(
            base_url="http://host/v1", model="m", tokenize_url="http://host/tokenize"
        ),
        http=FakeHttp(),
        context=replace(context(), tokenizer=Words()),
        settings=ProviderSettings(tokenizer="words.json"),
    )
    assert (endpoint.facts.counted_by, await endpoint.count(("a b", "c"))) == ("words.json", (2, 1))


# --- windows: who says how much a model reads, in which words -------------------------------------


def listed(**fields: object) -> bytes:
    return json.dumps({"data": [{"id": "other"}, {"id": "m", **fields}]}).encode()


@pytest.mark.parametrize(
    ("body", "window"),
    [
        (listed(context_length=131_072), 131_072),
        (listed(max_model_len=8_192), 8_192),
        (listed(context_window=32_768), 32_768),
        (listed(max_context_length=4_096), 4_096),
        (listed(max_input_tokens=200_000), 200_000),
        (b'[{"name": "m", "context_length": 2048}]', 2_048),
        (listed(), None),
        (listed(context_length="8192", max_model_len=7), None),
        (listed(meta={"n_ctx_train": 131_072}), None),
        (listed(meta={"n_ctx_train": 131_072, "n_ctx": 4_096}), 4_096),
        (b'{"data": [{"id": "another", "context_length": 9000}]}', None),
        (b'{"data": {}}', None),
        (b"<html>", None),
        (b"\xff", None),
    ],
)
def test_a_list_of_models_may_tell_the_window(body: bytes, window: int | None) -> None:
    """By the names that endpoints have for it; what a model was trained for is not what is served."""
    assert window_in(body, "m") == window


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o-mini-2024-07-18", 128_000),
        ("openai/gpt-5-mini", 272_000),
        ("Claude-haiku-4-5", 200_000),
        ("llama-3.3-70b", None),
    ],
)
def test_a_table_knows_some_models(model: str, window: int | None) -> None:
    """By the beginning of their names."""
    assert known_window(model) == window


async def test_an_endpoint_is_asked_for_its_window() -> None:
    """With the key; its answer comes before the table, and outlasts a refusal."""
    http = FakeHttp(Played(parts=(listed(context_length=16_384),)), Played(status=503))
    endpoint = provider(http, window=None)
    assert (endpoint.facts.context_tokens, endpoint.facts.context_from) == (None, "")
    await endpoint.measure()
    assert (endpoint.facts.context_tokens, endpoint.facts.context_from) == (16_384, "the endpoint")
    await endpoint.measure()
    assert endpoint.facts.context_tokens == 16_384
    request = http.requests[0]
    assert (request.method, request.url) == ("GET", "https://host/v1/models")
    assert request.headers["Authorization"].startswith("Bearer sk-")


@pytest.mark.parametrize(
    ("facts", "model", "configured", "window", "by"),
    [
        ({"context_length": 16_384}, "gpt-4o", None, 16_384, "the endpoint"),
        ({"context_length": 16_384}, "m", 16_384, 16_384, "the endpoint"),
        (
            {"context_length": 16_384},
            "m",
            8_192,
            8_192,
            "the configuration, of the 16,384 that the endpoint names",
        ),
        (
            {"context_length": 16_384},
            "m",
            32_768,
            16_384,
            "the endpoint, which the 32,768 of the configuration can't make larger",
        ),
        ({}, "gpt-4o", None, 128_000, f"the table of {AS_OF}"),
        (
            {},
            "gpt-4o",
            8_192,
            8_192,
            f"the configuration, of the 128,000 that the table of {AS_OF} names",
        ),
        ({}, "m", 8_192, 8_192, "the configuration"),
        ({}, "m", None, None, ""),
    ],
)
async def test_what_is_known_of_a_model_comes_before_the_configuration(
    facts: dict[str, object], model: str, configured: int | None, window: int | None, by: str
) -> None:
    """Endpoint, table, configuration; an operator may want less than there is, and gets no more."""
    body = json.dumps({"data": [{"id": model, **facts}]}).encode()
    endpoint = provider(FakeHttp(Played(parts=(body,))), model=model, window=configured)
    await endpoint.measure()
    assert (endpoint.facts.context_tokens, endpoint.facts.context_from) == (window, by)


async def test_an_endpoint_that_says_nothing_leaves_it_to_the_table() -> None:
    """Nor does one that can't be reached hold anything up."""
    http = FakeHttp(HttpConnectFailed("refused"))
    endpoint = provider(http, model="gpt-4o", window=None)
    await endpoint.measure()
    assert endpoint.facts.context_tokens == 128_000
    assert endpoint.facts.context_from == f"the table of {AS_OF}"
