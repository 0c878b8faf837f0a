"""Every spelling of one host, and of one path, has one form."""

import ipaddress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from zeroclaw.gate.policy import wildcard
from zeroclaw.resource import host_form, host_pattern, path_pattern, resource_form
from zeroclaw.tools.fetch.target import TargetRefused, read_target

PORTS = (80, 443, 8080)
LABELS = st.one_of(
    st.from_regex(r"[a-z0-9]([a-z0-9-]{0,5}[a-z0-9])?", fullmatch=True),
    st.sampled_from(["bücher", "例え", "münchen", "xn--bcher-kva"]),
)
TOPS = st.sampled_from(["example", "org", "de", "рф", "中国"])


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, str]:
    """A host in one spelling of a URL, and in one of a statement."""
    labels = [*draw(st.lists(LABELS, min_size=1, max_size=3)), draw(TOPS)]
    written: list[str] = []
    for _ in range(2):
        cased = [draw(st.sampled_from([label, label.upper(), label.title()])) for label in labels]
        dot = draw(st.sampled_from([".", "\u3002", "\uff0e"]))
        written.append(dot.join(cased) + draw(st.sampled_from(["", ".", dot])))
    return written[0], written[1]


@given(spellings_of_one_host=spellings(), port=st.sampled_from(PORTS))
def test_every_spelling_of_a_host_matches_the_same_statement(
    spellings_of_one_host: tuple[str, str], port: int
) -> None:
    """Case, IDNA, full-width dots and the root's dot are one host, in every spelling."""
    in_url, in_statement = spellings_of_one_host
    try:
        named = read_target(f"http://{in_url}:{port}/", PORTS).resource
    except TargetRefused:
        assume(False)
        raise
    for pattern in (f"{in_statement}:{port}", f"{in_statement}:*", f"*.{in_statement}:*"):
        shown = host_pattern(pattern)
        probe = named if not pattern.startswith("*.") else f"host:a.{named.removeprefix('host:')}"
        assert wildcard(f"host:{shown}")(probe)
        assert host_pattern(shown) == shown


@given(number=st.integers(0, 2**128 - 1), zeros=st.booleans(), port=st.sampled_from(PORTS))
def test_every_spelling_of_an_address_matches_the_same_statement(
    number: int, zeros: bool, port: int
) -> None:
    """Brackets, case, and zeros that are written or left out mean nothing."""
    address = ipaddress.IPv6Address(number)
    spelled = address.exploded.upper() if zeros else address.compressed
    named = read_target(f"http://[{address.exploded}]:{port}/", PORTS).resource
    assert f"host:{host_pattern(f'[{spelled}]:{port}')}" == named
    assert f"host:{host_pattern(f'{spelled}:{port}')}" == named


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("Blocked.Example:443", "blocked.example:443"),
        ("bücher.example:*", "xn--bcher-kva.example:*"),
        ("*.BÜCHER.example.:*", "*.xn--bcher-kva.example:*"),
        ("\uff45xample.org:0443", "example.org:443"),
        ("[2001:DB8:0:0::1]:443", "2001:db8::1:443"),
        ("::FFFF:1.2.3.4:443", "::ffff:102:304:443"),
        ("10.*:*", "10.*:*"),
        ("2001:DB8:*:443", "2001:db8:*:443"),
        ("*:443", "*:443"),
        ("**", "**"),
        ("a*.Example:8*", "a*.example:8*"),
    ],
)
def test_a_host_of_a_statement_has_one_form(written: str, form: str) -> None:
    assert host_pattern(written) == form


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("example.org", "names no port: write `host:example.org:443`"),
        ("*.example.org", "names no port"),
        ("[::1]", "names no port"),
        (":443", "names no port"),
        ("2130706433:80", "must write an IPv4 address as four decimal numbers"),
        ("0x7f.1:80", "must write an IPv4 address"),
        ("127.1:80", "must write an IPv4 address"),
        ("010.0.0.1:80", "must write an IPv4 address"),
        ("256.0.0.1:80", "must write an IPv4 address"),
        ("fe80::1%eth0:80", "must not name a network interface"),
        ("1:2:3:80", "must have an IPv6 address"),
        ("2001:0db8:*:443", "must write the groups of an IPv6 address"),
        ("a b:80", "must name a host"),
        ("-a.example:80", "must name a host"),
        ("a..b:80", "must name a host"),
        (f"{'a.' * 127}a:80", "must name a host"),
        ("bü*.example:80", "must name a host that exists in the DNS's alphabet"),
        ("\u2488.example:80", "must name a host"),
        ("example.org:https", "must have a port from 1 to 65535"),
        ("example.org:0", "must have a port"),
        ("example.org:65536", "must have a port"),
        ("example.org:", "must have a port"),
    ],
)
def test_a_host_that_would_never_match_is_refused(written: str, reason: str) -> None:
    """A deny on it would be silently open."""
    with pytest.raises(ValueError, match=reason.replace("*", r"\*")):
        host_pattern(written)


def test_a_host_is_no_longer_than_the_dns_takes() -> None:
    with pytest.raises(ValueError, match="must name a host"):
        host_form(".".join(["a" * 60] * 5))


def test_a_host_is_no_longer_than_the_dns_takes_once_encoded() -> None:
    """A letter of another script takes several of ASCII."""
    name = ".".join(["\u0644" * 9] * 20)
    assert len(name) < 253
    with pytest.raises(ValueError, match="must name a host"):
        host_form(name)


def test_a_name_of_too_many_labels_is_refused_before_they_are_encoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of one URL would hold every conversation up for a tenth of a second (P9)."""
    monkeypatch.delattr("zeroclaw.resource.idna.encode")
    with pytest.raises(ValueError, match="must name a host"):
        host_form("\u0644." * 1_900)


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("/a//b", "/a/b"),
        ("/a/./b", "/a/b"),
        ("/a/././b", "/a/b"),
        ("//a", "/a"),
        ("/a/.", "/a"),
        ("/.", "/"),
        ("/", "/"),
        ("*/private/*", "*/private/*"),
        ("/a/..b/...", "/a/..b/..."),
        ("*", "*"),
        ("/Mu\u0308ller/*", "/M\xfcller/*"),
    ],
)
def test_a_path_of_a_statement_has_one_form(written: str, form: str) -> None:
    assert path_pattern(written) == form


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("/a/../b", "goes up with `..`"),
        ("/a/..", "goes up"),
        ("/..", "goes up"),
        ("/a/", "ends with `/`: `file:/a` is the folder, `file:/a/*` all in it"),
        ("/a/*/", "ends with `/`"),
        ("/a\0", "holds a NUL"),
    ],
)
def test_a_path_that_would_never_match_is_refused(written: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("*", r"\*").replace(".", r"\.")):
        path_pattern(written)


@given(text=st.text("a./*", max_size=12))
def test_the_form_of_a_path_is_its_own_form(text: str) -> None:
    """And an absolute path without `..` means the same."""
    try:
        form = path_pattern(f"/{text}")
    except ValueError:
        assume(False)
        raise
    assert path_pattern(form) == form
    assert [part for part in form.split("/") if part] == [
        part for part in text.split("/") if part not in {"", "."}
    ]


def test_other_resources_keep_their_form() -> None:
    assert resource_form("notes:of:person:ann") == "notes:of:person:ann"
    assert resource_form("*") == "*"
    assert resource_form("host:A.example:80") == "host:a.example:80"
    assert resource_form("file:/a//b") == "file:/a/b"
