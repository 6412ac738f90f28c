"""A feature that is not handled and was dropped again: every batch is read with the protocol that held then.

DeltaSourceFastDropFeatureSuite, and its twin with a change feed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

from scenarios.streams import Stream, commit, commit_file, stream
from support.logs import Action, add, protocol
from support.recorded import data_file, recorded
from tablefeed.errors import UnsupportedFeatureError

CLEAN = protocol(3, 7, readerFeatures=[], writerFeatures=["changeDataFeed"])
UNSUPPORTED = protocol(3, 7, readerFeatures=["fancy"], writerFeatures=["changeDataFeed", "fancy"])
REFUSED = "DELTA_UNSUPPORTED_FEATURES_FOR_READ"
CHANGE_FEED = pytest.mark.parametrize("feed", ["false", "true"], ids=lambda value: f"readChangeFeed={value}")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def history(table: Path, *commits: Action | int) -> None:
    """A commit for each: of a protocol, or of a file with this one row."""
    commit(table, 0, CLEAN, recorded())
    os.utime(commit_file(table, 0), (0, 0))
    for version, what in enumerate(commits, 1):
        commit(table, version, add(data_file(table, f"{what}.parquet", id=[what])) if isinstance(what, int) else what)
        os.utime(commit_file(table, version), (1000 * version, 1000 * version))


def refused(query: Stream) -> None:
    with pytest.raises(UnsupportedFeatureError, match="fancy") as caught:
        query.run()
    assert caught.value.error_class == REFUSED
    assert query.rows == []


@CHANGE_FEED
def test_the_latest_protocol_is_checked_for_unsupported_features(table: Path, feed: str) -> None:
    history(table, 1, UNSUPPORTED)

    with pytest.raises(UnsupportedFeatureError, match="fancy") as caught:
        stream(table, readChangeFeed=feed).frame()
    assert caught.value.error_class == REFUSED


@CHANGE_FEED
@pytest.mark.parametrize(
    "start", [{"startingVersion": "3"}, {"startingTimestamp": "1970-01-01T00:50:00Z"}], ids=lambda s: next(iter(s))
)
def test_the_protocol_is_checked_when_using_starting_version(table: Path, start: dict[str, str], feed: str) -> None:
    """The start is behind the upgrade, so that no commit which is read tells of it."""
    history(table, 1, UNSUPPORTED, 2, CLEAN)

    refused(stream(table, readChangeFeed=feed, **start))


@CHANGE_FEED
def test_the_protocol_is_checked_when_coming_across_an_action_with_a_protocol_upgrade(table: Path, feed: str) -> None:
    history(table, 1, 2, UNSUPPORTED, CLEAN)

    refused(stream(table, readChangeFeed=feed, startingVersion="2"))


@CHANGE_FEED
def test_the_protocol_is_checked_after_restarting_from_a_checkpoint(table: Path, feed: str) -> None:
    """What was read under the feature, someone read who knows it: this stream goes on from there, and does not."""
    history(table, 1, 2, UNSUPPORTED, 3, 4, 5, CLEAN)
    query = stream(table, readChangeFeed=feed, maxFilesPerTrigger="1")
    query.stand_at(4)

    refused(query)


@CHANGE_FEED
def test_a_restart_from_a_checkpoint_reads_forward_into_an_unsupported_feature_commit(table: Path, feed: str) -> None:
    history(table, 1, 2, UNSUPPORTED, 3, CLEAN)
    query = stream(table, readChangeFeed=feed, maxFilesPerTrigger="1")
    query.stand_at(3)

    refused(query)


@CHANGE_FEED
def test_protocol_validations_suppress_errors_when_the_snapshot_cannot_be_reconstructed(table: Path, feed: str) -> None:
    history(table, 1, 2, 3)
    DeltaTable(str(table)).create_checkpoint()
    commit(table, 4, add(data_file(table, "4.parquet", id=[4])))
    commit_file(table, 1).unlink()
    query = stream(table, startingVersion="2", readChangeFeed=feed)

    query.run()

    assert [row if feed == "false" else row[0] for row in query.rows] == [2, 3, 4]
