from __future__ import annotations

import pytest

from tablefeed.delta.checkpoint.spark_hash import part_of
from tablefeed.model.murmur import murmur3


@pytest.mark.parametrize(
    ("text", "hashed"),
    [("ABC", -757602832), ("Spark", 228093765), ("", 142593372), ("ü", -1098725648), ("a/p=1/x y.parquet", 1422915457)],
)
def test_the_hash_of_a_text_is_what_sparks_sql_gives(text: str, hashed: int) -> None:
    assert murmur3(text.encode()) == hashed


def test_a_part_is_the_hashs_remainder_and_never_negative() -> None:
    assert part_of("ABC", 7) == -757602832 % 7
    assert part_of("a/p=1/x y.parquet", 4) == 1


def test_what_has_no_path_is_where_spark_puts_a_null() -> None:
    assert part_of(None, 4) == 42 % 4
