"""A version checksum is taken where it has the protocol's shape, and is none where it has not; it is never an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.delta.checkpoint.checksum import Checksum, differences, parse_checksum
from tablefeed.model.actions import Facts, Metadata, Protocol

METADATA = {"id": "t", "format": {"provider": "parquet"}, "schemaString": "{}", "partitionColumns": []}
WHOLE = {
    "txnId": "x",
    "tableSizeBytes": 30,
    "numFiles": 3,
    "numMetadata": 1,
    "numProtocol": 1,
    "metadata": METADATA,
    "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
    "allFiles": [],
}
PARSED = Checksum(
    file_count=3,
    size_bytes=30,
    metadata=Metadata(table_id="t", schema_string="{}"),
    protocol=Protocol(min_reader_version=1, min_writer_version=2),
)


def parsed(**changes: object) -> Checksum | None:
    return parse_checksum(json.dumps({**WHOLE, **changes}).encode())


def test_a_checksum_has_the_files_their_bytes_the_metadata_and_the_protocol() -> None:
    assert parsed() == PARSED


def test_what_old_writers_left_out_is_not_said() -> None:
    found = parsed(metadata=None, protocol=None)

    assert found == Checksum(file_count=3, size_bytes=30, metadata=None, protocol=None)


@pytest.mark.parametrize(
    "changes",
    [
        {"numFiles": None},
        {"numFiles": -1},
        {"numFiles": "3"},
        {"numFiles": True},
        {"numFiles": 2**70},
        {"tableSizeBytes": 1.5},
        {"numMetadata": 2},
        {"numProtocol": 0},
        {"metadata": []},
        {"metadata": {}},
        {"protocol": "1"},
        {"protocol": {"minReaderVersion": 1}},
    ],
)
def test_what_is_no_checksum_is_none(changes: dict[str, object]) -> None:
    assert parsed(**changes) is None


@given(st.binary() | st.recursive(st.none() | st.integers(), st.lists).map(lambda value: json.dumps(value).encode()))
def test_no_bytes_are_an_error(data: bytes) -> None:
    assert parse_checksum(data) is None


def test_a_difference_is_told_in_words() -> None:
    facts = Facts(protocol=PARSED.protocol, metadata=Metadata(table_id="u", schema_string="{}"))

    assert list(differences(PARSED, facts, file_count=2, size_bytes=30)) == [
        "numFiles is 3, the log has 2 live files",
        "metadata is not the log's",
    ]
    assert (
        list(
            differences(PARSED, Facts(protocol=PARSED.protocol, metadata=PARSED.metadata), file_count=3, size_bytes=30)
        )
        == []
    )


def test_every_checksum_of_other_writers_is_understood(corpus: Path) -> None:
    files = sorted(corpus.glob("delta/**/_delta_log/0*.crc"))

    assert len(files) > 50
    assert [str(file) for file in files if parse_checksum(file.read_bytes()) is None] == []
