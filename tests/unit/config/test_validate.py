"""Rules for a configuration beyond the types of its keys."""

import pytest

from channels.telegram import TelegramSettings
from zeroclaw.config.validate import channel_settings, parse
from zeroclaw.errors import ConfigError


def faults_of(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return caught.value.faults


@pytest.mark.parametrize("name", ["anyone", "channel", "person", "role"])
def test_a_channel_can_not_have_a_name_that_policies_use_for_people(name: str) -> None:
    """Its sender `operator` would be written like the role, its sender `ann` like the person (P10)."""
    assert faults_of(f'[channels.{name}]\nkind = "web"\n[channels.web]\n') == (
        f"channels.{name}: `{name}` has a meaning in policies; give the channel another name",
    )


def test_a_channel_can_not_be_named_like_the_console() -> None:
    """Its chat would have the console's path (P10)."""
    assert faults_of('[channels.console]\nkind = "web"\n') == (
        "channels.console: `console` is the operator's web page; give the channel another name",
    )


def test_a_channels_name_is_lower_case() -> None:
    """The fault is at the name itself (P10)."""
    (fault,) = faults_of("[channels.Web]\n")
    assert fault.startswith("channels.Web: ")


def test_a_channel_may_be_named_almost_like_them() -> None:
    """Only the exact words are reserved."""
    assert "roles" in parse('[channels.roles]\nkind = "web"\n').channels


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ("", ["web", "terminal"]),
        ("[channels.telegram]\n", ["web", "terminal", "telegram"]),
        ("[channels.web]\n", ["terminal", "web"]),
        ("[channels.web]\nenabled = false\n", ["terminal"]),
        ('[channels.page]\nkind = "web"\n', ["terminal", "page"]),
        ('[channels.page]\nkind = "web"\nenabled = false\n', ["terminal"]),
        ("[channels]\n", ["web", "terminal"]),
    ],
)
def test_naming_a_channel_leaves_the_default_ones_on(text: str, enabled: list[str]) -> None:
    """Until one says `enabled = false`; another of its kind replaces it."""
    config = parse(text)
    assert [name for name, channel in config.channels.items() if channel.enabled] == enabled


def test_a_person_can_not_be_named_operator() -> None:
    """Policies would take them for one person, with each other's messages (P4, P10)."""
    assert faults_of('[[people]]\nname = "operator"\n') == (
        "people[0].name: `operator` is the user of this machine; give the person another name",
    )


def test_people_have_distinct_names_and_ids() -> None:
    """A person with another's name or id would have their roles (P4, P10)."""
    ann = '[[people]]\nname = "ann"\nids = ["web:1", "web:1", "web:2"]\n'
    ben = '[[people]]\nname = "ben"\nids = ["web:2"]\n'
    assert faults_of(ann + ben + ann.replace("web", "mail")) == (
        "people: `ann` is named twice, `web:2` belongs to two people; give each person one entry, "
        "with ids of that person alone",
    )
    assert [person.name for person in parse(ann).people] == ["ann"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("approvals.timeout_s", "inf"),
        ("approvals.timeout_s", "nan"),
        ("approvals.grant_s", "1e12"),
        ("budget.prices.m.input", "1e12"),
        ("channels.web.max_age_s", "inf"),
        ("receipts.keep_days", "999_999"),
        ("retention.audit_days", "999_999"),
        ("runtime.grace_s", "inf"),
        ("tools.files.max_read_bytes", "1_000_000_000_000"),
        ("tools.shell.memory_bytes", "9_223_372_036_854_775_808"),
    ],
)
def test_a_number_beyond_any_calendar_or_machine_is_a_fault(key: str, value: str) -> None:
    """Otherwise the daemon ends with a traceback when it first computes with it (P10)."""
    table, _, name = key.rpartition(".")
    faults = faults_of(f"[{table}]\n{name} = {value}\n")
    assert any(fault.startswith(f"{key}: should be ") for fault in faults)


def test_an_amount_of_money_is_a_number() -> None:
    """A turn is compared with it in millionths, and infinity has none (P10)."""
    assert faults_of("[budget]\nturn_usd = inf\n") == (
        "budget.turn_usd: should be a finite number",
    )


