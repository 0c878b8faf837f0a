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
from collections.abc import Iterable, Iterator

import idna

from zeroclaw import Value

MOST_ADDRESS_CHARS = 254
"""RFC 5321, 4.5.3.1.3, without its angle brackets."""
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}")
_LABELS = re.compile(r"(?!-)[a-z0-9-]{1,63}(?:\.(?!-)[a-z0-9-]{1,63})+")
_WORD = re.compile(r'[^\s=;"]+')
_SPACE = re.compile(r"\s+")


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
    line = _without_comments(values[0])
    if line is None:
        return None
    names: list[str] = []
    signs, at = "", 0
    while at < len(line):
        if line[at] == '"':
            quoted, at = _quoted(line, at)
            names.append(quoted)
            continue
        signs += line[at]
        at += 1
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
        if not (line := _without_comments(value)):
            return False  # it may be our own server's, and is not to be read
        first, *methods = _statements(line)
        if first[:1] and first[0].lower() == authserv_id.lower():
            return _is_proven(address.rpartition("@")[2], [_method(one) for one in methods])
    return False


class _Result(Value):
    method: str
    result: str
    properties: tuple[tuple[str, str], ...]

    def property(self, name: str) -> str:
        return next((value for key, value in self.properties if key == name), "")


def _is_proven(domain: str, results: list[_Result]) -> bool:
    dmarc = [one for one in results if one.method == "dmarc" and one.result != "none"]
    if dmarc:  # whatever else passed: this is the verdict over it
        return all(
            one.result == "pass" and _domain(one.property("header.from")) in {"", domain}
            for one in dmarc
        )
    return any(
        one.result == "pass"
        and (
            (
                one.method == "dkim"
                and _is_aligned(domain, one.property("header.d") or one.property("header.i"))
            )
            or (one.method == "spf" and _is_aligned(domain, one.property("smtp.mailfrom")))
        )
        for one in results
    )


def _is_aligned(domain: str, proven: str) -> bool:
    over = _domain(proven)
    return "." in over and (domain == over or domain.endswith(f".{over}"))


def _domain(value: str) -> str:
    return value.rpartition("@")[2].lower().rstrip(".")


# --- the grammar, read once from left to right -----------------------------------------------------


def _without_comments(value: str) -> str | None:
    """Return a header with a space for each comment; None where one does not end."""
    if "(" not in value:
        return value
    kept: list[str] = []
    depth = at = 0
    while at < len(value):
        sign = value[at]
        if sign == "\\" and at + 1 < len(value):
            kept += [] if depth else value[at : at + 2]
            at += 2
            continue
        if sign == '"' and not depth:
            _, after = _quoted(value, at)
            kept.append(value[at:after])
            at = after
            continue
        depth += (sign == "(") - (sign == ")" and depth > 0)
        kept.append(" " if depth or sign == ")" else sign)
        at += 1
    return None if depth else "".join(kept)


def _quoted(value: str, at: int) -> tuple[str, int]:
    """Return what stands in quotes from there on, and where it is over."""
    said: list[str] = []
    at += 1
    while at < len(value) and value[at] != '"':
        at += value[at] == "\\"
        said.append(value[at : at + 1])
        at += 1
    return "".join(said), min(at + 1, len(value))


def _statements(line: str) -> Iterator[list[str]]:
    """Yield the words of each statement, `=` being one; a word in quotes is one word."""
    words: list[str] = []
    at = 0
    while at < len(line):
        if line[at] == ";":
            yield words
            words = []
        elif line[at] == '"':
            said, at = _quoted(line, at)
            words.append(said)
            continue
        elif line[at] == "=":
            words.append("=")
        elif found := _WORD.match(line, at):
            words.append(found.group())
            at = found.end()
            continue
        at += 1
    yield words


def _method(words: list[str]) -> _Result:
    pairs = [
        (words[at - 1].lower(), words[at + 1])
        for at in range(1, len(words) - 1)
        if words[at] == "="
    ]
    method, result = pairs[0] if pairs and pairs[0][0] == words[0].lower() else ("", "")
    return _Result(
        method=_SPACE.sub("", method.partition("/")[0]),
        result=result.lower(),
        properties=tuple(pairs[1:]),
    )
