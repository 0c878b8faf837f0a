"""The gate phase in its order: what is allowed, what is asked, and what is written of it."""

import dataclasses
import json
from datetime import timedelta

from tests.fakes.counting_ids import numbered_ulid
from tests.fakes.manual_clock import EPOCH
from tests.unit.gate.gate_house import (
    BOB,
    CONTEXT,
    READ,
    SECRET,
    SETTING,
    SHELL,
    WRITE,
    FakeTool,
    House,
    call,
    frozen_in,
    kinds,
    unresolvable,
)
from zeroclaw.envelope import Principal
from zeroclaw.gate import audit
from zeroclaw.gate.action import to_put
from zeroclaw.gate.approval import Approval
from zeroclaw.gate.conditions import facts_of
from zeroclaw.gate.decide import MOST_CALLS
from zeroclaw.gate.grant import grant_for
from zeroclaw.gate.policy import Reason, Statement
from zeroclaw.gate.scope import scope_of
from zeroclaw.gate.shipped import assemble, halt_statement
from zeroclaw.gate.verdict import Allowed, Asked, Denied
from zeroclaw.tool import Arguments
from zeroclaw.value import replace

ANN = Principal(id="person:ann", roles=frozenset(), channel="web", sender="2", display="Ann")


async def test_a_batch_has_room_for_so_many_calls() -> None:
    """Those after them are not even looked at; each fills its slot and says why (P9, K2)."""
    tool = dataclasses.replace(READ)
    batch = await House(tools=[tool]).decide(*[call("read_file")] * (MOST_CALLS + 3))
    verdicts = [type(verdict) for verdict in batch.verdicts]
    assert verdicts == [Allowed] * MOST_CALLS + [Denied] * 3
    last = batch.verdicts[-1]
    assert isinstance(last, Denied)
    assert "one batch has room for 32 calls" in last.result.content
    assert "zc-receipt-" in last.result.content


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
    checked = audit.verify(bodies)
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
    why = (
        "it is too large to be shown whole on a card: 40,031 characters where 19,969 are left; "
        "make it smaller, or split it"
    )
    assert f"`write_file` may not run: {why}" in second.result.content
    assert [(entry.kind.value, entry.by, entry.decision) for entry in batch.audited[2:]] == [
        ("proposed", "web:8", ""),
        ("evaluated", "card", "deny"),
        ("denied", "card", ""),
    ]
    assert [entry.detail for entry in batch.audited[2:]] == ["", why, why]


async def test_a_grant_covers_no_call_of_whoever_granted_it() -> None:
    """Where the requester may not answer, by whatever name they are known on a channel (P5)."""
    house = House()
    first = await house.decide(call("write_file"))
    scope = first.approvals[0].scope
    assert scope is not None
    by_bob, by_ann = (
        grant_for(frozen_in(first).action, scope, id="01G", number=1, granter=who, at=EPOCH)
        for who in (replace(BOB, id="person:bob", channel="telegram", sender="9"), ANN)
    )
    now_bob = replace(BOB, id="person:bob")  # the configuration names them since
    cases = ((by_bob, BOB), (by_bob, now_bob), (by_ann, now_bob))
    decided = [
        (
            await house.decide(
                call("write_file"), setting=replace(SETTING, grants=(one,), known=known)
            )
        ).verdicts[0]
        for one, known in cases
    ]
    assert [type(one) for one in decided] == [Allowed, Asked, Allowed]


async def test_the_asks_of_a_batch_share_one_card() -> None:
    """In request order, each with an approval of its own (K3)."""
    batch = await House().decide(call("shell"), call("read_file"), call("write_file"))
    asks = batch.approvals
    assert [(ask.tool, ask.order) for ask in asks] == [("shell", 0), ("write_file", 2)]
    assert len({ask.card for ask in asks}) == 1
    assert len({ask.id for ask in asks}) == 2


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
    await house.clock.advance(3600)
    late = await house.decide(call("write_file"), setting=setting)
    house.policy = assemble("full", halt=halt_statement("person:ann", EPOCH))
    halted = await house.decide(call("write_file"), setting=setting)
    assert [type(one.verdicts[0]) for one in (late, halted)] == [Asked, Denied]


async def test_a_host_that_a_tool_spells_oddly_is_the_one_that_a_statement_means() -> None:
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