@pytest.mark.parametrize("key", ["cert_file", "key_file"])
def test_a_certificate_and_its_key_go_together(key: str) -> None:
    """One of them alone would be plain HTTP where TLS was meant (P10)."""
    assert faults_of(f'public = {{{key} = "x.pem"}}\n') == (
        "public: `cert_file` and `key_file` go together; without both it speaks plain HTTP",
    )


def test_the_public_listener_has_an_address_of_this_machine() -> None:
    """A name could be another machine's by tomorrow; both address families are accepted (P10)."""
    assert faults_of('public = {host = "bot.example.org"}\n') == (
        "public.host: `bot.example.org` is no address of this machine, such as 127.0.0.1, 0.0.0.0 "
        "or ::",
    )
    assert parse('public = {host = "::", cert_file = "a", key_file = "b"}\n').public.host == "::"


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ('model = "small", provider = {kind = "local"}', "with a `provider` it goes there"),
        ('provider = {kind = "auto"}', "`provider` is never discovered; name its kind"),
    ],
)
def test_the_provider_of_summaries_is_given_once_and_by_its_kind(keys: str, fault: str) -> None:
    """A model of the answering endpoint, or another endpoint (P10)."""
    (line,) = faults_of(f"compaction = {{{keys}}}\n")
    assert line.startswith("compaction: ")
    assert line.endswith(fault)


def test_a_fault_of_a_whole_table_names_the_table() -> None:
    """Keys that contradict each other have no single key (P10)."""
    channel = '[channels.bot]\nkind = "telegram"\ntoken = {env = "T"}\nreceive = "webhook"\n'
    _, (*_, fault) = channel_settings(parse(channel), {"telegram": TelegramSettings})
    assert fault.startswith('channels.bot: receive = "webhook" needs the key `webhook_url`')


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('provider = "x"', "provider: should be a table"),
        ("[provider]\noptions = []", "provider.options: should be a table"),
        ("[people]\nname = 'ann'", "people: should be a list"),
        ("[approvals]\napprovers = 'role:operator'", "approvals.approvers: should be a list"),
        (
            "channels.telegram.allowed_users = [12345]",
            'channels.telegram.allowed_users[0]: should be a text, in quotes: "…"',
        ),
        (
            "[channels.web]\n[channels.web]",
            "not valid TOML: cannot declare `channels.web` twice (at line 2, column 14)",
        ),
        (
            "autonomy = 'full'\nautonomy = 'readonly'",
            "not valid TOML: this key has a value already, further up (at end of document)",
        ),
        (
            'autonomy = "full\n',
            "not valid TOML: a text in quotes ends on its line; its last quote is missing (at line 1, "
            "column 17)",
        ),
        (
            "autonomy = 'full\nlanguage = 'en'",
            "not valid TOML: a text in quotes ends on its line; its last quote is missing (at line 1, "
            "column 17)",
        ),
        (
            "autonomy = full",
            'not valid TOML: this is no value; a text needs quotes: "…" (at line 1, column 12)',
        ),
        ('runtime.titles = "maybe"', "runtime.titles: should be true or false"),
        ("runtime.titles = []", "runtime.titles: should be true or false"),
        ('attachments.max_bytes = "10 MB"', "attachments.max_bytes: should be a whole number"),
        ('approvals.timeout_s = "15 min"', "approvals.timeout_s: should be a number"),
        (
            "[[people]]\nname = 'Ann B'",
            "people[0].name: a name begins with one of a-z, and goes on with up to 31 of a-z, "
            "0-9, `_` and `-`",
        ),
        (
            "[[people]]\nname = 'ann'\nids = ['ann']",
            "people[0].ids[0]: an id is <channel>:<sender id>, such as `telegram:7`",
        ),
        (
            "[channels.Web]",
            "channels.Web: a name begins with one of a-z, and goes on with up to 31 of a-z, "
            "0-9, `_` and `-`",
        ),
        (
            "[tools.fetch]\nports = [80, 0]",
            "tools.fetch.ports[1]: should be greater than or equal to 1",
        ),
    ],
)
def test_a_fault_is_worded_in_the_terms_of_the_file(text: str, fault: str) -> None:
    """The words of TOML and of the docs, not of the validating library (P10)."""
    assert faults_of(text) == (fault,)


