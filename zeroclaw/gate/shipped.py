"""The statements that come with zeroclaw; `policy show` prints them, nothing else is built in."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

from zeroclaw.gate.policy import PolicySet, Statement, StatementEffect
from zeroclaw.text import catalogue
from zeroclaw.text.language import Sentence
from zeroclaw.value import replace

Autonomy = Literal["readonly", "supervised", "full"]

_ANYONE = ("anyone",)
_OPERATOR = ("role:operator",)
_ALL_TOOLS = ("tool:*",)

BASE: tuple[Statement, ...] = (
    Statement(
        id="base.commands",
        effect="allow",
        principals=_ANYONE,
        actions=(
            "command:help",
            "command:whoami",
            "command:language",
            "command:new",
            "command:otr",
            "command:retry",
            "command:pending",
            # Only the way in: whether an answer counts is asked again as `approve:<tool>`.
            "command:approve",
            "command:deny",
        ),
        note="everybody who was admitted may use these commands",
    ),
    Statement(
        id="base.own",
        effect="allow",
        principals=_ANYONE,
        actions=(
            "command:status",
            "command:context",
            "command:compact",
            "command:tools",
            "command:stop",
            "command:forget",
            "command:usage",
            # What is others' is asked again for each grant, as `approve:<tool>` too.
            "command:grants",
            "command:revoke",
        ),
        when={"own": True},
        note="everybody may see, stop and have removed what is their own",
    ),
    Statement(
        id="base.direct",
        effect="allow",
        principals=_ANYONE,
        actions=("command:queue",),
        when={"channel_is_direct": True},
        note="everybody may choose for their own chat what messages do while it is busy",
    ),
    Statement(
        id="base.operator",
        effect="allow",
        principals=_OPERATOR,
        actions=("command:*",),
        note="operators may use every command",
    ),
)
"""Who may use which command; the same in every autonomy."""


def approver_statement(approvers: tuple[str, ...]) -> Statement:
    """Return the allow that the key `approvals.approvers` stands for."""
    return Statement(
        id="base.approvers",
        effect="allow",
        principals=approvers,
        actions=("approve:*",),
        note="they may answer every approval",
    )


def autonomy_statements(
    autonomy: Autonomy, *, ask_when_untrusted: bool = True
) -> tuple[Statement, ...]:
    """Return all that the keys `autonomy` and `policy.ask_when_untrusted` stand for.

    (S2-08, S2-12, K26)
    """
    undeclared = _of_tools(
        f"{autonomy}.undeclared", "ask", catalogue.IT_IS_UNDECLARED, declared=False
    )
    if autonomy == "full":
        every = "every tool that declares what it does may run"
        untrusted = _of_tools(
            "full.untrusted",
            "ask",
            catalogue.IT_IS_UNTRUSTED,
            effects_any_of=["network", "exec"],
            untrusted=True,
            in_message=False,
        )
        return (
            _of_tools("full.declared", "allow", every, declared=True),
            undeclared,
            *((untrusted,) if ask_when_untrusted else ()),
        )
    read = (
        _of_tools(
            f"{autonomy}.reads",
            "allow",
            "it only reads, at low risk",
            effects_within=["read"],
            risk_at_most="low",
        ),
        # Of a file every reader gets every byte, and what is packed in it was not looked at.
        replace(
            _of_tools(
                f"{autonomy}.files_to_groups",
                "ask",
                catalogue.EVERYBODY_HERE_GETS_IT,
                channel_is_direct=False,
            ),
            actions=("tool:send_file",),
        ),
    )
    if autonomy == "readonly":
        return read
    return (
        *read,
        _of_tools(
            "supervised.effects",
            "ask",
            catalogue.IT_DOES_MORE_THAN_READ,
            effects_any_of=["write", "network", "exec"],
            compaction=False,
        ),
        _of_tools(
            "supervised.risk",
            "ask",
            catalogue.ITS_RISK_IS_NOT_LOW,
            risk_at_least="medium",
            compaction=False,
        ),
        # No model asks for it, so an approver would be asked about what nobody there has seen.
        replace(
            _of_tools(
                "supervised.facts",
                "allow",
                "before a summary the bot keeps facts as notes, where all words are people's own",
                compaction=True,
                untrusted=False,
            ),
            actions=("tool:remember",),
        ),
        undeclared,
    )


def _of_tools(
    name: str, effect: StatementEffect, note: str | Sentence, **when: object
) -> Statement:
    """Return a statement about every tool, for every requester."""
    return Statement(
        id=name,
        effect=effect,
        principals=_ANYONE,
        actions=_ALL_TOOLS,
        when=when,
        note=note if isinstance(note, str) else note.en,
    )


def halt_statement(by: str, at: datetime) -> Statement:
    """Return the deny on every tool that `/halt` puts in force until `/resume`."""
    since = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    note = f"`{by}` halted everything at {since} UTC, until `/resume`"
    return _of_tools("halt.active", "deny", note)


def revoked_statement(people: frozenset[str]) -> Statement:
    """Return the deny on everything for people who were revoked, at least one, by their ids."""
    return Statement(
        id="revoked.people",
        effect="deny",
        principals=tuple(sorted(people)),
        actions=("*",),
        note="they were revoked; an operator takes that back with `/pair approve`",
    )


def assemble(
    autonomy: Autonomy,
    configured: Iterable[Statement] = (),
    halt: Statement | None = None,
    approvers: tuple[str, ...] = _OPERATOR,
    revoked: frozenset[str] = frozenset(),
    *,
    ask_when_untrusted: bool = True,
) -> PolicySet:
    """Return the whole policy in force."""
    halted = () if halt is None else (halt,)
    out = (revoked_statement(revoked),) if revoked else ()
    of_autonomy = autonomy_statements(autonomy, ask_when_untrusted=ask_when_untrusted)
    shipped = (*BASE, approver_statement(approvers), *of_autonomy)
    return PolicySet((*shipped, *configured, *halted, *out))
