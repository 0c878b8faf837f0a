"""Every fault of a configuration is reported together, and every secret resolved."""

import asyncio
import io
import re
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import pytest

from tests.fakes.bare_context import bare_context
from tests.fakes.house_parts import Facts
from tests.fakes.installed import install
from zeroclaw.cli.configuration import ask_platform
from zeroclaw.cli.policy.show import offered_here
from zeroclaw.config.model import Config
from zeroclaw.config.validate import parse
from zeroclaw.daemon.config_check import ANSWERS, ARGUMENTS, SHIPPED, SUMMARISES, ChannelPart, check
from zeroclaw.errors import ConfigError
from zeroclaw.host import logs
from zeroclaw.tool import Tool
from zeroclaw.tools.shell import ShellArguments

MANIFEST = "from zeroclaw import ChannelManifest\n"
WEBHOOK = (
    'channels.telegram = {token = {env = "P"}, receive = "webhook", '
    'webhook_url = "https://bot.example.org/telegram"}\n'
)


def faults_of(text: str, environment: dict[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        check(parse(text), environment or {})
    return caught.value.faults


def test_all_faults_are_reported_together() -> None:
    """Each with its key path and what is allowed (P10)."""
    faults = faults_of(
        'provider = {kind = "nope", api_key = {env = "MISSING"}}\n'
        "[channels.terminal]\nunknown = 1\n"
        '[channels.pigeon]\n[[policy.statement]]\nid = "x"\n'
    )
    paths = [fault.partition(":")[0] for fault in faults]
    assert paths[:2] == ["channels.terminal.unknown", "channels.pigeon.kind"]
    assert paths[-2:] == ["provider.kind", "provider.api_key"]
    assert any(path.startswith("policy.statement") for path in paths)


def test_the_approvals_chat_must_be_on_a_configured_channel() -> None:
    """Otherwise requests would go to private chats, and no one would know why (P10)."""
    text = '[approvals]\nchat = "pigeon:-1"\n[channels.terminal]\n'
    (fault,) = faults_of(text)
    assert fault.startswith("approvals.chat: there is no channel `pigeon`")
    check(parse('[approvals]\nchat = "terminal:1/2"\n[channels.terminal]\n'), {})


@pytest.mark.parametrize("chat", ["-100123", "telegram -100123", "telegram:", "telegram:1/2/3"])
def test_an_invalid_approvals_chat_is_reported_with_a_valid_example(chat: str) -> None:
    with pytest.raises(ConfigError, match=f"`{chat}` is no chat; .* `telegram:-1001234567890`"):
        parse(f'[approvals]\nchat = "{chat}"\n')


def test_a_disabled_channel_is_checked_and_not_opened() -> None:
    """Its keys must be valid all the same."""
    checked = check(parse("[channels.terminal]\nenabled = false\n[channels.web]\n"), {})
    assert [part.name for part in checked.channels] == ["web"]
    assert faults_of("[channels.terminal]\nenabled = false\nunknown = 1\n")


ODD_IDS = {
    "telegram": ("@Ann", "seven", "+7"),
    "discord": ("ann#1234", "<@7>", "-7"),
    "slack": ("u01abcdef", "@ann", "U01-ABC"),
    "email": ("Ann@a.example", "ann@A.example", "<ann@a.example>", "ann@bücher.example", "ann"),
}
PLAIN_IDS = {"telegram": "-1007", "discord": "7", "slack": "U01ABC", "email": "ann+x@a-b.example"}
MAILBOX = """
[channels.email]
address = "bot@a.example"
imap_host = "a.example"
smtp_host = "a.example"
password = {env = "X"}
"""
TOKENS = {
    "telegram": '[channels.telegram]\ntoken = {env = "X"}\n',
    "discord": '[channels.discord]\ntoken = {env = "X"}\n',
    "slack": '[channels.slack]\nbot_token = {env = "X"}\napp_token = {env = "X"}\n',
    "email": MAILBOX,
}


def naming(kind: str, sender: str) -> str:
    """A configuration that names a sender in every place that takes one."""
    return (
        f'{TOKENS[kind]}allowed_users = ["*", "{sender}"]\n[approvals]\napprovers = ["{kind}:{sender}"]\n'
        f'[[policy.statement]]\nid = "no"\neffect = "deny"\nactions = ["tool:*"]\n'
        f'principals = ["{kind}:{sender}"]\n'
    )


@pytest.mark.parametrize(
    ("kind", "sender"), [(kind, sender) for kind in ODD_IDS for sender in ODD_IDS[kind]]
)
def test_an_id_that_its_platform_can_not_have_is_a_fault(kind: str, sender: str) -> None:
    """A deny of an id that no one has denies nothing."""
    person = f'[[people]]\nname = "ann"\nids = ["{kind}:{sender}"]\n'
    paths = [
        fault.partition(":")[0]
        for fault in faults_of(naming(kind, sender) + person, {"X": "a long token"})
        if f"`{sender}`" in fault
    ]
    assert paths == [
        f"channels.{kind}.allowed_users",
        "people[0].ids",
        "policy.statement[0].principals",
        "approvals.approvers",
    ]


@pytest.mark.parametrize("kind", PLAIN_IDS)
def test_an_id_of_the_platforms_form_is_no_fault(kind: str) -> None:
    check(parse(naming(kind, PLAIN_IDS[kind])), {"X": "a long token"})


def test_an_id_in_another_letter_case_is_reported_with_the_right_case() -> None:
    (fault, *_) = faults_of(naming("email", "Ann@a.example"), {"X": "a long token"})
    assert fault == (
        "channels.email.allowed_users: no sender there can have the id `Ann@a.example`; did you mean "
        "`ann@a.example`?"
    )


def test_the_summary_provider_is_checked_like_the_main_one() -> None:
    """Its kind, and its own secret."""
    text = 'provider = {kind = "local"}\ncompaction = {provider = {kind = "%s", api_key = {env = "X"}}}'
    checked = check(parse(text % "local"), {"X": "open sesame, please"})
    assert checked.secrets_of(ANSWERS) == {}
    assert checked.secrets_of(SUMMARISES) == {"api_key": "open sesame, please"}
    assert "sesame" not in checked.redactor.redact("it is open sesame, please.")
    (fault,) = faults_of(text % "nope", {"X": "open sesame, please"})
    assert fault.startswith("compaction.provider.kind: `nope` is not installed; use ")
    (fault,) = faults_of(text % "local", {})
    assert fault.startswith("compaction.provider.api_key: ")


def test_an_impossible_file_name_is_a_fault_like_others() -> None:
    """P10: not an OSError, which on a reload would end the daemon."""
    name = "x" * 5000
    (fault,) = faults_of(f'provider = {{kind = "local", model_file = "{name}"}}', {})
    assert fault.startswith("provider.model_file: ")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('provider = {kind = "local", model_file = "%s"}', "provider.model_file"),
        ('provider = {kind = "auto", model_file = "%s"}', "provider.model_file"),
        ('provider = {kind = "scripted", script = "%s"}', "provider.script"),
        (
            'compaction = {provider = {kind = "local", model_file = "%s"}}',
            "compaction.provider.model_file",
        ),
        (WEBHOOK + 'public = {cert_file = "%s", key_file = "/dev/null"}', "public.cert_file"),
        (
            "channels.email = {address = 'b@x.org', password = {env = 'P'}, imap_host = 'x.org', "
            "smtp_host = 'x.org', authserv_id = 'x.org', ca_file = '%s'}",
            "channels.email.ca_file",
        ),
    ],
)
def test_a_missing_file_is_a_fault(tmp_path: Path, text: str, key: str) -> None:
    """Otherwise its first use fails, long after the start (P10)."""
    there, secret = tmp_path / "file", {"P": "open sesame"}
    fault = f"{key}: `{there}` is no file that this user can read; name one that is"
    assert fault in faults_of(text % there, secret)
    checked = check(parse(text % there), secret, needs_all=False)
    assert any(line.startswith(key) for line in checked.unreadable)
    there.touch()
    assert not any(
        line.startswith(key)
        for line in check(parse(text % there), secret, needs_all=False).unreadable
    )


