"""The statements that come with zeroclaw; `policy show` prints them, and no other is built in."""

from collections.abc import Iterable
from datetime import UTC, datetime

from zeroclaw.config.model import Autonomy, StatementEffect
from zeroclaw.gate.policy import PolicySet, Statement
from zeroclaw.text import catalogue
from zeroclaw.text.language import Sentence

_ANYONE = ("anyone",)
_OPERATOR = ("role:operator",)
_EVERY_TOOL = "tool:*"


def _statement(
    name: str,
    effect: StatementEffect,
    note: str | Sentence,
    *actions: str,
    principals: tuple[str, ...] = _ANYONE,
    **when: object,
) -> Statement:
    """Return a statement, by default for `anyone`."""
    return Statement(
        id=name,
        effect=effect,
        principals=principals,
        actions=actions,
        when=when,
        note=note if isinstance(note, str) else note.en,
    )


def _commands(names: str) -> tuple[str, ...]:
    """Return the actions of the commands with these names."""
    return tuple(f"command:{name}" for name in names.split())


BASE = (
    _statement(
        "base.commands",
        "allow",
        "everybody who was admitted may use these commands",
        # The last two only admit the command; whether an answer counts is decided again as
        # `approve:<tool>`.
        *_commands("help whoami language new otr retry pending approve deny"),
    ),
    _statement(
        "base.own",
        "allow",
        "everybody may see, stop and have removed what is their own",
        # For other people's grants, each is decided again, also as `approve:<tool>`.
        *_commands("status context compact tools stop forget usage grants revoke"),
        own=True,
    ),
    _statement(
        "base.direct",
        "allow",
        "everybody may choose for their own chat what messages do while it is busy",
        "command:queue",
        channel_is_direct=True,
    ),
    _statement(
        "base.operator",
        "allow",
        "operators may use every command",
        "command:*",
        principals=_OPERATOR,
    ),
)
"""Who may use which command; the same in every autonomy."""


def approver_statement(approvers: tuple[str, ...]) -> Statement:
    """Return the allow statement of the key `approvals.approvers`."""
    note = "they may answer every approval"
    return _statement("base.approvers", "allow", note, "approve:*", principals=approvers)


def autonomy_statements(
    autonomy: Autonomy, *, ask_when_untrusted: bool = True
) -> tuple[Statement, ...]:
    """Return the statements of the keys `autonomy` and `policy.ask_when_untrusted`.

    (S2-08, S2-12, K26)
    """
    undeclared = _statement(
        f"{autonomy}.undeclared", "ask", catalogue.IT_IS_UNDECLARED, _EVERY_TOOL, declared=False
    )
    if autonomy == "full":
        note = "every tool that declares what it does may run"
        untrusted = _statement(
            "full.untrusted",
            "ask",
            catalogue.IT_IS_UNTRUSTED,
            _EVERY_TOOL,
            effects_any_of=["network", "exec"],
            untrusted=True,
            in_message=False,
        )
        return (
            _statement("full.declared", "allow", note, _EVERY_TOOL, declared=True),
            undeclared,
            *((untrusted,) if ask_when_untrusted else ()),
        )
    read = (
        _statement(
            f"{autonomy}.reads",
            "allow",
            "it only reads, at low risk",
            _EVERY_TOOL,
            effects_within=["read"],
            risk_at_most="low",
        ),
        # Every reader gets every byte of a file, and packed contents were not checked.
        _statement(
            f"{autonomy}.files_to_groups",
            "ask",
            catalogue.FILE_GOES_TO_GROUP,
            "tool:send_file",
            channel_is_direct=False,
        ),
    )
    if autonomy == "readonly":
        return read
    return (
        *read,
        _statement(
            "supervised.effects",
            "ask",
            catalogue.IT_DOES_MORE_THAN_READ,
            _EVERY_TOOL,
            effects_any_of=["write", "network", "exec"],
            compaction=False,
        ),
        _statement(
            "supervised.risk",
            "ask",
            catalogue.ITS_RISK_IS_NOT_LOW,
            _EVERY_TOOL,
            risk_at_least="medium",
            compaction=False,
        ),
        # No model asks for it, so an approver would have no message that explains it.
        _statement(
            "supervised.facts",
            "allow",
            "before a summary the bot keeps facts as notes, where all words are people's own",
            "tool:remember",
            compaction=True,
            untrusted=False,
        ),
        undeclared,
    )


def halt_statement(by: str, at: datetime) -> Statement:
    """Return the deny on every tool that `/halt` puts in force until `/resume`."""
    since = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    note = f"`{by}` halted everything at {since} UTC, until `/resume`"
    return _statement("halt.active", "deny", note, _EVERY_TOOL)


def revoked_statement(people: frozenset[str]) -> Statement:
    """Return the deny on everything for revoked people, at least one, by their ids."""
    note = "they were revoked; an operator takes that back with `/pair approve`"
    return _statement("revoked.people", "deny", note, "*", principals=tuple(sorted(people)))


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
    revocations = (revoked_statement(revoked),) if revoked else ()
    by_autonomy = autonomy_statements(autonomy, ask_when_untrusted=ask_when_untrusted)
    shipped = (*BASE, approver_statement(approvers), *by_autonomy)
    return PolicySet((*shipped, *configured, *halted, *revocations))
