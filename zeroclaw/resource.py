"""The canonical form of resources, for comparing policy statements with the resources of calls.

Two spellings of one host or path must never count as two resources, or a deny on one would let the
other through. So every name is canonicalised where it enters, and a name without a canonical form
is rejected. In a pattern, `*` stands for any run of characters; the rest of the pattern is
canonicalised too.
"""

import re
import unicodedata
from ipaddress import AddressValueError, IPv4Address, IPv6Address

import idna

LAST_PORT = 65_535
_MAX_NAME_CHARS = 253  # RFC 1035, section 2.3.4, without the length bytes
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_LABEL_PATTERN = re.compile(r"[a-z0-9_*-]{1,63}")
# A last label that makes inet_aton read an address (URL standard): 2130706433, 0x7f.1, 127.1.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# UTS #46: these separate labels like a full stop.
_DOTS = re.compile("[.\u3002\uff0e\uff61]")
_SAME_FOLDER = re.compile(r"/(?:\.?/)+")
_PORT_PATTERN = re.compile(r"[0-9*]{1,8}")
_GROUP_PATTERN = re.compile(r"|[1-9a-f*][0-9a-f*]{0,4}|0")


def resource_form(resource: str) -> str:
    """Return the canonical form of a resource of a statement or a call.

    Raises:
        ValueError: It has none; the text tells its author why.
    """
    kind, _, rest = resource.partition(":")
    match kind:
        case "host":
            return f"{kind}:{host_pattern(rest)}"
        case "file":
            return f"{kind}:{path_pattern(rest)}"
        case _:
            return resource


def host_form(host: str) -> str:
    """Return a host name in lower case and ASCII, or an address; IPv6 without brackets.

    Raises:
        ValueError: It is not a host; the text continues a sentence that begins with "URL".
    """
    if host.startswith("[") and host.endswith("]"):
        return address_form(host[1:-1])
    labels = [_label(label, _LABEL) for label in _labels(host)]
    name = ".".join(labels)
    if len(name) > _MAX_NAME_CHARS:
        raise _no_host()
    if not _NUMBER.fullmatch(labels[-1]):
        return name
    try:
        return str(IPv4Address(name))
    except AddressValueError:
        message = "must write an IPv4 address as four decimal numbers"
        raise ValueError(message) from None


def address_form(text: str) -> str:
    """Return an IPv6 address as every Python release writes it: hex groups, compressed zeros.

    Raises:
        ValueError: It is not one; the text continues a sentence that begins with "URL".
    """
    try:
        address = IPv6Address(text)
    except AddressValueError:
        message = "must have an IPv6 address between its brackets"
        raise ValueError(message) from None
    if address.scope_id is not None:
        message = "must not name a network interface"
        raise ValueError(message)
    mapped = address.ipv4_mapped
    if mapped is None:
        return str(address)
    high, low = divmod(int(mapped), 1 << 16)
    return f"::ffff:{high:x}:{low:x}"


def host_pattern(text: str) -> str:
    """Return the canonical form of what follows `host:` in a statement.

    Args:
        text: `<name>:<port>`, with `*` for any run of characters; `*` alone means every host.

    Raises:
        ValueError: It could never match; the text tells its author why.
    """
    if set(text) == {"*"}:
        return text
    host, _, port = text.rpartition(":")
    if not host or host.count("[") != host.count("]"):
        message = f"names no port: write `host:{text}:443`, or `host:{text}:*` for every port"
        raise ValueError(message)
    return f"{_host_pattern(host)}:{_port_pattern(port)}"


def path_pattern(text: str) -> str:
    """Return the canonical form of what follows `file:` in a statement.

    Raises:
        ValueError: It could never match; the text tells its author why.
    """
    plain = _SAME_FOLDER.sub("/", composed(text))
    plain = plain.removesuffix("/.") or "/"
    if "/.." in plain and re.search(r"/\.\.(/|$)", plain):
        message = "goes up with `..`: write the real path"
        raise ValueError(message)
    if "\0" in plain:
        message = "holds a NUL, which no path does"
        raise ValueError(message)
    if plain != "/" and plain.endswith("/"):
        folder = plain.rstrip("/")
        message = f"ends with `/`: `file:{folder}` is the folder, `file:{folder}/*` all in it"
        raise ValueError(message)
    return plain


def composed(text: str) -> str:
    """Return a name in Unicode's form NFC; both forms look the same to a reader."""
    return unicodedata.normalize("NFC", text)


def _host_pattern(host: str) -> str:
    bare = host.removeprefix("[").removesuffix("]")
    if "*" not in bare:
        return address_form(bare) if ":" in bare else host_form(host)
    if ":" in bare:
        # Groups next to a `*` can't be normalised, so they must be written in canonical form.
        groups = bare.lower()
        if not all(_GROUP_PATTERN.fullmatch(group) for group in groups.split(":")):
            message = "must write the groups of an IPv6 address in hex, without zeros before them"
            raise ValueError(message)
        return groups
    return ".".join(_label(label, _LABEL_PATTERN) for label in _labels(bare))


def _port_pattern(port: str) -> str:
    is_pattern = "*" in port
    if not _PORT_PATTERN.fullmatch(port) or not (is_pattern or 1 <= int(port) <= LAST_PORT):
        message = "must have a port from 1 to 65535, or `*`"
        raise ValueError(message)
    return port if is_pattern else str(int(port))


def _labels(host: str) -> list[str]:
    """Split a name at its dots; drop the empty root label after a trailing dot."""
    if len(host) > _MAX_NAME_CHARS + 1:  # a thousand labels would take a tenth of a second
        raise _no_host()
    labels = _DOTS.split(host)
    return labels[:-1] if len(labels) > 1 and not labels[-1] else labels


def _label(label: str, form: re.Pattern[str]) -> str:
    try:
        plain = label.lower() if label.isascii() else idna.encode(label, uts46=True).decode()
    except UnicodeError:
        message = "must name a host that exists in the DNS's alphabet"
        raise ValueError(message) from None
    if not all(form.fullmatch(part) for part in plain.split(".")):
        raise _no_host()
    return plain


def _no_host() -> ValueError:
    message = "must name a host"
    return ValueError(message)
