"""Counts tokens with a `tokenizer.json` in Hugging Face's format, which the operator provides.

The package that reads it is imported only if a configuration names such a file. Nothing is
downloaded.
"""

import asyncio
import os
from collections.abc import Sequence, Sized
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from zeroclaw.errors import Refused, refused_as
from zeroclaw.foreign import Raised, call_now

MOST_BYTES = 64 * 1024 * 1024
"""Largest file accepted; the largest seen, Gemma 3's, has 33 MB."""
AT_ONCE_CHARS = 2_000
"""Most characters counted on the event loop, which takes less than a millisecond."""


class _Tokenizer(Protocol):
    """The part of `tokenizers.Tokenizer` that we use; the package ships no types."""

    encode_special_tokens: bool

    def no_truncation(self) -> None: ...

    def no_padding(self) -> None: ...

    def encode_batch_fast(
        self, texts: list[str], /, *, add_special_tokens: bool
    ) -> list[Sized]: ...


class FileTokenizer:
    """A `Counting` that reads its file once."""

    def __init__(self, path: Path) -> None:
        """Read the file; blocks, for half a second if it is large.

        Raises:
            Refused: The package is missing, the file can't be read, or it is not a
                tokenizer.
        """
        # Disable parallelism: it would start a thread pool, which does not survive a fork well.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            reader = import_module("tokenizers").Tokenizer
        except ImportError as error:
            message = "the package `tokenizers` is missing: install the extra `tokenizer`"
            raise Refused(message) from error
        with refused_as(Refused, f"`{path}` can't be read"), path.open("rb") as file:
            body = file.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            message = f"`{path}` has more than {MOST_BYTES:,} bytes; name a `tokenizer.json`"
            raise Refused(message)
        found = call_now(lambda: cast("_Tokenizer", reader.from_buffer(body)))
        if isinstance(found, Raised):
            message = (
                f"`{path}` is no tokenizer: name the `tokenizer.json` that the model came with"
            )
            raise Refused(message) from found.error
        # The file may ask for padding or truncation, and for special tokens in the text to be
        # interpreted.
        found.no_truncation()
        found.no_padding()
        found.encode_special_tokens = True
        self._tokenizer = found

    async def count(self, texts: Sequence[str]) -> tuple[int, ...] | None:
        """Return the number of tokens of each text; see `Counting.count`."""
        # The library rejects lone surrogates.
        whole = [text.encode(errors="replace").decode() for text in texts]

        def sizes() -> tuple[int, ...]:
            return tuple(
                map(len, self._tokenizer.encode_batch_fast(whole, add_special_tokens=False))
            )

        if sum(map(len, whole)) > AT_ONCE_CHARS:
            found = await asyncio.to_thread(call_now, sizes)
        else:
            found = call_now(sizes)
        return None if isinstance(found, Raised) else found
