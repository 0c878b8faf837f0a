"""The files that Telegram stores, and their limits.

Bots can download up to 20 MB and upload up to 50 MB, pictures up to 10 MB (Bot API, getFile, "Sending
files", read 2026-11).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from channels.telegram.emulator.refusals import Refused, bad_request
from channels.telegram.emulator.wire import Json, Parameters, Upload
from zeroclaw import Value

MEGABYTE = 1024 * 1024
LARGEST_DOWN = 20 * MEGABYTE
LARGEST_UP = 50 * MEGABYTE
LARGEST_PHOTO = 10 * MEGABYTE
# Each kind of file, which is also the field's name, and the folder where Telegram stores it.
FOLDERS: Mapping[str, str] = {
    "document": "documents",
    "photo": "photos",
    "voice": "voice",
    "audio": "music",
    "video": "videos",
    "animation": "animations",
    "video_note": "video_notes",
    "sticker": "stickers",
}
_ENDINGS = {"photo": ".jpg", "voice": ".oga", "sticker": ".webp"}
# Required fields of each kind besides the file; made up, since files are not inspected.
_FACTS: Mapping[str, Json] = {
    "voice": {"duration": 1},
    "audio": {"duration": 1},
    "video": {"duration": 1, "width": 640, "height": 480},
    "animation": {"duration": 1, "width": 640, "height": 480},
    "video_note": {"duration": 1, "length": 240},
    "sticker": {
        "type": "regular",
        "width": 512,
        "height": 512,
        "is_animated": False,
        "is_video": False,
    },
}


class File(Value):
    """One file.

    Attributes:
        size: The size in updates; a test may claim another one than that of `content`.
    """

    id: str
    kind: str
    name: str
    media_type: str
    content: bytes
    size: int
    path: str

    @property
    def unique_id(self) -> str:
        """An id that is equal for equal content; not usable in calls."""
        return f"u{hashlib.sha256(self.content).hexdigest()[:14]}"


@dataclass(eq=False, kw_only=True)
class Files:
    """All files by their id."""

    by_id: dict[str, File] = field(default_factory=dict[str, File])

    def store(self, kind: str, upload: Upload, *, claimed_bytes: int | None = None) -> File:
        """Store a file; each call gives it a new id, as Telegram may do."""
        number = len(self.by_id)
        ending = _ENDINGS.get(kind) or (
            f".{upload.name.rpartition('.')[2]}" if "." in upload.name else ""
        )
        file = File(
            id=f"{kind}-{number}-file",
            kind=kind,
            name=upload.name,
            media_type=upload.media_type,
            content=upload.content,
            size=len(upload.content) if claimed_bytes is None else claimed_bytes,
            path=f"{FOLDERS[kind]}/file_{number}{ending}",
        )
        self.by_id[file.id] = file
        return file

    @property
    def paths(self) -> dict[str, str]:
        """The path of each file, by its id."""
        return {id_: file.path for id_, file in self.by_id.items()}

    def at(self, path: str) -> File | None:
        """Return a file by the path that `getFile` returned, None for none."""
        files = [file for file in self.by_id.values() if file.path == path]
        return files[0] if files and files[0].size <= LARGEST_DOWN else None

    def get(self, parameters: Parameters) -> Json:
        """Do `getFile`.

        Raises:
            Refused: There is no such file, or it is too large for bots.
        """
        file = self.by_id.get(parameters.text("file_id"))
        if file is None:
            raise bad_request("invalid file_id")
        if file.size > LARGEST_DOWN:
            raise bad_request("file is too big")
        return {**_file(file), "file_path": file.path}

    def resolve(self, parameters: Parameters, name: str, kind: str) -> File:
        """Return the file that a parameter uploads, or names by its id.

        Raises:
            Refused: There is none, or it is too large.
        """
        value = parameters.text(name)
        part = value.removeprefix("attach://") if value.startswith("attach://") else name
        upload = parameters.files.get(part)
        if upload is not None:
            return self._accept(kind, upload)
        stored = self.by_id.get(value)
        if stored is not None:
            return stored
        if value.startswith(("http://", "https://")):
            raise bad_request("failed to get HTTP URL content")  # the emulator fetches nothing
        raise bad_request(f"there is no {kind} in the request")

    def _accept(self, kind: str, upload: Upload) -> File:
        size = len(upload.content)
        if not size:
            raise bad_request("file must be non-empty")
        if size > LARGEST_UP:
            raise Refused(413, "Request Entity Too Large")
        if kind == "photo" and size > LARGEST_PHOTO:
            raise bad_request("file is too big")
        return self.store(kind, upload)


def _file(file: File) -> Json:
    return {"file_id": file.id, "file_unique_id": file.unique_id, "file_size": file.size}


def media(file: File) -> Json:
    """Return the field of a message with this file."""
    if file.kind == "photo":
        sizes = ((90, 60), (800, 533))
        shape = [{**_file(file), "width": width, "height": height} for width, height in sizes]
        return {"photo": shape}
    name_field = {"file_name": file.name} if file.kind in ("document", "audio", "video") else {}
    mime = {} if file.kind in ("sticker", "video_note") else {"mime_type": file.media_type}
    inner = {**_file(file), **name_field, **mime, **_FACTS.get(file.kind, {})}
    if file.kind == "animation":  # also sent as a document, for older apps
        return {"animation": inner, "document": {**_file(file), **mime}}
    return {file.kind: inner}
