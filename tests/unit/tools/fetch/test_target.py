"""Where a fetch may go: how a URL is read, and which addresses it may connect to."""

from ipaddress import IPv4Address, IPv6Address, ip_network
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.tools.fetch.target import (
    MAX_URL_CHARS,
    AllowedHosts,
    Target,
    TargetRefused,
    embedded_address,
    read_allowed,
    read_target,
    redirected,
    refusal_of,
)

PORTS = (80, 443, 8080)


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://example.org", "https://example.org/"),
        ("HTTPS://Example.ORG./a", "https://example.org/a"),
        ("http://example.org:80/", "http://example.org/"),
        ("https://example.org:443/", "https://example.org/"),
        ("https://example.org:/", "https://example.org/"),
        ("http://example.org:443/", "http://example.org:443/"),
        ("http://example.org:8080?q=1", "http://example.org:8080/?q=1"),
        ("http://example.org/a?#part", "http://example.org/a"),
        ('http://example.org/ä/%C3%A4?q=ö|"', "http://example.org/%C3%A4/%C3%A4?q=%C3%B6%7C%22"),
        ("http://münchen.de/", "http://xn--mnchen-3ya.de/"),
        ("http://\uff25xample.org/", "http://example.org/"),
        ("http://my_host-1/", "http://my_host-1/"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/"),
        ("http://\uff11\uff127.0.0.1/", "http://127.0.0.1/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://[2606:4700:0:0::1111]/", "http://[2606:4700::1111]/"),
        ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
    ],
)
def test_a_url_has_one_form(url: str, canonical: str) -> None:
    """Names, ports and signs are written one way, for any spelling."""
    assert read_target(url, PORTS).url == canonical
    assert read_target(canonical, PORTS).url == canonical


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "begin with http"),
        ("example.org", "begin with http"),
        ("//example.org/", "begin with http"),
        ("file:///etc/passwd", "begin with http"),
        ("ftp://example.org/", "begin with http"),
        ("javascript:alert(1)", "begin with http"),
        ("http:///path", "name a host"),
        ("http://", "name a host"),
        ("http://a..b/", "name a host"),
        ("http://-a.example/", "name a host"),
        ("http://exa%6dple.org/", "name a host"),
        (f"http://{'a' * 64}.org/", "name a host"),
        (f"http://{'a.' * 130}org/", "name a host"),
        ("http://ex☃mple.org/", "alphabet"),
        ("http://user@example.org/", "user name or a password"),
        ("http://user:pass@example.org/", "user name or a password"),
        ("http://example.org@127.0.0.1/", "user name or a password"),
        ("http://example.org\\@127.0.0.1/", "backslashes"),
        ("http://example.org/a b", "spaces"),
        ("http://example.org/\r\nHost: evil", "control characters"),
        ("\thttp://example.org/", "control characters"),
        ("http://example.org:22/", "port 22: allowed are 80, 443, 8080"),
        ("http://example.org:0/", "port 0"),
        ("http://example.org:65536/", "port from 1 to 65535"),
        ("http://example.org:http/", "port from 1 to 65535"),
        ("http://example.org:\uff18\uff10/", "port from 1 to 65535"),
        ("http://2130706433/", "four decimal numbers"),
        ("http://0x7f000001/", "four decimal numbers"),
        ("http://0x7f.1/", "four decimal numbers"),
        ("http://0177.0.0.1/", "four decimal numbers"),
        ("http://127.1/", "four decimal numbers"),
        ("http://1.2.3.4.5/", "four decimal numbers"),
        ("http://[::1", "not a URL"),
        ("http://[nonsense]/", "not a URL|IPv6"),
        ("http://[]/", "IPv6|not a URL"),
        ("http://[v1.a]/", "IPv6|not a URL"),
        ("http://[fe80::1%25eth0]/", "IPv6|interface|not a URL"),
        ("http://[fe80::1%eth0]/", "interface"),
        ("http://::1/", "name a host|port"),
        ("http://example.org/\ud800", "half a character"),
        (f"http://example.org/{'a' * MAX_URL_CHARS}", "at most"),
        (f"http://example.org/{'ä' * (MAX_URL_CHARS // 2)}", "at most"),
    ],
)
def test_an_ambiguous_url_is_refused(url: str, reason: str) -> None:
    """Where programs disagree about the host, the URL is refused."""
    with pytest.raises(TargetRefused, match=reason):
        read_target(url, PORTS)


