"""Where a new key comes to stand in a configuration that somebody has laid out."""

import pytest

from zeroclaw.config.edit import set_key, with_line

LAID_OUT = """# mine

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
    """What stands above the next table goes on standing there."""
    assert set_key(LAID_OUT, key, value) == LAID_OUT.replace(before, after)


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
def test_whatever_a_text_looks_like_it_means_what_was_asked(
    text: str, key: str, after: str
) -> None:
    """Where lines alone don't tell where a table ends, the library for TOML finds the place."""
    assert set_key(text, key, "x") == after


def test_a_table_that_is_not_there_once_has_no_place() -> None:
    """Neither one of a list, nor one that a value only looks like."""
    assert with_line("[[a]]\n", ("a",), "b = 1") is None
    assert with_line('b = """\n[a]\n"""\n[a]\n', ("a",), "b = 1") is None
    assert with_line("[a\n[b.c]\n", ("a",), "b = 1") is None
