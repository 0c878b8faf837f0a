"""All paths follow known conventions, and none is where tools write."""

import os
import pwd
from pathlib import Path

import pytest

from tests.fakes.unprivileged import unprivileged
from zeroclaw.errors import ConfigError
from zeroclaw.host.places import (
    Places,
    data_place,
    expand,
    find_config,
    make_workspace,
    places_of,
    read_config,
)

HOME = Path("/h")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whose home is `HOME`, and who has set no variable of ours."""
    monkeypatch.setenv("HOME", str(HOME))
    for variable in ("ZEROCLAW_CONFIG", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)


def written(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_default_places_are_the_users_usual_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """They follow the XDG base directory specification; relative values are ignored."""
    usual = Places(
        config=None,
        data=HOME / ".local/share/zeroclaw",
        workspaces=HOME / ".local/share/zeroclaw-workspaces",
        models=HOME / ".local/share/zeroclaw/models",
    )
    assert places_of() == usual
    for value in ("relative", ""):
        monkeypatch.setenv("XDG_DATA_HOME", value)
        assert places_of() == usual


def test_a_user_without_a_home_learns_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container, under a user id without a name, or whose variable is empty (P10)."""
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    for set_home in (lambda: monkeypatch.setenv("HOME", ""), lambda: monkeypatch.delenv("HOME")):
        set_home()
        message = r"no home directory; set `\$HOME` or `\$XDG_DATA_HOME`"
        with pytest.raises(ConfigError, match=message):
            places_of()
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert places_of().data == Path("/data/zeroclaw")


def test_a_home_that_is_relative_is_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is resolved against the shell's current directory, and shown whole."""
    monkeypatch.setenv("HOME", "here")
    assert places_of().data == Path.cwd() / "here/.local/share/zeroclaw"


def test_the_data_home_moves_all_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/d")
    places = places_of()
    assert (places.data, places.workspaces, places.models) == (
        Path("/d/zeroclaw"),
        Path("/d/zeroclaw-workspaces"),
        Path("/d/zeroclaw/models"),
    )


def test_configured_directories_leave_the_models_where_they_are() -> None:
    """A second data directory needs no second copy of the model."""
    places = places_of(data_dir="~/one", workspace_dir="/two")
    assert (places.data, places.workspaces, places.models) == (
        HOME / "one",
        Path("/two"),
        HOME / ".local/share/zeroclaw/models",
    )


def test_a_second_data_directory_has_its_own_workspaces() -> None:
    """Two daemons of one user never share what their tools write."""
    places = places_of(data_dir="/two", workspace_dir="")
    assert (places.data, places.workspaces) == (Path("/two"), Path("/two-workspaces"))


@pytest.mark.parametrize("below", ["", "further/below"])
def test_a_file_in_place_of_a_directory_is_reported(tmp_path: Path, below: str) -> None:
    """`check-config` finds it, and not only the start (P10)."""
    file = written(tmp_path / "file")
    with pytest.raises(ConfigError, match=f"data_dir: `{file}` is no directory; name another"):
        places_of(data_dir=str(file / below))
    with pytest.raises(ConfigError, match=f"workspace_dir: `{file}` is no directory; name another"):
        places_of(workspace_dir=str(file / below))


@pytest.mark.parametrize("data_dir", ["/w", "/w/data", "/w/../w/x"])
def test_data_inside_the_workspaces_is_refused(data_dir: str) -> None:
    """Tools write there, and would reach the keys and the store."""
    with pytest.raises(ConfigError, match="where tools write"):
        places_of(data_dir=data_dir, workspace_dir="/w")


@pytest.mark.parametrize("skills_dir", ["/w", "/w/skills", "/", "/data/skills", "/data"])
def test_skills_are_outside_of_data_and_workspaces(skills_dir: str) -> None:
    """Otherwise a model could write text that it later reads as the operator's. S3-07."""
    with pytest.raises(ConfigError, match="are inside each other; move the skills out"):
        places_of(data_dir="/data", workspace_dir="/w", skills_dir=skills_dir)
    assert places_of(data_dir="/data", workspace_dir="/w", skills_dir="/s").skills == Path("/s")
    assert places_of(data_dir="/data", workspace_dir="/w").skills is None


def test_the_configuration_is_searched_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option, the variable, the usual place, the built-in defaults, in this order."""
    option = written(tmp_path / "option.toml")
    variable = written(tmp_path / "variable.toml")
    usual = tmp_path / ".config/zeroclaw/config.toml"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_config(None) is None
    written(usual)
    assert find_config(None) == usual
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    assert find_config(None) is None
    monkeypatch.setenv("ZEROCLAW_CONFIG", str(variable))
    assert find_config(None) == variable
    assert find_config(option) == option


def test_a_missing_named_file_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The defaults do not replace it: the operator named it on purpose (P10)."""
    missing = tmp_path / "missing.toml"
    with pytest.raises(ConfigError, match=r"--config: .* is no file"):
        find_config(missing)
    monkeypatch.setenv("ZEROCLAW_CONFIG", "~/missing.toml")
    with pytest.raises(ConfigError, match=r"\$ZEROCLAW_CONFIG: .* is no file"):
        find_config(None)


