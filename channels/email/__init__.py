"""E-mail: one account, read by IMAP and answered by SMTP; an automatic responder that is safe to leave on.

The libraries of the extra `email` are imported only once they are known to be installed.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from channels._remote.settings import is_safe
from zeroclaw import Capabilities, ChannelManifest, SecretReference

CAPABILITIES = Capabilities(
    max_length=50_000,  # characters; Gmail hides HTML beyond 102 KiB, read 2026-11
    can_edit=False,
    can_delete=False,
    has_buttons=True,  # links that open a draft of the answering mail
    has_threads=True,
    max_file_bytes=10_000_000,  # a third more in base64; Exchange Online takes 35 MB, read 2026-11
)

_LABEL = "[a-z0-9][a-z0-9-]{0,62}"
ADDRESS = rf"[a-z0-9!#$%&'*+/=?^_`{{|}}~.-]{{1,64}}@{_LABEL}(?:\.{_LABEL})+"
"""An address in the form in which addresses are compared: lower case, its domain in ASCII."""
PlusTags = Literal["kept", "dropped"]
_HOST = r"^(?:[A-Za-z0-9.-]+|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)$"
_HOSTS = "host names and addresses without a port, such as mail.example.org"
_PRINTABLE = r"^[ !#-\[\]-~]*$"
_LINE = r"^[^\x00-\x1f\x7f]*$"


class EmailSettings(BaseModel):
    """The keys of `[channels.email]`, without the common ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    address: Annotated[str, StringConstraints(to_lower=True)] = Field(
        max_length=254, pattern=f"(?i)^{ADDRESS}$", description="addresses such as bot@example.org"
    )
    """The account's own address: people write to it, and answers come from it."""
    name: str = Field(default="", max_length=100, pattern=_LINE)
    """The display name of the address in answers."""
    username: str = Field(default="", max_length=254, pattern=_LINE)
    """The user name of both logins; empty: the address."""
    password: SecretReference | None = None
    """The password of both logins, for Gmail and Fastmail an app password; or set the next five."""
    token_url: str = Field(default="", max_length=1_000)
    """The endpoint that issues access tokens, for a login by OAuth 2 (XOAUTH2)."""
    client_id: str = Field(default="", max_length=1_000, pattern=_LINE)
    """The bot's application id there."""
    client_secret: SecretReference | None = None
    """The secret of that application; not every application has one."""
    refresh_token: SecretReference | None = None
    """The token from the account's owner; without it the application logs in on its own behalf."""
    token_scope: str = Field(default="", max_length=1_000, pattern=_LINE)
    """The scope to request; empty: the scope of the refresh token."""
    imap_host: str = Field(max_length=253, pattern=_HOST, description=_HOSTS)
    """The host of the mailbox; TLS from the first byte, with a verified certificate."""
    imap_port: int = Field(default=993, ge=1, le=65_535)
    mailbox: str = Field(default="INBOX", min_length=1, max_length=200, pattern=_PRINTABLE)
    """The mailbox to read."""
    smtp_host: str = Field(max_length=253, pattern=_HOST, description=_HOSTS)
    """The host that sends answers."""
    smtp_port: int = Field(default=587, ge=1, le=65_535)
    smtp_security: Literal["starttls", "tls"] = "starttls"
    """How that connection is encrypted: port 587 begins unencrypted, port 465 does not."""
    ca_file: str = Field(default="", max_length=1_000)
    """Certificates to trust instead of the system's, for servers of your own."""
    authserv_id: str = Field(default="", max_length=253, pattern=r"^[!-~]*$")
    """The name in the Authentication-Results headers of the account's own server, such as
    mx.google.com or, for all hosts of a domain, *.icloud.com; while it is empty, every sender is a
    stranger."""
    plus_tags: PlusTags = "kept"
    """Whether ann+x@ is another person than ann@."""
    threads: Literal["ids", "subject"] = "ids"
    """What defines a thread: the ids in replies, or one person's mails with the same subject."""
    receipts: Literal["shown", "folded"] = "shown"
    """Whether receipts are listed below an answer, or folded into one line that expands."""
    subject: str = Field(default="zeroclaw", min_length=1, max_length=100, pattern=_LINE)
    """The subject of mails that answer none."""
    poll_s: float = Field(default=120.0, ge=5, le=1_500)
    """Seconds between checks for mail, in case the server announces none; servers end a wait of more
    than half an hour."""
    max_mail_bytes: int = Field(default=20_000_000, ge=100_000, le=100_000_000)
    """Of a larger mail only the first part is read, and the files in that are only named."""
    sender_per_hour: int = Field(default=20, ge=1, le=1_000)
    """Mails of one sender that are answered within an hour; others stay unread."""
    account_per_hour: int = Field(default=200, ge=1, le=10_000)
    """Mails that are answered within an hour; one more counts as a loop and stops the channel."""

    @model_validator(mode="after")
    def _logs_in_one_way(self) -> "EmailSettings":
        by_token = (self.token_url, self.client_id, self.refresh_token or self.client_secret)
        fault = ""
        if any((*by_token, self.token_scope)) if self.password else not all(by_token):
            fault = "needs `password`, or `token_url`, `client_id` and `refresh_token` or `client_secret`"
        elif self.token_url and not is_safe(self.token_url):
            fault = "`token_url` must begin with https://, for secrets are sent there"
        elif self.token_url and not self.username.isascii():
            fault = "`username` must be plain ASCII, for it is sent with an access token"
        if fault:
            raise ValueError(fault)
        return self


MANIFEST = ChannelManifest(
    kind="email",
    adapter="channels.email.adapter:EmailChannel",
    settings="channels.email:EmailSettings",
    needs=("aioimaplib", "aiosmtplib", "nh3", "markdown_it"),
    check="channels.email.adapter:check",
    sender=ADDRESS,
    asks=("authserv_id",),
    may_pair=False,  # a code for an unknown sender would go to an address that may be forged
)
