"""Who a mail is from, and when that is believed."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.email.identity import author, is_vouched_for, normalised
from zeroclaw import Sender

MX = "mx.zero.test"
ANN = "ann@a.example"

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
def test_an_author_is_one_plain_address_whatever_stands_around_it(
    value: str, address: str | None
) -> None:
    found = author((value,))
    assert (found and found.id) == address


def test_two_from_headers_are_nobodys() -> None:
    """Each reader would believe another one of them."""
    assert author((ANN, "bob@b.example")) is None
    assert author(()) is None


def test_a_display_name_is_only_shown() -> None:
    assert author((ANN,)) == Sender(id=ANN, verified=False)
    assert author((f'"Ann" <{ANN}>',)) == Sender(id=ANN, verified=False, display="Ann")
    assert author(('"The Operator" Inc <ann@a.example>',)) == Sender(
        id=ANN, verified=False, display="The Operator Inc"
    )


def test_a_plus_tag_is_kept_or_dropped_as_it_is_set() -> None:
    assert normalised("Ann+x@a.example") == "ann+x@a.example"
    assert normalised("ann+x@a.example", "dropped") == ANN
    assert normalised("+x@a.example", "dropped") == "+x@a.example"


@pytest.mark.parametrize(
    "value", ["ann+x@b.example, bob@a.example", "<ann+x, bob@a.example>", "ann+x y@a.example"]
)
def test_a_plus_tag_that_is_dropped_takes_no_other_address_along(value: str) -> None:
    """It would make one author, whose server vouches for somebody else, out of two."""
    assert author((value,), "dropped") is None


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
    # What a writer puts before the @ of an address of their own.
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


def vouches(address: str, values: Iterable[str], own: str) -> bool:
    """Tell whether a sender is vouched for by these Authentication-Results, topmost first."""
    return is_vouched_for(address, [("authentication-results", value) for value in values], own)


@pytest.mark.parametrize("value", TRUE)
def test_our_own_server_vouches_for_a_sender(value: str) -> None:
    assert vouches(ANN, (value,), MX)
    assert vouches(ANN, (value,), MX.upper())


@pytest.mark.parametrize("value", FALSE)
def test_nothing_else_does(value: str) -> None:
    """Forged, of somebody else, about somebody else, or not to be read: the sender is a stranger."""
    assert not vouches(ANN, (value,), MX)


def test_no_other_header_vouches() -> None:
    """Its writer chooses it (P4)."""
    assert not is_vouched_for(
        ANN, [("subject", TRUE[0]), ("x-authentication-results", TRUE[0])], MX
    )


def test_a_domain_vouches_for_those_below_it() -> None:
    below = "ann@mail.a.example"
    assert vouches(below, (f"{MX}; dkim=pass header.d=a.example",), MX)
    assert not vouches("ann@notexample.org", (f"{MX}; dkim=pass header.d=example.org",), MX)


def test_only_the_topmost_of_our_own_server_counts() -> None:
    """What the writer put into the mail stands below; others' stand anywhere."""
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
    ("values", "own"), [(FASTMAIL, "*.messagingengine.com"), (ICLOUD, "*.icloud.com")]
)
def test_a_server_may_write_several_headers_and_have_several_names(
    values: tuple[str, ...], own: str
) -> None:
    """As these do (deltachat/deltachat-core-rust, test-data/message/dkimchecks-2022-09-28)."""
    assert vouches(ANN, values, own)
    assert not vouches(ANN, values, own.removeprefix("*."))
    assert not vouches(ANN, values, "*.example")
    failed = tuple(value.replace("dmarc=pass", "dmarc=fail") for value in values)
    assert not vouches(ANN, (*failed, *values), own)


GOOD = f"{MX}; dmarc=pass header.from=a.example"


@pytest.mark.parametrize(
    "said",
    ["spf=none", "dkim=pass header.d=b.example", "none", "dmarc=none", "iprev=pass; dkim=fail", ""],
)
def test_a_verdict_below_our_own_servers_is_its_writers(said: str) -> None:
    """Not every server removes what a sender wrote under its name (P4)."""
    assert not vouches(ANN, (f"{MX}; {said}", GOOD), MX)
    assert not vouches(ANN, (f"{MX}; {said}", f"{MX}; dkim=pass header.d=a.example"), MX)


def test_a_verdict_may_stand_below_what_our_own_server_says_of_other_things() -> None:
    """But neither below another server's header nor below another hop."""
    other, good = f"{MX}; bimi=none", GOOD
    assert vouches(ANN, (other, good), MX)
    assert not vouches(ANN, (other, "b.example; none", good), MX)
    assert not vouches(ANN, (other, "", good), MX)
    hops = [("received", "from a"), ("authentication-results", f"{MX}; x=none")]
    assert is_vouched_for(ANN, [*hops, ("authentication-results", good)], MX)
    assert not is_vouched_for(ANN, [*hops, hops[0], ("authentication-results", good)], MX)


def test_names_below_our_own_servers_count_only_where_that_is_said() -> None:
    """Many a server removes forged headers of just its own name."""
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
    """Exchange Online writes none; what stands below it, under whatever name, is its writer's (P4)."""
    assert not vouches(ANN, (nameless, f"{MX}; dmarc=pass header.from=a.example"), MX)
    assert vouches(ANN, (f"{MX}; dmarc=pass header.from=a.example", nameless), MX)


def test_without_a_name_of_our_own_server_everybody_is_a_stranger() -> None:
    assert not vouches(ANN, ("; dmarc=pass", f"{MX}; dmarc=pass"), "")


SIGNS = st.text('ab@.<>(),:;"\\= \té', max_size=60)


@given(SIGNS, SIGNS)
def test_whatever_stands_there_is_read(value: str, other: str) -> None:
    found = author((value,))
    assert found is None or normalised(found.id) == found.id
    assert not vouches(ANN, (f"{value}{MX}{other}",), "other.name")


@pytest.mark.parametrize("piece", ["(", ")", "()", '"', "\\", "=", ";", "<", "a@", "(\\"])
def test_a_long_header_is_read_in_one_pass(piece: str) -> None:
    """Of what makes a parser go back there is as much as a header can hold."""
    value = piece * (8_000 // len(piece))
    assert author((value,)) is None
    assert not vouches(ANN, (f"{MX}; {value}",), MX)
