"""What tests commit to the outbox, and how they see what came of it."""

from tests.fakes.scripted_channel import ScriptedChannel
from tests.unit.delivery.rig import HERE, Rig
from zeroclaw.delivery.account import Markdown
from zeroclaw.delivery.rows import Text, Uncertainty, outbox_row
from zeroclaw.envelope import MessageRef, TurnId
from zeroclaw.store import DurablePoint, Put
from zeroclaw.value import replace

LONG = "one " * 14 + "\n\n" + "two " * 14 + "\n\n" + "three"
PARTS = ["one " * 13 + "one", "two " * 13 + "two", "three"]
HOUR_S = 3600.0


def final(
    rig: Rig,
    text: str,
    *,
    refs: tuple[MessageRef, ...] = (),
    chat: str = "c1",
    thread: str | None = None,
    name: str = "chat",
    begun: bool = False,
) -> Put:
    """Return a final; one that is `begun` says that its send begins with its commit."""
    key = rig.ids.ulid()
    address = replace(rig.channels[name].address(chat), thread=thread)
    mark = rig.outbox.mark_if_sent_now(address) if begun else ""
    return outbox_row(
        key,
        Text(
            turn=turn_of(key),
            address=address,
            text=text,
            refs=refs,
            uncertainty=Uncertainty(mark=mark),
        ),
        HERE,
        state="sending" if mark else "pending",
    )


def turn_of(key: str) -> TurnId:
    return TurnId(f"turn of {key}")


def note(rig: Rig, text: str, *, quiet: bool = False) -> Put:
    return outbox_row(rig.ids.ulid(), Text(address=rig.channel.address(), text=text, quiet=quiet))


async def noted(rig: Rig, text: str) -> None:
    """Have a note said."""
    put = note(rig, text)
    await rig.commit(put)
    await rig.outbox.ended(put.key)


async def posted(rig: Rig, *texts: str) -> tuple[MessageRef, ...]:
    """Messages that a draft left in the chat."""
    to = rig.channel.address()
    said = [Markdown(text=text, key=text, draft=True) for text in texts]
    outcomes = [await rig.accounts["chat"].post(to, one) for one in said]
    rig.channel.calls.clear()
    shown = rig.channel.standing(to)
    assert len(outcomes) == len(shown)
    return tuple(one.ref for one in shown)


def seen(channel: ScriptedChannel, chat: str = "c1") -> list[str]:
    return channel.chat(channel.address(chat))


def delivery_points(rig: Rig) -> list[DurablePoint]:
    return rig.store.points()[1:]
