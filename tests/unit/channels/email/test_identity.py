"""Who a mail is from, and when its sender counts as verified."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.identity import author, is_vouched_for, normalised
from tests.unit.channels.email.letters import me_with
from zeroclaw import Mail, Sender

MX = "mx.zero.test"
ANN = "ann@a.example"

DROPPED = me_with(plus_tags="dropped").settings
SETTINGS = me_with().settings


def mail_of(*headers: tuple[str, str]) -> Mail:
    return Mail(headers=headers, kind="text/plain", parts=(), raw=b"")


FROM = {
    ANN: ANN,
    "<Ann@A.Example>": ANN,
    "Ann <ann@a.example>": ANN,
    '"Ann, of A" <ann@a.example>': ANN,
    '"boss@b.example" <ann@a.example>': ANN,
    "boss@b.example <ann@a.example>": ANN,
    "ann@a.example (of (the) A)": ANN,
    "ann@a.example)": ANN,
    "ann(x)b@a.example": None,
    r'"a \" quote" <ann@a.example> (\) odd)': ANN,
    "Ann <ann@bücher.example>": "ann@xn--bcher-kva.example",
    "Ann <ann@BÜCHER.example>": "ann@xn--bcher-kva.example",
    "ann@a.example, bob@b.example": None,
    "Doe, Ann <ann@a.example>": None,
    "Ann <ann@a.example>, Bob <bob@b.example>": None,
    "<ann@a.example> <bob@b.example>": None,
    "all: ann@a.example;": None,
    "all: <ann@a.example>": None,
    "Ann <ann@a.example": None,
    "ann@a.example (which does not end": None,
    '"ann@a.example"': None,
    '"b" ann@a.example': None,
    'ann"b"@a.example': None,
    '<ann"b"@a.example>': None,
    'Ann <ann@a.example"@b.example">': None,
    'Ann <ann@a.example> "b"': None,
    "ann": None,
    "@a.example": None,
    "ann@a": None,
    "ann@-a.example": None,
    "ann@ü\u2028.example": None,
    "ann b@a.example": None,
    "\u212aate@a.example": None,
    f"{'a' * 65}@a.example": None,
    f"a@{'a.' * 130}example": None,
    "": None,
}


@pytest.mark.parametrize(("value", "address"), FROM.items())
def test_an_author_is_one_plain_address_whatever_surrounds_it(
    value: str, address: str | None
) -> None:
    found = author(mail_of(("from", value)), SETTINGS)
    assert (found and found.id) == address


def test_two_from_headers_give_no_author() -> None:
    """Different readers would take different ones."""
    assert author(mail_of(("from", ANN), ("from", "bob@b.example")), SETTINGS) is None
    assert author(mail_of(), SETTINGS) is None


def test_a_display_name_is_only_shown() -> None:
    shown = {
        ANN: "",
        f'"Ann" <{ANN}>': "Ann",
        f'"The Operator" Inc <{ANN}>': "The Operator Inc",
        f"=?utf-8?q?=C3=84nn?= <{ANN}>": "Änn",
    }
    found = {value: author(mail_of(("from", value)), SETTINGS) for value in shown}
    assert found == {
        value: Sender(id=ANN, verified=False, display=name) for value, name in shown.items()
    }


def test_an_author_is_verified_by_the_same_mail() -> None:
    verdict = ("authentication-results", f"{MX}; dmarc=pass header.from=a.example")
    assert author(mail_of(verdict, ("from", ANN)), SETTINGS) == Sender(id=ANN, verified=True)
    assert author(mail_of(verdict, ("from", "ann@b.example")), SETTINGS) == Sender(
        id="ann@b.example", verified=False
    )


def test_a_plus_tag_is_kept_or_dropped_as_configured() -> None:
    assert normalised("Ann+x@a.example") == "ann+x@a.example"
    assert normalised("ann+x@a.example", "dropped") == ANN
    assert normalised("+x@a.example", "dropped") == "+x@a.example"


@pytest.mark.parametrize(
    "value", ["ann+x@b.example, bob@a.example", "<ann+x, bob@a.example>", "ann+x y@a.example"]
)
def test_dropping_a_plus_tag_changes_no_other_address(value: str) -> None:
    """Otherwise two authors would become one, verified by another's server."""
    assert author(mail_of(("from", value)), DROPPED) is None


