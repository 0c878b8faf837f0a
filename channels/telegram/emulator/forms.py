"""Parses the parameters of a call: from the query, a form, a form with files, or JSON."""

import json
import re
from urllib.parse import parse_qsl

from channels.telegram.emulator.refusals import bad_request
from channels.telegram.emulator.wire import Parameters, Upload, is_object

_BOUNDARY = re.compile(r'boundary="?([^";,]+)"?')
_NAME = re.compile(r';\s*name="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_FILE_NAME = re.compile(r';\s*filename="((?:[^"\\]|\\.)*)"', re.IGNORECASE)


def read(query: str, content_type: str, body: bytes) -> Parameters:
    """Return the parameters of a call.

    Args:
        query: The URL's query.
        content_type: The `Content-Type` header.
        body: The body as sent.

    Raises:
        Refused: The body can't be parsed.
    """
    values: dict[str, object] = dict(parse_qsl(query, keep_blank_values=True))
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json" and body:
        return Parameters(values=values | _object(body))
    if kind == "application/x-www-form-urlencoded":
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True)
        except UnicodeDecodeError as error:
            raise bad_request("strings must be encoded in UTF-8") from error
        return Parameters(values=values | dict(pairs))
    if kind == "multipart/form-data":
        return _multipart(values, content_type, body)
    return Parameters(values=values)


def _object(body: bytes) -> dict[str, object]:
    try:
        value: object = json.loads(body)
    except ValueError as error:
        raise bad_request("can't parse request JSON object") from error
    if not is_object(value):
        raise bad_request("can't parse request JSON object")
    return value


def _multipart(values: dict[str, object], content_type: str, body: bytes) -> Parameters:
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        raise bad_request("boundary parameter in content-type header of multipart is not found")
    parts = (b"\r\n" + body).split(f"\r\n--{boundary[1]}".encode())
    files: dict[str, Upload] = {}
    for part in parts[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        lines = head.decode(errors="replace").split("\r\n")
        fields = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        disposition = fields.get("content-disposition", "")
        name, file_name = _NAME.search(disposition), _FILE_NAME.search(disposition)
        if name is None:
            raise bad_request("a part of the form has no name")
        if file_name is None:
            values[name[1]] = content.decode(errors="replace")
        else:
            media_type = fields.get("content-type", "application/octet-stream")
            upload = Upload(name=_unquoted(file_name[1]), content=content, media_type=media_type)
            files[name[1]] = upload
    return Parameters(values=values, files=files)


def _unquoted(name: str) -> str:
    """Undo the escapes that clients use for quotes in file names."""
    return name.replace("%22", '"').replace('\\"', '"').replace("\\\\", "\\")
