"""What a room says to people stands in the catalogue: the rooms hold no sentences of their own.

Every text of two words or more in these rooms is either for another reader (the model, the
log, the command line, the configuration, a program), which is listed here with its reason, or it is
a sentence that a reader of German would get in English.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("conversation", "daemon", "delivery", "gate", "inbound", "limits", "retention", "turn")

ELSEWHERE = {
    # for the model
    "gate/card_arguments.py": "why a call may not run",
    "gate/decide.py": "why a call may not run",
    "gate/protection.py": "why a call may not run",
    "gate/verdict.py": "what is read in place of a result",
    "gate/ruling.py": "why a call may not run",
    "gate/wording.py:_RETURNED": "how a result is wrapped",
    "gate/wording.py:refusal_for_model": "what is read in place of a result",
    "gate/wording.py:unreachable": "what is read in place of a result",
    "retention/erase.py:_rewrite_journal": "a note in the history",
    "conversation/downloads.py": "what became of a file",
    "turn/batch.py": "what is read in place of a result",
    "turn/control.py:_wording": "an edit, as a message",
    "turn/loop_detection.py": "what is repeated",
    "turn/compactor.py:OF_A_GROUP": "who said what is remembered",
    "turn/titles.py:_ASK": "what a title is asked for by",
    "conversation/message_text.py:late_for_the_model": "when a message was written",
    "gate/outgoing_files.py": "what is read in place of a result",
    "conversation/attachments.py": "what files came",
    "turn/tool_calls.py:_stopped": "what is read in place of a result",
    "turn/results.py": "how a result is wrapped",
    # for readers of the command line, the console's pages, a log or a configuration
    "daemon/config_check.py": "faults of a configuration",
    "gate/receipt_keys.py": "an error's line",
    "daemon/services.py:_turn_services": "what an error would call the work on long histories",
    "daemon/reload.py": "`zeroclaw reload`",
    "daemon/channel_host.py:public": "faults of a configuration",
    "gate/audit.py": "what is wrong with a chain",
    "inbound/anchors.py:DAEMON_DAMAGED": "what is wrong with a chain",
    "gate/policy.py": "`policy explain`, and faults of a configuration",
    "gate/shipped.py": "`policy show`",
    "gate/vocabulary.py": "faults of a configuration",
    "inbound/commands/explain.py": "`policy explain`",
    "inbound/commands/grants.py:USAGE": "`zeroclaw grants`",
    "inbound/commands/grants.py:revoke": "`zeroclaw grants`",
    "delivery/account.py": "an error's line",
    "delivery/live.py": "an error's line",
    "inbound/supervisor.py:fault_line": "an error's line",
    "turn/compactor.py:compact": "why there is no summary, in a log",
    # for programs, or typed as it is
    "gate/action.py": "errors of a codec",
    "gate/receipt_screen.py": "a mark that people compare, the same for everybody",
    "inbound/commands/registry.py:COMMANDS": "how a command is typed",
    "retention/export.py": "the page of an export",
}
"""Files, or functions and constants of them, whose texts are not the bot's speech in a chat."""

_TWO_WORDS = re.compile(r"[A-Za-z']{2,}[,;:]? +`?[A-Za-z']{2,}")


def texts(node: ast.AST) -> Iterator[str]:
    """Every text of two words that is written below a node, but for what is no speech by its form.

    That is a docstring, an error that is raised, a fact of a log, a task's name, a type.
    """
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Raise() | ast.AnnAssign(value=None):
            return
        case ast.Assign(targets=[ast.Name(id="message" | "_NOT_OURS")]):
            return
        case ast.Call(func=ast.Name(id="cast"), args=[_, value]):
            yield from texts(value)
            return
        case ast.Call(func=ast.Attribute(attr="_log" | "log") | ast.Name(id="log")):
            return
        case ast.keyword(arg="name" | "until"):  # of a task; of how long rows stay
            return
        case ast.JoinedStr(values=values):
            yield from spoken("".join(written(value) for value in values))
        case ast.Constant(value=str() as text):
            yield from spoken(text)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from texts(child)


def written(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "…"


def spoken(text: str) -> Iterator[str]:
    if _TWO_WORDS.search(text):
        yield text


def places(node: ast.AST, path: str) -> Iterator[tuple[str, ast.AST]]:
    """Every statement of a file with the name of the function or constant that it belongs to."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from ((f"{path}:{name}", child_) for child_ in child.body)
            case ast.ClassDef():
                yield from places(child, path)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield f"{path}:{name}", child
            case ast.Import() | ast.ImportFrom():
                pass
            case _:
                yield path, child


@cache
def sentences() -> Sequence[tuple[str, str]]:
    """Every text of the rooms, with where it stands; read once, by the worker that needs it."""
    return [
        (place, text)
        for room in ROOMS
        for file in sorted((ROOT / "zeroclaw" / room).rglob("*.py"))
        for place, node in places(
            ast.parse(file.read_text(encoding="utf-8")),
            file.relative_to(ROOT / "zeroclaw").as_posix(),
        )
        for text in texts(node)
    ]


def is_elsewhere(place: str) -> bool:
    return place in ELSEWHERE or place.partition(":")[0] in ELSEWHERE


def test_no_room_has_a_sentence_of_its_own() -> None:
    """Put it into `zeroclaw/text/catalogue.py`, in both languages; or name its reader above."""
    assert [sentence for sentence in sentences() if not is_elsewhere(sentence[0])] == []


def test_every_exception_is_one() -> None:
    """An exception whose place has moved or gone is a failure."""
    places_that_speak = {place for place, _ in sentences()}
    whole = {place.partition(":")[0] for place in places_that_speak}
    assert sorted(set(ELSEWHERE) - places_that_speak - whole) == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("Text(text='It is done.')", ["It is done."]),
        ("text = f'It is {what} now.' if late else ''", ["It is … now."]),
        ("TEXT: str = 'It is done.'", ["It is done."]),
        ("return Answered(text='too late')", ["too late"]),
        ("lines += [f'{name} is gone']", ["… is gone"]),
        ("lines += [f'`{name}` {count}']", []),
        ("text = 'It is ' 'done.'", ["It is done."]),
        ("message = 'it is done'", []),
        ("raise ValueError('it is done')", []),
        ("log('done', why='it is done')", []),
    ],
)
def test_a_sentence_is_found_however_it_is_written(code: str, found: list[str]) -> None:
    """Else the next form of writing one would pass the check."""
    assert list(texts(ast.parse(code).body[0])) == found
