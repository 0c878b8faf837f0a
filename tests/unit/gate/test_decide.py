"""The gate phase in its order: what is allowed, asked and refused, and what is written of it."""

import asyncio
import dataclasses
import json
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from tests.fakes.chains import verify
from tests.fakes.counting_ids import numbered_ulid
from tests.fakes.manual_clock import EPOCH
from tests.unit.gate.gate_house import (
    ANN,
    BOB,
    CONTEXT,
    KEY,
    READ,
    SECRET,
    SETTING,
    SHELL,
    WRITE,
    FakeTool,
    House,
    call,
    denied,
    frozen_in,
    kinds,
    names_a_secret_file,
    same,
    unresolvable,
)
from zeroclaw.envelope import ActionId, Principal, Reader, off_the_record
from zeroclaw.errors import ResourcesUnresolved, ToolArgumentsInvalid
from zeroclaw.gate import audit, decide, receipt
from zeroclaw.gate.action import to_put
from zeroclaw.gate.approval import Approval
from zeroclaw.gate.conditions import facts_of
from zeroclaw.gate.decide import MAX_CALLS
from zeroclaw.gate.grant import grant_for
from zeroclaw.gate.policy import PolicySet, Reason, Statement
from zeroclaw.gate.receipt import Fields
from zeroclaw.gate.scope import scope_of
from zeroclaw.gate.shipped import assemble, halt_statement
from zeroclaw.gate.verdict import REASON_CHARS, Allowed, Asked, Denied, Refusals, Verdict
from zeroclaw.redact import MARKER, Redaction, Redactor
from zeroclaw.text.catalogue import LEAVES_A_TRACE
from zeroclaw.tool import Arguments
from zeroclaw.value import replace


async def test_a_batch_has_room_for_so_many_calls() -> None:
    """Those after them are not even looked at; each fills its slot and says why (P9, K2)."""
    tool = dataclasses.replace(READ)
    batch = await House(tools=[tool]).decide(*[call("read_file")] * (MAX_CALLS + 3))
    verdicts = [type(verdict) for verdict in batch.verdicts]
    assert verdicts == [Allowed] * MAX_CALLS + [Denied] * 3
    last = batch.verdicts[-1]
    assert isinstance(last, Denied)
    assert "one batch has room for 32 calls" in last.result.content
    assert "zc-receipt-" in last.result.content


async def test_others_are_served_between_two_calls_of_a_batch() -> None:
    """A hostile model names many unknown tools, and each is compared with every name (P9)."""
    async with asyncio.TaskGroup() as group:
        other = group.create_task(asyncio.sleep(0))
        await House().decide(*[call("unknown")] * 3)
        assert other.done()


async def test_a_batch_is_decided_call_by_call_in_request_order() -> None:
    """One verdict a call, in the order asked, before anything runs (S1-19, S2-08, S2-11, K3)."""
    tools = [dataclasses.replace(READ), dataclasses.replace(WRITE), dataclasses.replace(SHELL)]
    policy = assemble(
        "supervised",
        [Statement(id="no-shell", effect="deny", principals=("anyone",), actions=("tool:shell",))],
    )
    batch = await House(tools=tools, policy=policy).decide(
        call("read_file"), call("write_file"), call("shell"), call("read_file")
    )
    assert [type(verdict) for verdict in batch.verdicts] == [Allowed, Asked, Denied, Allowed]
    assert [tool.runs for tool in tools] == [0, 0, 0]
    assert kinds(batch) == [
        ("proposed", "web:8", ""),
        ("evaluated", "policy", "allow"),
        ("proposed", "web:8", ""),
        ("evaluated", "policy", "ask"),
        ("proposed", "web:8", ""),
        ("evaluated", "policy", "deny"),
        ("denied", "policy", ""),
        ("proposed", "web:8", ""),
        ("evaluated", "policy", "allow"),
    ]


