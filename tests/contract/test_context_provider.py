"""Every context provider's promises: a constant declaration, and equal texts for equal requests."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.contract.context_provider_implementations import PROVIDERS
from tests.fakes.context_requests import context_request
from zeroclaw.context.providers import ContextProviders
from zeroclaw.context_provider import ContextProvider, ContextRequest, ContextText
from zeroclaw.value import replace

every_provider = pytest.mark.parametrize("name", PROVIDERS)
REQUEST = replace(context_request(has_tools=True), notes=(1,))


@every_provider
async def test_the_declaration_never_changes(name: str, tmp_path: Path) -> None:
    """By a name that `/context` and the log can show, with a budget that lets something through."""
    provider = await PROVIDERS[name](tmp_path)
    spec = provider.spec
    assert re.fullmatch("[a-z][a-z0-9_]*", spec.name)
    assert spec.max_tokens > 0
    assert spec.priority >= 0
    await provider.texts(REQUEST)
    assert provider.spec == spec


@every_provider
async def test_equal_requests_get_equal_texts(name: str, tmp_path: Path) -> None:
    """So that a request begins as the last one did; also when several are asked at once."""
    provider = await PROVIDERS[name](tmp_path)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_listed(provider, REQUEST)) for _ in range(3)]
    first, second, third = (task.result() for task in tasks)
    assert first
    assert first == second == third


async def _listed(provider: ContextProvider, request: ContextRequest) -> list[ContextText]:
    return list(await provider.texts(request))


@every_provider
async def test_what_it_adds_passes_the_room_that_asks(name: str, tmp_path: Path) -> None:
    """Nothing of it is taken for a secret, and it is one part for each text."""
    provider = await PROVIDERS[name](tmp_path)
    providers = ContextProviders((provider,), lambda _: False)
    found = await providers.gather(REQUEST, provider.spec.place)
    assert found.left_out == ()
    assert len(found.parts) == len(await provider.texts(REQUEST))


@every_provider
async def test_a_groups_texts_reveal_nothing_of_the_turns_person(name: str, tmp_path: Path) -> None:
    """Others read along, and each of their turns begins as the last one did."""
    provider = await PROVIDERS[name](tmp_path)
    ann, bob = (context_request(person, group=True) for person in ("Ann", "Bob"))
    assert list(await provider.texts(ann)) == list(await provider.texts(bob))


@every_provider
async def test_a_cancelled_request_disturbs_no_other(name: str, tmp_path: Path) -> None:
    provider = await PROVIDERS[name](tmp_path)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_listed(provider, REQUEST))
        await asyncio.sleep(0)
        task.cancel()
    assert list(await provider.texts(REQUEST))
