"""Carries out the bot's calls, and refuses those that a platform would refuse."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from zeroclaw import ApprovalId
from zeroclaw.value import Value
from zeroclaw_test_platform import LoopbackSettings
from zeroclaw_test_platform.chats import Chat, File, Message, Version
from zeroclaw_test_platform.faults import Refuse, TooMany, Unavailable
from zeroclaw_test_platform.limits import Limits
from zeroclaw_test_platform.wire import (
    Json,
    Op,
    card_from_json,
    ending_from_json,
    is_array,
    is_object,
    text_of,
)

Answer = Mapping[str, object]
OPS: tuple[Op, ...] = (
    *("send", "send_file", "edit", "delete", "ask", "settle", "typing", "fetch"),
)


class Call(Value):
    """One call of the bot, as it arrived.

    Attributes:
        message: The platform's id of its message, empty for a new one.
        at: Seconds on the clock of the test's event loop.
    """

    op: Op
    chat: str
    thread: str
    message: str
    text: str
    key: str
    draft: bool
    plain: bool
    at: float
    receipts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.op} {self.chat} {self.message} {self.text[:60]!r}{'~' if self.draft else ''}"


class _Refused(Exception):
    """Raised when the platform refuses a call."""

    def __init__(self, error: str, reason: str) -> None:
        super().__init__(reason)
        self.error = error


@dataclass(eq=False, kw_only=True)
class Backend:
    """The state of the platform: all chats.

    Attributes:
        limits: The bot's budgets; calls beyond them are refused and counted.
    """

    settings: LoopbackSettings
    chats: dict[str, Chat] = field(default_factory=dict[str, Chat])
    limits: Limits = field(init=False)
    _messages: dict[str, Message] = field(default_factory=dict[str, Message])
    # By chat and key.
    _by_key: dict[tuple[str, str], Message] = field(default_factory=dict[tuple[str, str], Message])
    _files: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def __post_init__(self) -> None:
        self.limits = Limits(settings=self.settings)

    def chat(self, name: str, *, direct: bool | None = None) -> Chat:
        """Return a chat, a new one when there is none."""
        if name not in self.chats:
            is_direct = not name.startswith("#") if direct is None else direct
            self.chats[name] = Chat(id=name, direct=is_direct)
        return self.chats[name]

    def add_from_person(
        self, chat: Chat, thread: str, person: str, text: str, at: float
    ) -> Message:
        """Add a person's message to a chat."""
        message = self._post(chat.id, thread)
        message.author = person
        message.versions.append(Version(text=text, draft=False, plain=False, at=at))
        return message

    def store_file(self, name: str, content: bytes, claimed_bytes: int | None) -> Json:
        """Store a file; return it as events show it, with its claimed size."""
        reference = f"f{len(self._files) + 1}"
        self._files[reference] = content
        media_type = "text/plain" if name.endswith(".txt") else "application/octet-stream"
        return {
            "reference": reference,
            "name": name,
            "media_type": media_type,
            "size": len(content) if claimed_bytes is None else claimed_bytes,
        }

    # --- the bot's calls -----------------------------------------------------------------------

    def call(self, request: Json, at: float) -> Call:
        """Parse a request."""
        return Call(
            op=next(op for op in OPS if op == request.get("call")),
            chat=text_of(request, "chat"),
            thread=text_of(request, "thread"),
            message=text_of(request, "message"),
            text=text_of(request, "text"),
            key=text_of(request, "key"),
            draft=request.get("draft") is True,
            plain=request.get("plain") is True,
            at=at,
            receipts=tuple(text_of(request, "receipts").splitlines()),
        )

    def refused(self, fault: TooMany | Refuse | Unavailable) -> Answer:
        """Return the answer to a call with a planned fault."""
        match fault:
            case TooMany(retry_after_s=seconds):
                return {"error": "rate_limited", "retry_after_s": seconds, "message": "slow down"}
            case Refuse(why=error):
                return {"error": error, "message": f"refused ({error})"}
            case Unavailable():
                return {"error": "unavailable", "message": "come back later"}

    def carry_out(self, call: Call, request: Json) -> Answer:
        """Carry out a call; the answer has the reason if it was refused."""
        if call.op in ("send", "send_file", "edit", "ask", "settle"):
            wait_s = self.limits.wait_s(call.chat, call.at)
            if wait_s:
                return {
                    "error": "rate_limited",
                    "retry_after_s": wait_s,
                    "message": "over the budget",
                }
        try:
            return self._dispatch(call, request)
        except _Refused as refusal:
            return {"error": refusal.error, "message": str(refusal)}

    def _dispatch(self, call: Call, request: Json) -> Answer:
        match call.op:
            case "send":
                return {"message": self._send(call).id}
            case "send_file":
                return {"message": self._send_file(call, request).id}
            case "edit":
                self._check(call, self.settings.can_edit)
                self._show(self._message_of_bot(call), call)
            case "delete":
                self._check(call, self.settings.can_delete)
                if call.message in self._messages:
                    self._messages[call.message].deleted = True
            case "ask":
                return {"message": self._ask(call, request).id}
            case "settle":
                self._settle(call, request)
            case "typing":
                self._check(call, self.settings.has_typing)
                self._writable(call).typings += 1
            case "fetch":
                return {"base64": base64.b64encode(self._fetched(request)).decode()}
        return {}

    def _fetched(self, request: Json) -> bytes:
        content = self._files.get(text_of(request, "reference"))
        if content is None:
            raise _Refused("gone", "no such file")
        max_bytes = request.get("max_bytes")
        if isinstance(max_bytes, int) and len(content) > max_bytes:
            raise _Refused("rejected", f"the file is larger than {max_bytes} bytes")
        return content

    def _send(self, call: Call) -> Message:
        self._writable(call)
        self._check_text(call)
        message, is_new = self._keyed(call)
        if is_new:
            self._show(message, call)
        return message

    def _send_file(self, call: Call, request: Json) -> Message:
        self._writable(call)
        content = base64.b64decode(text_of(request, "base64"))
        if not 0 < len(content) <= self.settings.max_file_bytes:
            raise _Refused("rejected", f"a file of {len(content)} bytes is refused")
        message, _ = self._keyed(call)
        message.file = File(
            name=text_of(request, "name"),
            media_type=text_of(request, "media_type"),
            content=content,
        )
        message.versions = [Version(text=call.text, draft=False, plain=True, at=call.at)]
        return message

    def _keyed(self, call: Call) -> tuple[Message, bool]:
        """Return the message that was sent with this key before, or a new one."""
        earlier = self._by_key.get((call.chat, call.key))
        if earlier is not None and self.settings.idempotent_send and not earlier.deleted:
            return earlier, False
        message = self._post(call.chat, call.thread)
        message.key = call.key
        self._by_key[call.chat, call.key] = message
        return message, True

    def _ask(self, call: Call, request: Json) -> Message:
        card = request.get("card")
        message = self._send(call)
        if message.card is None and is_object(card):
            message.card = card_from_json(card)
            message.buttons = _buttons(request)
        return message

    def _settle(self, call: Call, request: Json) -> None:
        items = request.get("endings")
        card = self._message_of_bot(call)
        endings = tuple(
            ending_from_json(item) for item in (items if is_array(items) else []) if is_object(item)
        )
        if request.get("in_place") is True:
            self._check(call, self.settings.can_edit)
            self._show(card, call)
        elif (call.chat, call.key) not in self._by_key:
            message = self._post(call.chat, call.thread)
            message.key = call.key
            self._by_key[call.chat, call.key] = message
            self._show(message, call)
        if len(endings) >= len(card.endings):
            card.endings, card.buttons = endings, _buttons(request)

    # --- checks --------------------------------------------------------------------------------

    def _show(self, message: Message, call: Call) -> None:
        self._check_text(call)
        if not message.versions or message.text != call.text:
            message.versions.append(
                Version(text=call.text, draft=call.draft, plain=call.plain, at=call.at)
            )
        message.draft = call.draft
        message.receipts = call.receipts

    def _check(self, call: Call, is_able: bool) -> None:
        if not is_able:
            raise _Refused("rejected", f"this account can't {call.op}")

    def _check_text(self, call: Call) -> None:
        if not call.text.strip():
            raise _Refused("rejected", "a message can't be empty")
        # A card has no limit, like the attachments that carry long ones elsewhere.
        if call.op in ("send", "edit") and len(call.text) > self.settings.max_length:
            raise _Refused("rejected", f"{len(call.text)} characters are too many")

    def _writable(self, call: Call) -> Chat:
        if call.thread:
            self._check(call, self.settings.has_threads)
        if call.chat not in self.chats and call.chat.startswith("#"):
            raise _Refused("rejected", f"the bot is not in `{call.chat}`")
        if call.chat not in self.chats and not self.settings.opens_direct_chats:
            raise _Refused("rejected", f"`{call.chat}` never wrote to the bot")
        return self.chat(call.chat)

    def _message_of_bot(self, call: Call) -> Message:
        message = self._messages.get(call.message)
        if message is None or message.deleted or message.chat != call.chat:
            raise _Refused("gone", f"there is no message `{call.message}`")
        if message.author:
            raise _Refused("rejected", f"`{call.message}` is not the bot's")
        return message

    def _post(self, chat: str, thread: str) -> Message:
        message = Message(id=f"m{len(self._messages) + 1}", chat=chat, thread=thread)
        self._messages[message.id] = message
        self.chat(chat).messages.append(message)
        return message


def _buttons(request: Json) -> frozenset[ApprovalId]:
    items = request.get("buttons")
    return frozenset(ApprovalId(str(item)) for item in (items if is_array(items) else []))
