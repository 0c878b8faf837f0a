"""The keys of the configuration, table by table: types, bounds and defaults, frozen.

The manifest of each kind of channel names another settings model, for the keys of that kind.
"""

import re
from collections import Counter
from ipaddress import ip_address, ip_network
from typing import Annotated, Literal, TypeVar, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from zeroclaw.config.references import SecretReference
from zeroclaw.json_fields import is_object
from zeroclaw.resource import resource_form
from zeroclaw.text.language import Language
from zeroclaw.value import Struct

T = TypeVar("T")

Autonomy = Literal["readonly", "supervised", "full"]
StatementEffect = Literal["allow", "ask", "deny"]

LIVE_MARK = "taken up by a reload"
Live = Annotated[T, LIVE_MARK]
"""A key that a reload applies: rooms read it each time they need it (policy, people, limits).
Unmarked keys are read once, at start: places, sockets, the model, channels and tools."""

_CENTURY_DAYS = 36_500
Seconds = Annotated[float, Field(gt=0, le=_CENTURY_DAYS * 86_400)]
"""At most a hundred years: `datetime` ends with the year 9999, and adding a longer time overflows."""
SecondsOrNone = Annotated[float, Field(ge=0, le=_CENTURY_DAYS * 86_400)]
Days = Annotated[int, Field(ge=0, le=_CENTURY_DAYS)]
_LARGEST_BYTES = 2**50
"""Upper bound of byte limits that are passed to the kernel, which rejects larger numbers."""
LONGEST_COMMAND_S = 600.0
"""Seconds of a command, whether the model or the configuration names them."""

# Prefixes of principals in policies, see `gate/policy.py`: on a channel named `role`, a sender with
# the id `operator` would read `role:operator`.
_TAKEN = frozenset({"anyone", "channel", "person", "role"})


def _free(name: str) -> str:
    if name in _TAKEN:
        message = f"`{name}` has a meaning in policies; give the channel another name"
        raise ValueError(message)
    if name == "console":  # its path on the local listener, and the channel of its actions
        message = f"`{name}` is the operator's web page; give the channel another name"
        raise ValueError(message)
    return name


def _no_operator(name: str) -> str:
    if name == "operator":
        message = "`operator` is the user of this machine; give the person another name"
        raise ValueError(message)
    return name


NAME_PATTERN = r"^[a-z][a-z0-9_-]{0,31}$"
ID_PATTERN = r"^[^:]+:.+$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
ChannelName = Annotated[Name, AfterValidator(_free)]

_PLACE = re.compile(r"[^:\s]+:[^:/\s]+(/[^:/\s]+)?")
# A name whose last label is a number would be parsed as an address.
_HOST = re.compile(r"([A-Za-z0-9_-]{1,63}\.)*(?![0-9]+\.?$)[A-Za-z0-9_-]{1,63}\.?")


_NUMBERS = frozenset[object]({int, float})


class Settings(BaseModel):
    """A table of the configuration: frozen; unknown keys are faults."""

    # Validators are built once, for the whole configuration, not for each table: that saves a third
    # of this module's start time. So defaults that are tables use `model_construct`, which needs no
    # validator.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_number_is_true_or_false(cls, table: object) -> object:
        """Refuse them: pydantic takes `true` for 1, and chats would be kept for one day."""
        if not is_object(table):
            return table
        wrong = (
            key
            for key, value in table.items()
            if isinstance(value, bool) and key in cls.model_fields
            if _NUMBERS & {kind := cls.model_fields[key].annotation, *get_args(kind)}
        )
        # A list is refused like any other value, so that the table's other faults are found as well.
        return {**table, **dict.fromkeys(wrong, ())}


def endpoint_url(url: str) -> str:
    """Check the URL of an endpoint, empty for none.

    Raises:
        ValueError: It is not usable. The text does not quote the URL, which may contain a secret.
    """
    try:
        parts = urlsplit(url)
        is_usable = url.isprintable() and " " not in url and bool(parts.hostname)
        is_usable = is_usable and parts.scheme in {"http", "https"} and parts.port != 0
    except ValueError:
        is_usable = False
    if url and not is_usable:
        message = (
            "no address; one begins with http:// or https://, such as http://127.0.0.1:11434/v1"
        )
        raise ValueError(message)
    return url