TRUE = (
    f"{MX}; dmarc=pass header.from=a.example",
    f"{MX} 1; dmarc=pass",
    f"{MX.upper()}; spf=fail smtp.mailfrom=other.example; DMARC/1 = pass (p=none) header.from=A.Example",
    f'"{MX}"; dkim=pass header.d=a.example header.b="a;b=c\\""',
    f"{MX}; dkim=fail header.d=b.example; dkim=pass header.i=@a.example",
    f"{MX} (our (own) server); spf=pass (it is; really) smtp.mailfrom=bounce@a.example.",
    f"{MX}; dmarc=none; dkim=PASS header.d=a.example",
    f'{MX}; spf=pass smtp.mailfrom="ann; dkim=fail"@a.example',
    f"{MX}; spf=pass smtp.mailfrom=srs0=x=y=b.example=ann@a.example",
    f'{MX}; spf=pass smtp.mailfrom = "bounce@a.example" smtp.helo=b.example',
    f"{MX};; dkim=pass header.d=example.a.example header.d2=x; spf=pass smtp.mailfrom=a.example",
)
FALSE = (
    "",
    MX,
    f"{MX}; none",
    f"{MX}; dmarc=fail header.from=a.example; dkim=pass header.d=a.example",
    f"{MX}; dmarc=pass header.from=b.example",
    f"{MX}; dmarc=pass; dmarc=fail",
    f"{MX}; dmarc=pass=x",
    f"{MX}; dmarc=none=x; dkim=pass header.d=a.example",
    f"{MX}; dkim=pass header.d=b.example",
    f"{MX}; dkim=pass header.d=evil.a.example",
    f"{MX}; dkim=pass header.d=b.example header.d=a.example",
    f"{MX}; dkim=pass header.d=example",
    f"{MX}; dkim=pass",
    f'{MX}; dkim=pass "header.d=a.example"',
    f"{MX}; dkim=neutral header.d=a.example",
    f"{MX}; spf=pass smtp.helo=a.example",
    f"{MX}; iprev=pass policy.iprev=1.2.3.4",
    f"{MX}; spf=none; iprev=pass smtp.mailfrom=ann@a.example",
    f"{MX}; x dmarc=pass header.from=a.example",
    f"{MX}; =pass",
    f"{MX} (; dmarc=pass header.from=a.example",
    f'{MX}; reason="x; dmarc=pass header.from=a.example',
    f"other.example; {MX}; dmarc=pass header.from=a.example",
    f"{MX}.evil.example; dmarc=pass header.from=a.example",
    # Text that a writer puts before the @ of their own address.
    f"{MX}; spf=pass smtp.mailfrom=a.example=x@evil.example",
    f"{MX}; spf=pass smtp.mailfrom = =a.example=ann@a.example=x@evil.example",
    f"{MX}; dkim=pass header.i=a.example=x@evil.example",
    f"{MX}; spf=pass smtp.mailfrom=ann@a.example x@evil.example",
    f'{MX}; spf=pass smtp.mailfrom="a.example"@evil.example',
    f'{MX}; spf=pass smtp.mailfrom="ann@a.example"@evil.example',
    f'{MX}; spf=pass smtp.mailfrom="ann@a.example evil"@evil.example',
    f'{MX}; spf=pass smtp.mailfrom=x."ann@a.example"@evil.example',
    f'{MX}; spf=pass smtp.mailfrom="ann@a.example" @evil.example',
    f"{MX}; spf=pass smtp.mailfrom=ann@a.example (evil) @evil.example",
    f'{MX}; dkim=pass header.i="@a.example"@evil.example',
    "; dmarc=pass header.from=a.example",
)


def vouches(address: str, values: Iterable[str], own_server: str) -> bool:
    """Return whether these Authentication-Results, topmost first, verify a sender."""
    return is_vouched_for(
        address, [("authentication-results", value) for value in values], own_server
    )


@pytest.mark.parametrize("value", TRUE)
def test_our_own_server_verifies_a_sender(value: str) -> None:
    assert vouches(ANN, (value,), MX)
    assert vouches(ANN, (value,), MX.upper())


@pytest.mark.parametrize("value", FALSE)
def test_nothing_else_verifies_a_sender(value: str) -> None:
    """Forged, from another server, about another sender, or unreadable: the sender is a
    stranger."""
    assert not vouches(ANN, (value,), MX)


@pytest.mark.parametrize("space", ["\u00a0", "\u2028", "\u3000", "\x85", "\x1f", "\v"])
def test_a_space_that_an_address_may_contain_ends_no_value(space: str) -> None:
    """With such a space the owner of `evil.example` was verified as anybody at a domain (P4)."""
    for forged in (
        f"spf=pass smtp.mailfrom=a.example{space}x=y@evil.example",
        f"dkim=pass header.i=x{space}header.d=a.example{space}y=z@evil.example",
    ):
        assert not vouches(ANN, (f"{MX}; {forged}",), MX)
    assert not vouches(ANN, (f"{MX}{space}x; dmarc=pass",), MX)


def test_no_other_header_verifies() -> None:
    """The mail's writer chooses it (P4)."""
    assert not is_vouched_for(
        ANN, [("subject", TRUE[0]), ("x-authentication-results", TRUE[0])], MX
    )


def test_a_domain_verifies_its_subdomains() -> None:
    below = "ann@mail.a.example"
    assert vouches(below, (f"{MX}; dkim=pass header.d=a.example",), MX)
    assert not vouches("ann@notexample.org", (f"{MX}; dkim=pass header.d=example.org",), MX)


def test_only_the_topmost_of_our_own_server_counts() -> None:
    """The writer's own headers are below it; those of other servers may be anywhere."""
    good, bad = f"{MX}; dmarc=pass", f"{MX}; dmarc=fail"
    assert not vouches(ANN, (bad, good), MX)
    assert vouches(ANN, ("other.example; dmarc=fail", good, bad), MX)


