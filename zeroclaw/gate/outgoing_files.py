"""Decide whether the files of a tool may be sent to a chat.

A file can't be redacted like a text, so one that contains a secret is not sent. No part of a text
may look like a credential; other files may not contain one of the daemon's own secrets in clear.
Packed or encrypted contents can't be checked. Pure, but slow for large files: run it in a thread.
"""

from zeroclaw.gate import receipt_screen
from zeroclaw.gate.verdict import encodable
from zeroclaw.readers.formats import recognise
from zeroclaw.redact import Redactor
from zeroclaw.store import LARGEST_BLOB_BYTES
from zeroclaw.text.charset import decode_text
from zeroclaw.text.escape import shortened
from zeroclaw.tool import ToolFile, ToolOutput
from zeroclaw.tools import counted, quoted, without_controls
from zeroclaw.value import replace

MAX_FILES = 10
"""Files of one call."""
MAX_NAME_CHARS = 100
MAX_CAPTION_CHARS = 500
"""The lowest limit of a platform is Telegram's, 1,024 UTF-16 units; a note may follow."""


def checked_files(output: ToolOutput, *, max_bytes: int, redactor: Redactor) -> ToolOutput:
    """Return the output with its files as they may be sent, or a failure with the reason.

    Args:
        output: The tool's output.
        max_bytes: The chat's limit of one file; 0 where it takes none.
        redactor: Knows the secrets.
    """
    if output.is_error or not output.files:
        return replace(output, files=())
    fault = _fault(output.files, max_bytes, redactor)
    if fault:
        return ToolOutput(text=f"nothing was sent: {fault}", is_error=True)
    return replace(output, files=tuple(_displayed(file, redactor) for file in output.files))


def _fault(files: tuple[ToolFile, ...], max_bytes: int, redactor: Redactor) -> str:
    if not max_bytes:
        return "this chat takes no files"
    if len(files) > MAX_FILES:
        return f"{len(files)} files are too many for one call, which may send {MAX_FILES}"
    limit = min(max_bytes, LARGEST_BLOB_BYTES)  # until it is sent, a file is stored as a blob
    for file in files:
        name = quoted(file.name, limit_chars=MAX_NAME_CHARS)
        if not file.content:
            return f"{name} is empty, and an empty file can't be sent"
        if len(file.content) > limit:
            size = counted(len(file.content), "byte")
            return f"{name} has {size}, and {limit:,} is the most that can be sent here"
        if _holds_secret(file, redactor):
            return f"{name} holds a secret, or what looks like one"
    return ""


def _holds_secret(file: ToolFile, redactor: Redactor) -> bool:
    is_text = recognise(file.content, file.name).reader in ("text", "table", "mail")
    # As UTF-8 too, because two bytes in front make any file look like UTF-16; and without the zeros of
    # UTF-16 and UTF-32, because a file needs no mark of them.
    plain = (file.content, file.content.replace(b"\0", b""))
    texts = {decode_text(file.content)[0], *(it.decode(errors="replace") for it in plain)}
    return any(redactor.finds(text, known_only=not is_text) for text in texts)


def _displayed(file: ToolFile, redactor: Redactor) -> ToolFile:
    """Return a file with a name and caption that are safe to show: redacted, without receipts."""
    name = _harmless(file.name.replace("/", "_").replace("\\", "_"), redactor)
    caption = _harmless(without_controls(file.caption), redactor).strip()
    caption = shortened(caption, MAX_CAPTION_CHARS)
    return replace(file, name=_one_line(name) or "file", caption=caption)


def _harmless(text: str, redactor: Redactor) -> str:
    """Return a text without secrets, in which every receipt is marked as false, without a lookup."""
    return receipt_screen.screen(redactor.redact(encodable(text)), lambda _: None)


def _one_line(name: str) -> str:
    """Return a name of printable characters, shortened but with its extension."""
    line = "".join(letter for letter in name if letter.isprintable()).strip(" .")
    if len(line) <= MAX_NAME_CHARS:
        return line
    stem, dot, ending = line.rpartition(".")
    extension = f"{dot}{ending}" if stem and len(ending) <= MAX_NAME_CHARS // 4 else ""
    return f"{line[: MAX_NAME_CHARS - len(extension)]}{extension}"