async def test_a_call_that_may_run_is_frozen_and_kept() -> None:
    """Its row, its hash and its audit name one call: who, where, what, on which things (S3-22)."""
    batch = await House().decide(call("read_file", '{ "path" : "a" }'))
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Allowed)
    frozen = frozen_in(batch)
    action = frozen.action
    assert verdict.action == action.id
    assert (action.id, action.tool) == (numbered_ulid(2), "read_file")
    assert (action.canonical_arguments, action.resources) == ('{"path":"a"}', ("file:/ws/a",))
    assert (action.principal, action.turn) == (BOB, SETTING.turn)
    assert batch.writes == (to_put(frozen),)
    assert [entry.hash for entry in batch.audited] == [frozen.hash] * 2
    assert batch.audited[1].statements == ("supervised.reads",)


async def test_what_is_written_makes_an_unbroken_audit_chain() -> None:
    """Allowed, asked, denied and malformed calls: each ends or stays open, in order (S3-29, S0-51)."""
    batch = await House().decide(
        call("read_file"), call("shell"), call("read_file", "{"), call("nothing")
    )
    head, bodies = audit.GENESIS, list[bytes]()
    for entry in batch.audited:
        body, head = audit.link(head, entry)
        bodies.append(body)
    checked = verify(bodies)
    assert checked == audit.Intact(head=head, count=10, open=(numbered_ulid(2), numbered_ulid(3)))


async def test_colliding_labels_of_the_model_change_nothing() -> None:
    """Every call has an id of its own; the model's is only echoed (K9)."""
    batch = await House().decide(call("read_file", label="x"), call("read_file", label="x"))
    ids = [verdict.action for verdict in batch.verdicts if isinstance(verdict, Allowed)]
    assert len(set(ids)) == 2


def says_a_secret(_: Arguments) -> str:
    return f"write {SECRET}\nto a"


async def test_an_ask_becomes_a_question_about_exactly_this_call() -> None:
    """With hash, deadline, approvers, and a view without secrets (S2-10, S2-12, P5)."""
    raw = f'{{"path":"a","text":"the password is {SECRET}"}}'
    tool = dataclasses.replace(WRITE, describes=says_a_secret)
    batch = await House(tools=[tool]).decide(call("write_file", raw))
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Asked)
    frozen = frozen_in(batch)
    (approval,) = batch.approvals
    assert verdict == Asked(
        action=frozen.action.id, approval=approval.id, deadline_at=approval.deadline_at
    )
    assert approval == Approval(
        id=approval.id,
        action=frozen.action.id,
        action_hash=frozen.hash,
        tool="write_file",
        conversation=CONTEXT.conversation,
        turn=SETTING.turn,
        requester=BOB,
        approvers=("person:ann",),
        requester_may_answer=False,
        summary="run write_file",
        summaries=(("de", "write_file ausführen"),),
        arguments='{\n  "path": "a",\n  "text": "the password is ⟦{env="FISH"}⟧"\n}',
        hidden=('{env="FISH"}',),
        scope=scope_of(frozen.action, facts_of(WRITE.spec), 3600, "/ws"),
        why="`supervised.effects` asks: it does more than read; "
        "`supervised.risk` asks: its risk is not low",
        reasons=(
            Reason(statement="supervised.effects", note="it does more than read"),
            Reason(statement="supervised.risk", note="its risk is not low"),
        ),
        card=numbered_ulid(1),
        order=0,
        deadline_at=EPOCH + timedelta(seconds=900),
    )
    assert SECRET in frozen.action.canonical_arguments
    assert batch.audited[1].approval == approval.id


HIDING = 'echo "-----BEGIN PRIVATE KEY-----" | rm -rf x #-----END PRIVATE KEY-----"'


