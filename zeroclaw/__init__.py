"""The front door for authors of channels, tools, providers and context providers.

This module re-exports contracts and values and nothing else. Importing it reads no clock, opens
nothing and loads no platform SDK. The `X as X` form marks each name as a re-export (PEP 484).
"""

from zeroclaw.card_words import CardWords as CardWords
from zeroclaw.channel import (
    Admit as Admit,
    Budget as Budget,
    Capabilities as Capabilities,
    Card as Card,
    CardCall as CardCall,
    Channel as Channel,
    ChannelContext as ChannelContext,
    ChannelManifest as ChannelManifest,
    Log as Log,
    Ending as Ending,
    LookupResult as LookupResult,
    Menu as Menu,
    MenuEntry as MenuEntry,
    Outcome as Outcome,
    Postable as Postable,
    Refusals as Refusals,
    SentFile as SentFile,
    ToolProgress as ToolProgress,
    TranscriptItem as TranscriptItem,
)
from zeroclaw.clock import Clock as Clock, Ids as Ids
from zeroclaw.config.references import SecretReference as SecretReference
from zeroclaw.context_provider import (
    ContextProvider as ContextProvider,
    ContextRequest as ContextRequest,
    ContextSpec as ContextSpec,
    ContextText as ContextText,
)
from zeroclaw.emulator import Emulated as Emulated, EmulatorContext as EmulatorContext
from zeroclaw.envelope import (
    Accepted as Accepted,
    ActionId as ActionId,
    Address as Address,
    Admission as Admission,
    Answered as Answered,
    ApprovalId as ApprovalId,
    Attachment as Attachment,
    Body as Body,
    CheckedReceipt as CheckedReceipt,
    Choice as Choice,
    Command as Command,
    Continues as Continues,
    ConversationId as ConversationId,
    Deleted as Deleted,
    Duplicate as Duplicate,
    Edited as Edited,
    Envelope as Envelope,
    Ignored as Ignored,
    Membership as Membership,
    MessageRef as MessageRef,
    Moved as Moved,
    Outgoing as Outgoing,
    OutgoingFile as OutgoingFile,
    Position as Position,
    Pressed as Pressed,
    Principal as Principal,
    Rendered as Rendered,
    Said as Said,
    Sender as Sender,
    TurnId as TurnId,
    command_of as command_of,
)
from zeroclaw.errors import (
    ChannelRejected as ChannelRejected,
    ChannelStopped as ChannelStopped,
    ChannelUnauthorized as ChannelUnauthorized,
    ChannelUnavailable as ChannelUnavailable,
    ConfigError as ConfigError,
    ContextOverflow as ContextOverflow,
    DeliveryUnknown as DeliveryUnknown,
    NotSupported as NotSupported,
    NoWayOut as NoWayOut,
    ProviderOverloaded as ProviderOverloaded,
    ProviderRejected as ProviderRejected,
    ProviderUnauthorized as ProviderUnauthorized,
    ProviderUnreachable as ProviderUnreachable,
    ProviderUnusable as ProviderUnusable,
    RateLimited as RateLimited,
    ResourcesUnresolved as ResourcesUnresolved,
    StreamBroken as StreamBroken,
    ToolArgumentsInvalid as ToolArgumentsInvalid,
    ToolFailed as ToolFailed,
    ZeroclawError as ZeroclawError,
    refused_as as refused_as,
)
from zeroclaw.message import (
    AssistantMessage as AssistantMessage,
    Message as Message,
    SystemMessage as SystemMessage,
    ToolCall as ToolCall,
    ToolDefinition as ToolDefinition,
    ToolMessage as ToolMessage,
    Usage as Usage,
    UserMessage as UserMessage,
)
from zeroclaw.mount import (
    HOOK_PATH as HOOK_PATH,
    Hook as Hook,
    HookAnswer as HookAnswer,
    HookRequest as HookRequest,
    LineStream as LineStream,
    Mount as Mount,
)
from zeroclaw.network import Network as Network
from zeroclaw.provider import (
    Endpoint as Endpoint,
    Finished as Finished,
    ModelRequest as ModelRequest,
    Provider as Provider,
    ProviderContext as ProviderContext,
    ProviderFacts as ProviderFacts,
    ReasoningDelta as ReasoningDelta,
    StreamEvent as StreamEvent,
    TextDelta as TextDelta,
    ToolCallReady as ToolCallReady,
    UsageReported as UsageReported,
)
from zeroclaw.recent import Recent as Recent
from zeroclaw.redact import without_credentials as without_credentials
from zeroclaw.text.escape import (
    escape_invisible as escape_invisible,
    shortened as shortened,
    without_mark_signs as without_mark_signs,
    without_markup as without_markup,
)
from zeroclaw.text.language import (
    Language as Language,
    Localized as Localized,
    Sentence as Sentence,
)
from zeroclaw.text.mail import (
    Mail as Mail,
    is_hidden_in_mail as is_hidden_in_mail,
    parse_mail as parse_mail,
    plain_header as plain_header,
)
from zeroclaw.text.page import readable_page as readable_page
from zeroclaw.tool import (
    Arguments as Arguments,
    Spawned as Spawned,
    Tool as Tool,
    ToolContext as ToolContext,
    ToolFile as ToolFile,
    ToolOutput as ToolOutput,
    ToolSpec as ToolSpec,
)
from zeroclaw.value import (
    Hidden as Hidden,
    Struct as Struct,
    Value as Value,
    field as field,
    replace as replace,
)
from zeroclaw.web_page import PING as PING, event_stream as event_stream, page_files as page_files
