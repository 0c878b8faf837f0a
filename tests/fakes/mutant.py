"""Plants a fault in a pure room, to see whether its tests fail."""

import ast
import inspect
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

ROOT = Path(__file__).parents[2]


def mutant(module: ModuleType, fragment: str, replacement: str) -> Mapping[str, object]:
    """Return the functions of a module with one fragment of their source replaced.

    Classes and constants stay the real ones, so that values pass between the mutant and its
    tests. The fragment must occur exactly once, in a function that the product calls; else no
    test could find the fault.
    """
    source = inspect.getsource(module)
    assert source.count(fragment) == 1, f"{source.count(fragment)} times: {fragment}"
    planted = functions_of(ast.parse(source.replace(fragment, replacement)))
    real, called = _room(module.__name__, source)
    changed = {name for name in real if real[name] != ast.dump(planted[name])}
    assert changed, f"in no function: {fragment}"
    unreached = changed - called
    assert not unreached, f"nothing calls {', '.join(unreached)}"
    functions = dict(vars(module))
    body = ast.Module(body=[*planted.values()], type_ignores=[])
    exec(compile(body, f"mutant of {module.__name__}", "exec"), functions)
    return functions


def find_the_fault(mutated: type[RuleBasedStateMachine]) -> None:
    """Search until a promise of a machine over a mutant breaks."""
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            mutated,
            settings=settings(
                max_examples=10_000,  # it stops at the first that breaks a promise
                derandomize=True,
                database=None,
                phases=[Phase.generate],
            ),
        )


@cache  # a room has dozens of mutants, and takes ten times as long to read as one of them
def _room(name: str, source: str) -> tuple[Mapping[str, str], AbstractSet[str]]:
    """Return a module's functions, each with its dumped tree, and the names of those called."""
    functions = functions_of(ast.parse(source))
    trees = {function: ast.dump(tree) for function, tree in functions.items()}
    return trees, reached(source, words_beside(name))


def functions_of(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Return a module's functions by their names."""
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def reached(source: str, words: AbstractSet[str]) -> set[str]:
    """Return the functions of a module that are called, given the words of all other modules.

    A function is reached if reached code of the module names it, or, unless it is private, a word
    elsewhere is its name.
    """
    tree = ast.parse(source)
    functions = functions_of(tree)
    others = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
    names = [name for node in others for name in _names(node)]
    names += [name for name in functions if name in words and name[0] != "_"]
    found: set[str] = set()
    while names:
        name = names.pop()
        if name in functions and name not in found:
            found.add(name)
            names += _names(functions[name])
    return found


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


@cache
def _words() -> Mapping[Path, AbstractSet[str]]:
    files = [*ROOT.glob("zeroclaw/**/*.py"), *ROOT.glob("channels/**/*.py")]
    return {file: {*re.findall(r"\w+", file.read_text(encoding="utf-8"))} for file in files}


def words_beside(module: str) -> AbstractSet[str]:
    """Return every word of the product outside one of its modules."""
    own = ROOT / f"{module.replace('.', '/')}.py"
    return {word for file, words in _words().items() if file != own for word in words}
