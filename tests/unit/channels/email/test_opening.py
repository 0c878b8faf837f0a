"""The settings of `[channels.email]`, and the faults of invalid ones."""

import json

import pytest
from pydantic import ValidationError

from channels.email import CAPABILITIES, MANIFEST, EmailSettings
from zeroclaw import ConfigError
from zeroclaw.config.validate import parse
from zeroclaw.daemon.config_check import check

VALID: dict[str, object] = {
    "address": "bot@zero.test",
    "password": {"env": "MAIL_PASSWORD"},
    "imap_host": "imap.zero.test",
    "smtp_host": "smtp.zero.test",
}
WRONG: dict[str, object] = {
    "address": "bot",
    "imap_host": "imap.zero.test/x",
    "username": "bot\nnoop",
    "mailbox": 'a"b',
    "subject": "a\nb",
    "smtp_security": "none",
    "authserv_id": "mx zero",
    "poll_s": 1,
    "password": "in clear",
    "token_url": "https://a.example/token",
    "token_scope": "mail",
    "client_id": "beside a password",
}
BY_TOKEN: dict[str, object] = {
    "password": None,
    "token_url": "https://a.example/token",
    "client_id": "zero",
    "refresh_token": {"env": "MAIL_REFRESH_TOKEN"},
}
WRONG_BY_TOKEN: dict[str, object] = {"client_id": "", "refresh_token": None, "token_url": ""}
UNSAFE = ("http://a.example/token", "https://", "file:///token", "a.example")


@pytest.mark.parametrize(("key", "value"), WRONG.items())
def test_invalid_settings_are_refused(key: str, value: object) -> None:
    with pytest.raises(ValidationError):
        EmailSettings.model_validate(VALID | {key: value})


def fault_of(key: str, value: str) -> str:
    """Return the line about a key that `check-config` prints for a configuration with this value."""
    table = VALID | {key: value}
    lines = [f"{name} = {json.dumps(table[name])}" for name in table if name != "password"]
    text = "\n".join(("[channels.email]", 'password = { env = "MAIL_PASSWORD" }', *lines))
    with pytest.raises(ConfigError) as caught:
        check(parse(text), environment={"MAIL_PASSWORD": "x"})
    [fault] = [fault for fault in caught.value.faults if fault.startswith("channels.email")]
    return fault


@pytest.mark.parametrize("host", ["", "imaps://mail.test", "mail.test:993", "192.0.2.1:993", "a b"])
@pytest.mark.parametrize("key", ["imap_host", "smtp_host"])
def test_a_host_has_no_port(key: str, host: str) -> None:
    """A port after it would be looked up as part of the name (P10)."""
    allowed = "host names and addresses without a port, such as mail.example.org"
    assert fault_of(key, host) == f"channels.email.{key}: allowed are {allowed}"


@pytest.mark.parametrize("address", ["", "bot", "bot@zero", "bot@-zero.test", "bot@zero.test\n"])
def test_an_address_must_be_a_usable_one(address: str) -> None:
    allowed = "addresses such as bot@example.org"
    assert fault_of("address", address) == f"channels.email.address: allowed are {allowed}"


@pytest.mark.parametrize("host", ["mail", "192.0.2.1", "2001:db8::1", "::1"])
def test_a_host_may_be_an_address(host: str) -> None:
    assert EmailSettings.model_validate(VALID | {"imap_host": host}).imap_host == host


@pytest.mark.parametrize(("key", "value"), WRONG_BY_TOKEN.items())
def test_a_login_by_token_needs_all_its_settings(key: str, value: object) -> None:
    EmailSettings.model_validate(VALID | BY_TOKEN)
    with pytest.raises(ValidationError, match="or `token_url`"):
        EmailSettings.model_validate(VALID | BY_TOKEN | {key: value})


def test_a_login_by_token_needs_an_ascii_name() -> None:
    """The libraries send only ASCII; each try would fail, and look like a lost connection."""
    EmailSettings.model_validate(VALID | {"username": "jürgen"})
    with pytest.raises(ValidationError, match="`username` must be plain ASCII"):
        EmailSettings.model_validate(VALID | BY_TOKEN | {"username": "jürgen"})


@pytest.mark.parametrize("url", UNSAFE)
def test_secrets_are_never_sent_in_clear(url: str) -> None:
    with pytest.raises(ValidationError, match="https://"):
        EmailSettings.model_validate(VALID | BY_TOKEN | {"token_url": url})


def test_given_settings_are_used() -> None:
    settings = EmailSettings.model_validate(VALID | {"address": "Bot@Zero.test"})
    assert settings.address == "bot@zero.test"
    assert MANIFEST.may_pair is False
    assert not CAPABILITIES.can_edit


CONFIG = """
[channels.email]
address = "bot@zero.test"
password = { env = "MAIL_PASSWORD" }
imap_host = "imap.zero.test"
smtp_host = "smtp.zero.test"
pairing = "code"
"""


def test_a_code_for_strangers_is_refused_in_one_line() -> None:
    """It would go to an address that anyone can make up (P4, P10)."""
    with pytest.raises(ConfigError) as caught:
        check(parse(CONFIG), environment={"MAIL_PASSWORD": "x"})
    [fault] = [fault for fault in caught.value.faults if "pairing" in fault]
    assert fault.startswith('channels.email.pairing: "code" would answer forged senders')
