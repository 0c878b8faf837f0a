"""Who wrote a mail: the one address in From, and whether our own server vouches for it.

A From header says what its writer likes. It counts only where the server that took the mail in has
checked it and says so in an Authentication-Results header (RFC 8601) under its own name, which is
configured. A server takes out what others wrote there under its name (section 5); of what is left
the topmost counts, for headers are put on top of what came.

Aligned means: the domain of From is the domain that was proven, or lies below it. A domain below
that of From proves nothing here, because without the list of public suffixes it can't be told from
somebody else's, as `attacker.hosting.example` is under `hosting.example`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import idna

from channels.email import ADDRESS, PlusTags
from zeroclaw import Value

MOST_ADDRESS_CHARS = 254
"""RFC 5321, 4.5.3.1.3, without its angle brackets."""
_ADDRESS = re.compile(ADDRESS, re.ASCII | re.IGNORECASE)
_OUTSIDE = re.compile(r'"(?P<said>(?:[^"\\]|\\.)*)\\?"?|[()]|[^"()]+', re.DOTALL)
_COMMENT = re.compile(r"[()]|(?:[^()\\]|\\.)+|\\", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SIGNS = re.compile(r"[\s=;]")
_NAME = re.compile(r"(?<!\S)([^\s=]++)\s*+=\s*+")

Piece = tuple[str, bool]
"""What stands in a header, and whether it stands in quotes."""
_Result = tuple[str, bool, Mapping[str, str]]
"""A method, whether it passed, and what it says beside that."""


class Author(Value):
    """The one mailbox of a From header; `display` is what its owner calls themselves."""

    address: str
    display: str


def author(values: tuple[str, ...], plus_tags: PlusTags = "kept") -> Author | None:
    """Return who a mail says that it is from; None where that is not one plain address.

    Args:
        values: Every From header of the mail.
        plus_tags: Whether `ann+x@` is somebody else than `ann@`.
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
    return Author(address=found, display=name) if found else None


def normalised(address: str, plus_tags: PlusTags = "kept") -> str:
    """Return an address as it is compared: lower case, its domain in ASCII; empty for none."""
    local, _, domain = address.strip().rpartition("@")
    if len(address) > MOST_ADDRESS_CHARS:
        return ""
    if plus_tags == "dropped":
        local = local.partition("+")[0] or local
    try:
        domain = domain if domain.isascii() else idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:
        return ""
    found = f"{local}@{domain}"
    return found.lower() if _ADDRESS.fullmatch(found) else ""


def is_vouched_for(address: str, results: Iterable[str], authserv_id: str) -> bool:
    """Tell whether our own server has found that a mail is from where its address says.

    Args:
        address: As `author` returns it.
        results: Every Authentication-Results header, the topmost first.
        authserv_id: The name under which our own server writes; empty for none, and then nobody is.
    """
    for value in results if authserv_id else ():
        if not (pieces := _pieces(value)):
            return False  # it may be our own server's, and is not to be read
        first, *methods = _statements(pieces)
        name = first.lower().split()[:1]
        if name == [authserv_id.lower()]:
            return _is_proven(address.rpartition("@")[2], [*_results(methods)])
        if not name or "=" in first:
            return False  # Exchange Online writes no name, so this may be our own server's as well
    return False


def _is_proven(domain: str, results: Sequence[_Result]) -> bool:
    dmarc = [(is_pass, facts) for method, is_pass, facts in results if method == "dmarc"]
    if dmarc:  # whatever else passed: this is the verdict over it
        domains = {_domain(facts.get("header.from", "")) for _, facts in dmarc}
        return all(is_pass for is_pass, _ in dmarc) and domains <= {"", domain}
    found = (_proven(method, facts) for method, is_pass, facts in results if is_pass)
    return any("." in one and f".{domain}".endswith(f".{one}") for one in found)


def _proven(method: str, facts: Mapping[str, str]) -> str:
    """Return the domain that a method other than DMARC has proven, empty for none."""
    if method == "dkim":
        return _domain(facts.get("header.d") or facts.get("header.i", ""))
    return _domain(facts.get("smtp.mailfrom", "")) if method == "spf" else ""


def _domain(value: str) -> str:
    return value.rpartition("@")[2].lower().rstrip(".")


# --- the grammar, read once from left to right -----------------------------------------------------


def _pieces(value: str) -> list[Piece]:
    """Return a header in pieces, with a blank for each comment; none where one does not end."""
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
    """Return the statements of a header; what stands in quotes is part of the word around it."""
    said = (_SIGNS.sub("_", text) or "_" if is_quoted else text for text, is_quoted in pieces)
    return "".join(said).split(";")


def _results(statements: Iterable[str]) -> Iterator[_Result]:
    """Yield what came of each method; `none` is as good as no such method.

    A value goes on to the next name, whatever signs are in it: what stands before the @ of an address
    is its owner's choice, as in `smtp.mailfrom=a.example=x@b.example`, and must not be read alone.
    """
    for one in statements:
        before, *found = _NAME.split(one.strip())
        names, values = map(str.lower, found[::2]), map(str.strip, found[1::2])
        pairs = list(zip(names, values, strict=True))
        if not before and pairs and pairs[0][1].lower() != "none":
            (method, result), *facts = pairs
            # Of facts with one name the first counts.
            yield method.partition("/")[0], result.lower() == "pass", dict(reversed(facts))
