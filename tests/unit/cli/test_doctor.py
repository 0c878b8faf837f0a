"""`zeroclaw doctor` checks a real machine, with a daemon and without one."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.contract.terminal_harness import control_socket
from tests.emulators.pages import Page, Pages
from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.cli import root
from zeroclaw.inbound.identity import Person, person_put
from zeroclaw.store import Commit, DurablePoint
from zeroclaw.stores.sqlite import open_store
from zeroclaw.stores.sqlite.files import FILE_NAME, open_for_writing

SCRIPT = 'kind = "scripted"\nscript = "{script}"\n'
PLAIN = """[tools]
shell.enabled = false
attachments.enabled = false
[listener]
port = {port}
[provider]
"""
"""Without a shell, so that no sandbox is tried."""
Told = dict[str, tuple[str, str]]


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty home, without the configuration and the data of the user who runs the tests."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("ZEROCLAW_CONFIG", raising=False)


def doctor(
    tmp_path: Path,
    provider: str,
    extra: str = "",
    *,
    above: str = "",
    data: str = "",
    port: int = 0,
) -> tuple[int, Told]:
    """Exit code, and the worst line of each check."""
    config = tmp_path / "config.toml"
    config.write_text(f"{above}{PLAIN.format(port=port)}{provider}{extra}", encoding="utf-8")
    place = data or str(tmp_path / "data")
    arguments = ["doctor", "--json", "--config", str(config), "--data-dir", place]
    done = CliRunner().invoke(root, arguments)
    assert done.stdout, done.output
    verdicts: Told = {}
    for check in json.loads(done.stdout)["checks"]:
        verdict, _ = verdicts.get(check["check"], ("ok", ""))
        if verdict == "ok" or check["verdict"] == "fail":
            verdicts[check["check"]] = (check["verdict"], f"{check['text']}; {check['remedy']}")
    return done.exit_code, verdicts


def scripted(tmp_path: Path) -> str:
    script = tmp_path / "script.toml"
    script.write_text('otherwise = "hello"\n', encoding="utf-8")
    return SCRIPT.format(script=script)


@asynccontextmanager
async def daemon(place: Path, answers: Mapping[str, Mapping[str, object]]) -> AsyncGenerator[None]:
    """A daemon's control socket that gives these answers."""

    async def reply(line: Mapping[str, object]) -> Mapping[str, object]:
        return answers[str(line["call"])]

    async with control_socket(place) as control:
        for name in answers:
            control.call(name, reply)
        yield


def test_before_the_first_start_nothing_fails_and_no_file_is_made(tmp_path: Path) -> None:
    """The exit code is 0: a daemon that was never started is no fault."""
    code, verdicts = doctor(tmp_path, scripted(tmp_path))
    assert code == 0, verdicts
    assert verdicts["daemon"][0] == "warn"
    assert "zeroclaw run" in verdicts["daemon"][1]
    assert {check for check, (verdict, _) in verdicts.items() if verdict == "fail"} == set()
    assert not (tmp_path / "data").exists()


def test_each_check_prints_one_line(tmp_path: Path) -> None:
    """The verdict comes first."""
    config = tmp_path / "config.toml"
    config.write_text(PLAIN.format(port=0) + scripted(tmp_path))
    arguments = ["doctor", "--config", str(config), "--data-dir", str(tmp_path / "data")]
    lines = CliRunner().invoke(root, arguments).stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"ok", "warn"}
    assert len(lines) == len({line.split()[1] for line in lines})


def test_a_broken_configuration_is_the_first_line_and_the_rest_is_checked(tmp_path: Path) -> None:
    """P10: the data are still checked, except what depends on the configuration."""
    secret = tmp_path / "token"
    secret.write_text("x", encoding="utf-8")
    secret.chmod(0o644)
    extra = f'api_key = {{ file = "{secret}" }}\n[people]\nname = 1\n'
    code, verdicts = doctor(tmp_path, scripted(tmp_path), extra)
    assert code == 1
    assert verdicts["configuration"][0] == "fail"
    assert verdicts["provider"][0] == "warn"
    assert verdicts["permissions"] == (
        "fail",
        f"provider.api_key: others can read `{secret}`; run `chmod 600 {secret}`; ",
    )


def test_a_text_that_is_no_toml_is_reported(tmp_path: Path) -> None:
    """So is that the other checks need it."""
    config = tmp_path / "config.toml"
    config.write_text("a = = 1", encoding="utf-8")
    result = CliRunner().invoke(root, ["doctor", "--config", str(config)])
    lines = dict(line.split(maxsplit=2)[1::-1] for line in result.stdout.splitlines())
    assert (lines["configuration"], lines["store"]) == ("fail", "fail")
    assert "permissions" not in lines


