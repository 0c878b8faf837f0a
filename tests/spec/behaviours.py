"""Which tests name which behaviour: `python -m tests.spec.behaviours`, or `make behaviours`.

The list is `behaviours.txt`. Ids in the code of helpers and of the product don't count: a behaviour
is proved by a test that names it.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
LISTED = Path(__file__).with_name("behaviours.txt")
LATER = "[later] "
_ID = re.compile(r"\b(?:S\d-\d{2}|K\d{1,2})\b")


def listed() -> dict[str, str]:
    """Return each behaviour's sentence by its id."""
    lines = LISTED.read_text(encoding="utf-8").splitlines()
    pairs = (line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    return dict(pairs)


def find_tests(source: str) -> Iterator[tuple[str, str]]:
    """Yield each test of a file, and its docstring."""
    for node in ast.walk(ast.parse(source)):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (is_function and node.name.startswith("test_")) or (
            isinstance(node, ast.ClassDef) and node.name.startswith("Test")
        ):
            yield node.name, ast.get_docstring(node) or ""


@cache
def proofs() -> Mapping[str, list[str]]:
    """Return by id the tests whose docstrings name it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        # suites that others import hold tests as well; most files name nothing
        for test, docstring in find_tests(source) if _ID.search(source) else ():
            for name in set(_ID.findall(docstring)):
                found[name].append(f"{path.relative_to(TESTS.parent)}::{test}")
    return found


def main() -> None:
    """Print every behaviour with its tests, then those that have none."""
    known, proved = listed(), proofs()
    lines: list[str] = []
    for name, sentence in known.items():
        lines.append(f"{name} {sentence}")
        lines += [f"    {test}" for test in proved.get(name, [])]
    missing = [name for name in known if name not in proved]
    due = [name for name in missing if not known[name].startswith(LATER)]
    lines.append(f"\n{len(known)} behaviours, {len(known) - len(missing)} with tests")
    lines.append(f"without, though built: {' '.join(due) or 'none'}")
    lines.append(f"without, for later: {' '.join(n for n in missing if n not in due) or 'none'}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
