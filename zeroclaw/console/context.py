"""What the files of this room work with."""

from collections.abc import Awaitable, Callable, Mapping

from zeroclaw.channel import ChannelLog
from zeroclaw.console.frame import Place
from zeroclaw.console.notifier import Notifier
from zeroclaw.context.composer import RequestSources
from zeroclaw.envelope import Address, Admission, Envelope
from zeroclaw.host.answers import Text
from zeroclaw.inbound.commands.explain import Explainer
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.transcript import Transcript
from zeroclaw.value import Value

AskedAtConsole = Callable[[Mapping[str, object]], Awaitable[Text]]


class ConsoleContext(Value):
    """One for the whole daemon.

    Attributes:
        place: Where the pages stand.
        chat: The operator's chat on the web channel, whose login opens this page too.
        notifier: Tells open pages of changes.
        inbound: What the daemon plans events with; its store, its people and a halt are shown.
        explainer: What the daemon decides by.
        sources: What requests to the model are made of.
        admit: Ingress; raises `ZeroclawError` when an event could not be stored.
        pair: As `zeroclaw pair` asks it.
        grants: As `zeroclaw grants` asks it.
    """

    place: Place
    chat: Address
    notifier: Notifier
    inbound: InboundContext
    explainer: Explainer
    transcript: Transcript
    sources: RequestSources
    admit: Callable[[Envelope], Awaitable[Admission]]
    pair: AskedAtConsole
    grants: AskedAtConsole
    log: ChannelLog
