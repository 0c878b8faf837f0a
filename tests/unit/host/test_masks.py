"""Protected places: which paths they cover, and what may be in their way."""

from pathlib import Path

import pytest

from zeroclaw.errors import ToolFailed
from zeroclaw.host.masks import Mask, hidden_in, is_masked, masks_of

GIT = (".git", "hooks")
ENV = (".env",)


def test_hidden_places_count_only_where_a_workspace_holds_them() -> None:
    """The data directory is masked in a workspace around it, and in no other."""
    hidden = (Path("/w/data"), Path("/elsewhere"), Path("/w/.git/hooks"))
    assert hidden_in(Path("/w"), hidden) == (("data",), GIT)


@pytest.mark.parametrize(
    ("path", "masked"),
    [
        (".env", True),
        (".env/deeper", True),
        (".environment", False),
        (".git/hooks/pre-commit", True),
        (".git", False),
        ("", False),
    ],
)
def test_a_hidden_place_covers_itself_and_what_is_below(path: str, *, masked: bool) -> None:
    """Only whole names match."""
    assert is_masked(tuple(path.split("/")) if path else (), (GIT, ENV)) == masked


def test_only_what_exists_is_found(tmp_path: Path) -> None:
    """A place that is missing, or lies below a file, needs no mask."""
    (tmp_path / ".env").touch()
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    below = (".env", "x")
    missing = ("no",)
    assert masks_of(tmp_path, (GIT, ENV, below, missing)) == (
        Mask(parts=GIT, is_directory=True),
        Mask(parts=ENV, is_directory=False),
    )


@pytest.mark.parametrize("link", [".git", ".git/hooks"])
def test_a_link_in_a_protected_place_is_refused(tmp_path: Path, link: str) -> None:
    """A mask on the link's target would show or hide another file."""
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to("/etc")
    with pytest.raises(ToolFailed, match=f"`{link}` is protected, but is a symbolic link"):
        masks_of(tmp_path, (GIT,))


def test_a_protected_place_that_can_not_be_looked_at_is_refused_in_words(tmp_path: Path) -> None:
    """Such as one below a folder that a command closed with `chmod 0`; root never meets that."""
    too_long = "x" * 300
    with pytest.raises(ToolFailed, match=f"`{too_long}` is protected, but can't be looked at: "):
        masks_of(tmp_path, ((too_long,),))
