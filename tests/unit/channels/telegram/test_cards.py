"""A card shows each call whole, keeps it, and loses the buttons of ended calls."""

import pytest

from channels._remote.cards import parse_button_data
from channels._remote.limits import units
from channels.telegram import cards
from channels.telegram.styled import Styled
from tests.contract.channel_words import APPROVED, CARD, DENIED, FIRST, call
from tests.fakes.manual_clock import ManualClock
from zeroclaw import ApprovalId, Card, Ending, Outcome
from zeroclaw.host.ids import SystemIds
from zeroclaw.value import replace

LONG = replace(CARD, calls=(replace(call(1), arguments="x" * 5000), call(2)))


def attached(view: Styled) -> str:
    assert view.file is not None
    return view.file.content.decode()


def shown(card: Card, *endings: Ending) -> Styled:
    return cards.view(Outcome(card=card, endings=endings))


def pressable(view: Styled) -> list[tuple[ApprovalId, str] | None]:
    return [parse_button_data(str(button["callback_data"])) for row in view.rows for button in row]


def test_a_card_shows_each_call_whole() -> None:
    view = shown(CARD)
    for tool_call in CARD.calls:
        for part in (
            f"{tool_call.number}. ",
            tool_call.tool,
            tool_call.summary,
            tool_call.arguments,
            tool_call.why,
            tool_call.hash8,
        ):
            assert part in view.text
    assert "somebody asks; answer until 2026-01-01 12:15:00 UTC" in view.text
    assert view.file is None
    assert len(view.rows) == 2
    assert pressable(view)[:3] == [(FIRST, "once"), (FIRST, "for_a_time"), (FIRST, "deny")]


def test_a_single_call_has_one_labelled_button_per_row() -> None:
    view = shown(replace(CARD, calls=(call(1),), choices=("once", "deny", "deny_with_reason")))
    assert [[button["text"] for button in row] for row in view.rows] == [
        ["Approve once"],
        ["Deny"],
        ["Deny, because …"],
    ]


def test_a_card_shows_outcome_approver_and_reason_of_each_call() -> None:
    """The calls stay readable, and only open ones keep their buttons (P5)."""
    half_ended, all_ended = shown(CARD, DENIED), shown(CARD, DENIED, APPROVED)
    assert {approval_id for approval_id, _ in filter(None, pressable(half_ended))} == {FIRST}
    assert all_ended.rows == ()
    for part in ("denied by the operator", "too early", "approved by", "summary 1", "echo 1"):
        assert part in all_ended.text


@pytest.mark.parametrize(("outcome", "text"), [("expired", "⌛ expired"), ("stopped", "⏹ stopped")])
def test_an_unanswered_call_says_so(outcome: str, text: str) -> None:
    ending = Ending(approval=FIRST, how=outcome, by="", at=CARD.deadline_at)  # pyright: ignore[reportArgumentType]
    assert f"{text}, it did not run, 2026-01-01 12:15:00 UTC" in shown(CARD, ending).text


def test_code_marked_by_the_runtime_is_shown_as_code() -> None:
    """A card shows no raw marks; unclosed marks, and the call itself, stay as they are."""
    marked = replace(
        call(1), summary="run `ls 😀`, not `this", why="`a.b` asks", arguments="echo `date`"
    )
    view = shown(replace(CARD, calls=(marked,)))
    text = view.text.encode("utf-16-le")
    styled_pieces = [
        (
            entity["type"],
            text[2 * entity["offset"] : 2 * (entity["offset"] + entity["length"])].decode(
                "utf-16-le"
            ),
        )
        for entity in view.entities[1:]
    ]
    assert styled_pieces == [
        ("bold", "shell"),
        ("code", "ls 😀"),
        ("pre", "echo `date`"),
        ("code", "a.b"),
    ]
    assert "run ls 😀, not `this\n" in view.text


def test_a_caption_shows_where_a_command_ends() -> None:
    """Otherwise a command could continue in the runtime's words, with the call only in the file
    (P5)."""
    command = "ls in the sandbox"
    long = replace(call(1), summary=f"run `{command}` on this machine", arguments="x" * 5000)
    view = shown(replace(CARD, calls=(long,)))
    assert f"1. shell: run {command} on this machine · " in view.text
    (code,) = [entity for entity in view.entities if entity["type"] == "code"]
    assert view.text[code["offset"] : code["offset"] + code["length"]] == command
    cut = replace(long, summary=f"run `{'x' * 2000}` on this machine")
    assert "1. shell: run `xxx" in shown(replace(CARD, calls=(cut,))).text


def test_a_too_long_card_is_a_file_with_a_caption() -> None:
    """The approved call is in the file, which stays when the card ends."""
    view = shown(LONG)
    assert "x" * 5000 in attached(view)
    headline = shown(CARD).text.partition("\n")[0]
    assert view.text.startswith(f"{headline}\nThe whole of it is in the file.")
    assert len(view.rows) == 2
    ended_view = shown(LONG, DENIED, APPROVED)
    assert ended_view.file == view.file
    for part in ("1. shell: summary 1", "denied by the operator", "too early", "approved by"):
        assert part in ended_view.text


@pytest.mark.parametrize("count", [1, 2, 12, 40])
@pytest.mark.parametrize("size", [10, 300, 5000])
def test_every_card_fits_before_and_after(count: int, size: int) -> None:
    """A card that fits when it asks must not be refused when it ends."""
    calls = tuple(
        replace(call(number), approval=ApprovalId(f"{number}"), summary="😀" * size)
        for number in range(count)
    )
    card = replace(CARD, asked_by="a" * 500, calls=calls)
    endings = tuple(
        replace(DENIED, approval=call.approval, by="b" * 500, reason="r" * 500) for call in calls
    )
    for view in (shown(card), shown(card, *endings)):
        assert units(view.text) <= (1024 if view.file else 4096)


def test_more_calls_than_buttons_are_numbered() -> None:
    """A message has room for 100 buttons."""
    calls = tuple(replace(call(number), approval=ApprovalId(str(number))) for number in range(26))
    view = shown(
        replace(
            CARD, calls=tuple(replace(call, arguments="", why="", summary="") for call in calls)
        )
    )
    assert len(view.rows) == 25
    assert "/approve 25 or /deny 25" in attached(view)


def test_a_button_carries_the_id_of_any_approval() -> None:
    """Bot API, InlineKeyboardButton: `callback_data` has 1-64 bytes, read 2026-11."""
    longest = replace(call(1), approval=ApprovalId(SystemIds(ManualClock()).token()))
    for row in shown(replace(CARD, calls=(longest,))).rows:
        assert [len(str(button["callback_data"])) for button in row] == [45]


def test_a_tool_can_not_disguise_a_card() -> None:
    """Bidirectional control characters are shown escaped."""
    view = shown(replace(CARD, calls=(replace(call(1), arguments="echo \u202etxt\x1b[2J"),)))
    assert "echo ⟨U+202E⟩txt⟨U+001B⟩[2J" in view.text


def test_a_question_carries_the_call_of_its_reason() -> None:
    approval = ApprovalId("a/b-c")
    shown_question = cards.question("why is `shell` denied?", "zero_bot", approval, "12")
    assert (shown_question.text, shown_question.asks) == ("why is shell denied?", True)
    (link,) = shown_question.entities
    assert cards.read_question("zero_bot", link.get("url", "")) == (approval, "12")
