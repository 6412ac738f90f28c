"""The JAR's own view of a table's log, asked in its JVM: what SQL has no words for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class JarLog:
    """The log of one table as the JAR has it, listed afresh."""

    def __init__(self, session: SparkSession, table: Path) -> None:
        assert session._jvm is not None
        delta_log: Any = session._jvm.org.apache.spark.sql.delta.DeltaLog  # Any: a Java object
        delta_log.clearCache()
        self._log = delta_log.forTable(session._jsparkSession, str(table))

    def checksum_faults(self, version: int) -> list[str]:
        """What keeps the JAR from finding the checksum of `version` right: it has none, or it raises."""
        snapshot = self._snapshot(version)
        checksum = snapshot.checksumOpt()
        if checksum.isEmpty():
            return ["it read no checksum"]
        faults = []
        if not snapshot.validateChecksum(getattr(snapshot, "validateChecksum$default$1")()):
            faults.append("it is wrong")
        listed = checksum.get().allFiles()
        if not listed.isEmpty():
            replayed = [_spelt(add) for add in snapshot.allFilesViaStateReconstruction().collect()]
            if sorted(_spelt(listed.get().apply(n)) for n in range(listed.get().size())) != sorted(replayed):
                faults.append("its files are wrong")
        return faults

    def checkpoint_files(self, version: int) -> list[str]:
        """The names of the top-level files of the checkpoint that the JAR reads `version` from."""
        files = self._snapshot(version).checkpointProvider().topLevelFiles()
        return sorted(files.apply(index).getPath().getName() for index in range(files.size()))

    def write_checkpoint(self) -> None:
        """Has the JAR write a checkpoint of the newest version, and clean the log up."""
        snapshot = self._log.update(*self._defaults("update", range(1, 4)))
        self._log.checkpoint(snapshot, *self._defaults("checkpoint", [2]))

    def _snapshot(self, version: int) -> Any:
        return self._log.getSnapshotAt(version, *self._defaults("getSnapshotAt", range(2, 5)))

    def _defaults(self, method: str, parameters: Iterable[int]) -> list[Any]:
        return [getattr(self._log, f"{method}$default${number}")() for number in parameters]


def _spelt(add: Any) -> str:
    """The add with all its fields. Of a checksum that it reads, the JAR takes absent tags for empty ones.

    Its own validateFileListAgainstCRC does not see that: of a checksum that was read from a file it finds none right.
    """
    return re.sub(r",null,(null|DeletionVectorDescriptor)", r",Map(),\1", str(add.toString()))
