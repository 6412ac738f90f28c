from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from tablefeed.delta import names
from tablefeed.model.logfile import LogFile, LogFileKind

V10 = "00000000000000000010"
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def parsed(name: str) -> LogFile | None:
    return names.parse_name(name, size_bytes=7, modified_ms=9)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (f"{V10}.json", LogFileKind.COMMIT),
        (f"{V10}.crc", LogFileKind.CHECKSUM),
        (f"{V10}.checkpoint.parquet", LogFileKind.CHECKPOINT),
        (f"{V10}.checkpoint.{UUID}.json", LogFileKind.CHECKPOINT_V2),
        (f"{V10}.checkpoint.{UUID}.parquet", LogFileKind.CHECKPOINT_V2),
        (f"{V10}.00000000000000000012.compacted.json", LogFileKind.COMPACTION),
    ],
)
def test_the_shape_of_a_name_tells_what_the_file_is(name: str, kind: LogFileKind) -> None:
    file = parsed(name)
    assert file is not None
    assert (file.name, file.kind, file.version, file.size_bytes, file.modified_ms) == (name, kind, 10, 7, 9)
    assert (file.part, file.part_count) == (None, None)
    assert file.last_version == (12 if kind is LogFileKind.COMPACTION else None)


def test_a_part_of_a_checkpoint_knows_its_number_and_how_many_there_are() -> None:
    file = parsed(f"{V10}.checkpoint.0000000002.0000000003.parquet")
    assert file is not None
    assert (file.kind, file.version, file.part, file.part_count) == (LogFileKind.CHECKPOINT_PART, 10, 2, 3)


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint",
        "_sidecars",
        "_staged_commits",
        f".{V10}.json.crc",  # Hadoop's checksum sibling
        f".{V10}.json.5f1c.tmp",
        f"{V10}.json.tmp",
        f"{V10}.{UUID}.json",  # a staged commit
        f"{V10}.checkpoint.json",
        f"{V10}.checkpoint.0000000004.0000000003.parquet",  # part 4 of 3
        f"{V10}.checkpoint.0000000000.0000000003.parquet",
        f"{V10}.JSON",
        f"{V10}.{V10}.compacted.json",  # of one commit
        f"{V10}.00000000000000000009.compacted.json",
        f"{V10}.99999999999999999999.compacted.json",
        f"{V10}.json\n",
        "0000000000000000010.json",  # 19 digits
        "99999999999999999999.json",  # more than a long holds
        "\u0660000000000000000010.json",  # a digit, but not an ASCII one
    ],
)
def test_what_is_not_named_by_the_protocol_is_no_log_file(name: str) -> None:
    assert parsed(name) is None


@given(st.integers(0, 2**63 - 1))
@example(2**63 - 1)
def test_the_name_of_a_commit_that_we_make_is_read_back(version: int) -> None:
    file = parsed(names.commit_name(version))

    assert file is not None
    assert (file.kind, file.version) == (LogFileKind.COMMIT, version)