FASTMAIL = (
    "mx6.messagingengine.com; x-csa=none; x-me-sender=none; x-ptr=pass policy.ptr=m.a.example",
    "mx6.messagingengine.com; bimi=skipped (DMARC Policy is not at enforcement)",
    "mx6.messagingengine.com; arc=none (no signatures found)",
    "mx6.messagingengine.com; dkim=pass (2048-bit rsa key sha256) header.d=a.example; "
    "dmarc=pass policy.published-domain-policy=none (p=none,d=none) header.from=a.example; "
    "spf=pass smtp.mailfrom=ann@a.example",
)
ICLOUD = (
    'bimi.icloud.com; bimi=skipped reason="insufficient dmarc"',
    "dmarc.icloud.com; dmarc=pass header.from=a.example",
    "dkim-verifier.icloud.com; dkim=none",
    "spf.icloud.com; spf=none (ann@a.example designates nobody) smtp.mailfrom=ann@a.example",
)


@pytest.mark.parametrize(
    ("values", "own_servers"), [(FASTMAIL, "*.messagingengine.com"), (ICLOUD, "*.icloud.com")]
)
def test_a_server_may_write_several_headers_and_have_several_names(
    values: tuple[str, ...], own_servers: str
) -> None:
    """As these do (deltachat/deltachat-core-rust, test-data/message/dkimchecks-2022-09-28)."""
    assert vouches(ANN, values, own_servers)
    assert not vouches(ANN, values, own_servers.removeprefix("*."))
    assert not vouches(ANN, values, "*.example")
    failed = tuple(value.replace("dmarc=pass", "dmarc=fail") for value in values)
    assert not vouches(ANN, (*failed, *values), own_servers)


GOOD = f"{MX}; dmarc=pass header.from=a.example"


@pytest.mark.parametrize(
    "forged",
    ["spf=none", "dkim=pass header.d=b.example", "none", "dmarc=none", "iprev=pass; dkim=fail", ""],
)
def test_a_verdict_below_our_own_servers_does_not_count(forged: str) -> None:
    """Not every server removes a header that a sender forged under its name (P4)."""
    assert not vouches(ANN, (f"{MX}; {forged}", GOOD), MX)
    assert not vouches(ANN, (f"{MX}; {forged}", f"{MX}; dkim=pass header.d=a.example"), MX)


def test_a_verdict_may_be_below_our_servers_other_results() -> None:
    """But not below another server's header or another hop."""
    other, good = f"{MX}; bimi=none", GOOD
    assert vouches(ANN, (other, good), MX)
    assert not vouches(ANN, (other, "b.example; none", good), MX)
    assert not vouches(ANN, (other, "", good), MX)
    hops = [("received", "from a"), ("authentication-results", f"{MX}; x=none")]
    assert is_vouched_for(ANN, [*hops, ("authentication-results", good)], MX)
    assert not is_vouched_for(ANN, [*hops, hops[0], ("authentication-results", good)], MX)


def test_further_server_names_count_only_if_configured() -> None:
    """Many servers remove only forged headers of their own name."""
    assert not vouches(ANN, (f"x.{MX}; dmarc=pass",), MX)
    assert not vouches(ANN, (f"x{MX}; dmarc=pass",), f"*.{MX}")


@pytest.mark.parametrize(
    "nameless",
    [
        "spf=pass (sender IP is 192.0.2.1) smtp.mailfrom=evil.example; dmarc=pass action=none",
        "(no name); dmarc=fail header.from=a.example",
    ],
)
def test_a_verdict_without_a_name_may_be_our_own_servers(nameless: str) -> None:
    """Exchange Online writes none; a header below it, under any name, is the writer's (P4)."""
    assert not vouches(ANN, (nameless, f"{MX}; dmarc=pass header.from=a.example"), MX)
    assert vouches(ANN, (f"{MX}; dmarc=pass header.from=a.example", nameless), MX)


def test_without_our_servers_name_everyone_is_a_stranger() -> None:
    assert not vouches(ANN, ("; dmarc=pass", f"{MX}; dmarc=pass"), "")


SIGNS = st.text('ab@.<>(),:;"\\= \té', max_size=60)


@given(SIGNS, SIGNS)
def test_any_header_can_be_parsed(value: str, other: str) -> None:
    parsed = author(mail_of(("from", value)), SETTINGS)
    assert parsed is None or normalised(parsed.id) == parsed.id
    assert not vouches(ANN, (f"{value}{MX}{other}",), "other.name")


@pytest.mark.parametrize("piece", ["(", ")", "()", '"', "\\", "=", ";", "<", "a@", "(\\"])
def test_a_long_header_is_read_in_one_pass(piece: str) -> None:
    """The header is full of text that makes a parser backtrack."""
    value = piece * (8_000 // len(piece))
    assert author(mail_of(("from", value)), SETTINGS) is None
    assert not vouches(ANN, (f"{MX}; {value}",), MX)
