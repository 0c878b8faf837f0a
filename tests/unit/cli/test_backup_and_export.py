"""`zeroclaw backup`, `restore` and `export`, with and without a daemon."""

import asyncio
import json
import resource
import sqlite3
import stat
from contextlib import aclosing, closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.cli import client, root
from zeroclaw.conversation.inbox import Item, PersonMessage, item_put
from zeroclaw.envelope import Address, ConversationId, ItemId, Principal
from zeroclaw.gate import grant
from zeroclaw.gate.grant import GRANTS, Grant
from zeroclaw.host.answers import Redacted
from zeroclaw.host.control import DaemonUnreachable
from zeroclaw.inbound.identity import PEOPLE, Person, person_put
from zeroclaw.inbound.live_config import HALTS, Halt, halt_put
from zeroclaw.store import PAGE, Commit, DurablePoint, Put, RowKind
from zeroclaw.stores.sqlite import open_store, statements
from zeroclaw.stores.sqlite.files import FILE_NAME, open_for_writing
from zeroclaw.value import replace


def run(*arguments: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(root, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout, done.stderr


def test_a_backup_is_made_while_a_daemon_runs_and_restored_when_none_does(tmp_path: Path) -> None:
    """The keys of receipts go with it; errors are one line each."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    opened = open_for_writing(data)
    (data / "receipt-keys.json").write_text("keys", encoding="utf-8")

    assert run("backup", copy, "--data-dir", data) == (0, f"backed up to {copy}\n", "")
    code, _, err = run("restore", copy, "--force", "--data-dir", data)
    assert (code, err.count("\n")) == (1, 1)
    assert "another zeroclaw" in err
    opened.close()

    code, _, err = run("restore", copy, "--data-dir", data)
    assert (code, "--force" in err) == (1, True)
    (data / "receipt-keys.json").unlink()
    code, out, _ = run("restore", copy, "--force", "--data-dir", data)
    assert (code, out) == (0, f"restored {data} from {copy}\n")
    assert (data / "receipt-keys.json").read_text(encoding="utf-8") == "keys"
    assert (data / FILE_NAME).is_file()


def test_the_files_of_channels_are_restored_into_a_new_place(tmp_path: Path) -> None:
    """Such as a renewed login, and which mail was read; a place with its own files keeps them."""
    data, copy, other = tmp_path / "data", tmp_path / "copy", tmp_path / "other"
    open_for_writing(data).close()
    note = "channels/email/read-up-to"
    (data / note).parent.mkdir(parents=True, mode=0o700)
    (data / note).write_text("7", encoding="utf-8")
    assert run("backup", copy, "--data-dir", data)[0] == 0
    (data / note).write_text("9", encoding="utf-8")
    assert run("restore", copy, "--data-dir", other)[0] == 0
    assert run("restore", copy, "--force", "--data-dir", data)[0] == 0
    assert [(place / note).read_text("utf-8") for place in (copy, other, data)] == ["7", "7", "9"]
    modes = [(other / name).stat().st_mode & 0o777 for name in (note, "channels/email")]
    assert modes == [0o600, 0o700]


def test_an_interrupted_restore_is_finished_by_the_next(tmp_path: Path) -> None:
    """Half of a channel's files would look like the place's own."""
    data, copy, other = tmp_path / "data", tmp_path / "copy", tmp_path / "other"
    open_for_writing(data).close()
    (data / "channels").mkdir()
    (data / "channels" / "a").write_text("7", encoding="utf-8")
    assert run("backup", copy, "--data-dir", data)[0] == 0
    late = copy / "channels" / "b"
    late.symlink_to(late)  # it can't be read
    assert run("restore", copy, "--data-dir", other)[0] == 1
    late.unlink()
    late.write_text("8", encoding="utf-8")
    assert run("restore", copy, "--force", "--data-dir", other)[0] == 0
    assert {path.name for path in (other / "channels").iterdir()} == {"a", "b"}


def test_there_is_no_backup_before_the_first_start(tmp_path: Path) -> None:
    """The command says so, and makes nothing."""
    code, out, err = run("backup", tmp_path / "copy", "--data-dir", tmp_path)
    assert (code, out) == (1, "")
    assert "zeroclaw run" in err
    assert not (tmp_path / "copy").exists()


def test_workspace_files_are_untrusted_after_a_restore(tmp_path: Path) -> None:
    """No backup has them, so the store notes the time: older files are not trusted."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    open_for_writing(data).close()
    assert run("backup", copy, "--data-dir", data)[0] == 0
    assert run("restore", copy, "--force", "--data-dir", data)[0] == 0
    with closing(sqlite3.connect(data / FILE_NAME)) as store:
        rows = store.execute("SELECT kind, key, length(place) FROM stored_row").fetchall()
    assert rows == [("workspace", "/restored", 26)]
    assert {path.name for path in data.iterdir()} >= {FILE_NAME}
    assert not [path.name for path in data.iterdir() if "restoring" in path.name]


def test_a_restore_keeps_revocations_and_drops_grants(tmp_path: Path) -> None:
    """An older backup would admit revoked people again and bring ended grants back (P4, P5)."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    granted = grant.to_put(
        Grant(
            id="g",
            conversation=ConversationId("c"),
            tool="poke",
            resources=(),
            arguments_hash=None,
            granted_by="Ann",
            until=EPOCH,
        )
    )
    put_rows(data, granted, person_put(replace(EVE, state="admitted")))
    assert run("backup", copy, "--data-dir", data)[0] == 0
    halt = Halt(by="Ann", at=EPOCH)
    put_rows(data, person_put(EVE), halt_put(halt))
    assert run("restore", copy, "--force", "--data-dir", data)[0] == 0
    with closing(sqlite3.connect(data / FILE_NAME)) as store:
        (known,) = statements.select(store, PEOPLE.where())
        (switch,) = statements.select(store, HALTS.where())
        assert (PEOPLE.of(known), HALTS.of(switch)) == (EVE, halt)
        assert statements.select(store, GRANTS.where()) == ()


def test_any_number_of_revocations_is_kept(tmp_path: Path) -> None:
    """More than one page of rows (P4)."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    put_rows(data)
    assert run("backup", copy, "--data-dir", data)[0] == 0
    ids = {f"telegram:{number}" for number in range(PAGE + 1)}
    put_rows(data, *(person_put(replace(EVE, id=id_)) for id_ in ids))
    assert run("restore", copy, "--force", "--data-dir", data)[0] == 0
    with closing(sqlite3.connect(data / FILE_NAME)) as store:
        rows = statements.select(store, PEOPLE.where(limit=PAGE + 2))
    assert {PEOPLE.of(row).id for row in rows} == ids


def test_a_restore_that_can_not_read_the_revocations_says_so(tmp_path: Path) -> None:
    """The backup is restored all the same (P4)."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    put_rows(data)
    assert run("backup", copy, "--data-dir", data)[0] == 0
    (data / FILE_NAME).write_text("this is no database any more", encoding="utf-8")
    code, out, err = run("restore", copy, "--force", "--data-dir", data)
    assert (code, out) == (0, f"restored {data} from {copy}\n")
    assert "people revoked since the backup may be let in again" in err
    assert run("restore", copy, "--force", "--data-dir", data)[2] == ""


def test_a_restore_leaves_a_damaged_revocation_behind(tmp_path: Path) -> None:
    """With it the daemon would not start after any restore; the others stay in force (P4)."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    put_rows(data)
    assert run("backup", copy, "--data-dir", data)[0] == 0
    put_rows(data, person_put(EVE), replace(person_put(EVE), key="telegram:8", body=b"{"))
    code, _, err = run("restore", copy, "--force", "--data-dir", data)
    assert (code, "people revoked since the backup may be let in again" in err) == (0, True)
    with closing(sqlite3.connect(data / FILE_NAME)) as store:
        (known,) = statements.select(store, PEOPLE.where())
    assert PEOPLE.of(known) == EVE


EVE = Person(id="telegram:7", display="Eve", state="revoked", by="Ann", at=EPOCH)


def put_rows(data: Path, *rows: Put) -> None:
    """Put rows into a store that no daemon has open."""
    opened = open_for_writing(data)
    opened.connection.execute("BEGIN")
    for row in rows:
        statements.put(opened.connection, row)
    opened.connection.execute("COMMIT")
    opened.close()


# --- `zeroclaw export`: JSON lines or a page ------------------------------------------------------

ADA = Principal(id="person:ada", roles=frozenset(), channel="chat", sender="ada", display="Ada")
SECRET = "hunter2-and-then-some"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with a message of Ada's that holds a secret of the environment."""
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    place = tmp_path / "data"
    item = Item(
        id=ItemId("01KDWRR4R00000000000000001"),
        conversation=ConversationId("01HERE"),
        address=Address(channel="chat", account="bot", chat="ada", direct=True),
        principal=ADA,
        content=PersonMessage(text=f"hello {SECRET} {'and so on ' * 10_000}"),
        admitted_at=EPOCH,
    )

    async def fill() -> None:
        async with aclosing(await open_store(place, clock=ManualClock())) as store:
            writes = (item_put(item, "answered"),)
            await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))

    asyncio.run(fill())
    return place


