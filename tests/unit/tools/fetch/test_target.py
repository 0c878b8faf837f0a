"""How a URL is read before anything is done with it."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.tools.fetch.target import (
    MAX_URL_CHARS,
    Target,
    TargetRefused,
    read_target,
    redirected,
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
    """Names, ports and signs are written one way, whoever wrote them."""
    assert read_target(url, PORTS).url == canonical
    assert read_target(canonical, PORTS).url == canonical


@pytest.mark.parametrize(
    ("url", "why"),
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
def test_what_is_odd_is_refused(url: str, why: str) -> None:
    """Where programs disagree about what the host is, nobody is asked."""
    with pytest.raises(TargetRefused, match=why):
        read_target(url, PORTS)


@given(
    st.text(max_size=60), st.sampled_from(["", "http://", "https://", "http://a.b/", "http://["])
)
def test_what_is_read_stays_as_it_is(text: str, start: str) -> None:
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
