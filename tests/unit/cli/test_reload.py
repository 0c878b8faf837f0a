"""`zeroclaw reload`: what the daemon reads again, and what the command prints."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from zeroclaw.cli.configuration import Loaded, start_of
from zeroclaw.cli.operator import reload_lines as lines
from zeroclaw.config.model import Config
from zeroclaw.daemon.config_check import ANSWERS
from zeroclaw.daemon.foundation import Start
from zeroclaw.errors import ConfigError
from zeroclaw.host.answers import Reloaded
from zeroclaw.host.places import places_of

SCRIPTED = f'[provider]\nkind = "scripted"\nscript = "{__file__}"\n'


def written(directory: Path, text: str) -> Path:
    path = directory / "c.toml"
    path.write_text(text, encoding="utf-8")
    return path


def rereading(
    path: Path | None, data_dir: Path | None, environment: Mapping[str, str]
) -> Callable[[], Start]:
    """The `reread` of a daemon that was started before the file changed."""
    loaded = Loaded(config=Config(), places=places_of(path), data_dir=data_dir)
    return start_of(loaded, environment).reread


def test_a_daemon_without_a_file_reads_the_first_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`config set` or `init` wrote it where the next start would find it."""
    monkeypatch.delenv("ZEROCLAW_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    reread = rereading(None, tmp_path / "data", {})
    assert reread().places.config is None
    (tmp_path / "zeroclaw").mkdir()
    path = written(tmp_path / "zeroclaw", SCRIPTED).rename(tmp_path / "zeroclaw/config.toml")
    assert reread().places.config == path


def test_the_current_file_is_read_and_checked(tmp_path: Path) -> None:
    """At every reload; secrets are resolved again too."""
    path = written(tmp_path, SCRIPTED)
    reread = rereading(path, tmp_path / "data", {"MODEL_KEY": "sk-1"})
    assert reread().config.autonomy == "supervised"
    written(tmp_path, f'autonomy = "full"\n{SCRIPTED}api_key = {{ env = "MODEL_KEY" }}\n')
    fresh = reread()
    assert fresh.config.autonomy == "full"
    assert fresh.checked.secrets_of(ANSWERS) == {"api_key": "sk-1"}


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ('autonomy = "wild"\nretention = { audit_days = -1 }\n', ["autonomy", "retention.audit"]),
        ("autonomy = ", ["not valid TOML"]),
        (f"autonomy = {'[' * 9999}", ["not valid TOML"]),
        (f'{SCRIPTED}api_key = {{ env = "NO" }}\n', ["provider.api_key"]),
        ('[[policy.statement]]\nid = "x"\n', ["policy.statement"]),
        ('workspace_dir = "/"\nskills_dir = "/none"\n', ["data_dir", "skills_dir"]),
    ],
)
def test_every_fault_is_named_with_the_file(tmp_path: Path, text: str, faults: list[str]) -> None:
    """As `check-config` names them, including faults that would stop the next start (P10)."""
    path = written(tmp_path, text)
    reread = rereading(path, tmp_path / "data", {})
    with pytest.raises(ConfigError) as raised:
        reread()
    faults_told = raised.value.faults
    assert [fault for fault in faults if fault not in "; ".join(faults_told)] == []
    assert [fault for fault in faults_told if str(path) not in fault] == []


def test_a_removed_file_is_a_fault(tmp_path: Path) -> None:
    """A removed file does not mean the defaults."""
    reread = rereading(tmp_path / "gone.toml", None, {})
    with pytest.raises(ConfigError, match="can't be read"):
        reread()


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (
            {"file": "/c.toml", "live": ["autonomy", "people"], "waiting": ["provider.model"]},
            [
                "read        /c.toml",
                "in force    autonomy, people",
                "restart     needed for provider.model; unchanged until then",
            ],
        ),
        (
            {"file": "/c.toml", "live": [], "waiting": []},
            ["read        /c.toml", "in force    nothing new"],
        ),
    ],
)
def test_the_output_lists_applied_and_waiting_keys(
    answer: dict[str, object], shown: list[str]
) -> None:
    """The output lists the keys."""
    assert list(lines(msgspec.convert(answer, Reloaded))) == shown
