"""`/context`: what fills the model's window in a conversation, as a bar and a table."""

from collections.abc import Mapping

from zeroclaw.context.composer import Composer, Filled, RequestOwner, RequestRecord, RequestSources
from zeroclaw.inbound.commands.invocation import Invocation, Reply
from zeroclaw.store import Store
from zeroclaw.text import catalogue
from zeroclaw.text.language import Grouped, Language, Sentence
from zeroclaw.turn.session import read_history

BAR_CELLS = 24
NAMES: Mapping[str, Sentence] = {
    "prompt": catalogue.CONTEXT_PROMPT,
    "operator": catalogue.CONTEXT_OPERATOR,
    "skills": catalogue.CONTEXT_SKILLS,
    "notes": catalogue.CONTEXT_NOTES,
    "summary": catalogue.CONTEXT_SUMMARY,
    "messages": catalogue.CONTEXT_MESSAGES,
    "results": catalogue.CONTEXT_RESULTS,
    "tools": catalogue.CONTEXT_TOOLS,
}


async def filled(store: Store, sources: RequestSources, whose: RequestOwner) -> Filled:
    """Return what the next request of a conversation would contain."""
    history = await read_history(store, whose.conversation)
    return await Composer(sources, RequestRecord(), whose).filled(history.spoken())


async def told_filling(store: Store, sources: RequestSources, given: Invocation) -> Reply:
    """Reply with it; nothing is changed."""
    whose = RequestOwner(conversation=given.here, principal=given.principal, address=given.address)
    return Reply(text=in_words(await filled(store, sources, whose), given.language))


def told(filled: Filled, language: Language) -> tuple[str, list[tuple[str, int]]]:
    """Return how full the window is, and what fills it with the tokens of each."""
    rows = [(_named(name, language), tokens) for name, tokens in filled.shares.items()]
    if filled.window is None:
        tokens = Grouped(number=filled.tokens)
        return catalogue.CONTEXT_WINDOW_UNKNOWN.to(language, tokens=tokens), rows
    free = max(filled.window - filled.reserve - filled.tokens, 0)
    rows += [
        (catalogue.CONTEXT_ANSWER.to(language), filled.reserve),
        (catalogue.CONTEXT_FREE.to(language), free),
    ]
    share = min(round(filled.tokens * 100 / filled.window), 100)
    window = Grouped(number=filled.window)
    return catalogue.CONTEXT_FILLED.to(language, share=share, window=window), rows


def in_words(filled: Filled, language: Language) -> str:
    """Return a bar and a table, in monospace."""
    head, rows = told(filled, language)
    if filled.window is not None:
        cells = round(min(filled.tokens / filled.window, 1.0) * BAR_CELLS)
        head = f"{'█' * cells}{'░' * (BAR_CELLS - cells)}  {head}"
    counts = [Grouped(number=tokens).to(language) for _, tokens in rows]
    wide, long = max(len(name) for name, _ in rows), max(map(len, counts))
    lines = (
        f"{name:{wide}}  {count:>{long}}" for (name, _), count in zip(rows, counts, strict=True)
    )
    return "\n".join(("```", head, "", *lines, "```"))


def _named(part: str, language: Language) -> str:
    """Return the name of a part of a request; files and other packages' parts keep their own name."""
    return NAMES[part].to(language) if part in NAMES else part