def test_an_unused_file_setting_is_not_checked() -> None:
    """A setting of an earlier choice is not read, so it does not stop the start."""
    text = 'provider = {kind = "openai", base_url = "http://x", model = "y", script = "/nowhere"}\n'
    text += 'public = {cert_file = "/nowhere", key_file = "/nowhere"}'  # no channel needs it
    assert check(parse(text), {}).unreadable == ()


def test_a_prompt_that_holds_a_secret_is_a_warning() -> None:
    """The prompt is then withheld from the model, which no one would notice otherwise. S0-19."""
    text = 'provider = {kind = "local", api_key = {env = "X"}}\nruntime = {prompt = "Say %s."}'
    warnings = check(parse(text % "open sesame, please"), {"X": "open sesame, please"}).warnings
    assert [warning.split(":")[0] for warning in warnings] == ["runtime.prompt"]
    assert "sesame" not in str(warnings)
    assert check(parse(text % "hello"), {"X": "open sesame, please"}).warnings == ()


def test_a_missing_directory_of_prompt_files_is_a_warning(tmp_path: Path) -> None:
    """Otherwise a bot without its prompt is puzzling; the directory may be made while the bot
    runs."""
    text = f'context.directory = "{tmp_path}/who"'
    (warning,) = check(parse(text), {}).warnings
    assert warning.startswith(f"context.directory: `{tmp_path}/who` is no directory")
    (tmp_path / "who").mkdir()
    assert check(parse(text), {}).warnings == ()