@given(
    st.text(max_size=60), st.sampled_from(["", "http://", "https://", "http://a.b/", "http://["])
)
def test_a_path_stays_as_it_is(text: str, start: str) -> None:
    """Reading the canonical form again changes nothing, and other readers agree about the host."""
    try:
        target = read_target(start + text, PORTS)
    except TargetRefused:
        return
    assert read_target(target.url, PORTS) == target
    assert target.url.isascii()
    assert target.url.isprintable()
    assert urlsplit(target.url).hostname == target.host


SOURCE = read_target("https://example.org/a/b?q", PORTS)


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/c", "https://example.org/c"),
        ("c", "https://example.org/a/c"),
        ("?r", "https://example.org/a/b?r"),
        ("//other.org/", "https://other.org/"),
        ("http://127.0.0.1/", "http://127.0.0.1/"),
        (" /c ", "https://example.org/c"),
        ("/\u00c3\u00a4", "https://example.org/%C3%A4"),
        ("/ä", "https://example.org/%C3%A4"),
    ],
)
def test_a_redirect_is_read_like_a_url(location: str, leads_to: str) -> None:
    """Relative ones are taken from where they were found."""
    assert redirected(SOURCE, location, PORTS).url == leads_to


@pytest.mark.parametrize("location", ["file:///etc/passwd", "//[", "http://u:p@x/", "gopher://x/"])
def test_a_redirect_is_refused_like_a_url(location: str) -> None:
    """A server can't lead where a person could not."""
    with pytest.raises(TargetRefused):
        redirected(SOURCE, location, PORTS)


def test_policy_and_header_call_a_host_what_it_is() -> None:
    """`host:<name>:<port>` for the one, the authority for the other."""
    target = read_target("http://[::1]:8080/", PORTS)
    assert target == Target(scheme="http", host="::1", port=8080, path="/", is_address=True)
    assert (target.resource, target.authority) == ("host:::1:8080", "[::1]:8080")
    assert SOURCE.resource == "host:example.org:443"
    assert (SOURCE.authority, SOURCE.is_plain) == ("example.org", False)
    assert read_target("http://example.org/", PORTS).is_plain


# --- addresses ------------------------------------------------------------------------------------

NOTHING = AllowedHosts()


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "2a00:1450:4001:82f::200e",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ],
)
def test_the_public_internet_is_open(address: str) -> None:
    """Right up to the edges of what is not public."""
    assert refusal_of(address, "example.org", NOTHING) == ""


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("0.0.0.0", "an unspecified address"),
        ("0.1.2.3", "an unspecified address"),
        ("10.0.0.1", "a private address"),
        ("100.64.0.1", "an address behind a carrier's NAT"),
        ("100.127.255.255", "an address behind a carrier's NAT"),
        ("127.0.0.1", "a loopback address"),
        ("127.255.255.254", "a loopback address"),
        ("169.254.1.1", "a link-local address"),
        ("172.16.0.1", "a private address"),
        ("172.31.255.255", "a private address"),
        ("192.0.0.9", "a reserved address"),
        ("192.0.2.1", "an address for documentation"),
        ("192.88.99.1", "a reserved address"),
        ("192.168.1.1", "a private address"),
        ("198.18.0.1", "an address for benchmarks"),
        ("198.19.255.255", "an address for benchmarks"),
        ("198.51.100.1", "an address for documentation"),
        ("203.0.113.1", "an address for documentation"),
        ("224.0.0.1", "a multicast address"),
        ("239.255.255.255", "a multicast address"),
        ("240.0.0.1", "a reserved address"),
        ("255.255.255.255", "a reserved address"),
        ("169.254.169.254", "where a cloud hands out credentials"),
        ("168.63.129.16", "where a cloud hands out credentials"),
        ("100.100.100.200", "where a cloud hands out credentials"),
        ("fd00:ec2::254", "where a cloud hands out credentials"),
        ("::ffff:169.254.169.254", "where a cloud hands out credentials"),
        ("::", "an unspecified address"),
        ("::1", "a loopback address"),
        ("::2", "a reserved address"),
        ("::127.0.0.1", "a reserved address"),
        ("::ffff:127.0.0.1", "a loopback address"),
        ("::ffff:0:127.0.0.1", "a reserved address"),
        ("64:ff9b::10.0.0.1", "a private address"),
        ("64:ff9b:1::8.8.8.8", "a private address"),
        ("100::1", "a reserved address"),
        ("2001::1", "a tunnel's address"),
        ("2001:2::1", "a reserved address"),
        ("2001:db8::1", "an address for documentation"),
        ("2002:7f00:1::", "a tunnel's address"),
        ("3fff::1", "an address for documentation"),
        ("4000::1", "a reserved address"),
        ("5f00::1", "a reserved address"),
        ("fc00::1", "a private address"),
        ("fe80::1", "a link-local address"),
        ("fe80::1%eth0", "an address of one network interface"),
        ("2606:4700::1%eth0", "an address of one network interface"),
        ("fec0::1", "a reserved address"),
        ("ff02::1", "a multicast address"),
        ("", "not an address"),
        ("localhost", "not an address"),
        ("127.1", "not an address"),
        ("0127.0.0.1", "not an address"),
    ],
)
def test_all_else_is_refused_with_a_reason(address: str, reason: str) -> None:
    """An address that is not plainly public is closed, in every spelling."""
    assert refusal_of(address, "example.org", NOTHING) == reason


