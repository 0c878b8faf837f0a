"""Opens the emulated mail for `zeroclaw try email`: a person, an operator, and a page for both."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from channels._remote.emulator.cast import Cast
from channels._remote.emulator.http import Server
from channels._remote.emulator.site import Site, load_page
from channels.email.emulator.control import Control
from channels.email.emulator.servers import AUTHSERV_ID, started
from zeroclaw import ConfigError, Emulated, EmulatorContext

PASSWORD_VARIABLE = "EMULATED_MAIL_PASSWORD"  # noqa: S105  the name of a variable
POLL_S = 5.0
"""The shortest interval that the channel allows; seldom matters, since dovecot announces new mail."""


@asynccontextmanager
async def emulate(context: EmulatorContext) -> AsyncGenerator[Emulated]:
    """Start the emulator; the page is at the requested port, the servers at ports of their own.

    Raises:
        ConfigError: The servers are not installed, or may not be started.
        OSError: The port is taken.
    """
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"  # which `su` leaves out
    if os.geteuid() or not all(shutil.which(program) for program in ("dovecot", "postfix")):
        fault = (
            "try: mail needs dovecot and postfix, and root to start them: "
            "apt-get install dovecot-imapd dovecot-lmtpd postfix"
        )
        raise ConfigError((fault,))
    page = await asyncio.to_thread(load_page)
    password = context.ids.token()
    mail = await asyncio.to_thread(started, password)
    bot, ann, olga = (mail.new_address(name) for name in ("bot", "ann", "olga"))
    cast = Cast(ann=ann, olga=olga, chats=(ann, olga), room="")
    control = Control(mail, bot, {ann: "Ann", olga: "Olga"}, cast, context.clock)
    key = context.ids.token()
    server = Server(Site(control, key=key, page=page).answer, context.port)
    await server.up()
    keys = {
        "address": bot,
        "password": {"env": PASSWORD_VARIABLE},
        "imap_host": "localhost",
        "imap_port": mail.imaps,
        "smtp_host": "localhost",
        "smtp_port": mail.submission,
        "ca_file": mail.ca_file,
        "authserv_id": AUTHSERV_ID,
        "poll_s": POLL_S,
    }
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(control.deliver()), group.create_task(control.watch())]
            try:
                yield Emulated(
                    page=f"http://127.0.0.1:{server.port}/{key}/",
                    tables=cast.tables("email", keys),
                    environment={PASSWORD_VARIABLE: password},
                )
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        await server.down()
        await asyncio.to_thread(mail.stop)