async def test_a_card_shows_what_merely_looks_like_a_secret() -> None:
    """A shape can swallow a command, so nothing is hidden by its shape (P5)."""

    def says_where(arguments: Arguments) -> str:
        return f"write {arguments['path']}"

    tool = dataclasses.replace(WRITE, describes=says_where)
    batch = await House(tools=[tool]).decide(
        call("write_file", json.dumps({"path": HIDING, "text": "x" * 5000}))
    )
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Asked)
    (approval,) = batch.approvals
    assert approval.summary == f"write {HIDING}"
    assert json.loads(approval.arguments) == {"path": HIDING, "text": "x" * 5000}


async def test_a_line_about_a_call_shows_no_part_of_a_secret() -> None:
    """The tool cuts its line anywhere; the call beneath it names the secret's reference."""

    def says_some(arguments: Arguments) -> str:
        return f"write `{arguments['path']}"[: len("write `") + len(SECRET) - 1] + "…`"

    tool = dataclasses.replace(WRITE, describes=says_some)
    arguments = json.dumps({"path": SECRET, "text": "x"})
    (approval,) = (await House(tools=[tool]).decide(call("write_file", arguments))).approvals
    assert approval.summary == "run write_file"


async def test_a_line_with_a_secret_that_the_call_does_not_hold_is_not_shown() -> None:
    """A tool may know one of its own (P8)."""
    tool = dataclasses.replace(WRITE, describes=says_a_secret)
    (approval,) = (await House(tools=[tool]).decide(call("write_file"))).approvals
    assert (approval.summary, approval.hidden) == ("run write_file", ())


async def test_a_long_line_about_a_call_is_cut_where_it_is_seen() -> None:
    """The whole call stands beneath it."""

    def says_a_lot(_: Arguments) -> str:
        return "x" * 9000

    tool = dataclasses.replace(WRITE, describes=says_a_lot)
    (approval,) = (await House(tools=[tool]).decide(call("write_file"))).approvals
    assert approval.summary == f"{'x' * 500} …"


async def test_a_call_that_no_card_can_show_is_denied() -> None:
    """With the reason, for the model and in the audit; the next call of the batch goes on (P5)."""
    large = json.dumps({"path": "a", "text": "x" * 40_000})
    batch = await House().decide(call("write_file", large), call("write_file", large))
    first, second = batch.verdicts
    assert isinstance(first, Asked)
    assert isinstance(second, Denied)
    reason = (
        "it is too large to be shown whole on a card: 40,031 characters where 19,969 are left; "
        "make it smaller, or split it"
    )
    assert f"`write_file` may not run: {reason}" in second.result.content
    assert [(entry.kind.value, entry.by, entry.decision) for entry in batch.audited[2:]] == [
        ("proposed", "web:8", ""),
        ("evaluated", "card", "deny"),
        ("denied", "card", ""),
    ]
    assert [entry.detail for entry in batch.audited[2:]] == ["", reason, reason]


def nobody(*_: object) -> tuple[Reader, ...]:
    return ()


async def test_people_read_in_their_language_why_their_call_does_not_run() -> None:
    """The model reads English."""
    context = replace(CONTEXT, principal=replace(BOB, language="de"))
    german = replace(SETTING, context=context)
    private = replace(german, context=replace(context, conversation=off_the_record("01C")))
    alone = replace(House().gate(), approvers=nobody)
    batches = [
        await House(policy=PolicySet(())).decide(call("shell"), setting=german),
        await House().decide(call("shell"), setting=private),
        await alone.gate_batch([call("shell")], german),
        await House(tools=[dataclasses.replace(SHELL, touches=names_a_secret_file)]).decide(
            call("shell"), setting=german
        ),
    ]
    found = [verdict for batch in batches for verdict in batch.verdicts]
    assert [verdict.result.for_people for verdict in found if isinstance(verdict, Denied)] == [
        f"`shell` wurde nicht ausgeführt: {why}"
        for why in (
            "keine Regel erlaubt `tool:shell` für `web:8`",
            LEAVES_A_TRACE.de,
            "ein Operator müsste es freigeben, und von hier ist keiner zu erreichen, der das darf",
            "`file:/ws/.ssh/id_rsa` is where secrets are kept; no approval can change that",
        )
    ]


