"""`zeroclaw doctor` asks the platforms whose channels offer a check."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fakes.installed import install
from zeroclaw.cli import root

STORK = """
from pydantic import BaseModel

from zeroclaw import ChannelManifest, ChannelUnauthorized, SecretReference


class Settings(BaseModel):
    token: SecretReference


async def well(settings, secrets):
    return f"@stork, with {secrets['token']}"


async def refused(settings, secrets):
    raise ChannelUnauthorized("the token is no longer good; get a new one")


def manifest(check):
    return ChannelManifest(
        kind=check, adapter="doctored:x", settings="doctored:Settings", check=f"doctored:{check}"
    )


WELL, REFUSED, NOWHERE = manifest("well"), manifest("refused"), manifest("nowhere")
"""
ENTRIES = """[zeroclaw.channels]
well = doctored:WELL
refused = doctored:REFUSED
nowhere = doctored:NOWHERE
"""


def test_a_channels_own_check_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the platform says of the account, or why it refuses it; a secret in it is hidden (P8)."""
    (tmp_path / "doctored.py").write_text(STORK, encoding="utf-8")
    install(tmp_path, monkeypatch, ENTRIES)
    monkeypatch.setenv("STORK_TOKEN", "0123456789abcdef-stork")
    config = tmp_path / "config.toml"
    channels = "".join(
        f'[channels.{name}]\ntoken = {{ env = "STORK_TOKEN" }}\n'
        for name in ("well", "refused", "nowhere")
    )
    config.write_text(
        f"[tools]\nshell.enabled = false\nattachments.enabled = false\n{channels}", encoding="utf-8"
    )
    arguments = ["doctor", "--json", "--config", str(config), "--data-dir", str(tmp_path / "data")]
    done = CliRunner().invoke(root, arguments)
    told = [
        (one["verdict"], one["text"])
        for one in json.loads(done.stdout)["checks"]
        if one["check"] == "channels"
    ]
    assert done.exit_code == 1
    assert [verdict for verdict, _ in told] == ["ok", "ok", "fail", "fail"]
    assert told[1][1].startswith("`well`: @stork, with ")
    assert told[2][1] == "`refused`: the token is no longer good; get a new one"
    assert told[3][1].startswith("`nowhere`: ")
    assert "0123456789abcdef-stork" not in done.output
