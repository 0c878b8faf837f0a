"""Every channel's promises for strangers: silence, or a pairing code and nothing more."""

from pathlib import Path

import pytest

from tests.contract.channel_house import POKED, Home, living
from tests.contract.channel_suite import Adapter
from tests.contract.channel_words import WITH_GROUPS, WITH_STRANGERS, over
from tests.fakes.scripted_model import says
from zeroclaw.daemon.config_check import kinds_of
from zeroclaw.inbound.approvals import strangers_of
from zeroclaw.inbound.pairing import PairingRequest

# Most open real sockets.
pytestmark = pytest.mark.slow

LET_ME_IN = "let me in, I am nobody's friend"
MANIFESTS = {kind: manifest for kind, (manifest, _) in kinds_of([]).items()}
THAT_PAIR = [
    stranger for stranger in WITH_STRANGERS if MANIFESTS[stranger.name.partition(",")[0]].may_pair
]


@over(WITH_STRANGERS)
async def test_a_stranger_meets_silence_and_leaves_a_number(
    adapter: Adapter, tmp_path: Path
) -> None:
    """Of message, command and press nothing is shown, kept or logged; those let in go on. P4, S2-03."""
    async with living(adapter, tmp_path) as home, home.running() as house:
        approval = await home.request_approval()
        await home.turn_to("mallory")
        assert await home.harness.say(LET_ME_IN)
        assert await home.harness.say("/pending")
        assert await home.answer("mallory", approval)
        assert await home.answer("olga", approval)
        await home.until_texts("ann", POKED)
        await home.turn_to("mallory")
        assert await home.harness.messages() == ()
        assert len(home.harness.toasts()) <= 1, "only Olga was told anything"
        from_stranger = [
            envelope for envelope in home.heard if envelope.sender.id == home.harness.person
        ]
        assert house.services.ingress.dropped == {home.name: len(from_stranger)}
        persisted = repr(home.world.store.commits)
        assert [word for word in (LET_ME_IN, home.harness.person) if word in persisted] == []
        assert [fact for fact in home.facts if LET_ME_IN in fact] == []
        assert len(home.world.model.requests) == 2


@over(WITH_GROUPS)
async def test_a_stranger_in_a_group_reads_only_that_a_press_is_not_theirs(
    adapter: Adapter, tmp_path: Path
) -> None:
    """Nothing of their messages and commands there is shown, stored or sent to a model.

    Nor do they get a pairing code there, which the whole group would read. P4, S2-03.
    """
    async with living(adapter, tmp_path, pairing="code") as home:
        await home.gather("mallory")
        async with home.running() as house:
            approval = await home.request_approval()
            await home.turn_to("mallory")
            assert await home.harness.say(LET_ME_IN)
            assert await home.harness.say("/whoami")
            assert await home.answer("mallory", approval)
            assert await home.answer("olga", approval)
            texts = await home.until_texts("ann", POKED, "approved")
            assert [text for text in texts if "poke" not in text and POKED not in text] == []
            if adapter.capabilities.has_buttons:
                notice, *_ = home.harness.toasts()
                assert notice == "this is not yours to answer"
            await home.turn_to("mallory")
            from_stranger = [
                envelope for envelope in home.heard if envelope.sender.id == home.harness.person
            ]
            assert not any(envelope.address.direct for envelope in from_stranger)
            assert house.services.ingress.dropped == {home.name: len(from_stranger)}
            persisted = repr((home.world.store.commits, home.world.model.requests))
            assert [word for word in (LET_ME_IN, home.harness.person) if word in persisted] == []
            assert [fact for fact in home.facts if LET_ME_IN in fact] == []
            assert len(home.world.model.requests) == 2


async def put_to_operators(home: Home) -> PairingRequest:
    """Wait until an operator has a card about a stranger."""

    async def carded() -> PairingRequest | None:
        found = await strangers_of(home.world.store)
        return next((request for request in found if request.refs), None)

    return await home.until(carded)


@over(THAT_PAIR)
async def test_a_stranger_gets_a_code_and_nothing_else_until_an_operator_lets_them_in(
    adapter: Adapter, tmp_path: Path
) -> None:
    """They can ask again, command and press as they like. P4, P5, S2-03."""
    async with living(adapter, tmp_path, pairing="code") as home, home.running() as house:
        await home.turn_to("mallory")
        assert await home.harness.say(LET_ME_IN)
        code = await home.until_texts("mallory", "your code is")
        approval = await put_to_operators(home)
        assert await home.harness.say("/pending")
        assert await home.answer("mallory", approval)
        assert await home.answer("olga", approval)
        let_in = await home.until_texts("mallory", "you may talk to me now")
        assert (code, let_in) == (let_in[:1], let_in[:2])
        assert house.services.ingress.dropped == {home.name: 2}
        home.world.model.will(says("hello, Mallory"))
        assert await home.harness.say("and now?")
        await home.until_texts("mallory", "hello, mallory")
        assert LET_ME_IN not in repr(home.world.store.commits)
