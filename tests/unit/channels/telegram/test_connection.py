"""What is trusted is read once, however often a channel is made anew."""

import gc
import ssl
from pathlib import Path

import certifi
import pytest

from channels.telegram.calls import Calls
from channels.telegram.connection import trust


def contexts() -> int:
    return sum(isinstance(one, ssl.SSLContext) for one in gc.get_objects())


def made() -> Calls:
    return Calls(
        name="telegram", token="1:a", base_url="https://telegram.test", link_previews=False
    )


async def test_certificates_are_read_once_for_all_starts_of_a_channel() -> None:
    """An outage starts a channel again and again; each reading took two thirds of a MiB."""
    all_ = [made()]
    before = contexts()
    all_ += [made() for _ in range(3)]
    assert contexts() == before
    for one in all_:
        await one.aclose()


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_an_operator_says_whom_to_trust(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy that opens TLS has certificates of its own, which the environment names."""
    one = tmp_path / "one.pem"
    one.write_text(first_of(Path(certifi.where()).read_text(encoding="ascii")), encoding="ascii")
    for other in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(other, raising=False)
    trust.cache_clear()
    try:
        assert len(trust().get_ca_certs()) > 1
        trust.cache_clear()
        monkeypatch.setenv(name, str(one if name == "SSL_CERT_FILE" else tmp_path))
        # Those of a directory are looked for when one is needed.
        assert len(trust().get_ca_certs()) == (1 if name == "SSL_CERT_FILE" else 0)
    finally:
        trust.cache_clear()


def first_of(bundle: str) -> str:
    end = "-----END CERTIFICATE-----\n"
    return bundle[bundle.index("-----BEGIN") : bundle.index(end) + len(end)]
