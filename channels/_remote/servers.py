"""Which servers are spoken to: whose certificates are trusted, and to which a secret goes in clear."""

import os
from functools import cache
from ipaddress import ip_address
from ssl import SSLContext, create_default_context


@cache
def trust() -> SSLContext:
    """Return what is trusted, read once for the whole process; blocks.

    Libraries read all certificates for each pool of connections, which takes two thirds of a MiB and
    a twentieth of a second of the loop's time; and a channel that fails is made anew, with a pool.
    """
    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and folder:
        return create_default_context(capath=folder)
    return create_default_context(cafile=file or certifi.where())


def is_near(host: str) -> bool:
    """Whether a host is this machine or stands in its own network, where plain HTTP will do."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan"))