def test_a_loose_configuration_is_a_warning(tmp_path: Path) -> None:
    """It is no fault that a person could approve their own request under another name (P5, P10)."""
    extra = (
        "[approvals]\nrequester_may_answer = false\n"
        '[channels.loopback]\nport = 1\nallowed_users = ["7"]\n'
    )
    _, verdicts = doctor(tmp_path, scripted(tmp_path), extra)
    verdict, text = verdicts["configuration"]
    assert verdict == "warn"
    assert "can answer their own requests of another channel" in text


def test_data_that_others_can_read_are_reported(tmp_path: Path) -> None:
    """The line has the command that fixes it; the database is read as it is. Models are no
    secret."""
    data = tmp_path / "data"
    open_for_writing(data).close()
    (data / "models").mkdir(mode=0o755)
    code, verdicts = doctor(tmp_path, scripted(tmp_path))
    assert (code, verdicts["permissions"][0], verdicts["store"][0]) == (0, "ok", "ok")
    (data / FILE_NAME).chmod(0o644)
    (tmp_path / "elsewhere").write_text("")
    (data / "link").symlink_to(tmp_path / "elsewhere")
    code, verdicts = doctor(tmp_path, scripted(tmp_path))
    assert (code, verdicts["permissions"][0]) == (1, "fail")
    assert f"chmod 600 {data / FILE_NAME}" in verdicts["permissions"][1]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("/proc/1/data", "this user can't write to `/proc/1`"),
        ("/dev/null/data", "`/dev/null` is no directory"),
    ],
)
def test_unwritable_data_are_reported(tmp_path: Path, data: str, reason: str) -> None:
    """No daemon could start there; the directory need not exist yet."""
    code, verdicts = doctor(tmp_path, scripted(tmp_path), data=data)
    assert (code, verdicts["permissions"][0], reason in verdicts["permissions"][1]) == (
        1,
        "fail",
        True,
    )


@pytest.mark.parametrize(
    ("lets_in", "verdict"),
    [("", "fail"), ('allowed_users = ["7"]', "ok"), ('pairing = "code"', "ok"), ("joined", "ok")],
)
async def test_a_channel_that_admits_no_one_is_reported(
    tmp_path: Path, lets_in: str, verdict: str
) -> None:
    """Otherwise it stays silent and all seems well; people may have been admitted earlier."""
    if lets_in == "joined":
        async with aclosing(await open_store(tmp_path / "data", clock=ManualClock())) as store:
            ann = Person(id="loopback:7", display="ann", state="admitted", by="olga", at=EPOCH)
            writes = (person_put(ann),)
            await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))
        lets_in = ""
    extra = f"[channels.loopback]\nport = 9\n{lets_in}\n"
    code, verdicts = await asyncio.to_thread(doctor, tmp_path, scripted(tmp_path), extra)
    assert verdicts["channels"][0] == verdict
    assert ("lets nobody in" in verdicts["channels"][1]) == (code == 1) == (verdict == "fail")


def test_workspaces_that_can_not_be_made_are_reported(tmp_path: Path) -> None:
    """No daemon could start without them."""
    there = 'workspace_dir = "/proc/1/workspaces"\n'
    code, verdicts = doctor(tmp_path, scripted(tmp_path), above=there)
    fault = "this user can't write to `/proc/1`; run `chown` on it, or name another `workspace_dir`"
    assert (code, verdicts["permissions"]) == (1, ("fail", f"{fault}; "))


def test_damaged_receipt_keys_are_reported(tmp_path: Path) -> None:
    """No daemon could start with them; its own error says the same."""
    data = tmp_path / "data"
    open_for_writing(data).close()
    (data / "receipt-keys.json").write_text("damaged")
    code, verdicts = doctor(tmp_path, scripted(tmp_path))
    assert (code, verdicts["store"][0], "move it away" in verdicts["store"][1]) == (1, "fail", True)