def test_a_providers_secret_is_known_to_the_redactor() -> None:
    """The provider gets it under its key, and no `repr` shows it (P8)."""
    text = 'provider = {kind = "local", api_key = {env = "THE_WORD"}}\n'
    checked = check(parse(text), {"THE_WORD": "open sesame, please"})
    assert checked.secrets_of(ANSWERS) == {"api_key": "open sesame, please"}
    assert "sesame" not in checked.redactor.redact("it is open sesame, please.")
    assert "sesame" not in repr(checked)


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("MANIFEST = 7\n", "channels.pigeon: its entry point is no channel manifest"),
        ("raise RuntimeError\n", "channels.pigeon: `pigeon` is installed but can't be loaded"),
        (
            MANIFEST + 'MANIFEST = ChannelManifest(kind="pigeon", adapter="", settings="x:y")\n',
            "channels.pigeon: `x:y` can't be loaded",
        ),
        (
            MANIFEST
            + 'MANIFEST = ChannelManifest(kind="pigeon", adapter="", settings="pathlib:Path")\n',
            "channels.pigeon: `pathlib:Path` is no pydantic model",
        ),
    ],
)
def test_a_badly_installed_channel_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, fault: str
) -> None:
    """The fault says what is wrong (P10)."""
    name = f"pigeon_{abs(hash(code))}"
    (tmp_path / f"{name}.py").write_text(code)
    install(tmp_path, monkeypatch, f"[zeroclaw.channels]\npigeon = {name}:MANIFEST\n")
    faults = faults_of("[channels.pigeon]\n")
    assert faults[0].startswith(fault)


def test_an_adapter_is_imported_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing module is then a fault of that channel alone (P9)."""
    (tmp_path / "stork.py").write_text(STORK.format(adapter="stork:nowhere"))
    install(tmp_path, monkeypatch, "[zeroclaw.channels]\nstork = stork:MANIFEST\n")
    part = check(parse("[channels.stork]\n"), {}).channels[-1]
    with pytest.raises(ConfigError, match=r"channels\.stork: `stork:nowhere` can't be loaded"):
        open_adapter(part)


def test_an_adapters_dependencies_are_loaded_before_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A platform's library takes long to import, so a thread does it (P9)."""
    (tmp_path / "heron.py").write_text(
        STORK.format(adapter="heron_nest:made").replace("stork", "heron")
    )
    (tmp_path / "heron_nest.py").write_text(
        "import threading\n"
        "def here():\n    return threading.current_thread() is threading.main_thread()\n"
        "seen = [here()]\n"
        "def made(context):\n    return [*seen, here()]\n"
    )
    install(tmp_path, monkeypatch, "[zeroclaw.channels]\nheron = heron:MANIFEST\n")
    part = check(parse("[channels.heron]\n"), {}).channels[-1]
    asyncio.run(asyncio.to_thread(part.load))
    assert open_adapter(part) == [False, True]


