# What zeroclaw uses of google-re2, which ships no types.

class error(Exception): ...  # noqa: N801

class Options:
    max_mem: int
    case_sensitive: bool
    never_nl: bool
    log_errors: bool

class Match:
    def start(self) -> int: ...

class Regexp:
    def search(self, text: bytes, pos: int = ..., endpos: int = ...) -> Match | None: ...

def compile(pattern: bytes, options: Options) -> Regexp: ...  # noqa: A001
def escape(pattern: bytes) -> bytes: ...
def purge() -> None: ...
