"""What a package says of a kind of channel before anything of it is loaded."""

import re

from zeroclaw.value import Value


class ChannelManifest(Value):
    """What an entry point of `zeroclaw.channels` names; importing it imports no SDK.

    Attributes:
        kind: The kind in the configuration.
        adapter: `module:callable`; called with a `ChannelContext`, returns a `Channel`.
        needs: Modules of the extra that is called like the kind; without one of them a channel is not
            made and nothing is asked of the platform, and its line says what to install.
        settings: `module:Model`, the pydantic model of `[channels.<name>]` without the common
            keys.
        prepare: `module:function`, empty for none; called without arguments in a thread before the
            adapter is made, to read what takes long, such as certificates. The adapter's own module
            is imported there before.
        local_operator: Every sender on this channel is the operator (login link, own uid).
        check: `module:coroutine function`, empty for none; asks the platform whether the settings
            and secrets are right, without receiving or sending anything. Called with the settings
            and with what `ChannelContext.secrets` would hold, returns one line about the account,
            raises what the adapter would.
        may_pair: A sender's id can't be forged, so that whoever is not known may be answered with a
            code; false refuses `pairing = "code"`.
        sender: How the id of a sender is written, a regular expression that matches it whole, empty
            for any way. An id in the configuration that is written otherwise is a fault: nobody has it.
        public: `module:function`, empty for never; called with the settings, tells whether the
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
    public: str = ""

    def spelled(self, sender: str) -> str:
        """Return an id as its platform writes it, perhaps in another letter case; empty for nobody's."""
        forms = (sender, sender.lower(), sender.upper())
        return next((one for one in forms if not self.sender or re.fullmatch(self.sender, one)), "")
