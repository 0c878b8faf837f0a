"""The looks of credentials: what a text gives away without anybody having told us.

A pattern is tried on one whole word, or on the end of one. Bodies are possessive or bounded, and a
failed attempt costs a bounded number of steps, so that no text makes a word cost more than its
length.
"""

import re
import string

from zeroclaw.redact.marker import LONGEST_WORD

IN_WORD = string.ascii_letters + string.digits + "!#$%&*+-./:=?@_~"
_CLASS = re.escape(IN_WORD)
PIECE = re.compile(f"([{_CLASS}]+)|[^{_CLASS}]+")
WORD_ENDS = re.compile(f"[^{_CLASS}]")
LONG_WORD = re.compile(f"[{_CLASS}]{{{LONGEST_WORD + 1},}}+")

# Tokens that are told by their beginning.
TOKENS = re.compile(
    r"(?P<receipt>zc-receipt-[0-9]{1,12}-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-]))"  # ours, no secret
    r"|(?<![A-Za-z0-9])(?:"
    r"eyJ[A-Za-z0-9_-]{8,1024}+\.[A-Za-z0-9_-]{8,}+"  # JWT, RFC 7515 7.1
    r"\.[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]++){0,2}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS access key ids
    r"|gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{40,}+"
    r"|gl(?:pat|ptt|dt|rt|oas|soat|agent)-[A-Za-z0-9_.-]{20,}+"
    r"|sk-(?=[A-Za-z_-]{0,200}+[0-9])[A-Za-z0-9_-]{20,}+"  # OpenAI, Anthropic, OpenRouter
    r"|(?:gsk_|xai-|hf_|npm_|r8_)[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{50,}+"
    r"|xox[abceoprs]-[A-Za-z0-9.-]{10,}+|xapp-[A-Za-z0-9-]{20,}+"  # Slack
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}+|GOCSPX-[A-Za-z0-9_-]{20,}+"  # Google
    r"|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}+|whsec_[A-Za-z0-9+/=]{24,}+"  # Stripe
    r"|SG\.[A-Za-z0-9_-]{16,128}+\.[A-Za-z0-9_-]{16,}+"  # SendGrid
    r"|[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+"  # Discord bots
    r"|AGE-SECRET-KEY-1[A-Z0-9]{50,}+|do[opr]_v1_[a-f0-9]{64}|shp(?:at|ss|ca|pa)_[a-fA-F0-9]{32}"
    r")"
    r"|(?<![0-9])[0-9]{6,12}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"  # Telegram bots
    r"|(?<=hooks\.slack\.com/)[a-z]{1,20}/[A-Za-z0-9/_-]{20,}+"
    r"|(?<=/api/webhooks/)[0-9]{10,25}/[A-Za-z0-9_-]{40,}+"  # Discord
)
URL_PASSWORD = re.compile(r"(?<=://)(?P<user>[^/?#@:]*+):(?:[^/?#@]++@)++")
_NAME = (
    r"(?i:token|secret|passw(?:or)?d|credential|(?:api|access|private|auth)[_-]?key)"
    r"[A-Za-z0-9_-]{0,32}+"
)
PAIR = re.compile(rf"(?P<name>{_NAME}[:=]{{1,2}}+)(?P<value>[^&?#]{{12,}}+)")
NAME_AT_END = re.compile(rf"{_NAME}[*_~]{{0,3}}+(?P<binds>[:=]{{0,2}}+)[*~]{{0,3}}+\Z")
HEADER_AT_END = re.compile(r"(?i)authorization[:=]?\Z")
SCHEMES = frozenset({"basic", "bearer", "bot", "digest", "token", "apikey"})
IN_NAMES = ("token", "secret", "passw", "credential", "key")
"""A name has one of these, in lower case."""
SHORTEST_TOKEN = 15
"""In characters; neither a token nor a name with its value is shorter. `xoxb-` and ten more."""
FIRST_HALVES = ("api", "access", "private")
FIRST_HALF_AT_END = re.compile(r"(?i)(?<![a-z])(?:api|access|private)\Z")
SECOND_HALF = re.compile(r"(?i)keys?[*_~]{0,3}+(?P<binds>[:=]{0,2}+)[*~]{0,3}+\Z")
# A text without any of these, in lower case, holds nothing that the patterns above could find.
_BEGINNINGS = (
    *("eyj", "akia", "asia", "abia", "acca", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_"),
    *("glpat-", "glptt-", "gldt-", "glrt-", "gloas-", "glsoat-", "glagent-", "sk-", "gsk_", "xai-"),
    *("hf_", "npm_", "r8_", "pypi-", "xox", "xapp-", "aiza", "ya29", "gocspx", "sk_", "rk_"),
    *("whsec_", "sg.", "dop_", "dor_", "doo_", "shp", "slack.com/", "webhooks/", "age-secret-"),
)
TELLING = (
    *("token", "secret", "passw", "key", "credential", "authorization", "bearer", "api", "access"),
    *("private", "://", "-----begin"),
    *_BEGINNINGS,
)
TOKEN_BEGUN = re.compile(f"(?i:{'|'.join(map(re.escape, _BEGINNINGS))}).")
"""Some of a token has come after what tells that it is one."""
SHORTEST_TELLING = min(map(len, TELLING))
TELLING_WORD = re.compile("|".join(map(re.escape, TELLING)))
TELLING_SHAPE = re.compile(r"[0-9]:[A-Za-z0-9_-]{35}|\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")

PEM_FIRST = "-----BEGIN"
PEM_HEADER = re.compile(
    r"-----BEGIN(?: [A-Z0-9]{1,12}){0,4}? PRIVATE KEY(?: BLOCK)?-----"  # RFC 7468, RFC 9580 6.2
)
PEM_MAYBE = re.compile(r"-----BEGIN[A-Z0-9 -]{0,90}\Z")
PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
PEM_END_LONGEST = 75
PEM_STOPS = re.compile(r"[^A-Za-z0-9+/=\\\s\"',>|#-]")  # quoted and commented keys go on
PEM_FIELD = re.compile(r"(?:\A\s*|\n|\\n)[A-Za-z][A-Za-z0-9-]{0,40}\Z")  # `Proc-Type`, `Version`
LINE_ENDS = re.compile(r"[\n\\]")
