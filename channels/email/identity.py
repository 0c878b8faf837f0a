"""Identifies the author of a mail: the address in From, and whether our own server vouches for it.

A sender can write anything into From. The address counts only if the server that received the mail
has verified it, which its Authentication-Results headers (RFC 8601) state under its configured name.
A server should remove headers that others wrote under its name (section 5), but not every one does. It
adds its own on top, so only the topmost one with a verdict counts. Some servers write headers about
other methods above it (Fastmail, iCloud: github.com/deltachat/deltachat-core-rust,
test-data/message/dkimchecks-2022-09-28, read 2026-11).

Aligned means: the domain of From is the proven domain, or a subdomain of it. A subdomain of From's
domain proves nothing here: without the list of public suffixes it might have another owner, as
`attacker.hosting.example` under `hosting.example`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

import idna

from channels.email import ADDRESS, EmailSettings, PlusTags
from zeroclaw import Mail, Sender, plain_header

MAX_ADDRESS_CHARS = 254
"""RFC 5321, 4.5.3.1.3, without its angle brackets."""
_ADDRESS = re.compile(ADDRESS, re.ASCII | re.IGNORECASE)
_TOKEN = re.compile(r'"(?P<quoted>(?:[^"\\]|\\.)*)\\?"?|[()]|[^"()]+', re.DOTALL)
_COMMENT = re.compile(r"[()]|(?:[^()\\]|\\.)+|\\", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_DELIMITERS = re.compile(r"[\s=;]")
# Spaces outside ASCII may be in an address, whose owner chooses them (RFC 6531, 3.3), so none ends a value.
_OTHER_SPACES = re.compile(r"[^\S \t]")
_VERDICTS = frozenset({"dmarc", "dkim", "spf"})
_NAME = re.compile(r"(?<!\S)([^\s=]++)\s*+=\s*+")

Piece = tuple[str, bool]
"""A piece of a header, and whether it is quoted."""
_Result = tuple[str, str, Mapping[str, str]]
"""A method, its verdict, and its other properties."""


def author(mail: Mail, settings: EmailSettings) -> Sender | None:
    """Return the author of a mail, and whether our own server vouches for the address in From.

    None if From is not one plain address.

    `Doe, Ann <ann@a.example>` without quotes is a list of two (RFC 5322, 3.6.2). Gmail refuses such mail
    (github.com/nodemailer/nodemailer/issues/973, read 2026-11), and servers differ in whose domain they
    check (github.com/msimerson/mail-dmarc/issues/87).
    """
    values = [value for name, value in mail.headers if name == "from"]
    pieces = _pieces(values[0]) if len(values) == 1 else []
    names = [text for text, is_quoted in pieces if is_quoted]
    # A quoted string is a name only before the brackets: `<ann"x"@a.example>` is not Ann.
    unquoted = "".join('"' if is_quoted else text for text, is_quoted in pieces)
    before, bracket, rest = unquoted.partition("<")
    spec, closed, after = rest.partition(">")
    if bracket and (not closed or after.strip() or any(sign in before for sign in ",;:")):
        return None
    address = normalised(spec if bracket else before, settings.plus_tags)
    name = plain_header(" ".join((*names, before.replace('"', "")))) if bracket else ""
    is_verified = is_vouched_for(address, mail.headers, settings.authserv_id)
    return Sender(id=address, verified=is_verified, display=name) if address else None


def normalised(address: str, plus_tags: PlusTags = "kept") -> str:
    """Return an address in comparable form: lower case, its domain in ASCII; empty if invalid."""
    local, _, domain = address.strip().rpartition("@")
    if len(address) > MAX_ADDRESS_CHARS:
        return ""
    try:
        domain = domain if domain.isascii() else idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:
        return ""
    if not _ADDRESS.fullmatch(f"{local}@{domain}"):
        return ""
    if plus_tags == "dropped":  # after the check, so that a tag can't hide an invalid character
        local = local.partition("+")[0] or local
    return f"{local}@{domain}".lower()


def digest(*parts: str) -> str:
    """Return a short digest of texts, which identifies them."""
    return sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:20]


def is_vouched_for(address: str, headers: Iterable[tuple[str, str]], authserv_id: str) -> bool:
    """Tell whether our own server has verified that a mail comes from its address.

    Args:
        address: The id that `author` returns.
        headers: The names in lower case and the values of all headers, topmost first.
        authserv_id: Our own server's name in them, or `*.` and the domain of such servers; if empty,
            the result is always False.
    """
    server_id, has_own = authserv_id.lower(), False
    for header, value in headers if server_id else ():
        if header == "received" and has_own:
            break  # the headers below are older than our own server's
        if header != "authentication-results":
            continue
        first, *methods = _statements(_pieces(value))
        name = "".join(first.lower().split()[:1])
        if name.endswith(server_id[1:]) if server_id.startswith("*.") else name == server_id:
            has_own, results = True, list(_results(methods))
            if not results or any(method in _VERDICTS for method, *_ in results):
                return _is_proven(address.rpartition("@")[2], results)
        elif has_own or not name or "=" in first:
            break  # Exchange Online writes no name, so an unreadable one may also be our own server's
    return False


def _is_proven(domain: str, results: Sequence[_Result]) -> bool:
    dmarc = [result[1:] for result in results if result[0] == "dmarc" and result[1] != "none"]
    if dmarc:  # overrides the other methods
        from_domains = {_domain(facts.get("header.from", "")) for _, facts in dmarc}
        return all(verdict == "pass" for verdict, _ in dmarc) and from_domains <= {"", domain}
    domains = (_proven(method, facts) for method, verdict, facts in results if verdict == "pass")
    return any("." in proven and f".{domain}".endswith(f".{proven}") for proven in domains)


def _proven(method: str, facts: Mapping[str, str]) -> str:
    """Return the domain that a method other than DMARC has proven, or empty."""
    if method == "dkim":
        return _domain(facts.get("header.d") or facts.get("header.i", ""))
    return _domain(facts.get("smtp.mailfrom", "")) if method == "spf" else ""


def _domain(value: str) -> str:
    return value.rpartition("@")[2].lower().rstrip(".")


# --- the grammar, parsed once from left to right ---------------------------------------------------


def _pieces(value: str) -> list[Piece]:
    """Split a header into pieces, with a space for each comment; empty if a comment is not closed."""
    pieces: list[Piece] = []
    depth = at = 0
    while match := (_COMMENT if depth else _TOKEN).match(value, at):
        at = match.end()
        text = match[0]
        depth += (text == "(") - (text == ")" and depth > 0)
        if text in {"(", ")"}:
            pieces.append((" ", False))
        elif not depth:
            is_quoted = text[0] == '"'
            pieces.append((_ESCAPED.sub(r"\1", match["quoted"]) if is_quoted else text, is_quoted))
    return [] if depth else pieces


def _statements(pieces: Iterable[Piece]) -> list[str]:
    """Return the statements of a header; quoted text becomes part of the word around it."""
    texts = (_DELIMITERS.sub("_", text) or "_" if is_quoted else text for text, is_quoted in pieces)
    return _OTHER_SPACES.sub("_", "".join(texts)).split(";")


def _results(statements: Iterable[str]) -> Iterator[_Result]:
    """Yield the result of each method.

    A value continues to the next name, whatever characters it contains: its owner chooses the part of
    an address before the @, as in `smtp.mailfrom=a.example=x@b.example`, so it must not be read alone.
    """
    for statement in statements:
        prefix, *fields = _NAME.split(statement.strip())
        names, values = map(str.lower, fields[::2]), map(str.strip, fields[1::2])
        pairs = list(zip(names, values, strict=True))
        if not prefix and pairs:
            (method, result), *facts = pairs
            # Of properties with the same name the first counts.
            yield method.partition("/")[0], result.lower(), dict(reversed(facts))
