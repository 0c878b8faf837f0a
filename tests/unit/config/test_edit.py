"""Where a new key is put into a hand-formatted configuration."""

import pytest

from zeroclaw.config.edit import set_key, with_line

TEXT = """# mine

[provider] # the model
kind = "local"

# nobody writes that much
[limits]
daily_messages = 3


# people
[[people]]
name = "ann"
"""


@pytest.mark.parametrize(
    ("key", "value", "before", "after"),
    [
        ("provider.model", "m", 'kind = "local"\n', 'kind = "local"\nmodel = "m"\n'),
        (
            "limits.person_burst",
            "4 # enough",
            "daily_messages = 3\n",
            "daily_messages = 3\nperson_burst = 4 # enough\n",
        ),
        ("autonomy", "full", "# mine\n", '# mine\n\nautonomy = "full"\n'),
    ],
)
def test_a_new_key_comes_below_the_last_one_of_its_table(
    key: str, value: str, before: str, after: str
) -> None:
    """A comment above the next table stays there."""
    assert set_key(TEXT, key, value) == TEXT.replace(before, after)


@pytest.mark.parametrize(
    ("text", "key", "after"),
    [
        ("", "autonomy", 'autonomy = "x"\n'),
        ("# mine\n", "autonomy", '# mine\n\nautonomy = "x"\n'),
        ("# a table\n[limits]\n", "autonomy", 'autonomy = "x"\n\n# a table\n[limits]\n'),
        ("language = 'de'\n\n[a]\n", "autonomy", "language = 'de'\nautonomy = \"x\"\n\n[a]\n"),
        ("[a]\n\n[b]\n", "a.c", '[a]\nc = "x"\n\n[b]\n'),
        ("[a]\nb = [\n  [1],\n]\n\n[c]\n", "a.d", '[a]\nb = [\n  [1],\n]\nd = "x"\n\n[c]\n'),
        ('[a]\nb = """\n[c]\n"""\n[c]\n', "c.d", '[a]\nb = """\n[c]\n"""\n[c]\nd = "x"\n'),
        ('["a b".c]\nd = 1\n[e]\n', '"a b".c.f', '["a b".c]\nd = 1\nf = "x"\n[e]\n'),
        ("a.b = 1\n", "a.c", 'a.b = 1\na.c = "x"\n'),
        ("a = { b = 1 }\n", "a.c", 'a = { b = 1, c = "x"}\n'),
        ("[[a]]\nb = 1\n\n[d]\n", "a.0.c", '[[a]]\nb = 1\nc = "x"\n[d]\n'),
    ],
)
def test_a_key_is_set_in_any_layout_of_the_text(text: str, key: str, after: str) -> None:
    """If lines alone don't show where a table ends, the TOML library finds the place."""
    assert set_key(text, key, "x") == after


def test_a_table_that_is_missing_or_repeated_has_no_place() -> None:
    """Neither an entry of a list, nor a value that only looks like a table."""
    assert with_line("[[a]]\n", ("a",), "b = 1") is None
    assert with_line('b = """\n[a]\n"""\n[a]\n', ("a",), "b = 1") is None
    assert with_line("[a\n[b.c]\n", ("a",), "b = 1") is None
