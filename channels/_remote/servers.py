"""Whose certificates are trusted, of the servers that are spoken to."""

import os
from functools import cache
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