def test_a_channel_without_its_packages_says_where_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No extra of ours has those of another package. None of it is loaded before."""
    code = STORK.format(adapter="egret_nest:nowhere").replace("stork", "egret")
    needs = "needs=('json', 'not_there.inside'), check='egret_nest:check', settings="
    (tmp_path / "egret.py").write_text(code.replace("settings=", needs))
    install(tmp_path, monkeypatch, "[zeroclaw.channels]\negret = egret:MANIFEST\n")
    checked = check(parse("[channels.egret]\n"), {})
    part = checked.channels[-1]
    message = r"channels\.egret: egret needs more packages; its own package names them"
    with pytest.raises(ConfigError, match=message):
        open_adapter(part)
    with pytest.raises(ConfigError, match=message):
        part.load()
    with pytest.raises(ConfigError, match=message):
        asyncio.run(ask_platform(part, checked.redactor, within_s=1))
    (warning,) = checked.warnings
    assert re.match(message, warning)
    assert check(parse("[channels.egret]\nenabled = false\n"), {}).warnings == ()


BROKEN_PACKAGES = {
    "tools.osprey: `osprey` is installed but can't be loaded (raised RuntimeError at osprey.py:4)": (
        "tools",
        "raise RuntimeError\n",
    ),
    "tools.osprey: `osprey` can't be opened (it raised TypeError at ": (
        "tools",
        "def tools(): return own\n",
    ),
    "tools.osprey: `shell` is a tool already": ("tools", "def tools(): return (own, own)\n"),
    "context.osprey: `notes` is a context provider already": (
        "context_providers",
        "def tools(): return (notes,)\n",
    ),
}


@pytest.mark.parametrize("fault", BROKEN_PACKAGES)
def test_a_package_that_breaks_the_start_is_a_fault(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor may a package replace another tool, such as our shell."""
    group, code = BROKEN_PACKAGES[fault]
    about = "from types import SimpleNamespace as Made\n"
    about += "own = Made(spec=Made(name='shell'))\nnotes = Made(spec=Made(name='notes'))\n"
    (tmp_path / "osprey.py").write_text(about + code)
    monkeypatch.delitem(sys.modules, "osprey", raising=False)
    install(tmp_path, monkeypatch, f"[zeroclaw.{group}]\nosprey = osprey:tools\n")
    assert [line for line in faults_of("") if line.startswith(fault)]


STORK = (
    MANIFEST
    + "MANIFEST = ChannelManifest(\n"
    + '    kind="stork", adapter="{adapter}",\n'
    + '    settings="channels._local:LocalSettings",\n)\n'
)


def open_adapter(part: ChannelPart) -> object:
    """Return the adapter of a channel."""
    context = bare_context(part.name, part.settings, log=Facts())
    return part.make(context)


PUBLIC = (
    "def falls(settings):\n    raise RuntimeError('secret')\n"
    + MANIFEST
    + "MANIFEST = ChannelManifest(\n"
    + '    kind="stork", adapter="", settings="channels._local:LocalSettings",\n'
    + '    public="{public}",\n)\n'
)


@pytest.mark.parametrize(("public", "is_public"), [("", False), ("builtins:bool", True)])
def test_a_kind_declares_whether_its_platform_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public: str, *, is_public: bool
) -> None:
    """So the public listener is opened before the channel if needed, and not otherwise."""
    name = f"stork_{is_public}"
    (tmp_path / f"{name}.py").write_text(PUBLIC.format(public=public))
    install(tmp_path, monkeypatch, f"[zeroclaw.channels]\nstork = {name}:MANIFEST\n")
    part = check(parse("[channels.stork]\n"), {}).channels[-1]
    assert part.is_public is is_public