OTHER_BOB = replace(BOB, id="telegram:9", channel="telegram", sender="9")
NOW_BOB = replace(BOB, id="person:bob")  # the configuration names them since


@pytest.mark.parametrize(
    ("granter", "requester", "verdict"),
    [
        (OTHER_BOB, BOB, Allowed),  # not known to be one person
        (replace(OTHER_BOB, id="person:bob"), NOW_BOB, Asked),
        (BOB, NOW_BOB, Asked),
        (ANN, NOW_BOB, Allowed),
        (replace(ANN, channel="", sender=""), BOB, Asked),  # an early release did not say who
    ],
)
async def test_a_grant_covers_no_call_of_its_granter(
    granter: Principal, requester: Principal, verdict: type[Verdict]
) -> None:
    """Where the requester may not answer, under any of their ids (P5)."""
    house = House(approvers_now={granter.identity: granter})
    first = await house.decide(call("write_file"))
    scope = first.approvals[0].scope
    assert scope is not None
    action = frozen_in(first).action
    held = grant_for(action, scope, id="01G", number=1, granter=granter, at=EPOCH)
    if not granter.channel:
        held = replace(held, granter="", granter_sender="")
    setting = replace(SETTING, grants=(held,), current_principal=requester)
    assert type((await house.decide(call("write_file"), setting=setting)).verdicts[0]) is verdict


async def test_a_grant_of_an_approver_who_may_no_longer_approve_covers_nothing() -> None:
    """As they could not give it now (P5)."""
    house = House()
    first = await house.decide(call("write_file"))
    scope = first.approvals[0].scope
    assert scope is not None
    action = frozen_in(first).action
    held = grant_for(action, scope, id="01G", number=1, granter=ANN, at=EPOCH)
    house.approvers_now = {}
    decided = await house.decide(call("write_file"), setting=replace(SETTING, grants=(held,)))
    assert isinstance(decided.verdicts[0], Asked)


async def test_the_asks_of_a_batch_share_one_card() -> None:
    """In request order, each with an approval of its own (K3)."""
    batch = await House().decide(call("shell"), call("read_file"), call("write_file"))
    approvals = batch.approvals
    assert [(ask.tool, ask.order) for ask in approvals] == [("shell", 0), ("write_file", 2)]
    assert len({ask.card for ask in approvals}) == 1
    assert len({ask.id for ask in approvals}) == 2


async def test_a_tool_that_cannot_describe_a_call_is_described_by_its_name() -> None:
    """A card is shown all the same; the whole call stands on it."""

    def raises(_: Arguments) -> str:
        raise RuntimeError

    batch = await House(tools=[dataclasses.replace(WRITE, describes=raises)]).decide(
        call("write_file")
    )
    (approval,) = batch.approvals
    assert approval.summary == "run write_file"


async def test_what_cannot_be_named_can_be_approved_only_once() -> None:
    """Unresolved resources count as matched on ask; a grant for them would be for anything."""
    fetch = FakeTool(name="fetch", effects=frozenset({"network"}), touches=unresolvable)
    batch = await House(tools=[fetch]).decide(call("fetch"))
    (approval,) = batch.approvals
    assert frozen_in(batch).action.resources is None
    assert approval.choices == ("once", "deny", "deny_with_reason")


