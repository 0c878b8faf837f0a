"""`zeroclaw export`: JSON lines or a page, with and without a daemon."""

import asyncio
import json
import resource
import stat
from contextlib import aclosing
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.cli import root
from zeroclaw.conversation.inbox import Item, PersonMessage, item_put
from zeroclaw.envelope import Address, ConversationId, ItemId, Principal
from zeroclaw.store import Commit, DurablePoint
from zeroclaw.stores.sqlite import open_store
from zeroclaw.stores.sqlite.files import open_for_writing

ADA = Principal(id="person:ada", roles=frozenset(), channel="chat", sender="ada", display="Ada")
SECRET = "hunter2-and-then-some"


def run(*arguments: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(root, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory in which Ada said a secret of the environment."""
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
            said = (item_put(item, "answered", expect=0),)
            await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=said))

    asyncio.run(fill())
    return place


def test_lines_are_written_with_and_without_a_daemon(data: Path) -> None:
    """Secrets are redacted, and nothing is changed."""
    code, out, err = run("export", "ada", "--data-dir", data)
    assert (code, err) == (0, "")
    assert json.loads(out)["by"] == "Ada"
    assert SECRET not in out
    opened = open_for_writing(data)
    assert run("export", "ada", "--data-dir", data)[1] == out
    opened.close()


def test_a_page_is_written_for_its_owner_alone(data: Path, tmp_path: Path) -> None:
    """Nothing is written over something else."""
    to = tmp_path / "ada.html"
    code, out, _ = run("export", "ada", "--page", "--to", to, "--data-dir", data)
    assert (code, out) == (0, f"exported to {to}\n")
    assert to.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    code, _, err = run("export", "ada", "--page", "--to", to, "--data-dir", data)
    assert (code, "can't be written: file exists" in err) == (1, True)


def test_an_export_that_does_not_fit_leaves_nothing(data: Path, tmp_path: Path) -> None:
    """The line names the file, and the same command works once there is room (P10)."""
    to = tmp_path / "ada.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        code, _, err = run("export", "ada", "--to", to, "--data-dir", data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (code, err) == (1, f"zeroclaw: `{to}` can't be written: file too large\n")
    assert not to.exists()


def test_where_nothing_is_kept_it_is_said(data: Path, tmp_path: Path) -> None:
    """Of nobody, and nowhere."""
    code, out, err = run("export", "nobody", "--data-dir", data)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "nothing is kept of `nobody`" in err
    code, _, err = run("export", "ada", "--data-dir", tmp_path / "empty")
    assert (code, "holds no data yet" in err) == (1, True)
