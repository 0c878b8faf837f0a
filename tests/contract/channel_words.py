"""Selections of channels for the contract tests, and the messages that they send."""

from collections.abc import Iterable
from datetime import timedelta

import pytest

from tests.contract.channel_adapters import ADAPTERS
from tests.contract.channel_suite import Adapter, Harness
from tests.fakes.manual_clock import EPOCH
from zeroclaw import (
    Address,
    ApprovalId,
    Card,
    CardCall,
    Channel,
    Ending,
    LookupResult,
    Outgoing,
    OutgoingFile,
    Postable,
)

AWKWARD = (
    "Zeilen\nund  Räume\t<b>&amp;</b> *stars* _lines_ `ticks` 👩🏽‍🚀 \u202edrawkcab\u202c \\ end"
)


def over(adapters: Iterable[Adapter]) -> pytest.MarkDecorator:
    """Run a test over channels, each if the machine meets the requirements of its platform."""
    parameters = [
        pytest.param(adapter, id=adapter.name, marks=pytest.mark.needs(*adapter.needs))
        for adapter in adapters
    ]
    return pytest.mark.parametrize("adapter", parameters)


every_channel = over(ADAPTERS)
REAL = [adapter for adapter in ADAPTERS if not adapter.name.startswith("scripted")]
"""Those that talk to a platform of their own; houses over the scripted one are everywhere else."""
real_channels = over(REAL)
WITH_STRANGERS = [adapter for adapter in REAL if not adapter.is_local]
WITH_GROUPS = [adapter for adapter in WITH_STRANGERS if adapter.has_groups]


def channels_that(flag: str) -> pytest.MarkDecorator:
    """The channels whose capabilities say yes to a flag."""
    able = [adapter for adapter in ADAPTERS if getattr(adapter.capabilities, flag)]
    return over(able)


def channels_without(flag: str) -> pytest.MarkDecorator:
    """The others."""
    unable = [adapter for adapter in ADAPTERS if not getattr(adapter.capabilities, flag)]
    return over(unable)


def channels_with_files() -> pytest.MarkDecorator:
    """The channels on which people send files."""
    able = [adapter for adapter in ADAPTERS if adapter.carries_files]
    return over(able)


def outgoing(harness: Harness, text: str, key: str = "k1", *, draft: bool = False) -> Outgoing:
    return Outgoing(rendered=harness.channel.render(text), key=key, draft=draft)


def outgoing_file(content: bytes = b"name;sum\nAnn;3\n", key: str = "f1") -> OutgoingFile:
    return OutgoingFile(
        name="sums of *Ann* & Bob.csv",
        media_type="text/csv",
        content=content,
        key=key,
        caption="the *sums*, <as> they are",
    )


async def texts(harness: Harness) -> list[str]:
    return [message.text for message in await harness.messages()]


def call(number: int) -> CardCall:
    return CardCall(
        approval=ApprovalId(f"approval-{number}"),
        number=number,
        tool="shell",
        summary=f"summary {number}",
        arguments=f"command: echo {number}",
        why="the policy asks",
        hash8=f"0000000{number}",
    )


CARD = Card(
    key="card-1",
    asked_by="somebody",
    calls=(call(1), call(2)),
    deadline_at=EPOCH + timedelta(minutes=15),
)
FIRST, SECOND = (adapter.approval for adapter in CARD.calls)
DENIED = Ending(approval=SECOND, how="denied", by="the operator", at=EPOCH, reason="too early")
APPROVED = Ending(approval=FIRST, how="approved", by="the operator", at=EPOCH)


NONE: frozenset[str] = frozenset()


async def lookup_to_the_end(
    channel: Channel,
    to: Address,
    content: Postable,
    since: str,
    *,
    apart: frozenset[str] = NONE,
    before: str = "",
) -> LookupResult:
    """Look to the end, as the outbox does."""
    seen = LookupResult(since=since, is_over=False)
    while not seen.is_over:
        seen = await channel.lookup(to, content, since=seen.since, apart=apart, before=before)
    return seen
