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
from collections.abc import Iterable, Mapping

import idna

from zeroclaw import Value

MOST_ADDRESS_CHARS = 254
"""RFC 5321, 4.5.3.1.3, without its angle brackets."""
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}")
_LABELS = re.compile(r"(?!-)[a-z0-9-]{1,63}(?:\.(?!-)[a-z0-9-]{1,63})+")
_OUTSIDE = re.compile(r'"(?P<said>(?:[^"\\]|\\.)*)\\?"?|[()]|[^"()]+', re.DOTALL)
_COMMENT = re.compile(r"[()]|(?:[^()\\]|\\.)+|\\", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_WORD = re.compile(r"[=;]|[^\s=;]+")

Piece = tuple[str, bool]
"""What stands in a header, and whether it stands in quotes."""


class Author(Value):
    """The one mailbox of a From header; `display` is what its owner calls themselves."""

    address: str
    display: str


def author(values: tuple[str, ...], *, plus_tags: bool = True) -> Author | None:
    """Return who a mail says that it is from; None where that is not one plain address.

    Args:
        values: Every From header of the mail.
        plus_tags: `ann+x@` is somebody else than `ann@`.
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
    found = normalised(spec if bracket else before, plus_tags=plus_tags)
    name = " ".join((*names, before.strip())).strip() if bracket else ""
    return Author(address=found, display=name) if found else None


def normalised(address: str, *, plus_tags: bool = True) -> str:
    """Return an address as it is compared: lower case, its domain in ASCII; empty for none."""
    local, at, domain = address.strip().rpartition("@")
    if not at or len(address) > MOST_ADDRESS_CHARS or _LOCAL.fullmatch(local) is None:
        return ""
    try:
        ascii_ = domain if domain.isascii() else idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:
        return ""
    ascii_ = ascii_.lower()
    if _LABELS.fullmatch(ascii_) is None:
        return ""
    if not plus_tags:
        local = local.partition("+")[0] or local
    return f"{local.lower()}@{ascii_}"


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
        if first[:1] and first[0].lower() == authserv_id.lower():
            return _is_proven(address.rpartition("@")[2], [_result(one) for one in methods])
    return False


class _Result(Value):
    method: str = ""
    is_pass: bool = False
    properties: Mapping[str, str] = {}


def _is_proven(domain: str, results: list[_Result]) -> bool:
    dmarc = [one for one in results if one.method == "dmarc"]
    if dmarc:  # whatever else passed: this is the verdict over it
        return all(
            one.is_pass and _domain(one.properties.get("header.from", "")) in {"", domain}
            for one in dmarc
        )
    found = (_proven(one) for one in results if one.is_pass)
    return any("." in one and f".{domain}".endswith(f".{one}") for one in found)


def _proven(result: _Result) -> str:
    """Return the domain that a method other than DMARC has proven, empty for none."""
    properties = result.properties
    if result.method == "dkim":
        return _domain(properties.get("header.d") or properties.get("header.i", ""))
    return _domain(properties.get("smtp.mailfrom", "")) if result.method == "spf" else ""


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


def _statements(pieces: Iterable[Piece]) -> list[list[str]]:
    """Return the words of each statement, `=` being one; what stands in quotes is one word."""
    found: list[list[str]] = [[]]
    for text, is_quoted in pieces:
        for word in [text] if is_quoted else _WORD.findall(text):
            if word == ";" and not is_quoted:
                found.append([])
            else:
                found[-1].append(word)
    return found


def _result(words: list[str]) -> _Result:
    """Return what came of a method; `none` is as good as no such method."""
    triples = zip(words, words[1:], words[2:], strict=False)
    pairs = [(before.lower(), after) for before, sign, after in triples if sign == "="]
    if not pairs or pairs[0][0] != words[0].lower() or pairs[0][1].lower() == "none":
        return _Result()
    method, result = pairs[0]
    return _Result(
        method=method.partition("/")[0],
        is_pass=result.lower() == "pass",
        properties=dict(reversed(pairs[1:])),  # the first of a name counts
    )
