"""What a package declares about a kind of channel before any of its code is loaded."""

import re

from zeroclaw.value import Value


class ChannelManifest(Value):
    """What an entry point of `zeroclaw.channels` names; importing it imports no SDK.

    Attributes:
        kind: The channel's `kind` in the configuration.
        adapter: `module:callable`; called with a `ChannelContext`, returns a `Channel`.
        needs: Modules that the extra named like the kind installs. If one is missing, the channel
            is not created, the platform is not contacted, and the channel's status line says what
            to install.
        settings: `module:Model`, the pydantic model of `[channels.<name>]` without the common keys.
        prepare: `module:function`, empty for none. Called without arguments, in a thread, before
            the adapter is created, to load what takes long, such as certificates. The adapter's
            module is imported in the same thread before that.
        local_operator: Every sender on this channel is the operator (login link, own uid).
        check: `module:coroutine function`, empty for none. Asks the platform whether the settings
            and secrets are right, without receiving or sending messages. Takes the settings and
            what `ChannelContext.secrets` would contain, returns one line about the account, and
            raises what the adapter would.
        may_pair: Sender ids can't be forged, so an unknown sender may be answered with a pairing
            code. False rejects `pairing = "code"`.
        sender: A regular expression that matches a whole sender id; empty to accept any. A
            configured id that doesn't match is a fault: no sender can have it.
        asks: Texts among the settings that have a default, and that `init` asks for all the same,
            because few people are served without them.
        public: `module:function`, empty for never. Called with the settings; tells whether the
            platform calls this channel on the public listener.
    """

    kind: str
    adapter: str
    settings: str
    needs: tuple[str, ...] = ()
    prepare: str = ""
    local_operator: bool = False
    check: str = ""
    may_pair: bool = True
    sender: str = ""
    asks: tuple[str, ...] = ()
    public: str = ""

    def spelled(self, sender: str) -> str:
        """Return an id in its platform's letter case; empty if no sender can have it."""
        forms = (sender, sender.lower(), sender.upper())
        return next((one for one in forms if not self.sender or re.fullmatch(self.sender, one)), "")
