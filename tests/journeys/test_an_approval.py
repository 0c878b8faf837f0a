"""A risky call waits for a person, who answers once; the card shows how it ended (P5)."""

from pathlib import Path

import pytest
from zeroclaw_test_platform.chats import Message

from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow


async def ask_to_knock(world: World, text: str = "please knock") -> Message:
    """Let Ann's model want to knock, and return the operator's card."""
    world.model.call("knock", {"what": "on wood"}, round=0, key=text)
    world.model.say("So be it.", round=1, key=text)
    await world.say("ann", text)
    return await world.card()


async def test_an_approved_call_runs_once_and_its_receipt_reaches_the_model(tmp_path: Path) -> None:
    """The card shows the whole call; pressed, it runs, and the card says who allowed it.

    S2-10, S2-12, S2-15, S4-07.
    """
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        (call,) = card.request.calls
        assert (call.tool, "on wood" in call.arguments) == ("knock", True)
        assert (card.request.asked_by, len(call.hash8)) == ("ann", 8)
        assert world.bench.runs == []
        await world.press("olga", card)
        await world.expect("ann", "So be it.")
        await world.until(lambda: card.outcomes == ["approved"])
        assert world.bench.ran("knock") == ["on wood"]
        assert card.endings[0].by == "olga"
        (result,) = world.tool_results()
        assert "knock: on wood" in result
        assert result.splitlines()[-1].startswith("[receipt: zc-receipt-")


async def test_two_operators_who_differ_in_that_instant_are_one_answer(tmp_path: Path) -> None:
    """Both have the card, the first one's word counts, and both cards show it. S2-10."""
    roles = {"olga": ["operator"], "oscar": ["operator"], "ann": []}
    people = [
        {"name": name, "ids": [f"loopback:{name}"], "roles": role_names}
        for name, role_names in roles.items()
    ]
    let_in = {"loopback": {"allowed_users": [*roles]}}
    async with open_world(tmp_path, people=people, channels=let_in) as world:
        olgas = await ask_to_knock(world)
        oscars = await world.card("oscar")
        presses = (
            await world.platform.press("oscar", oscars, "deny"),
            await world.platform.press("olga", olgas),
        )
        await world.until(lambda: all(press.confirmed for press in presses))
        await world.until(
            lambda: all(olgas.outcomes + oscars.outcomes)
        )  # one still open has an empty one
        assert olgas.endings == oscars.endings
        await world.expect("ann", "So be it.")
        assert [run.tool for run in world.bench.runs] == ["knock"] * (
            olgas.outcomes == ["approved"]
        )


async def test_the_card_goes_to_the_operator_and_a_note_to_the_requester(tmp_path: Path) -> None:
    """The requesting chat shows that an approval is pending, without the arguments."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        assert card.chat == "olga"
        assert world.chat("ann").cards == []
        await world.until(lambda: world.chat("ann").from_bot)
        assert "on wood" not in world.chat("ann").ever


async def test_a_denied_call_does_not_run_and_the_model_reads_why(tmp_path: Path) -> None:
    """The slot holds the refusal and its reason; the turn goes on. S2-09, S2-10, K2."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        await world.press("olga", card, "deny_with_reason", reason="not on a Sunday")
        await world.expect("ann", "So be it.")
        await world.until(lambda: card.outcomes == ["denied"])
        assert world.bench.runs == []
        (result,) = world.tool_results()
        assert "not on a Sunday" in result
        assert "did not run" in result
        assert "zc-receipt-" in result


async def test_silence_is_a_denial_when_the_time_is_over(tmp_path: Path) -> None:
    """No operator answers: the card says so, nothing runs, the model reads that it was no refusal."""
    async with open_world(tmp_path, approvals={"timeout_s": 3.0}) as world:
        card = await ask_to_knock(world)
        await world.expect("ann", "So be it.")
        await world.until(lambda: card.outcomes == ["expired"])
        assert world.bench.runs == []
        (result,) = world.tool_results()
        assert "nobody answered" in result


async def test_a_late_press_runs_nothing(tmp_path: Path) -> None:
    """A press after the deadline gets a notice, and the card does not change."""
    async with open_world(tmp_path, approvals={"timeout_s": 3.0}) as world:
        card = await ask_to_knock(world)
        await world.until(lambda: card.outcomes == ["expired"])
        pressed = await world.press("olga", card)
        assert "too late" in pressed.toast
        await world.expect("ann", "So be it.")
        assert world.bench.runs == []
        assert card.outcomes == ["expired"]


