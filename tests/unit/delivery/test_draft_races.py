"""A draft and its pacing keep their promises in any order of events, on a platform that does as it likes."""

from typing import cast

import pytest

from tests.fakes.mutant import find_the_fault, mutant
from tests.unit.delivery.draft_world import Paced, Step, World
from zeroclaw.delivery import draft as room
from zeroclaw.delivery import pacing


@pytest.mark.slow
class TestDraft(World.TestCase):
    """The draft keeps its promises in any order of events (P6)."""


MUTANTS = [
    pytest.param(
        "    if draft.flight is not None or draft.ended:\n",
        "    if draft.ended:\n",
        id="two calls at once",
    ),
    pytest.param(
        "if draft.closed:\n                return draft, ()",
        "if False:\n                return draft, ()",
        id="takes texts after the end",
    ),
    pytest.param(
        "is_over = draft.closed or draft.muted or draft",
        "is_over = draft.muted or draft",
        id="calls after the end",
    ),
    pytest.param("draft.muted or draft.is_last", "draft.muted", id="shows what the final says"),
    pytest.param(", is_last=False, is", ", is", id="keeps from people what they are to read"),
    pytest.param(
        "        case Unreachable():\n            return draft\n",
        "        case Unreachable():\n            return replace(draft, wanted=())\n",
        id="drops a failed text",
    ),
    pytest.param(
        "replace(draft.parts[call.part], text=None)",
        "replace(draft.parts[call.part], text=call.text)",
        id="takes a lost edit for shown",
    ),
    pytest.param(
        "part = replace(draft.parts[call.part], text=call.text,",
        "part = replace(draft.parts[call.part], text=draft.wanted[0],",
        id="takes the newest text for shown",
    ),
    pytest.param(
        "DraftEnded(messages=messages)",
        "DraftEnded(messages=messages[:1])",
        id="forgets messages at the end",
    ),
    pytest.param(
        "    if draft.closed:\n        draft = replace(draft, ended=True)",
        "    if draft.closed and effects:\n        draft = replace(draft, ended=True)",
        id="does not end",
    ),
    pytest.param(
        "for number in range(len(draft.parts) - 1, len(wanted) - 1, -1):",
        "for number in ():",
        id="leaves old messages",
    ),
    pytest.param(
        "not draft.traits.can_edit or ", "", id="shows drafts where nothing can be edited"
    ),
    pytest.param("None and part.text != text:", "None and part.text is not None:", id="edits idly"),
    pytest.param(
        "if stays(draft) else ()",
        "if False else ()",
        id="leaves the text above a card to the final",
    ),
    pytest.param(
        "    if request != draft.requested:\n",
        "    if request is not None and draft.requested is None:\n",
        id="asks for the wrong message",
    ),
    pytest.param(
        " and next_part >= draft.demanded:", ":", id="only previews what somebody waits for"
    ),
    pytest.param(
        "may_grow = next_part == len(wanted) - 1", "may_grow = True", id="previews what is full"
    ),
    pytest.param(
        "return replace(draft, previewed=None)",
        "return replace(draft, previewed=call.text)",
        id="takes a lost preview for shown",
    ),
    pytest.param(
        "                previewed=None,\n",
        "",
        id="takes a preview for shown that a message has ended",
    ),
    pytest.param(
        "            draft = replace(draft, previewed=None)\n",
        "            pass\n",
        id="lets a preview fade",
    ),
    pytest.param(
        "replace(draft, traits=replace(draft.traits, native_draft=False))",
        "draft",
        id="insists on previews",
    ),
    pytest.param("        if text == draft.previewed:", "        if False:", id="previews idly"),
    pytest.param(
        "soon=draft.is_read_now or is_previewed(draft)",
        "soon=True",
        id="pushes ahead what nobody waits for",
    ),
    pytest.param(
        "                is_read_now=False,\n", "", id="pushes ahead what follows an answer"
    ),
]
PACING_MUTANTS = [
    pytest.param(
        "lane = replace(lane, gap_s=max(lane.gap_s, gap_s))",
        "lane = replace(lane, gap_s=event.retry_after_s)",
        id="a refusal with no wait shortens the interval",
    ),
    pytest.param(
        "ready = max(ready, last + max(interval_s, lane.gap_s))",
        "ready = max(ready, last)",
        id="no interval",
    ),
]


@pytest.mark.parametrize(("fragment", "replacement"), MUTANTS)
def test_each_fault_can_be_planted_in_the_draft(fragment: str, replacement: str) -> None:
    """What it replaces stands in the room, once."""
    mutant(room, fragment, replacement)


@pytest.mark.parametrize(("fragment", "replacement"), PACING_MUTANTS)
def test_each_fault_can_be_planted_in_the_pacing(fragment: str, replacement: str) -> None:
    """What it replaces stands in the room, once."""
    mutant(pacing, fragment, replacement)


@pytest.mark.long("searches until the planted fault is found")
@pytest.mark.parametrize(("fragment", "replacement"), MUTANTS)
def test_every_promise_bites(fragment: str, replacement: str) -> None:
    """A fault planted in the draft is found by one of the promises above."""

    class Mutated(World):
        step = staticmethod(cast("Step", mutant(room, fragment, replacement)["step"]))

    find_the_fault(Mutated)


@pytest.mark.long("searches until the planted fault is found")
@pytest.mark.parametrize(("fragment", "replacement"), PACING_MUTANTS)
def test_every_promise_about_time_bites(fragment: str, replacement: str) -> None:
    """A fault planted in the pacing is seen in the draft."""

    class Mutated(World):
        pace = staticmethod(cast("Paced", mutant(pacing, fragment, replacement)["step"]))

    find_the_fault(Mutated)