def test_lines_are_written_with_and_without_a_daemon(data: Path) -> None:
    """Secrets are redacted, and the store is not changed."""
    code, out, err = run("export", "ada", "--data-dir", data)
    assert (code, err) == (0, "")
    assert json.loads(out)["by"] == "Ada"
    assert SECRET not in out
    opened = open_for_writing(data)
    assert run("export", "ada", "--data-dir", data)[1] == out
    opened.close()


def test_an_export_is_redacted_by_the_running_daemon_too(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment may have secrets that this one lacks; a long text goes in pieces."""

    async def redact(
        _place: Path, call: str, kind: type[Redacted], *, texts: tuple[str, ...]
    ) -> Redacted:
        assert call == "redact"
        return kind(texts=tuple(text.replace("and so on", "…") for text in texts))

    monkeypatch.setattr(client, "ask", redact)
    code, out, err = run("export", "ada", "--data-dir", data)
    assert (code, err) == (0, "")
    assert json.loads(out)["text"].split(" ", 2)[2] == "… " * 10_000


def test_an_export_that_a_daemon_did_not_redact_says_so(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon may know more secrets; it can be another user's, or have no connection left."""

    async def refuse(_place: Path, _call: str, _kind: type[object], **_arguments: object) -> None:
        message = "the zeroclaw here went away before it answered"
        raise DaemonUnreachable(message)

    monkeypatch.setattr(client, "ask", refuse)
    code, out, err = run("export", "ada", "--data-dir", data)
    assert (code, out.count("\n"), err.count("\n")) == (0, 1, 1)
    assert "before it answered; secrets that only the daemon has are not redacted" in err


def test_a_page_is_written_for_its_owner_alone(data: Path, tmp_path: Path) -> None:
    """An existing file is not overwritten."""
    to = tmp_path / "ada.html"
    code, out, _ = run("export", "ada", "--page", "--to", to, "--data-dir", data)
    assert (code, out) == (0, f"exported to {to}\n")
    assert to.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    code, _, err = run("export", "ada", "--page", "--to", to, "--data-dir", data)
    assert (code, "can't be written: file exists; name another" in err) == (1, True)


def test_a_damaged_record_is_reported_beside_the_rest(data: Path) -> None:
    """Both the operator and the reader see that a record is missing (P10)."""
    put_rows(data, Put(kind=RowKind.NOTE, key="n", body=b"{"))
    code, out, err = run("export", "ada", "--data-dir", data)
    assert [json.loads(line)["kind"] for line in out.splitlines()] == ["damaged", "said"]
    warning = "zeroclaw: 1 of the records can't be read, and are only listed, as `damaged`\n"
    assert (code, err) == (0, warning)


def test_a_damaged_record_alone_makes_no_export_of_an_unknown_name(data: Path) -> None:
    """It may be anyone's, so a mistyped name must not pass for a known one (P10)."""
    put_rows(data, Put(kind=RowKind.NOTE, key="n", body=b"{"))
    code, out, err = run("export", "aad", "--data-dir", data)
    assert (code, out, "nothing that can be read is stored of `aad`" in err) == (1, "", True)


def test_a_sender_whom_the_configuration_names_is_that_person(data: Path, tmp_path: Path) -> None:
    """In any spelling of the address, as `/forget` takes it."""
    config = tmp_path / "config.toml"
    people = 'people = [{name = "ada", ids = ["email:ada@example.com"]}]\n'
    mail = (
        '[channels.email]\naddress = "bot@example.com"\npassword = {env = "SOME_API_KEY"}\n'
        'imap_host = "mail.example.com"\nsmtp_host = "mail.example.com"\n'
    )
    config.write_text(f"{people}{mail}", encoding="utf-8")
    code, out, err = run("export", "email:Ada@Example.com", "--config", config, "--data-dir", data)
    assert (code, err) == (0, "")
    assert json.loads(out)["by"] == "Ada"


def test_a_missing_secret_is_named_in_one_escaped_line(data: Path, tmp_path: Path) -> None:
    """The path in a configuration must not look like another path in the terminal (P10)."""
    config = tmp_path / "config.toml"
    key = '[provider]\nmodel = "m"\nbase_url = "http://127.0.0.1:9"\napi_key = {file = "/nowhere/\\u202etxt"}\n'
    config.write_text(key, encoding="utf-8")
    code, _, err = run("export", "ada", "--config", config, "--data-dir", data)
    assert (code, "\u202e" in err, err.count("\n")) == (0, False, 1)
    assert err.startswith("zeroclaw: provider.api_key: `/nowhere/")


def test_an_export_that_does_not_fit_leaves_nothing(data: Path, tmp_path: Path) -> None:
    """The line names the file, and the same command works once there is room (P10)."""
    to = tmp_path / "ada.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        code, _, err = run("export", "ada", "--to", to, "--data-dir", data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (code, err) == (1, f"zeroclaw: `{to}` can't be written: file too large; name another\n")
    assert not to.exists()


def test_an_empty_export_says_so(data: Path, tmp_path: Path) -> None:
    """For an unknown person, and without a store."""
    code, out, err = run("export", "nobody", "--data-dir", data)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "nothing is stored of `nobody`" in err
    code, _, err = run("export", "ada", "--data-dir", tmp_path / "empty")
    assert (code, "holds no data yet" in err) == (1, True)
