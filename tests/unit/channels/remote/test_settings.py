"""To which addresses a secret may go."""

import pytest

from channels._remote.settings import is_safe


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://example.org/x", True),
        ("http://127.0.0.1:8081", True),
        ("http://bot-api:8081", True),
        ("http://example.org", False),
        ("ftp://example.org", False),
        ("https:///x", False),
        ("https://[", False),
        ("", False),
    ],
)
def test_a_secret_goes_by_tls_or_to_a_machine_near_by(url: str, *, safe: bool) -> None:
    assert is_safe(url) is safe
