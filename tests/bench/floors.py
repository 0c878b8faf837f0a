"""The floors of Discord, Slack and e-mail; what a floor is, `tests.bench.floor_parts` tells.

Each is the SDK of its platform as its first page of documentation shows it. There are two of each,
which ask the model by httpx, as Telegram's does, or by aiohttp, as the daemon does.

Run as `python -m tests.bench.floors PLATFORM CLIENT WHERE… MODEL DATABASE`, where WHERE is as
`tests.bench.platform_process` says it.
"""

# pyright: basic
# the libraries as they come, most of them untyped

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from tests.bench.floor_model import CLIENTS
from tests.bench.floor_parts import Floor


async def _discord(floor: Floor, url: str, token: str) -> None:
    import discord
    import yarl
    from discord.gateway import DiscordWebSocket
    from discord.http import Route

    Route.BASE = url
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(url).with_scheme("ws").with_path("/gateway")
    intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
    client = discord.Client(intents=intents)

    @client.event
    async def on_message(message: discord.Message) -> None:
        if message.author.bot:
            return
        floor.take(message.id, message.content)
        await floor.answer(message.id, message.content, message.channel.send)

    async with client:
        await client.start(token)


async def _slack(floor: Floor, url: str, bot_token: str, app_token: str) -> None:
    from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
    from slack_bolt.async_app import AsyncApp
    from slack_sdk.web.async_client import AsyncWebClient

    untyped: Any = AsyncWebClient  # our stub knows no more than the channel uses
    client = untyped(bot_token, base_url=f"{url}/")
    app = AsyncApp(client=client)

    @app.event("message")
    async def on_message(event: Mapping[str, str]) -> None:
        floor.take(event["ts"], event["text"])

        async def send(text: str) -> object:
            return await client.chat_postMessage(
                channel=event["channel"], text=text, blocks=[{"type": "markdown", "text": text}]
            )

        await floor.answer(event["ts"], event["text"], send)

    handler = AsyncSocketModeHandler(
        app, app_token, web_client=untyped(app_token, base_url=f"{url}/")
    )
    await handler.start_async()


async def _email(floor: Floor, address: str, password: str, ports: str, ca_file: str) -> None:
    import ssl
    from email.message import EmailMessage
    from email.parser import BytesParser
    from email.policy import default
    from email.utils import make_msgid

    import aiosmtplib
    from aioimaplib import IMAP4_SSL  # pyright: ignore[reportAttributeAccessIssue]  not in our stub

    tls = ssl.create_default_context(cafile=ca_file)
    imap, smtp = map(int, ports.split(","))
    client = IMAP4_SSL(host="localhost", port=imap, ssl_context=tls)
    await client.wait_hello_from_server()
    await client.login(address, password)
    await client.select()
    at_once = asyncio.Semaphore(4)

    async def answer(mail: EmailMessage, key: str, text: str) -> None:
        async def send(text: str) -> None:
            written = EmailMessage()
            written["From"], written["To"] = address, mail["From"]
            written["Subject"] = f"Re: {mail['Subject']}"
            written["In-Reply-To"] = written["References"] = mail["Message-ID"]
            written["Message-ID"] = make_msgid(domain="zero.test")
            written.set_content(text)
            async with at_once:
                await aiosmtplib.send(
                    written,
                    hostname="localhost",
                    port=smtp,
                    username=address,
                    password=password,
                    start_tls=True,
                    tls_context=tls,
                )

        await floor.answer(key, text, send)

    async with asyncio.TaskGroup() as group:
        while True:
            found = await client.uid_search("UNSEEN", charset=None)
            for uid in found.lines[0].decode().split():
                fetched = await client.uid("fetch", uid, "BODY[]")
                mail = BytesParser(policy=default).parsebytes(bytes(fetched.lines[1]))
                text = mail.get_content().strip()
                floor.take(str(mail["Message-ID"]), text)
                group.create_task(answer(mail, str(mail["Message-ID"]), text))
            idle = await client.idle_start(timeout=60)
            with suppress(TimeoutError):
                await client.wait_server_push(timeout=1)
            client.idle_done()
            await asyncio.wait_for(idle, 10)


FLOORS: Mapping[str, Callable[..., Awaitable[None]]] = {
    "discord": _discord,
    "slack": _slack,
    "email": _email,
}


async def _main(platform: str, client: str, *where: str) -> None:
    *arguments, model, path = where
    async with CLIENTS[client](model) as ask:
        print("ready", flush=True)
        await FLOORS[platform](Floor(ask, path), *arguments)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
