"""Who wrote a mail: the one address in From, and whether our own server vouches for it.

A sender can write anything into From. It counts only if the server that received the mail has
checked it and says so in Authentication-Results headers (RFC 8601) under its own configured name.
A server should remove headers that others wrote under its name (section 5), but not every one does. It
adds its own on top, so the topmost one that gives a verdict counts, and no other. Some servers write
headers about other methods above it (Fastmail, iCloud: github.com/deltachat/deltachat-core-rust,
test-data/message/dkimchecks-2022-09-28, read 2026-11).

Aligned means: the domain of From is the proven domain, or a subdomain of it. A subdomain of From's
domain proves nothing here: without the list of public suffixes it might belong to somebody else, as
`attacker.hosting.example` under `hosting.example`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

import idna

from channels.email import ADDRESS, PlusTags
from zeroclaw import Sender

MOST_ADDRESS_CHARS = 254
"""RFC 5321, 4.5.3.1.3, without its angle brackets."""
_ADDRESS = re.compile(ADDRESS, re.ASCII | re.IGNORECASE)
_OUTSIDE = re.compile(r'"(?P<said>(?:[^"\\]|\\.)*)\\?"?|[()]|[^"()]+', re.DOTALL)
_COMMENT = re.compile(r"[()]|(?:[^()\\]|\\.)+|\\", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SIGNS = re.compile(r"[\s=;]")
_VERDICTS = frozenset({"dmarc", "dkim", "spf"})
_NAME = re.compile(r"(?<!\S)([^\s=]++)\s*+=\s*+")

Piece = tuple[str, bool]
"""A piece of a header, and whether it is quoted."""
_Result = tuple[str, str, Mapping[str, str]]
"""A method, its verdict, and its other properties."""


def author(values: tuple[str, ...], plus_tags: PlusTags = "kept") -> Sender | None:
    """Return the author that a mail claims, unverified; None if From is not one plain address.

    `Doe, Ann <ann@a.example>` without quotes is a list of two (RFC 5322, 3.6.2). Gmail refuses such mail
    (github.com/nodemailer/nodemailer/issues/973, read 2026-11), and servers differ in whose domain they
    check (github.com/msimerson/mail-dmarc/issues/87).

    Args:
        values: Every From header of the mail.
        plus_tags: Whether `ann+x@` is another person than `ann@`.
    """
    if len(values) != 1:
        return None
    pieces = _pieces(values[0])
    names = [text for text, is_quoted in pieces if is_quoted]
    signs = "".join(text for text, is_quoted in pieces if not is_quoted)
    before, bracket, rest = signs.partition("<")
    spec, closed, after = rest.partition(">")
    if bracket and (not closed or after.strip() or any(sign in before for sign in ",;:")):
        return None
    if not bracket and names:
        return None
    found = normalised(spec if bracket else before, plus_tags)
    name = " ".join((*names, before.strip())).strip() if bracket else ""
    return Sender(id=found, verified=False, display=name) if found else None


def normalised(address: str, plus_tags: PlusTags = "kept") -> str:
    """Return an address in comparable form: lower case, its domain in ASCII; empty if invalid."""
    local, _, domain = address.strip().rpartition("@")
    if len(address) > MOST_ADDRESS_CHARS:
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
    """Return a short digest of texts, by which they are known again."""
    return sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:20]


def is_vouched_for(address: str, headers: Iterable[tuple[str, str]], authserv_id: str) -> bool:
    """Tell whether our own server has verified that a mail comes from its address.

    Args:
        address: The id that `author` returns.
        headers: The names in lower case and the values of all headers, topmost first.
        authserv_id: Our own server's name in them, or `*.` and the domain of such servers; if empty,
            nobody is vouched for.
    """
    own, is_begun = authserv_id.lower(), False
    for header, value in headers if own else ():
        if header == "received" and is_begun:
            break  # what stands below was there before
        if header != "authentication-results":
            continue
        first, *methods = _statements(_pieces(value))
        name = "".join(first.lower().split()[:1])
        if name.endswith(own[1:]) if own.startswith("*.") else name == own:
            is_begun, results = True, list(_results(methods))
            if not results or any(method in _VERDICTS for method, *_ in results):
                return _is_proven(address.rpartition("@")[2], results)
        elif is_begun or not name or "=" in first:
            break  # Exchange Online writes no name, so an unreadable one may also be our own server's
    return False


def _is_proven(domain: str, results: Sequence[_Result]) -> bool:
    dmarc = [one[1:] for one in results if one[0] == "dmarc" and one[1] != "none"]
    if dmarc:  # overrides the other methods
        domains = {_domain(facts.get("header.from", "")) for _, facts in dmarc}
        return all(said == "pass" for said, _ in dmarc) and domains <= {"", domain}
    found = (_proven(method, facts) for method, said, facts in results if said == "pass")
    return any("." in one and f".{domain}".endswith(f".{one}") for one in found)


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
    found: list[Piece] = []
    depth = at = 0
    while piece := (_COMMENT if depth else _OUTSIDE).match(value, at):
        at = piece.end()
        sign = piece[0]
        depth += (sign == "(") - (sign == ")" and depth > 0)
        if sign in {"(", ")"}:
            found.append((" ", False))
        elif not depth:
            is_quoted = sign[0] == '"'
            found.append((_ESCAPED.sub(r"\1", piece["said"]) if is_quoted else sign, is_quoted))
    return [] if depth else found


def _statements(pieces: Iterable[Piece]) -> list[str]:
    """Return the statements of a header; quoted text becomes part of the word around it."""
    said = (_SIGNS.sub("_", text) or "_" if is_quoted else text for text, is_quoted in pieces)
    return "".join(said).split(";")


def _results(statements: Iterable[str]) -> Iterator[_Result]:
    """Yield the result of each method.

    A value continues to the next name, whatever characters it contains: its owner chooses the part of
    an address before the @, as in `smtp.mailfrom=a.example=x@b.example`, so it must not be read alone.
    """
    for one in statements:
        before, *found = _NAME.split(one.strip())
        names, values = map(str.lower, found[::2]), map(str.strip, found[1::2])
        pairs = list(zip(names, values, strict=True))
        if not before and pairs:
            (method, result), *facts = pairs
            # Of properties with the same name the first counts.
            yield method.partition("/")[0], result.lower(), dict(reversed(facts))
