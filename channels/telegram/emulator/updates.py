"""The queue of updates that wait for the bot, and their confirmation.

An update waits for 24 hours, or until a call with a higher `offset` confirms it (Bot API, getUpdates,
read 2026-11). Until then each poll gets it again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from channels.telegram.emulator.refusals import bad_request
from channels.telegram.emulator.wire import Json, Parameters

LIFETIME_S = 24 * 3600.0
MAX_UPDATES = 100
LONGEST_WAIT_S = 50
"""Longest wait of the server, whatever `timeout` says; not documented in the Bot API."""
# Kinds that come only if requested (Bot API, getUpdates, allowed_updates, read 2026-11).
ONLY_ON_REQUEST = frozenset({"chat_member", "message_reaction", "message_reaction_count"})


def allowed_updates(parameters: Parameters) -> list[str] | None:
    """Read `allowed_updates`; None if the call has none.

    Raises:
        Refused: It is not a list.
    """
    try:
        kinds = parameters.json_array("allowed_updates")
    except ValueError as error:
        raise bad_request("can't parse allowed updates JSON array") from error
    return None if kinds is None else [str(kind) for kind in kinds]


@dataclass(eq=False, kw_only=True)
class Update:
    """An update for the bot.

    Attributes:
        kind: The name of its field, such as `message`.
        body: The value of that field.
        at: The monotonic time when it happened.
        deliveries: How often it was sent.
        confirmed: The bot has confirmed it.
    """

    id: int
    kind: str
    body: Json
    at: float
    deliveries: int = 0
    confirmed: bool = False

    def to_json(self) -> Json:
        """Return it as an `Update`."""
        return {"update_id": self.id, self.kind: self.body}


@dataclass(eq=False, kw_only=True)
class Updates:
    """The queue.

    Attributes:
        last_id: The id of the newest update.
        allowed: The requested kinds, None for the default.
        waiting: The unconfirmed updates, oldest first.
        dropped: Number of updates of kinds that were not requested.
    """

    last_id: int
    allowed: frozenset[str] | None = None
    waiting: list[Update] = field(default_factory=list[Update])
    dropped: int = 0

    def allow(self, kinds: Iterable[str] | None) -> None:
        """Set the requested kinds; an empty list means the default, None changes nothing."""
        if kinds is not None:
            self.allowed = frozenset(kinds) or None

    def add(self, kind: str, body: Json, at: float) -> Update:
        """Add an update; one of a kind that was not requested is dropped for good."""
        is_requested = kind not in ONLY_ON_REQUEST if self.allowed is None else kind in self.allowed
        if not is_requested:
            self.dropped += 1
            return Update(id=0, kind=kind, body=body, at=at)
        self.last_id += 1
        update = Update(id=self.last_id, kind=kind, body=body, at=at)
        self.waiting.append(update)
        return update

    def again(self, update: Update) -> None:
        """Put a delivered update back into its old place in the queue."""
        update.confirmed = False
        if update not in self.waiting:
            self.waiting.append(update)
            self.waiting.sort(key=lambda queued: queued.id)

    def forget_old(self, at: float) -> None:
        """Drop updates that were not fetched for a day."""
        self.waiting = [update for update in self.waiting if at - update.at < LIFETIME_S]

    def confirm(self, offset: int) -> None:
        """Confirm all updates before an offset.

        Args:
            offset: The id of the first update to get next; -n means the last n, and confirms all
                before them; 0 confirms nothing.
        """
        if offset < 0:
            first = max(len(self.waiting) + offset, 0)
            confirmed, self.waiting = self.waiting[:first], self.waiting[first:]
        elif offset:
            confirmed = [update for update in self.waiting if update.id < offset]
            self.waiting = [update for update in self.waiting if update.id >= offset]
        else:
            confirmed = []
        for update in confirmed:
            update.confirmed = True

    def confirm_one(self, update: Update) -> None:
        """Confirm one update, as a webhook's answer does."""
        update.confirmed = True
        self.waiting = [other for other in self.waiting if other is not update]

    def take(self, limit: int) -> list[Update]:
        """Return the oldest updates and count them as delivered."""
        updates = self.waiting[: min(max(limit, 1), MAX_UPDATES)]
        for update in updates:
            update.deliveries += 1
        return updates
