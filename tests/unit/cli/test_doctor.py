"""`zeroclaw doctor` looks at a real machine, with a daemon and without one."""

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

from tests.emulators.pages import Page, Pages
from tests.fakes.bare_context import no_log
from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.cli import root
from zeroclaw.host.control import Control
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
    """A home of its own, without the configuration and the data of whoever runs this."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("ZEROCLAW_CONFIG", raising=False)


def doctor(
    tmp_path: Path, provider: str, more: str = "", *, above: str = "", data: str = "", port: int = 0
) -> tuple[int, Told]:
    """Exit code, and the worst line of each check."""
    config = tmp_path / "config.toml"
    config.write_text(f"{above}{PLAIN.format(port=port)}{provider}{more}", encoding="utf-8")
    place = data or str(tmp_path / "data")
    arguments = ["doctor", "--json", "--config", str(config), "--data-dir", place]
    done = CliRunner().invoke(root, arguments)
    assert done.stdout, done.output
    told: Told = {}
    for one in json.loads(done.stdout)["checks"]:
        verdict, _ = told.get(one["check"], ("ok", ""))
        if verdict == "ok" or one["verdict"] == "fail":
            told[one["check"]] = (one["verdict"], f"{one['text']}; {one['remedy']}")
    return done.exit_code, told


def scripted(tmp_path: Path) -> str:
    script = tmp_path / "script.toml"
    script.write_text('otherwise = "hello"\n', encoding="utf-8")
    return SCRIPT.format(script=script)


@asynccontextmanager
async def daemon(place: Path, answers: Mapping[str, Mapping[str, object]]) -> AsyncGenerator[None]:
    """A control socket that gives these answers."""
    control = Control(place, log=no_log)

    async def reply(line: Mapping[str, object]) -> Mapping[str, object]:
        return answers[str(line["call"])]

    for name in answers:
        control.call(name, reply)
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(control.serve(ready.set))
        await ready.wait()
        try:
            yield
        finally:
            task.cancel()


def test_before_the_first_start_nothing_fails_and_nothing_is_made(tmp_path: Path) -> None:
    """The exit code is 0: a daemon that nobody started is no fault."""
    code, told = doctor(tmp_path, scripted(tmp_path))
    assert code == 0, told
    assert told["daemon"][0] == "warn"
    assert "zeroclaw run" in told["daemon"][1]
    assert {check for check, (verdict, _) in told.items() if verdict == "fail"} == set()
    assert not (tmp_path / "data").exists()


def test_people_read_one_line_for_each_check(tmp_path: Path) -> None:
    """With the verdict before it."""
    config = tmp_path / "config.toml"
    config.write_text(PLAIN.format(port=0) + scripted(tmp_path))
    arguments = ["doctor", "--config", str(config), "--data-dir", str(tmp_path / "data")]
    lines = CliRunner().invoke(root, arguments).stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"ok", "warn"}
    assert len(lines) == len({line.split()[1] for line in lines})


def test_a_broken_configuration_is_the_first_line_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    """P10: the data are still judged, what hangs on the configuration is not."""
    secret = tmp_path / "token"
    secret.write_text("x", encoding="utf-8")
    secret.chmod(0o644)
    more = f'api_key = {{ file = "{secret}" }}\n[people]\nname = 1\n'
    code, told = doctor(tmp_path, scripted(tmp_path), more)
    assert code == 1
    assert told["configuration"][0] == "fail"
    assert told["provider"][0] == "warn"
    assert told["permissions"] == (
        "fail",
        f"provider.api_key: others can read `{secret}`; run `chmod 600 {secret}`; ",
    )


def test_a_text_that_is_no_toml_is_told(tmp_path: Path) -> None:
    """Also that nothing else can be found without it."""
    code, told = doctor(tmp_path, "a = = 1")
    assert (code, told["configuration"][0]) == (1, "fail")


def test_what_a_configuration_leaves_open_is_told(tmp_path: Path) -> None:
    """It is no fault that somebody could answer themselves under another name (P5, P10)."""
    more = (
        "[approvals]\nrequester_may_answer = false\n"
        '[channels.loopback]\nport = 1\nallowed_users = ["7"]\n'
    )
    _, told = doctor(tmp_path, scripted(tmp_path), more)
    verdict, said = told["configuration"]
    assert verdict == "warn"
    assert "can answer their own requests of another channel" in said


def test_data_that_others_can_reach_are_told(tmp_path: Path) -> None:
    """With the command that mends it; the database is looked at as it is. Models are no secret."""
    data = tmp_path / "data"
    open_for_writing(data).close()
    (data / "models").mkdir(mode=0o755)
    code, told = doctor(tmp_path, scripted(tmp_path))
    assert (code, told["permissions"][0], told["store"][0]) == (0, "ok", "ok")
    (data / FILE_NAME).chmod(0o644)
    (tmp_path / "elsewhere").write_text("")
    (data / "link").symlink_to(tmp_path / "elsewhere")
    code, told = doctor(tmp_path, scripted(tmp_path))
    assert (code, told["permissions"][0]) == (1, "fail")
    assert f"chmod 600 {data / FILE_NAME}" in told["permissions"][1]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("/proc/1/data", "this user can't write to `/proc/1`"),
        ("/dev/null/data", "`/dev/null` is no directory"),
    ],
)
def test_data_that_can_not_be_written_are_told(tmp_path: Path, data: str, why: str) -> None:
    """No daemon starts there; nothing of it need be there yet."""
    code, told = doctor(tmp_path, scripted(tmp_path), data=data)
    assert (code, told["permissions"][0], why in told["permissions"][1]) == (1, "fail", True)


@pytest.mark.parametrize(
    ("lets_in", "verdict"),
    [("", "fail"), ('allowed_users = ["7"]', "ok"), ('pairing = "code"', "ok"), ("joined", "ok")],
)
async def test_a_channel_that_lets_nobody_in_is_told(
    tmp_path: Path, lets_in: str, verdict: str
) -> None:
    """Else it is silent for everybody, and all seems well; people may have been let in earlier."""
    if lets_in == "joined":
        async with aclosing(await open_store(tmp_path / "data", clock=ManualClock())) as store:
            ann = Person(id="loopback:7", display="ann", state="admitted", by="olga", at=EPOCH)
            writes = (person_put(ann),)
            await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))
        lets_in = ""
    more = f"[channels.loopback]\nport = 9\n{lets_in}\n"
    code, told = await asyncio.to_thread(doctor, tmp_path, scripted(tmp_path), more)
    assert told["channels"][0] == verdict
    assert ("lets nobody in" in told["channels"][1]) == (code == 1) == (verdict == "fail")


def test_workspaces_that_can_not_be_made_are_told(tmp_path: Path) -> None:
    """No daemon starts without them either."""
    there = 'workspace_dir = "/proc/1/workspaces"\n'
    code, told = doctor(tmp_path, scripted(tmp_path), above=there)
    fault = "this user can't write to `/proc/1`; run `chown` on it, or name another `workspace_dir`"
    assert (code, told["permissions"]) == (1, ("fail", f"{fault}; "))


def test_damaged_receipt_keys_are_told(tmp_path: Path) -> None:
    """No daemon starts with them; its own line says the same."""
    data = tmp_path / "data"
    open_for_writing(data).close()
    (data / "receipt-keys.json").write_text("damaged")
    code, told = doctor(tmp_path, scripted(tmp_path))
    assert (code, told["store"][0], "move it away" in told["store"][1]) == (1, "fail", True)


@pytest.mark.slow
@pytest.mark.needs("unshare")
@pytest.mark.parametrize(
    ("options", "why"),
    [("ro", "read-only file system"), ("nr_inodes=1", "no space left on device")],
)
def test_a_disk_that_takes_no_file_is_told(tmp_path: Path, options: str, why: str) -> None:
    """To own it would not help; a process, because the mount is in a namespace of its own."""
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
    said = f"fail  permissions    can't create a file in `{data}`: {why}; check its disk, or name another "
    assert said in done.stdout, done


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees the data of others")
def test_root_is_not_told_to_take_the_data_of_the_user_whom_a_daemon_runs_as(
    tmp_path: Path,
) -> None:
    """With other owners that daemon would start no more; and it does not run as root."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "zeroclaw.log").touch(mode=0o600)
    for path in (data, *data.iterdir()):
        os.chown(path, 65534, 65534)
    code, told = doctor(tmp_path, scripted(tmp_path))
    fault = f"`{data}` belongs to another user; run zeroclaw as that user; "
    assert (code, told["permissions"]) == (1, ("fail", fault))
    assert "user" not in told


