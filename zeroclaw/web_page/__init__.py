"""Reads the files of a web page: its own, and those in this folder, which all pages share."""

from collections.abc import Mapping

# Not `mimetypes`: it reads the machine's own tables, which differ from machine to machine.
_KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


def page_files(package: str) -> Mapping[str, tuple[bytes, str]]:
    """Return content and media type of each file that a package's page needs, by name; blocks."""
    from importlib.resources import files

    return {
        file.name: (file.read_bytes(), kind)
        for folder in (files(__name__), files(package) / "page")
        for file in folder.iterdir()
        if (kind := _KINDS.get(file.name.rpartition(".")[2]))
    }
