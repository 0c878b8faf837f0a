"""Plant a fault in a pure room, to see whether its tests bite."""

import ast
import inspect
from collections.abc import Mapping
from types import ModuleType


def mutant(module: ModuleType, fragment: str, replacement: str) -> Mapping[str, object]:
    """Return the functions of a module with one fragment of their source replaced.

    Classes and constants stay the real ones, so that values pass between the mutant and its
    tests. The fragment must occur exactly once.
    """
    source = inspect.getsource(module)
    assert source.count(fragment) == 1, f"{source.count(fragment)} times: {fragment}"
    tree = ast.parse(source.replace(fragment, replacement))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    functions = dict(vars(module))
    exec(compile(tree, f"mutant of {module.__name__}", "exec"), functions)
    return functions