class ProviderSettings(Settings):
    """`[provider]`: the model that answers."""

    kind: str = "local"
    base_url: Annotated[str, AfterValidator(endpoint_url)] = ""
    model: str = ""
    api_key: SecretReference | None = None
    context_tokens: int | None = Field(default=None, ge=512)
    max_output_tokens: int | None = Field(default=None, ge=1)
    model_file: str = ""
    script: str = ""
    connect_s: Seconds = 10.0
    stall_s: Seconds = 120.0
    attempts: int = Field(default=4, ge=1, le=20)
    options: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    takes: tuple[Literal["images", "audio", "files"], ...] | None = None
    tokenizer: str = ""

    @model_validator(mode="after")
    def _has_keys_of_its_kind(self) -> "ProviderSettings":
        kind, needs = self.kind, {"openai": ("base_url", "model"), "scripted": ("script",)}
        reasons = dict.fromkeys(needs.get(kind, ()), f'kind = "{kind}" needs it')
        if kind == "auto" and self.base_url:
            reasons["model"] = "a `base_url` needs it"
        if kind == "auto" and self.api_key is not None:
            # Otherwise the key would be sent to the first endpoint found.
            reasons["base_url"] = "an `api_key` needs it, because it names the key's endpoint"
        faults: list[InitErrorDetails] = [
            {
                "type": PydanticCustomError("needed", "{why}", {"why": why}),
                "loc": (key,),
                "input": "",
            }
            for key, why in reasons.items()
            if not getattr(self, key)
        ]
        if faults:
            raise ValidationError.from_exception_data(type(self).__name__, faults)
        return self


class RuntimeSettings(Settings):
    """`[runtime]`: limits of a turn and of the daemon."""

    max_iterations: Live[int] = Field(default=50, ge=1)
    max_repeats: Live[int] = Field(default=8, ge=0, le=60)
    warn_repeats: Live[int] = Field(default=5, ge=0, le=60)
    eager_tools: Live[int] = Field(default=20, ge=0, le=1_000)
    tool_execution: Live[Literal["parallel", "sequential"]] = "parallel"
    model_concurrency: int = Field(default=64, ge=1)
    backlog: Live[int] = Field(default=100, ge=1, le=10_000)
    result_chars: Live[int] = Field(default=20_000, ge=1_000)
    grace_s: Live[SecondsOrNone] = 10.0
    call_timeout_s: Seconds = 30.0
    titles: Live[bool] = False
    prompt: Live[str] = ""


def _place(chat: str) -> str:
    if chat and not _PLACE.fullmatch(chat):
        message = (
            f"`{chat}` is no chat; write a channel's name and the chat's id there, such as "
            "`telegram:-1001234567890`, and behind `/` the id of a topic"
        )
        raise ValueError(message)
    return chat


class ApprovalSettings(Settings):
    """`[approvals]`: how people are asked for approval."""

    timeout_s: Live[Seconds] = 900.0
    remind_share: Live[float] = Field(default=0.2, ge=0, lt=1)
    grant_s: Live[Seconds] = 3600.0
    requester_may_answer: Live[bool] = True
    approvers: Live[tuple[str, ...]] = ("role:operator",)
    chat: Live[Annotated[str, AfterValidator(_place)]] = ""


class CompactionSettings(Settings):
    """`[compaction]`: how older parts of a conversation that outgrows the model are summarised."""

    enabled: Live[bool] = True
    threshold: Live[float] = Field(default=0.7, gt=0, lt=1)
    model: Live[str] = ""
    provider: ProviderSettings | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "CompactionSettings":
        if self.provider is not None and self.model:
            message = "`model` names one of the answering endpoint; with a `provider` it goes there"
            raise ValueError(message)
        if self.provider is not None and self.provider.kind == "auto":
            message = "`provider` is never discovered; name its kind"
            raise ValueError(message)
        return self


class ContextSettings(Settings):
    """`[context]`: the operator's and the workspace's files that are sent with each request."""

    directory: str = ""
    file_tokens: int = Field(default=2_000, ge=0, le=100_000)


class ReceiptSettings(Settings):
    """`[receipts]`: how long a receipt can be verified."""

    # Not live: each process creates a key at start, and then keeps or deletes the older ones.
    keep_days: Days = 30


class RetentionSettings(Settings):
    """`[retention]`: how long data is kept; 0 days means for ever, 0 MB means no limit."""

    messages_days: Live[Days] = 90
    approvals_days: Live[Days] = 30
    blobs_days: Live[Days] = 30
    audit_days: Live[Days] = 365
    max_disk_mb: Live[int] = Field(default=2048, ge=0)


