"""Every error that crosses a room's wall, split by who must act next.

    ZeroclawError
    ├── TryAgain                      the caller, with the same call, later
    │   ├── ChannelUnavailable
    │   │   └── RateLimited           .retry_after_s
    │   ├── ProviderOverloaded        .retry_after_s
    │   ├── ProviderUnreachable
    │   └── ShuttingDown
    ├── DeliveryUnknown               the outbox: it may have arrived, find out or say so .late
    ├── Refused                       nobody: drop it, record it, tell the person
    │   ├── ChannelRejected           .gone (the message no longer exists) .markup
    │   ├── ProviderRejected
    │   └── NotSupported              the caller asked what the capabilities deny
    ├── ContextOverflow               the turn: make the request smaller
    ├── ContextMissing                the turn: it fails and says so .name
    ├── StreamBroken                  the turn: ask once more, nothing has run yet
    ├── NeedsOperator                 a person with the configuration in hand
    │   ├── ConfigError               .faults
    │   ├── ProviderUnauthorized
    │   ├── ProviderUnusable          a file or package that it needs is missing, or the model itself
    │   ├── ChannelUnauthorized
    │   ├── NoWayOut                  a proxy or certificates, named by the environment
    │   ├── StoreUnusable             disk full, corrupt, locked, newer schema
    │   └── PortInUse
    ├── ToolFailed                    the model: it reads the text and adapts
    │   ├── ToolArgumentsInvalid      .faults
    │   └── ResourcesUnresolved
    └── StoreRefused                  the writer: its view is out of date
        ├── Conflict
        ├── Fenced
        └── AlreadyClaimed            .key

Texts are one line, lower case, without secrets; what a caller needs to decide is an attribute.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TypeVar, cast

E = TypeVar("E", bound=BaseException)


class ZeroclawError(Exception):
    """Raised only through its children."""


class TryAgain(ZeroclawError):
    """The same call may succeed later."""


class ChannelUnavailable(TryAgain):
    """Raised when a platform can't be reached; nothing was delivered."""


class RateLimited(ChannelUnavailable):
    """Raised when a platform asks to wait.

    Attributes:
        retry_after_s: Seconds that the platform asked for, obeyed to the letter.
    """

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ProviderOverloaded(TryAgain):
    """Raised when a model endpoint is busy, limits us, or fails with 5xx.

    Attributes:
        retry_after_s: Seconds asked for by the endpoint, None when it did not say.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ProviderUnreachable(TryAgain):
    """Raised when nothing answers at a model endpoint's address: refused, no such name, silence.

    It may come back by itself, so the call is tried again; if it does not, an operator has to see
    that it runs and that the address is right.
    """


class ShuttingDown(TryAgain):
    """Raised by ingress when the daemon ends; the platform sends the event again."""


class DeliveryUnknown(ZeroclawError):
    """Raised when a send may or may not have arrived (the answer to it was lost).

    Attributes:
        late: The platform was only slow, and may carry it out yet.
    """

    def __init__(self, message: str, *, late: bool = False) -> None:
        super().__init__(message)
        self.late = late


class Refused(ZeroclawError):
    """The call was understood and refused; repeating it changes nothing."""


class ChannelRejected(Refused):
    """Raised when a platform refuses a message.

    Attributes:
        gone: The message to edit no longer exists; a send may do instead.
        markup: The platform could not read the markup; plain text may do instead.
    """

    def __init__(self, message: str, *, gone: bool = False, markup: bool = False) -> None:
        super().__init__(message)
        self.gone = gone
        self.markup = markup


class ProviderRejected(Refused):
    """Raised when a model endpoint refuses the request for good (4xx, an error body)."""


class NotSupported(Refused):
    """Raised when a caller asks for what the channel's capabilities say it lacks."""


class ContextOverflow(ZeroclawError):
    """Raised when the request is larger than the model's context window.

    Attributes:
        context_tokens: The window, where the endpoint named it.
    """

    def __init__(self, message: str, *, context_tokens: int | None = None) -> None:
        super().__init__(message)
        self.context_tokens = context_tokens


class ContextMissing(ZeroclawError):
    """Raised when a Context Provider failed without which the model is not asked.

    Attributes:
        name: Of the provider.
    """

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


class StreamBroken(ZeroclawError):
    """Raised when a model's stream is cut, stalls, or can't be parsed after it began."""


class NeedsOperator(ZeroclawError):
    """Someone has to change something outside the program."""


class ConfigError(NeedsOperator):
    """Raised with every fault of a configuration at once.

    Attributes:
        faults: One line each, `key.path: what is wrong, what is allowed`.
    """

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class ProviderUnauthorized(NeedsOperator):
    """Raised when a model endpoint refuses our key."""


class ProviderUnusable(NeedsOperator):
    """Raised when a model is not there, on this machine or at its endpoint; the text says what to do."""


class ChannelUnauthorized(NeedsOperator):
    """Raised when a platform refuses our credentials."""


class StoreUnusable(NeedsOperator):
    """Raised when the store can't be opened or written; the text says what to do."""


class NoWayOut(NeedsOperator):
    """Raised when a proxy or certificates that the environment names are of no use; nothing was sent."""


class PortInUse(NeedsOperator):
    """Raised when a listener's address is taken by another program."""


class ToolFailed(ZeroclawError):
    """Raised by a tool; the text is what the model reads."""


class ToolArgumentsInvalid(ToolFailed):
    """Raised when arguments don't fit a tool's schema.

    Attributes:
        faults: One line each, `path: what is wrong`.
    """

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class ResourcesUnresolved(ToolFailed):
    """Raised when what a call would touch can't be determined; the gate then fails closed."""


class StoreRefused(ZeroclawError):
    """Nothing of the commit was written."""


class Conflict(StoreRefused):
    """Raised when a row is not at the version that the writer expected."""


class Fenced(StoreRefused):
    """Raised when a newer holder has the conversation."""


class AlreadyClaimed(StoreRefused):
    """Raised when one of a commit's dedup keys was claimed before.

    Attributes:
        key: The key that was hit.
    """

    def __init__(self, key: str) -> None:
        super().__init__(f"`{key}` is already claimed")
        self.key = key


def system_words(error: OSError) -> str:
    """Return what the system says about an error, in lower case, for the end of a line of ours."""
    return (error.strerror or type(error).__name__).lower()


@contextmanager
def refused_as(
    kind: Callable[[str], ZeroclawError], what: str, remedy: str = ""
) -> Generator[None]:
    """Tell in a line of ours what the system refuses: what, why in its words, and what to do."""
    try:
        yield
    except OSError as error:
        line = f"{what}: {system_words(error)}"
        raise kind(f"{line}; {remedy}" if remedy else line) from error


def first_of(error: E | BaseExceptionGroup[E]) -> E:
    """Return an error itself, or the first of a group, which may hold groups."""
    if isinstance(error, BaseExceptionGroup):
        return first_of(cast("BaseExceptionGroup[E]", error).exceptions[0])
    return error


def meant(name: str, names: Iterable[str]) -> str:
    """Return which of these names was meant, as the end of a sentence; empty where none is near."""
    from difflib import get_close_matches

    near = get_close_matches(name.casefold(), sorted(names), n=1, cutoff=0.7)
    return f"; did you mean `{near[0]}`?" if near else ""