@pytest.mark.slow
@pytest.mark.needs("unshare")
@pytest.mark.parametrize(
    ("options", "reason"),
    [("ro", "read-only file system"), ("nr_inodes=1", "no space left on device")],
)
def test_an_unwritable_disk_is_reported(tmp_path: Path, options: str, reason: str) -> None:
    """A chown would not help. It runs in a process because the mount has its own namespace."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    script = f'mount -t tmpfs -o {options},mode=0700 tmpfs "$0" && exec "$@"'
    doctor = (sys.executable, "-m", "zeroclaw", "doctor", "--data-dir", str(data))
    done = subprocess.run(
        ("unshare", "--map-root-user", "--mount", "sh", "-c", script, str(data), *doctor),
        capture_output=True,
        text=True,
        check=False,
    )
    line = f"fail  permissions    can't create a file in `{data}`: {reason}; check its disk, or name another "
    assert line in done.stdout, done


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees the data of others")
def test_root_is_not_advised_to_take_over_the_daemon_users_data(tmp_path: Path) -> None:
    """That daemon does not run as root, and would no longer start with other owners."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "zeroclaw.log").touch(mode=0o600)
    for path in (data, *data.iterdir()):
        os.chown(path, 65534, 65534)
    code, verdicts = doctor(tmp_path, scripted(tmp_path))
    fault = f"`{data}` belongs to another user; run zeroclaw as that user; "
    assert (code, verdicts["permissions"]) == (1, ("fail", fault))
    assert "user" not in verdicts


def test_a_file_in_place_of_the_data_directory_is_one_line(tmp_path: Path) -> None:
    """A chown would not help."""
    (tmp_path / "data").touch(0o600)
    code, verdicts = doctor(tmp_path, scripted(tmp_path))
    fault = f"`{tmp_path / 'data'}` is no directory; name another `data_dir`"
    assert (code, verdicts["permissions"]) == (1, ("fail", f"{fault}; "))


async def test_a_port_taken_by_another_program_is_reported(tmp_path: Path) -> None:
    """No daemon could start then; a running one holds the port itself."""
    (tmp_path / "data").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, verdicts = await asyncio.to_thread(doctor, tmp_path, scripted(tmp_path), port=port)
        assert (code, verdicts["daemon"][0]) == (1, "fail")
        assert f"port {port} on 127.0.0.1 is in use by another program" in verdicts["daemon"][1]
        async with daemon(tmp_path / "data", {}):
            _, verdicts = await asyncio.to_thread(doctor, tmp_path, scripted(tmp_path), port=port)
        assert "in use" not in verdicts["daemon"][1]


def test_a_file_that_is_no_database_fails(tmp_path: Path) -> None:
    """One line, and the other checks go on."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / FILE_NAME).write_text("this is no database, whatever it is called", encoding="utf-8")
    (data / FILE_NAME).chmod(0o600)
    code, verdicts = doctor(tmp_path, scripted(tmp_path))
    assert (code, verdicts["store"][0], verdicts["disk"][0]) == (1, "fail", "ok")


def test_a_database_of_a_newer_release_fails(tmp_path: Path) -> None:
    """No daemon of this release starts on it."""
    opened = open_for_writing(tmp_path / "data")
    opened.connection.execute("PRAGMA user_version = 99")
    opened.close()
    code, verdicts = doctor(tmp_path, SCRIPT.format(script=tmp_path / "s.toml"))
    assert (code, verdicts["store"][0]) == (1, "fail")
    assert "was written by a newer zeroclaw: it has schema 99" in verdicts["store"][1]


def test_a_missing_secret_fails(tmp_path: Path) -> None:
    key = 'model = "m"\nbase_url = "http://127.0.0.1:9/v1"\napi_key = {env = "NOWHERE_SET"}\n'
    code, verdicts = doctor(tmp_path, key)
    assert (code, verdicts["secrets"][0]) == (1, "fail")
    assert "`NOWHERE_SET` is not set" in verdicts["secrets"][1]


def test_a_missing_local_model_fails(tmp_path: Path) -> None:
    """The check loads no model; a kind that can't be opened fails as well."""
    code, verdicts = doctor(tmp_path, f'kind = "local"\nmodel_file = "{tmp_path}/no.gguf"\n')
    assert (code, verdicts["provider"][0]) == (1, "fail")
    assert f"`{tmp_path}/no.gguf`" in verdicts["provider"][1]
    assert verdicts["configuration"][0] == "fail"
    code, verdicts = doctor(tmp_path, SCRIPT.format(script=tmp_path / "none.toml"))
    assert (code, verdicts["provider"][0]) == (1, "fail")


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("HTTPS_PROXY", "", ("ok", "no proxy; certificates from Mozilla's list")),
        ("HTTPS_PROXY", "http://ann:s3cret@p.test:1", ("ok", "through http://…@p.test:1; ")),
        ("HTTPS_PROXY", "socks5://p.test", ("fail", "`HTTPS_PROXY` names no proxy")),
        ("SSL_CERT_FILE", "/nowhere.pem", ("fail", "`SSL_CERT_FILE` names certificates that ")),
        ("SSL_CERT_DIR", "/tmp", ("ok", "certificates from `SSL_CERT_DIR`")),
    ],
)
def test_the_route_to_servers_is_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    expected: tuple[str, str],
) -> None:
    """The check makes no call (P8, P10)."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        for spelled in (name, name.lower()):
            monkeypatch.delenv(spelled, raising=False)
    monkeypatch.setenv(variable, value)
    verdict, text = doctor(tmp_path, scripted(tmp_path))[1]["network"]
    assert (verdict, expected[1] in text, "s3cret" in text) == (expected[0], True, False)


@pytest.mark.slow
@pytest.mark.needs("llama")
@pytest.mark.parametrize(
    ("reason", "remedy"),
    [("libgomp.so.1: cannot open", "Debian: libgomp1"), ("of another age", "of another age")],
)
def test_a_package_that_does_not_load_here_fails(
    reason: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file may lack a system library; that library is named with its package."""
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    provider = f'kind = "local"\nmodel_file = "{tmp_path}/a.gguf"\n'
    assert doctor(tmp_path, provider)[1]["provider"][0] == "ok"
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "xllamacpp.py").write_text(f"raise ImportError({reason!r})")
    monkeypatch.setenv("PYTHONPATH", str(broken))
    code, verdicts = doctor(tmp_path, provider)
    assert (code, verdicts["provider"][0]) == (1, "fail")
    assert remedy in verdicts["provider"][1]