class LimitsSettings(Settings):
    """`[limits]`: how much people may write, except operators; 0 means no limit."""

    person_per_minute: Live[int] = Field(default=20, ge=0, le=6_000)
    person_burst: Live[int] = Field(default=30, ge=1, le=10_000)
    conversation_per_minute: Live[int] = Field(default=60, ge=0, le=6_000)
    conversation_burst: Live[int] = Field(default=60, ge=1, le=10_000)
    daily_messages: Live[int] = Field(default=1000, ge=0)


class RateSettings(Settings):
    """`rate` of a channel: overrides single keys of `[limits]`."""

    person_per_minute: Live[int | None] = Field(default=None, ge=0, le=6_000)
    person_burst: Live[int | None] = Field(default=None, ge=1, le=10_000)
    conversation_per_minute: Live[int | None] = Field(default=None, ge=0, le=6_000)
    conversation_burst: Live[int | None] = Field(default=None, ge=1, le=10_000)
    daily_messages: Live[int | None] = Field(default=None, ge=0)


class PriceSettings(Settings):
    """One model of `[budget.prices]`: US dollars per million tokens."""

    input: float = Field(ge=0, le=1_000_000)
    output: float = Field(ge=0, le=1_000_000)
    cached: float | None = Field(default=None, ge=0, le=1_000_000)


class BudgetSettings(Settings):
    """`[budget]`: how many tokens and how much money everyone may use; 0 means no limit."""

    turn_tokens: Live[int] = Field(default=1_000_000, ge=0)
    conversation_tokens: Live[int] = Field(default=0, ge=0)
    person_day_tokens: Live[int] = Field(default=0, ge=0)
    day_tokens: Live[int] = Field(default=0, ge=0)
    turn_usd: Live[float] = Field(default=0.0, ge=0)
    conversation_usd: Live[float] = Field(default=0.0, ge=0)
    person_day_usd: Live[float] = Field(default=0.0, ge=0)
    day_usd: Live[float] = Field(default=0.0, ge=0)
    prices: Live[dict[str, PriceSettings]] = Field(default_factory=dict[str, PriceSettings])


class ListenerSettings(Settings):
    """`[listener]`: the local listener; reachable only from this machine."""

    host: Literal["127.0.0.1", "::1", "localhost"] = "127.0.0.1"
    port: int = Field(default=8420, ge=0, le=65535)


def _own_address(host: str) -> str:
    """Check an address to listen on."""
    try:
        ip_address(host)
    except ValueError:
        message = f"`{host}` is no address of this machine, such as 127.0.0.1, 0.0.0.0 or ::"
        raise ValueError(message) from None
    return host


class PublicSettings(Settings):
    """`[public]`: the public listener; exists only for channels that their platform calls."""

    host: Annotated[str, AfterValidator(_own_address)] = "127.0.0.1"
    port: int = Field(default=8443, ge=0, le=65535)
    cert_file: str = ""
    key_file: str = ""

    @model_validator(mode="after")
    def _both_or_none(self) -> "PublicSettings":
        if bool(self.cert_file) != bool(self.key_file):
            message = "`cert_file` and `key_file` go together; without both it speaks plain HTTP"
            raise ValueError(message)
        return self


class AttachmentSettings(Settings):
    """`[attachments]`: files that come with messages, fetched before their turn starts."""

    # Not live: a fetch in progress keeps the limits it began with.
    max_bytes: int = Field(default=10_000_000, ge=1_000, le=16_777_216)
    max_per_message: int = Field(default=10, ge=0, le=100)
    max_message_bytes: int = Field(default=20_000_000, ge=1_000)
    timeout_s: float = Field(default=60.0, gt=0, le=3600)
    shown_files: int = Field(default=10, ge=0, le=100)
    shown_bytes: int = Field(default=4_000_000, ge=0, le=20_000_000)
    shown_pixels: int = Field(default=50_000_000, ge=1)


class FilesSettings(Settings):
    """`[tools.files]`: reading and writing in the workspace, and sending files from it."""

    enabled: bool = True
    max_read_bytes: int = Field(default=1_000_000, ge=1_000, le=1_000_000_000)
    max_write_bytes: int = Field(default=1_000_000, ge=1_000, le=1_000_000_000)
    max_send_bytes: int = Field(default=10_000_000, ge=1_000, le=16_777_216)