async def test_the_second_answer_changes_nothing(tmp_path: Path) -> None:
    """Approved, then denied: it ran once, and the second presser reads who was first."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        await world.press("olga", card)
        again = await world.press("olga", card, "deny")
        assert "already approved by" in again.toast
        await world.expect("ann", "So be it.")
        assert world.bench.ran("knock") == ["on wood"]
        await world.until(lambda: card.outcomes == ["approved"])


async def test_the_same_press_twice_counts_once(tmp_path: Path) -> None:
    """A press that the platform delivers again is confirmed and does nothing. S2-02."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        pressed = await world.press("olga", card)
        await world.platform.confirmed(await world.platform.redeliver(pressed))
        await world.expect("ann", "So be it.")
        assert world.bench.ran("knock") == ["on wood"]


async def test_a_stranger_who_presses_does_nothing_and_learns_nothing(tmp_path: Path) -> None:
    """No toast, no change; the operator's answer still counts (P4)."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        pressed = await world.press("mallory", card)
        assert pressed.toast == ""
        assert card.outcomes == [""]
        await world.press("olga", card, "deny")
        await world.expect("ann", "So be it.")
        assert world.bench.runs == []


async def test_a_person_who_may_not_approve_reads_so(tmp_path: Path) -> None:
    """Bob may talk to the bot but is no operator: approvers are checked at the answer."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        pressed = await world.press("bob", card)
        assert pressed.toast != ""
        assert "approved" not in pressed.toast
        assert (card.outcomes, world.bench.runs) == ([""], [])
        await world.press("olga", card)
        await world.expect("ann", "So be it.")
        assert world.bench.ran("knock") == ["on wood"]


async def test_a_requester_may_be_kept_from_answering(tmp_path: Path) -> None:
    """With `requester_may_answer = false` another operator gets the card, and only they can answer."""
    operators = [
        {"name": name, "ids": [f"loopback:{name}"], "roles": ["operator"]}
        for name in ("olga", "bob")
    ]
    approvals = {"requester_may_answer": False}
    async with open_world(tmp_path, approvals=approvals, people=operators) as world:
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So be it.", round=1)
        await world.say("olga", "please knock")
        card = await world.card("bob")
        assert world.chat("olga").cards == []
        pressed = await world.press("olga", card)
        assert pressed.toast != ""
        assert (card.outcomes, world.bench.runs) == ([""], [])
        await world.press("bob", card)
        await world.expect("olga", "So be it.")
        assert world.bench.ran("knock") == ["on wood"]


async def test_without_an_approver_the_model_reads_so(tmp_path: Path) -> None:
    """No reachable operator is neither a refusal nor a time-out."""
    async with open_world(tmp_path, people=[{"name": "ann", "ids": ["loopback:ann"]}]) as world:
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("Nobody is there.", round=1)
        await world.say("ann", "please knock")
        await world.expect("ann", "Nobody is there.")
        assert "no operator can be reached" in world.tool_results()[0]
        assert world.bench.runs == []


async def test_an_answer_may_hold_for_a_time(tmp_path: Path) -> None:
    """The same call in the same conversation needs no new approval; in another one it does.

    A tool without resources is granted by its arguments, so the same arguments are required.
    """
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world, "first time")
        await world.press("olga", card, "for_a_time")
        await world.expect("ann", "So be it.")
        world.model.call("knock", {"what": "on wood"}, round=0, key="second time")
        world.model.say("Done again.", round=1, key="second time")
        await world.say("ann", "second time")
        await world.expect("ann", "So be it.", "Done again.")
        assert world.bench.ran("knock") == ["on wood", "on wood"]
        assert len(world.chat("olga").cards) == 1
        world.model.call("knock", {"what": "on wood"}, round=0, key="third time")
        await world.say("bob", "third time")
        second_card = await world.card()
        assert second_card.request.calls[0].arguments.count("on wood") == 1


async def test_without_buttons_calls_are_answered_by_number(tmp_path: Path) -> None:
    """The card says what to type; numbers count up and a used one runs nothing."""
    async with open_world(tmp_path, platform={"has_buttons": False}) as world:
        card = await ask_to_knock(world)
        assert "/approve 1" in card.text
        await world.say("olga", "/approve 1")
        await world.expect("ann", "So be it.")
        assert world.bench.ran("knock") == ["on wood"]
        await world.until(lambda: card.outcomes == ["approved"])
        await world.say("olga", "/approve 1")
        await world.until(lambda: "already approved" in world.chat("olga").texts[-1])
        assert world.bench.ran("knock") == ["on wood"]


