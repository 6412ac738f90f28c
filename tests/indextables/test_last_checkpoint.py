from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.indextables.log.last_checkpoint import Hint, encode_last_checkpoint, parse_last_checkpoint
from tablefeed.model.actions import Version

SCALA = (
    b'{"version":8,"size":2,"sizeInBytes":22599,"numFiles":2,"createdTime":1795244631292,"parts":null,'
    b'"checkpointId":null,"format":"avro-state","stateDir":"state-v00000000000000000008"}'
)
NATIVE = SCALA.replace(b'"parts":null,"checkpointId":null,', b"")
HINT = Hint(version=Version(8), action_count=2, size_bytes=22599, file_count=2, created_ms=1795244631292, is_state=True)


def test_the_hint_of_either_writer_is_read() -> None:
    assert parse_last_checkpoint(SCALA) == parse_last_checkpoint(NATIVE) == HINT


def test_a_json_checkpoint_has_no_format() -> None:
    hint = parse_last_checkpoint(b'{"version":5,"parts":3,"checkpointId":"x","format":null,"stateDir":null}')

    assert hint == Hint(version=Version(5), part_count=3, checkpoint_id="x")


def test_what_we_write_is_what_the_scala_log_writes() -> None:
    assert encode_last_checkpoint(HINT) == SCALA


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"version":"8"}', b'{"version":-1}', b'{"version":true}'])
def test_a_malformed_hint_is_none(data: bytes) -> None:
    assert parse_last_checkpoint(data) is None


@given(st.binary(max_size=40) | st.dictionaries(st.sampled_from(["version", "size", "parts"]), st.integers()).map(str))
def test_no_bytes_are_an_error(data: bytes | str) -> None:
    parse_last_checkpoint(data if isinstance(data, bytes) else data.replace("'", '"').encode())


@given(st.builds(Hint, version=st.integers(0, 2**63 - 1).map(Version), file_count=st.none() | st.integers(0, 9)))
def test_a_hint_is_read_back_as_it_was_written(hint: Hint) -> None:
    assert parse_last_checkpoint(encode_last_checkpoint(hint)) == hint
    assert orjson.loads(encode_last_checkpoint(hint))["stateDir"] is None
