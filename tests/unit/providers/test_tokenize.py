"""Tokens are counted by whoever has the model's tokenizer: llama.cpp's server, or a file."""

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
from zeroclaw.providers.openai.windows import is_llama_cpp
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
    """Once its list was read; before that nobody does."""
    http = FakeHttp(Played(parts=(LISTED,)), Played(parts=(TOKENS,)))
    asked = provider(http, base_url="http://host/v1/")
    assert (asked.facts.counted_by, await asked.count(("a", "b"))) == ("", None)
    await asked.measure()
    assert (asked.facts.counted_by, await asked.count(("a", "b"))) == ("llama.cpp", (2, 1))
    request = http.requests[-1]
    assert (request.method, request.url) == ("POST", "http://host/tokenize")
    assert request.headers["Authorization"].startswith("Bearer sk-")


async def test_a_server_that_fails_counts_nothing() -> None:
    """The estimate stands; an answer without end is given up."""
    endless = Played(parts=(b"0" * 8_000_000, b"0" * 8_000_000))
    http = FakeHttp(
        Played(parts=(LISTED,)), HttpConnectFailed("gone"), Played(parts=(3.0,)), endless
    )
    asked = provider(http)
    await asked.measure()
    assert [await asked.count(("a", "b")) for _ in range(3)] == [None, None, None]


class Words:
    """A `Counting` that counts words."""

    async def count(self, texts: Sequence[str]) -> tuple[int, ...] | None:
        """One for each."""
        return tuple(len(text.split()) for text in texts)


async def test_the_file_of_an_operator_comes_first() -> None:
    """Whatever the endpoint could say."""
    asked = OpenAIProvider(
        endpoint=Endpoint(
            base_url="http://host/v1", model="m", tokenize_url="http://host/tokenize"
        ),
        http=FakeHttp(),
        context=replace(context(), tokenizer=Words()),
        settings=ProviderSettings(tokenizer="words.json"),
    )
    assert (asked.facts.counted_by, await asked.count(("a b", "c"))) == ("words.json", (2, 1))
