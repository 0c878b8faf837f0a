"""What a configuration may not say, beside the types of its keys."""

import pytest

from zeroclaw.config import parse
from zeroclaw.errors import ConfigError


def faults_of(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return caught.value.faults


@pytest.mark.parametrize("name", ["anyone", "channel", "person", "role"])
def test_a_channel_is_not_named_like_what_policies_call_people_by(name: str) -> None:
    """Its sender `operator` would be written like the role, its sender `ann` like the person (P10)."""
    assert faults_of(f'[channels.{name}]\nkind = "web"\n[channels.web]\n') == (
        f"channels.{name}: `{name}` means something else in policies; give the channel another "
        "name",
    )


def test_a_channel_is_named_in_small_letters() -> None:
    """The name itself is the place of the fault (P10)."""
    (fault,) = faults_of("[channels.Web]\n")
    assert fault.startswith("channels.Web: ")


def test_a_channel_may_be_named_almost_like_them() -> None:
    """Only the very words are taken."""
    assert list(parse('[channels.roles]\nkind = "web"\n').channels) == ["roles"]
