"""The public listener's opening: a port, a certificate and paths that can be used, or one line."""

from pathlib import Path

import pytest

from tests.fakes.house_parts import Facts
from zeroclaw.errors import ConfigError, PortInUse
from zeroclaw.host.public import PublicListener, open_public
from zeroclaw.mount import HookAnswer, HookRequest

CERTIFICATE = Path(__file__).with_name("certificate")


async def opened(port: int = 0, cert_file: str = "", key_file: str = "") -> PublicListener:
    return await open_public(
        host="127.0.0.1", port=port, cert_file=cert_file, key_file=key_file, log=Facts()
    )


async def test_a_taken_port_is_told_in_a_line_with_its_key() -> None:
    """P10: what is wrong, where, and what to do."""
    listener = await opened()
    with pytest.raises(PortInUse, match=r"set `public\.port` to a free one, or stop that"):
        await opened(listener.port)
    await listener.aclose()


async def test_a_certificate_that_can_not_be_used_is_told_in_a_line(tmp_path: Path) -> None:
    cert, key = str(CERTIFICATE / "cert.pem"), str(CERTIFICATE / "key.pem")
    with pytest.raises(ConfigError, match=r"public\.key_file: `.*` can't be read: no such file"):
        await opened(cert_file=cert, key_file=str(tmp_path / "gone.pem"))
    with pytest.raises(ConfigError, match=r"public\.cert_file: .* are no certificate and its key"):
        await opened(cert_file=key, key_file=cert)


async def test_what_was_opened_and_never_served_frees_its_port() -> None:
    listener = await opened()
    await listener.aclose()
    await (await opened(listener.port)).aclose()


@pytest.mark.parametrize("path", ["", "/", "hook", "/a//b", "/a/", "/ä", "/a?b", "/a%20b"])
async def test_an_odd_path_is_refused(path: str) -> None:
    async def take(_request: HookRequest) -> HookAnswer:
        return HookAnswer()

    listener = await opened()
    with pytest.raises(ConfigError, match="can't be the path"), listener.mount(path, take):
        pass
    await listener.aclose()
