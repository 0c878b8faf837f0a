"""Print the files of the pure rooms as one pattern for coverage's `--include`.

The list is in the import contract named `pure rooms decide` in pyproject.toml.
"""

import tomllib
from pathlib import Path

CONTRACT = "pure rooms decide"


def pure_rooms(pyproject: Path) -> list[str]:
    """Read the modules that the contract names; `*` stands for one part of a name."""
    settings = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    [rooms] = [contract["source_modules"] for contract in contracts if contract["name"] == CONTRACT]
    return rooms


def main() -> None:
    """Print the pattern."""
    rooms = pure_rooms(Path(__file__).parent.parent / "pyproject.toml")
    paths = [room.replace(".", "/") for room in rooms]
    print(",".join(f"*/{path}.py,*/{path}/*.py" for path in paths))  # a file or a folder


if __name__ == "__main__":
    main()