class ShellSettings(Settings):
    """`[tools.shell]`: commands in the sandbox."""

    enabled: bool = True
    network: bool = False
    timeout_s: float = Field(default=60.0, gt=0, le=LONGEST_COMMAND_S)
    memory_bytes: int = Field(default=2_147_483_648, ge=67_108_864, le=_LARGEST_BYTES)
    workspace_bytes: int = Field(default=2_147_483_648, ge=1_000_000, le=_LARGEST_BYTES)
    without_sandbox: Literal["off", "ask"] = "off"


def _host(entry: str) -> str:
    """Check an address, a network or a host name of `tools.fetch.allow`."""
    try:
        ip_network(entry, strict=False)
    except ValueError:
        if not _HOST.fullmatch(entry):
            message = f"`{entry}` is no address, no network such as 10.0.0.0/8, and no host's name"
            raise ValueError(message) from None
    return entry


class FetchSettings(Settings):
    """`[tools.fetch]`: reading pages on the public internet."""

    enabled: bool = True
    max_bytes: int = Field(default=2_000_000, ge=1_000, le=100_000_000)
    timeout_s: Seconds = 20.0
    max_redirects: int = Field(default=5, ge=0, le=50)
    redirects: Literal["same_host", "anywhere"] = "same_host"
    ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = (80, 443)
    allow: tuple[Annotated[str, AfterValidator(_host)], ...] = ()


class NotesSettings(Settings):
    """`[tools.notes]`: short texts remembered for a person or a group."""

    enabled: bool = True
    max_notes: int = Field(default=200, ge=1, le=10_000)
    max_note_chars: int = Field(default=2_000, ge=20, le=100_000)
    recalled_chars: int = Field(default=2_000, ge=0, le=100_000)


class AttachmentToolSettings(Settings):
    """`[tools.attachments]`: reading the files that came with messages."""

    enabled: bool = True
    timeout_s: float = Field(default=20.0, gt=0, le=600)
    memory_bytes: int = Field(default=536_870_912, ge=268_435_456, le=_LARGEST_BYTES)


class ResultsSettings(Settings):
    """`[tools.results]`: reading the rest of a result that was cut off."""

    enabled: bool = True


class ToolsSettings(Settings):
    """`[tools]`: which tools the model is offered, before any policy."""

    attachments: AttachmentToolSettings = AttachmentToolSettings.model_construct()
    fetch: FetchSettings = FetchSettings.model_construct()
    files: FilesSettings = FilesSettings.model_construct()
    shell: ShellSettings = ShellSettings.model_construct()
    notes: NotesSettings = NotesSettings.model_construct()
    results: ResultsSettings = ResultsSettings.model_construct()


class PersonSettings(Settings):
    """`[[people]]`: one person with their ids on several channels."""

    name: Annotated[Name, AfterValidator(_no_operator)]
    ids: tuple[Annotated[str, Field(pattern=ID_PATTERN)], ...] = ()
    roles: tuple[Name, ...] = ()
    language: Language | None = None


def _apart(people: tuple[PersonSettings, ...]) -> tuple[PersonSettings, ...]:
    """Reject people who share a name or an id, since one would get the other's roles."""
    names = Counter(person.name for person in people)
    twice = [f"`{name}` is named twice" for name, count in names.items() if count > 1]
    ids = Counter(identity for person in people for identity in set(person.ids))
    shared = [f"`{identity}` belongs to two people" for identity, count in ids.items() if count > 1]
    if faults := twice + shared:
        message = f"{', '.join(faults)}; give each person one entry, with ids of that person alone"
        raise ValueError(message)
    return people


_ONE_LINE = r"^[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+$"
# The names in statements, see `gate/policy.py`.
_PRINCIPAL = r"^(anyone|[^\s:*]+:[^\s*]+)$"
_ACTION = r"^(\*|(tool|command|approve):\S+)$"
_RESOURCE = (
    r"^(\*|file:[/*][^\x00]*|host:\S+|(sandbox|notes|results|attachment|skill|tools):\S*\*\S*"
    r"|sandbox:(workspace|none)|notes:(of:[^:\s]+:\S+|in:\S+)|(results|tools):[^:/\s]+"
    r"|attachment:[^:/\s]+/[1-9][0-9]*|skill:[a-z0-9-]+)$"
)


