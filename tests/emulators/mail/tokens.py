"""A server that gives access tokens, as Google's and Microsoft's do, and tells dovecot whose one is."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from channels._remote.emulator.http import NOTHING_HERE, Answer, Cut, Request, Response, Server

CLIENT_ID = "zeroclaw-at-zero.test"
CLIENT_SECRET = "of-the-application"
REFRESH_TOKEN = "refresh-0"


@dataclass(eq=False, kw_only=True)
class TokenServer:
    """What it gives out, for one account.

    Attributes:
        user: Whose mailbox the tokens open.
        expires_in: Seconds that are told of a token.
        rotates: A refresh token is good once, and the next one comes with its answer.
        asked: What was asked of it, in order.
        given: The tokens that were given out, in order.
        active: Those that are taken.
        answer: In place of a token: a status and a body, or None for a connection that is cut.
    """

    user: str
    expires_in: object = 3600
    rotates: bool = False
    refresh_token: str = REFRESH_TOKEN
    asked: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    given: list[str] = field(default_factory=list[str])
    active: set[str] = field(default_factory=set[str])
    answer: tuple[int, bytes] | None = (200, b"")

    async def handle(self, request: Request) -> Answer:
        form = dict(parse_qsl(request.body.decode()))
        if request.path == "/introspect":
            is_active = form.get("token") in self.active
            return _json(200, {"active": is_active, "username": self.user})
        if request.path != "/token" or request.method != "POST":
            return NOTHING_HERE
        self.asked.append(form)
        return self._given(form)

    def _given(self, form: Mapping[str, str]) -> Answer:
        if self.answer is None:
            return Cut()
        status, body = self.answer
        if body:
            return Response(status=status, body=body)
        if form.get("client_id") != CLIENT_ID:
            return _json(401, {"error": "invalid_client", "error_description": str(dict(form))})
        known = {
            "refresh_token": form.get("refresh_token") == self.refresh_token,
            "client_credentials": form.get("client_secret") == CLIENT_SECRET,
        }
        if not known.get(form.get("grant_type", ""), False):
            return _json(400, {"error": "invalid_grant", "error_description": str(dict(form))})
        token = f"access-{len(self.given)}-of-{self.user}"
        self.given.append(token)
        self.active.add(token)
        more: dict[str, object] = {}
        if self.rotates:
            self.refresh_token = f"refresh-{len(self.given)}"
            more["refresh_token"] = self.refresh_token
        return _json(
            200,
            {"access_token": token, "token_type": "Bearer", "expires_in": self.expires_in, **more},
        )


@asynccontextmanager
async def token_server(user: str, port: int) -> AsyncGenerator[TokenServer]:
    """Open it where dovecot asks."""
    tokens = TokenServer(user=user)
    server = Server(tokens.handle, port)
    await server.up()
    try:
        yield tokens
    finally:
        await server.down()


def _json(status: int, body: Mapping[str, object]) -> Response:
    return Response(status=status, body=json.dumps(body).encode())