@pytest.mark.parametrize(
    ("name", "function", "fault"),
    [
        ("stork_a", "nowhere", "channels.stork: `stork_a:nowhere` can't be loaded"),
        ("stork_b", "falls", "channels.stork: `stork_b:falls` raised RuntimeError"),
    ],
)
def test_a_kind_that_fails_to_declare_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, function: str, fault: str
) -> None:
    """The fault says what is wrong (P10)."""
    (tmp_path / f"{name}.py").write_text(PUBLIC.format(public=f"{name}:{function}"))
    install(tmp_path, monkeypatch, f"[zeroclaw.channels]\nstork = {name}:MANIFEST\n")
    assert faults_of("[channels.stork]\n")[0].startswith(fault)


# --- secrets of channels -------------------------------------------------------------------------

OFFICE = "tests.unit.daemon.post_office"
KEYS = 'desk = {env = "DESK"}\nmailbox = {user = "ann", password = {env = "MAILBOX"}}\n'
ENVIRONMENT = {"DESK": "the word at the desk", "MAILBOX": "the word of the mailbox"}


@pytest.fixture
def _post_office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, f"[zeroclaw.channels]\npost = {OFFICE}:MANIFEST\n")


@pytest.mark.usefixtures("_post_office")
def test_a_channels_secrets_are_resolved() -> None:
    """They go by field name, inner models included; one that is not set is left out."""
    part = check(parse(f"[channels.post]\n{KEYS}"), ENVIRONMENT).channels[-1]
    assert part.secrets == {
        "desk": "the word at the desk",
        "mailbox.password": "the word of the mailbox",
    }


@pytest.mark.usefixtures("_post_office")
def test_two_channels_of_a_kind_have_separate_secrets() -> None:
    """Even if one channel's name is a prefix of the other's."""
    config = parse(
        f'[channels.post]\n{KEYS}[channels.post-2]\nkind = "post"\ndesk = {{env = "MAILBOX"}}\n'
    )
    *_, first, second = check(config, ENVIRONMENT).channels
    assert first.secrets["desk"] == "the word at the desk"
    assert second.secrets == {"desk": "the word of the mailbox"}


@pytest.mark.usefixtures("_post_office")
def test_a_channels_missing_secret_is_reported_with_all_other_faults() -> None:
    """The fault has the key path, and says what to do (P10)."""
    assert faults_of(f'provider = {{kind = "nope"}}\n[channels.post]\n{KEYS}') == (
        "provider.kind: `nope` is not installed; use `auto`, `local`, `openai`, `scripted`",
        "channels.post.desk: environment variable `DESK` is not set; set it",
        "channels.post.mailbox.password: environment variable `MAILBOX` is not set; set it",
    )


@pytest.mark.usefixtures("_post_office")
@pytest.mark.parametrize(
    ("reference", "fault"),
    [
        (
            'desk = "the word itself"',
            'desk: say where it stands, {env="…"}, {file="…"} or {keyring="…"}, never what it is',
        ),
        (
            'desk = {env = "DESK", file = "desk"}',
            'desk: give exactly one of {env="…"}, {file="…"}, {keyring="…"}',
        ),
        (
            'desk = {env = "DESK", path = "desk"}',
            "desk.path: unknown key; `zeroclaw config schema` lists the keys",
        ),
    ],
)
def test_a_malformed_secret_reference_is_explained(reference: str, fault: str) -> None:
    """Above all a secret in place of the reference, which no message repeats (P8, P10)."""
    assert faults_of(f"[channels.post]\n{reference}\n") == (f"channels.post.{fault}",)