@pytest.mark.parametrize("table", ["provider", "compaction.provider"])
def test_an_option_that_json_can_not_hold_is_named_by_its_path(table: str) -> None:
    """The path is as in the file, without pydantic's types between the keys (P10)."""
    options = "{ when = 2026-01-01, deep = [{ x = [inf] }, { y = [07:32:00] }] }"
    assert faults_of(f"[{table}]\noptions = {options}") == (
        f"{table}.options.when: should be a text, a number, true, false, a list or a table",
        f"{table}.options.deep[0].x[0]: should be a finite number",
        f"{table}.options.deep[1].y[0]: should be a text, a number, true, false, a list or a table",
    )


@pytest.mark.parametrize(
    "url",
    [
        "localhost:11434",
        "http://",
        "http://[",
        "ftp://host/v1",
        "junk",
        "http://h:70000/v1",
        "http://h:x/v1",
        "http://h/v 1",
        "http://h/v\\u00071",
    ],
)
@pytest.mark.parametrize("table", ["provider", "compaction.provider"])
def test_an_unusable_address_is_a_fault(table: str, url: str) -> None:
    """`check-config` reports it, before a start fails (P10)."""
    text = f'[{table}]\nkind = "openai"\nbase_url = "{url}"\nmodel = "m"'
    assert faults_of(text) == (
        f"{table}.base_url: no address; one begins with http:// or https://, such as "
        "http://127.0.0.1:11434/v1",
    )


def test_an_address_may_be_left_empty() -> None:
    """As in the example."""
    assert parse('[provider]\nbase_url = ""').provider.base_url == ""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("dat_dir = 1", "dat_dir: unknown key; did you mean `data_dir`?"),
        ("[provider]\nkindd = 1", "provider.kindd: unknown key; did you mean `kind`?"),
        ("[tools.shel]", "tools.shel: unknown key; did you mean `shell`?"),
        ("[tools.shell]\nNetwork = 1", "tools.shell.Network: unknown key; did you mean `network`?"),
        (
            '[[people]]\nname = "ann"\nid = ["web:7"]',
            "people[0].id: unknown key; did you mean `ids`?",
        ),
        (
            "[compaction.provider]\nmodell = 1",
            "compaction.provider.modell: unknown key; did you mean `model`?",
        ),
        (
            "[tools.shell]\nqx = 1",
            "tools.shell.qx: unknown key; `zeroclaw config schema` lists the keys",
        ),
    ],
)
def test_a_misspelled_key_is_named_with_a_suggestion(text: str, fault: str) -> None:
    """The suggestion is a key of the same table (P10)."""
    assert fault in faults_of(text)


def test_very_many_faults_are_cut_and_counted() -> None:
    """Comparing each unknown key with all known ones took a minute for 200,000 (P10)."""
    keys = "\n".join(f"key_{number} = 1" for number in range(150))
    faults = faults_of(keys)
    assert len(faults) == 101
    assert faults[-2:] == (
        "key_99: unknown key; `zeroclaw config schema` lists the keys",
        "file: 50 more faults, listed once these are mended",
    )
    _, faults = channel_settings(
        parse(f"[channels.telegram]\n{keys}"), {"telegram": TelegramSettings}
    )
    assert faults[-1].startswith("channels.telegram: ")


def test_a_misspelled_channel_key_may_be_its_kinds_or_a_common_one() -> None:
    config = parse('[channels.telegram]\nallowed_user = ["7"]\ntokn = "x"\n')
    _, faults = channel_settings(config, {"telegram": TelegramSettings})
    assert {fault for fault in faults if "did you" in fault} == {
        "channels.telegram.allowed_user: unknown key; did you mean `allowed_users`?",
        "channels.telegram.tokn: unknown key; did you mean `token`?",
    }
