"""The scope of an approval "for a time", and its wording (pure).

The card, the toast and every list of grants use this wording, so that approvers read the same
before and after. A scope is the narrowest useful one: the exact call if the call executes
something, or if its resources are vague, too many or none; otherwise any call of the tool on these
resources.
"""

from zeroclaw.gate.action import Action
from zeroclaw.gate.conditions import ToolFacts
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language, Localized
from zeroclaw.tool import Effect
from zeroclaw.value import Value

MAX_NAMED = 5
"""Resources that a scope names; a call with more is granted with its exact arguments."""
_HTTPS = ":443"
_HOUR_S, _MINUTE_S = 3600, 60


class Scope(Value):
    """The calls that would run without asking.

    Attributes:
        tool: The tool's name.
        resources: The resources that a covered call may touch, sorted.
        is_exact: Only calls with the same arguments.
        effects: The effects that the tool declares; empty in rows of an earlier release.
        for_s: How many seconds it lasts; 0 where its end is shown instead.
        workspace: The conversation's own directory: files below it are named relative to it. Empty
            in rows of an earlier release.
    """

    tool: str
    resources: tuple[str, ...]
    is_exact: bool
    effects: frozenset[Effect] = frozenset()
    for_s: float = 0.0
    workspace: str = ""


def scope_of(action: Action, facts: ToolFacts, for_s: float, workspace: str = "") -> Scope | None:
    """Return the narrowest useful scope for more calls like this; None without known resources."""
    if action.resources is None:
        return None
    return Scope(
        tool=action.tool,
        resources=action.resources,
        is_exact=must_be_exact(action.resources, facts),
        effects=facts.effects,
        for_s=for_s,
        workspace=workspace,
    )


def must_be_exact(resources: tuple[str, ...], facts: ToolFacts) -> bool:
    """Whether a grant on these resources must be bound to the arguments as well."""
    is_vague = any("*" in resource for resource in resources)
    return "exec" in facts.effects or is_vague or not 0 < len(resources) <= MAX_NAMED


def in_words(scope: Scope, language: Language) -> str:
    """Return the calls that run without asking, such as ``any URL on `example.org` ``."""
    if scope.is_exact or not scope.resources:
        runs = "exec" in scope.effects
        exact = catalogue.SCOPE_THIS_COMMAND if runs else catalogue.SCOPE_THIS_CALL
        return exact.to(language)
    names = [_quoted(resource, scope.workspace) for resource in scope.resources[:MAX_NAMED]]
    if extra := scope.resources[MAX_NAMED:]:
        names.append(catalogue.GRANT_AND_MORE.to(language, number=len(extra)))
    listed = ", ".join(names)
    kinds = {resource.partition(":")[0] for resource in scope.resources}
    if kinds == {"host"} and "write" not in scope.effects:
        return catalogue.SCOPE_ANY_URL.to(language, where=listed)
    if kinds == {"file"} and "write" in scope.effects:
        return catalogue.SCOPE_ANY_CONTENT.to(language, where=listed)
    return catalogue.SCOPE_ANY_CALL.to(language, where=listed)


def for_a_time(scope: Scope, language: Language) -> str:
    """Return the same with its duration."""
    return catalogue.SCOPE_FOR.to(
        language, scope=in_words(scope, language), time=duration(scope.for_s)
    )


def duration(seconds: float) -> Localized:
    """Return a duration in its largest whole unit."""
    if seconds >= _HOUR_S and seconds % _HOUR_S == 0:
        return catalogue.HOURS.about(count=round(seconds / _HOUR_S))
    if seconds >= _MINUTE_S and seconds % _MINUTE_S == 0:
        return catalogue.MINUTES.about(count=round(seconds / _MINUTE_S))
    return catalogue.SECONDS.about(number=f"{seconds:g}")


def _quoted(resource: str, workspace: str) -> str:
    """Return a resource as code, without its common prefix; a file may have any name."""
    kind, _, name = resource.partition(":")
    if kind == "host":
        displayed = name.removesuffix(_HTTPS)
    elif kind == "file":
        displayed = name.removeprefix(f"{workspace}/") if workspace else name
    else:
        displayed = resource
    line = " ".join(displayed.split()).replace("`", "'")
    return f"`{line}`"
