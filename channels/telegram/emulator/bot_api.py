"""Answers the bot's calls: checks the token, applies faults, then runs the method."""

import json
from collections.abc import Callable

from channels._remote.emulator.http import Answer, Cut, Request, Response
from channels.telegram.emulator import webhooks
from channels.telegram.emulator.account import Account
from channels.telegram.emulator.chats import Instant
from channels.telegram.emulator.faults import (
    BadGateway,
    BadMarkup,
    Call,
    Fault,
    Hang,
    Lose,
    Planned,
    Refuse,
    TooMany,
    fault_of,
)
from channels.telegram.emulator.forms import read
from channels.telegram.emulator.methods import METHODS
from channels.telegram.emulator.polling import Polling
from channels.telegram.emulator.refusals import Refused, conflict, not_found, unauthorized
from channels.telegram.emulator.wire import Parameters, is_object, number_of, whole
from zeroclaw import Clock

BAD_GATEWAY = Response(
    status=502,
    content_type="text/html",
    body=b"<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1>"
    b"</center><hr><center>nginx</center></body></html>",
)


class BotApi:
    """The Bot API of one account, over HTTP.

    Attributes:
        calls: Every call, in order of arrival.
        planned: Planned faults.
        latency_s: Delay of every answer, in addition to faults.
    """

    def __init__(
        self, *, account: Account, polling: Polling, clock: Clock, on_change: Callable[[], None]
    ) -> None:
        """Answer nothing yet; `note` is called at every change."""
        self._account = account
        self._polling = polling
        self._clock = clock
        self._on_change = on_change
        self.calls: list[Call] = []
        self.planned: list[Planned] = []
        self.latency_s = 0.0

    def now(self) -> Instant:
        """Return the current time."""
        return Instant(wall=self._clock.now(), at=self._clock.monotonic())

    async def answer(self, request: Request) -> Answer | None:
        """Answer a request; None if the path is not the Bot API's."""
        _, first, *rest = request.path.split("/")
        try:
            if first == "file" and rest and rest[0].startswith("bot"):
                self._check_token(rest[0])
                return self._file("/".join(rest[1:]))
            if first.startswith("bot") and len(rest) == 1:
                self._check_token(first)
                return await self._call(rest[0], request)
        except Refused as error:
            return _refusal(error)
        return None

    def _check_token(self, part: str) -> None:
        token = part.removeprefix("bot").replace("%3A", ":")
        if not token.partition(":")[0].isdigit():
            raise not_found()
        if token != self._account.token:
            raise unauthorized()

    def _file(self, path: str) -> Answer:
        file = self._account.files.at(path)
        if file is None:
            raise not_found()
        return Response(content_type="application/octet-stream", body=file.content)

    # --- calls -----------------------------------------------------------------------------------

    async def _call(self, method: str, request: Request) -> Answer:
        parameters = read(request.query, request.headers.get("content-type", ""), request.body)
        call = Call(
            method=method,
            chat=whole(parameters.text("chat_id")),
            parameters=parameters,
            at=self._clock.monotonic(),
        )
        self.calls.append(call)
        self._on_change()
        call.fault = fault_of(call, self.planned)
        try:
            answer = await self._with(call.fault, call, request)
        except Refused as error:
            call.refusal = error.description
            answer = _refusal(error)
        finally:
            self._on_change()
        await self._clock.sleep(self.latency_s)
        return answer

    async def _with(self, fault: Fault | None, call: Call, request: Request) -> Answer:
        """Carry a call out with its fault, if it has one."""
        match fault:
            case None:
                return await self._carry_out(call, request)
            case Hang(carried_out=True):
                answer = await self._carry_out(call, request)
                self._on_change()
                await fault.wait()
                return answer
            case Hang():
                await fault.wait()
                return await self._carry_out(call, request)
            case Lose() | BadGateway():
                if fault.carried_out:
                    await self._carry_out(call, request)
                return Cut() if isinstance(fault, Lose) else BAD_GATEWAY
            case Refuse() | TooMany() | BadMarkup():
                raise fault.refusal()

    async def _carry_out(self, call: Call, request: Request) -> Answer:
        result = await self._result(call.method.lower(), call.parameters, request)
        call.is_done = True
        if is_object(result) and call.method.lower().startswith("send"):
            call.posted = number_of(result, "message_id")
        return _ok(result)

    async def _result(self, method: str, parameters: Parameters, request: Request) -> object:
        if method in self._account.missing:
            raise not_found()
        if method == "getupdates":
            return await self._get_updates(parameters, request)
        if method in webhooks.METHODS:
            result = webhooks.METHODS[method](self._account, parameters)
            if method == "setwebhook":
                self._polling.end("setWebhook request")
            return result
        if method not in METHODS:
            raise not_found()
        return METHODS[method](self._account, parameters, self.now())

    async def _get_updates(self, parameters: Parameters, request: Request) -> object:
        if self._account.webhook is not None:
            raise conflict(
                "can't use getUpdates method while webhook is active; use deleteWebhook to delete"
                " the webhook first"
            )

        def on_disconnect(callback: Callable[[], None]) -> Callable[[], bool]:
            request.disconnect.callback = callback
            return lambda: request.disconnect.is_set

        return await self._polling.get_updates(parameters, on_disconnect)


def _ok(result: object) -> Response:
    return Response(body=json.dumps({"ok": True, "result": result}).encode())


def _refusal(error: Refused) -> Response:
    body: dict[str, object] = {
        "ok": False,
        "error_code": error.code,
        "description": error.description,
    }
    if error.parameters:
        body["parameters"] = dict(error.parameters)
    return Response(status=error.code, body=json.dumps(body).encode())