@pytest.mark.usefixtures("_post_office", "own_logging")
def test_a_channels_secret_is_never_shown() -> None:
    """Neither in a `repr` nor in the log, even if an adapter logs it (P8)."""
    stream = io.StringIO()
    checked = check(parse(f"[channels.post]\n{KEYS}"), ENVIRONMENT)
    part = checked.channels[-1]
    stop = logs.set_up(redact=checked.redactor.redact, stream=stream)
    logs.EventLog("channel.post")("opened", url=f"https://desk/{part.secrets['desk']}/", part=part)
    stop()
    assert "opened" in stream.getvalue()
    assert "the word" not in stream.getvalue() + repr(checked)


@pytest.mark.usefixtures("_post_office")
def test_a_disabled_channel_needs_no_secret() -> None:
    """It may be disabled for lack of one; a secret that is set is redacted all the same (P8)."""
    off = parse(f"[channels.post]\nenabled = false\n{KEYS}")
    assert "post" not in {part.name for part in check(off, {}).channels}
    redacted = check(off, {"DESK": "the word at the desk"}).redactor.redact("the word at the desk!")
    assert "word" not in redacted


STATEMENT = '[[policy.statement]]\nid = "x"\neffect = "deny"\nprincipals = ["anyone"]\n'


def test_a_statement_on_unknown_names_is_a_fault_with_all_others() -> None:
    """`tool:Shell` would deny nothing (P3); approvers are named the same way."""
    faults = faults_of(
        '[approvals]\napprovers = ["operator"]\n'
        f'{STATEMENT}actions = ["tool:Shell"]\n{STATEMENT}actions = ["x"]\n'
    )
    assert [fault.partition(":")[0] for fault in faults] == [
        "policy.statement[1].actions[0]",
        "approvals.approvers",
        "policy.statement[0].actions",
    ]


CHANNELS = "[channels.web]\n[channels.terminal]\n"
FAR = '[channels.loopback]\nport = 1\nallowed_users = ["7"]\n'
NOT_SELF = "[approvals]\nrequester_may_answer = false\n"
WEB_ONLY = '[[people]]\nname = "ann"\nids = ["web:operator"]\n'
TIED = '[[people]]\nname = "ann"\nids = ["web:operator", "loopback:7"]\n'
ALL_TIED = TIED.replace('", "l', '", "terminal:operator", "l')


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        (CHANNELS + FAR, ""),
        (NOT_SELF + CHANNELS, ""),
        (NOT_SELF + FAR, "`terminal:operator`, `web:operator` and"),  # both are on by default
        (NOT_SELF + CHANNELS + FAR, "`terminal:operator`, `web:operator` and"),
        (NOT_SELF + CHANNELS + FAR + WEB_ONLY, "`terminal:operator`, `web:operator` and"),
        (NOT_SELF + CHANNELS + FAR + TIED, "put `terminal:operator` and"),
        (NOT_SELF + CHANNELS + "enabled = false\n" + FAR, "put `web:operator` and"),
        (NOT_SELF + CHANNELS + FAR + ALL_TIED, ""),
    ],
)
def test_a_person_who_can_pass_for_two_is_a_warning(text: str, loose: str) -> None:
    """Otherwise they could answer their own requests that only another person may (P5)."""
    warnings = check(parse(text), {}).warnings
    assert [loose in warning and "one `[[people]]` entry" in warning for warning in warnings] == (
        [True] if loose else []
    )


