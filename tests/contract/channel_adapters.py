"""The channels under the contract suite; a new channel is one entry here."""

from tests.contract.discord_harness import DISCORD
from tests.contract.email_harness import EMAIL
from tests.contract.loopback_harness import BARE as BARE_LOOPBACK
from tests.contract.loopback_harness import loopback
from tests.contract.scripted_harness import BARE, FULL, LOOKING, scripted
from tests.contract.slack_events_harness import SLACK_BY_WEBHOOK
from tests.contract.slack_harness import SLACK
from tests.contract.telegram_harness import TELEGRAM
from tests.contract.telegram_webhook_harness import TELEGRAM_BY_WEBHOOK
from tests.contract.terminal_harness import TERMINAL
from tests.contract.web_harness import WEB

ADAPTERS = (
    TERMINAL,
    WEB,
    EMAIL,
    TELEGRAM,
    TELEGRAM_BY_WEBHOOK,
    DISCORD,
    SLACK,
    SLACK_BY_WEBHOOK,
    loopback("loopback"),
    loopback("loopback, of few capabilities", **BARE_LOOPBACK),
    loopback("loopback, buttons without edits", can_edit=False),
    scripted("scripted", FULL),
    scripted("scripted, that looks", LOOKING),
    scripted("scripted, of few capabilities", BARE),
)
