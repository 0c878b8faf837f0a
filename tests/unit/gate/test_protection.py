"""Protection blocks what no policy and no approval can open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.gate.conditions import EFFECTS, ToolFacts
from zeroclaw.gate.protection import Protected, guard, is_normal, objection
from zeroclaw.value import replace

READS = ToolFacts(effects=frozenset({"read"}), risk="low", declared=True)
HERE = Protected(
    closed=("/srv/ann/.local/share/zc", "/etc/zc.toml", "/srv/ann/.local/share/zc/Work/01C/zc"),
    open=("/srv/ann/.local/share/zc/Work",),
)


def reason(*resources: str) -> str:
    return objection(READS, resources, HERE)


@pytest.mark.parametrize(
    "resource",
    [
        "file:/srv/ann/.local/share/zc",
        "file:/srv/ann/.local/share/zc/store.sqlite",
        "file:/srv/ann/.LOCAL/share/ZC/store.sqlite",
        "file:/etc/zc.toml",
        "file:/etc/ZC.toml",
        "file:/srv/ann/.local/share/zc/Work/01C/zc/store",
    ],
)
def test_the_daemons_own_files_are_never_touched(resource: str) -> None:
    """The data directory and the configuration are out of reach, in any case (S3-23)."""
    assert reason(resource) == f"`{resource}` belongs to the daemon itself"
    assert not guard(HERE)(resource)


def test_a_place_that_is_closed_and_open_is_closed() -> None:
    assert objection(READS, ("file:/a/b",), Protected(closed=("/a",), open=("/a",)))


def test_a_protected_place_is_found_in_whichever_form_its_name_is_composed() -> None:
    """Calls name files in one form; a home directory may be stored in the other."""
    resource = "file:/srv/M\xfcller/zc/store"
    decomposed = Protected(closed=("/srv/Mu\u0308ller/zc",))
    assert objection(READS, (resource,), decomposed)


@pytest.mark.parametrize("resource", ["file:/", "file:/srv/ann", "file:/etc"])
def test_a_folder_around_the_daemons_files_is_not_touched_either(resource: str) -> None:
    """A search through a folder reaches what lies in it."""
    assert reason(resource) == f"`{resource}` holds files of the daemon itself"


@pytest.mark.parametrize(
    "resource",
    [
        "file:/srv/ann/.local/share/zc/Work/01C/notes.md",
        "file:/srv/ann/.local/share/zcx/a",
        "file:/srv/work/keys.txt",
        "file:/srv/work/.env.example",
        "file:/srv/work/example.env",
        "file:/srv/work/environment",
        "file:/srv/work/lib/certifi/cacert.pem",
        "file:/srv/work/ssh/readme",
        "file:/etc/hosts",
        "file:/process",
        "host:example.com:443",
        "sandbox:workspace",
        "notes:in:chat/bot/.env/",
        "results:01CONVERSATION",
    ],
)
def test_everything_else_is_left_to_the_policy(resource: str) -> None:
    """Workspaces inside the data directory, names that only look alike, hosts, sandboxes."""
    assert objection(READS, (resource,), HERE) == ""


@pytest.mark.parametrize(
    "path",
    [
        "/srv/ann/.ssh",
        "/srv/ann/.ssh/config",
        "/srv/ann/.SSH/config",
        "/srv/ann/.aws/credentials",
        "/srv/ann/.gnupg/x",
        "/srv/ann/.kube/config",
        "/srv/ann/.config/gcloud/x",
        "/srv/work/.env",
        "/srv/work/.env.production",
        "/srv/work/.env/x",
        "/srv/work/.Env.d/deep/x",
        "/srv/work/.envrc",
        "/srv/work/prod.env",
        "/srv/ann/id_rsa.bak",
        "/srv/work/tls.key~",
        "/srv/work/server.key/part",
        "/srv/ann/.netrc/x",
        "/srv/work/Server.PEM",
        "/srv/work/tls.key",
        "/srv/work/id_ed25519",
        "/srv/work/id_ed25519_sk",
        "/srv/ann/.netrc",
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/sudoers.d/ann",
        "/proc/self/environ",
        "/proc/1/mem",
    ],
)
def test_places_where_secrets_are_kept_are_never_touched(path: str) -> None:
    """Keys and passwords by the names that programs give them, in any case (S3-23)."""
    assert reason(f"file:{path}") == f"`file:{path}` is where secrets are kept"


def test_one_protected_resource_blocks_the_whole_call() -> None:
    """A call is one thing: it runs whole or not at all."""
    assert reason("file:/srv/work/a", "file:/etc/zc.toml")
    assert not reason("file:/srv/work/a", "file:/srv/work/b")
    assert not reason()


@pytest.mark.parametrize(
    ("effects", "verdict"),
    [
        (["network"], ""),
        (["read"], "its resources could not be determined"),
        (["exec"], "its resources could not be determined"),
        (sorted(EFFECTS), "its resources could not be determined"),
    ],
)
def test_what_cannot_be_looked_at_is_blocked_where_files_are_at_stake(
    effects: list[str], verdict: str
) -> None:
    """Unresolved resources fail closed; a call that can only reach hosts is the policy's."""
    facts = replace(READS, effects=frozenset(effects))
    assert objection(facts, None, HERE) == verdict


@pytest.mark.parametrize(
    "resource",
    [
        "file:", "file:relative", "file:a/b", "file:/a/", "file:/a//b", "file:/a/./b", "file:/a/..", "file://a",
        "file:/a\0b", "/a", "", "host:", "host:a b", "ftp:x",
    ],
)  # fmt: skip
def test_a_resource_that_is_not_normal_is_blocked(resource: str) -> None:
    """Patterns and roots are compared as text, so any second spelling is refused."""
    assert not is_normal(resource)
    assert reason(resource) == "a resource of it is not in normal form"


def test_the_root_folder_is_normal() -> None:
    """It is the one path that ends with a slash."""
    assert is_normal("file:/")
    assert objection(READS, ("file:/",), Protected(closed=())) == ""


KEPT = (".env", ".Env.local", ".ssh", "tls.KEY", "id_rsa", ".netrc", "gcloud", "a.pem")


@given(
    above=st.lists(
        st.sampled_from(("srv", "a b", ".", "é")).map(lambda name: f"x{name}"), max_size=3
    ),
    name=st.sampled_from(KEPT),
    below=st.lists(st.sampled_from(("x", "deep", ".env.example", "notes.txt")), max_size=4),
)
def test_what_lies_below_a_secret_name_is_closed_like_it(
    above: list[str], name: str, below: list[str]
) -> None:
    """A folder `.env/` keeps what a file `.env` does, however far down."""
    path = "/" + "/".join((*above, name, *below))
    assert reason(f"file:{path}").endswith("is where secrets are kept")


names = st.text("abZ._-", min_size=1, max_size=4).filter(lambda name: name not in {".", ".."})


@given(inside=st.lists(names, max_size=4), around=st.lists(names, min_size=1, max_size=3))
def test_nothing_inside_a_closed_folder_passes(inside: list[str], around: list[str]) -> None:
    """With any names, in any case, the folder is closed."""
    root = "/" + "/".join(around)
    resource = "file:" + "/".join([root.swapcase(), *inside])
    assert objection(READS, (resource,), Protected(closed=(root,)))
