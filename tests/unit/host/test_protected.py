"""Protected places: which rule covers which path, and what may stand in their way."""

from pathlib import Path

import pytest

from zeroclaw.errors import ToolFailed
from zeroclaw.host.protected import (
    Found,
    Protected,
    Rule,
    find,
    is_masked,
    is_read_only,
    rules,
)

GIT = Rule(parts=(".git", "hooks"), shield="read_only")
ENV = Rule(parts=(".env",), shield="masked")


def test_hidden_places_count_only_where_a_workspace_holds_them() -> None:
    """The data directory is masked in a workspace that was put around it, else it is nowhere."""
    protected = Protected(
        read_only=(".git/hooks",), masked=(".env",), hidden=(Path("/w/data"), Path("/elsewhere"))
    )
    data = Rule(parts=("data",), shield="masked")
    assert rules(protected, Path("/w")) == (ENV, data, GIT)


@pytest.mark.parametrize(
    ("path", "masked", "read_only"),
    [
        (".env", True, True),
        (".env/deeper", True, True),
        (".environment", False, False),
        (".git/hooks/pre-commit", False, True),
        (".git", False, False),
        ("", False, False),
    ],
)
def test_a_rule_covers_its_place_and_what_is_below(
    path: str, masked: bool, read_only: bool
) -> None:
    """Whole names count, and what can't be seen can't be changed either."""
    parts = tuple(path.split("/")) if path else ()
    assert (is_masked(parts, (GIT, ENV)), is_read_only(parts, (GIT, ENV))) == (masked, read_only)


def test_only_what_exists_is_found(tmp_path: Path) -> None:
    """A place that is missing, or lies below a file, needs no shield."""
    (tmp_path / ".env").touch()
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    below = Rule(parts=(".env", "x"), shield="masked")
    missing = Rule(parts=("no",), shield="masked")
    assert find(tmp_path, (GIT, ENV, below, missing)) == (
        Found(rule=GIT, is_directory=True),
        Found(rule=ENV, is_directory=False),
    )


@pytest.mark.parametrize("link", [".git", ".git/hooks"])
def test_a_link_in_a_protected_place_is_refused(tmp_path: Path, link: str) -> None:
    """Protecting what a link points at would show or shield something else."""
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to("/etc")
    with pytest.raises(ToolFailed, match=f"`{link}` is protected, but is a symbolic link"):
        find(tmp_path, (GIT,))
