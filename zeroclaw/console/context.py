"""What the files of this room work with."""

from collections.abc import Awaitable, Callable, Mapping

from zeroclaw.channel import ChannelLog
from zeroclaw.clock import Ids
from zeroclaw.console.frame import Place
from zeroclaw.console.notifier import Notifier
from zeroclaw.context.composer import RequestSources
from zeroclaw.envelope import Address, Admission, Envelope
from zeroclaw.host.answers import Text
from zeroclaw.inbound.commands.explain import Explainer
from zeroclaw.inbound.transcript import Transcript
from zeroclaw.store import Store
from zeroclaw.value import Value

AskedAtConsole = Callable[[Mapping[str, object]], Awaitable[Text]]


class ConsoleContext(Value):
    """One for the whole daemon.

    Attributes:
        place: Where the pages stand.
        chat: The operator's chat on the web channel, whose login opens this page too.
        notifier: Tells open pages of changes.
        explainer: What the daemon decides by; its configuration and its people are read as well.
        halted: Who halted everything, empty when nothing is halted.
        sources: What requests to the model are made of.
        redact: For what is shown.
        admit: Ingress; raises `ZeroclawError` when an event could not be stored.
        pair: As `zeroclaw pair` asks it.
        grants: As `zeroclaw grants` asks it.
        ids: For the keys by which an event is taken once, and those of lines that are told once.
    """

    place: Place
    chat: Address
    notifier: Notifier
    store: Store
    explainer: Explainer
    transcript: Transcript
    halted: Callable[[], str]
    sources: RequestSources
    redact: Callable[[str], str]
    admit: Callable[[Envelope], Awaitable[Admission]]
    pair: AskedAtConsole
    grants: AskedAtConsole
    ids: Ids
    log: ChannelLog
