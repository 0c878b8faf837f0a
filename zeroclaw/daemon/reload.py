"""Reads the configuration again while the daemon runs: takes up all that it can, or nothing.

Nothing durable changes, so a kill at any instant leaves what the file says to the next start.
"""

import asyncio

from zeroclaw.config.diff import changed_keys, is_live, merge_live
from zeroclaw.config.model import Config
from zeroclaw.daemon.config_check import CheckedConfig
from zeroclaw.daemon.foundation import Foundation, Start, warn_of
from zeroclaw.errors import ConfigError, Refused
from zeroclaw.host.answers import Reloaded
from zeroclaw.inbound.live_config import allowed_of
from zeroclaw.inbound.revocation import Revocation
from zeroclaw.value import Struct, field

NO_FILE = (
    "this zeroclaw was started without a configuration file, so there is none to read; "
    "`zeroclaw init` writes one for the next start"
)


class NothingToRead(Refused):
    """Raised when the daemon runs on its built-in defaults."""


class Reloader(Struct):
    """Puts what the configuration's file says by now in force; one for the whole daemon.

    Attributes:
        foundation: Whose settings are replaced.
        revocation: Ends what people have who are out; its policy and its people follow the settings.
        waiting: What waits for a restart since it was last read.
    """

    foundation: Foundation
    revocation: Revocation
    waiting: tuple[str, ...] = ()
    _written: Config | None = None  # what the file said when it was last read
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def again(self) -> Reloaded:
        """Read the file, and put in force what a running daemon can take up.

        Raises:
            ConfigError: With every fault; all is as it was.
            NothingToRead: There is no file.
        """
        reread, log = self.foundation.start.reread, self.foundation.log
        if reread is None:
            log("reload_refused", why=NO_FILE, level="warning")
            raise NothingToRead(NO_FILE)
        async with self._one_at_a_time:
            try:
                fresh = await asyncio.to_thread(reread)
            except ConfigError as error:
                log("reload_refused", why=str(error), level="error")
                raise
            done = self._take(fresh)
            warn_of(fresh.checked, log)
        log("reloaded", now=", ".join(done.live), needs_a_restart=", ".join(done.waiting))
        return done

    def _take(self, fresh: Start) -> Reloaded:
        """Put it in force, in one step without an await."""
        start, settings = self.foundation.start, self.foundation.settings
        context = self.revocation.context
        before = self._written or start.written or start.config
        keys = changed_keys(before, fresh.config)
        live = tuple(key for key in keys if is_live(key))
        others = tuple(key for key in keys if not is_live(key))
        secrets = replaced_secrets(start.checked, fresh.checked)
        self._written = merge_live(before, fresh.config)
        settings.config = merge_live(settings.config, fresh.config)
        settings.statements = fresh.checked.statements
        if fresh.places.skills == start.places.skills:
            settings.skills = fresh.checked.skills
        context.people.configured(
            settings.config.people,
            allowed=allowed_of(settings.config),
            language=settings.config.language,
        )
        context.policy.configured()
        self.revocation.begin()
        self.waiting = (*others, *(key for key in secrets if key not in others))
        return Reloaded(
            file=str(start.places.config),
            live=live,
            waiting=self.waiting,
            warnings=fresh.checked.warnings,
        )


def replaced_secrets(before: CheckedConfig, after: CheckedConfig) -> tuple[str, ...]:
    """Return the keys of secrets that are there before and after, and are others by now."""
    kept = ((key, before.secrets.get(key, fresh), fresh) for key, fresh in after.secrets.items())
    return tuple(key for key, old, fresh in kept if old != fresh)
