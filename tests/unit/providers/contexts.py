"""The context of a provider's opener in tests."""

from pathlib import Path

from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import LoopClock
from tests.unit.providers.fake_http import FakeHttp
from zeroclaw.config.model import ProviderSettings
from zeroclaw.provider import Endpoint, Provider, ProviderContext
from zeroclaw.providers.openai import OpenAIProvider


def context(models: Path = Path(), **secrets: str) -> ProviderContext:
    """A context without a network."""

    def open_endpoint(endpoint: Endpoint) -> Provider:
        return OpenAIProvider(
            endpoint=endpoint, http=FakeHttp(), context=made, settings=ProviderSettings()
        )

    made = ProviderContext(
        clock=LoopClock(),
        ids=CountingIds(),
        jitter=lambda: 0.5,
        log=lambda event, **fields: None,
        redact=str,
        secrets=secrets,
        models=models,
        open_endpoint=open_endpoint,
    )
    return made
