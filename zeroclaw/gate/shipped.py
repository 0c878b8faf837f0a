"""The statements that come with zeroclaw; `policy show` prints them, nothing else is built in."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal, assert_never

from zeroclaw.gate.policy import PolicySet, Statement
from zeroclaw.text import catalogue

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
            "command:stop",
            "command:forget",
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
    match autonomy:
        case "readonly":
            return (_reads("readonly"), _to_groups("readonly"))
        case "supervised":
            return (
                _reads("supervised"),
                _to_groups("supervised"),
                Statement(
                    id="supervised.effects",
                    effect="ask",
                    principals=_ANYONE,
                    actions=_ALL_TOOLS,
                    when={"effects_any_of": ["write", "network", "exec"]},
                    note=catalogue.IT_DOES_MORE_THAN_READ.en,
                ),
                Statement(
                    id="supervised.risk",
                    effect="ask",
                    principals=_ANYONE,
                    actions=_ALL_TOOLS,
                    when={"risk_at_least": "medium"},
                    note=catalogue.ITS_RISK_IS_NOT_LOW.en,
                ),
                _undeclared("supervised"),
            )
        case "full":
            return (
                Statement(
                    id="full.declared",
                    effect="allow",
                    principals=_ANYONE,
                    actions=_ALL_TOOLS,
                    when={"declared": True},
                    note="every tool that declares what it does may run",
                ),
                _undeclared("full"),
                *((_UNTRUSTED,) if ask_when_untrusted else ()),
            )
        case _:
            assert_never(autonomy)


def _reads(autonomy: Autonomy) -> Statement:
    return Statement(
        id=f"{autonomy}.reads",
        effect="allow",
        principals=_ANYONE,
        actions=_ALL_TOOLS,
        when={"effects_within": ["read"], "risk_at_most": "low"},
        note="it only reads, at low risk",
    )


def _to_groups(autonomy: Autonomy) -> Statement:
    # Of a file everybody gets every byte, and what is packed in it was looked at by nobody.
    return Statement(
        id=f"{autonomy}.files_to_groups",
        effect="ask",
        principals=_ANYONE,
        actions=("tool:send_file",),
        when={"channel_is_direct": False},
        note=catalogue.EVERYBODY_HERE_GETS_IT.en,
    )


_UNTRUSTED = Statement(
    id="full.untrusted",
    effect="ask",
    principals=_ANYONE,
    actions=_ALL_TOOLS,
    when={"effects_any_of": ["network", "exec"], "untrusted": True, "in_message": False},
    note=catalogue.IT_IS_UNTRUSTED.en,
)


def _undeclared(autonomy: Autonomy) -> Statement:
    return Statement(
        id=f"{autonomy}.undeclared",
        effect="ask",
        principals=_ANYONE,
        actions=_ALL_TOOLS,
        when={"declared": False},
        note=catalogue.IT_IS_UNDECLARED.en,
    )


def halt_statement(by: str, at: datetime) -> Statement:
    """Return the deny on every tool that `/halt` puts in force until `/resume`."""
    since = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    return Statement(
        id="halt.active",
        effect="deny",
        principals=_ANYONE,
        actions=_ALL_TOOLS,
        note=f"`{by}` halted everything at {since} UTC, until `/resume`",
    )


def revoked_statement(people: frozenset[str]) -> Statement:
    """Return the deny on everything for people who were put out, at least one, by their ids."""
    return Statement(
        id="revoked.people",
        effect="deny",
        principals=tuple(sorted(people)),
        actions=("*",),
        note="they were put out; an operator takes that back with `/pair approve`",
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
