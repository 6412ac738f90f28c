"""Runs a change of rows until it is committed. If other commits came in between, the rows are found again.

A change reads one version of the table and is committed as a later version. Another writer may commit in between. If
that commit changed files from which the change removes rows, or added rows that the change may have to change, then the
change is prepared again on the newest version. So an append, an OPTIMIZE or a change of other rows does not make it
fail.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tablefeed.errors import TABLE, ConflictError, TableNotFoundError, UnsupportedFeatureError, naming_its_table
from tablefeed.feed.commit.collisions import OnCollision, check_collision
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Surroundings, Transaction
from tablefeed.feed.snapshot.delta_log import DeltaSnapshot
from tablefeed.feed.snapshot.known_state import caught_up
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.model.actions import Txn
from tablefeed.model.outcome import AlreadyApplied, Committed

logger = logging.getLogger(__name__)

TRIES = 20
"""How often a change is prepared at most. Each failed try means that another writer's commit succeeded."""

LONGEST_WAIT_S = 1.0

PREPARED_AGAIN = frozenset({"DELTA_CONCURRENT_APPEND", "DELTA_CONCURRENT_DELETE_READ"})
"""The conflicts after which the rows are found again. Any other conflict is reported to the user."""


@naming_its_table
def run(
    log: TableLog,
    state: Snapshot | None,
    prepare: Callable[[TargetRows], Transaction | None],
    *,
    txn: Txn | None,
    around: Surroundings,
) -> tuple[Committed | AlreadyApplied, Snapshot, Transaction | None]:
    """Commits what `prepare` makes of the table's rows; gives the outcome, the table's state after it, and the commit.

    `prepare` writes files and gives the transaction that names them, None where there is nothing to change; `state` is
    the newest known, None where there is no table. Raises TableNotFoundError, UnsupportedFeatureError for a table whose
    rows cannot be changed, and as `commit`.
    """
    for left in range(TRIES - 1, -1, -1):
        snapshot = changeable(state)
        recorded = snapshot.facts.txns.get(txn.app_id) if txn is not None else None
        if txn is not None and recorded is not None and recorded.txn_version >= txn.txn_version:
            check_collision(txn, recorded.txn_version, OnCollision.WARN, url=log.url)
            return AlreadyApplied(version=snapshot.version, recorded_txn_version=recorded.txn_version), snapshot, None
        transaction = prepare(TargetRows(snapshot))
        if transaction is None:
            return Committed(version=snapshot.version, written=False), snapshot, None
        try:
            return *commit(log, snapshot, transaction, around), transaction
        except ConflictError as conflict:
            if not left or conflict.error_class not in PREPARED_AGAIN:
                raise
            logger.info("rows found again table=%s: %s", log.url, conflict)
            around.sleep(around.uniform() * min(LONGEST_WAIT_S, 0.01 * 2 ** (TRIES - left)))
            state = caught_up(log, snapshot)
    raise AssertionError("the last try returns or raises")


def changeable(state: Snapshot | None) -> DeltaSnapshot:
    """Gives `state`. Raises TableNotFoundError and UnsupportedFeatureError for a table whose rows cannot be changed."""
    if state is None:
        raise TableNotFoundError(
            f"There is no table at {TABLE}, so no rows can be changed. Check the path, or create the table first."
        )
    if isinstance(state, DeltaSnapshot):
        return state
    raise UnsupportedFeatureError(
        f"{TABLE} is an IndexTables table. Its splits cannot lose single rows, so tablefeed does not change its rows. "
        "Nothing was written. Overwrite the table, or keep a Delta table for rows that change.",
        features=("indextables row changes",),
        error_class="INDEXTABLES_ROW_CHANGES_UNSUPPORTED",
    )
