"""The file and directory names under which programs keep keys and passwords, as documented.

The gate (before a call on files) and the sandbox (before a command) share this list. Everything
below such a directory is closed too. Names are compared without regard to case, because some file
systems do the same.
"""

_FOLDERS = frozenset(
    {
        ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".password-store", "gcloud",
        "keyrings",
    }
)  # fmt: skip
_FILES = frozenset(
    {
        ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".npmrc", ".pypirc",
        ".htpasswd", "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk",
    }
)  # fmt: skip
_ENDINGS = (".env", ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk")
# What editors and people append to the name of a copy that they keep.
_COPY_ENDINGS = ("~", ".bak", ".old", ".orig")
# Templates that a project commits, to show which variables to set.
_SAMPLE_ENDINGS = (".example", ".sample", ".template", ".dist")
# Such templates, too; and the certificates of public authorities: without this file, nothing in a
# project's own environment (certifi, curl) can verify a server.
_PUBLIC = ("example.env", "sample.env", "template.env", "cacert.pem")


def names_secrets(name: str) -> bool:
    """Whether one component of a path names a place for secrets, or a directory of them."""
    folded = name.casefold()
    for ending in _COPY_ENDINGS:
        folded = folded.removesuffix(ending)
    if folded in _FOLDERS or folded in _FILES:
        return True
    if folded.endswith(_ENDINGS):
        return folded not in _PUBLIC
    return folded.startswith(".env.") and not folded.endswith(_SAMPLE_ENDINGS)
