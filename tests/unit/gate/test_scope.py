"""What "for a time" lets run, in the words of what it lets run (P5)."""

import pytest

from zeroclaw.envelope import ActionId, ConversationId, Principal, TurnId
from zeroclaw.gate.action import Action, propose
from zeroclaw.gate.conditions import EFFECTS, ToolFacts
from zeroclaw.gate.scope import for_a_time, scope_of
from zeroclaw.text.language import Language
from zeroclaw.tool import Effect


def facts(*effects: Effect) -> ToolFacts:
    return ToolFacts(effects=frozenset(effects), risk="medium", declared=True)


def touching(*resources: str) -> Action:
    return propose(
        id=ActionId("01ACTION"),
        conversation=ConversationId("c"),
        principal=Principal(id="web:1", roles=frozenset(), channel="web", sender="1"),
        turn=TurnId("01TURN"),
        tool="any",
        arguments={},
        resources=resources,
    )


def said(
    of: Action,
    about: ToolFacts,
    for_s: float = 3600,
    language: Language = "en",
    workspace: str = "",
) -> str:
    scope = scope_of(of, about, for_s, workspace)
    assert scope is not None
    return for_a_time(scope, language)


FETCH, WRITE, RUN = facts("network", "read"), facts("read", "write"), facts("exec")
UNDECLARED = ToolFacts(effects=EFFECTS, risk="high", declared=False)


@pytest.mark.parametrize(
    ("of", "about", "words"),
    [
        (touching("host:example.org:443"), FETCH, "any URL on `example.org` for 1 hour"),
        (touching("host:example.org:80"), FETCH, "any URL on `example.org:80` for 1 hour"),
        (touching("host:example.org:443"), facts("network", "write"), "any call on `example.org`"),
        (touching("file:/w/notes.txt"), WRITE, "any content into `/w/notes.txt` for 1 hour"),
        (touching("file:/w/a"), facts("read"), "any call on `/w/a` for 1 hour"),
        (touching("file:/w/`a\n"), WRITE, "any content into `/w/'a` for 1 hour"),
        (touching("notes:web"), WRITE, "any call on `notes:web` for 1 hour"),
        (touching("sandbox:workspace"), RUN, "exactly this command for 1 hour"),
        (touching("host:example.org:443"), UNDECLARED, "exactly this command for 1 hour"),
        (touching("host:*"), FETCH, "exactly this call for 1 hour"),
        (touching(), WRITE, "exactly this call for 1 hour"),
        (touching(), facts("read"), "exactly this call for 1 hour"),
        (touching(*(f"file:/{n}" for n in range(6))), WRITE, "exactly this call for 1 hour"),
    ],
)
def test_a_scope_says_what_it_lets_run(of: Action, about: ToolFacts, words: str) -> None:
    """In the words of what runs; where the resources say too little, only the same call does."""
    assert said(of, about).startswith(words)


@pytest.mark.parametrize(
    ("for_s", "en", "de"),
    [
        (3600, "1 hour", "1 Stunde"),
        (7200, "2 hours", "2 Stunden"),
        (5400, "90 minutes", "90 Minuten"),
        (60, "a minute", "eine Minute"),
        (30, "30 seconds", "30 Sekunden"),
    ],
)
def test_a_scope_says_how_long_it_holds(for_s: float, en: str, de: str) -> None:
    """In the largest unit that says it exactly, in the reader's language."""
    run = touching("sandbox:workspace")
    assert said(run, RUN, for_s) == f"exactly this command for {en}"
    assert said(run, RUN, for_s, "de") == f"genau diesen Befehl für {de}"


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("/w/c/notes.txt", "notes.txt"),
        ("/w/c/deep/notes.txt", "deep/notes.txt"),
        ("/w/c/w/c/notes.txt", "w/c/notes.txt"),
        ("/w/cc/notes.txt", "/w/cc/notes.txt"),
        ("/w/c", "/w/c"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_a_file_is_called_as_it_is_in_its_workspace(file: str, shown: str) -> None:
    """A path of the workspace is relative there; every other one begins at the root (P5)."""
    words = said(touching(f"file:{file}"), WRITE, workspace="/w/c")
    assert words == f"any content into `{shown}` for 1 hour"
