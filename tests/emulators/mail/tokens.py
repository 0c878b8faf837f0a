"""An OAuth server that issues access tokens, and introspects them for dovecot."""

import asyncio
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
    """The tokens of one account.

    Attributes:
        user: The user whose mailbox the tokens open.
        expires_in: The stated lifetime of a token in seconds.
        rotates: A refresh token is valid once, and the answer has the next one.
        requests: The forms of the requests for tokens, in order.
        issued: The issued tokens, in order.
        active: The tokens that are valid.
        answer: In place of a token: a status and a body, or None to cut the connection.
        asked: Set by a request for a token.
        may_answer: Cleared to hold back the answers to these requests.
    """

    user: str
    expires_in: object = 3600
    rotates: bool = False
    refresh_token: str = REFRESH_TOKEN
    requests: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    issued: list[str] = field(default_factory=list[str])
    active: set[str] = field(default_factory=set[str])
    answer: tuple[int, bytes] | None = (200, b"")
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    async def handle(self, request: Request) -> Answer:
        form = dict(parse_qsl(request.body.decode()))
        if request.path == "/introspect":
            is_active = form.get("token") in self.active
            return _json(200, {"active": is_active, "username": self.user})
        if request.path != "/token" or request.method != "POST":
            return NOTHING_HERE
        self.requests.append(form)
        answer = self._answer_to(form)
        self.asked.set()
        await self.may_answer.wait()
        return answer

    def _answer_to(self, form: Mapping[str, str]) -> Answer:
        if self.answer is None:
            return Cut()
        status, body = self.answer
        if body:
            return Response(status=status, body=body)
        if form.get("client_id") != CLIENT_ID:
            return _json(401, {"error": "invalid_client", "error_description": str(dict(form))})
        is_valid = {
            "refresh_token": form.get("refresh_token") == self.refresh_token,
            "client_credentials": form.get("client_secret") == CLIENT_SECRET,
        }
        if not is_valid.get(form.get("grant_type", ""), False):
            return _json(400, {"error": "invalid_grant", "error_description": str(dict(form))})
        token = f"access-{len(self.issued)}-of-{self.user}"
        self.issued.append(token)
        self.active.add(token)
        rotated: dict[str, object] = {}
        if self.rotates:
            self.refresh_token = f"refresh-{len(self.issued)}"
            rotated["refresh_token"] = self.refresh_token
        return _json(
            200,
            {
                "access_token": token,
                "token_type": "Bearer",
                "expires_in": self.expires_in,
                **rotated,
            },
        )


@asynccontextmanager
async def token_server(user: str, port: int) -> AsyncGenerator[TokenServer]:
    """Open the server on the port that dovecot asks."""
    tokens = TokenServer(user=user)
    server = Server(tokens.handle, port)
    await server.up()
    try:
        yield tokens
    finally:
        await server.down()


def _json(status: int, body: Mapping[str, object]) -> Response:
    return Response(status=status, body=json.dumps(body).encode())