NETWORKS = (
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16"
    " 224.0.0.0/4 240.0.0.0/4"
)
PRIVATE = st.sampled_from(NETWORKS.split()).flatmap(
    lambda network: st.ip_addresses(v=4, network=network)
)


@given(PRIVATE)
def test_no_disguise_opens_a_private_address(address: IPv4Address) -> None:
    """Mapped, compatible, translated, tunnelled by 6to4 or Teredo: it stays closed."""
    number = int(address)
    disguises = [
        address,
        IPv6Address((0xFFFF << 32) | number),
        IPv6Address(number),
        IPv6Address((0x64FF9B << 96) | number),
        IPv6Address((0x64FF9B0001 << 80) | number),
        IPv6Address((0x2002 << 112) | (number << 80)),
        IPv6Address((0x20010000 << 96) | (number << 64)),
        IPv6Address((0x20010000 << 96) | (number ^ 0xFFFF_FFFF)),
    ]
    assert [
        disguise for disguise in disguises if not refusal_of(str(disguise), "example.org", NOTHING)
    ] == []


@given(st.ip_addresses())
def test_an_open_address_is_public_by_pythons_own_lists_too(
    address: IPv4Address | IPv6Address,
) -> None:
    """Whatever Python takes for private, ours refuses; the other way round ours is stricter."""
    verdict = refusal_of(str(address), "example.org", NOTHING)
    judged = embedded_address(address)
    assert verdict or not (
        judged.is_private
        or judged.is_loopback
        or judged.is_link_local
        or judged.is_multicast
        or judged.is_reserved
        or judged.is_unspecified
    )


@given(st.text())
def test_no_text_breaks_the_judgement(text: str) -> None:
    """A resolver may answer anything; what is no address is refused."""
    assert refusal_of(text, "example.org", NOTHING)


@pytest.mark.parametrize(
    ("entry", "host", "address", "is_open"),
    [
        ("192.168.1.10", "wiki.lan", "192.168.1.10", True),
        ("192.168.1.10", "wiki.lan", "::ffff:192.168.1.10", True),
        ("192.168.1.10", "wiki.lan", "192.168.1.11", False),
        ("192.168.1.0/24", "wiki.lan", "192.168.1.11", True),
        ("192.168.1.7/24", "wiki.lan", "192.168.1.11", True),
        ("fd00::/8", "wiki.lan", "fd12::1", True),
        ("::1", "localhost", "::1", True),
        ("Wiki.LAN.", "wiki.lan", "10.0.0.1", True),
        ("wiki.lan", "evil.wiki.lan", "10.0.0.1", False),
        ("lan", "wiki.lan", "10.0.0.1", False),
        ("0.0.0.0/0", "example.org", "169.254.169.254", False),
        ("169.254.0.0/16", "example.org", "169.254.169.254", False),
        ("example.org", "example.org", "169.254.169.254", False),
        ("169.254.169.254", "example.org", "169.254.169.254", True),
        ("169.254.169.253", "example.org", "169.254.169.254", False),
    ],
)
def test_the_operator_opens_what_they_name(
    entry: str, host: str, address: str, is_open: bool
) -> None:
    """An address, a network or a name; a cloud's credentials only by their very address."""
    assert (refusal_of(address, host, read_allowed((entry,))) == "") is is_open


def test_allowed_entries_are_networks_and_names() -> None:
    """Names are compared in lower case, without the dot of the root."""
    assert read_allowed(("10.0.0.7/8", "Wiki.lan.")) == AllowedHosts(
        networks=(ip_network("10.0.0.0/8"),), names=frozenset({"wiki.lan"})
    )
