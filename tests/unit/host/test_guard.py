"""Every rule for a request to the local listener, and the one-time links and sessions behind them."""

from datetime import timedelta

import pytest

from tests.fakes.manual_clock import EPOCH
from zeroclaw.errors import StoreUnusable
from zeroclaw.host.guard import (
    POLICY,
    RequestHead,
    below,
    cookie,
    link_of,
    local_url,
    page,
    refusal,
    sessions_of,
)
from zeroclaw.host.http import headers_of
from zeroclaw.host.login import (
    LINK_LIFETIME,
    MAX_LINKS,
    MAX_SESSIONS,
    SESSION_LIFETIME,
    Logins,
    hash_of,
    is_open,
    read_sessions,
    redeem,
    with_link,
    without,
    write_sessions,
)
from zeroclaw.value import replace

PORT = 8420
MOST = 100
GET = RequestHead(method="GET", path="/web/", headers={"host": "127.0.0.1:8420"})


def with_headers(request: RequestHead, **headers: str) -> RequestHead:
    """The same request with other headers, `_` for `-`; an empty one is removed."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    every = {name: value for name, value in {**request.headers, **named}.items() if value}
    return replace(request, headers=every)


POST = with_headers(replace(GET, method="POST"), sec_fetch_site="same-origin", content_length="10")


def status(request: RequestHead, port: int = PORT) -> int | None:
    refused = refusal(request, port, MOST)
    return None if refused is None else refused.status


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("127.0.0.1:8420", None),
        ("localhost:8420", None),
        ("LocalHost:8420", None),
        ("[::1]:8420", None),
        ("", 421),
        ("127.0.0.1", 421),
        ("localhost:8421", 421),
        ("evil.example:8420", 421),
        ("localhost.evil.example:8420", 421),
        ("127.0.0.1:8420, evil.example", 421),
        ("192.168.1.10:8420", 421),
    ],
)
def test_only_names_of_this_machine_with_our_port_are_answered(
    host: str, answer: int | None
) -> None:
    """A page whose name was made to point at this machine gets nothing (DNS rebinding)."""
    assert status(with_headers(GET, host=host)) == answer


def test_the_default_port_of_http_may_be_left_out() -> None:
    assert status(with_headers(GET, host="localhost"), port=80) is None


@pytest.mark.parametrize(
    ("site", "origin", "answer"),
    [
        ("same-origin", "", None),
        ("same-site", "", 403),
        ("cross-site", "", 403),
        ("none", "", 403),
        ("cross-site", "http://127.0.0.1:8420", 403),
        ("", "http://127.0.0.1:8420", None),
        ("", "http://localhost:8420", 403),
        ("", "http://127.0.0.1:9999", 403),
        ("", "https://127.0.0.1:8420", 403),
        ("", "http://127.0.0.1:8420.evil.example", 403),
        ("", "null", 403),
        ("", "", 403),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get"])
def test_a_change_must_come_from_our_own_page(
    method: str, site: str, origin: str, answer: int | None
) -> None:
    request = with_headers(replace(POST, method=method), sec_fetch_site=site, origin=origin)
    assert status(request) == answer


@pytest.mark.parametrize(
    ("site", "mode", "answer"),
    [
        ("", "", None),
        ("none", "navigate", None),
        ("same-origin", "cors", None),
        ("cross-site", "navigate", None),
        ("cross-site", "cors", 403),
        ("same-site", "no-cors", 403),
    ],
)
def test_another_page_may_link_here_but_not_read(site: str, mode: str, answer: int | None) -> None:
    assert status(with_headers(GET, sec_fetch_site=site, sec_fetch_mode=mode)) == answer


@pytest.mark.parametrize(
    ("length", "coding", "answer"),
    [("0", "", None), ("100", "", None), ("101", "", 413), ("", "chunked", 411)],
)
def test_a_body_is_measured_before_it_is_read(length: str, coding: str, answer: int | None) -> None:
    request = with_headers(POST, content_length=length, transfer_encoding=coding)
    assert status(request) == answer


@pytest.mark.parametrize(
    ("header", "sessions"),
    [
        ("", ()),
        ("zeroclaw_8420=abc", ("abc",)),
        ("a=b; zeroclaw_8420=abc; c=d", ("abc",)),
        ("zeroclaw_8420=theirs; zeroclaw_8420=abc", ("theirs", "abc")),
        ("zeroclaw_8421=abc", ()),
        ("xzeroclaw_8420=abc; __Secure-zeroclaw_8420=abc", ()),
    ],
)
def test_the_sessions_are_the_cookies_of_our_port(header: str, sessions: tuple[str, ...]) -> None:
    """A program on another port can set a cookie beside ours; it does not log us out."""
    assert sessions_of(with_headers(GET, cookie=header), PORT) == sessions


def test_over_tls_only_a_cookie_that_tls_set_counts() -> None:
    cookies = "zeroclaw_8420=plain; __Secure-zeroclaw_8420=abc"
    assert sessions_of(with_headers(GET, cookie=cookies, x_forwarded_proto="HTTPS"), PORT) == (
        "abc",
    )


@pytest.mark.parametrize(
    ("scheme", "header"),
    [
        ("http", "zeroclaw_8420=abc; Path=/p/; Max-Age=60; HttpOnly; SameSite=Strict"),
        (
            "https",
            "__Secure-zeroclaw_8420=abc; Path=/p/; Max-Age=60; HttpOnly; SameSite=Strict; Secure",
        ),
    ],
)
def test_the_cookie_is_out_of_reach_of_scripts_other_sites_and_other_ports(
    scheme: str, header: str
) -> None:
    """Ports share cookies, but not the secret path."""
    request = with_headers(GET, x_forwarded_proto=scheme)
    assert cookie(request, "abc", PORT, path="/p/", max_age_s=60) == header


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("/secret/web/", "/web/"),
        ("/secret/", "/"),
        ("/secret", ""),
        ("/secre", None),
        ("/secretweb/", None),
        ("//secret/web/", None),
        ("/SECRET/web/", None),
        ("/x/../secret/web/", None),
        ("secret/web/", None),
        ("/", None),
        ("", None),
        ("/\ufffd\U0001f600", None),
    ],
)
def test_only_paths_below_the_secret_path_are_ours(path: str, rest: str | None) -> None:
    assert below(path, "/secret") == rest


@pytest.mark.parametrize(
    ("method", "query", "link"),
    [
        ("GET", "login=abc", "abc"),
        ("GET", "x=1&login=abc", "abc"),
        ("GET", "login=", ""),
        ("GET", "", ""),
        ("HEAD", "login=abc", ""),
        ("POST", "login=abc", ""),
    ],
)
def test_only_a_get_uses_a_link_up(method: str, query: str, link: str) -> None:
    """A program that checks a link with HEAD before a person opens it does not use it up."""
    assert link_of(replace(GET, method=method, query=query)) == link


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/web/", "/web/"),
        ("web/", "/web/"),
        ("//evil.example/", "/evil.example/"),
        ("/\\evil.example", "/%5Cevil.example"),
        ('/"><script>', "/%22%3E%3Cscript%3E"),
    ],
)
def test_a_login_redirects_only_to_our_own_pages(path: str, address: str) -> None:
    assert local_url(path) == address


def test_headers_are_collected_and_repeated_ones_joined() -> None:
    headers = [
        (b"Host", b"localhost:8420"),
        (b"cookie", b"a=b"),
        (b"cookie", b"c=d"),
        (b"origin", b"one"),
        (b"origin", b"two"),
        (b"x-other", b"\xff"),
    ]
    assert headers_of(headers) == {
        "host": "localhost:8420",
        "cookie": "a=b; c=d",
        "origin": "one, two",
        "x-other": "\xff",
    }


def test_a_page_of_ours_shows_text_as_text() -> None:
    assert b"<script>" not in page("/p", "<script>", go_to='/"><script>')


def test_the_content_policy_allows_only_our_own_files() -> None:
    assert POLICY == (
        "default-src 'none'; script-src 'self'; "
        "style-src 'self' 'sha256-t+jLs7q/WqHlY9N+hxYDCVQhKCEWDkNXHBFbmo53o9Q='; connect-src 'self'; "
        "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


# --- one-time links and the sessions that they open -----------------------------------------------

INSTANT = timedelta(microseconds=1)


def logged_in(session: str = "session") -> Logins:
    logins = redeem(with_link(Logins(), "link", EPOCH), "link", session, EPOCH)
    assert logins is not None
    return logins


def test_a_link_opens_one_session_once() -> None:
    logins = logged_in()
    assert is_open(logins, ["session"], EPOCH)
    assert redeem(logins, "link", "another", EPOCH) is None


def test_an_unknown_link_opens_nothing() -> None:
    assert redeem(Logins(), "guess", "session", EPOCH) is None
    assert not is_open(logged_in(), ["guess"], EPOCH)
    assert not is_open(logged_in(), ["", "another"], EPOCH)


def test_a_link_ends_unused_after_its_day() -> None:
    logins = with_link(Logins(), "link", EPOCH)
    assert redeem(logins, "link", "session", EPOCH + LINK_LIFETIME) is None
    assert redeem(logins, "link", "session", EPOCH + LINK_LIFETIME - INSTANT) is not None


def test_a_session_ends_after_thirty_days() -> None:
    logins = logged_in()
    assert is_open(logins, ["session"], EPOCH + SESSION_LIFETIME - INSTANT)
    assert not is_open(logins, ["session"], EPOCH + SESSION_LIFETIME)


def test_a_link_made_under_a_wrong_clock_ends_with_its_correction() -> None:
    """Otherwise a logged link would work as long as the clock was ahead; an hour is tolerated."""
    ahead = with_link(logged_in(), "link", EPOCH)
    for back, is_valid in ((timedelta(hours=1), True), (timedelta(days=365), False)):
        assert is_open(ahead, ["session"], EPOCH - back) is is_valid
        assert (redeem(ahead, "link", "another", EPOCH - back) is not None) is is_valid


def test_sessions_survive_a_restart_and_links_do_not() -> None:
    """The stored body restores the same sessions, and holds no token in clear."""
    logins = with_link(replace(logged_in("the-session"), path="secret"), "fresh", EPOCH)
    body = write_sessions(logins)
    again = read_sessions(body)
    assert is_open(again, ["the-session"], EPOCH)
    assert redeem(again, "fresh", "another", EPOCH) is None
    assert b"the-session" not in body
    assert again.path == "secret"


def test_sessions_of_a_release_without_a_secret_path_are_invalid() -> None:
    """Browsers sent those cookies to every port of this machine."""
    stored = b'{"sessions":[{"hash":"%s","ends_at":"2999-01-01T00:00:00+00:00"}]}'
    body = stored % hash_of("the-session").encode()
    assert read_sessions(body) == Logins()


def test_sessions_are_ended_one_by_one() -> None:
    """One of a browser's sessions is enough to be logged in; a logout ends all of them."""
    logins = redeem(with_link(logged_in("one"), "link", EPOCH), "link", "two", EPOCH)
    assert logins is not None
    assert is_open(without(logins, ["two"]), ["two", "one"], EPOCH)
    assert not is_open(without(logins, ["two", "one", "more"]), ["one", "two"], EPOCH)


def test_an_invalid_stored_body_is_a_fault() -> None:
    with pytest.raises(StoreUnusable):
        read_sessions(b"[]")


def test_links_and_sessions_are_bounded_and_the_newest_stay() -> None:
    logins = Logins()
    for number in range(MAX_LINKS + 1):
        logins = with_link(logins, f"link {number}", EPOCH)
    assert len(logins.links) == MAX_LINKS
    assert redeem(logins, "link 0", "session", EPOCH) is None
    for number in range(MAX_SESSIONS + 1):
        opened = redeem(with_link(logins, "link", EPOCH), "link", f"session {number}", EPOCH)
        assert opened is not None
        logins = opened
    assert len(logins.sessions) == MAX_SESSIONS
    assert is_open(logins, [f"session {MAX_SESSIONS}"], EPOCH)