async def test_where_nothing_can_be_edited_a_message_tells_how_it_ended(tmp_path: Path) -> None:
    """The outcome appears below the card."""
    platform = {"can_edit": False, "can_delete": False, "has_buttons": False}
    async with open_world(tmp_path, platform=platform) as world:
        card = await ask_to_knock(world)
        await world.say("olga", "/deny 1 too loud")
        await world.until(lambda: card.outcomes == ["denied"])
        assert card.texts == [card.text]
        assert any("too loud" in text for text in world.chat("olga").texts)
        await world.expect("ann", "So be it.")
        assert world.bench.runs == []


async def test_an_operator_is_asked_about_their_own_tool_call_and_reads_the_receipt(
    tmp_path: Path,
) -> None:
    """`/tool` takes the same gate as the model's calls and shows a verified receipt.

    S2-08, S2-15.
    """
    async with open_world(tmp_path) as world:
        await world.say("olga", '/tool knock {"what": "myself"}')
        card = await world.card()
        assert world.bench.runs == []
        await world.press("olga", card)
        await world.until(
            lambda: any("knock: myself" in text for text in world.chat("olga").answers)
        )
        assert world.bench.ran("knock") == ["myself"]
        assert world.chat("olga").receipts[-1].startswith("receipt: knock · ok")
        assert world.chat("olga").answers[-1].startswith("`knock` returned:\n")
        assert world.model.requests == []


async def test_a_call_that_the_policy_denies_needs_no_approval(tmp_path: Path) -> None:
    """The model reads which statement denied it; no card appears and nothing runs. S2-08, S2-09."""
    statement = {
        "id": "no-knocking",
        "effect": "deny",
        "principals": ["anyone"],
        "actions": ["tool:knock"],
    }
    async with open_world(tmp_path, policy={"statement": [statement]}) as world:
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("I may not.", round=1)
        await world.say("ann", "please knock")
        await world.expect("ann", "I may not.")
        assert world.bench.runs == []
        assert world.chat("olga").cards == []
        assert "no-knocking" in world.tool_results()[0]


async def test_what_the_policy_allows_runs_without_a_question(tmp_path: Path) -> None:
    """A low-risk read runs at once. S2-11."""
    async with open_world(tmp_path) as world:
        world.model.call("peek", {"what": "the sky"}, round=0)
        world.model.say("Blue.", round=1)
        await world.say("ann", "look up")
        await world.expect("ann", "Blue.")
        assert world.bench.ran("peek") == ["the sky"]
        assert world.chat("olga").cards == []


async def test_presses_at_the_deadlines_instant_count_or_lose_but_never_both(
    tmp_path: Path,
) -> None:
    """Twelve requests expire at nearly the same instant, and every button is pressed at that instant.

    Each call ran if and only if its card and the reply to its presser say that it was approved.
    """
    people = [f"p{number}" for number in range(12)]
    open_door = {"loopback": {"allowed_users": ["*"]}}
    async with open_world(tmp_path, channels=open_door, approvals={"timeout_s": 4.0}) as world:
        world.platform.hold()
        for person in people:
            world.model.call("knock", {"what": person}, round=0, key=f"for {person}.")
            world.model.say("So be it.", round=1, key=f"for {person}.")
            await world.say(person, f"for {person}.")
        world.platform.release()
        await world.until(lambda: len(world.chat("olga").cards) == len(people))
        cards = world.chat("olga").cards
        await world.until(lambda: any(card.outcomes == ["expired"] for card in cards))
        presses = [await world.platform.press("olga", card) for card in cards]
        await world.until(lambda: all(press.confirmed for press in presses))
        for person in people:
            await world.expect(person, "So be it.")
        await world.until(lambda: world.chat("olga").open_cards == [])
        requested = [card.request.calls[0].arguments for card in cards]
        ran = [
            any(f'"{what}"' in arguments for what in world.bench.ran()) for arguments in requested
        ]
        assert [card.outcomes == ["approved"] for card in cards] == ran
        assert ["approved" in press.toast for press in presses] == ran
        assert not all(ran)
