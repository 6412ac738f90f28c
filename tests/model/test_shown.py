"""A value in the text of an error."""

from __future__ import annotations

from tablefeed.model.shown import shown


def test_a_value_is_shown_as_python_spells_it_and_cut() -> None:
    assert shown({"a": [1, "b"]}) == "{'a': [1, 'b']}"
    assert shown("x" * 100) == "'" + "x" * 59
    assert shown("x" * 100, most=5) == "'xxxx"


def test_a_value_that_nests_deeper_than_python_can_spell_is_named_in_words() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    assert shown(deep) == "a value that nests too deep to be shown"
