"""The names under which programs keep keys and passwords, by their own documentation.

One list for all who guard them: the gate before a call on files, the sandbox before a command. What
has such a name is closed with all that lies below it. Names are compared without regard to case,
because some file systems do the same.
"""

_FOLDERS = frozenset(
    {
        ".ssh",
        ".aws",
        ".azure",
        ".gnupg",
        ".kube",
        ".docker",
        ".password-store",
        "gcloud",
        "keyrings",
    }
)
_FILES = frozenset(
    {
        ".env",
        ".netrc",
        "_netrc",
        ".pgpass",
        ".my.cnf",
        ".git-credentials",
        ".npmrc",
        ".pypirc",
        ".htpasswd",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
    }
)
_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk")
# What a project commits so that others know which names to fill in.
_SAMPLE_ENDINGS = (".example", ".sample", ".template", ".dist")
# Certificates of authorities, which are public; without them nothing in a project's own environment
# (certifi, curl) can check a server.
_PUBLIC = "cacert.pem"


def names_secrets(name: str) -> bool:
    """Tell of one name of a path whether secrets are kept there, in it or below it."""
    folded = name.casefold()
    if folded in _FOLDERS or folded in _FILES:
        return True
    if folded.endswith(_ENDINGS):
        return folded != _PUBLIC
    return folded.startswith(".env.") and not folded.endswith(_SAMPLE_ENDINGS)
