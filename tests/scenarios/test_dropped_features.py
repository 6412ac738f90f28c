"""A feature that is not handled and was dropped again: every batch is read with the protocol that held then.

DeltaSourceFastDropFeatureSuite, and its twin with a change feed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.queries import Stream
from support.checkpoints import classic_name, put_checkpoint
from support.logs import Action, a_log, a_source, add, at, commit_path, delivered, protocol
from support.recorded import log, recorded
from tablefeed.errors import UnsupportedFeatureError
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.log.plan import Limits
from tablefeed.model.offset import Offset

CLEAN = protocol(3, 7, readerFeatures=[], writerFeatures=["changeDataFeed"])
UNSUPPORTED = protocol(3, 7, readerFeatures=["fancy"], writerFeatures=["changeDataFeed", "fancy"])
REFUSED = "DELTA_UNSUPPORTED_FEATURES_FOR_READ"
change_feeds = pytest.mark.parametrize("change_feed", [False, True], ids=lambda value: f"readChangeFeed={value}")


def history(*commits: Action | str) -> DeltaLog:
    """A clean version 0, and then a commit for each: of a protocol, or of a file with this name."""
    later: dict[str, Any] = {
        f"v{n}": [what if isinstance(what, dict) else add(what)] for n, what in enumerate(commits, 1)
    }
    return a_log(v0=[CLEAN, recorded()], **later)


@change_feeds
@pytest.mark.parametrize(
    ("commits", "options", "start"),
    [
        (["a", UNSUPPORTED, "b", CLEAN], {"starting_version": 3}, None),
        (["a", "b", UNSUPPORTED, CLEAN], {"starting_version": 2}, None),
        (["a", "b", UNSUPPORTED, "c", "d", "e", CLEAN], {}, at(4)),
        (["a", "b", UNSUPPORTED, "c", CLEAN], {}, at(3)),
    ],
    ids=["start behind the upgrade", "upgrade on the way", "restart behind the upgrade", "restart before the upgrade"],
)
def test_a_batch_is_refused_by_the_protocol_of_its_commits(
    commits: list[Action | str],
    options: dict[str, Any],
    start: Offset | None,
    change_feed: bool,  # noqa: FBT001 (what the scenario is named by)
) -> None:
    """What was read under the feature, someone read who knows it: this stream goes on from there, and does not."""
    source = a_source(history(*commits), change_feed=change_feed, **options)

    with pytest.raises(UnsupportedFeatureError, match="fancy") as caught:
        source.latest(start or source.initial(), Limits())
    assert caught.value.error_class == REFUSED


@change_feeds
def test_the_latest_protocol_is_checked_where_a_stream_is_defined(
    tmp_path: Path,
    change_feed: bool,  # noqa: FBT001 (what the scenario is named by)
) -> None:
    table = log(tmp_path, v0=[CLEAN, recorded()], v1=[UNSUPPORTED])

    with pytest.raises(UnsupportedFeatureError, match="fancy") as caught:
        Stream.on(table, readChangeFeed=str(change_feed).lower()).frame()
    assert caught.value.error_class == REFUSED


@change_feeds
def test_a_start_whose_protocol_the_log_does_not_have_any_more_is_read_under_the_next_that_it_has(
    change_feed: bool,  # noqa: FBT001 (what the scenario is named by)
) -> None:
    log = history("a", "b", "c", "d")
    put_checkpoint(log.store, classic_name(3), [CLEAN, recorded(), add("a"), add("b"), add("c")])
    log.store.delete(commit_path(1))
    source = a_source(log, starting_version=2, change_feed=change_feed)

    start = source.initial()

    assert delivered(source, start, source.latest(start, Limits())) == ["b", "c", "d"]
