"""Opens the tools that work on what the store keeps: notes, and results that were cut."""

from collections.abc import Callable

from zeroclaw.config import Config
from zeroclaw.context.notes import Notes
from zeroclaw.store import Store
from zeroclaw.tool import Tool
from zeroclaw.tools import notes, results
from zeroclaw.turn.kept import KeptResults


def stored_tools(config: Config, store: Store, redact: Callable[[str], str]) -> tuple[Tool, ...]:
    """Return those that the configuration offers."""
    found: list[Tool] = []
    if config.tools.notes.enabled:
        found += notes.tools(
            notes.NotesSettings(
                store=Notes(store),
                redact=redact,
                max_notes=config.tools.notes.max_notes,
                max_note_chars=config.tools.notes.max_note_chars,
            )
        )
    if config.tools.results.enabled:
        found += results.tools(
            results.ResultsSettings(
                store=KeptResults(store), answer_chars=config.runtime.result_chars
            )
        )
    return tuple(found)
