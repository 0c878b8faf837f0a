"""The dependencies of the console."""

from collections.abc import Awaitable, Callable, Mapping

from zeroclaw.channel import Log
from zeroclaw.console.frame import ConsolePaths
from zeroclaw.console.notifier import Notifier
from zeroclaw.context.composer import RequestSources
from zeroclaw.envelope import Address, Admission, Envelope
from zeroclaw.host.answers import Text
from zeroclaw.inbound.commands.explain import Explainer
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.transcript import Transcript
from zeroclaw.value import Value

ConsoleCommand = Callable[[Mapping[str, object]], Awaitable[Text]]


class ConsoleContext(Value):
    """The console's dependencies; the daemon has one.

    Attributes:
        paths: Paths of the pages.
        chat: The operator's chat on the web channel, which has the same login as this page.
        notifier: Notifies open pages of changes.
        inbound: Context of ingress; the console reads its store, people and halt.
        explainer: Explains what the policy decides.
        sources: Composes requests to the model.
        admit: Ingress; raises `ZeroclawError` if an event could not be stored.
        pair: Runs `zeroclaw pair` with its arguments.
        grants: Runs `zeroclaw grants` with its arguments.
    """

    paths: ConsolePaths
    chat: Address
    notifier: Notifier
    inbound: InboundContext
    explainer: Explainer
    transcript: Transcript
    sources: RequestSources
    admit: Callable[[Envelope], Awaitable[Admission]]
    pair: ConsoleCommand
    grants: ConsoleCommand
    log: Log
