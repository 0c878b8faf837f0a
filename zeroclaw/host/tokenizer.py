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

MAX_BYTES = 64 * 1024 * 1024
"""Largest file accepted; the largest seen, Gemma 3's, has 33 MB."""
INLINE_CHARS = 2_000
"""Limit of characters that are counted on the event loop, in less than a millisecond."""


class _Tokenizer(Protocol):
    """The used part of `tokenizers.Tokenizer`; the package ships no types."""

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
            Refused: The package is missing, or the file can't be read or is not a tokenizer.
        """
        # No parallelism: it would start a thread pool, which does not survive a fork well.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            reader = import_module("tokenizers").Tokenizer
        except ImportError as error:
            message = "the package `tokenizers` is missing: install the extra `tokenizer`"
            raise Refused(message) from error
        with refused_as(Refused, f"`{path}` can't be read"), path.open("rb") as file:
            body = file.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            message = f"`{path}` has more than {MAX_BYTES:,} bytes; name a `tokenizer.json`"
            raise Refused(message)
        tokenizer = call_now(lambda: cast("_Tokenizer", reader.from_buffer(body)))
        if isinstance(tokenizer, Raised):
            message = f"`{path}` is no tokenizer: name the `tokenizer.json` of the model"
            raise Refused(message) from tokenizer.error
        # The file may ask for padding or truncation, and for special tokens in the text to be
        # interpreted.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer

    async def count(self, texts: Sequence[str]) -> tuple[int, ...] | None:
        """Return the number of tokens of each text; see `Counting.count`."""
        # The library rejects lone surrogates.
        encodable = [text.encode(errors="replace").decode() for text in texts]

        def sizes() -> tuple[int, ...]:
            return tuple(
                map(len, self._tokenizer.encode_batch_fast(encodable, add_special_tokens=False))
            )

        if sum(map(len, encodable)) > INLINE_CHARS:
            counts = await asyncio.to_thread(call_now, sizes)
        else:
            counts = call_now(sizes)
        return None if isinstance(counts, Raised) else counts
