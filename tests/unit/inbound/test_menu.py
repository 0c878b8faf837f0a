"""The menu of a channel: what the policy lets everybody use, and operators."""

from tests.fakes.manual_clock import EPOCH
from zeroclaw.gate.policy import Statement
from zeroclaw.gate.shipped import assemble
from zeroclaw.inbound.commands.registry import COMMANDS, menu_of
from zeroclaw.inbound.identity import Contact

SEATS = (
    Contact(person="person:ada", channel="chat", sender="7"),
    Contact(person="person:ada", channel="other", sender="8"),
    Contact(person="person:bo", channel="chat", sender="7"),
)
DENY_FORGET = Statement(
    id="no-forget", effect="deny", principals=("anyone",), actions=("command:forget",)
)


def test_everybody_sees_what_everybody_may_use_and_operators_see_all() -> None:
    """In the order of `/help`, each operator of the channel once."""
    menu = menu_of("chat", assemble("supervised"), SEATS, EPOCH)
    assert [one.name for one in menu.operators] == list(COMMANDS)
    everyones = [one.name for one in menu.everyone]
    assert set(COMMANDS) - set(everyones) == {"tool", "halt", "resume", "pair"}
    assert menu.operator_senders == ("7",)


def test_what_a_statement_denies_is_not_listed() -> None:
    menu = menu_of("chat", assemble("supervised", (DENY_FORGET,)), (), EPOCH)
    assert "forget" not in {one.name for one in (*menu.everyone, *menu.operators)}


def test_what_a_command_does_is_said_in_each_language_without_markup() -> None:
    menu = menu_of("chat", assemble("full"), (), EPOCH)
    [queue] = [one for one in menu.everyone if one.name == "queue"]
    assert queue.does["en"] == "what messages do that come while I answer; /queue explains"
    assert all(set(one.does) == {"en", "de"} for one in menu.operators)
    assert set(menu.ask) == set(menu.typed) == {"en", "de"}
    assert all(0 < len(said) <= 256 for one in menu.operators for said in one.does.values())
