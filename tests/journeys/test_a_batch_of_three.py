"""A batch has one card; each call gets its own result, in the order of the request."""

from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.world import open_world

pytestmark = pytest.mark.slow

THREE = tuple(("knock", {"what": f"door {number}"}) for number in (1, 2, 3))


async def test_one_of_three_calls_is_denied(tmp_path: Path) -> None:
    """Two run, one doesn't, and the results stand in the order of the request.

    S1-17, S1-19, S1-21, S1-23, K2, K3.
    """
    async with open_world(tmp_path) as world:
        world.model.calls(*THREE, round=0)
        world.model.say("Two of three.", round=1)
        await world.say("ann", "knock everywhere")
        card = await world.card()
        assert [call.tool for call in card.request.calls] == ["knock"] * 3
        await world.press("olga", card, call=2)
        await world.press("olga", card, "deny", call=1)
        assert world.bench.runs == []
        await world.press("olga", card, call=0)
        await world.expect("ann", "Two of three.")
        await world.until(lambda: card.outcomes == ["approved", "denied", "approved"])
        assert sorted(world.bench.ran()) == ["door 1", "door 3"]
        first, second, third = world.tool_results()
        assert ("door 1" in first, "did not run" in second, "door 3" in third) == (True,) * 3


async def test_calls_with_one_id_get_their_own_results(tmp_path: Path) -> None:
    """The model's labels collide, in a batch and across turns; results go by position.

    S1-18, K9.
    """
    async with open_world(tmp_path) as world:
        calls = [("peek", {"what": f"star {number}"}) for number in (1, 2, 3)]
        world.model.calls(*calls, ids=("same", "same", "same"), round=0)
        world.model.call("peek", {"what": "moon"}, id="same", round=1)
        world.model.say("Seen.", round=2)
        await world.say("ann", "look")
        await world.expect("ann", "Seen.")
        results = world.tool_results()
        seen = ("star 1", "star 2", "star 3", "moon")
        assert [what in result for what, result in zip(seen, results, strict=True)] == [True] * 4


async def test_approved_calls_run_at_the_same_time(tmp_path: Path) -> None:
    """All three have begun before one has ended. S1-20."""
    async with open_world(tmp_path) as world:
        gates = [Holds(text=f"found {number}") for number in (1, 2, 3)]
        world.bench.will("peek", *gates)
        world.model.calls(*(("peek", {"what": f"{n}"}) for n in (1, 2, 3)), round=0)
        world.model.say("All seen.", round=1)
        await world.say("ann", "look")
        await world.until(lambda: len(world.bench.runs) == 3)
        for hold in reversed(gates):
            hold.release()
        await world.expect("ann", "All seen.")
        arguments = [run.what for run in world.bench.runs]
        texts = dict(zip(arguments, ("found 1", "found 2", "found 3"), strict=True))
        results = world.tool_results()
        assert [texts[str(n)] in results[n - 1] for n in (1, 2, 3)] == [True] * 3


async def test_a_denied_and_an_allowed_call_need_no_order_of_answers(tmp_path: Path) -> None:
    """Allowed calls wait for the approvals of their batch, so none runs before (S1-19)."""
    async with open_world(tmp_path) as world:
        world.model.calls(("peek", {"what": "first"}), ("knock", {"what": "then"}), round=0)
        world.model.say("Looked.", round=1)
        await world.say("ann", "look and knock")
        card = await world.card()
        assert world.bench.runs == []
        await world.press("olga", card, "deny")
        await world.expect("ann", "Looked.")
        assert world.bench.ran() == ["first"]


async def test_a_call_that_must_be_alone_makes_its_batch_go_one_by_one(tmp_path: Path) -> None:
    """In the order of the request: no call begins before the previous one has ended. S1-22."""
    async with open_world(tmp_path, autonomy="full") as world:
        hold = Holds(text="found")
        world.bench.will("peek", hold)
        write = ("write_file", {"path": "found.txt", "content": "a star"})
        calls = (("peek", {"what": "first"}), write, ("peek", {"what": "last"}))
        world.model.calls(*calls, round=0, key="look")
        world.model.say("All seen.", round=1, key="look")
        await world.say("ann", "look")
        await hold.reached()
        world.model.call("peek", {"what": "meanwhile"}, round=0, key="meanwhile")
        world.model.say("Bob has seen it.", round=1, key="meanwhile")
        await world.say("bob", "meanwhile")
        await world.expect("bob", "Bob has seen it.")
        assert world.bench.ran() == ["first", "meanwhile"]
        assert list((tmp_path / "workspaces").rglob("found.txt")) == []
        hold.release()
        await world.expect("ann", "All seen.")
        assert world.bench.ran() == ["first", "meanwhile", "last"]
        (written,) = (tmp_path / "workspaces").rglob("found.txt")
        assert written.read_text(encoding="utf-8") == "a star"


async def test_an_operator_has_every_batch_go_one_by_one(tmp_path: Path) -> None:
    """Though no tool asks for it. S1-22."""
    async with open_world(tmp_path, runtime={"tool_execution": "sequential"}) as world:
        hold = Holds(text="found")
        world.bench.will("peek", hold)
        world.model.calls(
            ("peek", {"what": "first"}), ("peek", {"what": "last"}), round=0, key="look"
        )
        world.model.say("All seen.", round=1, key="look")
        await world.say("ann", "look")
        await hold.reached()
        world.model.call("peek", {"what": "meanwhile"}, round=0, key="meanwhile")
        world.model.say("Bob has seen it.", round=1, key="meanwhile")
        await world.say("bob", "meanwhile")
        await world.expect("bob", "Bob has seen it.")
        assert world.bench.ran() == ["first", "meanwhile"]
        hold.release()
        await world.expect("ann", "All seen.")
        assert world.bench.ran() == ["first", "meanwhile", "last"]
