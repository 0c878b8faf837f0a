"""Reloads the configuration while the daemon runs: applies every live change, or nothing.

Nothing durable changes, so after a kill at any instant the next start reads the file as usual.
"""

import asyncio

from zeroclaw.config.diff import changed_keys, is_live, merge_live
from zeroclaw.config.model import Config
from zeroclaw.daemon.config_check import CheckedConfig
from zeroclaw.daemon.foundation import Foundation, Start, log_warnings
from zeroclaw.errors import ConfigError, Refused, refused_as
from zeroclaw.host.answers import Reloaded
from zeroclaw.inbound.revocation import Revocation
from zeroclaw.value import Struct, field

NO_FILE = "there is no configuration file to read; write one with `zeroclaw init`"


class Reloader(Struct):
    """Puts the current configuration file into force; the daemon has one.

    Attributes:
        foundation: Its settings are replaced.
        revocation: Ends the rights of people who were removed; holds the policy and the people.
        waiting: Changed keys that wait for a restart, as of the last reload.
    """

    foundation: Foundation
    revocation: Revocation
    waiting: tuple[str, ...] = ()
    _written: Config | None = None  # the file as of the last reload
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def reload(self) -> Reloaded:
        """Read the file, and put the live keys into force.

        Raises:
            ConfigError: With every fault; nothing was changed.
            Refused: There is no file.
        """
        reread, log = self.foundation.start.reread, self.foundation.log
        async with self._lock:
            try:
                with refused_as(lambda line: ConfigError((line,)), "the file can't be read again"):
                    new = await asyncio.to_thread(reread)
            except ConfigError as error:
                log("reload_refused", reason=str(error), level="error")
                raise
            if new.places.config is None:
                log("reload_refused", reason=NO_FILE, level="warning")
                raise Refused(NO_FILE)
            result = self._apply(new)
            log_warnings(new.checked, log)
        log("reloaded", now=", ".join(result.live), needs_a_restart=", ".join(result.waiting))
        return result

    def _apply(self, new: Start) -> Reloaded:
        """Put a configuration into force, in one step without an await."""
        start, settings = self.foundation.start, self.foundation.settings
        context = self.revocation.context
        before = self._written or start.written or start.config
        keys = changed_keys(before, new.config)
        live = tuple(key for key in keys if is_live(key))
        waiting = tuple(key for key in keys if not is_live(key))
        secrets = replaced_secrets(start.checked, new.checked)
        self._written = merge_live(before, new.config)
        settings.config = merge_live(settings.config, new.config)
        settings.statements = new.checked.statements
        if new.places.skills == start.places.skills:
            settings.skills = new.checked.skills
        context.people.apply_config(settings.config)
        context.policy.rebuild()
        self.revocation.begin()
        self.waiting = (*waiting, *(key for key in secrets if key not in waiting))
        return Reloaded(
            file=str(new.places.config),
            live=live,
            waiting=self.waiting,
            warnings=new.checked.warnings,
        )


def replaced_secrets(before: CheckedConfig, after: CheckedConfig) -> tuple[str, ...]:
    """Return the keys of secrets that were set before and have another value now."""
    return tuple(key for key, new in after.secrets.items() if before.secrets.get(key, new) != new)