def test_a_path_through_a_link_is_a_fault(tmp_path: Path) -> None:
    """Tools name real paths, so a deny on the link would never match."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (fault,) = faults_of(
        f'{STATEMENT}actions = ["tool:*"]\nresources = ["file:{tmp_path}/link/*"]\n'
    )
    assert f"goes through a link: write `file:{tmp_path}/real`" in fault
    text = f'{STATEMENT}actions = ["tool:*"]\nresources = ["file:{tmp_path}/real/*", "file:/*"]\n'
    assert check(parse(text), {}).warnings == ()


@pytest.mark.parametrize(
    ("autonomy", "actions", "is_told"),
    [
        ("supervised", '"tool:shell"', True),
        ("full", '"tool:shell", "tool:read_*"', True),
        ("readonly", '"tool:shell"', False),
        ("supervised", '"command:halt", "tool:shell"', False),
        ("full", '"approve:shell"', False),
    ],
)
def test_an_allow_without_effect_under_the_autonomy_is_a_warning(
    autonomy: str, actions: str, *, is_told: bool
) -> None:
    """Ask beats allow, and everything not asked about is allowed anyway; deny and ask count."""
    text = f'autonomy = "{autonomy}"\n{STATEMENT}actions = [{actions}]\n'
    warnings = check(parse(text.replace('"deny"', '"allow"')), {}).warnings
    message = f'policy.statement[0]: it has no effect with `autonomy = "{autonomy}"`; choose'
    assert [warning.startswith(message) for warning in warnings] == [True] * is_told
    assert check(parse(text), {}).warnings == ()


def test_a_broken_skill_is_a_warning_and_a_missing_folder_a_fault(tmp_path: Path) -> None:
    """The other skills are loaded; known secrets are redacted in them."""
    for name in ("tides", "winds"):
        (tmp_path / name).mkdir()
    tides = "---\nname: tides\ndescription: When to sail.\n---\nIt is open sesame, please.\n"
    (tmp_path / "tides" / "SKILL.md").write_text(tides, encoding="utf-8")
    checked = check(parse(f'skills_dir = "{tmp_path}"\n'), {"DOOR_PASSWORD": "open sesame, please"})
    assert [(skill.name, "sesame" in skill.text) for skill in checked.skills] == [("tides", False)]
    (warning,) = checked.warnings
    assert warning.startswith("skills_dir: `winds` is left out: its `SKILL.md` can't be read")
    (fault,) = faults_of(f'skills_dir = "{tmp_path}/nowhere"\n')
    assert fault.endswith("/nowhere` can't be read: no such file or directory")


async def test_the_names_of_the_built_in_tools_are_complete() -> None:
    """Every tool that can be enabled, since a statement about a disabled one is no fault."""
    async with AsyncExitStack() as stack:
        offered, _ = await offered_here(Config(), stack)
    assert set(offered) | {"shell"} == set(SHIPPED)
    declared = {name: set(_properties(tool)) for name, tool in offered.items()}
    declared["shell"] = set(ShellArguments.model_fields)
    assert declared == ARGUMENTS


def _properties(tool: Tool) -> Mapping[str, object]:
    return cast("Mapping[str, object]", tool.spec.parameters["properties"])


def test_statements_may_name_the_tools_of_another_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check accepts them."""
    (tmp_path / "rocket.py").write_text(
        "from zeroclaw import ToolSpec\n\nclass Launch:\n"
        "    spec = ToolSpec(name='launch', description='', parameters={}, effects=frozenset())\n"
        "def tools():\n    return (Launch(),)\n"
    )
    install(tmp_path, monkeypatch, "[zeroclaw.tools]\nrocket = rocket:tools\n")
    assert check(parse(f'{STATEMENT}actions = ["tool:launch"]\n'), {}).statements
    (fault,) = faults_of(f'{STATEMENT}actions = ["tool:lunch"]\n')
    assert "did you mean `launch`?" in fault


PAID = """
[provider]
kind = "openai"
base_url = "https://models.example/v1"
model = "{model}"
[budget]
{bound}
"""


@pytest.mark.parametrize(
    ("model", "bound", "warned"),
    [
        ("own", "day_usd = 1.0", True),
        ("own", "day_tokens = 1", False),
        ("own", "day_usd = 1.0\nprices = { own = { input = 1, output = 1 } }", False),
        ("gpt-5", "turn_usd = 1.0", False),
    ],
)
def test_a_money_budget_without_a_price_is_a_warning(model: str, bound: str, warned: bool) -> None:
    """The operator who sets it learns how to configure the price (P10)."""
    warnings = check(parse(PAID.format(model=model, bound=bound)), {}).warnings
    assert [
        warning.startswith("budget.day_usd: no price of `own` is known") for warning in warnings
    ] == ([True] if warned else [])
