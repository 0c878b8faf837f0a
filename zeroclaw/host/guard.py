"""Checks a request to the local listener: host, origin, size and session.

Pure, so that every rule is a row of a table. Against DNS rebinding, the Host header must name this
machine and our port. Against other pages in the same browser, everything but GET and HEAD must come
from our own origin, and so must requests from scripts (browsers report this in `Sec-Fetch-Site`:
W3C Fetch Metadata, read 2026-11). A page on another port of this machine counts as same-site, so
the cookie's `SameSite=Strict` is not enough to keep it out.

Cookies don't distinguish ports either: a browser sends ours to any server on any port of this
machine (RFC 6265, 8.5). The cookie's `Path` prevents that, because it is secret.
"""

import hmac
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from urllib.parse import parse_qs, quote

from zeroclaw.value import Value, field

HTTP_PORT = 80
ICON = "/favicon.ico"
"""Served empty below the secret path: otherwise browsers request it at the bare address."""
SAFE_METHODS = frozenset({"GET", "HEAD"})
STYLE = (
    "body{max-width:30rem;margin:20vh auto;padding:0 1.5rem;"
    "font:16px/1.6 ui-sans-serif,system-ui,sans-serif}"
    "h1{font-size:1.25rem}code{padding:.1em .35em;border-radius:.3em;background:#8883}"
)
"""Style of the pages in this file, allowed by its hash: without a session, no style sheet is served."""
STYLE_HASH = f"sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}"
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' '{STYLE_HASH}'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""Set on every answer, replacing an application's headers of these names."""


class RequestHead(Value):
    """The parts of a request that the rules check.

    Attributes:
        method: As sent.
        path: Decoded, without the query.
        query: As sent, without the question mark.
        headers: By lower-case name.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def header(self, name: str) -> str:
        """Return a header; empty if absent."""
        return self.headers.get(name, "")

    @property
    def scheme(self) -> str:
        """The browser's scheme: `https` if a proxy says so.

        Only the proxy can tell. A client that lies about it only affects its own cookie.
        """
        return "https" if self.header("x-forwarded-proto").lower() == "https" else "http"


class Refusal(Value):
    """A rejected request; `text` is the reason, one line."""

    status: int
    text: str


def refusal(request: RequestHead, port: int, max_body_bytes: int) -> Refusal | None:
    """Return why a request is refused before login; None if it may go on."""
    if request.header("host").lower() not in _hosts(port):
        text = f"this listener answers only to 127.0.0.1:{port}, localhost:{port} and [::1]:{port}"
        return Refusal(status=421, text=text)
    if not _is_same_origin(request):
        return Refusal(status=403, text="this request comes from another page")
    if request.header("transfer-encoding"):
        return Refusal(status=411, text="send the length of the body")
    # A number of few digits: h11 passes on no other.
    if int(request.header("content-length") or 0) > max_body_bytes:
        return Refusal(status=413, text=f"it is larger than {max_body_bytes:,} bytes")
    return None


def _hosts(port: int) -> frozenset[str]:
    # A browser omits its scheme's default port.
    ends = (f":{port}", "") if port == HTTP_PORT else (f":{port}",)
    return frozenset(f"{name}{end}" for name in ("127.0.0.1", "localhost", "[::1]") for end in ends)


def _is_same_origin(request: RequestHead) -> bool:
    site = request.header("sec-fetch-site")
    if request.method in SAFE_METHODS:
        # A typed address or a followed link is `navigate`: it shows our page, and reveals nothing
        # to another.
        is_foreign = site in {"cross-site", "same-site"}
        return not is_foreign or request.header("sec-fetch-mode") == "navigate"
    if site:
        return site == "same-origin"
    origin = f"{request.scheme}://{request.header('host')}"
    return request.header("origin").lower() == origin.lower()


# --- sessions and login links --------------------------------------------------------------------


def cookie_name(request: RequestHead, port: int) -> str:
    """Return the cookie's name; it has the port, because all ports of a machine share cookies.

    The prefix `__Secure-` restricts it to TLS (RFC 6265bis, 4.1.3).
    """
    return f"{'__Secure-' if request.scheme == 'https' else ''}zeroclaw_{port}"


def sessions_of(request: RequestHead, port: int) -> tuple[str, ...]:
    """Return the sessions in a request's cookies; another port may have set one of our name too."""
    pairs = (part.strip().partition("=") for part in request.header("cookie").split(";"))
    return tuple(value for name, _, value in pairs if name == cookie_name(request, port))


def cookie(request: RequestHead, session: str, port: int, *, path: str, max_age_s: int) -> str:
    """Return the Set-Cookie header that gives a browser its session, for this path only."""
    secure = "; Secure" if request.scheme == "https" else ""
    return (
        f"{cookie_name(request, port)}={session}; Path={path}; Max-Age={max_age_s}; HttpOnly; "
        f"SameSite=Strict{secure}"
    )


def below(path: str, root: str) -> str | None:
    """Return the rest of a path below `root`; None if the path is elsewhere.

    Takes constant time, so that timing reveals nothing about the secret.
    """
    head, rest = path[: len(root)], path[len(root) :]
    is_below = hmac.compare_digest(head.encode(), root.encode()) and rest[:1] in ("", "/")
    return rest if is_below else None


def link_of(request: RequestHead) -> str:
    """Return a request's one-time link, or an empty string; only a GET can use one up."""
    if request.method != "GET":
        return ""
    return parse_qs(request.query).get("login", [""])[-1]


def local_url(path: str) -> str:
    """Return a path as a URL on this listener; `//host` would lead to another machine."""
    return quote("/" + path.lstrip("/"))


# --- pages ---------------------------------------------------------------------------------------


def page(root: str, title: str, *paragraphs: str, go_to: str = "") -> bytes:
    """Return a small page below `root`; it opens `go_to` at once.

    It uses a refresh, not a redirect: a redirect continues the navigation that led here, and if
    that began on another site (a link in a web mailbox), the browser would not send the new cookie.
    """
    refresh = f'<meta http-equiv="refresh" content="0;url={escape(go_to)}">' if go_to else ""
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta name="color-scheme" content="light dark">{refresh}'
        f'<link rel="icon" href="{escape(root + ICON)}">'
        f"<title>{escape(title)}</title><style>{STYLE}</style><main><h1>{escape(title)}</h1>{body}</main></html>"
    ).encode()


def login_page(root: str) -> bytes:
    """Return the page for a browser without a session, below the secret path."""
    return page(
        root,
        "Please log in",
        "This page belongs to the person who runs the daemon.",
        "Run <code>zeroclaw status</code> on this machine and open the link that it prints."
        " A link works once; this browser then stays logged in for 30 days.",
    )


def logged_out_page(root: str, *, is_stored: bool) -> bytes:
    """Return the page for a browser that has just logged out."""
    until = "" if is_stored else " until the daemon starts again: its sessions can't be stored"
    return page(
        root,
        f"You are logged out{until}",
        "Run <code>zeroclaw status</code> on this machine for a new link.",
        "<code>zeroclaw logout</code> logs every browser out.",
    )