async def test_a_grant_turns_an_ask_into_an_allow() -> None:
    """For this conversation, this tool and these resources, until it ends; never a deny."""
    house = House()
    first = await house.decide(call("write_file"))
    scope = first.approvals[0].scope
    assert scope is not None
    grant = grant_for(frozen_in(first).action, scope, id="01GRANT", number=1, granter=ANN, at=EPOCH)
    setting = replace(SETTING, grants=(replace(grant, tool="shell"), grant))
    batch = await house.decide(
        call("write_file"), call("write_file", '{"path":"b"}'), call("read_file"), setting=setting
    )
    assert [type(verdict) for verdict in batch.verdicts] == [Allowed, Asked, Allowed]
    evaluated = batch.audited[1]
    assert (evaluated.by, evaluated.decision, evaluated.detail) == ("grant", "allow", "01GRANT")
    before, house.policy = house.policy, assemble("full", halt=halt_statement("person:ann", EPOCH))
    halted = await house.decide(call("write_file"), setting=setting)
    house.policy = before
    await house.clock.advance(3600)
    late = await house.decide(call("write_file"), setting=setting)
    assert [type(batch_.verdicts[0]) for batch_ in (late, halted)] == [Asked, Denied]


async def test_a_host_that_a_tool_spells_oddly_matches_its_statement() -> None:
    """Whoever made the tool: a name of another package can't step around a deny (P3)."""

    async def names_it_oddly(_: Arguments) -> tuple[str, ...]:
        return ("host:BLOCKED.example.:443",)

    deny = Statement(
        id="blocked",
        effect="deny",
        principals=("anyone",),
        actions=("tool:*",),
        resources=("host:blocked.example:*",),
    )
    tool = dataclasses.replace(READ, name="spell", touches=names_it_oddly)
    batch = await House(tools=[tool], policy=assemble("full", [deny])).decide(call("spell"))
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Denied)
    assert frozen_in(batch).action.resources == ("host:blocked.example:443",)


# --- refusals: what can't be decided about, and what no approval opens ----------------------------


def refuses(_: Arguments) -> Arguments:
    raise ToolArgumentsInvalid(("path: is missing", "n: must be a number"))


def crashes(_: Arguments) -> Arguments:
    raise RuntimeError(SECRET)


def makes_a_list(_: Arguments) -> Arguments:
    return cast("Arguments", ["a"])


@pytest.mark.parametrize(
    ("name", "arguments", "checks", "text"),
    [
        ("read_file", '{"a"', same, "arguments: not valid JSON at line 1 column 5"),
        ("read_file", '{"a":1,"a":2}', same, "arguments: the key 'a' is given twice"),
        ("read_file", '{"a":NaN}', same, "arguments: NaN is not JSON"),
        ("read_file", "[]", same, "arguments: must be a JSON object"),
        ("read_file", "{}", refuses, "path: is missing; n: must be a number"),
        ("read_file", "{}", crashes, "raised RuntimeError"),
        ("read_file", "{}", makes_a_list, "raised ValueError"),
    ],
)
async def test_arguments_that_cannot_be_used_fail_with_a_clear_text(
    name: str, arguments: str, checks: Callable[[Arguments], Arguments], text: str
) -> None:
    """The model reads what is wrong; nothing ran; audit and receipt have it, too (S2-09)."""
    house = House(tools=[dataclasses.replace(READ, checks=checks)])
    batch = await house.decide(call(name, arguments))
    refusal_text = f"the arguments of `read_file` can't be used, nothing ran: {text}"
    assert denied(batch) == ("failed", refusal_text)
    assert kinds(batch) == [
        ("proposed", "web:8", ""),
        ("evaluated", "schema", "deny"),
        ("failed", "schema", ""),
    ]
    assert batch.writes == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "read_fiel",
            "there is no tool `read_fiel`, nothing ran; did you mean `read_file`, `write_file`",
        ),
        (
            "zzz",
            "there is no tool `zzz`, nothing ran; the tools are `read_file`, `shell`, `write_file`",
        ),
        (
            "a\nb" * 40,
            f"there is no tool `{'a b' + 'a b' * 39:.64}`, nothing ran; the tools are "
            "`read_file`, `shell`, `write_file`",
        ),
        (
            "\ud800",
            "there is no tool `\\ud800`, nothing ran; the tools are `read_file`, `shell`, `write_file`",
        ),
    ],
)
async def test_an_unknown_tool_is_answered_with_near_names(name: str, text: str) -> None:
    """Whatever the model calls it, the turn goes on, and the audit can hold the name."""
    batch = await House().decide(call(name))
    assert denied(batch) == ("failed", text)
    stored = [audit.read(audit.link(audit.GENESIS, entry)[0]) for entry in batch.audited]
    assert stored == list(batch.audited)