def test_a_usual_file_that_is_a_link_to_nowhere_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its target's disk may not be there yet: the defaults know none of its limits and channels."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "zeroclaw").mkdir()
    (tmp_path / "zeroclaw" / "config.toml").symlink_to(tmp_path / "unmounted")
    with pytest.raises(
        ConfigError, match="can't be read: no such file or directory; put a file there"
    ):
        read_config(find_config(None))


def test_a_usual_file_that_can_not_be_looked_at_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a directory of another user; Python 3.14 says of such a file that it is none."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(Path, "is_file", os.path.isfile)
    monkeypatch.setattr(Path, "is_symlink", os.path.islink)
    folder = written(tmp_path / "zeroclaw/config.toml").parent
    folder.chmod(0)
    with unprivileged(), pytest.raises(PermissionError):
        find_config(None)
    folder.chmod(0o700)


def test_an_unreadable_file_is_a_fault(tmp_path: Path) -> None:
    """P10."""
    assert read_config(None) == ""
    assert read_config(written(tmp_path / "a", "é")) == "é"
    for other in (b"\xff", "a = 1".encode("utf-16"), "a = 1".encode("utf-16-le")):
        (tmp_path / "b").write_bytes(other)
        with pytest.raises(ConfigError, match="not UTF-8"):
            read_config(tmp_path / "b")
    with pytest.raises(ConfigError, match="can't be read"):
        read_config(tmp_path / "missing")


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    """Windows' Notepad puts a byte order mark before UTF-8."""
    path = tmp_path / "c.toml"
    path.write_bytes(b'\xef\xbb\xbflanguage = "de"')
    assert read_config(path) == 'language = "de"'


def test_the_data_directory_is_found_without_the_whole_configuration(tmp_path: Path) -> None:
    """Commands that only need the daemon don't load the settings models, nor fail on a fault."""
    config = written(tmp_path / "c.toml", 'data_dir = "/d"\n[provider]\nkind = 3\n')
    empty = written(tmp_path / "e.toml")
    assert data_place(config, None) == Path("/d")
    assert data_place(config, Path("~/x")) == HOME / "x"
    assert data_place(empty, None) == HOME / ".local/share/zeroclaw"
    for text, fault in (
        ("data_dir = 3", "must be a text"),
        ("data_dir =", "not valid TOML"),
        ("a = " + "[" * 5000, "not valid TOML"),
    ):
        broken = written(tmp_path / "b.toml", text)
        with pytest.raises(ConfigError, match=f"^{broken}: .*{fault}"):
            data_place(broken, None)


def test_a_tilde_stands_for_the_home_directory_only_at_the_beginning() -> None:
    assert expand("~") == HOME
    assert expand("~/a") == HOME / "a"
    assert expand("a/~") == Path("a/~")
    assert expand("~root/a") == Path(pwd.getpwnam("root").pw_dir, "a")
    assert expand("~nobody-here") == Path("~nobody-here")


UNIT = Path(__file__).parents[3] / "deploy" / "zeroclaw.service"


def test_the_service_may_write_where_its_data_and_workspaces_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everything else is read-only to it (`ProtectSystem=strict`), and tools need a workspace."""
    lines = UNIT.read_text(encoding="utf-8").splitlines()
    settings = dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for variable in settings["Environment"].split():
        monkeypatch.setenv(*variable.split("=", 1))
    assert settings["ProtectSystem"] == "strict"
    state = Path("/var/lib", settings["StateDirectory"])
    places = places_of()
    assert places.data.is_relative_to(state)
    assert places.workspaces.is_relative_to(state)


def test_the_service_keeps_its_log_and_not_its_login_link() -> None:
    """By default stderr goes where stdout goes (systemd.exec(5)), which is nowhere here."""
    lines = UNIT.read_text(encoding="utf-8").splitlines()
    assert {"StandardOutput=null", "StandardError=journal"} <= set(lines)


def test_the_service_leaves_no_dump_of_its_memory() -> None:
    """By default the watchdog ends it by SIGABRT (systemd.service(5)), which dumps core (P8)."""
    lines = set(UNIT.read_text(encoding="utf-8").splitlines())
    assert {"WatchdogSec=120", "LimitCORE=0"} <= lines


def test_a_workspace_is_made_for_this_user_alone(tmp_path: Path) -> None:
    link, real = tmp_path / "link", tmp_path / "real"
    real.mkdir()
    link.symlink_to(real)
    assert make_workspace(link / "one" / "two") == real / "one" / "two"
    assert make_workspace(link / "one" / "two").stat().st_mode & 0o777 == 0o700


def test_a_workspace_that_cannot_be_written_to_is_one_line(tmp_path: Path) -> None:
    """Otherwise the first tool call would fail, and end a person's turn (P10)."""
    existing = written(tmp_path / "taken")
    with pytest.raises(ConfigError) as raised:
        make_workspace(existing / "below")
    assert raised.value.faults == (
        f"workspace_dir: `{existing / 'below'}`: not a directory; name another, or let this user write there",
    )
    with pytest.raises(ConfigError, match=r"workspace_dir: `/proc/1`: permission denied; name"):
        make_workspace(Path("/proc/1"))
