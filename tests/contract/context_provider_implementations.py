"""Every Context Provider of the house; a new one adds its line here."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.fakes.context_requests import HERE, NOW, context_request
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from zeroclaw.context.notes import Notes
from zeroclaw.context.prompt import fixed, identity, rules, sensitive, setting
from zeroclaw.context.recollection import Recollection
from zeroclaw.context.skills import skills_provider
from zeroclaw.context.workspace_files import FILES, WorkspaceFiles
from zeroclaw.context_provider import ContextProvider
from zeroclaw.envelope import ConversationId
from zeroclaw.tools.loading.skill import Skill
from zeroclaw.tools.notes.note import Note


async def _files(directory: Path) -> ContextProvider:
    for place in (directory, directory / HERE):
        place.mkdir(exist_ok=True)
        for name, _, _ in FILES:
            (place / name).write_text(f"about {name}", encoding="utf-8")

    async def is_untrusted(conversation: ConversationId, workspace: Path) -> bool:
        return workspace.name == conversation

    return WorkspaceFiles(
        directory=directory, workspaces=directory, max_tokens=100, is_untrusted=is_untrusted
    )


async def _notes(_: Path) -> ContextProvider:
    notes = Notes(MemoryStore(clock=ManualClock()))
    note = Note(number=0, text="likes tea", by="Sam", at=NOW, conversation=HERE)
    await notes.add(f"of:{context_request().principal.id}", note, max_notes=9)
    return Recollection(notes=notes, max_chars=1_000, redact=str)


async def _identity(_: Path) -> ContextProvider:
    return fixed("identity", identity)


async def _setting(_: Path) -> ContextProvider:
    return fixed("setting", setting)


async def _rules(_: Path) -> ContextProvider:
    return fixed("rules", rules)


async def _sensitive(_: Path) -> ContextProvider:
    return fixed("sensitive", sensitive)


async def _skills(_: Path) -> ContextProvider:
    skill = Skill(name="tides", description="When to sail.", text="", folder=Path("/skills/tides"))
    return skills_provider(lambda _who, _where: {"tides": skill}, lambda _who, _where, _loaded: ())


PROVIDERS: dict[str, Callable[[Path], Awaitable[ContextProvider]]] = {
    "identity": _identity,
    "files": _files,
    "setting": _setting,
    "rules": _rules,
    "sensitive": _sensitive,
    "skills": _skills,
    "notes": _notes,
}