@pytest.mark.parametrize(
    ("page", "verdict", "text"),
    [
        (Page(body=b'{"data": [{"id": "m:latest"}]}'), "ok", "it answers"),
        (Page(body=b'{"data": []}'), "ok", "it answers"),
        (Page(body=b'{"data": [{"id": "x"}]}'), "warn", "its list has no such model"),
        (Page(status=401), "fail", "provider.api_key"),
        (Page(status=404), "warn", "answered 404"),
        (Page(status=502), "fail", "answered 502"),
    ],
)
async def test_a_server_is_asked_only_for_its_list(
    tmp_path: Path, page: Page, verdict: str, text: str
) -> None:
    """It is one GET: a model call may cost money."""
    async with Pages() as server:
        server.pages["/v1/models"] = page
        provider = f'kind = "openai"\nmodel = "m"\nbase_url = "{server.url}/v1"\n'
        _, verdicts = await asyncio.to_thread(doctor, tmp_path, provider)
        assert verdicts["provider"][0] == verdict
        assert text in verdicts["provider"][1]
        assert [path for path, _ in server.requests] == ["/v1/models"]


async def test_a_running_daemon_is_asked(tmp_path: Path) -> None:
    """Its channels, its shell, its last errors; unknown fields of a later release are ignored."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    status = {
        "version": "0.0.1",
        "channels": {
            "web": {"condition": "up", "since": "2026-01-01T12:00:00+00:00", "why": ""},
            "terminal": {"condition": "down", "why": "no token", "mood": "bad"},
        },
    }
    trouble = {"at": "2026-01-01T12:00:00+00:00", "level": "error", "text": "it broke"}
    errors = {"errors": [trouble], "sandbox": ""}
    async with daemon(data, {"status": status, "errors": errors}):
        code, verdicts = await asyncio.to_thread(doctor, tmp_path, scripted(tmp_path))
    assert code == 1
    assert verdicts["daemon"][1].startswith("0.0.1 runs, ")
    assert verdicts["channels"][0] == "fail"
    assert verdicts["channels"][1].startswith("`terminal` down: no token; ")
    assert verdicts["errors"][0] == "warn"
    assert "error: it broke" in verdicts["errors"][1]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"status": {"version": "0.0.1"}}, "is it older?"),
        ({"status": {"version": 1}}, "in another form: expected `str`, got `int` - at `$.version`"),
    ],
)
async def test_a_daemon_with_an_unknown_answer_is_reported(
    answers: Mapping[str, Mapping[str, object]], reason: str, tmp_path: Path
) -> None:
    """In one line (P10); the checks that need no daemon run all the same."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    async with daemon(data, answers):
        code, verdicts = await asyncio.to_thread(doctor, tmp_path, scripted(tmp_path))
    assert (code, verdicts["daemon"][0], verdicts["provider"][0]) == (0, "warn", "ok")
    assert reason in verdicts["daemon"][1]
