"""Capitals and small letters are Unicode's full mappings; a character whose mapping versions differ in has none."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablefeed.data.sql.letters import lower, upper


def test_letters_are_mapped_in_full_and_by_no_language() -> None:
    texts = pa.chunked_array([pa.array(["straße", "ﬁn", "ΑΣ", "İ", "ǆ", None, ""])])

    assert upper(texts).to_pylist() == ["STRASSE", "FIN", "ΑΣ", "İ", "Ǆ", None, ""]  # Greek
    assert lower(texts).to_pylist() == ["straße", "ﬁn", "ας", "i\u0307", "ǆ", None, ""]  # Greek


@pytest.mark.parametrize("character", ["\u0378", "\u019b", "\u0264"])
def test_a_character_that_a_newer_unicode_maps_otherwise_has_no_answer(character: str) -> None:
    assert upper(pa.chunked_array([pa.array(["a", f"a{character}"])])).to_pylist() == ["A", None]
