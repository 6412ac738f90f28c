"""Which files of a listed IndexTables log give a version of the table, and which give what a version changed.

Listing in, plans out. Names decide; where only contents can decide, the plan names the files to compare. A log has one
of three flavours. JSON: each version is a commit, and checkpoints sum them up. State-only: version 0 is a commit and
every later version is a state, which lists the table's files but not what changed. Native: each version is a commit,
mostly with a state of the same version. CHECKPOINT, PURGE and TRUNCATE leave `state-v0` in a state-only table: it holds
the newest files under a wrong version, and is not used as a version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tablefeed.errors import LogError, LogGapError, TableNotFoundError, VersionNotFoundError
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind

VERSION_CLASS = "INDEXTABLES_VERSION_NOT_FOUND"


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A version that is both a commit and a state. Where they disagree, two writers wrote the version independently."""

    commit: LogFile
    state: LogFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """What `version` is read from: `base`, a state or a checkpoint, and the commits after it in order, without a gap.

    Where `base` is None the commits begin at 0. The commit and state of `twin` must be compared (`replay.parted`)
    before the version is used.
    """

    version: Version
    base: LogFile | None
    commits: tuple[LogFile, ...]
    twin: Twin | None = None

    @property
    def state_versions(self) -> frozenset[Version]:
        """The versions of the states that it is read from."""
        of_base = {self.base.version} if self.base is not None and self.base.kind is LogFileKind.STATE else set()
        return frozenset(of_base | ({self.twin.state.version} if self.twin is not None else set()))


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A version that is only a state: its changes are its difference from the version before."""

    version: Version
    before: Segment
    after: LogFile


ChangeSource = LogFile | StateChange
"""Where the changes of a version come from: its commit, or the difference between two states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A listed log: commits, states without `state-v0`, and JSON checkpoints by version.

    `parts` are those of checkpoints in several files, `zeroth` the `state-v0`: not a version, but it may hold metadata.
    """

    commits: Mapping[Version, LogFile]
    states: Mapping[Version, LogFile]
    checkpoints: Mapping[Version, LogFile]
    parts: tuple[LogFile, ...] = ()
    zeroth: LogFile | None = None

    @property
    def newest(self) -> Version | None:
        """The newest version, None where there is none."""
        return max({*self.commits, *self.states, *self.checkpoints}, default=None)

    @property
    def earliest(self) -> Version | None:
        """The earliest version that can be read as a whole; later ones may still be missing."""
        first = (version for version in self.commits if version == 0)
        return min({*self.states, *self.checkpoints, *first}, default=None)

    @property
    def earliest_change(self) -> Version | None:
        """The earliest version from which the changes of every version up to the newest are known.

        That commit 0 exists does not mean that the versions after it do: TRUNCATE TIME TRAVEL keeps commit 0 and
        removes later ones. None where even the changes of the newest version are not known.
        """
        found = None
        for version in range(self.newest if self.newest is not None else -1, -1, -1):
            if version not in self.commits and not self._is_change_of_states(Version(version)):
                break
            found = Version(version)
        return found

    def with_states(self, states: Mapping[Version, LogFile | None]) -> Log:
        """The log with these states in place of its own of their versions; None: there is none."""
        all_states = {**self.states, **states}
        return replace(self, states={version: file for version, file in all_states.items() if file is not None})

    def without_commit(self, version: Version) -> Log:
        """The log without the JSON commit of `version`."""
        return replace(self, commits={each: file for each, file in self.commits.items() if each != version})

    def _is_change_of_states(self, version: Version) -> bool:
        before = Version(version - 1)
        return version in self.states and (before in self.states or _segment(self, before) is not None)


def read_listing(listing: Iterable[LogFile]) -> Log:
    """The log that `listing` shows, in any order; a name may come twice.

    A caller that lists directories without their contents treats each state directory as a state. Afterwards it removes
    with `Log.with_states` those without `_manifest.avro`: their writer died or has not finished.
    """
    by_kind: dict[LogFileKind, dict[Version, LogFile]] = {kind: {} for kind in LogFileKind}
    parts: dict[str, LogFile] = {}
    for file in listing:
        if file.kind is LogFileKind.CHECKPOINT_PART:
            parts[file.name] = file
        else:
            by_kind[file.kind][file.version] = file
    states = by_kind[LogFileKind.STATE]
    return Log(
        commits=by_kind[LogFileKind.COMMIT],
        states={version: state for version, state in states.items() if version > 0},
        checkpoints=by_kind[LogFileKind.CHECKPOINT],
        parts=tuple(sorted(parts.values(), key=lambda part: part.name)),
        zeroth=states.get(Version(0)),
    )


def segment_of(log: Log, version: Version | None, *, url: str, without: frozenset[str] = frozenset()) -> Segment:
    """The segment of `version`, by default of the newest, from its newest state or checkpoint not in `without`.

    A state is preferred to a checkpoint of the same version. `without` names those that cannot be read or lack a part;
    they still count when the newest version is determined, so that it never goes back.

    Raises TableNotFoundError for a log without any version; VersionNotFoundError for a version that is not there any
    more or not yet; LogGapError where a commit is missing. Raises LogError (INDEXTABLES_MIXED_LOG) where a commit
    follows a state whose version has no commit: the writer of the states never saw that commit, and the next state will
    not hold its files.
    """
    newest, earliest = log.newest, log.earliest
    if newest is None:
        raise TableNotFoundError(
            f"There is no IndexTables table at {url}: its log holds no version.",
            url=url,
            error_class="INDEXTABLES_TABLE_NOT_FOUND",
        )
    target = newest if version is None else version
    if target > newest or (earliest is not None and target < earliest):
        raise VersionNotFoundError(
            url=url, version=target, earliest=earliest or 0, latest=newest, error_class=VERSION_CLASS
        )
    segment = _segment(log, target, without)
    if segment is None:
        raise _hole(log, target, url=url)
    first = segment.commits[0] if segment.commits else None
    base = segment.base
    if first and base and base.kind is LogFileKind.STATE and base.version not in log.commits:
        raise mixed_error(
            f"version {first.version} is a JSON commit after version {base.version}, which is only a state. Readers of "
            "states never see that commit, and the next state will not have its files. Move the commit's file out of "
            "the log, and write its rows",
            url=url,
        )
    return segment


def change_source(log: Log, version: Version, *, url: str) -> ChangeSource:
    """Where the changes of `version` come from: its commit where there is one, else the states around it.

    Correct only for a log whose newest segment was built and whose twin agrees: a commit that disagrees with its state
    is not a version of the table. Raises VersionNotFoundError and LogGapError as `segment_of`.
    """
    commit = log.commits.get(version)
    if commit is not None:
        return commit
    newest = log.newest
    if newest is None or not 0 <= version <= newest:
        raise VersionNotFoundError(
            url=url, version=version, earliest=log.earliest_change or 0, latest=newest or 0, error_class=VERSION_CLASS
        )
    after, before = log.states.get(version), _segment(log, Version(version - 1))
    if after is None or before is None:
        raise _hole(log, version if after is None else Version(version - 1), url=url)
    return StateChange(version=version, before=before, after=after)


def metadata_sources(log: Log, version: Version) -> Iterator[LogFile]:
    """Where to look for metadata if the state of `version` has none, in order; the first that is found is used.

    The schema of a table never changes, so commit 0 has it; without commit 0 (TRUNCATE) an older state may have it.
    """
    first = log.commits.get(Version(0))
    if first is not None:
        yield first
    yield from (log.states[older] for older in sorted(log.states, reverse=True) if older < version)
    if log.zeroth is not None:
        yield log.zeroth


def _segment(log: Log, version: Version, without: frozenset[str] = frozenset()) -> Segment | None:
    listed = (*log.checkpoints.values(), *log.states.values())
    bases = [file for file in listed if file.version <= version and file.name not in without]
    base = max(bases, key=lambda file: (file.version, file.kind is LogFileKind.STATE), default=None)
    begin = -1 if base is None else base.version
    after = sorted(each for each in log.commits if begin < each <= version)
    if len(after) < version - begin or (base is None and not after):
        return None
    commits = tuple(log.commits[each] for each in after)
    return Segment(version=version, base=base, commits=commits, twin=_twin(log, base))


def _twin(log: Log, base: LogFile | None) -> Twin | None:
    """The newest version up to a base that is a commit too: a writer of commits goes on from its own newest."""
    if base is None or base.kind is not LogFileKind.STATE:
        return None
    both = [version for version in log.states if version <= base.version and version in log.commits]
    return Twin(commit=log.commits[max(both)], state=log.states[max(both)]) if both else None


def _hole(log: Log, version: Version, *, url: str) -> LogError:
    known = {*log.commits, *log.states, *log.checkpoints}
    last: int = version
    while last in known:
        last -= 1
    missing = version if last < 0 else 1 + max((each for each in known if each < last), default=-1)
    return LogGapError(
        url=url,
        expected=missing,
        found=min((each for each in known if each > missing), default=None),
        remedy=f"Version {version} cannot be rebuilt without the missing files. TRUNCATE TIME TRAVEL and PURGE remove "
        f"old versions. The log has all changes from version {log.earliest_change} on.",
        error_class="INDEXTABLES_VERSIONS_NOT_CONTIGUOUS",
    )


def mixed_error(what: str, *, url: str) -> LogError:
    """The error for a log by writers that ignore each other; `what` ends with the rows that must be written."""
    return LogError(
        f"The log of {url} was written by IndexTables 0.5.4 or before and by 0.5.5 or after, which ignore each other's "
        f"files: {what} again with the version of IndexTables that will write this table.",
        url=url,
        error_class="INDEXTABLES_MIXED_LOG",
    )
