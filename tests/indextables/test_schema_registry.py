from __future__ import annotations

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tablefeed.indextables.log.schema_registry import (
    canonical,
    doc_mapping_hash,
    registry_of,
    registry_of_configuration,
)

EVENTS = (
    '[{"fast":true,"indexed":true,"name":"id","stored":true,"type":"i64"},'
    '{"fast":true,"indexed":true,"name":"day","stored":true,"tokenizer":"raw","type":"text"},'
    '{"fast":true,"indexed":true,"name":"name","stored":true,"tokenizer":"raw","type":"text"},'
    '{"fast":true,"indexed":true,"name":"score","stored":true,"type":"f64"},'
    '{"fast":true,"indexed":true,"name":"flag","stored":true,"type":"bool"}]'
)


def test_the_hash_is_that_of_the_tables_that_others_wrote() -> None:
    assert doc_mapping_hash(EVENTS) == "1VaJSuu3ytkWlBL5"


def test_the_canonical_form_sorts_keys_and_named_objects_and_keeps_other_lists() -> None:
    text = '[ {"type": "text", "name": "ü"}, {"name": "a", "options": [3, {"z": 1, "y": [2, 1]}, "x"]} ]'

    assert canonical(text) == '[{"name":"a","options":[3,{"y":[2,1],"z":1},"x"]},{"name":"ü","type":"text"}]'


def test_a_list_with_one_object_without_a_name_keeps_its_order() -> None:
    assert canonical('[{"name":"b"},{"name":"a"},{"k":1}]') == '[{"name":"b"},{"name":"a"},{"k":1}]'
    assert canonical("[]") == "[]"


def test_a_registry_is_read_by_either_form_of_its_keys() -> None:
    assert registry_of({"h1": "x", "docMappingSchema.h2": "y"}) == {"h1": "x", "h2": "y"}
    assert registry_of_configuration({"indextables.k": "v", "docMappingSchema.h2": "y"}) == {"h2": "y"}


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[" * 2_000 + "]" * 2_000])
def test_what_is_no_json_has_no_hash(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        doc_mapping_hash(text)


columns = st.fixed_dictionaries(
    {"name": st.text(max_size=4), "type": st.sampled_from(["i64", "text"]), "fast": st.booleans()}
)


@given(st.lists(columns, max_size=5, unique_by=lambda column: column["name"]), st.randoms())
def test_the_order_of_columns_and_keys_and_the_spaces_do_not_matter(
    columns: list[dict[str, object]], chance: object
) -> None:
    shuffled = [dict(sorted(column.items(), reverse=True)) for column in columns]
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # random.Random, as hypothesis makes it

    assert doc_mapping_hash(json.dumps(columns)) == doc_mapping_hash(json.dumps(shuffled, indent=2, ensure_ascii=False))
