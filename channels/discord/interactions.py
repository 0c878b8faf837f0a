"""Answers presses, forms and slash commands; Discord waits 3 s for a first response, then 15 minutes.

The result of admission is the answer. If admission takes long, Discord is told that an answer follows.
A stranger's command gets no answer, which Discord shows as an application that did not respond. A
stranger's press gets one in a server, privately: that it is not theirs to answer.

Types are those of "Interaction Callback Type" (docs.discord.com, read 2026-11).
"""

import asyncio
from collections.abc import Sequence

from channels._remote.fields import Json, inner
from channels._remote.intake import try_admit
from channels._remote.lanes import AGAIN_S, Lanes
from channels._remote.limits import cut
from channels.discord import cards, render
from channels.discord.decode import Interaction
from channels.discord.rest import Rest
from zeroclaw import (
    Accepted,
    Admission,
    Admit,
    Answered,
    CardWords,
    Clock,
    Duplicate,
    Envelope,
    Ignored,
    Log,
    Pressed,
    Said,
    ZeroclawError,
)

DEFER_S = 1.5
"""Half of the time that Discord waits for the first response, to leave time for the round trip."""
GIVE_UP_S = 60.0
"""Seconds after which an event that can't be stored is dropped; the person sees that and retries."""
MAX_CONCURRENT = 64
"""Interactions in progress; further ones are dropped, and Discord tells the person that it failed."""

_MESSAGE, _MESSAGE_LATER, _NOTHING_CHANGES, _FORM = 4, 5, 6, 9
_FOR_ONE = 1 << 6  # Message Flags, EPHEMERAL
NO_PINGS: Json = {"parse": []}
"""Allowed Mentions, read 2026-11: no text notifies a person."""
MAX_ECHO_CHARS = 1_800


class Responder:
    """Answers the interactions of one account."""

    def __init__(self, rest: Rest, admit: Admit, clock: Clock, log: Log) -> None:
        """Start nothing before `begin`."""
        self._rest, self._admit = rest, admit
        self._clock, self._log = clock, log
        # One lane per person keeps their interactions in order; there is no history to read back.
        self._lanes = Lanes(
            take=self._answer, read=_no_history, clock=clock, log=log, limit=MAX_CONCURRENT
        )

    def begin(self, group: asyncio.TaskGroup, interaction: Interaction) -> None:
        """Queue an interaction to be answered, or drop it if too many wait; never waits."""
        person = interaction.envelope.sender.id if interaction.envelope is not None else ""
        self._lanes.put(group, person, interaction)

    async def _answer(self, interaction: Interaction) -> bool:
        try:
            if interaction.envelope is None:
                await self._respond(interaction, _private_line(f"`{interaction.shows}`"))
            else:
                await self._admit_and_respond(interaction, interaction.envelope)
        except ZeroclawError as error:
            self._log("interaction_not_answered", reason=str(error))
        return True

    async def _admit_and_respond(self, interaction: Interaction, envelope: Envelope) -> None:
        is_deferred = False

        async def defer() -> None:
            nonlocal is_deferred
            await self._clock.sleep(DEFER_S)
            is_deferred = True
            try:
                await self._respond(interaction, _deferred(interaction))
            except ZeroclawError as error:  # the follow-up will fail as well
                self._log("interaction_not_answered", reason=str(error))

        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(defer())
            admission = await self._admitted(envelope)
            if not is_deferred:
                waiting.cancel()
        answer = _first_response(interaction, envelope, admission)
        if is_deferred:
            await self._follow_up(interaction, answer)
        elif answer is not None:
            await self._respond(interaction, answer)

    async def _admitted(self, envelope: Envelope) -> Admission:
        """Admit an envelope, retrying until it is stored or `GIVE_UP_S` have passed."""
        deadline = self._clock.monotonic() + GIVE_UP_S
        while (admission := await try_admit(self._admit, envelope, self._log)) is None:
            if self._clock.monotonic() >= deadline:
                return Ignored()
            await self._clock.sleep(AGAIN_S)
        return admission

    async def _respond(self, interaction: Interaction, answer: Json) -> None:
        path = f"/interactions/{interaction.id}/{interaction.token}/callback"
        await self._rest.call("POST", path, answer, of_bot=False)

    async def _follow_up(self, interaction: Interaction, answer: Json | None) -> None:
        """Send the deferred answer; if there is none, remove a command's "thinking" placeholder.

        The first message takes the place of the placeholder, which only the person sees. A form can't be
        deferred; the person can press again.
        """
        path = f"/webhooks/{interaction.application}/{interaction.token}"
        message: Json = inner(answer, "data") if answer and answer["type"] == _MESSAGE else {}
        if message and "flags" not in message:  # it is for all
            await self._rest.call("POST", path, _private_line("✅")["data"], of_bot=False)
        if message:
            await self._rest.call("POST", path, message, of_bot=False)
        elif interaction.kind == "command":
            await self._rest.call("DELETE", f"{path}/messages/@original", of_bot=False)


async def _no_history(_person: str) -> Sequence[Interaction]:
    return ()


def _first_response(
    interaction: Interaction, envelope: Envelope, admission: Admission
) -> Json | None:
    """Return the immediate response to an interaction, None to send none."""
    body = envelope.body
    if isinstance(admission, Answered):
        if admission.reply_wanted and isinstance(body, Pressed):
            reason = CardWords(interaction.language).by_name(1)["reason"]
            return {"type": _FORM, "data": cards.form(admission.text, reason, body.approval)}
        return _private_line(admission.text)
    if interaction.kind != "command":
        return {"type": _NOTHING_CHANGES}
    if not isinstance(admission, Accepted | Duplicate):
        return None
    if isinstance(body, Said):
        # Discord shows others that the command was used, but not the question.
        quoted = cut(body.text, MAX_ECHO_CHARS // 2).splitlines()
        content = "\n".join(f"> {render.escaped(line)}" for line in quoted)
        return {"type": _MESSAGE, "data": {"content": content, "allowed_mentions": NO_PINGS}}
    return _private_line("✅")


def _deferred(interaction: Interaction) -> Json:
    if interaction.kind == "command":
        return {"type": _MESSAGE_LATER, "data": {"flags": _FOR_ONE}}
    return {"type": _NOTHING_CHANGES}


def _private_line(text: str) -> Json:
    """Return the response that shows one of the runtime's lines only to the person."""
    data = {"content": cards.line(text), "flags": _FOR_ONE, "allowed_mentions": NO_PINGS}
    return {"type": _MESSAGE, "data": data}