def test_data_in_the_place_of_which_a_file_stands_are_one_line(tmp_path: Path) -> None:
    """To own it would not help."""
    (tmp_path / "data").touch(0o600)
    code, told = doctor(tmp_path, scripted(tmp_path))
    fault = f"`{tmp_path / 'data'}` is no directory; name another `data_dir`"
    assert (code, told["permissions"]) == (1, ("fail", f"{fault}; "))


async def test_a_port_that_another_program_has_is_told(tmp_path: Path) -> None:
    """No daemon starts then; a running one has it itself."""
    (tmp_path / "data").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, told = await asyncio.to_thread(doctor, tmp_path, scripted(tmp_path), port=port)
        assert (code, told["daemon"][0]) == (1, "fail")
        assert f"port {port} on 127.0.0.1 is in use by another program" in told["daemon"][1]
        async with daemon(tmp_path / "data", {}):
            _, told = await asyncio.to_thread(doctor, tmp_path, scripted(tmp_path), port=port)
        assert "in use" not in told["daemon"][1]


def test_a_database_that_is_none_fails(tmp_path: Path) -> None:
    """One line, and the other checks go on."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / FILE_NAME).write_text("this is no database, whatever it is called", encoding="utf-8")
    (data / FILE_NAME).chmod(0o600)
    code, told = doctor(tmp_path, scripted(tmp_path))
    assert (code, told["store"][0], told["disk"][0]) == (1, "fail", "ok")


def test_a_database_of_a_newer_release_fails(tmp_path: Path) -> None:
    """No daemon of this one starts on it."""
    opened = open_for_writing(tmp_path / "data")
    opened.connection.execute("PRAGMA user_version = 99")
    opened.close()
    code, told = doctor(tmp_path, SCRIPT.format(script=tmp_path / "s.toml"))
    assert (code, told["store"][0]) == (1, "fail")
    assert "was written by a newer zeroclaw: it has schema 99" in told["store"][1]


def test_a_local_model_that_is_not_there_fails(tmp_path: Path) -> None:
    """Nothing is loaded to find that out; a kind that can't be opened fails as well."""
    code, told = doctor(tmp_path, f'kind = "local"\nmodel_file = "{tmp_path}/no.gguf"\n')
    assert (code, told["provider"][0]) == (1, "fail")
    assert f"`{tmp_path}/no.gguf`" in told["provider"][1]
    assert told["configuration"][0] == "fail"
    code, told = doctor(tmp_path, SCRIPT.format(script=tmp_path / "none.toml"))
    assert (code, told["provider"][0]) == (1, "fail")


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("HTTPS_PROXY", "", ("ok", "no proxy; certificates from Mozilla's list")),
        ("HTTPS_PROXY", "http://ann:s3cret@p.test:1", ("ok", "through http://…@p.test:1; ")),
        ("HTTPS_PROXY", "socks5://p.test", ("fail", "`HTTPS_PROXY` names no proxy")),
        ("SSL_CERT_FILE", "/nowhere.pem", ("fail", "`SSL_CERT_FILE` names certificates that ")),
        ("SSL_CERT_DIR", "/tmp", ("ok", "certificates from `SSL_CERT_DIR`")),
    ],
)
def test_how_servers_are_reached_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    told: tuple[str, str],
) -> None:
    """Before a call fails by it, and without one (P8, P10)."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        for spelled in (name, name.lower()):
            monkeypatch.delenv(spelled, raising=False)
    monkeypatch.setenv(variable, value)
    verdict, text = doctor(tmp_path, scripted(tmp_path))[1]["network"]
    assert (verdict, told[1] in text, "s3cret" in text) == (told[0], True, False)


@pytest.mark.slow
@pytest.mark.needs("llama")
@pytest.mark.parametrize(
    ("why", "remedy"),
    [("libgomp.so.1: cannot open", "Debian: libgomp1"), ("of another age", "of another age")],
)
def test_a_package_that_does_not_load_here_fails(
    why: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file may be there and lack a library of the system; that one is told with its package."""
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    provider = f'kind = "local"\nmodel_file = "{tmp_path}/a.gguf"\n'
    assert doctor(tmp_path, provider)[1]["provider"][0] == "ok"
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "xllamacpp.py").write_text(f"raise ImportError({why!r})")
    monkeypatch.setenv("PYTHONPATH", str(broken))
    code, told = doctor(tmp_path, provider)
    assert (code, told["provider"][0]) == (1, "fail")
    assert remedy in told["provider"][1]


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
async def test_a_server_is_asked_for_its_list_and_for_nothing_else(
    tmp_path: Path, page: Page, verdict: str, text: str
) -> None:
    """One GET: an answer of a model may cost money."""
    async with Pages() as server:
        server.pages["/v1/models"] = page
        provider = f'kind = "openai"\nmodel = "m"\nbase_url = "{server.url}/v1"\n'
        _, told = await asyncio.to_thread(doctor, tmp_path, provider)
        assert told["provider"][0] == verdict
        assert text in told["provider"][1]
        assert [path for path, _ in server.requests] == ["/v1/models"]


async def test_a_running_daemon_is_asked(tmp_path: Path) -> None:
    """Its channels, its shell, its last errors; what a later one says beside is passed over."""
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
        code, told = await asyncio.to_thread(doctor, tmp_path, scripted(tmp_path))
    assert code == 1
    assert told["daemon"][1].startswith("0.0.1 runs, ")
    assert told["channels"][0] == "fail"
    assert told["channels"][1].startswith("`terminal` down: no token; ")
    assert told["errors"][0] == "warn"
    assert "error: it broke" in told["errors"][1]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"status": {"version": "0.0.1"}}, "is it older?"),
        ({"status": {"version": 1}}, "in another form: expected `str`, got `int` - at `$.version`"),
    ],
)
async def test_a_daemon_that_is_not_understood_is_told(
    answers: Mapping[str, Mapping[str, object]], why: str, tmp_path: Path
) -> None:
    """In one line (P10); all that needs no daemon is judged all the same."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    async with daemon(data, answers):
        code, told = await asyncio.to_thread(doctor, tmp_path, scripted(tmp_path))
    assert (code, told["daemon"][0], told["provider"][0]) == (0, "warn", "ok")
    assert why in told["daemon"][1]
