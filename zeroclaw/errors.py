"""Every error that crosses a room's boundary, grouped by who must act next.

    ZeroclawError
    ├── TryAgain                      the caller, with the same call, later
    │   ├── ChannelUnavailable        .barred
    │   │   └── RateLimited           .retry_after_s
    │   ├── ProviderOverloaded        .retry_after_s
    │   ├── ProviderUnreachable
    │   └── ShuttingDown
    ├── DeliveryUnknown               the outbox: it may have arrived, look it up or say so .late
    ├── Refused                       no retry: drop it, record it, tell the person
    │   ├── ChannelRejected           .gone (the message no longer exists) .markup
    │   ├── ProviderRejected
    │   └── NotSupported              the caller ignored the capabilities
    ├── ContextOverflow               the turn: make the request smaller
    ├── ContextMissing                the turn: it fails and says so .name
    ├── StreamBroken                  the turn: ask once more, nothing has run yet
    ├── NeedsOperator                 a person who can change the configuration
    │   ├── ConfigError               .faults
    │   ├── ProviderUnauthorized
    │   ├── ProviderUnusable          the model, or a file or package it needs, is missing
    │   ├── ChannelUnauthorized
    │   ├── ChannelStopped
    │   ├── NoWayOut                  an unusable proxy or certificate file in the environment
    │   ├── StoreUnusable             disk full, corrupt, locked, newer schema
    │   │   └── RecordUnreadable      one record is damaged, the others are not
    │   └── PortInUse
    ├── ToolFailed                    the model: it reads the text and adapts
    │   ├── ToolArgumentsInvalid      .faults
    │   └── ResourcesUnresolved
    └── StoreRefused                  the writer: its view is out of date
        ├── Conflict
        ├── Fenced
        └── AlreadyClaimed            .key

Texts are one line, lower case, without secrets; the data that callers decide on are attributes.
"""

import errno
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TypeVar, cast

E = TypeVar("E", bound=BaseException)


class ZeroclawError(Exception):
    """Raised only through its children."""

    exit_code = 1
    """The exit code of a command that fails with it."""


class TryAgain(ZeroclawError):
    """The same call may succeed later."""


class ChannelUnavailable(TryAgain):
    """Raised when a platform can't be reached; nothing was delivered.

    Attributes:
        barred: Something before the platform, such as a firewall, answered in its place. It may
            object to this call's content alone.
    """

    def __init__(self, message: str, *, barred: bool = False) -> None:
        super().__init__(message)
        self.barred = barred


class RateLimited(ChannelUnavailable):
    """Raised when a platform asks to wait.

    Attributes:
        retry_after_s: Seconds that the platform asked for, obeyed to the letter.
    """

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ProviderOverloaded(TryAgain):
    """Raised when a model endpoint is busy, rate-limits us, or fails with 5xx.

    Attributes:
        retry_after_s: Seconds that the endpoint asked for, None if it named none.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ProviderUnreachable(TryAgain):
    """Raised when a model endpoint's address does not answer: refused, unknown name, or silence.

    It may come back on its own, so the call is retried. If it does not, an operator must check that
    the endpoint runs and that the address is right.
    """


class ShuttingDown(TryAgain):
    """Raised by ingress while the daemon shuts down; the platform delivers the event again."""


class DeliveryUnknown(ZeroclawError):
    """Raised when a send may or may not have arrived, because its response was lost.

    Attributes:
        late: The platform was only slow and may still carry out the send.
    """

    def __init__(self, message: str, *, late: bool = False) -> None:
        super().__init__(message)
        self.late = late


class Refused(ZeroclawError):
    """The call was understood and refused; repeating it won't help."""


class ChannelRejected(Refused):
    """Raised when a platform refuses a message.

    Attributes:
        gone: The message to edit no longer exists; sending a new one may work.
        markup: The platform could not parse the markup; plain text may work.
    """

    def __init__(self, message: str, *, gone: bool = False, markup: bool = False) -> None:
        super().__init__(message)
        self.gone = gone
        self.markup = markup


class ProviderRejected(Refused):
    """Raised when a model endpoint refuses the request for good (4xx, an error body)."""


class NotSupported(Refused):
    """Raised when a caller uses a feature that the channel's capabilities rule out."""


