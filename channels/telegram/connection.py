"""The library's way to the house's connections, with a habit of its own mended: it logs bodies.

What it can't read it writes into the log, whole, where other people's messages may stand in it; and
it takes any JSON for an answer of the Bot API, so that an odd one breaks its caller.
"""

from collections.abc import Mapping

from telegram.error import NetworkError, TelegramError
from telegram.request import BaseRequest, RequestData

from channels._remote.fields import Json, as_object, inner, number, parsed, text
from channels._remote.http import READ_S, Form, Http, form_name
from channels._remote.limits import TOO_MANY, wait_s
from zeroclaw import ZeroclawError


class Connection(BaseRequest):
    """What the library makes its calls with, in place of a client of its own.

    The library's own request class is httpx's, which takes twice the processor time of all else that
    a message costs.
    """

    def __init__(self, http: Http) -> None:
        """Take the account's connections."""
        self._http = http

    @property
    def read_timeout(self) -> float:
        """Seconds between two reads."""
        return READ_S

    async def initialize(self) -> None:
        """Do nothing; the first call opens a connection."""

    async def shutdown(self) -> None:
        """Close every connection, for good; safe twice."""
        await self._http.aclose()

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, object]:
        """Read an answer; what is said of an odd one holds nothing of it.

        Raises:
            TelegramError: It is none of a Bot API server.
        """
        found = as_object(parsed(payload))
        if "result" not in found and found.get("ok") is not False:
            message = "invalid server response"
            raise TelegramError(message)
        return {
            **found,
            "parameters": _parameters(found),
            "description": text(found, "description"),
        }

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: object = None,
        *_: object,
        **__: object,
    ) -> tuple[int, bytes]:
        """Make one call; of the time-outs only `read_timeout` counts. See `BaseRequest.do_request`.

        Raises:
            NetworkError: It was not answered; its cause says what came of it.
        """
        more_s = read_timeout - READ_S if isinstance(read_timeout, int | float) else 0.0
        try:
            answer = await self._http.call(
                method, url, headers=_UNPACKED, data=_form(request_data), more_s=more_s
            )
        except ZeroclawError as error:
            raise NetworkError(str(error)) from error
        return answer.status, answer.content


_UNPACKED = {"Accept-Encoding": "identity"}  # so that a small body does not become a large one


def _form(data: RequestData | None) -> Form | None:
    """Return the parameters of a call, its files among them."""
    if data is None:
        return None
    form = Form(data.json_parameters, quote_fields=False)
    for name, (file, content, media_type) in data.multipart_data.items():
        form.add_field(name, content, filename=form_name(file), content_type=media_type)
    return form


def _parameters(found: Json) -> Mapping[str, object]:
    """Return what the library may read of the parameters of a refusal."""
    given = inner(found, "parameters")
    moved, stated = given.get("migrate_to_chat_id"), number(given, "retry_after")
    if isinstance(moved, int):
        return {"migrate_to_chat_id": moved}
    if stated is None and found.get("error_code") != TOO_MANY:
        return {}
    return {"retry_after": wait_s(stated)}