async def test_without_tools_the_model_reads_that_there_are_none() -> None:
    """An empty shelf is a sentence, too."""
    batch = await House(tools=[]).decide(call("x"))
    assert denied(batch)[1] == "there is no tool `x`, nothing ran; there are no tools at all"


async def test_a_refusal_carries_a_receipt_that_verifies() -> None:
    """Denied and failed calls carry one too: for this call, this outcome, this text (P7)."""
    batch = await House(policy=assemble("readonly")).decide(call("shell", '{ "path": "a" }'))
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Denied)
    assert denied(batch) == (
        "denied",
        "`shell` may not run: no statement allows `tool:shell` for `web:8`",
    )
    fields = Fields(
        conversation=CONTEXT.conversation,
        action=verdict.action or ActionId(""),
        tool="shell",
        arguments='{"path":"a"}',
        outcome="denied",
        result=denied(batch)[1],
    )
    assert receipt.signer([KEY], fields, verdict.receipt)
    assert not receipt.signer([KEY], replace(fields, outcome="ok"), verdict.receipt)
    message = verdict.result
    assert (message.tool_name, message.is_error) == ("shell", True)


async def test_a_refusal_repeats_no_secret_and_no_forged_receipt() -> None:
    """A name made of a secret, or of a receipt, is not given back (P7, P8)."""
    forged = "zc-receipt-1-" + "A" * 43
    batch = await House().decide(call(SECRET), call(forged))
    first, second = (
        verdict.result.content for verdict in batch.verdicts if isinstance(verdict, Denied)
    )
    assert f"there is no tool `{MARKER}`" in first
    assert second.count("zc-receipt-") == 1


async def test_a_long_list_of_faults_is_cut() -> None:
    """A refusal is a text for the model, not the whole schema."""

    def refuses_at_length(_: Arguments) -> Arguments:
        raise ToolArgumentsInvalid(("path: is missing",) * 1000)

    batch = await House(tools=[dataclasses.replace(READ, checks=refuses_at_length)]).decide(
        call("read_file")
    )
    assert len(denied(batch)[1]) == REASON_CHARS + 2


async def test_of_a_reason_without_end_only_its_beginning_is_read() -> None:
    """An error that quotes a whole answer costs no more; what the cut tears is not shown."""

    class Counting(Redactor):
        read = 0

        def feed(self, state: Redaction, text: str) -> tuple[Redaction, str]:
            self.read += len(text)
            return super().feed(state, text)

    secret = "s3cret" * 500
    redactor = Counting([secret])
    fields = Fields(
        conversation=CONTEXT.conversation,
        action=ActionId("01A"),
        tool="read_file",
        arguments="{}",
        outcome="failed",
        result=secret * 400,
    )
    result, _ = Refusals(redactor, KEY).refuse(fields, datetime(2026, 11, 22, tzinfo=UTC))
    assert redactor.read < 20_000
    assert "s3cret" not in result.content


async def test_long_arguments_are_checked_off_the_event_loop() -> None:
    """A text of 100,000 keys takes no time of another conversation (P9)."""
    threads: list[threading.Thread] = []

    def checks(arguments: Arguments) -> Arguments:
        threads.append(threading.current_thread())
        return arguments

    house = House(tools=[dataclasses.replace(READ, checks=checks)])
    await house.decide(call("read_file", '{"path":"a"}'), call("read_file", " " * 9_000))
    assert threads[0] is threading.main_thread()
    assert threads[1] is not threading.main_thread()