class ContextOverflow(ZeroclawError):
    """Raised when the request is larger than the model's context window.

    Attributes:
        context_tokens: The window, if the endpoint named it.
    """

    def __init__(self, message: str, *, context_tokens: int | None = None) -> None:
        super().__init__(message)
        self.context_tokens = context_tokens


class ContextMissing(ZeroclawError):
    """Raised when a context provider failed that the model call requires.

    Attributes:
        name: The provider's name.
    """

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


class StreamBroken(ZeroclawError):
    """Raised when a model's stream is cut, stalls, or becomes unreadable after it began."""


class NeedsOperator(ZeroclawError):
    """A person has to change something outside the program."""


class ConfigError(NeedsOperator):
    """Raised with every fault of a configuration at once.

    Attributes:
        faults: One line each, `key.path: what is wrong, what is allowed`.
    """

    exit_code = 2

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class ProviderUnauthorized(NeedsOperator):
    """Raised when a model endpoint refuses our key."""


class ProviderUnusable(NeedsOperator):
    """Raised when a model is missing, locally or at its endpoint; the text says what to do."""


class ChannelUnauthorized(NeedsOperator):
    """Raised when a platform refuses our credentials."""


class ChannelStopped(NeedsOperator):
    """Raised when a channel stops until a person starts it again, as in a loop of robots."""


class StoreUnusable(NeedsOperator):
    """Raised when the store can't be opened or written; the text says what to do."""


class RecordUnreadable(StoreUnusable):
    """Raised when one stored record is damaged; work that does not need it goes on."""


class NoWayOut(NeedsOperator):
    """Raised when a proxy or certificate file in the environment is unusable; nothing was sent."""


class PortInUse(NeedsOperator):
    """Raised when another program uses a listener's address."""


class ToolFailed(ZeroclawError):
    """Raised by a tool; the model reads the text."""


class ToolArgumentsInvalid(ToolFailed):
    """Raised when arguments don't fit a tool's schema.

    Attributes:
        faults: One line each, `path: what is wrong`.
    """

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class ResourcesUnresolved(ToolFailed):
    """Raised when a tool can't resolve the resources of a call; the gate then fails closed."""


class StoreRefused(ZeroclawError):
    """Nothing of the commit was written."""


class Conflict(StoreRefused):
    """Raised when a row is not at the version that the writer expected."""


class Fenced(StoreRefused):
    """Raised when another holder has since leased the conversation."""


class AlreadyClaimed(StoreRefused):
    """Raised when one of a commit's dedup keys is already claimed.

    Attributes:
        key: The key that is taken.
    """

    def __init__(self, key: str) -> None:
        super().__init__(f"`{key}` is already claimed")
        self.key = key


def system_words(error: OSError) -> str:
    """Return the operating system's error text in lower case, to end one of our lines with."""
    return (error.strerror or type(error).__name__).lower()


@contextmanager
def refused_as(
    kind: Callable[[str], ZeroclawError], what: str, remedy: str = ""
) -> Generator[None]:
    """Turn an `OSError` into a one-line `kind`: what failed, the system's reason, the remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            remedy = "make room there"
        line = f"{what}: {system_words(error)}"
        raise kind(f"{line}; {remedy}" if remedy else line) from error


def first_of(error: E | BaseExceptionGroup[E]) -> E:
    """Return the error itself, or the first leaf of an exception group."""
    if isinstance(error, BaseExceptionGroup):
        return first_of(cast("BaseExceptionGroup[E]", error).exceptions[0])
    return error


@contextmanager
def ungrouped() -> Generator[None]:
    """Raise the first error in place of a group that holds only `ZeroclawError`s and `OSError`s.

    `except*` can't: if it raises, Python 3.11.2, which is Debian 12's, makes a group of that again.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        ours, others = group.split((ZeroclawError, OSError))
        if ours is None or others is not None:
            raise
        raise first_of(ours) from None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean `x`?" for the most similar of `names`, or an empty string."""
    from difflib import get_close_matches

    near = get_close_matches(name.casefold(), sorted(names), n=1, cutoff=0.7)
    return f"; did you mean `{near[0]}`?" if near else ""