def _not_empty(names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse an empty list, which could mean no person as well as any."""
    if not names:
        kind = "too_short"
        raise PydanticCustomError(kind, "should not be empty")
    return names


_Names = Annotated[tuple[T, ...], AfterValidator(_not_empty)]


class StatementSettings(Settings):
    """`[[policy.statement]]`: one statement, of which the gate checks the conditions."""

    id: str = Field(
        pattern=r"^[a-z0-9][a-z0-9_-]*$", description="lower-case letters, digits, `-` and `_`"
    )
    effect: StatementEffect = Field(description="`allow`, `ask` and `deny`")
    principals: _Names[Annotated[str, Field(pattern=_PRINCIPAL)]] = Field(
        description="`anyone`, `role:<name>`, `person:<name>`, `channel:<name>` and "
        "`<channel>:<id>`"
    )
    actions: _Names[Annotated[str, Field(pattern=_ACTION)]] = Field(
        description="`tool:<name>`, `command:<name>`, `approve:<tool>` and `*`, with `*` as wildcard"
    )
    resources: _Names[Annotated[str, Field(pattern=_RESOURCE), AfterValidator(resource_form)]] = (
        Field(
            default=(),
            description="`file:/<real path>`, `host:<name>:<port>`, `sandbox:workspace`, "
            "`notes:of:<principal>`, `notes:in:<chat>`, `results:<conversation>`, "
            "`attachment:<conversation>/<number>`, `skill:<name>` and `tools:<group>`, with `*` as "
            "wildcard; leave the key out for any",
        )
    )
    when: dict[str, object] = Field(default_factory=dict[str, object])
    note: str = Field(default="", pattern=_ONE_LINE, description="texts of one line")


class PolicySettings(Settings):
    """`[policy]`: statements in addition to those of `autonomy`; see `StatementSettings`."""

    ask_when_untrusted: Live[bool] = True
    # Read one by one, so that a fault in one hides none of another.
    statement: Live[tuple[dict[str, object], ...]] = ()


WhileBusy = Literal["queue", "collect", "steer", "interrupt"]
"""The handling of messages that arrive while an answer is being written."""


class ChannelSettings(Settings):
    """The keys common to every `[channels.<name>]`; the others belong to its kind."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str = ""
    enabled: bool = True
    allowed_users: Live[tuple[str, ...]] = ()
    pairing: Live[Literal["closed", "code"]] = "closed"
    pairing_s: Live[float] = Field(default=3600.0, gt=0, le=86_400)
    # Not live: a change would reassign conversations while they run.
    scope: Literal["chat", "person"] = "chat"
    while_busy: Live[WhileBusy] = "queue"
    collect_s: Live[float] = Field(default=2.0, ge=0, le=60)
    max_age_s: Live[SecondsOrNone] = 86_400.0
    stream: Live[bool] = True
    rate: RateSettings = RateSettings.model_construct()

    def own(self) -> dict[str, object]:
        """Return the keys that belong to the channel's kind."""
        return dict(self.model_extra or {})


class Config(Settings):
    """The whole configuration."""

    data_dir: str = ""
    workspace_dir: str = ""
    skills_dir: str = ""
    autonomy: Live[Autonomy] = "supervised"
    language: Live[Language] = "en"
    provider: ProviderSettings = ProviderSettings.model_construct()
    runtime: RuntimeSettings = RuntimeSettings.model_construct()
    approvals: ApprovalSettings = ApprovalSettings.model_construct()
    compaction: CompactionSettings = CompactionSettings.model_construct()
    context: ContextSettings = ContextSettings.model_construct()
    receipts: ReceiptSettings = ReceiptSettings.model_construct()
    retention: RetentionSettings = RetentionSettings.model_construct()
    limits: LimitsSettings = LimitsSettings.model_construct()
    budget: BudgetSettings = BudgetSettings.model_construct()
    attachments: AttachmentSettings = AttachmentSettings.model_construct()
    listener: ListenerSettings = ListenerSettings.model_construct()
    public: PublicSettings = PublicSettings.model_construct()
    tools: ToolsSettings = ToolsSettings.model_construct()
    people: Live[Annotated[tuple[PersonSettings, ...], AfterValidator(_apart)]] = ()
    policy: PolicySettings = PolicySettings.model_construct()
    channels: dict[ChannelName, ChannelSettings] = Field(
        default_factory=lambda: {"web": ChannelSettings(), "terminal": ChannelSettings()}
    )

    def kind_of(self, channel: str) -> str:
        """Return a channel's kind, which defaults to its name."""
        return self.channels[channel].kind or channel

    def settings_of(self, channel: str) -> ChannelSettings:
        """Return a channel's settings; the defaults for one that has been removed since."""
        return self.channels.get(channel) or ChannelSettings()


class CurrentConfig(Struct):
    """The configuration in force; a reload replaces it, so rooms keep this and ask each time."""

    config: Config
