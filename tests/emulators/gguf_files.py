"""Makes GGUF files: small ones with only metadata, and a patched real one."""

import shutil
import struct
from pathlib import Path

CHATS = "{% for m in messages %}{{ m.content }}{% endfor %}"
CALLS = "{% if tools %}{{ tools | tojson }}{% endif %}" + CHATS
# Fits in the space of the shipped model's template.
_PATCH = (
    "{% if tools %}<|im_start|>system\n{{tools|tojson}}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{m.role}}\n{{m.content}}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def text(value: str) -> bytes:
    """Encode a string as GGUF does."""
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(template: str | None = CALLS, *, key: str = "tokenizer.chat_template") -> bytes:
    """Return a file without weights, with a vocabulary and optionally a chat template."""
    words = struct.pack("<IIQ", 9, 8, 3) + text("a") + text("tools") + text("b")
    pairs = [text("tokenizer.ggml.tokens") + words]
    if template is not None:
        pairs.append(text(key) + struct.pack("<I", 8) + text(template))
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)


def with_tools(model: Path, target: Path) -> Path:
    """Copy a real model, with a template that has a place for tools."""
    shutil.copyfile(model, target)
    with target.open("r+b") as file:
        head = file.read(16 * 1024 * 1024)
        offset = (
            head.index(text("tokenizer.chat_template")) + len(text("tokenizer.chat_template")) + 4
        )
        (length,) = struct.unpack_from("<Q", head, offset)
        comment = "{#" + " " * (length - len(_PATCH) - 4) + "#}"
        file.seek(offset + 8)
        file.write((comment + _PATCH).encode())
    return target