async def test_a_call_with_long_arguments_is_judged_and_described_off_the_event_loop() -> None:
    """What a tool says about a whole file takes as long as the file (P9)."""
    threads: list[threading.Thread] = []

    def describes(_: Arguments) -> str:
        threads.append(threading.current_thread())
        return "write it"

    house = House(tools=[dataclasses.replace(WRITE, describes=describes)])
    long = json.dumps({"path": "a", "content": "x" * 3_000})
    await house.decide(call("write_file", '{"path":"a"}'), call("write_file", long))
    # Once for each language.
    assert [thread is threading.main_thread() for thread in threads] == [True] * 2 + [False] * 2


async def hangs(_: Arguments) -> tuple[str, ...]:
    await asyncio.Event().wait()
    return ()


async def names_no_host(_: Arguments) -> tuple[str, ...]:
    return ("host:127.1:80",)


async def names_no_utf8(_: Arguments) -> tuple[str, ...]:
    return ("file:/ws/\udcff",)


async def names_numbers(_: Arguments) -> tuple[str, ...]:
    return cast("tuple[str, ...]", (1, 2))


UNKNOWN = "its resources could not be determined"


@pytest.mark.parametrize(
    ("touches", "reason"),
    [
        (names_a_secret_file, "`file:/ws/.ssh/id_rsa` is where secrets are kept"),
        (unresolvable, f"{UNKNOWN}; `x.example` has no address"),
        (hangs, f"{UNKNOWN}; the tool took too long to name them"),
        (names_no_host, f"{UNKNOWN}; the tool named one without normal form"),
        (names_no_utf8, f"{UNKNOWN}; the tool named one without UTF-8"),
        (names_numbers, f"{UNKNOWN}; the tool named one without UTF-8"),
    ],
)
async def test_protection_stands_above_every_policy(
    monkeypatch: pytest.MonkeyPatch,
    touches: Callable[[Arguments], Awaitable[tuple[str, ...]]],
    reason: str,
) -> None:
    """Even full autonomy does not open it, and no person is asked (S3-23)."""
    if touches is hangs:
        monkeypatch.setattr(decide, "RESOLVE_S", 0)
    house = House(tools=[dataclasses.replace(READ, touches=touches)], policy=assemble("full"))
    batch = await house.decide(call("read_file"))
    assert denied(batch) == (
        "denied",
        f"`read_file` may not run: {reason}; no approval can change that",
    )
    assert kinds(batch)[1:] == [("evaluated", "protection", "deny"), ("denied", "protection", "")]


async def test_a_tool_that_changes_its_copy_changes_nothing() -> None:
    """Arguments are frozen before the tool names their resources (K7)."""

    async def meddles(arguments: Arguments) -> tuple[str, ...]:
        cast("dict[str, object]", arguments)["path"] = "/etc/passwd"
        return ()

    batch = await House(tools=[dataclasses.replace(READ, touches=meddles)]).decide(
        call("read_file")
    )
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Allowed)
    assert frozen_in(batch).action.arguments == {"path": "a"}


async def test_cancelling_the_gate_passes_through() -> None:
    """A turn that is stopped while a tool names its resources leaves nothing behind."""
    house = House(tools=[dataclasses.replace(READ, touches=hangs)])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(house.decide(call("read_file")))
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()


async def test_a_refusal_escapes_invisible_characters() -> None:
    """A tool that can't say what it would touch may quote a stranger: a file, or a server."""

    async def quotes(_: Arguments) -> tuple[str, ...]:
        raise ResourcesUnresolved("`a\U000e0072\u202e` has no address")

    house = House(tools=[dataclasses.replace(READ, touches=quotes)])
    _, text = denied(await house.decide(call("read_file")))
    assert "`a⟨U+E0072⟩⟨U+202E⟩` has no address" in text
